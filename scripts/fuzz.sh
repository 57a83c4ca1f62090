#!/usr/bin/env bash
# Fuzzes readers of what others may have made, as many at a time as there are
# cores, and ends with how many inputs each was given. What fails stays in
# build/tests/fuzz-findings.
#
#   scripts/fuzz.sh SECONDS [READER...]    of each reader; by default all of
#                                          tests/fuzz/FuzzReaders.cpp
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if ! [[ ${1:-} =~ ^[0-9]+$ ]]; then
  echo "usage: scripts/fuzz.sh SECONDS [READER...]" >&2
  exit 2
fi
seconds=$1
shift
if [ $# = 0 ]; then
  mapfile -t readers < <(sed -nE 's/^    \{"([a-z-]+)", .*/\1/p' tests/fuzz/FuzzReaders.cpp)
  set -- "${readers[@]}"
fi
scripts/build.sh --only llamac_fuzz
logs=build/tests/fuzz-logs
mkdir -p "$logs"
export LLAMAC_EXHAUSTIVE=1
status=0
printf '%s\n' "$@" | xargs -P "$(nproc)" -I{} sh -c \
  'nice build/venv/bin/python tests/fuzz/run_fuzzer.py build/tests/llamac_fuzz {} '"$seconds >$logs/{}.log 2>&1" ||
  status=1
for reader in "$@"; do
  tail -n 20 "$logs/$reader.log" | sed -nE "s/^(Done|SUMMARY:|ERROR:|expected) */$reader: \1 /p"
done
exit "$status"
