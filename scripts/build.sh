#!/usr/bin/env bash
# Configures and builds into build/; the binaries land in build/bin/.
#
#   scripts/build.sh                      everything, with the default tests
#   scripts/build.sh --exhaustive         the same with all tests
#   scripts/build.sh --only TARGET...     these targets; the tests are left as
#                                         they were configured, at first off
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# A warning is an error where the tests are built, with the compiler that is
# known; whoever packages llamac may have another one.
options=(-DLLAMAC_BUILD_TESTS=ON -DCMAKE_COMPILE_WARNING_AS_ERROR=ON -DLLAMAC_PYTHON="$PWD/build/venv/bin/python"
  -DLLAMAC_MODELS="$PWD/build/models" -DLLAMAC_EXHAUSTIVE_TESTS=OFF)
targets=()
if [ "${1:-}" = --exhaustive ]; then
  shift
  options+=(-DLLAMAC_EXHAUSTIVE_TESTS=ON)
fi
if [ "${1:-}" = --only ]; then
  shift
  targets=("$@")
  options=()
  if [ ! -f build/CMakeCache.txt ]; then options=(-DLLAMAC_BUILD_TESTS=OFF); fi
elif [ $# -gt 0 ]; then
  echo "usage: scripts/build.sh [--exhaustive | --only TARGET...]" >&2
  exit 2
fi

# The compiler cannot be changed in a folder that is configured already.
if [ ! -f build/CMakeCache.txt ]; then
  options+=(-DCMAKE_C_COMPILER=clang-19 -DCMAKE_CXX_COMPILER=clang++-19
    -DCMAKE_BUILD_TYPE=Release -DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=lld
    -DLLAMAC_PRECOMPILED_HEADERS=ON -DCMAKE_UNITY_BUILD=ON)
fi
cmake -G Ninja -S . -B build "${options[@]}" -Wno-dev --log-level=WARNING
cmake --build build --parallel "$(nproc)" ${targets[@]:+--target "${targets[@]}"}
