#!/usr/bin/env python3
# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Predicts a step of decode on a GPU, term by term, and writes docs/gpu-model.md.

Launches, their weights and their geometry are those of the plan that llamac
compiles; registers and static shared memory those of the kernels that NVRTC makes
of it. What a plan does not say, the latencies and bandwidths of a GPU, stands in
two tables below, each with where it is from. A measurement that differs proves
one of them wrong.

    scripts/gpu_model.py            prints the tables
    scripts/gpu_model.py --write    writes docs/gpu-model.md
"""

import argparse
import ctypes
import math
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SHAPES = os.path.join(ROOT, "tests", "compiler", "Inputs", "shapes")
MODELS = {"1B": "llama-3.2-1b", "8B": "llama-3.1-8b", "70B": "llama-3.1-70b"}
FORMATS = ["bf16", "q8_0", "q4_0"]
# Bytes of 32 weights.
BLOCK_BYTES = {"bf16": 64, "f16": 64, "q8_0": 34, "q4_0": 18, "f32": 128}
TOKENS = 96  # In the cache: the middle of a run of 32 tokens of prompt and 128 of output.


@dataclass(frozen=True)
class Gpu:
    """What of a GPU decides how long a step takes."""

    architecture: str
    memory: float  # Bytes that it has.
    read: float  # Bytes a second that reads reach.
    l2_read: float  # The same from the L2 cache.
    multiprocessors: int
    shared: int  # Bytes that blocks of a multiprocessor share.
    overlaps: bool  # Whether a launch may begin before the one ahead ends.


GPUS = {
    "H200": Gpu("sm_90a", 141e9, 4255e9, 5.5e12, 132, 228 << 10, True),
    "H100": Gpu("sm_90a", 80e9, 3000e9, 5.5e12, 132, 228 << 10, True),
    "A100": Gpu("sm_80", 80e9, 1750e9, 4.0e12, 108, 164 << 10, False),
}

GPU_SOURCES = [
    ("bandwidth of reads", "H200: measured by others; H100, A100: 0.89 and 0.86 of the data sheet"),
    ("bandwidth of L2", "published micro-benchmarks of H100 and A100"),
]

# Seconds; what each is taken from, and what measures it.
LATENCIES = {
    "memory": (0.8e-6, "a load that misses L2; published micro-benchmarks", "gpu_tests --bandwidth"),
    "boundary": (
        1.2e-6,
        "from the last store of a launch to the first load behind the next one's wait",
        "kernels of gpu_check",
    ),
    "launch": (2.0e-6, "a launch in a graph behind one that has ended, before sm_90", "the same on an A100"),
    "early": (0.4e-6, "from what lets a launch begin, or the room for it, to its first requests", "ncu: start times"),
    "attention": (
        3.0e-6,
        "position, page and first tile, one load after the other; a tile; a merge",
        "kernels of gpu_check",
    ),
    "sampling": (4e-6, "greedy: 32 blocks over 128,256 logits, then their merge", "the same"),
    "run": (8e-6, "between the graphs of two runs of steps: copies and an event", "workload less the kernels' sum"),
}


def seconds(name):
    return LATENCIES[name][0]


# ---------------------------------------------------------------------------------------------------------------------
# The plan and its kernels
# ---------------------------------------------------------------------------------------------------------------------


@dataclass
class Launch:
    """A launch of the plan's program for one row."""

    kernel: str
    blocks: int
    threads: int
    dynamic_shared: int
    weight_bytes: float
    keys: bool  # Whether it reads the KV cache.
    source: str = ""
    registers: int = 0
    static_shared: int = 0

    @property
    def shared(self):
        """Of a multiprocessor, for each block."""
        return self.dynamic_shared + self.static_shared + 1024

    @property
    def latency(self):
        """What it takes at least, whatever it reads."""
        return "sampling" if self.kernel.startswith("sample") else "attention" if self.keys else "memory"

    def bytes_in_flight(self, ring):
        """Of a multiprocessor: the ring of a block, or what the loads of all blocks that fit have under way."""
        tile = {name: int(value) for name, value in re.findall(r"\.(\w+) = (\d+)", self.source)}
        if "WeightStream<" in self.source or "unroll" not in tile:
            return ring
        lanes = self.threads * tile["unroll"] * tile["outputsPerWarp"] * tile["weights"]
        return 16 * lanes * min(65536 // self.block_registers, 2048 // self.threads)

    @property
    def block_registers(self):
        warps = -(-self.threads // 32)
        return warps * 32 * (-(-self.registers // 8) * 8)


def bytes_of(tensor):
    """Of a type such as tensor<2048x8192xbf16> or tensor<2048x8192x!llama.quant<q4_0>>."""
    *sizes, element = re.match(r"tensor<(.*)>", tensor)[1].split("x")
    elements = 1
    for size in sizes:
        elements *= int(size)
    kind = re.findall(r"\w+", element)[-1]
    return elements / 32 * BLOCK_BYTES[kind]


def launches_of(text):
    """Of the program @decode in the IR after lower-to-plan."""
    program = re.search(r"plan\.program @decode \{(.*?)\n  \}", text, re.S)[1]
    weights = {name: bytes_of(kind) for name, kind in re.findall(r"(%\d+) = plan\.weight \"[^\"]*\" : (\S+)", program)}
    caches = set(re.findall(r"(%\d+) = plan\.kv", program))
    launches = []
    geometries = dict(re.findall(r"plan\.kernel @(\w+)\(.*? geometry <(.*?)>", text))
    for kernel, arguments in re.findall(r"plan\.launch @(\w+)\((.*?)\) rows", program):
        numbers = {k: int(v) for k, v in re.findall(r"(\w+) = (\d+)", geometries[kernel])}
        operands = re.findall(r"%\d+", arguments)
        launches.append(
            Launch(
                kernel,
                numbers["items"],
                numbers["threads"],
                numbers["scratch"],
                # An embedding reads one row of its matrix.
                0 if kernel.startswith("embed") else sum(weights.get(operand, 0) for operand in operands),
                kernel.startswith("attention") and any(operand in caches for operand in operands),
            )
        )
    return launches


class Nvrtc:
    """Enough of libnvrtc to ask ptxas for registers."""

    def __init__(self):
        folders = [os.environ.get("LLAMAC_NVRTC_PATH"), os.path.join(ROOT, "build", "nvrtc"), "", "/usr/local/cuda/lib64"]
        for folder in folders:
            for name in ("libnvrtc.so.13", "libnvrtc.so.12"):
                try:
                    self.library = ctypes.CDLL(os.path.join(folder, name) if folder else name)
                    return
                except (OSError, TypeError):
                    continue
        sys.exit("gpu_model: found no libnvrtc; scripts/setup.sh test installs one")

    def resources(self, folder, kernel, architecture):
        """Registers of a thread, and static shared memory."""
        with open(os.path.join(folder, kernel + ".cu"), "rb") as f:
            source = f.read()
        program = ctypes.c_void_p()
        self.library.nvrtcCreateProgram(ctypes.byref(program), source, kernel.encode(), 0, None, None)
        options = [f"--gpu-architecture={architecture}", "--minimal", "-default-device", "--std=c++20",
                   "--fmad=false"]
        options += ["--ptxas-options=-v", f"-I{folder}"]
        array = (ctypes.c_char_p * len(options))(*[option.encode() for option in options])
        failed = self.library.nvrtcCompileProgram(program, len(options), array)
        size = ctypes.c_size_t()
        self.library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        self.library.nvrtcGetProgramLog(program, log)
        self.library.nvrtcDestroyProgram(ctypes.byref(program))
        text = log.value.decode()
        if failed:
            sys.exit(f"gpu_model: {kernel}: {text}")
        shared = re.search(r"(\d+) bytes smem", text)
        return int(re.search(r"Used (\d+) registers", text)[1]), int(shared[1]) if shared else 0


def plan_of(llamac, nvrtc, model, weights, architecture, folder):
    """The launches of a step, with what their kernels take, and the bytes of keys and values of a layer."""
    command = [llamac, "compile", os.path.join(SHAPES, MODELS[model]), "--no-weights", "--target", "cuda"]
    command += ["--gpu", architecture, "-c", "16384", "-q", "--print-after", "lower-to-plan", "--emit-source", folder]
    command += ["--weights", weights] if weights != "bf16" else []
    text = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    launches = launches_of(text)
    known = {}
    for launch in launches:
        if launch.kernel not in known:
            with open(os.path.join(folder, launch.kernel + ".cu")) as f:
                known[launch.kernel] = f.read(), *nvrtc.resources(folder, launch.kernel, architecture)
        launch.source, launch.registers, launch.static_shared = known[launch.kernel]
    heads, size = re.search(r"!llama\.kv<heads = (\d+), size = (\d+)>", text).groups()
    return launches, TOKENS * int(heads) * int(size) * 2 * 2


def constant(path, name):
    """A number of a C++ file."""
    with open(os.path.join(ROOT, path)) as f:
        factors = re.search(rf"constexpr \w+ {name} = ([\d *+]+);", f.read())[1]
    return sum(math.prod(map(int, part.split("*"))) for part in factors.split("+"))


RING = constant("codegen/device/config.h", "streamRingBytes")
AHEAD = constant("codegen/device/config.h", "streamAheadBytes")
STEPS_OF_RUN = constant("runtime/engine/MultiStepDecode.cpp", "stepsOfRun")


# ---------------------------------------------------------------------------------------------------------------------
# The step
# ---------------------------------------------------------------------------------------------------------------------


@dataclass
class Step:
    """How long a step takes, and of what that is made."""

    launches: list
    total: float = 0.0
    reading: float = 0.0  # Memory is busy.
    idle: dict = field(default_factory=dict)  # It is not, by what the step waits for.
    ahead: list = field(default_factory=list)  # How many launches have begun while each runs, itself included.


def fit(gpu, launches):
    """Whether a block of each finds room on one multiprocessor."""
    return (
        sum(launch.shared for launch in launches) <= gpu.shared
        and sum(launch.block_registers for launch in launches) <= 65536
        and sum(launch.threads for launch in launches) <= 2048
    )


def simulate(gpu, launches, kv_bytes, ring=RING, ahead=AHEAD):
    """A step in small slices of time, in which memory serves what was asked for in proportion to it.

    A launch begins when the one ahead lets it and its blocks find room beside those of the launches that run. It
    then asks memory for what fills its rings, and L2 for what is behind. The launch ahead has ended: after a
    boundary it asks for the rest, a ring at a time, and ends when all has come from memory and through L2."""
    step = Step(launches)
    count = len(launches)
    boundary = seconds("boundary" if gpu.overlaps else "launch")
    early = [min(l.weight_bytes, l.blocks * (ring + ahead)) if gpu.overlaps else 0.0 for l in launches]
    rest = [l.weight_bytes - e + (kv_bytes if l.keys else 0) for l, e in zip(launches, early)]
    window = [l.bytes_in_flight(ring) * gpu.multiprocessors for l in launches]
    slice_ = max(20e-9, 1e-5 * sum(l.weight_bytes for l in launches) / gpu.read / 2)
    now, current, begun = 0.0, 0, 0  # Launch `current` runs; those before `begun` have begun.
    release, lets = boundary, 0.0  # When it asks for the rest; when the next launch may begin.
    least = None  # When it may end.
    while current < count:
        while begun < count and lets <= now and (begun == current or fit(gpu, launches[current : begun + 1])):
            if begun > current and not gpu.overlaps:
                break
            begun += 1
            step.ahead.append(begun - current)
            lets = now + seconds("early")
        runs = current < begun and now >= release
        if runs and least is None:
            least = now + seconds(launches[current].latency) + max(
                0.0, launches[current].weight_bytes - window[current]
            ) / gpu.l2_read
        asked = [early[i] for i in range(current, begun)]
        if runs:
            asked[0] += min(rest[current], window[current])
        total = sum(asked)
        rate = min(gpu.read, total / slice_)
        if not gpu.overlaps:
            rate = min(rate, window[current] / seconds("memory"))
        for i, share in zip(range(current, begun), asked):
            served = rate * slice_ * share / total if total else 0.0
            own = min(early[i], served)
            early[i] -= own
            if i == current:
                rest[i] = max(0.0, rest[i] - (served - own))
        step.reading += slice_ * rate / gpu.read
        cause = launches[current].latency if runs and launches[current].latency != "memory" else "boundaries"
        step.idle[cause] = step.idle.get(cause, 0.0) + slice_ * (1 - rate / gpu.read)
        now += slice_
        if runs and now >= least and rest[current] + early[current] <= 1:
            current += 1
            release, least = now + boundary, None
            if begun == current:
                lets = max(lets, now + seconds("early"))
    step.idle["run"] = seconds("run") / STEPS_OF_RUN
    step.total = now + step.idle["run"]
    return step


# ---------------------------------------------------------------------------------------------------------------------
# Batch invariance
# ---------------------------------------------------------------------------------------------------------------------

PROMPT_ROWS = 512  # Of the largest program.


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
    text = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    lines = re.findall(r"^(\w+): (\d+) launches, .*, expected (\S+) us$", text, re.M)
    return [Counted(name, int(launches), float(us)) for name, launches, us in lines]


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
            pieces = [PROMPT_ROWS] * (tokens // PROMPT_ROWS) + [tokens % PROMPT_ROWS]
            steps = [counted_steps(llamac, model, weights, rows) for rows in pieces]
            least, kept = (sum(step[place].microseconds for step in steps) for place in (0, -1))
            prompts.append([model, weights, str(tokens), f"`{steps[-1][0].program}`", f"{least:.0f}"])
            prompts[-1] += [f"{kept:.0f}", f"{kept / least:.2f}"]
        for tokens in (56, 504):
            both = counted_steps(llamac, model, weights, 8 + tokens)[0]
            parts = counted_steps(llamac, model, weights, 8)[0], counted_steps(llamac, model, weights, tokens)[-1]
            apart = sum(part.microseconds for part in parts)
            mixed.append([model, weights, str(tokens), f"{both.microseconds:.0f}", str(both.launches), f"{apart:.0f}"])
            mixed[-1] += [str(sum(part.launches for part in parts)), f"{apart / both.microseconds:.2f}"]
    head = ["model", "weights", "sequences that decode", "smallest program", "us", "kept to `decode16`", "to `decode32`"]
    text = table(head, decode)
    head = ["model", "weights", "tokens of a prompt", "smallest program", "us", "in `prefill`, us", "ratio"]
    text += "\n" + table(head, prompts)
    head = ["model", "weights", "prompt tokens beside 8 sequences", "in one program, us", "launches"]
    return text + "\n" + table([*head, "in `decode16` and `prefill`, us", "launches", "ratio"], mixed)


# ---------------------------------------------------------------------------------------------------------------------
# The page
# ---------------------------------------------------------------------------------------------------------------------

HEAD = """# A model of a decode step on a GPU

**It expects too little.** On an H200 1B bf16 took 0.850 ms, 8B bf16 4.33, 8B Q8_0 5.56 and 8B
Q4_0 3.16 ([what GPUs showed](gpu-results.md)): a boundary costs three times what it says, and
weights in blocks have no rate of their own here. `scripts/gpu_model.py --write` makes the page
from plans and compiled kernels.

A launch begins when the blocks of the one ahead have begun and its own find room beside them. It
then asks memory for what fills its rings, and L2 for what is behind. When the launch ahead has
ended and a boundary is over it asks for the rest, a ring at a time. Memory serves what was asked
for in proportion to it, at the bandwidth of reads. A launch ends when all has come from memory and
through L2, and no earlier than its latency. So a boundary costs time where nothing is asked for.

The step is that of one sequence with {tokens} tokens in the cache, the middle of a run of 32 tokens
of prompt and 128 of output.
"""


def table(head, rows):
    return "\n".join([f"| {' | '.join(row)} |" for row in [head, ["---"] * len(head), *rows]]) + "\n"


def summary(steps):
    rows = []
    for (model, weights, gpu), step in steps.items():
        size = sum(launch.weight_bytes for launch in step.launches)
        if size > 0.97 * GPUS[gpu].memory:
            rows.append([model, weights, gpu, "does not fit", "", "", ""])
            continue
        floor = size / GPUS[gpu].read
        rows.append([model, weights, gpu, f"{step.total * 1e3:.3f}", f"{1 / step.total:.0f}"])
        rows[-1] += [f"{floor * 1e3:.3f}", f"{100 * floor / step.total:.0f} %"]
    return table(["model", "weights", "GPU", "ms a token", "tok/s", "weights alone, ms", "share"], rows)


def terms(step):
    names = {
        "boundaries": "boundaries of launches, while nothing is asked for",
        "attention": "attention, likewise",
        "sampling": "sampling",
        "run": f"between the graphs of two runs, of {STEPS_OF_RUN} steps",
    }
    rows = [["weights, keys and values at the bandwidth of reads", f"{step.reading * 1e3:.4f}"]]
    rows += [[name, f"{step.idle.get(key, 0.0) * 1e3:.4f}"] for key, name in names.items()]
    rows.append(["**a step**", f"**{step.total * 1e3:.4f}**"])
    return table(["term", "ms"], rows)


def kernels(step):
    rows, seen = [], {}
    for launch, ahead in zip(step.launches, step.ahead):
        seen.setdefault(launch.kernel, (launch, []))[1].append(ahead)
    for name, (launch, ahead) in seen.items():
        row = [f"`{name}`", str(len(ahead)), f"{launch.blocks} x {launch.threads}", str(launch.registers)]
        row += [f"{(launch.shared - 1024) / 1024:.0f}", f"{launch.weight_bytes / 1e6:.1f}", f"{min(ahead)} to {max(ahead)}"]
        rows.append(row)
    return table(["kernel", "launches", "blocks", "registers", "KB", "MB read", "begun"], rows)


INVARIANCE = """
## What batch invariance costs

With `--batch-invariant` an answer has the same bits whatever runs beside it. On cuda decode then
keeps to the smallest program that holds all sequences the model was loaded for, and prompts to
the largest ([decision 34](decisions/0034-batch-invariance.md)), in steps of their own: a prompt
beside 8 sequences that decode takes 1.2 to 1.6 times as long. By default a step takes the smallest
program that holds it. Steps on an H200, as the cost model of the kernels expects them
(`llamac compile --explain-kernels --explain-rows N`), with 512 keys:

"""


def page(steps, invariant):
    first = steps["1B", "bf16", "H200"]
    text = HEAD.format(tokens=TOKENS) + "\n" + summary(steps)
    text += "\n## Llama 3.2 1B in bf16 on an H200\n\n" + terms(first)
    text += "\n" + kernels(first)
    text += (
        "\nKB: shared memory of a block. Begun: launches whose blocks are on a multiprocessor at a time, by\n"
        "registers, threads and shared memory.\n"
    )
    text += INVARIANCE + invariant + "\n## What the terms are taken from\n\n"
    rows = [[f"{name}, {value * 1e6:.1f} us", source, by] for name, (value, source, by) in LATENCIES.items()]
    text += table(["latency", "is", "measured by"], rows) + "\n"
    head = ["GPU", "read, GB/s", "L2, TB/s", "multiprocessors", "shared, KB", "begins early"]
    rows = [
        [name, f"{gpu.read / 1e9:.0f}", f"{gpu.l2_read / 1e12:.1f}", str(gpu.multiprocessors)]
        + [str(gpu.shared >> 10), "yes" if gpu.overlaps else "no"]
        for name, gpu in GPUS.items()
    ]
    text += table(head, rows) + "\n"
    return text + "\n".join(f"- {what}: {source}." for what, source in GPU_SOURCES) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write docs/gpu-model.md")
    parser.add_argument("--llamac", default=os.path.join(ROOT, "build", "bin", "llamac"))
    options = parser.parse_args()
    nvrtc = Nvrtc()
    steps = {}
    for model in MODELS:
        for weights in FORMATS:
            plans = {}
            for name, gpu in GPUS.items():
                if gpu.architecture not in plans:
                    with tempfile.TemporaryDirectory() as folder:
                        plans[gpu.architecture] = plan_of(
                            options.llamac, nvrtc, model, weights, gpu.architecture, folder
                        )
                launches, kv_bytes = plans[gpu.architecture]
                steps[model, weights, name] = simulate(gpu, launches, kv_bytes)
    text = page(steps, invariance(options.llamac))
    if not options.write:
        sys.stdout.write(text)
        return
    with open(os.path.join(ROOT, "docs", "gpu-model.md"), "w") as f:
        f.write(text)


if __name__ == "__main__":
    main()
