# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Logits of every form of a model against a float64 forward of the same weights.

Each class below is one configuration: it writes the same random weights as
Meta, Hugging Face and GGUF models, and compares all logits with the oracle on
the reference target and on the cpu target, in one prefill, in chunks, and token
by token through the KV cache. An error is the largest difference of any logit
over the largest |logit|. The default tier leaves out configurations whose
mechanisms others have, and reads each model in one form (a prefill, chunks, or
token by token), which alternate.

    test_logits.py            all configurations
    test_logits.py ScaledRope one of them
"""

import itertools
import json
import unittest

import support

support.require("numpy", "gguf", "ml_dtypes", "safetensors")

import fp8
import gguf
import numpy as np

from kv_formats import ROUNDED
from llama_numpy import Config, RopeScaling, forward
from make_model import (
    gguf_name,
    quantise,
    random_weights,
    weight_shapes,
    write_gguf,
    write_huggingface,
    write_meta,
)

# fp32, op by op.
REFERENCE_TOLERANCE = 2e-5
# Activations may be rounded to bf16 where the host multiplies bf16: 2^-9 in
# each operand of each product.
CPU_TOLERANCE = 5e-3
# Products with block formats round activations to int8 in blocks of 32: a step
# of 1/127 of the block's largest, about 0.6 % of a typical activation.
INT8_TOLERANCE = 2e-2
# Products with others widen the weights, which may be rounded to bf16 too.
DEQUANTISED_TOLERANCE = 1e-2

# A prompt longer than a chunk, and one that is no multiple of anything.
TOKENS = 41
CHUNKS = (TOKENS, 16, 7, 1)


def quantise_by_turns(weights, type_names):
    """quantise() with a format of its own for each product, all used."""
    # Matrices of one product have one.
    first = {"wk": "wq", "wv": "wq", "w3": "w1"}
    types, free = {}, itertools.cycle(type_names)
    stored, values = {}, {}
    for name, x in weights.items():
        block, _, matrix = name.rpartition(".")
        if x.ndim == 2:
            types[name] = types[f"{block}.{first[matrix]}"] if matrix in first else next(free)
        for found, made in zip((stored, values), quantise({name: x}, types.get(name, "F32"))):
            found.update(made)
    assert set(types.values()) == set(type_names)
    return stored, values


class LogitsCase(support.TestCase):
    """The comparison; subclasses say what to compare."""

    config = None
    compared = 0
    every_chunk = False  # Whether the default tier has every way to cut the prompt too.
    dtype = "bf16"
    seed = 1
    reference_tolerance = REFERENCE_TOLERANCE

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.tokens = np.random.default_rng(cls.seed).integers(0, cls.config.vocab, TOKENS).tolist()
        cls.weights = cls.make_weights()

    @classmethod
    def make_weights(cls):
        return random_weights(cls.config, cls.dtype, cls.seed)

    def check(self, got, expected, tolerance):
        self.assertEqual(got.shape, expected.shape)
        self.assertTrue(np.isfinite(got).all(), "a logit is not finite")
        largest = np.abs(expected).max()
        error = np.abs(got - expected).max() / largest
        row = int(np.abs(got - expected).max(axis=1).argmax())
        print(f"  error {error:.2e} of {tolerance:.0e}")
        self.assertLessEqual(error, tolerance, f"worst at position {row}; largest |logit| {largest:.3f}")

    def compare(self, model, weights, cpu_tolerance, *flags, config=None):
        expected = forward(config or self.config, weights, self.tokens)
        with self.subTest("reference"):
            self.check(self.logits(model, self.tokens, "reference", *flags), expected, self.reference_tolerance)
        LogitsCase.compared += 1
        some = CHUNKS if self.every_chunk else (CHUNKS[self.compared % len(CHUNKS)],)
        for chunk in support.by_tier(some, CHUNKS):
            with self.subTest(f"cpu, {chunk} at a time"):
                got = self.logits(model, self.tokens, "cpu", "--chunk", chunk, *flags)
                self.check(got, expected, cpu_tolerance)


class AllForms(LogitsCase):
    """One set of weights in the three formats."""

    meta_shards = support.by_tier((3,), (1, 3))
    hf_shards = support.by_tier((2,), (1, 2))

    def test_meta(self):
        for shards in self.meta_shards:
            # Several shards partition the embedding by columns (Llama 2) or by rows
            # (Llama 3); which one it is, only the shapes say.
            for split in (1, 0) if shards > 1 else (1,):
                with self.subTest(shards=shards, embedding_in_parts=split):
                    model = self.path(f"meta-{shards}-{split}")
                    write_meta(model, self.config, self.weights, self.dtype, shards, split)
                    self.compare(model, self.weights, CPU_TOLERANCE)

    def test_huggingface(self):
        for shards in self.hf_shards:
            with self.subTest(shards=shards):
                model = self.path(f"hf-{shards}")
                write_huggingface(model, self.config, self.weights, self.dtype, shards)
                self.compare(model, self.weights, CPU_TOLERANCE)

    def test_gguf(self):
        stored, values = quantise(self.weights, self.dtype.upper())
        model = write_gguf(self.path("model.gguf"), self.config, stored)
        self.compare(model, values, CPU_TOLERANCE)


class EveryHeadItsOwn(AllForms):
    """GQA ratio 1 (Llama 2), head size 32."""

    config = Config(192, 2, 6, 6, vocab=501, multiple_of=48, theta=10000.0)


class ThreeHeadsShareOne(AllForms):
    """GQA ratio 3, head size 16, tied."""

    config = Config(144, 3, 9, 3, vocab=501, tied=True, multiple_of=48)


class FourHeadsShareOne(AllForms):
    """GQA ratio 4, head size 64, an FFN size by ffn_dim_multiplier."""

    config = Config(256, 2, 4, 1, vocab=499, multiple_of=40, ffn_dim_multiplier=1.3)
    meta_shards = (1,)
    seed = 3


class EightHeadsShareOne(AllForms):
    """GQA ratio 8, head size 16, fp32 weights."""

    config = Config(384, 2, 24, 3, vocab=501, multiple_of=48)
    dtype = "f32"


class WideHeads(AllForms):
    """Head size 128, tied, fp16 weights."""

    config = Config(512, 2, 4, 2, vocab=499, tied=True)
    dtype = "f16"
    meta_shards = (1,)


class ScaledRope(AllForms):
    """Llama 3.1's scaling as all three formats can say it."""

    config = Config(384, 2, 6, 3, vocab=501, multiple_of=48, scaling=RopeScaling())


