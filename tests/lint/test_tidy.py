# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""clang-tidy with the rules of .clang-tidy, on what the build folder compiles.

It looks at whole units of a unity build: most of its time goes to the headers
that the files of a unit share. That takes half an hour, so the exhaustive tier
runs it.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.dirname(os.environ.get("LLAMAC_BIN_DIR", os.path.join(ROOT, "build", "bin")))

TIDY = os.path.join(os.path.dirname(sys.executable), "clang-tidy")
# Files written by CMake for a target include its sources.
CHECKS = "--checks=-bugprone-suspicious-include"
# The headers that the compiler has made ready are readable by no other version.
PRECOMPILED = re.compile(r"-Xclang -include(-pch)? -Xclang \S+|-Winvalid-pch|-Xclang -fno-pch-timestamp")


def files_of(unit):
    """The project's files that `unit`, an entry of compile_commands.json, compiles."""
    path = unit["file"]
    if not os.path.exists(path):  # A precompiled header that is not made here.
        return []
    if not is_within(path, BUILD):
        return [os.path.relpath(path, ROOT)]
    with open(path) as file:
        included = re.findall(r'^#include "(.*)"', file.read(), flags=re.MULTILINE)
    return [os.path.relpath(source, ROOT) for source in included if not is_within(source, BUILD)]


def is_within(path, folder):
    return path.startswith(folder + os.sep)


def distinct_units(units):
    """Pairs of a unit and its files, without units whose files others compile too."""
    seen = set()
    for unit in units:
        files = files_of(unit)
        if not seen.issuperset(files):
            seen.update(files)
            yield unit, files


def tidy(file, flags, folder):
    command = [TIDY, "--quiet", f"--config-file={ROOT}/.clang-tidy", CHECKS, file, "--", *flags]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


class Tidy(unittest.TestCase):
    def setUp(self):
        if not shutil.which(TIDY):
            print("cannot run: no clang-tidy; scripts/setup.sh exhaustive installs what is missing", file=sys.stderr)
            sys.exit(1 if os.environ.get("CI") == "true" else 77)

    def test_clang_tidy_finds_nothing(self):
        with open(os.path.join(BUILD, "compile_commands.json")) as file:
            units = json.load(file)
        for unit, files in distinct_units(units):
            with self.subTest(" ".join(files)):
                flags = shlex.split(PRECOMPILED.sub("", unit["command"]))[1:]
                output = flags.index("-o")  # Then come -c and the file.
                result = tidy(unit["file"], flags[:output], unit["directory"])
                self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_finds_seeded_violations(self):
        with tempfile.TemporaryDirectory() as folder:
            for code in ("int *null = 0;\n", "int Wrong_Name = 1;\n", "missing type;\n"):
                file = os.path.join(folder, "A.cpp")
                with self.subTest(code), open(file, "w") as out:
                    out.write(code)
                    out.flush()
                    self.assertNotEqual(tidy(file, ["-std=c++20"], folder).returncode, 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
