# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The Python package, installed from its wheel, with SmolLM2. The tool `llamac`
says what is right: its answers, tokens and logits.

    test_package.py Types | Commands | Models | Answers | EventLoops | Faults | Logits | Examples
"""

import asyncio
import concurrent.futures
import gc
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "e2e"))

import support
from support import LLAMAC, ROOT

support.require("numpy", "gguf", "llamac")

import numpy as np
import scripted_model

import llamac
from llamac import Code, _native

MODEL = support.require_model("smollm2.gguf")
PROMPT = "The capital of France is"


class PackageTest(support.TestCase):
    """Plans are cached in the folder of the class."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        os.environ["XDG_CACHE_HOME"] = cls.cache
        cls.addClassCleanup(os.environ.pop, "XDG_CACHE_HOME")
        cls.model = llamac.Model.load(MODEL, threads=2, sequences=16)
        cls.addClassCleanup(cls.model.close)

    def setUp(self):
        self.engine = llamac.Engine(self.model)
        self.addCleanup(self.engine.close)

    def run_tool(self, prompt, *options):
        """The answer of `llamac run` in its JSON."""
        return json.loads(self.llamac("run", MODEL, "-p", prompt, "--raw", "--json", *options).stdout)

    def assert_error(self, code, words, function, *args, **options):
        with self.assertRaises(llamac.Error) as caught:
            function(*args, **options)
        self.assertEqual(caught.exception.code, code)
        self.assertIn(words, str(caught.exception))
        self.assertNotIn("\n", str(caught.exception))


class Types(unittest.TestCase):
    def test_all_that_is_public_has_types_and_words(self):
        folder = os.path.dirname(llamac.__file__)
        for name in ("py.typed", "_native.pyi"):
            self.assertTrue(os.path.exists(os.path.join(folder, name)), name)
        for name in llamac.__all__:
            value = getattr(llamac, name)
            self.assertTrue(value.__doc__, name)
            members = vars(value).items() if isinstance(value, type) else [(name, value)]
            for member, function in members:
                function = getattr(function, "__func__", getattr(function, "fget", function))
                if callable(function) and hasattr(function, "__code__") and function.__module__.startswith("llamac"):
                    if "Self" not in str(function.__annotations__) and function.__code__.co_filename.startswith(folder):
                        self.assertIn("return", function.__annotations__, f"{name}.{member}")

    def test_a_type_checker_accepts_the_package_and_its_examples(self):
        support.require("mypy")
        examples = os.path.join(ROOT, "examples", "python")
        files = [os.path.join(examples, name) for name in sorted(os.listdir(examples)) if name.endswith(".py")]
        clients = [file for file in files if os.path.basename(file).startswith("client_")]
        files = [file for file in files if file not in clients]
        with tempfile.TemporaryDirectory() as cache:
            checker = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--cache-dir", cache]
            # The libraries of the clients are large, and may be missing.
            alone = ["--follow-imports=skip", "--ignore-missing-imports"]
            for subject in (files, [*alone, *clients], ["-p", "llamac"]):
                result = support.run([*checker, *subject], cwd=cache)
                self.assertEqual((result.returncode, result.stdout), (0, ""))
            wrong = os.path.join(cache, "wrong.py")
            with open(wrong, "w") as file:
                file.write("import llamac\n\ndef f(engine: llamac.Engine) -> None:\n    engine.submit('a', top_k='b')\n")
            self.assertIn("top_k", support.run([*checker, wrong], cwd=cache).stdout)

    def test_the_version_is_the_tools(self):
        self.assertEqual(support.run([LLAMAC, "--version"]).stdout.split()[1], llamac.__version__)

    def test_the_compiler_is_not_loaded(self):
        with open("/proc/self/maps") as maps:
            text = maps.read()
        self.assertIn("libllamac.so", text)
        self.assertNotIn("LLVM", text)
        self.assertNotIn("MLIR", text)


