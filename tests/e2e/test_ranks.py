# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A model that ranks partition computes what the whole model computes."""

import dataclasses
import json
import os
import re
import unittest

import support
from support import LLAMAC_RUN, UNSUPPORTED, USAGE

support.require("numpy", "gguf")

import model_families as families
import numpy as np

from llama_numpy import Config, forward
from make_model import quantise, random_weights, write_gguf
from test_logits import CPU_TOLERANCE, INT8_TOLERANCE, REFERENCE_TOLERANCE, TOKENS

# Nothing is rounded but by fp32 itself.
EXACT = ("--exact", "--kv-type", "f32")
RANKS = (1, 2, 4)
# Name: shape, family, format of the matrices.
MODELS = {
    "shapes of 1B": (Config(2048, 2, 32, 8, vocab=512, ffn_dim_multiplier=1.5, tied=True), families.LLAMA, "BF16"),
    "two KV heads": (Config(256, 3, 8, 2, vocab=508, multiple_of=128), families.LLAMA, "Q8_0"),
    "biases": (Config(256, 1, 8, 4, vocab=500, qkv_bias=True, tied=True), families.QWEN2, "F16"),
    "norms of heads": (Config(256, 2, 8, 4, vocab=500, head_size=64, qk_norm="head"), families.QWEN3, "BF16"),
}


class RanksCase(support.TestCase):
    def model(self, name):
        """A GGUF file, and the float64 forward of what it holds."""
        config, family, type_name = MODELS[name]
        stored, values = quantise(random_weights(config, "bf16", 1), type_name)
        path = write_gguf(self.path(f"{name.replace(' ', '-')}.gguf"), config, stored, family=family)
        return path, lambda tokens: forward(config, values, tokens)

    def random_tokens(self, name, count):
        return np.random.default_rng(2).integers(0, MODELS[name][0].vocab, count).tolist()

    def check(self, found, expected, tolerance):
        self.assertLessEqual(np.abs(found - expected).max() / np.abs(expected).max(), tolerance)


class Logits(RanksCase):
    def test_are_those_of_float64(self):
        # The default tier has one in two and in four parts, and others in four alone.
        whole = "two KV heads"
        for name in support.by_tier((whole, "biases", "norms of heads"), MODELS):
            model, expected = self.model(name)
            tokens = self.random_tokens(name, TOKENS)
            expected = expected(tokens)
            rounded = INT8_TOLERANCE if MODELS[name][2] == "Q8_0" else CPU_TOLERANCE
            for ranks in support.by_tier(RANKS[1:] if name == whole else RANKS[-1:], RANKS):
                for chunk in support.by_tier((7,), (TOKENS, 7, 1)):
                    with self.subTest(name, ranks=ranks, chunk=chunk):
                        flags = ("--ranks", ranks, "--chunk", chunk)
                        if name == whole or support.EXHAUSTIVE:
                            exact = self.logits(model, tokens, "cpu", *flags, *EXACT)
                            self.check(exact, expected, REFERENCE_TOLERANCE)
                        self.check(self.logits(model, tokens, "cpu", *flags), expected, rounded)
                with self.subTest(name, ranks=ranks, target="reference"):
                    found = self.logits(model, tokens, "reference", "--ranks", ranks)
                    self.check(found, expected, REFERENCE_TOLERANCE)

    def test_are_the_same_bits_in_every_run(self):
        name = "two KV heads"
        model, _ = self.model(name)
        tokens = self.random_tokens(name, TOKENS)
        for ranks in support.by_tier(RANKS[-1:], RANKS[1:]):
            runs = {
                self.logits(model, tokens, "cpu", "--ranks", ranks, "--chunk", 5, "-t", threads).tobytes()
                for threads in (ranks, 2 * ranks) * support.by_tier(2, 5)
            }
            self.assertEqual(len(runs), 1)

    def test_every_pass_is_checked(self):
        model, _ = self.model("two KV heads")
        for ranks in RANKS[1:]:
            report = self.llamac("check", model, "--ranks", ranks).stdout
            self.assertRegex(report, r"(?m)^shard .* ok ")
            self.assertRegex(report, r"(?m)^cpu by 1 .* ok ")

    def test_the_kernels_of_cuda_on_the_checked_simulator(self):
        config, family, type_name = MODELS["biases"]
        small = {"dim": 64, "heads": 4, "kv_heads": 2, "head_size": 16, "vocab": 260}
        config = dataclasses.replace(config, **support.by_tier(small, {}))
        stored, _ = quantise(random_weights(config, "bf16", 1), type_name)
        model = write_gguf(self.path("checked.gguf"), config, stored, family=family)
        # More than the 16 of a step of decode.
        tokens = ",".join(str(19 * i % config.vocab) for i in range(17))
        flags = ("--target", "sim", "--sim-check", "-c", 64, "--step-rows", 17, "--tokens", tokens)
        for ranks in support.by_tier((2,), (2, 4)):
            report = self.llamac("check", model, "--ranks", ranks, *flags).stdout
            self.assertRegex(report, r"(?m)^sim by 1 .* ok ")


