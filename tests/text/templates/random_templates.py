# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random expressions and statements of templates, the same for the same seed, of
what is supported."""

import random

VARIABLES = {
    "i": 3,
    "n": -7,
    "z": 0,
    "f": 2.5,
    "g": -0.125,
    "big": 1099511627783,
    "t": True,
    "s": "Hello World",
    "e": "",
    "u": "Größe, naïve ΑΒΓ 🙂 ﬁn ŉİ",
    "sp": "  two\n lines\t",
    "num": " 42 ",
    "l": [3, 1, 2],
    "ls": ["b", "A", "c", "a"],
    "lm": [1, "x", None, 2.0, [1], {"k": 1}],
    "d": {"b": 1, "a": "x", "C": [1, 2], "n": None},
    "dd": {"x": {"y": {"z": "deep"}}, "items": "shadowed"},
    "rows": [
        {"name": "Bo", "age": 5, "tags": ["x", "y"]},
        {"name": "al", "age": 3, "tags": []},
        {"name": "Cy", "age": 5},
    ],
    "no": None,
}

CONSTANTS = ["0", "1", "2", "-1", "3", "10", "1.5", "0.1", "true", "false", "none", "''", "'a'", "'b c'",
             "'{}-{}'", "'x,y,,z'", "'é'", "[]", "[1, 2, 3]", "['a', 'b']", "(1, 'x')", "{}", "{'a': 1, 'b': [2]}",
             "'Title Case'", "'\\n'", "'\"q\" \\'s\\' \\\\'", "missing"]
BINARY = ["+", "-", "*", "//", "%", "~", "==", "!=", "<", "<=", ">", ">=", "in", "not in", "and", "or", "+", "~"]
FILTERS = ["capitalize", "count", "first", "int", "items|list", "join", "last", "length", "list", "lower", "max", "min",
           "safe", "sort", "string", "title", "tojson", "trim", "unique|list", "upper", "dictsort", "default", "d"]
TESTS = ["boolean", "defined", "false", "float", "integer", "iterable", "mapping", "none", "number", "sequence",
         "string", "true", "undefined"]
METHODS = ["upper()", "lower()", "strip()", "lstrip()", "rstrip()", "capitalize()", "keys()|list", "values()|list",
           "items()|list", "keys()", "items()"]


class Expressions:
    """Makes expressions; most are of the right types."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def pick(self, choices):
        return self.random.choice(choices)

    def atom(self):
        return self.pick(CONSTANTS) if self.random.random() < 0.45 else self.pick(list(VARIABLES))

    def integer(self):
        return self.pick(["0", "1", "2", "3", "-1", "-2", "i", "n", "l|length", "5"])

    def text(self):
        return self.pick(["s", "u", "sp", "e", "'a'", "'l'", "' '", "'o W'", "num", "','", "'lo'", "'é'", "''"])

    def expression(self, depth=3):
        if depth == 0:
            return self.atom()
        make = self.pick([self.binary, self.binary, self.filtered, self.filtered, self.with_arguments, self.tested,
                          self.method, self.method_with_arguments, self.subscript, self.conditional, self.unary,
                          self.literal, self.atom, self.attribute])
        return make() if make == self.atom else make(depth - 1)

    def typed(self, depth, atoms):
        """Mostly of a type that fits."""
        return self.pick(atoms) if self.random.random() < 0.85 else f"({self.expression(depth)})"

    def string(self, depth):
        return self.typed(depth, ["s", "u", "sp", "e", "num", "'a b a'", "'x,y,,z'", "s.upper()", "(s ~ u)", "l|join",
                                  "d|tojson", "u|lower", "sp|trim", "(u * 2)", "s[1:-2]", "rows|string"])

    def sequence(self, depth):
        return self.typed(depth, ["l", "ls", "[1, 2, 3]", "rows|map(attribute='age')", "s.split('o')", "s", "range(4)",
                                  "(l + [7, 7])", "d", "d.values()|list", "ls|sort", "u|list", "(3, 1)", "[]"])

    def group(self, depth):
        inner = self.expression(depth)
        return f"({inner})" if self.random.random() < 0.7 else inner

    def binary(self, depth):
        return f"{self.group(depth)} {self.pick(BINARY)} {self.group(depth)}"

    def unary(self, depth):
        return f"{self.pick(['not ', '-', 'not '])}{self.group(depth)}"

    def filtered(self, depth):
        base = self.pick([self.string, self.sequence, self.group])(depth)
        return f"{base}|{self.pick(FILTERS)}"

    def tested(self, depth):
        if self.random.random() < 0.6:
            return f"{self.group(depth)} is {self.pick(['', 'not '])}{self.pick(TESTS)}"
        name = self.pick(["in", "eq", "ne", "equalto"])
        return f"{self.group(depth)} is {self.pick(['', 'not '])}{name}({self.atom()})"

    def method(self, depth):
        return f"({self.string(depth)}).{self.pick(METHODS)}" if self.random.random() < 0.85 else f"d.{self.pick(METHODS)}"

    def conditional(self, depth):
        other = f" else {self.group(depth)}" if self.random.random() < 0.8 else ""
        return f"({self.group(depth)} if {self.group(depth)}{other})"

    def literal(self, depth):
        a, b = self.expression(depth), self.expression(depth)
        return self.pick([f"[{a}, {b}]", f"({a}, {b})", f"{{'k': {a}, 'j': {b}}}", f"[{a}]", f"({a},)"])

    def attribute(self, depth):
        names = ["a", "b", "name", "x", "items", "keys", "update", "append", "upper", "0", "y", "_private"]
        return f"({self.expression(depth)}).{self.pick(names)}{self.pick(['', '', ' is defined', '|string'])}"

    def subscript(self, depth):
        key = self.pick([self.integer, lambda: self.expression(depth), lambda: self.pick(["'a'", "'name'", "'x'"])])
        bound = lambda: self.pick(["", "", self.integer()])
        slices = f"{bound()}:{bound()}" + self.pick(["", f":{self.pick(['1', '2', '-1', '-2', 'i'])}"])
        base = self.pick([self.string, self.sequence])
        if self.random.random() < 0.5:
            return f"({base(depth)})[{key()}]"
        # jinja2 folds constants, and forgives a wrong slice of one.
        sliced = self.pick(["s", "u", "sp", "l", "ls", "rows", "s.split('l')", "u|list", "i", "d"])
        return f"({sliced})[{slices}]"

    def method_with_arguments(self, depth):
        n, m, a, b = self.integer(), self.integer(), self.text(), self.text()
        call = self.pick([
            f"split({a})", f"split({a}, {n})", f"replace({a}, {b})", f"replace({a}, {b}, {n})", f"startswith({a})",
            f"endswith({a})", f"strip({a})", f"lstrip({a})", f"rstrip({a})", f"get({self.atom()})",
            f"get({self.atom()}, {self.atom()})", f"format({self.atom()}, {m})", "strip(none)"])
        return f"({self.string(depth)}).{call}"

    def with_arguments(self, depth):
        n, a, b, x = self.integer(), self.text(), self.text(), self.atom()
        kind = self.random.randint(0, 3)
        if kind == 0:
            return f"{self.string(depth)}|" + self.pick([
                f"replace({a}, {b})", f"replace({a}, {b}, {n})", "indent", f"indent({n})", "indent(2, true)",
                "indent(2, blank=true)", f"trim({a})", "default('x')", f"default({x}, true)", "list|tojson", "title",
                "first", "last", f"int({n})", f"int(default={x})"])
        if kind == 1:
            return f"{self.sequence(depth)}|" + self.pick([
                f"join({a})", "sort", "map('upper')|list", "map('default', 9)|list", "map('int')|list", "select|list",
                "reject|list", "select('integer')|list", "select('string')|list", "reject('none')|list",
                "select('in', l)|list", "select('ne', 1)|list", "unique|list", "max", "min", "list",
                "map('string')|map('length')|list", f"default({x})", "map('nosuchfilter')|list", "nosuchfilter"])
        if kind == 2:
            return "rows|" + self.pick([
                "sort(attribute='age')|list", "sort(attribute='name')", "map(attribute='name')|join('-')",
                "map(attribute='tags')|list", "map(attribute='tags.0')|list", "map(attribute='name')|max",
                "selectattr('age', 'equalto', 5)|list", "selectattr('tags')|map(attribute='name')|list",
                "rejectattr('tags', 'defined')|list", "map(attribute='age')|unique|list", "tojson(indent=2)",
                "tojson(indent=1, separators=(', ', ' : '))", "map(attribute='name')|map('upper')|join", "last|items|list",
                "first|dictsort", "selectattr('name', 'in', ['Bo'])|list|length", "tojson(separators=(',', ':'))"])
        base = self.pick(["d", "dd", "lm", "f", "g", "big", "num", f"({self.expression(depth)})", "n", "u"])
        return f"{base}|" + self.pick([
            "int", "dictsort", "tojson", "tojson(indent=2)", "tojson(ensure_ascii=true)", "items|map('first')|join",
            "string|length", "list", "length", "string"])


