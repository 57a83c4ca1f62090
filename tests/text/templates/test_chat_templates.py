# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""test_chat_templates.py PART: every rendering is what Python's jinja2 makes of
the same template, and where jinja2 fails, so do we.

In the default tier there are 500 random expressions, 300 random templates and
300 composed ones; in the exhaustive tier 20,000, 10,000 and all 2,250.
"""

import ast
import glob
import os
import re
import unittest

import jinja_oracle

import support
from composed_templates import templates
from conversations import CASES
from random_templates import VARIABLES, Expressions, Statements

HERE = os.path.dirname(os.path.abspath(__file__))

# Python has integers of any size and shows the addresses of functions.
OTHERWISE = re.compile("more than 64 bits|a (generator|method|function) has no text")


def with_conversations(named, cases=CASES):
    return [dict(case, template=text, name=f"{name}: {case['name']}") for name, text in named for case in cases]


class Comparison(unittest.TestCase):
    def assert_equal(self, cases, least=0.5, tolerated=0.0):
        """At least the share `least` of `cases` renders without an error, and
        all are as jinja2's, but for a share `tolerated` of OTHERWISE."""
        results = jinja_oracle.actual(cases)
        rendered = sum("text" in result for result in results)
        self.assertGreaterEqual(rendered, least * len(cases))
        otherwise = 0
        for case, result in zip(cases, results):
            wrong = jinja_oracle.difference(case, result)
            if wrong and OTHERWISE.search(result.get("error", "")):
                otherwise += 1
            elif wrong:
                self.fail(f"{case['name']} {case['template'][-1500:]!r}: {wrong}")
        self.assertLessEqual(otherwise, tolerated * len(cases))


class Written(Comparison):
    """templates/, in the styles of models, with all conversations."""

    def test_all(self):
        named = []
        for path in sorted(glob.glob(os.path.join(HERE, "templates", "*.jinja"))):
            with open(path, newline="") as f:
                named.append((os.path.basename(path), f.read()))
        self.assertGreater(len(named), 10)
        self.assert_equal(with_conversations(named), least=0.8)


class Composed(Comparison):
    def test_all(self):
        named = list(templates(support.by_tier(300, 10_000)))
        self.assertGreaterEqual(len(named), 300)
        names = ("system and turns", "two calls", "an answer", "parts", "documents and tools")
        some = [case for case in CASES if case["name"] in names]
        self.assert_equal(with_conversations(named, support.by_tier(some, CASES)))


class Random(Comparison):
    def test_expressions(self):
        cases = [
            {"name": str(seed), "template": f"{{{{ {Expressions(seed).expression()} }}}}", "variables": VARIABLES}
            for seed in range(support.by_tier(500, 20_000))
        ]
        self.assert_equal(cases, least=0.4, tolerated=0.02)

    def test_statements(self):
        cases = [
            {"name": str(seed), "template": Statements(seed).template(), "variables": VARIABLES}
            for seed in range(support.by_tier(300, 10_000))
        ]
        self.assert_equal(cases, least=0.3)


class Packages(Comparison):
    """The templates of the packages that scripts/setup.sh fetches."""

    def test_gguf_of_smollm2(self):
        support.require("gguf")
        import gguf

        field = gguf.GGUFReader(support.require_model("smollm2.gguf")).fields["tokenizer.chat_template"]
        text = bytes(field.parts[field.data[0]]).decode()
        self.assert_equal(with_conversations([("smollm2", text)]))

    def test_llama_cpp(self):
        folder = support.require_model("chat-templates")
        named = []
        for path in sorted(glob.glob(os.path.join(folder, "*.jinja"))):
            with open(path, newline="") as f:
                named.append((os.path.basename(path), f.read()))
        with open(os.path.join(folder, "llama_chat_format.py")) as f:
            for node in ast.walk(ast.parse(f.read())):
                if isinstance(node, ast.Constant) and isinstance(node.value, str) and "{%" in node.value:
                    named.append((f"llama_chat_format.py:{node.lineno}", node.value))
        self.assertGreater(len(named), 60)
        self.assert_equal(with_conversations(named), least=0.7)


class Oracle(unittest.TestCase):
    def test_finds_a_wrong_text_and_a_missing_error(self):
        right = {"template": "{{ 1 + 1 }}"}
        wrong = {"template": "{{ raise_exception('No.') }}"}
        self.assertIsNone(jinja_oracle.difference(right, {"text": "2"}))
        self.assertIsNotNone(jinja_oracle.difference(right, {"text": "3"}))
        self.assertIsNotNone(jinja_oracle.difference(right, {"error": "x"}))
        self.assertIsNotNone(jinja_oracle.difference(wrong, {"text": ""}))
        self.assertIsNotNone(jinja_oracle.difference(wrong, {"error": "chat template, line 1: Yes."}))
        self.assertIsNone(jinja_oracle.difference(wrong, {"error": "chat template, line 1: No."}))


if __name__ == "__main__":
    unittest.main()
