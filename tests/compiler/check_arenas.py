# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks the arenas that llamac inspect --memory --json writes to stdin: no two
buffers alive at once overlap, and the figures follow from the buffers."""

import json
import sys

report = json.load(sys.stdin)
arenas = report["memory"]["arenas"]
assert list(arenas) == [program["name"] for program in report["programs"]], list(arenas)
kernels = {kernel["name"] for kernel in report["kernels"]}

for program in report["programs"]:
    name = program["name"]
    arena = arenas[name]
    buffers = arena["buffers"]
    assert len(buffers) > 10, f"{name}: {len(buffers)} buffers"
    assert arena["arena"] == program["workspace"] == max(b["offset"] + b["bytes"] for b in buffers)
    assert arena["without_reuse"] == sum(b["bytes"] for b in buffers)
    # One phase for each barrier, one before the first, one behind for the logits.
    phases = range(program["barriers"] + 2)
    alive = [sum(b["bytes"] for b in buffers if b["first_phase"] <= p <= b["last_phase"]) for p in phases]
    assert arena["lower_bound"] == max(alive), f"{name}: {arena['lower_bound']}, alive are {alive}"
    assert arena["lower_bound"] <= arena["arena"] < arena["without_reuse"]
    assert sum(b["last_phase"] == phases[-1] for b in buffers) == 1, f"{name}: only the logits outlive the program"
    for i, a in enumerate(buffers):
        assert a["kernel"] in kernels and a["maker"], a
        for b in buffers[i + 1 :]:
            apart_in_time = a["last_phase"] < b["first_phase"] or b["last_phase"] < a["first_phase"]
            apart_in_space = (
                a["offset"] + a["bytes"] <= b["offset"] or b["offset"] + b["bytes"] <= a["offset"]
            )
            assert apart_in_time or apart_in_space, f"{name}: {a} and {b} overlap"
