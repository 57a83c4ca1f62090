# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""scripts/gpu_check.sh: its parts, and from start to end, packed and run on the fake driver with a tiny model."""

import argparse
import contextlib
import dataclasses
import importlib
import json
import os
import signal
import stat
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock
import xml.etree.ElementTree

import support

SCRIPT = os.path.join(support.ROOT, "scripts", "gpu_check.sh")
BENCH = os.path.join(support.ROOT, "bench", "gpu")
sys.path.insert(0, BENCH)
import answers  # noqa: E402
import check  # noqa: E402
import compare  # noqa: E402
import conformance  # noqa: E402
import gguf_file  # noqa: E402
import package  # noqa: E402
import process  # noqa: E402
import profiler  # noqa: E402
import ranks  # noqa: E402
import report  # noqa: E402
import roofline  # noqa: E402
from shapes import SHAPES  # noqa: E402

ENV = os.environ | {"LLAMAC_BUILD": os.path.dirname(support.BIN_DIR), "LLAMAC_PYTHON": sys.executable}


def options(**changes):
    """Options like those that gpu_check.py parses."""
    plain = {
        "budget": None,
        "limit": None,
        "quick": False,
        "profile": False,
        "steps": None,
        "ops": None,
        "gpu_index": 0,
    }
    return argparse.Namespace(**plain | changes)


def gpu_check(*args, script=SCRIPT, **env):
    return subprocess.run([script, *args], capture_output=True, text=True, env=ENV | env, timeout=600)


def kernel(name, part="step", us=10.0, size=1_000_000, operations=2_000_000, shape="1b"):
    launch = {"dur": us, "args": {"kernel": name, "step": 0 if part == "prompt" else 1}}
    launch["args"] |= {"bytes": size, "operations": operations}
    return check.kernel_rows(shape, [launch])[0]


def results(**changes):
    """Results like those that check.py writes."""
    row = {"shape": "1b", "weights": "bf16", "step_ms": 0.8, "load_s": 2.0, "prefill_tok_s": 9000, "batch": 1}
    row |= {"prompt_tokens": 32, "gb_per_step": 2.5, "share": 0.7}
    found = {"dry_run": False, "problems": [], "left_out": [], "seconds": 1.0}
    found["bandwidth"] = {"device": "cuda, A", "architecture": "sm_90a", "read_gb_s": 3000.0, "copy_gb_s": 2800.0}
    found |= {"workload": [row | {"cache": "cold"}], "decode": [row | {"prompt_tokens": 128}]}
    found["kernels"] = [kernel("gemv"), kernel("gemm", "prompt", 50.0, 1_000_000, 9_000_000_000)]
    products = {"qkv": {"ms": 0.1, "tflops": 500.0}}
    throughput = {"shape": "1b", "weights": "bf16", "output_tok_s": 9000.0, "seconds": 2.0}
    found["throughput"] = [throughput | {"sequences": 128, "batch_invariant": wanted} for wanted in (False, True)]
    engine = {"output_tok_s": 9000.0, "total_tok_s": 18000.0, "host_share": 0.02}
    times = {"ttft_s": {"p50": 0.1, "p99": 0.2}, "itl_s": {"p50": 0.01, "p99": 0.02}}
    found["serving"] = [
        {"shape": "1b", "weights": "bf16", "lengths": "128/128", "requests": 256, "clients": 256, "serve_share": 0.95}
        | {"engine": engine, "serve": times | {"output_tok_s": 8550.0, "total_tok_s": 17100.0}}
    ]
    found["peers"] = [
        {"command": "decode", "shape": "1b", "ms_per_token": 1.0, "torch": "2"},
        {"command": "attention", "shape": "1b", "tflops": 300.0, "rows": 512, "torch": "2"},
        {"command": "products", "shape": "1b", "products": products, "rows": 512, "torch": "2"},
    ]
    return found | changes


class Usage(unittest.TestCase):
    def test_what_is_wrong_is_one_line_and_exit_code_2(self):
        for args, words in [
            ((), "VERB"),
            (("try",), "try"),
            (("pack",), "FOLDER"),
            (("pack", "a", "--quick"), "--quick"),
            (("pack", "a", "--weights", "q4_0,q9"), "--weights: expected some of bf16, q8_0"),
            (("dry-run", "a", "--steps", "("), "--steps: expected a regular expression, got ("),
            (("dry-run", "a", "--limit", "0"), "--limit: expected a number from 1, got 0"),
            (("dry-run", "a", "--gpu-index", "x"), "--gpu-index: expected a number from 0, got x"),
            (("compare", "a"), "NEW"),
            (("compare", "/dev/null", "b"), "/dev/null: expected results.json"),
        ]:
            with self.subTest(args):
                result = gpu_check(*args)
                self.assertEqual(result.returncode, 2)
                self.assertEqual(result.stdout, "")
                self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
                self.assertIn(words, result.stderr)

    def test_help_names_every_verb(self):
        result = gpu_check("--help")
        self.assertEqual(result.returncode, 0)
        for verb in ("pack", "dry-run", "compare"):
            self.assertIn(verb, result.stdout)

    def test_without_a_build_the_program_is_named(self):
        result = gpu_check("pack", "/dev/null/a", LLAMAC_BUILD="/nowhere")
        self.assertEqual(result.returncode, 1)
        self.assertIn("/nowhere/bin/llamac-run: expected a program", result.stderr)


