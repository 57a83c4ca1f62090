# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ranks on several GPUs that gather by NCCL, where there are neither (fake_cuda.py).

    test_cuda_ranks.py Answers       tokens, logits and memory
    test_cuda_ranks.py AnswersOfFour  the same on four GPUs (exhaustive)
    test_cuda_ranks.py Faults        every call failing in turn
"""

import json
import os
import re
import unittest

import support

support.require("numpy")

import numpy as np

from fake_cuda import CudaCase
from llama_numpy import Config
from support import DEVICE, FAKE_DRIVER


class Answers(CudaCase):
    CONFIG = Config(64, 2, 8, 4, vocab=264)
    RANKS = 2

    def test_tokens_are_those_of_ranks_in_lockstep(self):
        expected = self.llamac("run", self.sim_plan, "-n", 33, *self.PROMPT).stdout
        self.assertEqual(self.run_plan(self.plan, "-n", 33, *self.PROMPT).stdout, expected)
        self.assert_nothing_leaked()

    def test_logits_have_the_same_bits_for_any_number_of_rows(self):
        tokens = np.random.default_rng(3).integers(0, self.CONFIG.vocab, 90).tolist()
        ids = ",".join(map(str, tokens))
        for chunk in support.by_tier((90, 7), (90, 33, 7, 1)):
            with self.subTest(chunk=chunk):
                flags = ("--chunk", chunk)
                sim, cuda = (self.plan_logits(plan, ids, *flags, tool=support.LLAMAC) for plan in (self.sim_plan, self.plan))
                self.assertTrue((sim == cuda).all())

    def test_requests_in_one_batch_have_the_answers_of_the_simulator(self):
        requests = self.path("requests.jsonl")
        with open(requests, "w") as f:
            for length in (1, 3, 6):
                f.write(json.dumps({"tokens": list(range(1, 1 + length)), "max_tokens": 5 + length}) + "\n")
        answers = []
        for plan in (self.sim_plan, self.plan):
            out = self.path("answers.jsonl")
            self.run_plan("generate", plan, "--prompts", requests, "-o", out, "--print-ids", "-q", tool=support.LLAMAC)
            with open(out) as f:
                lines = sorted(map(json.loads, f), key=lambda line: line["id"])
            # The hash of a request is of its plan too.
            self.assertEqual(len({line.pop("request") for line in lines}), len(lines))
            answers.append(lines)
            os.remove(out)
        self.assertEqual(*answers)

    def test_a_run_takes_the_bytes_that_were_planned(self):
        self.assert_planned_bytes(self.plan, self.model)

    def test_ranks_take_gpus_from_the_index_on(self):
        gpus = {"LLAMAC_FAKE_CAPABILITY": ",".join(["9.0"] * (self.RANKS + 1))}
        bench = ("bench", self.plan, "--prompt-tokens", 2, "--gen-tokens", 2, "--gpu-index")
        self.assertIn(f"{self.RANKS} ranks of cuda, Fake GPU 1", self.run_plan(*bench, 1, **gpus).stdout)
        error = self.run_plan(*bench, 2, expect=DEVICE, **gpus).stderr
        expected = f"expected GPU {self.RANKS + 1} for rank {self.RANKS - 1} of this machine, got {self.RANKS + 1} GPUs"
        self.assertIn(expected, error)
        # Several ranks may be told to be on one.
        expected = self.run_plan(self.plan, "-n", 6, *self.PROMPT).stdout
        one = {"LLAMAC_FAKE_CAPABILITY": "9.0", "NCCL_MULTI_RANK_GPU_ENABLE": "1"}
        self.assertEqual(self.run_plan(self.plan, "-n", 6, *self.PROMPT, **one).stdout, expected)


class AnswersOfFour(Answers):
    RANKS = 4


class Faults(CudaCase):
    """Whatever fails on one rank, no other waits for it: the end is one line, exit
    code 7, and nothing is left."""

    CONFIG = Config(64, 1, 2, 2, vocab=264)
    RANKS = 2

    def fails(self, **env):
        result = self.run_plan(self.plan, "-n", 4, *self.PROMPT, expect=DEVICE, **env)
        errors = [line for line in result.stderr.splitlines() if line.startswith("llamac-run: error: ")]
        self.assertEqual(len(errors), 1, result.stderr)
        if os.path.exists(self.leaks):
            self.assert_nothing_leaked()
        return errors[0]

    def test_every_call_of_nccl_may_fail(self):
        with open(os.path.join(support.ROOT, "runtime", "cuda", "Nccl.h")) as f:
            functions = re.findall(r"^  X\((nccl\w+), NcclResult", f.read(), re.M)
        # Calls that end something have nobody to tell.
        functions = [f for f in functions if f not in ("ncclCommAbort", "ncclCommDestroy")]
        # On one rank: at the start; in the prompt's step and in a capture; behind a later step.
        calls = {"ncclCommInitRank": (1, 2), "ncclAllGather": (2, 5, 9, 14), "ncclCommGetAsyncError": (2, 5)}
        self.assertLess(set(calls), set(functions))
        for function in functions:
            for call in ("", *(f":{call}" for call in calls.get(function, ()))):
                with self.subTest(function + call):
                    error = self.fails(LLAMAC_FAKE_FAILS=function + call)
                    self.assertIn(f"{function}: NCCL says as the fake NCCL was told", error)

    def test_a_collective_that_fails_while_it_runs_is_told(self):
        error = self.fails(LLAMAC_FAKE_FAILS="ncclAllGather.later:3")
        self.assertRegex(error, r"rank \d: ncclAllGather: NCCL says")

    def test_a_call_of_the_driver_that_fails_on_one_rank_ends_all(self):
        calls = support.by_tier((1, 2, 3, 4, 7), range(1, 40))
        for function in ("cuLaunchKernelEx", "cuStreamSynchronize", "cuGraphLaunch", "cuStreamEndCapture", "cuCtxSetCurrent"):
            failed = 0
            for call in calls:
                with self.subTest(f"{function}:{call}"):
                    env = self.environment(LLAMAC_FAKE_FAILS=f"{function}:{call}")
                    run = [support.LLAMAC_RUN, self.plan, "-n", "4", *self.PROMPT]
                    result = support.run(run, env=env, timeout=60)
                    # Late calls are of the end, or there are fewer.
                    if result.returncode != support.OK:
                        failed += 1
                        self.assertEqual(result.returncode, DEVICE, result.stderr)
                        self.assertEqual(result.stderr.count("error: "), 1, result.stderr)
                        self.assertIn("the driver says CUDA_ERROR_UNKNOWN", result.stderr)
                    self.assert_nothing_leaked()
            self.assertGreaterEqual(failed, 3, function)

    def test_a_kernel_that_faults_gives_no_tokens(self):
        error = self.fails(LLAMAC_FAKE_FAULT="gemm_wgmma_output_n132_k64_bf16_m16")
        self.assertIn("the driver says CUDA_ERROR_LAUNCH_FAILED", error)

    def test_nccl_that_is_missing_or_too_old_is_told_with_the_next_step(self):
        driver = self.path("driver")
        os.makedirs(driver)
        os.symlink(os.path.join(FAKE_DRIVER, "libcuda.so.1"), os.path.join(driver, "libcuda.so.1"))
        alone = {"LD_LIBRARY_PATH": driver, "LLAMAC_NCCL_PATH": driver, "HOME": driver}
        for variable in ("VIRTUAL_ENV", "CUDA_HOME", "CUDA_PATH"):
            alone[variable] = ""
        error = self.fails(LLAMAC_FAKE_NCCL_VERSION="2804")
        self.assertIn("expected NCCL 2.9 or newer, got version 2804; pip install nvidia-nccl-cu13", error)
        os.symlink(os.path.join(FAKE_DRIVER, "libnvrtc.so.13"), os.path.join(driver, "libnccl.so.2"))
        error = self.fails(**alone)
        self.assertIn("libnccl.so.2: expected NCCL, got a library without ncclGetVersion; pip install", error)


if __name__ == "__main__":
    unittest.main(verbosity=2)
