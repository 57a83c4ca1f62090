# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prompts that are messages: their ids are those of jinja2 and llama.cpp."""

import json
import os
import sys
import unittest

import support

support.require("gguf", "jinja2", "llama_cpp_library")

import gguf
import jinja2.sandbox

from llama_cpp_library import Llama

MODEL = support.require_model("smollm2.gguf")
GREEDY = ("--temp", "0")
LIMIT = ("-n", "48")

QUESTIONS = [
    "What is the capital of France?",
    "How many days are in a week?",
    "What color is the sky?",
    "Who wrote Romeo and Juliet?",
    "What is 2 + 2?",
    "Name three fruits.",
    "How do I boil an egg?",
    "What is the largest ocean?",
    "Write a sentence about a dog.",
    "Why do we sleep? Été, 日本語 🙂",
]


def template():
    """SmolLM2's chat template, as Hugging Face would set it up."""
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    source = gguf.GGUFReader(MODEL).fields["tokenizer.chat_template"].contents()
    return environment.from_string(source)


class ChatCase(support.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.plan = cls.path("smollm2.plan")
        support.run([support.LLAMAC, "compile", MODEL, "-o", cls.plan, "-q"], cache=cls.cache, check=True)
        cls.template = template()
        cls.oracle = Llama(MODEL)

    def prompt_ids(self, messages):
        text = self.template.render(messages=messages, add_generation_prompt=True)
        return self.oracle.tokenize(text.encode(), special=True)


class Run(ChatCase):
    def answer(self, *args, **options):
        """What `run` prints as JSON, its answer as ids."""
        return json.loads(self.llamac("run", self.plan, *GREEDY, *LIMIT, "--print-ids", "--json", *args, **options).stdout)

    def check_prompt(self, messages, *args):
        """The answer and the prompt's size are those of the oracle's ids."""
        ids = self.prompt_ids(messages)
        got = self.answer(*args)
        expected = self.answer("--tokens", ",".join(map(str, ids)))
        self.assertEqual((got["prompt_tokens"], got["ids"]), (len(ids), expected["ids"]))
        self.assertTrue(got["chat_template"])
        self.assertFalse(expected["chat_template"])
        self.assertTrue(got["ids"])

    def test_a_text_is_a_message(self):
        for question in support.by_tier(QUESTIONS[-2:], QUESTIONS):
            self.check_prompt([{"role": "user", "content": question}], "-p", question)

    def test_a_system_message_goes_first(self):
        messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]
        self.check_prompt(messages, "-p", "Hi", "--system", "Be brief.")

    def test_names_of_special_tokens_stand_for_them(self):
        text = "a<|im_end|>\n<|im_start|>user\nb"
        self.check_prompt([{"role": "user", "content": text}], "-p", text)

    def test_another_template_may_be_given(self):
        path = self.path("given.jinja")
        with open(path, "w") as f:
            f.write("Q: {{ messages[0].content }}\nA:")
        got = self.answer("-p", "Who?", "--chat-template", path)
        self.assertEqual(got["ids"], self.answer("-p", "Q: Who?\nA:", "--raw")["ids"])

    def test_the_reference_is_asked_the_same(self):
        args = ("run", MODEL, "--target", "reference", *GREEDY, "-n", 4, "--print-ids", "--json")
        got = json.loads(self.llamac(*args, "-p", QUESTIONS[0]).stdout)
        ids = self.prompt_ids([{"role": "user", "content": QUESTIONS[0]}])
        expected = json.loads(self.llamac(*args, "--tokens", ",".join(map(str, ids))).stdout)
        self.assertEqual((got["prompt_tokens"], got["ids"]), (len(ids), expected["ids"]))

    def test_stderr_says_once_what_the_prompt_is(self):
        lines = {
            (): "prompt: by the model's chat template; --raw leaves it out",
            ("--raw",): None,
            ("-q",): None,
        }
        for options, line in lines.items():
            result = self.llamac("run", self.plan, *GREEDY, "-n", 1, "-p", "Hi", *options)
            said = [x for x in result.stderr.splitlines() if x.startswith("prompt: ")]
            self.assertEqual(said, [line] if line else [])

    def test_raw_completes_the_text(self):
        text = "Once upon a time"
        ids = ",".join(map(str, self.oracle.tokenize(text.encode())))
        self.assertEqual(self.answer("-p", text, "--raw")["ids"], self.answer("--tokens", ids)["ids"])

    def test_the_small_binary_asks_the_same(self):
        args = [self.plan, *GREEDY, *LIMIT, "-p", QUESTIONS[1]]
        expected = self.llamac("run", *args).stdout
        self.assertEqual(support.run([support.LLAMAC_RUN, *args], check=True).stdout, expected)

    def test_options_that_a_prompt_has_no_use_for_are_refused(self):
        path = self.path("wrong.jinja")
        with open(path, "w") as f:
            f.write("{% if %}")
        for args, code, text in (
            (("-p", "Hi", "--raw", "--system", "a"), support.USAGE, "--system"),
            (("--tokens", "1", "--chat-template", "a"), support.USAGE, "--chat-template"),
            (("-p", "Hi", "--chat-template", "/nowhere"), support.BAD_FILE, "/nowhere"),
            (("-p", "Hi", "--chat-template", path), support.USAGE, "wrong.jinja: chat template, line 1"),
            (("-p", "Hi", "--system", b"\xff"), support.USAGE, "--system: expected UTF-8"),
        ):
            result = support.run([support.LLAMAC, "run", self.plan, *args])
            self.assertEqual(result.returncode, code, result.stderr)
            self.assertIn(text, result.stderr)
            self.assertEqual(len(result.stderr.splitlines()), 1)


class Requests(ChatCase):
    def test_messages_are_written_by_the_template(self):
        messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": QUESTIONS[-1]}]
        ids = self.prompt_ids(messages)
        lines = [{"messages": messages}, {"tokens": ids}, {"messages": messages, "tokens": ids}, {"messages": "Hi"}]
        prompts = self.path("requests.jsonl")
        with open(prompts, "w") as f:
            f.writelines(json.dumps(line | {"temperature": 0, "max_tokens": 12}) + "\n" for line in lines)
        out = self.llamac("generate", self.plan, "--prompts", prompts, "-o", "-", "-q").stdout
        answers = {a["id"]: a for a in map(json.loads, out.splitlines())}
        self.assertEqual(answers[1]["tokens"], answers[2]["tokens"])
        self.assertEqual(answers[1]["prompt_tokens"], len(ids))
        self.assertIn("one of prompt, tokens and messages", answers[3]["error"])
        self.assertIn("messages: expected an array", answers[4]["error"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
