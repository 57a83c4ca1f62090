# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""No lit test depends on the processor that runs it: one that looks at what is
emitted for a processor names it.

Called with lit and the folder of the suites.
"""

import json
import os
import re
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "e2e"))

import support

SUITES = ("codegen", "compiler", "ir", "passes")


class Processors(support.TestCase):
    def expected(self, variable):
        """The values of `variable`, by the error for another one."""
        model = os.path.join(support.ROOT, "tests", "codegen", "cpu", "Inputs", "config.json")
        command = [support.LLAMAC, "compile", model, "--stop-after", "fuse", "-o", "-"]
        error = support.run(command, env=dict(os.environ, **{variable: "none"})).stderr
        names = re.search(r"expected one of (.*), got none", error)
        self.assertTrue(names, error)
        return names.group(1).split(", ")

    def check(self, **environment):
        suites = [os.path.join(sys.argv[2], suite) for suite in SUITES]
        result = support.run(
            [sys.executable, sys.argv[1], "--quiet", "--no-progress-bar", *suites],
            env=dict(os.environ, PYTHONDONTWRITEBYTECODE="1", **environment),
            timeout=1800,
        )
        self.assertEqual(result.returncode, 0, f"{environment}\n{result.stdout}\n{result.stderr}")

    def test_suites_pass_for_every_processor_to_tune_for(self):
        for name in self.expected("LLAMAC_TUNE_CPU"):
            with self.subTest(name):
                self.check(LLAMAC_TUNE_CPU=name)

    def test_suites_pass_at_every_level_that_the_host_runs(self):
        levels = self.expected("LLAMAC_ISA")
        doctor = support.run([support.LLAMAC_RUN, "doctor", "--json"]).stdout
        host = json.loads(doctor)["processor"]["isa"]
        for name in levels[: levels.index(host) + 1]:
            with self.subTest(name):
                self.check(LLAMAC_ISA=name)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
