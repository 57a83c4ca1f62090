#!/usr/bin/env python3
# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures the cpu target on this machine and prints the tables of
docs/performance.md.

llama.cpp and llamac run interleaved on the same file (scripts/cpu_ratio.py); a
ratio is the median over rounds. The models are SmolLM2-135M-Instruct and random
weights in the shapes of Llama 3.2 1B (scripts/make_gguf.py), which are made
where they are missing: about 6 GB for all. llamac measures the machine's read
bandwidth and f32 peak in every round.

    scripts/setup.sh bench
    build/venv/bin/python scripts/performance.py
"""

import argparse
import datetime
import json
import os
import statistics
import subprocess
import sys
import types

import cpu_ratio

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# Least ratios to llama.cpp: prefill of 512 tokens, decode after them.
RATIOS = {
    "SmolLM2 Q4_1": (5.5, 2.5),
    "1B Q4_0": (2.5, 1.4),
    "1B Q4_1": (4.5, 1.5),
    "1B Q8_0": (2.0, 1.35),
    "1B BF16": (1.6, 1.35),
    "1B Q4_K": (None, 1.2),
    "1B Q5_K": (None, 1.2),
    "1B Q6_K": (None, 1.2),
    "1B Q2_K": (None, None),
    "1B Q3_K": (None, None),
    "1B IQ4_NL": (None, None),
    "1B IQ4_XS": (None, None),
    "1B MXFP4": (None, None),
}
READ_SHARE = 0.88  # Least share of read bandwidth, for decode of the 1B shapes.
PEAK_SHARE = 1.8  # Least multiple of the f32 peak, for prefill of Q4_0.
# Least tokens a second of so many sequences over those of one, and over llama.cpp's
# of as many: with AVX-512, and without.
BATCHES = {1: (None, None), 2: (None, None), 4: (None, None), 8: (4.0, 3.0), 16: (None, None), 32: (8.0, 5.0)}
BATCH_RATIO = 2.0
DEPTH_SHARE = 0.90  # Least share of read bandwidth, for decode at a depth of 8,000 tokens.
DEPTH_CACHE = 16 * 2 * 8 * 64 * 2 * 8192  # Bytes: layers, K and V, heads, their size, f16, tokens.
EXTRA_MIB = 150  # Memory beyond the weights and the cache.


def model_path(name, models):
    """The GGUF of a row of RATIOS; made if it is one of random weights."""
    shape, kind = name.split()
    if shape == "SmolLM2":
        return os.path.join(models, "smollm2.gguf")
    path = os.path.join(models, f"1b-{kind.lower()}.gguf")
    if not os.path.exists(path):
        script = os.path.join(ROOT, "scripts", "make_gguf.py")
        subprocess.run([sys.executable, script, path, "--shape", "1b", "--type", kind], check=True)
    return path


class Machine:
    """llamac or llamac-run on a number of threads."""

    def __init__(self, program, threads):
        self.program, self.threads = program, threads

    def run(self, *args):
        """The output of the program."""
        command = [str(x) for x in (self.program, *args)]
        result = subprocess.run(command, capture_output=True, text=True)
        if result.returncode:
            sys.exit(f"{' '.join(command)} failed:\n{result.stderr}")
        return result.stdout

    def bench(self, model, *args):
        """The objects that `bench --json` prints."""
        printed = self.run("bench", model, "--json", "-t", self.threads, *args)
        return [json.loads(line) for line in printed.splitlines()]

    def kernels(self, model, prompt, gen, *args):
        """Sums over all kernels of prefill and of decode, and the limits."""
        prefill, decode = self.bench(model, "--kernels", "--prompt-tokens", prompt, "--gen-tokens", gen, *args)
        return prefill["kernels"][-1], decode["kernels"][-1], decode["limits"]


def verdict(value, least, form):
    """The value, and the target."""
    if least is None:
        return form.format(value)
    return f"{form.format(value)} ({'≥' if value >= least else 'short of'} {form.format(least)})"


def ratios(machine, models, rounds):
    """Rows of the table against llama.cpp."""
    run = types.SimpleNamespace(llamac=machine.program, threads=machine.threads, prompt=512, gen=64)
    yield "| model | prefill llamac / llama.cpp, tok/s | ratio | decode llamac / llama.cpp, tok/s | ratio | decode reads |"
    yield "|---|---|---|---|---|---|"
    for name, least in RATIOS.items():
        run.model = model_path(name, models)
        ours, peers, shares, rates = [], [], [], []
        for number in range(rounds):
            print(f"{name}, round {number + 1} of {rounds}", file=sys.stderr)
            ours.append(cpu_ratio.measure_llamac(run))
            peers.append(cpu_ratio.measure_llama_cpp(run))
            _, decode, limits = machine.kernels(run.model, 16, 1)
            rates.append(ours[-1]["decode_tok_s"] * decode["bytes"])
            shares.append(rates[-1] / limits["bandwidth"])
        cells = [name]
        for key, mark in zip(("prefill_tok_s", "decode_tok_s"), least):
            mine, theirs = (statistics.median(x[key] for x in runs) for runs in (ours, peers))
            ratio = statistics.median(a[key] / b[key] for a, b in zip(ours, peers))
            cells += [f"{mine:.1f} / {theirs:.1f}", verdict(ratio, mark, "{:.2f}")]
        share, rate = statistics.median(shares), statistics.median(rates)
        reads = verdict(share, READ_SHARE if name.startswith("1B") else None, "{:.0%}")
        yield "| " + " | ".join(cells + [f"{rate * 1e-9:.1f} GB/s, {reads} of read bandwidth"]) + " |"


def batches(machine, models, rounds, names):
    """Rows of decode of several sequences together."""
    with open("/proc/cpuinfo") as f:
        level = 0 if "avx512f" in f.read() else 1
    run = types.SimpleNamespace(llamac=machine.program, threads=machine.threads, prompt=64, gen=32)
    yield "| model, sequences | decode llamac / llama.cpp, tok/s | ratio | llamac over its one | llama.cpp over its one |"
    yield "|---|---|---|---|---|"
    for name in names:
        run.model = model_path(name, models)
        ours, peers = ({sequences: [] for sequences in BATCHES} for _ in range(2))
        for number in range(rounds):
            for sequences in BATCHES:
                print(f"{name}, {sequences} sequences, round {number + 1} of {rounds}", file=sys.stderr)
                ours[sequences].append(cpu_ratio.measure_llamac(run, sequences)["decode_tok_s"])
                peers[sequences].append(cpu_ratio.measure_llama_cpp(run, sequences)["decode_tok_s"])
        for sequences, least in BATCHES.items():
            mine, theirs = (statistics.median(speeds[sequences]) for speeds in (ours, peers))
            ratio = statistics.median(a / b for a, b in zip(ours[sequences], peers[sequences]))
            gain, peer_gain = (statistics.median(a / b for a, b in zip(speeds[sequences], speeds[1])) for speeds in (ours, peers))
            cells = [f"{name}, {sequences}", f"{mine:.1f} / {theirs:.1f}"]
            cells.append(verdict(ratio, BATCH_RATIO if least[level] else None, "{:.2f}"))
            cells += [verdict(gain, least[level], "{:.2f}"), f"{peer_gain:.2f}"]
            yield "| " + " | ".join(cells) + " |"


def others(machine, models):
    """Rows of what only llamac measures."""
    yield "| what | measured |"
    yield "|---|---|"
    model = model_path("1B Q4_0", models)
    (plain,) = machine.bench(model, "--prompt-tokens", 512, "--gen-tokens", 16, "--warm-ups", 1, "--repeat", 3)
    prefill, _, limits = machine.kernels(model, 512, 1)
    share = prefill["operations"] * plain["prefill_tok_s"] / 512 / limits["f32_operations"]
    peak = limits["f32_operations"] * 1e-9
    yield f"| prefill of 512 tokens, 1B Q4_0, over the f32 peak of {peak:.0f} GFLOP/s | {verdict(share, PEAK_SHARE, '{:.2f}')} |"
    yield from depth(machine, model)


def depth(machine, model):
    """Rows at a depth of 8,000 tokens, of a plan that llamac-run runs."""
    plan = os.path.splitext(model)[0] + ".plan"
    machine.run("compile", model, "-c", 8192, "--parallel", 1, "-q", "-o", plan)
    runner = Machine(os.path.join(os.path.dirname(machine.program), "llamac-run"), machine.threads)
    (deep,) = runner.bench(plan, "--prompt-tokens", 8000, "--gen-tokens", 32)
    _, decode, limits = runner.kernels(plan, 8000, 2)
    share = decode["bytes"] / 2 * deep["decode_tok_s"] / limits["bandwidth"]
    yield f"| decode after 8,000 tokens, 1B Q4_0: share of read bandwidth | {verdict(share, DEPTH_SHARE, '{:.0%}')} |"
    extra = (deep["peak_rss_bytes"] - os.path.getsize(plan) - DEPTH_CACHE) / 2**20
    met = "≤" if extra <= EXTRA_MIB else "over"
    yield f"| peak memory then, beyond the plan and the cache of 8,192 tokens (256 MiB) | {extra:.0f} MiB ({met} {EXTRA_MIB}) |"


def processor():
    with open("/proc/cpuinfo") as f:
        return next((line.split(":", 1)[1].strip() for line in f if line.startswith("model name")), "unknown")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--llamac", default=os.path.join(ROOT, "build", "bin", "llamac"))
    parser.add_argument("--models", default=os.path.join(ROOT, "build", "models"), help="folder of models")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batch-models", nargs="*", default=["1B Q4_0"], choices=RATIOS, help="models that several sequences decode")
    parser.add_argument("--only", choices=("ratios", "batches", "others"), help="print this table alone")
    args = parser.parse_args()
    machine = Machine(args.llamac, args.threads)
    print(f"{processor()}, {args.threads} threads, {datetime.date.today()}\n")
    tables = {
        "ratios": ratios(machine, args.models, args.rounds),
        "batches": batches(machine, args.models, args.rounds, args.batch_models),
        "others": others(machine, args.models),
    }
    for name, table in tables.items():
        if args.only in (None, name):
            for row in table:
                print(row, flush=True)
            print()


if __name__ == "__main__":
    main()
