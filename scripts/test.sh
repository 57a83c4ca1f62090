#!/usr/bin/env bash
# Installs what is missing, builds everything and runs the tests.
#
#   scripts/test.sh [--exhaustive] [CTEST-ARGUMENT...]   e.g. -L lit, -R tokenizer
#
# The default tier has every mechanism once; --exhaustive tries every combination.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

group="test"
tier=()
if [ "${1:-}" = --exhaustive ]; then
  shift
  group=exhaustive
  tier=(--exhaustive)
fi
scripts/setup.sh "$group"
scripts/build.sh "${tier[@]}"
ctest --test-dir build --parallel "$(nproc)" --output-on-failure --no-tests=error "$@"
