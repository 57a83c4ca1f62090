# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Requests of all kinds to `llamac serve`, many at once: each has the bits that it
has alone. 30 of them in the default tier, 200 in the exhaustive one."""

import json
import random
import threading
import unittest

import serving
from serving import MODEL
from support import by_tier

PATHS = {True: "/v1/chat/completions", False: "/v1/completions"}
TEXTS = [
    "The capital of France is",
    "Once upon a time there was a fox who",
    "1, 2, 3, 5, 8,",
    "Schreibe ein Gedicht über 中文 and 😀.",
    "List three colours:\n1.",
]
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 10}, "size": {"type": "integer"}},
    "required": ["name", "size"],
}


def random_request(random, number):
    """The path of one, and its body."""
    text = random.choice(TEXTS)
    if number % 3 == 0:  # Longer than a page of the KV cache.
        text = " ".join(random.choices(TEXTS, k=12))
    body = {
        "model": MODEL,
        "max_tokens": random.randint(1, 40),
        "temperature": random.choice([0, 0.7, 1.3]),
        "seed": random.randrange(1 << 40),
    }
    is_chat = random.random() < 0.5
    if is_chat:
        body["messages"] = [{"role": "user", "content": text}]
        if random.random() < 0.3:
            body["messages"].insert(0, {"role": "system", "content": "Be brief."})
    else:
        body["prompt"] = random.choice([text, text, [text, "The sky is"]])
    options = {
        "n": random.randint(2, 4),
        "top_p": 0.8,
        "top_k": 30,
        "min_p": 0.05,
        "stop": random.choice([".", [",", "the"], "\n"]),
        "frequency_penalty": 0.6,
        "presence_penalty": -0.5,
        "repetition_penalty": 1.2,
        "logit_bias": {str(random.randrange(300, 40000)): random.randint(-100, 8) for _ in range(4)},
        "ignore_eos": True,
    }
    body |= dict(random.sample(sorted(options.items(), key=str), random.randint(0, 4)))
    if random.random() < 0.5:
        body |= {"logprobs": True, "top_logprobs": 2} if is_chat else {"logprobs": 2}
    if "ignore_eos" not in body:
        grammar = random.choice([None, None, {"type": "json_object"}, "schema"])
        if grammar == "schema":
            grammar = {"type": "json_schema", "json_schema": {"name": "thing", "schema": SCHEMA}}
        body |= {"response_format": grammar} if grammar else {}
    return PATHS[is_chat], body


def choices_of(answer):
    """The model's decisions: (text, logprobs, reason) of each choice."""
    texts = [choice["message"]["content"] if "message" in choice else choice["text"] for choice in answer["choices"]]
    return [(text, one["logprobs"], one["finish_reason"]) for text, one in zip(texts, answer["choices"])]


def choices_of_stream(events):
    """choices_of() for a stream's bytes."""
    sums = {}
    *chunks, done = events.decode().removesuffix("\n\n").split("\n\n")
    assert done == "data: [DONE]", done
    for chunk in chunks:
        for choice in json.loads(chunk.removeprefix("data: "))["choices"]:
            text, logprobs, _ = sums.get(choice["index"], ("", None, None))
            text += choice["delta"].get("content", "") if "delta" in choice else choice["text"]
            for name, values in (choice["logprobs"] or {}).items():
                logprobs = logprobs or {}
                logprobs[name] = (logprobs.get(name) or []) + values if values else logprobs.get(name, values)
            sums[choice["index"]] = (text, logprobs, choice["finish_reason"])
    return [sums[index] for index in sorted(sums)]


class Together(serving.ServedTestCase):
    options = ("--parallel", 16)

    def answer(self, path, body, streams):
        status, _, text = self.server.request("POST", path, body | ({"stream": True} if streams else {}))
        if status != 200:
            raise AssertionError(f"{status} {text.decode()} for {body}")
        return choices_of_stream(text) if streams else choices_of(json.loads(text))

    def counts(self):
        """Tokens that were generated, and the steps it took."""
        return self.server.metric("generation_tokens_total"), self.server.metric("iteration_tokens_total_count")

    def test_each_answer_has_the_bits_that_it_has_alone(self):
        source = random.Random(31)
        requests = [random_request(source, number) for number in range(by_tier(30, 200))]
        streams = [source.random() < 0.5 for _ in requests]
        alone = [self.answer(path, body, False) for path, body in requests]
        before = self.counts()
        together = [None] * len(requests)
        failures = []
        order = source.sample(range(len(requests)), len(requests))

        def work():
            while order and not failures:
                number = order.pop()
                try:
                    together[number] = self.answer(*requests[number], streams[number])
                except Exception as error:
                    failures.append(error)

        threads = [threading.Thread(target=work) for _ in range(24)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])
        for number, (path, body) in enumerate(requests):
            with self.subTest(number=number, path=path, body=body, stream=streams[number]):
                self.assertEqual(together[number], alone[number])
        self.assertGreater(len({str(one) for one in alone}), len(requests) // 2)
        tokens, steps = (after - first for after, first in zip(self.counts(), before))
        self.assertGreater(tokens, 3 * steps)


if __name__ == "__main__":
    unittest.main(verbosity=2)
