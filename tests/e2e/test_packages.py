# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What scripts/package.sh makes, in a clean Debian, by scripts/try_packages.sh."""

import os
import shutil
import unittest

import support


class Packages(unittest.TestCase):
    def test_they_install_run_serve_and_leave_nothing(self):
        support.require_model("smollm2.gguf")
        support.require("auditwheel")
        if os.geteuid() != 0 or not shutil.which("buildah"):
            support.skip("expected root and what scripts/setup.sh exhaustive installs")
        result = support.run([os.path.join(support.ROOT, "scripts", "try_packages.sh")], timeout=1700)
        self.assertEqual(result.returncode, 0, result.stderr[-4000:])
        self.assertTrue(result.stderr.endswith("all well\n"), result.stderr[-4000:])


if __name__ == "__main__":
    unittest.main(verbosity=2)
