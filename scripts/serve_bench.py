#!/usr/bin/env python3
# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures what serving over HTTP takes off the engine's speed.

Rounds of `llamac-run serve` and `llamac-run bench` on the same plan alternate, so
that what else the machine does meets both; the ratio is that of each round, and
its median is printed.

    scripts/serve_bench.py PLAN                 one and eight streams; start; /health under idle and slow clients
    scripts/serve_bench.py PLAN --rounds 9
"""

import argparse
import asyncio
import json
import os
import re
import resource
import socket
import statistics
import subprocess
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PROMPT_TOKENS = 17


class Server:
    def __init__(self, args, *options):
        command = [os.path.join(args.build, "bin", "llamac-run"), "serve", args.plan, "--port", "0", "--access-log", ""]
        begin = time.perf_counter()
        self.process = subprocess.Popen([*command, *options], stderr=subprocess.PIPE, text=True)
        line = self.process.stderr.readline()
        self.start = time.perf_counter() - begin
        self.port = int(re.search(r":(\d+)$", line).group(1))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


async def stream(port, seed, tokens):
    """A completion of `tokens`: the seconds to its first event, and to its end."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    # Prompts that share no beginning.
    body = {"prompt": [seed * PROMPT_TOKENS + i for i in range(PROMPT_TOKENS)], "max_tokens": tokens}
    text = json.dumps(body | {"stream": True, "ignore_eos": True, "temperature": 0}).encode()
    begin = time.perf_counter()
    head = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
    writer.write(head % len(text) + text)
    first, tail = None, b""
    while piece := await reader.read(1 << 20):
        if first is None and b"data: " in piece:
            first = time.perf_counter() - begin
            # What the client takes of the processor is not measured: it sleeps until much, or the end, has come.
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1 << 20)
        tail = (tail + piece)[-100:]
    writer.close()
    if not tail.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n"):
        raise SystemExit(f"serve_bench: the server closed the connection after {tail!r}")
    return first, time.perf_counter() - begin


async def streams(port, count, tokens, seed):
    begin = time.perf_counter()
    times = await asyncio.gather(*(stream(port, seed + i, tokens) for i in range(count)))
    return times, time.perf_counter() - begin


def bench(args, *options):
    command = [os.path.join(args.build, "bin", "llamac-run"), "bench", args.plan, "--json", "--warm-ups", "1"]
    command += ["--prompt-tokens", str(PROMPT_TOKENS), "--gen-tokens", str(args.tokens), *options]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[-1])


def compare(args):
    """Tokens a second by HTTP and by the engine alone, of one stream and of eight, in each round."""
    single, eight = [], []
    for number in range(args.rounds):
        with Server(args) as server:
            asyncio.run(streams(server.port, 1, 8, 900))
            times, _ = asyncio.run(streams(server.port, 1, args.tokens, number))
            first, end = times[0]
            served = (args.tokens - 1) / (end - first)
        single.append((served, bench(args, "--repeat", "1")["decode_tok_s"]))
        with Server(args) as server:
            asyncio.run(streams(server.port, 1, 8, 900))
            _, seconds = asyncio.run(streams(server.port, 8, args.tokens, 100 + 8 * number))
            served = 8 * args.tokens / seconds
        eight.append((served, bench(args, "--requests", "8", "--batch", "8")["output_tok_s"]))
    for name, rounds in (("1 stream, decode", single), ("8 streams, all", eight)):
        ratios = [served / alone for served, alone in rounds]
        print(
            f"{name}: {statistics.median(s for s, _ in rounds):.1f} / {statistics.median(a for _, a in rounds):.1f} tok/s, "
            f"{statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})"
        )


async def health(port, count):
    """Milliseconds of `count` requests for /health, each over its own connection."""
    times = []
    for _ in range(count):
        begin = time.perf_counter()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        await reader.read()
        writer.close()
        times.append(1e3 * (time.perf_counter() - begin))
        await asyncio.sleep(0.01)
    return sorted(times)


async def crowd(port, idle, slow):
    """/health beside connections that say nothing and streams that nobody reads."""
    clients = [await asyncio.open_connection("127.0.0.1", port) for _ in range(idle)]
    for i in range(slow):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1)
        text = json.dumps({"prompt": [i], "max_tokens": 200, "stream": True, "ignore_eos": True}).encode()
        writer.write(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(text) + text)
        clients.append((reader, writer))
    times = await health(port, 300)
    for _, writer in clients:
        writer.close()
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plan")
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--idle", type=int, default=1000)
    parser.add_argument("--slow", type=int, default=100)
    args = parser.parse_args()
    compare(args)
    starts = []
    for _ in range(args.rounds):
        with Server(args) as server:
            starts.append(server.start)
    load = bench(args, "--repeat", "1")["load_s"]
    print(f"start: {statistics.median(starts):.3f} s, of which loading the plan is {load:.3f} s")
    resource.setrlimit(resource.RLIMIT_NOFILE, (8192, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    with Server(args) as server:
        times = asyncio.run(crowd(server.port, args.idle, args.slow))
    print(
        f"/health beside {args.idle} idle and {args.slow} slow clients: median {times[len(times) // 2]:.1f} ms, "
        f"p99 {times[len(times) * 99 // 100]:.1f} ms"
    )


if __name__ == "__main__":
    main()
