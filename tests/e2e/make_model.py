# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes one set of random weights as a Meta, Hugging Face or GGUF model of
Llama, or as a Hugging Face or GGUF model of one of its relatives.

Weights are rounded to the type they are stored in before they are used for
anything, so every form holds the same numbers. No tokenizer is written but for
GGUF's small vocabulary, which llama.cpp asks for.
"""

import collections
import contextlib
import io
import json
import os
import pickle
import sys
import types
import zipfile

import gguf
import numpy as np
from gguf import GGMLQuantizationType as GgmlType
from safetensors.numpy import save_file

from llama_numpy import LinearScaling, rope_factors
from model_families import ABSENT, LLAMA, fuse, layer_and_name

# Block formats that gguf can read but not write: where in a block the fp16
# scale is, and the offset dmin, and what share of the scale makes it centre
# elements whose other bits are random.
RANDOM_BLOCKS = {
    "Q2_K": (80, 82, 1.5),
    "Q3_K": (108, None, 0),
    "Q4_K": (0, 2, 7.5),
    "Q5_K": (0, 2, 15.5),
    "Q6_K": (208, None, 0),
    "IQ4_NL": (0, None, 0),
    "IQ4_XS": (0, None, 0),
}


def weight_shapes(config):
    """Name to shape of every weight, by Meta's names."""
    d, f = config.dim, config.ffn
    q_rows, kv_rows = config.heads * config.head_size, config.kv_heads * config.head_size
    layer_shapes = {
        "attention.wq": (q_rows, d),
        "attention.wk": (kv_rows, d),
        "attention.wv": (kv_rows, d),
        "attention.wo": (d, q_rows),
        "feed_forward.w1": (f, d),
        "feed_forward.w2": (d, f),
        "feed_forward.w3": (f, d),
    }
    if config.norms != "after":
        layer_shapes |= {"attention_norm": (d,), "ffn_norm": (d,)}
    if config.norms != "before":
        layer_shapes |= {"attention_post_norm": (d,), "ffn_post_norm": (d,)}
    if config.qkv_bias:
        layer_shapes |= {"attention.bq": (q_rows,), "attention.bk": (kv_rows,), "attention.bv": (kv_rows,)}
    if config.qk_norm:
        per_head = config.qk_norm == "head"
        layer_shapes["attention.q_norm"] = (config.head_size if per_head else q_rows,)
        layer_shapes["attention.k_norm"] = (config.head_size if per_head else kv_rows,)
    shapes = {"tok_embeddings": (config.vocab, d)}
    for layer in range(config.layers):
        shapes |= {f"layers.{layer}.{name}": shape for name, shape in layer_shapes.items()}
    shapes["norm"] = (d,)
    if not config.tied:
        shapes["output"] = (config.vocab, d)
    return shapes


