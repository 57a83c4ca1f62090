# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random loads of a scheduler on small models: each answer is the one that its
request has alone (tests/runtime/engine/RandomLoad.h). In the exhaustive tier with
10,000 requests on the cpu and 1,000 on the simulator.

    test_scheduler.py OnCpu    weights and a cache of two formats
    test_scheduler.py OnSim    the cuda target's kernels
"""

import os
import unittest

import support

support.require("numpy", "gguf", "safetensors")

from llama_numpy import Config
from make_model import quantise, random_weights, write_gguf, write_huggingface, write_meta
from model_families import QWEN2

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
    """With the cuda target's kernels, and rounding that depends on where a kernel
    rounds: two paths that only happen to agree do not."""

    def load_hostile(self, model, *flags):
        self.load(model, "sim", support.by_tier("6,8,4", "250,8,12"), "--sim-hostile-rounding", *flags)

    def test_heads_of_16(self):
        model = self.path("meta")
        write_meta(model, self.CONFIG, random_weights(self.CONFIG, "bf16", 4), "bf16")
        self.load_hostile(model)

    def test_three_query_heads_a_kv_head(self):
        # Vectors of a row lie in both halves of a warp's tile.
        config = Config(384, 2, 6, 2, vocab=261)
        model = self.path("three")
        write_meta(model, config, random_weights(config, "bf16", 7), "bf16")
        self.load_hostile(model, "--parallel", 16)

    def test_windows(self):
        config = Config(128, 2, 2, 1, vocab=261, windows=(0, 11), qkv_bias=True)
        model = self.path("windows")
        write_huggingface(model, config, random_weights(config, "bf16", 8), family=QWEN2)
        self.load_hostile(model)

    def test_q4_1(self):
        config = Config(128, 2, 2, 2, vocab=261)
        model = self.path("four.gguf")
        write_gguf(model, config, quantise(random_weights(config, "bf16", 9), "Q4_1")[0])
        self.load_hostile(model)


if __name__ == "__main__":
    unittest.main()
