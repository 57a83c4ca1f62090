# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command line as scripts see it: what is on stdout, and that the text, the
ids and the probabilities of a real model fit together."""

import json
import os
import re
import shutil
import subprocess
import time
import unittest

import support

support.require("numpy", "gguf", "safetensors")

import numpy as np

from llama_numpy import Config
from make_model import quantise, random_weights, write_gguf, write_huggingface
from support import LLAMAC, LLAMAC_RUN, MEMORY, USAGE

CONFIG = Config(64, 2, 4, 2, vocab=499)
PROMPT = "The capital of France is"
GREEDY = ("--temp", "0")


class SmallModel(support.TestCase):
    """A model of a second, with the words a to z, and its plan."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        config = Config(64, 1, 4, 2, vocab=261)
        cls.model = write_gguf(cls.path("model.gguf"), config, quantise(random_weights(config), "F32")[0])
        cls.plan = cls.path("model.plan")
        support.run([LLAMAC, "compile", cls.model, "-o", cls.plan, "-c", "64"], cache=cls.cache, check=True)

    RUN = ("--tokens", "5,6", "-n", 4, "--temp", 0, "--print-ids", "--ignore-eos")


class PlanOptions(SmallModel):
    def test_what_a_plan_was_not_compiled_with_is_refused(self):
        verbs = {
            "run": self.RUN,
            "bench": ("--prompt-tokens", 2, "--gen-tokens", 2),
            "logits": ("--tokens", "1", "-o", self.path("x.npy")),
            "perplexity": (__file__,),
            "inspect": (),
            "tune": ("--list",),
        }
        for flags, mentions in [
            (("--target", "cuda"), ["--target", "cpu", "cuda"]),
            (("-c", 16), ["--ctx-size", "64", "16"]),
            (("--weights", "q8_0"), ["--weights", "keep", "q8_0"]),
            (("--kv-type", "bf16"), ["--kv-type", "f16", "bf16"]),
            (("--parallel", 2), ["--parallel", "8", "2"]),
            (("--gpu", "sm_80"), ["--gpu", "none", "sm_80"]),
            (("--sim-check",), ["--sim-check", "none"]),
            (("--exact",), ["--exact", "none"]),
            (("--approximate-exp", "sine"), ["--approximate-exp", "none", "got sine;"]),
            (("--reference-weights",), ["--reference-weights"]),
            (("--skip-pass", "llamac-fuse-qkv"), ["--skip-pass", "none", "llamac-fuse-qkv"]),
        ]:
            for verb, args in verbs.items() if flags[0] == "-c" else [("run", self.RUN)]:
                with self.subTest(verb=verb, flags=flags):
                    result = self.llamac(verb, self.plan, *args, *flags, expect=USAGE)
                    self.assertEqual(result.stdout, "")
                    self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
                    for text in ("model.plan", *mentions):
                        self.assertIn(text, result.stderr)
        self.assertFalse(os.path.exists(self.path("x.npy")))

    def test_an_unknown_target_is_unknown_for_a_plan_too(self):
        for what in (self.plan, self.model):
            self.assertIn("gpu", self.llamac("run", what, *self.RUN, "--target", "gpu", expect=USAGE).stderr)

    def test_an_instruction_set_below_the_plans_is_refused(self):
        result = self.llamac("run", self.plan, *self.RUN, "--isa", "portable", expect=USAGE)
        self.assertIn("portable", result.stderr)

    def test_an_option_is_called_what_it_was_called(self):
        for name in "-n", "--predict", "--max-tokens", "--n-predict":
            refused = self.llamac("run", self.plan, "-p", "a", name, "x", expect=USAGE)
            self.assertIn(f"error: {name}: expected -1 to", refused.stderr)

    def test_letters_of_either_case_name_a_value(self):
        shape = self.path("params.json")
        with open(shape, "w") as f:
            json.dump({"dim": 64, "n_layers": 1, "n_heads": 4, "vocab_size": 261}, f)
        out = ("--stop-after", "schedule", "-o", "-", "--no-weights", "-q")
        named = self.llamac("compile", shape, "--target", "cuda", "--gpu", "h200", "--weights", "q8_0", *out)
        loud = self.llamac("compile", shape, "--target", "CUDA", "--gpu", "H200", "--weights", "Q8_0", *out)
        self.assertEqual(loud.stdout, named.stdout)

    def test_verbs_of_models_say_what_a_plan_is(self):
        out = self.path("again")
        for verb in (
            ("compile", self.plan, "-o", out),
            ("check", self.plan),
            ("convert", self.plan, "--to", "gguf", "-o", out),
            ("plan", self.plan),
            ("show", self.plan),
        ):
            refused = self.llamac(*verb, expect=USAGE)
            self.assertIn("model.plan: expected a model, got a plan, which is compiled already", refused.stderr)
        self.assertFalse(os.path.exists(out))

    def test_a_plan_is_one_by_any_name(self):
        other = self.path("plan.gguf")
        shutil.copy(self.plan, other)
        self.assertEqual(
            self.llamac("run", other, *self.RUN).stdout, self.llamac("run", self.plan, *self.RUN).stdout
        )

    def test_passes_of_a_plan_cannot_be_seen(self):
        result = self.llamac("inspect", self.plan, "--print-after", "all", expect=USAGE)
        self.assertIn("--print-after: expected a model", result.stderr)

    def test_what_a_plan_was_compiled_with_may_be_said(self):
        flags = ("-c", 64, "--target", "cpu", "--weights", "keep", "--kv-type", "f16", "--parallel", 8)
        self.assertEqual(
            self.llamac("run", self.plan, *self.RUN, *flags).stdout, self.llamac("run", self.plan, *self.RUN).stdout
        )


