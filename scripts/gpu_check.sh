#!/usr/bin/env bash
# Proves and measures the cuda target on a GPU, on a machine that has neither
# LLVM nor a network: one command where llamac is built, one where the GPU is.
#
#   scripts/gpu_check.sh pack FOLDER      all that is needed there, under 60 MB
#   FOLDER/gpu_check.sh [OPTIONS] [OUT]   results.json and results.md in OUT
#   scripts/gpu_check.sh dry-run FOLDER   both, on a fake driver
#   scripts/gpu_check.sh compare OLD NEW  the ratios of two results.json
#
# LLAMAC_BUILD is the build folder (default: build), LLAMAC_PYTHON the Python
# (default: python3). On the GPU's machine Python 3 is needed, and PyTorch for
# the peers.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"

modules="$here/../bench/gpu"
if [[ -e "$here/check.json" ]]; then
  modules="$here/python"
fi
PYTHONDONTWRITEBYTECODE=1 exec "${LLAMAC_PYTHON:-python3}" "$modules/gpu_check.py" "$@"
