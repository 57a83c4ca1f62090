# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Drafts change how many steps an answer of the real model takes, and nothing else."""

import json
import os
import unittest

import serving
import support

from llama_numpy import Config
from make_model import random_weights, write_meta

REPEATING = [
    "Repeat this text word for word: The quick brown fox jumps over the lazy dog. The dog sleeps on.",
    "a b c d e f g a b c d e f g a b c d",
    "def area(width, height):\n    return width * height\n\n# The same function again:\ndef area(",
    "1, 2, 3, 4, 1, 2, 3, 4, 1, 2,",
]
# Requests have these; each asks for tokens of another kind.
OPTIONS = [
    {"temperature": 0},
    {"temperature": 0.8, "top_p": 0.9, "seed": 5},
    {"temperature": 0, "logprobs": 2, "frequency_penalty": 0.3},
    {"temperature": 1, "seed": 6, "repetition_penalty": 1.1, "n": 2},
    {"temperature": 0, "regex": "([a-d] ){4,40}"},
    {"temperature": 0.5, "seed": 7, "stop": ["4", "lazy"], "top_k": 20},
]


class Answers(support.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.plan = serving.smollm2_plan(cls)

    def answers(self, speculative):
        """The answers by id and number without what tells the requests apart,
        and the summary."""
        prompts, out = self.path("requests.jsonl"), self.path(f"{speculative}.jsonl")
        with open(prompts, "w", encoding="utf-8") as f:
            for i, prompt in enumerate(REPEATING):
                for k, options in enumerate(OPTIONS):
                    request = {"id": f"{i}.{k}", "prompt": prompt, "max_tokens": 48, "speculative": speculative}
                    f.write(json.dumps(request | options) + "\n")
        flags = ("--prompts", prompts, "-o", out, "--parallel", 3, "--json")
        summary = json.loads(self.llamac("generate", self.plan, *flags).stdout)
        with open(out, encoding="utf-8") as f:
            lines = [json.loads(line) for line in f]
        for line in lines:
            del line["request"], line["cached_tokens"]
        return {(line["id"], line.get("index")): line for line in lines}, summary

    def test_are_the_same_with_any_number_of_drafts(self):
        expected, plain = self.answers(0)
        self.assertEqual(len(expected), len(REPEATING) * (len(OPTIONS) + 1))
        self.assertEqual((plain["errors"], plain["draft_tokens"]), (0, 0))
        for speculative in (-1, 1, 16):
            with self.subTest(speculative=speculative):
                answers, summary = self.answers(speculative)
                self.assertEqual(answers, expected)
                self.assertEqual(sum(summary["accepted_by_place"]), summary["accepted_tokens"])
                if speculative > 0:  # With -1 it depends on the machine.
                    self.assertGreater(summary["accepted_tokens"], 40)
                    self.assertLess(summary["steps"], plain["steps"])

    def test_run_says_what_was_accepted(self):
        flags = ("run", self.plan, "--raw", "-p", REPEATING[1], "-n", 40, "--temp", 0, "--speculative")
        self.assertNotIn("drafts", self.llamac(*flags, 0).stderr)
        self.assertRegex(self.llamac(*flags, 6).stderr, r"drafts: \d+ of \d+ tokens accepted")
        refused = self.llamac(*flags, 17, expect=support.USAGE)
        self.assertIn("expected -2 to 16, got 17", refused.stderr)


class DraftModel(support.TestCase):
    """The real model drafts for itself: all that it drafts is right."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.plan = serving.smollm2_plan(cls)

    def run_json(self, *flags, prompt="The harbour was"):
        flags = ("--raw", "-p", prompt, "-n", 40, "--json", "-q", *flags)
        return json.loads(self.llamac("run", self.plan, *flags).stdout)

    def test_answers_are_the_same_and_drafts_accepted(self):
        for sampling in (("--temp", 0), ("--temp", 0.9, "--top-p", 0.9, "-s", 3), ("--temp", 0.7, "--top-k", 9, "-s", 4)):
            with self.subTest(sampling=sampling):
                plain = self.run_json(*sampling)
                drafted = self.run_json(*sampling, "--draft", self.plan, "--speculative", 6)
                self.assertEqual(drafted["text"], plain["text"])
                self.assertEqual((plain["draft_tokens"], plain["accepted_tokens"]), (0, 0))
                self.assertGreater(drafted["draft_tokens"], 25)
                # A look-up that seems better may be wrong.
                self.assertGreater(drafted["accepted_tokens"], 0.8 * drafted["draft_tokens"])
                self.assertEqual(self.run_json(*sampling, "--draft", self.plan)["text"], plain["text"])

    def test_a_long_prompt_is_drafted_for_once_the_draft_model_has_run_it(self):
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "data", "reading.txt"), encoding="utf-8") as f:
            prompt = f.read(4500)
        plain = self.run_json("--temp", 0, prompt=prompt)
        self.assertGreater(plain["prompt_tokens"], 600)
        drafted = self.run_json("--temp", 0, "--draft", self.plan, "--speculative", 4, prompt=prompt)
        self.assertEqual(drafted["text"], plain["text"])
        self.assertGreater(drafted["accepted_tokens"], 15)

    def test_until_then_look_up_drafts_for_it(self):
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "data", "reading.txt"), encoding="utf-8") as f:
            prompt = f.read(7000)
        # So short a repetition that the draft model seems better.
        prompt += "\nList: 1, 2, 3, 4, 5, 6, 7, 8, 9.\nAlso: 1, 2,"
        flags = ("--temp", 0, "--draft", self.plan, "--speculative", 2, "-n", 3, "--json", "-q")
        drafted = json.loads(self.llamac("run", self.plan, "--raw", "-p", prompt, *flags).stdout)
        # In the two steps of the answer it runs 512 tokens each.
        self.assertGreater(drafted["prompt_tokens"], 1024)
        self.assertGreater(drafted["draft_tokens"], 0)

    def test_a_draft_that_does_not_fit_is_refused_in_one_line(self):
        config = Config(64, 2, 4, 2, vocab=261)
        small, short = self.path("small"), self.path("short.plan")
        write_meta(small, config, random_weights(config, "bf16", 4), "bf16")
        self.llamac("compile", support.require_model("smollm2.gguf"), "-c", 512, "-o", short, "-q")
        for draft, words in (
            (small, "expected the tokenizer of"),
            (short, "expected a context of at least 8192 tokens"),
            (self.path("none.plan"), "none.plan"),
        ):
            with self.subTest(draft=draft):
                result = support.run([support.LLAMAC, "run", self.plan, "-p", "Hi", "-n", "4", "--draft", draft])
                self.assertIn(result.returncode, (support.USAGE, support.BAD_FILE, support.BAD_PLAN), result.stderr)
                errors = [line for line in result.stderr.splitlines() if "error" in line]
                self.assertEqual(len(errors), 1, result.stderr)
                self.assertIn(words, errors[0])

    def test_only_verbs_that_answer_have_a_draft_model(self):
        flags = ("--tokens", "1,2", "-o", self.path("logits.npy"), "--draft", self.plan)
        self.assertIn("--draft", self.llamac("logits", self.plan, *flags, expect=support.USAGE).stderr)
        flags = ("--target", "reference", "-p", "Hi", "-n", "1", "--draft", self.plan)
        refused = self.llamac("run", support.require_model("smollm2.gguf"), *flags, expect=support.USAGE)
        self.assertIn("--draft: expected a target that has kernels", refused.stderr)
        for verb in ("run", "chat", "generate", "bench", "serve"):
            self.assertRegex(self.llamac(verb, "--help").stdout, r"--draft,? .*MODEL")


class Served(serving.ServedTestCase):
    def test_each_request_has_its_own(self):
        body = {"prompt": REPEATING[3], "max_tokens": 40, "temperature": 0}
        texts = [
            self.server.post("/v1/completions", body | {"speculative": speculative})["choices"][0]["text"]
            for speculative in (0, 8, -1)
        ]
        self.assertEqual(texts, texts[:1] * 3)
        figures = self.server.request("GET", "/metrics")[2].decode()
        self.assertRegex(figures, r"(?m)^vllm:spec_decode_num_accepted_tokens_total{[^}]*} [1-9]")
        self.assertRegex(figures, r'(?m)^vllm:spec_decode_num_accepted_tokens_per_pos_total{[^}]*position="0"} [1-9]')
        error = self.server.post("/v1/completions", body | {"speculative": 99}, expect=400)["error"]
        self.assertEqual(error["param"], "speculative")


if __name__ == "__main__":
    unittest.main(verbosity=2)
