# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The options of the library, as types; scripts/generate_docs.py writes them."""

from collections.abc import Mapping, Sequence
from typing import TypedDict


class ModelOptions(TypedDict, total=False):
    """How a model is loaded. Options:

        threads: threads of kernels; 0: one on each physical core (0 to 1024; default:
            0)
        sequences: sequences at a time; 0: as many as the plan was compiled for (0 to
            1048576; default: 0)
        isa: instruction-set level, of those that the plan has (default: the best)
        gpu_index: which GPU runs a plan for cuda (0 to 1023; default: 0)
        draft: plan of a smaller model of the same vocabulary, or of an EAGLE-3 head,
            which drafts answers (default: none)
        verify: whether all checksums of the plan are verified (default: true)
        tuned: whether kernels have the configs that tuning found (default: true)
        random_weights: random weights by this seed, for a plan that has none (default:
            none)
    """

    threads: int
    sequences: int
    isa: str
    gpu_index: int
    draft: str
    verify: bool
    tuned: bool
    random_weights: int


class EngineOptions(TypedDict, total=False):
    """How an engine runs requests. Options:

        max_waiting: answers that may wait, beside those that run; 0: any number (0 to
            1048576; default: 0)
        prefix_cache: whether beginnings that were seen before are computed once
            (default: true)
        prefix_file: file that they are read from, where it is there, and saved to when
            the engine goes; empty: none (default: none)
        kv_pages: pages of the KV cache; 0: as many as kv_memory holds (0 to 1048576;
            default: 0)
        kv_memory: on cuda: share of the memory that is free once the model is loaded,
            for pages of the KV cache; 0: 0.9 (0 to 1; default: 0)
        prompt_rows: tokens of prompts in a step beside answers that decode; 0: as many
            as the times of earlier steps allow (0 to 1048576; default: 0)
        batch_invariant: whether an answer is the same whatever runs beside it; on the
            cpu it always is (default: false)
        chat_template: template, in Jinja, that conversations are written by (default:
            the model's)
    """

    max_waiting: int
    prefix_cache: bool
    prefix_file: str
    kv_pages: int
    kv_memory: float
    prompt_rows: int
    batch_invariant: bool
    chat_template: str


class RequestOptions(TypedDict, total=False):
    """How a request is answered. Options:

        max_tokens: most tokens to generate; -1: until the context is full (-1 or more;
            default: -1)
        temperature: temperature that the logits are divided by; 0: always the most
            probable token (a number of at least 0; default: the model's setting, else 1
            where seed, top_k, top_p, min_p or n is set, else 0)
        top_k: sample from the K most probable tokens; 0 or -1: from all (-1 or more;
            default: the model's setting, else 0)
        top_p: sample from the fewest most probable tokens whose probabilities reach
            this sum; 1: from all (a number above 0 and at most 1; default: the model's
            setting, else 1)
        min_p: sample from the tokens with at least this share of the largest
            probability (0 to 1; default: 0)
        repetition_penalty: divide positive logits of tokens in the prompt and the
            answer by X, and multiply negative ones by it (0.01 to 100; default: 1)
        frequency_penalty: subtract X from a token's logit for each time that the token
            is in the answer (-2 to 2; default: 0)
        presence_penalty: subtract X from the logit of each token that is in the answer
            (-2 to 2; default: 0)
        logit_bias: add numbers to the logits of token ids (-100 to 100; default: none)
        min_tokens: tokens to generate before a stop id may be chosen (0 or more;
            default: 0)
        logprobs: report each token's log probability and rank, and the N most probable
            tokens; -1: nothing (-1 to 1024; default: -1)
        seed: seed of the sampler, of 64 bits; -1 is 2^64 - 1 (default: a random one)
        stop: text that ends the answer and is left out of it (default: none)
        stop_token_ids: ids that end the answer besides the model's (default: none)
        ignore_eos: do not end the answer at the model's stop ids (default: false)
        add_special_tokens: whether a text prompt begins with the begin-of-sequence
            token, if the model has one (default: true)
        parse_special: whether names of special tokens in a text prompt are read as
            those tokens (default: true)
        n: number of answers; answer i has the seed plus i (1 to 1024; default: 1)
        speculative: most tokens that a step verifies of a draft, which a draft model
            makes or what followed the same text before; 0: none; -1: as many as pay;
            -2: as many as pay with a draft model, else none (-2 to 16; default: -2)
        priority: priority; requests with a higher one go first (default: 0)
        time_limit: seconds after which the answer is cut off; 0: no limit (a number of
            at least 0; default: 0)
        detokenize: whether answers are returned as text too (default: true)
        json_object: make the answer a JSON object (default: false)
        json_schema: make the answer JSON that matches this schema (default: none)
        regex: make the whole answer match this expression, in ECMAScript's syntax
            (default: none)
        grammar: make the answer follow these rules, name ::= ..., which start at root
            (default: none)
    """

    max_tokens: int
    temperature: float
    top_k: int
    top_p: float
    min_p: float
    repetition_penalty: float
    frequency_penalty: float
    presence_penalty: float
    logit_bias: Mapping[int, float]
    min_tokens: int
    logprobs: int
    seed: int
    stop: str | Sequence[str]
    stop_token_ids: Sequence[int]
    ignore_eos: bool
    add_special_tokens: bool
    parse_special: bool
    n: int
    speculative: int
    priority: int
    time_limit: float
    detokenize: bool
    json_object: bool
    json_schema: str | Mapping[str, object]
    regex: str
    grammar: str
