# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The ids of GGUF vocabularies equal llama.cpp's: SmolLM2's, and ones written
here for the other pre-tokenizers and for SentencePiece's kind."""

import collections
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


def write_vocabulary(path, architecture="llama", **keys):
    """A GGUF file that holds a vocabulary and no weights."""
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_context_length(128)
    writer.add_embedding_length(64)
    writer.add_block_count(1)
    writer.add_feed_forward_length(64)
    writer.add_head_count(1)
    writer.add_layer_norm_rms_eps(1e-5)
    for name, value in keys.items():
        if hasattr(writer, f"add_{name}"):
            getattr(writer, f"add_{name}")(value)
        else:
            writer.add_uint32(f"tokenizer.ggml.{name}", value)
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
        """Pre-tokenizers that are scanned by hand, with SmolLM2's vocabulary."""
        types = smollm_fields()["tokenizer.ggml.token_type"]
        # llama.cpp's (?i:'s) knows no long s, unlike the original pattern.
        lines = [t for t in self.lines if "'\u017f".encode() not in t]
        # llama.cpp's pre-tokenizers tell case apart in ASCII alone, and know no marks.
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


# llama.cpp's names of pre-tokenizers, those that cut text alike together.
ALIKE = [
    ["default"],
    ["llama-bpe", "llama-v3", "llama3", "falcon3", "falcon-h1", "jina-v5-nano", "lfm2", "midm-2.0", "pixtral"],
    ["dbrx", "smaug-bpe", "chatglm-bpe", "glm4"],
    ["gpt-2", "a.x-4.0", "exaone4", "gigachat", "granite-docling", "jais", "jina-de", "jina-es", "jina-v1-en", "jina-v2-code",
     "jina-v2-de", "jina-v2-es", "mellum", "modern-bert", "mpt", "olmo", "phi-2", "roberta-bpe", "trillion"],
    ["smollm", "codeshell", "command-r", "exaone", "mellum2", "minerva-7b", "refact", "starcoder"],
    ["deepseek-r1-qwen", "qwen2", "f2llmv2", "grok-2", "hunyuan", "kormo", "megrez", "solar-open", "stablelm2"],
    ["gpt-4o", "kanana2", "llama4", "minimax-m2", "talkie"],
    ["granite-embed-multi-97m"],
    ["tekken"],
    ["bailingmoe", "bailingmoe2", "llada-moe"],
    ["bloom", "gpt3-finnish", "poro-chat"],
    ["chameleon"],
    ["deepseek-coder"],
    ["deepseek-llm"],
    ["deepseek-v3", "hunyuan-dense", "hy_v4", "joyai-llm"],
    ["exaone-moe"],
    ["falcon"],
    ["jais-2"],
    ["kimi-k2"],
    ["laguna"],
    ["minicpm5"],
    ["qwen35"],
    ["seed-coder"],
    ["spark2_5"],
    ["superbpe"],
    ["tiny_aya", "cohere2moe"],
    ["ufakzeka"],
    ["viking"],
    ["youtu"],
]  # fmt: skip


def byte_pairs(sentences, count):
    """GPT-2's spelling of all bytes, and `count` merges of neighbours, the most
    frequent first, across words too: ids show where text was cut."""
    spelling = support.byte_spelling()
    words = [[spelling[b] for b in s.encode()] for s in sentences]
    merges = []
    while len(merges) < count:
        pairs = collections.Counter(pair for word in words for pair in zip(word, word[1:]))
        best = max(pairs, key=lambda p: (pairs[p], p))
        merges.append(best)
        words = [support.merge_pair(word, best) for word in words]
    return list(spelling.values()), merges