class StrongRopeScaling(AllForms):
    """A scaling that turns heads visibly within a short prompt; params.json
    cannot say it."""

    config = Config(256, 2, 4, 2, vocab=499, scaling=RopeScaling(4.0, 1.0, 4.0, 64.0))
    meta_shards = ()
    dtype = "f32"


class HeadsWiderThanModel(AllForms):
    """heads x head size is not dim; params.json cannot say it."""

    config = Config(96, 2, 4, 2, vocab=499, head_size=40)
    meta_shards = ()


class SharedStorage(LogitsCase):
    """A tied Meta model that also has an output.weight, in the embedding's own
    storage."""

    config = Config(128, 2, 4, 2, vocab=499, tied=True)

    def test_meta(self):
        model = self.path("meta")
        write_meta(model, self.config, self.weights, self.dtype, share_output=True)
        self.compare(model, self.weights, CPU_TOLERANCE)


class Quantised(LogitsCase):
    """The block formats, against the oracle on the numbers they stand for. The
    default tier has all in one file, where each layer's products have formats of
    their own, the exhaustive tier also a file for each."""

    config = Config(256, 3, 4, 2, vocab=499, multiple_of=256, tied=True)
    dtype = "f32"

    def test_every_format_in_one_file(self):
        stored, values = quantise_by_turns(self.weights, BLOCK_FORMATS)
        self.compare(write_gguf(self.path("every.gguf"), self.config, stored), values, INT8_TOLERANCE)

    @unittest.skipUnless(support.EXHAUSTIVE, "the default tier has them in EveryInstructionSet")
    def test_8_bit_floats(self):
        """Which no GGUF holds: matrices become them when they are compiled."""
        model = self.path("f32")
        write_huggingface(model, self.config, self.weights, self.dtype)
        for kind in fp8.FORMATS:
            with self.subTest(kind):
                values = {name: fp8.rounded(x, kind) if x.ndim == 2 else x for name, x in self.weights.items()}
                self.compare(model, values, DEQUANTISED_TOLERANCE, "--weights", kind)


def _add_quantised(type_name, tolerance):
    def test(self):
        stored, values = quantise(self.weights, type_name)
        model = write_gguf(self.path(f"{type_name}.gguf"), self.config, stored)
        self.compare(model, values, tolerance)

    setattr(Quantised, f"test_{type_name.lower()}", test)


BLOCK_FORMATS = ("Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q4_K", "Q5_K", "Q6_K", "Q2_K", "Q3_K", "IQ4_NL", "IQ4_XS", "MXFP4")
for _name in support.by_tier((), BLOCK_FORMATS):
    _add_quantised(_name, INT8_TOLERANCE)