class Commands(unittest.TestCase):
    def command(self, name, *args):
        return support.run([os.path.join(os.path.dirname(sys.executable), name), *args])

    def test_they_are_the_tools(self):
        for name in ("llamac", "llamac-run"):
            version = self.command(name, "--version")
            self.assertEqual((version.returncode, version.stderr), (0, ""))
            self.assertTrue(version.stdout.startswith(f"{name} {llamac.__version__}\n"), version.stdout)
            expected = support.run([os.path.join(support.BIN_DIR, name), "run", "no such.plan", "-n", "1"])
            actual = self.command(name, "run", "no such.plan", "-n", "1")
            self.assertEqual((actual.returncode, actual.stderr), (expected.returncode, expected.stderr))

    def test_the_package_is_run_as_the_tool(self):
        run = support.run([sys.executable, "-m", "llamac", "--version"])
        self.assertEqual((run.returncode, run.stdout), (0, self.command("llamac", "--version").stdout))


class Models(PackageTest):
    def test_a_model_says_what_it_is(self):
        self.assertEqual((self.model.vocab_size, self.model.tokenizer_size), (49152, 49152))
        self.assertEqual((self.model.context, self.model.sequences), (8192, 16))
        self.assertEqual((self.model.target, self.model.device), ("cpu", "cpu, 2 threads"))
        # <|im_end|>, which the checkpoint names, and <|endoftext|>, which the tokenizer knows.
        # <reponame>, which is 4, ends an answer to llama.cpp, too.
        self.assertEqual((self.model.bos_id, self.model.stop_ids), (None, [2, 0, 4]))

    def test_tokens_are_the_tools_and_come_back_as_text(self):
        for text in (PROMPT, "Grüße, 世界! 🙂\n\tx = [1, 2]", "<|im_end|>", ""):
            tokens = self.model.encode(text)
            if text:
                listed = self.llamac("tokenize", MODEL, text).stdout
                self.assertEqual(tokens, [int(word) for word in listed.replace(",", " ").split()])
            self.assertEqual(self.model.decode(tokens, special=True), text)
            self.assertEqual(b"".join(map(self.model.token_bytes, tokens)).decode(), text)
        self.assertEqual(self.model.encode("<|im_end|>", special=True), [2])
        self.assertEqual(self.model.decode([2]), "")
        self.assert_error(Code.USAGE, "49152", self.model.decode, [49152])

    def test_a_model_is_compiled_once(self):
        plans = os.path.join(self.cache, "llamac", "plans")
        before = os.listdir(plans)
        self.assertIn(os.path.basename(self.model.path), before)
        with llamac.Model.load(MODEL) as again:
            self.assertEqual(again.path, self.model.path)
        # llamac run finds the same plan.
        self.assertNotIn("compiling", self.llamac("run", MODEL, "-p", "a", "-n", 1).stderr)
        self.assertEqual(os.listdir(plans), before)
        with llamac.Model.load(MODEL, compile={"ctx_size": 64}) as short:
            self.assertEqual(short.context, 64)
            self.assertNotEqual(short.path, self.model.path)
            # A plan has been compiled, in one way.
            llamac.Model.load(short.path, compile={"ctx_size": 64}).close()
            self.assert_error(Code.USAGE, "ctx_size: expected 64, which", llamac.Model.load, short.path, compile={"ctx_size": 5})

    def test_the_name_of_a_pulled_model_is_a_model(self):
        models = self.path("models")
        pulled = os.path.join(models, "anna", "small")
        os.makedirs(pulled)
        os.symlink(MODEL, os.path.join(pulled, "smollm2.gguf"))
        open(os.path.join(pulled, ".pulled.json"), "w").close()
        before = os.environ["LLAMAC_MODELS"]
        os.environ["LLAMAC_MODELS"] = models
        self.addCleanup(os.environ.update, LLAMAC_MODELS=before)
        with llamac.Model.load("anna/small") as model:
            self.assertEqual(model.path, self.model.path)
        self.assert_error(Code.BAD_FILE, "llamac pull anna/other", llamac.Model.load, "anna/other")

    def test_a_plan_of_ones_own(self):
        plan = llamac.compile(MODEL, self.path("own.plan"), ctx_size=128, parallel=2, weights="q8_0")
        with llamac.Model.load(plan) as model:
            self.assertEqual((model.path, model.context, model.sequences), (plan, 128, 2))

    def test_errors_of_the_compiler_have_its_code_and_line(self):
        self.assert_error(Code.BAD_FILE, "no-such", llamac.compile, "/no-such", self.path("a.plan"))
        self.assert_error(Code.USAGE, "unknown option colour; llamac compile --help lists them", llamac.compile, MODEL, self.path("a.plan"), colour="red")
        self.assert_error(Code.USAGE, "ctx_size: expected 1 to", llamac.Model.load, MODEL, compile={"ctx_size": 0})
        broken = self.path("broken.gguf")
        with open(broken, "wb") as file:
            file.write(b"GGUF\3\0\0\0" + b"\xff" * 60)
        self.assert_error(Code.BAD_FILE, "broken.gguf", llamac.Model.load, broken)

    def test_errors_of_loading_have_their_code(self):
        broken = self.path("broken.plan")
        with open(broken, "wb") as file:
            file.write(b"no plan at all" * 100)
        self.assert_error(Code.BAD_PLAN, "expected a plan or a model, got another kind of file", llamac.Model.load, broken)
        self.assert_error(Code.USAGE, "thread", llamac.Model.load, self.model.path, thread=2)
        self.assert_error(Code.USAGE, "expected an int", llamac.Model.load, self.model.path, threads="two")


