# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The options of the library, as types; scripts/generate_docs.py writes them."""

from collections.abc import Mapping, Sequence
from typing import TypedDict


class ModelOptions(TypedDict, total=False):
    """How a model is loaded. Options and defaults:

        threads: 0
        sequences: 0
        isa: the best
        gpu_index: 0
        draft: none
        verify: true
        tuned: true
        random_weights: none
    """

    threads: int
    """Threads of kernels; 0: one on each physical core (0 to 1024; default: 0)."""
    sequences: int
    """Sequences at a time; 0: as many as the plan was compiled for (0 to 1048576;
    default: 0)."""
    isa: str
    """Instruction-set level, of those that the plan has (default: the best)."""
    gpu_index: int
    """Which GPU runs a plan for cuda (0 to 1023; default: 0)."""
    draft: str
    """Plan of a smaller model of the same vocabulary, or of an EAGLE-3 head, which
    drafts answers (default: none)."""
    verify: bool
    """Whether all checksums of the plan are verified (default: true)."""
    tuned: bool
    """Whether kernels have the configs that tuning found (default: true)."""
    random_weights: int
    """Random weights by this seed, for a plan that has none (default: none)."""


class EngineOptions(TypedDict, total=False):
    """How an engine runs requests. Options and defaults:

        max_waiting: 0
        prefix_cache: true
        prefix_file: none
        kv_pages: 0
        kv_memory: 0
        prompt_rows: 0
        batch_invariant: false
        chat_template: the model's
    """

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
    chat_template: str
    """Template, in Jinja, that conversations are written by (default: the model's)."""


class RequestOptions(TypedDict, total=False):
    """How a request is answered. Options and defaults:

        max_tokens: -1
        temperature: the model's setting, else 1 where seed, top_k, top_p, min_p or n is
            set, else 0
        top_k: the model's setting, else 0
        top_p: the model's setting, else 1
        min_p: 0
        repetition_penalty: 1
        frequency_penalty: 0
        presence_penalty: 0
        logit_bias: none
        min_tokens: 0
        logprobs: -1
        seed: a random one
        stop: none
        stop_token_ids: none
        ignore_eos: false
        add_special_tokens: true
        parse_special: true
        n: 1
        speculative: -2
        priority: 0
        time_limit: 0
        detokenize: true
        json_object: false
        json_schema: none
        regex: none
        grammar: none
    """

    max_tokens: int
    """Most tokens to generate; -1: until the context is full (-1 or more; default:
    -1)."""
    temperature: float
    """Temperature that the logits are divided by; 0: always the most probable token (a
    number of at least 0; default: the model's setting, else 1 where seed, top_k, top_p,
    min_p or n is set, else 0)."""
    top_k: int
    """Sample from the K most probable tokens; 0 or -1: from all (-1 or more; default:
    the model's setting, else 0)."""
    top_p: float
    """Sample from the fewest most probable tokens whose probabilities reach this sum;
    1: from all (a number above 0 and at most 1; default: the model's setting, else
    1)."""
    min_p: float
    """Sample from the tokens with at least this share of the largest probability (0 to
    1; default: 0)."""
    repetition_penalty: float
    """Divide positive logits of tokens in the prompt and the answer by X, and multiply
    negative ones by it (0.01 to 100; default: 1)."""
    frequency_penalty: float
    """Subtract X from a token's logit for each time that the token is in the answer (-2
    to 2; default: 0)."""
    presence_penalty: float
    """Subtract X from the logit of each token that is in the answer (-2 to 2; default:
    0)."""
    logit_bias: Mapping[int, float]
    """Add numbers to the logits of token ids (-100 to 100; default: none)."""
    min_tokens: int
    """Tokens to generate before a stop id may be chosen (0 or more; default: 0)."""
    logprobs: int
    """Report each token's log probability and rank, and the N most probable tokens; -1:
    nothing (-1 to 1024; default: -1)."""
    seed: int
    """Seed of the sampler, of 64 bits; -1 is 2^64 - 1 (default: a random one)."""
    stop: str | Sequence[str]
    """Text that ends the answer and is left out of it (default: none)."""
    stop_token_ids: Sequence[int]
    """Ids that end the answer besides the model's (default: none)."""
    ignore_eos: bool
    """Do not end the answer at the model's stop ids (default: false)."""
    add_special_tokens: bool
    """Whether a text prompt begins with the begin-of-sequence token, if the model has
    one (default: true)."""
    parse_special: bool
    """Whether names of special tokens in a text prompt are read as those tokens
    (default: true)."""
    n: int
    """Number of answers; answer i has the seed plus i (1 to 1024; default: 1)."""
    speculative: int
    """Most tokens that a step verifies of a draft, which a draft model makes or what
    followed the same text before; 0: none; -1: as many as pay; -2: as many as pay with
    a draft model, else none (-2 to 16; default: -2)."""
    priority: int
    """Priority; requests with a higher one go first (default: 0)."""
    time_limit: float
    """Seconds after which the answer is cut off; 0: no limit (a number of at least 0;
    default: 0)."""
    detokenize: bool
    """Whether answers are returned as text too (default: true)."""
    json_object: bool
    """Make the answer a JSON object (default: false)."""
    json_schema: str | Mapping[str, object]
    """Make the answer JSON that matches this schema (default: none)."""
    regex: str
    """Make the whole answer match this expression, in ECMAScript's syntax (default:
    none)."""
    grammar: str
    """Make the answer follow these rules, name ::= ..., which start at root (default:
    none)."""
