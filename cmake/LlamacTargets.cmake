# llamac_library(NAME SOURCES ... [LIBS ...]): a static library of one module,
# with the project's warnings; includes are relative to the repository root.
# llamac_gtest(NAME SOURCES ... [LIBS ...] [SHARDS N]): a GoogleTest binary, which
# ctest runs as N processes (default 1), each with its share of the cases.

add_library(llamac_options INTERFACE)
target_include_directories(llamac_options INTERFACE ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
target_compile_definitions(llamac_options INTERFACE LLAMAC_VERSION="${PROJECT_VERSION}")
target_compile_options(llamac_options INTERFACE -Wall -Wextra -Wno-unused-parameter)
if(LLAMAC_SANITIZE)
  target_compile_options(llamac_options INTERFACE -fsanitize=${LLAMAC_SANITIZE} -fno-omit-frame-pointer)
  target_link_options(llamac_options INTERFACE -fsanitize=${LLAMAC_SANITIZE})
endif()

function(llamac_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS;DEPENDS" ${ARGN})
  # Programs marked LLAMAC_STATIC_LLVM link archives instead.
  list(TRANSFORM ARG_LIBS REPLACE "^(clang-cpp|lldCommon|lldELF|LLVM|MLIR)$"
       "$<$<NOT:$<BOOL:$<TARGET_PROPERTY:LLAMAC_STATIC_LLVM>>>:\\1>")
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC llamac_options ${ARG_LIBS})
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
endfunction()

# llamac_schema(NAME SCHEMA [INCLUDES FOLDER] [DEPENDS ...]): makes NAME_generated.h
# of a schema of flatbuffers, with its object API, and the target llamac_NAME_schema.
function(llamac_schema name schema)
  cmake_parse_arguments(ARG "" "INCLUDES" "DEPENDS" ${ARGN})
  set(header ${CMAKE_CURRENT_BINARY_DIR}/${name}_generated.h)
  if(ARG_INCLUDES)
    set(includes -I ${ARG_INCLUDES})
  endif()
  add_custom_command(
    OUTPUT ${header}
    COMMAND ${FLATC} --cpp --gen-all ${includes} --gen-object-api --scoped-enums --cpp-std c++17
            --cpp-field-case-style lower -o ${CMAKE_CURRENT_BINARY_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/${schema}
    # The generator's style is its own: clang-tidy passes it over.
    COMMAND sed -i -e "1i // NOLINTBEGIN" -e "\$a // NOLINTEND" ${header}
    DEPENDS ${schema} ${ARG_DEPENDS}
    COMMENT "Generating ${name}_generated.h"
    VERBATIM)
  add_custom_target(llamac_${name}_schema DEPENDS ${header})
endfunction()

function(llamac_gtest name)
  cmake_parse_arguments(ARG "" "SHARDS" "SOURCES;LIBS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  target_link_libraries(${name} PRIVATE llamac_options ${ARG_LIBS} GTest::gmock GTest::gtest_main)
  if(NOT ARG_SHARDS)
    add_test(NAME ${name} COMMAND ${name})
    set_tests_properties(${name} PROPERTIES LABELS gtest)
    return()
  endif()
  foreach(shard RANGE 1 ${ARG_SHARDS})
    math(EXPR index "${shard} - 1")
    add_test(NAME ${name}.${shard} COMMAND ${name})
    set_tests_properties(${name}.${shard} PROPERTIES LABELS gtest COST 50
      ENVIRONMENT "GTEST_TOTAL_SHARDS=${ARG_SHARDS};GTEST_SHARD_INDEX=${index}")
  endforeach()
endfunction()

# llamac_strict_c(NAME): the target, whose sources are C11, uses libllamac.so.
function(llamac_strict_c name)
  target_link_libraries(${name} PRIVATE libllamac)
  target_compile_options(${name} PRIVATE -Wall -Wextra -pedantic -Werror)
  if(LLAMAC_SANITIZE)
    target_link_options(${name} PRIVATE -fsanitize=${LLAMAC_SANITIZE})
  endif()
  set_target_properties(${name} PROPERTIES
    C_STANDARD 11 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
endfunction()

# llamac_embed(OUTPUT NAME=PATH ...): writes OUTPUT, rows {"name", "text"} of the
# files as string literals, for an array in a source file.
function(llamac_embed output)
  set(paths)
  foreach(file ${ARGN})
    string(REGEX REPLACE "^[^=]+=" "" path ${file})
    list(APPEND paths ${path})
  endforeach()
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${output} "-DFILES=${ARGN}"
            -P ${CMAKE_SOURCE_DIR}/cmake/EmbedFiles.cmake
    DEPENDS ${paths} ${CMAKE_SOURCE_DIR}/cmake/EmbedFiles.cmake
    VERBATIM)
endfunction()
