#!/usr/bin/env python3
# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a server under mixed load, and looks at what it holds on to.

Clients of all kinds ask at once: streams and whole answers, several answers,
logprobs, grammars, tools, conversations that go on, clients that leave at a
random moment or read slowly, requests that are refused, bytes that are no
requests. Three things must hold to the end:

- Every request has the status that it should have, and one that is repeated all
  through has the same answer each time.
- After the first tenth of the time the memory that the server has (its resident
  set) stays within 5 %.
- When the clients have left, nothing runs or waits, and no page of the cache is
  taken but by prefixes.

    scripts/serve_load.py PLAN                  an hour, sixteen clients
    scripts/serve_load.py PLAN --seconds 120

Memory grows until each page of the cache has been used once, so take a plan that
was compiled with -c 2048 or so.
"""

import argparse
import asyncio
import collections
import json
import os
import random
import re
import sys
import time

from serve_bench import ROOT, request, serve

WORDS = "the sea river train bread moon winter town light story of and a to in old small long".split()
COLOURS = {"type": "object", "properties": {"colour": {"enum": ["red", "green"]}, "count": {"type": "integer"}}}
GRAMMAR = {"type": "json_schema", "json_schema": {"name": "colour", "schema": COLOURS | {"required": ["colour"]}}}
TOOL = {"type": "function", "function": {"name": "look_up", "parameters": COLOURS}}
TEMPLATE = os.path.join(ROOT, "build", "models", "chat-templates", "Qwen-Qwen2.5-7B-Instruct.jinja")
CHAT, TEXT = "/v1/chat/completions", "/v1/completions"


class Failure(Exception):
    pass


class Client:
    """Asks for one thing after the other, as chance has it."""

    def __init__(self, port, seed, counts):
        self.port, self.counts = port, counts
        self.random = random.Random(seed)
        self.conversation = []

    def prose(self, longest=60):
        return " ".join(self.random.choices(WORDS, k=self.random.randint(1, longest)))

    def message(self):
        return [{"role": "user", "content": self.prose()}]

    async def ask(self, body, path=CHAT, expect=200):
        """The body of the answer, which must have the status `expect`."""
        reader, writer = await request(self.port, body, path)
        answer = await reader.read()
        writer.close()
        head, _, text = answer.partition(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 %d" % expect):
            raise Failure(f"{path}: expected {expect}, got {answer[:300]!r} of {json.dumps(body)[:300]}")
        return text

    def most(self):
        return self.random.randint(1, 80)

    async def whole(self):
        answer = json.loads(await self.ask({"prompt": self.prose(), "max_tokens": self.most()}, TEXT))
        if not answer["choices"][0]["finish_reason"]:
            raise Failure(f"an answer without an end: {answer}")

    async def streamed(self):
        text = await self.ask({"messages": self.message(), "max_tokens": self.most(), "stream": True})
        if b"data: [DONE]" not in text:
            raise Failure(f"a stream without its end: {text[-300:]!r}")

    async def several(self):
        body = {"prompt": [self.prose(), self.prose()], "max_tokens": self.most(), "n": 2, "logprobs": 3}
        if len(json.loads(await self.ask(body, TEXT))["choices"]) != 4:
            raise Failure("expected two answers to each of two prompts")

    async def constrained(self):
        await self.ask({"messages": self.message(), "max_tokens": self.most(), "response_format": GRAMMAR})

    async def with_tools(self):
        choice = self.random.choice(["auto", "required"])
        body = {"messages": self.message(), "max_tokens": self.most(), "tools": [TOOL], "tool_choice": choice}
        await self.ask(body | {"stream": self.random.random() < 0.5})

    async def turn(self):
        """One more of a conversation, whose beginning the server has seen before."""
        if len(self.conversation) > 10:
            self.conversation = []
        self.conversation += self.message()
        answer = json.loads(await self.ask({"messages": self.conversation, "max_tokens": 40}))
        content = answer["choices"][0]["message"]["content"]
        self.conversation.append({"role": "assistant", "content": content})

    async def leaving(self):
        body = {"messages": self.message(), "max_tokens": 500, "stream": self.random.random() < 0.5}
        _, writer = await request(self.port, body, CHAT)
        await asyncio.sleep(self.random.expovariate(5))
        writer.transport.abort()

    async def slow(self):
        reader, writer = await request(self.port, {"messages": self.message(), "max_tokens": 100, "stream": True}, CHAT)
        for _ in range(20):
            if not await reader.read(200):
                break
            await asyncio.sleep(0.1)
        writer.transport.abort()

    async def refused(self):
        body, path, status = self.random.choice(
            [
                ({"messages": []}, CHAT, 400),
                ({"messages": self.message(), "temperature": "hot"}, CHAT, 400),
                ({"prompt": "word " * 20_000, "max_tokens": 1}, TEXT, 400),
                ({"model": "another", "prompt": "x"}, TEXT, 404),
                ({}, "/v1/nothing", 404),
            ]
        )
        await self.ask(body, path, status)

    async def noise(self):
        _, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(self.random.randbytes(self.random.randint(1, 3000)))
        await asyncio.sleep(self.random.random() / 10)
        writer.transport.abort()

    async def figures(self):
        text = self.prose()
        ids = json.loads(await self.ask({"prompt": text}, "/tokenize"))["tokens"]
        back = json.loads(await self.ask({"tokens": ids}, "/detokenize"))["prompt"]
        if not back.endswith(text):
            raise Failure(f"expected {text!r} of its own tokens, got {back!r}")
        await metrics(self.port)

    async def run(self, end):
        kinds = [self.whole, self.streamed, self.turn, self.leaving] * 2
        kinds += [self.several, self.constrained, self.with_tools, self.slow, self.refused, self.noise, self.figures]
        while time.monotonic() < end:
            kind = self.random.choice(kinds)
            await kind()
            self.counts[kind.__name__] += 1


async def metrics(port):
    """The server's figures by name."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    text = (await reader.read()).decode()
    writer.close()
    return {name: float(value) for name, value in re.findall(r"^vllm:(\w+)\{[^}]*\} (\S+)$", text, re.MULTILINE)}


