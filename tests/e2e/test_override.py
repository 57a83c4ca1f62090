# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Edited kernels in plans: what was checked is what runs, and a plan is kept for
each edit. The default tier has each of the tests, but not every format of weights."""

import os
import re
import unittest

import support

support.require("numpy", "gguf", "safetensors")

import numpy as np

from llama_numpy import Config
from make_model import quantise, random_weights, write_gguf, write_huggingface
from support import ACCURACY, USAGE

CONFIG = Config(64, 2, 4, 2, vocab=259)
KERNEL = "gemv_attention_wo_n64_k64_bf16"
SMALL = ("--target", "sim", "-c", 64, "--step-rows", 4)  # For tests of that kernel alone.


def of_fewest_and_most_rows(kernels):
    """The kernels of the fewest and of the most rows of each op, by names such as op_m16."""
    ops = {}
    for name in kernels:
        before, rows, behind = re.fullmatch(r"(.*?)(?:_m(\d+))?((?:_2)?)", name).groups()
        ops.setdefault((before, behind), []).append((int(rows or 1), name))
    return {end(of)[1] for of in ops.values() for end in (min, max)}


class Overrides(support.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.model = write_huggingface(cls.path("model"), CONFIG, random_weights(CONFIG))

    def emitted(self, *flags):
        """The emitted files by kernel."""
        folder = self.path("source" + "".join(map(str, flags)))
        self.llamac("compile", self.model, "--target", "sim", "--emit-source", folder, *flags)
        return {
            name[: -len(".cu")]: os.path.join(folder, name)
            for name in os.listdir(folder)
            if name.endswith(".cu")
        }

    def edited(self, name, old, new):
        """The file of KERNEL with `old` made `new`, and the flag that takes it."""
        with open(self.emitted()[KERNEL], encoding="utf-8") as file:
            text = file.read()
        self.assertIn(old, text)
        path = self.path(name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace(old, new))
        return f"--override-kernel={KERNEL}={path}"

    def plans(self):
        folder = os.path.join(self.cache, "llamac", "plans")
        return set(os.listdir(folder)) if os.path.isdir(folder) else set()

    def test_every_emitted_file_passes(self):
        for weights in support.by_tier(("keep",), ("keep", "q4_0", "q8_0", "mxfp8")):
            flags = ("--weights", weights)
            files = self.emitted(*flags)
            self.assertGreater(len(files), 20)
            names = support.by_tier(of_fewest_and_most_rows(files), files)
            overrides = [f"--override-kernel={name}={files[name]}" for name in names]
            self.llamac(
                *("compile", self.model, "--target", "sim", *flags, *overrides),
                *("--emit-source", self.path("again")),
            )

    def test_products_of_every_block_format_pass(self):
        config = Config(256, 1, 4, 2, vocab=260, multiple_of=256, tied=True)
        weights = random_weights(config, "f32")
        for kind in support.by_tier(("Q6_K",), ("Q4_1", "Q5_0", "Q5_1", "Q4_K", "Q5_K", "Q6_K")):
            model = write_gguf(self.path(f"{kind}.gguf"), config, quantise(weights, kind)[0])
            name = f"attention_wo_n256_k256_{kind.lower()}"
            source = self.path(kind)
            self.llamac("compile", model, "--target", "sim", "--emit-source", source)
            # Kernels of one row and of four, and of batches.
            kernels = [file[:-3] for file in sorted(os.listdir(source)) if name in file and not file.endswith("_m2.cu")]
            self.assertEqual(len(kernels), 7, kernels)
            overrides = [f"--override-kernel={kernel}={source}/{kernel}.cu" for kernel in kernels]
            self.llamac(
                *("compile", model, "--target", "sim", *overrides),
                *("--emit-source", self.path("again")),
            )

    def test_an_edit_is_in_the_plan_and_runs(self):
        flag = self.edited("half.cu", ".unroll = 4", ".unroll = 2 /* half */")
        plan = self.path("edited.plan")
        self.llamac("compile", self.model, *SMALL, flag, "-o", plan)
        with open(plan, "rb") as file:
            self.assertIn(b".unroll = 2 /* half */", file.read())
        run = ("--tokens", "1,2,3", "-n", "8", "--print-ids", "--ignore-eos", "--temp", "0", "-q")
        self.assertEqual(
            self.llamac("run", plan, *run).stdout,
            self.llamac("run", self.model, *SMALL, *run).stdout,
        )

    def test_a_plan_is_kept_for_each_edit(self):
        def logits(*flags):
            before = self.plans()
            result = self.logits(self.model, [1, 2, 3], "sim", *SMALL[2:], *flags)
            return result, self.plans() - before

        plain, _ = logits()
        edited, made = logits(self.edited("a.cu", ".unroll = 4", ".unroll = 2"))
        self.assertEqual(len(made), 1)
        np.testing.assert_allclose(edited, plain, rtol=0, atol=1e-4)
        # A new text under the same name is compiled, and that text again is
        # not.
        _, made = logits(self.edited("a.cu", ".unroll = 4", ".unroll = 1"))
        self.assertEqual(len(made), 1)
        _, made = logits(self.edited("b.cu", ".unroll = 4", ".unroll = 1"))
        self.assertEqual(made, set())

    def test_a_wrong_kernel_stops_every_verb(self):
        flag = self.edited("wrong.cu", "x0 + acc", "x0 - acc")
        before = self.plans()
        model = (self.model, *SMALL, flag)
        for verb in [
            ("compile", *model, "-o", self.path("wrong.plan")),
            ("run", *model, "--tokens", "1,2,3", "-n", "1"),
            ("logits", *model, "--tokens", "1,2", "-o", self.path("wrong.npy")),
            ("check", *model, "--tokens", "1,2"),
        ]:
            with self.subTest(verb[0]):
                result = self.llamac(*verb, "--weights", "keep", expect=ACCURACY)
                last = result.stderr.splitlines()[-1]
                self.assertIn("wrong.cu: out differs from the reference", last)
        self.assertEqual(self.plans(), before)
        self.assertFalse(os.path.exists(self.path("wrong.plan")))

    def test_bad_inputs_are_errors_of_usage(self):
        flag = self.edited("broken.cu", "stream.run(", "stream.ran(")
        for override in (flag, "--override-kernel=none=x.cu", f"--override-kernel={KERNEL}"):
            with self.subTest(override):
                result = self.llamac(
                    *("compile", self.model, *SMALL, override),
                    *("-o", self.path("none.plan")),
                    expect=USAGE,
                )
                self.assertIn("--override-kernel: ", result.stderr)


if __name__ == "__main__":
    unittest.main()
