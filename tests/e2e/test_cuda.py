# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""--target cuda from a model to its tokens, where there is no GPU (fake_cuda.py).

    test_cuda.py Answers    tokens, logits and checks
    test_cuda.py Resident   steps in one launch
    test_cuda.py Faults     every call of the driver failing in turn
    test_cuda.py Flight     steps in flight, and what is left of many runs
    test_cuda.py FlightPastARing  steps in flight, where layers have a window
    test_cuda.py Profiles   the time of launches
    test_cuda.py Cache      compiled kernels on disk
"""

import collections
import json
import os
import re
import shutil
import unittest
from dataclasses import replace

import support

support.require("numpy", "gguf", "safetensors")

import model_families as families
import numpy as np

from fake_cuda import CudaCase
from llama_numpy import Config
from make_model import random_weights, write_huggingface, write_meta
from support import ACCURACY, DEVICE, MEMORY


class Answers(CudaCase):
    def test_a_run_takes_the_bytes_that_were_planned(self):
        self.assert_planned_bytes(self.plan, self.model)

    def test_tokens_are_those_of_the_cpu(self):
        expected = self.llamac("run", self.model, "-c", 256, "-n", 33, *self.PROMPT).stdout
        got = self.run_plan(self.plan, "-n", 33, *self.PROMPT)
        self.assertEqual(got.stdout, expected)
        self.assert_nothing_leaked()

    def test_with_batch_invariance_a_prompt_has_a_program_of_prompts(self):
        requests, answers = self.path("requests.jsonl"), self.path("answers.jsonl")
        with open(requests, "w") as f:
            f.write('{"tokens": [1, 5, 9], "max_tokens": 1}\n')
        # The steps of programs that all rows of may have logits are graphs.
        failing = {"LLAMAC_FAKE_FAILS": "cuGraphLaunch"}
        run = ("generate", self.plan, "--prompts", requests, "-o", answers, "--print-ids", "-q")
        self.run_plan(*run, "--batch-invariant", **failing)
        os.remove(answers)
        self.run_plan(*run, expect=DEVICE, **failing)
        self.run_plan(*run)

    def test_drawn_tokens_are_those_of_the_simulator(self):
        # Which are those that NumPy samples (test_sim.py).
        draw = ("-n", 20, "--temp", 0.9, "--top-k", 40, "--top-p", 0.95, "--seed", 11)
        expected = self.llamac("run", self.sim_plan, *draw, *self.PROMPT).stdout
        self.assertEqual(self.run_plan(self.plan, *draw, *self.PROMPT).stdout, expected)

    def test_logits_are_those_of_the_simulator(self):
        tokens = np.random.default_rng(3).integers(0, self.CONFIG.vocab, 90).tolist()
        ids = ",".join(map(str, tokens))
        sim, cuda = (self.plan_logits(plan, ids, tool=support.LLAMAC) for plan in (self.sim_plan, self.plan))
        self.assertTrue((sim == cuda).all())

    def test_weights_may_stay_in_the_checkpoint(self):
        plan = self.path("referenced.plan")
        self.llamac("compile", self.model, "--target", "cuda", "--reference-weights", "-c", 256, "-o", plan, "-q")
        expected = self.run_plan(self.plan, "-n", 4, *self.PROMPT).stdout
        self.assertEqual(self.run_plan(plan, "-n", 4, *self.PROMPT).stdout, expected)

    def test_a_gpu_is_named_by_its_index(self):
        two = {"LLAMAC_FAKE_CAPABILITY": "9.0,9.0"}
        expected = self.run_plan(self.plan, "-n", 4, *self.PROMPT, **two).stdout
        self.assertEqual(self.run_plan(self.plan, "--gpu-index", 1, "-n", 4, *self.PROMPT, **two).stdout, expected)
        bench = ("bench", self.plan, "--prompt-tokens", 4, "--gen-tokens", 2)
        self.assertIn("Fake GPU 1", self.run_plan(*bench, "--gpu-index", 1, **two).stdout)
        self.assertNotIn("Fake GPU 1", self.run_plan(*bench, **two).stdout)
        error = self.run_plan(self.plan, "--gpu-index", 2, *self.PROMPT, expect=support.USAGE, **two).stderr
        self.assertIn("--gpu-index: expected 0 to 1, the GPUs of this machine, got 2", error)
        error = self.run_plan(self.sim_plan, "--gpu-index", 1, *self.PROMPT, expect=support.USAGE).stderr
        self.assertIn("--gpu-index: expected a plan for cuda, got one for sim", error)

    def test_bench_measures_steps_in_flight(self):
        result = self.run_plan("bench", self.plan, "--prompt-tokens", 20, "--gen-tokens", 8, "--json")
        self.assertGreater(json.loads(result.stdout)["decode_tok_s"], 0)
        self.assert_nothing_leaked()

    def test_random_weights_need_a_configuration_alone(self):
        folder = self.path("bare")
        os.makedirs(folder)
        shutil.copy(os.path.join(self.model, "params.json"), folder)
        run = ("-n", 12, *self.PROMPT, "--random-weights")

        def logits(plan, seed, **env):
            return self.plan_logits(plan, self.PROMPT[1], "--random-weights", seed, **env)

        for weights in support.by_tier(("keep", "q4_0"), ("keep", "q8_0", "q4_0")):
            with self.subTest(weights):
                plans = {target: self.path(f"bare-{target}-{weights}.plan") for target in ("cuda", "sim", "cpu")}
                size = ("--weights", weights, "-c", 256, "--step-rows", 32)
                for target, plan in plans.items():
                    self.llamac("compile", folder, "--target", target, *size, "--no-weights", "-o", plan, "-q")
                    self.assertLess(os.path.getsize(plan), 8 << 20)
                env = {"LLAMAC_FAKE_PLAN": plans["sim"]}
                # The cpu rounds activations to 8 bits for integers, and ties of random weights may fall otherwise.
                expected = logits(plans["cpu"], 5)
                largest = np.abs(expected).max()
                self.assertLess(np.abs(logits(plans["cuda"], 5, **env) - expected).max(), 0.05 * largest)
                self.assertGreater(np.abs(logits(plans["cuda"], 6, **env) - expected).max(), 0.5 * largest)
                got = self.run_plan(plans["cuda"], *run, 5, **env).stdout
                if weights == "keep":
                    self.assertEqual(got, self.run_plan(plans["cpu"], *run, 5).stdout)
                self.assertNotEqual(got, self.run_plan(plans["cuda"], *run, 6, **env).stdout)
                random = ("--random-weights", 5)
                self.assert_planned_bytes(plans["cuda"], folder, size, random, **env)
                self.assertGreater(len(set(got.split())), 1)
        self.run_plan("bench", plans["cpu"], "--random-weights", 5, "--prompt-tokens", 20, "--gen-tokens", 8)
        error = self.run_plan(plans["cpu"], "-n", 2, *self.PROMPT, expect=support.USAGE).stderr
        self.assertIn("the plan has no weights; use random ones by --random-weights SEED", error)
        self.llamac("run", folder, "-c", 256, "--random-weights", 5, "-n", 4, *self.PROMPT)

    def test_every_launch_is_checked_through_the_driver(self):
        out = self.run_plan("check", self.model, "--target", "cuda", "-c", 256, tool=support.LLAMAC).stdout
        self.assertIn("gemv_output", out)
        self.assertIn("cuda by 16", out)


class Resident(CudaCase):
    """The step of one row is one launch, and a run of steps is, too."""

    CONFIG = Config(64, 2, 4, 2, vocab=262)
    FLAGS = ("--resident-step", "on")
    DRAWN = ("--temp", 0.9, "--top-p", 0.95, "--seed", 11)

    def test_a_run_takes_the_bytes_that_were_planned(self):
        self.assert_planned_bytes(self.plan, self.model, self.FLAGS)

    def test_tokens_are_those_of_the_step_of_many_launches(self):
        chain = self.path("chain.plan")
        self.llamac("compile", self.model, "--target", "sim", "-c", self.CONTEXT, "-o", chain, "-q")
        for draw in ((), self.DRAWN):
            with self.subTest(draw):
                run = ("-n", 33, *draw, *self.PROMPT)
                expected = self.llamac("run", chain, *run).stdout
                self.assertEqual(self.run_plan(self.plan, *run).stdout, expected)
                self.assert_nothing_leaked()
                # Where the GPU does not run it the chain does.
                left_out = self.run_plan(self.plan, *run, LLAMAC_FAKE_COOPERATIVE="0")
                self.assertEqual(left_out.stdout, expected)
                self.assertIn("no cooperative launches", left_out.stderr)

    def test_each_of_its_steps_is_one_launch(self):
        trace = self.path("trace.json")
        self.run_plan(self.plan, "-n", 5, *self.PROMPT, "--profile", "--trace", trace)
        with open(trace) as f:
            kernels = [event["args"]["kernel"] for event in json.load(f)["traceEvents"] if event["ph"] == "X"]
        self.assertEqual(kernels[-4:], ["resident_step"] * 4)
        self.assertEqual(kernels.count("resident_step"), 4)


class Profiles(CudaCase):
    def profile(self, plan):
        trace = self.path("trace.json")
        run = ("-n", 5, *self.PROMPT)
        result = self.run_plan(plan, *run, "--profile", "--trace", trace)
        self.assertEqual(result.stdout, self.run_plan(plan, *run).stdout)
        with open(trace) as f:
            return result.stderr.splitlines(), json.load(f)["traceEvents"]

    def test_every_launch_of_every_step_is_timed(self):
        cpu_plan = self.path("cpu.plan")
        self.llamac("compile", self.model, "-c", 256, "-o", cpu_plan, "-q")
        for plan in (self.plan, cpu_plan):
            table, slices = self.profile(plan)
            program = json.loads(self.llamac("inspect", plan, "--json").stdout)["programs"][0]
            decode = [slice for slice in slices if slice["args"]["step"] == 4]
            self.assertEqual(len(decode), program["launches"])
            self.assertEqual({slice["args"]["step"] for slice in slices}, set(range(5)))
            end = 0
            for slice in slices:
                self.assertGreaterEqual(slice["ts"], end - 1e-3)
                self.assertGreaterEqual(slice["dur"], 0)
                end = slice["ts"] + slice["dur"] * 0.999
            # The table has the same launches, kernel by kernel.
            self.assertRegex(table[0], r"^kernel +launches +ms +time +us each +GB/s +GFLOP/s")
            counted = {line.split()[0]: int(line.split()[1]) for line in table[1:-1]}
            self.assertEqual(counted.pop("all"), len(slices))
            self.assertEqual(counted, dict(collections.Counter(slice["args"]["kernel"] for slice in slices)))
            self.assertIn("5 steps", table[-1])

    def test_bytes_are_those_of_weights_and_keys(self):
        slices = self.profile(self.plan)[1]
        output = [slice for slice in slices if slice["args"]["step"] == 4 and "gemv_output" in slice["args"]["kernel"]]
        self.assertEqual(len(output), 1)
        self.assertGreater(output[0]["args"]["bytes"], 261 * 64 * 2)
        self.assertLess(output[0]["args"]["bytes"], 261 * 64 * 2 * 1.2)

    def test_a_call_that_fails_ends_the_run(self):
        for function in ("cuEventRecordWithFlags", "cuEventElapsedTime", "cuEventCreate"):
            error = self.run_plan(
                *(self.plan, "-n", 3, *self.PROMPT, "--profile"), expect=DEVICE, LLAMAC_FAKE_FAILS=function + ":2"
            ).stderr
            self.assertIn("the driver says CUDA_ERROR_UNKNOWN", error)
            self.assert_nothing_leaked()


class Flight(CudaCase):
    """tests/runtime/cuda/StepsInFlightTest.cpp, and steps that fail while others
    follow them."""

    # Whole steps are in flight, of one layer as of many.
    CONFIG = Config(64, 1, 4, 2, vocab=261)

    def run_tests(self, names, program="cuda_steps_tests", **env):
        tests = os.path.join(os.path.dirname(support.BIN_DIR), "tests", program)
        return self.run_plan(f"--gtest_filter={names}", tool=tests, LLAMAC_TEST_PLAN=self.plan, **env).stdout

    def test_steps_in_flight_are_as_one_after_the_other(self):
        self.assertIn("[  PASSED  ] 12 tests.", self.run_tests("StepsInFlightTest.*:CopiesTest.*"))
        self.assert_nothing_leaked()

    def test_a_scheduler_gives_each_request_the_answer_it_has_alone(self):
        load = support.by_tier("3,4,8", "40,8,12")
        output = self.run_tests("*.EachAnswer*", program="scheduler_plan_tests", LLAMAC_TEST_LOAD=load)
        self.assertIn("[  PASSED  ] 1 test.", output)
        self.assert_nothing_leaked()

    def test_a_thousand_runs_leave_nothing(self):
        self.assertIn("[  PASSED  ] 1 test.", self.run_tests("LeakTest.*", LLAMAC_FAKE_IDLE="1"))
        with open(self.leaks) as f:
            self.assertEqual(len(f.readlines()), 10)
        self.assert_nothing_leaked()

    def test_a_step_that_fails_gives_no_token_whatever_is_ahead(self):
        tokens = 12
        runs = 2 + 3  # A run has four steps, then one, behind the first token.
        expected = self.run_plan(self.plan, "-n", tokens, *self.PROMPT).stdout.split()
        for function in ("cuGraphLaunch", "cuMemcpyDtoDAsync_v2", "cuMemcpyDtoHAsync_v2", "cuEventRecord", "cuEventSynchronize"):
            for call in range(1, 60, support.by_tier(3, 1)):
                env = {"LLAMAC_FAKE_FAILS": f"{function}:{call}"}
                result = support.run(
                    [support.LLAMAC_RUN, self.plan, "-n", str(tokens), *self.PROMPT], env=self.environment(**env)
                )
                given = result.stdout.split()
                if result.returncode == support.OK:
                    self.assertEqual(given, expected)
                    break
                with self.subTest(f"{function}:{call}"):
                    self.assertEqual(result.returncode, DEVICE, result.stderr)
                    self.assertLess(len(given), tokens)
                    self.assertEqual(given, expected[: len(given)])
            # Each is called in every run, or between two.
            self.assertGreater(call, runs - 1, function)
            self.assertLess(call, 58, function)

    def test_a_token_without_logits_ends_the_answer_whatever_is_ahead(self):
        expected = self.run_plan(self.plan, "-n", 12, *self.PROMPT).stdout.split()
        new = next(i for i in range(3, 12) if expected[i] not in expected[:i] + self.PROMPT[1].split(","))
        weights = random_weights(self.CONFIG, "bf16", 4)
        weights["tok_embeddings"][int(expected[new])] = np.nan
        model, sim_plan, plan = self.path("nan"), self.path("nan-sim.plan"), self.path("nan.plan")
        write_meta(model, self.CONFIG, weights, "bf16")
        for target, out in (("sim", sim_plan), ("cuda", plan)):
            self.llamac("compile", model, "--target", target, "--gpu", "sm_90a", "-c", "256", "-o", out, "-q")
        result = self.run_plan(plan, "-n", 12, *self.PROMPT, expect=ACCURACY, LLAMAC_FAKE_PLAN=sim_plan)
        self.assertEqual(result.stdout.split(), expected[: new + 1])
        self.assertIn(f"logits of position {8 + new}: expected finite numbers", result.stderr)


class FlightPastARing(Flight):
    """Where the cache has a ring for the keys of a window, which the prompt fills."""

    CONFIG = replace(Flight.CONFIG, windows=(30,))
    CONTEXT = 640

    @classmethod
    def write_model(cls, weights):
        write_huggingface(cls.model, cls.CONFIG, weights, "bf16", family=families.MISTRAL)

    test_a_scheduler_gives_each_request_the_answer_it_has_alone = None
    test_a_thousand_runs_leave_nothing = None
    test_a_step_that_fails_gives_no_token_whatever_is_ahead = None
    test_a_token_without_logits_ends_the_answer_whatever_is_ahead = None

    def test_a_run_takes_the_bytes_that_were_planned(self):
        self.assert_planned_bytes(self.plan, self.model)

    def test_steps_in_flight_are_as_one_after_the_other(self):
        self.assertIn("[  PASSED  ] 1 test.", self.run_tests("StepsInFlightTest.TheContextIsFilled*"))
        self.assert_nothing_leaked()


class Faults(CudaCase):
    """Whatever fails, the end is one line, exit code 7, and nothing is left."""

    def refuse(self, *args, expect=DEVICE, **env):
        result = self.run_plan(self.plan, "-n", 8, *args, *self.PROMPT, expect=expect, **env)
        lines = result.stderr.strip().splitlines()
        errors = [line for line in lines if line.startswith("llamac-run: error: ")]
        self.assertEqual(len(errors), 1, result.stderr)
        return errors[0]

    def test_every_call_of_the_driver_may_fail(self):
        with open(os.path.join(support.ROOT, "runtime", "cuda", "Driver.h")) as f:
            functions = re.findall(r"^  X\((cu\w+), Result", f.read(), re.M)
        # Calls that end something, or word an error, have nobody to tell.
        quiet = {f for f in functions if re.search("Destroy|Free|Unload|Release|GetError", f)}
        # These belong to profiles alone, and to resident steps.
        quiet |= {"cuEventRecordWithFlags", "cuEventElapsedTime"}
        quiet |= {"cuOccupancyMaxActiveBlocksPerMultiprocessor"}
        once = {"cuInit", "cuDriverGetVersion", "cuDeviceGet", "cuDeviceGetCount", "cuDeviceGetName"}
        once |= {"cuMemGetInfo_v2", "cuMemAlloc_v2", "cuDevicePrimaryCtxRetain", "cuFuncSetAttribute"}
        self.assertGreater(len(functions), 25)
        for function in functions:
            for call in ("", ":2"):
                with self.subTest(function + call):
                    if function in quiet:
                        self.run_plan(
                            *(self.plan, "-n", 3, *self.PROMPT), LLAMAC_FAKE_FAILS=function + call
                        )
                        continue
                    if call and function in once:
                        continue
                    error = self.refuse(LLAMAC_FAKE_FAILS=function + call)
                    self.assertIn("the driver says CUDA_ERROR_UNKNOWN", error)
                    if os.path.exists(self.leaks):
                        self.assert_nothing_leaked()

    def test_a_kernel_that_faults_gives_no_tokens(self):
        # In the prompt, and in the first step after it.
        for kernel, tokens in (("gemm_wgmma_output_n261_k64_bf16_m16", 0), ("gemv_output_n261_k64_bf16", 1)):
            with self.subTest(kernel):
                result = self.run_plan(self.plan, "-n", 3, *self.PROMPT, expect=DEVICE, LLAMAC_FAKE_FAULT=kernel)
                self.assertEqual(len(result.stdout.split()), tokens)
                self.assertIn("the driver says CUDA_ERROR_LAUNCH_FAILED", result.stderr)
                self.assert_nothing_leaked()

    def test_a_driver_that_is_too_old_for_the_compiler_is_told(self):
        error = self.refuse(LLAMAC_FAKE_VERSION="12040")
        self.assertIn("expected one for CUDA 13, as NVRTC at", error)
        self.assertIn("got one for CUDA 12; update the driver", error)

    def test_a_driver_that_is_missing_is_named_with_the_next_step(self):
        error = self.refuse(LD_LIBRARY_PATH="")
        self.assertIn("libcuda.so.1: expected NVIDIA's driver", error)
        self.assertIn("--target cpu needs no GPU", error)

    def test_without_a_driver_nothing_is_compiled(self):
        flags = "--target", "cuda", "--tokens", "1"
        run = self.run_plan("run", self.model, *flags, tool=support.LLAMAC, expect=DEVICE, LD_LIBRARY_PATH="")
        self.assertEqual(len(run.stderr.splitlines()), 1, run.stderr)
        self.assertIn("libcuda.so.1: expected NVIDIA's driver", run.stderr)

    def test_a_gpu_that_is_too_old_is_named(self):
        error = self.refuse(LLAMAC_FAKE_CAPABILITY="7.5")
        self.assertIn("Fake GPU: expected a GPU of compute capability 8.0 or higher, got 7.5", error)

    def test_a_plan_of_kernels_for_another_gpu_is_refused(self):
        error = self.refuse(LLAMAC_FAKE_CAPABILITY="8.9")
        self.assertIn("expected a GPU that runs the plan's kernels, which are for sm_90a only, got one of sm_89", error)
        self.assertIn("compile the model again here, or with --gpu sm_89", error)

    def test_memory_that_is_short_is_told_before_anything_is_loaded(self):
        error = self.refuse(LLAMAC_FAKE_MEMORY="200000", expect=MEMORY)
        self.assertRegex(
            error,
            r"cuda\.plan: expected [\d.]+ MiB of memory of the device \(weights [\d.]+ KiB, KV cache [\d.]+ KiB, the rest "
            r"[\d.]+ \w+\), got 195\.3 KiB free of 195\.3 KiB, [\d.]+ MiB missing; no -c and no --weights makes it fit",
        )

    def compile_for_memory(self, *flags, target="cuda"):
        plan = self.path(f"memory-{target}.plan")
        self.llamac("compile", self.model, "--target", target, "--gpu", "sm_90a", "-o", plan, "-q", *flags)
        return plan

    def test_the_context_that_is_advised_fits_and_twice_as_much_does_not(self):
        memory = {"LLAMAC_FAKE_MEMORY": "2700000"}
        run = ("-n", 2, *self.PROMPT)
        result = self.run_plan(self.compile_for_memory("-c", 4096), *run, expect=MEMORY, **memory)
        advised = re.search(r"compile with -c (\d+), which would fit$", result.stderr.strip())
        self.assertTrue(advised, result.stderr)
        context = int(advised[1])
        plan, sim_plan = (self.compile_for_memory("-c", context, target=target) for target in ("cuda", "sim"))
        self.run_plan(plan, *run, **memory, LLAMAC_FAKE_PLAN=sim_plan)
        self.run_plan(self.compile_for_memory("-c", 2 * context), *run, expect=MEMORY, **memory)

    def test_the_weights_that_are_advised_fit(self):
        # Between what the plan takes with weights of 16 and of 8 bits.
        def total(plan):
            error = self.run_plan(plan, "-n", 2, *self.PROMPT, expect=MEMORY, LLAMAC_FAKE_MEMORY="100000").stderr
            value, unit = re.search(r"expected ([\d.]+) (\w+) of memory", error).groups()
            return float(value) * {"KiB": 1 << 10, "MiB": 1 << 20}[unit]

        # A vocabulary so large that weights are more than the rest.
        model = self.path("wide")
        config = Config(64, 1, 4, 2, vocab=30000)
        write_meta(model, config, random_weights(config, "bf16", 1), "bf16")
        plans = {}
        for weights, target in (("keep", "cuda"), ("q8_0", "cuda"), ("q8_0", "sim")):
            plans[weights, target] = self.path(f"{weights}-{target}.plan")
            flags = ("--target", target, "--gpu", "sm_90a", "-c", 256, "--step-rows", 16, "--weights", weights, "-q")
            self.llamac("compile", model, "-o", plans[weights, target], *flags)

        run = ("-n", 2, *self.PROMPT)
        plan, sim_plan = plans["q8_0", "cuda"], plans["q8_0", "sim"]
        wide, narrow = total(plans["keep", "cuda"]), total(plan)
        memory = {"LLAMAC_FAKE_MEMORY": str(int((wide + narrow) / 2))}
        error = self.run_plan(plans["keep", "cuda"], *run, expect=MEMORY, **memory).stderr
        self.assertRegex(error, r"--weights q8_0, which would fit$")
        self.run_plan(plan, *run, **memory, LLAMAC_FAKE_PLAN=sim_plan)

    def test_a_kernel_that_does_not_compile_is_told(self):
        fresh = self.path("fresh-cache")
        error = self.refuse(LLAMAC_FAKE_FAILS="nvrtcCompileProgram", XDG_CACHE_HOME=fresh)
        self.assertIn("nvrtcCompileProgram for sm_90a", error)


class Cache(CudaCase):
    def cubins(self):
        folder = os.path.join(self.cache, "llamac", "cubins")
        return [os.path.join(folder, name) for name in sorted(os.listdir(folder))]

    def test_kernels_are_compiled_once(self):
        expected = self.run_plan(self.plan, "-n", 3, *self.PROMPT).stdout
        self.assertGreater(len(self.cubins()), 20)
        # A compiler that fails is not asked again.
        got = self.run_plan(self.plan, "-n", 3, *self.PROMPT, LLAMAC_FAKE_FAILS="nvrtcCompileProgram")
        self.assertEqual(got.stdout, expected)
        # Another GPU has kernels of its own.
        plan = self.path("sm_80.plan")
        self.llamac("compile", self.model, "--target", "cuda", "--gpu", "sm_80", "-c", 256, "-o", plan, "-q")
        failing = {"LLAMAC_FAKE_FAILS": "nvrtcCompileProgram", "LLAMAC_FAKE_CAPABILITY": "8.9"}
        error = self.run_plan(plan, "-n", 3, *self.PROMPT, expect=DEVICE, **failing).stderr
        self.assertIn("nvrtcCompileProgram for sm_89", error)

    def test_a_damaged_kernel_is_compiled_again(self):
        expected = self.run_plan(self.plan, "-n", 3, *self.PROMPT).stdout
        path = self.cubins()[0]
        with open(path, "rb") as f:
            sound = f.read()
        for damaged in (sound[:-1], b"", sound[:4] + b"x" + sound[5:]):
            with open(path, "wb") as f:
                f.write(damaged)
            self.assertEqual(self.run_plan(self.plan, "-n", 3, *self.PROMPT).stdout, expected)
            with open(path, "rb") as f:
                self.assertEqual(f.read(), sound)

    def test_a_cache_that_cannot_be_written_is_done_without(self):
        blocked = self.path("blocked")
        with open(blocked, "w") as f:
            f.write("no folder")
        result = self.run_plan(self.plan, "-n", 3, *self.PROMPT, XDG_CACHE_HOME=blocked)
        self.assertEqual(len(result.stdout.split()), 3)
        self.assertEqual(result.stderr.count("warning: cubins are not cached"), 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
