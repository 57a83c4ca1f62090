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
        """The table of --explain-fusion as {pass: {op: (before, after)}}, and its other lines."""
        run = self.llamac("compile", model, "--explain-fusion", "--stop-after", "fuse", *flags)
        fused, others = {}, []
        for line in run.stdout.splitlines():
            row = re.fullmatch(r"  (\S+) +(\S+) +(\d+) +(\d+)", line)
            if row:
                name, op, before, after = row.groups()
                fused.setdefault(name, {})[op] = int(before), int(after)
            elif line.split() != ["pass", "op", "before", "after"]:
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
                self.assertEqual(fused["fuse-attention"]["llama.softmax"], (layers, 0))
                self.assertEqual(fused["fuse-norm"]["kernel.rms_norm"], (2 * layers + 1, 0))
                self.assertEqual(fused["fuse-qkv"]["kernel.qkv"], (0, layers))

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

    def test_terminators_are_no_fusions(self):
        with open(self.path("params.json"), "w") as file:
            json.dump(SHAPES["Llama 3.2 1B"], file)
        ops = {op for changes in self.explain(self.path("params.json"))[0].values() for op in changes}
        self.assertEqual([op for op in ops if op.endswith((".yield", ".return"))], [])

    def test_times_are_those_at_the_speeds_of_this_machine(self):
        for options, of_products in ((), 0), (("--weights", "q4_0"), 1):
            with self.subTest(options=options):
                self.check_times(options, of_products)

    def check_times(self, options, of_products):
        """The times of products are at the rate number `of_products` of this machine: of f32 or int8."""
        config = SHAPES["Llama 3.2 1B"]
        with open(self.path("params.json"), "w") as file:
            json.dump(config, file)
        run = self.llamac("compile", self.path("params.json"), "--explain-kernels", "--stop-after", "schedule", *options)
        speeds = re.search(
            r"^Times are those at (\S+) GB/s, (\S+) GFLOP/s in f32 and (\S+) in products of int8, measured just now",
            run.stdout,
            re.M,
        )
        bandwidth, *operations = map(float, speeds.groups())
        self.assertGreater(min(bandwidth, *operations), 0.1)
        bounds = set()
        for table in run.stdout.split("\n\n")[:-1]:
            rows = [
                re.fullmatch(r" +(\S+) +(\d+) +(\d*) +(\S+) (\S+) +(\S+)  (memory|arithmetic|) +(\S.*)", line).groups()
                for line in table.splitlines()[2:]
            ]
            *kernels, step = rows
            for _, launches, count, size, unit, ms, bound, kernel in kernels:
                if shape := re.match(r"gemm_\w+_n(\d+)_k(\d+)_", kernel):
                    width, depth = map(int, shape.groups())
                    weights = 2 if "feed_forward_w1" in kernel else 1  # Gate and up.
                    by_arithmetic = int(launches) * 2 * int(count) * width * depth * weights / operations[of_products] * 1e-6
                    if bound == "arithmetic":
                        self.assertAlmostEqual(float(ms) / by_arithmetic, 1, delta=0.02, msg=kernel)
                    else:
                        self.assertGreaterEqual(float(ms), 0.98 * by_arithmetic, kernel)
                bounds.add(bound)
                moved = int(launches) * float(size) * {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9}[unit]
                by_memory = moved / (bandwidth * 1e6)
                if bound == "memory" and by_memory > 0.1:
                    self.assertAlmostEqual(float(ms) / by_memory, 1, delta=0.06, msg=kernel)
                else:
                    self.assertGreaterEqual(float(ms), 0.9 * by_memory - 0.001, kernel)
            shares = [float(row[0]) for row in kernels]
            self.assertEqual(shares, sorted(shares, reverse=True))
            self.assertEqual((step[0], step[-1]), ("100.0", "the step"))
            self.assertAlmostEqual(sum(shares), 100, delta=1)
            self.assertAlmostEqual(sum(float(row[5]) for row in kernels) / float(step[5]), 1, delta=0.01)
            self.assertEqual(sum(int(row[1]) for row in kernels), int(step[1]))
        self.assertEqual(bounds, {"memory", "arithmetic"})
        self.assertFalse(os.path.exists(os.path.join(self.cache, "llamac", "peaks")))

    def explain_kernels(self, stored_as):
        """The warnings and tables of sm_90a, by program, for a model in the formats `stored_as`, by weight."""
        config = Config(128, 2, 4, 2, vocab=501, multiple_of=64)
        weights = random_weights(config)
        stored, _ = quantise(weights, "Q8_0")
        for format, names in stored_as.items():
            others, _ = quantise(weights, format)
            stored |= {name: value for name, value in others.items() if name.endswith(names)}
        model = write_gguf(self.path("mixed.gguf"), config, stored)
        options = ("--target", "cuda", "--gpu", "sm_90a", "--stop-after", "schedule")
        run = self.llamac("compile", model, *options, "--explain-kernels")
        warnings = run.stderr.splitlines()
        self.assertEqual(self.llamac("compile", model, *options, "-o", os.devnull).stderr.splitlines(), warnings)
        return warnings, dict(table.split(":", 1) for table in run.stdout.split("\n\n")[:-1])

    def row(self, table, kernel):
        """The row of `kernel` in a program's table, and the lines below it."""
        lines = table.splitlines()
        at = next(number for number, line in enumerate(lines) if re.search(f" {kernel}\\S*: ", line))
        below = [line.strip() for line in lines[at + 1 : at + 3] if line.strip().startswith("slow path: ")]
        return lines[at], below

    def test_a_format_without_kernels_is_said_even_without_the_flag(self):
        warnings, tables = self.explain_kernels({"F32": "feed_forward.w2"})
        self.assertEqual(
            warnings,
            [
                "warning: layers.0.feed_forward.w2: f32 is read as bf16: target cuda has no kernels for f32; "
                "1 more matrix likewise"
            ],
        )
        down, reasons = self.row(tables["decode"], "gemv_feed_forward_w2_")
        self.assertEqual(reasons[0], "slow path: its matrices are read as bf16: there are no kernels for f32")
        # Bytes are those of bf16: 128 x 384 of the weight, 384 of the input, twice 128 of residual and result.
        depth = int(re.search(r"_k(\d+)", down)[1])
        self.assertIn(f"  {(2 * 128 * depth + 4 * (depth + 2 * 128)) / 1000:.0f} kB  ", down)

    def test_matrices_of_different_formats_do_not_stream(self):
        warnings, tables = self.explain_kernels({"Q4_1": "attention.wv"})
        self.assertEqual(warnings, [])
        for program, why in (("decode", "not streamed"), ("prefill", "not by wgmma")):
            reasons = self.row(tables[program], "qkv_")[1]
            self.assertEqual(reasons[0], f"slow path: {why}: its matrices are of different formats")


if __name__ == "__main__":
    unittest.main()
