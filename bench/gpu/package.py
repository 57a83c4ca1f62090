# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a GPU's machine needs, packed where llamac is built."""

import glob
import json
import os
import shutil
import subprocess
from dataclasses import asdict

from process import ProgramError
from shapes import BITS, SHAPES

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
MOST_BYTES = 60_000_000

PARAMS = {
    "1b": "tests/compiler/Inputs/shapes/llama-3.2-1b",
    "8b": "tests/compiler/Inputs/shapes/llama-3.1-8b",
}
GLIBC = ("linux-vdso", "ld-linux", "libc.so", "libm.so", "libpthread", "libdl", "librt")


def pack(folder, dry=False):
    """Copies programs and the libraries they need, and compiles the plans; none has weights. The package of a dry run
    has a tiny model and runs on the fake driver."""
    build = os.path.abspath(os.environ.get("LLAMAC_BUILD", os.path.join(ROOT, "build")))
    programs = [os.path.join(build, *path) for path in (("bin", "llamac-run"), ("tests", "gpu_tests"))]
    for program in (*programs, os.path.join(build, "bin", "llamac"), os.path.join(build, "tests", "conformance_tests")):
        if not os.access(program, os.X_OK):
            raise ProgramError(f"{program}: expected a program; build llamac, or set LLAMAC_BUILD to its build folder")
    for kind in ("bin", "lib", "plans", "python"):
        os.makedirs(os.path.join(folder, kind), exist_ok=True)
    for program in programs:
        shutil.copy(program, os.path.join(folder, "bin"))
        for name, library in libraries(program):
            shutil.copy(library, os.path.join(folder, "lib", name))
    for module in glob.glob(os.path.join(HERE, "*.py")):
        shutil.copy(module, os.path.join(folder, "python"))
    shutil.copy(os.path.join(ROOT, "scripts", "gpu_check.sh"), folder)
    record(build, "cuda", os.path.join(folder, "conformance"))
    shapes = ["tiny"] if dry else list(PARAMS)
    plans = []
    for shape in shapes:
        for weights in BITS:
            plan = {"shape": shape, "weights": weights, "file": f"plans/{shape}-{weights}.plan"}
            compile_plan(build, shape, weights, "cuda", os.path.join(folder, plan["file"]))
            plans.append(plan)
    ranks = f"plans/{shapes[0]}-2-ranks.plan"
    compile_plan(build, shapes[0], "bf16", "cuda", os.path.join(folder, ranks), "--ranks", "2")
    environment = fake_driver(build, os.path.join(folder, "sim")) if dry else {}
    with open(os.path.join(folder, "check.json"), "w", encoding="utf-8") as f:
        facts = {"dry_run": dry, "environment": environment, "plans": plans, "shapes": shapes, "ranks": ranks}
        json.dump(facts, f, indent=1)
    size = sum(os.path.getsize(os.path.join(at, name)) for at, _, names in os.walk(folder) for name in names)
    if size > MOST_BYTES and not dry:
        raise ProgramError(f"{folder}: expected at most {MOST_BYTES} bytes, got {size}")
    print(f"{folder}: {size / 1e6:.1f} MB")


def call(*command):
    """The standard output of a program of the build."""
    result = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if result.returncode != 0:
        raise ProgramError(f"{os.path.basename(command[0])} {command[1]}: exit code {result.returncode}")
    return result.stdout


def libraries(program):
    """(name, path) of what `program` is linked with, but for the C library."""
    for line in call("ldd", program).splitlines():
        words = line.split()
        if len(words) > 2 and words[1] == "=>" and not words[0].startswith(GLIBC):
            yield words[0], words[2]


def record(build, target, folder):
    call(os.path.join(build, "tests", "conformance_tests"), "--record", target, folder)


def compile_plan(build, shape, weights, target, path, *flags):
    if shape == "tiny":
        model = os.path.join(os.path.dirname(path), "tiny")
        os.makedirs(model, exist_ok=True)
        with open(os.path.join(model, "params.json"), "w", encoding="utf-8") as f:
            json.dump(params(SHAPES[shape]), f)
    else:
        model = os.path.join(ROOT, PARAMS[shape])
    context, parallel = ("256", "4") if shape == "tiny" else ("16384", "16")
    command = [os.path.join(build, "bin", "llamac"), "compile", model, "--no-weights", "--target", target]
    command += ["--gpu", "sm_90a", "-c", context, "--parallel", parallel, "-q", "-o", path]
    call(*command, *flags, *(["--weights", weights] if weights != "bf16" else []))


def params(shape):
    """Of Meta's format."""
    named = {"dim": "dim", "layers": "n_layers", "heads": "n_heads", "kv_heads": "n_kv_heads", "vocab": "vocab_size"}
    result = {named[field]: value for field, value in asdict(shape).items() if field in named}
    return result | {"multiple_of": shape.ffn, "norm_eps": 1e-5, "rope_theta": 500000.0}


def fake_driver(build, folder):
    """The environment in which the fake driver of the tests runs the package; its kernels are those of plans for
    sim, which come to `folder`."""
    record(build, "sim", folder)
    for weights in BITS:
        compile_plan(build, "tiny", weights, "sim", os.path.join(folder, f"tiny-{weights}.plan"))
    compile_plan(build, "tiny", "bf16", "sim", os.path.join(folder, "tiny-2-ranks.plan"), "--ranks", "2")
    kernels = sorted(os.path.join(folder, name) for name in os.listdir(folder) if name.endswith((".plan", ".sim")))
    driver = os.path.join(build, "tests", "fake-cuda")
    folders = dict.fromkeys(("LLAMAC_NCCL_PATH", "LLAMAC_NVRTC_PATH", "LD_LIBRARY_PATH"), driver)
    # Too little for pages that lie far apart, which the fake has no sparse memory for.
    return {"LLAMAC_FAKE_PLAN": ":".join(kernels), "LLAMAC_FAKE_MEMORY": str(4 << 30)} | folders