class Prompts(SmallModel):
    """Prompts from everywhere, and options by the names of other programs."""

    REST = ("--temp", 0, "-n", 6, "--print-ids", "--json", "--ignore-eos")

    def ids(self, *args, **options):
        return json.loads(self.llamac("run", *args, **options).stdout)["ids"]

    def test_a_prompt_is_an_argument_an_option_or_a_file(self):
        expected = self.ids(self.plan, "-p", "abc d", *self.REST)
        text = self.path("prompt.txt")
        with open(text, "w") as f:
            f.write("abc d\n")
        for args in (("abc d",), ("-f", text), ("--file", text)):
            self.assertEqual(self.ids(self.plan, *args, *self.REST), expected, args)
        for args in (("-f", "-"), ("-f", "/dev/stdin"), ("-p", "-")):
            self.assertEqual(self.ids(self.plan, *args, *self.REST, stdin=None, input="abc d\n"), expected, args)
        small = support.run([LLAMAC_RUN, self.plan, "abc d", *map(str, self.REST)], check=True)
        self.assertEqual(json.loads(small.stdout)["ids"], expected)
        self.assertEqual(self.ids(self.plan, *self.REST, stdin=None, input="abc d\n"), expected)
        dash = self.ids(self.plan, "-f", "-", *self.REST, stdin=None, input="-")
        self.assertEqual(self.ids(self.plan, *self.REST, stdin=None, input="-"), dash)
        none = self.llamac("run", self.plan, *self.REST, stdin=None, input="", expect=USAGE)
        self.assertIn("got none, nor a text on stdin", none.stderr)
        missing = self.llamac("run", self.plan, "-f", self.path("none"), expect=support.BAD_FILE)
        self.assertIn("none: cannot be opened: No such file", missing.stderr)

    def test_other_names_of_options(self):
        expected = self.ids(self.plan, "abc d", *self.REST)
        rest = ("--print-ids", "--json", "--ignore-eos", "--temperature", 0)
        for tokens in ("--max-tokens", "--n-predict", "--predict"):
            self.assertEqual(self.ids("-m", self.plan, "abc d", *rest, tokens, 6), expected)
        self.assertEqual(self.ids(self.model, "abc d", "--max-model-len", 64, *rest, "-n", 6), expected)

    def test_of_an_option_given_twice_the_last_one_counts(self):
        self.assertEqual(len(self.ids(self.plan, "abc", *self.REST, "-n", 3, "-n", 2)), 2)

    def test_no_token_has_no_rate(self):
        said = self.llamac("run", self.plan, "abc", "-n", 0).stderr
        self.assertRegex(said, r"load [\d.]+ s, prompt \d+ tokens, answer 0 tokens, stopped by length\n$")

    def test_more_threads_than_processors_are_a_warning(self):
        processors = len(os.sched_getaffinity(0))
        for threads, warned in ((processors, 0), (processors + 1, 1)):
            said = self.llamac("run", self.plan, "abc", "-n", 1, "-t", threads, "-q").stderr
            self.assertEqual(said.count(f"where there are {processors} processors"), warned)

    def test_a_text_to_score_may_come_through_a_pipe(self):
        text = self.path("scored.txt")
        with open(text, "w") as f:
            f.write("abcdefgh" * 4)
        expected = self.llamac("perplexity", self.plan, text).stdout
        for name in ("-", "/dev/stdin"):
            got = self.llamac("perplexity", self.plan, "-f", name, stdin=None, input="abcdefgh" * 4).stdout
            self.assertEqual(got, expected)

    def test_what_is_no_text_is_not_scored(self):
        said = self.llamac("perplexity", self.plan, self.model, expect=USAGE).stderr
        self.assertIn("model.gguf: expected UTF-8 text, got other bytes", said)
        for window in (1, 65):
            said = self.llamac("perplexity", self.plan, __file__, "--window", window, expect=USAGE).stderr
            self.assertIn(f"--window: expected 2 to the plan's context of 64, got {window}", said)

    def test_check_ends_with_a_verdict(self):
        lines = self.llamac("check", self.model, "--tokens", "1,2").stdout.splitlines()
        self.assertRegex(lines[-1], r"^ok: \d+ passes, \d+ kernels and 2 targets agree with the reference$")


