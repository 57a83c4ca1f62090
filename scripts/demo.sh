#!/usr/bin/env bash
# From nothing to tokens: installs what is missing, builds, converts
# SmolLM2-135M-Instruct to a Meta model directory, compiles that to a plan, and
# completes a sentence. The completion alone is on stdout.
#
#   scripts/demo.sh [PROMPT]
#
# What is up to date is not made again.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
prompt=${1:-The capital of France is}

exec 3>&1 1>&2

scripts/setup.sh build
scripts/build.sh --only llamac llamac-run

model=build/models/smollm2.gguf
meta=build/demo/smollm2-meta
plan=build/demo/smollm2.plan
mkdir -p build/demo

# The stamp is written last: a conversion that was cut off is made again.
if [ ! "$meta/.converted" -nt build/bin/llamac ] || [ ! "$meta/.converted" -nt "$model" ]; then
  rm -rf "$meta"
  build/bin/llamac convert "$model" -o "$meta" --to meta
  touch "$meta/.converted"
fi
if [ ! "$plan" -nt "$meta/.converted" ]; then
  build/bin/llamac compile "$meta" -o "$plan"
fi
build/bin/llamac-run "$plan" -p "$prompt" -n 24 --temp 0 >&3
