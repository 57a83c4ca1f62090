# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The program that runs where the GPU is: tests, then measurements, then what takes long and tells least."""

import json
import os
import shutil
import signal
import sys
import tempfile
import time
from functools import partial

import answers
import conformance
import process
import profiler
import ranks
import report
import roofline
from process import ProgramError, TimeOver
from shapes import SHAPES

# Seconds of all, of a case of conformance without a result, and of any other program in units of that.
BUDGET, QUICK_BUDGET = 520, 170
LIMIT, QUICK_LIMIT = 30, 15
QUICK_OPS = 2  # Cases of each kind of op.
PROGRAM_LIMITS = 4

# Tokens of a prompt that one step takes.
PROMPT = 512

# The published measurement of decode: 32 tokens in, 128 out, all but the first timed, five sequences to warm up and
# ten timed, a KV cache of 16,384 tokens.
WORKLOAD = ["--prompt-tokens", "32", "--gen-tokens", "127", "--warm-ups", "5", "--repeat", "10"]
POINTS = ["--prompt-tokens", "128,8064", "--batch", "1,16", "--gen-tokens", "64", "--warm-ups", "1", "--repeat", "3"]
# A model that takes long to load has one process, and the workload's length is a point of
# it.
LARGE_POINTS = ["--prompt-tokens", "32,128,8064", "--batch", "1,16", "--gen-tokens", "127"]
# These are more sequences than a long context leaves memory for.
WIDE_POINTS = ["--prompt-tokens", "128", "--batch", "32,64,128", "--gen-tokens", "64", "--warm-ups", "1"]
# The published measurement of throughput: so many requests at once, 128 tokens in and 128 out. The last also with
# --batch-invariant.
THROUGHPUT, SEQUENCES = ["--prompt-tokens", "128", "--gen-tokens", "128"], (1, 16, 32, 64, 128)
# A server's clients ask again: tokens in and out, or mixed lengths.
SERVING = ["--lengths", "128/128,1000/1000,mix", "--requests", "256", "--clients", "256"]
# A step in one launch beside the step of many, in turns.
ROUNDS = 3
RESIDENT_POINTS = ["--prompt-tokens", "128,8064", "--gen-tokens", "64", "--warm-ups", "1", "--repeat", "3"]
# The dry run's points.
TINY_RESIDENT_POINTS = ["--prompt-tokens", "8", "--gen-tokens", "6"]
TINY_WORKLOAD = ["--prompt-tokens", "4", "--gen-tokens", "2"]
TINY_POINTS = ["--prompt-tokens", "8,40", "--batch", "1,2", "--gen-tokens", "2"]
TINY_WIDE_POINTS = ["--prompt-tokens", "8", "--batch", "3,4", "--gen-tokens", "2"]
TINY_THROUGHPUT, TINY_SEQUENCES = ["--prompt-tokens", "8", "--gen-tokens", "3"], (1, 4)
TINY_SERVING = ["--lengths", "8/3", "--requests", "4", "--clients", "2", "--vocab", "256"]
TINY_PEERS = ["--device", "cpu", "--capacity", "64", "--prompt", "8", "--tokens", "4", "--rows", "32"]


