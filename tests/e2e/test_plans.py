# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plans as files: corrupt ones are found, interrupted compiles leave the old
one whole, and a model's plan is cached and made anew when anything changed."""

import os
import pathlib
import random
import shutil
import signal
import subprocess
import time
import unittest

import support

support.require("numpy", "gguf", "safetensors")

from llama_numpy import Config
from make_model import random_weights, write_huggingface
from support import BAD_FILE, BAD_PLAN, LLAMAC, LLAMAC_RUN, OK

CONFIG = Config(64, 2, 4, 2, vocab=499)
GENERATE = ("--tokens", "1,2,3", "-n", "4", "--temp", "0", "--print-ids")


class PlanCase(support.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.models = [
            write_huggingface(cls.path(f"model-{seed}"), CONFIG, random_weights(CONFIG, seed=seed))
            for seed in (0, 1)
        ]

    def compile(self, model, plan, *options, **more):
        return self.llamac("compile", model, "-o", plan, *options, **more)


class CorruptPlans(PlanCase):
    def setUp(self):
        self.plan = self.path("good.plan")
        if not os.path.exists(self.plan):
            self.compile(self.models[0], self.plan)
        self.bad = self.path("bad.plan")

    def refuse(self, data):
        with open(self.bad, "wb") as f:
            f.write(data)
        for command in ([LLAMAC, "run"], [LLAMAC_RUN]):
            result = support.run([*command, self.bad, *GENERATE], cache=self.cache)
            self.assertEqual(result.returncode, BAD_PLAN, result.stderr)
            self.assertEqual(result.stdout, "")
            self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
            self.assertIn("bad.plan", result.stderr)

    def test_a_flipped_bit_anywhere_is_found(self):
        data = pathlib.Path(self.plan).read_bytes()
        # Ends and even steps, and places between them.
        places = {0, 1, 8, 16, 63, len(data) - 1}
        places |= set(range(0, len(data), len(data) // 24))
        places |= set(random.Random(0).sample(range(len(data)), 24))
        for place in sorted(places):
            with self.subTest(byte=place):
                bad = bytearray(data)
                bad[place] ^= 1 << place % 8
                self.refuse(bad)

    def test_cut_off_and_empty(self):
        data = pathlib.Path(self.plan).read_bytes()
        for left in (0, 1, 32, len(data) // 2, len(data) - 1):
            with self.subTest(left=left):
                self.refuse(data[:left])

    def test_grown(self):
        self.refuse(pathlib.Path(self.plan).read_bytes() + b"\0")

    def test_something_else_entirely(self):
        self.refuse(b"#!/bin/sh\necho hello\n" * 100)

    def test_not_there(self):
        result = support.run([LLAMAC_RUN, self.path("none.plan"), *GENERATE])
        self.assertEqual(result.returncode, BAD_FILE, result.stderr)
        self.assertIn("none.plan", result.stderr)


class InterruptedCompiles(PlanCase):
    def ids(self, plan):
        return support.run([LLAMAC_RUN, plan, *GENERATE]).stdout

    def test_killed_at_any_moment_leaves_the_old_plan_or_the_new_one(self):
        old, new, plan = self.path("old.plan"), self.path("new.plan"), self.path("the.plan")
        self.compile(self.models[0], old)
        start = time.monotonic()
        self.compile(self.models[1], new)
        duration = time.monotonic() - start
        old_ids, new_ids = self.ids(old), self.ids(new)
        self.assertNotEqual(old_ids, "")
        self.assertNotEqual(old_ids, new_ids)

        killed = 0
        for step in range(12):
            shutil.copyfile(old, plan)
            process = subprocess.Popen(
                [LLAMAC, "compile", self.models[1], "-o", plan],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=dict(os.environ, XDG_CACHE_HOME=self.cache),
            )
            time.sleep(duration * (step + 0.5) / 12)
            process.send_signal(signal.SIGKILL)
            killed += process.wait() == -signal.SIGKILL
            self.assertIn(self.ids(plan), (old_ids, new_ids), f"killed at step {step} of 12")
        self.assertGreater(killed, 0)
        self.compile(self.models[1], plan)
        self.assertEqual(self.ids(plan), new_ids)

    def test_a_failed_compile_leaves_the_old_plan(self):
        plan, broken = self.path("kept.plan"), self.path("broken")
        self.compile(self.models[0], plan)
        before = pathlib.Path(plan).read_bytes()
        shutil.copytree(self.models[1], broken)
        weights = os.path.join(broken, "model.safetensors")
        os.truncate(weights, os.path.getsize(weights) - 1)
        self.compile(broken, plan, expect=BAD_FILE)
        self.assertEqual(pathlib.Path(plan).read_bytes(), before)
        leftovers = [f for f in os.listdir(self.folder) if f.startswith(("kept", ".kept"))]
        self.assertEqual(leftovers, ["kept.plan"])

    def test_a_folder_that_cannot_be_written_is_an_error(self):
        result = support.run([LLAMAC, "compile", self.models[0], "-o", self.path("no", "x.plan")])
        self.assertNotEqual(result.returncode, OK)
        self.assertIn("x.plan", result.stderr)


    def test_a_model_that_is_overwritten_meanwhile_leaves_the_old_plan(self):
        plan, model, dump = self.path("steady.plan"), self.path("unsteady"), self.path("unsteady-dump")
        self.compile(self.models[0], plan)
        before = pathlib.Path(plan).read_bytes()
        shutil.copytree(self.models[1], model)
        process = subprocess.Popen(
            [LLAMAC, "compile", model, "-o", plan, "--dump-dir", dump, "-q"],
            stderr=subprocess.PIPE,
            text=True,
            # Nothing is compiled yet: the kernels take seconds.
            env=dict(os.environ, XDG_CACHE_HOME=self.path("empty-cache"), LLAMAC_OBJECT_CACHE=""),
        )
        while not os.path.exists(os.path.join(dump, "00-import.mlir")) and process.poll() is None:
            time.sleep(0.001)
        with open(os.path.join(model, "model.safetensors"), "r+b") as weights:
            weights.seek(-64, os.SEEK_END)
            weights.write(bytes(64))
        error = process.communicate()[1]
        self.assertEqual(process.returncode, BAD_FILE, error)
        self.assertEqual(len(error.splitlines()), 1, error)
        self.assertIn("model.safetensors", error)
        self.assertEqual(pathlib.Path(plan).read_bytes(), before)


class CachedPlans(PlanCase):
    def setUp(self):
        shutil.rmtree(self.cache, ignore_errors=True)

    def cached(self):
        return {str(f) for f in pathlib.Path(self.cache).rglob("*.plan")}

    def generate(self, model, *options):
        return self.llamac("run", model, *GENERATE, *options)

    def test_a_second_run_makes_no_second_plan(self):
        first = self.generate(self.models[0]).stdout
        plans = self.cached()
        self.assertEqual(len(plans), 1)
        (plan,) = plans
        made = os.stat(plan).st_ino
        self.assertEqual(self.generate(self.models[0]).stdout, first)
        self.assertEqual(self.cached(), plans)
        self.assertEqual(os.stat(plan).st_ino, made)

    def test_another_model_or_option_makes_another_plan(self):
        first = self.generate(self.models[0]).stdout
        self.assertNotEqual(self.generate(self.models[1]).stdout, first)
        self.assertEqual(len(self.cached()), 2)
        self.generate(self.models[0], "-c", "64")
        self.assertEqual(len(self.cached()), 3)

    def test_plans_that_were_not_used_for_30_days_make_room(self):
        def age(plan, days):
            then = time.time() - days * 24 * 3600
            os.utime(plan, (then, then))

        self.generate(self.models[0])
        (used,) = self.cached()
        self.generate(self.models[1])
        (unused,) = self.cached() - {used}
        age(used, 31)
        age(unused, 29)
        self.generate(self.models[0])  # Using one makes it new.
        self.generate(self.models[0], "-c", "64")
        self.assertLessEqual({used, unused}, self.cached())
        age(unused, 31)
        self.generate(self.models[0], "-c", "32")
        self.assertEqual(self.cached() & {used, unused}, {used})

    def test_a_changed_model_is_compiled_anew(self):
        model = self.path("changing")
        shutil.copytree(self.models[0], model)
        first = self.generate(model).stdout
        shutil.copyfile(
            os.path.join(self.models[1], "model.safetensors"),
            os.path.join(model, "model.safetensors"),
        )
        second = self.generate(model).stdout
        self.assertNotEqual(first, second)
        self.assertEqual(second, self.generate(self.models[1]).stdout)

    def test_a_corrupt_cached_plan_is_made_again_with_a_warning(self):
        first = self.generate(self.models[0]).stdout
        (plan,) = self.cached()
        data = bytearray(pathlib.Path(plan).read_bytes())
        data[len(data) // 2] ^= 16
        pathlib.Path(plan).write_bytes(data)
        result = self.generate(self.models[0])
        self.assertEqual(result.stdout, first)
        self.assertIn("warning", result.stderr)
        self.assertEqual(self.generate(self.models[0]).stdout, first)


    def test_a_plan_of_another_model_or_other_options_is_not_taken(self):
        first = self.generate(self.models[0]).stdout
        (plan,) = self.cached()
        self.generate(self.models[1])
        self.generate(self.models[0], "--weights", "q8_0")
        for other in self.cached() - {plan}:
            with self.subTest(other=other):
                shutil.copyfile(other, plan)
                result = self.generate(self.models[0])
                self.assertEqual(result.stdout, first)
                self.assertRegex(result.stderr, r"warning: .*\.plan: (model|options): expected .*; the cached plan is compiled again")
                self.assertNotIn("warning", self.generate(self.models[0]).stderr)

    def test_the_build_of_the_compiler_counts_and_not_its_file(self):
        first = self.generate(self.models[0]).stdout
        plans = self.cached()
        moved = self.path("moved-llamac")
        shutil.copyfile(LLAMAC, moved)
        os.chmod(moved, 0o755)
        result = support.run([moved, "run", self.models[0], *GENERATE], cache=self.cache)
        self.assertEqual(result.stdout, first, result.stderr)
        self.assertEqual(self.cached(), plans)

    def test_the_environment_names_a_level_as_the_flag_does(self):
        first = self.generate(self.models[0], "--isa", "portable").stdout
        plans = self.cached()
        result = support.run(
            [LLAMAC, "run", self.models[0], *GENERATE],
            env=dict(os.environ, XDG_CACHE_HOME=self.cache, LLAMAC_ISA="portable"),
        )
        self.assertEqual(result.returncode, OK, result.stderr)
        self.assertEqual(result.stdout, first)
        self.assertEqual(self.cached(), plans)


class ReferencedWeights(PlanCase):
    """A plan that leaves the weights in the checkpoint."""

    def setUp(self):
        self.model = self.path(self._testMethodName)
        shutil.copytree(self.models[0], self.model)
        self.weights = os.path.join(self.model, "model.safetensors")
        self.plan = self.path("referenced.plan")
        self.compile(self.model, self.plan, "--reference-weights")

    def test_it_is_smaller_and_gives_the_same(self):
        whole = self.path("whole.plan")
        self.compile(self.model, whole)
        self.assertLess(os.path.getsize(self.plan), os.path.getsize(whole))
        ids = [support.run([LLAMAC_RUN, plan, *GENERATE], check=True).stdout for plan in (self.plan, whole)]
        self.assertEqual(ids[0], ids[1])

    def refuse(self):
        result = support.run([LLAMAC_RUN, self.plan, *GENERATE])
        self.assertEqual(result.returncode, BAD_PLAN, result.stderr)
        self.assertEqual(result.stdout, "")
        self.assertIn("model.safetensors", result.stderr)

    def test_a_changed_checkpoint_makes_it_stale(self):
        shutil.copyfile(os.path.join(self.models[1], "model.safetensors"), self.weights)
        self.refuse()

    def test_a_shorter_checkpoint_makes_it_stale(self):
        os.truncate(self.weights, os.path.getsize(self.weights) // 2)
        self.refuse()

    def test_a_checkpoint_that_is_gone_makes_it_stale(self):
        os.remove(self.weights)
        self.refuse()


if __name__ == "__main__":
    unittest.main(verbosity=2)
