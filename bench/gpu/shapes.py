# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The hyperparameters that gpu_check.py and peers.py measure with."""

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
    rope_factor: float  # The factor of scaled RoPE; 1: none.
    tied: bool  # Whether the embedding is the output matrix too.

    @property
    def layer_weights(self):
        """How many numbers the matrices of a layer have."""
        return self.dim * self.head * (2 * self.heads + 2 * self.kv_heads) + 3 * self.dim * self.ffn

    @property
    def weights(self):
        """How many numbers all matrices have."""
        return self.layers * self.layer_weights + (1 if self.tied else 2) * self.vocab * self.dim

    @property
    def norm_bytes(self):
        return (2 * self.layers + 1) * self.dim * 4

    def bytes_per_step(self, bits, keys):
        """The least that a step of decode reads: each matrix and norm once, and `keys` keys and values in 16 bits."""
        matrices = self.layers * self.layer_weights + self.vocab * self.dim
        return matrices * bits / 8 + self.norm_bytes + keys * self.layers * self.kv_heads * self.head * 4


SHAPES = {
    "1b": Shape(16, 2048, 32, 8, 64, 8192, 128256, 32, tied=True),
    "8b": Shape(32, 4096, 32, 8, 128, 14336, 128256, 8, tied=False),
    "tiny": Shape(2, 64, 4, 2, 16, 256, 288, 1, tied=True),
}
