# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command line as scripts see it: usage errors, what is on stdout, and that
the text, the ids and the probabilities of a real model fit together."""

import json
import os
import re
import unittest

import support

support.require("numpy", "gguf", "safetensors")

import numpy as np

from llama_numpy import Config
from make_model import random_weights, write_huggingface
from support import LLAMAC, LLAMAC_RUN, UNSUPPORTED, USAGE

CONFIG = Config(64, 2, 4, 2, vocab=499)
PROMPT = "The capital of France is"
GREEDY = ("--temp", "0")


class Usage(support.TestCase):
    """Exit code 2, a short message, nothing on stdout."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.model = write_huggingface(cls.path("model"), CONFIG, random_weights(CONFIG))

    def refuse(self, *args, mentions=()):
        result = self.llamac(*args, expect=USAGE)
        self.assertEqual(result.stdout, "")
        self.assertIn(len(result.stderr.splitlines()), (1, 2), result.stderr)
        for text in mentions:
            self.assertIn(text, result.stderr)

    def test_no_or_unknown_command(self):
        self.refuse("frobnicate", mentions=["frobnicate"])
        self.assertEqual(support.run([LLAMAC]).returncode, USAGE)
        self.assertEqual(support.run([LLAMAC_RUN]).returncode, USAGE)

    def test_help_and_version_are_no_errors(self):
        for args in (["--help"], ["--version"], ["compile", "--help"], ["run", "--help"]):
            self.assertNotEqual(self.llamac(*args).stdout, "")

    def test_unknown_and_missing_arguments(self):
        self.refuse("compile", self.model, "-o", self.path("x.plan"), "--fast", mentions=["--fast"])
        self.refuse("compile", self.model)
        self.refuse("compile", "-o", self.path("x.plan"))
        self.refuse("run")
        self.refuse("logits", self.model, "-o", self.path("x.npy"))

    def test_values_out_of_range(self):
        x = self.path("x.plan")
        for args in [
            ("compile", self.model, "-o", x, "--weights", "q3"),
            ("compile", self.model, "-o", x, "-c", "-5"),
            ("compile", self.model, "-o", x, "-c", "many"),
            ("run", self.model, "--tokens", "1", "--temp", "-1"),
            ("run", self.model, "--tokens", "1", "--temp", "nan"),
            ("run", self.model, "--tokens", "1", "--top-p", "1.5"),
            ("run", self.model, "--tokens", "1", "--top-k", "-3"),
            ("run", self.model, "--tokens", "1", "-n", "few"),
            ("run", self.model, "--tokens", "1,two"),
            ("run", self.model, "--tokens", "499"),
            ("run", self.model, "--tokens", "-1"),
            ("run", self.model, "--tokens", "99999999999999999999"),
            ("run", self.model, "--tokens", ""),
            ("run", self.model, "--tokens", "1", "-p", "text"),
            ("logits", self.model, "--tokens", "1,499", "-o", self.path("x.npy")),
        ]:
            with self.subTest(" ".join(args[2:])):
                self.refuse(*args)

    def test_an_unknown_target_is_named(self):
        args = ("compile", self.model, "-o", self.path("x.plan"), "--target", "tpu")
        self.assertIn("tpu", self.llamac(*args, expect=UNSUPPORTED).stderr)

    def test_a_model_that_cuda_kernels_do_not_take_is_refused(self):
        config = Config(576, 1, 72, 1, vocab=64)
        model = write_huggingface(self.path("heads"), config, random_weights(config))
        result = self.llamac("run", model, "-p", "a", "--target", "cuda", expect=UNSUPPORTED)
        self.assertIn("query heads of a kv head: expected at most 64, got 72", result.stderr)

    def test_a_prompt_longer_than_the_context_is_refused_with_both_numbers(self):
        plan = self.path("short.plan")
        self.llamac("compile", self.model, "-o", plan, "-c", "16")
        prompt = ("--tokens", ",".join(map(str, range(23))), "-n", "1", "--print-ids")
        result = self.llamac("run", plan, *prompt, expect=USAGE)
        self.assertEqual(result.stdout, "")
        self.assertRegex(result.stderr, r"\b23\b")
        self.assertRegex(result.stderr, r"\b16\b")
        result = support.run([LLAMAC_RUN, plan, *prompt])
        self.assertEqual(result.returncode, USAGE, result.stderr)

    def test_text_without_a_tokenizer(self):
        result = support.run([LLAMAC, "run", self.model, "-p", "hello"], cache=self.cache)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("tokenizer", result.stderr)
        ids = self.llamac("run", self.model, "--tokens", "1,2", "-n", "3", *GREEDY, "--print-ids")
        self.assertRegex(ids.stdout, r"^\d+ \d+ \d+\n$")