class Answers(PackageTest):
    def test_answers_are_the_tools_whatever_else_runs(self):
        prompts = [PROMPT, "Once upon a time", "def fibonacci(n):"]
        sampling = dict(max_tokens=24, temperature=0.8, top_k=40)
        flags = ("-n", 24, "--temp", 0.8, "--top-k", 40)
        sampled = [(p, self.engine.submit(p, seed=len(p), **sampling)) for p in prompts * 4]
        greedy = [(p, self.engine.submit(p, max_tokens=24, temperature=0)) for p in prompts]
        expected = {p: self.run_tool(p, *flags, "--seed", len(p))["text"] for p in prompts}
        for prompt, answer in sampled:
            self.assertEqual(answer.text(), expected[prompt])
        for prompt, answer in greedy:
            self.assertEqual(answer.text(), self.run_tool(prompt, "-n", 24, "--temp", 0)["text"])

    def test_parts_are_the_answer(self):
        answer = self.engine.submit(PROMPT, max_tokens=12, temperature=0)
        parts = list(answer)
        self.assertTrue(answer.done)
        self.assertIsNone(answer.next())
        result = answer.result()
        self.assertEqual("".join(part.text for part in parts), result.text)
        self.assertEqual([token for part in parts for token in part.tokens], result.tokens)
        self.assertEqual([part.end for part in parts if part.end], [result.end])
        self.assertEqual((result.end.reason, result.end.answer_tokens, result.end.prompt_tokens), ("length", 12, 5))
        self.assertTrue(result.text.startswith(" Paris"))
        ids = self.engine.submit(self.model.encode(PROMPT), max_tokens=12, temperature=0)
        self.assertEqual(ids.result().tokens, result.tokens)

    def test_n_answers_are_those_of_the_next_seeds(self):
        options = dict(max_tokens=10, temperature=1.0)
        several = self.engine.submit(PROMPT, n=3, seed=2**64 - 2, **options).results()
        self.assertEqual([result.index for result in several], [0, 1, 2])
        self.assertEqual([result.end.seed for result in several], [2**64 - 2, 2**64 - 1, 0])
        for result in several:
            alone = self.engine.submit(PROMPT, seed=result.end.seed, **options).result()
            self.assertEqual(alone.tokens, result.tokens)

    def test_options_change_answers(self):
        paris = self.engine.submit(PROMPT, max_tokens=8, temperature=0).result()
        stopped = self.engine.submit(PROMPT, max_tokens=8, temperature=0, stop="aris").result()
        self.assertEqual((stopped.text, stopped.end.reason), (" P", "stop string"))
        ended = self.engine.submit(PROMPT, max_tokens=8, temperature=0, stop_token_ids=[paris.tokens[1]]).result()
        self.assertEqual((ended.tokens, ended.end.reason), (paris.tokens[:1], "stop id"))
        biased = self.engine.submit(PROMPT, max_tokens=1, temperature=0, logit_bias={paris.tokens[0]: -100}).result()
        self.assertNotEqual(biased.tokens[0], paris.tokens[0])
        silent = self.engine.submit(PROMPT, max_tokens=8, temperature=0, detokenize=False).result()
        self.assertEqual((silent.text, silent.tokens), ("", paris.tokens))

    def test_logprobs_are_those_of_the_logits(self):
        tokens = self.model.encode(PROMPT)
        result = self.engine.submit(tokens, max_tokens=4, temperature=0, logprobs=3).result()
        with self.model.sequence() as sequence:
            logits = sequence.step(tokens + result.tokens[:-1], "all")[len(tokens) - 1 :].astype(np.float64)
        expected = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        for row, token in zip(expected, result.logprobs):
            self.assertAlmostEqual(token.logprob, row[token.token], delta=1e-4)
            self.assertEqual([each for each, _ in token.alternatives], list(np.argsort(-row)[:3]))
            np.testing.assert_allclose([p for _, p in token.alternatives], np.sort(-row)[:3] * -1, atol=1e-4)

    def test_a_grammar_rules_the_answer(self):
        try:
            digits = self.engine.submit("A number: ", max_tokens=30, regex="[0-9]{3}-[0-9]{2}").result()
        except llamac.Error as error:
            self.assertEqual(error.code, Code.UNSUPPORTED)
            self.skipTest(str(error))
        self.assertRegex(digits.text, r"^\d{3}-\d{2}$")
        schema = {"type": "object", "properties": {"a": {"enum": [1, 2]}}, "required": ["a"], "additionalProperties": False}
        for form in (schema, json.dumps(schema)):
            shaped = self.engine.submit("JSON:", max_tokens=60, temperature=0, json_schema=form).text()
            self.assertIn(json.loads(shaped), ({"a": 1}, {"a": 2}))
        self.assert_error(Code.USAGE, "the only grammar of a request", self.engine.submit, PROMPT, regex="a", json_object=True)

    def test_threads_share_an_engine(self):
        def answer(seed):
            return self.engine.submit(PROMPT, max_tokens=6, temperature=1.0, seed=seed % 8).result().tokens

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(answer, range(64)))
        for seed in range(64):
            self.assertEqual(answers[seed], answers[seed % 8])
        self.assertEqual(len({tuple(tokens) for tokens in answers}) > 1, True)

    def test_waiting_leaves_other_threads_running(self):
        answer = self.engine.submit(PROMPT, max_tokens=4000, temperature=0, ignore_eos=True)
        # It can only be cancelled while result() waits.
        threading.Timer(0.2, answer.cancel).start()
        self.assertEqual(answer.result().end.reason, "cancelled")

    def test_a_wait_has_a_limit(self):
        answers = [self.engine.submit(PROMPT, max_tokens=50, ignore_eos=True, n=16) for _ in range(2)]
        self.assertIsNone(answers[1].next(timeout=0))
        answers[1].next(timeout=0.01)

    def test_an_engine_that_is_closed_leaves_its_prefixes_to_the_next(self):
        prompt, file = self.model.encode(PROMPT * 30), self.path("prefixes")
        expected = self.engine.submit(prompt, max_tokens=4, temperature=0, logprobs=3).result()
        pages = (len(prompt) - 1) // 64 * 64
        self.assertGreater(pages, 0)
        for loaded in (0, pages):
            with llamac.Engine(self.model, prefix_file=file) as engine:
                result = engine.submit(prompt, max_tokens=4, temperature=0, logprobs=3).result()
                self.assertEqual((result.tokens, result.logprobs), (expected.tokens, expected.logprobs))
                self.assertEqual(result.end.cached_tokens, loaded)
                while engine.counts().running:
                    pass
                self.assertEqual(engine.counts().loaded_tokens, loaded)

    def test_counts_add_up(self):
        self.engine.submit(PROMPT, max_tokens=5, temperature=0, ignore_eos=True).result()
        self.engine.submit(PROMPT, max_tokens=5, temperature=0, ignore_eos=True).result()
        while self.engine.counts().running:
            pass
        counts = self.engine.counts()
        self.assertEqual((counts.finished, counts.failed, counts.answer_tokens, counts.prompt_tokens), (2, 0, 10, 10))
        self.assertEqual(counts.free_pages, counts.pages)


