# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""scripts/gpu_model.py: what it reads off a plan, and how near it is to what GPUs took."""

import os
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(ROOT, "scripts"))
import gpu_model  # noqa: E402

LLAMAC = os.path.join(os.environ["LLAMAC_BIN_DIR"], "llamac")


class Plans(unittest.TestCase):
    def test_a_step_of_the_1b_model_is_read_off_its_plan(self):
        text = gpu_model.plan_of(LLAMAC, "1B")
        for program, count, kind in (("decode", 83, "stream"), ("decode16", 88, "batch")):
            launches = gpu_model.launches_of(text, program)
            self.assertEqual(len(launches), count)
            # Layers and head, norms in f32, and 8 heads of 64 keys and values in 16 bits.
            matrices = 16 * (2048 * 3072 + 2048 * 2048 + 3 * 2048 * 8192) + 128256 * 2048
            self.assertEqual(sum(one.weights for one in launches), matrices)
            self.assertEqual(sum(one.norms for one in launches), 33 * 2048 * 4)
            self.assertEqual([one.keys for one in launches if one.keys], [8 * 64 * 2 * 2] * 16)
            self.assertEqual({one.kind for one in launches if one.weights}, {kind})
            self.assertEqual(launches[0].weights, 0)


class Steps(unittest.TestCase):
    def test_it_is_within_6_percent_of_all_that_was_measured(self):
        for point, gpu, measured in gpu_model.MEASURED:
            with self.subTest(point=point, gpu=gpu):
                step = gpu_model.predict(LLAMAC, point, gpu, of_then=True)
                self.assertAlmostEqual(1e3 * step.total / measured, 1, delta=0.06)

    def test_more_than_a_mark_is_expected_only_by_a_term_that_is_named(self):
        for point, mark in gpu_model.MARKS:
            step = gpu_model.predict(LLAMAC, point, "H200")
            self.assertGreater(step.floor * 1e3, 0.3 * mark)
            self.assertEqual(step.total * 1e3 > mark, gpu_model.excess(step, mark) != "", point)

    def test_each_constant_has_its_term(self):
        launches = [gpu_model.Launch("gemv_w", 1e9), gpu_model.Launch("gemv_mma_w", 1e9)]
        launches += [gpu_model.Launch("gemm_wgmma_w_m16", 1e9), gpu_model.Launch("attention_split", keys=4096)]
        point = gpu_model.Point("1B", "q8_0", 16, 1000)
        step = gpu_model.step_of(launches, point, "H100")
        self.assertAlmostEqual(step.gaps, 4 * gpu_model.GAP)
        self.assertAlmostEqual(step.floor, (3 * 8.5e9 / 8 + 16000 * 4096) / gpu_model.READ["H100"])
        for kind in gpu_model.TAKEN:
            term = "attention" if kind == "attention" else "kernels"
            rate = gpu_model.TAKEN[kind]
            gpu_model.TAKEN[kind] = rate / 2
            slower = gpu_model.step_of(launches, point, "H100")
            gpu_model.TAKEN[kind] = rate
            self.assertGreater(getattr(slower, term), getattr(step, term), kind)
        # The smooth limit of two is below each of them.
        self.assertGreater(gpu_model.seconds_of(1e9, 3e12, 4e12), 1e9 / 3e12)
        self.assertGreater(gpu_model.seconds_of(1e9, 3e12, 4e12, 1e12), 1e12 / gpu_model.TENSOR)


if __name__ == "__main__":
    unittest.main(verbosity=2)
