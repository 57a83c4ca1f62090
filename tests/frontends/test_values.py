# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values that the frontends read, against values written by other means.

Random weights are written as Meta, Hugging Face and GGUF models by
tests/e2e/make_model.py (zipfile and pickle, the safetensors and gguf packages),
read back with dump-checkpoint and compared bit by bit.
"""

import json
import os
import shutil
import sys
import unittest
from dataclasses import replace

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))

import support

support.require("numpy", "gguf", "safetensors", "llama_cpp_library")

import gguf
import numpy as np

import llama_cpp_library as llama_cpp
from llama_numpy import Config, LinearScaling, RopeScaling, forward, rope_factors
import model_families as families
from make_model import RANDOM_BLOCKS, quantise, random_weights, write_gguf, write_huggingface, write_meta, write_pth

DUMP = os.environ["LLAMAC_DUMP_CHECKPOINT"]

# Wide enough for the K formats' blocks of 256.
CONFIG = Config(256, 2, 8, 2, vocab=501, multiple_of=256)
TIED = Config(96, 2, 6, 2, vocab=333, multiple_of=32, tied=True, theta=10000.0)
SCALED = Config(128, 1, 4, 4, vocab=300, multiple_of=32, scaling=RopeScaling())
FORMATS = ("F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "MXFP4", *RANDOM_BLOCKS)


class BareName(str):
    """A tensor's name that write_pth appends no ".weight" to."""

    def __add__(self, suffix):
        return str(self)


def end_tokens(path):
    """The start and end tokens of a GGUF file, by the gguf package."""
    fields = gguf.GGUFReader(path).fields
    return [int(fields[f"tokenizer.ggml.{name}_token_id"].contents()) for name in ("bos", "eos")]


class ValuesCase(support.TestCase):
    def open(self, model, out="--config"):
        """The description dump-checkpoint prints."""
        if out != "--config":
            os.makedirs(out)
        result = support.run([DUMP, model, out])
        self.assertEqual(result.returncode, 0, result.stderr)
        self.warnings = result.stderr
        return json.loads(result.stdout)

    def check_config(self, got, config, tied=None, factors=None):
        expected = {
            "dim": config.dim,
            "layers": config.layers,
            "heads": config.heads,
            "kv_heads": config.kv_heads,
            "head_size": config.head_size,
            "ffn": config.ffn,
            "vocab": config.vocab,
            "eps": config.eps,
            "theta": config.theta,
            "tied": config.tied if tied is None else tied,
        }
        self.assertEqual({k: got[k] for k in expected}, expected)
        if factors is not None:
            self.assertEqual(got["rope_factors"], factors)
        elif config.scaling:
            s = config.scaling
            self.assertEqual(got["scaling"], [s.factor, s.low_freq_factor, s.high_freq_factor, s.old_context])
        else:
            self.assertNotIn("scaling", got)

    def check(self, model, weights, config, **options):
        """Opens `model` and compares its configuration and every weight."""
        out = model.rstrip("/") + ".weights"
        got = self.open(model, out)
        self.check_config(got, config, **options)
        self.assertEqual({n + ".f32" for n in weights}, set(os.listdir(out)))
        for name, x in weights.items():
            values = np.fromfile(os.path.join(out, name + ".f32"), np.uint32)
            expected = np.ascontiguousarray(x, np.float32).ravel().view(np.uint32)
            self.assertTrue(np.array_equal(values, expected), f"{name} differs in {(values != expected).sum()} values")
        return got


