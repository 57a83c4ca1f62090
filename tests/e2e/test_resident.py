# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A step of one row in one launch, on the simulator: its blocks wait for each
other, and give the bits of the step of many launches.

    test_resident.py              everything
    test_resident.py Bits         logits, past the length where attention is split
    test_resident.py Families     what Llama's relatives have besides
    test_resident.py Schedules    orders of threads, one block that stands still, and checked memory
    test_resident.py Draws        tokens that several steps of a launch sample
"""

import os
import unittest
from dataclasses import replace

import support

support.require("numpy", "gguf", "safetensors")

import model_families as families
import numpy as np

from llama_numpy import Config, forward
from make_model import random_weights, write_huggingface, write_meta

# Attention has a second split from this many tokens on.
SPLIT = 129
ORDERS = support.by_tier(("reverse", "stalled:6"), ("forward", "reverse", "random:5", "stalled:6"))
SMALL = Config(128, 3, 2, 1, vocab=258, multiple_of=64)
BLOCKS = Config(256, 2, 2, 1, vocab=258, multiple_of=4096)
BLOCK_FORMATS = support.by_tier(("q4_0",), ("q8_0", "q4_0", "mxfp8"))


class Case(support.TestCase):
    def model(self, name, config):
        path = self.path(name)
        if not os.path.exists(path):
            write_meta(path, config, random_weights(config, "bf16", 5), "bf16")
        return path

    plans = 0
    STEP_ROWS = 1  # All that is compared takes steps of one row.

    def plan(self, model, *flags):
        Case.plans += 1
        plan = self.path(f"{Case.plans}.plan")
        self.llamac("compile", model, "--target", "sim", "-c", 256, "--parallel", 1, "--step-rows", self.STEP_ROWS, "-q", "-o", plan, *flags)
        return plan

    def resident(self, model, *flags):
        return self.plan(model, "--resident-step", "on", *flags)

    def bits(self, plan, tokens, *flags):
        """The bits of the logits of steps of one row."""
        out = self.path("logits.npy")
        ids = ",".join(map(str, tokens))
        self.llamac("logits", plan, "--tokens", ids, "--chunk", 1, "-o", out, "-q", *flags)
        return np.load(out).view(np.uint32)

    def check(self, model, config, tokens, weights=None, flags=(), checked=False):
        ids = np.random.default_rng(7).integers(0, config.vocab, tokens).tolist()
        chain = self.bits(self.plan(model, *flags), ids)
        resident = self.bits(self.resident(model, *flags), ids)
        differing = np.flatnonzero((chain != resident).any(axis=1))
        self.assertEqual(differing.tolist(), [])
        if weights:
            expected = forward(config, weights, ids)
            error = np.abs(resident.view(np.float32) - expected).max() / np.abs(expected).max()
            print(f"  against float64 {error:.2e}")
            self.assertLess(error, 2e-3)
        if checked:
            plan = self.resident(model, *flags, "--sim-check")
            self.bits(plan, ids[:5], "--sim-schedule", "random:3")


class Bits(Case):
    """The step of one launch and that of many have the same logits, bit by bit."""

    def test_small_heads_split(self):
        weights = random_weights(SMALL, "bf16", 5)
        self.check(self.model("small", SMALL), SMALL, SPLIT + 4, weights)

    @unittest.skipUnless(support.EXHAUSTIVE, "as the others, with other heads")
    def test_large_heads_tied(self):
        config = Config(256, 2, 2, 1, vocab=258, multiple_of=64, tied=True)
        self.check(self.model("large", config), config, SPLIT + 4)

    def test_deep_input_in_parts(self):
        # Rows of four segments of 4 KB, the last of which comes by itself.
        config = Config(64, 2, 1, 1, vocab=258, multiple_of=8192)
        self.check(self.model("deep", config), config, 4)

    def test_block_formats(self):
        # A width that tiles do not divide (258), and rows of tiles in parts.
        model = self.model("blocks", BLOCKS)
        for format in BLOCK_FORMATS:
            with self.subTest(format=format):
                self.check(model, BLOCKS, 4, flags=("--weights", format))

    def test_deep_input_of_blocks_in_parts(self):
        # Four segments or more, of which the last come when three quarters of the input have been multiplied.
        config = Config(128, 2, 2, 1, vocab=258, multiple_of=8192)
        self.check(self.model("deep-blocks", config), config, 2, flags=("--weights", "q4_0"), checked=True)

    @unittest.skipUnless(support.EXHAUSTIVE, "as the others, with other heads")
    def test_eight_query_heads_of_a_key_head(self):
        config = Config(512, 2, 8, 1, vocab=258, multiple_of=64)
        self.check(self.model("eight", config), config, SPLIT + 4)


class Families(Case):
    """Families whose layers have one structure."""

    models = 0

    def check_family(self, family, tokens, flags=(), **config):
        config = replace(Config(128, 2, 2, 1, vocab=258, multiple_of=64, eps=1e-6), **config)
        Families.models += 1
        path = self.path(f"model{Families.models}")
        write_huggingface(path, config, random_weights(config, "bf16", 5), "bf16", family=family)
        self.check(path, config, tokens, flags=flags, checked=support.EXHAUSTIVE)

    def test_biases(self):
        self.check_family(families.QWEN2, 5, tied=True, qkv_bias=True)

    def test_norms_of_heads(self):
        # Heads are wider than the model; a lane has two pairs of one.
        self.check_family(families.QWEN3, 5, heads=6, kv_heads=2, head_size=96, qk_norm="head")

    @unittest.skipUnless(support.EXHAUSTIVE, "as the others, both at once")
    def test_norms_of_heads_split_and_in_blocks(self):
        flags = "--weights", "q8_0"
        self.check_family(families.QWEN3, SPLIT + 4, flags, heads=4, kv_heads=2, head_size=32, qk_norm="head")

    def test_windows(self):
        # A window begins in the middle of a tile, and the cache is a ring.
        self.check_family(families.MISTRAL, 150, windows=(70, 70))

    @unittest.skipUnless(support.EXHAUSTIVE, "as the others, without a ring")
    def test_windows_of_a_cache_as_long_as_the_context(self):
        self.STEP_ROWS = 256
        self.check_family(families.MISTRAL, 80, windows=(70, 70))

    @unittest.skipUnless(support.EXHAUSTIVE, "as the others, with two splits")
    def test_windows_split(self):
        self.check_family(families.PHI3, SPLIT + 4, windows=(SPLIT + 1, SPLIT + 1))

    def test_layers_without_rope(self):
        rotates = (True, True, True, False) * 2
        self.check_family(families.SMOLLM3, 5, layers=8, tied=True, rotates=rotates)

    def test_scales(self):
        scales = dict(embedding_scale=1.5, residual_scale=0.75, attention_scale=0.5, logits_scale=1 / 8)
        self.check_family(families.GRANITE, 5, tied=True, **scales)


class Schedules(Case):
    # Each warp has a ring of weights, or the block has one.
    MODELS = (("small", SMALL, ()), ("blocks", BLOCKS, ("--weights", "q4_0")))

    def test_every_order_has_the_same_bits(self):
        for name, config, flags in self.MODELS:
            model = self.model(name, config)
            plan = self.resident(model, *flags)
            ids = list(range(1, 11))
            expected = self.bits(self.plan(model, *flags), ids)
            for order in ORDERS:
                with self.subTest(name=name, order=order):
                    self.assertTrue((self.bits(plan, ids, "--sim-schedule", order) == expected).all())

    def test_checked_memory(self):
        for name, config, flags in self.MODELS:
            plan = self.resident(self.model(name, config), *flags, "--sim-check")
            for order in ORDERS:
                with self.subTest(name=name, order=order):
                    self.bits(plan, [1, 2, 3], "--sim-schedule", order)


class Draws(Case):
    """Tokens of four steps a launch: past a border of pages, and past the length where attention is split."""

    STEP_ROWS = 256  # The prompt comes in one step.
    OPTIONS = (
        ("--temp", 0),
        ("--temp", 1, "--seed", 3),
        ("--temp", 0.8, "--top-k", 20, "--seed", 4),
        ("--temp", 1.2, "--top-p", 0.7, "--seed", 5),
    )

    def answer(self, plan, *flags):
        ids = ",".join(map(str, range(1, SPLIT - 5)))
        out = self.llamac("run", plan, "--tokens", ids, "-n", 10, "--print-ids", "--ignore-eos", "-q", *flags)
        return out.stdout.split()

    def answers(self, plan, *flags):
        return [self.answer(plan, *options, *flags) for options in self.OPTIONS]

    def test_both_steps_draw_the_same(self):
        model = self.model("small", SMALL)
        expected = self.answers(self.plan(model))
        self.assertEqual({len(answer) for answer in expected}, {10})
        self.assertEqual(len({tuple(answer) for answer in expected}), len(expected))
        resident = self.resident(model)
        for order in ORDERS:
            with self.subTest(order=order):
                self.assertEqual(self.answers(resident, "--sim-schedule", order), expected)

    def test_checked_memory(self):
        plan = self.resident(self.model("small", SMALL), "--sim-check")
        for order, options in zip(ORDERS, self.OPTIONS):
            with self.subTest(order=order):
                self.answer(plan, *options, "--sim-schedule", order)


if __name__ == "__main__":
    unittest.main(verbosity=2)
