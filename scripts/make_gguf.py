#!/usr/bin/env python3
# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes a GGUF of random weights in the shapes of a published Llama model, or
of a toy.

For measuring speed, which does not depend on the values. The vocabulary is
invented: use token ids. With --cycle N, layers add nothing but cost as much, and
the greedy token behind id i is i + 1, modulo N, but for a --miss share of them: so
it is known how many tokens one such model drafts right for another.

    build/venv/bin/python scripts/make_gguf.py build/models/1b-q8_0.gguf --shape 1b --type Q8_0
"""

import argparse
import os
import sys
from dataclasses import replace

import gguf
import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))

from llama_numpy import Config, RopeScaling
from make_model import RANDOM_BLOCKS, random_blocks, weight_shapes, write_gguf

SHAPES = {
    "toy": Config(256, 2, 8, 2, vocab=501, multiple_of=256),
    "1b": Config(
        2048, 16, 32, 8, vocab=128256, multiple_of=256, ffn_dim_multiplier=1.5, tied=True, scaling=RopeScaling(32)
    ),
    "3b": Config(
        3072, 28, 24, 8, vocab=128256, multiple_of=256, ffn_dim_multiplier=1.0, tied=True, scaling=RopeScaling(32)
    ),
    "8b": Config(4096, 32, 32, 8, vocab=128256, multiple_of=1024, ffn_dim_multiplier=1.3),
    "135m": Config(576, 30, 9, 3, vocab=128256, multiple_of=512),
    "7b": Config(4096, 32, 32, 32, vocab=32000, multiple_of=256, theta=10000.0),
}
TYPES = ("Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "MXFP4", "BF16", "F16", "F32", *RANDOM_BLOCKS)

# Rows are cut from one block of random numbers: making each number anew would
# take minutes for a billion of them.
POOL_ROWS = 4096


class Stored(dict):
    """Quantised weights, made one at a time as the writer asks for them."""

    def __init__(self, config, kind):
        super().__init__(weight_shapes(config))
        self.kind = kind
        self.pools = {}

    def items(self):
        for name, shape in super().items():
            yield name, self.weight(name, shape)

    def weight(self, name, shape):
        if len(shape) == 1:
            return np.ones(shape, np.float32), gguf.GGMLQuantizationType.F32
        rows, cols = shape
        if cols not in self.pools:
            self.pools[cols] = self.pool(cols)
        pool = self.pools[cols]
        return np.tile(pool, (-(-rows // POOL_ROWS), 1))[:rows], self.kind

    def pool(self, cols):
        """Weights of a standard deviation of about 1 / sqrt(cols)."""
        random = np.random.default_rng(cols)
        if self.kind.name in RANDOM_BLOCKS:
            return random_blocks(random, (POOL_ROWS, cols), self.kind, cols**-0.5)
        x = random.standard_normal((POOL_ROWS, cols), dtype=np.float32)
        return gguf.quants.quantize(x / np.sqrt(np.float32(cols)), self.kind)


class Cycle(Stored):
    """Weights whose greedy tokens count up to `length`, at most as many as a row
    has columns, and begin again: embeddings are unit vectors."""

    def __init__(self, config, kind, length, miss):
        super().__init__(config, kind)
        self.length = length
        self.wrong = np.random.default_rng(length).random(length) < miss

    def weight(self, name, shape):
        part = name.split(".")[-1]
        if part not in ("tok_embeddings", "output", "wo", "w2"):
            return super().weight(name, shape)
        values = np.zeros(shape, np.float32)
        ids = np.arange(shape[0])
        if part == "tok_embeddings":
            values[ids, ids % self.length] = 1
        elif part == "output":
            ids = ids[: self.length]
            values[(ids + 1 + self.wrong) % self.length, ids] = 1
        return gguf.quants.quantize(values, self.kind), self.kind


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", help="the file to write")
    parser.add_argument("--shape", choices=SHAPES, default="1b")
    parser.add_argument("--type", choices=TYPES, default="Q8_0")
    parser.add_argument("--cycle", type=int, metavar="N")
    parser.add_argument("--miss", type=float, default=0, metavar="SHARE")
    args = parser.parse_args()
    config, kind = SHAPES[args.shape], gguf.GGMLQuantizationType[args.type]
    stored = Stored(config, kind)
    if args.cycle is not None:
        config = replace(config, tied=False)
        if not 1 < args.cycle <= config.dim:
            parser.error(f"--cycle: expected 2 to {config.dim}, got {args.cycle}")
        stored = Cycle(config, kind, args.cycle, args.miss)
    write_gguf(args.out, config, stored, f"random {args.shape} {args.type}")


if __name__ == "__main__":
    main()