class Reproducible(RanksCase):
    """--reproducible-ranks."""

    def all_logits(self, model, tokens, ranks, *flags):
        """The bits of the logits of a prefill and of a decode, with several numbers of threads each."""
        return {
            self.logits(model, tokens, "cpu", "--ranks", ranks, "--chunk", chunk, "-t", threads, *flags).tobytes()
            for chunk, threads in ((len(tokens), ranks), (len(tokens), 3), (1, 2 * ranks))
        }

    def test_logits_are_the_same_bits_for_every_number_of_ranks(self):
        few = (("two KV heads", (1, 2, 8), ("F32", "Q8_0")),)
        every = [(name, RANKS, ("F32", "BF16", "Q8_0", "Q4_0")) for name in MODELS]
        for name, numbers, types in support.by_tier(few, (*every, ("two KV heads", (1, 8), ("BF16", "Q8_0")))):
            config, family, _ = MODELS[name]
            config = dataclasses.replace(config, vocab=512, multiple_of=256)
            weights = random_weights(config, "bf16", 1)
            for type_name in types:
                stored, values = quantise(weights, type_name)
                model = write_gguf(self.path("reproducible.gguf"), config, stored, family=family)
                tokens = self.random_tokens(name, 9)
                with self.subTest(name, type=type_name):
                    found = [self.all_logits(model, tokens, ranks, "--reproducible-ranks") for ranks in numbers]
                    self.assertEqual(len(found[0]), 1)
                    self.assertEqual(found, found[:1] * len(numbers))
                    # Without the option they differ.
                    plain = [self.logits(model, tokens, "cpu", "--ranks", ranks).tobytes() for ranks in (1, 2)]
                    self.assertEqual(len({*plain, *found[0]}), 3)
                    # They are those of the model.
                    logits = np.frombuffer(*found[0], np.float32).reshape(len(tokens), -1)
                    rounded = type_name in ("Q8_0", "Q4_0")
                    tolerance = INT8_TOLERANCE if rounded else CPU_TOLERANCE
                    self.check(logits, forward(config, values, tokens), tolerance)

    def test_tokens_are_the_same_for_every_number_of_ranks(self):
        model, _ = self.model("two KV heads")
        prompt = ",".join(map(str, self.random_tokens("two KV heads", 5)))
        options = ("-c", 128, "--temp", 1.0, "--seed", 7, "-n", 64, "--print-ids", "--tokens", prompt)
        answers = {
            self.llamac("run", model, *options, "--reproducible-ranks", "--ranks", ranks).stdout for ranks in RANKS
        }
        self.assertEqual(len(answers), 1)

    def test_every_pass_is_checked(self):
        model, _ = self.model("two KV heads")
        for ranks in (1, 4):
            report = self.llamac("check", model, "--ranks", ranks, "--reproducible-ranks").stdout
            self.assertRegex(report, r"(?m)^shard .* ok ")
            self.assertRegex(report, r"(?m)^cpu by 1 .* ok ")


