# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Conversations."""

from collections.abc import Iterable, Mapping, Sequence

from llamac._arguments import to_json
from llamac._errors import Code, error_of
from llamac._options import RequestOptions

Message = Mapping[str, object]
"""A message as OpenAI's interface has it: "role", "content", "tool_calls", ..."""


class ChatOptions(RequestOptions, total=False):
    """How a conversation is answered, as `llamac serve` takes it: the options of
    RequestOptions, tools, tool_choice, parallel_tool_calls, response_format,
    max_completion_tokens, reasoning_effort, chat_template_kwargs and documents."""

    tools: Sequence[Mapping[str, object]]
    """Functions that the answer may call (default: none)."""
    tool_choice: str | Mapping[str, object]
    """"none", "auto", "required", or the function that must be called (default:
    auto)."""
    parallel_tool_calls: bool
    """Whether the answer may have more than one call (default: true)."""
    response_format: Mapping[str, object]
    """The type "text", "json_object", or "json_schema" with one (default: text)."""
    max_completion_tokens: int
    """Another name of max_tokens (default: that)."""
    reasoning_effort: str
    """A variable of chat templates that know of it (default: the template's)."""
    chat_template_kwargs: Mapping[str, object]
    """Other variables of the chat template (default: the template's)."""
    documents: Sequence[Mapping[str, object]]
    """Documents, for chat templates that know of them (default: none)."""


_FIELDS = ChatOptions.__annotations__.keys() - RequestOptions.__annotations__.keys()


def conversation(messages: Iterable[Message] | None, options: dict[str, object]) -> bytes | None:
    """The JSON of a conversation, for which fields are taken out of `options`;
    None where there are no messages."""
    if messages is None:
        for name in _FIELDS & options.keys():
            if options[name] is not None:
                raise error_of(Code.USAGE, f"{name}: expected messages beside it, got none")
        return None
    # The library refuses names that nobody knows, and suggests what they may mean.
    others = [name for name in options if name not in RequestOptions.__annotations__]
    fields = {"messages": messages} | {name: options.pop(name) for name in others}
    members = (to_json("name", name) + b": " + to_json(name, value) for name, value in fields.items())
    return b"{" + b", ".join(members) + b"}"