class Parsing(unittest.TestCase):
    def test_results_are_those_of_cases_that_ended(self):
        output = """Note: Google Test filter = A/c.*
[ RUN      ] A/c.one
[       OK ] A/c.one (3 ms)
[ RUN      ] A/c.two
a.cpp:3: Skipped
[  SKIPPED ] A/c.two (0 ms)
[ RUN      ] A/c.three
a word of a driver
"""
        found, running = conformance.parse(output)
        kinds = {case: result.kind for case, result in found.items()}
        self.assertEqual(kinds, {"A/c.one": "passed", "A/c.two": "skipped"})
        self.assertEqual(running, "A/c.three")

    def test_cases_after_a_failure_have_no_result(self):
        output = """[ RUN      ] A/c.one
a.cpp:7: Failure
Expected: 1
[  FAILED  ] A/c.one (3 ms)
[ RUN      ] A/c.two
[  SKIPPED ] A/c.two (0 ms)
[  FAILED  ] 1 test, listed below:
[  FAILED  ] A/c.one
"""
        found, running = conformance.parse(output)
        self.assertEqual(found, {"A/c.one": conformance.Result("failed", "a.cpp:7: Failure Expected: 1")})
        self.assertIsNone(running)

    def test_names_of_a_list(self):
        output = "cuda, GPU.\nWrappers/cuda.\n  votes\nConformance/cuda.\n  embed_f32_r1\n  embed_f32_r7  # x\n"
        names = ["Wrappers/cuda.votes", "Conformance/cuda.embed_f32_r1", "Conformance/cuda.embed_f32_r7"]
        self.assertEqual(conformance.parse_list(output), names)

    def test_a_few_are_of_every_family(self):
        cases = ["C/c." + name for name in ("a_b_1", "a_b_2", "a_b_3", "a_b_4", "a_c_1", "d_e")]
        self.assertEqual(conformance.few(cases, 1), ["C/c.a_b_1", "C/c.a_c_1", "C/c.d_e"])
        self.assertEqual(conformance.few(cases, 2), ["C/c.a_b_1", "C/c.a_b_3", "C/c.a_c_1", "C/c.d_e"])


class Programs(support.TestCase):
    """Scripts in place of gpu_tests and compute-sanitizer."""

    def script(self, name, text):
        path = self.path(name)
        with open(path, "w") as f:
            f.write(text)
        os.chmod(path, stat.S_IRWXU)
        return path

    def suite(self, behaviour, limit=5):
        """A suite where `behaviour` {case: statements} says what cases do that do not pass."""
        program = f"""#!{sys.executable}
import os, signal, sys, time
cases = next(a for a in sys.argv if a.startswith("--gtest_filter=")).split("=")[1].split(":")
behaviour, failed = {behaviour!r}, False
for case in cases:
    print(f"[ RUN      ] {{case}}", flush=True)
    kind = "SKIPPED" if failed else "OK"
    if not failed and case in behaviour:
        scope = {{"alone": len(cases) == 1, "fails": False}}
        exec(behaviour[case], globals(), scope)
        kind, failed = ("FAILED", True) if scope["fails"] else ("OK", False)
    print(f"[ {{kind:>8}} ] {{case}} (0 ms)", flush=True)
sys.exit(failed)
"""
        return conformance.Suite([self.script("suite", program)], dict(os.environ), limit)

    def run_suite(self, behaviour, names, seconds=30, **options):
        end = time.monotonic() + seconds
        found = {}
        suite = self.suite(behaviour, **options)
        left_out = suite.run(names, lambda: end - time.monotonic(), found.update)
        return {case: result.kind for case, result in found.items()}, left_out

    def test_one_fault_costs_no_other_case(self):
        names = [f"W/c.case{i}" for i in range(2 * conformance.SHARD)]
        behaviour = {
            names[3]: "fails = True",
            names[5]: "sys.stderr.write('lost'); sys.stderr.flush(); os._exit(7)",
            names[6]: "os.kill(os.getpid(), signal.SIGSEGV)",
            names[7]: "time.sleep(99)",
            names[9]: "fails = not alone",
        }
        found, left_out = self.run_suite(behaviour, names)
        self.assertEqual(left_out, [])
        bad = {case: kind for case, kind in found.items() if kind != "passed"}
        expected = {
            names[3]: "failed",
            names[5]: "exit code 7: lost",
            names[6]: "ended by SIGSEGV",
            names[7]: "hung after 5 s",
            names[9]: "failed among others, passed alone",
        }
        self.assertEqual(bad, expected)
        self.assertEqual(set(found), set(names))

    def test_what_does_not_fit_is_left_out(self):
        names = [f"W/c.case{i}" for i in range(4)]
        found, left_out = self.run_suite({names[2]: "time.sleep(99)"}, names, seconds=2.5, limit=9)
        self.assertEqual(found, {name: "passed" for name in names[:2]})
        self.assertEqual(left_out, names[2:])

    def test_a_program_that_gives_no_result_ends_the_suite(self):
        suite = conformance.Suite([self.script("broken", "#!/bin/sh\necho no GPU >&2\nexit 7\n")], dict(os.environ), 1)
        with self.assertRaisesRegex(process.ProgramError, "exit code 7: no GPU"):
            suite.run(["W/c.a"], lambda: 9, lambda results: None)

    def test_children_of_a_killed_program_end_too(self):
        marker = self.path("alive")
        script = self.script("parent", f"#!/bin/sh\n(sleep 2; touch {marker}) &\nsleep 60\n")
        begin = time.monotonic()
        outcome = process.run([script], dict(os.environ), 0.5)
        self.assertTrue(outcome.late)
        self.assertEqual(outcome.describe(0.5), "hung after 0.5 s")
        self.assertLess(time.monotonic() - begin, 10)
        time.sleep(2.5)
        self.assertFalse(os.path.exists(marker))

    def test_errors_of_a_sanitizer_are_counted(self):
        text = """#!/bin/sh
echo "========= COMPUTE-SANITIZER"
echo "========= Invalid __global__ write of size 4 bytes"
while [ "${1#--g}" = "$1" ]; do shift; done
echo "[ RUN      ] W/c.a"
echo "[       OK ] W/c.a (1 ms)"
echo "========= ERROR SUMMARY: ERRORS error"
exit CODE
"""
        for errors, code in ((0, 0), (2, 99)):
            script = self.script("compute-sanitizer", text.replace("ERRORS", str(errors)).replace("CODE", str(code)))
            row, _ = conformance.sanitize(script, "memcheck", self.suite({}), ["W/c.a"], 20)
            self.assertEqual((row["errors"], row["ended"], row["cases"], row["finished"]), (errors, 1, 1, True))
            self.assertEqual("Invalid __global__ write" in row.get("first", ""), errors > 0)
        self.assertEqual(check.find_tool("compute-sanitizer", {"PATH": self.folder}), script)
        self.assertEqual(check.find_tool("compute-sanitizer", {"PATH": ""}), None)
        with self.assertRaisesRegex(process.ProgramError, "exit code 1: no such tool"):
            script = self.script("compute-sanitizer", "#!/bin/sh\necho no such tool >&2\nexit 1\n")
            conformance.sanitize(script, "memcheck", self.suite({}), ["W/c.a"], 20)

    def test_nvrtc_of_the_interpreters_packages_is_found(self):
        roots = [self.path("one"), self.path("two")]
        self.assertIsNone(process.nvrtc_folder(roots))
        for root, place, name in (
            (roots[0], "nvidia/cuda_nvrtc/lib", "libnvrtc.so.12"),
            (roots[1], "nvidia/cu13/lib", "libnvrtc.so.13"),
        ):
            folder = os.path.join(root, place)
            os.makedirs(folder)
            open(os.path.join(folder, name), "w").close()
            self.assertEqual(process.nvrtc_folder(roots), folder)

    def test_an_index_is_of_the_visible_gpus(self):
        self.assertEqual(process.visible_device(1, {}), "1")
        self.assertEqual(process.visible_device(1, {"CUDA_VISIBLE_DEVICES": "3, GPU-5"}), "GPU-5")


