# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Dequantised and quantised values against the gguf package, bit by bit."""

import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "e2e"))

import support

support.require("numpy", "gguf")

import gguf
import numpy as np
from gguf import GGMLQuantizationType as GgmlType

TOOL = os.environ["LLAMAC_CONVERT_ROWS"]
BLOCK_FORMATS = (
    "Q8_0",
    "Q4_0",
    "Q4_1",
    "Q5_0",
    "Q5_1",
    "Q2_K",
    "Q3_K",
    "Q4_K",
    "Q5_K",
    "Q6_K",
    "IQ4_NL",
    "IQ4_XS",
    "MXFP4",
)


def convert(verb, kind, data):
    result = subprocess.run([TOOL, verb, kind.lower()], input=data.tobytes(), capture_output=True, check=True)
    return result.stdout


class Quantization(unittest.TestCase):
    def check_floats(self, got, expected):
        """Both have the same bits, but for NaN, whose bits nothing depends on."""
        self.assertEqual(got.shape, expected.shape)
        numbers = ~np.isnan(expected)
        self.assertTrue(np.array_equal(np.isnan(got), ~numbers))
        self.assertTrue(np.array_equal(got[numbers].view(np.uint32), expected[numbers].view(np.uint32)))

    def test_dequantize_blocks_of_random_bytes(self):
        """Every bit pattern is a block, also with scales that are Inf or NaN."""
        rng = np.random.default_rng(7)
        for kind in BLOCK_FORMATS:
            with self.subTest(kind), np.errstate(all="ignore"):
                _, size = gguf.GGML_QUANT_SIZES[GgmlType[kind]]
                blocks = rng.integers(0, 256, (5000, size), np.uint8)
                if kind == "MXFP4":
                    # The specification's NaN, which the package reads as 2^128.
                    blocks[:, 0] = np.minimum(blocks[:, 0], 254)
                expected = gguf.quants.dequantize(blocks, GgmlType[kind]).ravel()
                self.check_floats(np.frombuffer(convert("dequantize", kind, blocks), np.float32), expected)

    def test_widen_every_16_bit_float(self):
        bits = np.arange(1 << 16, dtype=np.uint16)
        got = np.frombuffer(convert("dequantize", "F16", bits), np.float32)
        self.check_floats(got, bits.view(np.float16).astype(np.float32))
        got = np.frombuffer(convert("dequantize", "BF16", bits), np.float32)
        self.check_floats(got, (bits.astype(np.uint32) << 16).view(np.float32))

    def test_quantize(self):
        rng = np.random.default_rng(8)
        values = rng.standard_normal((2000, 64), np.float32)
        values *= np.exp2(rng.integers(-30, 15, (2000, 1))).astype(np.float32)
        values[0] = 0
        values[1, :32] = 1.5  # The largest magnitude several times.
        values[2, ::2] = -values[2, 1::2]
        for kind in ("F16", "BF16", "Q8_0", "Q4_0"):
            with self.subTest(kind), np.errstate(all="ignore"):
                expected = gguf.quants.quantize(values, GgmlType[kind]).tobytes()
                self.assertEqual(convert("quantize", kind, values), expected)

    def test_narrow_random_bits(self):
        bits = np.random.default_rng(9).integers(0, 1 << 32, 1 << 20, np.uint32)
        values = bits.view(np.float32)
        with np.errstate(all="ignore"):
            half = np.frombuffer(convert("quantize", "F16", values), np.float16)
            self.check_floats(half.astype(np.float32), values.astype(np.float16).astype(np.float32))
            brain = np.frombuffer(convert("quantize", "BF16", values), np.uint16)
            expected = gguf.quants.quantize(values.reshape(1, -1), GgmlType.BF16).view(np.uint16).ravel()
            numbers = ~np.isnan(values)
            self.assertTrue(np.array_equal(brain[numbers], expected[numbers]))
            self.assertTrue(np.isnan((brain[~numbers].astype(np.uint32) << 16).view(np.float32)).all())


if __name__ == "__main__":
    unittest.main()