def to_bf16_bits(x):
    """fp32 to the nearest bf16, ties to even, as uint16."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def from_bf16_bits(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


def round_to(x, dtype):
    """float32 values that `dtype` (f32, f16 or bf16) holds exactly."""
    if dtype == "bf16":
        return from_bf16_bits(to_bf16_bits(x))
    return x.astype({"f32": np.float32, "f16": np.float16}[dtype]).astype(np.float32)


BIASES = (".bq", ".bk", ".bv")
# Weights whose rows RoPE pairs.
ROTARY = (".wq", ".wk", ".bq", ".bk", ".q_norm", ".k_norm")


def random_weights(config, dtype="bf16", seed=0, shifted_norms=False):
    """Weights by Meta's names, as large as a trained model's: matrices keep the
    size of activations, those that add to the residual stream are smaller so
    that it grows slowly, an embedding that is the output matrix too is between
    both. Norms vary around 1 so that none can be left out unseen; with
    `shifted_norms`, `dtype` holds what they have above 1, as Gemma stores them."""
    rng = np.random.default_rng(seed)
    weights = {}
    for name, shape in weight_shapes(config).items():
        x = rng.standard_normal(shape, dtype=np.float32)
        if name.endswith(BIASES):
            x /= 10
        elif len(shape) == 1:
            x /= 8
            if shifted_norms:
                weights[name] = 1 + round_to(x, dtype)
                continue
            x += 1
        elif name != "tok_embeddings":
            x /= np.sqrt(np.float32(shape[1]))
            if name.endswith((".wo", ".w2")):
                x /= np.sqrt(np.float32(2 * config.layers))
        elif config.tied:
            x *= 3 / np.sqrt(np.float32(shape[1]))
        weights[name] = round_to(x, dtype)
    return weights


# --- Meta -------------------------------------------------------------------

STORAGE = {"bf16": ("BFloat16Storage", 2), "f16": ("HalfStorage", 2), "f32": ("FloatStorage", 4)}
# Storages of tables, which are no weights, and bytes of their elements.
TABLES = {np.dtype(np.int64): ("LongStorage", 8), np.dtype(bool): ("BoolStorage", 1)}

# The dimension that consolidated files of several shards partition: rows (0) or
# columns (1). Llama 2 partitions the embedding by columns, Llama 3 by rows.
PARTS_DIM = {"wq": 0, "wk": 0, "wv": 0, "w1": 0, "w3": 0, "output": 0, "wo": 1, "w2": 1}


def raw_bytes(x, dtype):
    if dtype == "bf16":
        return to_bf16_bits(x).tobytes()
    return x.astype({"f32": np.float32, "f16": np.float16}[dtype]).tobytes()


class _Storage:
    """A storage in the pickle: only its persistent id is written."""

    def __init__(self, kind, key, elements):
        self.kind, self.key, self.elements = kind, key, elements


class _Tensor:
    def __init__(self, storage, shape, rebuild, offset=0):
        stride, step = [], 1
        for size in reversed(shape):
            stride.insert(0, step)
            step *= size
        args = (storage, offset, tuple(shape), tuple(stride), False, collections.OrderedDict())
        self.reduced = (rebuild, args)

    def __reduce__(self):
        return self.reduced


class _Pickler(pickle.Pickler):
    def persistent_id(self, obj):
        if isinstance(obj, _Storage):
            return ("storage", obj.kind, obj.key, "cpu", obj.elements)
        return None


@contextlib.contextmanager
def _torch_names():
    """Modules named torch and torch._utils for as long as a pickle is written:
    their classes and function are pickled by name, as torch's own are."""
    torch, utils = types.ModuleType("torch"), types.ModuleType("torch._utils")
    torch._utils = utils
    for kind, _ in [*STORAGE.values(), *TABLES.values()]:
        setattr(torch, kind, type(kind, (), {"__module__": "torch"}))

    def _rebuild_tensor_v2():
        raise AssertionError("only its name is used")

    _rebuild_tensor_v2.__module__ = "torch._utils"
    _rebuild_tensor_v2.__qualname__ = "_rebuild_tensor_v2"
    utils._rebuild_tensor_v2 = _rebuild_tensor_v2
    saved = {name: sys.modules.get(name) for name in ("torch", "torch._utils")}
    sys.modules.update({"torch": torch, "torch._utils": utils})
    try:
        yield torch
    finally:
        for name, module in saved.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module


class _Unseekable(io.RawIOBase):
    """A stream that cannot go back: zipfile then puts sizes and checksums after
    each entry and zeros before it, which is how torch writes its files."""

    def __init__(self, path):
        self.file = open(path, "wb")
        self.length = 0

    def writable(self):
        return True

    def seekable(self):
        return False

    def tell(self):
        return self.length

    def write(self, data):
        self.length += len(data)
        return self.file.write(data)

    def close(self):
        self.file.close()
        super().close()


def write_pth(path, tensors, dtype, shared=()):
    """A file as torch.save writes it for an ordered dict of `tensors`: a zip of
    stored entries, aligned to 64 bytes, with a pickle that refers to one
    storage for each tensor. `shared` holds pairs (name, other): `name` is a
    second view of the storage of `other`. Names get ".weight", but those of tables
    of integers and bools, which keep their types."""

    def name_of(name):
        return name if tensors[name].dtype in TABLES else name + ".weight"

    with _torch_names() as torch:
        state = collections.OrderedDict()
        storages = {}
        for key, (name, x) in enumerate(tensors.items()):
            kind, _ = TABLES.get(x.dtype, STORAGE[dtype])
            storages[name] = _Storage(getattr(torch, kind), str(key), x.size)
            state[name_of(name)] = _Tensor(
                storages[name], x.shape, torch._utils._rebuild_tensor_v2
            )
        for name, other in shared:
            state[name + ".weight"] = _Tensor(
                storages[other], tensors[other].shape, torch._utils._rebuild_tensor_v2
            )
        pickled = io.BytesIO()
        _Pickler(pickled, protocol=2).dump(state)

    stream = _Unseekable(path)
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:

        def add(name, data):
            info = zipfile.ZipInfo("archive/" + name)
            header = stream.tell() + 30 + len(info.filename)
            fill = -(header + 4) % 64
            info.extra = b"FB" + fill.to_bytes(2, "little") + b"Z" * fill
            archive.writestr(info, data)

        add("data.pkl", pickled.getvalue())
        for name, x in tensors.items():
            data = x.tobytes() if x.dtype in TABLES else raw_bytes(x, dtype)
            assert len(data) == x.size * TABLES.get(x.dtype, STORAGE[dtype])[1]
            add("data/" + storages[name].key, data)
        add("version", b"3\n")
    stream.close()