class TwoRanks(unittest.TestCase):
    def test_answers_that_differ_are_named(self):
        def line(number, tokens, logprob=-1.0):
            return json.dumps({"id": number, "tokens": tokens, "logprobs": [{"logprob": logprob}]})

        expected = [line(1, [5]), line(2, [6]), line(3, [7]), line(4, [8])]
        found = [line(3, [7], -1.0000001), line(1, [5]), line(2, [9])]
        self.assertEqual(answers.differing(found, expected), [2, 3, 4])
        row = {"shape": "1b", "run": "other order", "answers": 4, "different": [2, 3, 4]}
        self.assertIn("| other order | 1 of 4 |", report.table(results(answers=[row])))

    def test_logits_are_compared_with_the_largest(self):
        self.assertAlmostEqual(ranks.difference([1.0, -3.9], [1.1, -4.0]), 0.025)
        # A missing token, and a logit that is not a number.
        self.assertEqual(ranks.difference([1.0], [1.0, 2.0]), float("inf"))
        self.assertEqual(ranks.difference([1.0, float("nan")], [1.0, 2.0]), float("inf"))

    def test_what_nccl_refuses_on_one_gpu_is_no_fault(self):
        refused = "exit code 7: llamac-run: error: ncclGroupEnd: NCCL says invalid usage"
        self.assertEqual(ranks.why_not(refused, 1), f"two ranks on one GPU need NCCL 2.32; {refused}")
        self.assertEqual(ranks.why_not(refused, 2), "")
        self.assertEqual(ranks.why_not("exit code 7: rank 1: ncclAllGather: NCCL says internal error", 1), "")
        self.assertEqual(ranks.why_not("libnccl: expected a library", 2), "libnccl: expected a library")

    def test_without_nccl_the_reason_is_told(self):
        self.assertIn("Two ranks: not run: no libnccl.", report.table(results(ranks="not run: no libnccl")))


class LaunchRows(unittest.TestCase):
    def test_the_first_launch_whose_rows_differ_is_told(self):
        row = {"shape": "1b", "compared": 70, "difference": "layers.0.attention: the row of position 3 in operand 5"}
        self.assertIn(
            "70 compared, the first that differ: layers.0.attention: the row", report.table(results(rows=row))
        )
        self.assertIn("all have the same bits", report.table(results(rows=row | {"difference": ""})))

    def test_it_is_a_problem(self):
        folder = tempfile.mkdtemp(dir=self.enterContext(tempfile.TemporaryDirectory()))
        found = json.dumps({"compared": 70, "difference": "layers.0.attention: the row of position 3"})
        os.mkdir(os.path.join(folder, "bin"))
        with open(os.path.join(folder, "bin", "gpu_tests"), "w") as f:
            f.write(f"#!/bin/sh\necho '{found}'\n")
        os.chmod(f.name, stat.S_IRWXU)
        with open(os.path.join(folder, "check.json"), "w") as f:
            json.dump({"dry_run": True, "environment": {}, "cases": None}, f)
        one = check.Check(folder, folder, options())
        with self.assertRaisesRegex(process.ProgramError, "the first launch whose rows differ: layers.0.attention"):
            one.rows({"shape": "1b", "file": "p"})


