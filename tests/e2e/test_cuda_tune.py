# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tiles that cuda's kernels may have, on the simulator: what they give is what
the plan's own kernels give. And under which name a GPU's choices are kept.

    test_cuda_tune.py Variants    the first few variants of every kernel of a small model
    test_cuda_tune.py Checked     some, with every access to memory checked
    test_cuda_tune.py Overlaps    how launches overlap
    test_cuda_tune.py Identity    what a GPU is called

With LLAMAC_ALL_CANDIDATES in the environment Variants takes all variants, and more
GPUs and formats.
"""

import json
import os
import re
import unittest

import support

support.require("numpy", "gguf", "safetensors")

import test_cuda
from llama_numpy import Config
from make_model import random_weights, write_meta

STANDIN = os.path.join(os.path.dirname(support.BIN_DIR), "tests", "cuda-standin")


class SimCase(support.TestCase):
    ALL = "LLAMAC_ALL_CANDIDATES" in os.environ
    # Rows long enough for loads in flight; an odd vocabulary.
    CONFIG = Config(256, 1, 4, 2, vocab=261)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.model = cls.path("model")
        write_meta(cls.model, cls.CONFIG, random_weights(cls.CONFIG, "bf16", 4), "bf16")

    def tune(self, gpu, candidates, *flags):
        """Compares variants with the plan's own kernels, and returns the families
        that had some."""
        plan = self.path(f"{gpu}.plan")
        self.llamac("compile", self.model, "--target", "sim", "--gpu", gpu, "-c", 192, "--parallel", 8, "-o", plan, "-q", *flags)
        budget, timeout = (6000, 6000) if self.ALL else (600, 300)
        out = self.llamac("tune", plan, "--budget", budget, "--candidates", candidates, "--turns", 1, timeout=timeout).stdout
        self.assertNotIn("rejected", out)
        listed = self.llamac("tune", plan, "--list").stdout
        counts = [int(count) for count in re.findall(r"\((\d+) candidates\)", listed)]
        self.assertGreater(sum(counts), 5 * len(counts))
        family = re.compile(r"(?:qkv_)?(gemv_mma|gemv|gemm_wgmma|gemm|wgmma|attention_split|attention)_")
        return {family.match(name)[1] for name in re.findall(r"^  (\w+) +own", out, re.M)}


class Variants(SimCase):
    def tune_some(self, gpu, *flags):
        return self.tune(gpu, 1000 if self.ALL else 4, *flags)

    def test_of_hopper_in_bf16(self):
        families = self.tune_some("sm_90a")
        self.assertLessEqual({"gemv", "gemv_mma", "attention_split", "gemm_wgmma"}, families)

    def test_of_other_gpus_in_4_bits(self):
        families = self.tune_some("sm_80", "--weights", "q4_0")
        self.assertLessEqual({"gemv", "gemv_mma", "gemm", "attention", "attention_split"}, families)

    @unittest.skipUnless(SimCase.ALL, "LLAMAC_ALL_CANDIDATES is not set")
    def test_of_all_gpus_and_formats(self):
        for gpu in ("sm_80", "sm_89", "sm_90a", "sm_120a"):
            for weights in ("keep", "q4_0", "q8_0"):
                with self.subTest(gpu=gpu, weights=weights):
                    self.tune_some(gpu, "--weights", weights)


class Checked(SimCase):
    CONFIG = Config(128, 1, 4, 2, vocab=132)

    def test_of_hopper(self):
        self.tune("sm_90a", 3, "--sim-check")

    def test_of_other_gpus(self):
        self.tune("sm_80", 3, "--sim-check")


class Overlaps(test_cuda.CudaCase):
    """How launches overlap, on a driver that stands in for a GPU's and compiles
    nothing: its kernels are those of a plan for sim, so schedules find none."""

    def test_are_compared_in_whole_steps_and_taken_up_by_a_run(self):
        before = self.run_plan(self.plan, "-n", 12, *self.PROMPT, "--no-tuned").stdout
        # The simulator is slow: time for the first program is enough.
        options = ("--budget", 100, "--candidates", 1, "--turns", 1, "--json")
        decode = json.loads(self.run_plan("tune", self.plan, *options).stdout)[0]
        names = {"", "overlap=after-wait", "overlap=at-end", "overlap=none"}
        overlaps = [way for way in decode["ways"] if way["way"] in names]
        self.assertEqual({way["way"] for way in overlaps}, names)
        for way in overlaps:
            self.assertEqual(way["rejected"], "")
            self.assertGreater(way["ratio"], 0)
        for way in decode["ways"]:
            if "apart" in way["way"]:
                self.assertIn("cuModuleLoadData", way["rejected"])

        path = self.path("kept.json")
        self.run_plan("tune", "--export", path, tool=support.LLAMAC)
        with open(path) as file:
            kept = json.load(file)
        for overlap in ("after-wait", "at-end", "none"):
            ways = [entry for entry in kept["entries"] if entry["kernel"].startswith("step of at most")]
            self.assertTrue(ways)
            for entry in ways:
                entry["tiles"] = f"overlap={overlap}"
            with open(path, "w") as file:
                json.dump({**kept, "entries": ways}, file)
            folder = os.path.join(self.cache, "llamac", "tuning")
            for name in os.listdir(folder):
                os.remove(os.path.join(folder, name))
            self.run_plan("tune", "--import", path, tool=support.LLAMAC)
            explained = self.run_plan("tune", self.plan, "--explain-kernels").stdout
            self.assertIn(f"overlap={overlap}  (imported)", explained)
            self.assertEqual(self.run_plan(self.plan, "-n", 12, *self.PROMPT).stdout, before)


class Identity(SimCase):
    def test_names_the_gpu_its_clocks_and_what_compiles(self):
        plan, kernels = self.path("cuda.plan"), self.path("sim.plan")
        for target, path in (("cuda", plan), ("sim", kernels)):
            self.llamac("compile", self.model, "--target", target, "--gpu", "sm_90a", "-c", 128, "-o", path, "-q")
        env = dict(os.environ, LD_LIBRARY_PATH=STANDIN, LLAMAC_NVRTC_PATH=STANDIN, LLAMAC_STANDIN_PLAN=kernels, XDG_CACHE_HOME=self.cache)
        result = support.run([support.LLAMAC_RUN, "tune", plan, "--explain-kernels"], env=env)
        self.assertEqual(result.returncode, support.OK, result.stderr)
        device = re.search(r"^device  (.*)$", result.stdout, re.M)[1]
        self.assertRegex(
            device,
            r"^cuda, Stand-in, 132 multiprocessors, 1980 MHz, memory 3201 MHz, driver for CUDA 13\.0, NVRTC \d+\.\d+$",
        )


if __name__ == "__main__":
    unittest.main(verbosity=2)
