#!/usr/bin/env python3
# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures the seconds from `pip install` of the wheel to a model's first token.

Every round has a new virtual environment and empty caches of llamac. The first
run compiles the model, the second finds its plan. numpy comes from pip's cache
or index, or from the folder that PIP_FIND_LINKS names.

    scripts/install_time.py                  dist's wheel, with SmolLM2
    scripts/install_time.py --model MODEL --rounds 5
"""

import argparse
import glob
import os
import statistics
import subprocess
import sys
import tempfile
import time
import venv

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def first_token(command, env):
    """Seconds until `command` writes text."""
    start = time.monotonic()
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE) as process:
        byte = process.stdout.read(1)
        seconds = time.monotonic() - start
        process.stdout.read()
    if not byte or process.returncode:
        raise SystemExit(f"install_time: {command[0]}: expected a text and exit code 0, got {process.returncode}")
    return seconds


def measure(wheel, model):
    """The seconds of pip, of the first token after it, and of that of a second run."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, symlinks=True, with_pip=True)
        programs = os.path.join(folder, "bin")
        start = time.monotonic()
        subprocess.run([os.path.join(programs, "pip"), "install", "--quiet", wheel], check=True)
        installed = time.monotonic() - start
        command = [os.path.join(programs, "llamac"), "run", model, "-p", "Name three fruits.", "-n", "8", "--quiet"]
        env = os.environ | {"XDG_CACHE_HOME": os.path.join(folder, "cache")}
        return installed, first_token(command, env), first_token(command, env)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wheel", help="default: that of dist/")
    parser.add_argument("--model", default=os.path.join(ROOT, "build", "models", "smollm2.gguf"))
    parser.add_argument("--rounds", type=int, default=3, help="default: %(default)s; their medians are printed")
    args = parser.parse_args()
    wheels = [args.wheel] if args.wheel else glob.glob(os.path.join(ROOT, "dist", "llamac-*.whl"))
    if len(wheels) != 1:
        sys.exit("install_time: expected one wheel, which scripts/package.sh makes in dist/; or --wheel FILE")
    rounds = [measure(wheels[0], args.model) for _ in range(args.rounds)]
    installed, first, second = map(statistics.median, zip(*rounds))
    print(f"pip install                                  {installed:6.2f} s")
    print(f"first token of a run that compiles           {first:6.2f} s")
    print(f"first token of a run with the plan cached    {second:6.2f} s")
    print(f"from pip to the first token, compiling       {installed + first:6.2f} s")
    print(f"from pip to the first token, the plan cached {installed + second:6.2f} s")


if __name__ == "__main__":
    main()
