# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How far a distribution over the vocabulary is from another, position by position."""

import os

import numpy as np

# The text that real models read.
TEXT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data", "reading.txt")


def log_softmax(logits):
    x = logits.astype(np.float64)
    x -= x.max(axis=-1, keepdims=True)
    return x - np.log(np.exp(x).sum(axis=-1, keepdims=True))


class Comparison:
    """Sums over positions, of one engine against the reference."""

    def __init__(self):
        self.positions = self.same_top = 0
        self.kl = self.worst_kl = 0.0

    def add(self, reference, other):
        """Log-probabilities [positions, vocabulary] of the same positions."""
        kl = (np.exp(reference) * (reference - other)).sum(axis=-1)
        self.kl += kl.sum()
        self.worst_kl = max(self.worst_kl, kl.max())
        self.same_top += (reference.argmax(axis=-1) == other.argmax(axis=-1)).sum()
        self.positions += len(kl)

    def result(self):
        return {
            "mean_kl": float(self.kl / self.positions),
            "worst_kl": float(self.worst_kl),
            "top1": float(self.same_top / self.positions),
        }
