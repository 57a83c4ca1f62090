# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Logits of two ranks beside those of one. Without NumPy, which the GPU's machine need not have."""

import array
import struct

# Of the largest logit. Ranks sum in another order, after which bf16 rounds otherwise in some places of every layer;
# a part that is missing or another rank's changes logits by as much as they are.
TOLERANCE = 3e-2


def logits(path):
    """Those of a .npy file, of float32 in the machine's order."""
    with open(path, "rb") as f:
        data = f.read()
    header = 10 + struct.unpack("<H", data[8:10])[0]
    return array.array("f", data[header:])


def difference(found, expected):
    """The largest, as a share of the largest logit; infinite where one is no number."""
    if len(found) != len(expected) or any(value != value for value in found):
        return float("inf")
    return max(abs(a - b) for a, b in zip(found, expected)) / max(map(abs, expected))