class RealModel(support.TestCase):
    """SmolLM2-135M-Instruct."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.model = support.require_model("smollm2.gguf")
        cls.plan = cls.path("smollm2.plan")
        support.run([LLAMAC, "compile", cls.model, "-o", cls.plan], cache=cls.cache, check=True)

    def ids(self, text, *options):
        return [int(x) for x in self.llamac("tokenize", self.model, *options, text).stdout.split()]

    def generate(self, *options):
        return self.llamac("run", self.plan, "-p", PROMPT, "-n", 24, *options).stdout

    def test_the_capital_of_france(self):
        self.assertIn(" Paris", self.generate(*GREEDY))

    def test_the_small_binary_gives_the_same(self):
        args = [LLAMAC_RUN, self.plan, "-p", PROMPT, "-n", "24", *GREEDY]
        self.assertEqual(support.run(args, check=True).stdout, self.generate(*GREEDY))

    def test_ids_are_the_text(self):
        printed = self.generate(*GREEDY, "--print-ids")
        self.assertRegex(printed, r"^(\d+ )*\d+\n$")
        self.assertLessEqual(len(printed.split()), 24)
        decoded = self.llamac("tokenize", self.model, "--decode", ",".join(printed.split())).stdout
        self.assertEqual(decoded.rstrip("\n"), self.generate(*GREEDY).rstrip("\n"))

    def test_a_prompt_of_ids_is_the_prompt_of_text(self):
        ids = ",".join(map(str, self.ids(PROMPT)))
        result = self.llamac("run", self.plan, "--tokens", ids, "-n", 24, *GREEDY)
        self.assertEqual(result.stdout, self.generate(*GREEDY))

    def test_greedy_takes_the_reference_targets_likeliest_token(self):
        prompt = self.ids(PROMPT)
        generated = [int(x) for x in self.generate(*GREEDY, "--print-ids").split()]
        logits = self.logits(self.model, prompt + generated, "reference")
        for i, token in enumerate(generated):
            row = logits[len(prompt) - 1 + i]
            # Rounding may decide between tokens that are all but equal.
            self.assertGreaterEqual(row[token], row.max() - 0.25, f"token {i}")

    def test_a_seed_repeats_its_samples(self):
        hot = ("--temp", "1.5", "--top-k", "50", "--top-p", "0.95")
        seven = self.generate(*hot, "-s", "7")
        self.assertEqual(seven, self.generate(*hot, "-s", "7"))
        others = {self.generate(*hot, "-s", str(seed)) for seed in range(8, 12)}
        self.assertGreater(len(others | {seven}), 1)

    def test_top_k_of_one_is_greedy(self):
        self.assertEqual(self.generate("--temp", "1", "--top-k", "1", "-s", "3"), self.generate(*GREEDY))

    def test_one_token(self):
        printed = self.llamac("run", self.plan, "-p", PROMPT, "-n", 1, *GREEDY, "--print-ids").stdout
        self.assertEqual(printed.split(), self.generate(*GREEDY, "--print-ids").split()[:1])

    def test_special_tokens_only_where_asked_for(self):
        self.assertEqual(self.ids("<|im_start|>", "--special"), [1])
        self.assertGreater(len(self.ids("<|im_start|>")), 1)

    def test_text_comes_back_from_its_ids(self):
        text = "naïve café — 日本語 🙂\n\tdef f(x): return x**2  # 3.14"
        ids = ",".join(map(str, self.ids(text)))
        self.assertEqual(self.llamac("tokenize", self.model, "--decode", ids).stdout.rstrip("\n"), text)

    def test_bench_of_kernels_counts_what_they_read(self):
        args = ("--prompt-tokens", 20, "--gen-tokens", 3, "-t", 2, "--kernels", "--json")
        lines = self.llamac("bench", self.plan, *args).stdout.splitlines()
        prefill, decode = map(json.loads, lines)
        self.assertEqual(prefill["work"], "prefill of 1 x 20 tokens")
        self.assertEqual(decode["work"], "3 steps of 1 sequences after 20 tokens")
        for work in (prefill, decode):
            self.assertGreater(work["limits"]["bandwidth"], 0)
            self.assertGreater(work["limits"]["f32_operations"], 0)
            *kernels, total = work["kernels"]
            self.assertEqual(total["kernel"], "all")
            for key in ("launches", "seconds", "bytes", "operations"):
                self.assertAlmostEqual(sum(kernel[key] for kernel in kernels), total[key], delta=1e-6 * total[key])
        # Every step reads all matrices; they are most of the file.
        step = decode["kernels"][-1]["bytes"] / 3
        self.assertGreater(step, 0.95 * os.path.getsize(self.plan))
        self.assertLess(step, 1.05 * os.path.getsize(self.plan))

    def test_bench_prints_one_object(self):
        args = ("--prompt-tokens", 32, "--gen-tokens", 4, "-t", 2, "--json")
        found = json.loads(self.llamac("bench", self.plan, *args).stdout)
        self.assertGreater(found["prefill_tok_s"], 0)
        self.assertGreater(found["decode_tok_s"], 0)

    def test_inspect_names_the_shapes(self):
        for what in (self.model, self.plan):
            found = self.llamac("inspect", what, "--json").stdout
            json.loads(found)
            self.assertIn("49152", found)
            self.assertIn("576", found)
            self.assertIn("576", self.llamac("inspect", what).stdout)

    def test_perplexity_is_that_of_the_logits(self):
        text = self.path("text.txt")
        with open(text, "w") as f:
            f.write("The lamp burned seven litres a night, whether the keeper ate or not. " * 4)
        with open(text) as f:
            tokens = self.ids(f.read())
        logits = self.logits(self.model, tokens, "cpu").astype(np.float64)
        logits -= logits.max(axis=1, keepdims=True)
        followed = logits[np.arange(len(tokens) - 1), tokens[1:]]
        log_p = followed - np.log(np.exp(logits[:-1]).sum(axis=1))
        expected = np.exp(-log_p.mean())
        printed = self.llamac("perplexity", self.plan, text).stdout
        numbers = [float(x) for x in re.findall(r"\d+\.\d+", printed)]
        self.assertTrue(
            any(abs(x / expected - 1) < 0.01 for x in numbers), f"expected {expected:.4f}, got: {printed}"
        )


if __name__ == "__main__":
    unittest.main(verbosity=2)
