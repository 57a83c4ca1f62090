# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The oracle itself, and the models it is asked about, against others' code.

The float64 forward agrees with llama.cpp on fp32 weights; the Hugging Face and
Meta files hold the numbers they should, as read by safetensors and, where it
is installed, by torch.
"""

import os
import subprocess
import unittest

import support

support.require("numpy", "gguf", "safetensors", "llama_cpp_library")

import llama_cpp_library as llama_cpp
import numpy as np
from safetensors import safe_open

from llama_numpy import Config, RopeScaling, forward
from make_model import (
    hf_name,
    quantise,
    random_weights,
    write_gguf,
    write_huggingface,
    write_meta,
)


class Forward(support.TestCase):
    def compare(self, config):
        tokens = np.random.default_rng(5).integers(0, config.vocab, 48).tolist()
        weights = random_weights(config, "f32", 2)
        stored, _ = quantise(weights, "F32")
        path = write_gguf(self.path(f"{self.id()}.gguf"), config, stored)
        expected = forward(config, weights, tokens)
        error = np.abs(llama_cpp.Llama(path, 256, cache=llama_cpp.F32).logits(tokens) - expected).max() / np.abs(expected).max()
        self.assertLessEqual(error, 2e-5)

    def test_full_heads(self):
        self.compare(Config(192, 2, 6, 6, vocab=499, theta=10000.0))

    def test_grouped_heads_tied(self):
        self.compare(Config(192, 3, 9, 3, vocab=501, head_size=32, tied=True))

    def test_one_key_value_head(self):
        self.compare(Config(512, 2, 8, 1, vocab=499))

    def test_wide_heads(self):
        self.compare(Config(256, 2, 2, 1, vocab=499))

    def test_scaled_rope(self):
        self.compare(Config(256, 2, 4, 2, vocab=499, scaling=RopeScaling(4.0, 1.0, 4.0, 64.0)))


class Files(support.TestCase):
    config = Config(96, 2, 6, 3, vocab=501, multiple_of=48)

    def test_safetensors_reads_the_huggingface_form(self):
        weights = random_weights(self.config, "f32")
        for shards in (1, 2):
            folder = write_huggingface(self.path(f"hf-{shards}"), self.config, weights, "f32", shards)
            found = {}
            for file in os.listdir(folder):
                if file.endswith(".safetensors"):
                    with safe_open(os.path.join(folder, file), "numpy") as tensors:
                        found |= {name: tensors.get_tensor(name) for name in tensors.keys()}
            self.assertEqual(set(found), {hf_name(name) for name in weights})
            for name, x in weights.items():
                y = found[hf_name(name)]
                if name.endswith((".wq", ".wk")):
                    # The first pair of the first head is rows 0 and h/2.
                    half = self.config.head_size // 2
                    np.testing.assert_array_equal(y[[0, half, 1]], x[[0, 1, 2]])
                else:
                    np.testing.assert_array_equal(y, x)

    def test_torch_reads_the_meta_form(self):
        python = "/usr/bin/python3"
        if subprocess.run([python, "-c", "import torch, numpy"], capture_output=True).returncode:
            self.skipTest("no python3-torch")
        weights = random_weights(self.config, "bf16")
        for shards in (1, 3):
            folder = write_meta(self.path(f"meta-{shards}"), self.config, weights, "bf16", shards)
            code = (
                "import sys, torch, numpy\n"
                "parts = [torch.load(f) for f in sys.argv[2:]]\n"
                "whole = {n: [p[n].float().numpy() for p in parts] for n in parts[0]}\n"
                "numpy.savez(sys.argv[1], **{n: numpy.stack(x) for n, x in whole.items()})\n"
            )
            out = self.path("torch.npz")
            files = [os.path.join(folder, f"consolidated.{i:02}.pth") for i in range(shards)]
            subprocess.run([python, "-c", code, out, *files], check=True)
            found = np.load(out)
            np.testing.assert_array_equal(
                np.concatenate(found["layers.1.attention.wq.weight"], 0), weights["layers.1.attention.wq"]
            )
            np.testing.assert_array_equal(
                np.concatenate(found["tok_embeddings.weight"], 1), weights["tok_embeddings"]
            )
            np.testing.assert_array_equal(found["norm.weight"][-1], weights["norm"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
