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


PLAIN = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
# Names of added tokens and what else belongs to them.
MARKS = {
    "<|plain|>": {},
    "<|end|>": {"rstrip": True},
    "</s>": {"rstrip": True, "special": False},
    "<|left|>": {"lstrip": True},
    "<|both|>": {"lstrip": True, "rstrip": True},
    "word": {"single_word": True},
    "wide word": {"single_word": True, "lstrip": True, "rstrip": True},
    "\r\n": {"special": False},
}
AROUND = ["", " ", "  ", "\n", "\t \r\n", "\u00a0", "\u3000\u2028", "\x85", "\u200b", "\x1c", "a", "_", "9", "\u0301", "\u200d",
          "\u24b6", "\u00bd", "\u0660", "!", "-", "\u2581", "\u540d", "<"]  # fmt: skip


class AddedTokens(unittest.TestCase):
    """White space that belongs to an added token, and tokens that must be whole words, as in Phi-3's and Phi-4's files."""

    def check(self, data, texts=None):
        first = max(data["model"]["vocab"].values()) + 1
        names = list(MARKS)
        if data["model"]["byte_fallback"]:  # There an added token has no space.
            names.remove("wide word")
        data["added_tokens"] = [{"id": first + i, "content": name} | PLAIN | MARKS[name] for i, name in enumerate(names)]
        if texts is None:
            texts = self.texts(names)
        oracle = tokenizers.Tokenizer.from_str(json.dumps(data))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "tokenizer.json")
            with open(path, "w", encoding="utf-8") as f:
                json.dump(data, f)
            results = support.tokenize("huggingface", path, [t.encode() for t in texts], "--special")
        for text, (ids, _) in zip(texts, results):
            self.assertEqual(ids, oracle.encode(text, add_special_tokens=False).ids, repr(text))

    def texts(self, names):
        texts = [f"x{a}{name}{b}y" for name in names for a in AROUND for b in (a, "", " ")]
        texts += [f"{a}{name}{b}" for name in names for a in AROUND[:8] for b in AROUND[:8]]
        texts += [f"{a}{s}{b}{s}{c}" for a in names for b in names for c in names[:2] for s in ("", " ", "\r\n\r\n")]
        return texts + ["wordword", "word word", "passwords", "<|both|> \n <|both|>\n\n\n", "<|end|>\n\n\n"]

    def test_pieces_behind_a_space(self):
        """Phi-3's file is like this: a space goes first, which the decoder takes away."""
        data = tokenizer_json() | {"pre_tokenizer": None, "post_processor": None}
        prepend = {"type": "Prepend", "prepend": MARK}
        data["normalizer"] = {"type": "Sequence", "normalizers": [prepend, data["normalizer"]]}
        data["decoder"]["decoders"].append({"type": "Strip", "content": " ", "start": 1, "stop": 0})
        self.check(data)

    def bytes(self, *patterns, **options):
        """A file of bytes that is cut by `patterns`."""
        spelling = list(support.byte_spelling().values())
        merges = [("h", "e"), ("t", "he"), ("\u0120", "w"), ("o", "r"), ("\u010a", "\u010a"), ("\u0120", "\u0120")]
        merges += [("1", "2"), ("3", "4"), ("12", "34"), ("5", "6"), ("1234", "56"), ("\u0120", "12"), ("7", "8"), ("78", "9")]
        splits = [{"type": "Split", "pattern": {"Regex": p}, "behavior": "Isolated", "invert": False} | options for p in patterns]
        step = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
        model = tokenizer_json()["model"] | {"unk_token": None, "fuse_unk": False, "byte_fallback": False}
        model["vocab"] = {t: i for i, t in enumerate(spelling + ["".join(m) for m in merges])}
        model["merges"] = merges
        return {
            "normalizer": None,
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": [*splits, step]},
            "post_processor": step,
            "decoder": step,
            "model": model,
        }

    def test_bytes_whose_other_characters_are_removed(self):
        """Phi-4's file is like this: what the expression does not match is removed, which is nothing."""
        self.check(self.bytes(support.LLAMA3_PATTERN, behavior="Removed", invert=True))

    def test_groups_of_digits_are_counted_from_the_end(self):
        numbers = ["123456789"[:n] for n in range(1, 10)] + ["\u0661\u0662\u0663\u0664", "\u0967\u0968" * 5]
        texts = [f"{a}{n}{b}{n}" for a in ("", " ", "a", "_", "-") for n in numbers for b in ("", ",", " ", "b", "_", "\u0301")]
        for patterns in ((r"\d{1,3}(?=(?:\d{3})*\b)", support.GPT4O_PATTERN), (r"\p{N}+", r"(?=(\d{3})+(?!\d))")):
            with self.subTest(patterns):
                self.check(self.bytes(*patterns), texts)


if __name__ == "__main__":
    unittest.main(verbosity=2)
