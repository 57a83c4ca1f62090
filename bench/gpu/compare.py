# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Two results of gpu_check, row by row."""

import json
import sys


def figures(results, shares=False):
    """{(what, unit): figure} of all that was measured. Of times less is better, of rates more. With `shares` a time
    is the share of the read bandwidth that its bytes have in it; those without bytes are left out."""
    found = {}
    bandwidth = results.get("bandwidth", {})
    read = bandwidth.get("read_gb_s")

    def add_time(name, unit, time, gigabytes, units_a_second):
        if not shares:
            found[name, unit] = time
        elif gigabytes and time and read:
            found[name, "% of read"] = 100 * gigabytes * units_a_second / time / read

    for kind in ("read", "copy"):
        if f"{kind}_gb_s" in bandwidth:
            found[f"bandwidth {kind}", "GB/s"] = bandwidth[f"{kind}_gb_s"]
    for row in results.get("workload", []):
        name = f"workload {row['shape']} {row['weights']} {row['cache']}"
        add_time(name, "ms a step", row["step_ms"], row["gb_per_step"], 1e3)
        add_time(name, "s to load", row["load_s"], 0, 1)
    for row in results.get("decode", []):
        name = f"decode {row['shape']} {row['weights']}, {row['prompt_tokens']} tokens x {row['batch']}"
        add_time(name, "ms a step", row["step_ms"], row["gb_per_step"], 1e3)
        found[name, "prefill tok/s"] = row["prefill_tok_s"]
    for row in results.get("throughput", []):
        steps = ", batch-invariant" if row["batch_invariant"] else ""
        name = f"throughput {row['shape']} {row['weights']} x {row['sequences']}{steps}"
        found[name, "tok/s"] = row["output_tok_s"]
    for row in results.get("serving", []):
        for way in ("engine", "serve"):
            name = f"serving {row['shape']} {row['weights']}, {row['lengths']} x {row['requests']}, {way}"
            found[name, "tok/s"] = row[way]["output_tok_s"]
    for row in results.get("kernels", []):
        add_time(f"{row['shape']} {row['part']} {row['kernel']}", "us", row["us"], row["bytes"] / 1e9, 1e6)
    for row in results.get("peers", []):
        name = f"peer {row['command']} {row['shape']}"
        if row["command"] == "decode":
            add_time(name, "ms a token", row["ms_per_token"], 0, 1)
        elif row["command"] == "attention":
            found[name, "TFLOP/s"] = row["tflops"]
        else:
            for product, speed in row["products"].items():
                found[f"{name} {product}", "TFLOP/s"] = speed["tflops"]
    return found


def card(results):
    bandwidth = results.get("bandwidth", {})
    words = [bandwidth.get("device"), bandwidth.get("architecture")]
    return ", ".join(filter(None, words)) or "a device that is not named"


def device(results):
    """With its driver and clocks."""
    return ", ".join(filter(None, (card(results), results.get("machine"))))


def table(old, new):
    """The ratios, and what only one of the two has. Times of two cards are compared as shares of their bandwidths."""
    lines = []
    shares = card(old) != card(new)
    if device(old) != device(new):
        lines += [f"**The devices differ: {device(old)} before, {device(new)} now.**", ""]
    if shares:
        lines += ["Times are shares of the read bandwidth measured in each run; those without bytes are left out.", ""]
    for name, results in (("OLD", old), ("NEW", new)):
        if results.get("dry_run"):
            lines += [f"{name} is of a dry run: its times mean nothing.", ""]
        if results.get("running"):
            lines += [f"{name} is not complete: it ended in step {results['running']}.", ""]
    before, now = figures(old, shares), figures(new, shares)
    lines += ["| what | unit | old | new | new / old |", "|---|---|---|---|---|"]
    for (what, unit), figure in now.items():
        if (what, unit) not in before:
            continue
        last = before[what, unit]
        ratio = f"{figure / last:.3f}" if last else "-"
        lines += [f"| {what} | {unit} | {last:.4g} | {figure:.4g} | {ratio} |"]
    for name, one, other in (("OLD", before, now), ("NEW", now, before)):
        only = [f"- {what}, {unit}" for what, unit in one if (what, unit) not in other]
        lines += ["", f"Only in {name}:", "", *only] if only else []
    return "\n".join(lines) + "\n"


def main(*paths):
    results = []
    for path in paths:
        try:
            with open(path, encoding="utf-8") as f:
                results.append(json.load(f))
            if not isinstance(results[-1], dict) or "problems" not in results[-1]:
                raise ValueError("no results in it")
            figures(results[-1])
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            message = error.strerror if isinstance(error, OSError) else f"{type(error).__name__}: {error}"
            print(f"gpu_check.sh: error: {path}: expected results.json of gpu_check, got: {message}", file=sys.stderr)
            return 2
    print(table(*results), end="")
    return 0
