# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The compiler, which is a program of its own: it is not loaded into this
process, and may be interrupted."""

import os
import re
import shutil
import subprocess

from llamac._arguments import checked, path, wrong
from llamac._errors import Code, error_of


def _tool() -> str:
    own = os.path.join(os.path.dirname(__file__), "bin", "llamac")
    tool = own if os.path.exists(own) else shutil.which("llamac")
    if tool is None:
        raise error_of(Code.USAGE, f"compiler: expected {own} or llamac in PATH, found neither")
    return tool


def _flags(options: dict[str, object]) -> list[str]:
    """`ctx_size=4096` as `--ctx-size=4096`."""
    flags = []
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        if value is True:
            flags.append(flag)
        elif isinstance(value, (list, tuple)):
            flags.append(f"{flag}={','.join(map(str, value))}")
        elif value is not None and value is not False:
            flags.append(f"{flag}={value}")
        if "\0" in "".join(flags[-1:]):
            raise wrong(name, "no NUL in it", value)
    return flags


def _as_keyword(found: re.Match[str]) -> str:
    """`--ctx-size` as `ctx_size`, which the caller gave."""
    return found[1] + found[2].replace("-", "_")


def _no_flag(model: str) -> str:
    return os.path.join(".", model) if model.startswith("-") else model


def _run(*args: str) -> str:
    """stdout of `llamac compile`; its error is raised."""
    tool = [_tool(), "compile", "--quiet", *args]
    with subprocess.Popen(
        tool, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace"
    ) as process:
        try:
            out, log = process.communicate()
        except BaseException:
            process.terminate()
            process.wait()  # Until it has removed its temporary files.
            raise
    if process.returncode == 0:
        return out
    if process.returncode < 0:
        raise error_of(Code.INTERNAL, f"compiler: ended by signal {-process.returncode}")
    line = (log.strip().splitlines() or ["compiler: failed without a word"])[-1]
    line = line.removeprefix("llamac: error: ").removesuffix("; see llamac compile --help")
    line = re.sub("(^|unknown option |did you mean )--([a-z-]+)", _as_keyword, line)
    if line.startswith("unknown option") and "did you mean" not in line:
        line += "; llamac compile --help lists them"
    known = process.returncode in Code.__members__.values()
    raise error_of(process.returncode if known else Code.INTERNAL, line)


@checked
def compile(model: str | os.PathLike[str], output: str | os.PathLike[str], **options: object) -> str:
    """Compiles a model directory or .gguf file to the plan `output`, whose path
    it returns. The options are those that `llamac compile --help` lists, with _
    for -: `ctx_size=4096, weights="q8_0"`; True for a flag."""
    plan = path("output", output)
    _run(_no_flag(path("model", model)), f"--output={plan}", *_flags(options))
    return plan


def cached_plan(model: str, **options: object) -> str:
    """The plan that `llamac run` uses for a model, which has just been verified."""
    return _run(_no_flag(model), "--cached", *_flags(options)).removesuffix("\n")
