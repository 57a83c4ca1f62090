# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random expressions and statements of templates, the same for the same seed."""

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
    "u": "Größe, naïve ΣΑΣ 🙂 ﬁn",
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

CONSTANTS = ["0", "1", "2", "-1", "3", "10", "1.5", "0.1", "1e20", "true", "false", "none", "''", "'a'", "'b c'",
             "'%s-%s'", "'x,y,,z'", "'é'", "[]", "[1, 2, 3]", "['a', 'b']", "(1, 'x')", "{}", "{'a': 1, 'b': [2]}",
             "'0x1F'", "'1_000'", "'Title Case'", "'\\n'", "'\"q\" \\'s\\' \\\\'", "missing"]
BINARY = ["+", "-", "*", "/", "//", "%", "~", "==", "!=", "<", "<=", ">", ">=", "in", "not in", "and", "or", "+", "~"]
FILTERS = ["abs", "capitalize", "count", "first", "float", "int", "items|list", "join", "last", "length", "list",
           "lower", "max", "min", "reverse|list", "round", "safe", "sort", "string", "sum", "title", "tojson", "trim",
           "unique|list", "upper", "escape", "dictsort", "default", "d"]
TESTS = ["boolean", "callable", "defined", "even", "false", "float", "integer", "iterable", "lower", "mapping", "none",
         "number", "odd", "sequence", "string", "true", "undefined", "upper", "escaped"]
METHODS = ["upper()", "lower()", "strip()", "lstrip()", "rstrip()", "title()", "capitalize()", "split()", "swapcase()",
           "splitlines()", "isdigit()", "isalpha()", "isupper()", "islower()", "istitle()", "isspace()", "isalnum()",
           "keys()|list", "values()|list", "items()|list", "keys()", "items()", "copy()", "casefold()", "isnumeric()",
           "isdecimal()", "isidentifier()", "isprintable()", "isascii()"]


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
                          self.literal, self.compared, self.atom, self.attribute])
        return make() if make == self.atom else make(depth - 1)

    def typed(self, depth, atoms):
        """Mostly of a type that fits."""
        return self.pick(atoms) if self.random.random() < 0.85 else f"({self.expression(depth)})"

    def string(self, depth):
        return self.typed(depth, ["s", "u", "sp", "e", "num", "'a b a'", "'x,y,,z'", "s.upper()", "(s ~ u)", "l|join",
                                  "d|tojson", "u|lower", "sp|trim", "(u * 2)", "s[1:-2]", "rows|string"])

    def sequence(self, depth):
        return self.typed(depth, ["l", "ls", "[1, 2, 3]", "rows|map(attribute='age')", "s.split()", "s", "range(4)",
                                  "(l + [7, 7])", "d", "d.values()|list", "ls|sort", "u|list", "(3, 1)", "[]"])

    def group(self, depth):
        inner = self.expression(depth)
        return f"({inner})" if self.random.random() < 0.7 else inner

    def binary(self, depth):
        return f"{self.group(depth)} {self.pick(BINARY)} {self.group(depth)}"

    def compared(self, depth):
        ops = ["<", "<=", ">", ">=", "==", "!="]
        return f"{self.atom()} {self.pick(ops)} {self.group(depth)} {self.pick(ops)} {self.atom()}"

    def unary(self, depth):
        return f"{self.pick(['not ', '-', '+', 'not '])}{self.group(depth)}"

    def filtered(self, depth):
        base = self.pick([self.string, self.sequence, self.group])(depth)
        return f"{base}|{self.pick(FILTERS)}"

    def tested(self, depth):
        if self.random.random() < 0.6:
            return f"{self.group(depth)} is {self.pick(['', 'not '])}{self.pick(TESTS)}"
        name = self.pick(["in", "eq", "ne", "lt", "ge", "divisibleby", "equalto", "==", "greaterthan"][:7])
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
        return f"({self.pick(['s', 'u', 'sp', 'l', 'ls', 'rows', 's.split()', 'u|list', 'i', 'd'])})[{slices}]"

    def method_with_arguments(self, depth):
        n, m, a, b = self.integer(), self.integer(), self.text(), self.text()
        call = self.pick([
            f"split({a})", f"split({a}, {n})", f"rsplit({a}, {n})", f"split(none, {n})", f"rsplit(none, {n})",
            f"replace({a}, {b})", f"replace({a}, {b}, {n})", f"startswith({a})", f"endswith({a})",
            f"startswith(({a}, {b}))", f"find({a})", f"rfind({a})", f"find({a}, {n})", f"find({a}, {n}, {m})",
            f"count({a})", f"index({a})", f"strip({a})", f"lstrip({a})", f"rstrip({a})", "join(ls)",
            f"join({self.atom()})", f"get({self.atom()})", f"get({self.atom()}, {self.atom()})", f"center({n})",
            "center(20, '*')", "ljust(15)", "rjust(15, '.')", "zfill(9)", f"partition({a})", f"rpartition({a})",
            f"removeprefix({a})", f"removesuffix({a})", f"count({self.atom()})", "splitlines(true)",
            "format(1, 'x', k=2)", f"startswith({a}, {n})", f"endswith({a}, {n}, {m})"])
        return f"({self.string(depth)}).{call}"

    def with_arguments(self, depth):
        n, a, b, x = self.integer(), self.text(), self.text(), self.atom()
        kind = self.random.randint(0, 3)
        if kind == 0:
            return f"{self.string(depth)}|" + self.pick([
                f"replace({a}, {b})", f"replace({a}, {b}, {n})", "indent", f"indent({n})", "indent(2, true)",
                "indent(2, blank=true)", "indent('> ')", f"trim({a})", "default('x')", f"default({x}, true)", f"format({x}, {n})", f"format({x})",
                "attr('upper') is defined", "list|tojson", "title", "e", "first", "last", f"int({n})", f"int(default={x}, base=16)", f"float({x})"])
        if kind == 1:
            return f"{self.sequence(depth)}|" + self.pick([
                f"join({a})", "sort(reverse=true)", "sort(case_sensitive=true)", "map('upper')|list",
                "map('default', 9)|list", "map('int')|list", "select|list", "reject|list", "select('odd')|list",
                "select('string')|list", "reject('none')|list", "select('in', l)|list", "sum(start=1)", "select('gt', 1)|list",
                "unique(case_sensitive=true)|list", "min(case_sensitive=true)", "max", "reverse|list", "list",
                "map('string')|map('length')|sum", f"default({x})", "map('nosuchfilter')|list", "nosuchfilter"])
        if kind == 2:
            return "rows|" + self.pick([
                "sort(attribute='age')|list", "sort(attribute='age,name', reverse=true)", "map(attribute='name')|join('-')",
                "map(attribute='tags', default='none')|list", "map(attribute='tags.0')|list", "sum(attribute='age')",
                "selectattr('age', 'equalto', 5)|list", "selectattr('tags')|map(attribute='name')|list",
                "rejectattr('tags', 'defined')|list", "unique(attribute='age')|list",
                "max(attribute='age')", "min(attribute='name')", "tojson(indent=2)", "tojson(indent=1, sort_keys=true)",
                "join(', ', attribute='name')", "map(attribute='name', default='x')|map('upper')|join", "last|items|list",
                "first|dictsort", "selectattr('name', 'in', ['Bo'])|list|length", "tojson(separators=(',', ':'))"])
        base = self.pick(["d", "dd", "lm", "f", "g", "big", "num", f"({self.expression(depth)})", "n", "u"])
        return f"{base}|" + self.pick([
            f"round({n})", f"round({n}, 'ceil')", "round(1, 'floor')", "round(method='floor')", "round", "int", "float",
            "dictsort(by='value')", "dictsort(reverse=true)", "dictsort(true)", "tojson", "tojson(indent=2)",
            "tojson(ensure_ascii=true)", "tojson(sort_keys=true)", "items|map('first')|join", "abs", "string|length",
            "tojson(indent='..')", "list", "length", "float|string"])


