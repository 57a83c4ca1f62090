# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""EAGLE-3 heads: an oracle of what they draft, and files of heads that know their model.

The oracle is written from the formulas in float64. T tokens, d = dim, L feature
layers. With e a token's embedding and x its stream, which is fc of the features
[L d] of the token before, or what the layer made of it where that was drafted:

    x' = x + attention([norm(e), norm(x)]),  made = x' + mlp(norm(x'))

and the logits of the token that follows are lm_head of norm(made). Heads with
"norm_before_residual" have x' = norm(x) + attention(...).
"""

import json
import os
import shutil

import numpy as np
from safetensors.numpy import save_file

from llama_numpy import attention, block, feed_forward, rms_norm
from make_model import to_halves, write_pth


def features_of(config, weights, tokens, layers):
    """The inputs of `layers` of a model at each of `tokens`: [T, L d]."""
    weights = {name: x.astype(np.float64) for name, x in weights.items()}
    streams = [weights["tok_embeddings"][np.asarray(tokens)] * config.embedding_scale]
    for layer in range(config.layers):
        of_layer = lambda name, i=layer: weights[f"layers.{i}.{name}"]
        streams.append(block(config, of_layer, layer, streams[-1], lambda x: x))
    return np.concatenate([streams[layer] for layer in layers], axis=1)


def made_of(config, head, embedding, tokens, streams):
    """The layer's result for each of `tokens` [T] with its stream [T, d]: [T, d]."""
    embedded = rms_norm(embedding[np.asarray(tokens)], head["embedding_norm"], config.eps)
    normed = rms_norm(streams, head["attention_norm"], config.eps)
    joined = np.concatenate([embedded, normed], axis=1)
    x = (normed if head["adds_to_norm"] else streams) + attention(config, head.__getitem__, 0, joined, lambda keys: keys)
    return x + feed_forward(config, head.__getitem__, rms_norm(x, head["ffn_norm"], config.eps))


def logits_of(config, head, made):
    return rms_norm(made, head["norm"], config.eps) @ head["output"].T


def draft(config, head, embedding, tokens, features, count):
    """The ids of the `count` most probable tokens, each behind the one before, that
    follow `tokens` [T], of which all but the last have `features` [T - 1, L d]."""
    tokens, streams, ids = list(tokens[1:]), features @ head["features"].T, []
    for _ in range(count):
        made = made_of(config, head, embedding, tokens, streams)
        ids.append(int(head["ids"][np.argmax(logits_of(config, head, made[-1:])[0])]))
        tokens.append(ids[-1])
        streams = np.concatenate([streams, made[-1:]])
    return ids


def make_head(config, weights, layers, drafted, answers, seed=0, adds_to_norm=False):
    """A head for a model that drafts `drafted` of its ids: small random weights but
    for an lm_head that least squares fit to `answers`, texts of the model as ids."""
    rng = np.random.default_rng(seed)
    d, queries, keys = config.dim, config.heads * config.head_size, config.kv_heads * config.head_size

    def random(rows, cols, scale=1.0):
        return (rng.normal(size=(rows, cols)) * scale / np.sqrt(cols)).astype(np.float32).astype(np.float64)

    head = {
        "features": random(d, len(layers) * d),
        "attention.wq": random(queries, 2 * d),
        "attention.wk": random(keys, 2 * d),
        "attention.wv": random(keys, 2 * d),
        "attention.wo": random(d, queries),
        "feed_forward.w1": random(config.ffn, d),
        "feed_forward.w3": random(config.ffn, d),
        "feed_forward.w2": random(d, config.ffn),
        "ids": np.sort(rng.permutation(config.vocab)[:drafted]),
        "adds_to_norm": adds_to_norm,
    }
    for name in ("embedding_norm", "attention_norm", "ffn_norm", "norm"):
        head[name] = rng.uniform(0.8, 1.2, d).astype(np.float32).astype(np.float64)
    embedding = weights["tok_embeddings"].astype(np.float64)
    inputs, goals = [], []
    for tokens in answers:
        streams = features_of(config, weights, tokens, layers)[:-1] @ head["features"].T
        # Behind features, and behind one or more tokens of the head's own.
        for _ in range(3):
            made = made_of(config, head, embedding, tokens[1:], streams)
            inputs.append(rms_norm(made, head["norm"], config.eps)[:-1])
            goals += list(tokens[2:])
            streams = np.concatenate([streams[:1], made[:-1]])
    x, goals = np.concatenate(inputs), np.asarray(goals)
    hot = (goals[:, None] == head["ids"][None, :]).astype(np.float64)
    gram = x.T @ x + 1e-3 * len(x) * np.eye(d)
    head["output"] = np.linalg.solve(gram, x.T @ hot).T.astype(np.float32).astype(np.float64)
    return head


def write_head(directory, config, head, settings=None, embedding=None, change=None):
    """config.json and model.safetensors of `head` in float32. `settings` is more of
    config.json; `change` may edit the tensors."""
    os.makedirs(directory)
    said = {
        "architectures": ["LlamaForCausalLMEagle3"],
        "model_type": "llama",
        "hidden_size": config.dim,
        "intermediate_size": config.ffn,
        "num_hidden_layers": 1,
        "num_attention_heads": config.heads,
        "num_key_value_heads": config.kv_heads,
        "vocab_size": config.vocab,
        "draft_vocab_size": len(head["ids"]),
        "max_position_embeddings": 2048,
        "rms_norm_eps": config.eps,
        "rope_theta": config.theta,
        "tie_word_embeddings": False,
    } | (settings or {})
    with open(os.path.join(directory, "config.json"), "w", encoding="utf-8") as f:
        json.dump({key: value for key, value in said.items() if value is not None}, f)
    tensors = {
        "fc.weight": head["features"],
        "midlayer.input_layernorm.weight": head["embedding_norm"],
        "midlayer.hidden_norm.weight": head["attention_norm"],
        "midlayer.post_attention_layernorm.weight": head["ffn_norm"],
        "midlayer.self_attn.q_proj.weight": to_halves(head["attention.wq"], config.head_size),
        "midlayer.self_attn.k_proj.weight": to_halves(head["attention.wk"], config.head_size),
        "midlayer.self_attn.v_proj.weight": head["attention.wv"],
        "midlayer.self_attn.o_proj.weight": head["attention.wo"],
        "midlayer.mlp.gate_proj.weight": head["feed_forward.w1"],
        "midlayer.mlp.up_proj.weight": head["feed_forward.w3"],
        "midlayer.mlp.down_proj.weight": head["feed_forward.w2"],
        "norm.weight": head["norm"],
        "lm_head.weight": head["output"],
    }
    tensors = {name: np.ascontiguousarray(x, np.float32) for name, x in tensors.items()}
    tensors["d2t"] = head["ids"].astype(np.int64) - np.arange(len(head["ids"]))
    tensors["t2d"] = np.isin(np.arange(config.vocab), head["ids"])
    if embedding is not None:
        tensors["embed_tokens.weight"] = embedding.astype(np.float32)
    if change:
        change(tensors)
    save_file(tensors, os.path.join(directory, "model.safetensors"), metadata={"format": "pt"})
    return directory


def write_speculators_head(directory, of, tensors, settings):
    """The head `of`, whose `tensors` are those of its file, as the library speculators
    writes it: the layer's configuration apart, and "layers.0" for "midlayer"."""
    os.makedirs(directory)
    with open(os.path.join(of, "config.json"), encoding="utf-8") as f:
        layer = json.load(f)
    said = {
        "architectures": ["Eagle3Speculator"],
        "speculators_model_type": "eagle3",
        "speculators_version": "0.3.0",
        "draft_vocab_size": layer.pop("draft_vocab_size"),
        "target_hidden_size": None,
        "transformer_layer_config": {key: x for key, x in layer.items() if key not in ("architectures", "eagle_config")},
        "speculators_config": {"algorithm": "eagle3", "default_proposal_method": "greedy"},
    } | settings
    with open(os.path.join(directory, "config.json"), "w", encoding="utf-8") as f:
        json.dump(said, f)
    tensors = {name.replace("midlayer.", "layers.0."): x for name, x in tensors.items()}
    save_file(tensors, os.path.join(directory, "model.safetensors"), metadata={"format": "pt"})


def write_torch_head(directory, of, tensors):
    """The head `of`, whose `tensors` are those of its file, with a pytorch_model.bin."""
    os.makedirs(directory)
    shutil.copy(os.path.join(of, "config.json"), directory)
    named = {name.removesuffix(".weight"): x for name, x in tensors.items()}
    write_pth(os.path.join(directory, "pytorch_model.bin"), named, "f32")
