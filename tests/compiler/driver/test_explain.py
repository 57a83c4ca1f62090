# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""--explain-fusion: what is fused, and that this is all, or one line for each op that is not.
--explain-kernels: the reasons of models in mixed formats."""

import json
import os
import re
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "e2e"))

import support  # noqa: E402

support.require("numpy", "gguf")

from llama_numpy import Config  # noqa: E402
from make_model import quantise, random_weights, write_gguf  # noqa: E402

SHAPES = {
    "Llama 3.2 1B": dict(dim=2048, n_layers=16, n_heads=32, n_kv_heads=8, vocab_size=128256, ffn_dim_multiplier=1.5),
    "Llama 3.1 8B": dict(dim=4096, n_layers=32, n_heads=32, n_kv_heads=8, vocab_size=128256, ffn_dim_multiplier=1.3),
    "Llama 3.1 70B": dict(dim=8192, n_layers=80, n_heads=64, n_kv_heads=8, vocab_size=128256, ffn_dim_multiplier=1.3),
    "Llama 2 7B": dict(dim=4096, n_layers=32, n_heads=32, vocab_size=32000),
}


class Explain(support.TestCase):
    def explain(self, model, *flags):
        """The lines of --explain-fusion: of what was fused by pass, and the others."""
        run = self.llamac("compile", model, "--explain-fusion", "--stop-after", "fuse", *flags)
        fused, others = {}, []
        for line in run.stderr.splitlines():
            name, is_fused, changes = line.partition(": fused: ")
            if is_fused:
                fused[name] = dict(re.fullmatch(r"(\S+) (\d+ -> \d+)", change).groups() for change in changes.split(", "))
            else:
                others.append(line)
        return fused, others

    def test_plain_graphs_are_said_to_be_fused(self):
        path = self.path("params.json")
        for name, shape in SHAPES.items():
            with self.subTest(model=name):
                with open(path, "w") as file:
                    json.dump(shape | {"multiple_of": 256, "norm_eps": 1e-5, "rope_theta": 500000.0}, file)
                fused, others = self.explain(path)
                self.assertEqual(others, ["fuse: no op was left out of a fusion"])
                layers = shape["n_layers"]
                self.assertEqual(fused["fuse-attention"]["llama.softmax"], f"{layers} -> 0")
                self.assertEqual(fused["fuse-norm"]["kernel.rms_norm"], f"{2 * layers + 1} -> 0")
                self.assertEqual(fused["fuse-qkv"]["kernel.qkv"], f"0 -> {layers}")

    def test_a_skipped_fusion_is_named(self):
        with open(self.path("params.json"), "w") as file:
            json.dump(SHAPES["Llama 3.2 1B"], file)
        flags = "--skip-pass", "fuse-norm"
        fused, others = self.explain(self.path("params.json"), *flags)
        self.assertEqual(others, ["fuse-norm: not fused: the pass was skipped"])
        self.assertIn("fuse-qkv", fused)
        self.assertNotIn("fuse-norm", fused)

    def test_gate_and_up_in_different_formats_are_two_launches(self):
        config = Config(128, 2, 4, 2, vocab=501, multiple_of=64)
        weights = random_weights(config)
        stored, _ = quantise(weights, "Q8_0")
        others, _ = quantise(weights, "Q4_1")
        up = "layers.1.feed_forward.w3"
        stored[up] = others[up]
        model = write_gguf(self.path("mixed.gguf"), config, stored)
        self.assertEqual(
            self.explain(model)[1],
            [
                "layers.1.feed_forward.w1 + layers.1.feed_forward.silu + layers.1.feed_forward.mul: fuse-epilogue: "
                "not fused: two products with weights of different types, q8_0 and q4_1; "
                "layers.1.feed_forward.w3: the other product"
            ],
        )

    def test_this_machines_peaks_are_measured_once(self):
        with open(self.path("params.json"), "w") as file:
            json.dump(SHAPES["Llama 3.2 1B"], file)
        flags = "--explain-kernels", "--stop-after", "schedule"
        kept = os.path.join(self.cache, "llamac", "peaks", "cpu.json")
        first = self.llamac("compile", self.path("params.json"), *flags).stderr
        with open(kept) as file:
            peaks = json.load(file)
        self.assertGreater(peaks["bandwidth"], 1e8)
        with open(kept, "w") as file:
            json.dump(peaks | {"bandwidth": 2e10, "f32_operations": 1e12}, file)
        text = self.llamac("compile", self.path("params.json"), *flags).stderr
        self.assertNotEqual(text, first)
        self.assertIn("at the 20 GB/s and 1e+03 GFLOP/s of f32 that were measured here", text)
        moved, bound, least = re.search(r"decode: gemv_feed_forward_w1\S+: .*; (\S+) MB each.*; bound by (\w+), at least (\S+) us", text).groups()
        self.assertEqual(bound, "memory")
        self.assertAlmostEqual(float(least) / (float(moved) * 1e6 / 20e9 * 1e6), 1, delta=0.01)
        self.assertRegex(text, r"prefill: gemm_feed_forward_w1\S+: .*; bound by arithmetic, at least")
        with open(kept, "w") as file:
            file.write("{")
        self.assertIn("measured here", self.llamac("compile", self.path("params.json"), *flags).stderr)

    def explain_kernels(self, stored_as):
        """The warnings and slow paths of sm_90a for a model in the formats `stored_as`, by weight."""
        config = Config(128, 2, 4, 2, vocab=501, multiple_of=64)
        weights = random_weights(config)
        stored, _ = quantise(weights, "Q8_0")
        for format, names in stored_as.items():
            others, _ = quantise(weights, format)
            stored |= {name: value for name, value in others.items() if name.endswith(names)}
        model = write_gguf(self.path("mixed.gguf"), config, stored)
        options = ("--target", "cuda", "--gpu", "sm_90a", "--stop-after", "schedule")
        lines = self.llamac("compile", model, *options, "--explain-kernels").stderr.splitlines()
        warnings = [line for line in lines if line.startswith("warning: ")]
        self.assertEqual(self.llamac("compile", model, *options, "-o", os.devnull).stderr.splitlines(), warnings)
        return warnings, [line for line in lines if line not in warnings]

    def test_a_format_without_kernels_is_said_even_without_the_flag(self):
        warnings, lines = self.explain_kernels({"F32": "feed_forward.w2"})
        self.assertEqual(
            warnings,
            [
                "warning: layers.0.feed_forward.w2: f32 is read as bf16: target cuda has no kernels for f32; "
                "1 more matrix likewise"
            ],
        )
        down = next(line for line in lines if line.startswith("decode: gemv_feed_forward_w2_"))
        self.assertIn("; slow path: its matrices are read as bf16: there are no kernels for f32", down)
        # Bytes are those of bf16: 128 x 384 of the weight, 384 of the input, twice 128 of residual and result.
        depth = int(down.split("_k")[1].split("_")[0])
        self.assertIn(f"; {(2 * 128 * depth + 4 * (depth + 2 * 128)) / 1000:.0f} kB each", down)

    def test_matrices_of_different_formats_do_not_stream(self):
        warnings, lines = self.explain_kernels({"Q4_1": "attention.wv"})
        self.assertEqual(warnings, [])
        for program, why in (("decode", "not streamed"), ("prefill", "not by wgmma")):
            line = next(line for line in lines if line.startswith(f"{program}: qkv_"))
            self.assertIn(f"; slow path: {why}: its matrices are of different formats", line)


if __name__ == "__main__":
    unittest.main()
