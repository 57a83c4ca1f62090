# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The ids of GGUF vocabularies equal llama.cpp's: SmolLM2's, and ones written
here for the other pre-tokenizers and for SentencePiece's kind."""

import functools
import json
import os
import tempfile
import unittest

import corpus
import tokenizer_support as support

llama_cpp = support.require("llama_cpp_library")
gguf = support.require("gguf")
SMOLLM = support.require_model("smollm2.gguf")
LLAMA3_JSON = support.require_model("llama3", "tokenizer.json")

NORMAL, UNKNOWN, CONTROL, USER, UNUSED, BYTE = range(1, 7)


def write_vocabulary(path, **keys):
    """A GGUF file that holds a vocabulary and no weights."""
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(128)
    writer.add_embedding_length(64)
    writer.add_block_count(1)
    writer.add_feed_forward_length(64)
    writer.add_head_count(1)
    writer.add_layer_norm_rms_eps(1e-5)
    for name, value in keys.items():
        getattr(writer, f"add_{name}")(value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()


@functools.cache
def smollm_fields():
    return gguf.GGUFReader(SMOLLM).fields


def smollm_strings(key):
    field = smollm_fields()[f"tokenizer.ggml.{key}"]
    return [bytes(field.parts[i]) for i in field.data]


class LlamaCpp(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.lines = [t.encode() for t in corpus.lines(count=support.LINES)]
        cls.broken = corpus.broken_lines(count=support.BROKEN)

    def compare(self, path, texts, special=False):
        vocabulary = llama_cpp.Llama(path)
        options = ["--special"] if special else []
        results = support.tokenize("gguf", path, texts, *options)
        for text, (ids, _) in zip(texts, results):
            wanted = vocabulary.tokenize(text, special)
            self.assertEqual(ids, wanted, repr(text))
        return results

    def test_smollm2(self):
        # llama.cpp leaves out bytes that have no token.
        missing = bytes_without_token(smollm_strings("tokens"))
        whole = 0
        for text, (_, decoded) in zip(self.lines, self.compare(SMOLLM, self.lines)):
            if not missing.intersection(text):
                self.assertEqual(decoded, text)
                whole += 1
        self.assertGreater(whole, len(self.lines) * 3 // 4)

    def test_smollm2_broken_utf8(self):
        self.compare(SMOLLM, self.broken)

    def test_smollm2_special_tokens(self):
        names = ["<|im_start|>", "<|im_end|>", "<|endoftext|>", "<repo_name>", "<reponame>", "<|im_"]
        texts = [f"{a}{b} x{a}\n{b}".encode() for a in names for b in names]
        self.compare(SMOLLM, texts, special=True)
        self.compare(SMOLLM, texts, special=False)

    def test_smollm2_long_runs(self):
        texts = [c * (1 << 20) for c in (b"a", b" ", b"=", b"\n")]
        for text, (_, decoded) in zip(texts, support.tokenize("gguf", SMOLLM, texts)):
            self.assertEqual(decoded, text)

    def test_patterns(self):
        """Of other pre-tokenizers, with SmolLM2's vocabulary."""
        types = smollm_fields()["tokenizer.ggml.token_type"]
        # llama.cpp's (?i:'s) knows no long s, unlike the original pattern.
        lines = [t for t in self.lines if "'\u017f".encode() not in t]
        # Of those that tell case apart, llama.cpp has that of ASCII alone, and no marks.
        plain = [t for t in lines if t.isascii()]
        for pre in ("gpt-2", "qwen2", "refact", "smaug-bpe", "dbrx", "gpt-4o", "tekken"):
            with self.subTest(pre), tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "vocabulary.gguf")
                write_vocabulary(
                    path,
                    tokenizer_model="gpt2",
                    tokenizer_pre=pre,
                    token_list=smollm_strings("tokens"),
                    token_merges=[m.decode() for m in smollm_strings("merges")],
                    token_types=[int(types.parts[i][0]) for i in types.data],
                    bos_token_id=1,
                    eos_token_id=2,
                )
                self.compare(path, plain if pre in ("gpt-4o", "tekken") else lines + self.broken)

    def test_llama3_pattern(self):
        with open(LLAMA3_JSON, encoding="utf-8") as f:
            data = json.load(f)
        names = {**{i: t for t, i in data["model"]["vocab"].items()}, **{t["id"]: t["content"] for t in data["added_tokens"]}}
        special = {t["id"] for t in data["added_tokens"]}
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "llama3.gguf")
            write_vocabulary(
                path,
                tokenizer_model="gpt2",
                tokenizer_pre="llama-bpe",
                token_list=[names[i] for i in range(len(names))],
                token_merges=data["model"]["merges"],
                token_types=[CONTROL if i in special else NORMAL for i in range(len(names))],
                bos_token_id=128000,
                eos_token_id=128009,
            )
            # llama.cpp's (?i:'s) knows no long s, unlike the original pattern.
            texts = [t for t in self.lines if "'\u017f".encode() not in t]
            self.compare(path, texts + self.broken)

    def test_scored_pieces(self):
        # Not the last line: where pieces spell the name of a control token,
        # llama.cpp finds it in any text.
        pieces, scores, types = scored_vocabulary(corpus.SENTENCES[:-1])
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "pieces.gguf")
            write_vocabulary(
                path,
                tokenizer_model="llama",
                token_list=pieces,
                token_scores=scores,
                token_types=types,
                bos_token_id=1,
                eos_token_id=2,
                unk_token_id=0,
            )
            self.compare(path, [t for t in self.lines if t])
            for text, (_, decoded) in zip(self.broken, support.tokenize("gguf", path, self.broken)):
                self.assertEqual(decoded, text)
            self.compare(path, [b"<s>a</s>b <s> c", b"</s>"], special=True)


def bytes_without_token(tokens):
    """The bytes that `tokens`, in GPT-2's spelling, cannot spell."""
    return {b for b, char in support.byte_spelling().items() if char.encode() not in set(tokens)}


def scored_vocabulary(sentences, merges=1500):
    """A SentencePiece-like vocabulary, trained on `sentences` by plain BPE."""
    pieces = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)]
    types = [UNKNOWN, CONTROL, CONTROL] + [BYTE] * 256
    words = [list("\u2581" + w) for s in sentences for w in s.split()]
    learnt = []
    for _ in range(merges):
        counts = {}
        for word in words:
            for pair in zip(word, word[1:]):
                counts[pair] = counts.get(pair, 0) + 1
        best = max(counts, key=lambda p: (counts[p], p))
        joined = "".join(best)
        if joined not in learnt:
            learnt.append(joined)
        for i, word in enumerate(words):
            if joined in "".join(word):
                words[i] = support.merge_pair(word, best)
    letters = sorted({c for s in sentences[:25] for c in s.replace(" ", "\u2581")})
    learnt += [c for c in letters if c not in learnt]
    pieces += learnt
    types += [NORMAL] * len(learnt)
    scores = [0.0] * 259 + [-float(i) for i in range(len(learnt))]
    return pieces, scores, types


if __name__ == "__main__":
    unittest.main(verbosity=2)
