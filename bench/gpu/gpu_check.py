#!/usr/bin/env python3
# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What scripts/gpu_check.sh does.

gpu_check.py pack FOLDER       where llamac is built: packs all that a GPU's machine needs
gpu_check.py run FOLDER OUT    on that machine: tests, then measures; results.json and results.md in OUT
gpu_check.py dry-run FOLDER    both, with tiny models, on the fake driver of the tests
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from shapes import SHAPES

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MOST_BYTES = 60_000_000
BUDGET = 520  # Seconds; what does not fit is left out by name.

PARAMS = {
    "1b": "tests/compiler/Inputs/shapes/llama-3.2-1b",
    "8b": "tests/compiler/Inputs/shapes/llama-3.1-8b",
}
TINY = {"dim": 64, "n_layers": 2, "n_heads": 4, "n_kv_heads": 2, "vocab_size": 96, "multiple_of": 256, "norm_eps": 1e-5}
TINY |= {"rope_theta": 500000.0}
BITS = {"bf16": 16, "q8_0": 8.5, "mxfp8": 8.25, "q4_0": 4.5}
GLIBC = ("linux-vdso", "ld-linux", "libc.so", "libm.so", "libpthread", "libdl", "librt")

# Tokens of a prompt that one step takes.
PROMPT = 512

# The published measurement of decode: 32 tokens in, 128 out, all but the first timed, five sequences to warm up and
# ten timed, a KV cache of 16,384 tokens.
WORKLOAD = ["--prompt-tokens", "32", "--gen-tokens", "127", "--warm-ups", "5", "--repeat", "10"]


def main():
    command, folder = sys.argv[1], os.path.abspath(sys.argv[2])
    if command == "pack":
        pack(folder, ["1b", "8b"])
    elif command == "run":
        sys.exit(Check(folder, sys.argv[3]).run())
    elif command == "dry-run":
        pack(folder, ["tiny"])
        sys.exit(dry_run(folder))
    else:
        sys.exit(f"gpu_check: expected pack, run or dry-run, got {command}")


# ---------------------------------------------------------------------------------------------------------------------
# Where llamac is built
# ---------------------------------------------------------------------------------------------------------------------


def build_folder():
    return os.environ.get("LLAMAC_BUILD", os.path.join(ROOT, "build"))


def pack(folder, shapes):
    """Copies programs and the libraries they need, and compiles the plans; none has weights."""
    build = build_folder()
    os.makedirs(os.path.join(folder, "plans"), exist_ok=True)
    programs = [os.path.join(build, "bin", "llamac-run"), os.path.join(build, "tests", "gpu_tests")]
    for kind in ("bin", "lib"):
        os.makedirs(os.path.join(folder, kind), exist_ok=True)
    for program in programs:
        shutil.copy(program, os.path.join(folder, "bin"))
        listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
        for line in listed.splitlines():
            words = line.split()
            if len(words) > 2 and words[1] == "=>" and not words[0].startswith(GLIBC):
                shutil.copy(words[2], os.path.join(folder, "lib", words[0]))
    subprocess.run(
        [os.path.join(build, "tests", "conformance_tests"), "--record", "cuda", os.path.join(folder, "conformance")],
        check=True,
    )
    plans = []
    for shape in shapes:
        for weights in BITS:
            plan = {"shape": shape, "weights": weights, "file": f"plans/{shape}-{weights}.plan"}
            compile_plan(shape, weights, "cuda", os.path.join(folder, plan["file"]))
            plans.append(plan)
    with open(os.path.join(folder, "check.json"), "w") as f:
        json.dump({"plans": plans, "shapes": shapes}, f, indent=1)
    here = os.path.dirname(os.path.abspath(__file__))
    for file in (
        os.path.join(here, "gpu_check.py"),
        os.path.join(here, "peers.py"),
        os.path.join(here, "shapes.py"),
        os.path.join(ROOT, "scripts", "gpu_check.sh"),
    ):
        shutil.copy(file, folder)
    size = sum(os.path.getsize(os.path.join(at, name)) for at, _, names in os.walk(folder) for name in names)
    if size > MOST_BYTES:
        sys.exit(f"gpu_check: {folder}: expected at most {MOST_BYTES} bytes, got {size}")
    print(f"{folder}: {size / 1e6:.1f} MB")


def compile_plan(shape, weights, target, path):
    if shape == "tiny":
        model = os.path.join(os.path.dirname(path), "tiny")
        os.makedirs(model, exist_ok=True)
        with open(os.path.join(model, "params.json"), "w") as f:
            json.dump(TINY, f)
    else:
        model = os.path.join(ROOT, PARAMS[shape])
    context, parallel = ("256", "4") if shape == "tiny" else ("16384", "16")
    command = [os.path.join(build_folder(), "bin", "llamac"), "compile", model, "--no-weights", "--target", target]
    command += ["--gpu", "sm_90a", "-c", context, "--parallel", parallel, "-q", "-o", path]
    command += ["--weights", weights] if weights != "bf16" else []
    subprocess.run(command, check=True)


