#!/usr/bin/env python3
# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Predicts a step of decode on a GPU, term by term, and writes docs/gpu-model.md.

Launches and what they read are those of the plan that llamac compiles. What a plan
does not say stands in the tables below: one set of constants, fitted to what two
GPUs took for two models.

    scripts/gpu_model.py            prints the page
    scripts/gpu_model.py --write    writes docs/gpu-model.md
"""

import argparse
import functools
import os
import re
import subprocess
import sys
from dataclasses import dataclass

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SHAPES = os.path.join(ROOT, "tests", "compiler", "Inputs", "shapes")
MODELS = {"1B": "llama-3.2-1b", "8B": "llama-3.1-8b", "SmolLM2": "smollm2-135m"}
# Bits of a weight on the GPU (runtime/packing/TileLayout.h).
BITS = {"bf16": 16, "q8_0": 8.5, "mxfp8": 8.25, "q6_k": 6.5625, "q4_k": 4.625, "q4_0": 4.5}

# Bytes a second that reads reached: gpu_check's bandwidth.
READ = {"H200": 4637e9, "H100": 3078e9}

# Seconds that a launch takes beside its bytes: its blocks start, wait, and do not end together.
GAP = 3.15e-6

# Bytes a second that launches of a kind take where memory is no limit: requests in flight, and what is computed.
TAKEN = {"stream": 4.7e12, "batch": 4.7e12, "gemv_mma": 3.3e12, "attention": 2.9e12}

# Multiply-adds a second of products by tensor cores, twice: what cuBLAS reached for those of 8B on an H200.
TENSOR = 660e12

# A prototype of a step in one launch took so much, 1B in bf16 on an H200, with 81 products and attentions: bytes a
# second of the stream of weights where nothing waits, and seconds from the end of one phase to the next one's begin.
STREAM = 4270e9
HOP = (0.718e-3 - 0.578e-3) / 81

# Programs that take no rows of prompts.
DECODE_ONLY = ("decode64", "decode128")


@dataclass(frozen=True)
class Point:
    """A step of `rows` sequences with `tokens` tokens each in the cache."""

    model: str
    weights: str
    rows: int
    tokens: int


# Milliseconds of a step, after the mends of docs/gpu-results.md: the middle of 64 steps after a prompt of 512.
MEASURED = [
    (Point("1B", "bf16", 1, 544), "H200", 0.886),
    (Point("1B", "bf16", 1, 544), "H100", 1.119),
    (Point("8B", "bf16", 1, 544), "H200", 4.33),
    (Point("8B", "bf16", 1, 544), "H100", 5.66),
    (Point("1B", "bf16", 16, 544), "H200", 1.20),
    (Point("1B", "bf16", 16, 544), "H100", 1.34),
    (Point("8B", "bf16", 16, 544), "H200", 5.43),
    (Point("8B", "bf16", 16, 544), "H100", 6.61),
]

# Milliseconds on an H200 that are the next aim.
MARKS = [
    (Point("8B", "bf16", 1, 96), 4.1),
    (Point("8B", "q8_0", 1, 96), 2.3),
    (Point("8B", "mxfp8", 1, 96), 2.3),
    (Point("8B", "q6_k", 1, 96), 2.0),
    (Point("8B", "q4_k", 1, 96), 1.5),
    (Point("8B", "q4_0", 1, 96), 1.4),
    (Point("1B", "q8_0", 1, 96), 0.55),
    (Point("1B", "q4_0", 1, 96), 0.45),
    (Point("8B", "bf16", 1, 8064), 4.4),
    (Point("8B", "bf16", 16, 8064), 9.5),
]


# ---------------------------------------------------------------------------------------------------------------------
# The plan
# ---------------------------------------------------------------------------------------------------------------------


@dataclass
class Launch:
    """A launch of a program of the plan."""

    kernel: str
    weights: float = 0  # Elements of matrices that it reads.
    norms: float = 0  # Bytes of vectors, in f32.
    keys: float = 0  # Bytes of a token's keys and values, where it reads them.

    @property
    def kind(self):
        if self.keys:
            return "attention"
        return "gemv_mma" if "gemv_mma" in self.kernel else "batch" if "_wgmma" in self.kernel else "stream"

    def of_then(self):
        """The product when steps were measured: batches went by gemv_mma, which normalised its input itself."""
        if self.kernel.startswith("rms_norm"):
            return None
        return Launch(self.kernel.replace("gemm_wgmma", "gemv_mma").replace("qkv_wgmma", "qkv_gemv_mma"), self.weights,
                      self.norms, self.keys)


def elements_of(tensor):
    """The elements of a type such as tensor<2048x8192xbf16>."""
    elements = 1
    for size in re.match(r"tensor<(.*)>", tensor)[1].split("x")[:-1]:
        elements *= int(size)
    return elements


def launches_of(text, program):
    """The launches of a program in the IR after lower-to-plan."""
    body = re.search(rf"plan\.program @{program} \{{(.*?)\n  \}}", text, re.S)[1]
    kinds = dict(re.findall(r"(%\d+) = plan\.weight \"[^\"]*\" : (\S+)", body))
    caches = set(re.findall(r"(%\d+) = plan\.kv", body))
    heads, size = map(int, re.search(r"!llama\.kv<heads = (\d+), size = (\d+)>", text).groups())
    launches = []
    for kernel, arguments in re.findall(r"plan\.launch @(\w+)\((.*?)\) rows", body):
        launch = Launch(kernel)
        for operand in re.findall(r"%\d+", arguments):
            if kernel.startswith("attention") and operand in caches:
                launch.keys = heads * size * 2 * 2
            # An embedding reads a row of its matrix for each of the launch's.
            elif operand in kinds and not kernel.startswith("embed"):
                if kinds[operand].endswith("xf32>"):
                    launch.norms += 4 * elements_of(kinds[operand])
                else:
                    launch.weights += elements_of(kinds[operand])
        launches.append(launch)
    return launches


@functools.cache
def plan_of(llamac, model):
    command = [llamac, "compile", os.path.join(SHAPES, MODELS[model]), "--no-weights", "--target", "cuda"]
    command += ["--gpu", "sm_90a", "-c", "16384", "--parallel", "16", "-q", "--print-after", "lower-to-plan"]
    command += ["--stop-after", "schedule", "-o", os.devnull]
    return subprocess.run(command, capture_output=True, text=True, check=True).stderr


# ---------------------------------------------------------------------------------------------------------------------
# The step
# ---------------------------------------------------------------------------------------------------------------------


def seconds_of(count, read, taken, operations=0.0):
    """Memory, the kernel and tensor cores each limit the others' share of the time, the more the nearer they are."""
    return (count**4 * (read**-4 + taken**-4) + (operations / TENSOR) ** 4) ** 0.25


