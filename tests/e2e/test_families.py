# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Logits of Llama's relatives against a float64 forward of the same weights.

Each class below is one family: random weights as Hugging Face and GGUF models,
compared as test_logits.py does, and the float64 forward against llama.cpp on
the same GGUF in fp32. Where the two forms cannot say the same, or a family says
a thing in several ways, a test has a Config of its own.

    test_families.py       all families
    test_families.py Qwen2 one of them
"""

import json
import unittest
from dataclasses import replace

import support

support.require("numpy", "gguf", "safetensors", "llama_cpp_library")

import llama_cpp_library as llama_cpp
import model_families as families
import numpy as np

import test_logits
from llama_numpy import Config, LinearScaling, forward
from make_model import quantise, random_weights, write_gguf, write_huggingface

# fp32 with other orders of additions, as in test_oracle.py.
LLAMA_CPP_TOLERANCE = 2e-5
# llama.cpp looks GELU up by its operand in fp16, in a table of fp16.
LLAMA_CPP_GELU_TOLERANCE = 2.0**-11


class FamilyCase(test_logits.LogitsCase):
    """The comparisons of a family, which subclasses name."""

    family = None
    gguf_config = None  # Where it is not `config`.
    llama_cpp_tolerance = LLAMA_CPP_TOLERANCE
    gpu = "sm_90a"  # None where its kernels are those of another family.
    gpu_layers = ()  # The windows of fewer layers, where those have all kernels.
    gpu_cache = "f16"

    @classmethod
    def make_weights(cls):
        return random_weights(cls.config, cls.dtype, cls.seed, cls.family.shifted_norms)

    def compare_huggingface(self, config, name="hf", shards=1, settings=None):
        model = self.path(name)
        write_huggingface(model, config, self.weights, self.dtype, shards, self.family, settings)
        self.compare(model, self.weights, test_logits.CPU_TOLERANCE, config=config)

    def compare_gguf(self, config, name="bf16"):
        stored, values = quantise(self.weights, "BF16")
        model = write_gguf(self.path(f"{name}.gguf"), config, stored, family=self.family)
        self.compare(model, values, test_logits.CPU_TOLERANCE, config=config)

    def compare_llama_cpp(self, config, name="f32"):
        stored, values = quantise(self.weights, "F32")
        model = write_gguf(self.path(f"{name}.gguf"), config, stored, family=self.family)
        got = llama_cpp.Llama(model, 256, cache=llama_cpp.F32).logits(self.tokens)
        self.check(got, forward(config, values, self.tokens), self.llama_cpp_tolerance)

    def test_huggingface(self):
        self.compare_huggingface(self.config, shards=2)

    def test_check(self):
        """Passes and launches, on the cpu and on the simulator; every kernel of a GPU is one that runs there."""
        model = self.path("check")
        write_huggingface(model, self.config, self.weights, self.dtype, family=self.family)
        self.llamac("check", model)
        if self.gpu_layers:
            config = replace(self.config, layers=len(self.gpu_layers), windows=self.gpu_layers)
            model = self.path("check-gpu")
            weights = random_weights(config, self.dtype, self.seed, self.family.shifted_norms)
            write_huggingface(model, config, weights, self.dtype, family=self.family)
        # More than the 16 of a step of decode.
        tokens = ",".join(str(19 * i % self.config.vocab) for i in range(17))
        for gpu in support.by_tier((self.gpu,) if self.gpu else (), ("sm_80", "sm_89", "sm_90a")):
            with self.subTest(gpu):
                flags = ("--kv-type", self.gpu_cache, "--step-rows", 17)
                self.llamac("check", model, "--target", "sim", "--gpu", gpu, "--tokens", tokens, *flags)

    def test_gguf(self):
        self.compare_gguf(self.gguf_config or self.config)

    def test_llama_cpp(self):
        self.compare_llama_cpp(self.gguf_config or self.config)


class Qwen2(FamilyCase):
    """Biases of query, key and value, which an append of whole heads leaves to the products; tied."""

    family = families.QWEN2
    gpu_cache = "q8_0"
    config = Config(192, 2, 6, 2, vocab=501, eps=1e-6, theta=1e6, tied=True, qkv_bias=True)

    def test_window(self):
        self.compare_huggingface(replace(self.config, windows=(0, 11)), "window")


class KeysOfWindows(test_logits.LogitsCase):
    """The cache has a ring of keys for layers with a window, as long for every context."""

    family = families.QWEN2
    config = replace(Qwen2.config, windows=(0, 11))

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.model = cls.path("model")
        write_huggingface(cls.model, cls.config, cls.weights, cls.dtype, family=cls.family)

    def test_prompts_far_longer_than_the_ring(self):
        tokens = np.random.default_rng(8).integers(0, self.config.vocab, 1300).tolist()
        expected = forward(self.config, self.weights, tokens)
        for chunk in (len(tokens), 77, 1):
            with self.subTest(chunk):
                got = self.logits(self.model, tokens, "cpu", "--chunk", chunk)
                self.check(got, expected, test_logits.CPU_TOLERANCE)

    def test_check_past_the_ring(self):
        tokens = ",".join(str(i % self.config.vocab) for i in range(700))
        self.llamac("check", self.model, "--tokens", tokens)

    def test_memory(self):
        token = 2 * 2 * 32 * 2  # Key and value of two heads of 32, in fp16.
        ring = (11 + 512 - 1 + 63 + 63) // 64 * 64  # A window and the largest step, in whole pages of 64.
        for context in (512, 4096):
            plan = self.path("memory.plan")
            self.llamac("compile", self.model, "-o", plan, "-c", context)
            for what in ((plan,), (self.model, "-c", context)):
                with self.subTest(context, what=what):
                    memory = json.loads(self.llamac("inspect", *what, "--json").stdout)["memory"]
                    self.assertEqual(memory["kv_per_token"], 2 * token)
                    self.assertEqual(memory["kv_per_sequence"], (context + min(context, ring)) * token)


class Qwen3(FamilyCase):
    """Norms of the heads of query and key, which are wider than the model."""

    family = families.QWEN3
    config = Config(128, 2, 6, 2, vocab=499, head_size=32, eps=1e-6, theta=1e6, qk_norm="head")


class Mistral(FamilyCase):
    """A window in every layer, which begins in any place of a chunk. GGUF has no
    other form for it than Llama's."""

    family = families.MISTRAL
    config = Config(128, 3, 4, 2, vocab=501, theta=10000.0, windows=(9, 9, 9))
    every_chunk = True
    gpu = None
    test_gguf = test_llama_cpp = None

    def test_no_window(self):
        self.compare_huggingface(replace(self.config, windows=()), "whole")


