# llamac_python_test(NAME SCRIPT [ARGS ...] [LABELS ...] [TIMEOUT SECONDS]
# [INTERPRETER PYTHON] [EXHAUSTIVE]): a test in Python, run with the built
# binaries' folder and the real models' in its environment. A script that lacks a
# package or a model exits with 77, which is "skipped"; where CI=true scripts fail
# instead. INTERPRETER replaces LLAMAC_PYTHON. EXHAUSTIVE tests are of the
# exhaustive tier alone.

if(EXISTS ${CMAKE_BINARY_DIR}/venv/bin/python)
  set(LLAMAC_PYTHON_DEFAULT ${CMAKE_BINARY_DIR}/venv/bin/python)
else()
  find_program(LLAMAC_SYSTEM_PYTHON python3 REQUIRED)
  mark_as_advanced(LLAMAC_SYSTEM_PYTHON)
  set(LLAMAC_PYTHON_DEFAULT ${LLAMAC_SYSTEM_PYTHON})
endif()
set(LLAMAC_PYTHON ${LLAMAC_PYTHON_DEFAULT} CACHE FILEPATH
    "Python for the tests, as scripts/setup.sh makes it")
set(LLAMAC_MODELS ${CMAKE_BINARY_DIR}/models CACHE PATH
    "Folder with smollm2.gguf and llama3/, as scripts/setup.sh makes it")

function(llamac_python_test name script)
  cmake_parse_arguments(ARG "EXHAUSTIVE" "INTERPRETER;TIMEOUT" "ARGS;LABELS" ${ARGN})
  # Against hanging; the exhaustive tier may run beside other work.
  if(NOT ARG_TIMEOUT AND LLAMAC_EXHAUSTIVE_TESTS)
    set(ARG_TIMEOUT 3600)
  elseif(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 600)
  endif()
  if(ARG_EXHAUSTIVE AND NOT LLAMAC_EXHAUSTIVE_TESTS)
    return()
  endif()
  if(NOT ARG_INTERPRETER)
    set(ARG_INTERPRETER ${LLAMAC_PYTHON})
  endif()
  add_test(NAME ${name}
           COMMAND ${ARG_INTERPRETER} ${CMAKE_CURRENT_SOURCE_DIR}/${script} ${ARG_ARGS})
  set_tests_properties(${name} PROPERTIES
    ENVIRONMENT "LLAMAC_BIN_DIR=${CMAKE_BINARY_DIR}/bin;LLAMAC_MODELS=${LLAMAC_MODELS};PYTHONDONTWRITEBYTECODE=1"
    LABELS "${ARG_LABELS}"
    TIMEOUT ${ARG_TIMEOUT}
    SKIP_RETURN_CODE 77)
endfunction()
