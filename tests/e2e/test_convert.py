# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`llamac convert`: what it writes holds the same numbers, read by this tool and
by others'."""

import json
import os
import subprocess
import unittest

import support

support.require("numpy", "gguf", "safetensors")

import numpy as np
import safetensors

from llama_numpy import Config, RopeScaling, forward
from make_model import (
    from_bf16_bits,
    hf_name,
    quantise,
    random_weights,
    to_halves,
    write_gguf,
    write_huggingface,
    write_meta,
)

TOKENS = [3, 17, 498, 0, 44, 44, 290, 5]

# FFN sizes that params.json can only say by multiple_of and
# ffn_dim_multiplier: the usual one, a small, a large, and one of 138.
CONFIGS = {
    "usual": Config(64, 2, 4, 2, vocab=499),
    "tied": Config(64, 2, 4, 1, vocab=499, tied=True),
    "small ffn": Config(96, 2, 6, 3, vocab=499, multiple_of=8, ffn_dim_multiplier=0.3),
    "large ffn": Config(64, 2, 4, 2, vocab=499, multiple_of=8, ffn_dim_multiplier=3.7),
    "uneven ffn": Config(48, 2, 2, 2, vocab=499, multiple_of=1, ffn_dim_multiplier=1.08),
}


class ConvertCase(support.TestCase):
    def convert(self, model, form):
        out = f"{model}-{form}"
        result = self.llamac("convert", model, "-o", out, "--to", form)
        self.assertEqual(result.stdout, "")
        return out

    def check_logits(self, model, config, weights):
        expected = forward(config, weights, TOKENS)
        error = np.abs(self.logits(model, TOKENS, "reference") - expected).max()
        self.assertLessEqual(error / np.abs(expected).max(), 2e-5)


class ToMeta(ConvertCase):
    def test_bf16_weights_keep_every_bit(self):
        for name, config in CONFIGS.items():
            with self.subTest(name):
                weights = random_weights(config)
                stored, _ = quantise(weights, "BF16")
                model = write_gguf(self.path(f"{name}.gguf"), config, stored)
                meta = self.convert(model, "meta")
                with open(os.path.join(meta, "params.json")) as f:
                    params = json.load(f)
                self.assertEqual(
                    (params["dim"], params["n_layers"], params["n_heads"], params["n_kv_heads"]),
                    (config.dim, config.layers, config.heads, config.kv_heads),
                )
                self.check_logits(meta, config, weights)

    def test_huggingface_rows_are_put_in_metas_order(self):
        config = CONFIGS["usual"]
        weights = random_weights(config)
        meta = self.convert(write_huggingface(self.path("hf"), config, weights), "meta")
        self.check_logits(meta, config, weights)

    def test_scaled_rope(self):
        config = Config(128, 2, 4, 2, vocab=499, scaling=RopeScaling())
        weights = random_weights(config)
        meta = self.convert(write_huggingface(self.path("scaled"), config, weights), "meta")
        with open(os.path.join(meta, "params.json")) as f:
            self.assertIs(json.load(f)["use_scaled_rope"], True)
        self.check_logits(meta, config, weights)

    def test_a_plan_of_the_converted_model_runs(self):
        model = support.require_model("smollm2.gguf")
        link = self.path("smollm2.gguf")
        os.symlink(os.path.realpath(model), link)
        meta = self.convert(link, "meta")
        plan = self.path("smollm2.plan")
        self.llamac("compile", meta, "-o", plan)
        prompt = "The capital of France is"
        text = self.llamac("run", plan, "--raw", "-p", prompt, "-n", 24, "--temp", 0).stdout
        self.assertIn(" Paris", text)
        for text in (prompt, "  two  spaces\n\n\nand 12345 numbers, naïve 日本語 🙂"):
            self.assertEqual(
                self.llamac("tokenize", meta, text).stdout, self.llamac("tokenize", model, text).stdout
            )

    def test_torch_loads_the_checkpoint(self):
        python = "/usr/bin/python3"
        if subprocess.run([python, "-c", "import torch, numpy"], capture_output=True).returncode:
            self.skipTest("no python3-torch")
        config = CONFIGS["usual"]
        weights = random_weights(config)
        meta = self.convert(write_huggingface(self.path("for-torch"), config, weights), "meta")
        code = (
            "import sys, torch, numpy\n"
            "state = torch.load(sys.argv[1], map_location='cpu')\n"
            "numpy.savez(sys.argv[2], **{n: x.float().numpy() for n, x in state.items()})\n"
        )
        out = self.path("torch.npz")
        pth = os.path.join(meta, "consolidated.00.pth")
        subprocess.run([python, "-c", code, pth, out], check=True)
        found = np.load(out)
        self.assertEqual(set(found), {name + ".weight" for name in weights})
        for name, x in weights.items():
            np.testing.assert_array_equal(found[name + ".weight"], x)


