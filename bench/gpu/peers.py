#!/usr/bin/env python3
# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures other software on a GPU: the peers of llamac in scripts/gpu_check.sh.

Needs PyTorch and a GPU (--device cpu runs everything, slowly, for trying it out). Each command prints one JSON
object. Times are wall time from an idle GPU to an idle GPU over many repetitions, on operands that change each time, so
that no cache holds them; the median of the rounds is printed.

    peers.py decode --shape 1b      plain PyTorch, torch.compile, static KV cache: ms a token
    peers.py products --shape 1b    cuBLAS on the products of a prompt: TFLOP/s
    peers.py attention --shape 1b   scaled_dot_product_attention on a prompt: TFLOP/s
    peers.py fidelity --shape 1b --tokens-of 1,2,3 --logits FILE.npy --seed 1
                                    how far logits of a plan with --random-weights are from fp32, and bf16 is
"""

import argparse
import json
import statistics
import sys
import time

import torch
import torch.nn.functional as F
from shapes import SHAPES


class Layer(torch.nn.Module):
    def __init__(self, shape, capacity, dtype, device):
        super().__init__()
        self.shape = shape
        s = shape

        def weight(rows, cols):
            return torch.nn.Parameter(
                torch.randn(rows, cols, device=device, dtype=dtype) * cols**-0.5, requires_grad=False
            )

        self.qkv = weight((s.heads + 2 * s.kv_heads) * s.head, s.dim)
        self.out = weight(s.dim, s.heads * s.head)
        self.gate_up = weight(2 * s.ffn, s.dim)
        self.down = weight(s.dim, s.ffn)
        self.norms = torch.nn.Parameter(torch.ones(2, s.dim, device=device, dtype=dtype), requires_grad=False)
        cache = torch.zeros(1, s.kv_heads, capacity, s.head, device=device, dtype=dtype)
        self.register_buffer("keys", cache)
        self.register_buffer("values", cache.clone())

    def forward(self, x, cos, sin, position, mask):
        s = self.shape
        y = F.rms_norm(x, (s.dim,), self.norms[0], 1e-5)
        q, k, v = F.linear(y, self.qkv).split([s.heads * s.head, s.kv_heads * s.head, s.kv_heads * s.head], dim=-1)
        rows = x.shape[0]
        q = rotate(q.view(rows, s.heads, s.head), cos, sin)
        k = rotate(k.view(rows, s.kv_heads, s.head), cos, sin)
        self.keys[0].index_copy_(1, position, k.transpose(0, 1))
        self.values[0].index_copy_(1, position, v.view(rows, s.kv_heads, s.head).transpose(0, 1))
        attended = F.scaled_dot_product_attention(
            q.transpose(0, 1)[None], self.keys, self.values, attn_mask=mask, enable_gqa=True
        )
        x = x + F.linear(attended[0].transpose(0, 1).reshape(rows, -1), self.out)
        y = F.rms_norm(x, (s.dim,), self.norms[1], 1e-5)
        gate, up = F.linear(y, self.gate_up).chunk(2, dim=-1)
        return x + F.linear(F.silu(gate) * up, self.down)


def rotate(x, cos, sin):
    """Rotates the pairs (2i, 2i + 1) of each head."""
    even, odd = x[..., 0::2].float(), x[..., 1::2].float()
    cos, sin = cos[:, None], sin[:, None]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1).flatten(-2).to(x.dtype)


class Model(torch.nn.Module):
    def __init__(self, shape, capacity, dtype, device):
        super().__init__()
        self.shape = shape
        self.all_rows = False  # Whether a prompt's rows all have logits.
        table = torch.randn(shape.vocab, shape.dim, device=device, dtype=dtype)
        self.embedding = torch.nn.Parameter(table, requires_grad=False)
        self.head = self.embedding
        if not shape.tied:
            self.head = torch.nn.Parameter(torch.randn_like(table) * shape.dim**-0.5, requires_grad=False)
        self.norm = torch.nn.Parameter(torch.ones(shape.dim, device=device, dtype=dtype), requires_grad=False)
        self.layers = torch.nn.ModuleList(Layer(shape, capacity, dtype, device) for _ in range(shape.layers))
        self.register_buffer("frequencies", frequencies(shape).to(device))
        self.register_buffer("places", torch.arange(capacity, device=device))

    def forward(self, tokens, position):
        return self.logits(tokens, position)[-1:].argmax(-1)

    def logits(self, tokens, position):
        x = self.embedding[tokens]
        angles = position[:, None] * self.frequencies
        mask = self.places[None] <= position[:, None]
        for layer in self.layers:
            x = layer(x, angles.cos(), angles.sin(), position, mask)
        if position.numel() > 1 and not self.all_rows:
            x = x[-1:]
        return F.linear(F.rms_norm(x, (self.shape.dim,), self.norm, 1e-5), self.head)


def frequencies(shape):
    """RoPE's frequencies, scaled as Llama 3 does: long waves by the factor, short ones not, others in part."""
    plain = 500000.0 ** (-torch.arange(0, shape.head, 2, dtype=torch.float64) / shape.head)
    waves = 8192 * plain / (2 * torch.pi)
    share = ((waves - 1) / (4 - 1)).clamp(0, 1)
    return (plain * (share + (1 - share) / shape.rope_factor)).float()


