# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Llama 3's ids equal tiktoken's, from tokenizer.model and tokenizer.json."""

import base64
import json
import os
import tempfile
import unicodedata
import unittest

import corpus
import tokenizer_support as support

tiktoken = support.require("tiktoken")
regex = support.require("regex")
MODEL = support.require_model("llama3", "tokenizer.model")
JSON = support.require_model("llama3", "tokenizer.json")

SPECIALS = [
    "<|begin_of_text|>", "<|end_of_text|>", "<|reserved_special_token_0|>", "<|reserved_special_token_1|>",
    "<|finetune_right_pad_id|>", "<|step_id|>", "<|start_header_id|>", "<|end_header_id|>", "<|eom_id|>",
    "<|eot_id|>", "<|python_tag|>", "<|image|>",
]  # fmt: skip
SPECIALS += [f"<|reserved_special_token_{i}|>" for i in range(2, 256 - len(SPECIALS) + 2)]


def read_ranks(path):
    with open(path, "rb") as f:
        return {base64.b64decode(token): int(rank) for token, rank in (line.split() for line in f)}


class Llama3(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        ranks = read_ranks(MODEL)
        cls.oracle = tiktoken.Encoding(
            "llama3",
            pat_str=support.LLAMA3_PATTERN,
            mergeable_ranks=ranks,
            special_tokens={name: len(ranks) + i for i, name in enumerate(SPECIALS)},
        )
        cls.lines = corpus.lines(count=support.LINES)

    def assert_same(self, texts, results, expected):
        self.assertEqual(len(results), len(texts))
        for text, (ids, decoded), wanted in zip(texts, results, expected):
            self.assertEqual(ids, wanted, repr(text))
            self.assertEqual(decoded, text.encode(), repr(text))

    def test_the_corpus_is_large(self):
        self.assertGreaterEqual(len(set(self.lines)), support.LINES * 5 // 6)

    def test_known_ids(self):
        [(ids, _)] = support.tokenize("tiktoken", MODEL, [b"The capital of France is"], "--bos")
        self.assertEqual(ids, [128000, 791, 6864, 315, 9822, 374])

    def test_tokenizer_model(self):
        results = support.tokenize("tiktoken", MODEL, [t.encode() for t in self.lines])
        self.assert_same(self.lines, results, map(self.oracle.encode_ordinary, self.lines))

    def test_tokenizer_json_with_whole_words_first(self):
        """tiktoken does so, and published files ask for it by ignore_merges."""
        for pairs in (False, True):
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "tokenizer.json")
                write_variant(path, pairs)
                results = support.tokenize("huggingface", path, [t.encode() for t in self.lines])
            self.assert_same(self.lines, results, map(self.oracle.encode_ordinary, self.lines))

    def test_tokenizer_json_merges_alone(self):
        """This file does not set ignore_merges: some tokens cannot be merged
        to, and its ids differ from tiktoken's on purpose."""
        reference = MergesAlone(JSON)
        results = support.tokenize("huggingface", JSON, [t.encode() for t in self.lines])
        self.assert_same(self.lines, results, map(reference.encode, self.lines))

    def test_tokenizer_json_that_composes(self):
        """A normalizer to NFC, as Qwen's files have: the ids of text that Python has composed."""
        texts = [unicodedata.normalize("NFD", t) for t in self.lines[:500]]
        texts += ["e\u0301e\u0323\u0302", "\u1112\u1161\u11ab\u1100\u116e\u11a8", "\u212b \u2126", "a\u0315\u0300\u05ae", "\u0301"]
        composed = [unicodedata.normalize("NFC", t) for t in texts]
        self.assertNotEqual(texts, composed)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "tokenizer.json")
            write_variant(path, pairs=False, normalizer={"type": "NFC"})
            results = support.tokenize("huggingface", path, [t.encode() for t in texts])
            self.assert_same(composed, results, map(self.oracle.encode_ordinary, composed))
            # Bytes that are no characters stay, and part what they are between.
            broken = [b"e\xff\xcc\x81", "e\u0301".encode() + b"\xff", b"\xed\xa0\x80e\xcc\x81"]
            results = support.tokenize("huggingface", path, broken)
            self.assertEqual([d for _, d in results], [broken[0], "\u00e9".encode() + b"\xff", b"\xed\xa0\x80\xc3\xa9"])

    def test_patterns_that_tell_case_apart(self):
        ranks = read_ranks(MODEL)
        for pattern in (support.GPT4O_PATTERN, support.TEKKEN_PATTERN):
            oracle = tiktoken.Encoding("cased", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
            with self.subTest(pattern), tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "tokenizer.json")
                write_variant(path, pairs=False, pattern=pattern)
                results = support.tokenize("huggingface", path, [t.encode() for t in self.lines])
                self.assert_same(self.lines, results, map(oracle.encode_ordinary, self.lines))

    def test_special_tokens_where_asked(self):
        texts = [f"{a}x{b} {a}" for a, b in zip(SPECIALS, SPECIALS[1:])] + ["<|eot_id", "<<|eot_id|>>", "<|reserved_special_token_1"]
        results = support.tokenize("tiktoken", MODEL, [t.encode() for t in texts], "--special")
        self.assert_same(texts, results, [self.oracle.encode(t, allowed_special="all") for t in texts])

    def test_every_token_alone(self):
        texts = [t.decode() for t in read_ranks(MODEL) if is_text(t)]
        results = support.tokenize("tiktoken", MODEL, [t.encode() for t in texts])
        self.assert_same(texts, results, map(self.oracle.encode_ordinary, texts))

    def test_long_runs(self):
        texts = [c * (1 << 20) for c in ("a", " ", "\n", "0", "=", "中", "\u0301", "'")] + ["<|" * (1 << 19)]
        results = support.tokenize("tiktoken", MODEL, [t.encode() for t in texts], "--special")
        for text, (_, decoded) in zip(texts, results):
            self.assertEqual(decoded, text.encode())

    def test_broken_utf8_comes_back(self):
        texts = corpus.broken_lines(count=support.BROKEN)
        for text, (_, decoded) in zip(texts, support.tokenize("tiktoken", MODEL, texts)):
            self.assertEqual(decoded, text)

    def test_character_classes(self):
        table, uppers, lowers = support.char_classes()
        ranks = {bytes([i]): i for i in range(256)}
        text = "".join(chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000)
        for number, pattern in enumerate((r"[^\p{L}\p{N}\s]", r"\p{L}", r"\p{N}", r"\s")):
            oracle = tiktoken.Encoding("bytes", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
            matched = bytes(oracle.encode_ordinary(text)).decode()
            ours = "".join(c for c in text if table[ord(c)] == number)
            self.assertEqual(ours, matched, pattern)
        for flags, pattern in ((uppers, support.UPPER), (lowers, support.LOWER)):
            oracle = tiktoken.Encoding("bytes", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
            matched = bytes(oracle.encode_ordinary(text)).decode()
            self.assertEqual("".join(c for c in text if flags[ord(c)]), matched, pattern)


def write_variant(path, pairs, normalizer=None, pattern=None):
    """tokenizer.json with ignore_merges set, its merges as pairs or as text; `pattern` splits instead of its own."""
    with open(JSON, encoding="utf-8") as f:
        data = json.load(f)
    data["model"]["ignore_merges"] = True
    data["normalizer"] = normalizer
    if pattern:
        split = data["pre_tokenizer"]["pretokenizers"][0]
        split["pattern"] = {"Regex": pattern}
    if pairs:
        data["model"]["merges"] = [m.split(" ") for m in data["model"]["merges"]]
    with open(path, "w", encoding="utf-8") as f:
        json.dump(data, f)


class MergesAlone:
    """Byte-pair encoding by a list of merges, as plainly as can be."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as f:
            model = json.load(f)["model"]
        self.vocab = model["vocab"]
        self.ranks = {tuple(m.split(" ")): i for i, m in enumerate(model["merges"])}
        self.spelling = support.byte_spelling()
        self.words = {}

    def encode_word(self, word):
        parts = [self.spelling[b] for b in word.encode()]
        while len(parts) > 1:
            rank, at = min((self.ranks.get(pair, len(self.ranks)), i) for i, pair in enumerate(zip(parts, parts[1:])))
            if rank == len(self.ranks):
                break
            parts[at : at + 2] = [parts[at] + parts[at + 1]]
        return [self.vocab[p] for p in parts]

    def encode(self, text):
        ids = []
        for word in regex.findall(support.LLAMA3_PATTERN, text):
            if word not in self.words:
                self.words[word] = self.encode_word(word)
            ids += self.words[word]
        return ids


def is_text(token):
    try:
        token.decode()
        return True
    except UnicodeDecodeError:
        return False


if __name__ == "__main__":
    unittest.main(verbosity=2)
