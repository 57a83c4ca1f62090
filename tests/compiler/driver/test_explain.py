# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""--explain-fusion: that all is fused, or one line for each op that is not."""

import json
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "e2e"))

import support  # noqa: E402

support.require("numpy", "gguf")

from llama_numpy import Config  # noqa: E402
from make_model import quantise, random_weights, write_gguf  # noqa: E402

SHAPES = {
    "Llama 3.2 1B": dict(dim=2048, n_layers=16, n_heads=32, n_kv_heads=8, vocab_size=128256, ffn_dim_multiplier=1.5),
    "Llama 3.1 8B": dict(dim=4096, n_layers=32, n_heads=32, n_kv_heads=8, vocab_size=128256, ffn_dim_multiplier=1.3),
    "Llama 3.1 70B": dict(dim=8192, n_layers=80, n_heads=64, n_kv_heads=8, vocab_size=128256, ffn_dim_multiplier=1.3),
    "Llama 2 7B": dict(dim=4096, n_layers=32, n_heads=32, vocab_size=32000),
}


class Explain(support.TestCase):
    def explain(self, model):
        """The lines of --explain-fusion."""
        return self.llamac("compile", model, "--explain-fusion", "--stop-after", "fuse").stderr.splitlines()

    def test_plain_graphs_are_said_to_be_fused(self):
        path = self.path("params.json")
        for name, shape in SHAPES.items():
            with self.subTest(model=name):
                with open(path, "w") as file:
                    json.dump(shape | {"multiple_of": 256, "norm_eps": 1e-5, "rope_theta": 500000.0}, file)
                self.assertEqual(self.explain(path), ["fuse: no op was left out of a fusion"])

    def test_gate_and_up_in_different_formats_are_two_launches(self):
        config = Config(128, 2, 4, 2, vocab=501, multiple_of=64)
        weights = random_weights(config)
        stored, _ = quantise(weights, "Q8_0")
        others, _ = quantise(weights, "Q4_1")
        up = "layers.1.feed_forward.w3"
        stored[up] = others[up]
        model = write_gguf(self.path("mixed.gguf"), config, stored)
        self.assertEqual(
            self.explain(model),
            [
                "layers.1.feed_forward.w1 + layers.1.feed_forward.silu + layers.1.feed_forward.mul: fuse-epilogue: "
                "not fused: two products with weights of different types, q8_0 and q4_1; "
                "layers.1.feed_forward.w3: the other product"
            ],
        )


if __name__ == "__main__":
    unittest.main()
