# LLAMAC_PRECOMPILED_HEADERS: the headers of others that most files include are
# compiled once. The targets that use them are found here, so this comes after
# all of them; those of one group are compiled by the same flags.

# Clang then writes the same bytes each time, which ccache needs.
if(CMAKE_CXX_COMPILER_ID STREQUAL Clang)
  target_compile_options(llamac_options INTERFACE "SHELL:-Xclang -fno-pch-timestamp")
endif()
set(source ${CMAKE_BINARY_DIR}/precompiled/Empty.cpp)
file(CONFIGURE OUTPUT ${source} CONTENT "")

# llamac_precompiled_headers(NAME PIE|PIC HEADERS ...): a target whose headers
# are compiled as those of programs, or of libraries.
function(llamac_precompiled_headers name code)
  add_library(${name} OBJECT ${source})
  target_link_libraries(${name} PRIVATE llamac_options)
  target_compile_options(${name} PRIVATE ${CMAKE_CXX_COMPILE_OPTIONS_${code}})
  target_precompile_headers(${name} PRIVATE ${ARGN})
endfunction()

set(absl_headers <absl/container/flat_hash_map.h> <absl/status/statusor.h> <absl/strings/match.h>
    <absl/strings/str_cat.h> <absl/strings/str_format.h> <absl/strings/str_join.h>)
set(std_headers <algorithm> <chrono> <filesystem> <functional> <map> <memory> <mutex> <optional> <thread>)
set(mlir_headers ${absl_headers} <mlir/Dialect/Func/IR/FuncOps.h> <mlir/IR/Builders.h>
    <mlir/IR/BuiltinOps.h> <mlir/IR/PatternMatch.h> <mlir/Pass/PassManager.h>)
llamac_precompiled_headers(llamac_runtime_headers PIC ${absl_headers} ${std_headers})
llamac_precompiled_headers(llamac_tool_headers PIC ${absl_headers} ${std_headers} <CLI/CLI.hpp>)
if(LLAMAC_BUILD_COMPILER)
  llamac_precompiled_headers(llamac_mlir_headers PIC ${mlir_headers})
  llamac_precompiled_headers(llamac_program_headers PIE ${mlir_headers} <CLI/CLI.hpp>)
endif()
if(LLAMAC_BUILD_TESTS)
  llamac_precompiled_headers(llamac_test_headers PIE ${absl_headers} <gmock/gmock.h> <gtest/gtest.h>)
  target_link_libraries(llamac_test_headers PRIVATE GTest::gmock)
endif()

# llamac_use_precompiled_headers(FOLDER LIBRARIES PROGRAMS TESTS): the targets
# below FOLDER use the headers of the target named for their kind; "" is none.
# Libraries marked LLAMAC_WITHOUT_LLVM use the runtime's everywhere.
function(llamac_use_precompiled_headers folder libraries programs tests)
  get_property(targets DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target ${targets})
    get_target_property(type ${target} TYPE)
    get_target_property(used ${target} LINK_LIBRARIES)
    get_target_property(withoutLlvm ${target} LLAMAC_WITHOUT_LLVM)
    set(headers "")
    if(type STREQUAL STATIC_LIBRARY AND withoutLlvm)
      set(headers llamac_runtime_headers)
    elseif(type STREQUAL STATIC_LIBRARY)
      set(headers ${libraries})
    elseif(type STREQUAL EXECUTABLE AND used MATCHES "GTest::")
      set(headers ${tests})
    elseif(type STREQUAL EXECUTABLE)
      set(headers ${programs})
    endif()
    if(headers)
      target_precompile_headers(${target} REUSE_FROM ${headers})
    endif()
  endforeach()
  get_property(folders DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
  foreach(inner ${folders})
    llamac_use_precompiled_headers(${inner} "${libraries}" "${programs}" "${tests}")
  endforeach()
endfunction()

# Commands declare options, so all of the tools' library sees CLI11.
foreach(module runtime text engine serve tools capi)
  llamac_use_precompiled_headers(${CMAKE_SOURCE_DIR}/${module} llamac_runtime_headers "" "")
endforeach()
target_precompile_headers(llamac_tools REUSE_FROM llamac_tool_headers)
foreach(library llamac_frontends llamac_sim)
  if(TARGET ${library})
    target_precompile_headers(${library} REUSE_FROM llamac_runtime_headers)
  endif()
endforeach()
if(LLAMAC_BUILD_COMPILER)
  foreach(module ir passes codegen compiler)
    llamac_use_precompiled_headers(${CMAKE_SOURCE_DIR}/${module} llamac_mlir_headers llamac_program_headers "")
  endforeach()
endif()
if(LLAMAC_BUILD_TESTS)
  llamac_use_precompiled_headers(${CMAKE_SOURCE_DIR}/tests "" "" llamac_test_headers)
endif()
