# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles Llama models, and runs many requests at once.

    with llamac.Model.load("model.gguf") as model, llamac.Engine(model) as engine:
        messages = [{"role": "user", "content": "Name three fruits."}]
        for part in engine.chat(messages, max_tokens=400):
            print(part.text, end="", flush=True)

docs/python.md of the project has more.
"""

from importlib.util import find_spec as _find_spec

if _find_spec("llamac._native") is None:
    raise ImportError(
        "llamac: expected an installed package, got the folder of its source, without the compiled part; "
        "pip install the wheel that scripts/package.sh makes, or the clone: pip install ."
    )

from llamac._chat import ChatOptions, Message
from llamac._compiler import compile
from llamac._engine import Answer, Counts, Engine
from llamac._errors import Code, Error, UsageError
from llamac._model import Model, Sequence
from llamac._native import version as _version
from llamac._options import EngineOptions, ModelOptions, RequestOptions
from llamac._parts import End, Part, Result, TokenLogprobs, ToolCall, ToolCallPart

__version__ = _version()
__all__ = [
    "Answer",
    "ChatOptions",
    "Code",
    "Counts",
    "End",
    "Engine",
    "EngineOptions",
    "Error",
    "Message",
    "Model",
    "ModelOptions",
    "Part",
    "RequestOptions",
    "Result",
    "Sequence",
    "TokenLogprobs",
    "ToolCall",
    "ToolCallPart",
    "UsageError",
    "compile",
]
