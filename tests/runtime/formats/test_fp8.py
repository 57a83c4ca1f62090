# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Blocks of MXFP8 and FP8 against the 8-bit floats of the ml_dtypes package, bit by bit."""

import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "e2e"))

import support

support.require("numpy", "ml_dtypes")

import fp8
import ml_dtypes
import numpy as np

TOOL = os.environ["LLAMAC_CONVERT_ROWS"]


def convert(verb, kind, data):
    result = subprocess.run([TOOL, verb, kind], input=data.tobytes(), capture_output=True, check=True)
    return result.stdout


def stored(elements, scales):
    """Blocks as they are stored."""
    return np.concatenate([scales.view(np.uint8).reshape(len(scales), -1), elements.view(np.uint8)], axis=1)


class Fp8(unittest.TestCase):
    def test_every_element_under_every_scale(self):
        for kind, bits, dtype in (("mxfp8", np.uint8, ml_dtypes.float8_e8m0fnu), ("fp8", np.uint16, np.float16)):
            with self.subTest(kind):
                every = np.arange(1 << 8 * np.dtype(bits).itemsize, dtype=bits)
                scales = every.repeat(8).view(dtype)
                elements = np.tile(np.arange(256, dtype=np.uint8).reshape(8, 32), (len(every), 1))
                elements = elements.view(ml_dtypes.float8_e4m3fn)
                got = np.frombuffer(convert("dequantize", kind, stored(elements, scales)), np.float32)
                expected = fp8.dequantise(elements, scales, kind)
                numbers = ~np.isnan(expected)
                self.assertTrue(np.array_equal(np.isnan(got), ~numbers))
                self.assertTrue(np.array_equal(got[numbers].view(np.uint32), expected[numbers].view(np.uint32)))

    def test_quantize(self):
        rng = np.random.default_rng(8)
        values = rng.standard_normal((20000, 32), np.float32)
        values *= np.exp2(rng.integers(-120, 110, (20000, 1))).astype(np.float32)
        values[:4000] = rng.uniform(-1, 1, (4000, 32))  # Many largest values above 448.
        values[0] = 0
        values[1] = -0.0
        values[2:500, 1:] *= np.float32(2.0**-14)  # Subnormal elements.
        # Ties: elements and the middles between them.
        grid = np.arange(0, 449, 0.5, dtype=np.float32)
        values[500:1500] = grid[rng.integers(0, len(grid), (1000, 32))]
        for kind, (quantise, _) in fp8.FORMATS.items():
            with self.subTest(kind):
                self.assertEqual(convert("quantize", kind, values), stored(*quantise(values)).tobytes())


if __name__ == "__main__":
    unittest.main()