class Meta(ValuesCase):
    def test_types(self):
        for dtype in ("bf16", "f16", "f32"):
            with self.subTest(dtype):
                weights = random_weights(CONFIG, dtype)
                self.check(write_meta(self.path("meta-" + dtype), CONFIG, weights, dtype), weights, CONFIG)

    def test_shards(self):
        config = Config(96, 2, 6, 3, vocab=333, multiple_of=96)
        weights = random_weights(config)
        for split in (0, 1):
            with self.subTest(embedding_in_parts=split):
                model = write_meta(self.path(f"shards-{split}"), config, weights, shards=3, embedding_dim=split)
                self.check(model, weights, config)

    def test_tied(self):
        weights = random_weights(TIED)
        got = self.check(write_meta(self.path("tied"), TIED, weights), weights, TIED)
        self.assertEqual(got["context"], 4096)
        model = write_meta(self.path("shared"), TIED, weights, share_output=True)
        self.check(model, weights, TIED)

    def test_vocabulary_size_and_kv_heads_left_to_the_weights(self):
        config = Config(96, 1, 6, 6, vocab=333, multiple_of=96, theta=10000.0)
        weights = random_weights(config)
        for shards, split in ((1, 1), (3, 1), (3, 0)):
            model = write_meta(self.path(f"llama2-{shards}-{split}"), config, weights, shards=shards, embedding_dim=split)
            path = os.path.join(model, "params.json")
            with open(path) as f:
                params = json.load(f)
            params["vocab_size"] = -1
            del params["n_kv_heads"]
            del params["rope_theta"]
            with open(path, "w") as f:
                json.dump(params, f)
            self.check(model, weights, config)

    def test_rotary_frequencies_in_the_file_are_not_needed(self):
        weights = random_weights(TIED)
        model = write_meta(self.path("freqs"), TIED, weights)
        stored = weights | {BareName("rope.freqs"): np.ones(8, np.float32)}
        write_pth(os.path.join(model, "consolidated.00.pth"), stored, "bf16")
        self.check(model, weights, TIED)

    def test_scaled_rope(self):
        weights = random_weights(SCALED)
        got = self.check(write_meta(self.path("scaled"), SCALED, weights), weights, SCALED)
        self.assertEqual(got["context"], 131072)


class PublishedConfigurations(ValuesCase):
    """params.json as Meta publishes them; F and the rest from their papers."""

    PUBLISHED = {
        "Llama-3.2-1B": (
            dict(dim=2048, ffn_dim_multiplier=1.5, multiple_of=256, n_heads=32, n_kv_heads=8, n_layers=16,
                 norm_eps=1e-05, rope_theta=500000.0, use_scaled_rope=True, vocab_size=128256),
            dict(ffn=8192, head_size=64, context=131072, tied=True, scaling=[32, 1, 4, 8192]),
        ),
        "Llama-3.2-3B": (
            dict(dim=3072, ffn_dim_multiplier=1.0, multiple_of=256, n_heads=24, n_kv_heads=8, n_layers=28,
                 norm_eps=1e-05, rope_theta=500000.0, use_scaled_rope=True, vocab_size=128256),
            dict(ffn=8192, head_size=128, context=131072, tied=True, scaling=[32, 1, 4, 8192]),
        ),
        "Llama-3-8B": (
            dict(dim=4096, n_layers=32, n_heads=32, n_kv_heads=8, vocab_size=128256, multiple_of=1024,
                 ffn_dim_multiplier=1.3, norm_eps=1e-05, rope_theta=500000.0),
            dict(ffn=14336, head_size=128, context=8192, tied=False),
        ),
        "Llama-3.1-70B": (
            dict(dim=8192, ffn_dim_multiplier=1.3, multiple_of=4096, n_heads=64, n_kv_heads=8, n_layers=80,
                 norm_eps=1e-05, rope_theta=500000.0, use_scaled_rope=True, vocab_size=128256),
            dict(ffn=28672, head_size=128, context=131072, tied=False, scaling=[8, 1, 4, 8192]),
        ),
        "Llama-2-7B": (
            dict(dim=4096, multiple_of=256, n_heads=32, n_layers=32, norm_eps=1e-05, vocab_size=32000),
            dict(ffn=11008, head_size=128, context=4096, kv_heads=32, tied=False, theta=10000.0),
        ),
    }

    def test_params(self):
        for name, (params, expected) in self.PUBLISHED.items():
            with self.subTest(name):
                path = self.path(name + ".json")
                with open(path, "w") as f:
                    json.dump(params, f)
                got = self.open(path)
                self.assertEqual({k: got.get(k) for k in expected}, expected)