def synchronize(device):
    if device == "cuda":
        torch.cuda.synchronize()


@torch.inference_mode()
def decode(args):
    """The dependent steps after the first token, one sequence after the other."""
    shape = SHAPES[args.shape]
    model = Model(shape, args.capacity, torch.bfloat16, args.device)
    step = torch.compile(model, mode="reduce-overhead", fullgraph=True) if args.device == "cuda" else model
    prompt = torch.randint(shape.vocab, (args.prompt,), device=args.device)
    start = torch.arange(args.prompt, device=args.device)
    times = []
    for _ in range(args.warm_ups + args.sequences):
        token, position = model(prompt, start), start[-1:] + 1
        synchronize(args.device)
        begin = time.perf_counter()
        for _ in range(args.tokens - 1):
            token = step(token, position).clone()
            position = position + 1
        synchronize(args.device)
        times.append((time.perf_counter() - begin) / (args.tokens - 1))
    return {"ms_per_token": 1e3 * statistics.median(times[args.warm_ups :])}


def seconds(work, operands, device, rounds=7, repeat=10):
    """The median time of work(operand), one operand after the other."""
    for operand in operands:
        work(*operand)
    times = []
    for _ in range(rounds):
        synchronize(device)
        begin = time.perf_counter()
        for i in range(repeat):
            work(*operands[i % len(operands)])
        synchronize(device)
        times.append((time.perf_counter() - begin) / repeat)
    return statistics.median(times)


@torch.inference_mode()
def products(args):
    s = SHAPES[args.shape]
    layers = {
        "qkv": ((s.heads + 2 * s.kv_heads) * s.head, s.dim),
        "attention.wo": (s.dim, s.heads * s.head),
        "gate_up": (2 * s.ffn, s.dim),
        "feed_forward.w2": (s.dim, s.ffn),
    }
    result = {}
    for name, (outputs, depth) in layers.items():
        operands = [
            tuple(torch.randn(n, depth, device=args.device, dtype=torch.bfloat16) for n in (args.rows, outputs))
            for _ in range(4)
        ]
        time_taken = seconds(F.linear, operands, args.device)
        result[name] = {"ms": 1e3 * time_taken, "tflops": 2e-12 * args.rows * outputs * depth / time_taken}
    return {"rows": args.rows, "products": result}


@torch.inference_mode()
def attention(args):
    s = SHAPES[args.shape]

    def tensor(heads):
        return torch.randn(1, heads, args.rows, s.head, device=args.device, dtype=torch.bfloat16)

    operands = [(tensor(s.heads), tensor(s.kv_heads), tensor(s.kv_heads)) for _ in range(4)]
    time_taken = seconds(
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True), operands, args.device
    )
    flops = 4 * s.heads * s.head * args.rows * (args.rows + 1) / 2
    return {"rows": args.rows, "ms": 1e3 * time_taken, "tflops": 1e-12 * flops / time_taken}


def random_weight(name, rows, cols, seed, device):
    """The weight of --random-weights (runtime/weights/RandomWeights.cpp), in bf16, or f32 for a norm."""
    import xxhash

    key = xxhash.xxh3_64_intdigest(name.encode(), seed=seed)
    keys = [xxhash.xxh3_64_intdigest(row.to_bytes(8, "little"), seed=key) for row in range(rows)]
    first = torch.tensor([k & 0xFFFFFFFF for k in keys], device=device)[:, None]
    second = torch.tensor([k >> 32 for k in keys], device=device)[:, None]
    places = torch.arange(cols, device=device)[None]
    deviation = torch.tensor(0.1 / 3**0.5 if rows == 1 else cols**-0.5, dtype=torch.float32)
    scale = float(deviation * torch.tensor(3.0).sqrt() * 2.0**-31)
    parts = []
    for begin in range(0, rows, 4096):
        x = (places + first[begin : begin + 4096]) & 0xFFFFFFFF
        x = ((x ^ (x >> 16)) * 0x7FEB352D + second[begin : begin + 4096]) & 0xFFFFFFFF
        x = ((x ^ (x >> 15)) * 0x846CA68B) & 0xFFFFFFFF
        x = x ^ (x >> 16)
        x = torch.where(x >= 1 << 31, x - (1 << 32), x).float() * scale
        parts.append(x + 1 if rows == 1 else x.to(torch.bfloat16))
    return torch.cat(parts)


