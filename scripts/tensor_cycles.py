#!/usr/bin/env python3
# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Says what bounds the products of a model by wgmma, cycle by cycle of a multiprocessor.

Kernels are compiled by NVRTC for sm_90a and read as machine code. Of a slice, 64 of a
tile's depth, it counts the cycles that each unit needs:

    tensor   wgmma's products: N / 2 for one of 64 x N x 16
    shared   operands that wgmma reads and copies write, 128 bytes a cycle
    issue    instructions of the warps of a scheduler, one a cycle
    L2       what is copied, at the 30 bytes a cycle that a multiprocessor was seen to get

and prints the share of tensor cycles in those of the unit that needs most.

    scripts/tensor_cycles.py --llamac build/bin/llamac --nvdisasm build/nvdisasm
"""

import argparse
import ctypes
import glob
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SHAPES = os.path.join(ROOT, "tests", "compiler", "Inputs", "shapes")
# Bits of a packed weight, scales included (runtime/packing/TileLayout.h).
BITS = {"bf16": 16, "q8_0": 8.5, "mxfp8": 8.25, "q4_0": 4.5}
SLICE = 64
SHARED_BYTES, L2_BYTES = 128, 30  # A cycle.
PRODUCTS = {
    "qkv": r"qkv_wgmma",
    "wo": r"gemm_wgmma_attention_wo",
    "gate, up": r"gemm_wgmma_feed_forward_w1",
    "w2": r"gemm_wgmma_feed_forward_w2",
}


class Nvrtc:
    """NVRTC as runtime/cuda/Nvrtc.cpp calls it."""

    OPTIONS = ["--gpu-architecture=sm_90a", "--std=c++20", "--fmad=false", "-default-device", "--minimal"]

    def __init__(self, path):
        self.library = ctypes.CDLL(path)

    def call(self, name, *arguments):
        if result := getattr(self.library, name)(*arguments):
            raise RuntimeError(f"{name}: error {result}")

    def text(self, name, program):
        size = ctypes.c_size_t()
        self.call(f"nvrtcGet{name}Size", program, ctypes.byref(size))
        text = ctypes.create_string_buffer(size.value)
        self.call(f"nvrtcGet{name}", program, text)
        return text.raw

    def cubin(self, path):
        with open(path, "rb") as file:
            source = file.read()
        program = ctypes.c_void_p()
        self.call("nvrtcCreateProgram", ctypes.byref(program), source, os.path.basename(path).encode(), 0, None, None)
        options = [option.encode() for option in [*self.OPTIONS, f"-I{os.path.dirname(path)}"]]
        try:
            self.call("nvrtcCompileProgram", program, len(options), (ctypes.c_char_p * len(options))(*options))
        except RuntimeError as error:
            sys.exit(f"{path}: {error}: {self.text('ProgramLog', program).decode()}")
        return self.text("CUBIN", program)


def find_nvrtc():
    """The library that the runtime would take first."""
    path = os.environ.get("LLAMAC_NVRTC_PATH")
    folders = ["/usr/local/cuda/lib64", "/usr/local/cuda-*/lib", "/usr/local/cuda-*/lib64"]
    found = [path] if path else [name for folder in folders for name in glob.glob(f"{folder}/libnvrtc.so*")]
    if not found:
        sys.exit("no libnvrtc: set LLAMAC_NVRTC_PATH to it")
    return sorted(found)[0]


def instructions(sass):
    """Opcodes with their operands, and where labels stand among them."""
    code, labels = [], {}
    for line in sass.splitlines():
        if label := re.match(r"\s*(\.L_x_\d+):", line):
            labels[label.group(1)] = len(code)
        elif operation := re.match(r"\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+ )?(.*?)\s*;", line):
            code.append(operation.group(1))
    return code, labels


def loops(code, labels):
    """Ranges of instructions that a branch goes back over, the shortest first."""
    found = []
    for at, operation in enumerate(code):
        target = re.match(r"BRA\S* .*`\((\.L_x_\d+)\)", operation)
        if target and labels[target.group(1)] < at:
            found.append((labels[target.group(1)], at + 1))
    return sorted(found, key=lambda loop: loop[1] - loop[0])


def loop_with(code, found, opcode):
    """The shortest loop that has nine tenths of what any has of `opcode`; empty where none has."""
    counts = [sum(operation.startswith(opcode) for operation in code[begin:end]) for begin, end in found]
    most = max(counts, default=0)
    if most == 0:
        return []
    begin, end = next(loop for loop, count in zip(found, counts) if count >= 0.9 * most)
    return code[begin:end]


def field(source, name):
    return int(re.search(rf"\.{name} = (\d+)", source).group(1)) if f".{name} = " in source else None


def measure(source, sass, weights):
    """Cycles of each unit for a slice of a tile of the kernel."""
    code, labels = instructions(sass)
    found = loops(code, labels)
    multiplying = loop_with(code, found, "HGMMA")
    products = [re.match(r"HGMMA\.64x(\d+)x16\S* R\d+, (\S+),", operation) for operation in multiplying]
    products = [(int(match.group(1)), match.group(2).startswith("R")) for match in products if match]
    panels, outputs = field(source, "panels") or 1, field(source, "panelOutputs") or 128
    batch, cluster = field(source, "batchRows") or 0, field(source, "cluster") or 1
    warpgroups = panels // (field(source, "weights") or 1) if batch else 2
    rows = batch or 128
    unpacks = weights != "bf16"

    copied_x, copied_w = rows * SLICE * 2, panels * outputs * SLICE * BITS[weights] / 8
    operands = sum((0 if in_registers else 64 * 32) + columns * 32 for columns, in_registers in products)
    shared = warpgroups * operands + copied_x + copied_w
    if unpacks:
        shared += copied_w
    # Each block of a cluster copies its part of what they share: weights of a prompt, x of a batch.
    from_l2 = copied_x / cluster + copied_w if batch else copied_x + copied_w / cluster
    issue = len(multiplying) * warpgroups
    return {
        "tile": f"{rows} x {panels * outputs}",
        "splits": field(source, "splits") or 1,
        "tensor": warpgroups * sum(columns // 2 for columns, _ in products),
        "shared": round(shared / SHARED_BYTES),
        "issue": issue,
        "L2": round(from_l2 / L2_BYTES),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--llamac", default=os.path.join(ROOT, "build", "bin", "llamac"))
    parser.add_argument("--nvdisasm", default=os.environ.get("LLAMAC_NVDISASM", "nvdisasm"))
    parser.add_argument("--model", default="llama-3.1-8b", help="a folder of tests/compiler/Inputs/shapes")
    parser.add_argument("--weights", nargs="+", default=["bf16"], choices=sorted(BITS))
    parser.add_argument("--rows", nargs="+", type=int, help="of programs (default: all that have wgmma)")
    arguments = parser.parse_args()
    nvrtc = Nvrtc(find_nvrtc())
    units = ("tensor", "shared", "issue", "L2")
    print("| weights | program's rows | product | tile | splits | " + " | ".join(units) + " | share |")
    print("|" + " --- |" * (6 + len(units)))
    for weights in arguments.weights:
        with tempfile.TemporaryDirectory() as folder:
            command = [arguments.llamac, "compile", os.path.join(SHAPES, arguments.model, "params.json"), "--quiet"]
            command += ["--no-weights", "--weights", weights, "--target", "cuda", "--gpu", "h200"]
            subprocess.run([*command, "--emit-source", folder, "-o", os.path.join(folder, "plan")], check=True)
            for product, pattern in PRODUCTS.items():
                paths = {}
                for path in glob.glob(os.path.join(folder, "*.cu")):
                    if match := re.match(pattern + r"_.*_m(\d+)\.cu$", os.path.basename(path)):
                        paths[int(match.group(1))] = path
                for rows in sorted(paths):
                    if arguments.rows and rows not in arguments.rows:
                        continue
                    cubin = os.path.join(folder, "kernel.cubin")
                    with open(cubin, "wb") as file:
                        file.write(nvrtc.cubin(paths[rows]))
                    sass = subprocess.run([arguments.nvdisasm, "-c", cubin], check=True, capture_output=True, text=True)
                    with open(paths[rows], encoding="utf-8") as file:
                        cycles = measure(file.read(), sass.stdout, weights)
                    share = cycles["tensor"] / max(cycles[unit] for unit in units)
                    row = [weights, rows, product, cycles["tile"], cycles["splits"], *(cycles[unit] for unit in units)]
                    print("| " + " | ".join(map(str, row)) + f" | {share:.2f} |", flush=True)


if __name__ == "__main__":
    main()