class Decode(RanksCase):
    def test_greedy_ids_are_those_of_one_rank(self):
        count = 256
        name = "two KV heads"
        model, _ = self.model(name)
        prompt = self.random_tokens(name, 5)
        options = ("-c", 384, "--temp", 0, "-n", count, "--print-ids", "--tokens", ",".join(map(str, prompt)))
        answer = list(map(int, self.llamac("run", model, *options, *EXACT).stdout.split()))
        self.assertEqual(len(answer), count)
        tokens = prompt + answer[:-1]
        whole = self.logits(model, tokens, "cpu", *EXACT, "-c", 384)[len(prompt) - 1 :]
        best = np.sort(whole, axis=1)
        # Where the second is further away than the bound of both.
        sure = best[:, -1] - best[:, -2] > 4 * REFERENCE_TOLERANCE * np.abs(whole).max()
        self.assertGreater(sure.mean(), 0.9)
        for ranks in RANKS[1:]:
            with self.subTest(ranks=ranks):
                split = self.logits(model, tokens, "cpu", *EXACT, "-c", 384, "--ranks", ranks, "--chunk", 1)
                ids = split[len(prompt) - 1 :].argmax(axis=1)
                np.testing.assert_array_equal(ids[sure], np.array(answer)[sure])

    def test_a_real_model_says_what_it_says_on_one_rank(self):
        # Nine heads and three KV heads.
        model = support.require_model("smollm2.gguf")
        options = ("-c", 256, "-p", "Why is the sky blue?", "-n", support.by_tier(20, 40), "--temp", 0, *EXACT)
        whole, split = (self.llamac("run", model, *options, "--ranks", ranks).stdout for ranks in (1, 3))
        self.assertGreater(len(whole), support.by_tier(50, 100))
        self.assertEqual(split, whole)

    def test_random_weights_do_not_depend_on_the_ranks(self):
        with open(os.path.join(support.ROOT, "tests", "compiler", "Inputs", "params.json")) as file:
            shape = json.load(file) | {"vocab_size": 104}
        model = self.path("params.json")
        with open(model, "w") as file:
            json.dump(shape, file)
        answers = set()
        for ranks in support.by_tier((1, 4), RANKS):
            plan = self.path(f"{ranks}.plan")
            self.llamac("compile", model, "--no-weights", "--ranks", ranks, "-o", plan, "-c", 64)
            options = ("--random-weights", 3, "--temp", 0, "-n", 8, "--print-ids", "--tokens", "1,2,3")
            result = support.run([LLAMAC_RUN, plan, *map(str, options)])
            self.assertEqual(result.returncode, 0, result.stderr)
            answers.add(result.stdout)
        self.assertEqual(len(answers), 1)