class Loading(SmallModel):
    """Warnings and errors about a model from every verb that takes one."""

    VERBS = {
        "inspect": ("--json",),
        "plan": (),
        "compile": ("-q", "-o", "x.plan"),
        "logits": ("--tokens", "1,2", "-o", "x.npy"),
        "run": SmallModel.RUN,
    }

    def run_verbs(self, model, *flags):
        return [self.llamac(verb, model, *args, *flags, cwd=self.folder) for verb, args in self.VERBS.items()]

    def test_a_context_beyond_training_is_a_warning(self):
        """The file names 4096 tokens; each verb warns once."""
        for context, warnings in ((64, 0), (4096, 0), (8192, 1)):
            for result in self.run_verbs(self.model, "-c", context):
                self.assertEqual(result.stderr.count("trained for up to 4096"), warnings, result.stderr)

    def test_a_model_in_several_files(self):
        config = Config(64, 1, 4, 2, vocab=261)
        os.makedirs(self.path("parts"))
        write_gguf(self.path("parts", "m.gguf"), config, quantise(random_weights(config), "F32")[0], split=4)
        for model in (self.path("parts"), self.path("parts", "m-00001-of-00003.gguf")):
            self.run_verbs(model)
            self.assertEqual(self.llamac("run", model, *self.RUN).stdout, self.llamac("run", self.model, *self.RUN).stdout)
        self.llamac("convert", self.path("parts"), "-o", self.path("converted"), "--to", "meta")


