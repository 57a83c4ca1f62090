# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""test_chat_templates.py PART: every rendering is what Python's jinja2 makes of
the same template, and where jinja2 fails, so do we.

What no template of a model uses is an error that says so. In the default tier
there are 500 random expressions, 300 random templates and
300 composed ones; in the exhaustive tier 20,000, 10,000 and all 2,250.
"""

import ast
import glob
import os
import re
import sys
import unicodedata
import unittest

import jinja_oracle

import support
from composed_templates import templates
from conversations import CASES
from random_templates import VARIABLES, Expressions, Statements

HERE = os.path.dirname(os.path.abspath(__file__))

# Python has integers of any size, and much that no template of a model uses.
OTHERWISE = re.compile("more than 64 bits|not supported")


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
        self.assert_equal(cases, least=0.4, tolerated=0.04)

    def test_statements(self):
        cases = [
            {"name": str(seed), "template": Statements(seed).template(), "variables": VARIABLES}
            for seed in range(support.by_tier(300, 10_000))
        ]
        self.assert_equal(cases, least=0.3)


class Characters(Comparison):
    def test_case_is_that_of_python_or_refused(self):
        known = [chr(c) for c in range(sys.maxunicode + 1) if unicodedata.category(chr(c)) not in ("Cn", "Co", "Cs")]
        plain = [c for c in known if c != "Σ"]
        cased = [c for c in plain if len({c, c.upper(), c.lower(), c.title()}) > 1]
        cases = [
            {"name": "all", "template": "{{ x | upper }}{{ x | lower }}", "variables": {"x": "".join(plain)}},
            {"name": "trim", "template": "{% for c in x %}{{ (c ~ 'a' ~ c) | trim | length }}{% endfor %}",
             "variables": {"x": "".join(c for c in known if ord(c) < 0x3100)}},
            *({"name": hex(ord(c)), "template": "{{ x | capitalize }}{{ x | title }}", "variables": {"x": c + "B " + c}}
              for c in cased),
        ]
        self.assertGreater(len(cases), 2000)
        self.assert_equal(cases, least=0.95, tolerated=0.05)


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


class Refused(unittest.TestCase):
    """Features of jinja2 and Python beyond what is supported are refused by name
    when a template is read, also where it would not be reached."""

    def check(self, what, cases):
        """`cases` are pairs of a name and a text that uses it. Each is refused,
        but for those that are supported. Returns how many are refused."""
        cases = [{"name": name, "template": f"{{% if false %}}\n{text}{{% endif %}}"} for name, text in cases]
        refused = 0
        for case, result in zip(cases, jinja_oracle.actual(cases)):
            if "error" not in result:
                self.assertEqual(result["text"], "")
                continue
            self.assertIn(f"line 2: the {what} '{case['name']}'", result["error"])
            refused += 1
        return refused

    def test_filters_and_tests(self):
        environment = jinja_oracle.ENVIRONMENT
        filters = [(name, f"{{{{ x | {name} }}}}") for name in environment.filters]
        self.assertGreater(self.check("filter", filters), 20)
        mapped = [(name, f"{{{{ x | map('{name}') }}}}") for name in environment.filters]
        self.assertGreater(self.check("filter", mapped), 20)
        tests = [(name, f"{{{{ x | select('{name}', 1) }}}}") for name in environment.tests]
        self.assertGreater(self.check("test", tests), 15)

    def test_functions_and_tags(self):
        functions = [(name, f"{{{{ {name}() }}}}") for name in jinja_oracle.ENVIRONMENT.globals]
        self.assertEqual(self.check("function", functions), 4)
        tags = ["autoescape true", "block b", "call f()", "extends 'x'", "from 'x' import y", "import 'x' as y",
                "include 'x'", "print x", "raw", "with x = 1"]
        self.assertEqual(self.check("tag", [(tag.split()[0], f"{{% {tag} %}}") for tag in tags]), len(tags))

    def test_methods(self):
        names = {name for kind in (str, list, dict, tuple) for name in dir(kind) if not name.startswith("_")}
        self.assertGreater(self.check("method", [(name, f"{{{{ x.{name}() }}}}") for name in sorted(names)]), 30)

    def test_attributes(self):
        """An attribute that a value has in Python is not taken for undefined."""
        values = {"s": "a", "l": [1], "d": {"a": 1}, "t": (1,), "b": True, "i": 1, "f": 1.5, "n": None}
        cases = [
            {"name": f"{value}.{name}", "template": f"{{{{ {value}.{name} is defined }}}}", "variables": values}
            for value in values
            for name in [*dir(values[value]), "other"]
        ]
        for case, result in zip(cases, jinja_oracle.actual(cases)):
            if "not supported" not in result.get("error", ""):
                self.assertIsNone(jinja_oracle.difference(case, result), case["name"])


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
