# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The cuda target's kernels on the simulator, from a model to its tokens.

    test_sim.py            everything
    test_sim.py Tokens     greedy answers and logits against the reference
"""

import unittest

import support

support.require("numpy", "gguf", "safetensors")

import numpy as np

from llama_numpy import Config
from make_model import random_weights, write_meta

# Largest difference over the largest |logit|: prefill rounds to bf16 what it
# multiplies.
BF16_TOLERANCE = 1e-2

PROMPT, ANSWER = 41, 33


class Tokens(support.TestCase):
    """Meta models, in bf16 as stored and as Q4_0: the greedy answer to a prompt
    is the reference's, through prefill and 32 steps of decode."""

    CONFIGS = {
        "gqa1_h16": Config(64, 2, 4, 4, vocab=258, multiple_of=32),
        "gqa1_h128": Config(256, 1, 2, 2, vocab=258, multiple_of=32, tied=True),
        "gqa3_h32": Config(96, 2, 3, 1, vocab=258, multiple_of=32),
        "gqa3_h64": Config(384, 1, 6, 2, vocab=258, multiple_of=32, tied=True),
        "gqa8_h16": Config(128, 2, 8, 1, vocab=258, multiple_of=32, theta=10000.0),
        "gqa8_h64": Config(512, 1, 8, 1, vocab=258, multiple_of=32),
    }

    def check(self, model, config, weights):
        prompt = np.random.default_rng(7).integers(0, config.vocab, PROMPT).tolist()
        flags = ("--weights", weights, "-c", 128)
        answer = self.llamac(
            *("run", model, "--target", "sim", "--tokens", ",".join(map(str, prompt))),
            *("-n", ANSWER, "--print-ids", "--ignore-eos", "-q", "--temp", 0, *flags),
        ).stdout
        tokens = prompt + [int(x) for x in answer.split()]
        self.assertEqual(len(tokens), PROMPT + ANSWER)
        return tokens[:-1], tokens[PROMPT:], flags


def _add_tokens(name, config, weights):
    def test(self):
        model = self.path(f"{name}-{weights}")
        write_meta(model, config, random_weights(config, "bf16", 5), "bf16")
        tokens, answer, flags = self.check(model, config, weights)
        # What the reference says to each token of the prompt and the answer: it
        # would have answered the same if the likeliest next token is each time
        # the one that follows.
        expected = self.logits(model, tokens, "reference", "--weights", weights)
        if weights == "keep":
            got = self.logits(model, tokens, "sim", *flags)
            error = np.abs(got - expected).max() / np.abs(expected).max()
            print(f"  logits {error:.2e} of {BF16_TOLERANCE:.0e}")
            self.assertLessEqual(error, BF16_TOLERANCE)
        self.assertEqual(expected[PROMPT - 1 :].argmax(axis=1).tolist(), answer)

    setattr(Tokens, f"test_{name}_{weights}", test)


for _name, _config in Tokens.CONFIGS.items():
    for _weights in ("keep", "q4_0"):
        _add_tokens(_name, _config, _weights)


if __name__ == "__main__":
    unittest.main(verbosity=2)
