# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""scripts/gpu_check.sh from start to end: packed, and run on the fake driver with a tiny model."""

import json
import os
import subprocess
import sys
import unittest

import support


class GpuCheck(support.TestCase):
    def test_a_dry_run_proves_every_op_and_measures_every_plan(self):
        folder = self.path("check")
        env = os.environ | {"LLAMAC_BUILD": os.path.dirname(support.BIN_DIR), "LLAMAC_PYTHON": sys.executable}
        script = os.path.join(support.ROOT, "scripts", "gpu_check.sh")
        result = subprocess.run([script, "dry-run", folder], capture_output=True, text=True, env=env)
        self.assertEqual(result.returncode, 0, result.stdout[-2000:] + result.stderr[-2000:])
        with open(os.path.join(folder, "results.json")) as f:
            found = json.load(f)
        self.assertEqual(found["problems"], [])
        self.assertGreater(found["conformance"]["passed"], 450)
        self.assertEqual(found["conformance"]["failed"], [])
        self.assertEqual({row["part"] for row in found["kernels"]}, {"prompt", "step"})
        self.assertEqual(found["bandwidth"]["architecture"], "sm_90a")
        self.assertEqual([row["load"] for row in found["workload"]], ["cold", "warm"])
        points = {(row["weights"], row["prompt_tokens"], row["batch"]) for row in found["decode"]}
        formats = ("bf16", "q8_0", "mxfp8", "q4_0")
        self.assertEqual(points, {(w, t, b) for w in formats for t in (8, 40) for b in (1, 4)})
        with open(os.path.join(folder, "results.md")) as f:
            table = f.read()
        self.assertIn("dry run", table)
        self.assertIn("| tiny | step | gemv_output_n96_k64_bf16 |", table)
        self.assertEqual(len(found["peers"]), 3 if found["torch"] else 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
