# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A model of two layers that finds needles in a haystack, by weights that we know.

An embedding has a key, what the token asks for, and a value; two more parts of a
hidden state are what each layer writes. Matrices copy parts, so that a token
attends to keys like what it asks for. Needle i has the value of question i + 1,
and pointer i, behind it, asks for the needle's key: the first layer copies the
value to the pointer. Question i asks for the pointer's key, and the second layer
reads there what the first one wrote. A greedy answer so goes from question to
question, through all needles. Each other token has a key like that of a needle or
a pointer, up to LIKENESS, and asks for anything.

Theta is so large that the pairs of a head from SLOW on turn by 0.01 at most in 32k
tokens; what is asked for has nothing else.
"""

import numpy as np

from llama_numpy import Config
from make_model import round_to

HEAD = 64
CONFIG = Config(5 * HEAD, 2, 2, 1, vocab=4096, head_size=HEAD, ffn_dim_multiplier=0.05, theta=1e30)
NEEDLES = 8
# Tokens: first the questions, which follow each other in an answer.
QUESTIONS, POINTERS, NEEDLE_TOKENS, OTHERS = np.split(np.arange(CONFIG.vocab), [NEEDLES, 2 * NEEDLES, 3 * NEEDLES])
SLOW = 7
LIKENESS = (0.8, 0.98)
SCORE = 250  # The score of a key that is just what is asked for.
# The first layer writes little, so that all hidden states have about the same norm.
WRITTEN = 0.1


def haystack(count, seed=1):
    """Tokens with the pointers from the start to the end, and each needle somewhere before its pointer."""
    rng = np.random.default_rng(seed)
    tokens = rng.choice(OTHERS, count)
    free = np.ones(count, bool)
    places = np.rint(np.linspace(1, count - 1, NEEDLES)).astype(int)
    free[places] = False
    tokens[places] = POINTERS
    for needle, end in zip(NEEDLE_TOKENS, places):
        place = rng.choice(np.flatnonzero(free[:end]))
        free[place] = False
        tokens[place] = needle
    return tokens.tolist()


def _unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def weights(seed=0):
    """Weights by Meta's names, which bf16 holds."""
    rng = np.random.default_rng(seed)
    keys = rng.standard_normal((CONFIG.vocab, HEAD))
    slow = keys[:, 2 * SLOW :]
    slow[:] = _unit(slow)
    like = rng.uniform(*LIKENESS, (len(OTHERS), 1))
    model = slow[rng.choice(np.concatenate([POINTERS, NEEDLE_TOKENS]), len(OTHERS))]
    away = _unit(slow[OTHERS] - (slow[OTHERS] * model).sum(axis=1, keepdims=True) * model)
    slow[OTHERS] = like * model + np.sqrt(1 - like**2) * away
    slow *= np.sqrt(HEAD - 2 * SLOW)
    asked = np.zeros_like(keys)
    asked[:, 2 * SLOW :] = _unit(rng.standard_normal(slow.shape)) * np.sqrt(HEAD - 2 * SLOW)
    asked[QUESTIONS, 2 * SLOW :] = slow[POINTERS]
    asked[POINTERS, 2 * SLOW :] = slow[NEEDLE_TOKENS]
    keys[:, : 2 * SLOW] = _unit(keys[:, : 2 * SLOW]) * np.sqrt(2 * SLOW)
    names = _unit(rng.standard_normal(keys.shape)) * np.sqrt(HEAD)
    values = names.copy()
    values[NEEDLE_TOKENS] = names[np.roll(QUESTIONS, -1)]

    # Rows are of one norm, so that RMSNorm changes all by the same factor.
    embeddings = np.concatenate([keys, asked, values, np.zeros((CONFIG.vocab, 2 * HEAD))], axis=1)
    embeddings = _unit(embeddings) * np.sqrt(CONFIG.dim)
    # The square of what is asked for, in a hidden state.
    square = CONFIG.dim * (HEAD - 2 * SLOW) / (3 * HEAD - 2 * SLOW)
    key, ask, value, first, second = np.eye(CONFIG.dim).reshape(5, HEAD, CONFIG.dim)
    found = {
        "tok_embeddings": embeddings,
        "norm": np.ones(CONFIG.dim),
        "output": 4 / HEAD * names @ second,
    }
    for layer, (source, to, scale) in enumerate(((value, first, WRITTEN), (first, second, 3 / WRITTEN))):
        found |= {
            f"layers.{layer}.{name}": x
            for name, x in {
                "attention.wq": np.tile(ask * SCORE / square * np.sqrt(HEAD), (CONFIG.heads, 1)),
                "attention.wk": key,
                "attention.wv": source,
                "attention.wo": np.tile(to.T * scale / CONFIG.heads, CONFIG.heads),
                "feed_forward.w1": np.zeros((CONFIG.ffn, CONFIG.dim)),
                "feed_forward.w2": np.zeros((CONFIG.dim, CONFIG.ffn)),
                "feed_forward.w3": np.zeros((CONFIG.ffn, CONFIG.dim)),
                "attention_norm": np.ones(CONFIG.dim),
                "ffn_norm": np.ones(CONFIG.dim),
            }.items()
        }
    return {name: round_to(x.astype(np.float32), "bf16") for name, x in found.items()}
