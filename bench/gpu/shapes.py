# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The hyperparameters and weight formats that gpu_check.py and peers.py measure with."""

from dataclasses import dataclass


@dataclass
class Shape:
    """Hyperparameters of a published model."""

    layers: int
    dim: int
    heads: int
    kv_heads: int
    head: int
    ffn: int
    vocab: int
    rope_factor: float  # Of scaled RoPE; 1: none.


SHAPES = {
    "1b": Shape(16, 2048, 32, 8, 64, 8192, 128256, 32),
    "8b": Shape(32, 4096, 32, 8, 128, 14336, 128256, 8),
    "tiny": Shape(2, 64, 4, 2, 16, 256, 96, 1),
}

BITS = {"bf16": 16, "q8_0": 8.5, "mxfp8": 8.25, "q4_0": 4.5}  # Of a weight, scales included.