def split(name, x, shards, shard, embedding_dim):
    """The part of weight `name` in file `shard` of `shards`."""
    leaf = name.split(".")[-1]
    dim = embedding_dim if leaf == "tok_embeddings" else PARTS_DIM.get(leaf)
    if dim is None:
        return x
    assert x.shape[dim] % shards == 0, f"{name} {x.shape} in {shards} shards"
    return np.ascontiguousarray(np.split(x, shards, axis=dim)[shard])


def write_meta(directory, config, weights, dtype="bf16", shards=1, embedding_dim=1, share_output=False):
    """params.json and consolidated.NN.pth. `embedding_dim` is what shards partition
    the embedding by; `share_output` gives a tied model an "output" that is the
    embedding's own storage."""
    os.makedirs(directory)
    params = {
        "dim": config.dim,
        "n_layers": config.layers,
        "n_heads": config.heads,
        "n_kv_heads": config.kv_heads,
        "vocab_size": config.vocab,
        "multiple_of": config.multiple_of,
        "norm_eps": config.eps,
        "rope_theta": config.theta,
    }
    if config.ffn_dim_multiplier is not None:
        params["ffn_dim_multiplier"] = config.ffn_dim_multiplier
    if config.scaling is not None:
        params["use_scaled_rope"] = True
    assert config.head_size * config.heads == config.dim
    with open(os.path.join(directory, "params.json"), "w") as f:
        json.dump(params, f)
    for shard in range(shards):
        parts = {n: split(n, x, shards, shard, embedding_dim) for n, x in weights.items()}
        shared = [("output", "tok_embeddings")] if share_output else []
        write_pth(os.path.join(directory, f"consolidated.{shard:02}.pth"), parts, dtype, shared)
    return directory


# --- Hugging Face -----------------------------------------------------------

HF_NAMES = {
    "attention.wq": "self_attn.q_proj",
    "attention.wk": "self_attn.k_proj",
    "attention.wv": "self_attn.v_proj",
    "attention.wo": "self_attn.o_proj",
    "feed_forward.w1": "mlp.gate_proj",
    "feed_forward.w2": "mlp.down_proj",
    "feed_forward.w3": "mlp.up_proj",
    "attention_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "attention.bq": "self_attn.q_proj",
    "attention.bk": "self_attn.k_proj",
    "attention.bv": "self_attn.v_proj",
    "attention.q_norm": "self_attn.q_norm",
    "attention.k_norm": "self_attn.k_norm",
    "attention.wqkv": "self_attn.qkv_proj",
    "feed_forward.w13": "mlp.gate_up_proj",
    "attention_post_norm": "post_attention_layernorm",
    "ffn_post_norm": "post_feedforward_layernorm",
}


def hf_name(name, family=LLAMA):
    top = {"tok_embeddings": "model.embed_tokens", "norm": "model.norm", "output": "lm_head"}
    if name in top:
        return top[name] + ".weight"
    layer, rest = layer_and_name(name)
    kind = "bias" if name.endswith(BIASES) else "weight"
    return f"model.{layer}{(HF_NAMES | family.hf_names)[rest]}.{kind}"