class Statements(Expressions):
    """Makes templates of statements with few names, so that scopes meet."""

    NAMES = ["a", "b", "c"]

    def name(self):
        return self.pick(self.NAMES)

    def small(self):
        return self.pick(["1", "2", "'x'", "[1, 2]", "[]", "i", "loop is defined", "l", "varargs|length", "a", "b", "c",
                          "a", "b ~ '.'", "c|default('?')", "ns.v", "a ~ 1", "range(3)", "loop.index if loop else 'no'",
                          "[a, b]|tojson" if self.random.random() < 0.1 else "kwargs|length", "(a, c)|string"])

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
        make = self.random.randint(0, 14)
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
            how = self.pick(["", "", f" if {name} != 1", " if loop", " recursive"])
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
            return self.tag(f"with {name} = {self.small()}") + self.body(inner) + self.tag("endwith")
        if make == 10:
            return self.tag(f"filter {self.pick(['upper', 'trim', 'replace(1, 2)'])}") + self.body(inner) + self.tag(
                "endfilter")
        if make == 11:
            return self.tag(f"call {self.pick(['g()', 'g(1)', 'g(b)', 'h(a)', 'g(1)', 'h()', 'f()'])}") + self.body(inner) + self.tag("endcall")
        if make == 12:
            return self.tag("generation") + self.body(inner) + self.tag("endgeneration")
        if make == 13:
            return self.tag(f"set ns.{self.pick(['v'] * 20 + ['w', '_v'])} = {self.small()}")
        pair = self.pick(["1, 2", "[3, 4]", "(a, b)", "'xy'", "ls[:2]", "b, 9", "l"])
        return self.tag(f"set {name}, {other} = {pair}")

    def template(self, depth=3):
        start = "{% set ns = namespace(v=0) %}{% macro g(x) %}<{{ caller() }}{{ x }}{{ a }}>{% endmacro %}"
        start += "{% macro h(b) %}({{ caller() }}{{ varargs }}{{ kwargs }}{{ b }}){% endmacro %}"
        macro = "{% macro f(a, b=1) %}{{ a }}{{ c }}{% endmacro %}" if self.random.random() < 0.9 else ""
        return start + macro + self.body(depth) + self.body(depth)