class Formats(support.TestCase):
    @unittest.skipUnless(support.EXHAUSTIVE, "plans of whole models")
    def test_a_package_has_a_plan_of_each_format(self):
        folder = self.path("package")
        result = gpu_check("pack", folder)
        self.assertEqual(result.returncode, 0, result.stderr)
        with open(os.path.join(folder, "check.json")) as f:
            facts = json.load(f)
        bits = {(plan["shape"], plan["weights"]): plan["bits"] for plan in facts["plans"]}
        blocks = {"bf16": 16, "q8_0": 8.5, "q4_0": 4.5, "mxfp8": 8.25}
        expected = {("1b", weights): each for weights, each in blocks.items()}
        expected |= {("8b", weights): each for weights, each in (blocks | {"q4_k": 4.625, "q6_k": 6.5625}).items()}
        self.assertEqual(bits, expected)
        self.assertEqual([plan["shape"] for plan in facts["wide"]], facts["shapes"])
        for plan in (*facts["plans"], *facts["wide"], {"file": facts["ranks"]}):
            self.assertTrue(os.path.exists(os.path.join(folder, plan["file"])), plan)

    def test_bits_are_those_that_kernels_read(self):
        shape = dataclasses.replace(SHAPES["tiny"], dim=256, head=64, ffn=512, vocab=1024)
        for weights, bits in (("q4_k", 4.625), ("q6_k", 6.5625)):
            with self.subTest(weights), unittest.mock.patch.dict(SHAPES, {"k": shape}):
                compiler = package.Compiler(os.path.dirname(support.BIN_DIR), self.folder)
                # Tiles are whole: a few weights more.
                self.assertAlmostEqual(compiler.bits("k", weights), bits, delta=0.01)

    def test_a_file_without_weights_makes_a_plan_of_random_ones(self):
        shape = dataclasses.replace(SHAPES["tiny"], dim=256, head=64, ffn=512)
        for weights in gguf_file.FORMATS:
            with self.subTest(weights):
                model, plan = self.path("hole.gguf"), self.path("hole.plan")
                gguf_file.write(model, shape, weights)
                target = support.by_tier("cuda", "cpu")
                self.llamac("compile", model, "--no-weights", "--target", target, "-c", 64, "-q", "-o", plan)
                if target == "cuda":
                    continue  # Which no kernels of the simulator are for.
                flags = ["--random-weights", "1", "--prompt-tokens", "8", "--gen-tokens", "2", "--json"]
                result = support.run([support.LLAMAC_RUN, "bench", plan, *flags])
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertGreater(json.loads(result.stdout)["step_ms"], 0)


class Profiler(unittest.TestCase):
    """The table of ncu, which need not have every column."""

    KERNELS = {"gemv_a": (0.75, 16), "sample": (0.25, 1)}

    def test_figures_are_found_by_their_names(self):
        columns = [profiler.METRICS[name][0] for name in ("dram", "issue", "registers")]
        waits = ("long_scoreboard", "long_scoreboard_not_issued", "selected", "wait")
        columns += [f"smsp__pcsamp_warps_issue_stalled_{wait}" for wait in waits]
        table = [
            ["ID", "Kernel Name", *columns],
            ["", "", "%", "%", "register/thread", "", "", "", ""],
            ["0", "gemv_a", "69.5", "11.25", "128", "1,500", "900", "100", "400"],
            ["1", "gemv_a", "1", "1", "1", "1", "1", "1", "1"],
            ["2", "sample(const float *)", "3", "n/a", "40", "", "", "", ""],
        ]
        text = "==PROF== Connected\n" + "".join(",".join(f'"{cell}"' for cell in row) + "\n" for row in table)
        gemv, sample = profiler.rows(text, self.KERNELS)
        stalls = [("long_scoreboard", 0.75), ("wait", 0.2)]
        expected = {"kernel": "gemv_a", "time_share": 0.75, "dram": 69.5, "issue": 11.25, "registers": 128.0}
        self.assertEqual(gemv, expected | {"stalls": stalls})
        self.assertEqual(
            (sample["dram"], sample["issue"], sample["registers"], sample["stalls"]), (3.0, None, 40.0, [])
        )
        rows = [{"shape": "1b", "work": "decode 1"} | row for row in (gemv, sample)]
        table = report.table(results(profile=rows))
        self.assertIn("| 1b | decode 1 | gemv_a | 75 % | 70 % | 11 % | 128 | long_scoreboard 75 %, wait 20 % |", table)
        self.assertIn("| 1b | decode 1 | sample | 25 % | 3 % | - | 40 | - |", table)

    def test_columns_and_kernels_may_be_missing(self):
        column = "smsp__average_warps_issue_stalled_wait_per_issue_active.ratio"
        text = f'"ID","Kernel Name","{column}"\n"","",""\n"0","gemv_a","2"\n'
        gemv, sample = profiler.rows(text, self.KERNELS)
        self.assertEqual((gemv["dram"], gemv["registers"], gemv["stalls"]), (None, None, [("wait", 1.0)]))
        self.assertEqual((sample["dram"], sample["stalls"]), (None, []))
        with self.assertRaisesRegex(process.ProgramError, "expected a table of ncu, got: ==WARNING== No kernels"):
            profiler.rows("==WARNING== No kernels were profiled.\n", self.KERNELS)

    def test_a_window_has_the_end_of_the_second_step(self):
        flags = profiler.options(self.KERNELS, "log")
        self.assertEqual(flags[flags.index("-s") + 1 :][:3], ["32", "-c", "4"])
        self.assertIn("regex:^(gemv_a|sample)$", flags)

    def test_the_largest_kernels_are_those_of_the_work(self):
        def part(work, *times):
            kernels = [{"kernel": f"k{i}", "seconds": time, "launches": 32 - 31 * i} for i, time in enumerate(times)]
            return {"work": work, "kernels": [*kernels, {"kernel": "all", "seconds": sum(times), "launches": 33}]}

        found = [part("prefill of 1 x 8 tokens", 3.0, 1.0), part("8 steps of 1 sequence after 8 tokens", 1.0, 1.0)]
        self.assertEqual(profiler.largest(found, "prompt"), {"k0": (0.75, 32), "k1": (0.25, 1)})
        self.assertEqual(profiler.largest(found, "decode 1"), {"k0": (0.5, 32), "k1": (0.5, 1)})


