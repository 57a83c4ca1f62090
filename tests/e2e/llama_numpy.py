# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The forward pass of Llama and its relatives in float64, written from the formulas.

The oracle of the end-to-end tests: it shares nothing with the program, favours
clarity over speed, and computes all positions without a cache. What
relatives of Llama add are fields of Config; their defaults are Llama's.

N tokens, d = dim, H query heads, G key/value heads, h = head size, F = ffn,
V = vocab. Weights have Meta's names without ".weight" and Meta's order of
rows in wq and wk, their biases and norms: the two numbers that RoPE rotates
together are neighbours.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class RopeScaling:
    """Llama 3.1's scaling of the rotary frequencies."""

    factor: float = 8.0
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0
    old_context: float = 8192.0


@dataclass(frozen=True)
class LinearScaling:
    """Divides every rotary frequency by `factor`."""

    factor: float


@dataclass(frozen=True)
class Config:
    dim: int
    layers: int
    heads: int
    kv_heads: int
    vocab: int
    multiple_of: int = 32
    ffn_dim_multiplier: float | None = None
    head_size: int = 0  # 0: dim / heads
    eps: float = 1e-5
    theta: float = 500000.0
    scaling: RopeScaling | LinearScaling | None = None
    tied: bool = False
    qkv_bias: bool = False
    qk_norm: str = ""  # RMSNorm of q and k before RoPE, over each "head" or the "row" of all heads.
    norms: str = "before"  # Where attention and the MLP have an RMSNorm: "before", "after" or "both".
    activation: str = "silu"  # Or "gelu_tanh".
    embedding_scale: float = 1.0
    residual_scale: float = 1.0  # Scale of what attention and the MLP add to the residual stream.
    attention_scale: float = 0.0  # 0: 1 / sqrt(h)
    logits_scale: float = 1.0
    windows: tuple[int, ...] = ()  # The keys that each layer sees, 0: all of them; (): no layer has a window.
    rotates: tuple[bool, ...] = ()  # Whether each layer has RoPE; (): all have.
    local_theta: float = 0.0  # theta of layers with a window, which are not scaled; 0: as the others.

    def __post_init__(self):
        if not self.head_size:
            object.__setattr__(self, "head_size", self.dim // self.heads)
        assert self.qk_norm in ("", "head", "row") and self.norms in ("before", "after", "both")
        assert len(self.windows) in (0, self.layers) and len(self.rotates) in (0, self.layers)

    @property
    def ffn(self):
        """F as Meta's params.json implies it."""
        hidden = int(2 * 4 * self.dim / 3)
        if self.ffn_dim_multiplier is not None:
            hidden = int(self.ffn_dim_multiplier * hidden)
        return -(-hidden // self.multiple_of) * self.multiple_of


def rope_factors(config):
    """The divisor of each rotary frequency: [h / 2] values, all 1 without
    scaling. In Llama 3.1's, a wavelength that fits the old context less than
    `low_freq_factor` times is stretched by `factor`, one that fits it more than
    `high_freq_factor` times is kept, and between them the frequency is a blend.
    """
    freqs = config.theta ** (-np.arange(0, config.head_size, 2) / config.head_size)
    s = config.scaling
    if s is None:
        return np.ones_like(freqs)
    if isinstance(s, LinearScaling):
        return np.full_like(freqs, s.factor)
    turns = s.old_context * freqs / (2 * np.pi)
    keep = (turns - s.low_freq_factor) / (s.high_freq_factor - s.low_freq_factor)
    keep = np.clip(keep, 0.0, 1.0)
    return 1.0 / ((1.0 - keep) / s.factor + keep)


def rope_frequencies(config, window):
    """The angle between neighbouring positions of each pair, theta^(-2i/h)
    scaled, in a layer with this window: [h / 2]."""
    exponents = -np.arange(0, config.head_size, 2) / config.head_size
    if window and config.local_theta:
        return config.local_theta**exponents
    return config.theta**exponents / rope_factors(config)


def rope(x, frequencies):
    """Rotates the pairs (x[2i], x[2i+1]) of x [N, heads, h] at position p by
    p * frequencies[i]."""
    angles = np.outer(np.arange(len(x)), frequencies)  # [N, h/2]
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


def gelu_tanh(x):
    return x / 2 * (1.0 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


ACTIVATIONS = {"silu": silu, "gelu_tanh": gelu_tanh}


def softmax_attention(q, k, v, scale, window):
    """q [N, H, h], k and v [N, G, h]: causal attention, [N, H, h]. Query head j
    reads key/value head j / (H / G); position p reads the last `window`
    positions up to p itself, or all where that is 0."""
    n, heads, _ = q.shape
    group = heads // k.shape[1]
    out = np.empty_like(q)
    # A long context's scores take too much memory at once.
    for first in range(0, n, 1024):
        last = min(first + 1024, n)
        distance = np.subtract.outer(np.arange(first, last), np.arange(last))
        unseen = (distance < 0) | (distance >= (window or n))
        for j in range(heads):
            scores = np.where(unseen, -np.inf, scale * (q[first:last, j] @ k[:last, j // group].T))
            out[first:last, j] = softmax(scores) @ v[:last, j // group]
    return out


def attention(config, weight, layer, x, cache):
    """Self-attention of x [N, d] with its projections: [N, d]. `weight` gives the
    layer's weights, and `cache` what is read of keys and of values [N, G, h]."""
    n, size = len(x), config.head_size

    def projection(name, heads):
        y = x @ weight(f"attention.w{name}").T
        if config.qkv_bias:
            y = y + weight(f"attention.b{name}")
        if config.qk_norm and name != "v":
            if config.qk_norm == "head":
                y = y.reshape(n, heads, size)
            y = rms_norm(y, weight(f"attention.{name}_norm"), config.eps)
        return y.reshape(n, heads, size)

    q, k, v = projection("q", config.heads), projection("k", config.kv_heads), projection("v", config.kv_heads)
    window = config.windows[layer] if config.windows else 0
    if not config.rotates or config.rotates[layer]:
        frequencies = rope_frequencies(config, window)
        q, k = rope(q, frequencies), rope(k, frequencies)
    scale = config.attention_scale or 1 / np.sqrt(size)
    return softmax_attention(q, cache(k), cache(v), scale, window).reshape(n, -1) @ weight("attention.wo").T


def feed_forward(config, weight, x):
    """The MLP of x [N, d]: [N, d]."""
    gate = ACTIVATIONS[config.activation](x @ weight("feed_forward.w1").T)
    return (gate * (x @ weight("feed_forward.w3").T)) @ weight("feed_forward.w2").T


def block(config, weight, layer, x, cache):
    """A layer: x [N, d] to [N, d]. `weight` gives its weights, and `cache` what is
    read of keys and of values."""

    def residual(x, part, compute):
        y = x
        if config.norms != "after":
            y = rms_norm(y, weight(f"{part}_norm"), config.eps)
        y = compute(y)
        if config.norms != "before":
            y = rms_norm(y, weight(f"{part}_post_norm"), config.eps)
        return x + y * config.residual_scale

    x = residual(x, "attention", lambda y: attention(config, weight, layer, y, cache))
    return residual(x, "ffn", lambda y: feed_forward(config, weight, y))


def forward(config, weights, tokens, cache=lambda x: x, last=0):
    """Logits [N, V] of every position of `tokens`, or of the `last` ones, all in
    float64. `weights` maps names to arrays; a tied model needs no "output". `cache`
    maps keys, and values, [N, G, h] to what a KV cache gives for them."""

    def weight(name):
        return weights[name].astype(np.float64)

    embedding = weight("tok_embeddings")
    x = embedding[np.asarray(tokens)] * config.embedding_scale
    for layer in range(config.layers):
        x = block(config, lambda name, i=layer: weight(f"layers.{i}.{name}"), layer, x, cache)
    head = embedding if config.tied else weight("output")
    return rms_norm(x[-last:], weight("norm"), config.eps) @ head.T * config.logits_scale
