# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""llamac tune as users see it: what it keeps, that runs take it up with the same
answers, and that nothing that happens to it or to its database stops a run."""

import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import time
import unittest

import support

support.require("numpy", "safetensors")

from llama_numpy import Config
from make_model import random_weights, write_huggingface
from support import BAD_FILE, LLAMAC, LLAMAC_RUN, USAGE

CONFIG = Config(256, 2, 4, 2, vocab=499)
TOKENS = ",".join(str(11 * i % 499) for i in range(60))


class TuneCase(support.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.model = write_huggingface(cls.path("model"), CONFIG, random_weights(CONFIG))
        cls.plan = cls.path("model.plan")
        result = support.run(
            [LLAMAC, "compile", cls.model, "-o", cls.plan, "--weights", "q8_0", "-c", "1024", "-q"],
            cache=cls.path("cache"),
        )
        assert result.returncode == 0, result.stderr
        # What a whole tune says, and leaves in its cache.
        cls.tuned_cache = cls.path("tuned")
        result = support.run(
            [LLAMAC, "tune", cls.plan, "--budget", "600", "--candidates", "2", "--turns", "1"], cache=cls.tuned_cache
        )
        assert result.returncode == 0, result.stderr
        cls.told = result.stdout

    def setUp(self):
        # Each test has a database of its own.
        self.cache = self.path(f"cache-{self.id()}")

    def take_tuned(self):
        """Begins with the database of the whole tune."""
        shutil.rmtree(self.cache, ignore_errors=True)
        shutil.copytree(self.tuned_cache, self.cache)

    def database(self):
        return os.path.join(self.cache, "llamac", "tuning", "tuning.db")

    def tune(self, *options, expect=0):
        result = support.run([LLAMAC, "tune", self.plan, *options], cache=self.cache)
        self.assertEqual(result.returncode, expect, result.stderr)
        return result

    def answer(self, *options):
        """Ids of an answer, and what is said on stderr."""
        result = support.run(
            [LLAMAC_RUN, self.plan, "--tokens", TOKENS, "-n", "20", "--ignore-eos", "--print-ids", "-q", *options],
            cache=self.cache,
        )
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout, result.stderr

    def compare_untuned(self, *options):
        options = ["--prompt-tokens", "64", "--gen-tokens", "8", "--repeat", "3", *options]
        result = support.run(
            [LLAMAC_RUN, "bench", self.plan, "--compare-untuned", "--json", *options], cache=self.cache
        )
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def picks(self):
        """Tiles that are kept, by kernel; for one device."""
        connection = sqlite3.connect(self.database())
        self.assertEqual(connection.execute("PRAGMA integrity_check").fetchone()[0], "ok")
        file = os.path.join(self.cache, "kept.json")
        result = support.run([LLAMAC, "tune", "--export", file], cache=self.cache)
        self.assertEqual(result.returncode, 0, result.stderr)
        with open(file) as opened:
            return json.load(opened)["entries"]


class Keeping(TuneCase):
    def test_it_names_each_kernel_and_keeps_a_pick_of_each(self):
        self.take_tuned()
        self.assertIn("decode, steps of 1 rows", self.told)
        self.assertIn("prefill, steps of 512 rows", self.told)
        self.assertNotIn("differs", self.told)
        kept = self.picks()
        self.assertEqual(len(kept), len(re.findall(r"^  \S", self.told, re.M)))
        for entry in kept:
            self.assertGreater(entry["seconds"], 0)
            self.assertEqual(entry["origin"], "measured")

    def test_runs_with_what_was_tuned_give_the_same_answer(self):
        before = self.answer()[0]
        self.take_tuned()
        self.assertEqual(self.answer(), (before, ""))
        self.assertEqual(self.answer("--no-tuned"), (before, ""))

    def test_a_run_takes_the_way_that_is_kept(self):
        before = self.answer()[0]
        self.take_tuned()
        kept = self.picks()
        ways = [entry for entry in kept if entry["kernel"].startswith("step of at most")]
        self.assertEqual(len(ways), 2)
        for entry in ways:
            entry["tiles"] = "norm-apart"
        file = self.path("ways.json")
        with open(os.path.join(self.cache, "kept.json")) as opened:
            exported = json.load(opened)
        with open(file, "w") as opened:
            json.dump({**exported, "entries": kept}, opened)
        os.remove(self.database())
        result = support.run([LLAMAC, "tune", self.plan, "--import", file], cache=self.cache)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("norm-apart  (imported)", self.tune("--explain-kernels").stdout)
        self.assertEqual(self.answer(), (before, ""))
        for options, same in ([], False), (["--no-tuned"], True):
            compared = self.compare_untuned(*options)
            self.assertEqual(compared["same"], same)
            self.assertEqual((compared["prefill"]["turns"], compared["decode"]["turns"]), (3, 24))
            for work in "prefill", "decode":
                self.assertGreater(compared[work]["speedup"], 0.1)
                self.assertLess(compared[work]["speedup"], 10)

    def test_it_ends_when_its_budget_does(self):
        # What comes before the first look at the clock takes a moment, more on
        # a machine with other work.
        start = time.monotonic()
        self.tune("--budget", "2")
        self.assertLess(time.monotonic() - start, 60)

    def test_it_explains_its_picks(self):
        modelled = self.tune("--explain-kernels").stdout
        self.assertIn("(modelled)", modelled)
        self.assertNotIn("(measured)", modelled)
        self.take_tuned()
        measured = self.tune("--explain-kernels").stdout
        for text in ["(measured)", "predicted", "limited by", "% of a read", "own tiles", "own way", "runner-up"]:
            self.assertIn(text, measured)
        self.assertEqual(len(re.findall(r"^(decode|prefill)  whole step$", measured, re.M)), 2)

    def test_it_compares_the_ways_to_run_a_step_unless_told_not_to(self):
        out = self.tune("--budget", "600", "--candidates", "1", "--turns", "1", "--json").stdout
        for program in json.loads(out):
            self.assertEqual([way["way"] for way in program["ways"]], ["", "norm-apart", "qkv-apart"])
            for way in program["ways"]:
                self.assertEqual(way["rejected"], "")
                self.assertGreater(way["step_s"], 0)
                self.assertGreater(way["ratio"], 0)
        out = self.tune("--budget", "1", "--tiles-only", "--json").stdout
        for program in json.loads(out):
            self.assertEqual(program["ways"], [])

    def test_it_lists_and_counts_candidates_without_running_them(self):
        out = self.tune("--list").stdout
        counts = [int(count) for count in re.findall(r"\((\d+) candidates\)", out)]
        lines = re.findall(r"^  .*predicted", out, re.M)
        self.assertEqual(sum(counts), len(lines))
        self.assertIn(f"{len(lines)} candidates of {len(counts)} kernels", out)
        self.assertGreater(min(counts), 1)
        self.assertFalse(self.picks())

    def test_what_is_exported_can_be_imported_and_is_run(self):
        self.take_tuned()
        kept = self.picks()
        file = os.path.join(self.cache, "kept.json")
        elsewhere = self.path("elsewhere")
        result = support.run([LLAMAC, "tune", self.plan, "--import", file], cache=elsewhere)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(f"{len(kept)} entries taken", result.stdout)
        # Code of what was picked is made where it is imported.
        connection = sqlite3.connect(os.path.join(elsewhere, "llamac", "tuning", "tuning.db"))
        rows = connection.execute("SELECT tiles, length(code) FROM entry").fetchall()
        self.assertEqual(len(rows), len(kept))
        for tiles, size in rows:
            self.assertEqual(size > 0, tiles != "")

    def test_wrong_options_are_one_line(self):
        for options in (["--budget", "0"], ["--budget", "-3"], ["--candidates", "0"], ["--turns", "0"]):
            result = self.tune(*options, expect=USAGE)
            self.assertIn(options[0], result.stderr)
            self.assertEqual(len(result.stderr.splitlines()), 1)
        result = support.run([LLAMAC, "tune"], cache=self.cache)
        self.assertEqual(result.returncode, USAGE)
        self.assertIn("--import", result.stderr)
        result = support.run([LLAMAC_RUN, "tune", self.plan], cache=self.cache)
        self.assertEqual(result.returncode, USAGE)
        self.assertIn("llamac tune", result.stderr)
        result = support.run([LLAMAC, "tune", "--import", self.path("none.json")], cache=self.cache)
        self.assertEqual(result.returncode, BAD_FILE)
        self.assertIn("none.json", result.stderr)


class Trouble(TuneCase):
    def start(self, *options):
        env = dict(os.environ, XDG_CACHE_HOME=self.cache, NO_COLOR="1")
        return subprocess.Popen(
            [LLAMAC, "tune", self.plan, *options],
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def test_killed_at_any_moment_it_leaves_a_database_that_works(self):
        expected = self.answer("--no-tuned")[0]
        for seconds in (0.1, 0.7, 2, 4, 7):
            process = self.start("--budget", "20", "--candidates", "2", "--turns", "1")
            time.sleep(seconds)
            process.kill()
            process.communicate()
            if os.path.exists(self.database()):
                self.picks()
            self.assertEqual(self.answer(), (expected, ""))
        self.tune("--budget", "600", "--candidates", "1", "--turns", "1", "--tiles-only")
        self.assertTrue(self.picks())

    def test_interrupted_it_ends_soon_and_says_so(self):
        process = self.start("--budget", "600", "--candidates", "6")
        time.sleep(3)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 0, err)
        self.assertIn("interrupted after", out)

    def test_eight_at_once_lose_nothing(self):
        options = ["--budget", "900", "--candidates", "1", "--turns", "1", "--tiles-only"]
        processes = [self.start(*options) for _ in range(8)]
        kernels = set()
        for process in processes:
            out, err = process.communicate(timeout=600)
            self.assertEqual((process.returncode, err), (0, ""))
            kernels.update(re.findall(r"^  (\S+)", out, re.M))
        kept = self.picks()
        self.assertGreater(len(kernels), 8)
        self.assertEqual(len(kept), len(kernels))

    def test_a_damaged_database_is_a_warning_and_begun_anew(self):
        expected = self.answer("--no-tuned")[0]
        self.take_tuned()
        with open(self.database(), "r+b") as file:
            file.write(b"no database at all" * 100)
        for name in ("-wal", "-shm"):
            if os.path.exists(self.database() + name):
                os.remove(self.database() + name)
        out, err = self.answer()
        self.assertEqual(out, expected)
        self.assertIn("warning: ", err)
        result = self.tune("--budget", "600", "--candidates", "1", "--turns", "1", "--tiles-only")
        self.assertIn("warning: ", result.stderr)
        self.assertTrue(self.picks())
        self.assertEqual(self.answer(), (expected, ""))


if __name__ == "__main__":
    unittest.main(verbosity=2)
