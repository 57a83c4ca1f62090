# Writes OUTPUT: for each of FILES, "name=path", a row {"name", "text"} of string
# literals. Literals have a limit, so text goes in line by line.
set(text "")
foreach(file ${FILES})
  string(REGEX MATCH "^([^=]+)=(.+)$" entry ${file})
  set(name ${CMAKE_MATCH_1})
  file(READ ${CMAKE_MATCH_2} body)
  string(REPLACE "\\" "\\\\" body "${body}")
  string(REPLACE "\"" "\\\"" body "${body}")
  string(REPLACE "?" "\\?" body "${body}") # No trigraphs.
  string(REPLACE "\n" "\\n\"\n     \"" body "${body}")
  string(APPEND text "    {\"${name}\",\n     \"${body}\"},\n")
endforeach()
file(WRITE ${OUTPUT} "${text}")
