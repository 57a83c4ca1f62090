# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""tokenizer.json with bytes as a fallback, as Gemma's is: its ids equal those of
Hugging Face's tokenizers."""

import collections
import json
import os
import tempfile
import unittest

import corpus
import tokenizer_support as support

tokenizers = support.require("tokenizers")

MARK = "\u2581"
BYTES = [f"<0x{b:02X}>" for b in range(256)]
CONTROL = ["<pad>", "<eos>", "<bos>", "<unk>"]
USER = ["<table>", "\n", "\n\n", MARK * 2, MARK * 3]


def train(sentences, count):
    """`count` merges of neighbours, the most frequent first, across spaces too."""
    words = [list(s.replace(" ", MARK)) for s in sentences]
    merges = []
    while len(merges) < count:
        pairs = collections.Counter(pair for word in words for pair in zip(word, word[1:]))
        best = max(pairs, key=lambda p: (pairs[p], p))
        merges.append(best)
        words = [support.merge_pair(word, best) for word in words]
    return merges


def tokenizer_json():
    """A file as Gemma 3's: 400 merges, letters of half the sentences."""
    merges = [(MARK, MARK), (MARK, MARK * 2)] + train([s for s in corpus.SENTENCES if "\n" not in s], 400)
    merges = list(dict.fromkeys(merges))
    letters = sorted({c for s in corpus.SENTENCES[::2] for c in s.replace(" ", MARK)} | {c for m in merges for p in m for c in p})
    vocab = {t: i for i, t in enumerate(dict.fromkeys(CONTROL + BYTES + USER + letters + ["".join(m) for m in merges]))}
    replace = lambda a, b: {"type": "Replace", "pattern": {"String": a}, "content": b}  # noqa: E731
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    return {
        "added_tokens": [{"id": vocab[t], "content": t, "special": t in CONTROL, **plain} for t in CONTROL + USER],
        "normalizer": replace(" ", MARK),
        "pre_tokenizer": {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "<bos>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"<bos>": {"id": "<bos>", "ids": [vocab["<bos>"]], "tokens": ["<bos>"]}},
        },
        "decoder": {"type": "Sequence", "decoders": [replace(MARK, " "), {"type": "ByteFallback"}, {"type": "Fuse"}]},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": "<unk>",
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": True,
            "byte_fallback": True,
            "ignore_merges": False,
            "vocab": vocab,
            "merges": [list(m) for m in merges],
        },
    }


class Pieces(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.path = os.path.join(cls.folder.name, "tokenizer.json")
        cls.data = tokenizer_json()
        with open(cls.path, "w", encoding="utf-8") as f:
            json.dump(cls.data, f)
        cls.oracle = tokenizers.Tokenizer.from_file(cls.path)

    def compare(self, texts, *options):
        """The ids are the oracle's, and all but U+2581 comes back."""
        results = support.tokenize("huggingface", self.path, [t.encode() for t in texts], *options)
        for text, (ids, decoded) in zip(texts, results):
            self.assertEqual(ids, self.oracle.encode(text, add_special_tokens=False).ids, repr(text))
            self.assertEqual(decoded, text.replace(MARK, " ").encode(), repr(text))

    def test_text(self):
        self.compare(corpus.lines(count=support.LINES))

    def test_characters_without_a_token_are_bytes(self):
        vocab = self.data["model"]["vocab"]
        self.assertNotIn("\u0416", vocab)
        [(ids, _)] = support.tokenize("huggingface", self.path, ["\u0416".encode()])
        self.assertEqual(ids, [vocab["<0xD0>"], vocab["<0x96>"]])

    def test_broken_utf8(self):
        """Its bytes come back, and what stands between them is merged as ever."""
        broken = corpus.broken_lines(count=support.BROKEN)
        self.assertEqual([d for _, d in support.tokenize("huggingface", self.path, broken)], broken)
        [(ids, _), (good, _)] = support.tokenize("huggingface", self.path, [b"the\xffthe", b"the"])
        self.assertEqual(ids, [*good, self.data["model"]["vocab"]["<0xFF>"], *good])

    def test_spaces_and_their_mark(self):
        marks = [MARK * n + "a" + MARK for n in range(6)]
        self.compare([" " * n + "a" + " " * m for n in range(8) for m in range(3)] + marks)

    def test_added_tokens(self):
        self.compare(["a<table>b", "\n\n\n", "<eos>a <bos><ta", " <table> \n a"], "--special")

    def test_text_never_spells_a_control_token(self):
        [(ids, decoded)] = support.tokenize("huggingface", self.path, [b"<eos>"])
        self.assertNotIn(self.data["model"]["vocab"]["<eos>"], ids)
        self.assertEqual(decoded, b"<eos>")

    def test_the_template_adds_begin_of_sequence(self):
        for text, (ids, _) in zip(("a", ""), support.tokenize("huggingface", self.path, [b"a", b""], "--bos")):
            self.assertEqual(ids, self.oracle.encode(text).ids)

    def test_long_runs(self):
        texts = [c.encode() * (1 << 18) for c in ("a", " ", "\u0416")]
        for text, (_, decoded) in zip(texts, support.tokenize("huggingface", self.path, texts)):
            self.assertEqual(decoded, text)


if __name__ == "__main__":
    unittest.main(verbosity=2)
