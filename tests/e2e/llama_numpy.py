# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Llama's forward pass in float64, written from the formulas.

The oracle of the end-to-end tests: it shares nothing with the program, favours
clarity over speed, and computes all positions at once without a cache.

N tokens, d = dim, H query heads, G key/value heads, h = head size, F = ffn,
V = vocab. Weights have Meta's names without ".weight" and Meta's order of
rows in wq and wk: the two numbers that RoPE rotates together are neighbours.
"""

from dataclasses import dataclass
from typing import Optional

import numpy as np


@dataclass(frozen=True)
class RopeScaling:
    """Llama 3.1's scaling of the rotary frequencies."""

    factor: float = 8.0
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0
    old_context: float = 8192.0


@dataclass(frozen=True)
class Config:
    dim: int
    layers: int
    heads: int
    kv_heads: int
    vocab: int
    multiple_of: int = 32
    ffn_dim_multiplier: Optional[float] = None
    head_size: int = 0  # 0: dim / heads
    eps: float = 1e-5
    theta: float = 500000.0
    scaling: Optional[RopeScaling] = None
    tied: bool = False

    def __post_init__(self):
        if not self.head_size:
            object.__setattr__(self, "head_size", self.dim // self.heads)

    @property
    def ffn(self):
        """F as Meta's params.json implies it."""
        hidden = int(2 * 4 * self.dim / 3)
        if self.ffn_dim_multiplier is not None:
            hidden = int(self.ffn_dim_multiplier * hidden)
        return -(-hidden // self.multiple_of) * self.multiple_of


def rope_factors(config):
    """What each rotary frequency is divided by: [h / 2] values, all 1 without
    scaling. A wavelength that fits the old context less than `low_freq_factor`
    times is stretched by `factor`, one that fits it more than
    `high_freq_factor` times is kept, and between them the frequency is a blend.
    """
    freqs = config.theta ** (-np.arange(0, config.head_size, 2) / config.head_size)
    if config.scaling is None:
        return np.ones_like(freqs)
    s = config.scaling
    turns = s.old_context * freqs / (2 * np.pi)
    keep = (turns - s.low_freq_factor) / (s.high_freq_factor - s.low_freq_factor)
    keep = np.clip(keep, 0.0, 1.0)
    return 1.0 / ((1.0 - keep) / s.factor + keep)


def rope(x, config):
    """Rotates the pairs (x[2i], x[2i+1]) of x [N, heads, h] at position p by
    p * theta^(-2i/h), scaled."""
    n = x.shape[0]
    freqs = config.theta ** (-np.arange(0, config.head_size, 2) / config.head_size)
    angles = np.outer(np.arange(n), freqs / rope_factors(config))  # [N, h/2]
    rotation = np.exp(1j * angles)[:, None, :]
    pairs = (x[..., 0::2] + 1j * x[..., 1::2]) * rotation
    out = np.empty_like(x)
    out[..., 0::2] = pairs.real
    out[..., 1::2] = pairs.imag
    return out


def rms_norm(x, weight, eps):
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + eps) * weight


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def silu(x):
    return x / (1.0 + np.exp(-x))


def attention(q, k, v):
    """q [N, H, h], k and v [N, G, h]: causal attention, [N, H, h]. Query head j
    reads key/value head j / (H / G)."""
    n, heads, size = q.shape
    group = heads // k.shape[1]
    future = np.triu(np.full((n, n), -np.inf), 1)
    out = np.empty_like(q)
    for j in range(heads):
        scores = q[:, j] @ k[:, j // group].T / np.sqrt(size) + future
        out[:, j] = softmax(scores) @ v[:, j // group]
    return out


def forward(config, weights, tokens):
    """Logits [N, V] of every position of `tokens`, all in float64. `weights`
    maps names to arrays; a tied model needs no "output"."""

    def weight(name):
        return weights[name].astype(np.float64)

    n, size = len(tokens), config.head_size
    embedding = weight("tok_embeddings")
    x = embedding[np.asarray(tokens)]
    for layer in range(config.layers):
        p = f"layers.{layer}."
        y = rms_norm(x, weight(p + "attention_norm"), config.eps)
        q = (y @ weight(p + "attention.wq").T).reshape(n, config.heads, size)
        k = (y @ weight(p + "attention.wk").T).reshape(n, config.kv_heads, size)
        v = (y @ weight(p + "attention.wv").T).reshape(n, config.kv_heads, size)
        o = attention(rope(q, config), rope(k, config), v)
        x = x + o.reshape(n, -1) @ weight(p + "attention.wo").T
        y = rms_norm(x, weight(p + "ffn_norm"), config.eps)
        gate = silu(y @ weight(p + "feed_forward.w1").T)
        up = y @ weight(p + "feed_forward.w3").T
        x = x + (gate * up) @ weight(p + "feed_forward.w2").T
    head = embedding if config.tied else weight("output")
    return rms_norm(x, weight("norm"), config.eps) @ head.T
