# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tests of plans for cuda share this where there is no GPU: libcuda, libnvrtc
and libnccl are fakes (tests/runtime/cuda/fake_driver), which run the kernels on the
simulator."""

import json
import os

import support

support.require("numpy")

import numpy as np

from llama_numpy import Config
from make_model import random_weights, write_meta
from support import FAKE_DRIVER


def environment(sim_plan, capability="9.0", **more):
    """The environment of a process in which the fakes run the kernels of `sim_plan`."""
    fakes = dict.fromkeys(("LD_LIBRARY_PATH", "LLAMAC_NVRTC_PATH", "LLAMAC_NCCL_PATH"), FAKE_DRIVER)
    return dict(os.environ, **fakes, LLAMAC_FAKE_PLAN=sim_plan, LLAMAC_FAKE_CAPABILITY=capability) | more


class CudaCase(support.TestCase):
    """A model with its plan for cuda, and what the fake driver's kernels come from."""

    CONFIG = Config(64, 2, 4, 2, vocab=261)
    CONTEXT, SEQUENCES, RANKS = 256, 8, 1
    FLAGS = ()  # Flags of both plans.
    PROMPT = ("--tokens", "1,5,9,2,77,30,200,8", "--print-ids", "--ignore-eos", "-q")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.model = cls.path("model")
        cls.write_model(random_weights(cls.CONFIG, "bf16", 4))
        cls.sim_plan, cls.plan = cls.path("sim.plan"), cls.path("cuda.plan")
        for target, plan in (("sim", cls.sim_plan), ("cuda", cls.plan)):
            result = support.run(
                [support.LLAMAC, "compile", cls.model, "--target", target, "--gpu", "sm_90a", "-c", str(cls.CONTEXT)]
                + ["--parallel", str(cls.SEQUENCES), "--ranks", str(cls.RANKS), "-o", plan, "-q", *cls.FLAGS]
            )
            assert result.returncode == support.OK, result.stderr
        cls.leaks = cls.path("leaks")

    @classmethod
    def write_model(cls, weights):
        write_meta(cls.model, cls.CONFIG, weights, "bf16")

    def environment(self, **more):
        env = environment(
            self.sim_plan,
            ",".join(["9.0"] * self.RANKS),
            LLAMAC_FAKE_LEAKS=self.leaks,
            LLAMAC_FAKE_NCCL_FOLDER=os.path.dirname(self.leaks),
            XDG_CACHE_HOME=self.cache,
        )
        return env | more

    def run_plan(self, *args, expect=support.OK, tool=support.LLAMAC_RUN, **env):
        if os.path.exists(self.leaks):
            os.remove(self.leaks)
        result = support.run([tool, *map(str, args)], env=self.environment(**env))
        self.assertEqual(result.returncode, expect, result.stderr)
        return result

    def plan_logits(self, plan, ids, *flags, **options):
        """Logits [positions, vocabulary] of `ids`, comma separated."""
        out = self.path("logits.npy")
        self.run_plan("logits", plan, "--tokens", ids, "-o", out, *flags, **options)
        return np.load(out)

    def assert_planned_bytes(self, plan, model, planning=(), running=(), **env):
        """`llamac plan` says the bytes that a run of `plan` takes of the GPU."""
        size = ("-c", self.CONTEXT, "--parallel", 4, "--ranks", self.RANKS)
        planned = self.llamac("plan", model, "--gpu", "h100", *size, *planning, "--json").stdout
        bench = ("--batch", 4, "--prompt-tokens", 5, "--gen-tokens", 2, "--repeat", 1, "--warm-ups", 0, "--json")
        taken = self.run_plan("bench", plan, *bench, *running, **env).stdout
        self.assertEqual(json.loads(taken)["device_memory_bytes"], json.loads(planned)["memory"]["total"])

    def assert_nothing_leaked(self):
        with open(self.leaks) as f:
            for line in f:
                self.assertEqual(line.strip(), "memory 0 pinned 0 modules 0 streams 0 events 0 graphs 0 communicators 0")
