# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""scripts/throughput.py: that it asks for what it says, of the engine and of a server, and counts what comes."""

import json
import os
import subprocess
import sys
import unittest

import support

support.require("numpy", "gguf", "safetensors")

from llama_numpy import Config
from make_model import quantise, random_weights, write_gguf

SCRIPTS = os.path.join(support.ROOT, "scripts")
sys.path.insert(0, SCRIPTS)
import throughput  # noqa: E402


class Throughput(support.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        config = Config(64, 1, 4, 2, vocab=261)
        model = write_gguf(cls.path("m.gguf"), config, quantise(random_weights(config, "bf16", 4), "BF16")[0])
        cls.plan = cls.path("m.plan")
        support.run([support.LLAMAC, "compile", model, "-c", "256", "-o", cls.plan, "-q"], check=True)

    def measure(self, *args, expect=0):
        command = [sys.executable, os.path.join(SCRIPTS, "throughput.py"), self.plan, "--tool", support.LLAMAC_RUN]
        result = subprocess.run([*command, *map(str, args)], capture_output=True, text=True, timeout=300)
        self.assertEqual(result.returncode, expect, result.stderr)
        return result.stdout if expect == 0 else result.stderr

    def test_every_token_that_is_asked_for_is_counted(self):
        flags = ("--lengths", "20/30,mix", "--requests", 10, "--clients", 4, "--vocab", 256, "--context", 256)
        plain, mixed = map(json.loads, self.measure(*flags, "--json", "--", "--parallel", 3).splitlines())
        pairs = throughput.lengths_of("mix", 10, 1, 256)
        self.assertGreater(len(set(pairs)), 5)
        for row, expected in ((plain, [(20, 30)] * 10), (mixed, pairs)):
            for way in ("engine", "serve"):
                self.assertEqual(row[way]["prompt_tokens"], sum(prompt for prompt, _ in expected))
                self.assertEqual(row[way]["generated_tokens"], sum(answer for _, answer in expected))
                self.assertGreater(row[way]["total_tok_s"], row[way]["output_tok_s"])
            self.assertEqual(row["engine"]["sequences"], 3)
            self.assertTrue(0 <= row["engine"]["host_share"] < 1)
            self.assertTrue(0 < row["serve"]["ttft_s"]["p50"] <= row["serve"]["ttft_s"]["p99"])
            self.assertGreater(row["serve_share"], 0)

    def test_it_is_a_table(self):
        lines = self.measure("--lengths", "5/3", "--requests", 2, "--clients", 2, "--vocab", 256).splitlines()
        self.assertEqual([line.split(" | ")[2] for line in lines], ["by", "---", "engine", "serve"])
        (line,) = self.measure("--lengths", "5/3", "--requests", 2, "--vocab", 256, "--only", "engine").splitlines()[2:]
        self.assertTrue(line.startswith("| 5/3 | 2 | engine |"), line)

    def test_what_is_wrong_is_one_line(self):
        for flags, code, words in (
            (("--lengths", "128"), 2, "--lengths: expected tokens in and out such as 128/128, or mix, got 128"),
            (("--clients", 0), 2, "--clients: expected at least 1, got 0"),
            (("--lengths", "3/2", "--vocab", 9999, "--only", "engine"), 1, "is --vocab larger than the model's?"),
            (("--lengths", "3/2", "--only", "engine", "--", "--parallel", 0), 1, "--parallel: expected 1 to"),
        ):
            with self.subTest(flags):
                self.assertIn(words, self.measure(*flags, expect=code).splitlines()[-1])


if __name__ == "__main__":
    unittest.main(verbosity=2)
