#!/usr/bin/env python3
# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures what drafts bring: tokens a second of answers by --speculative, in turn.

    scripts/speculation.py --cycle SHORT LONG    plans of make_gguf.py with --cycle 200 and 2048: answers that
                                                 repeat their prompts, and that repeat nothing, in 1 and 16 streams
    scripts/speculation.py --model PLAN          a real model, on prompts whose answers repeat them
    scripts/speculation.py --pair PLAN DRAFT...  plans of make_gguf.py with --cycle 500, the drafts' with --miss and of
                                                 a smaller shape, beside what acceptance and costs predict

It needs the tool alone (--tool, by default llamac-run of the build). Each round runs every setting once, prompts
included; ratios are of a round's figures, and the table has their medians.
"""

import argparse
import json
import os
import statistics
import subprocess

from serve_bench import ROOT
from throughput import generate

SETTINGS = (0, 8, 16, -1)

# Prompts as people have them whose answers are for the most part in them.
CODE = """def total(prices, tax):
    result = 0
    for price in prices:
        result += price * (1 + tax)
    return round(result, 2)
"""
TEXT = (
    "The harbour was built in 1872 by fishermen who were tired of dragging their boats over the shingle. "
    "It is forty metres wide at its mouth and seven metres deep at low water. In 1953 a storm took the outer wall, "
    "which was rebuilt within two years from the same stones."
)
REPEATING = [
    f"Write this Python function again without any change:\n{CODE}",
    f"Rename the function total to sum_of_prices and leave the rest as it is:\n{CODE}",
    f"Copy this text word for word: {TEXT}",
    f"Quote the sentence that says when the harbour was built: {TEXT}",
    'Give this JSON back with "active" set to false: '
    '{"name": "Ada", "id": 17, "email": "ada@example.org", "active": true, "groups": ["staff", "editors"]}',
    "Continue the list: apple, banana, cherry, apple, banana, cherry, apple, banana, cherry,",
]


def measure(args, plan, requests, speculative, parallel, draft=None):
    """The summary of `generate`, with decoded tokens a second."""
    requests = [{"temperature": 0, "speculative": speculative} | request for request in requests]
    options = ["--no-prefix-cache", "--parallel", str(parallel)]
    if "tokens" in requests[0]:
        options.append("--print-ids")
    if draft:
        options += ["--draft", draft]
    summary = generate(args.tool, plan, requests, *options)
    return summary | {"rate": summary["generated_tokens"] / summary["seconds"]}


def cycle_requests(streams, length, tokens):
    """Prompts that count up from places far apart, to be counted on."""
    return [
        {"tokens": [(i * 2048 // streams + k) % 2048 for k in range(length)], "max_tokens": tokens, "ignore_eos": True}
        for i in range(streams)
    ]


def step_seconds(args, plan, rows):
    """The time of a step that decodes `rows` rows."""
    command = [args.tool, "bench", plan, "--batch", str(rows), "--gen-tokens", "24", "--prompt-tokens", "64", "--json"]
    result = subprocess.run([*command, "--repeat", "3"], capture_output=True, text=True, check=True)
    return rows / json.loads(result.stdout.splitlines()[-1])["decode_tok_s"]


def pair(args, target, drafts):
    print("| draft | tokens drafted | none | with it | ratio | accepted of drafted | predicted | of that |")
    print("|---|---|---|---|---|---|---|---|")
    request = [{"tokens": [0, 1, 2, 3], "max_tokens": args.tokens, "ignore_eos": True}]
    for draft in drafts:
        for tokens in (4, 8, -1):
            found = []
            for _ in range(args.rounds):
                none = measure(args, target, request, 0, 1)
                drafted = measure(args, target, request, tokens, 1, draft)
                count = tokens if tokens > 0 else round(drafted["draft_tokens"] / max(1, drafted["steps"]))
                one, all_rows = step_seconds(args, target, 1), step_seconds(args, target, 1 + count)
                cost = all_rows + count * step_seconds(args, draft, 1)
                per_step = drafted["generated_tokens"] / drafted["steps"]
                found.append((none["rate"], drafted["rate"], drafted["rate"] / none["rate"], per_step * one / cost))
            rate, with_it, ratio, predicted = map(statistics.median, zip(*found))
            print(
                f"| {os.path.basename(draft)} | {tokens} | {rate:.1f} | {with_it:.1f} | {ratio:.2f} |"
                f" {drafted['accepted_tokens']} of {drafted['draft_tokens']} | {predicted:.2f} | {ratio / predicted:.2f} |",
                flush=True,
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cycle", nargs=2, metavar=("SHORT", "LONG"))
    parser.add_argument("--model", metavar="PLAN")
    parser.add_argument("--pair", nargs="+", metavar="PLAN")
    parser.add_argument("--tool", default=os.path.join(ROOT, "build", "bin", "llamac-run"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=100, help="tokens of an answer")
    args = parser.parse_args()
    if args.pair:
        pair(args, args.pair[0], args.pair[1:])
        return
    workloads = []
    if args.cycle:
        short, long = args.cycle
        repeat = [{"tokens": [*range(200), 0], "max_tokens": args.tokens, "ignore_eos": True}]
        workloads = [
            ("repeats its prompt", short, repeat, 1),
            ("repeats nothing", long, cycle_requests(1, 8, args.tokens), 1),
            ("repeats nothing, 16 streams", long, cycle_requests(16, 8, min(args.tokens, 100)), 16),
        ]
    if args.model:
        for prompt in REPEATING:
            request = {"messages": [{"role": "user", "content": prompt}], "max_tokens": args.tokens}
            workloads.append((prompt.splitlines()[0][:60], args.model, [request], 1))
    if not workloads:
        parser.error("expected --cycle or --model")

    print("| answer | " + " | ".join(str(s) for s in SETTINGS) + " | accepted of drafted, -1 | steps a token, -1 |")
    print("|---|" + "---|" * (len(SETTINGS) + 2))
    for name, plan, requests, parallel in workloads:
        rates, last = {setting: [] for setting in SETTINGS}, None
        for number in range(args.rounds):
            # Back and forth, so that a drift of the machine is no difference.
            for setting in SETTINGS[:: -1 if number % 2 else 1]:
                summary = measure(args, plan, requests, setting, parallel)
                rates[setting].append(summary["rate"])
                last = summary if setting == SETTINGS[-1] else last
        ratios = [statistics.median(a / b for a, b in zip(rates[s], rates[0])) for s in SETTINGS[1:]]
        print(
            f"| {name} | {statistics.median(rates[0]):.1f} tok/s | "
            + " | ".join(f"{ratio:.2f}" for ratio in ratios)
            + f" | {last['accepted_tokens']} of {last['draft_tokens']} |"
            f" {last['steps'] / max(1, last['generated_tokens']):.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
