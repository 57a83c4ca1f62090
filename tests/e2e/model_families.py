# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How files name Llama and its relatives, and what config.json and GGUF say of
each beyond what they say of all.

Hugging Face's keys are those of transformers' configuration classes, and GGUF's
those that llama.cpp's converter writes and llama.cpp reads. What a family always
does is not said, or not in both: each function notes that.
"""

from dataclasses import dataclass, field
from collections.abc import Callable

import numpy as np

ABSENT = object()  # The value of a key that config.json leaves out.


@dataclass(frozen=True)
class Family:
    architecture: str  # "architectures" in config.json.
    model_type: str
    settings: Callable  # Takes a Config: more of config.json.
    gguf_architecture: str
    metadata: Callable  # Takes a GGUFWriter and a Config: adds more metadata.
    gguf_halves: bool = False  # Whether GGUF keeps Hugging Face's order of rotary rows.
    hf_names: dict = field(default_factory=dict)  # Where they are not those of make_model.HF_NAMES.
    fused: dict = field(default_factory=dict)  # Weights stored as one, by rows: its name to its parts.
    shifted_norms: bool = False  # Whether Hugging Face stores norms less 1.


def only_window(config):
    """The window of the layers that have one, or None."""
    sizes = set(config.windows) - {0}
    assert len(sizes) <= 1
    return sizes.pop() if sizes else None


def window_period(config):
    """n where each n-th layer has no window and the others have one, or None."""
    period = (*config.windows, 0).index(0) + 1
    fits = all(bool(size) == bool((i + 1) % period) for i, size in enumerate(config.windows))
    return period if fits else None


def unless_tied(config):
    """tie_word_embeddings of families whose models are tied where nothing is said."""
    return ABSENT if config.tied else False


def add_head_size(writer, config):
    writer.add_key_length(config.head_size)
    writer.add_value_length(config.head_size)


def add_rotary_size(writer, config):
    writer.add_rope_dimension_count(config.head_size)
    writer.add_vocab_size(config.vocab)


def add_nothing(writer, config):
    pass


def llama_settings(config):
    return {"head_dim": config.head_size, "attention_bias": False, "mlp_bias": False}


def llama_metadata(writer, config):
    add_head_size(writer, config)
    add_rotary_size(writer, config)


def mistral_settings(config):
    return {"head_dim": config.head_size, "sliding_window": only_window(config)}


def qwen2_settings(config):
    """Query, key and value have biases, which no key says. Layers have a window
    from max_window_layers on, if it is used: no published model does."""
    window = only_window(config)
    whole = config.windows.count(0)
    assert not any(config.windows[:whole])
    return {
        "use_sliding_window": window is not None,
        "sliding_window": window or 8,
        "max_window_layers": whole,
    }


def qwen3_settings(config):
    return qwen2_settings(config) | {"head_dim": config.head_size, "attention_bias": False}


def granite_settings(config):
    return {
        "attention_bias": False,
        "mlp_bias": False,
        "embedding_multiplier": config.embedding_scale,
        "residual_multiplier": config.residual_scale,
        "attention_multiplier": config.attention_scale,
        "logits_scaling": 1 / config.logits_scale,
    }


def granite_metadata(writer, config):
    """logit_scale divides, as logits_scaling does."""
    add_rotary_size(writer, config)
    writer.add_embedding_scale(config.embedding_scale)
    writer.add_residual_scale(config.residual_scale)
    writer.add_attention_scale(config.attention_scale)
    writer.add_logit_scale(1 / config.logits_scale)


def smollm3_settings(config):
    """no_rope_layers has 1 where a layer has RoPE."""
    return {
        "attention_bias": False,
        "mlp_bias": False,
        "no_rope_layers": [int(x) for x in config.rotates],
        "no_rope_layer_interval": 4,
        "use_sliding_window": False,
        "sliding_window": None,
        "tie_word_embeddings": unless_tied(config),
    }


def smollm3_metadata(writer, config):
    """Each fourth layer has no RoPE, which no key says."""
    assert config.rotates == tuple(bool((i + 1) % 4) for i in range(config.layers))
    add_rotary_size(writer, config)


def olmo2_settings(config):
    return {"attention_bias": False}


def phi3_settings(config):
    return {
        "attention_bias": False,
        "sliding_window": only_window(config),
        "original_max_position_embeddings": 4096,
    }


def phi3_metadata(writer, config):
    writer.add_rope_dimension_count(config.head_size)
    writer.add_rope_scaling_orig_ctx_len(4096)
    writer.add_sliding_window(only_window(config) or 0)


def gemma3_settings(config):
    """The embedding is multiplied by sqrt(dim), which no key says. Newer files
    say which layers have a window by layer_types."""
    period = window_period(config)
    layer_types = ["sliding_attention" if size else "full_attention" for size in config.windows]
    return {
        "hidden_act": ABSENT,
        "hidden_activation": "gelu_pytorch_tanh",
        "head_dim": config.head_size,
        "attention_bias": False,
        "query_pre_attn_scalar": round(config.attention_scale**-2) if config.attention_scale else config.head_size,
        "sliding_window": only_window(config),
        "sliding_window_pattern": period or ABSENT,
        "layer_types": ABSENT if period else layer_types,
        "rope_local_base_freq": config.local_theta,
        "attn_logit_softcapping": None,
        "final_logit_softcapping": None,
        "tie_word_embeddings": unless_tied(config),
    }


def gemma3_metadata(writer, config):
    """The scale of attention is 1 / sqrt(h), which no key says. Nor does one say
    the usual: each sixth layer has no window, and theta of the others is 10,000."""
    assert not config.attention_scale
    add_head_size(writer, config)
    writer.add_sliding_window(only_window(config))
    period = window_period(config)
    if period != 6:
        writer.add_sliding_window_pattern(period or [bool(size) for size in config.windows])
    if config.local_theta != 10000:
        writer.add_rope_freq_base_swa(config.local_theta)


LLAMA = Family("LlamaForCausalLM", "llama", llama_settings, "llama", llama_metadata)
# GGUF has it as Llama, without the window.
MISTRAL = Family("MistralForCausalLM", "mistral", mistral_settings, "llama", llama_metadata)
QWEN2 = Family("Qwen2ForCausalLM", "qwen2", qwen2_settings, "qwen2", add_nothing, gguf_halves=True)
QWEN3 = Family("Qwen3ForCausalLM", "qwen3", qwen3_settings, "qwen3", add_head_size, gguf_halves=True)
GRANITE = Family("GraniteForCausalLM", "granite", granite_settings, "granite", granite_metadata)
SMOLLM3 = Family("SmolLM3ForCausalLM", "smollm3", smollm3_settings, "smollm3", smollm3_metadata)
OLMO2 = Family("Olmo2ForCausalLM", "olmo2", olmo2_settings, "olmo2", add_nothing, gguf_halves=True)
PHI3 = Family(
    "Phi3ForCausalLM",
    "phi3",
    phi3_settings,
    "phi3",
    phi3_metadata,
    gguf_halves=True,
    fused={
        "attention.wqkv": ("attention.wq", "attention.wk", "attention.wv"),
        "feed_forward.w13": ("feed_forward.w1", "feed_forward.w3"),
    },
)
GEMMA3 = Family(
    "Gemma3ForCausalLM",
    "gemma3_text",
    gemma3_settings,
    "gemma3",
    gemma3_metadata,
    gguf_halves=True,
    hf_names={"ffn_norm": "pre_feedforward_layernorm"},
    shifted_norms=True,
)


def layer_and_name(name):
    """("layers.0.", "attention.wq") of "layers.0.attention.wq", ("", "norm") of
    "norm"."""
    if not name.startswith("layers."):
        return "", name
    _, layer, rest = name.split(".", 2)
    return f"layers.{layer}.", rest


def fuse(tensors, family, join=np.concatenate):
    """`tensors` by Meta's names, with those joined that the family stores as one."""
    whole_of = {part: whole for whole, parts in family.fused.items() for part in parts}
    fused = {}
    for name, x in tensors.items():
        layer, rest = layer_and_name(name)
        if rest not in whole_of:
            fused[name] = x
        elif layer + whole_of[rest] not in fused:
            parts = family.fused[whole_of[rest]]
            fused[layer + whole_of[rest]] = join([tensors[layer + part] for part in parts])
    return fused
