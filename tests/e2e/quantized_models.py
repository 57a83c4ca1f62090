# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Quantised Hugging Face models, packed as the libraries that write them document their formats.

A scheme turns a matrix [rows, columns] into the tensors of its module, and says
in float64 what these stand for. Its tensors were compared once with what
compressed-tensors 0.11.0, AutoAWQ 0.2.9 and AutoGPTQ 0.7.1 read of them, by
PyTorch 2.5.1: the values are the same, in FP32 for NVFP4.
"""

import json
import os

import numpy as np

from make_model import LLAMA, hf_tensors, to_bf16_bits, write_huggingface

# --- Elements ----------------------------------------------------------------


def minifloat(exponent_bits, fraction_bits, bias, count):
    """The values of the bits 0 to count - 1 of a small float without its sign."""
    bits = np.arange(count)
    exponent, fraction = bits >> fraction_bits, bits & ((1 << fraction_bits) - 1)
    normal = (1 + fraction / 2**fraction_bits) * 2.0 ** (exponent - bias)
    return np.where(exponent == 0, fraction / 2**fraction_bits * 2.0 ** (1 - bias), normal)


E4M3 = minifloat(4, 3, 7, 0x7F)  # 0x7f is NaN.
E2M1 = minifloat(2, 1, 1, 8)


def nearest(values, table):
    """The bits, without sign, of the nearest of `table` to each magnitude."""
    return np.searchsorted((table[1:] + table[:-1]) / 2, np.abs(values))


def small_floats(values, table, sign_bit):
    bits = nearest(values, table)
    return (bits | np.where(values < 0, sign_bit, 0)).astype(np.uint8), np.sign(values) * table[bits]


def words(nibbles, axis, places=range(8)):
    """Packs eight elements of `axis` into 32 bits: element i goes to bits 4 * places[i]."""
    parts = np.moveaxis(nibbles.astype(np.uint32), axis, -1)
    parts = parts.reshape(*parts.shape[:-1], -1, 8)
    packed = sum(parts[..., i] << np.uint32(4 * place) for i, place in enumerate(places))
    return np.moveaxis(packed.astype(np.uint32), -1, axis)


def rounded(values, dtype):
    """`values` as a checkpoint stores them, and in float64."""
    if dtype == "BF16":
        bits = to_bf16_bits(values.astype(np.float32))
        return bits, (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    stored = values.astype({"F16": np.float16, "F32": np.float32}[dtype])
    return stored, stored.astype(np.float64)


def spread(values, size, axis):
    return np.repeat(values, size, axis)


# --- Schemes -----------------------------------------------------------------


class Scheme:
    """`settings` is quantization_config; `pack` gives {part: (dtype, array)} and the values."""

    settings = {}

    def pack(self, matrix):
        raise NotImplementedError


class Int4(Scheme):
    """Groups of 4 bits with a scale and a zero point, before any packing."""

    def __init__(self, group):
        self.group = group

    def quantise(self, matrix, symmetric, order=None):
        """Codes [rows, columns], zeros and scales [rows, groups], the group of each column."""
        rows, columns = matrix.shape
        size = columns if self.group == -1 else self.group
        groups = np.arange(columns) // size
        if order is not None:
            groups = groups[order]
        members = [np.flatnonzero(groups == group) for group in range(columns // size)]
        scales, zeros = np.empty((rows, len(members))), np.empty((rows, len(members)), int)
        for group, of in enumerate(members):
            low, high = matrix[:, of].min(1), matrix[:, of].max(1)
            if symmetric:
                scales[:, group] = np.abs(matrix[:, of]).max(1) / 7.5
                zeros[:, group] = 8
            else:
                scales[:, group] = (high - low) / 15
                zeros[:, group] = np.clip(np.rint(-low / scales[:, group]), 1, 15)
        stored, scales = rounded(scales, "F16")
        codes = np.clip(np.rint(matrix / scales[:, groups]) + zeros[:, groups], 0, 15).astype(int)
        values = (codes - zeros[:, groups]) * scales[:, groups]
        return codes, zeros, stored, groups, values


class Gptq(Int4):
    def __init__(self, group, symmetric=False, act_order=False, version="gptq"):
        super().__init__(group)
        self.symmetric, self.act_order, self.version = symmetric, act_order, version
        self.settings = {
            "quant_method": "gptq",
            "bits": 4,
            "group_size": group,
            "desc_act": act_order,
            "sym": symmetric,
            "checkpoint_format": version,
        }

    def pack(self, matrix):
        order = np.random.default_rng(matrix.shape[1]).permutation(matrix.shape[1]) if self.act_order else None
        codes, zeros, scales, groups, values = self.quantise(matrix, self.symmetric, order)
        less = 1 if self.version == "gptq" else 0
        return {
            "qweight": ("I32", words(codes.T, 0)),
            "qzeros": ("I32", words(zeros.T - less, 1)),
            "scales": ("F16", scales.T),
            "g_idx": ("I32", groups.astype(np.int32)),
        }, values


class Awq(Int4):
    # Element i of eight is in the bits of 4 * PLACES[i].
    PLACES = (0, 4, 1, 5, 2, 6, 3, 7)

    def __init__(self, group):
        super().__init__(group)
        self.settings = {
            "quant_method": "awq",
            "bits": 4,
            "group_size": group,
            "zero_point": True,
            "version": "gemm",
        }

    def pack(self, matrix):
        codes, zeros, scales, _, values = self.quantise(matrix, False)
        return {
            "qweight": ("I32", words(codes.T, 1, self.PLACES)),
            "qzeros": ("I32", words(zeros.T, 1, self.PLACES)),
            "scales": ("F16", scales.T),
        }, values


def compressed(format, bits, type, strategy, **more):
    weights = {"num_bits": bits, "type": type, "strategy": strategy, "symmetric": True} | more
    return {
        "quant_method": "compressed-tensors",
        "format": format,
        "quantization_status": "compressed",
        "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights}},
        "ignore": ["lm_head"],
    }


class Packed(Int4):
    """W4A16 of compressed-tensors."""

    def __init__(self, group, symmetric=True, act_order=False):
        super().__init__(group)
        self.symmetric, self.act_order = symmetric, act_order
        strategy = {"strategy": "channel"} if group == -1 else {"strategy": "group", "group_size": group}
        self.settings = compressed("pack-quantized", 4, "int", actorder="group" if act_order else None, **strategy)

    def pack(self, matrix):
        order = np.random.default_rng(matrix.shape[1]).permutation(matrix.shape[1]) if self.act_order else None
        codes, zeros, scales, groups, values = self.quantise(matrix, self.symmetric, order)
        tensors = {
            "weight_packed": ("I32", words(codes, 1)),
            "weight_scale": ("F16", scales),
            "weight_shape": ("I64", np.array(matrix.shape, np.int64)),
        }
        if not self.symmetric:
            tensors["weight_zero_point"] = ("I32", words(zeros, 0))
        if self.act_order:
            tensors["weight_g_idx"] = ("I32", groups.astype(np.int32))
        return tensors, values


class Float8(Scheme):
    """E4M3 with a scale for all, for a row, or for a block."""

    def __init__(self, settings, per, scale="weight_scale", dtype="BF16"):
        self.settings, self.per, self.scale, self.dtype = settings, per, scale, dtype

    def pack(self, matrix):
        magnitude = np.abs(matrix)
        rows, columns = matrix.shape
        if self.per == "tensor":
            stored, scale = rounded(magnitude.max(keepdims=True)[0] / 448, self.dtype)
        elif self.per == "row":
            stored, scale = rounded(magnitude.max(1, keepdims=True) / 448, self.dtype)
        else:
            height, width = self.per
            padded = np.pad(magnitude, ((0, -rows % height), (0, -columns % width)))
            blocks = padded.reshape(padded.shape[0] // height, height, -1, width).max((1, 3))
            stored, blocks = rounded(blocks / 448, self.dtype)
            scale = spread(spread(blocks, height, 0), width, 1)[:rows, :columns]
        bits, values = small_floats(matrix / scale, E4M3, 0x80)
        return {
            "weight": ("F8_E4M3", bits),
            self.scale: (self.dtype, stored),
            "input_scale": ("F32", np.ones(1, np.float32)),
        }, values * scale


class Int8(Scheme):
    """W8A8 of compressed-tensors."""

    settings = compressed("int-quantized", 8, "int", "channel")

    def pack(self, matrix):
        stored, scale = rounded(np.abs(matrix).max(1, keepdims=True) / 127, "BF16")
        codes = np.clip(np.rint(matrix / scale), -128, 127).astype(np.int8)
        return {"weight": ("I8", codes), "weight_scale": ("BF16", stored)}, codes * scale


class Float4(Scheme):
    """E2M1: NVFP4, of groups of 16 with scales of E4M3 and a factor, or MXFP4."""

    def __init__(self, maker):
        self.maker = maker
        if maker == "modelopt":
            self.settings = {"quant_method": "modelopt", "quant_algo": "NVFP4"}
        elif maker == "nvfp4":
            self.settings = compressed("nvfp4-pack-quantized", 4, "float", "tensor_group", group_size=16)
        else:
            self.settings = compressed("mxfp4-pack-quantized", 4, "float", "group", group_size=32)

    def pack(self, matrix):
        rows, columns = matrix.shape
        size = 32 if self.maker == "mxfp4" else 16
        largest = np.abs(matrix).reshape(rows, -1, size).max(2)
        tensors = {}
        if self.maker == "mxfp4":
            exponents = np.clip(np.ceil(np.log2(largest / 6)), -127, 127).astype(int)
            scale = 2.0**exponents
            tensors["weight_scale"] = ("U8", (exponents + 127).astype(np.uint8))
        else:
            factor = np.float64(np.float32(largest.max() / 6 / 448))
            bits, scale = small_floats(largest / 6 / factor, E4M3, 0x80)
            tensors["weight_scale"] = ("F8_E4M3", bits)
            if self.maker == "modelopt":
                tensors["weight_scale_2"] = ("F32", np.array(factor, np.float32))
            else:
                inverse = np.float32(1 / factor)
                tensors["weight_global_scale"] = ("F32", np.array([inverse]))
                factor = 1 / np.float64(inverse)
            scale = scale * factor
        scale = spread(scale, size, 1)
        bits, values = small_floats(matrix / scale, E2M1, 8)
        packed = bits[:, ::2] | bits[:, 1::2] << 4
        tensors["weight" if self.maker == "modelopt" else "weight_packed"] = ("U8", packed)
        return tensors, values * scale



def blocks(rows, columns, **more):
    """E4M3 with a scale for each block of the fp8 method."""
    settings = {"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [rows, columns]}
    return Float8(settings | {"activation_scheme": "dynamic"}, (rows, columns), "weight_scale_inv", **more)


SCHEMES = {
    "gptq-g32": Gptq(32),
    "gptq-g64-v2": Gptq(64, version="gptq_v2"),
    "gptq-row-symmetric": Gptq(-1, symmetric=True),
    "gptq-g32-act-order": Gptq(32, act_order=True),
    "awq-g32": Awq(32),
    "awq-g64": Awq(64),
    "w4a16-g32": Packed(32),
    "w4a16-g64-zeros": Packed(64, symmetric=False),
    "w4a16-row": Packed(-1),
    "w4a16-g32-act-order": Packed(32, act_order=True),
    "fp8-tensor": Float8(compressed("float-quantized", 8, "float", "tensor"), "tensor"),
    "fp8-channel": Float8(compressed("float-quantized", 8, "float", "channel"), "row"),
    "fp8-block": blocks(48, 64),
    "fp8-block-f32": blocks(128, 128, dtype="F32"),
    "fp8-block-40": blocks(48, 40),
    "fbgemm": Float8({"quant_method": "fbgemm_fp8"}, "row", dtype="F32"),
    "modelopt-fp8": Float8({"quant_method": "modelopt", "quant_algo": "FP8"}, "tensor", dtype="F32"),
    "w8a8": Int8(),
    "nvfp4": Float4("nvfp4"),
    "modelopt-nvfp4": Float4("modelopt"),
    "mxfp4": Float4("mxfp4"),
}

# --- Models ------------------------------------------------------------------


def write_tensors(path, tensors):
    """A safetensors file of {name: (dtype, array)}."""
    header, offset = {}, 0
    for name, (dtype, array) in tensors.items():
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [offset, offset + array.nbytes]}
        offset += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text)
        for _, array in tensors.values():
            f.write(np.ascontiguousarray(array).tobytes())


def write_quantized(directory, config, weights, scheme, family=LLAMA, change=None):
    """A model whose layers' matrices are quantised; returns the weights that it stands for, in float64.
    `change` may replace the tensors before they are written."""
    write_huggingface(directory, config, weights, "bf16", family=family, settings={"quantization_config": scheme.settings})
    # Each element of the weights has a number, by which it is found again.
    numbers, end = {}, 0
    for name, x in weights.items():
        numbers[name] = np.arange(end, end + x.size).reshape(x.shape)
        end += x.size
    places = hf_tensors(config, numbers, family)
    values = np.concatenate([x.ravel() for x in weights.values()]).astype(np.float64)
    tensors = {}
    for name, x in hf_tensors(config, weights, family).items():
        if name.endswith("_proj.weight"):
            parts, decoded = scheme.pack(x.astype(np.float64))
            module = name.removesuffix(".weight")
            tensors |= {f"{module}.{part}": tensor for part, tensor in parts.items()}
            values[places[name]] = decoded
        else:
            tensors[name] = ("BF16", to_bf16_bits(x))
    if change:
        change(tensors)
    write_tensors(os.path.join(directory, "model.safetensors"), tensors)
    return {name: values[number] for name, number in numbers.items()}
