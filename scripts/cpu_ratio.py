#!/usr/bin/env python3
# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures llamac and llama.cpp on the same GGUF, interleaved.

A round runs one after the other, so that other load affects both; a
ratio is the median over rounds of llamac's speed over llama.cpp's in the same
round. Decode is also given as a share of measured read bandwidth: a token
needs every weight once.

    scripts/setup.sh bench
    build/venv/bin/python scripts/cpu_ratio.py --llamac build/bin/llamac --model build/models/smollm2.gguf
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import threading
import time

import numpy as np

PEER = """
import json, sys, time
import llama_cpp

model, threads, prompt, gen = sys.argv[1], *map(int, sys.argv[2:])
llama = llama_cpp.Llama(model, n_ctx=prompt + gen + 16, n_batch=512, n_threads=threads,
                        n_threads_batch=threads, verbose=False)
vocabulary = llama.n_vocab()
ids = [(7919 * i + 11) % vocabulary for i in range(prompt + gen)]
llama.eval(ids[:16])
llama.reset()
start = time.perf_counter()
llama.eval(ids[:prompt])
middle = time.perf_counter()
for token in ids[prompt:]:
    llama.eval([token])
end = time.perf_counter()
print(json.dumps({"prefill_tok_s": prompt / (middle - start), "decode_tok_s": gen / (end - middle)}))
"""


def last_json_line(command):
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        sys.exit(f"{' '.join(command[:3])} ... failed:\n{result.stderr}")
    return json.loads(result.stdout.strip().splitlines()[-1])


def measure_llamac(args):
    command = [args.llamac, "bench", args.model, "--json", "-t", args.threads]
    command += ["--prompt-tokens", args.prompt, "--gen-tokens", args.gen]
    return last_json_line([str(x) for x in command])


def measure_llama_cpp(args):
    command = [sys.executable, "-c", PEER, args.model, args.threads, args.prompt, args.gen]
    return last_json_line([str(x) for x in command])


def read_bandwidth(threads, size=1 << 29, tries=5):
    """The best read bandwidth of `threads` threads, in bytes a second."""
    data = np.zeros(size // 8, np.int64)
    data += 1  # touches every page
    best = 0.0
    for _ in range(tries):
        # numpy lets go of the interpreter while it reduces.
        readers = [
            threading.Thread(target=np.bitwise_or.reduce, args=(part,))
            for part in np.array_split(data, threads)
        ]
        start = time.perf_counter()
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join()
        best = max(best, size / (time.perf_counter() - start))
    return best


def report(ours, peers, args, bandwidth):
    """Prints the medians and returns the ratios by kind of work."""
    ratios = {}
    for work in ("prefill", "decode"):
        key = work + "_tok_s"
        ratios[work] = statistics.median(a[key] / b[key] for a, b in zip(ours, peers))
        mine, theirs = (statistics.median(x[key] for x in runs) for runs in (ours, peers))
        print(f"{work:8} llamac {mine:8.1f}  llama.cpp {theirs:8.1f} tok/s  ratio {ratios[work]:.2f}")
        if work == "decode":
            read = mine * os.path.getsize(args.model)
            print(f"         reaches {read / 1e9:.1f} of {bandwidth / 1e9:.1f} GB/s, {read / bandwidth:.0%} of read bandwidth")
    return ratios


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--llamac", default="build/bin/llamac")
    parser.add_argument("--model", required=True, help="a GGUF file")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--prompt", type=int, default=512, help="tokens of the prompt")
    parser.add_argument("--gen", type=int, default=64, help="tokens decoded after it")
    parser.add_argument("--floor-prefill", type=float, default=0, help="exit with 1 below this ratio")
    parser.add_argument("--floor-decode", type=float, default=0, help="exit with 1 below this ratio")
    args = parser.parse_args()

    ours, peers, bandwidth = [], [], 0.0
    for number in range(1, args.rounds + 1):
        ours.append(measure_llamac(args))
        peers.append(measure_llama_cpp(args))
        bandwidth = max(bandwidth, read_bandwidth(args.threads))
        speeds = " | ".join(f"{x['prefill_tok_s']:.1f} {x['decode_tok_s']:.1f}" for x in (ours[-1], peers[-1]))
        print(f"round {number} of {args.rounds}: prefill and decode, llamac | llama.cpp: {speeds}", file=sys.stderr)
    ratios = report(ours, peers, args, bandwidth)
    sys.exit(ratios["prefill"] < args.floor_prefill or ratios["decode"] < args.floor_decode)


if __name__ == "__main__":
    main()