class Streams(SmallModel):
    def test_output_that_is_lost_ends_with_6(self):
        text = self.path("text")
        with open(text, "w") as f:
            f.write("abcdefgh" * 4)
        opt = [os.path.join(support.BIN_DIR, "llamac-opt"), self.path("graph.mlir")]
        self.llamac("compile", self.model, "--stop-after", "graph", "-o", opt[1])
        for command in (
            [LLAMAC, "tokenize", self.model, "a"],
            [LLAMAC, "inspect", self.plan],
            [LLAMAC, "inspect", self.model, "--json"],
            [LLAMAC, "perplexity", self.plan, text],
            [LLAMAC, "check", self.model, "--tokens", "1,2"],
            [LLAMAC, "bench", self.plan, "--prompt-tokens", 2, "--gen-tokens", 2, "--repeat", 1, "--json"],
            [LLAMAC, "compile", self.model, "--stop-after", "graph", "-o", "-"],
            [LLAMAC, "run", self.plan, *self.RUN],
            [LLAMAC, "cache", "list"],
            [LLAMAC, "--help"],
            [LLAMAC_RUN, "bench", self.plan, "--prompt-tokens", 2, "--gen-tokens", 2, "--repeat", 1],
            opt,
        ):
            for to in (">/dev/full", ">&-"):
                with self.subTest(command=command, to=to):
                    shell = ["bash", "-c", f'"$@" {to}', "bash", *map(str, command)]
                    result = support.run(shell, cache=self.cache)
                    self.assertEqual(result.returncode, MEMORY, result.stderr)
                    self.assertIn("error: ", result.stderr.splitlines()[-1])

    def test_128_tokens_when_nothing_is_said_as_far_as_they_fit(self):
        run = ("--tokens", "5,6", "--temp", 0, "--ignore-eos", "--print-ids", "--json")
        for what, count, stop in [(self.plan, 63, "context"), (self.model, 128, "length")]:
            answer = json.loads(self.llamac("run", what, *run).stdout)
            self.assertEqual((len(answer["ids"]), answer["stop"]), (count, stop))

    def test_verbs_that_load_a_model_are_quiet_or_say_more(self):
        text = self.path("some text")
        with open(text, "w") as f:
            f.write("abcdefgh" * 4)
        for verb, args in {
            "run": self.RUN,
            "bench": ("--prompt-tokens", 2, "--gen-tokens", 2),
            "logits": ("--tokens", "1", "-o", self.path("x.npy")),
            "perplexity": (text,),
        }.items():
            with self.subTest(verb):
                shutil.rmtree(self.cache, ignore_errors=True)
                self.assertEqual(self.llamac(verb, self.model, *args, "-q").stderr, "")
                loaded = rf"(?m)^loaded {re.escape(self.plan)} on cpu, .* context 64, .*tokenizer [\d.]+ s$"
                self.assertRegex(self.llamac(verb, self.plan, *args, "-v").stderr, loaded)
                self.llamac(verb, self.plan, *args, "-q", "-v", expect=USAGE)

    def test_names_do_not_command_the_terminal(self):
        config = Config(64, 1, 4, 2, vocab=64)
        model = write_huggingface(self.path("mo\x1b[2Jdel"), config, random_weights(config))
        result = self.llamac("inspect", model)
        self.assertIn("mo\\x1b[2Jdel", result.stdout)
        run = self.llamac("run", model, "--tokens", "1", "-n", 1, "--print-ids")
        missing = self.llamac("run", model + "\x9b", "--tokens", "1", expect=support.BAD_FILE)
        for text in (result.stdout, run.stderr, missing.stderr):
            self.assertNotRegex(text, "[\x1b\x9b]")
        self.assertEqual(json.loads(self.llamac("inspect", model, "--json").stdout)["name"], "mo\x1b[2Jdel")