def to_halves(x, head_size):
    """Rows of each head from pairs (2i, 2i + 1) to halves (i, i + h/2)."""
    heads = x.reshape(-1, head_size // 2, 2, *x.shape[1:])
    return np.ascontiguousarray(heads.swapaxes(1, 2).reshape(x.shape))


def write_safetensors(path, tensors, dtype):
    """A safetensors file; numpy has no bf16, so that header is written here."""
    if dtype != "bf16":
        kind = {"f32": np.float32, "f16": np.float16}[dtype]
        save_file({n: x.astype(kind) for n, x in tensors.items()}, path, metadata={"format": "pt"})
        return
    header, offset = {"__metadata__": {"format": "pt"}}, 0
    for name, x in tensors.items():
        header[name] = {"dtype": "BF16", "shape": list(x.shape), "data_offsets": [offset, offset + 2 * x.size]}
        offset += 2 * x.size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text)
        for x in tensors.values():
            f.write(to_bf16_bits(x).tobytes())


def hf_tensors(config, weights, family):
    """The tensors of model.safetensors."""
    tensors = {}
    for name, x in weights.items():
        if name.endswith(ROTARY):
            x = to_halves(x, config.head_size)
        if family.shifted_norms and name.endswith("norm"):
            x = x - 1
        tensors[name] = x
    return {hf_name(name, family): x for name, x in fuse(tensors, family).items()}


def write_huggingface(directory, config, weights, dtype="bf16", shards=1, family=LLAMA, settings=None):
    """config.json and model.safetensors, or shards with an index. `settings`
    is more of config.json."""
    os.makedirs(directory)
    torch_dtype = {"bf16": "bfloat16", "f16": "float16", "f32": "float32"}[dtype]
    said = {
        "architectures": [family.architecture],
        "model_type": family.model_type,
        "hidden_act": "silu",
        "hidden_size": config.dim,
        "intermediate_size": config.ffn,
        "num_hidden_layers": config.layers,
        "num_attention_heads": config.heads,
        "num_key_value_heads": config.kv_heads,
        "vocab_size": config.vocab,
        "max_position_embeddings": 4096,
        "rms_norm_eps": config.eps,
        "rope_theta": config.theta,
        "tie_word_embeddings": config.tied,
        "torch_dtype": torch_dtype,
    }
    if isinstance(config.scaling, LinearScaling):
        said["rope_scaling"] = {"rope_type": "linear", "factor": config.scaling.factor}
    elif config.scaling is not None:
        said["rope_scaling"] = {
            "rope_type": "llama3",
            "factor": config.scaling.factor,
            "low_freq_factor": config.scaling.low_freq_factor,
            "high_freq_factor": config.scaling.high_freq_factor,
            "original_max_position_embeddings": int(config.scaling.old_context),
        }
    said |= family.settings(config) | (settings or {})
    with open(os.path.join(directory, "config.json"), "w") as f:
        json.dump({key: value for key, value in said.items() if value is not ABSENT}, f)
    tensors = hf_tensors(config, weights, family)
    if shards == 1:
        write_safetensors(os.path.join(directory, "model.safetensors"), tensors, dtype)
        return directory
    where = {}
    for shard in range(shards):
        file = f"model-{shard + 1:05}-of-{shards:05}.safetensors"
        part = {n: tensors[n] for n in sorted(tensors)[shard::shards]}
        write_safetensors(os.path.join(directory, file), part, dtype)
        where |= {n: file for n in part}
    size = sum(x.size for x in tensors.values()) * STORAGE[dtype][1]
    with open(os.path.join(directory, "model.safetensors.index.json"), "w") as f:
        json.dump({"metadata": {"total_size": size}, "weight_map": where}, f)
    return directory


# --- GGUF -------------------------------------------------------------------

GGUF_NAMES = {
    "attention.wq": "attn_q",
    "attention.wk": "attn_k",
    "attention.wv": "attn_v",
    "attention.wo": "attn_output",
    "feed_forward.w1": "ffn_gate",
    "feed_forward.w2": "ffn_down",
    "feed_forward.w3": "ffn_up",
    "attention_norm": "attn_norm",
    "ffn_norm": "ffn_norm",
    "attention.bq": "attn_q",
    "attention.bk": "attn_k",
    "attention.bv": "attn_v",
    "attention.q_norm": "attn_q_norm",
    "attention.k_norm": "attn_k_norm",
    "attention.wqkv": "attn_qkv",
    "feed_forward.w13": "ffn_up",
    "attention_post_norm": "post_attention_norm",
    "ffn_post_norm": "post_ffw_norm",
}


def gguf_name(name):
    top = {"tok_embeddings": "token_embd", "norm": "output_norm", "output": "output"}
    if name in top:
        return top[name] + ".weight"
    layer, rest = layer_and_name(name)
    kind = "bias" if name.endswith(BIASES) else "weight"
    return f"{layer.replace('layers', 'blk')}{GGUF_NAMES[rest]}.{kind}"


