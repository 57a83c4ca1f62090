# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What each format of the KV cache makes of keys and values, in numpy."""

import ml_dtypes
import numpy as np


def _as(dtype):
    return lambda x: x.astype(dtype).astype(np.float64)


def blocks(size, scale, largest_code, nearest):
    """Blocks of `size` elements, or of a head, with a scale of the type `scale`: the
    largest magnitude over `largest_code`, by the result of which elements are divided."""

    def rounded(x):
        parts = x.reshape(*x.shape[:-1], -1, size or x.shape[-1])
        scales = _as(scale)(np.abs(parts).max(axis=-1, keepdims=True) / largest_code)
        codes = np.divide(parts, scales, out=np.zeros_like(parts), where=scales != 0)
        return (nearest(np.clip(codes, -largest_code, largest_code)) * scales).reshape(x.shape)

    return rounded


# Each format's values for x [N, heads, head size], by its name in --kv-type.
ROUNDED = {
    "f32": _as(np.float32),
    "f16": _as(np.float16),
    "bf16": _as(ml_dtypes.bfloat16),
    "q8_0": blocks(16, ml_dtypes.bfloat16, 127, np.rint),
    "fp8": blocks(None, np.float32, 448, _as(ml_dtypes.float8_e4m3fn)),
}
