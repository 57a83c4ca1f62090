# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The conformance suite on a GPU, shard by shard.

A shard is a process, which stops at its first failure: a fault makes all that comes after it in that process fail
too. The cases after the culprit go on in a process of their own, and the culprit is tried again alone. A case that
gives no result within the limit hangs: its process is killed.
"""

import re
from dataclasses import dataclass

import process

SHARD = 64  # Cases of a process.

MARK = re.compile(r"\[ +(RUN|OK|FAILED|SKIPPED) +\] (\S+?),?(?: |$)")
RESULTS = {"OK": "passed", "SKIPPED": "skipped", "FAILED": "failed"}


@dataclass
class Result:
    kind: str  # passed or skipped, else how it failed.
    message: str = ""

    @property
    def is_good(self):
        return self.kind in ("passed", "skipped")


def parse(output):
    """The result of each case that ended, and the case that began and did not end, or None. After a failure
    --gtest_fail_fast reports all other cases as skipped: they have no result."""
    results, running, text, failed = {}, None, [], False
    for line in output.splitlines():
        mark = MARK.search(line)
        if not mark:
            text.append(line.strip())
            continue
        word, case = mark.groups()
        if word == "RUN":
            running, text = case, []
        elif case == running:
            running = None
            failed = failed or word == "FAILED"
            if word == "SKIPPED" and failed:
                continue
            message = " ".join(filter(None, text)) if word == "FAILED" else ""
            results[case] = Result(RESULTS[word], message[:400])
    return results, running


def parse_list(output):
    """The names of --gtest_list_tests."""
    names, suite = [], None
    for line in output.splitlines():
        if re.fullmatch(r"\S+\.", line):
            suite = line
        elif suite and line.startswith("  "):
            names.append(suite + line.split()[0])
    return names


def short_name(case):
    """Without the device."""
    return case.split(".", 1)[1]


def few(cases, count):
    """`count` cases of each family, which is named by the first two words: matmul_bf16, rms_norm."""
    families = {}
    for case in cases:
        families.setdefault(tuple(short_name(case).split("_")[:2]), []).append(case)
    chosen = set()
    for members in families.values():
        chosen |= {members[i * len(members) // count] for i in range(count)}
    return [case for case in cases if case in chosen]


class Suite:
    """gpu_tests, as `command` runs it; `limit` seconds may pass without a result."""

    def __init__(self, command, env, limit):
        self.command, self.env, self.limit = command, env, limit

    def list(self):
        return process.run([*self.command, "--gtest_list_tests"], self.env, self.limit)

    def run(self, cases, left, done):
        """Runs `cases` and hands each shard's results to `done`. `left` says how many seconds are left. Returns the
        cases that these do not suffice for."""
        pending = list(cases)
        while pending:
            if left() <= 1:
                return pending
            shard = pending[:SHARD]
            results, outcome = self.attempt(shard, left())
            culprit = next((case for case, result in results.items() if not result.is_good), None)
            if culprit and len(shard) > 1 and not outcome.hung and left() > 1:
                results[culprit] = self.alone(culprit, results[culprit], left())
            done(results)
            if not results and not outcome.late:
                raise process.ProgramError(f"gpu_tests: {outcome.describe(self.limit)}")
            if not outcome.succeeded and not culprit and not outcome.late:
                # The process broke as it ended: the results before that count.
                done({shard[len(results) - 1] + " and the end": Result(outcome.describe(self.limit))})
            pending = [case for case in pending if case not in results]
        return []

    def attempt(self, cases, seconds):
        """Results of one process, with that of the case at which it broke."""
        command = [*self.command, "--gtest_fail_fast", "--gtest_filter=" + ":".join(cases)]
        outcome = process.run(command, self.env, seconds, self.limit)
        results, running = parse(outcome.out)
        if running and not outcome.late:
            results[running] = Result(outcome.describe(self.limit))
        return results, outcome

    def alone(self, case, first, seconds):
        """The result of a case in a process of its own, which failed as `first` among others."""
        results, outcome = self.attempt([case], seconds)
        again = results.get(case)
        if again is None:
            return first if outcome.late else Result(outcome.describe(self.limit))
        if again.is_good:
            return Result("failed among others, passed alone", first.message or first.kind)
        return again


def sanitize(sanitizer, tool, suite, cases, seconds):
    """One pass of compute-sanitizer: how many cases ended, errors, and the first of them."""
    found = 99  # Exit code of errors that the sanitizer found, whatever the cases say.
    command = [sanitizer, "--tool", tool, "--error-exitcode", str(found), *suite.command]
    outcome = process.run([*command, "--gtest_filter=" + ":".join(cases)], suite.env, seconds)
    results, _ = parse(outcome.out)
    row = {"tool": tool, "cases": len(cases), "ended": len(results), "finished": not outcome.late}
    report = [line for line in (outcome.out + outcome.err).splitlines() if line.startswith("=========")]
    summary = [re.search(r"ERROR SUMMARY: (\d+) error", line) for line in report]
    row["errors"] = sum(int(match.group(1)) for match in summary if match)
    if outcome.code == found:
        row["errors"] = max(row["errors"], 1)
    if row["errors"]:
        words = [line.strip("= ") for line in report]
        row["first"] = " ".join(filter(None, words))[:400]
    elif not outcome.late and not any(summary):
        raise process.ProgramError(f"compute-sanitizer --tool {tool}: {outcome.describe(seconds)}")
    return row, outcome.out + outcome.err