@dataclass
class Step:
    """Seconds of a step by what they go to."""

    floor: float = 0.0  # All that is read, at the bandwidth of reads.
    kernels: float = 0.0  # Time that products take beyond that.
    attention: float = 0.0  # Time of attention.
    gaps: float = 0.0  # Gaps of all launches.

    @property
    def total(self):
        return self.floor + self.kernels + self.attention + self.gaps


def bytes_of(launch, point):
    """All that a launch reads."""
    return launch.weights * BITS[point.weights] / 8 + launch.norms + point.rows * point.tokens * launch.keys


def step_of(launches, point, gpu):
    step = Step()
    for launch in launches:
        count = bytes_of(launch, point)
        floor = count / READ[gpu]
        operations = 2 * point.rows * launch.weights
        beyond = seconds_of(count, READ[gpu], TAKEN[launch.kind], operations) - floor
        step.floor += floor
        step.gaps += GAP
        if launch.keys:
            step.attention += beyond
        else:
            step.kernels += beyond
    return step


def predict(llamac, point, gpu, of_then=False):
    program = "decode" if point.rows == 1 else f"decode{max(16, point.rows)}"
    launches = launches_of(plan_of(llamac, point.model), program)
    if of_then:
        launches = [then for launch in launches if (then := launch.of_then())]
    return step_of(launches, point, gpu)