def dry_run(folder):
    """Runs the package on the fake driver, whose kernels are those of plans for sim."""
    sim = os.path.join(folder, "sim")
    subprocess.run([os.path.join(build_folder(), "tests", "conformance_tests"), "--record", "sim", sim], check=True)
    for weights in BITS:
        compile_plan("tiny", weights, "sim", os.path.join(sim, f"tiny-{weights}.plan"))
    kernels = sorted(os.path.join(sim, name) for name in os.listdir(sim) if name.endswith((".plan", ".sim")))
    fake_driver = os.path.join(build_folder(), "tests", "fake-cuda")
    os.environ |= {"LLAMAC_FAKE_PLAN": ":".join(kernels), "LLAMAC_NVRTC_PATH": fake_driver}
    os.environ["LD_LIBRARY_PATH"] = fake_driver
    return Check(folder, folder, dry=True).run()


# ---------------------------------------------------------------------------------------------------------------------
# Where the GPU is
# ---------------------------------------------------------------------------------------------------------------------


class Check:
    """Every step is a method; one that fails is named in the results, and the next still runs."""

    def __init__(self, folder, out, dry=False):
        self.folder, self.out, self.dry = folder, os.path.abspath(out), dry
        self.results = {"dry_run": dry, "problems": []}
        with open(os.path.join(folder, "check.json")) as f:
            self.package = json.load(f)
        libraries = [os.path.join(folder, "lib"), os.environ.get("LD_LIBRARY_PATH", "")]
        self.env = os.environ | {"LD_LIBRARY_PATH": ":".join(filter(None, libraries))}
        self.start = time.monotonic()

    def run(self):
        os.makedirs(self.out, exist_ok=True)
        with tempfile.TemporaryDirectory() as cache:
            self.env["XDG_CACHE_HOME"] = cache
            for step in (
                self.machine,
                self.bandwidth,
                self.conformance,
                self.decode,
                self.kernels,
                self.fidelity,
                self.peers,
            ):
                try:
                    step()
                except (OSError, ValueError, KeyError, RuntimeError, subprocess.SubprocessError) as error:
                    self.results["problems"].append(f"{step.__name__}: {error}")
        self.results["seconds"] = round(time.monotonic() - self.start, 1)
        with open(os.path.join(self.out, "results.json"), "w") as f:
            json.dump(self.results, f, indent=1)
        table = self.table()
        with open(os.path.join(self.out, "results.md"), "w") as f:
            f.write(table)
        print(table)
        return 1 if self.results["problems"] else 0

    def left(self):
        return BUDGET - (time.monotonic() - self.start)

    def call(self, *command, limit=240):
        """The standard output of a program of the package."""
        if self.left() < 5:
            raise RuntimeError("left out, the time is over")
        program = os.path.join(self.folder, "bin", command[0])
        result = subprocess.run(
            [program, *command[1:]], capture_output=True, text=True, env=self.env, timeout=min(limit, self.left())
        )
        if result.returncode != 0:
            raise RuntimeError(f"{' '.join(command[:3])}: exit code {result.returncode}: {result.stderr.strip()[-600:]}")
        return result.stdout

    def machine(self):
        if self.dry:
            return
        fields = "name,driver_version,clocks.max.sm,clocks.max.mem,memory.total"
        result = subprocess.run(
            ["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader"], capture_output=True, text=True, timeout=60
        )
        self.results["machine"] = result.stdout.strip()

    def bandwidth(self):
        self.results["bandwidth"] = json.loads(self.call("gpu_tests", "--bandwidth", "1" if self.dry else "4096"))

    def conformance(self):
        """Every op and wrapper. The message of a failure is recorded."""
        command = [
            os.path.join(self.folder, "bin", "gpu_tests"),
            os.path.join(self.folder, "conformance"),
            "--gtest_brief=1",
        ]
        result = subprocess.run(command, capture_output=True, text=True, env=self.env, timeout=240)
        lines = result.stdout.splitlines()
        passed = [int(line.split()[3]) for line in lines if line.startswith("[  PASSED  ]")]
        failed = sorted({line.split()[3] for line in lines if line.startswith("[  FAILED  ] ") and "." in line})
        self.results["conformance"] = {"passed": passed[0] if passed else 0, "failed": failed}
        if result.returncode != 0 or failed:
            with open(os.path.join(self.out, "conformance.log"), "w") as f:
                f.write(result.stdout + result.stderr)
            raise RuntimeError(f"{len(failed)} failed, exit code {result.returncode}: see conformance.log")

    def bench(self, plan, *flags):
        out = self.call(
            *("llamac-run", "bench", os.path.join(self.folder, plan["file"]), "--random-weights", "1", "--json", *flags)
        )
        rows = [json.loads(line) for line in out.splitlines()]
        for row in rows:
            keys = (row["prompt_tokens"] + row["gen_tokens"] / 2) * row["batch"]
            row |= {"shape": plan["shape"], "weights": plan["weights"]}
            row["gb_per_step"] = bytes_per_step(plan["shape"], plan["weights"], keys) / 1e9
            row["share"] = row["gb_per_step"] / row["step_ms"] * 1e3 / self.results["bandwidth"]["read_gb_s"]
        return rows

    def decode(self):
        """First the published workload, loaded cold and then warm; then each format at two depths and batches."""
        self.results["workload"], self.results["decode"] = [], []
        small = ["--prompt-tokens", "4", "--gen-tokens", "3", "--warm-ups", "1", "--repeat", "2"]
        for plan in self.package["plans"]:
            if plan["weights"] == "bf16":
                for load in ("cold", "warm"):
                    row = self.bench(plan, *(small if self.dry else WORKLOAD))[0]
                    self.results["workload"].append(row | {"load": load})
        for plan in self.package["plans"]:
            depths, batches = ("8,40", "1,4") if self.dry else ("128,8064", "1,16")
            flags = ["--prompt-tokens", depths, "--batch", batches, "--gen-tokens", "8" if self.dry else "64"]
            self.results["decode"] += self.bench(plan, *flags)

    def bf16_plans(self):
        return [plan for plan in self.package["plans"] if plan["weights"] == "bf16"]

    def tokens(self, shape, count):
        return ",".join(str((7919 * i + 11) % SHAPES[shape].vocab) for i in range(count))

    def kernels(self):
        """Each kernel of a prompt, as long as one step takes, and of the steps after it."""
        self.results["kernels"] = []
        for plan in self.bf16_plans():
            trace = os.path.join(self.out, f"trace-{plan['shape']}.json")
            prompt = ["--tokens", self.tokens(plan["shape"], 40 if self.dry else PROMPT), "-n", "4", "--print-ids"]
            path = os.path.join(self.folder, plan["file"])
            self.call("llamac-run", path, *prompt, "--ignore-eos", "-q", "--random-weights", "1", "--trace", trace)
            with open(trace) as f:
                launches = [event for event in json.load(f)["traceEvents"] if event["ph"] == "X"]
            groups = {}
            for launch in launches:
                key = ("prompt" if launch["args"]["step"] == 0 else "step", launch["args"]["kernel"])
                groups.setdefault(key, []).append(launch)
            for (part, kernel), members in groups.items():
                middle = sorted(members, key=lambda launch: launch["dur"])[len(members) // 2]
                row = {
                    "shape": plan["shape"],
                    "part": part,
                    "kernel": kernel,
                    "launches": len(members),
                    "us": middle["dur"],
                }
                row["gb_s"] = middle["args"]["bytes"] / max(middle["dur"], 1e-3) / 1e3
                row["tflops"] = middle["args"]["operations"] / max(middle["dur"], 1e-3) / 1e6
                self.results["kernels"].append(row)

    def has_torch(self):
        found = subprocess.run([sys.executable, "-c", "import torch"], capture_output=True).returncode == 0
        self.results["torch"] = found
        return found

    def peer(self, command, shape, *flags):
        if self.left() < 30:
            raise RuntimeError(f"{command} {shape}: left out, the time is over")
        result = subprocess.run(
            [sys.executable, os.path.join(self.folder, "peers.py"), command, "--shape", shape, *flags],
            capture_output=True,
            text=True,
            timeout=self.left(),
        )
        if result.returncode != 0:
            raise RuntimeError(f"{command} {shape}: {result.stderr.strip()[-600:]}")
        return json.loads(result.stdout.splitlines()[-1])

    def fidelity(self):
        """The plan's logits, token by token, and plain bf16 execution's against fp32, of the same weights."""
        self.results["fidelity"] = []
        modules = [sys.executable, "-c", "import torch, xxhash"]
        if subprocess.run(modules, capture_output=True).returncode != 0:
            return
        for plan in self.bf16_plans()[:1]:
            logits = os.path.join(self.out, "logits.npy")
            history = self.tokens(plan["shape"], 40 if self.dry else 160)
            path = os.path.join(self.folder, plan["file"])
            self.call(
                "llamac-run", "logits", path, "--random-weights", "1", "--tokens", history, "--chunk", "1", "-o", logits
            )
            flags = ["--tokens-of", history, "--logits", logits, "--seed", "1"] + (
                ["--device", "cpu"] if self.dry else []
            )
            row = self.peer("fidelity", plan["shape"], *flags)
            os.remove(logits)
            self.results["fidelity"].append(row)
            if max(row["excess_kl_upper95"], row["excess_nll_error_upper95"]) > 0:
                raise RuntimeError(f"{plan['shape']}: further from fp32 than plain bf16 execution: {row}")

    def peers(self):
        """PyTorch on the same GPU, in the same run."""
        self.results["peers"] = []
        if not self.has_torch():
            return
        small = ["--device", "cpu", "--capacity", "64", "--prompt", "8", "--tokens", "4", "--rows", "32"]
        for command in ("decode", "products", "attention"):
            for shape in self.package["shapes"]:
                self.results["peers"].append(
                    self.peer(command, shape, *(small if self.dry else ["--rows", str(PROMPT)]))
                )

    def table(self):
        """The results for people."""
        results = self.results
        lines = []
        if self.dry:
            lines += ["**A dry run on a fake driver: times mean nothing.**", ""]
        bandwidth = results.get("bandwidth", {})
        lines += [f"{bandwidth.get('device')}; {results.get('machine', '')}", ""]
        lines += [f"Read {bandwidth.get('read_gb_s')} GB/s, copy {bandwidth.get('copy_gb_s')} GB/s (read and written)."]
        conformance = results.get("conformance", {})
        lines += [f"Conformance: {conformance.get('passed')} passed, {len(conformance.get('failed', []))} failed.", ""]
        lines += [
            "| model | weights | prompt | batch | ms a step | GB a step | share of read | prefill tok/s | load s |"
        ]
        lines += ["|---|---|---|---|---|---|---|---|---|"]
        for row in results.get("workload", []) + results.get("decode", []):
            load = f"{row['load_s']:.2f}" + (f" ({row['load']})" if "load" in row else "")
            lines += [
                f"| {row['shape']} | {row['weights']} | {row['prompt_tokens']} | {row['batch']} | {row['step_ms']:.3f} "
                f"| {row['gb_per_step']:.2f} | {100 * row['share']:.1f} % | {row['prefill_tok_s']:.0f} | {load} |"
            ]
        lines += [
            "",
            "| model | of a | kernel | launches | us each | GB/s | TFLOP/s |",
            "|---|---|---|---|---|---|---|",
        ]
        for row in results.get("kernels", []):
            cells = [row["shape"], row["part"], row["kernel"], str(row["launches"])]
            cells += [f"{row['us']:.1f}", f"{row['gb_s']:.0f}", f"{row['tflops']:.1f}"]
            lines += ["| " + " | ".join(cells) + " |"]
        for row in results.get("fidelity", []):
            plan, plain = row["plan"], row["bf16"]
            lines += ["", f"{row['shape']} against fp32 on {row['positions']} tokens:", ""]
            lines += ["| | plan | plain bf16 | upper bound of the excess |", "|---|---|---|---|"]
            for what, key in (("mean KL", "kl"), ("mean error of NLL", "nll_error")):
                figures = plan[f"mean_{key}"], plain[f"mean_{key}"], row[f"excess_{key}_upper95"]
                lines += [f"| {what} | " + " | ".join(f"{figure:.3g}" for figure in figures) + " |"]
        peers = results.get("peers", [])
        if peers:
            lines += ["", f"PyTorch {peers[0]['torch']}", "", "| peer | model | figure |", "|---|---|---|"]
            for row in peers:
                if row["command"] == "decode":
                    figure = f"{row['ms_per_token']:.3f} ms a token"
                elif row["command"] == "attention":
                    figure = f"{row['tflops']:.0f} TFLOP/s, {row['rows']} rows"
                else:
                    speeds = {name: product["tflops"] for name, product in row["products"].items()}
                    figure = ", ".join(f"{name} {speed:.0f}" for name, speed in speeds.items())
                    figure += f" TFLOP/s, median {statistics.median(speeds.values()):.0f}, {row['rows']} rows"
                lines += [f"| {row['command']} | {row['shape']} | {figure} |"]
        if results["problems"]:
            lines += ["", "Problems:", ""] + [f"- {problem}" for problem in results["problems"]]
        return "\n".join(lines + ["", f"{results['seconds']} s in all.", ""])


def bytes_per_step(shape, weights, keys):
    """What a step of decode reads at least: each matrix and norm once, and `keys` keys and values in 16 bits."""
    s = SHAPES[shape]
    layer = s.dim * s.head * (2 * s.heads + 2 * s.kv_heads) + 3 * s.dim * s.ffn
    matrices = s.layers * layer + s.vocab * s.dim
    norms = (2 * s.layers + 1) * s.dim * 4
    return matrices * BITS[weights] / 8 + norms + keys * s.layers * s.kv_heads * s.head * 4


if __name__ == "__main__":
    main()
