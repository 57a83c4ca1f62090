# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`llamac convert --to gguf`: the gguf package finds what another writer would have
written, and llamac and llama.cpp the same logits and ids as before.

    test_convert_gguf.py            everything
    test_convert_gguf.py Weights    types of tensors, from every format
    test_convert_gguf.py Families   Llama's relatives
    test_convert_gguf.py Tokenizers
    test_convert_gguf.py Refused    what GGUF cannot hold, and errors half-way
"""

import json
import os
import shutil
import sys
import unittest
from dataclasses import replace

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "text", "tokenizer"))

import support

support.require("numpy", "gguf", "ml_dtypes", "safetensors", "llama_cpp_library", "tokenizers")

import gguf
import llama_cpp_library as llama_cpp
import numpy as np

import corpus
import model_families as families
import test_families
import test_llamacpp
import test_pieces
import tokenizer_support
from gguf import GGMLQuantizationType as GgmlType
from llama_numpy import Config, LinearScaling, RopeScaling, forward, rope_factors
from make_model import (
    MERGES,
    byte_vocabulary,
    quantise,
    random_weights,
    write_gguf,
    write_huggingface,
    write_meta,
)
from quantized_models import SCHEMES, write_quantized
from test_quantized import Logits as QuantizedLogits

BAD_FILE, UNSUPPORTED = support.BAD_FILE, support.UNSUPPORTED
CONFIG = Config(64, 2, 4, 2, vocab=499)
WIDE = Config(256, 2, 4, 2, vocab=499, multiple_of=256)
NONE_ROTATES = (False,) * test_families.SmolLM3.config.layers
TOKENS = [3, 17, 498, 0, 44, 44, 290, 5]
# general.file_type of llama.cpp.
FILE_TYPES = {"F32": 0, "F16": 1, "Q4_0": 2, "Q4_1": 3, "Q8_0": 7, "Q6_K": 18, "BF16": 32, "MXFP4": 38}


def tensors_of(path):
    """Name to (type, shape, bytes) of each tensor of a GGUF file."""
    tensors = gguf.GGUFReader(path).tensors
    return {t.name: (t.tensor_type, t.shape.tolist(), t.data.tobytes()) for t in tensors}


def fields_of(path, prefix=""):
    """The metadata of a GGUF file, by the keys that begin with `prefix`."""
    fields = support.gguf_fields(path)
    return {k: f.contents() for k, f in fields.items() if k.startswith(prefix) and not k.startswith("GGUF.")}


class GgufCase(support.TestCase):
    def convert(self, model, *options, warnings=("no tokenizer is written: the model has none",)):
        out = f"{model.removesuffix('.gguf')}{''.join(options)}-out.gguf"
        result = self.llamac("convert", model, "-o", out, "--to", "gguf", "-q", *options)
        self.assertEqual(result.stdout, "")
        lines = result.stderr.splitlines()
        self.assertEqual(len(lines), len(warnings), result.stderr)
        for line, warning in zip(lines, warnings):
            self.assertIn(warning, line)
        return out

    def assert_same_logits(self, model, other, targets=("reference", "cpu")):
        for target in targets:
            one, two = (self.logits(m, TOKENS, target) for m in (model, other))
            self.assertTrue(np.array_equal(one, two), f"{target}: {np.abs(one - two).max()}")

    def assert_same_tensors(self, path, expected):
        found, wanted = tensors_of(path), tensors_of(expected)
        self.assertEqual(sorted(found), sorted(wanted))
        for name in wanted:
            self.assertEqual(found[name][:2], wanted[name][:2], name)
            self.assertTrue(found[name][2] == wanted[name][2], f"{name} has other bytes")

    def assert_has_fields(self, path, expected):
        """`path` has all that the other file has, whatever more."""
        found, wanted = fields_of(path), fields_of(expected)
        for key, value in wanted.items():
            # The original_context_length of Phi-3 is for kinds of scaling that it has not here.
            if key.startswith("tokenizer.") or key == "general.name" or key.endswith("original_context_length"):
                continue
            self.assertEqual(found.get(key, 0), value, key)  # 0 stands for none.


class Weights(GgufCase):
    def test_plain_weights_keep_every_bit(self):
        for dtype in ("bf16", "f16", "f32"):
            with self.subTest(dtype):
                weights = random_weights(CONFIG, dtype)
                expected = write_gguf(self.path(f"{dtype}.gguf"), CONFIG, quantise(weights, dtype.upper())[0])
                for write in (write_huggingface, write_meta):
                    model = write(self.path(f"{write.__name__}-{dtype}"), CONFIG, weights, dtype)
                    out = self.convert(model)
                    self.assert_same_tensors(out, expected)
                    self.assert_same_logits(model, out)
                fields = fields_of(out)
                self.assertEqual(fields["general.file_type"], FILE_TYPES[dtype.upper()])
                self.assertEqual(fields["general.alignment"], 32)
                self.assertEqual(gguf.GGUFReader(out).fields["GGUF.version"].contents(), 3)

    def test_gguf_keeps_blocks_and_metadata(self):
        template = "{{ messages }}"
        for kind in ("Q4_1", "Q4_0", "Q8_0", "MXFP4", "Q6_K"):
            with self.subTest(kind):
                stored, _ = quantise(random_weights(WIDE, "f32"), kind)
                model = write_gguf(self.path(f"{kind}.gguf"), WIDE, stored, chat_template=template)
                out = self.convert(model, warnings=())
                self.assert_same_tensors(out, model)
                fields, before = fields_of(out), fields_of(model)
                self.assertEqual({k: fields.get(k) for k in before}, before)
                self.assertEqual(fields["general.file_type"], FILE_TYPES[kind])
                self.assertEqual(fields["general.quantization_version"], 2)
                self.assert_same_logits(model, out, ("reference",))

    def test_several_files_become_one(self):
        stored, _ = quantise(random_weights(CONFIG), "BF16")
        whole = write_gguf(self.path("whole.gguf"), CONFIG, stored)
        folder = self.path("parts")
        os.mkdir(folder)
        write_gguf(os.path.join(folder, "m.gguf"), CONFIG, stored, split=5)
        self.assert_same_tensors(self.convert(folder, warnings=()), whole)

    def test_matrices_are_brought_to_a_type(self):
        weights = random_weights(CONFIG)
        model = write_huggingface(self.path("typed"), CONFIG, weights)
        for kind in ("F32", "F16", "BF16", "Q8_0", "Q4_0"):
            with self.subTest(kind):
                out = self.convert(model, "--type", kind.lower())
                expected = write_gguf(self.path(f"typed-{kind}.gguf"), CONFIG, quantise(weights, kind)[0])
                self.assert_same_tensors(out, expected)
                self.assertEqual(fields_of(out)["general.file_type"], FILE_TYPES[kind])

    def test_rows_that_are_not_whole_blocks_keep_their_type(self):
        config = Config(48, 1, 2, 2, vocab=499, multiple_of=32)
        model = write_huggingface(self.path("narrow"), config, random_weights(config))
        none = "no tokenizer is written"
        out = self.convert(model, "--type", "q8_0", warnings=("8 matrices keep their types", none))
        types = {name: kind for name, (kind, shape, _) in tensors_of(out).items() if len(shape) == 2}
        self.assertEqual({n for n, kind in types.items() if kind == GgmlType.Q8_0}, {"blk.0.ffn_down.weight"})

    def test_quantised_checkpoints_keep_their_blocks(self):
        config = Config(128, 2, 4, 2, vocab=256, multiple_of=64)
        weights = random_weights(config, "bf16", 3)
        for name in support.by_tier(("gptq-g32", "w8a8", "mxfp4", "w4a16-g32", "fp8-block"), tuple(SCHEMES)):
            with self.subTest(name):
                model = self.path(name)
                write_quantized(model, config, weights, SCHEMES[name])
                kept = QuantizedLogits.KEPT.get(name, "f16")
                widened = () if name in QuantizedLogits.KEPT else ("are widened to",)
                out = self.convert(model, warnings=(*widened, "no tokenizer is written"))
                # GGUF has no FP8: it is rounded to bf16.
                is_fp8 = kept == "fp8"
                self.assertEqual(tensors_of(out)["blk.1.ffn_down.weight"][0], GgmlType["BF16" if is_fp8 else kept.upper()])
                tokens = list(range(20))
                one, two = (self.logits(m, tokens, "reference") for m in (model, out))
                bound = 1e-2 * np.abs(one).max() if is_fp8 else 0
                self.assertLessEqual(np.abs(one - two).max(), bound)

    def test_scaled_rope(self):
        for name, scaling in (("llama3", RopeScaling(factor=32.0)), ("linear", LinearScaling(4.0))):
            with self.subTest(name):
                config = replace(CONFIG, scaling=scaling)
                weights = random_weights(config)
                model = write_huggingface(self.path(name), config, weights)
                expected = write_gguf(self.path(f"{name}-expected.gguf"), config, quantise(weights, "BF16")[0])
                out = self.convert(model)
                self.assert_has_fields(out, expected)
                if name == "llama3":
                    [factors] = [t.data for t in gguf.GGUFReader(out).tensors if t.name == "rope_freqs.weight"]
                    np.testing.assert_allclose(factors, rope_factors(config), rtol=1e-6)
                exact = forward(config, weights, TOKENS)
                error = np.abs(self.logits(out, TOKENS, "reference") - exact).max() / np.abs(exact).max()
                self.assertLessEqual(error, 2e-5)
                again = self.convert(out, warnings=("no tokenizer",))
                self.assert_same_tensors(again, out)
                self.assertEqual(fields_of(again), fields_of(out))


class Families(GgufCase):
    """The metadata and tensors that make_model writes as llama.cpp's converter does, from Hugging Face's form."""

    def check(self, name, family, config):
        weights = random_weights(config, "bf16", 1, family.shifted_norms)
        model = write_huggingface(self.path(name), config, weights, family=family)
        expected = write_gguf(self.path(f"{name}-expected.gguf"), config, quantise(weights, "BF16")[0], family=family)
        out = self.convert(model)
        self.assert_same_tensors(out, expected)
        self.assert_has_fields(out, expected)
        self.assert_same_logits(model, out)
        again = self.convert(out, warnings=("no tokenizer",))
        self.assert_same_tensors(again, out)
        self.assertEqual(fields_of(again), fields_of(out))

    def test_families(self):
        for case in ("Qwen2", "Qwen3", "Granite", "SmolLM3", "Olmo2", "Phi3"):
            with self.subTest(case):
                tested = getattr(test_families, case)
                self.check(case, tested.family, tested.gguf_config or tested.config)

    def test_mistral_without_windows_is_llama(self):
        self.check("mistral", families.MISTRAL, replace(test_families.Mistral.config, windows=()))

    def test_phi3_without_windows(self):
        self.check("phi3-whole", families.PHI3, replace(test_families.Phi3.config, windows=()))

    def test_gemma3(self):
        usual = replace(test_families.Gemma3.gguf_config, local_theta=20000.0)
        for name, windows in (("usual", usual.windows), ("layers", (7, 0, 0, 7, 7, 7))):
            with self.subTest(name):
                self.check(f"gemma3-{name}", families.GEMMA3, replace(usual, windows=windows))

    def test_gemma3_with_windows_of_all(self):
        config = replace(test_families.Gemma3.gguf_config, windows=(5000, 5000, 5000, 5000, 5000, 0))
        model = write_huggingface(self.path("wide"), config, random_weights(config, shifted_norms=True), family=families.GEMMA3)
        self.assert_same_logits(model, self.convert(model))

    def test_llama_cpp_has_the_same_logits(self):
        for case in ("Qwen3", "Granite"):
            with self.subTest(case):
                tested = getattr(test_families, case)
                weights = random_weights(tested.config, "f32")
                model = write_huggingface(self.path(f"peer-{case}"), tested.config, weights, "f32", family=tested.family)
                add_byte_tokenizer(model, tested.config.vocab)
                out = self.convert(model, warnings=())
                expected = forward(tested.config, weights, TOKENS)
                got = llama_cpp.Llama(out, 256, cache=llama_cpp.F32).logits(TOKENS)
                self.assertLessEqual(np.abs(got - expected).max() / np.abs(expected).max(), tested.llama_cpp_tolerance)


def write_json(directory, name, data):
    with open(os.path.join(directory, name), "w", encoding="utf-8") as f:
        json.dump(data, f)


def add_byte_tokenizer(directory, size, pattern=tokenizer_support.LLAMA3_PATTERN, added=()):
    """tokenizer.json with make_model's vocabulary; `added` are more added tokens."""
    vocabulary = byte_vocabulary(size)
    ordinary = 256 + len(MERGES)
    special = [{"id": i, "content": vocabulary[i], "special": True} for i in range(ordinary, size)]
    split = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
    bytes_alone = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    data = {
        "added_tokens": special + list(added),
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, bytes_alone]},
        "post_processor": None,
        "decoder": bytes_alone,
        "model": {
            "type": "BPE",
            "ignore_merges": pattern == tokenizer_support.LLAMA3_PATTERN,
            "vocab": {t: i for i, t in enumerate(vocabulary[:ordinary])},
            "merges": list(MERGES),
        },
    }
    write_json(directory, "tokenizer.json", data)
    return data