class Cache(SmallModel):
    def setUp(self):
        shutil.rmtree(self.cache, ignore_errors=True)

    def run_model(self, **options):
        return self.llamac("run", self.model, "-c", 32, *self.RUN, **options)

    def test_a_first_run_says_what_it_does(self):
        first = self.run_model().stderr.splitlines()
        self.assertEqual(len(first), 2)
        self.assertRegex(first[0], "^compiling .*model.gguf for cpu")
        self.assertEqual(len(self.run_model().stderr.splitlines()), 1)
        shutil.rmtree(self.cache)
        self.assertEqual(self.llamac("run", self.model, *self.RUN, "-q").stderr, "")

    def test_compile_cached_prints_the_plan_that_runs_use(self):
        self.run_model()
        (plan,) = os.listdir(os.path.join(self.cache, "llamac", "plans"))
        made = self.llamac("compile", self.model, "-c", 32, "--cached")
        self.assertEqual((made.stdout, made.stderr), (os.path.join(self.cache, "llamac", "plans", plan) + "\n", ""))
        self.llamac("compile", self.model, "--cached", "-o", self.path("a.plan"), expect=USAGE)
        os.chmod(os.path.dirname(made.stdout), 0o777)
        refused = self.llamac("compile", self.model, "-c", 32, "--cached", expect=USAGE)
        self.assertIn("cannot be used as one", refused.stderr)
        self.assertEqual(refused.stdout, "")

    def test_list_and_clear(self):
        def rows():
            lines = self.llamac("cache", "list").stdout.splitlines()
            self.assertEqual([line.split()[0] for line in lines[:4]], ["cache", "plans", "objects", "cubins"])
            self.assertRegex(lines[4], r"^[\d.]+ \w+ of 10.0 GiB")
            # The objects are those of all tests, of which others may run.
            alone = self.llamac("cache").stdout.splitlines()
            self.assertEqual([line.split()[0] for line in alone[:4]], [line.split()[0] for line in lines[:4]])
            self.assertEqual(alone[1], lines[1])
            return lines

        self.assertRegex(rows()[1], r"^plans +0 +0 B  - ")
        self.run_model()
        kept = self.llamac("cache", "limit", "1K", env=dict(os.environ, XDG_CACHE_HOME=self.cache, LLAMAC_OBJECT_CACHE="")).stdout
        self.assertRegex(kept, r"^1.0 KiB \(llamac cache limit\); the file used last stays, [\d.]+ KiB\n$")
        self.llamac("cache", "limit", "default")
        self.assertRegex(rows()[1], r"^plans +1 +[\d.]+ KiB  \d{4}-\d\d-\d\d \d\d:\d\d .*/llamac/plans$")
        mine = os.path.join(self.cache, "llamac", "plans", "mine.plan")
        with open(mine, "w") as f:
            f.write("mine")
        self.assertRegex(self.llamac("cache", "clear").stdout, r"^removed \d+ files, ")
        self.assertRegex(rows()[1], r"^plans +0 +0 B  - ")
        self.assertTrue(os.path.exists(mine))

    def test_a_limit_is_kept(self):
        # Not the objects that all tests share.
        env = {"env": dict(os.environ, XDG_CACHE_HOME=self.cache, LLAMAC_OBJECT_CACHE="")}
        for args, expected in [
            ((), "10.0 GiB (default)"),
            (("1500M",), "1.5 GiB (llamac cache limit)"),
            ((), "1.5 GiB (llamac cache limit)"),
            (("default",), "10.0 GiB (default)"),
        ]:
            self.assertEqual(self.llamac("cache", "limit", *args, **env).stdout, expected + "\n")
        self.run_model(**env)
        self.llamac("run", self.model, "-c", 48, *self.RUN, **env)
        self.llamac("cache", "limit", "0", **env)
        self.assertEqual(len(os.listdir(os.path.join(self.cache, "llamac", "plans"))), 1, "the newest one stays")
        self.assertIn("many", self.llamac("cache", "limit", "many", expect=USAGE, **env).stderr)

    def test_a_folder_that_others_can_write_is_done_without(self):
        expected = self.run_model().stdout
        plans = os.path.join(self.cache, "llamac", "plans")
        (plan,) = os.listdir(plans)
        os.chmod(plans, 0o777)
        result = self.run_model()
        self.assertEqual(result.stdout, expected)
        warnings = [line for line in result.stderr.splitlines() if line.startswith("warning: ")]
        self.assertEqual(len(warnings), 1, result.stderr)
        self.assertIn("plans are not cached", warnings[0])
        self.assertEqual(os.listdir(plans), [plan])
        os.chmod(plans, 0o700)
        os.chmod(os.path.join(plans, plan), 0o666)
        result = self.run_model()
        self.assertEqual((result.stdout, result.stderr.count("warning: ")), (expected, 1))
        self.assertEqual(os.stat(os.path.join(plans, plan)).st_mode & 0o777, 0o600)
        self.assertEqual(self.run_model().stderr.count("warning: "), 0)

    def test_a_machine_without_a_home_runs_models(self):
        env = {"PATH": os.environ["PATH"]}
        result = self.run_model(env=env, cache=None)
        self.assertEqual(result.stdout, self.run_model().stdout)
        self.assertIn("set XDG_CACHE_HOME or HOME", result.stderr)

    def test_folders_that_are_deleted_meanwhile_are_made_again(self):
        command = [LLAMAC, "run", self.model, "-c", "32", *map(str, self.RUN)]
        options = {"env": dict(os.environ, XDG_CACHE_HOME=self.cache), "text": True}
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        runs = [subprocess.Popen(command, **options, **pipes) for _ in range(8)]
        deleted = 0
        while any(run.poll() is None for run in runs):
            if deleted < 3 and any(files for _, _, files in os.walk(self.cache)):
                shutil.rmtree(self.cache, ignore_errors=True)
                deleted += 1
            time.sleep(0.005)
        outcomes = [(run.returncode, *run.communicate()) for run in runs]
        self.assertEqual(deleted, 3)
        expected = self.run_model().stdout
        for code, out, error in outcomes:
            self.assertEqual((code, out), (0, expected), error)


