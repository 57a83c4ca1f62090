# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""llamac generate: what each line of a file of requests gets, that answers are
those of llamac run however many run at once, and that a killed run goes on.

    test_generate.py Lines        good and bad lines
    test_generate.py Runs         the same answers as run, at any --parallel
    test_generate.py Resume       kills, torn lines, interrupts
    test_generate.py PrefixCache  one in a file, for the next run
    test_generate.py Grammars     answers that match one
    test_generate.py Bench        the benchmark of requests
    test_generate.py RealModel    SmolLM2
"""

import json
import os
import random
import re
import signal
import subprocess
import time
import unittest

import support

support.require("numpy", "gguf", "safetensors")

from llama_numpy import Config
from make_model import quantise, random_weights, write_gguf, write_huggingface
from support import BAD_FILE, LLAMAC, LLAMAC_RUN, MEMORY, USAGE


class GenerateCase(support.TestCase):
    CONTEXT = 192

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        config = Config(64, 2, 4, 2, vocab=261)
        model = write_gguf(cls.path("model.gguf"), config, quantise(random_weights(config, "bf16", 4), "F32")[0])
        cls.plan = cls.path("model.plan")
        support.run([LLAMAC, "compile", model, "-o", cls.plan, "-c", str(cls.CONTEXT), "-q"], cache=cls.cache, check=True)

    def write(self, lines, name="in.jsonl"):
        """A file of `lines`, each text or what JSON can be made of."""
        path = self.path(name)
        with open(path, "wb") as f:
            for line in lines:
                line = line if isinstance(line, (str, bytes)) else json.dumps(line)
                f.write((line if isinstance(line, bytes) else line.encode()) + b"\n")
        return path

    def fresh(self, name):
        path = self.path(name)
        if os.path.exists(path):
            os.remove(path)
        return path

    def generate(self, prompts, *flags, out=None, plan=None):
        """The answers to `prompts`, which are lines, and the summary."""
        out = out or self.fresh("out.jsonl")
        path = prompts if isinstance(prompts, str) else self.write(prompts)
        result = self.llamac("generate", plan or self.plan, "--prompts", path, "-o", out, "--json", *flags)
        return self.read(out), json.loads(result.stdout)

    def read(self, path):
        with open(path, encoding="utf-8") as f:
            return [json.loads(line) for line in f]


def by_id(answers):
    return {(json.dumps(a["id"]), a.get("index", 0)): a for a in answers}


class Lines(GenerateCase):
    def test_each_line_has_an_answer_or_an_error(self):
        good = {"tokens": [1, 5, 6], "max_tokens": 3, "temperature": 0}
        lines = [
            {"id": "text", "prompt": "abc", "max_tokens": 4},
            {"id": 7, **good},
            good,  # Its id is 3.
            "",
            "   \r",
            json.dumps({"id": "crlf", **good}) + "\r",
            {"id": "two", "n": 2, "seed": 5, "temperature": 1.0, "tokens": [9], "max_tokens": 2},
            {"id": "logprobs", "logprobs": 2, **good},
            {"id": "none", "tokens": [4], "max_tokens": 0},
            {"id": 9.5, **good},
            {"id": "stopped", "tokens": [1, 5, 6], "max_tokens": 8, "stop_token_ids": list(range(261))},
            {"id": "to the end", "tokens": [1], "ignore_eos": True},
        ]
        answers, summary = self.generate(lines, "-n", -1)
        self.assertEqual(summary["errors"], 0, answers)
        self.assertEqual((summary["answers"], len(answers)), (11, 11))
        answers = by_id(answers)
        keys = ['"text"', "7", "3", '"crlf"', '"logprobs"', '"none"', "9.5", '"stopped"', '"to the end"']
        self.assertEqual(set(answers), {(key, 0) for key in keys} | {('"two"', 0), ('"two"', 1)})
        one = answers["7", 0]
        self.assertEqual(list(one), ["id", "text", "tokens", "finish_reason", "prompt_tokens", "cached_tokens", "request"])
        self.assertEqual((len(one["tokens"]), one["finish_reason"], one["prompt_tokens"]), (3, "length", 3))
        for key in ("3", '"crlf"', "9.5"):
            self.assertEqual(answers[key, 0]["tokens"], one["tokens"])
        self.assertEqual([answers['"two"', i]["seed"] for i in (0, 1)], [5, 6])
        logprobs = answers['"logprobs"', 0]["logprobs"]
        self.assertEqual([token["id"] for token in logprobs], one["tokens"])
        self.assertEqual([len(token["top_logprobs"]) for token in logprobs], [2, 2, 2])
        # `llamac run --json` has the same members.
        self.assertEqual(list(logprobs[0]), ["id", "token", "logprob", "rank", "top_logprobs"])
        none, stopped, end = (answers[key, 0] for key in ('"none"', '"stopped"', '"to the end"'))
        self.assertEqual((none["tokens"], none["finish_reason"]), ([], "length"))
        self.assertEqual((stopped["tokens"], stopped["finish_reason"]), ([], "stop"))
        self.assertEqual((len(end["tokens"]), end["finish_reason"]), (self.CONTEXT, "length"))

    def test_a_bad_line_has_an_error_and_the_rest_goes_on(self):
        good = {"tokens": [1, 5], "max_tokens": 2}
        bad = [
            ("{", "JSON"),
            ("[1]", "expected an object"),
            (b'{"prompt": "\xff"}', "UTF-8"),
            (b'{"prompt": "' + b"x" * (17 << 20) + b'"}', "bytes, got more"),
            ("[" * 200, "nesting"),
            ({"id": None, "prompts": "a"}, "did you mean prompt?"),
            ({"id": {}, **good}, "id: expected a string or a number"),
            ({"id": "bad", "tokens": [1, 261]}, "expected an id from 0 to 260, got 261"),
            ({"id": "bad range", **good, "temperature": -1}, "temperature"),
            ({"id": "bad top", **good, "top_p": 0}, "above 0"),
            ({"id": "bias", **good, "logit_bias": {"261": 1}}, "below 261"),
            ({"id": "long", "tokens": [1] * (self.CONTEXT + 1)}, str(self.CONTEXT)),
            ({"id": "asks", "tokens": [1], "max_tokens": self.CONTEXT + 1}, str(self.CONTEXT)),
            ({"id": "good 0", **good}, "id: expected one of its own"),
            ({"id": "empty", "tokens": []}, "at least one token"),
        ]
        lines = [{"id": "good 0", **good}]
        for number, (line, _) in enumerate(bad):
            lines += [line, {"id": f"good {number + 1}", **good}]
        out = self.fresh("bad.jsonl")
        path = self.write(lines)
        answers, summary = self.generate(path, out=out)
        # Again, now with an exit code.
        result = self.llamac("generate", self.plan, "--prompts", path, "-o", out, "--strict", expect=USAGE)
        self.assertIn(f"expected requests that can be answered, got {len(bad)} that cannot", result.stderr)
        shown = [line for line in result.stderr.splitlines() if line.startswith("warning: ")]
        self.assertEqual(len(shown), 6)
        for line, (number, (_, message)) in zip(shown[:5], enumerate(bad)):
            self.assertRegex(line, f"^warning: {re.escape(path)}: line {2 * number + 2}:")
            self.assertIn(message, line)
        self.assertIn("further wrong lines are not shown", shown[-1])
        self.assertEqual((summary["answers"], summary["errors"]), (len(bad) + 1, len(bad)))
        errors = {a["line"]: a for a in answers if "error" in a}
        for number, (_, message) in enumerate(bad):
            line = 2 * number + 2
            self.assertIn(message, errors[line]["error"])
            self.assertEqual(list(errors[line]), ["id", "line", "error", "request"])
        self.assertEqual(errors[2]["id"], 2)
        self.assertEqual(errors[16]["id"], "bad")
        self.assertEqual({a["id"] for a in answers if "error" not in a}, {f"good {i}" for i in range(len(bad) + 1)})
        # A second run repeats neither.
        again, summary = self.generate(self.path("in.jsonl"), out=out)
        self.assertEqual(again, answers)
        self.assertEqual((summary["answers"], summary["skipped"]), (0, len(bad) + 1))

    def refuse(self, code, *args, mentions):
        result = self.llamac("generate", *args, expect=code)
        self.assertEqual(result.stdout, "")
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        self.assertIn(mentions, result.stderr)

    def test_what_cannot_be_run_at_all_is_one_line(self):
        path, out = self.write([{"tokens": [1]}]), self.fresh("out.jsonl")
        missing = self.path("none.jsonl")
        self.refuse(BAD_FILE, self.plan, "--prompts", missing, "-o", out, mentions="none.jsonl: cannot be read: No such file")
        self.refuse(BAD_FILE, self.plan, "--prompts", self.folder, "-o", out, mentions="Is a directory")
        self.refuse(USAGE, self.plan, "--prompts", path, "-o", path, mentions="another file")
        self.refuse(USAGE, self.plan, "--prompts", path, "-o", "-", "--json", mentions="--json")
        self.refuse(USAGE, self.plan, "--prompts", path, "-o", self.path("no", "dir"), mentions="cannot be written")
        self.refuse(MEMORY, self.plan, "--prompts", path, "-o", "/dev/full", mentions="No space left")
        other = self.write(["my own words"], "other.txt")
        self.refuse(USAGE, self.plan, "--prompts", path, "-o", other, mentions="other.txt:1: expected an answer")
        self.assertEqual(self.write(["my own words"], "other.txt"), other)
        config = Config(64, 1, 4, 2, vocab=99)
        bare = write_huggingface(self.path("bare"), config, random_weights(config))
        self.refuse(USAGE, bare, "--prompts", path, "-o", out, "-q", mentions="no tokenizer")
        answers, _ = self.generate([{"prompt": "a"}, {"tokens": [1], "max_tokens": 2}], "--print-ids", plan=bare)
        errors = [a for a in answers if "error" in a]
        self.assertEqual([("text" in a, len(a["tokens"])) for a in answers if a not in errors], [(False, 2)])
        self.assertIn("tokenizer", errors[0]["error"])

    def test_stdin_and_stdout(self):
        lines = "".join(json.dumps({"id": i, "tokens": [i], "max_tokens": 2}) + "\n" for i in range(1, 40))
        for tool in ([LLAMAC, "generate"], [LLAMAC_RUN, "generate"]):
            result = support.run([*tool, self.plan, "--prompts", "-", "-o", "-", "-q"], cache=self.cache, stdin=None, input=lines)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            self.assertEqual({json.loads(line)["id"] for line in result.stdout.splitlines()}, set(range(1, 40)))

    def test_a_producer_that_waits_for_its_answer_gets_it(self):
        args = [LLAMAC_RUN, "generate", self.plan, "--prompts", "-", "-o", "-", "-q"]
        with subprocess.Popen(args, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            for number in range(3):
                process.stdin.write(json.dumps({"id": number, "tokens": [3], "max_tokens": 2}) + "\n")
                process.stdin.flush()
                self.assertEqual(json.loads(process.stdout.readline())["id"], number)
            process.stdin.close()
        self.assertEqual(process.returncode, 0)


def random_requests(count, seed):
    """Requests of every kind, some of which begin alike."""
    rng = random.Random(seed)
    shared = [rng.randrange(3, 250) for _ in range(80)]
    requests = []
    for number in range(count):
        prompt = shared[: rng.randrange(81)] + [rng.randrange(3, 250) for _ in range(rng.randrange(1, 20))]
        request = {"id": number, "tokens": prompt, "max_tokens": rng.randrange(1, 30), "seed": number}
        if rng.random() < 0.6:
            request |= {"temperature": 0.9, "top_k": rng.choice([0, 20]), "top_p": rng.choice([0.8, 1])}
        if rng.random() < 0.2:
            request |= {"repetition_penalty": 1.2, "min_p": 0.01, "logprobs": 1, "logit_bias": {"5": 1.5}}
        if rng.random() < 0.2:
            request |= {"n": rng.randrange(1, 4), "priority": rng.randrange(3)}
        requests.append(request)
    return requests


class Runs(GenerateCase):
    def run_alone(self, request):
        options = {"temperature": "--temp", "top_k": "--top-k", "top_p": "--top-p", "seed": "-s"}
        flags = [word for name, flag in options.items() if name in request for word in (flag, request[name])]
        ids = ",".join(map(str, request["tokens"]))
        result = self.llamac("run", self.plan, "--tokens", ids, "-n", request["max_tokens"], *flags, "--json")
        ran = json.loads(result.stdout)
        return ran["text"], ran["generated_tokens"], ran["stop"]

    def test_answers_are_those_of_run(self):
        known = {"id", "tokens", "max_tokens", "temperature", "top_k", "top_p", "seed"}
        requests = [r for r in random_requests(80, 1) if set(r) <= known][: support.by_tier(12, 40)]
        answers, _ = self.generate(requests)
        answers = by_id(answers)
        reasons = {"length": "length", "context": "length", "stop id": "stop", "stop string": "stop"}
        for request in requests:
            text, tokens, stop = self.run_alone(request)
            answer = answers[str(request["id"]), 0]
            self.assertEqual((answer["text"], len(answer["tokens"])), (text, tokens))
            self.assertEqual(answer["finish_reason"], reasons[stop])

    def test_files_are_the_same_at_any_parallel(self):
        path = self.write(random_requests(support.by_tier(80, 400), 2))
        files, cached = [], 0
        for flags in (("--parallel", 1), ("--parallel", 16), ("--parallel", 64), ("--parallel", 16, "--kv-pages", 12)):
            for cache in ((), ("--no-prefix-cache",)):
                out = self.fresh("out.jsonl")
                answers, summary = self.generate(path, *flags, *cache, out=out)
                if cache:
                    with open(out, "rb") as f:
                        files.append(sorted(f.readlines()))
                    self.assertEqual(summary["cached_tokens"], 0)
                else:
                    cached += summary["cached_tokens"]
                    lines = [json.dumps(a | {"cached_tokens": 0}, separators=(",", ":"), ensure_ascii=False) for a in answers]
                    files.append(sorted((line + "\n").encode() for line in lines))
                if "--kv-pages" in flags:
                    self.assertGreater(summary["preemptions"], 0)
        self.assertGreater(cached, 0)
        for other in files[1:]:
            self.assertEqual([json.loads(x) for x in other], [json.loads(x) for x in files[0]])
        for other in files[3::2]:
            self.assertEqual(other, files[1])


class Resume(GenerateCase):
    def start(self, prompts, out, *flags):
        args = [LLAMAC_RUN, "generate", self.plan, "--prompts", prompts, "-o", out, *map(str, flags)]
        return subprocess.Popen(args, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def wait_for_lines(self, process, path, count):
        while process.poll() is None:
            if os.path.exists(path):
                with open(path, "rb") as f:
                    if f.read().count(b"\n") >= count:
                        return
            time.sleep(0.001)

    def test_a_killed_run_goes_on_until_each_request_has_one_answer(self):
        requests = random_requests(support.by_tier(400, 4000), 3)
        requests[50:50] = ["{bad", {"id": 3, "tokens": [1]}]
        path = self.write(requests)
        expected, summary = self.generate(path, "--no-prefix-cache")
        self.assertEqual(summary["errors"], 2)
        out, rng, kills = self.fresh("killed.jsonl"), random.Random(4), 0
        while True:
            lines = 0
            if os.path.exists(out):
                with open(out, "rb+") as f:
                    lines = f.read().count(b"\n")
                    if rng.random() < 0.5:  # The kill might have come within a write.
                        f.write(b'{"id":9,"te')
            process = self.start(path, out, "--no-prefix-cache", "-q")
            self.wait_for_lines(process, out, lines + rng.randrange(1, len(expected) // 5))
            process.kill()
            _, error = process.communicate()
            if process.returncode == 0:
                break
            self.assertEqual((process.returncode, error), (-signal.SIGKILL, ""))
            kills += 1
        self.assertGreaterEqual(kills, 3)
        key = lambda a: json.dumps(a, sort_keys=True)
        self.assertEqual(sorted(self.read(out), key=key), sorted(expected, key=key))

    def test_an_interrupt_says_how_to_go_on(self):
        path = self.write(random_requests(2000, 5))
        for number in (signal.SIGINT, signal.SIGTERM):
            out = self.fresh("interrupted.jsonl")
            process = self.start(path, out)
            self.wait_for_lines(process, out, 5)
            process.send_signal(number)
            _, error = process.communicate(timeout=60)
            self.assertEqual(process.returncode, -number)
            done = len(self.read(out))
            self.assertEqual(len(error.splitlines()), 2)
            self.assertIn(f"interrupted after {done} answers; the same command goes on from there", error)

    def test_answers_of_a_request_that_are_missing_are_the_same(self):
        request = {"id": "x", "n": 5, "seed": 11, "temperature": 1, "tokens": [1, 2], "max_tokens": 6}
        out = self.fresh("some.jsonl")
        expected, _ = self.generate([request], out=out)
        lines = [json.dumps(a) for a in expected if a["index"] in (1, 4)]
        with open(out, "w") as f:
            f.write("\n".join(lines) + "\n")
        answers, summary = self.generate([request], out=out)
        self.assertEqual(summary["answers"], 3)
        self.assertEqual({k: a["tokens"] for k, a in by_id(answers).items()}, {k: a["tokens"] for k, a in by_id(expected).items()})

    def test_answers_to_other_requests_are_not_taken_for_these(self):
        request = {"id": "x", "tokens": [1, 2], "max_tokens": 4}
        out, other = self.fresh("others.jsonl"), self.path("longer.plan")
        self.llamac("compile", self.path("model.gguf"), "-o", other, "-c", 180, "-q")
        self.generate([request], out=out)
        # Neither the order of fields nor when it runs makes it another.
        _, summary = self.generate([{"priority": 2} | dict(reversed(request.items()))], out=out)
        self.assertEqual((summary["answers"], summary["skipped"]), (0, 1))
        with open(out) as f:
            before = f.read()
        unmarked = self.path("unmarked.jsonl")
        with open(unmarked, "w") as f:
            f.write(json.dumps({k: v for k, v in json.loads(before).items() if k != "request"}) + "\n")
        short = {"id": "x", "tokens": [1, 2]}
        for case in (
            {"request": request | {"tokens": [1, 3]}},
            {"request": request | {"max_tokens": 5}},
            {"request": request | {"temperature": 1, "seed": 3}},
            {"request": request | {"stop": "a"}},
            {"request": request | {"n": 2}},
            {"request": short, "flags": ("-n", 5)},
            {"flags": ("--print-ids",)},
            {"plan": other},
            {"out": unmarked},
        ):
            with self.subTest(case):
                path, file = self.write([case.get("request", request)]), case.get("out", out)
                result = self.llamac(
                    "generate", case.get("plan", self.plan), "--prompts", path, "-o", file, *case.get("flags", ()), expect=USAGE
                )
                self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
                self.assertIn('line 1 (id "x")', result.stderr)
                self.assertIn("--overwrite", result.stderr)
                if file == out:
                    with open(out) as f:
                        self.assertEqual(f.read(), before)
        changed = request | {"tokens": [1, 3]}
        anew, _ = self.generate([changed], "--overwrite", out=out)
        self.assertEqual(anew, self.generate([changed])[0])
        with open(unmarked, "w") as f:
            f.write("a diary\n")
        for file, mentions in ((unmarked, "expected an answer of llamac generate"), ("-", "--overwrite")):
            path = self.write([request])
            result = self.llamac("generate", self.plan, "--prompts", path, "-o", file, "--overwrite", expect=USAGE)
            self.assertIn(mentions, result.stderr)
        with open(unmarked) as f:
            self.assertEqual(f.read(), "a diary\n")

    def test_a_wrong_line_that_was_changed_has_the_error_that_it_has_now(self):
        out = self.fresh("wrong.jsonl")
        wrong = [{"tokens": [1], "temperature": -1}]
        self.generate(wrong, out=out)
        for _ in range(2):
            answers, _ = self.generate([{"tokens": [1], "top_p": 0}], out=out)
            self.assertEqual(len(answers), 2)
            self.assertIn("top_p", answers[1]["error"])

    def test_a_second_process_is_kept_out(self):
        path, out = self.write(random_requests(2000, 6)), self.fresh("locked.jsonl")
        process = self.start(path, out, "-q")
        self.wait_for_lines(process, out, 1)
        result = self.llamac("generate", self.plan, "--prompts", path, "-o", out, expect=USAGE)
        process.kill()
        process.communicate()
        self.assertIn("another process", result.stderr)


class PrefixCache(GenerateCase):
    """A prefix cache in a file, from one process to the next."""

    def logprobs(self, answers):
        """Tokens and logprobs, which depend on each bit of the logits, by the id of the request."""
        return {key: (a["tokens"], a["logprobs"]) for key, a in by_id(answers).items()}

    def requests(self, seed, pages=2, count=4):
        """Prompts that begin with the same pages, of 64 tokens."""
        rng = random.Random(seed)
        shared = [rng.randrange(3, 250) for _ in range(64 * pages + count)]
        prompts = [shared[: 64 * pages + i] + [rng.randrange(3, 250)] for i in range(count)]
        return [{"id": i, "tokens": prompt, "max_tokens": 4, "logprobs": 3} for i, prompt in enumerate(prompts)]

    def check(self, plan, pages, count, *flags):
        requests, file = self.requests(7, pages, count), self.fresh("prefixes")
        expected, _ = self.generate(requests, "--no-prefix-cache", *flags, plan=plan)
        for threads in (1, 2):
            answers, summary = self.generate(requests, "--prefix-cache", file, "-t", threads, *flags, plan=plan)
            self.assertEqual(self.logprobs(answers), self.logprobs(expected))
            self.assertEqual(summary["loaded_tokens"], 64 * pages * (threads - 1))
        self.assertEqual({a["cached_tokens"] for a in answers}, {64 * pages})

    def test_the_bits_are_those_without_at_any_thread_count(self):
        self.check(self.plan, 2, 4)

    def test_so_they_are_on_the_simulator(self):
        config = Config(64, 1, 4, 2, vocab=261)
        model = write_gguf(self.path("sim.gguf"), config, quantise(random_weights(config, "bf16", 5), "F32")[0])
        plan = self.path("sim.plan")
        support.run([LLAMAC, "compile", model, "--target", "sim", "-o", plan, "-c", "96", "-q"], cache=self.cache, check=True)
        self.check(plan, 1, 2, "--parallel", 2, "--batch-invariant")

    def test_a_file_of_another_model_or_kind_is_refused_and_stays(self):
        file = self.fresh("prefixes")
        path, out = self.write(self.requests(1)), self.fresh("out.jsonl")
        self.generate(path, "--prefix-cache", file, out=out)
        with open(file, "rb") as f:
            saved = f.read()

        def refuse(code, mentions, name=file, plan=self.plan, flags=()):
            result = self.llamac("generate", plan, "--prompts", path, "-o", out, "--prefix-cache", name, *flags, expect=code)
            self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
            self.assertIn(mentions, result.stderr)

        other = self.path("other.plan")
        compile = [LLAMAC, "compile", self.path("model.gguf"), "-o", other, "-q"]
        support.run([*compile, "-c", "180"], cache=self.cache, check=True)
        refuse(USAGE, "expected a prefix cache of plan ", plan=other)
        with open(file, "rb") as f:
            self.assertEqual(f.read(), saved)
        refuse(BAD_FILE, "another kind of file", name=path)
        with open(self.path("cut"), "wb") as f:
            f.write(saved[:-1])
        refuse(BAD_FILE, f"cut:32: size of the file: expected {len(saved)} bytes", name=self.path("cut"))
        refuse(USAGE, "cannot be written", name=self.path("no", "prefixes"))
        refuse(USAGE, "--no-prefix-cache", flags=("--no-prefix-cache",))

    def test_an_interrupted_run_saves_what_it_computed(self):
        file, out = self.fresh("prefixes"), self.fresh("interrupted.jsonl")
        path = self.write(random_requests(2000, 5))
        args = [LLAMAC_RUN, "generate", self.plan, "--prompts", path, "-o", out, "--prefix-cache", file]
        with subprocess.Popen(args, stderr=subprocess.PIPE, text=True) as process:
            while not os.path.exists(out) or os.path.getsize(out) < 2000:
                time.sleep(0.001)
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=60)
        self.assertEqual(process.returncode, -signal.SIGTERM)
        _, summary = self.generate(path, "--prefix-cache", file, out=out)
        self.assertGreater(summary["loaded_tokens"], 0)


class Grammars(GenerateCase):
    def test_an_answer_matches_its_grammar(self):
        schema = {"type": "object", "properties": {"b": {"type": "boolean"}, "a": {"enum": [1, 2]}}, "required": ["b", "a"]}
        common = {"prompt": "a", "temperature": 1, "max_tokens": 60}
        requests = [{"id": f"regex {i}", "regex": "(ab|c)+d", "seed": i, **common} for i in range(8)]
        requests += [{"id": f"schema {i}", "json_schema": schema, "seed": i, **common} for i in range(8)]
        format = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
        requests += [{"id": "schema of a format", "response_format": format, "seed": 9, **common}]
        requests += [{"id": "object", "response_format": {"type": "json_object"}, "seed": 9, **common}]
        answers, _ = self.generate(requests)
        if "without XGrammar" in answers[0].get("error", ""):
            self.skipTest(answers[0]["error"])
        for answer in answers:
            with self.subTest(answer["id"]):
                if answer["finish_reason"] == "length":
                    continue
                if answer["id"] == "object":
                    self.assertIsInstance(json.loads(answer["text"]), dict)
                elif answer["id"].startswith("regex"):
                    self.assertRegex(answer["text"], r"\A(ab|c)+d\Z")
                else:
                    self.assertEqual(list(json.loads(answer["text"])), ["b", "a"])
        self.assertIn("stop", {a["finish_reason"] for a in answers})


class Bench(GenerateCase):
    """llamac bench of requests that come and go."""

    def bench(self, *flags):
        result = self.llamac("bench", self.plan, "--json", *flags)
        return [json.loads(line) for line in result.stdout.splitlines()]

    def test_requests_at_a_rate(self):
        reports = self.bench("--requests", 12, "--rate", 400, "--prompt-tokens", "5,9", "--gen-tokens", 4, "--batch", "1,3")
        self.assertEqual([report["sequences"] for report in reports], [1, 3])
        for report in reports:
            counts = report["requests"], report["prompt_tokens"], report["generated_tokens"], report["cached_tokens"]
            self.assertEqual(counts, (12, 12 * 7, 48, 0))
            for times in ("first_token_s", "between_tokens_s", "answer_s"):
                self.assertLess(0, report[times]["median"])
                self.assertLessEqual(report[times]["median"], report[times]["p99"])
            self.assertLess(0, report["host_share"])
            self.assertLess(report["host_share"], 1)
            self.assertAlmostEqual(report["output_tok_s"] * report["seconds"], 48)

    def test_a_trace(self):
        trace = [{"arrival": 0.3, "prompt_tokens": 140, "gen_tokens": 2}, {"arrival": 0, "prompt_tokens": 150, "gen_tokens": 3}]
        path = self.write(trace, "trace.jsonl")
        (report,) = self.bench("--trace", path, "--shared-prefix", 130, "--batch", 2)
        self.assertEqual((report["prompt_tokens"], report["generated_tokens"]), (290, 5))
        self.assertEqual(report["cached_tokens"], 128)
        self.assertGreater(report["seconds"], 0.3)
        for bad, message in [("{}", "arrival: expected"), ('{"arrival": 0, "prompt_tokens": 0, "gen_tokens": 1}', "at least 1")]:
            result = self.llamac("bench", self.plan, "--trace", self.write([bad], "trace.jsonl"), expect=BAD_FILE)
            self.assertIn("trace.jsonl:1:", result.stderr)
            self.assertIn(message, result.stderr)

    def test_a_long_prompt_beside_streams(self):
        flags = ("--long-prompt", 100, "--prompt-rows", 9, "--batch", 2, "--prompt-tokens", 4, "--gen-tokens", 6, "--repeat", 2)
        (report,) = self.bench(*flags)
        self.assertEqual((report["streams"], report["times_alone"]), (2, 2 * 2 * 6))
        # 12 steps of 9 rows, and those in which the streams have a token.
        self.assertEqual(report["times_beside"], 2 * 2 * 12)
        self.assertGreater(report["p99_ratio"], 0)

    def test_drafts_of_requests(self):
        flags = ("--requests", 6, "--prompt-tokens", 9, "--gen-tokens", 12, "--batch", 2)
        (plain,) = self.bench(*flags)
        self.assertEqual((plain["draft_tokens"], plain["tokens_per_step"]), (0, 1))
        # The model drafts for itself, and is mostly right.
        flags += ("--speculative", 4, "--draft", self.plan)
        (drafted,) = self.bench(*flags)
        accepted = drafted["accepted_tokens"]
        self.assertEqual(drafted["generated_tokens"], 72)
        self.assertGreater(accepted, 20)
        self.assertLessEqual(accepted, drafted["draft_tokens"])
        self.assertEqual(sum(drafted["accepted_by_place"]), accepted)
        self.assertEqual(drafted["tokens_per_step"], 72 / (72 - accepted))
        self.assertLess(drafted["steps"], plain["steps"])
        self.assertLess(0, drafted["between_tokens_s"]["median"])
        text = self.llamac("bench", self.plan, *flags).stdout
        self.assertRegex(text, r"(?m)^drafts +\d+\.\d\d tokens a step  \(\d+ of \d+ draft tokens accepted; by place: \d+ [ \d]+\)$")

    def test_a_request_that_fills_the_context_runs(self):
        (report,) = self.bench("--requests", 1, "--prompt-tokens", self.CONTEXT, "--gen-tokens", 1)
        self.assertEqual((report["prompt_tokens"], report["generated_tokens"]), (self.CONTEXT, 1))

    def test_options_that_have_no_effect_are_refused(self):
        for flags, message in [
            (("--speculative", 2), "--speculative: expected it with --requests or --trace; other tokens are fixed"),
            (("--draft", self.plan), "--draft: expected it with --requests or --trace; other tokens are fixed"),
            (("--long-prompt", 5, "--speculative", -1), "--speculative: expected it with --requests or --trace"),
            (("--requests", 2, "--speculative", 17), "--speculative: expected -2 to 16, got 17"),
            (("--rate", 5), "--rate: expected it with --requests"),
            (("--kv-pages", 5), "--kv-pages: expected it with"),
            (("--batch-invariant",), "--batch-invariant: expected it with"),
            (("--requests", 2, "--kernels"), "--kernels: expected it without"),
            (("--requests", 2, "--long-prompt", 5), "--long-prompt: expected it without"),
            (("--requests", 2, "--prompt-tokens", self.CONTEXT + 1), f"at most {self.CONTEXT} tokens"),
            (("--requests", 2, "--rate", -1), "--rate: expected requests a second"),
        ]:
            result = self.llamac("bench", self.plan, *flags, expect=USAGE)
            self.assertIn(message, result.stderr)


class RealModel(support.TestCase):
    def test_answers_are_those_of_run(self):
        model = support.require_model("smollm2.gguf")
        prompts = ["The capital of France is", "Once upon a time", "1, 1, 2, 3, 5, 8,", "Water boils at"]
        requests = [{"id": p, "prompt": p, "max_tokens": 16, "stop": ".", **s} for p in prompts for s in ({"temperature": 0},)]
        requests += [{"id": p + "!", "prompt": p, "max_tokens": 16, "temperature": 0.8, "top_p": 0.9, "seed": 3} for p in prompts]
        path, out = self.path("in.jsonl"), self.path("out.jsonl")
        with open(path, "w") as f:
            f.writelines(json.dumps(r) + "\n" for r in requests)
        self.llamac("generate", model, "--prompts", path, "-o", out, "-q")
        with open(out) as f:
            answers = {a["id"]: a for a in map(json.loads, f)}
        for request in requests[:: support.by_tier(2, 1)]:
            flags = ["--temp", request["temperature"]]
            flags += ["--top-p", 0.9, "-s", 3] if "seed" in request else ["--stop", "."]
            text = self.llamac("run", model, "--raw", "-p", request["prompt"], "-n", 16, *flags, "-q").stdout
            self.assertEqual(answers[request["id"]]["text"] + "\n", text)


if __name__ == "__main__":
    unittest.main()
