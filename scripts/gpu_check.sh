#!/usr/bin/env bash
# Proves and measures the cuda target on a GPU, on a machine that has neither
# LLVM nor a network: one command where llamac is built, one where the GPU is.
#
#   scripts/gpu_check.sh pack FOLDER     all that is needed there, under 60 MB
#   FOLDER/gpu_check.sh [OUT]            results.json and results.md in OUT
#   scripts/gpu_check.sh dry-run FOLDER  both, on a fake driver
#
# LLAMAC_BUILD is the build folder (default: build). On the GPU's machine Python 3
# is needed, and PyTorch for the peers.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"

if [[ -e "$here/check.json" ]]; then
  exec python3 "$here/gpu_check.py" run "$here" "${1:-$here}"
fi
cd "$here/.."
exec "${LLAMAC_PYTHON:-python3}" bench/gpu/gpu_check.py "${1:?pack or dry-run}" "${2:?a folder}"
