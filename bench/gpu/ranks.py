# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Logits of two ranks beside those of one. Without NumPy, which the GPU's machine need not have."""

import array
import struct

# The tolerance is relative to the largest logit. Ranks sum in another order, after which bf16 rounds otherwise in
# some places of every layer; a part that is missing or another rank's changes logits by as much as they are.
TOLERANCE = 3e-2

# The first NCCL that two ranks may share a GPU with.
SHARING_NCCL = "2.32"


def why_not(error, gpus):
    """Why there are no two ranks on so many GPUs; empty where `error` is a fault."""
    if "libnccl" in error:
        return error
    # NCCL refuses the second rank as it makes the communicators.
    if gpus < 2 and ("ncclCommInitRank" in error or "ncclGroupEnd" in error):
        return f"two ranks on one GPU need NCCL {SHARING_NCCL}; {error}"
    return ""


def logits(path):
    """The logits in a .npy file, of float32 in the machine's order."""
    with open(path, "rb") as f:
        data = f.read()
    header = 10 + struct.unpack("<H", data[8:10])[0]
    return array.array("f", data[header:])


def difference(found, expected):
    """The largest, as a share of the largest logit; infinite where one is NaN."""
    if len(found) != len(expected) or any(value != value for value in found):
        return float("inf")
    return max(abs(a - b) for a, b in zip(found, expected)) / max(map(abs, expected))