class Comparison(support.TestCase):
    def test_ratios_are_of_every_row(self):
        new = results(kernels=[kernel("gemv", us=8.0), kernel("softmax")])
        new["workload"][0]["step_ms"] = 0.6
        table = compare.table(results(), new)
        self.assertIn("| workload 1b bf16 cold | ms a step | 0.8 | 0.6 | 0.750 |", table)
        self.assertIn("| decode 1b bf16, 128 tokens x 1 | ms a step | 0.8 | 0.8 | 1.000 |", table)
        self.assertIn("| 1b step gemv | us | 10 | 8 | 0.800 |", table)
        self.assertIn("| bandwidth read | GB/s | 3000 | 3000 | 1.000 |", table)
        self.assertIn("| throughput 1b bf16 x 128, batch-invariant | tok/s | 9000 | 9000 | 1.000 |", table)
        self.assertIn("| serving 1b bf16, 128/128 x 256, serve | tok/s | 8550 | 8550 | 1.000 |", table)
        for peer in ("decode 1b | ms a token", "attention 1b | TFLOP/s", "products 1b qkv | TFLOP/s"):
            self.assertIn(f"| peer {peer} |", table)
        self.assertIn("Only in OLD:\n\n- 1b prompt gemm, us\n", table)
        self.assertIn("Only in NEW:\n\n- 1b step softmax, us\n", table)
        self.assertNotIn("devices differ", table)

    def test_times_of_two_cards_are_shares_of_their_bandwidths(self):
        # 2.5 GB in 0.8 ms are 3,125 GB/s, 1 MB in 10 us 100.
        other = {"device": "cuda, B", "architecture": "sm_90a", "read_gb_s": 5000.0, "copy_gb_s": 4000.0}
        new = results(bandwidth=other, kernels=[kernel("gemv", us=5.0)])
        new["workload"][0]["step_ms"] = 0.6
        table = compare.table(results(), new)
        self.assertIn("| workload 1b bf16 cold | % of read | 104.2 | 83.33 | 0.800 |", table)
        self.assertIn("| decode 1b bf16, 128 tokens x 1 | % of read | 104.2 | 62.5 | 0.600 |", table)
        self.assertIn("| 1b step gemv | % of read | 3.333 | 4 | 1.200 |", table)
        self.assertIn("Times are shares of the read bandwidth", table)
        for unit in ("| ms a step |", "| us |", "| s to load |", "| ms a token |"):
            self.assertNotIn(unit, table)
        # Another driver is the same card.
        table = compare.table(results(machine="580"), results(machine="590"))
        self.assertIn("**The devices differ: cuda, A, sm_90a, 580 before, cuda, A, sm_90a, 590 now.**", table)
        self.assertIn("| ms a step | 0.8 | 0.8 | 1.000 |", table)

    def test_another_device_and_a_killed_run_are_told(self):
        other = results(running="peer decode 1b", bandwidth={"device": "cuda, B"})
        table = compare.table(results(), other)
        self.assertIn("**The devices differ: cuda, A, sm_90a before, cuda, B now.**", table)
        self.assertIn("NEW is not complete: it ended in step peer decode 1b.", table)

    def test_the_script_compares_files(self):
        paths = [self.path(name) for name in ("old.json", "new.json")]
        for path in paths:
            with open(path, "w") as f:
                json.dump(results(), f)
        result = gpu_check("compare", *paths)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(result.stdout, compare.table(results(), results()))
        for text in ("[]", "{}", '{"problems": [], "decode": [{}]}'):
            with open(paths[0], "w") as f:
                f.write(text)
            self.assertEqual(gpu_check("compare", *paths).returncode, 2)


