# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The options of the library, as types. The library has the list of them, and
a test compares."""

from collections.abc import Mapping, Sequence
from typing import TypedDict


class ModelOptions(TypedDict, total=False):
    """How a model is loaded."""

    threads: int
    """Of kernels; 0, the default: one on each physical core."""
    sequences: int
    """As many at a time; 0, the default: as many as the plan was compiled for."""
    isa: str
    """The instruction-set level, of those that the plan has."""
    gpu_index: int
    """Which GPU runs a plan for cuda."""
    verify: bool
    """Whether all checksums of the plan are verified (True)."""
    tuned: bool
    """Whether kernels have the configs that tuning found (True)."""
    random_weights: int
    """Random weights by this seed, for a plan that has none."""


class EngineOptions(TypedDict, total=False):
    """How an engine runs requests."""

    max_waiting: int
    """Answers that may wait; 0, the default: any number."""
    prefix_cache: bool
    """Whether beginnings that were seen before are computed once (True)."""
    prefix_file: str
    """A file that they are read from, where it is there, and saved to when the
    engine is closed."""
    kv_pages: int
    """Pages of the KV cache; 0, the default: as many as kv_memory holds."""
    kv_memory: float
    """On cuda: the share of the memory that is free once the model is loaded, for
    pages of the KV cache; at most as many as all sequences can use (0.9)."""
    prompt_rows: int
    """Tokens of prompts in a step beside answers that decode; 0, the default:
    as many as the times of earlier steps allow."""
    batch_invariant: bool
    """Whether an answer is the same whatever runs beside it (True); on the cpu it
    always is."""


class RequestOptions(TypedDict, total=False):
    """How a request is answered. Sampling is by default as the model advises."""

    max_tokens: int
    """Tokens to generate at most; -1, the default: as many as the context holds."""
    temperature: float
    """0: the argmax."""
    top_k: int
    """Samples from the k most probable tokens; 0: from all."""
    top_p: float
    """Samples from the fewest most probable tokens whose probabilities reach
    this sum; 1: from all."""
    min_p: float
    """Samples from the tokens of at least this share of the largest probability."""
    repetition_penalty: float
    """Divides positive logits of the tokens of prompt and answer, and multiplies
    others (1)."""
    frequency_penalty: float
    """Taken off the logit of a token for each time it is in the answer (0)."""
    presence_penalty: float
    """Taken off the logits of the tokens of the answer (0)."""
    logit_bias: Mapping[int, float]
    """Added to the logits of these ids."""
    min_tokens: int
    """Stop ids are not chosen before so many tokens (0)."""
    logprobs: int
    """Alternatives to report for each token; -1, the default: no logprobs at all."""
    seed: int
    """Of sampling, 64 bits: -1 is the seed 2**64 - 1; a random one by default."""
    stop: str | Sequence[str]
    """Texts that end the answer and do not belong to it."""
    stop_token_ids: Sequence[int]
    """Ids that do so beside the model's."""
    ignore_eos: bool
    """Whether the model's stop ids do not end the answer (False)."""
    add_special_tokens: bool
    """Whether a prompt of text gets the begin-of-sequence token, where the model
    is used to one (True)."""
    parse_special: bool
    """Whether names of special tokens in a prompt of text stand for them (True)."""
    n: int
    """Answers; number i has the seed plus i (1)."""
    priority: int
    """Higher ones go first (0)."""
    time_limit: float
    """Seconds after which answers end as they are; 0, the default: none."""
    detokenize: bool
    """Whether parts have text (True)."""
    json_object: bool
    """Whether the answer is a JSON object (False)."""
    json_schema: str | Mapping[str, object]
    """The answer is JSON by this schema, given as text or as it is parsed."""
    regex: str
    """The answer matches this, in ECMAScript's syntax."""
    grammar: str
    """The answer follows these rules, "name ::= ...", of which root is first."""