class EventLoops(PackageTest):
    def test_a_loop_waits_for_many_answers_and_does_other_things(self):
        async def main():
            ticks = 0

            async def tick():
                nonlocal ticks
                while True:
                    ticks += 1
                    await asyncio.sleep(0)

            ticking = asyncio.create_task(tick())
            answers = [self.engine.submit(PROMPT, max_tokens=8, temperature=1.0, seed=i) for i in range(30)]
            results = await asyncio.gather(*answers)
            ticking.cancel()
            self.assertGreater(ticks, 1)
            return results

        results = asyncio.run(main())
        for seed in (0, 29):
            alone = self.engine.submit(PROMPT, max_tokens=8, temperature=1.0, seed=seed).result()
            self.assertEqual(results[seed].tokens, alone.tokens)

    def test_parts_come_one_by_one(self):
        async def main():
            async with self.engine.submit(PROMPT, max_tokens=8, temperature=0) as answer:
                return [part async for part in answer]

        parts = asyncio.run(main())
        self.assertEqual(sum(len(part.tokens) for part in parts), 8)
        self.assertEqual(parts[-1].end.reason, "length")

    def test_an_answer_may_go_from_loop_to_loop_and_thread(self):
        answer = self.engine.submit(PROMPT, max_tokens=30, temperature=0, ignore_eos=True)

        async def one():
            return await answer.__anext__()

        parts = [asyncio.run(one()), asyncio.run(one()), next(answer)]
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            parts.append(pool.submit(asyncio.run, one()).result())
        result = answer.result()
        taken = [token for part in parts for token in part.tokens]
        self.assertEqual(result.tokens[: len(taken)], taken)
        self.assertEqual(len(result.tokens), 30)

    def test_a_cancelled_task_leaves_its_answer(self):
        async def main():
            answer = self.engine.submit(PROMPT, max_tokens=4000, temperature=0, ignore_eos=True)
            task = asyncio.ensure_future(answer.gather())
            await asyncio.sleep(0.05)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            answer.cancel()
            return await answer

        self.assertEqual(asyncio.run(main()).end.reason, "cancelled")

    def test_an_engine_that_is_closed_wakes_its_loop(self):
        async def main():
            answer = self.engine.submit(PROMPT, max_tokens=4000, temperature=0, ignore_eos=True)
            task = asyncio.ensure_future(answer.gather())
            await asyncio.sleep(0.05)
            self.engine.close()
            await task

        self.assert_error(Code.USAGE, "before the answer ended", asyncio.run, main())


