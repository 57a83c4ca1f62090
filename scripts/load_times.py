#!/usr/bin/env python3
# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures how long a plan for an NVIDIA GPU takes to load, without the GPU.

NVRTC is real; the driver is the tests' fake one, whose kernels do nothing. The
times are the host's part: loading code in a driver is not included, and
allocations and copies take what they take on the fake. The first load has an
empty cache of cubins, the others a full one; their median is printed.

    scripts/load_times.py                    the shapes of Llama 3.2 1B with random weights, in some formats
    scripts/load_times.py --model FILE       a model with its weights, which are in the plan
"""

import argparse
import json
import os
import statistics
import subprocess
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SHAPE = os.path.join(ROOT, "tests", "compiler", "Inputs", "shapes", "llama-3.2-1b")
PARTS = ("plan", "device", "kernels", "memory", "weights", "tokenizer")


def load(args, plan, folder, random_weights):
    """The seconds of each part of one load."""
    env = os.environ | {
        "LD_LIBRARY_PATH": folder,
        "LLAMAC_FAKE_IDLE": "1",
        "XDG_CACHE_HOME": os.path.join(folder, "cache"),
    }
    command = [os.path.join(args.build, "bin", "llamac-run"), "bench", plan, "--json"]
    command += ["--prompt-tokens", "4", "--gen-tokens", "1", "--repeat", "1", "-t", str(args.threads)]
    command += ["--random-weights", "1"] if random_weights else []
    result = subprocess.run(command, env=env, capture_output=True, text=True)
    if result.returncode:
        raise SystemExit(f"load_times: {plan}: {result.stderr.strip()}")
    row = json.loads(result.stdout)
    return {part: row["load"][f"{part}_s"] for part in PARTS}


def measure(args, model, weights):
    """The first load of a plan for `model` and the median of the parts of those after it."""
    with tempfile.TemporaryDirectory() as folder:
        # The fake driver without the fake NVRTC beside it.
        os.symlink(os.path.join(args.build, "tests", "fake-cuda", "libcuda.so.1"), os.path.join(folder, "libcuda.so.1"))
        plan = os.path.join(folder, "model.plan")
        command = [os.path.join(args.build, "bin", "llamac"), "compile", model, "--target", "cuda", "--gpu", args.gpu]
        command += ["-c", "2048", "--weights", weights, "-q", "-o", plan]
        command += ["--no-weights"] if model == SHAPE else []
        subprocess.run(command, check=True)
        cold, *warm = [load(args, plan, folder, model == SHAPE) for _ in range(1 + args.rounds)]
    return cold, {part: statistics.median(times[part] for times in warm) for part in PARTS}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--gpu", default="sm_90a")
    parser.add_argument("--model", default=SHAPE)
    parser.add_argument("--weights", nargs="+", help="formats; without it bf16 and q4_0, or those of --model")
    parser.add_argument("--rounds", type=int, default=5, help="loads after the first")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    args = parser.parse_args()
    args.build = os.path.abspath(args.build)
    formats = args.weights or (["keep", "q4_0"] if args.model == SHAPE else ["keep"])

    print(f"{os.path.basename(os.path.abspath(args.model))} for {args.gpu}, {args.threads} threads; seconds\n")
    print("| weights | load | " + " | ".join(PARTS) + " | all but memory and weights |")
    print("|---|---|" + "---|" * len(PARTS) + "---|")
    for weights in formats:
        for name, parts in zip(("first", "later"), measure(args, args.model, weights)):
            host = sum(parts.values()) - parts["memory"] - parts["weights"]
            cells = [weights, name] + [f"{parts[part]:.3f}" for part in PARTS] + [f"{host:.3f}"]
            print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
