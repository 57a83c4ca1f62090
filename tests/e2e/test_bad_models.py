# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Broken, lying and unsupported models: the exit code and the one-line message.

A broken model ends with 3 and `file:offset: field: expected ..., got ...`, one
that llamac does not support with 4 and what it is; never with a crash, a plan
or anything on stdout.
"""

import json
import os
import pickle
import shutil
import struct
import unittest
import zipfile

import support

support.require("numpy", "gguf", "safetensors")

import gguf
import numpy as np

import make_model
from llama_numpy import Config
from make_model import quantise, random_weights, write_gguf, write_huggingface, write_meta
from support import BAD_FILE, UNSUPPORTED

CONFIG = Config(64, 2, 4, 2, vocab=501, multiple_of=48)


class BadModelCase(support.TestCase):
    """`base` is a good model that each test spoils a copy of."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.weights = random_weights(CONFIG)
        cls.base = cls.write_base(cls.path("base"))

    def setUp(self):
        self.model = self.path("spoilt" + os.path.splitext(self.base)[1])
        if os.path.isdir(self.base):
            shutil.rmtree(self.model, ignore_errors=True)
            shutil.copytree(self.base, self.model)
        else:
            shutil.copyfile(self.base, self.model)

    def file(self, name):
        return os.path.join(self.model, name) if name else self.model

    def change(self, name, edit):
        """Puts edit(bytes) in the place of a file of the model."""
        with open(self.file(name), "rb") as f:
            data = f.read()
        with open(self.file(name), "wb") as f:
            f.write(edit(data))

    def change_json(self, name, **values):
        """Sets keys of a JSON file; a key set to None is taken out."""
        with open(self.file(name)) as f:
            settings = json.load(f) | values
        with open(self.file(name), "w") as f:
            json.dump({k: v for k, v in settings.items() if v is not None}, f)

    def refuse(self, expect=BAD_FILE, mentions=()):
        """Compiles the spoilt model; the message, after all checks."""
        plan = self.path("spoilt.plan")
        result = self.llamac("compile", self.model, "-o", plan, expect=expect)
        self.assertEqual(result.stdout, "")
        lines = result.stderr.splitlines()
        self.assertEqual(len(lines), 1, f"expected one line:\n{result.stderr[:2000]}")
        self.assertLess(len(lines[0]), 1000)
        for text in [mentions] if isinstance(mentions, str) else mentions:
            self.assertIn(text, lines[0])
        self.assertFalse(os.path.exists(plan))
        return lines[0]

    def refuse_at(self, *mentions):
        """refuse(), where the message names a file and says what was wrong."""
        message = self.refuse(BAD_FILE, mentions)
        self.assertRegex(message, r"expected .*, got ")
        self.assertIn(os.path.basename(self.model), message)

    def compiles(self):
        self.llamac("compile", self.model, "-o", self.path("good.plan"))