class RealModel(support.TestCase):
    """SmolLM2-135M-Instruct."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.model = support.require_model("smollm2.gguf")
        cls.plan = cls.path("smollm2.plan")
        support.run([LLAMAC, "compile", cls.model, "-o", cls.plan], cache=cls.cache, check=True)

    def ids(self, text, *options):
        return [int(x) for x in self.llamac("tokenize", self.model, *options, text).stdout.split()]

    def generate(self, *options):
        return self.llamac("run", self.plan, "--raw", "-p", PROMPT, "-n", 24, *options).stdout

    def test_the_capital_of_france(self):
        self.assertIn(" Paris", self.generate(*GREEDY))

    def test_the_small_binary_gives_the_same(self):
        args = [LLAMAC_RUN, self.plan, "--raw", "-p", PROMPT, "-n", "24", *GREEDY]
        self.assertEqual(support.run(args, check=True).stdout, self.generate(*GREEDY))

    def test_a_prompt_comes_from_stdin(self):
        result = self.llamac("run", self.plan, "--raw", "-p", "-", "-n", 24, *GREEDY, stdin=None, input=PROMPT + "\n")
        self.assertEqual(result.stdout, self.generate(*GREEDY))

    def test_json_has_the_answer(self):
        result = self.llamac("run", self.plan, "--raw", "-p", PROMPT, "-n", 24, *GREEDY, "--json")
        answer = json.loads(result.stdout)
        self.assertEqual(answer["text"] + "\n", self.generate(*GREEDY))
        self.assertEqual((answer["generated_tokens"], result.stderr), (24, ""))

    def test_ids_are_the_text(self):
        printed = self.generate(*GREEDY, "--print-ids")
        self.assertRegex(printed, r"^(\d+ )*\d+\n$")
        self.assertLessEqual(len(printed.split()), 24)
        decoded = self.llamac("tokenize", self.model, "--decode", ",".join(printed.split())).stdout
        self.assertEqual(decoded.rstrip("\n"), self.generate(*GREEDY).rstrip("\n"))

    def test_a_prompt_of_ids_is_the_prompt_of_text(self):
        ids = ",".join(map(str, self.ids(PROMPT)))
        result = self.llamac("run", self.plan, "--tokens", ids, "-n", 24, *GREEDY)
        self.assertEqual(result.stdout, self.generate(*GREEDY))

    def test_greedy_takes_the_reference_targets_argmax(self):
        prompt = self.ids(PROMPT)
        generated = [int(x) for x in self.generate(*GREEDY, "--print-ids").split()]
        logits = self.logits(self.model, prompt + generated, "reference")
        for i, token in enumerate(generated):
            row = logits[len(prompt) - 1 + i]
            # Rounding may decide between tokens that are all but equal.
            self.assertGreaterEqual(row[token], row.max() - 0.25, f"token {i}")

    def test_a_seed_repeats_its_samples(self):
        hot = ("--temp", "1.5", "--top-k", "50", "--top-p", "0.95")
        seven = self.generate(*hot, "-s", "7")
        self.assertEqual(seven, self.generate(*hot, "-s", "7"))
        others = {self.generate(*hot, "-s", str(seed)) for seed in range(8, 12)}
        self.assertGreater(len(others | {seven}), 1)

    def test_top_k_of_one_is_greedy(self):
        self.assertEqual(self.generate("--temp", "1", "--top-k", "1", "-s", "3"), self.generate(*GREEDY))

    def test_one_token(self):
        printed = self.llamac("run", self.plan, "--raw", "-p", PROMPT, "-n", 1, *GREEDY, "--print-ids").stdout
        self.assertEqual(printed.split(), self.generate(*GREEDY, "--print-ids").split()[:1])

    def test_special_tokens_only_where_asked_for(self):
        self.assertEqual(self.ids("<|im_start|>", "--special"), [1])
        self.assertGreater(len(self.ids("<|im_start|>")), 1)

    def test_texts_are_tokenized_from_wherever_they_come(self):
        expected = self.ids("Hi there")
        text = self.path("text.txt")
        with open(text, "w") as file:
            file.write("Hi there\n")

        def tokenize(*args, **given):
            return [int(id) for id in self.llamac("tokenize", self.model, *args, **given).stdout.split()]

        self.assertEqual(tokenize("-f", text), expected)
        for stdin in "-", None:
            self.assertEqual(tokenize(*filter(None, [stdin]), stdin=None, input="Hi there\n"), expected)
        self.assertEqual(tokenize("-f", "-", stdin=None, input="Hi there\n\n"), self.ids("Hi there\n"))
        ids = " ".join(map(str, expected))
        printed = self.llamac("tokenize", self.model, "--decode", stdin=None, input=ids)
        self.assertEqual(printed.stdout, "Hi there\n")
        for args, said in (
            ((), "text: expected TEXT or -f FILE, got none, nor a text on stdin"),
            (("Hi", "-f", text), "TEXT: expected no --file beside it"),
        ):
            self.assertIn(said, self.llamac("tokenize", self.model, *args, expect=support.USAGE).stderr)

    def test_what_was_written_is_said_with_its_size(self):
        config = os.path.join(self.cache, "params.json")
        with open(config, "w") as file:
            json.dump({"dim": 64, "n_layers": 1, "n_heads": 2, "n_kv_heads": 1, "vocab_size": 96}, file)
        page, text, sources = (self.path(name) for name in ("r.html", "fused.mlir", "sources"))
        for written, args in (
            (page, ("inspect", config, "--html", page)),
            (text, ("compile", config, "--stop-after", "fuse", "-o", text)),
            (sources, ("compile", config, "--emit-source", sources)),
        ):
            self.assertRegex(self.llamac(*args).stderr, rf"(?m)^{re.escape(written)}: [0-9.]+ [KM]iB$")
        self.assertEqual(self.llamac("compile", config, "--stop-after", "fuse", "-o", text, "-q").stderr, "")

    def test_text_comes_back_from_its_ids(self):
        text = "naïve café — 日本語 🙂\n\tdef f(x): return x**2  # 3.14"
        ids = ",".join(map(str, self.ids(text)))
        self.assertEqual(self.llamac("tokenize", self.model, "--decode", ids).stdout.rstrip("\n"), text)

    def test_bench_of_kernels_counts_what_they_read(self):
        args = ("--prompt-tokens", 20, "--gen-tokens", 3, "-t", 2, "--kernels", "--json")
        lines = self.llamac("bench", self.plan, *args).stdout.splitlines()
        prefill, decode = map(json.loads, lines)
        self.assertEqual(prefill["work"], "prefill of 1 x 20 tokens")
        self.assertEqual(decode["work"], "3 steps of 1 sequence after 20 tokens")
        for work in (prefill, decode):
            self.assertGreater(work["limits"]["bandwidth"], 0)
            for rate in "f32_operations", "int8_operations":
                self.assertGreater(work["limits"][rate], 0)
            *kernels, total = work["kernels"]
            self.assertEqual(total["kernel"], "all")
            for key in ("launches", "seconds", "bytes", "operations", "int8_operations"):
                self.assertAlmostEqual(sum(kernel[key] for kernel in kernels), total[key], delta=1e-6 * total[key])
        # Every step reads all matrices; they are most of the file.
        step = decode["kernels"][-1]["bytes"] / 3
        self.assertGreater(step, 0.95 * os.path.getsize(self.plan))
        self.assertLess(step, 1.05 * os.path.getsize(self.plan))

    def test_bench_prints_one_object(self):
        args = ("--prompt-tokens", 32, "--gen-tokens", 4, "-t", 2, "--json")
        found = json.loads(self.llamac("bench", self.plan, *args).stdout)
        self.assertGreater(found["prefill_tok_s"], 0)
        self.assertGreater(found["decode_tok_s"], 0)

    def test_inspect_names_the_shapes(self):
        for what in (self.model, self.plan):
            found = self.llamac("inspect", what, "--json").stdout
            json.loads(found)
            self.assertIn("49152", found)
            self.assertIn("576", found)
            self.assertIn("576", self.llamac("inspect", what).stdout)

    def test_perplexity_is_that_of_the_logits(self):
        text = self.path("text.txt")
        with open(text, "w") as f:
            f.write("The lamp burned seven litres a night, whether the keeper ate or not. " * 4)
        with open(text) as f:
            tokens = self.ids(f.read())
        logits = self.logits(self.model, tokens, "cpu").astype(np.float64)
        logits -= logits.max(axis=1, keepdims=True)
        followed = logits[np.arange(len(tokens) - 1), tokens[1:]]
        log_p = followed - np.log(np.exp(logits[:-1]).sum(axis=1))
        expected = np.exp(-log_p.mean())
        printed = self.llamac("perplexity", self.plan, text).stdout
        numbers = [float(x) for x in re.findall(r"\d+\.\d+", printed)]
        self.assertTrue(
            any(abs(x / expected - 1) < 0.01 for x in numbers), f"expected {expected:.4f}, got: {printed}"
        )


if __name__ == "__main__":
    unittest.main(verbosity=2)