def random_blocks(rng, shape, kind, deviation):
    """Blocks of a format of RANDOM_BLOCKS: random bytes, but for the scales,
    which spread the elements as `deviation` says."""
    place, offset_place, share = RANDOM_BLOCKS[kind.name]
    elements, size = gguf.GGML_QUANT_SIZES[kind]
    rows, cols = shape
    blocks = rng.integers(0, 256, (rows * cols // elements, size), np.uint8)

    def set_scale(value):
        for at, half in ((place, value), (offset_place, share * value)):
            if at is not None:
                blocks[:, at : at + 2] = np.frombuffer(np.float16(half).tobytes(), np.uint8)

    set_scale(2.0**-8)
    spread = gguf.quants.dequantize(blocks[:64], kind).std()
    set_scale(2.0**-8 / spread * deviation)
    return blocks.reshape(rows, -1)


def quantise(weights, type_name, seed=1):
    """(stored, values): each matrix in the GGUF type `type_name` and the
    float32 numbers that stands for; vectors stay float32."""
    kind = GgmlType[type_name]
    rng = np.random.default_rng(seed)
    stored, values = {}, {}
    for name, x in weights.items():
        if x.ndim == 1:
            stored[name], values[name] = (x, GgmlType.F32), x
            continue
        if type_name in RANDOM_BLOCKS:
            data = random_blocks(rng, x.shape, kind, x.std())
        else:
            data = gguf.quants.quantize(x, kind)
        stored[name] = (data, kind)
        values[name] = gguf.quants.dequantize(data, kind).reshape(x.shape)
    return stored, values


MERGES = ("t h", "th e")


def byte_vocabulary(size):
    """A byte-level vocabulary of `size` entries, at least 260: GPT-2's printable
    characters for the 256 bytes, what MERGES make, then special tokens."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    spare = iter(range(256, 512))
    tokens = [chr(b) if b in printable else chr(next(spare)) for b in range(256)]
    tokens += [merge.replace(" ", "") for merge in MERGES]
    return tokens + [f"<|t{i}|>" for i in range(size - len(tokens))]


def gguf_tensors(config, stored, family):
    """`stored` in the order of rows that the family has in GGUF, with those
    joined that it stores as one."""

    def join(parts):
        kinds = {kind for _, kind in parts}
        assert len(kinds) == 1
        return np.concatenate([data for data, _ in parts]), kinds.pop()

    ordered = dict(stored.items())
    if family.gguf_halves:
        for name, (data, kind) in stored.items():
            if name.endswith(ROTARY):
                ordered[name] = to_halves(data, config.head_size), kind
    return fuse(ordered, family, join)


def write_gguf(path, config, stored, name="random", merges=MERGES, family=LLAMA, chat_template=None, change=None, split=0):
    """A GGUF v3 file of `stored` (see quantise); `chat_template` as gguf takes it. `change` is given the writer before
    it writes. With `split` files of as many tensors."""
    writer = gguf.GGUFWriter(path, family.gguf_architecture, split_max_tensors=split)
    writer.add_name(name)
    writer.add_block_count(config.layers)
    writer.add_context_length(4096)
    writer.add_embedding_length(config.dim)
    writer.add_feed_forward_length(config.ffn)
    writer.add_head_count(config.heads)
    writer.add_head_count_kv(config.kv_heads)
    writer.add_layer_norm_rms_eps(config.eps)
    writer.add_rope_freq_base(config.theta)
    if isinstance(config.scaling, LinearScaling):
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(config.scaling.factor)
    elif config.scaling is not None:
        writer.add_tensor("rope_freqs.weight", rope_factors(config).astype(np.float32))
    family.metadata(writer, config)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("llama-bpe")
    writer.add_token_list(byte_vocabulary(config.vocab))
    writer.add_token_types([1] * 258 + [3] * (config.vocab - 258))
    writer.add_token_merges(list(merges))
    writer.add_bos_token_id(258)
    writer.add_eos_token_id(259)
    if chat_template:
        writer.add_chat_template(chat_template)
    for weight, (data, kind) in gguf_tensors(config, stored, family).items():
        writer.add_tensor(gguf_name(weight), data, raw_dtype=kind)
    if change:
        change(writer)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
