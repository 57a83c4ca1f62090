# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""llamac check: clean on correct pipelines, and its bisection finds the pass, op
and layer of a wrong rewrite that is seeded among the passes, and the kernel,
op and layer of a fault that is seeded in an emitted kernel.

The default tier has each format of weights, each number of heads for a key and
value head, and each fault, with one model.

    test_check.py             all models
    test_check.py SmallModels one of the classes below
"""

import os
import re
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "e2e"))

import support  # noqa: E402

support.require("numpy", "gguf", "safetensors")

import numpy as np  # noqa: E402

from llama_numpy import Config  # noqa: E402
from make_model import quantise, random_weights, write_gguf, write_meta  # noqa: E402

SEEDED = os.path.join(support.BIN_DIR, "..", "tests", "llamac-seeded-check")
SEEDED_KERNEL = os.path.join(support.BIN_DIR, "..", "tests", "llamac-seeded-kernel")
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
        for group in support.by_tier((3,), CONFIGS):
            with self.subTest(group=group):
                model = self.models[group]
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

    def test_exact_products_are_held_to_the_rounding_of_fp32(self):
        stored, _ = quantise(random_weights(CONFIGS[1]), "Q4_1")
        model = write_gguf(self.path("exact.gguf"), CONFIGS[1], stored)
        output = self.llamac("check", model, "--exact").stdout
        self.assertNotIn("WRONG", output)
        # Name, launches and error of each kernel.
        products = re.findall(r"^gem[mv]_\S+ +\d+ +(\S+)", output, re.MULTILINE)
        self.assertTrue(products)
        for error in products:
            self.assertLess(float(error), 1e-9)

    def test_plans_without_the_optional_passes_are_right(self):
        names = ("prune-rows", "fuse-epilogue", "fuse-norm", "fuse-qkv")
        for skipped in support.by_tier((), names) + (",".join(names),):
            with self.subTest(skipped=skipped):
                self.assertNotIn("WRONG", self.llamac("check", self.models[3], "--skip-pass", skipped).stdout)

    def test_a_result_outside_the_tolerance_ends_with_its_exit_code(self):
        result = self.llamac("check", self.models[3], "--target-tolerance", "1e-30", expect=ACCURACY)
        self.assertIn("cpu by 16 is the first to leave the tolerance", result.stderr)
        self.assertIn("WRONG", result.stdout)

    def test_wrong_options_are_refused(self):
        for options, message in (
            (("--tolerance", "0"), "above 0"),
            (("--tokens", "1,501"), "expected ids in [0, 501), got 501"),
            (("--weights", "q9"), "expected one of {keep"),
        ):
            with self.subTest(options=options):
                result = self.llamac("check", self.models[1], *options, expect=support.USAGE)
                self.assertIn(message, result.stderr)

    def seeded(self, group, name):
        """The bisection's report on the pipeline with a wrong pass, and where
        it wrote its reproducer."""
        folder = self.path(f"{name}-{group}")
        result = support.run([SEEDED, self.models[group], name, folder])
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout.splitlines(), folder

    def test_a_wrong_scale_is_found(self):
        for group in support.by_tier((8,), CONFIGS):
            with self.subTest(group=group):
                config = CONFIGS[group]
                found, folder = self.seeded(group, "test-wrong-scale")
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
        found, _ = self.seeded(3, "test-swapped-gate")
        self.assertEqual(found[:3], ["test-swapped-gate", "kernel.matmul", "1"])
        self.assertIn("feed_forward", found[3])

    def test_rows_in_the_wrong_layer_are_found(self):
        found, _ = self.seeded(1, "test-mistaken-layer")
        self.assertEqual(found[:3], ["test-mistaken-layer", "kernel.qkv", "2"])


class Kernels(support.TestCase):
    """Every launch of a plan against the reference."""

    # Configs by heads for each key and value head, and the size of a head.
    CONFIGS = {
        (1, 16): Config(192, 3, 12, 12, vocab=501, multiple_of=64, theta=10000.0),
        (3, 16): Config(192, 3, 12, 4, vocab=501, tied=True, multiple_of=64),
        (1, 64): Config(192, 3, 3, 3, vocab=501, multiple_of=64),
        (3, 64): Config(384, 3, 6, 2, vocab=501, multiple_of=64),
    }

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.models = {}
        for key, config in cls.CONFIGS.items():
            cls.models[key] = cls.path("meta-{}-{}".format(*key))
            write_meta(cls.models[key], config, random_weights(config))

    def test_every_launch_is_within_the_tolerance_of_its_format(self):
        formats = ("keep", "mxfp8", "q8_0", "q4_0")
        every = [(key, weights) for key in self.models for weights in formats]
        for key, weights in support.by_tier(list(zip(self.models, formats)), every):
            with self.subTest(model=key, weights=weights):
                output = self.llamac("check", self.models[key], "--weights", weights).stdout
                self.assertNotIn("WRONG", output)
                kernels = [line.split()[0] for line in output.splitlines() if " ok " in line]
                for family in ("attention", "embed", "gather_rows", "gemm", "gemv", "qkv", "rope_table"):
                    self.assertTrue(any((kernel + "_").startswith(family + "_") for kernel in kernels), f"{family}: {kernels}")

    def seeded(self, key, fault):
        """The check's report on a plan with a fault, and the files it wrote."""
        folder = self.path("{}-{}-{}".format(fault, *key))
        os.makedirs(folder, exist_ok=True)
        result = support.run([SEEDED_KERNEL, self.models[key], fault, folder])
        self.assertEqual(result.returncode, 0, result.stderr)
        os.remove(os.path.join(folder, "seeded.plan"))
        return result.stdout.splitlines(), folder

    def test_a_plan_without_a_fault_is_clean(self):
        for key in support.by_tier(((3, 16),), self.models):
            found, folder = self.seeded(key, "none")
            self.assertEqual(found, ["nothing"])
            self.assertEqual(os.listdir(folder), [])

    def test_the_kernel_op_and_layer_of_a_fault_are_found(self):
        # The steps end at positions 60, 61, 63, 95, 231, 232 and 233; pages at 64,
        # 128 and 192.
        small, large = (3, 16), (1, 64)
        faults = (
            ("skipped-panel", small, "gemv_feed_forward_w2", "matmul", 0, "layers.0.feed_forward.w2", "decode, row 0"),
            ("missed-key", small, "attention_n", "attention", 0, "layers.0.attention.scores", r"row (59|32|96),"),
            ("missed-key", large, "attention_n", "attention", 0, "layers.0.attention.scores", r"row (59|32|96),"),
            ("missed-key-in-decode", large, "attention_split", "attention", 0, "layers.0.attention.scores", "decode"),
            ("swapped-sine", small, "rope_table", "rope_table", -1, "rope_table", "prefill, row"),
            ("dropped-silu", large, "gemv_feed_forward_w1", "matmul", 1, "layers.1.feed_forward.w1", "decode, row 0"),
            ("appended-key", small, "qkv_gemm", "qkv", 0, "layers.0.attention", "value of position"),
        )
        for fault, key, kernel, op, layer, location, place in faults:
            if fault == "missed-key" and key == large and not support.EXHAUSTIVE:
                continue
            with self.subTest(fault=fault, model=key):
                found, _ = self.seeded(key, fault)
                self.assertTrue(found[0].startswith(kernel), found)
                self.assertTrue(found[1].startswith("kernel." + op), found)
                self.assertEqual(found[2], str(layer))
                self.assertTrue(found[3].startswith(location), found)
                self.assertRegex(found[4], place)
                # It and no other.
                self.assertEqual(found[5:], [found[0]])

    def test_an_approximation_within_its_bound_is_clean_and_one_beyond_it_is_found(self):
        for clean, fault in (("poly", "coarse-poly"), ("top", "fewer-than-top")):
            with self.subTest(fault=fault):
                self.assertEqual(self.seeded((1, 64), clean)[0], ["nothing"])
                found, _ = self.seeded((1, 64), fault)
                self.assertTrue(found[0].startswith("attention_split"), found)
                self.assertTrue(found[1].startswith("kernel.attention"), found)
                self.assertIn("decode", found[4])
                self.assertEqual(found[5:], [found[0]])

    def test_a_check_shows_how_much_of_a_bound_was_used(self):
        # Random weights have flat softmaxes, so that much is dropped.
        flags = ("--approximate-exp", "poly=3", "--sparsify-attention", "8", "--target-tolerance", "0.05")
        output = self.llamac("check", self.models[3, 64], *flags).stdout
        self.assertIn("approximate-exp", output)
        self.assertIn("sparsify-attention", output)
        name = r"(?m)^(attention\S+)(?: \+ \S+)?: "
        uses = dict(re.findall(name + r"off by at most (\S+) of what the approximation's bound and rounding allow", output))
        drops = dict(re.findall(name + r".* dropped at most (\S+) of a softmax", output))
        for kernel in uses:
            self.assertLess(float(uses[kernel]), 1, kernel)
            # Steps of several rows drop nothing.
            one = kernel == "attention_split_n384"
            self.assertTrue(0.01 < float(drops[kernel]) < 0.9 if one else float(drops[kernel]) == 0, drops)
        self.assertEqual(len(uses), 3)

    def test_the_reproducer_is_the_op_its_numbers_and_its_source(self):
        found, folder = self.seeded((3, 16), "skipped-panel")
        stem = os.path.join(folder, found[0])

        with open(stem + ".cpp") as file:
            source = file.read()
        self.assertIn(f"void {found[0]}(const CpuLaunch *launch)", source)
        self.assertIn('#include "llamac/cpu/matmul.h"', source)
        self.assertEqual(source.count('extern "C"'), 1)

        parsed = support.run([os.path.join(support.BIN_DIR, "llamac-opt"), stem + ".mlir"])
        self.assertEqual(parsed.returncode, 0, parsed.stderr)
        self.assertEqual(parsed.stdout.count("kernel.matmul "), 1)
        self.assertIn("llama.weight", parsed.stdout)

        # The numbers are those of the product, by numpy, but for the last panel.
        x, residual = (np.load(f"{stem}.operand{i}.npy") for i in (0, 2))
        down = random_weights(self.CONFIGS[3, 16])["layers.0.feed_forward.w2"]
        expected = np.load(stem + ".result0.expected.npy")
        np.testing.assert_allclose(expected, residual + x @ down.T, rtol=1e-4, atol=1e-5)
        got = np.load(stem + ".result0.got.npy")
        np.testing.assert_allclose(got[:, :-16], expected[:, :-16], rtol=1e-4, atol=1e-5)
        # The result overwrites the residual, which is all that is there.
        np.testing.assert_array_equal(got[:, -16:], residual[:, -16:])

    def test_a_reproducer_holds_the_cache(self):
        found, folder = self.seeded((3, 16), "missed-key")
        stem = os.path.join(folder, found[0])
        parsed = support.run([os.path.join(support.BIN_DIR, "llamac-opt"), stem + ".mlir"])
        self.assertEqual(parsed.returncode, 0, parsed.stderr)
        self.assertEqual(parsed.stdout.count("kernel.attention "), 1)
        # Causal attention of the missed row, by numpy: 12 heads of 16 over 4.
        query = np.load(stem + ".operand0.npy").reshape(-1, 12, 16)
        keys, values = (np.load(f"{stem}.operand1.{name}.npy").reshape(-1, 4, 16) for name in ("keys", "values"))
        positions = np.load(stem + ".operand2.npy").astype(int).ravel()
        row = list(positions).index(127)
        expected = np.load(stem + ".result0.expected.npy")[row].reshape(12, 16)
        for head in range(12):
            scores = keys[:128, head // 3] @ query[row, head] / 4
            weights = np.exp(scores - scores.max())
            np.testing.assert_allclose(
                expected[head], weights / weights.sum() @ values[:128, head // 3], rtol=1e-3, atol=1e-4
            )


class RealModel(support.TestCase):
    def test_smollm2_is_clean(self):
        model = support.require_model("smollm2.gguf")
        output = self.llamac("check", model).stdout
        self.assertNotIn("WRONG", output)
        self.assertIn("gemv_tok_embeddings", output)


if __name__ == "__main__":
    unittest.main()