# The levels of runtime/cpu/IsaLevel.h and what of /proc/cpuinfo they need.
ISA_LEVELS = {
    "portable": set(),
    "x86-64-v3": {"avx2", "fma", "f16c", "bmi2"},
    "x86-64-v4-vnni": {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", "avx512_vnni"},
    "x86-64-v4-bf16": {"avx512_vnni", "avx512_bf16"},
    "x86-64-v4-amx": {"avx512_bf16", "amx_tile", "amx_int8"},
}


def runnable_levels():
    """The levels that this machine runs."""
    with open("/proc/cpuinfo") as f:
        line = next((x for x in f if x.startswith("flags")), "flags :")
    flags = set(line.split(":")[1].split())
    return [level for level, needed in ISA_LEVELS.items() if needed <= flags]


class EveryInstructionSet(LogitsCase):
    """Every level that this machine runs, for two float and some integer formats."""

    # K-quants want rows of whole blocks of 256.
    config = Config(256, 2, 8, 2, vocab=501, multiple_of=256)

    def test_levels(self):
        models = {}
        some = (("BF16",), ("Q4_1", "Q6_K"))
        every = (("BF16",), ("Q4_1",), ("Q8_0",), ("Q5_K",), ("Q6_K",))
        for type_names in support.by_tier(some, every):
            tolerance = CPU_TOLERANCE if "BF16" in type_names else INT8_TOLERANCE
            stored, values = quantise_by_turns(self.weights, type_names)
            name = "-".join(type_names)
            model = write_gguf(self.path(f"{name}.gguf"), self.config, stored)
            models[name] = (model, values, tolerance, "keep")
        for kind in fp8.FORMATS:
            values = {name: fp8.rounded(x, kind) if x.ndim == 2 else x for name, x in self.weights.items()}
            models[kind] = (self.path("BF16.gguf"), values, DEQUANTISED_TOLERANCE, kind)
        for type_name, (model, values, tolerance, kept) in models.items():
            expected = forward(self.config, values, self.tokens)
            for level in runnable_levels():
                with self.subTest(level, type=type_name):
                    got = self.logits(model, self.tokens, "cpu", "--isa", level, "--weights", kept)
                    self.check(got, expected, tolerance)


class Exact(LogitsCase):
    """--exact, which rounds no activations: over a cache in f32 the logits are as
    near the oracle's as the reference's are."""

    config = Config(256, 2, 4, 2, vocab=499, multiple_of=256, tied=True)
    dtype = "f32"
    FLAGS = ("--exact", "--kv-type", "f32")

    def check_exact(self, model, expected, *flags):
        self.check(self.logits(model, self.tokens, "cpu", *self.FLAGS, *flags), expected, REFERENCE_TOLERANCE)

    def test_formats(self):
        for type_name in support.by_tier(("Q4_1", "Q6_K"), BLOCK_FORMATS):
            stored, values = quantise(self.weights, type_name)
            model = write_gguf(self.path(f"{type_name}.gguf"), self.config, stored)
            expected = forward(self.config, values, self.tokens)
            for chunk in support.by_tier((TOKENS, 1), CHUNKS):
                with self.subTest(type=type_name, chunk=chunk):
                    self.check_exact(model, expected, "--chunk", chunk)

    def test_levels(self):
        stored, values = quantise(self.weights, "Q4_1")
        model = write_gguf(self.path("levels.gguf"), self.config, stored)
        expected = forward(self.config, values, self.tokens)
        for level in runnable_levels():
            with self.subTest(level):
                self.check_exact(model, expected, "--isa", level)


class CacheFormats(LogitsCase):
    """Every format of the KV cache, which rounds keys and values."""

    config = Config(256, 2, 8, 2, vocab=501)

    def test_formats(self):
        stored, values = quantise(self.weights, "BF16")
        model = write_gguf(self.path("model.gguf"), self.config, stored)
        on_sim = support.by_tier(("fp8",), ("bf16", "q8_0", "fp8"))
        for target, kinds in (("cpu", ("f32", "f16", "bf16", "q8_0")), ("sim", on_sim)):
            for kind in kinds:
                expected = forward(self.config, values, self.tokens, ROUNDED[kind])
                plan = self.path(f"{target}-{kind}.plan")
                chunks = (7, 1)
                rows = ("--step-rows", max(chunks))
                self.llamac("compile", model, "-o", plan, "--target", target, "--kv-type", kind, "-c", "64", *rows)
                for chunk in chunks:
                    with self.subTest(target=target, kind=kind, chunk=chunk):
                        # A number that is a little off may round to the other side.
                        bound = 2 * CPU_TOLERANCE
                        self.check(self.logits(plan, self.tokens, target, "--chunk", chunk), expected, bound)

    def test_8_bits_in_steps_of_any_size_and_in_one_launch(self):
        config = Config(256, 2, 4, 2, vocab=502)
        weights = quantise(random_weights(config, "bf16", 5), "BF16")[0]
        model = write_gguf(self.path("even.gguf"), config, weights)
        for kind in support.by_tier(("fp8",), ("q8_0", "fp8")):
            options = ("--kv-type", kind, "-c", "320", "--chunk")
            whole, steps, rows = (
                self.logits(model, self.tokens, "sim", "--batch-invariant", *options, n) for n in (TOKENS, 7, 1)
            )
            chain, resident = (
                self.logits(model, self.tokens, "sim", "--step-rows", 1, "--resident-step", how, *options, 1) for how in ("off", "on")
            )
            with self.subTest(kind):
                self.assertTrue(np.array_equal(whole, steps) and np.array_equal(whole, rows))
                self.assertTrue(np.array_equal(chain, resident))

    def test_a_format_that_a_target_has_not_is_refused(self):
        model = write_gguf(self.path("model.gguf"), self.config, quantise(self.weights, "BF16")[0])
        for target, kind, known in (
            ("cpu", "q2", "one of {f16,bf16,f32,q8_0,fp8}"),
            ("cpu", "fp8", "f16, bf16, f32 or q8_0 for target cpu"),
            ("cuda", "f32", "f16, bf16, q8_0 or fp8 for target cuda"),
            ("sim", "q4_0", "one of {f16,bf16,f32,q8_0,fp8}"),
            ("sim", "f32", "f16, bf16, q8_0 or fp8 for target sim"),
        ):
            result = self.llamac("compile", model, "-o", self.path("none.plan"), "--kv-type", kind, "--target", target, expect=support.USAGE)
            self.assertIn(f"--kv-type: expected {known}, got {kind}", result.stderr)

    def test_8_bits_at_every_level(self):
        stored, values = quantise(self.weights, "BF16")
        model = write_gguf(self.path("model.gguf"), self.config, stored)
        expected = forward(self.config, values, self.tokens)
        for level in runnable_levels():
            with self.subTest(level):
                got = self.logits(model, self.tokens, "cpu", "--isa", level, "--kv-type", "q8_0")
                self.check(got, expected, 2 * CPU_TOLERANCE)

    def test_heads_that_8_bit_blocks_do_not_fill_are_refused(self):
        config = Config(192, 2, 8, 2, vocab=501)  # Heads of 24.
        weights = quantise(random_weights(config, "bf16", 5), "BF16")[0]
        model = write_gguf(self.path("model.gguf"), config, weights)
        plan = self.path("none.plan")
        for target, kind in (("cpu", "q8_0"), ("cuda", "q8_0"), ("sim", "fp8")):
            result = self.llamac(
                "compile", model, "-o", plan, "--target", target, "--kv-type", kind, expect=support.UNSUPPORTED
            )
            self.assertIn(f"--kv-type {kind}: size of a head: expected a multiple of 16, got 24", result.stderr)

    def test_the_cache_has_the_bytes_that_are_said(self):
        model = write_gguf(self.path("model.gguf"), self.config, quantise(self.weights, "BF16")[0])
        for target, kind, bits in (("cpu", "f16", 16), ("cpu", "q8_0", 9), ("cuda", "q8_0", 9), ("cuda", "fp8", 9)):
            with self.subTest(kind, target=target):
                plan = self.path(f"{kind}.plan")
                self.llamac("compile", model, "-o", plan, "--target", target, "--kv-type", kind, "-c", "320")
                # Each layer has keys and values of two heads of 32.
                token = 2 * 2 * 2 * 32 * bits // 8
                for what, flags in ((plan, ()), (model, ("--target", target, "--kv-type", kind, "-c", "320"))):
                    memory = json.loads(self.llamac("inspect", what, "--json", *flags).stdout)["memory"]
                    self.assertEqual(memory["kv_per_token"], token)
                    self.assertEqual(memory["kv_per_sequence"], 320 * token)


class RealWeights(LogitsCase):
    """SmolLM2-135M-Instruct, Q4_1, as published."""

    config = Config(576, 30, 9, 3, vocab=49152, theta=100000.0, tied=True)

    @classmethod
    def make_weights(cls):
        cls.model = support.require_model("smollm2.gguf")
        tensors = {t.name: t for t in gguf.GGUFReader(cls.model).tensors}
        weights = {}
        for name, shape in weight_shapes(cls.config).items():
            tensor = tensors[gguf_name(name)]
            values = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
            weights[name] = values.reshape(shape)
        return weights

    def test_reference(self):
        expected = forward(self.config, self.weights, self.tokens)
        self.check(self.logits(self.model, self.tokens, "reference"), expected, REFERENCE_TOLERANCE)
        exact = self.logits(self.model, self.tokens, "cpu", *Exact.FLAGS)
        self.check(exact, expected, REFERENCE_TOLERANCE)


# Classes that only hold what others share are no tests.
def load_tests(loader, standard, pattern):
    cases = [c for c in globals().values() if isinstance(c, type) and issubclass(c, LogitsCase)]
    return unittest.TestSuite(loader.loadTestsFromTestCase(c) for c in cases if c.config is not None)


if __name__ == "__main__":
    unittest.main(verbosity=2)