class Plans(RanksCase):
    def test_collectives_are_two_a_layer_and_two(self):
        name = "shapes of 1B"
        layers = MODELS[name][0].layers
        model, _ = self.model(name)
        text = self.path("plan.mlir")
        self.llamac("compile", model, "--ranks", 2, "--stop-after", "schedule", "-o", text)
        with open(text) as file:
            programs = file.read().split("plan.program @")[1:]
        self.assertGreater(len(programs), 1)
        for program in programs:
            self.assertEqual(len(re.findall("plan.launch @all_reduce", program)), 2 * layers + 1)
            self.assertEqual(len(re.findall("plan.launch @all_gather", program)), 1)

    def test_a_rank_holds_its_share(self):
        for name in MODELS:
            config = MODELS[name][0]
            model, _ = self.model(name)
            whole, *split = (
                json.loads(self.llamac("plan", model, "--json", "--ranks", ranks).stdout)["memory"] for ranks in RANKS
            )
            norms = 4 * config.dim * (2 * config.layers + 1)
            for ranks, part in zip(RANKS[1:], split):
                with self.subTest(name, ranks=ranks):
                    copies = max(ranks // config.kv_heads, 1)
                    # Each rank has one KV head where there are few.
                    self.assertEqual(part["kv"] * ranks, whole["kv"] * copies)
                    if copies == 1:
                        share = whole["weights"] / ranks
                        self.assertLessEqual(share, part["weights"])
                        self.assertLessEqual(part["weights"], 1.01 * share + norms)

    def test_weights_that_stay_in_the_checkpoint(self):
        name = "two KV heads"
        model, expected = self.model(name)
        tokens = self.random_tokens(name, 9)
        flags = ("--ranks", 2, "--reference-weights")
        self.check(self.logits(model, tokens, "cpu", *flags, *EXACT), expected(tokens), REFERENCE_TOLERANCE)


class Refusals(RanksCase):
    def refused(self, config, *flags, expect=UNSUPPORTED, family=families.LLAMA, type_name="BF16"):
        stored, _ = quantise(random_weights(config, "bf16", 1), type_name)
        model = write_gguf(self.path("refused.gguf"), config, stored, family=family)
        result = self.llamac("compile", model, "-o", self.path("refused.plan"), *flags, expect=expect)
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        return result.stderr

    def test_splits_that_cannot_be(self):
        usual = Config(256, 2, 8, 4, vocab=512)
        for ranks, config, type_name, error in (
            (3, usual, "BF16", "4 KV heads cannot be partitioned over 3 ranks; expected 1, 2, 4, 8 ranks, got 3"),
            (2, Config(96, 2, 3, 3, vocab=512), "BF16", "3 KV heads cannot be partitioned over 2 ranks"),
            (2, Config(256, 2, 8, 4, vocab=511), "BF16", "tok_embeddings: 511 rows cannot be partitioned over 2 ranks"),
            # 704 features are 22 blocks of 32.
            (4, usual, "Q8_0", "layers.0.feed_forward.w2: columns cannot be partitioned over 4 ranks: 176 of them"),
        ):
            with self.subTest(error):
                self.assertIn(error, self.refused(config, "--ranks", ranks, type_name=type_name))

    def test_what_one_rank_alone_can(self):
        model, _ = self.model("two KV heads")
        plan = self.path("cpu.plan")
        self.llamac("compile", model, "-o", plan, "--ranks", 2, "-c", 64)
        requests = self.path("requests.jsonl")
        with open(requests, "w") as file:
            file.write('{"tokens": [1, 2, 3], "max_tokens": 1}\n')
        files = ("--prompts", requests, "-o", self.path("answers"), "--prefix-cache", self.path("prefixes"))
        result = support.run([LLAMAC_RUN, "generate", plan, *files])
        self.assertEqual(result.returncode, USAGE, result.stderr)
        self.assertIn("expected a plan for one rank", result.stderr)

    def test_sums_that_are_not_reproducible(self):
        usual = Config(256, 2, 8, 4, vocab=512)
        for ranks, config, type_name, error in (
            (3, usual, "BF16", "8 leaves cannot be partitioned over 3 ranks; expected 1, 2, 4, 8 ranks, got 3"),
            # 704 features are 22 blocks of 32.
            (1, usual, "Q8_0", "layers.0.feed_forward.w2: expected a multiple of 256 columns, 8 leaves of 32, got 704"),
        ):
            with self.subTest(error):
                flags = ("--ranks", ranks, "--reproducible-ranks")
                self.assertIn(error, self.refused(config, *flags, type_name=type_name))
        for target in ("cuda", "sim", "reference"):
            with self.subTest(target):
                flags = ("--reproducible-ranks", "--target", target, "--tokens", 1, "-o", self.path("none.npy"))
                error = self.llamac("logits", self.path("refused.gguf"), *flags, expect=UNSUPPORTED).stderr
                self.assertIn(f"--reproducible-ranks: expected --target cpu, whose kernels sum by leaves, got {target}", error)

    def test_numbers_that_cannot_be(self):
        config = Config(256, 2, 8, 4, vocab=512)
        for ranks in (0, 65, -1, "two"):
            with self.subTest(ranks=ranks):
                self.assertIn("--ranks: expected", self.refused(config, "--ranks", ranks, expect=USAGE))


if __name__ == "__main__":
    unittest.main(verbosity=2)
