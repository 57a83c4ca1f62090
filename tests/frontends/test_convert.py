# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Converted models, read by other programs and read back.

A model of every format is converted to Meta's and Hugging Face's. The results
are read with zipfile and pickle, with the safetensors package, and by the
frontends again; all must find the same bits. test_torch.py asks torch itself.
"""

import collections
import os
import pickle
import re
import unittest
import zipfile

import numpy as np

from test_values import CONFIG, DUMP, TIED, ValuesCase, end_tokens, support
from llama_numpy import Config, RopeScaling
from make_model import (
    hf_name,
    quantise,
    random_weights,
    round_to,
    to_halves,
    write_gguf,
    write_huggingface,
    write_meta,
)


class StorageType:
    def __init__(self, name):
        self.name = name


class StateDictUnpickler(pickle.Unpickler):
    """Unpickles to (storage type, key, elements, offset, shape, strides)."""

    def find_class(self, module, name):
        if (module, name) == ("collections", "OrderedDict"):
            return collections.OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return lambda storage, offset, shape, strides, grad, hooks: (*storage, offset, shape, strides)
        if module == "torch" and re.fullmatch("(BFloat16|Half|Float)Storage", name):
            return StorageType(name)
        raise pickle.UnpicklingError(f"{module}.{name}")

    def persistent_load(self, pid):
        tag, kind, key, location, elements = pid
        assert (tag, location) == ("storage", "cpu")
        return kind.name, key, elements


def from_bits(data, kind):
    if kind == "BFloat16Storage":
        return (np.frombuffer(data, np.uint16).astype(np.uint32) << 16).view(np.float32)
    return np.frombuffer(data, np.float16 if kind == "HalfStorage" else np.float32).astype(np.float32)


def read_pth(path):
    """Name to (storage key, float32 array), and the file's order of names."""
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None, "a CRC is wrong"
        (root,) = {name.split("/")[0] for name in archive.namelist()}
        with archive.open(root + "/data.pkl") as f:
            state = StateDictUnpickler(f).load()
        assert type(state) is collections.OrderedDict
        tensors = {}
        for name, (kind, key, elements, offset, shape, _) in state.items():
            info = archive.getinfo(f"{root}/data/{key}")
            header = 30 + len(info.filename)
            with open(path, "rb") as f:
                f.seek(info.header_offset + 28)
                header += int.from_bytes(f.read(2), "little")
            assert (info.header_offset + header) % 64 == 0, f"{name} is not aligned"
            values = from_bits(archive.read(info), kind)
            assert values.size == elements and offset == 0
            tensors[name] = (key, values.reshape(shape))
    return tensors


def bits(x):
    return np.ascontiguousarray(x, np.float32).ravel().view(np.uint32)