class Faults(PackageTest):
    LONG = dict(max_tokens=4000, temperature=0, ignore_eos=True)

    def test_wrong_requests_are_refused_at_once(self):
        submit = self.engine.submit
        self.assert_error(Code.USAGE, "9000", submit, [5] * 9000)
        self.assert_error(Code.USAGE, "49152", submit, [49152])
        self.assert_error(Code.USAGE, "at least one token", submit, [])
        self.assert_error(Code.USAGE, "temperature", submit, PROMPT, temperature=-1)
        self.assert_error(Code.USAGE, "expected one of a request: max_tokens", submit, PROMPT, max_token=1)
        self.assert_error(Code.USAGE, "expected a float, got 'hot'", submit, PROMPT, temperature="hot")
        self.assert_error(Code.USAGE, "option stop", submit, PROMPT, stop=["a\0b"])
        self.assert_error(Code.USAGE, "not empty", submit, PROMPT, stop=["a", ""])
        with llamac.Engine(self.model, max_waiting=1) as small:
            # Beside those that run, of which no model has so many.
            self.assert_error(Code.MEMORY, "answers that run or wait", small.submit, PROMPT, n=100)

    def test_numbers_out_of_range_are_value_errors_that_name_their_field(self):
        def refuse(name, function, *args, **options):
            with self.assertRaises(llamac.UsageError) as caught:
                function(*args, **options)
            self.assertIsInstance(caught.exception, ValueError)
            self.assertEqual(caught.exception.code, Code.USAGE)
            self.assertRegex(str(caught.exception), rf"\b{name}(: expected|\)$)")
            self.assertLess(len(str(caught.exception)), 300)

        makers = (
            lambda **options: llamac.Model.load(self.model.path, **options),
            lambda **options: llamac.Engine(self.model, **options),
            lambda **options: self.engine.submit([5], **options),
        )
        numbers = 0
        for scope, make in enumerate(makers):
            for name, kind, _ in _native.list_options(scope):
                if kind in (1, 2, 7):
                    # Temperatures and limits of time may be large.
                    values = [-(10**5000), -(2**64)] + [2**64, 10**5000] * (kind != 2)
                    values += [-(2**40)] * (kind != 7) + [2**40] * (kind == 1 and name != "top_k")
                    for value in values:
                        with self.subTest(name, digits=value.bit_length()):
                            refuse(name, make, **{name: value})
                    numbers += 1
        self.assertGreater(numbers, 20)
        refuse("stop_token_ids", self.engine.submit, [5], stop_token_ids=[2**40])
        refuse("stop_token_ids", self.engine.submit, [5], stop_token_ids=[-1])
        refuse("logit_bias", self.engine.submit, [5], logit_bias={2**40: 1})
        for id in (-1, 2**40, -(2**70), 10**5000):
            refuse("token 1" if id == -1 else "prompt", self.engine.submit, [5, id])
            refuse("(token|token id)", self.model.token_bytes, id)
            refuse("(tokens|token id)", self.model.decode, [5, id])
            with self.model.sequence() as sequence:
                refuse("(tokens|token 1)", sequence.step, [5, id])
                refuse("length", sequence.truncate, id)
        for seed, same in ((-1, 2**64 - 1), (-(2**63), 2**63)):
            hot = {"max_tokens": 8, "temperature": 1.5}
            ends = [self.engine.submit(PROMPT, seed=one, **hot).result() for one in (seed, same)]
            self.assertEqual(ends[0].tokens, ends[1].tokens)
            self.assertEqual(ends[0].end.seed, same)

    def test_what_is_closed_says_so(self):
        def check(name, function, *arguments):
            said = f"{name}: expected an open one, got one that was closed"
            self.assert_error(Code.USAGE, said, function, *arguments)

        answer = self.engine.submit(PROMPT, **self.LONG)
        answer.close()
        answer.close()
        check("answer", answer.result)
        self.engine.close()
        self.engine.close()
        check("engine", self.engine.submit, PROMPT)
        check("engine", self.engine.counts)
        sequence = self.model.sequence()
        sequence.close()
        check("sequence", sequence.step, [5])
        with llamac.Model.load(self.model.path) as model:
            pass
        check("model", model.encode, "a")

    def test_an_answer_shows_how_far_it_came(self):
        answer = self.engine.submit(PROMPT, max_tokens=2)
        self.assertEqual(repr(answer), "<llamac.Answer of which 0 tokens and 0 of 1 ends are taken>")
        answer.result()
        self.assertEqual(repr(answer), "<llamac.Answer of which 2 tokens and 1 of 1 ends are taken>")
        answers = self.engine.submit(PROMPT, max_tokens=1, n=2)
        self.assertEqual(repr(answers), "<llamac.Answer of which 0 tokens and 0 of 2 ends are taken>")
        answers.results()
        self.assertEqual(repr(answers), "<llamac.Answer of which 2 tokens and 2 of 2 ends are taken>")

    def test_an_engine_that_is_closed_ends_its_requests(self):
        answers = [self.engine.submit(PROMPT, **self.LONG) for _ in range(20)]
        next(answers[0])
        self.engine.close()
        for answer in answers:
            self.assert_error(Code.USAGE, "before the answer ended", answer.result)
            self.assertTrue(answer.done)

    def test_an_interrupt_ends_a_wait(self):
        answer = self.engine.submit(PROMPT, **self.LONG)
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        with self.assertRaises(KeyboardInterrupt):
            answer.result()
        answer.cancel()
        self.assertEqual(answer.result().end.reason, "cancelled")

    def test_an_interrupted_compilation_leaves_nothing(self):
        folder = self.path("interrupted")
        os.mkdir(folder)
        program = "import llamac, sys; print('go', flush=True); llamac.compile(sys.argv[1], sys.argv[2], isa='portable')"
        process = subprocess.Popen(
            [sys.executable, "-c", program, MODEL, os.path.join(folder, "a.plan")],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=dict(os.environ, XDG_CACHE_HOME=os.path.join(folder, "cache")),
        )
        process.stdout.readline()
        children = f"/proc/{process.pid}/task/{process.pid}/children"
        name = ""
        while name != "llamac\n":
            with open(children) as listing:
                compiler = listing.read().strip()
            if compiler:
                with open(f"/proc/{compiler}/comm") as comm:
                    name = comm.read()
        # It does not end by itself while Python comes to wait for it and to end it.
        os.kill(int(compiler), signal.SIGSTOP)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        pending = 0
        while not pending >> (signal.SIGTERM - 1) & 1:
            with open(f"/proc/{compiler}/status") as status:
                pending = int(re.search(r"ShdPnd:\s+(\w+)", status.read())[1], 16)
        os.kill(int(compiler), signal.SIGCONT)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, -signal.SIGINT)
        self.assertFalse(os.path.exists(f"/proc/{compiler}"))
        self.assertEqual([name for name in os.listdir(folder) if name != "cache"], [])

    def test_a_forked_child_loads_a_model_of_its_own(self):
        answer = self.engine.submit(PROMPT, **self.LONG)
        expected = self.engine.submit(PROMPT, max_tokens=4, temperature=0).result().tokens
        child = os.fork()
        if child == 0:
            code = 1
            try:
                self.assertEqual(self.model.encode(PROMPT), [504, 3575, 282, 4649, 314])
                self.assert_error(Code.DEVICE, "child", self.engine.submit, PROMPT)
                self.assert_error(Code.DEVICE, "child", llamac.Engine, self.model)
                self.assert_error(Code.DEVICE, "child", self.model.sequence)
                self.assert_error(Code.DEVICE, "child", lambda: list(answer))
                self.engine.close()
                with llamac.Model.load(self.model.path, threads=2) as own, llamac.Engine(own) as engine:
                    self.assertEqual(engine.submit(PROMPT, max_tokens=4, temperature=0).result().tokens, expected)
                code = 0
            finally:
                os._exit(code)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        answer.cancel()
        self.assertEqual(answer.result().end.reason, "cancelled")

    def test_nothing_is_left_behind(self):
        def use():
            with llamac.Model.load(self.model.path, threads=2) as model, llamac.Engine(model) as engine:
                engine.submit(PROMPT, **self.LONG)  # Dropped.
                asyncio.run(engine.submit(PROMPT, max_tokens=2).gather())
                with model.sequence() as sequence:
                    sequence.step([5])

        def held():
            gc.collect()
            with open("/proc/self/status") as status:
                threads = [line for line in status if line.startswith("Threads:")]
            return len(os.listdir("/proc/self/fd")), threads

        use()
        before = held()
        for _ in range(3):
            use()
        self.assertEqual(held(), before)


