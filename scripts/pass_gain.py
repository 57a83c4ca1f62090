#!/usr/bin/env python3
# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures what each optimising pass gains on the cpu target.

A round runs the model with all passes and then without each pass, so that
other load affects all; a gain is the median over rounds of the
speed with all passes over the speed without the pass in the same round.

    scripts/pass_gain.py --llamac build/bin/llamac --model build/models/smollm2.gguf
"""

import argparse
import json
import statistics
import subprocess
import sys

PASSES = ["prune-rows", "fuse-epilogue", "fuse-norm", "fuse-qkv"]
VARIANTS = [[]] + [[name] for name in PASSES] + [PASSES]
SPEEDS = ["prefill_tok_s", "decode_tok_s"]


def measure(args, skipped):
    command = [args.llamac, "bench", args.model, "--json", "--prompt-tokens", str(args.prompt)]
    command += ["--gen-tokens", str(args.gen)]
    if skipped:
        command += ["--skip-pass", ",".join(skipped)]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{result.stderr}")
    return json.loads(result.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--llamac", default="build/bin/llamac")
    parser.add_argument("--model", default="build/models/smollm2.gguf")
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--gen", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()

    for skipped in VARIANTS:  # Plans are made before anything is timed.
        measure(args, skipped)
    rounds = [[measure(args, skipped) for skipped in VARIANTS] for _ in range(args.rounds)]
    print("| without | prefill tok/s | gain | decode tok/s | gain |")
    print("|---|---|---|---|---|")
    for i, skipped in enumerate(VARIANTS):
        cells = []
        for speed in SPEEDS:
            cells.append(f"{statistics.median(r[i][speed] for r in rounds):.0f}")
            cells.append(f"{statistics.median(r[0][speed] / r[i][speed] for r in rounds):.3f}x")
        name = "nothing" if not skipped else "all four" if len(skipped) > 1 else skipped[0]
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
