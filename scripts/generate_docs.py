#!/usr/bin/env python3
# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes docs/passes.md and docs/dialects/*.md from the TableGen files, and from
the library's lists of options docs/options.md, Python's types of them and what the
chat page knows of their numbers.

    scripts/generate_docs.py           writes the pages
    scripts/generate_docs.py --check   fails when a page is not up to date
"""

import argparse
import ctypes
import difflib
import json
import math
import os
import re
import subprocess
import sys
import textwrap

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LLVM = "/usr/lib/llvm-19"
DIALECTS = {
    "llama": "ir/llama/LlamaOps.td",
    "kernel": "ir/kernel/KernelOps.td",
    "plan": "ir/plan/PlanOps.td",
}
PASSES = "passes/Passes.td"
PASS_FIGURES = "passes/figures.md"


def tblgen(args, source, *options):
    command = [args.tblgen, *options, "-I", ROOT]
    for folder in args.include:
        command += ["-I", folder]
    text = subprocess.run(command + [os.path.join(ROOT, source)], capture_output=True, text=True, check=True).stdout
    # The first line says that tblgen wrote it; ours says what to do instead.
    return text.split("\n", 1)[1]


def wrapped(lines):
    """`lines` with those of plain text and of grammar cut at 99 columns."""
    in_code = False
    for line in lines:
        in_code ^= line.startswith("```")
        is_grammar = line.startswith("operation ::=")
        if len(line) < 100 or not is_grammar and (in_code or line[0] in "<|`"):
            yield line
        else:
            indent = "              " if is_grammar else ""
            yield from textwrap.wrap(
                line, 99, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def plain_tables(text):
    """`text` with tblgen's tables of attributes, which are HTML, as other tables are."""

    def row(match):
        cells = re.findall(r"<t[hd]>(.*?)</t[hd]>", match.group(0))
        line = "| " + " | ".join(re.sub(r"</?code>", "`", cell) for cell in cells) + " |"
        return line + "\n| " + " | ".join(":---:" for _ in cells) + " |" if "<th>" in match.group(0) else line

    return re.sub(r"<tr>.*?</tr>", row, re.sub(r"</?table>\n", "", text))


def tidy(text, source):
    """`text` under a note, in short lines, without trailing or repeated blanks."""
    lines = "\n".join(wrapped(line.rstrip() for line in plain_tables(text).splitlines()))
    lines = re.sub(r"\n{3,}", "\n\n", lines).strip()
    return f"<!-- Generated from {source} by scripts/generate_docs.py. -->\n{lines}\n"


def pass_page(args):
    """The passes in the order of the file, which is the pipeline's, and what
    was measured of them."""
    text = tblgen(args, PASSES, "-gen-pass-doc")
    sections = {}
    for section in re.split(r"(?m)^(?=### `-)", text):
        if match := re.match(r"### `-([\w-]+)`", section):
            sections[match.group(1)] = section.replace("### `-", "## `", 1).replace("#### ", "### ").strip()
    with open(os.path.join(ROOT, PASSES)) as file:
        order = re.findall(r'Pass<"([\w-]+)"', file.read())
    intro = "# Passes\n\nIn the order of the pipeline.\n\n"
    with open(os.path.join(ROOT, PASS_FIGURES)) as file:
        figures = "\n\n" + file.read()
    return tidy(intro + "\n\n".join(sections[name] for name in order) + figures, f"{PASSES} and {PASS_FIGURES}")


def dialect_page(args, name):
    text = tblgen(args, DIALECTS[name], "-gen-dialect-doc", f"-dialect={name}")
    text = text.replace("[TOC]\n", "", 1)
    # The summary stands in the description's first line.
    text = re.sub(r"(# '\w+' Dialect\n\n.*\n)", r"\1\n", text, count=1)
    return tidy(text, DIALECTS[name])


class Option(ctypes.Structure):
    """llamac_option of include/llamac/llamac.h."""

    _fields_ = [("name", ctypes.c_char_p), ("kind", ctypes.c_int), ("help", ctypes.c_char_p),
                ("default", ctypes.c_char_p), ("range", ctypes.c_char_p),
                ("least", ctypes.c_double), ("most", ctypes.c_double)]  # fmt: skip

    def text(self, field):
        return getattr(self, field).decode()


# Scopes in the order of llamac_scope, with what Python says of each.
SCOPES = {"Model": "How a model is loaded.", "Engine": "How an engine runs requests.",
          "Request": "How a request is answered."}  # fmt: skip
