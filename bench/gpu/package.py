# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Packs what a GPU's machine needs, where llamac is built."""

import glob
import json
import os
import shutil
import subprocess
import tarfile
import tempfile

import conformance
import gguf_file
from process import ProgramError, is_chosen
from shapes import SHAPES

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
MOST_BYTES = 60_000_000
# Plans and the conformance suite share most of their contents, kernels above all: together they take a
# twentieth.
ARCHIVE, ARCHIVED = "plans.tar.xz", ("plans", "conformance")

PARAMS = {
    "1b": "tests/compiler/Inputs/shapes/llama-3.2-1b",
    "8b": "tests/compiler/Inputs/shapes/llama-3.1-8b",
}
# Formats of weights, the most telling first: those that llamac makes, and of the largest shape those of GGUF too.
FORMATS = ("bf16", "q8_0", "q4_0", "mxfp8")
ALL_FORMATS = (*FORMATS, *gguf_file.FORMATS)
# Tokens of a sequence and sequences of a plan: for long contexts, for batches, and of the dry run.
LONG, WIDE, TINY = ("16384", "16"), ("512", "128"), ("256", "4")
# Weights of the plans whose step of one row is one launch, by shape.
RESIDENT = {"1b": ("bf16",), "8b": ("bf16", "q8_0", "q4_0"), "tiny": ("bf16",)}
RESIDENT_FLAGS = ("--resident-step", "on")
# A server chooses its sequences itself; the name of such a shape ends with `SERVED`.
SERVED_SIZE, SERVED = ("2048", "1"), "-served"
GLIBC = ("linux-vdso", "ld-linux", "libc.so", "libm.so", "libpthread", "libdl", "librt")


def pack(folder, formats=ALL_FORMATS, cases=None, steps=None, dry=False):
    """Copies programs and the libraries they need, and compiles the plans; none has weights. The package of a dry run
    has a tiny model and the cases of conformance that `cases` matches, and runs `steps` on the fake driver."""
    build = os.path.abspath(os.environ.get("LLAMAC_BUILD", os.path.join(ROOT, "build")))
    programs = [os.path.join(build, *path) for path in (("bin", "llamac-run"), ("tests", "gpu_tests"))]
    for program in (*programs, os.path.join(build, "bin", "llamac"), os.path.join(build, "tests", "conformance_tests")):
        if not os.access(program, os.X_OK):
            raise ProgramError(f"{program}: expected a program; build llamac, or set LLAMAC_BUILD to its build folder")
    for kind in ("bin", "lib", "plans", "python"):
        os.makedirs(os.path.join(folder, kind), exist_ok=True)
    for program in programs:
        copy = shutil.copy(program, os.path.join(folder, "bin"))
        if strip := shutil.which("strip"):
            call(strip, copy)  # Symbols are a fifth of it.
        for name, library in libraries(program):
            shutil.copy(library, os.path.join(folder, "lib", name))
    scripts = [os.path.join(ROOT, "scripts", name) for name in ("throughput.py", "serve_bench.py")]
    for module in (*glob.glob(os.path.join(HERE, "*.py")), *scripts):
        shutil.copy(module, os.path.join(folder, "python"))
    shutil.copy(os.path.join(ROOT, "scripts", "gpu_check.sh"), folder)
    chosen = chosen_cases(build, cases)
    record(build, "cuda", os.path.join(folder, "conformance"), chosen)
    facts = {"dry_run": dry, "environment": {}, "cases": cases}
    with tempfile.TemporaryDirectory() as models:
        compiler = Compiler(build, models)
        facts |= plans(compiler, folder, formats, dry)
        if dry:
            facts["environment"] = fake_driver(compiler, os.path.join(folder, "sim"), facts, chosen, steps)
    with open(os.path.join(folder, "check.json"), "w", encoding="utf-8") as f:
        json.dump(facts, f, indent=1)
    with tarfile.open(os.path.join(folder, ARCHIVE), "w:xz", preset=3) as archive:
        for name in ARCHIVED:
            archive.add(os.path.join(folder, name), name)
            shutil.rmtree(os.path.join(folder, name))
    size = sum(os.path.getsize(os.path.join(at, name)) for at, _, names in os.walk(folder) for name in names)
    if size > MOST_BYTES and not dry:
        raise ProgramError(f"{folder}: expected at most {MOST_BYTES} bytes, got {size}")
    print(f"{folder}: {size / 1e6:.1f} MB")


