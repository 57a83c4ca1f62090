# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which answers the grammars of JSON schemas allow: chosen ones, and random ones by
random schemas with keywords side by side. Python's jsonschema is the judge."""

import itertools
import json
import os
import random
import subprocess
import unittest

import support

support.require("jsonschema", "gguf", "numpy")

import jsonschema

import scripted_model
from serving import Server
from support import LLAMAC, by_tier

ANSWERS = os.path.join(os.path.dirname(os.path.dirname(support.LLAMAC)), "tests", "grammar-answers")
Validator = jsonschema.Draft202012Validator
# Random answers by each schema.
EACH = by_tier(2, 8)


def valid(schema, text):
    try:
        return Validator(schema, format_checker=Validator.FORMAT_CHECKER).is_valid(json.loads(text))
    except ValueError:
        return False


def follow(tasks):
    """For each (schema, answers, number of random ones) what the grammar says."""
    lines = [
        json.dumps({"schema": json.dumps(schema), "answers": answers, "random": count})
        for schema, answers, count in tasks
    ]
    run = subprocess.run([ANSWERS], input="\n".join(lines) + "\n", capture_output=True, text=True, check=True)
    results = [json.loads(line) for line in run.stdout.splitlines()]
    if any("XGrammar" in result.get("error", "") for result in results):
        support.skip("llamac was built without XGrammar")
    return results


def closed(properties, **more):
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
        **more,
    }


