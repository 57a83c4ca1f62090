# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Model directories that are malformed or not supported.

Each case changes a good model in one way. The refusal has exit code 3 (bad file)
or 4 (not supported) and is one line that names the file, the field, what was
expected and what was found.
"""

import json
import os
import shutil
import unittest

import numpy as np

from test_values import DUMP, ValuesCase, support
from llama_numpy import Config
from make_model import (
    hf_name,
    quantise,
    random_weights,
    write_gguf,
    write_huggingface,
    write_meta,
    write_pth,
    write_safetensors,
)

import gguf

CONFIG = Config(64, 2, 4, 2, vocab=300, multiple_of=32)
WEIGHTS = random_weights(CONFIG)


class MalformedCase(ValuesCase):
    def refused(self, model, *pieces, exit_code=support.BAD_FILE, form=True):
        result = support.run([DUMP, model, self.path("unused")])
        os.makedirs(self.path("unused"), exist_ok=True)
        message = result.stderr.rstrip("\n")
        self.assertEqual(result.returncode, exit_code, message or "was accepted")
        self.assertNotIn("\n", message)
        if form:
            self.assertRegex(message, r"^[^:]+:\d+(:\d+)?: .+: expected .+, got .+$")
        for piece in pieces:
            self.assertIn(piece, message)

    def edit_json(self, path, change):
        with open(path) as f:
            value = json.load(f)
        change(value)
        with open(path, "w") as f:
            json.dump(value, f)


class BadMeta(MalformedCase):
    def model(self, weights=WEIGHTS, **options):
        shutil.rmtree(self.path("meta"), ignore_errors=True)
        return write_meta(self.path("meta"), CONFIG, weights, **options)

    def test_params(self):
        def drop(key):
            return lambda p: p.pop(key)

        def put(**fields):
            return lambda p: p.update(fields)

        unsupported = support.UNSUPPORTED
        for name, change, pieces, exit_code in [
            ("no dim", drop("dim"), ["dim", "no such key"], 3),
            ("dim is text", put(dim="64"), [": dim:", '"64"'], 3),
            ("dim is zero", put(dim=0), [": dim:", "got 0"], 3),
            ("dim is huge", put(dim=1 << 40), [": dim:", str(1 << 40)], 3),
            ("no heads", put(n_heads=0), ["n_heads", "got 0"], 3),
            ("heads do not divide", put(n_heads=5), ["n_heads", "64", "got 5"], 3),
            ("kv heads do not divide", put(n_kv_heads=3), ["n_kv_heads", "4", "got 3"], 3),
            ("too many layers", put(n_layers=3), ["layers.2.attention_norm.weight", "none"], 3),
            ("absurdly many layers", put(n_layers=1 << 30), ["n_layers", "10000"], 3),
            ("too few layers", put(n_layers=1), ["layers.1.", "only the tensors"], unsupported),
            ("no layers", put(n_layers=0), ["n_layers", "got 0"], 3),
            ("another vocabulary", put(vocab_size=301), ["tok_embeddings.weight", "[301, 64]", "[300, 64]"], 3),
            ("another ffn size", put(multiple_of=256), ["feed_forward.w1.weight", "[256, 64]", "[192, 64]"], 3),
            ("multiple_of is zero", put(multiple_of=0), ["multiple_of", "got 0"], 3),
            ("negative multiplier", put(ffn_dim_multiplier=-1.0), ["ffn_dim_multiplier", "-1"], 3),
            ("eps is zero", put(norm_eps=0), ["norm_eps", "got 0"], 3),
            ("theta is negative", put(rope_theta=-1.0), ["rope_theta", "-1"], 3),
            ("scaled is text", put(use_scaled_rope="yes"), ["use_scaled_rope", '"yes"'], 3),
            ("factor is zero", put(use_scaled_rope=True, rope_scaling_factor=0), ["rope_scaling_factor"], 3),
            ("context is zero", put(max_seq_len=0), ["context", "got 0"], 3),
            ("odd head size", put(head_dim=12), ["head size", "8", "got 12"], unsupported),
            ("quantised", put(quantization_args={"scheme": "int4"}), ["quantization_args"], unsupported),
            ("adapters", put(lora_args={"rank": 16}), ["lora_args"], unsupported),
            ("vision", put(vision_chunk_size=448), ["vision_chunk_size", "vision"], unsupported),
            ("a window", put(sliding_window=8), ["sliding_window", "window"], unsupported),
            ("a key that is not known", put(attention_chunk=8), ["attention_chunk", "only the keys", "8"], unsupported),
            ("another ffn size, said", put(hidden_dim=200), ["feed_forward.w1.weight", "[200, 64]", "[192, 64]"], 3),
        ]:
            with self.subTest(name):
                model = self.model()
                self.edit_json(os.path.join(model, "params.json"), change)
                self.refused(model, *pieces, exit_code=exit_code)

    def test_invalid_json(self):
        for text, piece in (("", "JSON"), ("[]", "root"), ("{", "JSON"), ("[" * 100000, "nesting"),
                            ('{"dim": 64, "dim": 64}', "used once")):
            with self.subTest(text[:20]):
                model = self.model()
                with open(os.path.join(model, "params.json"), "w") as f:
                    f.write(text)
                self.refused(model, "params.json", piece)

    def test_tensors(self):
        wq = "layers.1.attention.wq"
        without = {n: x for n, x in WEIGHTS.items() if n != wq}
        for name, weights, pieces, exit_code in [
            ("missing", without, [wq + ".weight", "[64, 64]", "none"], 3),
            ("another shape", WEIGHTS | {wq: np.zeros((64, 32), np.float32)}, [wq, "[64, 64]", "[64, 32]"], 3),
            ("a vector", WEIGHTS | {wq: np.zeros(4096, np.float32)}, [wq, "[64, 64]", "[4096]"], 3),
            ("a matrix for a norm", WEIGHTS | {"norm": np.zeros((1, 64), np.float32)}, ["norm.weight", "[64]"], 3),
            ("one too many", WEIGHTS | {"layers.0.extra": np.zeros(3, np.float32)}, ["layers.0.extra"], 4),
        ]:
            with self.subTest(name):
                self.refused(self.model(weights), *pieces, exit_code=exit_code)

    def test_shards(self):
        config = Config(64, 1, 4, 2, vocab=300, multiple_of=32)
        weights = random_weights(config)

        def sharded():
            shutil.rmtree(self.path("shards"), ignore_errors=True)
            return write_meta(self.path("shards"), config, weights, shards=2)

        model = sharded()
        os.rename(os.path.join(model, "consolidated.01.pth"), os.path.join(model, "consolidated.02.pth"))
        self.refused(model, "expected consolidated.01.pth", "got consolidated.02.pth", form=False)
        model = sharded()
        os.remove(os.path.join(model, "consolidated.01.pth"))
        self.refused(model, "tok_embeddings.weight", "[300, 64]", "[300, 32]")
        model = sharded()
        shutil.copy(os.path.join(model, "consolidated.01.pth"), os.path.join(model, "consolidated.02.pth"))
        self.refused(model, "tok_embeddings.weight", "3 shards")
        model = sharded()
        write_pth(os.path.join(model, "consolidated.01.pth"), {"norm": weights["norm"]}, "bf16")
        self.refused(model, "consolidated.01.pth", "tok_embeddings.weight", "none")


class BadHuggingFace(MalformedCase):
    def model(self, **options):
        shutil.rmtree(self.path("hf"), ignore_errors=True)
        return write_huggingface(self.path("hf"), CONFIG, WEIGHTS, **options)

    def test_config(self):
        def drop(key):
            return lambda p: p.pop(key)

        def put(**fields):
            return lambda p: p.update(fields)

        def scaling(**fields):
            llama3 = {"rope_type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4,
                      "original_max_position_embeddings": 8192}
            return put(rope_scaling={k: v for k, v in (llama3 | fields).items() if v is not None})

        for name, change, pieces, exit_code in [
            ("Mamba", put(architectures=["MambaForCausalLM"]), ["architectures", "MambaForCausalLM", "or Gemma3"], 4),
            ("another type", put(model_type="mamba"), ["model_type", "mamba", "\"llama\""], 4),
            ("two families", put(model_type="qwen2"), ["model_type", "qwen2", "\"llama\""], 4),
            ("a type alone", lambda p: [p.pop("architectures"), p.update(model_type="mamba")],
             ["model_type", "mamba", "or gemma3_text"], 4),
            ("a window", put(sliding_window=8), ["sliding_window", "none", "8"], 4),
            ("layers with a window", put(layer_types=["full_attention", "sliding_attention"]),
             ["layer_types", "sliding_attention"], 4),
            ("other layers", put(layer_types=["full_attention", "linear_attention"]),
             ["layer_types", "linear_attention"], 4),
            ("a layer too many", put(layer_types=["full_attention"] * 3), ["layer_types", "2, one a layer", "3"], 3),
            ("thetas by kind", put(rope_parameters={"full_attention": {"rope_theta": 1e4}}),
             ["rope_parameters", "one for each kind"], 4),
            ("capped scores", put(attn_logit_softcapping=50.0), ["attn_logit_softcapping", "50"], 4),
            ("capped logits", put(final_logit_softcapping=30.0), ["final_logit_softcapping", "30"], 4),
            ("no architecture", lambda p: [p.pop("architectures"), p.pop("model_type")], ["architectures"], 3),
            ("architectures is text", put(architectures="LlamaForCausalLM"), ["architectures", "array"], 3),
            ("another activation", put(hidden_act="gelu"), ["hidden_act", "gelu"], 4),
            ("attention bias", put(attention_bias=True), ["attention_bias"], 4),
            ("mlp bias", put(mlp_bias=True), ["mlp_bias"], 4),
            ("partial rotary", put(partial_rotary_factor=0.5), ["partial_rotary_factor", "0.5"], 4),
            ("quantised", put(quantization_config={"quant_method": "hqq"}), ["quantization_config", "HQQ"], 4),
            ("yarn", put(rope_scaling={"rope_type": "yarn", "factor": 4}), ["rope_type", "yarn"], 4),
            ("partial rotation among the newer", put(rope_parameters={"rope_type": "default", "partial_rotary_factor": 0.5}),
             ["partial_rotary_factor", "0.5"], 4),
            ("positions of images", put(rope_scaling={"type": "default", "mrope_section": [2, 3, 3]}), ["mrope_section"], 4),
            ("both directions", put(use_bidirectional_attention=True), ["use_bidirectional_attention"], 4),
            ("no positions", put(position_embedding_type="nope"), ["position_embedding_type", "nope"], 4),
            ("clipped", put(clip_qkv=8.0), ["clip_qkv", "8"], 4),
            ("dynamic, the old way", put(rope_scaling={"type": "dynamic", "factor": 4}), ["type", "dynamic"], 4),
            ("linear without a factor", put(rope_scaling={"type": "linear"}), ["factor", "none"], 3),
            ("yarn, the new way", put(rope_parameters={"rope_type": "yarn"}), ["rope_type", "yarn"], 4),
            ("scaling is text", put(rope_scaling="llama3"), ["rope_scaling", "an object"], 3),
            ("no factor", scaling(factor=None), ["factor", "none"], 3),
            ("negative factor", scaling(factor=-8), ["factor", "-8"], 3),
            ("factors reversed", scaling(high_freq_factor=1), ["high_freq_factor", "low_freq_factor"], 3),
            ("no width", drop("hidden_size"), ["hidden_size", "no such key"], 3),
            ("no ffn size", drop("intermediate_size"), ["intermediate_size", "no such key"], 3),
            ("no vocabulary", drop("vocab_size"), ["vocab_size", "no such key"], 3),
            ("no heads", put(num_attention_heads=0), ["num_attention_heads"], 3),
            ("another width", put(hidden_size=128), ["[300, 128]", "[300, 64]"], 3),
            ("another ffn size", put(intermediate_size=200), ["mlp.gate_proj.weight", "[200, 64]"], 3),
            ("kv heads do not divide", put(num_key_value_heads=3), ["n_kv_heads", "got 3"], 3),
            ("fractional layers", put(num_hidden_layers=1.5), ["num_hidden_layers", "1.5"], 3),
        ]:
            with self.subTest(name):
                model = self.model()
                self.edit_json(os.path.join(model, "config.json"), change)
                self.refused(model, *pieces, exit_code=exit_code)

    def test_tensors(self):
        for name, change, pieces, exit_code in [
            ("no head", lambda t: t.pop("lm_head.weight"), ["lm_head.weight", "none"], 3),
            ("no norm", lambda t: t.pop("model.norm.weight"), ["model.norm.weight", "none"], 3),
            ("bias", lambda t: t.update({"model.layers.0.self_attn.q_proj.bias": np.zeros(64, np.float32)}),
             ["q_proj.bias", "without biases"], 4),
        ]:
            with self.subTest(name):
                model = self.model()
                tensors = {hf_name(n): x for n, x in WEIGHTS.items()}
                change(tensors)
                write_safetensors(os.path.join(model, "model.safetensors"), tensors, "bf16")
                self.refused(model, *pieces, exit_code=exit_code)

    def test_index(self):
        for name, change, pieces in [
            ("no map", lambda p: p.pop("weight_map"), ["weight_map", "none"]),
            ("a path outside", lambda p: p["weight_map"].update({"model.norm.weight": "../m.safetensors"}),
             ["model.norm.weight", "../m.safetensors"]),
            ("not a file of tensors", lambda p: p["weight_map"].update({"model.norm.weight": "config.json"}),
             ["model.norm.weight", "config.json"]),
            ("a number", lambda p: p["weight_map"].update({"model.norm.weight": 1}), ["model.norm.weight", "a string"]),
            ("another file", lambda p: p["weight_map"].update({
                "model.norm.weight": next(n for n in ("model-00001-of-00002.safetensors",
                                                      "model-00002-of-00002.safetensors")
                                          if n != p["weight_map"]["model.norm.weight"])}),
             ["model.norm.weight", "as the index says"]),
            ("a tensor left out", lambda p: p["weight_map"].pop("model.norm.weight"),
             ["model.norm.weight", "an entry in the index"]),
        ]:
            with self.subTest(name):
                model = self.model(shards=2)
                self.edit_json(os.path.join(model, "model.safetensors.index.json"), change)
                self.refused(model, *pieces)
        model = self.model(shards=2)
        os.remove(os.path.join(model, "model-00002-of-00002.safetensors"))
        self.refused(model, "model-00002-of-00002.safetensors", "No such file", form=False)
        model = self.model(shards=2)
        os.remove(os.path.join(model, "model.safetensors.index.json"))
        shutil.copy(os.path.join(model, "model-00001-of-00002.safetensors"), os.path.join(model, "copy.safetensors"))
        self.refused(model, "a tensor in one file", "another in")

    def test_generation_config(self):
        for text, piece in (('{"temperature": -1}', "temperature"), ('{"top_p": 1.5}', "top_p"),
                            ('{"top_k": -2}', "top_k"), ('{"eos_token_id": "</s>"}', "eos_token_id"), ("{", "JSON")):
            with self.subTest(text):
                model = self.model()
                with open(os.path.join(model, "generation_config.json"), "w") as f:
                    f.write(text)
                self.refused(model, "generation_config.json", piece)


class BadGguf(MalformedCase):
    def model(self, config=CONFIG, change=lambda writer: None, architecture="llama", edit=lambda tensors: None):
        """A file whose metadata or tensors were changed on the way."""
        stored, _ = quantise(random_weights(config), "F16")
        edit(stored)
        original = gguf.GGUFWriter.write_header_to_file

        def spoil(writer, *args, **kwargs):
            change(writer)
            return original(writer, *args, **kwargs)

        gguf.GGUFWriter.write_header_to_file = spoil
        try:
            return write_gguf(self.path("model.gguf"), config, stored)
        finally:
            gguf.GGUFWriter.write_header_to_file = original

    def test_metadata(self):
        def drop(key):
            return lambda w: w.kv_data[0].pop(key)

        def put(key, value, kind):
            return lambda w: w.kv_data[0].update({key: gguf.gguf_writer.GGUFValue(value, kind)})

        t = gguf.GGUFValueType
        array = gguf.gguf_writer.GGUFValue([4, 4], t.ARRAY, t.UINT32)
        for name, change, pieces, exit_code in [
            ("no architecture", drop("general.architecture"), ["general.architecture", "none"], 3),
            ("another", put("general.architecture", "mamba", t.STRING),
             ["general.architecture", "mamba", "llama, ", "or gemma3"], 4),
            ("a family without its keys", put("general.architecture", "qwen2", t.STRING), ["qwen2.embedding_length"], 3),
            ("a window", put("llama.attention.sliding_window", 8, t.UINT32), ["sliding_window", "none", "8"], 4),
            ("experts", put("llama.expert_count", 8, t.UINT32), ["expert_count", "8"], 4),
            ("of three files", put("split.count", 3, t.UINT16), ["split.count", "-00001-of-00003.gguf", "model.gguf"], 3),
            ("both directions", put("llama.attention.causal", False, t.BOOL), ["attention.causal", "1", "got 0"], 4),
            ("a factor of attention", put("llama.rope.scaling.attn_factor", 1.2, t.FLOAT32), ["attn_factor", "1.2"], 4),
            ("a cap of logits", put("llama.final_logit_softcapping", 30.0, t.FLOAT32), ["final_logit_softcapping", "30"], 4),
            ("a scale of another family", put("llama.residual_scale", 0.5, t.FLOAT32), ["residual_scale", "0.5"], 4),
            ("a theta of another family", put("llama.rope.freq_base_swa", 100.0, t.FLOAT32), ["freq_base_swa", "100"], 4),
            ("parts of the frequencies of yarn", put("llama.rope.scaling.yarn_ext_factor", 1.0, t.FLOAT32), ["yarn_ext", "1"], 4),
            ("a key that is not known", put("llama.attention.sink", "x", t.STRING), ["attention.sink", "only the keys"], 4),
            ("yarn", put("llama.rope.scaling.type", "yarn", t.STRING), ["scaling.type", "yarn"], 4),
            ("a negative factor", put("llama.rope.scaling.factor", -4.0, t.FLOAT32), ["scaling.factor", "-4"], 3),
            ("heads by layer", lambda w: w.kv_data[0].update({"llama.attention.head_count": array}),
             ["head_count", "for each"], 4),
            ("partial rotary", put("llama.rope.dimension_count", 8, t.UINT32), ["dimension_count", "16", "8"], 4),
            ("other values", put("llama.attention.value_length", 32, t.UINT32), ["value_length", "32"], 4),
            ("no width", drop("llama.embedding_length"), ["llama.embedding_length", "no such key"], 3),
            ("no eps", drop("llama.attention.layer_norm_rms_epsilon"), ["layer_norm_rms_epsilon"], 3),
            ("width is text", put("llama.embedding_length", "64", t.STRING), ["embedding_length", "string"], 3),
            ("no heads", put("llama.attention.head_count", 0, t.UINT32), ["head_count", "got 0"], 3),
            ("another width", put("llama.embedding_length", 128, t.UINT32), ["token_embd.weight", "[300, 128]"], 3),
            ("another vocabulary", put("llama.vocab_size", 301, t.UINT32), ["vocab_size", "300", "got 301"], 3),
            ("another layer", put("llama.block_count", 3, t.UINT32), ["blk.2.attn_norm.weight", "none"], 3),
            ("a layer less", put("llama.block_count", 1, t.UINT32), ["blk.1.", "only the tensors"], 4),
            ("a negative token", put("tokenizer.ggml.bos_token_id", "one", t.STRING), ["bos_token_id", "string"], 3),
        ]:
            with self.subTest(name):
                self.refused(self.model(change=change), *pieces, exit_code=exit_code)

    def test_tensors(self):
        f32 = gguf.GGMLQuantizationType.F32
        for name, edit, pieces, exit_code in [
            ("missing", lambda t: t.pop("layers.0.attention.wk"), ["blk.0.attn_k.weight", "none"], 3),
            ("another shape", lambda t: t.update({"layers.0.attention.wk": (np.zeros((64, 64), np.float32), f32)}),
             ["blk.0.attn_k.weight", "[32, 64]", "[64, 64]"], 3),
            ("three sizes", lambda t: t.update({"layers.0.attention.wk": (np.zeros((2, 16, 64), np.float32), f32)}),
             ["blk.0.attn_k.weight"], 3),
        ]:
            with self.subTest(name):
                self.refused(self.model(edit=edit), *pieces, exit_code=exit_code)

    def test_rotary_factors(self):
        for shape, values in (((4,), 1.0), ((8,), -1.0), ((8,), np.inf)):
            with self.subTest(shape=shape, values=values):
                factors = np.full(shape, values, np.float32)
                change = lambda w: w.add_tensor("rope_freqs.weight", factors)
                self.refused(self.model(change=change), "rope_freqs.weight")

    def test_bias(self):
        change = lambda w: w.add_tensor("blk.0.attn_q.bias", np.zeros(64, np.float32))
        self.refused(self.model(change=change), "blk.0.attn_q.bias", "without biases", exit_code=support.UNSUPPORTED)

    def test_truncated(self):
        model = self.model()
        size = os.path.getsize(model)
        for keep in (0, 3, 7, 20, 100, 3000, size // 2, size - 40):
            with self.subTest(keep=keep):
                model = self.model()
                os.truncate(model, keep)
                self.refused(model, "model.gguf")


class BadParts(MalformedCase):
    """A GGUF model in three files of which one is wrong; each message is one line."""

    def parts(self, name="model", change=None):
        """The paths of the parts in a folder of their own."""
        stored, _ = quantise(random_weights(CONFIG), "F16")
        folder = self.path(name)
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        write_gguf(os.path.join(folder, f"{name}.gguf"), CONFIG, stored, name=name, split=8, change=change)
        return [os.path.join(folder, file) for file in sorted(os.listdir(folder))]

    def test_the_base_is_good(self):
        first, *others = self.parts()
        self.assertEqual(len(others), 2)
        self.open(first)

    def test_a_missing_part(self):
        for missing in (1, 2):
            parts = self.parts()
            os.remove(parts[missing])
            for model in (parts[0], os.path.dirname(parts[0])):
                with self.subTest(model, missing=missing):
                    self.refused(model, os.path.basename(parts[missing]), f"part {missing + 1} of 3", "got none", form=False)

    def test_without_the_first(self):
        _, second, third = self.parts()
        self.refused(second, "split.no", "got 1", "-00001-of-00003.gguf")
        os.remove(third)
        os.remove(self.path("model", "model-00001-of-00003.gguf"))
        self.refused(os.path.dirname(second), "split.no", "got 1")

    def test_another_name(self):
        first, *_ = self.parts()
        os.rename(first, self.path("model", "renamed.gguf"))
        self.refused(self.path("model", "renamed.gguf"), "split.count", "-00001-of-00003.gguf", "renamed.gguf")

    def test_parts_in_another_order(self):
        _, second, third = self.parts()
        os.rename(second, second + ".tmp")
        os.rename(third, second)
        os.rename(second + ".tmp", third)
        self.refused(self.path("model"), "00002-of-00003", "split.no", "expected 1", "got 2")

    def test_a_tensor_twice(self):
        def rename(writer):
            last = writer.tensors[-1]
            last["token_embd.weight"] = last.pop(next(iter(last)))

        self.parts(change=rename)
        self.refused(self.path("model"), "token_embd.weight", "a tensor in one part", "another in model-0000")

    def test_another_model_s_part(self):
        *_, third = self.parts("other", change=lambda writer: writer.add_tensor("extra.weight", np.zeros(32, np.float32)))
        *_, own = self.parts()
        shutil.copy(third, own)
        self.refused(self.path("model"), "00003-of-00003", "split.tensors.count", "as in the first part")

    def test_a_wrong_count(self):
        first, second, _ = self.parts()
        for part, key in ((first, "tensors.count"), (second, "count")):
            self.parts()
            reader = gguf.GGUFReader(part, "r+")
            field = reader.fields[f"split.{key}"]
            field.parts[field.data[0]][0] += 1
            del reader, field
            self.refused(self.path("model"), f"split.{key}", *([] if part == first else ["as in the first part"]))


class BadPaths(MalformedCase):
    def test_nothing_there(self):
        self.refused(self.path("none"), "No such file", form=False)
        self.refused(self.path("none.gguf"), "No such file", form=False)
        os.makedirs(self.path("empty"))
        self.refused(self.path("empty"), "expected params.json", "got 0 consolidated", form=False)

    def test_two_gguf_files(self):
        os.makedirs(self.path("two"))
        stored, _ = quantise(WEIGHTS, "F16")
        for name in ("a.gguf", "b.gguf"):
            write_gguf(self.path("two", name), CONFIG, stored)
        self.refused(self.path("two"), "2 *.gguf", form=False)

    def test_another_file(self):
        with open(self.path("notes.txt"), "w") as f:
            f.write("hello")
        self.refused(self.path("notes.txt"), "another file", form=False)

    def test_unknown_configuration(self):
        with open(self.path("x.json"), "w") as f:
            f.write('{"n_embd": 768}')
        result = support.run([DUMP, self.path("x.json"), "--config"])
        self.assertEqual(result.returncode, support.BAD_FILE)
        self.assertIn("hidden_size", result.stderr)


if __name__ == "__main__":
    unittest.main()
