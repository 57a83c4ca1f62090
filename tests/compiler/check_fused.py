# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks the fused graph on stdin against the published shape of a model.

    check_fused.py LAYERS DIM HEADS KV_HEADS HEAD_SIZE FFN VOCAB
"""

import re
import sys

layers, dim, heads, kv_heads, size, ffn, vocab = map(int, sys.argv[1:])
text = sys.stdin.read()
functions = re.findall(r"func\.func @(\w+)\((.*?)\n  \}", text, re.S)
names = [name for name, _ in functions]
assert names[0] == "decode" and names[-1] == "prefill", names
cache = f"!llama.kv<heads = {kv_heads}, size = {size}>"
assert cache in text, f"no {cache}"

# Every op in order; the scalars of epilogues stand deeper.
OP = re.compile(r"^    (?:%.*? = )?([a-z]+\.\w+)(.*)$", re.M)
LAYER = ["kernel.qkv", "kernel.attention", "kernel.matmul", "kernel.matmul", "kernel.matmul"]

for name, body in functions:
    ops = [(op, rest) for op, rest in OP.findall(body) if op not in ("llama.weight", "func.return")]
    kinds = [op for op, _ in ops]
    gathers = kinds.count("kernel.gather_rows")
    assert gathers == (0 if name == "decode" else 4), f"{name}: {gathers} gather_rows"
    kinds = [kind for kind in kinds if kind != "kernel.gather_rows"]
    assert sorted(kinds[:2]) == ["kernel.embed", "kernel.rope_table"], f"{name} starts with {kinds[:2]}"
    assert kinds[2:] == LAYER * layers + ["kernel.matmul"], f"{name}: {kinds[2:]}"
    if name == "decode":
        assert len(ops) == 5 * layers + 3, f"decode has {len(ops)} ops"
    # The caches of the layers one after the other, each read where it was appended to.
    signature = body[: body.index("{\n")]
    arguments = [
        name for name, _ in re.findall(r"(%\w+): !kv {llama.role = #llama.role<kv, layer = (\d+)>}", signature)
    ]
    assert len(arguments) == layers, f"{name}: {len(arguments)} caches"
    appends = re.findall(r"(%\w+) = kernel.qkv .* into (%\w+) at", body)
    assert [before for _, before in appends] == arguments, f"{name}: appends to {appends}"
    read = re.findall(r"= kernel.attention .* over (%\w+) at", body)
    assert read == [after for after, _ in appends], f"{name}: attention over {read}"
    # The only values are rows as wide as the model says and cos/sin: no
    # scores, no mask.
    widths = {f"?x{width}" for width in (dim, heads * size, ffn, vocab)} | {f"?x{size // 2}x2"}
    shapes = set(re.findall(r"tensor<(\?x[^>]*)xf32>", body))
    assert shapes <= widths, f"{name}: values of {shapes - widths}"
    # SiLU stands in the epilogue of gate and up, the residuals in theirs.
    assert body.count("kernel.silu") == layers, f"{name}: {body.count('kernel.silu')} SiLU"
    assert body.count("arith.addf") == 2 * layers, f"{name}: {body.count('arith.addf')} additions"
    assert "kernel.pointwise" not in body and "kernel.rms_norm" not in body, f"{name} has work outside products"