class Granite(FamilyCase):
    """Scales of the embedding, the residual stream, attention and the logits; tied."""

    family = families.GRANITE
    config = Config(
        192,
        2,
        6,
        2,
        vocab=501,
        theta=10000.0,
        tied=True,
        embedding_scale=1.5,
        residual_scale=0.75,
        attention_scale=0.5,
        logits_scale=1 / 8,
    )


class SmolLM3(FamilyCase):
    """Layers without RoPE; tied. Only config.json can name other layers than each fourth."""

    family = families.SMOLLM3
    config = Config(128, 5, 4, 2, vocab=499, eps=1e-6, theta=5e6, tied=True, rotates=(True, True, True, False, True))
    gpu = None

    def test_other_layers(self):
        self.compare_huggingface(replace(self.config, rotates=(False, True, True, True, False)), "others")

    def test_interval(self):
        self.compare_huggingface(self.config, "interval", settings={"no_rope_layers": families.ABSENT})


class Olmo2(FamilyCase):
    """Norms after attention and the MLP, and of whole rows of query and key."""

    family = families.OLMO2
    gpu_cache = "fp8"
    config = Config(192, 2, 6, 3, vocab=501, eps=1e-6, qk_norm="row", norms="after")


class Phi3(FamilyCase):
    """Fused matrices and a window in every layer, which llama.cpp ignores."""

    family = families.PHI3
    config = Config(192, 3, 6, 2, vocab=501, theta=10000.0, windows=(10, 10, 10))
    gpu = None

    def test_llama_cpp(self):
        self.compare_llama_cpp(replace(self.config, windows=()))

    def test_no_window(self):
        self.compare_huggingface(replace(self.config, windows=()), "whole")
        self.compare_gguf(replace(self.config, windows=()), "whole")


