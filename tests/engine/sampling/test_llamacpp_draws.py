# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Draws have the probabilities that llama.cpp's samplers leave, for temperature,
min-p, top-k and top-p, alone and together."""

import os
import subprocess
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))

import support

support.require("numpy", "llama_cpp_library")

import numpy as np

import llama_cpp_library as llama_cpp

DRAW = os.environ.get("LLAMAC_DRAW_TOKENS", os.path.join(ROOT, "build", "tests", "draw-tokens"))
DRAWS = 20_000
VOCABULARY = 5_000


def drawn(logits, temperature, min_p, top_k, top_p):
    """The share of the draws that each token has."""
    command = [DRAW, *map(str, (temperature, min_p, top_k, top_p, DRAWS))]
    result = subprocess.run(command, input=logits.tobytes(), capture_output=True, check=True)
    ids = np.frombuffer(result.stdout, np.int32)
    assert len(ids) == DRAWS
    return np.bincount(ids, minlength=len(logits)) / DRAWS


class Draws(unittest.TestCase):
    def check(self, logits, **options):
        got, expected = drawn(logits, **options), llama_cpp.probabilities(logits, **options)
        # Counts of likely tokens are off by a few standard deviations, and those of rare ones by a few draws.
        counts, means = got * DRAWS, expected * DRAWS
        np.testing.assert_array_less(np.abs(counts - means), 6 * np.sqrt(means * (1 - expected)) + 6)
        # Pearson's test of those that are likely, and of the rest together, by its normal approximation.
        likely = means >= 5
        counts, means = (np.append(of[likely], of[~likely].sum()) for of in (counts, means))
        counts, means = counts[means > 0], means[means > 0]
        statistic, degrees = ((counts - means) ** 2 / means).sum(), len(means) - 1
        self.assertLess(statistic, degrees + 6 * np.sqrt(2 * degrees) + 12)
        self.assertFalse(np.any(got[expected == 0]), "a token that was left out is drawn")

    def test_each_option_and_all_together_leave_the_same_tokens(self):
        rng = np.random.default_rng(5)
        for deviation in (1, 4):
            logits = rng.normal(0, deviation, VOCABULARY).astype(np.float32)
            for temperature in (0.5, 1, 1.7):
                for min_p, top_k, top_p in (
                    (0, 0, 1),
                    (0.1, 0, 1),
                    (0, 40, 1),
                    (0, 0, 0.9),
                    (0.02, 30, 0.8),
                    (0.3, 1, 0.1),
                ):
                    options = {"temperature": temperature, "min_p": min_p, "top_k": top_k, "top_p": top_p}
                    with self.subTest(deviation=deviation, **options):
                        self.check(logits, **options)

    def test_a_few_tokens_and_tokens_that_are_ruled_out(self):
        logits = np.array([1, 3, -np.inf, 2.5, 0, -np.inf, 2.75], np.float32)
        for options in (
            {"temperature": 1, "min_p": 0, "top_k": 0, "top_p": 1},
            {"temperature": 1, "min_p": 0.2, "top_k": 0, "top_p": 1},
            {"temperature": 2, "min_p": 0, "top_k": 3, "top_p": 0.7},
        ):
            with self.subTest(**options):
                self.check(logits, **options)


if __name__ == "__main__":
    unittest.main(verbosity=2)
