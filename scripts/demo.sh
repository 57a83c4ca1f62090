#!/usr/bin/env bash
# From nothing to tokens: installs what is missing, builds, compiles
# SmolLM2-135M-Instruct to a plan, and completes a sentence. The completion alone
# is on stdout.
#
#   scripts/demo.sh [PROMPT]
#
# Files that are up to date are not made again.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
prompt=${1:-Once upon a time}

exec 3>&1 1>&2

scripts/setup.sh build
scripts/build.sh --only llamac llamac-run

model=build/models/smollm2.gguf
plan=build/demo/smollm2.plan
mkdir -p build/demo
if [ ! "$plan" -nt build/bin/llamac ] || [ ! "$plan" -nt "$model" ]; then
  build/bin/llamac compile "$model" -o "$plan"
fi
build/bin/llamac-run "$plan" --raw -p "$prompt" -n 40 --temp 0 >&3
