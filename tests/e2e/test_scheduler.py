# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random loads of a scheduler on small models: each answer is the one that its
request has alone (tests/engine/scheduler/RandomLoad.h). In the exhaustive tier with
10,000 requests on the cpu, and 1,000 on the simulator and on cuda's fake driver.

    test_scheduler.py OnCpu     weights and a cache of two formats
    test_scheduler.py OnSim     the cuda target's kernels
    test_scheduler.py OnCuda    with the cuda target's runtime
"""

import os
import unittest

import support

support.require("numpy", "gguf", "safetensors")

import fake_cuda
from llama_numpy import Config
from make_model import quantise, random_weights, write_gguf, write_huggingface, write_meta
from model_families import QWEN2

PROGRAM = os.path.join(os.path.dirname(support.BIN_DIR), "tests", "scheduler_plan_tests")


class Load(support.TestCase):
    CONFIG = Config(64, 2, 4, 2, vocab=261)

    def compile(self, model, target, *flags):
        plan = self.path(f"{os.path.basename(model)}.{target}.plan")
        self.llamac("compile", model, "--target", target, "-c", 200, "-o", plan, "-q", *flags)
        return plan

    def load(self, model, target, numbers, *flags, draft=None, env=os.environ, test="EachAnswerIsTheOneThatItsRequestHasAlone"):
        plan = self.compile(model, target, *flags)
        env = dict(env, LLAMAC_TEST_PLAN=plan, LLAMAC_TEST_LOAD=numbers)
        if draft:
            env["LLAMAC_TEST_DRAFT"] = draft
        result = support.run([PROGRAM, f"--gtest_filter=*.{test}"], env=env, timeout=7200)
        self.assertEqual(result.returncode, support.OK, result.stdout[-4000:] + result.stderr[-2000:])


class OnCpu(Load):
    NUMBERS = support.by_tier("300,64,40", "10000,64,40")

    def test_bf16(self):
        model = self.path("meta")
        write_meta(model, self.CONFIG, random_weights(self.CONFIG, "bf16", 4), "bf16")
        self.load(model, "cpu", self.NUMBERS)

    def test_a_model_that_drafts_for_itself(self):
        model = self.path("drafts")
        write_meta(model, self.CONFIG, random_weights(self.CONFIG, "bf16", 8), "bf16")
        draft = self.compile(model, "cpu")
        self.load(model, "cpu", support.by_tier("100,16,40,0.3", "10000,16,40,0.3"), draft=draft)

    def test_smaller_models_that_draft(self):
        model = self.path("drafted")
        weights = random_weights(self.CONFIG, "bf16", 9)
        write_meta(model, self.CONFIG, weights, "bf16")
        # The first layer alone, which is right now and then, and one with windows.
        first, windows = self.path("first"), self.path("windows")
        of_first = {name: values for name, values in weights.items() if not name.startswith("layers.1.")}
        write_meta(first, Config(64, 1, 4, 2, vocab=261), of_first, "bf16")
        config = Config(64, 2, 2, 1, vocab=261, windows=(0, 11), qkv_bias=True)
        write_huggingface(windows, config, random_weights(config, "bf16", 10), family=QWEN2)
        of_many, of_two = "16,40,0.3", "2,40,1"
        loads = [(first, of_many), (windows, of_two)]
        if support.EXHAUSTIVE:
            loads += [(first, of_two), (windows, of_many)]
        for smaller, numbers in loads:
            with self.subTest(os.path.basename(smaller), numbers=numbers):
                draft = self.compile(smaller, "cpu", "--weights", "q8_0")
                self.load(model, "cpu", f"{support.by_tier(100, 10000)},{numbers}", draft=draft)

    def test_q4_0(self):
        model = self.path("small.gguf")
        write_gguf(model, self.CONFIG, quantise(random_weights(self.CONFIG, "bf16", 5), "Q4_0")[0])
        self.load(model, "cpu", self.NUMBERS, "--kv-type", "q8_0")

    def test_sparsified(self):
        # Steps of one row drop scores that others keep: their rows are not alike.
        model = self.path("sparse.gguf")
        write_gguf(model, self.CONFIG, quantise(random_weights(self.CONFIG, "bf16", 6), "F32")[0])
        self.load(model, "cpu", support.by_tier("120,16,40", "2000,16,40"), "--sparsify-attention", 4)


class Gpu(Load):
    """The load on the cuda target's kernels, with rounding that depends on where a kernel
    rounds: two paths that only happen to agree do not."""

    def made(self, name, write, *args, **options):
        """The path of the model `name`, written where it is not there yet."""
        path = self.path(name)
        if not os.path.exists(path):
            write(path, *args, **options)
        return path

    def heads_of_16(self):
        return self.made("meta", write_meta, self.CONFIG, random_weights(self.CONFIG, "bf16", 4), "bf16"), ()

    def three_query_heads_a_kv_head(self):
        # With windows, in the default tier the only ones. Vectors of a row lie in both halves of a warp's tile.
        config = Config(192, 2, 6, 2, vocab=261, windows=(0, 11), qkv_bias=True)
        weights = random_weights(config, "bf16", 7)
        return self.made("three", write_huggingface, config, weights, family=QWEN2), ("--parallel", 16)

    def windows(self):
        config = Config(128, 2, 2, 1, vocab=261, windows=(0, 11), qkv_bias=True)
        weights = random_weights(config, "bf16", 8)
        return self.made("windows", write_huggingface, config, weights, family=QWEN2), ()

    def q4_1(self):
        config = Config(128, 2, 2, 2, vocab=261)
        return self.made("four.gguf", write_gguf, config, quantise(random_weights(config, "bf16", 9), "Q4_1")[0]), ()


class EveryShape:
    """Loads that both devices run by their load_hostile()."""

    def test_heads_of_16(self):
        self.load_hostile(self.heads_of_16())

    def test_three_query_heads_a_kv_head(self):
        self.load_hostile(self.three_query_heads_a_kv_head())

    @unittest.skipUnless(support.EXHAUSTIVE, "three query heads a KV head have windows")
    def test_windows(self):
        self.load_hostile(self.windows())

    def test_q4_1(self):
        self.load_hostile(self.q4_1())


class OnSim(EveryShape, Gpu):
    def load_hostile(self, model, numbers=support.by_tier("4,8,4", "250,8,12")):
        path, flags = model
        self.load(path, "sim", numbers, "--sim-hostile-rounding", *flags)

    def test_with_pages_for_one_and_a_bit(self):
        # A long sequence leaves little to others: they are preempted, and pages go to and fro.
        for cached in (1, 0):
            with self.subTest(cached=cached):
                self.load_hostile(self.heads_of_16(), support.by_tier(f"8,8,8,0.1,{cached}", f"120,8,30,0.1,{cached}"))

    def test_the_first_launch_whose_rows_differ_is_named(self):
        path, flags = self.heads_of_16()
        rows = "RowsDifferFromThoseAloneOnlyWhereThatIsAllowed"
        self.load(path, "sim", support.by_tier("4,8,4", "40,8,4"), "--sim-hostile-rounding", *flags, test=rows)


class OnCuda(EveryShape, Gpu):
    """On the fake driver, which runs the kernels of the plan for sim: the runtime
    is that of a GPU, with graphs and steps in flight."""

    def load_hostile(self, model):
        path, flags = model
        sim_plan = self.compile(path, "sim", "--sim-hostile-rounding", "--gpu", "sm_90a", *flags)
        env = fake_cuda.environment(sim_plan, XDG_CACHE_HOME=self.cache)
        self.load(path, "cuda", support.by_tier("3,8,4", "250,8,12"), "--gpu", "sm_90a", *flags, env=env)


if __name__ == "__main__":
    unittest.main()
