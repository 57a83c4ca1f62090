# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A GGUF file that has a model's shapes and a hole where its weights are: llamac compile --no-weights makes plans of
formats from it that no other checkpoint has."""

import math
import struct

ALIGNMENT = 32
BLOCK = 256  # Weights of a block of the formats below.
F32 = 0

# GGUF's number of each format, and the bytes of a block.
FORMATS = {"q4_k": (12, 144), "q6_k": (14, 210)}

UINT32, FLOAT32, STRING = 4, 6, 8


def text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def number(key, value):
    kind, code = (FLOAT32, "f") if isinstance(value, float) else (UINT32, "I")
    return text(key) + struct.pack(f"<I{code}", kind, value)


def tensors(shape):
    """(name, outputs, inputs) of each weight; a norm has no outputs."""
    queries, keys = shape.heads * shape.head, shape.kv_heads * shape.head
    layer = {
        "attn_norm": (None, shape.dim),
        "attn_q": (queries, shape.dim),
        "attn_k": (keys, shape.dim),
        "attn_v": (keys, shape.dim),
        "attn_output": (shape.dim, queries),
        "ffn_norm": (None, shape.dim),
        "ffn_gate": (shape.ffn, shape.dim),
        "ffn_up": (shape.ffn, shape.dim),
        "ffn_down": (shape.dim, shape.ffn),
    }
    yield "token_embd.weight", shape.vocab, shape.dim
    for i in range(shape.layers):
        for name, size in layer.items():
            yield f"blk.{i}.{name}.weight", *size
    yield "output_norm.weight", None, shape.dim
    if not shape.tied:
        yield "output.weight", shape.vocab, shape.dim


def write(path, shape, weights):
    """`weights`: the format of every matrix."""
    kind, block_bytes = FORMATS[weights]
    facts = {
        "block_count": shape.layers,
        "context_length": 131072,
        "embedding_length": shape.dim,
        "feed_forward_length": shape.ffn,
        "attention.head_count": shape.heads,
        "attention.head_count_kv": shape.kv_heads,
        "attention.layer_norm_rms_epsilon": 1e-5,
        "rope.freq_base": 500000.0,
        "vocab_size": shape.vocab,
    }
    named = text("general.architecture") + struct.pack("<I", STRING) + text("llama")
    named += b"".join(number(f"llama.{key}", value) for key, value in facts.items())
    records, count, end = b"", 0, 0
    for name, outputs, inputs in tensors(shape):
        sizes = (inputs,) if outputs is None else (inputs, outputs)
        records += text(name) + struct.pack(f"<I{len(sizes)}Q", len(sizes), *sizes)
        records += struct.pack("<IQ", F32 if outputs is None else kind, end)
        size = 4 * inputs if outputs is None else math.prod(sizes) // BLOCK * block_bytes
        end += -(-size // ALIGNMENT) * ALIGNMENT
        count += 1
    head = b"GGUF" + struct.pack("<IQQ", 3, count, 1 + len(facts)) + named + records
    with open(path, "wb") as f:
        f.write(head)
        f.truncate(-(-len(head) // ALIGNMENT) * ALIGNMENT + end)