class Statements(Expressions):
    """Makes templates of statements with few names, so that scopes meet."""

    NAMES = ["a", "b", "c"]

    def name(self):
        return self.pick(self.NAMES)

    def small(self):
        return self.pick(["1", "2", "'x'", "[1, 2]", "[]", "i", "loop is defined", "l", "a", "b", "c", "a", "b ~ '.'",
                          "c|default('?')", "ns.v", "a ~ 1", "range(3)|list", "loop.index if loop else 'no'",
                          "[a, b]|tojson" if self.random.random() < 0.1 else "b|string|length", "(a, c)|string"])

    def space(self):
        return self.pick(["", "\n", "  ", "\n  ", "t ", " \n\n ", "."])

    def tag(self, text):
        return f"{{%{self.pick(['', '', '', '-', '+'])} {text} {self.pick(['', '', '', '-', '+'])}%}}"

    def body(self, depth):
        count = self.random.randint(1, 3)
        return self.space().join([""] + [self.statement(depth) for _ in range(count)] + [""])

    def show(self, depth):
        name = self.name()
        return self.pick([f"{{{{ {name} }}}}", f"{{{{- {name} -}}}}", f"{{{{ {name} is defined }}}}",
                          f"{{{{ {self.small()} }}}}", "{# a\nnote #}", "{#- note -#}\n", "{{ f() }}", "{{ f(b, 7) }}",
                          "{{ f(c=a) }}"])

    def statement(self, depth):
        if depth == 0:
            return self.show(0)
        inner = depth - 1
        name, other = self.name(), self.name()
        make = self.random.randint(0, 12)
        if make <= 3:
            return self.tag(f"set {name} = {self.small()}")
        if make == 4:
            test = self.pick([name, f"{name} is defined", f"{self.small()} == 1", "loop and loop.first", "true"])
            text = self.tag(f"if {test}") + self.body(inner)
            if self.random.random() < 0.4:
                text += self.tag(f"elif {other}") + self.body(inner)
            if self.random.random() < 0.6:
                text += self.tag("else") + self.body(inner)
            return text + self.tag("endif")
        if make <= 6:
            over = self.pick(["l", "[1, 2]", "range(2)", "ls", "[]", "d", f"[{other}, 1]", "'xy'"])
            how = self.pick(["", "", f" if {name} != 1", " if loop"])
            leave = self.pick(["", "", "", f"{{% if {name} == 2 %}}{{% break %}}{{% endif %}}",
                               f"{{% if {name} == 1 %}}{{% continue %}}{{% endif %}}"])
            text = self.tag(f"for {name} in {over}{how}") + self.body(inner) + leave + self.body(inner)
            if self.random.random() < 0.3:
                text += self.tag("else") + self.body(inner)
            return text + self.tag("endfor")
        if make == 7:
            params = self.pick(["", name, f"{name}, {other}=2" if name != other else name, f"{name}=b"])
            return self.tag(f"macro f({params})") + self.body(inner) + self.tag("endmacro")
        if make == 8:
            return self.tag(f"set {name}{self.pick(['', '|upper', '|trim'])}") + self.body(inner) + self.tag("endset")
        if make == 9:
            return self.tag(f"filter {self.pick(['upper', 'trim', 'replace(1, 2)'])}") + self.body(inner) + self.tag(
                "endfilter")
        if make == 10:
            return self.tag("generation") + self.body(inner) + self.tag("endgeneration")
        if make == 11:
            return self.tag(f"set ns.{self.pick(['v'] * 20 + ['w', '_v'])} = {self.small()}")
        pair = self.pick(["1, 2", "[3, 4]", "(a, b)", "'xy'", "ls[:2]", "b, 9", "l"])
        return self.tag(f"set {name}, {other} = {pair}")

    def template(self, depth=3):
        start = "{% set ns = namespace(v=0) %}"
        macro = "{% macro f(a, b=1) %}{{ a }}{{ c }}{% endmacro %}" if self.random.random() < 0.9 else ""
        return start + macro + self.body(depth) + self.body(depth)
