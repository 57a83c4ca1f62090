# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What answers are made of."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class TokenLogprobs:
    """Natural logarithms of the probabilities that the model, at temperature 1,
    gives tokens."""

    token: int
    logprob: float
    rank: int
    """The token's place among all; the most likely is number 1."""
    alternatives: list[tuple[int, float]]
    """The most likely tokens, in order."""


@dataclass(frozen=True, slots=True)
class End:
    """How an answer ended, and what it took."""

    reason: str
    """"length", "context", "stop id", "stop string", "cancelled", "deadline"."""
    seed: int
    prompt_tokens: int
    cached_tokens: int
    """Tokens of the prompt that were found in the prefix cache."""
    answer_tokens: int
    preemptions: int
    queue_seconds: float
    first_token_seconds: float
    seconds: float
    draft_tokens: int
    """Tokens that were drafted (the option speculative)."""
    accepted_tokens: int
    """Drafted tokens that became the answer's."""
    finish_reason: str
    """In OpenAI's words: "stop", "length", "tool_calls", "abort"."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool."""

    id: str
    """One that no other call has, for the tool's message to name."""
    name: str
    arguments: str
    """Their JSON text, as the model wrote it."""


@dataclass(frozen=True, slots=True)
class ToolCallPart(ToolCall):
    """The next piece of the arguments of a call, and whose it is."""

    index: int
    """The number of the call, from 0 on."""


@dataclass(frozen=True, slots=True)
class Part:
    """The tokens and the text that came for one answer since its last part."""

    index: int
    """The number of the answer, from 0 on."""
    tokens: list[int]
    """Without the stop id."""
    text: str
    end: End | None
    """None while the answer goes on."""
    logprobs: list[TokenLogprobs]
    """One for each token, where option logprobs asks for them."""
    tool_calls: list[ToolCallPart]
    """Parts of calls of tools, which are not in the text."""


@dataclass(frozen=True, slots=True)
class Result:
    """A whole answer."""

    index: int
    tokens: list[int]
    text: str
    end: End
    logprobs: list[TokenLogprobs]
    tool_calls: list[ToolCall]

    @property
    def message(self) -> dict[str, Any]:
        """The answer as a message, for the next messages of the conversation."""
        message: dict[str, Any] = {"role": "assistant", "content": self.text}
        if self.tool_calls:
            message["content"] = self.text or None
            message["tool_calls"] = [
                {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
                for call in self.tool_calls
            ]
        return message