class Logits(PackageTest):
    def test_logits_are_the_tools_bit_for_bit(self):
        tokens = self.model.encode(PROMPT + " Paris, and the largest city")
        expected = self.logits(MODEL, tokens, "cpu")
        with self.model.sequence() as sequence:
            whole = sequence.step(tokens, "all")
            self.assertEqual((whole.shape, whole.dtype), ((len(tokens), 49152), np.float32))
            np.testing.assert_array_equal(whole, expected)
            self.assertEqual(sequence.truncate(0), 0)
            chunks = [sequence.step(tokens[:3], "all"), sequence.step(tokens[3:5], "none"), sequence.step(tokens[5:])]
        self.assertEqual([chunk.shape for chunk in chunks], [(3, 49152), (0, 49152), (1, 49152)])
        np.testing.assert_array_equal(chunks[0], expected[:3])
        np.testing.assert_array_equal(chunks[2], expected[-1:])

    def test_the_argmax_is_the_greedy_answer(self):
        tokens = self.model.encode(PROMPT)
        greedy = self.engine.submit(tokens, max_tokens=6, temperature=0).result().tokens
        with self.model.sequence() as sequence:
            chosen = [int(sequence.step(tokens).argmax())]
            while len(chosen) < 6:
                chosen.append(int(sequence.step(chosen[-1:]).argmax()))
        self.assertEqual(chosen, greedy)

    def test_an_array_owns_the_librarys_memory(self):
        with llamac.Model.load(self.model.path) as model, model.sequence() as sequence:
            logits = sequence.step([5, 6], "all")
            copy = logits.copy()
            sequence.step([7] * 100, "all")
        gc.collect()
        self.assertFalse(logits.flags.owndata)
        self.assertTrue(logits.flags.writeable and logits.flags.c_contiguous)
        np.testing.assert_array_equal(logits, copy)

    def test_sequences_go_on_from_where_they_were_cut(self):
        with self.model.sequence() as first, self.model.sequence() as second:
            first.step([5, 6, 7, 8, 9], "none")
            self.assertEqual((first.truncate(3), len(first)), (3, 3))
            second.step([5, 6, 7], "none")
            np.testing.assert_array_equal(first.step([4]), second.step([4]))

    def test_what_cannot_be_stepped_changes_nothing(self):
        with self.model.sequence() as sequence:
            sequence.step([5, 6], "none")
            self.assert_error(Code.USAGE, "8193", sequence.step, [5] * 8191, "all")
            self.assert_error(Code.USAGE, "49152", sequence.step, [49152])
            self.assert_error(Code.USAGE, "rows", sequence.step, [5], "some")
            self.assert_error(Code.USAGE, "expected 0 to 2, got 3", sequence.truncate, 3)
            self.assertEqual(len(sequence), 2)


