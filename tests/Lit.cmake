# llamac_lit_suite(MODULE TARGET...): runs the lit tests below the current folder
# as the ctest `lit.MODULE`; the targets are the binaries that they run.

find_file(LLAMAC_LIT lit.py
          PATHS ${LLVM_INSTALL_PREFIX}/build/utils/lit
                ${LLVM_TOOLS_BINARY_DIR}/../build/utils/lit
          NO_DEFAULT_PATH REQUIRED)
configure_file(${CMAKE_CURRENT_LIST_DIR}/lit.site.cfg.py.in
               ${CMAKE_BINARY_DIR}/tests/lit.site.cfg.py @ONLY)

function(llamac_lit_suite module)
  add_custom_target(lit-${module}-depends DEPENDS ${ARGN})
  add_test(NAME lit.${module}
           COMMAND ${LLAMAC_PYTHON} ${LLAMAC_LIT} -v --no-progress-bar
                   ${CMAKE_BINARY_DIR}/tests/${module})
  set_tests_properties(lit.${module} PROPERTIES
    ENVIRONMENT "PYTHONDONTWRITEBYTECODE=1" LABELS lit TIMEOUT 600)
endfunction()