class HuggingFace(ValuesCase):
    def test_types_and_files(self):
        for dtype, shards in (("bf16", 1), ("f16", 2), ("f32", 3)):
            with self.subTest(dtype):
                weights = random_weights(CONFIG, dtype)
                model = write_huggingface(self.path("hf-" + dtype), CONFIG, weights, dtype, shards)
                self.check(model, weights, CONFIG)

    def test_tied_and_scaled(self):
        weights = random_weights(TIED)
        self.check(write_huggingface(self.path("tied"), TIED, weights), weights, TIED)
        config = Config(128, 1, 4, 4, vocab=300, multiple_of=32, scaling=RopeScaling(32.0))
        weights = random_weights(config)
        self.check(write_huggingface(self.path("scaled"), config, weights), weights, config)

    def test_head_beside_tied_embeddings(self):
        """Is not used, which a warning says, unless it is a copy."""
        weights = random_weights(TIED)
        embedding = weights["tok_embeddings"]
        for name, head, warns in (("copy", embedding, False), ("own", embedding[::-1].copy(), True)):
            with self.subTest(name):
                model = write_huggingface(self.path(name), TIED, weights | {"output": head})
                self.check(model, weights, TIED)
                self.assertEqual("lm_head.weight: is not used" in self.warnings, warns, self.warnings)

    def test_defaults_are_those_of_the_family(self):
        """Which transformers' classes of configurations have."""
        for family, eps, theta, context in (
            (families.LLAMA, 1e-6, 1e4, 2048),
            (families.MISTRAL, 1e-6, 1e4, 131072),
            (families.QWEN2, 1e-6, 1e4, 32768),
            (families.QWEN3, 1e-6, 1e4, 32768),
            (families.GRANITE, 1e-6, 1e4, 2048),
            (families.SMOLLM3, 1e-6, 2e6, 32768),
            (families.OLMO2, 1e-5, 1e4, 2048),
            (families.PHI3, 1e-5, 1e4, 4096),
            (families.GEMMA3, 1e-6, 1e6, 131072),
        ):
            with self.subTest(family.model_type):
                path = self.path(family.model_type + ".json")
                with open(path, "w") as f:
                    json.dump({"architectures": [family.architecture], "hidden_size": 256, "num_hidden_layers": 30,
                               "num_attention_heads": 4, "intermediate_size": 256, "vocab_size": 64}, f)
                got = self.open(path)
                self.assertEqual((got["eps"], got["theta"], got["context"]), (eps, theta, context))

    def test_windows_are_used_where_the_switch_says_so(self):
        """Qwen's layers from the 28th on, of 4096 tokens, unless the file says other numbers."""
        for settings, windows in (
            ({}, []),
            ({"sliding_window": 16}, []),
            ({"use_sliding_window": True}, [0] * 28 + [4096] * 2),
            ({"use_sliding_window": True, "sliding_window": 16, "max_window_layers": 29}, [0] * 29 + [16]),
        ):
            with self.subTest(settings):
                path = self.path("windows.json")
                with open(path, "w") as f:
                    json.dump({"architectures": ["Qwen2ForCausalLM"], "hidden_size": 256, "num_hidden_layers": 30,
                               "num_attention_heads": 4, "intermediate_size": 256, "vocab_size": 64} | settings, f)
                self.assertEqual(self.open(path)["windows"], windows)

    def test_newer_spelling_of_the_rotary_parameters(self):
        model = write_huggingface(self.path("newer"), SCALED, random_weights(SCALED))
        path = os.path.join(model, "config.json")
        with open(path) as f:
            settings = json.load(f)
        settings["rope_parameters"] = settings.pop("rope_scaling") | {"rope_theta": settings.pop("rope_theta")}
        with open(path, "w") as f:
            json.dump(settings, f)
        self.check_config(self.open(model), SCALED)

    def test_generation_config_and_tokenizer(self):
        model = write_huggingface(self.path("generation"), TIED, random_weights(TIED))
        with open(os.path.join(model, "generation_config.json"), "w") as f:
            json.dump({"temperature": 0.6, "top_p": 0.9, "top_k": 50, "do_sample": True,
                       "bos_token_id": 1, "eos_token_id": [2, 7]}, f)
        for name in ("tokenizer.json", "tokenizer_config.json"):
            with open(os.path.join(model, name), "w") as f:
                f.write("{}")
        got = self.open(model)
        expected = {"temperature": 0.6, "top_p": 0.9, "top_k": 50, "bos": 1, "stop_ids": [2, 7],
                    "tokenizer": "huggingface",
                    "tokenizer_paths": [os.path.join(model, n) for n in ("tokenizer.json", "tokenizer_config.json")]}
        self.assertEqual({k: got.get(k) for k in expected}, expected)