class ToHuggingFace(ConvertCase):
    def read(self, folder):
        """Every tensor of a folder's safetensors files, as float32."""
        found = {}
        for file in sorted(os.listdir(folder)):
            if not file.endswith(".safetensors"):
                continue
            with open(os.path.join(folder, file), "rb") as f:
                for name, tensor in safetensors.deserialize(f.read()):
                    data = bytes(tensor["data"])
                    if tensor["dtype"] == "BF16":
                        x = from_bf16_bits(np.frombuffer(data, np.uint16))
                    else:
                        kind = {"F32": np.float32, "F16": np.float16}[tensor["dtype"]]
                        x = np.frombuffer(data, kind).astype(np.float32)
                    found[name] = x.reshape(tensor["shape"])
        return found

    def test_every_tensor_is_where_safetensors_finds_it(self):
        for name, config in CONFIGS.items():
            with self.subTest(name):
                weights = random_weights(config)
                out = self.convert(write_meta(self.path(name), config, weights), "huggingface")
                found = self.read(out)
                self.assertEqual(set(found), {hf_name(n) for n in weights})
                for weight, x in weights.items():
                    if weight.endswith((".wq", ".wk")):
                        x = to_halves(x, config.head_size)
                    np.testing.assert_array_equal(found[hf_name(weight)], x)
                with open(os.path.join(out, "config.json")) as f:
                    settings = json.load(f)
                self.assertEqual(settings["architectures"], ["LlamaForCausalLM"])
                self.assertEqual(settings["intermediate_size"], config.ffn)
                self.assertEqual(settings["tie_word_embeddings"], config.tied)
                self.check_logits(out, config, weights)

    def test_chat_templates_of_gguf_keep_their_names(self):
        named = [{"name": "default", "template": "d"}, {"name": "tool_use", "template": "t"}]
        for name, templates in (("one", "{{ messages }}"), ("several", named)):
            config = CONFIGS["usual"]
            stored, _ = quantise(random_weights(config), "BF16")
            model = write_gguf(self.path(f"{name}.gguf"), config, stored, chat_template=templates)
            with open(os.path.join(self.convert(model, "huggingface"), "tokenizer_config.json")) as f:
                self.assertEqual(json.load(f)["chat_template"], templates)

    def test_files_of_chat_templates_are_copied(self):
        config = CONFIGS["usual"]
        model = write_huggingface(self.path("templates"), config, random_weights(config))
        files = {"tokenizer.json": "{}", "chat_template.jinja": "d", "additional_chat_templates/rag.jinja": "r"}
        os.mkdir(os.path.join(model, "additional_chat_templates"))
        for name, text in files.items():
            with open(os.path.join(model, name), "w") as f:
                f.write(text)
        out = self.convert(model, "huggingface")
        for name, text in files.items():
            with open(os.path.join(out, name)) as f:
                self.assertEqual(f.read(), text)

    def test_shards_become_one_model(self):
        config = Config(96, 2, 6, 3, vocab=501, multiple_of=48)
        weights = random_weights(config)
        model = write_meta(self.path("shards"), config, weights, shards=3)
        self.check_logits(self.convert(model, "huggingface"), config, weights)

    def test_scaled_rope(self):
        config = Config(128, 2, 4, 2, vocab=499, scaling=RopeScaling())
        weights = random_weights(config)
        out = self.convert(write_meta(self.path("scaled"), config, weights), "huggingface")
        with open(os.path.join(out, "config.json")) as f:
            scaling = json.load(f)["rope_scaling"]
        self.assertEqual(scaling["rope_type"], "llama3")
        self.assertEqual(scaling["factor"], 8.0)
        self.assertEqual(scaling["original_max_position_embeddings"], 8192)
        self.check_logits(out, config, weights)


if __name__ == "__main__":
    unittest.main(verbosity=2)
