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

# The peer measures like `llamac bench`: the prompt of each sequence, then steps
# of one token of every sequence, all with their logits.
PEER = """
import ctypes, json, sys, time
import llama_cpp as ll

path, threads, prompt, gen, sequences = sys.argv[1], *map(int, sys.argv[2:])
silent = ll.llama_log_callback(lambda level, text, data: None)
ll.llama_log_set(silent, None)
ll.llama_backend_init()
model = ll.llama_model_load_from_file(path.encode(), ll.llama_model_default_params())
options = ll.llama_context_default_params()
options.n_ctx = sequences * -(-(prompt + gen + 16) // 256) * 256
options.n_batch = options.n_ubatch = 512
options.n_threads = options.n_threads_batch = threads
options.n_seq_max = sequences
context = ll.llama_init_from_model(model, options)
rows = ll.llama_batch_init(512, 0, 1)
vocabulary = ll.llama_vocab_n_tokens(ll.llama_model_get_vocab(model))

def step(items):
    rows.n_tokens = len(items)
    for i, (sequence, position, logits) in enumerate(items):
        rows.token[i] = (7919 * position + 11) % vocabulary
        rows.pos[i], rows.seq_id[i][0], rows.n_seq_id[i], rows.logits[i] = position, sequence, 1, logits
    if ll.llama_decode(context, rows):
        sys.exit("llama_decode failed")

def prefill(sequence, tokens):
    for first in range(0, tokens, 512):
        step([(sequence, i, i == tokens - 1) for i in range(first, min(first + 512, tokens))])
    ll.llama_synchronize(context)

prefill(0, 16)
ll.llama_memory_clear(ll.llama_get_memory(context), True)
start = time.perf_counter()
for sequence in range(sequences):
    prefill(sequence, prompt)
middle = time.perf_counter()
for i in range(gen):
    step([(sequence, prompt + i, True) for sequence in range(sequences)])
    ll.llama_synchronize(context)
end = time.perf_counter()
print(json.dumps({"prefill_tok_s": sequences * prompt / (middle - start),
                  "decode_tok_s": sequences * gen / (end - middle)}))
"""


def last_json_line(command):
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        sys.exit(f"{' '.join(command[:3])} ... failed:\n{result.stderr}")
    return json.loads(result.stdout.strip().splitlines()[-1])


def measure_llamac(args, sequences=1):
    command = [args.llamac, "bench", args.model, "--json", "-t", args.threads]
    command += ["--prompt-tokens", args.prompt, "--gen-tokens", args.gen, "--batch", sequences]
    return last_json_line([str(x) for x in command])


def measure_llama_cpp(args, sequences=1):
    command = [sys.executable, "-c", PEER, args.model, args.threads, args.prompt, args.gen, sequences]
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
            read = mine / args.sequences * os.path.getsize(args.model)
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
    parser.add_argument("--sequences", type=int, default=1, help="sequences that run together")
    parser.add_argument("--floor-prefill", type=float, default=0, help="exit with 1 below this ratio")
    parser.add_argument("--floor-decode", type=float, default=0, help="exit with 1 below this ratio")
    args = parser.parse_args()

    ours, peers, bandwidth = [], [], 0.0
    for number in range(1, args.rounds + 1):
        ours.append(measure_llamac(args, args.sequences))
        peers.append(measure_llama_cpp(args, args.sequences))
        bandwidth = max(bandwidth, read_bandwidth(args.threads))
        speeds = " | ".join(f"{x['prefill_tok_s']:.1f} {x['decode_tok_s']:.1f}" for x in (ours[-1], peers[-1]))
        print(f"round {number} of {args.rounds}: prefill and decode, llamac | llama.cpp: {speeds}", file=sys.stderr)
    ratios = report(ours, peers, args, bandwidth)
    sys.exit(ratios["prefill"] < args.floor_prefill or ratios["decode"] < args.floor_decode)


if __name__ == "__main__":
    main()
