# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Blocks of MXFP8 and FP8 by the 8-bit floats of the ml_dtypes package."""

import ml_dtypes
import numpy as np


def quantise_mxfp8(values):
    """The elements [blocks, 32], E4M3, and scales [blocks], E8M0, of float32 values:
    a block has the scale of the Microscaling specification, or twice that where its
    largest value would round to more than 448."""
    blocks = values.reshape(-1, 32).astype(np.float64)
    largest = np.abs(blocks).max(axis=1)
    _, exponent = np.frexp(largest)  # largest is in [2^(exponent - 1), 2^exponent)
    exponent = np.maximum(exponent - 1 - 8, -127)
    exponent[largest == 0] = 0

    def elements():
        with np.errstate(all="ignore"):  # Numbers that round to more than 448 are NaN.
            return np.ldexp(blocks, -exponent[:, None]).astype(ml_dtypes.float8_e4m3fn)

    exponent += np.isnan(elements().astype(np.float32)).any(axis=1)
    return elements(), (exponent + 127).astype(np.uint8).view(ml_dtypes.float8_e8m0fnu)


def quantise_fp8(values):
    """The elements [blocks, 32], E4M3, and scales [blocks], float16, of float32 values:
    256 times the largest of a block over 448, rounded up."""
    blocks = values.reshape(-1, 32).astype(np.float32)
    largest = np.abs(blocks).max(axis=1).astype(np.float64)
    with np.errstate(over="ignore"):
        scales = (largest / 1.75).astype(np.float16)
    scales = np.where(scales * np.float64(1.75) < largest, np.nextafter(scales, np.float16(np.inf)), scales)
    scales = np.minimum(scales, np.finfo(np.float16).max)
    scales[largest == 0] = 256
    quotients = blocks / (scales.astype(np.float32) / 256)[:, None]
    return np.clip(quotients, -448, 448).astype(ml_dtypes.float8_e4m3fn), scales


# Formats by name: what quantises to it, and the unit of its scales.
FORMATS = {"mxfp8": (quantise_mxfp8, 1), "fp8": (quantise_fp8, 1 / 256)}


def dequantise(elements, scales, kind):
    """The float32 values of blocks, flat."""
    with np.errstate(all="ignore"):
        values = elements.astype(np.float64) * (scales.astype(np.float64) * FORMATS[kind][1])[:, None]
        return values.astype(np.float32).ravel()


def rounded(values, kind):
    """The float32 values after rounding in blocks of 32."""
    return dequantise(*FORMATS[kind][0](values), kind).reshape(values.shape)
