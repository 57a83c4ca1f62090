# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""llamac tune as users see it: what it keeps, that runs take it up with the same
answers, and that nothing that happens to it or to its file stops a run."""

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import time
import unittest

import support

support.require("numpy", "safetensors")

from llama_numpy import Config
from make_model import random_weights, write_huggingface
from support import LLAMAC, LLAMAC_RUN, MEMORY, USAGE

CONFIG = Config(128, 1, 2, 1, vocab=499)
TOKENS = ",".join(str(11 * i % 499) for i in range(60))
SHORT = ("--budget", 600, "--candidates", 1)


class Tune(support.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.plan = cls.path("model.plan")
        model = write_huggingface(cls.path("model"), CONFIG, random_weights(CONFIG))
        result = support.run([LLAMAC, "compile", model, "-o", cls.plan, "--weights", "q8_0", "-c", "128", "-q"])
        assert result.returncode == 0, result.stderr
        cls.tuned_cache = cls.path("tuned")
        result = support.run([LLAMAC, "tune", cls.plan, *map(str, SHORT)], cache=cls.tuned_cache)
        assert result.returncode == 0, result.stderr
        cls.told = result.stdout

    def setUp(self):
        # Each test has a file of its own, which begins with a whole tune's.
        self.cache = self.path(f"cache-{self.id()}")
        shutil.copytree(self.tuned_cache, self.cache)
        self.file = os.path.join(self.cache, "llamac", "tuning", "tuning.json")

    def answer(self, *options, tool=LLAMAC):
        """Ids of an answer, and what is said on stderr."""
        verb = ["run"] if tool == LLAMAC else []
        options = ["--tokens", TOKENS, "-n", "9", "--ignore-eos", "--print-ids", "-q", *options]
        result = support.run([tool, *verb, self.plan, *options], cache=self.cache)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout, result.stderr

    def start(self, *options, **more):
        env = dict(os.environ, XDG_CACHE_HOME=self.cache, NO_COLOR="1", LLAMAC_OBJECT_CACHE="")
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        command = [LLAMAC, "tune", self.plan, *map(str, options)]
        process = subprocess.Popen(command, env=env, **pipes, **more)
        while not os.path.exists(self.file) and process.poll() is None:
            time.sleep(0.01)
        return process

    def entries(self):
        with open(self.file) as file:
            return json.load(file)["entries"]

    def test_it_says_and_keeps_what_it_selects(self):
        for text in ["decode, steps of 1 row at", "prefill, steps of 128 rows", "whole step"]:
            self.assertIn(text, self.told)
        self.assertNotIn("rejected", self.told)
        self.assertRegex(self.told, r"\n(\d+) of \1 candidates tried in \d+ s\nspeed against the defaults: decode \d\.\d\dx, ")
        kernels = set(re.findall(r"^  (\w+) ", self.told, re.M)) - {"whole"}
        self.assertGreater(len(kernels), 8)
        self.assertEqual(len(self.entries()), len(kernels))
        explained = self.llamac("tune", self.plan, "--explain-kernels").stdout
        self.assertEqual(len(re.findall(r"^  selected .*\(measured\)$", explained, re.M)), len(kernels))
        self.assertIn("runner-up", explained)
        listed = self.llamac("tune", self.plan, "--list").stdout
        counts = [int(count) for count in re.findall(r"\((\d+) candidates\)", listed)]
        self.assertEqual(sum(counts), len(re.findall(r"^  \S", listed, re.M)))
        self.assertIn(f"{sum(counts)} candidates of {len(kernels)} kernels", listed)

    def test_what_is_imported_is_run_where_there_is_a_compiler(self):
        file = self.path("kept.json")
        self.llamac("tune", "--export", file)
        with open(file) as opened:
            kept = json.load(opened)
        listed = self.llamac("tune", self.plan, "--list").stdout
        first = dict(re.findall(r"^(\w+)  \(\d+ candidates\)\n  default\n  (.*)$", listed, re.M))
        for entry in kept["entries"]:
            entry["config"] = first[entry["kernel"].split()[0]]
        with open(file, "w") as opened:
            json.dump(kept, opened)
        os.remove(self.file)
        untuned = self.answer()
        count = len(kept["entries"])
        self.assertIn(f": {count} of {count} entries taken\n", self.llamac("tune", "--import", file).stdout)
        self.assertIn("(imported)", self.llamac("tune", self.plan, "--explain-kernels").stdout)
        self.assertEqual(self.answer(), untuned)
        out, err = self.answer(tool=LLAMAC_RUN)
        self.assertEqual(out, untuned[0])
        self.assertRegex(err, r"^warning: .*llamac-run has not; the default configs are used\n$")
        options = ["--compare-untuned", "--json", "--prompt-tokens", 32, "--gen-tokens", 4, "--repeat", 3]
        compared = json.loads(self.llamac("bench", self.plan, *options).stdout)
        self.assertFalse(compared["same"])
        self.assertEqual((compared["prefill"]["turns"], compared["decode"]["turns"]), (3, 12))

    def test_without_time_the_candidates_are_counted(self):
        told = self.llamac("tune", self.plan, "--budget", "1e-3").stdout
        untried = r"  \d+ kernels +default  \d+ not tried: no time was left\n"
        self.assertRegex(told, rf"^decode, .*: not decided, nothing was changed\n{untried}")
        left = [int(count) for count in re.findall(r"(\d+) not tried", told)]
        self.assertTrue(told.endswith(f"0 of {sum(left)} candidates tried in 0 s; a larger --budget tries them\nspeed against the defaults: nothing was decided\n"), told)

    def test_wrong_options_are_one_line(self):
        for options in (["--budget", "-3"], ["--candidates", "0"]):
            result = self.llamac("tune", self.plan, *options, expect=USAGE)
            self.assertRegex(result.stderr, rf"^llamac: error: {options[0]}[^\n]*\n$")
        self.assertIn("--import", self.llamac("tune", expect=USAGE).stderr)
        result = support.run([LLAMAC_RUN, "tune", self.plan], cache=self.cache)
        self.assertEqual(result.returncode, USAGE)
        self.assertIn("llamac tune", result.stderr)

    def test_killed_interrupted_or_without_time_it_leaves_what_was_kept(self):
        before = self.entries()
        for by in signal.SIGKILL, signal.SIGINT:
            process = self.start("--budget", 600)
            time.sleep(1)
            process.send_signal(by)
            out, err = process.communicate(timeout=60)
            self.assertEqual(err, "")
            self.assertEqual(self.entries(), before)
        self.assertEqual(process.returncode, -signal.SIGINT)
        self.assertRegex(out, r"interrupted after \d+ s; what was decided is kept\n\d+ of \d+ candidates")
        start = time.monotonic()
        self.assertIn("not decided", self.llamac("tune", self.plan, "--budget", 0.01).stdout)
        self.assertLess(time.monotonic() - start, 30)
        self.assertEqual(self.entries(), before)

    def test_a_damaged_file_is_a_warning_and_begun_anew(self):
        expected = self.answer("--no-tuned")[0]
        with open(self.file, "r+b") as file:
            file.write(b"no tuning at all" * 100)
        out, err = self.answer()
        self.assertEqual(out, expected)
        self.assertRegex(err, r"^warning: [^\n]*tuning.json[^\n]*\n$")
        self.assertIn("begun anew", self.llamac("tune", self.plan, *SHORT).stderr)
        self.assertTrue(self.entries())

    def test_a_full_disk_is_an_error(self):
        os.remove(self.file)
        limits = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (32, 32))
        # Python ignores SIGXFSZ, and so does what it starts.
        process = self.start(*SHORT, restore_signals=False, preexec_fn=limits)
        out, err = process.communicate()
        self.assertEqual((process.returncode, out), (MEMORY, ""))
        self.assertRegex(err, r"^llamac: error: [^\n]*tuning.json: [^\n]*\n$")


if __name__ == "__main__":
    unittest.main(verbosity=2)
