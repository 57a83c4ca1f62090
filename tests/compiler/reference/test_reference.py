# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whole models on the reference interpreter against numpy in float64."""

import os
import subprocess
import sys
import tempfile
import unittest

try:
    import numpy as np
except ImportError:
    if os.environ.get("CI") == "true":
        raise
    sys.exit(77)

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "e2e"))
from llama_numpy import Config, RopeScaling, forward  # noqa: E402

TOOL = os.path.join(os.environ["LLAMAC_BIN_DIR"], "..", "tests", "llamac-reference-logits")

# The reference must be this close to float64, relative to the largest logit.
TOLERANCE = 2e-5


def random_weights(config, rng):
    q_rows, kv_rows = config.heads * config.head_size, config.kv_heads * config.head_size
    shapes = {"tok_embeddings": (config.vocab, config.dim), "norm": (config.dim,)}
    for layer in range(config.layers):
        p = f"layers.{layer}."
        shapes[p + "attention_norm"] = shapes[p + "ffn_norm"] = (config.dim,)
        shapes[p + "attention.wq"] = (q_rows, config.dim)
        shapes[p + "attention.wk"] = shapes[p + "attention.wv"] = (kv_rows, config.dim)
        shapes[p + "attention.wo"] = (config.dim, q_rows)
        shapes[p + "feed_forward.w1"] = shapes[p + "feed_forward.w3"] = (config.ffn, config.dim)
        shapes[p + "feed_forward.w2"] = (config.dim, config.ffn)
    if not config.tied:
        shapes["output"] = (config.vocab, config.dim)
    weights = {}
    for name, shape in shapes.items():
        x = rng.standard_normal(shape, dtype=np.float32)
        weights[name] = 1 + x / 8 if len(shape) == 1 else x / np.sqrt(np.float32(shape[1]))
    return weights


class ReferenceAgainstNumpy(unittest.TestCase):
    def check(self, config, num_tokens, seed):
        rng = np.random.default_rng(seed)
        weights = random_weights(config, rng)
        tokens = rng.integers(0, config.vocab, num_tokens)
        expected = forward(config, weights, tokens)
        flags = {
            "dim": config.dim,
            "layers": config.layers,
            "heads": config.heads,
            "kv-heads": config.kv_heads,
            "head-size": config.head_size,
            "ffn": config.ffn,
            "vocab": config.vocab,
            "eps": config.eps,
            "theta": config.theta,
            "rope-scale": config.scaling.factor if config.scaling else 0,
            "tokens": ",".join(map(str, tokens)),
        }
        with tempfile.TemporaryDirectory() as folder:
            for name, x in weights.items():
                x.astype(np.float32).tofile(os.path.join(folder, name))
            command = [TOOL, f"--weights={folder}"]
            command += [f"--{name}={value}" for name, value in flags.items()]
            command += ["--tied"] if config.tied else []
            for chunk in (num_tokens, 7, 1):
                with self.subTest(chunk=chunk):
                    out = subprocess.run(
                        command + [f"--chunk={chunk}"], stdout=subprocess.PIPE, check=True
                    ).stdout
                    logits = np.frombuffer(out, np.float32).reshape(num_tokens, config.vocab)
                    error = np.abs(logits - expected).max() / np.abs(expected).max()
                    print(f"{self._testMethodName} chunk {chunk}: {error:.2e}", file=sys.stderr)
                    self.assertLess(error, TOLERANCE)

    def test_every_head_its_own(self):
        self.check(Config(dim=64, layers=2, heads=4, kv_heads=4, vocab=101), 40, 1)

    def test_three_heads_share_one(self):
        self.check(Config(dim=144, layers=3, heads=9, kv_heads=3, vocab=97, tied=True), 50, 2)

    def test_eight_heads_share_one(self):
        self.check(Config(dim=128, layers=2, heads=8, kv_heads=1, vocab=50, eps=1e-3), 30, 3)

    def test_wide_heads(self):
        self.check(Config(dim=96, layers=2, heads=2, kv_heads=1, head_size=128, vocab=75), 40, 4)

    def test_scaled_rope(self):
        scaling = RopeScaling(factor=32)
        config = Config(dim=128, layers=2, heads=2, kv_heads=2, vocab=60, scaling=scaling)
        self.check(config, 300, 5)

    def test_many_layers(self):
        self.check(Config(dim=192, layers=24, heads=6, kv_heads=2, vocab=333), 64, 6)


if __name__ == "__main__":
    unittest.main()