class Check:
    """Every step is a method; one that fails is named in the results, and the next still runs. The results are
    written after each, so that what is known survives whatever comes."""

    def __init__(self, folder, out, options):
        self.folder, self.out, self.options = folder, os.path.abspath(out), options
        with open(os.path.join(folder, "check.json"), encoding="utf-8") as f:
            self.package = json.load(f)
        self.dry = self.package["dry_run"]
        self.budget = options.budget or (QUICK_BUDGET if options.quick else BUDGET)
        self.limit = options.limit or (QUICK_LIMIT if options.quick else LIMIT)
        self.cases_of_kind = options.ops or (QUICK_OPS if options.quick else None)
        self.results = {"dry_run": self.dry, "quick": options.quick, "problems": [], "left_out": []}
        self.results["step_s"] = {}
        self.env = os.environ | self.package["environment"]
        # The libraries that the dry run names come first: they replace those of the machine.
        libraries = [os.path.join(folder, "lib"), self.env.get("LD_LIBRARY_PATH", "")]
        self.env["LD_LIBRARY_PATH"] = ":".join(filter(None, libraries))
        # So that an index is the same GPU everywhere, nvidia-smi included.
        self.env.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
        if not self.env.get("LLAMAC_NVRTC_PATH") and (nvrtc := process.nvrtc_folder()):
            self.env["LLAMAC_NVRTC_PATH"] = nvrtc
        self.gpu = ["--gpu-index", str(options.gpu_index)]
        self.suite_command = [os.path.join(folder, "bin", "gpu_tests"), os.path.join(folder, "conformance")]
        self.suite = conformance.Suite([*self.suite_command, *self.gpu], self.env, self.limit)
        self.cases = []
        self.start = time.monotonic()
        self.step_end = self.start + self.budget

    def steps(self):
        """(name, work, share of the budget that it may take), the most telling first."""
        plans = self.package["plans"]
        first, *large = self.package["shapes"]
        plain = {plan["shape"]: plan for plan in plans if plan["weights"] == "bf16"}
        wide = {plan["shape"]: plan for plan in self.package["wide"]}
        yield "machine", self.machine, 0.1
        if self.options.profile:
            yield "bandwidth", self.bandwidth, 0.2
            for shape, plan in plain.items():
                yield f"profile {shape}", partial(self.profile, plan), 0.5
            return
        yield "wrappers", self.wrappers, 0.2
        yield "compile", self.compile, 0.25
        yield "ops", self.ops, 0.25
        yield "bandwidth", self.bandwidth, 0.2
        yield f"workload {first}", partial(self.workload, plain[first]), 0.3
        yield f"decode {first} bf16", partial(self.decode, plain[first]), 0.3
        yield f"kernels {first}", partial(self.kernels, plain[first]), 0.3
        if self.options.quick:
            return
        for shape in large:
            yield f"decode {shape} bf16", partial(self.decode, plain[shape]), 0.3
            yield f"kernels {shape}", partial(self.kernels, plain[shape]), 0.3
        for plan in self.package["resident"]:
            yield f"resident {plan['shape']} {plan['weights']}", partial(self.resident, plan), 0.2
        for shape in (*large, first):
            yield f"batches {shape}", partial(self.batches, wide[shape]), 0.2
        for shape in (*large, first):
            yield f"throughput {shape}", partial(self.throughput, wide[shape]), 0.3
        yield f"serving {first}", self.serving, 0.2
        yield f"answers {first}", partial(self.answers, plain[first]), 0.2
        yield f"rows {first}", partial(self.rows, plain[first]), 0.2
        yield f"fidelity {first}", partial(self.fidelity, plain[first]), 0.3
        for shape in (*large, first):
            for plan in plans:
                if plan["shape"] == shape and plan["weights"] != "bf16":
                    yield f"decode {shape} {plan['weights']}", partial(self.decode, plan), 0.3
        for shape in self.package["shapes"]:
            for command in ("decode", "products", "attention"):
                yield f"peer {command} {shape}", partial(self.peer_of, command, shape), 0.3
        yield f"ranks {first}", partial(self.ranks, plain[first]), 0.2
        for tool in ("memcheck", "synccheck"):
            yield tool, partial(self.sanitize, tool), 0.3

    def run(self):
        """The exit code: 0 where all was done and nothing is wrong."""
        os.makedirs(self.out, exist_ok=True)
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) != signal.SIG_IGN:  # nohup ignores SIGHUP.
                signal.signal(number, lambda number, _: sys.exit(128 + number))
        with tempfile.TemporaryDirectory() as cache:
            self.env["XDG_CACHE_HOME"] = cache
            listed = self.suite.list()
            if not listed.succeeded:
                # Without a GPU nothing else works either.
                print(f"gpu_check.sh: error: gpu_tests: {listed.describe(self.limit)}", file=sys.stderr)
                return listed.code if listed.code > 0 else 1
            self.cases = [case for case in conformance.parse_list(listed.out) if self.is_packed(case)]
            for name, work, share in self.steps():
                if process.is_chosen(name, self.options.steps):
                    self.step(name, work, share * self.budget)
        self.results.pop("running", None)
        self.save()
        print(report.table(self.results))
        return 1 if self.results["problems"] or self.results["left_out"] else 0

    def is_packed(self, case):
        """All wrappers are, and the cases of ops that were chosen."""
        return case.startswith("Wrappers/") or process.is_chosen(conformance.short_name(case), self.package["cases"])

    def step(self, name, work, most):
        self.results["running"] = name
        self.save()
        begin = time.monotonic()
        self.step_end = min(begin + most, self.start + self.budget)
        try:
            work()
        except TimeOver as error:
            self.results["left_out"].append(f"{name}: {error}" if str(error) else name)
        except ProgramError as error:
            self.results["problems"].append(f"{name}: {error}")
        except Exception as error:  # Whatever it is, the other steps still tell something.
            self.results["problems"].append(f"{name}: {type(error).__name__}: {error}")
        self.results["step_s"][name] = round(time.monotonic() - begin, 1)

    def save(self):
        self.results["seconds"] = round(time.monotonic() - self.start, 1)
        picture = roofline.svg(self.results)
        if picture:
            process.write_atomically(os.path.join(self.out, "roofline.svg"), picture)
        process.write_atomically(os.path.join(self.out, "results.json"), json.dumps(self.results, indent=1) + "\n")
        process.write_atomically(os.path.join(self.out, "results.md"), report.table(self.results))

    def left(self):
        """Seconds of this step."""
        return self.step_end - time.monotonic()

    def outcome(self, *command, env=None):
        """The outcome of a program, and the seconds that it had."""
        limit = min(self.limit * PROGRAM_LIMITS, self.left())
        if limit < 2:
            raise TimeOver
        outcome = process.run(command, env or self.env, limit)
        if outcome.late and limit < self.limit * PROGRAM_LIMITS:
            raise TimeOver(f"not done after {limit:.0f} s")
        return outcome, limit

    def call(self, *command, env=None):
        """The standard output of a program."""
        outcome, limit = self.outcome(*command, env=env)
        if not outcome.succeeded:
            raise ProgramError(outcome.describe(limit))
        return outcome.out

    def program(self, name):
        return os.path.join(self.folder, "bin", name)

    def plan_path(self, plan):
        return os.path.join(self.folder, plan["file"])

    def machine(self):
        self.results["gpu_index"] = self.options.gpu_index
        if self.dry:
            return
        fields = "name,driver_version,clocks.max.sm,clocks.max.mem,memory.total"
        device = process.visible_device(self.options.gpu_index, self.env)
        query = ["nvidia-smi", "-i", device, f"--query-gpu={fields}", "--format=csv,noheader"]
        self.results["machine"] = self.call(*query).strip()

    def conform(self, cases):
        counted = self.results.setdefault("conformance", {"passed": 0, "skipped": 0, "failed": [], "left_out": []})

        def done(results):
            for case, result in results.items():
                if result.is_good:
                    counted[result.kind] += 1
                    continue
                counted["failed"].append({"case": case, "result": result.kind, "message": result.message})
                self.results["problems"].append(f"{case}: {result.kind}")
            self.save()

        left_out = self.suite.run(cases, self.left, done)
        counted["left_out"] += left_out
        if left_out:
            raise TimeOver(f"{len(left_out)} of {len(cases)} cases")

    def cases_of(self, kind, count=None):
        cases = [case for case in self.cases if case.startswith(kind)]
        return conformance.few(cases, count) if count else cases

    def wrappers(self):
        """A micro-kernel for every PTX wrapper."""
        self.conform(self.cases_of("Wrappers/"))

    def compile(self):
        """The kernels of all plans of conformance come into the cache of cubins, so that a case without a result
        hangs, and does not compile."""
        self.call(*self.suite.command, "--compile")

    def ops(self):
        """Every kind of op against double precision."""
        self.conform(self.cases_of("Conformance/", self.cases_of_kind))

    def bandwidth(self):
        size = "1" if self.dry else "4096"
        self.results["bandwidth"] = json.loads(self.call(self.program("gpu_tests"), "--bandwidth", size, *self.gpu))

    def bench_command(self, plan, *flags):
        return [self.program("llamac-run"), "bench", self.plan_path(plan), "--random-weights", "1", *self.gpu, *flags]

    def bench_lines(self, plan, *flags):
        return [json.loads(line) for line in self.call(*self.bench_command(plan, "--json", *flags)).splitlines()]

    def bench(self, plan, flags):
        rows = self.bench_lines(plan, *flags)
        read = self.results.get("bandwidth", {}).get("read_gb_s")
        for row in rows:
            keys = (row["prompt_tokens"] + row["gen_tokens"] / 2) * row["batch"]
            row |= {"shape": plan["shape"], "weights": plan["weights"]}
            row["gb_per_step"] = SHAPES[plan["shape"]].bytes_per_step(plan["bits"], keys) / 1e9
            row["share"] = row["gb_per_step"] / row["step_ms"] * 1e3 / read if read else None
        return rows

    def workload(self, plan):
        """The published one, with the kernels compiled at load, and with those in the cache."""
        rows = self.results.setdefault("workload", [])
        for cache in ("cold", "warm"):
            rows += [row | {"cache": cache} for row in self.bench(plan, TINY_WORKLOAD if self.dry else WORKLOAD)]

    def decode(self, plan):
        """Several depths and batches, all of one process: the weights are made once."""
        points = POINTS if plan["shape"] == self.package["shapes"][0] else LARGE_POINTS
        self.results.setdefault("decode", []).extend(self.bench(plan, TINY_POINTS if self.dry else points))

    def resident(self, plan):
        """A step in one launch has the bits of the step of many launches; decode of both, in turns."""
        many = plan | {"file": plan["many"]}
        name = {"shape": plan["shape"], "weights": plan["weights"]}
        rows = self.results.setdefault("resident", [])
        lines = self.bench_lines(plan, "--kernels", "--prompt-tokens", "4", "--gen-tokens", "2")
        if not any(kernel["kernel"] == "resident_step" for line in lines for kernel in line["kernels"]):
            rows.append(name | {"runs": False})
            raise ProgramError("expected a GPU on which all blocks of the step fit at once")
        history, out = self.tokens(plan["shape"], 6 if self.dry else 160), os.path.join(self.out, "logits.npy")
        found = []
        for each in (many, plan):
            self.write_logits(self.plan_path(each), history, 1, out)
            with open(out, "rb") as f:
                found.append(f.read())
            os.remove(out)
        same = found[0] == found[1]
        points = TINY_RESIDENT_POINTS if self.dry else RESIDENT_POINTS
        measured = []
        for _ in range(1 if self.dry else ROUNDS):
            measured.append([self.bench(each, points) for each in (many, plan)])
        for i, point in enumerate(measured[0][0]):
            row = name | {"runs": True, "same_bits": same, "prompt_tokens": point["prompt_tokens"]}
            for side, which in enumerate(("many_ms", "one_ms")):
                row[which] = [bench[side][i]["step_ms"] for bench in measured]
            rows.append(row)
        if not same:
            raise ProgramError("expected the bits of the step of many launches, got others")

    def batches(self, plan):
        """Decode of many sequences."""
        rows = self.bench(plan, TINY_WIDE_POINTS if self.dry else WIDE_POINTS)
        self.results.setdefault("decode", []).extend(rows)

    def throughput(self, plan):
        """Tokens of all answers over the time of prompts and answers, of requests that come at once."""
        rows = self.results.setdefault("throughput", [])
        sequences = TINY_SEQUENCES if self.dry else SEQUENCES
        for count, invariant in [*((count, []) for count in sequences), (sequences[-1], ["--batch-invariant"])]:
            flags = [*(TINY_THROUGHPUT if self.dry else THROUGHPUT), *invariant]
            (row,) = self.bench_lines(plan, "--requests", str(count), "--batch", str(count), *flags)
            row |= {"shape": plan["shape"], "weights": plan["weights"], "batch_invariant": bool(invariant)}
            rows.append(row)

    def serving(self):
        """Many requests at once, by the engine and through a server."""
        plan = self.package["served"]
        command = [sys.executable, os.path.join(self.folder, "python", "throughput.py"), self.plan_path(plan), "--json"]
        command += ["--tool", self.program("llamac-run"), *(TINY_SERVING if self.dry else SERVING)]
        lines = self.call(*command, "--", "--random-weights", "1", *self.gpu).splitlines()
        self.results["serving"] = [{"shape": plan["shape"], "weights": plan["weights"]} | json.loads(line) for line in lines]

    def profile(self, plan):
        """Nsight Compute's figures for the largest kernels."""
        program = find_tool("ncu", self.env)
        if not program:
            self.results["profile"] = profiler.MISSING
            raise ProgramError(profiler.MISSING)
        for work, flags in (profiler.TINY_WORKS if self.dry else profiler.WORKS).items():
            found = self.bench_lines(plan, "--kernels", *flags)
            largest = profiler.largest(found, work)
            name = f"ncu {plan['shape']} {work}.csv".replace(" ", "-")
            log = os.path.join(self.out, name)
            command = [program, *profiler.options(largest, log), *self.bench_command(plan, *flags)]
            outcome, limit = self.outcome(*command)
            text = profiler.read(log)
            if profiler.NO_PERMISSION in text + outcome.out + outcome.err:
                self.results["profile"] = profiler.REFUSED
                raise ProgramError(profiler.REFUSED)
            if not outcome.succeeded:
                raise ProgramError(outcome.describe(limit))
            rows = profiler.rows(text, largest)
            self.results.setdefault("profile", []).extend({"shape": plan["shape"], "work": work} | row for row in rows)

    def tokens(self, shape, count):
        return ",".join(str((7919 * i + 11) % SHAPES[shape].vocab) for i in range(count))

    def kernels(self, plan):
        """Each kernel of a prompt, as long as one step takes, and of the steps after it."""
        trace = os.path.join(self.out, f"trace-{plan['shape']}.json")
        prompt = ["--tokens", self.tokens(plan["shape"], 40 if self.dry else PROMPT), "-n", "4", "--print-ids"]
        flags = ["--ignore-eos", "-q", "--random-weights", "1", "--trace", trace, *self.gpu]
        self.call(self.program("llamac-run"), self.plan_path(plan), *prompt, *flags)
        with open(trace, encoding="utf-8") as f:
            launches = [event for event in json.load(f)["traceEvents"] if event["ph"] == "X"]
        self.results.setdefault("kernels", []).extend(kernel_rows(plan["shape"], launches))

    def peer(self, command, shape, *flags):
        """A peer on the same GPU, the only one that it sees. Without PyTorch there is none."""
        if not self.has_module("torch"):
            return None
        env = self.env | {"CUDA_VISIBLE_DEVICES": process.visible_device(self.options.gpu_index, self.env)}
        out = self.call(
            *(sys.executable, os.path.join(os.path.dirname(__file__), "peers.py"), command, "--shape", shape, *flags),
            env=env | {"LD_LIBRARY_PATH": os.environ.get("LD_LIBRARY_PATH", "")},
        )
        return json.loads(out.splitlines()[-1])

    def has_module(self, name):
        self.results[name] = process.run([sys.executable, "-c", f"import {name}"], os.environ, self.limit).succeeded
        return self.results[name]

    def peer_of(self, command, shape):
        """PyTorch on the same GPU, in the same run."""
        row = self.peer(command, shape, *(TINY_PEERS if self.dry else ["--rows", str(PROMPT)]))
        self.results.setdefault("peers", []).extend([row] if row else [])

    def fidelity(self, plan):
        """The plan's logits, token by token, and plain bf16 execution's against fp32, of the same weights."""
        if not self.has_module("torch") or not self.has_module("xxhash"):
            return
        logits = os.path.join(self.out, "logits.npy")
        history = self.tokens(plan["shape"], 40 if self.dry else 160)
        self.write_logits(self.plan_path(plan), history, 1, logits)
        flags = ["--tokens-of", history, "--logits", logits, "--seed", "1"] + (["--device", "cpu"] if self.dry else [])
        try:
            row = self.peer("fidelity", plan["shape"], *flags)
        finally:
            os.remove(logits)
        self.results.setdefault("fidelity", []).append(row)
        if max(row["excess_kl_upper95"], row["excess_nll_error_upper95"]) > 0:
            raise ProgramError(f"further from fp32 than plain bf16 execution: {row}")

    def write_logits(self, plan, history, chunk, out, env=None):
        flags = ["--random-weights", "1", "--tokens", history, "--chunk", str(chunk), "-o", out, *self.gpu]
        self.call(self.program("llamac-run"), "logits", plan, *flags, env=env)

    def answers(self, plan):
        """Random requests, few at a time and all together, in other orders and cuts: with --batch-invariant each has
        the same bits."""
        vocab = SHAPES[plan["shape"]].vocab
        # So many pages hold one long request, or a few short ones.
        pages = ["--kv-pages", "4"]
        wanted = answers.requests(*((6, vocab, 40, 4) if self.dry else (64, vocab, 200, 32)))
        rows = self.results["answers"] = []
        with tempfile.TemporaryDirectory() as folder:

            def lines_of(flags, reverse=False):
                prompts, out = os.path.join(folder, "requests.jsonl"), os.path.join(folder, "answers.jsonl")
                with open(prompts, "w", encoding="utf-8") as f:
                    f.writelines(json.dumps(request) + "\n" for request in wanted[:: -1 if reverse else 1])
                command = [self.program("llamac-run"), "generate", self.plan_path(plan), "--batch-invariant"]
                command += ["--random-weights", "1", "--prompts", prompts, "-o", out, "--print-ids", "-q"]
                self.call(*command, *self.gpu, *flags)
                with open(out, encoding="utf-8") as f:
                    lines = f.readlines()
                os.remove(out)
                return lines

            few = lines_of(["--no-prefix-cache", *pages])
            for name, (flags, reverse) in answers.RUNS.items():
                found = lines_of(pages if name == "little memory" else flags, reverse)
                different = answers.differing(found, few)
                rows.append({"shape": plan["shape"], "run": name, "answers": len(few), "different": different})
        if wrong := [row for row in rows if row["different"]]:
            raise ProgramError(f"expected the same bits whatever runs beside an answer, got {wrong}")

    def rows(self, plan):
        """Compares the rows of the same tokens, alone and beside others, in each launch: the first that differs is
        where answers that depend on their neighbours begin to."""
        command = [self.program("gpu_tests"), "--rows", "4" if self.dry else "16", self.plan_path(plan), *self.gpu]
        row = self.results["rows"] = {"shape": plan["shape"]} | json.loads(self.call(*command).splitlines()[-1])
        if row["difference"]:
            raise ProgramError(f"the first launch whose rows differ: {row['difference']}")

    def has_two_gpus(self):
        """Whether two ranks can have a GPU each."""
        command = [*self.suite_command, "--gpu-index", "1", "--gtest_list_tests"]
        return process.run(command, self.env, self.limit).succeeded

    def ranks(self, plan):
        """Logits of two ranks, which share a GPU where there is no other, beside one's; in a prompt and token by
        token, twice."""
        gpus = 2 if self.has_two_gpus() else 1
        shared = self.env | {"NCCL_MULTI_RANK_GPU_ENABLE": "1"}
        split = os.path.join(self.folder, self.package["ranks"])
        length = 3 if self.dry else 12
        history = self.tokens(plan["shape"], length)
        rows = self.results["ranks"] = []
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "logits.npy")

            def logits_of(path, chunk, env=None):
                self.write_logits(path, history, chunk, out, env)
                return ranks.logits(out)

            for chunk in (length, 1):
                try:
                    found = logits_of(split, chunk, shared)
                except ProgramError as error:
                    reason = ranks.why_not(str(error), gpus)
                    if not reason:
                        raise
                    self.results["ranks"] = f"not run: {reason}"
                    return
                is_same = logits_of(split, chunk, shared) == found
                apart = ranks.difference(found, logits_of(self.plan_path(plan), chunk))
                row = {"shape": plan["shape"], "gpus": gpus, "chunk": chunk, "difference": apart}
                rows.append(row | {"same_bits_twice": is_same})
        wrong = [row for row in rows if row["difference"] > ranks.TOLERANCE or not row["same_bits_twice"]]
        if wrong:
            raise ProgramError(f"expected logits within {ranks.TOLERANCE} of one rank's, the same twice, got {wrong}")

    def sanitize(self, tool):
        """Wrappers and an op of each family under compute-sanitizer, which the dry run has nothing for."""
        program = None if self.dry else find_tool("compute-sanitizer", self.env)
        if not program:
            self.results["sanitizer"] = "no compute-sanitizer on PATH or in CUDA_HOME/bin"
            return
        cases = self.cases_of("Wrappers/") + self.cases_of("Conformance/", 1)
        seconds = self.left()
        if seconds < self.limit:
            raise TimeOver
        row, text = conformance.sanitize(program, tool, self.suite, cases, seconds)
        process.write_atomically(os.path.join(self.out, f"{tool}.log"), text)
        self.results.setdefault("sanitizer", []).append(row)
        if row["errors"]:
            raise ProgramError(f"{row['errors']} errors, see {tool}.log: {row['first']}")
        if not row["finished"]:
            raise TimeOver(f"{row['ended']} of {row['cases']} cases after {seconds:.0f} s, without an error")


def kernel_rows(shape, launches):
    """The median launch of each kernel, of the prompt's step and of the later ones."""
    groups = {}
    for launch in launches:
        key = ("prompt" if launch["args"]["step"] == 0 else "step", launch["args"]["kernel"])
        groups.setdefault(key, []).append(launch)
    rows = []
    for (part, kernel), members in groups.items():
        middle = sorted(members, key=lambda launch: launch["dur"])[len(members) // 2]
        row = {"shape": shape, "part": part, "kernel": kernel, "launches": len(members), "us": middle["dur"]}
        row |= {"bytes": middle["args"]["bytes"], "operations": middle["args"]["operations"]}
        row["gb_s"] = row["bytes"] / max(row["us"], 1e-3) / 1e3
        row["tflops"] = row["operations"] / max(row["us"], 1e-3) / 1e6
        rows.append(row)
    return rows


def find_tool(name, env):
    """A program of CUDA's."""
    home = os.path.join(env["CUDA_HOME"], "bin") if env.get("CUDA_HOME") else ""
    return shutil.which(name, path=os.pathsep.join(filter(None, (env.get("PATH"), home))))
