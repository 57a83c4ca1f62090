# Finds every package the build uses. LLVM 19's folder goes first: a machine
# may also hold the CMake files of an older, incomplete Clang.

find_program(CCACHE ccache)
if(CCACHE)
  set(launcher ${CCACHE})
  if(LLAMAC_PRECOMPILED_HEADERS) # Or nothing that uses them would be kept.
    list(PREPEND launcher ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros)
  endif()
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
endif()

find_package(absl REQUIRED)
find_package(Flatbuffers REQUIRED CONFIG NAMES FlatBuffers Flatbuffers flatbuffers)
find_package(Threads REQUIRED)
find_program(FLATC flatc REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(Boost 1.81 REQUIRED)
find_package(OpenSSL REQUIRED)
pkg_check_modules(LIBEDIT REQUIRED IMPORTED_TARGET libedit)
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8)
pkg_check_modules(PROMETHEUS REQUIRED IMPORTED_TARGET prometheus-cpp-core)
pkg_check_modules(UTF8PROC REQUIRED IMPORTED_TARGET libutf8proc)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(ZLIB REQUIRED IMPORTED_TARGET zlib)
pkg_check_modules(HWLOC REQUIRED IMPORTED_TARGET hwloc)
pkg_check_modules(SENTENCEPIECE REQUIRED IMPORTED_TARGET sentencepiece)

# The page of llamac serve is made of these files; an entry is a variable, Debian's
# file or folder, and its package.
foreach(entry
    LLAMAC_MARKED=/usr/share/javascript/marked/marked.min.js=libjs-marked
    LLAMAC_DOMPURIFY=/usr/share/nodejs/dompurify/dist/purify.min.js=node-dompurify
    LLAMAC_HIGHLIGHT=/usr/share/nodejs/highlight.js/lib=node-highlight.js)
  string(REGEX MATCH "^(.*)=(.*)=(.*)$" unused ${entry})
  set(variable ${CMAKE_MATCH_1})
  set(package ${CMAKE_MATCH_3})
  set(${variable} ${CMAKE_MATCH_2} CACHE PATH "A library of the page, Debian's ${package}")
  if(NOT EXISTS ${${variable}})
    message(FATAL_ERROR "${variable}: expected Debian's ${package}, got no ${${variable}}; "
                        "install it, or give its place elsewhere by -D${variable}=PATH")
  endif()
endforeach()

# Without it the runtime refuses grammars.
find_library(LLAMAC_XGRAMMAR xgrammar PATHS ${CMAKE_SOURCE_DIR}/build/xgrammar/lib NO_DEFAULT_PATH)
if(LLAMAC_XGRAMMAR)
  cmake_path(GET LLAMAC_XGRAMMAR PARENT_PATH xgrammar_folder)
  cmake_path(GET xgrammar_folder PARENT_PATH xgrammar_folder)
  # "xgrammar==0.2.8 ...", which scripts/setup.sh wrote.
  file(STRINGS ${xgrammar_folder}/recipe xgrammar_recipe REGEX "^xgrammar==")
  string(REGEX REPLACE "^xgrammar==([0-9.]+).*" "\\1" LLAMAC_XGRAMMAR_VERSION "${xgrammar_recipe}")
  add_library(xgrammar STATIC IMPORTED)
  set_target_properties(xgrammar PROPERTIES
    IMPORTED_LOCATION ${LLAMAC_XGRAMMAR}
    INTERFACE_INCLUDE_DIRECTORIES ${xgrammar_folder}/include)
else()
  set(LLAMAC_XGRAMMAR_VERSION none)
  message(STATUS "No XGrammar, which scripts/setup.sh builds: grammars will be refused")
endif()

if(LLAMAC_BUILD_COMPILER)
  pkg_check_modules(CURL REQUIRED IMPORTED_TARGET libcurl>=7.85)
  list(PREPEND CMAKE_PREFIX_PATH /usr/lib/llvm-19)
  find_package(LLVM 19.1 REQUIRED CONFIG)
  find_package(MLIR REQUIRED CONFIG)
  find_package(Clang 19.1 REQUIRED CONFIG)
  find_package(LLD REQUIRED CONFIG)
  list(APPEND CMAKE_MODULE_PATH ${LLVM_CMAKE_DIR} ${MLIR_CMAKE_DIR})
  # TableGen's dependency files name paths from the build folder on, as LLVM's own
  # build expects them: with the policy, Ninja would never find them up to date.
  cmake_policy(SET CMP0116 OLD)
  include(TableGen)
  include(AddLLVM)
  include(AddMLIR)
  include_directories(SYSTEM ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS} ${CLANG_INCLUDE_DIRS})
  message(STATUS "LLVM ${LLVM_PACKAGE_VERSION} in ${LLVM_DIR}")
endif()

if(LLAMAC_BUILD_TESTS)
  find_package(GTest REQUIRED)
endif()
