# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The figures of Nsight Compute (ncu) for the kernels that take most of a run's time."""

import csv
import re

from process import ProgramError

MOST_KERNELS, MOST_STALLS = 10, 3

# Options of llamac-run bench. A run has three prompts, so that there is a border behind the second.
REPEAT = ["--gen-tokens", "8", "--repeat", "3"]
WORKS = {
    "decode 1": ["--prompt-tokens", "128", "--batch", "1", *REPEAT],
    "decode 16": ["--prompt-tokens", "128", "--batch", "16", *REPEAT],
    "prompt": ["--prompt-tokens", "512", "--batch", "1", *REPEAT],
}
TINY_WORKS = {
    "decode 1": ["--prompt-tokens", "1", "--batch", "1", "--gen-tokens", "1"],
    "prompt": ["--prompt-tokens", "40", "--batch", "1", "--gen-tokens", "1"],
}

MISSING = "no ncu on PATH or in CUDA_HOME/bin; it comes with the CUDA toolkit, or alone as Nsight Compute"
NO_PERMISSION = "ERR_NVGPUCTRPERM"
REFUSED = (
    f"{NO_PERMISSION}: the driver lets only administrators profile; run as root, in a container with --cap-add "
    "SYS_ADMIN, or load the driver with NVreg_RestrictProfilingToAdminUsers=0"
)

# The metrics that are reported, and the names that versions of ncu have for
# them.
METRICS = {
    "dram": (
        "dram__throughput.avg.pct_of_peak_sustained_elapsed",
        "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
    ),
    "issue": (
        "sm__inst_issued.avg.pct_of_peak_sustained_active",
        "smsp__issue_active.avg.pct_of_peak_sustained_active",
    ),
    "registers": ("launch__registers_per_thread",),
}
# Samples of warps, else cycles for each instruction.
STALLS = (
    re.compile(r"smsp__pcsamp_warps_issue_stalled_(\w+?)(?<!_not_issued)$"),
    re.compile(r"smsp__average_warps_issue_stalled_(\w+)_per_issue_active\.ratio"),
)


def largest(found, work):
    """The kernels of a run that take most of its time, of the objects that `bench --kernels --json` prints:
    {kernel: (share of the time, launches of a step)}."""
    part = next(one for one in found if one["work"].startswith("prefill") == (work == "prompt"))
    kernels = [kernel for kernel in part["kernels"] if kernel["kernel"] != "all"]  # They come by their time.
    total = sum(kernel["seconds"] for kernel in kernels)
    # Some kernel is launched once a step.
    steps = min(kernel["launches"] for kernel in kernels)
    return {
        kernel["kernel"]: (kernel["seconds"] / total if total else 0, kernel["launches"] // steps)
        for kernel in kernels[:MOST_KERNELS]
    }


def options(kernels, log):
    """Options of ncu, around the border between two steps: the end of one and the beginning of the other have every
    kernel. The first step may be the warm-up's, so the border is behind the second."""
    names = "|".join(map(re.escape, kernels))
    step = sum(launches for _, launches in kernels.values())
    before = len(kernels)
    window = ["-s", str(2 * step - before), "-c", str(2 * before)]
    flags = ["--set", "full", "--clock-control", "none", "-k", f"regex:^({names})$", *window]
    return [*flags, "--csv", "--page", "raw", "--log-file", log]


def read(log):
    try:
        with open(log, encoding="utf-8", errors="replace") as f:
            return f.read()
    except OSError:
        return ""


def rows(text, kernels):
    """The first launch of each kernel in ncu's table; figures that it has not are None."""
    lines = text.splitlines()
    head = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if head is None:
        raise ProgramError(f"expected a table of ncu, got: {' '.join(lines[-3:]) or 'nothing'}")
    launches = {}
    for record in csv.DictReader(lines[head:], restval=""):
        # Without parameters, where it has them. The line of units has no name.
        name = (record.get("Kernel Name") or "").split("(")[0]
        launches.setdefault(name, record)
    found = []
    for kernel, (share, _) in kernels.items():
        record = launches.get(kernel, {})
        row = {"kernel": kernel, "time_share": share, "stalls": stalls(record)}
        found.append(row | {name: first(record, columns) for name, columns in METRICS.items()})
    return found


def number(text):
    """A number of ncu, which may have commas between thousands; None where there is none."""
    try:
        return float((text or "").replace(",", ""))
    except ValueError:
        return None


def first(record, columns):
    figures = (number(record.get(column)) for column in columns)
    return next((figure for figure in figures if figure is not None), None)


def stalls(record):
    """The reasons for which warps waited most, [(name, share of all)]."""
    for pattern in STALLS:
        figures = {}
        for column, text in record.items():
            match = pattern.match(column or "")
            if match and number(text):
                figures[match.group(1)] = number(text)
        if total := sum(figures.values()):
            waits = {name: figure / total for name, figure in figures.items() if name != "selected"}
            return sorted(waits.items(), key=lambda wait: -wait[1])[:MOST_STALLS]
    return []
