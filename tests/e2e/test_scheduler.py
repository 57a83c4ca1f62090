# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random loads of a scheduler on small models: each answer is the one that its
request has alone (tests/runtime/engine/RandomLoad.h). In the exhaustive tier with
10,000 requests on the cpu and 300 on the simulator.

    test_scheduler.py OnCpu    weights and a cache of two formats
    test_scheduler.py OnSim    the cuda target's kernels
"""

import os
import unittest

import support

support.require("numpy", "gguf", "safetensors")

from llama_numpy import Config
from make_model import quantise, random_weights, write_gguf, write_meta

PROGRAM = os.path.join(os.path.dirname(support.BIN_DIR), "tests", "scheduler_plan_tests")


class Load(support.TestCase):
    CONFIG = Config(64, 2, 4, 2, vocab=261)

    def load(self, model, target, numbers, *flags):
        plan = self.path(f"{os.path.basename(model)}.{target}.plan")
        self.llamac("compile", model, "--target", target, "-c", 200, "-o", plan, "-q", *flags)
        env = dict(os.environ, LLAMAC_TEST_PLAN=plan, LLAMAC_TEST_LOAD=numbers)
        result = support.run([PROGRAM], env=env, timeout=3600)
        self.assertEqual(result.returncode, support.OK, result.stdout[-4000:] + result.stderr[-2000:])


class OnCpu(Load):
    NUMBERS = support.by_tier("300,64,40", "10000,64,40")

    def test_bf16(self):
        model = self.path("meta")
        write_meta(model, self.CONFIG, random_weights(self.CONFIG, "bf16", 4), "bf16")
        self.load(model, "cpu", self.NUMBERS)

    def test_q4_0(self):
        model = self.path("small.gguf")
        write_gguf(model, self.CONFIG, quantise(random_weights(self.CONFIG, "bf16", 5), "Q4_0")[0])
        self.load(model, "cpu", self.NUMBERS, "--kv-type", "q8_0")

    def test_sparsified(self):
        # Steps of one row drop scores that others keep: their rows are not alike.
        model = self.path("sparse.gguf")
        write_gguf(model, self.CONFIG, quantise(random_weights(self.CONFIG, "bf16", 6), "F32")[0])
        self.load(model, "cpu", support.by_tier("120,16,40", "2000,16,40"), "--sparsify-attention", 4)


class OnSim(Load):
    def test_bf16(self):
        model = self.path("meta")
        write_meta(model, self.CONFIG, random_weights(self.CONFIG, "bf16", 4), "bf16")
        self.load(model, "sim", support.by_tier("6,8,4", "300,8,12"))


if __name__ == "__main__":
    unittest.main()
