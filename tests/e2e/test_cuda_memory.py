# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How many pages of the KV cache there are on a GPU, and what becomes of answers
where memory runs out, on the fake driver (tests/runtime/cuda/fake_driver).

    test_cuda_memory.py Pages      --kv-memory, --kv-pages, --parallel
    test_cuda_memory.py ShortOf    memory that others take meanwhile
"""

import json
import os
import re
import unittest

import support

support.require("numpy", "gguf", "safetensors")

from fake_cuda import CudaCase
from llama_numpy import Config
from make_model import quantise, write_gguf
from serving import Server
from support import LLAMAC, MEMORY, USAGE

PAGE_TOKENS = 64
# The most rows of a program of decode.
SEQUENCES = 256


class Memory(CudaCase):
    CONFIG = Config(64, 1, 4, 2, vocab=261)

    @classmethod
    def write_model(cls, weights):
        cls.model = cls.path("tiny.gguf")
        write_gguf(cls.model, cls.CONFIG, quantise(weights, "BF16")[0])

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # Half of them drawn; of several lengths.
        cls.requests = [
            {"id": i, "tokens": [(7 * i + k) % 256 for k in range(5 + 9 * (i % 3))], "max_tokens": 20 + i, "ignore_eos": True}
            | {"temperature": i % 2, "seed": i}
            for i in range(10)
        ]
        cls.prompts = cls.path("requests.jsonl")
        with open(cls.prompts, "w") as f:
            f.writelines(json.dumps(request) + "\n" for request in cls.requests)

    def generate(self, *flags, expect=support.OK, plan=None, tool=support.LLAMAC_RUN, **env):
        """The summary, and the tokens of each answer."""
        out = self.path("answers.jsonl")
        if os.path.exists(out):
            os.remove(out)
        result = self.run_plan(
            *("generate", plan or self.plan, "--prompts", self.prompts, "-o", out, "--json", "--print-ids", *flags),
            expect=expect,
            tool=tool,
            **env,
        )
        if expect != support.OK:
            errors = [line for line in result.stderr.splitlines() if "error: " in line]
            self.assertEqual(len(errors), 1, result.stderr)
            return errors[0]
        with open(out) as f:
            answers = {answer["id"]: answer["tokens"] for answer in map(json.loads, f)}
        self.assertEqual(set(answers), set(range(len(self.requests))))
        return json.loads(result.stdout), answers


class Pages(Memory):
    def test_they_are_as_many_as_all_sequences_can_use_where_memory_is_ample(self):
        whole = -(-self.CONTEXT // PAGE_TOKENS)
        summary, _ = self.generate()
        self.assertEqual((summary["sequences"], summary["pages"]), (SEQUENCES, SEQUENCES * whole))
        summary, _ = self.generate("--parallel", 3)
        self.assertEqual((summary["sequences"], summary["pages"]), (3, 3 * whole))

    def test_without_a_gpu_the_number_of_sequences_is_a_fixed_one(self):
        summary, _ = self.generate(plan=self.sim_plan, tool=LLAMAC)
        self.assertEqual(summary["sequences"], 16)

    def test_they_take_their_share_of_what_the_rest_leaves(self):
        _, expected = self.generate("--parallel", 4)
        memory = {"LLAMAC_FAKE_MEMORY": str(3 << 20)}
        pages = {}
        for flags, share in (((), 0.9), (("--kv-memory", 0.9), 0.9), (("--kv-memory", 0.3), 0.3), (("--kv-memory", 1), 1)):
            summary, answers = self.generate(*flags, **memory)
            self.assertEqual(len(answers), len(expected))
            self.assertEqual(summary["errors"], 0)
            pages.setdefault(share, set()).add(summary["pages"])
        (most,) = pages[1]
        for share, counts in pages.items():
            (count,) = counts
            self.assertLessEqual(abs(count - share * most), 1, pages)
        # A token has two heads of 16 keys and as many values, of two bytes.
        self.assertLess(most * PAGE_TOKENS * 2 * 2 * 16 * 2, 3 << 20)
        self.assertLess(most, SEQUENCES * self.CONTEXT // PAGE_TOKENS)

    def test_a_draft_model_shares_it_by_the_size_of_a_token(self):
        memory = {"LLAMAC_FAKE_MEMORY": str(6 << 20)}
        alone, expected = self.generate(**memory)
        drafted, answers = self.generate("--draft", self.plan, **memory)
        self.assertEqual(answers, expected)
        self.assertEqual(drafted["sequences"], SEQUENCES)
        # Both have the same weights and arena, and half of the rest.
        self.assertLess(drafted["pages"], alone["pages"] // 2)
        self.assertGreater(drafted["pages"], 10)

    def test_what_cannot_be_is_refused(self):
        for flags, words in (
            (("--kv-memory", 0.5, "--kv-pages", 40), "--kv-pages: expected no --kv-memory beside it"),
            (("--kv-memory", 0), "--kv-memory: expected a number above 0, at most 1, got 0"),
            (("--kv-memory", 1.5), "--kv-memory: expected a number above 0, at most 1, got 1.5"),
            (("--kv-memory", "much"), "--kv-memory: expected a number above 0, at most 1, got much"),
        ):
            with self.subTest(flags):
                self.assertIn(words, self.generate(*flags, expect=USAGE))
        error = self.generate("--kv-memory", 0.5, plan=self.sim_plan, tool=LLAMAC, expect=USAGE)
        self.assertIn("KV memory: expected a device with memory of its own, got sim", error)
        self.assertIn("give a number of KV pages instead", error)

    def test_too_little_memory_is_told(self):
        memory = {"LLAMAC_FAKE_MEMORY": str(3 << 20)}
        error = self.generate("--kv-memory", 1e-6, expect=MEMORY, **memory)
        self.assertRegex(error, r"KV cache: expected [\d.]+ KiB for 4 pages of 64 tokens, got 1e-06 of [\d.]+ MiB that are free")
        error = self.generate("--kv-pages", SEQUENCES * self.CONTEXT // PAGE_TOKENS, expect=MEMORY, **memory)
        found = re.search(r"KV cache: expected [\d.]+ MiB for 1024 pages, got .* free of .*; (\d+) pages would fit", error)
        self.assertTrue(found, error)
        self.generate("--kv-pages", found[1], **memory)
        error = self.generate(expect=MEMORY, LLAMAC_FAKE_MEMORY=str(200000))
        self.assertRegex(error, r"cuda\.plan: expected .* of memory of the device \(weights .* KV cache .*, the rest")

    def test_models_of_one_server_share_the_memory(self):
        other = self.path("other.plan")
        with open(self.plan, "rb") as f, open(other, "wb") as to:
            to.write(f.read())
        env = self.environment(LLAMAC_FAKE_MEMORY=str(8 << 20))
        with Server([f"a={self.plan}", f"b={other}"], self.path("log"), env=env) as server:
            text = server.request("GET", "/metrics")[2].decode()
        pages = re.findall(r'cache_config_info\{.*num_gpu_blocks="(\d+)"', text)
        self.assertEqual(len(pages), 2, text)
        self.assertLessEqual(abs(int(pages[0]) - int(pages[1])), 1)


class ShortOf(Memory):
    def setUp(self):
        self.expected = self.generate("--batch-invariant", "--parallel", 8)[1]

    def test_pages_that_another_process_has_taken_are_done_without(self):
        flags = ("--batch-invariant", "--parallel", 8)
        plenty, _ = self.generate(*flags)
        summary, answers = self.generate(*flags, LLAMAC_FAKE_REFUSES="cuMemAlloc_v2:2")
        self.assertEqual(summary["pages"], plenty["pages"] * 3 // 4)
        self.assertEqual(answers, self.expected)
        self.assert_nothing_leaked()

    def test_without_memory_for_graphs_steps_run_without(self):
        for function in ("cuGraphInstantiateWithFlags", "cuStreamBeginCapture_v2"):
            summary, answers = self.generate("--batch-invariant", "--parallel", 8, LLAMAC_FAKE_REFUSES=function)
            self.assertEqual(summary["preemptions"], 0)
            self.assertEqual(answers, self.expected)
            self.assert_nothing_leaked()

    def test_steps_that_find_no_memory_run_with_fewer_answers(self):
        for function in ("cuGraphLaunch", "cuLaunchKernelEx"):
            for call in support.by_tier((1, 40), range(1, 90, 7)):
                with self.subTest(f"{function}:{call}"):
                    _, answers = self.generate(
                        "--batch-invariant", "--parallel", 8, LLAMAC_FAKE_REFUSES=f"{function}:{call}"
                    )
                    self.assertEqual(answers, self.expected)
                    self.assert_nothing_leaked()


if __name__ == "__main__":
    unittest.main(verbosity=2)
