# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The options of the library, as types; scripts/generate_docs.py writes them."""

from collections.abc import Mapping, Sequence
from typing import TypedDict


class ModelOptions(TypedDict, total=False):
    """How a model is loaded."""

    threads: int
    """Threads of kernels; 0: one on each physical core (0 to 1024; default: 0)."""
    sequences: int
    """Sequences at a time; 0: as many as the plan was compiled for (0 to 1048576;
    default: 0)."""
    isa: str
    """Instruction-set level, of those that the plan has (default: the best)."""
    gpu_index: int
    """Which GPU runs a plan for cuda (0 to 1023; default: 0)."""
    verify: bool
    """Whether all checksums of the plan are verified (default: true)."""
    tuned: bool
    """Whether kernels have the configs that tuning found (default: true)."""
    random_weights: int
    """Random weights by this seed, for a plan that has none (default: none)."""


class EngineOptions(TypedDict, total=False):
    """How an engine runs requests."""

    max_waiting: int
    """Answers that may wait, beside those that run; 0: any number (0 to 1048576;
    default: 0)."""
    prefix_cache: bool
    """Whether beginnings that were seen before are computed once (default: true)."""
    prefix_file: str
    """File that they are read from, where it is there, and saved to when the engine
    goes; empty: none (default: none)."""
    kv_pages: int
    """Pages of the KV cache; 0: as many as kv_memory holds (0 to 1048576; default:
    0)."""
    kv_memory: float
    """On cuda: share of the memory that is free once the model is loaded, for pages of
    the KV cache; 0: 0.9 (0 to 1; default: 0)."""
    prompt_rows: int
    """Tokens of prompts in a step beside answers that decode; 0: as many as the times
    of earlier steps allow (0 to 1048576; default: 0)."""
    batch_invariant: bool
    """Whether an answer is the same whatever runs beside it; on the cpu it always is
    (default: false)."""


class RequestOptions(TypedDict, total=False):
    """How a request is answered."""

    max_tokens: int
    """Tokens to generate at most; -1: as many as the context holds (-1 or more;
    default: -1)."""
    temperature: float
    """Temperature that divides the logits; 0 takes the argmax (a number of at least 0;
    default: the model's advice, else 0)."""
    top_k: int
    """Samples from the K most probable tokens; 0 or -1: from all (-1 or more; default:
    the model's advice, else 0)."""
    top_p: float
    """Samples from the fewest most probable tokens whose probabilities reach this sum;
    1: from all (a number above 0 and at most 1; default: the model's advice, else
    1)."""
    min_p: float
    """Samples from the tokens of at least this share of the largest probability (0 to
    1; default: 0)."""
    repetition_penalty: float
    """Divides positive logits of the tokens of prompt and answer, and multiplies others
    (0.01 to 100; default: 1)."""
    frequency_penalty: float
    """Number taken off the logit of a token for each time it is in the answer (-2 to 2;
    default: 0)."""
    presence_penalty: float
    """Number taken off the logits of the tokens of the answer (-2 to 2; default: 0)."""
    logit_bias: Mapping[int, float]
    """Numbers that are added to the logits of these ids (-100 to 100; default:
    none)."""
    min_tokens: int
    """Tokens before which no stop id is chosen (0 or more; default: 0)."""
    logprobs: int
    """Reports each token's log probability and rank, and so many of the most likely
    ones; -1: nothing (-1 to 1024; default: -1)."""
    seed: int
    """Seed of the samples, of 64 bits: -1 is the seed 2^64 - 1 (default: a random
    one)."""
    stop: str | Sequence[str]
    """Text that ends the answer and does not belong to it (default: none)."""
    stop_token_ids: Sequence[int]
    """Ids that end the answer beside the model's (default: none)."""
    ignore_eos: bool
    """Does not let the model's stop ids end the answer (default: false)."""
    add_special_tokens: bool
    """Whether a prompt of text gets the begin-of-sequence token, where the model is
    used to one (default: true)."""
    parse_special: bool
    """Whether names of special tokens in a prompt of text stand for them (default:
    true)."""
    n: int
    """Answers; number i has the seed plus i (1 to 1024; default: 1)."""
    priority: int
    """Requests of higher ones go first (default: 0)."""
    time_limit: float
    """Seconds after which answers end as they are; 0: none (a number of at least 0;
    default: 0)."""
    detokenize: bool
    """Whether answers have text (default: true)."""
    json_object: bool
    """The answer is any JSON object (default: false)."""
    json_schema: str | Mapping[str, object]
    """The answer is JSON by this schema (default: none)."""
    regex: str
    """The answer as a whole matches this, in ECMAScript's syntax (default: none)."""
    grammar: str
    """The answer follows these rules, name ::= ..., of which root is the first
    (default: none)."""
