# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A process for each GPU, where there is none (fake_cuda.py): mpirun starts them, and
they gather by NCCL."""

import unittest

import processes
import support
from fake_cuda import CudaCase
from llama_numpy import Config
from support import DEVICE


class Processes(CudaCase):
    CONFIG = Config(64, 1, 2, 2, vocab=264)
    RANKS = 2
    RUN = ("-n", "12", *CudaCase.PROMPT)

    def launch(self, failing=None, **more):
        """An all-gather fails in the second program of rank `failing` alone."""
        env = processes.ENVIRONMENT | self.environment(**more)
        command = []
        for rank in range(self.RANKS):
            fails = ["-x", "LLAMAC_FAKE_FAILS=ncclAllGather:6"] if rank == failing else []
            command += [":"] * bool(rank) + ["-n", "1", *fails, support.LLAMAC_RUN, self.plan, *self.RUN]
        return support.run([processes.MPIRUN, "--oversubscribe", *command], env=env, timeout=60)

    def test_tokens_are_those_of_ranks_in_one_process(self):
        expected = self.run_plan(self.plan, *self.RUN).stdout
        # Each process sees all GPUs and takes one.
        for gpus in ({}, {"LLAMAC_FAKE_CAPABILITY": "9.0", "NCCL_MULTI_RANK_GPU_ENABLE": "1"}):
            with self.subTest(gpus):
                result = self.launch(**gpus)
                self.assertEqual(result.returncode, support.OK, result.stderr)
                self.assertEqual(result.stdout, expected)

    def test_are_not_tuned(self):
        env = processes.ENVIRONMENT | self.environment()
        result = support.run(processes.command(self.RANKS, "tune", self.plan, "-q"), env=env, timeout=60)
        self.assertEqual(result.returncode, support.USAGE, result.stderr)
        self.assertIn("expected one process to try others in", result.stderr)

    def test_a_process_without_a_gpu_ends_all(self):
        result = self.launch(LLAMAC_FAKE_CAPABILITY="9.0")
        self.assertNotEqual(result.returncode, support.OK)
        self.assertIn("expected GPU 1 for rank 1 of this machine, got 1 GPUs", result.stderr)

    def test_a_gather_that_fails_on_a_rank_ends_all(self):
        for rank in range(self.RANKS):
            with self.subTest(rank):
                result = self.launch(failing=rank)
                self.assertEqual(result.returncode, DEVICE, result.stderr)
                self.assertIn("ncclAllGather: NCCL says", result.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