def resident_of(llamac, point):
    """Seconds of the stream and of the hops of a step of one row in one launch. All launches of the chain but the
    embedding and sampling are phases that wait for the one before."""
    launches = launches_of(plan_of(llamac, point.model), "decode")
    return sum(bytes_of(launch, point) for launch in launches) / STREAM, HOP * (len(launches) - 2)


# ---------------------------------------------------------------------------------------------------------------------
# Batch invariance
# ---------------------------------------------------------------------------------------------------------------------

KEPT_PROGRAM, KEPT_ROWS = "prefill512", 512  # Batch invariance keeps prompts to this program.


@dataclass
class Counted:
    """A step of some rows in one program, as --explain-kernels counts it."""

    program: str
    launches: int
    microseconds: float


def counted_steps(llamac, model, weights, rows):
    """The programs that take `rows` rows, the smallest first."""
    command = [llamac, "compile", os.path.join(SHAPES, MODELS[model]), "--no-weights", "--target", "cuda", "-q"]
    command += ["--gpu", "sm_90a", "-c", "4096", "--stop-after", "schedule", "-o", os.devnull, "--explain-kernels"]
    command += ["--explain-rows", str(rows)] + (["--weights", weights] if weights != "bf16" else [])
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    lines = re.findall(r"^(\w+): a step(?:.|\n)*?^ +100\.0 +(\d+) +\S+ \S+ +\S+ +(\S+) .* the step", text, re.M)
    return [Counted(name, int(launches), 1e3 * float(ms)) for name, launches, ms in lines]


def step_in_kept(llamac, model, weights, rows):
    """The step of `rows` rows of prompts that batch invariance takes."""
    return next(step for step in counted_steps(llamac, model, weights, rows) if step.program == KEPT_PROGRAM)


def steps_of_many(llamac, cases=(("1B", "bf16"), ("8B", "bf16"), ("8B", "q8_0"), ("8B", "q4_0"))):
    """Steps of more and more sequences, and how much longer than one of one they take."""
    counts, rows = (1, 16, 64, 128, 256), []
    for model, weights in cases:
        steps = [1e3 * predict(llamac, Point(model, weights, count, 512), "H200").total for count in counts]
        rows.append([model, weights, *(f"{step:.2f} ({step / steps[0]:.2f})" for step in steps)])
    return table(["model", "weights", *(str(count) for count in counts)], rows)


