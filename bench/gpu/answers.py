# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Answers that must not depend on what runs beside them: random requests, and how they are compared."""

import json
import random

# Options of `llamac-run generate --batch-invariant`, and whether the requests come in another order.
RUNS = {
    "all together": ([], False),
    "other order": ([], True),
    "no prefix cache": (["--no-prefix-cache"], False),
    "prompts in pieces": (["--prompt-rows", "64"], True),
    "little memory": ([], False),
}


def requests(count, vocab, longest, tokens):
    """Prompts of 1 to `longest` tokens, of which every fourth begins as the others of its kind do; half of the
    answers are drawn."""
    draw = random.Random(17)
    common = [draw.randrange(vocab) for _ in range(longest // 2)]
    found = []
    for number in range(count):
        prompt = [draw.randrange(vocab) for _ in range(draw.randint(1, longest))]
        if number % 4 == 0:
            prompt = (common + prompt)[:longest]
        request = {"id": number, "tokens": prompt, "max_tokens": tokens, "temperature": 0, "logprobs": 1}
        if number % 2:
            request |= {"temperature": 1.0, "seed": number}
        found.append(request)
    return found


def differing(found, expected):
    """The ids of answers that are not the same to the bit of their log-probabilities, or are missing."""

    def of(lines):
        answers = {answer["id"]: answer for answer in map(json.loads, lines)}
        return {number: (answer.get("tokens"), answer.get("logprobs")) for number, answer in answers.items()}

    found, expected = of(found), of(expected)
    return sorted(number for number in found.keys() | expected.keys() if found.get(number) != expected.get(number))