def protobuf(*fields):
    """The bytes of a message: (number, value) with an int, a float, bytes or text."""

    def varint(n):
        out = bytearray()
        while n > 127:
            out.append(n & 127 | 128)
            n >>= 7
        return bytes([*out, n])

    message = b""
    for number, value in fields:
        if isinstance(value, float):
            message += varint(number << 3 | 5) + np.float32(value).tobytes()
        elif isinstance(value, int):
            message += varint(number << 3) + varint(value)
        else:
            value = value.encode() if isinstance(value, str) else value
            message += varint(number << 3 | 2) + varint(len(value)) + value
    return message


def sentencepiece_model(pieces, scores, types):
    """tokenizer.model: pieces, a trainer's spec (BPE, bytes as a fallback) and a normalizer's."""
    entries = [(1, protobuf((1, p), (2, float(s)), (3, t))) for p, s, t in zip(pieces, scores, types)]
    trainer = protobuf((3, 2), (4, len(pieces)), (35, 1))
    normalizer = protobuf((1, "identity"), (3, 1), (4, 0), (5, 1))
    return protobuf(*entries, (2, trainer), (3, normalizer))


class Tokenizers(GgufCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.texts = [t for t in corpus.lines(count=600) if t] + ["  two  spaces\n\n\nand 12345 numbers, naïve 日本語 🙂"]

    def model(self, name, vocab):
        config = Config(32, 1, 2, 1, vocab=vocab, tied=True)
        return write_huggingface(self.path(name), config, random_weights(config))

    def assert_same_ids(self, model, out, specials=(), also_ends=()):
        """`also_ends` are tokens that GGUF takes for ends of an answer, by their names."""
        texts = self.texts + [f"a{one} {two}b" for one in specials for two in specials]
        for options in ((), ("--special",), ("--bos",)):
            one, two = (
                tokenizer_support.tokenize(kind, path, [t.encode() for t in texts], *options)
                for kind, path in (("directory", model), ("gguf", out))
            )
            for text, before, after in zip(texts, one, two):
                self.assertEqual(before, after, repr(text))
        ends = [set(tokenizer_support.stop_ids(*where)) for where in (("directory", model), ("gguf", out))]
        self.assertEqual(ends[1] - ends[0], set(also_ends))
        self.assertLessEqual(*ends)

    def assert_same_as_llama_cpp(self, out, texts):
        got = [ids for ids, _ in tokenizer_support.tokenize("gguf", out, [t.encode() for t in texts], "--special")]
        self.assertEqual(got, llama_cpp.tokenize(out, texts))

    SPECIALS = ("<|eot_id|>", "<|begin_of_text|>", "<|start_header_id|>", "<|reserved_special_token_9|>")

    def test_llama3(self):
        """Both forms of the real tokenizer, of which tokenizer.json does not say that whole words go first."""
        for file, vocab, pre in (("tokenizer.json", 128264, "dbrx"), ("tokenizer.model", 128256, "llama-bpe")):
            with self.subTest(file):
                model = self.model(f"llama3-{file}", vocab)
                shutil.copy(support.require_model(f"llama3/{file}"), model)
                out = self.convert(model, warnings=())
                fields = fields_of(out, "tokenizer.")
                self.assertEqual(fields["tokenizer.ggml.model"], "gpt2")
                self.assertEqual(fields["tokenizer.ggml.pre"], pre)
                self.assertEqual(len(fields["tokenizer.ggml.tokens"]), vocab)
                self.assertEqual(fields["tokenizer.ggml.tokens"][128009], "<|eot_id|>")
                self.assertEqual(fields["tokenizer.ggml.token_type"][128000:128002], [3, 3])
                self.assertEqual(len(fields["tokenizer.ggml.merges"]), 280147)
                self.assertIs(fields["tokenizer.ggml.add_bos_token"], True)
                self.assertEqual(fields["tokenizer.ggml.bos_token_id"], 128000)
                self.assert_same_ids(model, out, self.SPECIALS)
                self.assert_same_as_llama_cpp(out, ["The capital of France is", "a<|eot_id|> 12345  b\n\nnaïve 日本語"])

    def test_settings_of_huggingface(self):
        """Templates by name, ids of other files, added tokens, and a vocabulary shorter than the embedding."""
        added = [
            {"id": 280, "content": "<tool>", "special": False},
            {"id": 284, "content": "<|im_end|>", "special": True},
        ]
        model = self.model("settings", 300)
        add_byte_tokenizer(model, 270, tokenizer_support.GPT2_PATTERN, added)
        templates = [{"name": "default", "template": "d"}, {"name": "rag", "template": "r"}]
        write_json(
            model,
            "tokenizer_config.json",
            {"chat_template": templates, "eos_token": "<|t5|>", "bos_token": "<|t4|>", "add_bos_token": True},
        )
        write_json(model, "generation_config.json", {"eos_token_id": [263, 265]})
        out = self.convert(model, warnings=())
        fields = fields_of(out, "tokenizer.")
        self.assertEqual(fields["tokenizer.ggml.pre"], "gpt-2")
        self.assertEqual(len(fields["tokenizer.ggml.tokens"]), 300)
        self.assertEqual(fields["tokenizer.ggml.tokens"][281], "[PAD281]")
        self.assertEqual([fields["tokenizer.ggml.token_type"][i] for i in (0, 260, 280, 281, 284, 299)], [1, 3, 4, 5, 3, 5])
        self.assertEqual(fields["tokenizer.chat_template"], "d")
        self.assertEqual(fields["tokenizer.chat_template.rag"], "r")
        self.assertEqual(fields["tokenizer.chat_templates"], ["rag"])
        ids = [fields[f"tokenizer.ggml.{name}_token_id"] for name in ("bos", "eos", "eot", "eom")]
        self.assertEqual(ids, [262, 263, 284, 265])
        self.assert_same_ids(model, out, ("<|t5|>", "<tool>", "<|im_end|>", "<|t4"))
        self.assert_same_as_llama_cpp(out, ["the <tool>x<|im_end|>", "  12 they"])

    def test_what_gguf_cannot_say_is_a_warning(self):
        model = self.model("losses", 300)
        added = [{"id": 280, "content": "<mask>", "special": True, "lstrip": True}]
        data = add_byte_tokenizer(model, 270, added=added) | {"normalizer": {"type": "NFC"}}
        write_json(model, "tokenizer.json", data)
        self.convert(model, warnings=("NFC, nor that special tokens take white space",))

    def test_sentencepiece(self):
        pieces, scores, types = test_llamacpp.scored_vocabulary(corpus.SENTENCES, merges=400)
        model = self.model("sentencepiece", len(pieces) + 5)
        with open(os.path.join(model, "tokenizer.model"), "wb") as f:
            f.write(sentencepiece_model(pieces, scores, types))
        out = self.convert(model, warnings=())
        fields = fields_of(out, "tokenizer.")
        self.assertEqual(fields["tokenizer.ggml.model"], "llama")
        self.assertEqual(fields["tokenizer.ggml.tokens"][: len(pieces)], pieces)
        self.assertEqual(fields["tokenizer.ggml.scores"][: len(pieces)], scores)
        self.assertEqual(fields["tokenizer.ggml.token_type"], types + [5] * 5)
        self.assertIs(fields["tokenizer.ggml.add_space_prefix"], True)
        self.assert_same_ids(model, out)

    def ranked_pieces(self, change=lambda merges: merges):
        """tokenizer.json as transformers makes it of a model of scores: all pairs that make a piece, by its score."""
        pieces, scores, types = test_llamacpp.scored_vocabulary(corpus.SENTENCES, merges=400)
        for char in sorted({char for piece in pieces[259:] for char in piece} - set(pieces)):
            pieces.append(char)
            scores.append(scores[-1] - 1)
            types.append(test_llamacpp.NORMAL)
        vocab = {piece: i for i, piece in enumerate(pieces)}
        merges = [
            (piece[:cut], piece[cut:])
            for piece, kind in zip(pieces, types)
            for cut in range(1, len(piece))
            if kind == test_llamacpp.NORMAL and piece[:cut] in vocab and piece[cut:] in vocab
        ]
        data = test_pieces.tokenizer_json()
        data["model"] |= {"vocab": vocab, "merges": change([list(m) for m in merges])}
        data["added_tokens"] = [{"id": i, "content": pieces[i], "special": True} for i in range(3)]
        data["post_processor"]["single"][0]["SpecialToken"]["id"] = "<s>"
        return data, scores

    def test_ranked_pieces(self):
        data, scores = self.ranked_pieces()
        model = self.model("ranked", len(scores))
        write_json(model, "tokenizer.json", data)
        write_json(model, "tokenizer_config.json", {"eos_token": "</s>"})
        out = self.convert(model, warnings=())
        fields = fields_of(out, "tokenizer.")
        self.assertEqual(fields["tokenizer.ggml.model"], "llama")
        self.assertEqual(fields["tokenizer.ggml.tokens"][:5], ["<unk>", "<s>", "</s>", "<0x00>", "<0x01>"])
        self.assertIs(fields["tokenizer.ggml.add_space_prefix"], False)
        self.assert_same_ids(model, out, ("<s>", "</s>"))
        self.assert_same_as_llama_cpp(out, ["The quick brown fox", "a<s>b  </s> ça"])

    def test_ranked_pieces_that_scores_cannot_order(self):
        model = self.model("unordered", 1000)
        for change in (lambda merges: merges[:-7], lambda merges: merges[1::2] + merges[::2]):
            write_json(model, "tokenizer.json", self.ranked_pieces(change)[0])
            out = self.convert(model, warnings=("no tokenizer is written: ",))
            self.assertEqual(fields_of(out, "tokenizer."), {})

    def test_the_real_model_through_huggingface(self):
        model = support.require_model("smollm2.gguf")
        folder, out = self.path("smollm2"), self.path("smollm2-out.gguf")
        self.llamac("convert", model, "-o", folder, "--to", "huggingface", "-q", "--type", "f16")
        self.llamac("convert", folder, "-o", out, "--to", "gguf", "-q")
        names = ("<|im_start|>", "<|im_end|>", "<|endoftext|>", "<repo_name>")
        self.assert_same_ids(folder, out, names, also_ends=[4])
        before, after = fields_of(model, "tokenizer."), fields_of(out, "tokenizer.")
        for key in ("model", "pre", "tokens", "token_type", "merges", "bos_token_id", "eos_token_id"):
            self.assertEqual(before[f"tokenizer.ggml.{key}"], after[f"tokenizer.ggml.{key}"], key)
        self.assertEqual(before["tokenizer.chat_template"], after["tokenizer.chat_template"])
        prompt = "The capital of France is"
        texts = [self.llamac("run", m, "--raw", "-p", prompt, "-n", 16, "--temp", 0).stdout for m in (folder, out)]
        self.assertEqual(*texts)
        self.assertIn(" Paris", texts[0])


class Refused(GgufCase):
    def refuse(self, model, code, *words, options=()):
        out = self.path("refused.gguf")
        result = self.llamac("convert", model, "-o", out, "--to", "gguf", "-q", *options, expect=code)
        error = [line for line in result.stderr.splitlines() if "no tokenizer" not in line]
        self.assertEqual(len(error), 1, result.stderr)
        for word in ("expected", "got", *words):
            self.assertIn(word, error[0])
        self.assertEqual([name for name in os.listdir(self.folder) if "refused" in name], [])

    def test_features_that_an_architecture_has_not_in_gguf(self):
        cases = (
            (families.MISTRAL, test_families.Mistral.config, "window or rotation of layers", "llama"),
            (families.QWEN2, replace(test_families.Qwen2.config, windows=(0, 11)), "window or rotation of layers", "qwen2"),
            (families.SMOLLM3, replace(test_families.SmolLM3.config, rotates=NONE_ROTATES), "rotation", "smollm3"),
            (families.GEMMA3, test_families.Gemma3.config, "scale of attention", "gemma3"),
        )
        for family, config, *words in cases:
            with self.subTest(family.model_type):
                weights = random_weights(config, shifted_norms=family.shifted_norms)
                model = write_huggingface(self.path(f"model-{family.model_type}"), config, weights, family=family)
                self.refuse(model, UNSUPPORTED, *words)

    def test_types_that_ggml_has_not(self):
        model = write_huggingface(self.path("types"), CONFIG, random_weights(CONFIG))
        for kind in ("mxfp8", "q6_k", "int8"):
            words = f"--type: expected one of {{f32,f16,bf16,q8_0,q4_0}}, got {kind}"
            self.refuse(model, support.USAGE, words, options=("--type", kind))
        out = self.path("types-hf")
        result = self.llamac("convert", model, "-o", out, "--to", "huggingface", "--type", "q8_0", expect=support.USAGE)
        self.assertIn("--type: expected f32, f16 or bf16, got q8_0", result.stderr)

    def test_an_error_half_way_leaves_the_old_file(self):
        weights = random_weights(CONFIG, "f32")
        weights["layers.1.feed_forward.w2"][3, 5] = np.nan
        model = write_huggingface(self.path("nan"), CONFIG, weights, "f32")
        self.refuse(model, BAD_FILE, "row 3, column 5", options=("--type", "q8_0"))
        out = self.path("old.gguf")
        with open(out, "w") as f:
            f.write("old")
        self.llamac("convert", model, "-o", out, "--to", "gguf", "-q", "--type", "q8_0", expect=BAD_FILE)
        with open(out) as f:
            self.assertEqual(f.read(), "old")
        self.assertEqual([name for name in os.listdir(self.folder) if "old.gguf" in name], ["old.gguf"])

    def test_a_folder_is_no_file(self):
        model = write_huggingface(self.path("folder"), CONFIG, random_weights(CONFIG))
        self.llamac("convert", model, "-o", self.folder, "--to", "gguf", "-q", expect=support.USAGE)


if __name__ == "__main__":
    unittest.main(verbosity=2)