class Pictures(unittest.TestCase):
    SVG = "{http://www.w3.org/2000/svg}"

    def test_a_kernel_is_a_point_at_its_intensity_and_speed(self):
        root = xml.etree.ElementTree.fromstring(roofline.svg(results()))
        circles = [(float(c.get("cx")), float(c.get("cy"))) for c in root.iter(self.SVG + "circle")]
        self.assertEqual(len(circles), 2)
        # gemv does 2 operations a byte and 0.2 TFLOP/s, gemm 9,000 and 180.
        decade = (roofline.PLOT_RIGHT - roofline.PLOT_LEFT) / 4
        self.assertAlmostEqual(circles[0][0], roofline.PLOT_LEFT + 0.301 * decade, delta=0.2)
        self.assertAlmostEqual(circles[1][0], roofline.PLOT_LEFT + 3.954 * decade, delta=0.2)
        self.assertLess(circles[1][1], circles[0][1])
        words = [t.text for t in root.iter(self.SVG + "text")]
        self.assertIn("1  gemv: 10.0 us, 3 %", words)
        self.assertIn("cuBLAS's best product: 500 TFLOP/s", words)

    def test_points_lie_on_the_slope_where_they_reach_the_bandwidth(self):
        # 30 MB in 10 us are 3,000 GB/s.
        row = kernel("gemv", us=10.0, size=30_000_000, operations=60_000_000)
        root = xml.etree.ElementTree.fromstring(roofline.svg(results(kernels=[row], peers=[])))
        x, y = next((float(c.get("cx")), float(c.get("cy"))) for c in root.iter(self.SVG + "circle"))
        slope = next(line for line in root.iter(self.SVG + "line") if line.get("stroke-width") == "1.5")
        (x1, y1, x2, y2) = (float(slope.get(name)) for name in ("x1", "y1", "x2", "y2"))
        self.assertAlmostEqual(y, y1 + (x - x1) / (x2 - x1) * (y2 - y1), delta=0.5)

    def test_labels_do_not_overlap(self):
        taken = []
        boxes = [roofline.label_place(100 + i, 100, taken) for i in range(30)]
        self.assertEqual(len(taken), len(boxes))
        for i, box in enumerate(taken):
            self.assertFalse(any(roofline.overlap(box, other) for other in taken[:i]))

    def test_without_kernels_or_bandwidth_there_is_none(self):
        self.assertIsNone(roofline.svg(results(kernels=[])))
        self.assertIsNone(roofline.svg(results(bandwidth={})))
        self.assertIsNone(roofline.svg(results(kernels=[kernel("copy", operations=0)])))

    def test_serving_is_a_table(self):
        table = report.table(results())
        self.assertIn("| 1b | 128/128 | 256 | engine | 9000 | 18000 | - | - | - | 2.0 % |", table)
        self.assertIn("| 1b | 128/128 | 256 | serve | 8550 | 17100 | 100.0, 200.0 | 10.0, 20.0 | 0.95 | - |", table)

    def test_throughput_is_a_table(self):
        table = report.table(results())
        self.assertIn("| 1b | bf16 | 128 | the fastest | 9000 | 2.00 |", table)
        self.assertIn("| 1b | bf16 | 128 | batch-invariant | 9000 | 2.00 |", table)

    def test_results_so_far_are_a_document(self):
        self.assertIn("step ops has begun", report.table({"problems": [], "left_out": [], "running": "ops"}))
        self.assertIn("![Roofline](roofline.svg)", report.table(results()))


def load(folder):
    with open(os.path.join(folder, "results.json")) as f:
        return json.load(f)


# Prints peers.fidelity's answer for the tiny model, and for one with another output matrix. Versions of PyTorch before
# 2.5 have not all that peers.py uses.
FIDELITY = """
import argparse, dataclasses, json, sys
import torch
import torch.nn.functional as F

def rms_norm(x, shape, weight, eps):
    y = x.float()
    return (y * (y.square().mean(-1, keepdim=True) + eps).rsqrt() * weight.float()).to(x.dtype)

def attention(q, k, v, attn_mask, enable_gqa):
    k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
    scores = (q.float() @ k.float().transpose(-1, -2)) * q.shape[-1] ** -0.5
    return (scores.masked_fill(~attn_mask, -torch.inf).softmax(-1) @ v.float()).to(q.dtype)

F.rms_norm, F.scaled_dot_product_attention = rms_norm, attention
import peers
args = argparse.Namespace(shape="tiny", device="cpu", tokens_of=sys.argv[1], logits=sys.argv[2], seed=1)
tiny = peers.SHAPES["tiny"]
for tied in (tiny.tied, not tiny.tied):
    torch.manual_seed(1)
    peers.SHAPES["tiny"] = dataclasses.replace(tiny, tied=tied)
    print(json.dumps(peers.fidelity(args)))
"""

# Writes the table that ncu would, of the kernels that it is to find.
NCU = r"""
import os, sys
if os.environ.get("REFUSES"):
    sys.exit("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters")
args = sys.argv[1:]
value = lambda flag: args[args.index(flag) + 1]
assert "bench" in args[args.index("--log-file") + 2 :] and value("--clock-control") == "none", args
names = value("-k").removeprefix("regex:^(").removesuffix(")$").split("|")
columns = ["ID", "Kernel Name", "dram__throughput.avg.pct_of_peak_sustained_elapsed", "launch__registers_per_thread"]
rows = [columns, ["", "", "%", "register/thread"], *([str(i), name, "50.0", "96"] for i, name in enumerate(names))]
with open(value("--log-file"), "w") as f:
    f.write("==PROF== Connected\n" + "".join(",".join(f'"{cell}"' for cell in row) + "\n" for row in rows))
"""