class BadMeta(BadModelCase):
    @classmethod
    def write_base(cls, path):
        return write_meta(path, CONFIG, cls.weights)

    PTH = "consolidated.00.pth"

    def rewrite(self, **weights):
        """The checkpoint with other weights, or without those set to None."""
        changed = self.weights | weights
        changed = {name: x for name, x in changed.items() if x is not None}
        make_model.write_pth(self.file(self.PTH), changed, "bf16")

    def rezip(self, edit=lambda name, data: data, compression=zipfile.ZIP_STORED, again=()):
        """The checkpoint packed anew, each entry as edit(name, data) says."""
        with zipfile.ZipFile(self.file(self.PTH)) as archive:
            entries = {name: archive.read(name) for name in archive.namelist()}
        with zipfile.ZipFile(self.file(self.PTH), "w", compression) as archive:
            for name in [*entries, *again]:
                archive.writestr(zipfile.ZipInfo(name), edit(name, entries[name]), compression)

    def test_the_base_is_good(self):
        self.compiles()

    def test_no_params(self):
        os.remove(self.file("params.json"))
        self.refuse()

    def test_a_configuration_alone_is_no_model(self):
        self.model = self.file("params.json")
        self.refuse_at("got one without weights; llamac compile --no-weights takes it for its shapes")

    def test_the_folder_one_is_in_has_its_name(self):
        run = support.run([support.LLAMAC, "inspect", ".", "--json"], cwd=self.model)
        self.assertEqual(json.loads(run.stdout)["name"], os.path.basename(self.model))

    def test_empty_folder(self):
        shutil.rmtree(self.model)
        os.mkdir(self.model)
        self.refuse()

    def test_params_cut_off(self):
        self.change("params.json", lambda data: data[: len(data) // 2])
        self.refuse(mentions="params.json")

    def test_params_nested_without_end(self):
        self.change("params.json", lambda data: b'{"dim": ' + b"[" * 200000)
        self.refuse(mentions="params.json")

    def test_params_not_utf8(self):
        self.change("params.json", lambda data: b'{"dim": "\xff\xfe\xc0"}')
        self.refuse(mentions="params.json")

    def test_wrong_params(self):
        for key, value in [
            ("dim", "wide"),
            ("dim", -64),
            ("dim", 2**62),
            ("dim", None),
            ("n_layers", 0),
            ("n_layers", 10**9),
            ("n_heads", 0),
            ("n_heads", 5),
            ("n_kv_heads", 3),
            ("norm_eps", -1),
            ("rope_theta", 0),
            ("multiple_of", 0),
            ("vocab_size", 1),
        ]:
            with self.subTest(key=key, value=value):
                self.setUp()
                self.change_json("params.json", **{key: value})
                self.refuse()

    def test_no_checkpoint(self):
        os.remove(self.file(self.PTH))
        self.refuse()

    def test_a_shard_is_missing(self):
        shutil.copyfile(self.file(self.PTH), self.file("consolidated.02.pth"))
        self.refuse(mentions="consolidated.01.pth")

    def test_checkpoint_cut_off(self):
        size = os.path.getsize(self.file(self.PTH))
        for left in (0, 3, 100, size // 2, size - 1):
            with self.subTest(left=left):
                self.setUp()
                self.change(self.PTH, lambda data: data[:left])
                self.refuse(mentions=self.PTH)

    def test_checkpoint_is_no_zip(self):
        self.change(self.PTH, lambda data: b"no zip at all" * 1000)
        self.refuse(mentions=self.PTH)

    def test_checkpoint_of_an_old_torch(self):
        self.change(self.PTH, lambda data: pickle.dumps(0x1950A86A20F9469CFC6C, 2) + data)
        self.refuse(UNSUPPORTED, mentions=self.PTH)

    def test_compressed_entries(self):
        self.rezip(compression=zipfile.ZIP_DEFLATED)
        self.refuse(mentions=self.PTH)

    def test_two_pickles(self):
        self.rezip(again=["archive/data.pkl"])
        self.refuse(mentions=self.PTH)

    def test_pickle_that_calls_something_else(self):
        class Evil:
            def __reduce__(self):
                return os.system, ("touch " + self.marker,)

        Evil.marker = self.path("called")
        self.rezip(lambda name, data: pickle.dumps(Evil(), 2) if name.endswith(".pkl") else data)
        self.refuse(mentions="system")
        self.assertFalse(os.path.exists(Evil.marker))

    def test_pickle_cut_off(self):
        self.rezip(lambda name, data: data[: len(data) // 2] if name.endswith(".pkl") else data)
        self.refuse(mentions=self.PTH)

    def test_storage_shorter_than_its_tensor(self):
        self.rezip(lambda name, data: data[:-2] if name.endswith("data/3") else data)
        self.refuse(mentions=self.PTH)

    def test_missing_tensor(self):
        self.rewrite(**{"layers.1.attention.wv": None})
        self.refuse(mentions="layers.1.attention.wv")

    def test_wrong_shape(self):
        self.rewrite(**{"layers.1.feed_forward.w2": np.zeros((64, 32), np.float32)})
        self.refuse(mentions="layers.1.feed_forward.w2")


class BadHuggingFace(BadModelCase):
    @classmethod
    def write_base(cls, path):
        return write_huggingface(path, CONFIG, cls.weights)

    FILE = "model.safetensors"

    def change_header(self, edit):
        """Puts edit(header) in the place of the safetensors header; edit may
        change the dictionary, or return bytes."""

        def replace(data):
            (length,) = struct.unpack_from("<Q", data)
            header = json.loads(data[8 : 8 + length])
            text = edit(header) or json.dumps(header).encode()
            return struct.pack("<Q", len(text)) + text + data[8 + length :]

        self.change(self.FILE, replace)

    def test_the_base_is_good(self):
        self.compiles()

    def test_config_cut_off(self):
        self.change("config.json", lambda data: data[:-20])
        self.refuse(mentions="config.json")

    def test_wrong_config(self):
        for key, value in [
            ("hidden_size", None),
            ("hidden_size", 0),
            ("hidden_size", 1.5),
            ("num_attention_heads", 7),
            ("num_key_value_heads", 3),
            ("intermediate_size", -8),
            ("rms_norm_eps", "small"),
            ("rope_scaling", {"rope_type": "llama3", "factor": 0}),
        ]:
            with self.subTest(key=key, value=value):
                self.setUp()
                self.change_json("config.json", **{key: value})
                self.refuse()

    def test_no_weights(self):
        os.remove(self.file(self.FILE))
        self.refuse()

    def test_weights_cut_off(self):
        size = os.path.getsize(self.file(self.FILE))
        for left in (0, 7, 8, 500, size - 1):
            with self.subTest(left=left):
                self.setUp()
                self.change(self.FILE, lambda data: data[:left])
                self.refuse_at(self.FILE)

    def test_header_longer_than_the_file(self):
        for length in (2**20, 2**40, 2**63, 2**64 - 1):
            with self.subTest(length=length):
                self.setUp()
                self.change(self.FILE, lambda data: struct.pack("<Q", length) + data[8:])
                self.refuse_at(self.FILE)

    def test_header_is_no_json(self):
        self.change_header(lambda header: b"{" * 1000)
        self.refuse(mentions=self.FILE)

    def test_tensor_past_the_end(self):
        name = "model.layers.1.mlp.up_proj.weight"
        self.change_header(lambda header: header[name].update(data_offsets=[2**40, 2**40 + 24576]))
        self.refuse_at(self.FILE, name)

    def test_shape_that_overflows(self):
        name = "model.norm.weight"
        self.change_header(lambda header: header[name].update(shape=[2**33, 2**33]))
        self.refuse(mentions=name)

    def test_shape_and_extent_differ(self):
        name = "model.norm.weight"
        self.change_header(lambda header: header[name].update(shape=[32]))
        self.refuse(mentions=name)

    def test_tensors_overlap(self):
        def overlap(header):
            header["model.norm.weight"]["data_offsets"] = [0, 128]

        self.change_header(overlap)
        self.refuse(mentions=self.FILE)

    def test_duplicate_tensor(self):
        def twice(header):
            text = json.dumps(header)
            one = json.dumps({"model.norm.weight": header["model.norm.weight"]})
            return (text[:-1] + ", " + one[1:]).encode()

        self.change_header(twice)
        self.refuse(mentions="model.norm.weight")

    def test_missing_tensor(self):
        def rename(header):
            header["model.other.weight"] = header.pop("model.norm.weight")

        self.change_header(rename)
        self.refuse(mentions="model.norm")

    def test_index_with_a_missing_or_foreign_file(self):
        for file in ("model-00002-of-00002.safetensors", "../base/model.safetensors"):
            with self.subTest(file=file):
                self.setUp()
                names = {make_model.hf_name(name): file for name in self.weights}
                os.rename(self.file(self.FILE), self.file("model-00001-of-00002.safetensors"))
                with open(self.file("model.safetensors.index.json"), "w") as f:
                    json.dump({"metadata": {}, "weight_map": names}, f)
                self.refuse()

    def test_unsupported(self):
        for named, values in [
            ("gpt2", {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"]}),
            ("gelu", {"hidden_act": "gelu"}),
            ("yarn", {"rope_scaling": {"rope_type": "yarn", "factor": 4.0}}),
            ("attention_bias", {"attention_bias": True}),
        ]:
            with self.subTest(named):
                self.setUp()
                self.change_json("config.json", **values)
                self.assertIn(named, self.refuse(UNSUPPORTED).lower())

    def test_quantisations_without_a_reader_are_refused_by_name(self):
        for named, config in [
            ("got bitsandbytes with 4 bits", {"quant_method": "bitsandbytes", "load_in_4bit": True}),
            ("got HQQ with 4 bits, groups of 64", {"quant_method": "hqq", "bits": 4, "group_size": 64}),
            ("got AQLM", {"quant_method": "aqlm"}),
            ('got the method "new"', {"quant_method": "new"}),
            ("got a method without a name", {}),
        ]:
            with self.subTest(named):
                self.setUp()
                self.change_json("config.json", quantization_config=config)
                message = self.refuse(UNSUPPORTED, ("config.json", "the checkpoint before quantisation", "q4_k"))
                self.assertTrue(message.endswith(named), message)

    def test_malformed_quantisation(self):
        for config in ([], "gptq", 4, {"quant_method": 4}, {"quant_method": "gptq", "bits": "four"},
                       {"quant_method": "gptq", "bits": 2**70}, {"quant_method": "gptq", "desc_act": 1}):  # fmt: skip
            with self.subTest(config=config):
                self.setUp()
                self.change_json("config.json", quantization_config=config)
                self.refuse_at()


class BadGguf(BadModelCase):
    @classmethod
    def write_base(cls, path):
        stored, _ = quantise(cls.weights, "Q8_0")
        return write_gguf(path + ".gguf", CONFIG, stored)

    def put(self, offset, layout, value):
        self.change(None, lambda data: data[:offset] + struct.pack(layout, value) + data[offset + struct.calcsize(layout) :])

    def field(self, key):
        """Where the record of a key begins in the file: its key's length."""
        reader = gguf.GGUFReader(self.base)
        return reader.fields[key].offset

    def tensor(self, name):
        """Where the dimensions' count of a tensor is in the file."""
        reader = gguf.GGUFReader(self.base)
        (found,) = (t for t in reader.tensors if t.name == name)
        return found.field.offset + 8 + len(name)

    def test_the_base_is_good(self):
        self.compiles()

    def test_a_merge_that_makes_no_token_is_harmless(self):
        stored, _ = quantise(self.weights, "Q8_0")
        write_gguf(self.model, CONFIG, stored, merges=["t h", "! !"])
        self.compiles()

    def test_wrong_magic(self):
        self.put(0, "<4s", b"GGML")
        self.refuse_at()

    def test_cut_off(self):
        size = os.path.getsize(self.base)
        header = self.tensor("token_embd.weight")
        for left in (0, 3, 4, 8, 20, 24, header // 2, header + 10, size // 2, size - 33):
            with self.subTest(left=left):
                self.setUp()
                self.change(None, lambda data: data[:left])
                self.refuse_at()

    def test_counts_that_lie(self):
        for offset in (8, 16):
            for count in (2**20, 2**40, 2**63, 2**64 - 1):
                with self.subTest(offset=offset, count=count):
                    self.setUp()
                    self.put(offset, "<Q", count)
                    self.refuse_at()

    def test_strings_and_arrays_that_lie(self):
        name = self.field("general.name")
        tokens = self.field("tokenizer.ggml.tokens")
        for offset in (name, name + 8 + len("general.name") + 4, tokens + 8 + len("tokenizer.ggml.tokens") + 8):
            for length in (2**31, 2**62, 2**64 - 1):
                with self.subTest(offset=offset, length=length):
                    self.setUp()
                    self.put(offset, "<Q", length)
                    self.refuse_at()

    def test_unknown_value_type(self):
        self.put(self.field("general.name") + 8 + len("general.name"), "<I", 77)
        self.refuse_at()

    def test_wrong_tensor_records(self):
        at = self.tensor("blk.1.attn_k.weight")
        for what, offset, layout, value in [
            ("dimensions", at, "<I", 9),
            ("no columns", at + 4, "<Q", 0),
            ("columns that overflow", at + 4, "<Q", 2**63),
            ("columns not of whole blocks", at + 4, "<Q", 48),
            ("other rows", at + 12, "<Q", 64),
            ("offset past the end", at + 24, "<Q", 2**40),
            ("offset that wraps", at + 24, "<Q", 2**64 - 32),
            ("offset not aligned", at + 24, "<Q", 1),
        ]:
            with self.subTest(what):
                self.setUp()
                self.put(offset, layout, value)
                self.refuse_at("blk.1.attn_k.weight")

    def test_wrong_hyperparameters(self):
        for key, value in [
            ("llama.embedding_length", 0),
            ("llama.embedding_length", 2**31),
            ("llama.block_count", 0),
            ("llama.block_count", 2**30),
            ("llama.attention.head_count", 0),
            ("llama.attention.head_count_kv", 3),
            ("llama.feed_forward_length", 7),
        ]:
            with self.subTest(key=key, value=value):
                self.setUp()
                self.put(self.field(key) + 8 + len(key) + 4, "<I", value)
                self.refuse()

    def test_missing_and_duplicate_tensors(self):
        at = self.tensor("blk.1.attn_k.weight") - len("blk.1.attn_k.weight")
        for name in (b"blk.1.attn_x.weight", b"blk.1.attn_v.weight"):
            with self.subTest(name=name):
                self.setUp()
                self.put(at, f"<{len(name)}s", name)
                self.refuse(mentions="blk.1.attn_")

    def test_unsupported(self):
        arch = self.field("general.architecture") + 8 + len("general.architecture") + 4 + 8
        kind = self.tensor("blk.1.attn_k.weight") + 20
        for named, offset, layout, value in [
            ("mamb2", arch, "<5s", b"mamb2"),
            ("IQ2_XS", kind, "<I", int(gguf.GGMLQuantizationType.IQ2_XS)),
            ("9", 4, "<I", 9),
        ]:
            with self.subTest(named):
                self.setUp()
                self.put(offset, layout, value)
                message = self.refuse(UNSUPPORTED)
                self.assertIn(named.lower(), message.lower())


class NoModel(support.TestCase):
    def test_a_path_that_is_not_there(self):
        result = self.llamac("compile", self.path("nothing"), "-o", self.path("x.plan"), expect=BAD_FILE)
        self.assertIn("nothing", result.stderr)

    def test_a_file_that_is_no_model(self):
        path = self.path("notes.txt")
        with open(path, "w") as f:
            f.write("not a model\n")
        self.llamac("compile", path, "-o", self.path("x.plan"), expect=BAD_FILE)


if __name__ == "__main__":
    unittest.main(verbosity=2)
