# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tiles that cuda's kernels may have, on the simulator: what they give is what
the defaults give, and no access races. And tuning on a fake driver.

    test_cuda_tune.py Variants    one variant of every kernel of a small model
    test_cuda_tune.py Driver      a GPU's name, and how launches overlap

The exhaustive tier takes all variants, and more GPUs and formats.
"""

import json
import os
import re
import unittest

import support

support.require("numpy", "gguf", "safetensors")

from fake_cuda import CudaCase
from llama_numpy import Config
from make_model import random_weights, write_meta


class Variants(support.TestCase):
    # Rows long enough for loads in flight; an odd vocabulary; a layer that is not the last, whose rows are all needed.
    CONFIG = Config(256, 2, 4, 2, vocab=261) if support.EXHAUSTIVE else Config(128, 2, 4, 2, vocab=132)

    def tune(self, gpu, *flags):
        """Compares variants with the defaults; the families that had some."""
        model, plan = self.path("model"), self.path(f"{gpu}.plan")
        if not os.path.exists(model):
            write_meta(model, self.CONFIG, random_weights(self.CONFIG, "bf16", 4), "bf16")
        context = 192 if support.EXHAUSTIVE else 64
        options = ["--target", "sim", "--gpu", gpu, "-c", context, "--parallel", 8, "-q", *flags]
        self.llamac("compile", model, "-o", plan, *options)
        options = ["--budget", 6000, "--candidates", 1000 if support.EXHAUSTIVE else 1]
        out = self.llamac("tune", plan, *options, timeout=6000).stdout
        self.assertNotIn("rejected", out)
        family = re.compile(r"(?:qkv_)?(gemv|gemm_wgmma|gemm|wgmma|attention_split|attention)_")
        return {family.match(name)[1] for name in re.findall(r"^  (\w+) +default", out, re.M)}

    def test_of_hopper(self):
        families = self.tune("sm_90a", "--sim-check")
        self.assertLessEqual({"gemv", "attention_split", "gemm_wgmma"}, families)

    def test_of_other_gpus_in_4_bits(self):
        families = self.tune("sm_80", "--weights", "q4_0", "--sim-check")
        # Rows so short leave gemv of block formats one choice.
        self.assertLessEqual({"gemm", "attention", "attention_split"}, families)

    @unittest.skipUnless(support.EXHAUSTIVE, "not the exhaustive tier")
    def test_of_all_gpus_and_formats(self):
        for gpu in ("sm_80", "sm_89", "sm_90a", "sm_120a"):
            for weights in ("keep", "q4_0", "q8_0"):
                with self.subTest(gpu=gpu, weights=weights):
                    self.tune(gpu, "--weights", weights)


class Driver(CudaCase):
    """On the fake driver, which compiles nothing: its kernels are those of a plan for
    sim, so variants have none."""

    CONFIG = Config(64, 1, 4, 2, vocab=261)
    CONTEXT, SEQUENCES = 32, 1
    FLAGS = ("--step-rows", "1")  # A tune takes all the time that it has for each program.

    def test_a_gpu_is_named_and_overlaps_are_compared_and_taken_up(self):
        device = re.search(r"^device  (.*)$", self.run_plan("tune", self.plan, "--explain-kernels").stdout, re.M)[1]
        self.assertRegex(
            device,
            r"^cuda, Fake GPU, 132 multiprocessors, 1980 MHz, memory 3201 MHz, driver for CUDA 13\.0, NVRTC \d+\.\d+$",
        )
        before = self.run_plan(self.plan, "-n", 6, *self.PROMPT).stdout
        decode = json.loads(self.run_plan("tune", self.plan, "--budget", 24, "--candidates", 1, "--json").stdout)[0]
        self.assertTrue(decode["decided"])
        # Kernels with next to no time are not tried at all.
        why = [kernel["candidates"][1]["rejected"] for kernel in decode["kernels"]]
        for text in why:
            self.assertRegex(text, r"cuModuleLoadData|^not tried: the kernel has [01]\.\d % of the time$")
        self.assertIn("cuModuleLoadData", " ".join(why))
        names = ["", "overlap=after-wait", "overlap=at-end", "overlap=none"]
        self.assertEqual([step["config"] for step in decode["candidates"]], names)
        for step in decode["candidates"]:
            self.assertEqual(step["rejected"], "")
            self.assertGreater(step["ratio"], 0)
        path = self.path("kept.json")
        self.run_plan("tune", "--export", path, tool=support.LLAMAC)
        with open(path) as file:
            kept = json.load(file)
        steps = [entry for entry in kept["entries"] if entry["kernel"].startswith("step of at most")]
        self.assertTrue(steps)
        for name in names[1:]:
            steps[0]["config"] = name
            with open(path, "w") as file:
                json.dump({**kept, "entries": steps[:1]}, file)
            os.remove(os.path.join(self.cache, "llamac", "tuning", "tuning.json"))
            self.run_plan("tune", "--import", path, tool=support.LLAMAC)
            self.assertIn(f"{name}  ", self.run_plan("tune", self.plan, "--explain-kernels").stdout)
            self.assertEqual(self.run_plan(self.plan, "-n", 6, *self.PROMPT).stdout, before)


if __name__ == "__main__":
    unittest.main(verbosity=2)