class Gguf(ValuesCase):
    def test_types(self):
        weights = random_weights(CONFIG, "f32")
        for kind in FORMATS:
            with self.subTest(kind):
                stored, values = quantise(weights, kind)
                model = write_gguf(self.path(kind + ".gguf"), CONFIG, stored)
                got = self.check(model, values, CONFIG)
                bos, eos = end_tokens(model)
                expected = {"format": "gguf", "tokenizer": "gguf", "bos": bos, "stop_ids": [eos], "context": 4096}
                self.assertEqual({k: got.get(k) for k in expected}, expected)

    def test_rotary_factors(self):
        stored, values = quantise(random_weights(SCALED), "BF16")
        model = write_gguf(self.path("scaled.gguf"), SCALED, stored)
        factors = rope_factors(SCALED).astype(np.float32).tolist()
        self.check(model, values, SCALED, factors=factors)

    def test_scaling_by_type_factor_and_tensor(self):
        """The type says whether the factor counts, which is beside the tensor; llama.cpp's logits say the same."""
        tensor = rope_factors(SCALED)
        stored, values = quantise(random_weights(replace(SCALED, scaling=None)), "F32")
        tokens = list(range(40, 72))
        for name, keys, with_tensor, expected in (
            ("linear", {"scaling.type": "linear", "scaling.factor": 4.0}, False, 4.0),
            ("none", {"scaling.type": "none", "scaling.factor": 4.0}, False, 1.0),
            ("none, by the older name", {"scaling.type": "none", "scale_linear": 4.0}, False, 1.0),
            ("no type", {"scaling.factor": 4.0}, False, 4.0),
            ("no type, by the older name", {"scale_linear": 4.0}, False, 4.0),
            ("both names", {"scaling.factor": 2.0, "scale_linear": 4.0}, False, 2.0),
            ("a factor of 0", {"scaling.factor": 0.0}, False, 1.0),
            ("a tensor", {}, True, tensor),
            ("a tensor without a type", {"scaling.type": "none", "scaling.factor": 4.0}, True, tensor),
            ("a tensor and a factor", {"scaling.type": "linear", "scaling.factor": 4.0}, True, 4.0 * tensor),
        ):
            with self.subTest(name):

                def change(writer, keys=keys, with_tensor=with_tensor):
                    for key, value in keys.items():
                        add = writer.add_string if isinstance(value, str) else writer.add_float32
                        add(f"llama.rope.{key}", value)
                    if with_tensor:
                        writer.add_tensor("rope_freqs.weight", tensor.astype(np.float32))

                plain = replace(SCALED, scaling=None)
                model = write_gguf(self.path("factors.gguf"), plain, stored, change=change)
                factors = np.broadcast_to(expected, tensor.shape)
                got = self.open(model)["rope_factors"] or [1.0] * len(tensor)
                self.assertTrue(np.allclose(got, factors, rtol=1e-6), got)
                logits = forward(replace(SCALED, scaling=LinearScaling(factors)), values, tokens)
                other = llama_cpp.Llama(model, 64, cache=llama_cpp.F32).logits(tokens)
                self.assertLess(np.abs(logits - other).max(), 5e-5 * np.abs(logits).max())

    def test_several_files(self):
        """A path names the first of them or their directory; tensors that decide the configuration may be in any."""
        weights = random_weights(SCALED)
        stored, values = quantise(weights, "F16")
        factors = rope_factors(SCALED).astype(np.float32).tolist()
        for size in (2, 5):
            folder = self.path(f"parts-{size}")
            os.makedirs(folder)
            write_gguf(os.path.join(folder, "model.gguf"), SCALED, stored, split=size)
            first, *others = sorted(os.listdir(folder))
            self.assertGreater(len(others), 1)
            for model in (folder, os.path.join(folder, first)):
                with self.subTest(model):
                    self.check(model, values, SCALED, factors=factors)
                    shutil.rmtree(model.rstrip("/") + ".weights")

    def test_models_of_the_benchmarks(self):
        script = os.path.join(support.ROOT, "scripts", "make_gguf.py")
        for kind in ("Q8_0", "Q4_K"):
            with self.subTest(kind):
                model = self.path("made.gguf")
                result = support.run([sys.executable, script, model, "--shape", "toy", "--type", kind])
                self.assertEqual(result.returncode, 0, result.stderr)
                self.check_config(self.open(model, self.path(kind)), CONFIG)
                matrix = np.fromfile(self.path(kind, "layers.1.attention.wq.f32"), np.float32)
                self.assertAlmostEqual(matrix.std() * CONFIG.dim**0.5, 1, delta=0.05)

    def test_a_directory_with_one_file(self):
        stored, values = quantise(random_weights(TIED), "F16")
        os.makedirs(self.path("dir"))
        write_gguf(self.path("dir", "model.gguf"), TIED, stored)
        self.check(self.path("dir"), values, TIED)


if __name__ == "__main__":
    unittest.main()
