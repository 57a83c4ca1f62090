# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tests of replicas share this: requests that begin alike in groups, their
answers by a lone server, and what a router made of them."""

import collections
import concurrent.futures
import contextlib
import http.client
import json
import os
import random
import socket
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DEPLOY = os.path.join(ROOT, "deploy")
sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))

import serving
import support
from serving import Server, Stream, wait_for

PAGE = 64  # tokens of a page of the prefix cache
PAGES_SHARED = 3
WORKERS = 8  # requests under way at once
WORDS = "fox hen wood night river stone bread candle winter garden letter window sailor music horse lamp".split()


def requests(groups, each, seed=0, tokens=8):
    """`groups` times `each` requests in a mixed order. Those of a group begin
    with the same words, PAGES_SHARED pages of the cache; a half are conversations,
    and of both a half are streamed."""
    rng = random.Random(seed)
    made = []
    for group in range(groups):
        beginning = " ".join(rng.choices(WORDS, k=PAGES_SHARED * PAGE + 8))
        for _ in range(each):
            # Small models repeat it too, so answers differ.
            number = f"number {rng.randrange(10**6)}"
            last = f"{beginning}. Remember the {number}, repeat the {number}, and say: the"
            body = {"max_tokens": tokens, "temperature": 0, "stream": rng.random() < 0.5}
            if group % 2:
                body |= {"messages": [{"role": "user", "content": last}]}
            else:
                body |= {"prompt": last}
            made.append(body)
    rng.shuffle(made)
    return made


# How a request ended: whole, refused (a status), or cut, with the text there is.
Answer = collections.namedtuple("Answer", "status text whole")


def ask(port, body, timeout=300):
    """Sends a request, and takes all of its answer that comes."""
    path = "/v1/chat/completions" if "messages" in body else "/v1/completions"
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        if answer.status != 200:
            return Answer(answer.status, answer.read().decode(), False)
        try:
            text, cut = answer.read().decode(), False
        except http.client.IncompleteRead as error:
            text, cut = error.partial.decode(errors="ignore"), True
    except (OSError, http.client.HTTPException) as error:
        return Answer(0, repr(error), False)
    finally:
        connection.close()
    if not body["stream"]:
        return Answer(200, "" if cut else choice_text(json.loads(text)), not cut)
    events = [line[6:] for line in text.split("\n\n")[:-1] if line.startswith("data: ")]
    whole = not cut and events[-1:] == ["[DONE]"]
    events = [json.loads(event) for event in events if event != "[DONE]"]
    return Answer(200, "".join(map(choice_text, events)), whole and not any("error" in event for event in events))


def choice_text(answer):
    """The text of an answer, or of an event of one."""
    for choice in answer.get("choices", []):
        message = choice.get("message") or choice.get("delta") or choice
        return message.get("content") or message.get("text") or ""
    return ""


def ask_all(port, bodies, after=None):
    """Answers in the order of `bodies`. `after` maps a number of answers to what
    is done as soon as there are as many."""
    answers = [None] * len(bodies)
    todo = dict(after or {})
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        numbers = {pool.submit(ask, port, body): number for number, body in enumerate(bodies)}
        for done, future in enumerate(concurrent.futures.as_completed(numbers), 1):
            answers[numbers[future]] = future.result()
            if done in todo:
                todo.pop(done)()
    return answers


def free_port(addresses):
    """A port that is free at all of these."""
    while True:
        with contextlib.ExitStack() as stack:
            port = stack.enter_context(socket.create_server((addresses[0], 0))).getsockname()[1]
            try:
                for address in addresses[1:]:
                    stack.enter_context(socket.create_server((address, port)))
                return port
            except OSError:
                pass


class ReplicasTestCase(support.TestCase):
    """Tests of routers before servers of one plan."""

    groups, each = support.by_tier((20, 4), (125, 4))
    # A server's cache holds the beginnings of about a half of the groups.
    options = ("--threads", 1, "--parallel", 4, "--kv-pages", 8 + groups * PAGES_SHARED // 2)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.plan = serving.smollm2_plan(cls, "-c", 1024)

        cls.bodies = requests(cls.groups, cls.each)
        cls.expected = cls.lone_answers(cls.bodies)

    @classmethod
    def lone_answers(cls, bodies):
        """The answers of a server that does nothing else."""
        with Server([cls.plan], cls.path("lone.log"), "--parallel", 1, "--no-prefix-cache") as server:
            answers = [ask(server.port, body) for body in bodies]
        # A router that mixed answers up would be found only where they differ.
        assert all(answer.whole for answer in answers)
        assert len({answer.text for answer in answers}) > 0.9 * len(bodies)
        return answers

    def judge(self, answers):
        """How many answers are whole, refused and cut; none may be wrong."""
        counts = collections.Counter()
        for answer, right in zip(answers, self.expected):
            if answer.whole:
                self.assertEqual(answer.text, right.text)
                counts["answered"] += 1
            elif answer.status == 200:
                self.assertTrue(right.text.startswith(answer.text), (answer, right))
                counts["cut"] += 1
            else:
                self.assertEqual(answer.status, 503, answer.text)
                counts["refused"] += 1
        print(f"{self.id()}: {dict(counts)}", file=sys.stderr)
        return counts

    def assert_streams(self, port, running):
        """Events come one by one, and a client that leaves ends its answer;
        `running` counts those of all servers."""
        stream = Stream(port, {"prompt": "Once", "max_tokens": 800, "ignore_eos": True})
        self.assertIn(b"text/event-stream", stream.read(b"data: "))
        self.assertEqual(running(), 1)
        stream.close()
        self.assertTrue(wait_for(lambda: running() == 0))

    def assert_hits(self, affine, round_robin):
        print(f"{self.id()}: hits {affine:.3f}, round robin {round_robin:.3f}", file=sys.stderr)
        self.assertGreaterEqual(affine, 1.5 * round_robin)


def hit_ratio(metrics):
    """The share of the tokens of prompts that servers found in their caches, by
    what they say at /metrics."""

    def total(name):
        return sum(
            float(line.rsplit(" ", 1)[1])
            for text in metrics
            for line in text.splitlines()
            if line.startswith(f"vllm:{name}{{")
        )

    return total("prefix_cache_hits_total") / total("prefix_cache_queries_total")
