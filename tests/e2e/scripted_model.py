# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A GGUF model whose greedy answer to any prompt is the text that a test
chooses, cut into tokens as it chooses; or one of several, by the prompt's end.

Attention and feed-forward add nothing, so that the last hidden state is the
embedding of the last token, a unit vector. The row of the output for token b has
a 1 in the columns of the tokens that b follows: those of the script follow each
other, any other is followed by the first, and the last by the end of the answer.
"""

import gguf
import numpy as np

NORMAL, CONTROL, USER_DEFINED = 1, 3, 4  # Types of tokens.
BEGIN, END = "<|bos|>", "<|eos|>"
BEGIN_ID = 257  # Behind the bytes, whose ids are their values, and one merge.

FEED_FORWARD = 64
# Vocabularies are padded to what the kernels of every format can read.
ROWS, LEAST_WIDTH = 32, 64


def _byte_names():
    """GPT-2's character of each byte, as byte-level vocabularies write tokens."""
    printable = {*range(33, 127), *range(161, 173), *range(174, 256)}
    others = iter(range(256, 512))
    return [chr(byte if byte in printable else next(others)) for byte in range(256)]


_NAMES = _byte_names()


def token_name(text):
    """The name of a token of these bytes."""
    return "".join(_NAMES[byte] for byte in text)


def cut(text, size=6):
    """`text` as pieces of about `size` bytes, of which no two are the same."""
    data = text.encode() if isinstance(text, str) else text
    pieces, at = [], 0
    while at < len(data):
        piece = data[at : at + size]
        at += len(piece)
        while piece in pieces:
            if at == len(data):
                piece = pieces.pop() + piece
            else:
                piece += data[at : at + 1]
                at += 1
        pieces.append(piece)
    return pieces


class _Vocabulary:
    """A token of each byte, the two ends, and what is added."""

    def __init__(self, end):
        # GGUF's vocabulary needs a merge, and a merge its token.
        self.names = [token_name(bytes([byte])) for byte in range(256)] + ["Ġt"]
        self.types = [NORMAL] * len(self.names)
        self.begin, self.end = self.add(BEGIN, CONTROL), self.add(end, CONTROL)

    def add(self, name, kind):
        if name in self.names:
            raise ValueError(f"scripted model: expected each token once, got {name!r} twice")
        self.names.append(name)
        self.types.append(kind)
        return len(self.names) - 1

    def script(self, pieces, others=()):
        """The ids of `pieces`, which are new tokens or those of bytes, none of
        them among `others`."""
        ids = list(others)
        for piece in pieces:
            name, kind = (token_name(piece), NORMAL) if isinstance(piece, bytes) else piece
            known = self.names.index(name) if name in self.names else None
            if known in ids or (kind == NORMAL and known is not None and known >= 257):
                raise ValueError(f"scripted model: expected each piece once, got {piece!r} twice")
            ids.append(self.add(name, kind) if known is None else known)
        return ids[len(others) :]

    def pad(self):
        while len(self.names) % ROWS:
            self.add(f"<|pad{len(self.names)}|>", CONTROL)


def _weights(count, width, chain, others):
    """Weights by GGUF's names, for `chain`: the script and the end; and, by the
    token before them, others."""
    embeddings = np.zeros((count, width), np.float32)
    np.fill_diagonal(embeddings, 1)
    output = np.zeros((count, width), np.float32)
    output[chain[0], :count] = 1
    for one in [chain, *([first, *other] for first, other in others.items())]:
        for before, after in zip(one, one[1:]):
            output[chain[0], before] = 0
            output[after, before] = 1
    layer = {
        "attn_norm": np.ones(width, np.float32),
        "ffn_norm": np.ones(width, np.float32),
        "ffn_gate": np.zeros((FEED_FORWARD, width), np.float32),
        "ffn_up": np.zeros((FEED_FORWARD, width), np.float32),
        "ffn_down": np.zeros((width, FEED_FORWARD), np.float32),
    }
    for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
        layer[name] = np.zeros((width, width), np.float32)
    return {
        "token_embd.weight": embeddings,
        "output_norm.weight": np.ones(width, np.float32),
        "output.weight": output,
    } | {f"blk.0.{name}.weight": value for name, value in layer.items()}


def make(
    path,
    pieces,
    template=None,
    specials=(),
    extra=(),
    eos=END,
    name="scripted",
    ctx=4096,
    pre="llama-bpe",
    others=None,
):
    """Writes the model to `path`, and returns that. `pieces` are the tokens of
    the answer: bytes, or (name, type) of one of another type; no two may be the
    same. `specials` are names of control tokens and `extra` (name, type) of any
    others that the vocabulary has beside them, as what `template` writes. A prompt
    that ends with a byte of `others` is answered by the pieces it has there; no
    answer has such a byte as a token."""
    vocabulary = _Vocabulary(eos)
    for token, kind in [*((special, CONTROL) for special in specials), *extra]:
        vocabulary.add(token, kind)
    chain = vocabulary.script(pieces)
    taken, branches = [*chain, *(others or {})], {}
    for byte, own in (others or {}).items():
        ids = vocabulary.script(own, taken)
        taken += ids
        branches[byte] = [*ids, vocabulary.end]
    chain.append(vocabulary.end)
    vocabulary.pad()
    count = len(vocabulary.names)
    width = max(LEAST_WIDTH, count)

    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name(name)
    writer.add_block_count(1)
    writer.add_context_length(ctx)
    writer.add_embedding_length(width)
    writer.add_feed_forward_length(FEED_FORWARD)
    writer.add_head_count(2)
    writer.add_head_count_kv(2)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10000.0)
    writer.add_rope_dimension_count(width // 2)
    writer.add_vocab_size(count)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(vocabulary.names)
    writer.add_token_types(vocabulary.types)
    writer.add_token_merges(["Ġ t"])
    writer.add_bos_token_id(vocabulary.begin)
    writer.add_eos_token_id(vocabulary.end)
    if template:
        writer.add_chat_template(template)
    for tensor, values in _weights(count, width, chain, branches).items():
        writer.add_tensor(tensor, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
