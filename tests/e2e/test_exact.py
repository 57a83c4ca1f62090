# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""On the cpu a row's logits have the same bits in steps of any size, at any cut
of a prompt, whatever other rows are in its step, and on any number of threads.

llamac-step-bits compares them with those of one row a step on one thread. Tiny
models are compared in steps of 1 to 33 rows, SmolLM2 in some. The default tier
has one format of floats and one of integers, each at two instruction-set levels.

    test_exact.py            all of it
    test_exact.py OwnKeys    one class
"""

import os
import unittest

import support

support.require("numpy", "gguf", "ml_dtypes", "safetensors")

from llama_numpy import Config
from make_model import quantise, random_weights, write_gguf
from test_logits import runnable_levels

STEP_BITS = os.path.join(support.BIN_DIR, "..", "tests", "llamac-step-bits")
# One more than the program for few rows holds.
SEQUENCES = 33


class ExactCase(support.TestCase):
    def check(self, model, isa, tokens, sizes, *flags):
        """Compares steps of `sizes` rows of a model whose plan is for `isa`."""
        plan = self.path("model.plan")
        self.llamac("compile", model, "-o", plan, "--isa", isa, "-c", 512, "--parallel", SEQUENCES, "-q", *flags)
        result = support.run([str(x) for x in (STEP_BITS, plan, isa, tokens, *sizes)])
        self.assertEqual(result.returncode, 0, result.stderr)
        rows, last = sum(sizes), result.stdout.splitlines()[-1]
        self.assertRegex(last, r"^\d+ rows compared, 0 differ$", result.stdout)
        # On three threads, of the batches alone.
        self.assertGreater(int(last.split()[0]), 3 * rows)


class TinyCase(ExactCase):
    """Two layers of random weights, in steps of every size."""

    config = None
    kinds = ()  # Formats of weights: of the default tier, and of the exhaustive one.
    flags = ()
    # More keys than attention reduces together.
    TOKENS = 300

    def test_every_size_of_a_step(self):
        levels = runnable_levels()
        # One of each width of vectors.
        some = dict.fromkeys([*(x for x in levels if x == "x86-64-v3"), levels[-1]])
        for kind in support.by_tier(*self.kinds):
            stored, _ = quantise(random_weights(self.config, "f32", 1), kind)
            model = write_gguf(self.path("model.gguf"), self.config, stored)
            for level in support.by_tier(some, levels):
                with self.subTest(kind, level=level):
                    self.check(model, level, self.TOKENS, range(1, SEQUENCES + 1), *self.flags)


class SharedKeys(TinyCase):
    """Four heads share a key; products of floats."""

    config = Config(256, 2, 8, 2, vocab=501, multiple_of=256)
    kinds = ("BF16",), ("BF16", "F16", "F32")


class OwnKeys(TinyCase):
    """A key for each head, in 8 bits; products of integers."""

    config = Config(256, 2, 8, 8, vocab=301, multiple_of=256)
    flags = ("--kv-type", "q8_0")
    kinds = ("Q4_0",), ("Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_XS", "MXFP4")


class RealModel(ExactCase):
    """SmolLM2-135M-Instruct, Q4_1."""

    def test_some_sizes_of_a_step(self):
        model = support.require_model("smollm2.gguf")
        self.check(model, runnable_levels()[-1], 80, (2, 5, 8, 31, SEQUENCES))


# Classes that only hold what others share are no tests.
def load_tests(loader, standard, pattern):
    return unittest.TestSuite(loader.loadTestsFromTestCase(c) for c in (SharedKeys, OwnKeys, RealModel))


if __name__ == "__main__":
    unittest.main(verbosity=2)
