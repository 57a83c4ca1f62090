# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models and sequences."""

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Literal, Self, Unpack

from llamac import _arguments, _native
from llamac._arguments import flag, ids, integer, names, utf8, wrong
from llamac._closing import Closing
from llamac._compiler import cached_plan
from llamac._errors import Error
from llamac._options import ModelOptions

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_ATTEMPTS = 3
_ROWS = {"none": 0, "last": 1, "all": 2}


def _is_plan(path: str) -> bool:
    return not path.endswith((".gguf", ".json")) and os.path.isfile(path)


class Model(Closing[_native.Model]):
    """A plan, loaded by Model.load(): weights, kernels, device and tokenizer. Any
    number of threads and engines may use it. What it says of itself:

        name: of the file or directory that was loaded, without its ending
        path: the plan's path
        target, device: "cpu", and for people "cpu, 8 threads"
        context: tokens of the longest sequence
        sequences: the most sequences at a time
        vocab_size: logits of a row
        tokenizer_size: ids of the tokenizer; 0 where the plan has none
        bos_id: put before prompts; None where none is
        stop_ids: the ids that end an answer
    """

    def __init__(self, native: _native.Model, name: str | None = None) -> None:
        if not isinstance(native, _native.Model):
            raise wrong("Model", "Model.load(path), which makes one", native)
        self._native = native
        described = native.describe()
        self.path: str = described["path"]
        self.name: str = self.path if name is None else name
        self.target: str = described["target"]
        self.device: str = described["device"]
        self.context: int = described["context"]
        self.sequences: int = described["sequences"]
        self.vocab_size: int = described["vocab_size"]
        self.tokenizer_size: int = described["tokenizer_size"]
        self.bos_id: int | None = described["bos_id"]
        self.stop_ids: list[int] = described["stop_ids"]

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        compile: Mapping[str, object] | None = None,
        **options: Unpack[ModelOptions],
    ) -> Self:
        """Loads a plan, or a model directory, .gguf file or name of a pulled
        model, which is compiled on first use with the options `compile` and
        cached, as `llamac run` does. A plan holds machine code: load only plans
        you trust."""
        model = _arguments.path("path", path)
        name = os.path.basename(os.path.abspath(model)).removesuffix(".gguf").removesuffix(".plan")
        how = None if compile is None else names("compile", compile)
        if _is_plan(model) and how is None:
            return cls(_native.Model(model, dict(options)), name)
        _native.check_options(0, dict(options))  # Compiling may take long.
        for attempt in range(_ATTEMPTS):
            plan = cached_plan(model, **(how or {}))
            try:
                return cls(_native.Model(plan, {"verify": False, **options}), name)
            except Error:
                # The cache may be cleared at any time.
                if os.path.exists(plan) or attempt == _ATTEMPTS - 1:
                    raise
        raise AssertionError

    def encode(self, text: str | bytes, *, special: bool = False, continues: bool = False) -> list[int]:
        """The ids of a text. `special`: the names of special tokens stand for
        them. `continues`: the text goes on from another, and gets no
        begin-of-sequence token."""
        return self._native.encode(utf8("text", text), flag("special", special), flag("continues", continues))

    def decode(self, tokens: Iterable[int], *, special: bool = False, continues: bool = False) -> str:
        """The text of tokens, with U+FFFD for what is no UTF-8."""
        return self.decode_bytes(tokens, special=special, continues=continues).decode(errors="replace")

    def decode_bytes(self, tokens: Iterable[int], *, special: bool = False, continues: bool = False) -> bytes:
        """The bytes of tokens. `special`: special tokens are written as their
        names, else they are left out. `continues`: a space before the first
        word is kept."""
        return self._native.decode(ids("tokens", tokens), flag("special", special), flag("continues", continues))

    def token_bytes(self, token: int) -> bytes:
        """The bytes of one token; of a special one, its name."""
        return self._native.token(integer("token", token))

    def sequence(self) -> "Sequence":
        """An empty sequence, for logits step by step."""
        return Sequence(_native.Sequence(self._native), self.vocab_size)

    def close(self) -> None:
        """Engines and sequences go on; the model is freed after them."""
        self._native.close()

    def __repr__(self) -> str:
        return self._described(f"{self.name} on {self.device}")


class Sequence(Closing[_native.Sequence]):
    """Tokens with their KV cache. A model has as many at a time as it was loaded
    for, beside those of engines; their steps take turns."""

    def __init__(self, native: _native.Sequence, vocab_size: int) -> None:
        self._native = native
        self._vocab_size = vocab_size

    def step(
        self, tokens: Iterable[int], rows: Literal["none", "last", "all"] = "last"
    ) -> "npt.NDArray[np.float32]":
        """Appends tokens. Gives f32 [rows, vocab_size]: the logits that follow
        the last of the tokens, all of them, or none. The array is the caller's:
        it owns its memory, which nothing else uses, and no copy was made.

        After an error the sequence is as before, or empty where its window's
        keys are gone; len() says."""
        if not isinstance(rows, str) or rows not in _ROWS:
            raise wrong("rows", "none, last or all", rows)
        return self._native.step(ids("tokens", tokens), _ROWS[rows]).reshape(-1, self._vocab_size)

    def truncate(self, length: int) -> int:
        """Drops all but the first tokens; gives how many are left, which are 0
        where a sliding window has no keys of so early a token."""
        return self._native.truncate(integer("length", length))

    def __len__(self) -> int:
        return self._native.length()

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return self._described("without tokens" if self.closed else f"of {len(self)} tokens")

    def close(self) -> None:
        self._native.close()
