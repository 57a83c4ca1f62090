# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The options of sampling by their definitions in numpy, of the logits that
`llamac logits` gives for the same tokens."""

import json
import unittest

import support

support.require("numpy", "safetensors")

import numpy as np

from llama_numpy import Config
from make_model import random_weights, write_huggingface
from support import LLAMAC

CONFIG = Config(64, 2, 4, 2, vocab=499)
PROMPT = [5, 17, 5, 99, 260, 17, 3]
# Logits of one step and of many differ by rounding.
TOLERANCE = 2e-2


def log_softmax(logits):
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def penalise(logits, prompt, answer, repetition=1.0, frequency=0.0, presence=0.0, bias=None):
    """Penalties by vLLM's documentation."""
    logits = logits.astype(np.float64).copy()
    for token, value in (bias or {}).items():
        logits[token] += value
    for token in set(prompt) | set(answer):
        logits[token] = logits[token] / repetition if logits[token] > 0 else logits[token] * repetition
    for token in set(answer):
        logits[token] -= frequency * answer.count(token) + presence
    return logits


def allowed(logits, temperature, min_p=0.0, top_k=0, top_p=1.0):
    """The tokens that may be sampled."""
    order = np.argsort(-logits, kind="stable")
    probabilities = np.exp((logits[order] - logits.max()) / temperature)
    keep = probabilities >= min_p * (1 - TOLERANCE)
    if top_k:
        keep[top_k:] = False
    probabilities = np.where(keep, probabilities, 0)
    before = np.cumsum(probabilities) - probabilities
    keep &= before < top_p * (1 + TOLERANCE) * probabilities.sum()
    return set(order[keep])


class Sampling(support.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        model = write_huggingface(cls.path("model"), CONFIG, random_weights(CONFIG))
        cls.plan = cls.path("model.plan")
        support.run([LLAMAC, "compile", model, "-o", cls.plan], cache=cls.cache, check=True)

    def generate(self, *options, tokens=24):
        """The ids of an answer, and the report."""
        ids = ",".join(map(str, PROMPT))
        result = self.llamac(
            "run", self.plan, "-t", 1, "--tokens", ids, "-n", tokens, "--print-ids", "--json", "--ignore-eos", *options
        )
        report = json.loads(result.stdout)
        self.assertEqual(len(report["ids"]), tokens)
        return report["ids"], report

    def rows(self, ids):
        """The logits that each of `ids` was chosen by."""
        out = self.path("logits.npy")
        tokens = ",".join(map(str, PROMPT + ids[:-1]))
        self.llamac("logits", self.plan, "-t", 1, "--tokens", tokens, "-o", out)
        return np.load(out, allow_pickle=False)[len(PROMPT) - 1 :]

    def check_greedy(self, options, **penalties):
        ids, _ = self.generate("--temp", 0, *options)
        for i, (token, logits) in enumerate(zip(ids, self.rows(ids))):
            expected = penalise(logits, PROMPT, ids[:i], **penalties)
            self.assertGreaterEqual(expected[token], expected.max() - TOLERANCE, (i, token, expected.argmax()))
        return ids

    def test_penalties_and_bias(self):
        plain = self.check_greedy(())
        for options, penalties in (
            (("--repeat-penalty", 1.7), {"repetition": 1.7}),
            (("--frequency-penalty", 0.7), {"frequency": 0.7}),
            (("--presence-penalty", 1.5), {"presence": 1.5}),
            (("--logit-bias", f"{plain[0]}=-3", "--logit-bias", "7=1.5"), {"bias": {plain[0]: -3, 7: 1.5}}),
            (
                ("--repeat-penalty", 1.3, "--frequency-penalty", 0.4, "--presence-penalty", -0.3, "--logit-bias=9=2"),
                {"repetition": 1.3, "frequency": 0.4, "presence": -0.3, "bias": {9: 2}},
            ),
        ):
            with self.subTest(options):
                self.check_greedy(options, **penalties)

    def test_logprobs_are_of_the_raw_logits(self):
        options = ("--temp", 0.7, "-s", 3, "--repeat-penalty", 1.5, "--logit-bias=9=4", "--logprobs", 4)
        ids, report = self.generate(*options)
        self.assertEqual([entry["id"] for entry in report["logprobs"]], ids)
        for entry, logits in zip(report["logprobs"], self.rows(ids)):
            expected = log_softmax(logits.astype(np.float64))
            self.assertAlmostEqual(entry["logprob"], expected[entry["id"]], delta=TOLERANCE)
            rank = 1 + (expected > expected[entry["id"]] + 2 * TOLERANCE).sum()
            most = 1 + (expected > expected[entry["id"]] - 2 * TOLERANCE).sum()
            self.assertTrue(rank <= entry["rank"] <= most)
            top = [other["logprob"] for other in entry["top_logprobs"]]
            np.testing.assert_allclose(top, np.sort(expected)[::-1][:4], atol=TOLERANCE)
            self.assertEqual(top, sorted(top, reverse=True))

    def test_truncation_leaves_tokens_out(self):
        for options, settings in (
            (("--temp", 2, "--min-p", 0.6), {"temperature": 2, "min_p": 0.6}),
            (("--temp", 1, "--top-p", 0.2), {"temperature": 1, "top_p": 0.2}),
            (("--temp", 3, "--top-k", 5), {"temperature": 3, "top_k": 5}),
            (
                ("--temp", 1.5, "--min-p", 0.1, "--top-k", 20, "--top-p", 0.5),
                {"temperature": 1.5, "min_p": 0.1, "top_k": 20, "top_p": 0.5},
            ),
        ):
            ids, _ = self.generate("-s", 11, *options, tokens=60)
            self.assertGreater(len(set(ids)), 5)
            for token, logits in zip(ids, self.rows(ids)):
                self.assertIn(token, allowed(logits.astype(np.float64), **settings), options)

    def test_a_plan_that_samples_gives_its_logits_for_these(self):
        model = self.path("model")
        plan = self.path("sim.plan")
        support.run([LLAMAC, "compile", model, "-o", plan, "--target", "sim", "--step-rows", "16"], cache=self.cache, check=True)
        options = ("--repeat-penalty", 1.4, "--logit-bias", "9=3", "--logprobs", 1)
        expected, report = self.generate(*options, tokens=6)
        self.plan, cpu = plan, self.plan
        try:
            ids, of_sim = self.generate(*options, tokens=6)
        finally:
            self.plan = cpu
        self.assertEqual(ids, expected)
        for one, other in zip(report["logprobs"], of_sim["logprobs"], strict=True):
            self.assertAlmostEqual(one["logprob"], other["logprob"], delta=TOLERANCE)


if __name__ == "__main__":
    unittest.main(verbosity=2)
