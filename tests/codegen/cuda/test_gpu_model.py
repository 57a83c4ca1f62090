# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""scripts/gpu_model.py: what it reads off a plan, and what its timeline keeps to."""

import os
import subprocess
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(ROOT, "scripts"))
import gpu_model  # noqa: E402

LLAMAC = os.path.join(os.environ["LLAMAC_BIN_DIR"], "llamac")


def launch(kernel="gemv", weight_bytes=8e6, shared=70 << 10, keys=False):
    return gpu_model.Launch(kernel, 132, 256, shared, weight_bytes, keys, "WeightStream<", 60)


def milliseconds(gpu, launches, ahead=131072):
    return gpu_model.simulate(gpu_model.GPUS[gpu], launches, 1e6, 65536, ahead).total * 1e3


class Plans(unittest.TestCase):
    def test_a_step_of_the_1b_model_is_read_off_its_plan(self):
        model = os.path.join(ROOT, "tests", "compiler", "Inputs", "shapes", "llama-3.2-1b")
        command = [LLAMAC, "compile", model, "--no-weights", "--target", "cuda", "--gpu", "sm_90a", "-q"]
        for weights, bytes_of_32 in (("keep", 64), ("q4_0", 18)):
            result = subprocess.run(
                [*command, "--weights", weights, "--print-after", "lower-to-plan", "--stop-after", "schedule"],
                capture_output=True,
                text=True,
            )
            launches = gpu_model.launches_of(result.stdout + result.stderr)
            self.assertEqual(len(launches), 83)
            self.assertEqual(sum(one.keys for one in launches), 16)
            # Layers and head, and norms in f32.
            matrices = 16 * (2048 * 3072 + 2048 * 2048 + 3 * 2048 * 8192) + 128256 * 2048
            self.assertEqual(sum(one.weight_bytes for one in launches), matrices / 32 * bytes_of_32 + 33 * 2048 * 4)
            self.assertEqual(launches[0].weight_bytes, 0)


class Timeline(unittest.TestCase):
    def test_a_step_takes_no_less_than_its_bytes_and_latencies(self):
        launches = [launch() for _ in range(10)]
        least = 80e6 / gpu_model.GPUS["H200"].read + gpu_model.seconds("step")
        self.assertGreater(milliseconds("H200", launches), least * 1e3)
        # Long reads hide all else but the ends.
        many = [launch(weight_bytes=400e6) for _ in range(10)]
        floor = 4e9 / gpu_model.GPUS["H200"].read * 1e3
        self.assertLess(milliseconds("H200", many), 1.03 * floor)

    def test_terms_add_up(self):
        step = gpu_model.simulate(
            gpu_model.GPUS["H200"], [launch(), launch(keys=True, weight_bytes=0), launch("sample_n", 0)], 1e6, 65536, 0
        )
        self.assertAlmostEqual(step.total, step.reading + sum(step.idle.values()), places=9)
        self.assertGreater(step.idle["attention"], 0)
        self.assertGreater(step.idle["sampling"], 0.9 * gpu_model.seconds("sampling"))

    def test_launches_that_have_room_begin_before_those_ahead_end(self):
        gpu = gpu_model.GPUS["H200"]
        step = gpu_model.simulate(gpu, [launch() for _ in range(9)], 0, 65536, 0)
        self.assertEqual(max(step.ahead), 3)
        step = gpu_model.simulate(gpu, [launch(shared=120 << 10) for _ in range(9)], 0, 65536, 0)
        self.assertEqual(max(step.ahead), 1)
        step = gpu_model.simulate(gpu_model.GPUS["A100"], [launch() for _ in range(9)], 0, 65536, 0)
        self.assertEqual(max(step.ahead), 1)

    def test_every_latency_counts(self):
        launches = [launch("embed", 0), launch(), launch(keys=True, weight_bytes=0), launch("sample_n", 0)]
        before = milliseconds("H200", launches)
        for name in ("boundary", "attention", "sampling", "step"):
            value, *rest = gpu_model.LATENCIES[name]
            gpu_model.LATENCIES[name] = (value + 5e-6, *rest)
            self.assertGreater(milliseconds("H200", launches), before + 4e-3, name)
            gpu_model.LATENCIES[name] = (value, *rest)


if __name__ == "__main__":
    unittest.main(verbosity=2)
