# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks the placed buffers of every plan.program in the IR on stdin.

Live ranges are computed here from the text alone: launches between two barriers
may run in any order, so a buffer is live from the first to the last barrier
interval that accesses it. The one with the logits is live until after the last,
and so is what launches of logits rows access of launches of all rows.
"""

import re
import sys

PROGRAM = re.compile(r"plan\.program @(\w+) \{(.*?)\n\s*\} \{(.*?)\}", re.S)


def check(name, body, attributes):
    arena = int(re.search(r"arena_bytes = (\d+)", attributes).group(1))
    buffers, lives, phase, logits = {}, {}, 0, None
    of_all_rows, outliving = set(), set()
    for line in body.splitlines():
        if match := re.search(r"(%\w+) = plan\.buffer (\d+)(?: at (\d+))?", line):
            assert match.group(3), f"{name}: {match.group(1)} has no offset"
            buffers[match.group(1)] = (int(match.group(3)), int(match.group(2)))
        elif "plan.launch" in line:
            phase += bool(re.search(r" barrier\b", line))
            is_of_logits = "rows logits_rows" in line
            for value in re.findall(r"%\w+", line):
                if value not in lives and not is_of_logits:
                    of_all_rows.add(value)
                if is_of_logits and value in of_all_rows:
                    outliving.add(value)
                first, _ = lives.get(value, (phase, phase))
                lives[value] = (first, phase)
        elif match := re.search(r"plan\.logits (%\w+)", line):
            logits = match.group(1)
    assert logits in buffers, f"{name}: no buffer holds the logits"
    for value in outliving | {logits}:
        lives[value] = (lives[value][0], phase + 1)

    for value, (offset, size) in buffers.items():
        assert offset % 64 == 0, f"{name}: {value} at {offset} is not on a cache line"
        assert offset + size <= arena, f"{name}: {value} ends at {offset + size}, the arena at {arena}"
    values = sorted(buffers)
    shared = 0
    for i, a in enumerate(values):
        for b in values[i + 1 :]:
            apart_in_time = lives[a][1] < lives[b][0] or lives[b][1] < lives[a][0]
            (at, a_size), (bt, b_size) = buffers[a], buffers[b]
            apart_in_space = at + a_size <= bt or bt + b_size <= at
            assert apart_in_time or apart_in_space, f"{name}: {a} and {b} are alive at once and overlap"
            shared += not apart_in_space
    assert shared, f"{name}: no bytes are used twice"
    # No smaller than what is alive at once, and hardly larger.
    needed = max(
        sum(-(-size // 64) * 64 for value, (_, size) in buffers.items() if lives[value][0] <= p <= lives[value][1])
        for p in range(phase + 1)
    )
    assert needed <= arena <= 1.05 * needed, f"{name}: the arena has {arena} bytes, {needed} are alive at once"


programs = PROGRAM.findall(sys.stdin.read())
assert len(programs) == 3, f"expected a program for each bucket of rows, got {len(programs)}"
for program in programs:
    check(*program)
