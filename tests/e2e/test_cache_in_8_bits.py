# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a KV cache in 8 bits keeps: needles in long contexts, distributions, answers.

    test_cache_in_8_bits.py Needles     answers that a long context holds
    test_cache_in_8_bits.py Divergence  SmolLM2's distributions, on the cpu and on sim
    test_cache_in_8_bits.py Questions   SmolLM2's greedy answers, on the cpu

The last two are of the exhaustive tier alone.
"""

import json
import os
import unittest

import support

support.require("numpy", "gguf", "ml_dtypes", "safetensors")

import kv_formats
import ml_dtypes
import needles
import numpy as np

from distributions import TEXT, Comparison, log_softmax
from kv_formats import ROUNDED
from llama_numpy import forward
from make_model import write_huggingface
from test_logits import RealWeights

QUESTIONS = os.path.join(os.path.dirname(TEXT), "questions.txt")


def generate(test, model, requests, *flags):
    """The answers to `requests`, in their order."""
    prompts, out = test.path("requests.jsonl"), test.path("answers.jsonl")
    with open(prompts, "w") as f:
        f.writelines(json.dumps(request | {"id": i, "temperature": 0}) + "\n" for i, request in enumerate(requests))
    test.llamac("generate", model, "--prompts", prompts, "-o", out, "-q", *flags, timeout=3600)
    with open(out) as f:
        answers = [json.loads(line) for line in f]
    os.remove(out)
    return sorted(answers, key=lambda answer: answer["id"])


class Needles(support.TestCase):
    """The greedy answer of needles.py's model is right, and as probable as in float64."""

    # Target, tokens of the context, formats of the cache.
    CASES = support.by_tier(
        (("cpu", 1024, ("q8_0",)),),
        (
            ("cpu", 8192, ("f16", "q8_0")),
            ("cpu", 32768, ("f16", "q8_0")),
            ("sim", 2048, ("f16", "q8_0", "fp8")),
        ),
    )
    # How far a log probability may be from float64's: activations in bf16, which sim
    # and cpus with AMX have, bring some codes of the cache to the next ones.
    BOUNDS = {"f16": 0.05, "q8_0": 0.05, "fp8": 0.5}

    def test_needles_are_found(self):
        weights = needles.weights()
        model = write_huggingface(self.path("model"), needles.CONFIG, weights, settings={"max_position_embeddings": 40000})
        right = np.roll(needles.QUESTIONS, -1)

        def expected(haystack, cache):
            """Log probabilities [needles, vocabulary] in float64, the questions given in turn."""
            return log_softmax(forward(needles.CONFIG, weights, [*haystack, *needles.QUESTIONS], cache, needles.NEEDLES))

        for target, count, kinds in self.CASES:
            haystack = needles.haystack(count)
            with self.subTest(f"{count} tokens in 4 bits"):
                in_4_bits = kv_formats.blocks(16, ml_dtypes.bfloat16, 7, np.rint)
                found = (expected(haystack, in_4_bits).argmax(axis=-1) == right).sum()
                print(f"  {count} tokens, 4 bits in float64: {found} of {len(right)} needles")
                self.assertLess(found, len(right), "such a haystack shows nothing")
            for kind in kinds:
                with self.subTest(target=target, tokens=count, kind=kind):
                    probable = expected(haystack, ROUNDED[kind])
                    self.assertEqual(probable.argmax(axis=-1).tolist(), right.tolist())
                    request = {"tokens": [*haystack, 0], "max_tokens": len(right), "logprobs": 0}
                    flags = ("--target", target, "--kv-type", kind, "-c", count + 64, "--print-ids")
                    (answer,) = generate(self, model, [request], *flags)
                    self.assertEqual(answer["tokens"], right.tolist())
                    got = np.array([token["logprob"] for token in answer["logprobs"]])
                    error = np.abs(got - probable[range(len(right)), right]).max()
                    print(f"  {target}, {count} tokens, {kind}: error {error:.1e} of {self.BOUNDS[kind]}")
                    self.assertLessEqual(error, self.BOUNDS[kind])