# Types in the order of llamac_option_kind.
KINDS = ("bool", "int", "float", "str", "str | Sequence[str]", "Sequence[int]", "Mapping[int, float]", "int")
NUMBERS = {1: 1, 2: "any", 7: 1}  # Their steps.


def list_options(path):
    """The options of each scope of the library at `path`."""
    at = ctypes.CDLL(path).llamac_option_at
    at.argtypes, at.restype = (ctypes.c_int, ctypes.c_size_t), ctypes.POINTER(Option)
    scopes = {}
    for number, scope in enumerate(SCOPES):
        scopes[scope] = []
        while option := at(number, len(scopes[scope])):
            scopes[scope].append(option.contents)
    return scopes


def default_of(option):
    return {"": "none", "[]": "none"}.get(option.text("default"), option.text("default"))


def options_page(scopes):
    lines = ["# Options", "", "The libraries in C and Python set these by name; files of requests and servers have",
             "those of a request, by the names of OpenAI's interface or vLLM's where these have one."]  # fmt: skip
    for scope, options in scopes.items():
        lines += ["", f"## {scope}", "", "| option | meaning | range | default |", "|---|---|---|---|"]
        for option in options:
            cells = f"`{option.text('name')}`", option.text("help"), option.text("range"), default_of(option)
            lines.append(f"| {' | '.join(cells)} |".replace("  ", " "))
    return tidy("\n".join(lines), "the library's lists")


def python_types(scopes):
    with open(os.path.join(ROOT, "scripts/generate_docs.py")) as file:
        lines = file.read().splitlines()[1:4]
    lines += ['"""The options of the library, as types; scripts/generate_docs.py writes them."""', "",
              "from collections.abc import Mapping, Sequence", "from typing import TypedDict"]  # fmt: skip
    for scope, options in scopes.items():
        # help() shows the docstring of a class alone.
        lines += ["", "", f"class {scope}Options(TypedDict, total=False):", f'    """{SCOPES[scope]} Options:', ""]
        for option in options:
            notes = "; ".join(filter(None, (option.text("range"), "default: " + default_of(option))))
            lines += textwrap.wrap(f"{option.text('name')}: {option.text('help')} ({notes})", 88,
                                   initial_indent=" " * 8, subsequent_indent=" " * 12)  # fmt: skip
        lines += ['    """', ""]
        for option in options:
            name, kind = option.text("name"), KINDS[option.kind]
            lines.append(f"    {name}: {kind}{' | Mapping[str, object]' if name == 'json_schema' else ''}")
    return "\n".join(lines) + "\n"


def page_options(scopes):
    lines = ["// Written by scripts/generate_docs.py: the numbers that are options of a request.", "const OPTIONS = {"]
    for option in scopes["Request"]:
        if option.kind in NUMBERS:
            least = "above" if "above" in option.text("range") else "min"
            limits = {least: option.least, "max": option.most}
            field = {key: int(limit) if limit == int(limit) else limit
                     for key, limit in limits.items() if math.isfinite(limit)}  # fmt: skip
            field |= {"step": NUMBERS[option.kind], "hint": option.text("help")}
            lines.append(f"  {option.text('name')}: {json.dumps(field)},")
    return "\n".join(lines) + "\n};\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail when a page is out of date")
    parser.add_argument("--tblgen", default=f"{LLVM}/bin/mlir-tblgen")
    parser.add_argument("--include", action="append", help="folders of MLIR's .td files")
    parser.add_argument("--library", default=os.path.join(ROOT, "build/lib/libllamac.so"),
                        help="libllamac.so; empty: leaves its options out")  # fmt: skip
    args = parser.parse_args()
    args.include = args.include or [f"{LLVM}/include"]

    pages = {"docs/passes.md": pass_page(args)}
    for name in DIALECTS:
        pages[f"docs/dialects/{name}.md"] = dialect_page(args, name)
    if args.library:
        scopes = list_options(args.library)
        pages |= {"docs/options.md": options_page(scopes), "python/llamac/_options.py": python_types(scopes),
                  "serve/page/options.js": page_options(scopes)}  # fmt: skip
    stale = False
    for path, text in pages.items():
        full = os.path.join(ROOT, path)
        old = ""
        if os.path.exists(full):
            with open(full) as file:
                old = file.read()
        if args.check and old != text:
            stale = True
            sys.stdout.writelines(difflib.unified_diff(
                old.splitlines(True), text.splitlines(True), path, "generated", n=1))
        elif old != text:
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "w") as file:
                file.write(text)
    if stale:
        sys.exit("out of date: run scripts/generate_docs.py")


if __name__ == "__main__":
    main()