class Examples(PackageTest):
    def run_example(self, name, *args, model=MODEL):
        script = os.path.join(ROOT, "examples", "python", name)
        result = support.run([sys.executable, script, model, *args], cache=self.cache)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return result.stdout

    def test_the_first_samples_of_the_documents_run(self):
        os.symlink(MODEL, self.path("model.gguf"))
        messages = [{"role": "user", "content": "Name three fruits."}]
        expected = self.engine.chat(messages, max_tokens=400).text()
        for document in ("README.md", "docs/python.md"):
            with open(os.path.join(ROOT, document), encoding="utf-8") as file:
                sample = re.search(r"```python\n(.*?)```", file.read(), re.DOTALL)[1]
            result = support.run([sys.executable, "-c", sample], cache=self.cache, cwd=self.path("."))
            self.assertEqual((result.stdout, result.stderr), (expected, ""), document)

    def test_without_arguments_they_print_their_usage(self):
        folder = os.path.join(ROOT, "examples", "python")
        # The clients of a server are tested with one.
        names = [name for name in sorted(os.listdir(folder)) if name.endswith(".py") and not name.startswith("client_")]
        self.assertGreater(len(names), 4)
        for name in names:
            result = support.run([sys.executable, os.path.join(folder, name)], cache=self.cache)
            self.assertEqual((result.returncode, result.stdout), (2, ""), name)
            self.assertTrue(result.stderr.startswith(f"usage: {name}"), result.stderr)

    def test_chat(self):
        messages, expected = [], ""
        for question in ("Name three fruits.", "And a vegetable?"):
            messages.append({"role": "user", "content": question})
            messages.append(self.engine.chat(messages, max_tokens=400).result().message)
            expected += f"> {question}\n{messages[-1]['content']}\n"
        self.assertEqual(self.run_example("chat.py", "Name three fruits.", "And a vegetable?"), expected)

    def test_tools(self):
        call = '"name": "get_population", "arguments": {"city": "Oslo"}}'
        marks = [("<tool_call>", scripted_model.CONTROL), b"\n{", *scripted_model.cut(call, 7), b"\n"]
        marks.append(("</tool_call>", scripted_model.CONTROL))
        # The prompt ends with a dot once the tool has spoken.
        template = (
            "{% if tools %}Call by <tool_call>.{% endif %}{% for message in messages %}{{ message.content }}"
            "{% if message.role == 'tool' %}.{% else %} {% endif %}{% endfor %}"
        )
        others = {ord("."): scripted_model.cut("Oslo has 717,710 people", 5)}
        model = scripted_model.make(self.path("tools.gguf"), marks, template, others=others)
        result = self.run_example("tools.py", "How many live in Oslo?", model=model)
        self.assertEqual(result, 'get_population {"city": "Oslo"}\nOslo has 717,710 people\n')

    def test_complete(self):
        expected = self.run_tool(PROMPT, "-n", 10, "--temp", 0)["text"]
        self.assertEqual(self.run_example("complete.py", PROMPT, "10"), expected + "\n")

    def test_many(self):
        lines = self.run_example("many.py", PROMPT, "Once upon a time").splitlines()
        self.assertEqual(len(lines), 2)
        self.assertTrue(any(line.startswith(PROMPT + " ->' Paris") for line in lines), lines)

    def test_perplexity(self):
        text = "The sun rises in the east and sets in the west. " * 8
        path = self.path("text.txt")
        with open(path, "w") as file:
            file.write(text)
        expected = json.loads(self.llamac("perplexity", MODEL, path, "--json").stdout)
        match = re.fullmatch(r"(\d+) tokens, perplexity ([\d.]+)\n", self.run_example("perplexity.py", text))
        # The first one is not predicted.
        self.assertEqual(int(match[1]) - 1, expected["tokens"])
        self.assertAlmostEqual(float(match[2]), expected["perplexity"], delta=2e-3)


if __name__ == "__main__":
    unittest.main(verbosity=2)
