# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Any IR that can be written ends every pass with a result or a diagnostic.

The seeds are the modules of the lit tests and those that the driver writes after
each phase, all in MLIR's generic form, in which every attribute, type and region
has one place. Mutations of one to three kinds make others of them: bodies are
dropped, numbers become 0, negative or huge, types and values are exchanged, ops
are removed, repeated and moved, attributes are removed or get values of other
kinds. Many do not parse any more; the passes see the others.
"""

import os
import random
import re
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))

import support

TESTS = os.path.join(support.ROOT, "tests")
LLAMAC_OPT = os.path.join(support.BIN_DIR, "llamac-opt")
SEPARATOR = "\n// -----\n"

# A process runs a pass on so many modules.
BATCH = 40
BATCHES = int(os.environ.get("LLAMAC_MUTATED_BATCHES", "40"))

NUMBERS = ("0", "-1", "1", "2", "3", "7", "65", "2147483648", "4294967296", str(2**63 - 1), str(-(2**63)))
TYPES = (
    *("f32", "f16", "i32", "i64", "index", "none", "!plan.memory", "vector<4xf32>", "tensor<f32>", "tensor<*xf32>"),
    *("tensor<?xf32>", "tensor<8xf32>", "tensor<0xf32>", "tensor<?xi32>", "tensor<1xi32>", "tensor<?x?xf32>"),
    *("tensor<0x64xf32>", "tensor<?x0xf32>", "tensor<?x64xf32>", "tensor<64x64xf32>", "tensor<?x?x?xf32>"),
    *("tensor<64x0xbf16>", "tensor<?x4x0x2xf32>", "tensor<?x8589934592xf32>", "tensor<?x4x16xf32>"),
    *("!llama.kv<heads = 1, size = 8>", "!llama.kv<heads = 2147483647, size = 2147483647>"),
    *("tensor<64x64x!llama.quant<q4_0>>", "tensor<256x256x!llama.quant<q6_k>>", "() -> ()"),
)
ATTRIBUTES = (
    *("unit", "0 : i64", "-1 : i64", "1 : i64", "4096 : i64", "1 : i8", "1 : index", "1 : ui64", "true", '""', '"x"'),
    *("[]", "{}", "@x", "i32", "0.0 : f64", "-1.0 : f64", "0x7FF0000000000000 : f64", "1.0 : f32", "array<i32>"),
    *("array<i32: 0, 9, 1>", "dense<1.0> : tensor<2xf64>", "dense<1.0> : tensor<f64>", "dense<> : tensor<0xf64>"),
    *("dense<[[1.0], [0.1]]> : tensor<2x1xf64>", "#llama.role<tokens>", "#llama.role<kv, layer = 0>"),
    *("#llama.shard<dim = 1, parts = 2, ranks = 2>", "#kernel.matmul_config<family = gemm, rowBlock = 0>"),
    *("#kernel.matmul_config<family = gemv, rowBlock = 1, tiles = {panels = 0 : i64, warps = 0 : i64}>",),
    *("#kernel.attention_config<family = split_kv, splits = 1, partial = 1>",),
    *('#kernel.target<name = "cpu", context_size = 1>', '#kernel.target<name = "cuda", context_size = 512>'),
)

NUMBER = re.compile(r"(?<![\w%@^#.!\"])-?\d+(?![\w.\"])")
DIMENSION = re.compile(r"(?<=[<x])\d+(?=x)")
TYPE = re.compile(r"tensor<[^<>]*(?:<[^<>]*>)?[^<>]*>|!llama\.kv<[^<>]*>|!plan\.memory|\bf32\b")
VALUE = re.compile(r"%\w+")
ARGUMENT = re.compile(r"(%\w+): ([^,()]+(?:<[^()]*?>)?)(?=[,)])")
RESULT = re.compile(r"^ *(%\w+) = .* -> ([^()\n]+)$", re.MULTILINE)
OP = re.compile(r"^ *(?:%\w+ = )?\"[^({]*\([^({]*\)(?! \({)(?!.*\({$)")
ENTRY = re.compile(r"[\w.]+ = (?:#[\w.]+<[^<>]*>|\"[^\"]*\"|@\w+|-?[\w.]+ : \w+)")
OPS = re.compile(r"^def \w+ : (?:Pass|ExplainedPass)<\"([a-z-]+)\"", re.MULTILINE)


def passes():
    """Each pass alone, and the phases one after the other."""
    with open(os.path.join(support.ROOT, "passes", "Passes.td"), encoding="utf-8") as file:
        names = OPS.findall(file.read())
    options = {
        "attach-target": ["--attach-target=name=cuda"],
        "approximate-exp": ["--approximate-exp=poly=3"],
        "shard": ["--shard=ranks=2", "--shard=ranks=4 reproducible"],
        "assign-weight-formats": ["--assign-weight-formats=format=q4_0"],
        "sparsify-attention": ["--sparsify-attention=top-k=32"],
    }
    for name in names:
        for flag in options.get(name, [f"--{name}"]):
            yield [flag]
    yield ["--canonicalize", "--cse"]
    for target in ("cpu", "cuda"):
        attach = f"--attach-target=name={target}"
        yield [attach, "--choose-kernels", "--lower-to-plan", "--plan-memory"]
        yield [attach, "--llamac-schedule"]
        yield [attach, "--llamac-graph", "--llamac-fuse=explain", "--llamac-schedule"]


def closing(text, opening):
    """Where the region ends that begins with the "({" at `opening`."""
    depth = 0
    for at in range(opening, len(text) - 1):
        if text.startswith("({", at):
            depth += 1
        elif text.startswith("})", at):
            depth -= 1
            if depth == 0:
                return at
    return -1


class Mutator:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def found(self, pattern, text):
        return self.random.choice(list(pattern.finditer(text)) or [None])

    def replaced(self, text, match, new):
        """Wherever the same text is, or here alone."""
        if self.random.random() < 0.3:
            return text[: match.start()] + new + text[match.end() :]
        return text.replace(match.group(), new)

    def number(self, text):
        match = self.found(self.random.choice((NUMBER, NUMBER, DIMENSION)), text)
        return self.replaced(text, match, self.random.choice(NUMBERS)) if match else text

    def type(self, text):
        match = self.found(TYPE, text)
        own = sorted({other.group() for other in TYPE.finditer(text)})
        return self.replaced(text, match, self.random.choice((*TYPES, *own, *own))) if match else text

    def value(self, text):
        """Another value of the type in the place of one."""
        types = {**dict(ARGUMENT.findall(text)), **dict(RESULT.findall(text))}
        old = self.found(VALUE, text)
        alike = [value for value, type in types.items() if old and type == types.get(old.group())]
        return text[: old.start()] + self.random.choice(alike) + text[old.end() :] if alike else text

    def attribute(self, text):
        match = self.found(ENTRY, text)
        if not match:
            return text
        name = match.group().split(" = ")[0]
        if self.random.random() < 0.6:
            return text[: match.start()] + name + " = " + self.random.choice(ATTRIBUTES) + text[match.end() :]
        before, after = text[: match.start()], text[match.end() :]
        return before + after[2:] if after.startswith(", ") else before.removesuffix(", ") + after

    def region(self, text):
        """Without the body of a function or of an op."""
        openings = [match.start() for match in re.finditer(r"\({", text)]
        opening = self.random.choice(openings[1:] or [-1])
        end = closing(text, opening) if opening >= 0 else -1
        if end < 0:
            return text
        head = text[:opening]
        start = head.rindex("\n")
        line = head[start:]
        if "func.func" in line and "sym_visibility" not in line:
            line = line.replace("sym_name", 'sym_visibility = "private", sym_name')
        return head[:start] + line + "({" + text[end:]

    def line(self, text):
        """An op removed, repeated or moved."""
        lines = text.split("\n")
        ops = [at for at, line in enumerate(lines) if OP.match(line)]
        if len(ops) < 2:
            return text
        at, to = self.random.choice(ops), self.random.choice(ops)
        kind = self.random.randrange(4)
        if kind == 0:
            del lines[at]
        elif kind == 1:
            lines.insert(to, re.sub(r"^( *%\w+)", r"\1again", lines[at]))
        elif kind == 2:
            lines.insert(to, lines.pop(at))
        else:
            lines.insert(at + 1, lines.pop(at))
        return "\n".join(lines)

    def mutated(self, text):
        kinds = (self.number, self.type, self.value, self.attribute, self.region, self.line)
        for _ in range(self.random.choice((1, 1, 2, 3))):
            text = self.random.choice(kinds)(text)
        return text


class MutatedIr(support.TestCase):
    def opt(self, text, flags):
        return support.run([LLAMAC_OPT, "--split-input-file", *flags], stdin=None, input=text, timeout=120)

    def failure(self, text, flags):
        """The failure; empty for a result and for a diagnostic."""
        try:
            result = self.opt(text, flags)
        except support.subprocess.TimeoutExpired:
            return "hangs"
        if result.returncode in (0, 1) and "LLVM ERROR" not in result.stderr:
            is_said = result.returncode == 0 or ": error: " in result.stderr
            return "" if is_said else f"fails without a word: {result.stderr[-300:]}"
        frames = [line.split(" ", 1)[-1].strip() for line in result.stderr.split("\n") if "llamac::" in line]
        return f"ends with {result.returncode}: {'; '.join(frames[:3]) or result.stderr[-300:]}"

    def seeds(self):
        """The modules of lit tests and of the driver's phases, in generic form."""
        texts = []
        for folder in ("ir", "passes", "codegen"):
            for parent, _, names in sorted(os.walk(os.path.join(TESTS, folder))):
                for name in sorted(name for name in names if name.endswith(".mlir")):
                    with open(os.path.join(parent, name), encoding="utf-8") as file:
                        texts += file.read().split("// -----")
        model = os.path.join(TESTS, "codegen", "cuda", "Inputs", "params.json")
        for phase in ("import", "graph", "fuse", "schedule"):
            for flags in (("--isa", "x86-64-v3"), ("--target", "cuda", "--gpu", "sm_90a"), ("--ranks", "2")):
                texts.append(self.llamac("compile", model, "--stop-after", phase, "-o", "-", *flags).stdout)
        flags = ["--mlir-print-op-generic", "--mlir-print-local-scope"]
        generic = self.opt(SEPARATOR.join(texts), flags).stdout.split("// -----")
        return [text.strip() for text in generic if text.count("\n") > 2]

    def test_every_pass_ends_with_a_result_or_a_diagnostic(self):
        seeds = self.seeds()
        self.assertGreater(len(seeds), 100)
        failures = {}
        for number in range(BATCHES):
            mutator = Mutator(number)
            modules = [mutator.mutated(mutator.random.choice(seeds)) for _ in range(BATCH)]
            for flags in passes():
                if not self.failure(SEPARATOR.join(modules), flags):
                    continue
                for module in modules:
                    if what := self.failure(module, flags):
                        failures.setdefault((" ".join(flags), what[:120]), (what, module))
        for (flags, _), (what, module) in failures.items():
            with self.subTest(flags):
                self.fail(f"llamac-opt {flags} {what}\n{module}")


if __name__ == "__main__":
    unittest.main()
