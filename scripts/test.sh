#!/usr/bin/env bash
# Installs what is missing, builds everything and runs every test.
#
#   scripts/test.sh [CTEST-ARGUMENT...]     e.g. -L lit, -R tokenizer, -LE model
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scripts/setup.sh test
scripts/build.sh
ctest --test-dir build --parallel "$(nproc)" --output-on-failure --no-tests=error "$@"