class PreTokenizers(LlamaCpp):
    """Every name of tokenizer.ggml.pre cuts text as llama.cpp does. The default tier has all lines for one name of
    each kind, and a few for the others."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # llama.cpp's (?i:'s) knows no long s.
        cls.lines = [t for t in cls.lines if "'\u017f".encode() not in t]
        some = ["1234567 89012 'Tis we'll 123 456 7890 "] * 3 + ["  a   b    c\n\n d \t e", "ABCDef GHIjkl 'S 'll."]
        letters, merges = byte_pairs(corpus.SENTENCES + some, 400)
        cls.merges = [" ".join(m) for m in merges]
        cls.tokens = list(dict.fromkeys(letters + ["".join(m) for m in merges]))

    def write(self, folder, pre):
        path = os.path.join(folder, "vocabulary.gguf")
        words = len(self.tokens)
        write_vocabulary(
            path,
            tokenizer_model="gpt2",
            **({"tokenizer_pre": pre} if pre else {}),
            token_list=[*self.tokens, "<s>", "</s>"],
            token_merges=self.merges,
            token_types=[NORMAL] * words + [CONTROL] * 2,
            bos_token_id=words,
            eos_token_id=words + 1,
        )
        return path

    @staticmethod
    def is_same(pre, text):
        """Whether llama.cpp takes the expression at its word: of cases it knows those of ASCII alone and no marks, a
        space of another script is no ideograph to it, and \\b in a lookahead does not look back (test_pieces.py has
        that of Hugging Face)."""
        if pre in ("gpt-4o", "granite-embed-multi-97m", "tekken", "kimi-k2", "youtu"):
            return text.isascii()
        if pre in ("deepseek-coder", "deepseek-llm"):
            return not any(c.isspace() and not c.isascii() for c in text)
        if pre == "tiny_aya":
            return not any(c.isdigit() for c in text) and text.isascii()
        return True

    def test_every_name(self):
        with tempfile.TemporaryDirectory() as folder:
            for first, *others in ALIKE:
                lines = [t for t in self.lines if self.is_same(first, t.decode())]
                for pre in (first, *others):
                    with self.subTest(pre):
                        few = support.by_tier(lines[6:106:5], lines)
                        every = support.by_tier(lines[::8], lines)
                        self.compare(self.write(folder, pre), every if pre == first else few)

    def test_no_name(self):
        """Is that of the default, with a warning."""
        with tempfile.TemporaryDirectory() as folder:
            self.compare(self.write(folder, ""), self.lines[:100])

    def test_long_runs(self):
        """Take time in proportion to their length, with and without a place to cut them."""
        size = support.by_tier(1 << 14, 1 << 18)
        texts = [c * size for c in (b"a", b" ", b"1", b"=", b"\n", b" a", "\u0915\u093f".encode())]
        with tempfile.TemporaryDirectory() as folder:
            for first, *_ in ALIKE:
                with self.subTest(first):
                    path = self.write(folder, first)
                    for text, (_, decoded) in zip(texts, support.tokenize("gguf", path, texts)):
                        self.assertEqual(decoded, text)


# The tests that PreTokenizers has from its base do not run twice.
for name in [n for n in dir(LlamaCpp) if n.startswith("test_") and n not in vars(PreTokenizers)]:
    setattr(PreTokenizers, name, None)


class Names(unittest.TestCase):
    """Some facts llama.cpp knows by the names of models and tokens."""

    # A text of each kind: with white space behind, ahead and around.
    TEXTS = [
        "<|user|>\nHello<|end|>\n<|assistant|>\n",
        "<s><|user|>\n Hello",
        "Hello</s>\n G",
        "<|end|> \t\v\f\r\n x <|end|>",
        "<|end|>\u00a0x<|end|>\u3000",
        "<unk> a<|endoftext|> b<s> c",
        "<|user|>  <|end|>  <|assistant|>",
        " <|user|>",
    ]

    def vocabulary(self, folder, special, **keys):
        """A vocabulary with the tokens `special`, each a name and its type."""
        pieces, scores, types = scored_vocabulary(["Hello hello"], merges=4)
        path = os.path.join(folder, "names.gguf")
        write_vocabulary(
            path,
            architecture="phi3" if "name" in keys else "llama",
            tokenizer_model="llama",
            token_list=pieces + [name for name, _ in special],
            token_scores=scores + [-1000.0] * len(special),
            token_types=types + [kind for _, kind in special],
            **{"bos_token_id": 1, "eos_token_id": 2, "unk_token_id": 0} | keys,
        )
        return path

    def test_white_space_belongs_to_the_tokens_of_phi3(self):
        special = [(name, CONTROL) for name in ("<|endoftext|>", "<|user|>", "<|end|>", "<|assistant|>")]
        with tempfile.TemporaryDirectory() as folder:
            for name in ("Phi-3-mini-4k-instruct", "my PHI3", "Llama", None):
                with self.subTest(name):
                    path = self.vocabulary(folder, special, **({"name": name} if name else {}))
                    vocabulary = llama_cpp.Llama(path)
                    texts = [t.encode() for t in self.TEXTS]
                    got = [ids for ids, _ in support.tokenize("gguf", path, texts, "--special")]
                    self.assertEqual(got, [vocabulary.tokenize(t, True) for t in texts])

    def check_stops(self, path):
        vocabulary = llama_cpp.Llama(path)
        count = len(gguf.GGUFReader(path).fields["tokenizer.ggml.tokens"].data)
        wanted = [id for id in range(count) if vocabulary.ends(id)]
        self.assertEqual(support.stop_ids("gguf", path), wanted)
        return wanted, vocabulary

    def test_tokens_that_end_an_answer_are_known_by_their_names(self):
        names = ["<|eot_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|flush|>", "<end_of_turn>", "<|endoftext|>", "<|eom_id|>",
                 "<EOT>", "_<EOT>", "[EOT]", "[EOS]", "<|end_of_text|>", "<end_of_utterance>", "<eos>", "<turn|>",
                 "<\uff5cend\u2581of\u2581sentence\uff5c>", "[e~[", "<|fim_pad|>", "<|fim_repo|>", "<|file_sep|>",
                 "<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|user|>"]  # fmt: skip
        with tempfile.TemporaryDirectory() as folder:
            for kind in (CONTROL, USER, NORMAL):
                with self.subTest(kind):
                    path = self.vocabulary(folder, [(name, kind) for name in names])
                    wanted, vocabulary = self.check_stops(path)
                    self.assertGreater(len(wanted), 18)
                    # They are control tokens, whatever the file says: no text spells them.
                    if kind == USER:
                        texts = [f"a{name}b".encode() for name in names]
                        got = [ids for ids, _ in support.tokenize("gguf", path, texts)]
                        self.assertEqual(got, [vocabulary.tokenize(t) for t in texts])

    def test_names_that_do_not_end_an_answer_beside_others(self):
        for names in (
            ["<|end|>", "<|return|>", "<|call|>"],
            ["<|end|>", "<|flush|>", "<|calls|>"],
            ["<|end|>", "<|return|>"],
            ["<|tool_response>"],
        ):
            with self.subTest(names), tempfile.TemporaryDirectory() as folder:
                path = self.vocabulary(folder, [(name, CONTROL) for name in names], eos_token_id=1)
                self.check_stops(path)

    def test_ids_take_the_place_of_names(self):
        with tempfile.TemporaryDirectory() as folder:
            special = [(name, CONTROL) for name in ("<|fim_pad|>", "<a>", "<b>")]
            for key in ("fim_pad", "fim_rep", "fim_sep", "eot", "eom"):
                with self.subTest(key):
                    path = self.vocabulary(folder, special)
                    first = len(gguf.GGUFReader(path).fields["tokenizer.ggml.tokens"].data) - len(special)
                    self.check_stops(self.vocabulary(folder, special, **{f"{key}_token_id": first + 1}))

    def test_ids_of_sentencepiece_are_known_without_keys(self):
        with tempfile.TemporaryDirectory() as folder:
            pieces, scores, types = scored_vocabulary(["Hello hello"], merges=4)
            path = os.path.join(folder, "no-ids.gguf")
            write_vocabulary(path, tokenizer_model="llama", token_list=pieces, token_scores=scores, token_types=types)
            self.check_stops(path)


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