class Convert(ValuesCase):
    def convert(self, model, to):
        out = f"{model}-as-{to}"
        result = support.run([DUMP, model, f"--to-{to}={out}"])
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual([n for n in os.listdir(out) if n.startswith(".")], [], "temporary files were left")
        return out

    def check_pth(self, out, weights, config):
        tensors = read_pth(os.path.join(out, "consolidated.00.pth"))
        expected = {n + ".weight": x for n, x in weights.items()}
        if config.tied:
            expected["output.weight"] = weights["tok_embeddings"]
            self.assertEqual(tensors["output.weight"][0], tensors["tok_embeddings.weight"][0], "storage is not shared")
        self.assertEqual(set(tensors), set(expected))
        for name, x in expected.items():
            self.assertEqual(tensors[name][1].shape, x.shape)
            self.assertTrue(np.array_equal(bits(tensors[name][1]), bits(x)), name)

    def check_safetensors(self, out, weights, config):
        # The numpy binding of safetensors has no bf16: its reader gives bytes.
        from safetensors import deserialize

        with open(os.path.join(out, "model.safetensors"), "rb") as f:
            tensors = dict(deserialize(f.read()))
        self.assertEqual(set(tensors), {hf_name(n) for n in weights})
        kinds = {"BF16": "BFloat16Storage", "F16": "HalfStorage", "F32": "FloatStorage"}
        for name, x in weights.items():
            if name.endswith((".wq", ".wk")):
                x = to_halves(x, config.head_size)
            tensor = tensors[hf_name(name)]
            self.assertEqual(list(tensor["shape"]), list(x.shape))
            values = from_bits(bytes(tensor["data"]), kinds[tensor["dtype"]])
            self.assertTrue(np.array_equal(bits(values), bits(x)), name)

    def check_both(self, model, weights, config, **options):
        for to, check in (("meta", self.check_pth), ("huggingface", self.check_safetensors)):
            with self.subTest(to=to):
                out = self.convert(model, to)
                check(out, weights, config)
                self.check(out, weights, config, **options)

    def test_from_meta(self):
        for dtype in ("bf16", "f16", "f32"):
            weights = random_weights(CONFIG, dtype)
            self.check_both(write_meta(self.path("meta-" + dtype), CONFIG, weights, dtype), weights, CONFIG)

    def test_from_shards(self):
        config = Config(96, 2, 6, 3, vocab=333, multiple_of=96)
        weights = random_weights(config)
        self.check_both(write_meta(self.path("shards"), config, weights, shards=3), weights, config)

    def test_from_huggingface_tied(self):
        weights = random_weights(TIED)
        self.check_both(write_huggingface(self.path("hf"), TIED, weights), weights, TIED)

    def test_from_huggingface_with_any_ffn_size_head_size_and_scaling(self):
        config = Config(96, 1, 4, 2, vocab=301, multiple_of=1, ffn_dim_multiplier=1.2345, head_size=40,
                        scaling=RopeScaling(16.0, 2.0, 8.0, 4096.0), theta=12345.5, eps=1.5e-6)
        weights = random_weights(config)
        model = write_huggingface(self.path("odd"), config, weights)
        self.check_both(model, weights, config)
        contexts = {self.open(m)["context"] for m in (model, model + "-as-meta", model + "-as-huggingface")}
        self.assertEqual(contexts, {4096})

    def test_from_quantised_gguf(self):
        for kind in ("Q4_1", "Q6_K"):
            stored, values = quantise(random_weights(CONFIG, "f32"), kind)
            rounded = {n: x if x.ndim == 1 else round_to(x, "bf16") for n, x in values.items()}
            self.check_both(write_gguf(self.path(kind + ".gguf"), CONFIG, stored), rounded, CONFIG)

    def test_rotary_factors_of_gguf_become_a_scaling(self):
        for factor in (8.0, 32.0):
            config = Config(128, 1, 2, 1, vocab=300, multiple_of=32, scaling=RopeScaling(factor))
            stored, values = quantise(random_weights(config), "BF16")
            self.check_both(write_gguf(self.path(f"factor-{factor}.gguf"), config, stored), values, config)

    def test_end_tokens_survive(self):
        stored, _ = quantise(random_weights(TIED), "F16")
        model = write_gguf(self.path("ends.gguf"), TIED, stored)
        bos, eos = end_tokens(model)
        for to in ("meta", "huggingface"):
            got = self.open(self.convert(model, to))
            self.assertEqual((got["bos"], got["stop_ids"]), (bos, [eos]))

    def test_every_ffn_size_reads_back(self):
        """Through params.json, whose rule does not name the size."""
        for ffn in (1, 7, 255, 257, 1000, 1365, 4093, 11008, 14336, 53248):
            config = Config(8, 1, 1, 1, vocab=3, multiple_of=ffn, ffn_dim_multiplier=1e-9, tied=True)
            object.__setattr__(config, "multiple_of", ffn)
            if config.ffn != ffn:
                config = Config(8, 1, 1, 1, vocab=3, multiple_of=1, ffn_dim_multiplier=(ffn + 0.5) / 21, tied=True)
            self.assertEqual(config.ffn, ffn)
            weights = random_weights(config)
            model = write_huggingface(self.path(f"ffn-{ffn}"), config, weights)
            self.assertEqual(self.open(self.convert(model, "meta"))["ffn"], ffn)

    def test_a_directory_that_is_not_empty_is_refused(self):
        weights = random_weights(TIED)
        model = write_huggingface(self.path("source"), TIED, weights)
        for to, name in (("meta", "consolidated.01.pth"), ("huggingface", "model.safetensors.index.json"),
                         ("huggingface", "model-00001-of-00002.safetensors")):
            out = self.path("other-" + name)
            os.makedirs(out)
            with open(os.path.join(out, name), "w") as f:
                f.write("something")
            result = support.run([DUMP, model, f"--to-{to}={out}"])
            self.assertEqual(result.returncode, support.USAGE)
            self.assertIn(name, result.stderr)
            self.assertEqual(os.listdir(out), [name])


if __name__ == "__main__":
    unittest.main()
