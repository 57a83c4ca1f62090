# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Answers of a real model by grammars: JSON by random schemas, of which Python's
jsonschema is the judge, and text by a regex and by rules."""

import json
import random
import re
import unittest

import support

support.require("jsonschema")

import jsonschema

from json_schemas import root_schema
from support import BAD_FILE, LLAMAC, UNSUPPORTED, USAGE, by_tier

PROMPT = "A JSON document, as short as can be:\n"


class Grammars(support.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.plan = cls.path("smollm2.plan")
        support.run(
            [LLAMAC, "compile", support.require_model("smollm2.gguf"), "-o", cls.plan], cache=cls.cache, check=True
        )
        options = ["run", cls.plan, "--raw", "-p", "a", "-n", "1", "--regex", "a"]
        if support.run([LLAMAC, *options]).returncode == UNSUPPORTED:
            support.skip("llamac was built without XGrammar")

    def answer(self, *options, prompt=PROMPT, tokens=400):
        """The text, and whether it was finished."""
        result = self.llamac("run", self.plan, "--raw", "-t", 1, "-p", prompt, "-n", tokens, "--json", *options)
        report = json.loads(result.stdout)
        return report["text"], report["stop"] == "stop id"

    def test_finished_answers_are_valid_by_their_schemas(self):
        finished = 0
        count = by_tier(6, 200)
        for seed in range(count):
            schema = root_schema(random.Random(seed))
            # The penalty keeps so small a model from repeating itself for ever.
            options = ("-s", seed, "--temp", (0, 0.8, 1.3)[seed % 3], "--frequency-penalty", 0.3)
            text, ended = self.answer("--json-schema", json.dumps(schema), *options)
            if not ended:
                continue
            finished += 1
            with self.subTest(seed=seed, schema=schema, text=text):
                jsonschema.Draft202012Validator(schema).validate(json.loads(text))
        # The rest is at its limit of tokens.
        self.assertGreater(finished, count * 0.6)

    def test_any_object(self):
        for seed in range(3):
            text, ended = self.answer("--json-object", "--temp", 1, "-s", seed)
            if ended:
                self.assertIsInstance(json.loads(text), dict)

    def test_a_schema_may_be_in_a_file(self):
        with open(self.path("schema.json"), "w", encoding="utf-8") as file:
            json.dump({"type": "array", "items": {"enum": ["heads", "tails"]}, "minItems": 2, "maxItems": 3}, file)
        text, ended = self.answer("--json-schema", self.path("schema.json"))
        self.assertTrue(ended)
        self.assertTrue(set(json.loads(text)) <= {"heads", "tails"})

    def test_a_regex_and_rules(self):
        text, ended = self.answer("--regex", r"\d{4}-\d{2}-\d{2}", prompt="The date is")
        self.assertTrue(ended)
        self.assertRegex(text, r"\A\d{4}-\d{2}-\d{2}\Z")
        with open(self.path("sum.gbnf"), "w", encoding="utf-8") as file:
            file.write('root ::= value ("+" value){1,4}\nvalue ::= [0-9]{1,3} | "(" root ")"\n')
        for seed in range(3):
            text, ended = self.answer("--grammar", self.path("sum.gbnf"), "--temp", 1, "-s", seed, prompt="Sum: ")
            if ended:
                self.assertIsNotNone(re.fullmatch(r"[0-9+()]+", text))
                eval(re.sub(r"0+([0-9])", r"\1", text))  # Brackets match.

    def test_a_grammar_goes_with_the_other_options(self):
        # A ban on one of two answers, and penalties, leave the other.
        with open(self.path("yes.gbnf"), "w", encoding="utf-8") as file:
            file.write('root ::= "yes" | "no"\n')
        first = self.llamac("tokenize", support.require_model("smollm2.gguf"), "yes").stdout.split()
        bias = [f"--logit-bias={id}=-100" for id in {*first, *self.prefixes("yes")}]
        text, ended = self.answer("--grammar", self.path("yes.gbnf"), *bias, "--repeat-penalty", 1.2)
        self.assertEqual((text, ended), ("no", True))

    def prefixes(self, word):
        model = support.require_model("smollm2.gguf")
        ids = []
        for end in range(1, len(word) + 1):
            ids += self.llamac("tokenize", model, word[:end]).stdout.split()[:1]
        return ids

    def test_errors_are_one_line(self):
        for name, text in (("wrong.gbnf", "root ::= ("), ("wrong.json", '["a"]')):
            with open(self.path(name), "w", encoding="utf-8") as file:
                file.write(text)
        for options, code, mentions in (
            (("--json-schema", '{"not": {}}'), USAGE, "#: not is not supported"),
            (("--json-schema", self.path("none.json")), BAD_FILE, "none.json"),
            (("--json-schema", self.path("wrong.json")), BAD_FILE, "wrong.json: "),
            (("--grammar", self.path("wrong.gbnf")), BAD_FILE, "wrong.gbnf: "),
            (("--regex", "(a"), USAGE, "regex: "),
            (("--regex", "a", "--json-object"), USAGE, "got several"),
            (("--json-object", "--ignore-eos"), USAGE, "stop ids"),
        ):
            result = self.llamac("run", self.plan, "--raw", "-q", "-p", "a", "-n", 3, *options, expect=code)
            self.assertEqual(result.stdout, "")
            self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
            self.assertIn(mentions, result.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