async def probe(client, end):
    """Asks the same all through."""
    body = {"messages": [{"role": "user", "content": "Name three colours."}], "max_tokens": 60, "temperature": 0}

    async def answer():
        return json.loads(await client.ask(body))["choices"][0]["message"]["content"]

    begin, expected = time.monotonic(), await answer()
    while time.monotonic() < end:
        if (got := await answer()) != expected:
            # Whether it stays wrong tells what is in the cache from what went wrong in a step.
            again = [await answer() == expected for _ in range(3)]
            after = f"after {time.monotonic() - begin:.0f} s; right when asked again: {again}"
            raise Failure(f"expected the answer it had before, {expected!r}, got {got!r} {after}")
        client.counts["repeated"] += 1
        await asyncio.sleep(1)


def resident(process):
    """MiB that `process` has in memory."""
    with open(f"/proc/{process}/status") as status:
        return int(re.search(r"VmRSS:\s+(\d+) kB", status.read()).group(1)) / 1024


async def watch(process, end, sizes):
    while time.monotonic() < end:
        sizes.append(resident(process))
        await asyncio.sleep(1)


async def load(server, args):
    begin = time.monotonic()
    end = begin + args.seconds
    sizes, counts = [], collections.Counter()
    clients = [Client(server.port, args.seed + i, counts) for i in range(args.clients)]
    jobs = [client.run(end) for client in clients] + [probe(clients[0], end), watch(server.process.pid, end, sizes)]
    tasks = [asyncio.create_task(job) for job in jobs]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
    await asyncio.sleep(2)
    figures = await metrics(server.port)
    descriptors = len(os.listdir(f"/proc/{server.process.pid}/fd"))
    after = sizes[len(sizes) // 10 :]
    total = sum(counts.values())
    print(f"{total} requests in {time.monotonic() - begin:.0f} s: {dict(counts.most_common())}")
    print(f"resident: {sizes[0]:.0f} MiB at the start, {min(after):.0f} to {max(after):.0f} MiB after a tenth of the time")
    print(f"afterwards: {descriptors} descriptors, {figures['num_requests_running']:.0f} run, ", end="")
    print(f"{figures['num_requests_waiting']:.0f} wait, {figures['kv_cache_usage_perc']:.3f} of the cache in use")
    if figures["num_requests_running"] or figures["num_requests_waiting"] or figures["kv_cache_usage_perc"]:
        raise Failure("something runs, waits or holds pages that nobody asked for")
    if max(after) > 1.05 * min(after):
        raise Failure(f"expected memory within 5 %, got {max(after) / min(after):.3f} times the least")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plan")
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--chat-template", default=TEMPLATE, help="one that knows tools (%(default)s)")
    args = parser.parse_args()
    with serve(args, "--chat-template", args.chat_template) as server:
        try:
            asyncio.run(load(server, args))
        except Failure as failure:
            sys.exit(f"serve_load: {failure}")


if __name__ == "__main__":
    main()