class Divergence(support.TestCase):
    """The mean KL of SmolLM2's distributions with a cache in 8 bits from those of the
    same target with one in fp16, beside that of float64 forwards whose keys and values
    are rounded to the same formats."""

    WINDOW = 512
    SIM_POSITIONS = 256  # The simulator takes a minute for these.

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.weights = RealWeights.make_weights()
        cls.model = RealWeights.model
        with open(TEXT) as f:
            tokens = support.run([support.LLAMAC, "tokenize", cls.model, f.read()], check=True, cache=cls.cache).stdout
        tokens = [int(token) for token in tokens.replace(",", " ").split()]
        cls.windows = [tokens[i : i + cls.WINDOW] for i in range(0, len(tokens), cls.WINDOW)]

    def in_float64(self, window, kind):
        return log_softmax(forward(RealWeights.config, self.weights, window, ROUNDED[kind]))

    def run_target(self, window, kind, *flags):
        return log_softmax(self.logits(self.model, window, *flags, "--kv-type", kind, "-c", self.WINDOW))

    def show(self, **sums):
        found = {name: one.result() for name, one in sums.items()}
        print(json.dumps(found, indent=2))
        return [one["mean_kl"] for one in found.values()]

    def test_the_cpu_loses_what_the_rounding_does(self):
        """With activations in fp32, which AVX2 has, and weights that are multiplied as floats."""
        cpu, float64 = Comparison(), Comparison()
        for window in self.windows:
            cpu.add(*(self.run_target(window, kind, "cpu", "--weights", "bf16", "--isa", "x86-64-v3") for kind in ("f16", "q8_0")))
            float64.add(*(self.in_float64(window, kind) for kind in ("f16", "q8_0")))
        self.assertGreaterEqual(cpu.positions, 1500)
        lost, bound = self.show(cpu=cpu, float64=float64)
        self.assertGreaterEqual(lost, bound / 1.2)
        self.assertLessEqual(lost, bound * 1.2)

    def test_sim_loses_that_and_what_its_activations_do(self):
        """KL is quadratic in the differences of logits, so that causes that are independent
        add. Two runs whose caches differ differ by the cache and by the activations of
        either, in bf16. From float64 with the same cache a run differs by its activations,
        and at most by the cache of either, where all keys and values go to other codes."""
        window = self.windows[0][: self.SIM_POSITIONS]
        plain, plain64 = self.run_target(window, "f16", "sim"), self.in_float64(window, "f16")
        activations = Comparison()
        activations.add(plain64, plain)
        for kind in ("q8_0", "fp8"):
            with self.subTest(kind):
                rounded, rounded64 = self.run_target(window, kind, "sim"), self.in_float64(window, kind)
                sim, cache, apart = Comparison(), Comparison(), Comparison()
                sim.add(plain, rounded)
                cache.add(plain64, rounded64)
                apart.add(rounded64, rounded)
                lost, error, of_cache, of_activations = self.show(
                    sim=sim, sim_from_float64=apart, float64=cache, activations=activations
                )
                self.assertGreater(lost, of_cache / 1.2)
                self.assertLessEqual(lost, 1.2 * (of_cache + 2 * of_activations))
                self.assertLessEqual(error, 1.2 * (of_activations + 2 * of_cache))


class Questions(support.TestCase):
    """SmolLM2's greedy answers with the cache in q8_0, against those with fp16: a token
    that two have about the same logits may be another one, and the answer from there on."""

    COUNTRIES = (
        "Argentina Australia Austria Belgium Brazil Bulgaria Cambodia Canada Chile China Colombia Cuba Denmark Egypt "
        "Ethiopia Finland France Germany Greece Hungary Iceland India Indonesia Iran Iraq Ireland Israel Italy Japan "
        "Jordan Kenya Lebanon Mexico Mongolia Morocco Nepal Norway Pakistan Peru Poland Portugal Romania Russia Spain "
        "Sweden Switzerland Thailand Turkey Uganda Vietnam"
    ).split()
    WORDS = (
        "apple river candle window garden silver mountain bottle pencil thunder orange castle forest engine mirror "
        "pepper island rocket blanket hammer turtle violin basket desert feather lantern market needle ocean palace "
        "rabbit saddle temple umbrella valley whistle yellow zebra anchor butter carpet dragon eagle flower guitar "
        "honey jacket kitten lemon magnet"
    ).split()
    BEGINNINGS = (
        "The opposite of hot is|The opposite of up is|The opposite of big is|The opposite of early is|"
        "The sun rises in the|Water freezes at|A week has seven|A triangle has three|The sky is|Grass is|Snow is|"
        "Bees make|Cows give|Birds can|Fish live in|The first month of the year is|The last day of the week is|"
        "Once upon a time there was|It was a dark and|Roses are red, violets are|To be or not to|"
        "An apple a day keeps the|Actions speak louder than|Better late than|Practice makes|Time is|Honesty is the best|"
        "The early bird catches the|Two plus two is|The moon goes around the|The Earth goes around the|"
        "The largest ocean is the|The longest river is the|The highest mountain is|Romeo and|Adam and|Salt and|"
        "Bread and|Black and|Thunder and|She opened the door and|He looked at the map and|We went to the store to buy|"
        "The children were playing in the|My favourite food is|The doctor told him to|In the middle of the night|"
        "The train arrives at|Please close the|I would like a cup of"
    ).split("|")

    @classmethod
    def prompts(cls):
        rng = np.random.default_rng(0)
        return [
            *(f"The capital of {country} is" for country in cls.COUNTRIES),
            *(f"Question: What is {a} + {b}?\nAnswer:" for a, b in rng.integers(1, 50, (50, 2))),
            *cls.BEGINNINGS,
            *(f"Repeat this word three times: {word}.\n" for word in cls.WORDS),
        ]

    def test_answers(self):
        model = support.require_model("smollm2.gguf")
        with open(QUESTIONS) as f:
            asked = [{"messages": [{"role": "user", "content": line}], "max_tokens": 24} for line in f.read().splitlines()]
        prompts = [{"prompt": prompt, "max_tokens": 24} for prompt in self.prompts()]
        for name, requests in (("prompts", prompts), ("questions", asked)):
            self.assertEqual(len(requests), 200)
            plain = [a["tokens"] for a in generate(self, model, requests, "--kv-type", "f16", "-c", 512)]
            for kind in ("bf16", "q8_0"):
                with self.subTest(name, kind=kind):
                    got = [a["tokens"] for a in generate(self, model, requests, "--kv-type", kind, "-c", 512)]
                    first = sum(a[:1] == b[:1] for a, b in zip(plain, got))
                    whole = sum(a == b for a, b in zip(plain, got))
                    print(f"  200 {name}, {kind}: the same first token {first}, the same answer {whole}")
                    self.assertGreaterEqual(first, 180)
                    self.assertGreaterEqual(whole, 100)


if __name__ == "__main__":
    unittest.main(verbosity=2)