def fill(model, seed):
    """Gives `model` the weights of --random-weights."""
    s = model.shape

    def take(parameter, *names):
        for i, (name, count) in enumerate(names):
            part = random_weight(name, count, parameter.shape[-1], seed, parameter.device)
            at = sum(n for _, n in names[:i])
            parameter.data[at : at + count] = part.to(parameter.dtype)

    take(model.embedding, ("tok_embeddings", s.vocab))
    if not s.tied:
        take(model.head, ("output", s.vocab))
    model.norm.data[:] = random_weight("norm", 1, s.dim, seed, model.norm.device)[0]
    for i, layer in enumerate(model.layers):
        at = f"layers.{i}."
        q, kv = s.heads * s.head, s.kv_heads * s.head
        take(layer.qkv, (at + "attention.wq", q), (at + "attention.wk", kv), (at + "attention.wv", kv))
        take(layer.out, (at + "attention.wo", s.dim))
        take(layer.gate_up, (at + "feed_forward.w1", s.ffn), (at + "feed_forward.w3", s.ffn))
        take(layer.down, (at + "feed_forward.w2", s.dim))
        for row, name in enumerate(("attention_norm", "ffn_norm")):
            layer.norms.data[row] = random_weight(at + name, 1, s.dim, seed, layer.norms.device)[0]


@torch.inference_mode()
def fidelity(args):
    """Divergence from fp32 of a plan's logits, and of plain bf16 execution, on the same history of tokens; and a
    bootstrap's upper bound of how much larger the plan's is, which is to be at most 0."""
    import numpy as np

    shape = SHAPES[args.shape]
    tokens = torch.tensor([int(t) for t in args.tokens_of.split(",")], device=args.device)
    places = torch.arange(len(tokens), device=args.device)
    logs = {}
    for name, dtype in (("fp32", torch.float32), ("bf16", torch.bfloat16)):
        torch.backends.cuda.matmul.allow_tf32 = False
        model = Model(shape, len(tokens), dtype, args.device)
        fill(model, args.seed)
        model.all_rows = True
        logs[name] = model.logits(tokens, places).double().log_softmax(-1)
        del model
    ours = torch.from_numpy(np.load(args.logits)).to(args.device)
    logs["plan"] = ours.double().log_softmax(-1)
    result = {"positions": len(tokens)}
    truth = logs["fp32"]
    target = tokens.roll(-1)[:, None]
    errors = {}
    for name in ("plan", "bf16"):
        kl = (truth.exp() * (truth - logs[name])).sum(-1)
        nll = (logs[name] - truth).gather(-1, target)[:-1, 0].abs()
        errors[name] = (kl.cpu().numpy(), nll.cpu().numpy())
        result[name] = {"mean_kl": float(kl.mean()), "mean_nll_error": float(nll.mean())}
    random = np.random.default_rng(1)
    for i, what in enumerate(("kl", "nll_error")):
        difference = errors["plan"][i] - errors["bf16"][i]
        means = [random.choice(difference, len(difference)).mean() for _ in range(2000)]
        result[f"excess_{what}_upper95"] = float(np.quantile(means, 0.95))
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["decode", "products", "attention", "fidelity"])
    parser.add_argument("--shape", choices=SHAPES, default="1b")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--prompt", type=int, default=32, help="tokens before the first that is decoded")
    parser.add_argument("--tokens", type=int, default=128, help="tokens of a sequence; all but the first are timed")
    parser.add_argument("--capacity", type=int, default=16384, help="tokens that the KV cache holds")
    parser.add_argument("--warm-ups", type=int, default=5)
    parser.add_argument("--sequences", type=int, default=10)
    parser.add_argument("--rows", type=int, default=2048, help="tokens of the prompt that products and attention see")
    parser.add_argument("--tokens-of", default="", help="fidelity: the history, as ids with commas between")
    parser.add_argument("--logits", help="fidelity: the plan's, .npy")
    parser.add_argument("--seed", type=int, default=1, help="fidelity: what --random-weights was given")
    args = parser.parse_args()
    torch.manual_seed(1)
    commands = {"decode": decode, "products": products, "attention": attention, "fidelity": fidelity}
    result = commands[args.command](args)
    result |= {"torch": torch.__version__, "shape": args.shape, "command": args.command}
    json.dump(result, sys.stdout)
    print()


if __name__ == "__main__":
    main()
