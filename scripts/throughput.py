#!/usr/bin/env python3
# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures tokens a second of many requests at once, as vLLM's benchmarks do.

Requests are random token ids that share no beginning, and answers go on to their
length. They come all at once: to `generate`, which is the engine without a server,
and to `serve` from clients that each wait for a stream to end before they ask again.

    scripts/throughput.py PLAN                        128 in and 128 out, 1,000 and 1,000, and mixed lengths
    scripts/throughput.py PLAN --lengths 128/128      one of them: tokens in and out, or mix
    scripts/throughput.py PLAN --only engine          without a server
    scripts/throughput.py PLAN -- --parallel 64       options for generate and serve

It needs the tool alone (--tool, by default llamac-run of the build), and for `serve` a plan with a
tokenizer. The table has, of each way to run a workload:

- output and total tokens a second, from the first request to the end of the last answer; prompts count
  in the total;
- time to first token (TTFT) and inter-token latency (ITL), between two events of a stream, as clients see them;
- the host's share: what of the steps' time nobody waited for programs. Beside steps in flight it costs nothing.
"""

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
import time

from serve_bench import ROOT, Server, request

# Lengths of prompts and answers as those of chats are (ShareGPT): log-normal, with the mean and the longest of what
# vLLM's benchmark keeps of it.
MIX_PROMPT, MIX_ANSWER, MIX_MOST = (4.7, 1.2), (4.9, 0.9), 1024
PERCENTILES = (50, 99)


def lengths_of(name, count, seed, most):
    """(tokens in, tokens out) of `count` requests, of at most `most` together."""
    if name != "mix":
        prompt, answer = map(int, name.split("/"))
        return [(prompt, answer)] * count
    source = random.Random(seed)

    def length(parameters):
        return max(4, min(int(source.lognormvariate(*parameters)), MIX_MOST))

    pairs = [(length(MIX_PROMPT), length(MIX_ANSWER)) for _ in range(count)]
    return [(min(prompt, most // 2), min(answer, most // 2)) for prompt, answer in pairs]


def requests_of(args, name):
    source = random.Random(args.seed)
    return [
        {"tokens": [source.randrange(args.vocab) for _ in range(prompt)], "max_tokens": answer}
        for prompt, answer in lengths_of(name, args.requests, args.seed, args.context)
    ]


def generate(tool, plan, requests, *options):
    """The summary of `generate` on `requests`, as its lines have them."""
    with tempfile.TemporaryDirectory() as folder:
        prompts, answers = os.path.join(folder, "requests.jsonl"), os.path.join(folder, "answers.jsonl")
        with open(prompts, "w", encoding="utf-8") as f:
            for body in requests:
                f.write(json.dumps(body) + "\n")
        command = [tool, "generate", plan, "--prompts", prompts, "-o", answers, "--json"]
        result = subprocess.run([*command, *options], capture_output=True, text=True)
    if result.returncode != 0:
        script = os.path.splitext(os.path.basename(sys.argv[0]))[0]
        raise SystemExit(f"{script}: {tool} generate: exit code {result.returncode}: {result.stderr.strip()}")
    return json.loads(result.stdout.splitlines()[-1])


def engine(args, requests):
    """The report of `generate` on `requests`."""
    requests = [body | {"ignore_eos": True, "temperature": 0} for body in requests]
    summary = generate(args.tool, args.plan, requests, "--print-ids", *args.options)
    if summary["errors"]:
        raise SystemExit(f"throughput: {summary['errors']} requests have errors; is --vocab larger than the model's?")
    steps = summary["step_seconds"]
    return {
        "prompt_tokens": summary["prompt_tokens"],
        "generated_tokens": summary["generated_tokens"],
        "seconds": summary["seconds"],
        "host_share": 1 - summary["program_seconds"] / steps if steps else 0,
        **{name: summary[name] for name in ("sequences", "pages", "preemptions", "steps")},
    }


class Times:
    """The times that clients saw."""

    def __init__(self):
        self.first, self.between = [], []
        self.prompt_tokens = self.generated_tokens = 0


async def stream(port, body, times):
    """One request. Events are counted as they come, and read as JSON only at the end."""
    asked = {"prompt": body["tokens"], "max_tokens": body["max_tokens"], "ignore_eos": True, "temperature": 0}
    asked |= {"stream": True, "stream_options": {"include_usage": True}}
    begin = last = time.perf_counter()
    reader, writer = await request(port, asked)
    is_first, tail = True, b""
    while piece := await reader.read(1 << 16):
        now = time.perf_counter()
        # The end has the finish and the usage, which are no tokens, but where it comes with them.
        if b"data: {" in piece and (is_first or b'"usage":{' not in piece):
            (times.first if is_first else times.between).append(now - (begin if is_first else last))
            is_first, last = False, now
        tail = (tail + piece)[-4000:]
    writer.close()
    usage = next((line for line in reversed(tail.split(b"\n")) if b'"usage":{' in line), None)
    if usage is None or b"data: [DONE]" not in tail:
        raise SystemExit(f"throughput: expected a stream with its usage and its end, got {tail[-600:]!r}")
    counts = json.loads(usage.removeprefix(b"data: "))["usage"]
    times.prompt_tokens += counts["prompt_tokens"]
    times.generated_tokens += counts["completion_tokens"]


async def clients(port, requests, count):
    """The times of `requests` by `count` clients, and the seconds of all."""
    times, left = Times(), iter(requests)

    async def client():
        for body in left:
            await stream(port, body, times)

    begin = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(count)))
    return times, time.perf_counter() - begin


def percentile(values, percent):
    return sorted(values)[min(len(values) * percent // 100, len(values) - 1)] if values else 0


def serving(args, port, requests):
    times, seconds = asyncio.run(clients(port, requests, args.clients))
    row = {"prompt_tokens": times.prompt_tokens, "generated_tokens": times.generated_tokens, "seconds": seconds}
    for name, values in (("ttft_s", times.first), ("itl_s", times.between)):
        row[name] = {f"p{percent}": percentile(values, percent) for percent in PERCENTILES}
    return row


def with_rates(row):
    row["output_tok_s"] = row["generated_tokens"] / row["seconds"]
    row["total_tok_s"] = (row["prompt_tokens"] + row["generated_tokens"]) / row["seconds"]
    return row


def measure(args):
    """A result for each workload."""
    results = [{"lengths": name, "requests": args.requests, "clients": args.clients} for name in args.lengths]
    if args.only != "serve":
        for row in results:
            row["engine"] = with_rates(engine(args, requests_of(args, row["lengths"])))
    if args.only != "engine":
        command = [args.tool, "serve", args.plan, "--port", "0", "--access-log", ""]
        command += ["--max-queue", str(max(args.clients, 256)), *args.options]
        with Server(command, r"listening on http://.*:(\d+)$") as server:
            # The first requests make graphs and fill caches.
            warm = [body | {"max_tokens": 8} for body in requests_of(args, args.lengths[0])]
            asyncio.run(clients(server.port, warm, args.clients))
            for row in results:
                row["serve"] = with_rates(serving(args, server.port, requests_of(args, row["lengths"])))
    for row in results:
        if "engine" in row and "serve" in row:
            row["serve_share"] = row["serve"]["output_tok_s"] / row["engine"]["output_tok_s"]
    return results


def table(results):
    """For people, in Markdown."""
    rows = [["tokens in/out", "requests", "by", "output tok/s", "total tok/s", "of engine"]]
    rows[0] += ["TTFT p50, p99 ms", "ITL p50, p99 ms", "host"]
    for result in results:
        for way in ("engine", "serve"):
            if way not in result:
                continue
            row = result[way]
            cells = [result["lengths"], str(result["requests"]), way]
            cells += [f"{row['output_tok_s']:.0f}", f"{row['total_tok_s']:.0f}"]
            cells.append(f"{result['serve_share']:.2f}" if way == "serve" and "serve_share" in result else "")
            for name in ("ttft_s", "itl_s"):
                cells.append(", ".join(f"{1e3 * seconds:.1f}" for seconds in row.get(name, {}).values()))
            cells.append(f"{100 * row['host_share']:.1f} %" if "host_share" in row else "")
            rows.append(cells)
    return [f"| {' | '.join(cells)} |" for cells in (rows[0], ["---"] * len(rows[0]), *rows[1:])]


def parse(argv):
    options = []
    if "--" in argv:
        argv, options = argv[: argv.index("--")], argv[argv.index("--") + 1 :]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plan")
    parser.add_argument("--tool", default=os.path.join(ROOT, "build", "bin", "llamac-run"))
    parser.add_argument("--lengths", default="128/128,1000/1000,mix", help="comma separated (%(default)s)")
    parser.add_argument("--requests", type=int, default=512, help="of each workload (%(default)s)")
    parser.add_argument("--clients", type=int, default=256, help="of serve, at once (%(default)s)")
    parser.add_argument("--vocab", type=int, default=1000, help="token ids are below it (%(default)s)")
    parser.add_argument("--context", type=int, default=2048, help="tokens of a sequence, for mix (%(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=("engine", "serve"))
    parser.add_argument("--json", action="store_true", help="a line for each workload")
    args = parser.parse_args(argv)
    args.lengths = args.lengths.split(",")
    for name in args.lengths:
        parts = name.split("/")
        if name != "mix" and not (len(parts) == 2 and all(part.isdigit() and int(part) > 0 for part in parts)):
            parser.error(f"--lengths: expected tokens in and out such as 128/128, or mix, got {name}")
    for name in ("requests", "clients", "vocab", "context"):
        if getattr(args, name) < 1:
            parser.error(f"--{name}: expected at least 1, got {getattr(args, name)}")
    args.options = options
    return args


def main():
    args = parse(sys.argv[1:])
    results = measure(args)
    if args.json:
        print("\n".join(map(json.dumps, results)))
    else:
        print("\n".join(table(results)))


if __name__ == "__main__":
    main()