class Gemma3(FamilyCase):
    """GELU, norms before and after, norms of heads, windows with a theta of
    their own; tied. GGUF cannot say the scale of attention. sqrt(dim) needs no
    rounding."""

    family = families.GEMMA3
    config = Config(
        256,
        6,
        4,
        2,
        vocab=499,
        head_size=32,
        eps=1e-6,
        theta=1e6,
        tied=True,
        qk_norm="head",
        norms="both",
        activation="gelu_tanh",
        embedding_scale=16.0,
        attention_scale=1 / 8,
        windows=(7, 7, 0, 7, 7, 0),
        local_theta=10000.0,
    )
    gpu_layers = (7, 0)
    gguf_config = replace(config, attention_scale=0.0, windows=(7, 7, 7, 7, 7, 0))
    llama_cpp_tolerance = LLAMA_CPP_GELU_TOLERANCE

    def compare_all(self, name, **changes):
        gguf_config = replace(self.gguf_config, **changes)
        self.compare_huggingface(replace(self.config, **changes), name)
        self.compare_gguf(gguf_config, name)
        self.compare_llama_cpp(gguf_config, f"{name}-f32")

    def test_other_period(self):
        self.compare_all("period", windows=(7, 0, 7, 0, 7, 0))

    def test_any_layers(self):
        self.compare_all("layers", windows=(7, 0, 0, 7, 7, 7))

    def test_windows_of_all(self):
        """Which leave those layers their theta."""
        self.compare_all("wide", windows=(5000, 5000, 5000, 5000, 5000, 0))

    def test_thetas_by_kind(self):
        """Newer files have this form."""
        parameters = {
            "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
            "sliding_attention": {"rope_type": "default", "rope_theta": 5000.0},
        }
        settings = dict.fromkeys(("rope_theta", "rope_scaling", "rope_local_base_freq"), families.ABSENT)
        config = replace(self.config, scaling=LinearScaling(8.0), local_theta=5000.0)
        self.compare_huggingface(config, "kinds", settings=settings | {"rope_parameters": parameters})

    def test_scaled_rope(self):
        """Which layers with a window have not."""
        self.compare_all("scaled", scaling=LinearScaling(8.0), local_theta=5000.0)


class Gemma3Heads(FamilyCase):
    """Heads as wide as Gemma's, of which some GPUs have room for few keys."""

    family = families.GEMMA3
    config = replace(Gemma3.config, heads=2, kv_heads=1, head_size=256)
    gguf_config = replace(Gemma3.gguf_config, heads=2, kv_heads=1, head_size=256)
    gpu_layers = Gemma3.gpu_layers
    llama_cpp_tolerance = LLAMA_CPP_GELU_TOLERANCE
    gpu = "sm_89"


class Gemma3Embedding(FamilyCase):
    """The embedding's scale has the embedding's type in Hugging Face's form, and
    is not rounded in GGUF's: sqrt(160) is 12.649, and 12.625 in bf16."""

    family = families.GEMMA3
    config = replace(Gemma3.config, dim=160, embedding_scale=12.625)
    gguf_config = replace(Gemma3.gguf_config, dim=160, embedding_scale=np.sqrt(160))
    llama_cpp_tolerance = LLAMA_CPP_GELU_TOLERANCE
    gpu = None


# Classes that only hold what others share are no tests.
def load_tests(loader, standard, pattern):
    cases = [c for c in globals().values() if isinstance(c, type) and issubclass(c, FamilyCase)]
    return unittest.TestSuite(loader.loadTestsFromTestCase(c) for c in cases if c.family is not None)


if __name__ == "__main__":
    unittest.main(verbosity=2)
