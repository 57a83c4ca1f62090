# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The right text of a chat template: by Python's jinja2, set up as Hugging
Face's apply_chat_template sets it up; and by render-templates, which is ours."""

import copy
import datetime
import functools
import json
import os
import resource
import subprocess
import sys
import warnings

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))

import support

support.require("jinja2")

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment

RENDER = os.environ.get("LLAMAC_RENDER_TEMPLATES", os.path.join(ROOT, "build", "tests", "render-templates"))
# A template that asks Python for gigabytes shall fail, not the machine.
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, resource.getrlimit(resource.RLIMIT_AS)[1]))

NOW = datetime.datetime(2024, 7, 26, 13, 5, 9)


class Generation(jinja2.ext.Extension):
    """The tag that marks what the assistant wrote; its text is unchanged."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_text"), [], [], body).set_lineno(line)

    def _text(self, caller):
        return caller()


class Namespace(jinja2.utils.Namespace):
    """One whose names begin with no underscore."""

    def __init__(*args, **kwargs):
        self, *args = args
        attributes = dict(*args, **kwargs)
        for name in attributes:
            Namespace.check(name)
        jinja2.utils.Namespace.__init__(self, attributes)

    def __setitem__(self, name, value):
        Namespace.check(name)
        jinja2.utils.Namespace.__setitem__(self, name, value)

    @staticmethod
    def check(name):
        if isinstance(name, str) and name.startswith("_"):
            raise jinja2.exceptions.SecurityError(name)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def environment():
    made = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
    )
    made.filters["tojson"] = tojson
    made.globals["raise_exception"] = raise_exception
    made.globals["strftime_now"] = NOW.strftime
    made.globals["namespace"] = Namespace
    return made


ENVIRONMENT = environment()


@functools.lru_cache
def compiled(template):
    return ENVIRONMENT.from_string(template)


def expected(case):
    """(text, None), or (None, error)."""
    variables = {
        "messages": case.get("messages"),
        "tools": case.get("tools"),
        "documents": case.get("documents"),
        "add_generation_prompt": case.get("add_generation_prompt", False),
    }
    variables |= {key: case[key] for key in ("bos_token", "eos_token") if key in case}
    # Some of jinja2's filters change their input.
    variables |= copy.deepcopy(case.get("variables", {}))
    try:
        warnings.simplefilter("ignore")  # The Python that jinja2 makes may have warnings.
        # Python refuses what has no UTF-8 only when it is written.
        text = compiled(case["template"]).render(**variables)
        text.encode()
        return text, None
    except Exception as error:
        return None, error


def actual(cases):
    """The results of our interpreter: {"text": ...} or {"error": ...}."""
    lines = "".join(json.dumps(case) + "\n" for case in cases)
    run = subprocess.run([RENDER], input=lines, capture_output=True, text=True, timeout=600)
    results = [json.loads(line) for line in run.stdout.split("\n") if line]
    if run.returncode or len(results) != len(cases):
        raise AssertionError(f"ended with {run.returncode} at case {len(results)}: {run.stderr}")
    return results


def difference(case, result):
    """The error in `result`, or None."""
    text, error = expected(case)
    if error is not None:
        if "error" not in result:
            return f"expected an error ({error}), got {result['text']!r}"
        # A template's own error must arrive.
        if type(error) is jinja2.exceptions.TemplateError and not result["error"].endswith(str(error)):
            return f"expected the error {str(error)!r}, got {result['error']!r}"
    elif result.get("text") != text:
        return f"expected {text!r}, got {result}"
    return None


def differences(cases):
    """The templates of `cases` whose results differ, and how."""
    found = []
    for case, result in zip(cases, actual(cases)):
        if wrong := difference(case, result):
            found.append(f"{case.get('name', '')} {case['template'][:2000]!r}: {wrong}")
    return found