def unpack(folder):
    """Puts the archive's folders beside it, once."""
    if not all(os.path.isdir(os.path.join(folder, name)) for name in ARCHIVED):
        # Pythons before 3.12 may not have the filter, and later ones ask for it.
        safe = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        with tarfile.open(os.path.join(folder, ARCHIVE)) as archive:
            archive.extractall(folder, **safe)


def plans(compiler, folder, formats, dry):
    """Compiles them. Those that measure a format, those that measure batches, those whose step is one launch, one for
    two ranks, and one with a tokenizer for a server."""
    shapes = ["tiny"] if dry else list(PARAMS)
    found, wide, resident = [], [], []

    def compiled(shape, weights, size, name, *flags):
        file = f"plans/{name}.plan"
        compiler.compile(shape, weights, "cuda", size, os.path.join(folder, file), *flags)
        return file

    def plan(shape, weights, size, name, *flags):
        file = compiled(shape, weights, size, name, *flags)
        return {"shape": shape, "weights": weights, "file": file, "bits": compiler.bits(shape, weights)}

    for shape in shapes:
        for weights in ALL_FORMATS if shape == shapes[-1] and not dry else FORMATS:
            if weights == "bf16" or weights in formats:
                size = TINY if dry else LONG
                found.append(plan(shape, weights, size, f"{shape}-{weights}"))
                if weights in RESIDENT[shape]:
                    one = plan(shape, weights, (size[0], "1"), f"{shape}-{weights}-resident", *RESIDENT_FLAGS)
                    resident.append(one | {"many": found[-1]["file"]})
        if not dry:
            wide.append(plan(shape, "bf16", WIDE, f"{shape}-wide"))
    ranks = compiled(shapes[0], "bf16", TINY if dry else LONG, f"{shapes[0]}-2-ranks", "--ranks", "2")
    # A tiny model has few tokens and sequences anyway.
    facts = {"plans": found, "wide": wide or found[:1], "resident": resident, "shapes": shapes, "ranks": ranks}
    served = shapes[0] + SERVED
    compiler.compile(served, "bf16", "cuda", TINY if dry else SERVED_SIZE, os.path.join(folder, "plans/served.plan"))
    return facts | {"served": {"shape": shapes[0], "weights": "bf16", "file": "plans/served.plan"}}


class Compiler:
    """llamac of a build; `folder` is for the models that have to be written."""

    def __init__(self, build, folder):
        self.build, self.folder = build, folder

    def model(self, shape, weights):
        """The model, and the option for its weights."""
        path = os.path.join(self.folder, f"{shape}-{weights}.gguf")
        if weights in gguf_file.FORMATS:
            gguf_file.write(path, SHAPES[shape], weights)
            return [path]
        option = ["--weights", weights] if weights != "bf16" else []
        if shape in PARAMS:
            return [os.path.join(ROOT, PARAMS[shape]), *option]
        folder = os.path.join(self.folder, shape)
        os.makedirs(folder, exist_ok=True)
        files = {"config.json": config(SHAPES[shape.removesuffix(SERVED)])}
        if shape.endswith(SERVED):
            files["tokenizer.json"] = tokenizer(SHAPES[shape.removesuffix(SERVED)].vocab)
        for name, content in files.items():
            with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
                json.dump(content, f)
        return [folder, *option]

    def call(self, verb, shape, weights, *flags):
        return call(os.path.join(self.build, "bin", "llamac"), verb, *self.model(shape, weights), *flags)

    def compile(self, shape, weights, target, size, path, *flags):
        context, parallel = size
        flags = ["--target", target, "-c", context, "--parallel", parallel, *flags]
        self.call("compile", shape, weights, *flags, "--gpu", "sm_90a", "--no-weights", "-q", "-o", path)

    def bits(self, shape, weights):
        """The bits of a weight as the kernels read it, scales included."""
        fits = json.loads(self.call("plan", shape, weights, "--target", "cuda", "--gpu", "sm_90a", "--json"))
        return 8 * (fits["memory"]["weights"] - SHAPES[shape].norm_bytes) / SHAPES[shape].weights


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


