# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks the arenas that llamac inspect --memory --json writes to stdin: no two
buffers live at once overlap, and the figures follow from the buffers."""

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
    # One interval for each barrier, one before the first, one behind for the logits.
    intervals = range(program["barriers"] + 2)
    live = [sum(b["bytes"] for b in buffers if b["first_interval"] <= p <= b["last_interval"]) for p in intervals]
    assert arena["lower_bound"] == max(live), f"{name}: {arena['lower_bound']}, live are {live}"
    assert arena["lower_bound"] <= arena["arena"] < arena["without_reuse"]
    # The logits outlive the program, and what they are computed of in a row where
    # there are several: the residual stream and the last attention.
    outliving = sum(b["last_interval"] == intervals[-1] for b in buffers)
    assert outliving == (1 if program["max_rows"] == 1 else 3), f"{name}: {outliving} outlive the program"
    for i, a in enumerate(buffers):
        assert a["kernel"] in kernels and a["maker"], a
        for b in buffers[i + 1 :]:
            apart_in_time = a["last_interval"] < b["first_interval"] or b["last_interval"] < a["first_interval"]
            apart_in_space = (
                a["offset"] + a["bytes"] <= b["offset"] or b["offset"] + b["bytes"] <= a["offset"]
            )
            assert apart_in_time or apart_in_space, f"{name}: {a} and {b} overlap"