def invariance(llamac, cases=(("1B", "bf16"), ("8B", "q4_0"))):
    """Steps in the program that batch invariance keeps to, against the smallest that fits."""

    def ratio(step, least):
        return f"{step.microseconds / least.microseconds:.2f}"

    decode, prompts, mixed = [], [], []
    for model, weights in cases:
        for rows in (1, 2, 4, 8, 16, 32):
            steps = counted_steps(llamac, model, weights, rows)
            named = {step.program: step for step in steps}
            cells = [ratio(named[name], steps[0]) if name in named else "" for name in ("decode16", "decode32")]
            decode.append([model, weights, str(rows), f"`{steps[0].program}`", f"{steps[0].microseconds:.0f}", *cells])
        for tokens in (1, 16, 128, 2000):
            steps = counted_steps(llamac, model, weights, tokens)
            least = next(step for step in steps if step.program not in DECODE_ONLY)
            pieces = [KEPT_ROWS] * (tokens // KEPT_ROWS) + [tokens % KEPT_ROWS]
            kept = sum(step_in_kept(llamac, model, weights, rows).microseconds for rows in pieces)
            prompts.append([model, weights, str(tokens), f"`{least.program}`", f"{least.microseconds:.0f}"])
            prompts[-1] += [f"{kept:.0f}", f"{kept / least.microseconds:.2f}"]
        for tokens in (56, 504):
            steps = counted_steps(llamac, model, weights, 8 + tokens)
            both = next(step for step in steps if step.program not in DECODE_ONLY)
            parts = counted_steps(llamac, model, weights, 8)[0], step_in_kept(llamac, model, weights, tokens)
            apart = sum(part.microseconds for part in parts)
            mixed.append([model, weights, str(tokens), f"{both.microseconds:.0f}", str(both.launches), f"{apart:.0f}"])
            mixed[-1] += [str(sum(part.launches for part in parts)), f"{apart / both.microseconds:.2f}"]
    head = ["model", "weights", "sequences that decode", "smallest program", "us", "kept to `decode16`", "to `decode32`"]
    text = table(head, decode)
    head = ["model", "weights", "tokens of a prompt", "smallest program", "us", "in `prefill512`, us", "ratio"]
    text += "\n" + table(head, prompts)
    head = ["model", "weights", "prompt tokens beside 8 sequences", "in one program, us", "launches"]
    return text + "\n" + table([*head, "in `decode16` and `prefill512`, us", "launches", "ratio"], mixed)


# ---------------------------------------------------------------------------------------------------------------------
# The page
# ---------------------------------------------------------------------------------------------------------------------

HEAD = """# A model of a decode step on a GPU

A step takes its bytes at the bandwidth of reads, what its kernels take beyond that, and a gap for
each launch. One set of constants is within 6 % of what [two GPUs took](gpu-results.md) for two
models, with one sequence and with 16. `scripts/gpu_model.py --write` makes the page from plans.

| term | seconds |
| --- | --- |
| a launch | gap + bytes x (read^-4 + taken^-4)^(1/4) |
| gap | {gap:.2f} us: blocks start, wait for the launch ahead and do not end together |
| read | the bandwidth that gpu_check measures: {read} |
| taken | what the kernel could take of a memory without limit: {taken} |

Fitted are `gap` and what streams (one row) and `gemv_mma` (16 rows) take. What attention takes
was seen with 8,064 tokens, before its splits were shared by waves. Streams of block formats have
other tiles since they were measured, and are thought to take what those of bf16 do; so are
batches by wgmma, whose weights come by the same copies. A gap is less than the 5.6 us that a
launch alone takes beside its bytes: it begins while the one ahead ends.

## What was measured

Batches went by `gemv_mma` then, which is gone, without launches for norms.
"""

MARKS_HEAD = """
## What is expected of the next marks

On an H200. Where more is expected than the mark, the last column says by what term.
"""


RESIDENT_HEAD = """
## A step of one row in one launch

`--resident-step on`, on an H200. The stream takes {stream:,.0f} GB/s, and each phase begins {hop:.2f} us
after the one before it ends: so a prototype of 1B did, the first row, to which both are fitted.
[Decision 52](decisions/0052-resident-steps.md) has what it left out. Not one of these kernels has
run on a GPU.
"""

# Times of steps in one launch, in ms. SmolLM2's is for Q4_1, which has a ninth more bytes than
# Q4_0.
RESIDENT_MARKS = [
    (Point("1B", "bf16", 1, 96), 0.62),
    (Point("8B", "bf16", 1, 96), 3.65),
    (Point("8B", "q8_0", 1, 96), 2.1),
    (Point("8B", "q4_0", 1, 96), 1.25),
    (Point("SmolLM2", "q4_0", 1, 96), 0.25),
]


def residents(llamac):
    rows = []
    for point, mark in RESIDENT_MARKS:
        stream, hops = resident_of(llamac, point)
        chain = predict(llamac, point, "H200").total
        total = stream + hops
        more = "" if total * 1e3 <= mark else "hops" if hops >= total - mark * 1e-3 else "stream and hops"
        numbers = [f"{1e3 * seconds:.2f}" for seconds in (chain, total, stream, hops)]
        rows.append([*named(point)[:2], f"{mark:g}", *numbers, more])
    head = ["model", "weights", "mark, ms", "many launches, ms", "expected, ms", "stream", "hops", "more by"]
    return RESIDENT_HEAD.format(stream=STREAM / 1e9, hop=HOP * 1e6) + "\n" + table(head, rows)


def table(head, rows):
    return "\n".join([f"| {' | '.join(row)} |" for row in [head, ["---"] * len(head), *rows]]) + "\n"


def named(point):
    return [point.model, point.weights, str(point.rows), f"{point.tokens:,}"]


def terms(step):
    return [f"{1e3 * part:.2f}" for part in (step.floor, step.kernels, step.attention, step.gaps)]


def excess(step, mark):
    """The terms that are more than what is missing."""
    missing = step.total - mark * 1e-3
    if missing <= 0:
        return ""
    parts = {"products": step.kernels, "attention": step.attention, "gaps": step.gaps}
    return " or ".join(name for name, part in parts.items() if part >= missing) or "products, attention and gaps"


def page(llamac):
    taken = ", ".join(f"{name} {rate / 1e12:.1f}" for name, rate in TAKEN.items())
    read = ", ".join(f"{name} {rate / 1e9:,.0f} GB/s" for name, rate in READ.items())
    text = HEAD.format(gap=GAP * 1e6, read=read, taken=taken + " TB/s") + "\n"
    head = ["model", "weights", "sequences", "tokens each", "GPU", "measured, ms", "expected, ms", "ratio"]
    rows = []
    for point, gpu, measured in MEASURED:
        total = 1e3 * predict(llamac, point, gpu, of_then=True).total
        rows.append([*named(point), gpu, f"{measured:g}", f"{total:.3f}", f"{total / measured:.2f}"])
    text += table(head, rows) + MARKS_HEAD + "\n"
    head = ["model", "weights", "sequences", "tokens each", "mark, ms", "expected, ms"]
    head += ["bytes", "products", "attention", "gaps", "more by"]
    rows = []
    for point, mark in MARKS:
        step = predict(llamac, point, "H200")
        rows.append([*named(point), f"{mark:g}", f"{1e3 * step.total:.2f}", *terms(step), excess(step, mark)])
    return text + table(head, rows) + residents(llamac) + MANY + steps_of_many(llamac) + INVARIANCE + invariance(llamac)


MANY = f"""
## Steps of many sequences

Milliseconds of a step of so many sequences with 512 tokens each on an H200, and how many times a
step of one it takes. Products take at most {TENSOR / 1e12:.0f} TFLOP/s, which is cuBLAS's for those of 8B.
What unpacks weights is not counted: `scripts/tensor_cycles.py` says what bounds the products.

"""

INVARIANCE = """
## What batch invariance costs

With `--batch-invariant` an answer has the same bits whatever runs beside it. On cuda decode then
keeps to the smallest program that holds all sequences the model was loaded for, and prompts to
that of 512 rows ([decision 34](decisions/0034-batch-invariance.md)), in steps of their own: a
prompt beside 8 sequences that decode takes 1.1 to 2.1 times as long. By default a step takes the
smallest program that holds it. Steps on an H200, as the cost model of the kernels expects them
(`llamac compile --explain-kernels --explain-rows N`), with 512 keys:

"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write docs/gpu-model.md")
    parser.add_argument("--llamac", default=os.path.join(ROOT, "build", "bin", "llamac"))
    options = parser.parse_args()
    text = page(options.llamac)
    if not options.write:
        sys.stdout.write(text)
        return
    with open(os.path.join(ROOT, "docs", "gpu-model.md"), "w") as f:
        f.write(text)


if __name__ == "__main__":
    main()
