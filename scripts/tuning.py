#!/usr/bin/env python3
# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures the gain of tuning on this machine: the tables of docs/autotuning.md.

Each model is tuned twice, from an empty cache and then again. Then llamac
bench --compare-untuned runs it with tuned configs and without, interleaved prompt
by prompt and token by token. The speedup is the median over rounds, with three
standard errors of it (at least 1 %).
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

from performance import model_path  # The models of docs/performance.md.

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def run(args, cache, **options):
    env = dict(os.environ, XDG_CACHE_HOME=cache)
    result = subprocess.run(args, env=env, capture_output=True, text=True, **options)
    if result.returncode:
        sys.exit(f"{' '.join(args)}: {result.stderr}")
    return result.stdout


def tune(llamac, plan, cache, budget):
    """The measurements of a tune, and its seconds."""
    start = time.monotonic()
    out = run([llamac, "tune", plan, "--budget", str(budget), "--json"], cache)
    return json.loads(out), time.monotonic() - start


def compare(llamac, plan, cache, rounds):
    """The report of llamac bench on the plan with tuned configs relative to without."""
    options = ["--compare-untuned", "--json", "--repeat", str(rounds), "--gen-tokens", "48"]
    return json.loads(run([llamac, "bench", plan, *options], cache))


def kernels_of(report):
    for program in report:
        for kernel in program["kernels"]:
            yield program["name"], kernel


def selected(choice):
    return choice["candidates"][choice["selected"]]


def near_best(report):
    """The number of kernels whose default takes at most 1.1 times what the best found
    takes, and the number that were measured. The best found is what was selected:
    faster by more than noise. (The fastest of many in a few rounds is so by chance.)"""
    measured = [kernel for _, kernel in kernels_of(report) if kernel["candidates"][0]["rounds"]]
    return sum(selected(kernel)["ratio"] >= 1 / 1.1 for kernel in measured), len(measured)


def disagreement(first, second):
    """The largest share of its time by which a config selected by one tune differs
    from that of the other, both as the second measured them in the same rounds."""
    before = {(program, kernel["name"]): selected(kernel)["config"] for program, kernel in kernels_of(first)}
    worst = 0
    for program, kernel in kernels_of(second):
        old = next((c for c in kernel["candidates"] if c["config"] == before.get((program, kernel["name"]))), None)
        new = selected(kernel)
        if old and old["ratio"] > 0 and new["ratio"] > 0:
            worst = max(worst, abs(old["ratio"] / new["ratio"] - 1))
    return worst


def changes(report, program):
    """Whether `program` has tuned configs other than the plan's."""
    return any(of["selected"] for of in report if of["name"] == program)


def measure(llamac, name, model, budget, rounds):
    folder = tempfile.mkdtemp(prefix="llamac-tuning-")
    try:
        plan = os.path.join(folder, "model.plan")
        run([llamac, "compile", model, "-o", plan, "-q", "-c", "2048"], folder)
        first, seconds = tune(llamac, plan, folder, budget)
        second, _ = tune(llamac, plan, folder, budget)
        compared = compare(llamac, plan, folder, rounds)
        changed = sum(kernel["selected"] != 0 for _, kernel in kernels_of(second))
        near, count = near_best(first)
        speed = {
            of: f"{compared[of]['speedup']:.3f} ± {compared[of]['noise']:.3f}"
            + ("" if changes(second, of) else ", same code")
            for of in ("prefill", "decode")
        }
        print(
            f"| {name} | {seconds:.0f} of {budget:.0f} s | {speed['prefill']} | "
            f"{speed['decode']} | {changed} of {count} | {near} of {count} | "
            f"{100 * disagreement(first, second):.1f}% |",
            flush=True,
        )
        return second
    finally:
        shutil.rmtree(folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--llamac", default=os.path.join(ROOT, "build", "bin", "llamac"))
    parser.add_argument("--models", default=os.path.join(ROOT, "build", "models"), help="where models are, or are made")
    parser.add_argument("--types", default="Q4_1,Q4_0,Q8_0,BF16,Q4_K,Q5_K,Q6_K", help="of the 1B shapes")
    parser.add_argument("--budget", type=float, default=60)
    parser.add_argument("--rounds", type=int, default=24, help="prompts that are compared")
    options = parser.parse_args()
    print(
        "| model | tuning took | prefill, tuned / default | decode, tuned / default | kernels changed | default within 10% of best | "
        "second tune differs by |"
    )
    print("|---|---|---|---|---|---|---|")
    names = ["SmolLM2 Q4_1"] + [f"1B {kind}" for kind in options.types.split(",") if kind]
    reports = {}
    for name in names:
        model = model_path(name, options.models)
        reports[name] = measure(options.llamac, name, model, options.budget, options.rounds)
    print("\n| model | program | kernel or step | config | time by the default |\n|---|---|---|---|---|")
    for name, report in reports.items():
        for program in report:
            for choice in [*program["kernels"], program]:
                if choice["selected"]:
                    of = "step" if choice is program else choice["name"]
                    best = selected(choice)
                    print(f"| {name} | {program['name']} | {of} | {best['config']} | {best['ratio']:.3f} |")


if __name__ == "__main__":
    main()
