# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""llamac check: clean on correct pipelines, and its bisection finds the pass, op
and layer of a wrong rewrite that is planted among the passes.

    test_check.py             all models
    test_check.py SmallModels one of the classes below
"""

import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "e2e"))

import support  # noqa: E402

support.require("numpy", "gguf", "safetensors")

import numpy as np  # noqa: E402

from llama_numpy import Config  # noqa: E402
from make_model import quantise, random_weights, write_gguf, write_meta  # noqa: E402

PLANTED = os.path.join(support.BIN_DIR, "..", "tests", "llamac-planted-check")
ACCURACY = 8
TOKENS = 24

# Heads that share a key and value head: 1, 3 and 8.
CONFIGS = {
    1: Config(192, 3, 6, 6, vocab=501, multiple_of=64, theta=10000.0),
    3: Config(144, 3, 9, 3, vocab=501, tied=True, multiple_of=48),
    8: Config(384, 3, 24, 3, vocab=501, multiple_of=64),
}


class SmallModels(support.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.models = {}
        for group, config in CONFIGS.items():
            cls.models[group] = cls.path(f"meta-{group}")
            write_meta(cls.models[group], config, random_weights(config))

    def test_every_pass_and_target_is_clean(self):
        for group, model in self.models.items():
            with self.subTest(group=group):
                output = self.llamac("check", model, "--bisect", "--reproducer", self.path("none")).stdout
                self.assertNotIn("WRONG", output)
                for name in ("fuse-attention", "fuse-epilogue", "choose-kernels", "cpu by 16", "cpu by 1 "):
                    self.assertIn(name, output)
                self.assertFalse(os.path.exists(self.path("none")), "a reproducer of nothing was written")

    def test_block_formats_are_held_against_their_own_rounding(self):
        config = CONFIGS[1]
        stored, _ = quantise(random_weights(config), "Q4_1")
        model = write_gguf(self.path("q4_1.gguf"), config, stored)
        for options in ((), ("--weights", "q8_0")):
            with self.subTest(options=options):
                self.assertNotIn("WRONG", self.llamac("check", model, *options).stdout)

    def test_a_result_outside_the_tolerance_ends_with_its_exit_code(self):
        result = self.llamac("check", self.models[3], "--target-tolerance", "1e-30", expect=ACCURACY)
        self.assertIn("cpu by 16 is the first to leave the tolerance", result.stderr)
        self.assertIn("WRONG", result.stdout)

    def test_wrong_options_are_refused(self):
        for options, message in (
            (("--tolerance", "0"), "above 0"),
            (("--tokens", "1,501"), "expected ids in [0, 501), got 501"),
            (("--weights", "q9"), "expected keep"),
        ):
            with self.subTest(options=options):
                result = self.llamac("check", self.models[1], *options, expect=support.USAGE)
                self.assertIn(message, result.stderr)

    def planted(self, group, name):
        """What the bisection says of the pipeline with a wrong pass, and where
        it wrote its reproducer."""
        folder = self.path(f"{name}-{group}")
        result = support.run([PLANTED, self.models[group], name, folder])
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout.splitlines(), folder

    def test_a_wrong_scale_is_found(self):
        for group, config in CONFIGS.items():
            with self.subTest(group=group):
                found, folder = self.planted(group, "test-wrong-scale")
                self.assertEqual(found[:3], ["test-wrong-scale", "llama.attention", "1"])
                files = sorted(os.listdir(folder))
                self.assertEqual(
                    files, [f"test-wrong-scale.{end}" for end in ("mlir", "operand0.npy", "tokens.npy")]
                )
                query = np.load(os.path.join(folder, "test-wrong-scale.operand0.npy"))
                self.assertEqual(query.shape, (TOKENS * 2 // 3, config.heads * config.head_size))
                self.assertEqual(np.load(os.path.join(folder, "test-wrong-scale.tokens.npy")).shape, (1, TOKENS))
                # The module is as it was before the pass, and parses.
                module = os.path.join(folder, "test-wrong-scale.mlir")
                parsed = subprocess.run(
                    [os.path.join(support.BIN_DIR, "llamac-opt"), module], capture_output=True, text=True
                )
                self.assertEqual(parsed.returncode, 0, parsed.stderr)
                self.assertEqual(parsed.stdout.count("llama.attention "), config.layers)

    def test_gate_and_up_in_the_wrong_order_are_found(self):
        found, _ = self.planted(3, "test-swapped-gate")
        self.assertEqual(found[:3], ["test-swapped-gate", "kernel.matmul", "1"])
        self.assertIn("feed_forward", found[3])

    def test_rows_in_the_wrong_layer_are_found_though_the_ir_cannot_run(self):
        found, _ = self.planted(1, "test-mistaken-layer")
        self.assertEqual(found[:3], ["test-mistaken-layer", "kernel.qkv", "2"])


class RealModel(support.TestCase):
    def test_smollm2_is_clean(self):
        model = support.require_model("smollm2.gguf")
        self.assertNotIn("WRONG", self.llamac("check", model).stdout)


if __name__ == "__main__":
    unittest.main()
