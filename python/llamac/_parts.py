# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What answers are made of."""

from dataclasses import dataclass


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


@dataclass(frozen=True, slots=True)
class Result:
    """A whole answer."""

    index: int
    tokens: list[int]
    text: str
    end: End
    logprobs: list[TokenLogprobs]
