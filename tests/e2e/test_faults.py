# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The end of whole processes when the machine or a file lets them down: one
line, an exit code of its own (docs/reliability.md), and nothing left behind.

    test_faults.py Weights     numbers that are not finite
    test_faults.py Resources   memory, threads, descriptors and sizes of files
    test_faults.py Events      truncated files and interrupts
"""

import fcntl
import os
import resource
import shutil
import signal
import subprocess
import time
import unittest

import support

support.require("numpy", "gguf", "safetensors")

import numpy as np

from llama_numpy import Config
from make_model import random_weights, write_huggingface
from support import ACCURACY, BAD_FILE, BAD_PLAN, LLAMAC, LLAMAC_RUN, MEMORY, OK

MIB = 1 << 20
NOBODY = 65534
PROMPT = ("--tokens", "1,2,3", "--temp", "0", "--print-ids", "-q", "-n")


class FaultCase(support.TestCase):
    CONFIG = Config(64, 1, 4, 2, vocab=300)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        os.chmod(cls.folder, 0o755)
        cls.model = write_huggingface(cls.path("model"), cls.CONFIG, random_weights(cls.CONFIG))
        cls.plan = cls.path("good.plan")
        result = support.run([LLAMAC, "compile", cls.model, "-o", cls.plan, "-q"], cache=cls.cache)
        assert result.returncode == OK, result.stderr
        cls.ids = support.run([LLAMAC_RUN, cls.plan, *PROMPT, "4"]).stdout
        assert len(cls.ids.split()) == 4

    def assert_one_line(self, result, *words):
        self.assertEqual(result.stdout, "")
        self.assertRegex(result.stderr, r"\A(warning: [^\n]+\n)*llamac(-run)?: error: [^\n]+\n\Z")
        for word in words:
            self.assertIn(word, result.stderr)

    def limited(self, args, **limits):
        """Runs `args` with limits of the `resource` module: AS=bytes."""

        def set_limits():
            for name, value in limits.items():
                resource.setrlimit(getattr(resource, "RLIMIT_" + name), (value, value))

        return support.run(args, cache=self.cache, preexec_fn=set_limits)


class Weights(FaultCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        weights = random_weights(cls.CONFIG)
        weights["layers.0.attention.wo"][3, 5] = np.nan
        cls.model = write_huggingface(cls.path("nan"), cls.CONFIG, weights)

    def test_a_nan_is_not_quantised(self):
        for weights in ("q8_0", "q4_0", "mxfp8", "fp8"):
            for verb in (("compile", self.model, "-o", self.path("nan.plan")), ("run", self.model, "--target", "reference", *PROMPT, "4")):
                with self.subTest(weights=weights, verb=verb[0]):
                    result = self.llamac(*verb, "--weights", weights, expect=BAD_FILE)
                    self.assert_one_line(result, "layers.0.self_attn.o_proj.weight: row 3, column 5", "got nan")

    def test_a_nan_that_is_kept_shows_in_the_logits(self):
        logits = ("logits", self.model, "--tokens", "1,2,3", "-o", self.path("nan.npy"))
        for verb in (logits, ("run", self.model, *PROMPT, "4")):
            for target in ("cpu", "reference"):
                with self.subTest(verb=verb[0], target=target):
                    result = self.llamac(*verb, "--target", target, expect=ACCURACY)
                    self.assertIn("expected finite numbers", result.stderr.splitlines()[-1])


class Resources(FaultCase):
    def compile(self, **limits):
        return self.limited([LLAMAC, "compile", self.model, "-o", self.path("out.plan"), "-q"], **limits)

    def run_plan(self, **limits):
        return self.limited([LLAMAC_RUN, self.plan, *PROMPT, "4"], **limits)

    def sweep(self, run, limits, name):
        """Runs from the limit at which the tool can begin to the one at which it
        is done; how many did not."""
        short = 0
        for limit in limits:
            with self.subTest(name, limit=limit):
                result = run(**{name: limit})
                if result.returncode in (OK, 127):  # 127: no library could be loaded.
                    continue
                self.assertEqual(result.returncode, MEMORY, result.stderr)
                self.assert_one_line(result)
                short += 1
        self.assertEqual(run(**{name: limits[-1]}).returncode, OK)
        self.assertGreater(short, 0)

    def test_address_space(self):
        os.environ["LLAMAC_OBJECT_CACHE"] = ""  # All is compiled.
        self.addCleanup(os.environ.pop, "LLAMAC_OBJECT_CACHE")
        self.sweep(self.compile, [limit * MIB for limit in (*range(200, 480, support.by_tier(80, 40)), 4096)], "AS")
        self.sweep(self.run_plan, [limit * MIB for limit in (*range(12, 60), 4096)], "AS")

    def test_open_files(self):
        self.sweep(self.compile, [*support.by_tier((3, 4, 6), range(3, 9)), 64], "NOFILE")
        self.sweep(self.run_plan, [*range(3, 9), 64], "NOFILE")

    def test_size_of_files(self):
        size = os.path.getsize(self.plan)
        self.sweep(self.compile, [0, 4096, size // 2, size - 1, 2 * size], "FSIZE")
        self.assertEqual(sorted(os.listdir(self.folder)), ["cache", "good.plan", "model", "out.plan"])
        tokens = ",".join(["1"] * 1000)
        logits = [LLAMAC_RUN, "logits", self.plan, "--tokens", tokens, "-o", self.path("logits.npy")]
        result = self.limited(logits, FSIZE=MIB)
        self.assertEqual(result.returncode, MEMORY, result.stderr)
        self.assert_one_line(result, "logits.npy", "File too large")

    def test_no_more_threads(self):
        # The superuser has as many as he wants.
        user = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.getuid() == 0 else {}
        tools = self.path("tools")
        os.makedirs(tools)
        self.addCleanup(shutil.rmtree, tools)
        os.chown(tools, NOBODY, -1) if user else None
        for tool in (LLAMAC, LLAMAC_RUN):
            shutil.copy(tool, tools)
        for args in (
            ["llamac-run", self.plan, "-t", "2", *PROMPT, "4"],
            ["llamac", "compile", self.model, "-o", os.path.join(tools, "out.plan"), "-q"],
            ["llamac", "run", self.model, "--target", "reference", *PROMPT, "4"],
        ):
            with self.subTest(args[:2]):
                args[0] = os.path.join(tools, args[0])
                limit = lambda: resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
                result = support.run(args, cache=os.path.join(tools, "cache"), preexec_fn=limit, **user)
                self.assertEqual((result.returncode, result.stderr), (OK, ""))
                if "compile" not in args:
                    self.assertEqual(result.stdout, self.ids)


class Events(FaultCase):
    def test_a_plan_truncated_while_it_is_mapped(self):
        plan = self.path("truncated.plan")
        shutil.copyfile(self.plan, plan)
        # A process that waits for its reader, with much left to do.
        args = [LLAMAC_RUN, plan, *PROMPT, "3000", "--ignore-eos"]
        process = subprocess.Popen(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        fcntl.fcntl(process.stdout, fcntl.F_SETPIPE_SZ, 4096)
        process.stdout.read(1)
        os.truncate(plan, 4096)
        _, error = process.communicate(timeout=60)
        self.assertEqual(process.returncode, BAD_PLAN, error)
        self.assertRegex(error, r"\Allamac-run: error: [^\n]*truncated.plan: cannot be read: it was truncated[^\n]*\n\Z")

    def test_an_interrupted_compile_leaves_nothing(self):
        config = Config(512, 1, 8, 2, vocab=40000)
        weights = {name: np.zeros_like(x) for name, x in random_weights(config).items()}
        model, folder = write_huggingface(self.path("large"), config, weights), self.path("out")
        os.makedirs(folder)
        args = [LLAMAC, "compile", model, "--target", "cuda", "--gpu", "sm_90a", "-o", os.path.join(folder, "x.plan"), "-q"]
        for number in (signal.SIGINT, signal.SIGTERM):
            process = subprocess.Popen(args, stderr=subprocess.PIPE, text=True)
            while not os.listdir(folder) and process.poll() is None:
                time.sleep(0.001)
            process.send_signal(number)
            _, error = process.communicate(timeout=60)
            self.assertEqual((process.returncode, error), (-number, ""))
            self.assertEqual(os.listdir(folder), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