class DryRun(support.TestCase):
    """One package is run: packing it takes longer than a run. In the default tier it has a few cases of conformance,
    and no format but bf16, and no kernels for two ranks."""

    CASES = "embed_q6_k_r1|embed_bf16_r7|rms_norm_w72_r5|matmul_bf16_r1|pointwise_gelu_w202_r66|gather_rows_w8_wants_0"
    FAULTY = "embed_embed_q6_k_table_n37_k256_q6_k"
    FAULTY_CASES = {f"Conformance/cuda.embed_q6_k_r{rows}" for rows in support.by_tier((1,), (1, 7))}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.package = cls.path("check")
        cls.formats = support.by_tier(("bf16",), package.FORMATS)
        some = (
            "--weights",
            ",".join(cls.formats),
            *support.by_tier(("--cases", cls.CASES, "--steps", "(?!ranks).*"), ()),
        )
        cls.whole = gpu_check("dry-run", cls.package, *some)

    def alone(self, **env):
        """For a step alone."""
        one = check.Check(self.package, self.path("alone"), options())
        os.makedirs(one.out, exist_ok=True)
        one.env |= env
        return one

    def packed(self, *args, **env):
        return gpu_check(*args, script=os.path.join(self.package, "gpu_check.sh"), **env)

    def test_it_proves_every_kind_of_op_and_measures_every_plan(self):
        self.assertEqual(self.whole.returncode, 0, self.whole.stdout[-2000:] + self.whole.stderr[-2000:])
        found = load(self.package)
        self.assertEqual((found["problems"], found["left_out"]), ([], []))
        self.assertNotIn("running", found)
        self.assertGreater(found["conformance"]["passed"], support.by_tier(65, 850))
        self.assertEqual(found["conformance"]["failed"], [])
        # The fake has no memory for pages that lie far apart.
        self.assertEqual(found["conformance"]["skipped"], support.by_tier(0, 1))
        self.assertEqual({row["part"] for row in found["kernels"]}, {"prompt", "step"})
        self.assertEqual(found["bandwidth"]["architecture"], "sm_90a")
        self.assertEqual([row["cache"] for row in found["workload"]], ["cold", "warm"])
        points = {(row["weights"], row["prompt_tokens"], row["batch"]) for row in found["decode"]}
        batches = {("bf16", 8, count) for count in (3, 4)}
        self.assertEqual(points, {(w, t, b) for w in self.formats for t in (8, 40) for b in (1, 2)} | batches)
        throughput = [(row["sequences"], row["batch_invariant"]) for row in found["throughput"]]
        self.assertEqual(throughput, [(1, False), (4, False), (4, True)])
        for row in found["throughput"]:
            self.assertEqual(row["generated_tokens"], 3 * row["sequences"])
            self.assertAlmostEqual(row["output_tok_s"], row["generated_tokens"] / row["seconds"], delta=0.1)
        (resident,) = found["resident"]
        self.assertEqual((resident["runs"], resident["same_bits"], resident["prompt_tokens"]), (True, True, 8))
        self.assertEqual((len(resident["many_ms"]), len(resident["one_ms"])), (1, 1))
        (served,) = found["serving"]
        for way in ("engine", "serve"):
            self.assertEqual((served[way]["prompt_tokens"], served[way]["generated_tokens"]), (4 * 8, 4 * 3))
        self.assertEqual(served["engine"]["sequences"], 256)
        self.assertEqual(len(found["peers"]) if found["torch"] else 3, 3)
        self.assertIn("no compute-sanitizer", found["sanitizer"])
        # One GPU is both ranks'.
        found_ranks = [(row["gpus"], row["chunk"], row["same_bits_twice"]) for row in found.get("ranks", [])]
        self.assertEqual(found_ranks, support.by_tier([], [(1, 3, True), (1, 1, True)]))
        self.assertEqual(
            [(row["run"], row["different"]) for row in found["answers"]], [(run, []) for run in answers.RUNS]
        )
        self.assertEqual(found["rows"]["difference"], "")
        self.assertGreater(found["rows"]["compared"], 500)
        with open(os.path.join(self.package, "results.md")) as f:
            table = f.read()
        self.assertEqual(self.whole.stdout.split("MB\n", 1)[1], table + "\n")
        self.assertIn("dry run", table)
        # Its shape says that its embedding is the output matrix.
        self.assertIn("| tiny | step | gemv_tok_embeddings_n288_k64_bf16 |", table)
        xml.etree.ElementTree.parse(os.path.join(self.package, "roofline.svg"))
        self.assertFalse([name for name in os.listdir(self.package) if name.endswith(".tmp")])

    def test_a_hang_and_a_fault_cost_no_other_result(self):
        out = self.path("broken")
        begin = time.monotonic()
        result = gpu_check(
            *("--quick", "--limit", "15", "--gpu-index", "1", out),
            script=os.path.join(self.package, "gpu_check.sh"),
            LLAMAC_FAKE_CAPABILITY="9.0,9.0",
            LLAMAC_FAKE_HANG="votes",
            LLAMAC_FAKE_FAULT=self.FAULTY,
        )
        self.assertLess(time.monotonic() - begin, check.QUICK_BUDGET)
        self.assertEqual(result.returncode, 1, result.stderr)
        found = load(out)
        self.assertEqual(found["left_out"], [])
        failed = {row["case"]: row["result"] for row in found["conformance"]["failed"]}
        self.assertEqual(failed.pop("Wrappers/cuda.votes"), "hung after 15 s")
        self.assertEqual(set(failed.values()), {"failed"})
        self.assertEqual(set(failed), self.FAULTY_CASES)
        messages = " ".join(row["message"] for row in found["conformance"]["failed"])
        self.assertIn("CUDA_ERROR_LAUNCH_FAILED", messages)
        # A wrapper for each, and an op of each family.
        self.assertGreater(found["conformance"]["passed"], support.by_tier(60, 120))
        self.assertIn("Fake GPU 1", found["bandwidth"]["device"])
        self.assertTrue(found["workload"] and found["decode"] and found["kernels"])
        self.assertEqual(len(found["problems"]), 1 + len(failed))

    def test_a_step_in_one_launch_that_does_not_run_is_a_problem(self):
        one = self.alone(LLAMAC_FAKE_COOPERATIVE="0")
        with self.assertRaisesRegex(process.ProgramError, "expected a GPU on which all blocks of the step fit"):
            one.resident(one.package["resident"][0])
        self.assertEqual(one.results["resident"], [{"shape": "tiny", "weights": "bf16", "runs": False}])

    def test_without_nccl_two_ranks_are_no_problem(self):
        # NVRTC's fake has none of its functions.
        folder = self.path("nccl")
        os.makedirs(folder, exist_ok=True)
        os.symlink(os.path.join(support.FAKE_DRIVER, "libnvrtc.so.13"), os.path.join(folder, "libnccl.so.2"))
        one = self.alone(LLAMAC_NCCL_PATH=folder)
        one.ranks(one.package["plans"][0])
        self.assertIn("libnccl.so.2: expected NCCL, got a library without", one.results["ranks"])

    def test_a_refusal_of_nccl_is_a_problem_on_two_gpus_alone(self):
        for fault in ("ncclGroupEnd", "ncclCommInitRank"):
            with self.subTest(fault):
                one = self.alone(LLAMAC_FAKE_FAILS=fault)
                one.ranks(one.package["plans"][0])
                self.assertRegex(
                    one.results["ranks"], f"^not run: two ranks on one GPU need NCCL 2.32; .*{fault}: NCCL"
                )
                two = self.alone(LLAMAC_FAKE_FAILS=fault, LLAMAC_FAKE_CAPABILITY="9.0,9.0")
                with self.assertRaisesRegex(process.ProgramError, fault):
                    two.ranks(two.package["plans"][0])

    def test_another_output_matrix_is_further_from_fp32(self):
        pythons = [sys.executable, "/usr/bin/python3"]
        hashes = self.path("hashes")
        os.makedirs(hashes)
        with contextlib.suppress(ImportError):
            os.symlink(os.path.dirname(importlib.import_module("xxhash").__file__), os.path.join(hashes, "xxhash"))
        env = os.environ | {"PYTHONPATH": f"{hashes}:{BENCH}", "PYTHONDONTWRITEBYTECODE": "1"}
        one = self.alone()
        logits, history = self.path("logits.npy"), one.tokens("tiny", 8)
        one.write_logits(one.plan_path(one.package["plans"][0]), history, 1, logits)
        for python in pythons:
            command = [python, "-c", FIDELITY, history, logits]
            found = subprocess.run(command, env=env, capture_output=True, text=True)
            if "ModuleNotFoundError" not in found.stderr:
                break
        else:
            self.skipTest("no PyTorch and xxhash")
        self.assertEqual(found.returncode, 0, found.stderr)
        right, wrong = map(json.loads, found.stdout.splitlines())
        self.assertLess(right["plan"]["mean_kl"], 1e-6)
        self.assertLess(right["excess_kl_upper95"], 0)
        self.assertGreater(wrong["plan"]["mean_kl"], 0.1)
        self.assertGreater(wrong["excess_kl_upper95"], 0)

    def test_a_profile_has_the_largest_kernels_of_each_work(self):
        out, tools = self.path("profiled"), self.path("tools")
        os.makedirs(tools)
        with open(os.path.join(tools, "ncu"), "w") as f:
            f.write(f"#!{sys.executable}\n{NCU}")
        os.chmod(f.name, stat.S_IRWXU)
        path = f"{tools}:{os.environ['PATH']}"
        result = self.packed("--profile", out, PATH=path)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        found = load(out)
        self.assertEqual(list(found["step_s"]), ["machine", "bandwidth", "profile tiny"])
        for work, kernel in (("decode 1", "gemv_"), ("prompt", "gemm_wgmma_")):
            rows = [row for row in found["profile"] if row["work"] == work]
            self.assertTrue(2 < len(rows) <= profiler.MOST_KERNELS, rows)
            self.assertTrue(any(row["kernel"].startswith(kernel) for row in rows), rows)
            self.assertEqual({(row["dram"], row["registers"]) for row in rows}, {(50.0, 96.0)})
            shares = [row["time_share"] for row in rows]
            self.assertEqual(shares, sorted(shares, reverse=True))
        # Without it, or without the right, it is told what to do.
        for env, words in (
            ({"PATH": path, "REFUSES": "1"}, "ERR_NVGPUCTRPERM: the driver lets only administrators profile; run as"),
            ({"PATH": "/usr/bin:/bin", "CUDA_HOME": ""}, "no ncu on PATH or in CUDA_HOME/bin"),
        ):
            one = self.alone(**env)
            with self.assertRaisesRegex(process.ProgramError, words):
                one.profile(one.package["plans"][0])
            self.assertIn(f"Nsight Compute: {words}", report.table(one.results))

    def test_a_killed_run_leaves_what_was_known(self):
        out = self.path("killed")
        script = os.path.join(self.package, "gpu_check.sh")
        run = subprocess.Popen([script, "--quick", out], env=ENV, stdout=subprocess.DEVNULL)
        try:
            end = time.monotonic() + 120
            while not (os.path.exists(os.path.join(out, "results.json")) and load(out).get("conformance")):
                self.assertLess(time.monotonic(), end)
                time.sleep(0.05)
        finally:
            run.send_signal(signal.SIGTERM)
        self.assertEqual(run.wait(timeout=60), 128 + signal.SIGTERM)
        self.assertGreater(load(out)["conformance"]["passed"], 50)
        with open(os.path.join(out, "results.md")) as f:
            self.assertIn("**Not complete: step ", f.read())

    def test_without_a_gpu_it_says_so_at_once(self):
        script = os.path.join(self.package, "gpu_check.sh")
        for args, env, code, words in [
            ((), {"LLAMAC_FAKE_FAILS": "cuInit"}, 7, "cuInit"),
            (("--gpu-index", "3"), {}, 2, "--gpu-index: expected 0 to 0, the GPUs of this machine, got 3"),
            (("--budget", "x"), {}, 2, "--budget: expected a number"),
            (("a", "b"), {}, 2, "unrecognized arguments: b"),
        ]:
            with self.subTest(args):
                result = gpu_check(*args, script=script, **env)
                self.assertEqual(result.returncode, code, result.stderr)
                self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
                self.assertIn(words, result.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
