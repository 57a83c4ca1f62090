# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`llamac plan`: what a model needs of a device, before there is a plan. That the
GPU's memory is taken to the byte is shown by test_cuda.py."""

import json
import math
import os
import re
import shutil
import unittest

import support

support.require("numpy", "gguf")

from llama_numpy import Config
from make_model import quantise, random_weights, write_gguf
from support import LLAMAC, MEMORY, OK, USAGE

SHAPES = os.path.join(support.ROOT, "tests", "compiler", "Inputs", "shapes")
PAGE = 64


def config_of(shape):
    return os.path.join(SHAPES, shape, "params.json")


def parameters(dim, layers, heads, kv_heads, ffn, vocabulary):
    """The parameters of the matrices, and of the norms."""
    kv = dim // heads * kv_heads
    matrices = layers * (2 * dim * dim + 2 * dim * kv + 3 * dim * ffn)
    return matrices + 2 * vocabulary * dim, (2 * layers + 1) * dim


class Plan(support.TestCase):
    def plan(self, model, *options):
        result = support.run([LLAMAC, "plan", model, "--json", *map(str, options)])
        found = json.loads(result.stdout)
        self.assertEqual(result.returncode, OK if found["fits"] else MEMORY, result.stderr)
        return found

    def test_bytes_are_those_of_the_shapes(self):
        for shape, sizes in (
            ("llama-3.1-70b", (8192, 80, 64, 8, 28672, 128256)),
            ("llama-3.1-8b", (4096, 32, 32, 8, 14336, 128256)),
            ("llama-2-7b", (4096, 32, 32, 32, 11008, 32000)),
        ):
            dim, layers, heads, kv_heads, ffn, vocabulary = sizes
            matrices, norms = parameters(*sizes)
            kv_token = layers * 2 * kv_heads * (dim // heads) * 2
            for format, bits in (("keep", 16), ("q8_0", 8.5), ("q4_0", 4.5)):
                with self.subTest(shape, format=format):
                    found = self.plan(
                        config_of(shape), "--gpu", "h200", "-c", 4096, "--parallel", 3, "--weights", format
                    )
                    self.assertEqual(found["memory"]["weights"], matrices * bits / 8 + norms * 4)
                    self.assertEqual(found["memory"]["kv"], 3 * 4096 * kv_token)
                    parts = [value for name, value in found["memory"].items() if name not in ("total", "not_included")]
                    self.assertEqual(sum(parts), found["memory"]["total"])
                    one, all = found["decode"]
                    # Only a row of the embedding is read.
                    read = (matrices - vocabulary * dim) * bits / 8 + norms * 4
                    self.assertAlmostEqual(one["weight_bytes"], read, delta=1e-3 * read)
                    self.assertEqual(all["weight_bytes"], one["weight_bytes"])
                    self.assertAlmostEqual(one["cache_bytes"], 4096 * kv_token, delta=1e-2 * 4096 * kv_token)
                    self.assertEqual(all["cache_bytes"], 3 * one["cache_bytes"])

    def test_weights_count_in_the_format_that_gpus_read(self):
        config = Config(256, 2, 4, 2, vocab=1024, multiple_of=256)
        weights = random_weights(config, "f32")
        matrices, norms = parameters(256, 2, 4, 2, config.ffn, 1024)
        # F32 is read as bf16. Scales of Q4_K take 8 bits rather than 6.
        for kind, bits in (("F32", 16), ("Q4_K", 4.625), ("Q5_0", 5.5), ("Q8_0", 8.5)):
            with self.subTest(kind):
                model = write_gguf(self.path(f"{kind}.gguf"), config, quantise(weights, kind)[0])
                found = self.plan(model, "--gpu", "h100", "-c", 64, "--parallel", 1)
                self.assertEqual(found["memory"]["weights"], matrices * bits / 8 + norms * 4)
                read = (matrices - 1024 * 256) * bits / 8 + norms * 4
                self.assertAlmostEqual(found["decode"][0]["weight_bytes"], read, delta=1e-3 * read)
                # Inspecting says the same.
                inspected = self.llamac("inspect", model, "--target", "cuda", "-c", 64, "--json").stdout
                self.assertEqual(json.loads(inspected)["memory"]["weights"], found["memory"]["weights"])

    def test_what_is_advised_is_the_most_that_fits(self):
        for shape, gpu, options in (
            ("llama-3.1-70b", "h200", ()),
            ("llama-3.1-8b", "rtx-4090", ("--parallel", 10)),
        ):
            with self.subTest(shape, gpu=gpu):
                model = (config_of(shape), "--gpu", gpu, *options)
                found = self.plan(*model)
                self.assertFalse(found["fits"])
                self.assertGreater(found["memory"]["total"], found["device"]["memory"])
                advice = re.fullmatch(
                    r"compile with -c (\d+), --weights (\w+)( -c \d+)? or --ranks (\d+), which would fit",
                    found["advice"],
                )
                context = int(advice[1])
                self.assertTrue(self.plan(*model, "-c", context)["fits"])
                self.assertFalse(self.plan(*model, "-c", context + PAGE)["fits"])
                self.assertTrue(self.plan(*model, "--weights", advice[2], *(advice[3] or "").split())["fits"])
                self.assertTrue(self.plan(*model, "--ranks", advice[4])["fits"])

    def test_ranks_share_the_weights(self):
        shape = (config_of("llama-3.1-70b"), "--gpu", "h200", "-c", 4096, "--parallel", 3)
        whole = self.plan(*shape)
        norms = parameters(8192, 80, 64, 8, 28672, 128256)[1] * 4
        for ranks in (2, 4, 8, 16):
            with self.subTest(ranks=ranks):
                part = self.plan(*shape, "--ranks", ranks)
                one = part["decode"][0]
                # The embedding, two in each layer, and the logits.
                self.assertEqual(one["collectives"], 2 + 2 * 80)
                seconds = 1 / one["limit_tokens_per_second"] / part["device"]["decode_share"]
                seconds += one["collectives"] * part["device"]["collective_seconds"]
                self.assertAlmostEqual(one["expected_tokens_per_second"] * seconds, 1)
                # There are eight KV heads, which sixteen ranks hold twice.
                copies = 2 if ranks == 16 else 1
                kv_matrices = 80 * 2 * 1024 * 8192 * 2
                weights = whole["memory"]["weights"] + (copies - 1) * kv_matrices + (ranks - 1) * norms
                self.assertEqual(part["memory"]["weights"] * ranks, weights)
                self.assertEqual(part["memory"]["kv"] * ranks, whole["memory"]["kv"] * copies)

    def test_the_largest_context_fits_and_a_page_more_does_not(self):
        for shape, options in (
            ("llama-3.1-70b", ("--gpu", "h200", "--weights", "q4_0", "--parallel", 4)),
            ("llama-3.1-8b", ("--gpu", "a100-40gb")),
            ("llama-3.2-1b", ("--gpu", "l4", "--parallel", 16)),
        ):
            with self.subTest(shape):
                found = self.plan(config_of(shape), *options)
                most = found["largest_context"]
                self.assertGreater(most, found["context"])
                self.assertTrue(self.plan(config_of(shape), *options, "-c", most)["fits"])
                if most % PAGE == 0 and most < 131072:
                    self.assertFalse(self.plan(config_of(shape), *options, "-c", most + PAGE)["fits"])

    def test_the_whole_context_of_a_model_is_the_most(self):
        found = self.plan(config_of("llama-2-7b"), "--gpu", "h200", "--parallel", 1)
        self.assertEqual(found["largest_context"], found["context"])

    def test_more_sequences_than_a_step_has_rows_take_several(self):
        options = ("--gpu", "h200", "-c", 512, "--parallel")
        whole, several = (self.plan(config_of("llama-3.1-8b"), *options, count)["decode"][1] for count in (256, 1000))
        self.assertEqual(several["weight_bytes"], 4 * whole["weight_bytes"])
        self.assertAlmostEqual(several["cache_bytes"] / whole["cache_bytes"], 1000 / 256)

    def test_a_draft_model_counts_too(self):
        small = config_of("llama-3.2-1b")
        options = ("--gpu", "h100", "-c", 4096, "--parallel", 3)
        alone, drafting = self.plan(config_of("llama-3.1-8b"), *options), self.plan(small, *options)
        both = self.plan(config_of("llama-3.1-8b"), *options, "--draft", small)
        self.assertNotIn("draft", alone)
        self.assertEqual(both["memory"]["draft"], drafting["memory"]["total"])
        self.assertEqual(both["memory"]["total"], alone["memory"]["total"] + drafting["memory"]["total"])
        parts = {name: drafting["memory"][name] for name in both["draft"]["memory"]}
        self.assertEqual(both["draft"], {"model": drafting["model"], "context": 4096, "memory": parts})
        self.assertEqual(sum(parts.values()), both["memory"]["draft"])
        self.assertEqual(both["decode"], alone["decode"])

    def test_what_fits_with_a_draft_model(self):
        model = (config_of("llama-3.1-8b"), "--gpu", "rtx-4090", "--parallel", 2)
        drafts = ("--draft", config_of("llama-3.2-1b"))
        most = self.plan(*model, *drafts, "-c", 512)["largest_context"]
        self.assertTrue(self.plan(*model, *drafts, "-c", most)["fits"])
        self.assertFalse(self.plan(*model, *drafts, "-c", most + PAGE)["fits"])
        alone = self.plan(*model, "-c", 512)["largest_context"]
        self.assertGreater(alone, most)
        found = self.plan(*model, *drafts, "-c", alone)
        self.assertFalse(found["fits"])
        advice = re.fullmatch(r"compile with -c (\d+).*, which would fit; without --draft it fits", found["advice"])
        self.assertTrue(self.plan(*model, *drafts, "-c", advice[1])["fits"])
        text = self.llamac("plan", *model, *drafts, "-c", 512).stdout
        self.assertRegex(text, r"(?m)^  draft +\d\.\d GiB  weights \d\.\d GiB, KV cache [\d.]+ MiB, the rest [\d.]+ MiB$")

    def test_a_draft_model_that_cannot_draft_is_refused(self):
        for shape, options, words in (
            ("smollm2-135m", (), "expected a vocabulary of 128256 tokens, as .* has, got 49152"),
            ("qwen3-0.6b", ("--ranks", 2), "expected a vocabulary of 128256 tokens"),
        ):
            with self.subTest(shape):
                flags = ("--gpu", "h200", *options, "--draft", os.path.join(SHAPES, shape))
                result = self.llamac("plan", config_of("llama-3.1-8b"), *flags, expect=USAGE)
                self.assertRegex(result.stderr, words)

    def test_speed_is_that_of_the_bytes(self):
        found = self.plan(config_of("llama-3.1-8b"), "--gpu", "sm_90a")
        device = found["device"]
        self.assertEqual((device["name"], found["gpu"]), ("h200", "sm_90a"))
        for step in found["decode"]:
            bytes = sum(step[part] for part in ("weight_bytes", "cache_bytes", "activation_bytes"))
            limit = step["sequences"] * device["bandwidth"] / bytes
            self.assertAlmostEqual(step["limit_tokens_per_second"] / limit, 1, places=6)
            share = step["expected_tokens_per_second"] / step["limit_tokens_per_second"]
            self.assertAlmostEqual(share, device["decode_share"], places=6)

    def test_the_documents_table_of_devices_is_the_one_that_is_used(self):
        with open(os.path.join(support.ROOT, "docs", "scaling.md"), encoding="utf-8") as file:
            rows = re.findall(r"^\| ([\w-]+) \| (sm_\w+) \| (\d+) \| (\d+) \| ([\d.]+), ([\w ]+) \|$", file.read(), re.M)
        names = re.search(r"or (a100-40gb, [^(]*)", " ".join(self.llamac("plan", "--help").stdout.split()))[1]
        self.assertEqual([row[0] for row in rows], names.strip().split(", "))
        for name, gpu, mebibytes, bandwidth, share, source in rows:
            found = self.plan(config_of("llama-3.2-1b"), "--gpu", name, "-c", 512)
            device = found["device"]
            self.assertEqual((device["name"], found["gpu"]), (name, gpu))
            self.assertEqual(device["memory"], int(mebibytes) << 20)
            self.assertEqual(device["bandwidth"], int(bandwidth) * 10**9)
            self.assertEqual((f"{device['decode_share']:.2f}", device["decode_share_from"]), (share, source))

    def test_this_machine_is_a_device_too(self):
        found = self.plan(config_of("llama-3.2-1b"), "-c", 512, "--parallel", 1)
        self.assertEqual((found["target"], found["device"]["bandwidth_from"]), ("cpu", "measured here"))
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGESIZE")
        self.assertEqual(found["device"]["memory"], memory)
        self.assertEqual(found["memory"]["kv"], math.ceil(512 / PAGE) * PAGE * 16 * 2 * 8 * 64 * 2)

    def test_people_get_tables(self):
        result = self.llamac("plan", config_of("llama-3.1-70b"), "--gpu", "h200", expect=MEMORY)
        self.assertRegex(result.stderr, r"does not fit h200: expected at most 1.* GiB, got 1.* GiB; compile with -c ")
        text = result.stdout
        self.assertRegex(text, r"(?m)^  weights +131\.4 GiB$")
        self.assertRegex(text, r"(?m)^does not fit, 11\.\d GiB missing; compile with -c \d+, --weights q8_0 or --ranks 2, which")
        self.assertNotRegex(text, r"(?m) $")
        self.assertIn("fits, ", self.llamac("plan", config_of("llama-3.1-8b"), "--gpu", "h200").stdout)

    def test_a_model_or_its_configuration_is_read(self):
        folder = self.path("alone")
        os.makedirs(folder)
        shutil.copy(config_of("llama-3.2-1b"), folder)
        alone = self.plan(folder, "--gpu", "h100")
        self.assertEqual(alone["memory"], self.plan(config_of("llama-3.2-1b"), "--gpu", "h100")["memory"])
        model = support.require_model("smollm2.gguf")
        found = self.plan(model, "--gpu", "l4", "-c", 512)
        self.assertAlmostEqual(found["memory"]["weights"], os.path.getsize(model), delta=0.1 * os.path.getsize(model))

    def test_what_cannot_be_is_refused(self):
        for options, code, words in (
            (("--gpu", "h300"), USAGE, r"--gpu: expected one of .*sm_90a.*h200.*, got h300"),
            (("--gpu", "h200", "--target", "cpu"), USAGE, r"--gpu: expected --target cuda or sim, got cpu"),
            (("--target", "tpu"), USAGE, r"--target: expected one of {cpu,cuda,sim,reference}, got tpu"),
            (("--target", "reference"), USAGE, r"--target: expected cpu, cuda or sim, got reference"),
        ):
            with self.subTest(options):
                result = support.run([LLAMAC, "plan", config_of("llama-3.2-1b"), *options])
                self.assertEqual(result.returncode, code)
                self.assertRegex(result.stderr, words)


if __name__ == "__main__":
    unittest.main()
