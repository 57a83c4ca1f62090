#!/usr/bin/env python3
# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures what serving over HTTP takes off the engine's speed.

Rounds of `llamac-run serve` and `llamac-run bench` on the same plan alternate, so
that what else the machine does meets both; the ratio is that of each round, and
its median is printed.

    scripts/serve_bench.py PLAN                 one and eight streams; start; /health beside idle and slow clients;
                                                refusals of a full server
    scripts/serve_bench.py PLAN --rounds 9
    scripts/serve_bench.py PLAN --peer GGUF     eight clients of this server and of llama-cpp-python's, which
                                                scripts/setup.sh bench installs
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
    """A server that is ready."""

    def __init__(self, command, sign):
        """`sign` finds the port in the line by which it says that it is ready."""
        begin = time.perf_counter()
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        found, line = None, ""
        while not found:
            before, line = line, self.process.stderr.readline()
            if not line:
                raise SystemExit(f"serve_bench: {command[0]} ended with {self.process.wait()}: {before.strip()}")
            found = re.search(sign, line)
        self.start = time.perf_counter() - begin
        self.port = int(found.group(1))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


def serve(args, *options):
    command = [os.path.join(args.build, "bin", "llamac-run"), "serve", args.plan, "--port", "0", "--access-log", ""]
    return Server([*command, *options], r"listening on http://.*:(\d+)$")


def serve_peer(args):
    """llama-cpp-python's server, on the same threads, that ends what it began before it takes up the next request."""
    command = [os.path.join(ROOT, "build", "venv", "bin", "python"), "-m", "llama_cpp.server", "--model", args.peer]
    options = {"n_threads": os.cpu_count(), "n_threads_batch": os.cpu_count(), "n_ctx": 2048, "verbose": "false"}
    options |= {"interrupt_requests": "false", "port": 8765}
    flags = (text for name, value in options.items() for text in (f"--{name}", str(value)))
    return Server([*command, *flags], r"running on http://.*:(\d+)")


async def request(port, body, path="/v1/completions", **options):
    """The reader and writer of a connection by which `body` was sent to `path`."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, **options)
    text = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n"
    writer.write(f"{head}Content-Length: {len(text)}\r\n\r\n".encode() + text)
    return reader, writer


async def whole(port, body):
    """The status, the body and the seconds of an answer."""
    begin = time.perf_counter()
    reader, writer = await request(port, body)
    head, _, answer = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    return int(head.split()[1]), answer, time.perf_counter() - begin


def endless(prompt):
    """A stream that goes on for seconds."""
    return {"prompt": [prompt], "max_tokens": 2000, "stream": True, "ignore_eos": True}


async def stream(port, seed, tokens):
    """A completion of `tokens`: the seconds to its first event, and to its end."""
    # Prompts that share no beginning.
    body = {"prompt": [seed * PROMPT_TOKENS + i for i in range(PROMPT_TOKENS)], "max_tokens": tokens}
    begin = time.perf_counter()
    reader, writer = await request(port, body | {"stream": True, "ignore_eos": True, "temperature": 0})
    first, tail = None, b""
    while piece := await reader.read(1 << 20):
        if first is None and b"data: " in piece:
            first = time.perf_counter() - begin
            # The client's own processor time is not measured: it sleeps until much, or the end, has come.
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
        with serve(args) as server:
            asyncio.run(streams(server.port, 1, 8, 900))
            times, _ = asyncio.run(streams(server.port, 1, args.tokens, number))
            first, end = times[0]
            served = (args.tokens - 1) / (end - first)
        single.append((served, bench(args, "--repeat", "1")["decode_tok_s"]))
        with serve(args) as server:
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
    clients += [await request(port, endless(i), limit=1) for i in range(slow)]
    for reader, _ in clients[idle:]:
        if await reader.readexactly(12) != b"HTTP/1.1 200":
            raise SystemExit("serve_bench: the server refused a stream")
    times = await health(port, 300)
    for _, writer in clients:
        writer.close()
    return times


async def refusals(port, count):
    """Milliseconds to each of `count` refusals of a server whose queue two requests fill."""
    clients = []
    for i in range(2):
        clients.append(await request(port, endless(i)))
        await asyncio.sleep(0.2)
    answers = [await whole(port, endless(2)) for _ in range(count)]
    if any(status != 503 for status, _, _ in answers):
        raise SystemExit("serve_bench: a full server took a request")
    for _, writer in clients:
        writer.close()
    return sorted(1e3 * seconds for _, _, seconds in answers)


SUBJECTS = ("a river", "the sea", "old trains", "bread", "the moon", "a lighthouse", "winter", "a small town")


async def clients(port, tokens):
    """Tokens a second of answers to eight clients, each of which asks twice."""

    async def client(subject):
        total = 0
        for beginning in ("Here is a long story about", "This is what everybody should know about"):
            body = {"prompt": f"{beginning} {subject}.", "max_tokens": tokens, "temperature": 0}
            status, answer, _ = await whole(port, body)
            if status != 200:
                raise SystemExit(f"serve_bench: the server answered {answer!r}")
            total += json.loads(answer)["usage"]["completion_tokens"]
        return total

    begin = time.perf_counter()
    return sum(await asyncio.gather(*map(client, SUBJECTS))) / (time.perf_counter() - begin)


def compare_with_peer(args):
    rounds = []
    for _ in range(args.rounds):
        with serve(args) as server:
            asyncio.run(whole(server.port, {"prompt": "Hello", "max_tokens": 8}))
            own = asyncio.run(clients(server.port, args.tokens))
        with serve_peer(args) as server:
            asyncio.run(whole(server.port, {"prompt": "Hello", "max_tokens": 8}))
            rounds.append((own, asyncio.run(clients(server.port, args.tokens))))
    ratios = [own / peer for own, peer in rounds]
    print(
        f"8 clients: {statistics.median(o for o, _ in rounds):.1f} / {statistics.median(p for _, p in rounds):.1f} tok/s "
        f"of llama-cpp-python's server, {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plan")
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--idle", type=int, default=1000)
    parser.add_argument("--slow", type=int, default=100)
    parser.add_argument("--peer", metavar="GGUF", help="the model of the plan, for llama-cpp-python's server")
    args = parser.parse_args()
    if args.peer:
        compare_with_peer(args)
        return
    compare(args)
    starts = []
    for _ in range(args.rounds):
        with serve(args) as server:
            starts.append(server.start)
    load = bench(args, "--repeat", "1")["load_s"]
    print(f"start: {statistics.median(starts):.3f} s, of which loading the plan is {load:.3f} s")
    resource.setrlimit(resource.RLIMIT_NOFILE, (8192, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    with serve(args) as server:
        times = asyncio.run(crowd(server.port, args.idle, args.slow))
    print(
        f"/health beside {args.idle} idle and {args.slow} slow clients: median {times[len(times) // 2]:.1f} ms, "
        f"p99 {times[len(times) * 99 // 100]:.1f} ms"
    )
    with serve(args, "--parallel", "1", "--max-queue", "1") as server:
        times = asyncio.run(refusals(server.port, 300))
    print(f"refusals of a full server: median {times[len(times) // 2]:.1f} ms, slowest {times[-1]:.1f} ms")


if __name__ == "__main__":
    main()