# Schemas with answers of which each must be allowed where it is valid, and else not.
CHOSEN = (
    ({"type": "string", "pattern": "\\S"}, ('"a b"', '" "', '"src/a.c"')),
    ({"type": "string", "pattern": "^Fifty"}, ('"Fifty-two"', '"x"')),
    ({"type": "string", "pattern": "b|^a$"}, ('"a"', '"xbx"', '"aa"')),
    ({"type": "string", "pattern": '"'}, ('""""', '"\\""', '"a"')),
    ({"type": "string", "pattern": "^\\s$"}, ('"\n"', '"\\n"', '" "')),
    ({"type": "string", "minLength": 2, "maxLength": 3}, ('"a"', '"ab"', '"é日x"', '"abcd"', '"a\\n"', '"a\n"')),
    ({"type": "string", "pattern": "^[a-z]+$", "maxLength": 3}, ('"abcdef"', '"abc"', '""')),
    ({"type": "string", "pattern": "^[a-z]*$", "minLength": 1, "allOf": [{"pattern": "q"}]}, ('"q"', '"x"', '"Q"')),
    ({"type": "string"}, ('"\\ud83d\\ude00"', '"\\u0041"', '"a\\/b"', '"a\tb"')),
    (closed({"x_a": {"type": "integer"}}, patternProperties={"^x_a$": {"maximum": 5}}), ('{"x_a": 7}', '{"x_a": 3}')),
    (
        {"type": "object", "properties": {"abc": {"type": "integer"}}, "propertyNames": {"maxLength": 2}},
        ('{"abc": 1}', "{}"),
    ),
    (
        {"patternProperties": {"^a": {"type": "integer"}, "b$": {"type": "number", "minimum": 3}},
         "type": "object", "additionalProperties": False},
        ('{"ab": 2}', '{"ab": 4}', '{"ac": 1}', '{"b": 2}', '{"b": 3.5}', '{"c": 1}'),
    ),
    (
        {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": {"type": "string"}},
        ('{"a": "x"}', '{"b": "x"}', '{"a": 1, "b": "y"}', '{"b": 1}', '{"\\u0061": "x"}'),
    ),
    (
        {"type": "object", "minProperties": 1, "maxProperties": 2, "properties": {"a": {}, "b": {}, "c": {}}},
        ("{}", '{"a": 1}', '{"a": 1, "c": 2}', '{"a": 1, "b": 1, "c": 2}'),
    ),
    (
        closed({"a": {"$ref": "#/$defs/a~1b"}, "e": {"$ref": "#/$defs/e%20f"}, "t": {"$ref": "#/$defs/~0~1"}},
               **{"$defs": {"a/b": {"type": "integer"}, "e f": {"type": "string"}, "~/": {"type": "null"}}}),
        ('{"a": 1, "e": "x", "t": null}', '{"a": "1", "e": "x", "t": null}'),
    ),
    ({"type": "array", "items": {"$ref": "#"}, "maxItems": 2}, ("[[], [[]]]", "[1]", "[[],[],[]]")),
    ({"$ref": "#/$defs/s", "maxLength": 3, "$defs": {"s": {"type": "string", "minLength": 2}}}, ('"a"', '"ab"', '"abcd"')),
    ({"$ref": "#/examples/0", "examples": [{"type": "null"}]}, ("null", "1")),
    ({"const": "http://a.example/b"}, ('"http://a.example/b"',)),
    ({"enum": ["abc", "x", 3, {"a": [1]}], "maxLength": 2}, ('"abc"', '"x"', "3", '{"a": [1]}')),
    ({"anyOf": [{"type": "integer"}, {"type": "null"}], "minimum": 3}, ("2", "3", "null")),
    ({"allOf": [{"type": "string"}, {"minLength": 2}, {"pattern": "a"}]}, ('"a"', '"ba"', '"bb"')),
    (
        {"oneOf": [closed({"k": {"const": "a"}, "v": {"type": "integer"}}),
                   closed({"k": {"const": "b"}, "v": {"type": "string"}})]},
        ('{"k": "a", "v": 1}', '{"k": "b", "v": "x"}', '{"k": "b", "v": 1}'),
    ),
    ({"type": "number", "minimum": 1e-7}, ("0.0000001", "0.00000009", "1", "0")),
    ({"type": "number", "exclusiveMinimum": 0, "maximum": 0.5}, ("0.5", "0", "0.49", "0.51", "0.000001", "0.0")),
    ({"type": "number", "minimum": -1.5, "maximum": 2.25}, ("-1.5", "-1.51", "2.25", "2.26", "0", "-0.3", "2")),
    ({"type": "integer", "minimum": -17, "maximum": 123}, ("-17", "-18", "123", "124", "0", "99", "100", "-1")),
    ({"type": "integer", "exclusiveMinimum": 5}, ("5", "6", "10", "123456")),
    ({"type": "integer", "multipleOf": 7, "minimum": 10, "maximum": 30}, ("14", "21", "28", "7", "35", "22")),
    ({"type": "integer", "multipleOf": 12}, ("24", "0", "-36", "13")),
    ({"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 3}, ("[1]", "[1, 2]", "[1,2,3,4]", "[]")),
    (
        {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "items": False},
        ("[1]", "[]", '[1, "a"]', '[1,"a",2]'),
    ),
    ({"format": "date", "type": "string"}, ('"2023-02-30"', '"2023-02-28"', '"2024-02-29"', '"1900-02-29"', '"2023-04-31"')),
    ({"format": "date", "type": "string", "pattern": "^2024"}, ('"2024-02-29"', '"2023-02-28"', '"2024-02-30"')),
    ({"format": "ipv4", "type": "string"}, ('"1.2.3.4"', '"256.1.1.1"')),
    ({"format": "ipv6", "type": "string"}, ('"::1"', '"1:2:3:4:5:6:7:8"', '"fe80::1:2"', '":::"')),
    ({"format": "uuid", "type": "string"}, ('"550e8400-e29b-41d4-a716-446655440000"', '"550e8400"')),
    ({}, ('{"a": [1, 2.5e3, null, "x"]}', "{")),
)

# For each keyword its values, a type that it speaks of first.
KEYWORDS = {
    "string": {
        "minLength": (1, 3),
        "maxLength": (2, 5),
        "pattern": ("a", "^[a-z]+$", "[^x]$", "^(ab|c){1,3}", "\\d"),
        "format": ("date", "email", "uuid", "ipv4", "other"),
        "enum": (["a", "abc", "x1"], ["2024-02-29", 7]),
    },
    "number": {
        "minimum": (-3, 0.5, 1e-9, 12),
        "maximum": (7, 100.25, 1e20),
        "exclusiveMinimum": (-1, 0),
        "exclusiveMaximum": (50, 1e3),
        "multipleOf": (2, 7),
        "const": (4, 2.5),
    },
    "array": {
        "items": (True, {"type": "integer"}, {"minLength": 2, "type": "string"}),
        "prefixItems": ([{"type": "null"}], [{}, {"enum": [1, 2]}]),
        "minItems": (0, 2),
        "maxItems": (1, 3),
    },
    "object": {
        "properties": ({"a": {"type": "integer"}, "bb": {"type": "string"}}, {"a": {"maximum": 9}, "c": False}),
        "required": (["a"], ["bb", "a"]),
        "patternProperties": ({"^a": {"minimum": 3}}, {"b": {"type": "string"}, "^.$": {"type": ["integer", "null"]}}),
        "propertyNames": ({"maxLength": 2}, {"pattern": "^[abc]+$"}, {"enum": ["a", "bb", "d"]}),
        "additionalProperties": (False, True, {"type": "boolean"}),
        "minProperties": (1, 2),
        "maxProperties": (1, 3),
    },
}
EITHER = ("anyOf", "oneOf", "allOf", "$ref")

# Answers to look among for one that is valid and one that is not.
ANSWERED = {
    "string": ('"a"', '"abc"', '"ab1"', '"xx"', '"zz9zz9"', '"2024-02-29"', '"a@b.example"', '"1.2.3.4"', "77",
               '"550e8400-e29b-41d4-a716-446655440000"'),
    "number": ("4", "2.5", "14", "-2", "0", "60", "-77", '"4"'),
    "array": ("[]", "[null]", "[1, 2]", '["ab", "cd", "ef", "gh"]', "[null, 2]", "[7, 8, 9]", "{}"),
    "object": ("{}", '{"a": 4}', '{"a": 1, "bb": "x"}', '{"bb": "x"}', '{"a": 4, "bb": "y"}', '{"a": 10}', '{"d": true}',
               '{"b": "x"}', '{"c": 1}', '{"a": 4, "bb": "x", "c": 5, "d": 6}',
               '{"bb": "x", "a": 4}', "[]"),
}
# The byte at a prompt's end that is answered so.
ENDS = dict(zip(itertools.chain(*ANSWERED.values()), b"ABCDEFGHIJKLMNOPQRSTUVWXYZ!#$%&'()*+/<=>?@^_`|~"))


def in_order(schema, text):
    """Whether the members of an answer stand as grammars have them."""
    value = json.loads(text)
    if not isinstance(value, dict):
        return True
    named = list(dict.fromkeys([*schema.get("properties", ()), *schema.get("required", ())]))
    return list(value) == [name for name in named if name in value] + [name for name in value if name not in named]


def pairs(some):
    """Schemas with each pair of keywords, `some` of each, with the kind."""
    for kind, keywords in KEYWORDS.items():
        for one, two in itertools.combinations(keywords, 2):
            both = list(itertools.product(keywords[one], keywords[two]))
            for first, second in both[: by_tier(some, len(both))]:
                yield kind, {"type": kind, one: first, two: second}


def random_schema(rng, depth=2):
    """A schema of a type with some of its keywords, and schemas beside them."""
    kind = rng.choice(list(KEYWORDS))
    names = list(KEYWORDS[kind])
    schema = {"type": kind} if rng.random() < 0.8 else {}
    if kind == "number" and rng.random() < 0.4:
        schema = {"type": "integer"}
    for name in rng.sample(names, rng.randint(1, min(4, len(names)))):
        schema[name] = rng.choice(KEYWORDS[kind][name])
    if depth and kind == "object" and "properties" in schema:
        schema["properties"] = {**schema["properties"], "deep": random_schema(rng, depth - 1)}
    if depth and rng.random() < 0.4:
        name = rng.choice(EITHER)
        if name == "$ref":
            schema["$ref"] = "#/$defs/" + rng.choice(("one", "two~1"))
        else:
            schema[name] = [random_schema(rng, 0) for _ in range(rng.randint(1, 2))]
    return schema


def random_root(rng):
    schema = random_schema(rng)
    schema["$defs"] = {"one": random_schema(rng, 0), "two/": random_schema(rng, 0)}
    return schema


class Schemas(support.TestCase):
    def test_an_answer_is_allowed_where_it_is_valid(self):
        results = follow([(schema, answers, EACH) for schema, answers in CHOSEN])
        for (schema, answers), result in zip(CHOSEN, results):
            with self.subTest(schema=schema):
                self.assertNotIn("error", result)
                self.assertEqual(result["allowed"], [valid(schema, answer) for answer in answers])
                for answer in result["made"]:
                    self.assertTrue(valid(schema, answer), answer)

    def check_random(self, schemas):
        """Counts of answers, all of which are valid, and of schemas that are refused."""
        results = follow([(schema, [], EACH) for schema in schemas])
        made = refused = 0
        for schema, result in zip(schemas, results):
            with self.subTest(schema=json.dumps(schema)):
                self.assertNotIn("failure", result)
                if "error" in result:
                    refused += 1
                    # The place, and what is wrong there.
                    self.assertRegex(result["error"], r"\AJSON schema: #[^ ]*: \S")
                for answer in result.get("made", ()):
                    made += 1
                    self.assertTrue(valid(schema, answer), answer)
        return made, refused

    def test_each_pair_of_keywords_holds(self):
        schemas = [schema for _, schema in pairs(1)]
        made, refused = self.check_random(schemas)
        self.assertGreater(made, EACH * len(schemas) / 3)
        self.assertLess(refused, len(schemas) / 4)

    def test_random_schemas_have_valid_answers_alone(self):
        count = by_tier(60, 500)
        made, refused = self.check_random([random_root(random.Random(seed)) for seed in range(count)])
        self.assertGreater(made, EACH * count / 4)
        self.assertLess(refused, count / 2)


class Answers(support.TestCase):
    """The answers of a server, whose model would give each of ANSWERED."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        taken, scripts = set(), {}
        for text, byte in ENDS.items():
            cuts = [[text.encode()]] + [[text[:at].encode(), text[at:].encode()] for at in range(2, len(text) - 1)]
            # In two tokens where these are of no other answer.
            scripts[byte] = next(cut for cut in reversed(cuts) if not taken.intersection(cut))
            taken.update(scripts[byte])
        model = scripted_model.make(cls.path("answers.gguf"), [b"none of them"], others=scripts)
        plan = cls.path("answers.plan")
        support.run([LLAMAC, "compile", model, "-o", plan], cache=cls.cache, check=True)
        cls.server = Server([plan], cls.path("access.log"))
        cls.server.__enter__()
        cls.addClassCleanup(cls.server.__exit__, None, None, None)

    def answer(self, schema, text):
        """The answer where it would be `text`, which is parsed and valid if it has
        ended; None where the schema is refused."""
        body = {"prompt": chr(ENDS[text]), "json_schema": schema, "temperature": 0, "max_tokens": 50}
        status, _, answer = self.server.request("POST", "/v1/completions", body)
        if status == 400:
            self.assertRegex(json.loads(answer)["error"]["message"], r"\Ajson_schema: JSON schema: #[^ ]*: \S")
            return None
        self.assertEqual(status, 200, answer)
        choice = json.loads(answer)["choices"][0]
        if choice["finish_reason"] == "stop":
            self.assertTrue(valid(schema, choice["text"]), choice)
        return choice["text"]

    def test_of_two_keywords_side_by_side_both_hold(self):
        count, refused, kept, other = 0, 0, 0, 0
        for kind, schema in pairs(1):
            with self.subTest(schema=json.dumps(schema)):
                count += 1
                right = [text for text in ANSWERED[kind] if valid(schema, text) and in_order(schema, text)]
                wrong = [text for text in ANSWERED[kind] if not valid(schema, text)]
                answers = {text: self.answer(schema, text) for text in right[:1] + wrong[:1]}
                if None in answers.values():
                    refused += 1
                    continue
                for text in right[:1]:
                    self.assertEqual(answers[text], text)
                    kept += 1
                for text in wrong[:1]:
                    self.assertNotEqual(answers[text], text)
                    other += 1
        self.assertLess(refused, count / 4)
        self.assertGreater(kept, count / 2)
        self.assertGreater(other, count / 2)


if __name__ == "__main__":
    unittest.main(verbosity=2)