def chosen_cases(build, pattern):
    """The cases of conformance whose names `pattern` matches; none for all."""
    if not pattern:
        return []
    # The names are those of every device.
    command = os.path.join(build, "tests", "conformance_tests"), "--gtest_list_tests"
    cases = conformance.parse_list(call(*command, "--gtest_filter=Conformance/reference.*"))
    found = [name for name in map(conformance.short_name, cases) if is_chosen(name, pattern)]
    if not found:
        raise ProgramError(f"--cases: expected a pattern of some case of conformance, got {pattern}")
    return found


def record(build, target, folder, cases):
    call(os.path.join(build, "tests", "conformance_tests"), "--record", target, folder, *cases)


def config(shape):
    """A config in Hugging Face's format."""
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": shape.dim,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head,
        "intermediate_size": shape.ffn,
        "vocab_size": shape.vocab,
        "max_position_embeddings": 8192,
        "rms_norm_eps": 1e-5,
        "rope_theta": 500000.0,
        "tie_word_embeddings": shape.tied,
    }


def tokenizer(vocab):
    """tokenizer.json with the 256 bytes, as GPT-2 writes them, and words in ASCII: whatever a model of random weights
    says is text."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    texts = list(map(chr, plain)) + [chr(256 + i) for i in range(len(others))]
    texts += [f"w{number}" for number in range(vocab - 256)]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True}
    model = {"type": "BPE", "vocab": {text: number for number, text in enumerate(texts)}, "merges": []}
    return {"model": model, "pre_tokenizer": byte_level, "decoder": byte_level, "added_tokens": []}


def fake_driver(compiler, folder, facts, cases, steps):
    """The environment in which the fake driver of the tests runs the package; its kernels are those of plans for
    sim, which come to `folder`."""
    record(compiler.build, "sim", folder, cases)
    for plan in facts["plans"]:
        path = os.path.join(folder, os.path.basename(plan["file"]))
        compiler.compile(plan["shape"], plan["weights"], "sim", TINY, path)
    for plan in facts["resident"]:
        path = os.path.join(folder, os.path.basename(plan["file"]))
        compiler.compile(plan["shape"], plan["weights"], "sim", (TINY[0], "1"), path, *RESIDENT_FLAGS)
    compiler.compile(facts["served"]["shape"] + SERVED, "bf16", "sim", TINY, os.path.join(folder, "served.plan"))
    if is_chosen("ranks tiny", steps):
        path = os.path.join(folder, os.path.basename(facts["ranks"]))
        compiler.compile("tiny", "bf16", "sim", TINY, path, "--ranks", "2")
    kernels = sorted(os.path.join(folder, name) for name in os.listdir(folder) if name.endswith((".plan", ".sim")))
    driver = os.path.join(compiler.build, "tests", "fake-cuda")
    folders = dict.fromkeys(("LLAMAC_NCCL_PATH", "LLAMAC_NVRTC_PATH", "LD_LIBRARY_PATH"), driver)
    # Too little for pages that lie far apart, which the fake has no sparse memory for, and for timing large copies.
    return {"LLAMAC_FAKE_PLAN": ":".join(kernels), "LLAMAC_FAKE_MEMORY": str(480 << 20)} | folders
