# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the command line refuses, in which words, and its help."""

import os
import re
import unittest

import support

support.require("numpy", "gguf", "safetensors")

from llama_numpy import Config
from make_model import quantise, random_weights, write_gguf, write_huggingface
from support import LLAMAC, LLAMAC_RUN, UNSUPPORTED, USAGE

CONFIG = Config(64, 2, 4, 2, vocab=499)
GREEDY = ("--temp", "0")


class Usage(support.TestCase):
    """Exit code 2, a short message, nothing on stdout."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.model = write_huggingface(cls.path("model"), CONFIG, random_weights(CONFIG))

    def refuse(self, *args, mentions=()):
        result = self.llamac(*args, expect=USAGE)
        self.assertEqual(result.stdout, "")
        self.assertIn(len(result.stderr.splitlines()), (1, 2), result.stderr)
        for text in mentions:
            self.assertIn(text, result.stderr)

    def test_no_or_unknown_command(self):
        self.refuse("frobnicate", mentions=["frobnicate"])
        self.assertEqual(support.run([LLAMAC]).returncode, USAGE)
        self.assertEqual(support.run([LLAMAC_RUN]).returncode, USAGE)

    def test_the_verb_help_is_the_option(self):
        for tool in (LLAMAC, LLAMAC_RUN):
            for verb in ([], ["bench"]):
                asked = support.run([tool, "help", *verb])
                self.assertEqual(asked.returncode, 0, asked.stderr)
                self.assertEqual(asked.stdout, support.run([tool, *verb, "--help"]).stdout)

    def test_a_file_that_is_no_model_is_said_to_be_none(self):
        short = self.path("short.txt")
        with open(short, "w") as file:
            file.write("a text")
        for path in (__file__, short):
            for args in ((), ("-p", "hi")):
                result = self.llamac("run", path, *args, expect=support.BAD_PLAN)
                self.assertIn("expected a plan or a model, got another kind of file", result.stderr)

    def test_help_and_version_are_no_errors(self):
        for args in (["--help"], ["--version"], ["compile", "--help"], ["run", "--help"]):
            self.assertNotEqual(self.llamac(*args).stdout, "")

    def test_unknown_and_missing_arguments(self):
        self.refuse("compile", self.model, "-o", self.path("x.plan"), "--fast", mentions=["--fast"])
        self.refuse("compile", self.model)
        self.refuse("compile", "-o", self.path("x.plan"))
        self.refuse("run")
        self.refuse("logits", self.model, "-o", self.path("x.npy"))

    def test_values_out_of_range(self):
        x = self.path("x.plan")
        for args in [
            ("compile", self.model, "-o", x, "--weights", "q3"),
            ("compile", self.model, "-o", x, "-c", "-5"),
            ("compile", self.model, "-o", x, "-c", "many"),
            ("compile", self.model, "-o", x, "-c", "0"),
            ("run", self.model, "--tokens", "1", "--temp", "-1"),
            ("run", self.model, "--tokens", "1", "--temp", "nan"),
            ("run", self.model, "--tokens", "1", "--top-p", "1.5"),
            ("run", self.model, "--tokens", "1", "--top-k", "-3"),
            ("run", self.model, "--tokens", "1", "-n", "few"),
            ("run", self.model, "--tokens", "1", "-n", "99999999999"),
            ("run", self.model, "--tokens", "1", "-s", "-1"),
            ("run", self.model, "--tokens", "1,two"),
            ("run", self.model, "--tokens", "499"),
            ("run", self.model, "--tokens", "-1"),
            ("run", self.model, "--tokens", "99999999999999999999"),
            ("run", self.model, "--tokens", ""),
            ("run", self.model, "--tokens", "1", "-p", "text"),
            ("logits", self.model, "--tokens", "1,499", "-o", self.path("x.npy")),
        ]:
            with self.subTest(" ".join(args[2:])):
                self.refuse(*args)

    def test_an_unknown_target_is_named(self):
        args = ("compile", self.model, "-o", self.path("x.plan"), "--target", "tpu")
        self.assertIn("tpu", self.llamac(*args, expect=USAGE).stderr)

    def test_a_model_that_cuda_kernels_do_not_take_is_refused(self):
        config = Config(576, 1, 72, 1, vocab=64)
        model = write_huggingface(self.path("heads"), config, random_weights(config))
        result = self.llamac("run", model, "-p", "a", "--target", "cuda", expect=UNSUPPORTED)
        self.assertIn("query heads of a kv head: expected at most 64, got 72", result.stderr)

    def test_an_output_does_not_replace_what_is_read(self):
        config = Config(64, 1, 2, 1, vocab=501)
        model = write_gguf(self.path("kept.gguf"), config, quantise(random_weights(config), "BF16")[0])
        plan = self.path("kept.plan")
        self.llamac("compile", model, "-o", plan, "-q")
        linked = self.path("linked.gguf")
        os.link(model, linked)
        for file, flag, *args in (
            (model, "-o", "compile", model, "-o", model),
            (model, "-o", "compile", model, "-o", linked),
            (model, "-o", "convert", model, "--to", "gguf", "-o", model),
            (model, "--html", "inspect", model, "--html", model),
            (plan, "--html", "inspect", model, "--compare", plan, "--html", plan),
            (plan, "-o", "logits", plan, "--tokens", "1", "-o", plan),
        ):
            with self.subTest(args[0]), open(file, "rb") as f:
                before = f.read()
                error = self.llamac(*args, expect=USAGE).stderr
                self.assertIn(f"{flag}: expected another file than the one that is read, got ", error)
                with open(file, "rb") as after:
                    self.assertEqual(after.read(), before)

    def test_a_prompt_longer_than_the_context_is_refused_with_both_numbers(self):
        plan = self.path("short.plan")
        self.llamac("compile", self.model, "-o", plan, "-c", "16")
        prompt = ("--tokens", ",".join(map(str, range(23))), "-n", "1", "--print-ids")
        result = self.llamac("run", plan, *prompt, expect=USAGE)
        self.assertEqual(result.stdout, "")
        self.assertRegex(result.stderr, r"\b23\b")
        self.assertRegex(result.stderr, r"\b16\b")
        result = support.run([LLAMAC_RUN, plan, *prompt])
        self.assertEqual(result.returncode, USAGE, result.stderr)
        for verb in (("run", *prompt), ("bench", "--prompt-tokens", "23", "--gen-tokens", "1")):
            said = self.llamac(verb[0], self.model, "-c", "16", *verb[1:], expect=USAGE).stderr
            self.assertRegex(said, r"at most 16 tokens, .*a prompt of 23 .*; -c N compiles a longer context$")

    def test_a_grammar_is_checked_before_a_model_is_loaded(self):
        schema = self.path("schema.json")
        with open(schema, "w") as file:
            file.write('{"type": "nothing"}')
        for option, code in ((("--regex", "("), USAGE), (("--json-schema", schema), support.BAD_FILE)):
            said = self.llamac("run", self.path("none.gguf"), "hi", *option, expect=code).stderr
            self.assertRegex(said, "regex: |schema.json: JSON schema: ")

    def test_text_without_a_tokenizer(self):
        result = support.run([LLAMAC, "run", self.model, "-p", "hello"], cache=self.cache)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("tokenizer", result.stderr)
        ids = self.llamac("run", self.model, "--tokens", "1,2", "-n", "3", *GREEDY, "--print-ids")
        self.assertRegex(ids.stdout, r"^\d+ \d+ \d+\n$")


class Words(support.TestCase):
    """Help, and what is said of wrong words."""

    VERBS = ("run", "chat", "generate", "bench", "perplexity", "logits", "tokenize", "compile", "tune", "convert", "inspect", "check")

    def test_wrong_words_get_a_suggestion(self):
        for args, expected in [
            (("complie", "a", "b"), "unknown verb complie; did you mean compile?; see llamac --help"),
            (("frobnicate", "b", "a"), "unknown verb frobnicate; see"),
            (("run", "m", "--promt", "hi"), "option --promt; did you mean --prompt?; see llamac run --help"),
            (("compile", "m", "--weight=q8_0"), "option --weight; did you mean --weights?"),
            (("compile", "m", "--no-weight"), "did you mean --no-weights?"),
            (("tokenize", "m", "a", "first", "second"), "unexpected argument first; see"),
            (("run", "m", "hi", "m"), "unexpected argument m; a prompt of several words is quoted; see"),
            (("run", "m", __file__), f"unexpected argument {__file__}, which is no text but a file; -f reads"),
            (("run", "hi", "-m", "m"), "--model: expected one, got several"),
            (("run", "m", "hi", "-p", "hi"), "-p: expected no PROMPT beside it"),
            (("run", "m"), "prompt: expected TEXT, -f FILE, -p TEXT or --tokens IDS, got none"),
            # Neither is like another one.
            (("run", "m", "--max-new-tokens", "3"), "unknown option --max-new-tokens; see"),
            (("run", "m", "--keep", "3"), "unknown option --keep; see"),
            (("run", "m", "--gpu-layers", "3"), "unknown option --gpu-layers; --target cuda runs all layers on a GPU; see"),
            (("run", "m", "--ctx", "3"), "unknown option --ctx; did you mean --ctx-size?"),
            (("help", "frobnicate"), "unknown verb frobnicate; see"),
            (("compile", "m", "--target", "gpu"), "--target: expected one of {cpu,cuda,sim,reference}, got gpu; see"),
            (("compile", "m", "--gpu", "h20"), ", got h20; did you mean h200?"),
            (("bench", "m", "--batch", "1,9999"), "--batch: expected 1 to 1024, got 9999"),
            (("compile", "m", "--stop-after", "late"), "--stop-after: expected one of {import,graph,fuse,schedule,emit,plan}, got late"),
            (("compile", "m", "-o", "x", "--kv-type", "q3"), "--kv-type: expected one of {f16,bf16,f32,q8_0,fp8}, got q3"),
            (("logits", "m", "--tokens", "1", "-o", "x", "--bogus", "m"), "unknown option --bogus; see"),
            (("cache", "lst"), "did you mean list?; see llamac cache --help"),
            (("run",), "expected MODEL, got none; see llamac run --help"),
            (("convert", "m", "-o", "x"), "expected --to, got none"),
            (("convert", "m", "-o", "x", "--to", "y"), "--to: expected one of {meta,huggingface,gguf}, got y"),
            (("run", "m", "--prompt"), "--prompt: expected TEXT, got none"),
            (("run", "m", "-c", "0"), "-c: expected 1 to 1048576, got 0"),
            (("run", "m", "--temp", "hot"), "--temp: expected a number, got hot"),
            (("run", "m", "-q", "-v"), "-q: expected no --verbose beside it"),
            (("inspect", "m", "--peak-gbs", "1"), "--peak-gbs: expected --html as well"),
        ]:
            with self.subTest(" ".join(args)):
                lines = self.llamac(*args, expect=USAGE).stderr.splitlines()
                self.assertEqual(len(lines), 1)
                self.assertIn(expected, lines[0])

    def test_an_option_of_several_values_takes_one_each_time(self):
        values = {"TEXT": "x", "N": "1", "ID": "3", "ID=VALUE": "3=1", "PASSES": "cse", "NAME=FILE.cu": "k=k.cu"}
        tried = set()
        for verb in (*self.VERBS, "serve"):
            for option in re.split(r"\n  (?=-)", self.llamac(verb, "--help").stdout)[1:]:
                if not re.search(r"comma\s+separated|more\s+than\s+once", option):
                    continue
                name, kind = re.match(r"(?:-\w, )?(--[\w-]+)[^A-Z\n]* ([A-Z]\S*)", option).groups()
                tried.add(name)
                with self.subTest(f"{verb} {name}"):
                    args = (verb, name, values.get(kind, "1"), self.path("none.gguf"))
                    said = support.run([LLAMAC, *args], cache=self.cache).stderr
                    self.assertIn("error: ", said)
                    self.assertNotIn("expected MODEL", said)
        self.assertLessEqual({"--stop", "--logit-bias", "--print-after", "--skip-pass", "--batch", "--cors", "--override-kernel"}, tried)
        # No text is a list, and the one behind it is the prompt.
        said = self.llamac("run", self.path("none.gguf"), "--stop", "[a]", "-n", "5", "--stop", "x", "hi", "more", expect=USAGE).stderr
        self.assertIn("unexpected argument more; a prompt of several words is quoted", said)

    def test_an_empty_value_is_one(self):
        said = self.llamac("run", self.path("none.gguf"), "--system=", "-n", "5", "hi", "more", expect=USAGE).stderr
        self.assertIn("unexpected argument more;", said)
        for option in ("--stop=", "--max-tokens="):
            said = support.run([LLAMAC, "run", self.path("none.gguf"), option, "-n", "5", "hi"], cache=self.cache).stderr
            self.assertNotIn("unexpected", said)
        self.assertIn("expected -1 to 1048576, got an empty value;", said)

    def test_options_in_a_wrong_place_are_told_their_own(self):
        for args, expected in (
            (("--model", "m", "run", "hi"), "unexpected option --model before the verb run, whose options stand behind it; see"),
            (("-t", "2", "run", "m", "hi"), "unexpected option -t before the verb run"),
            (("run", "m", "--", "hi", "-n", "3"), "unexpected argument -n; options stand before --; see"),
            (("run", "m", "hi", "-ngl", "99"), "unknown option -ngl; --target cuda runs all layers on a GPU; see"),
            (("run", "m", "-ngl", "99", "-p", "hi"), "unknown option -ngl; --target cuda"),
            (("chat", "m", "-cnv"), "unknown option -cnv; see"),
        ):
            self.assertIn(f"llamac: error: {expected}", self.llamac(*args, expect=USAGE).stderr)

    def test_files_that_cannot_be_written_are_told_before_any_work(self):
        none = self.path("none.gguf")
        for args in (("run", none, "hi", "--trace"), ("tune", "--export"), ("inspect", none, "--html"),
                     ("logits", none, "--tokens", "1", "-o"), ("convert", none, "--to", "gguf", "-o")):  # fmt: skip
            for name, expected in (("-", "expected a file, got -; /dev/stdout is stdout"),
                                   ("/nowhere/x", "expected a file in a folder that is there, got /nowhere/x")):  # fmt: skip
                self.assertIn(f"{args[-1]}: {expected}", self.llamac(*args, name, expect=USAGE).stderr)

    def test_what_is_no_verb_but_a_model_runs_by_run(self):
        said = self.llamac(__file__, "hi", expect=USAGE).stderr
        self.assertIn(f"unknown verb {__file__}; a model or plan runs by llamac run {__file__};", said)

    def test_help_has_a_verbs_own_flags_and_fits_a_terminal(self):
        main = self.llamac("--help").stdout
        self.assertEqual(set(re.findall(r"^  (?:-\w, )?--(\S+)", main, re.M)), {"help", "version"})
        for verb in (*self.VERBS, "doctor", "cache", "completion", "manual"):
            self.assertRegex(main, rf"(?m)^  {verb} +\w")
        for verb in self.VERBS:
            with self.subTest(verb):
                text = self.llamac(verb, "--help").stdout
                self.assertNotIn(":{", text)
                self.assertLessEqual(max(map(len, text.splitlines())), 80)
                self.assertIn(f"  llamac {verb} ", text.split("Examples:")[1])
                self.assertEqual("  --override-kernel NAME=FILE.cu" in text, verb == "compile")
                for flag in ("--output", "--trace", "--html", "--export", "--import", "--crash-reproducer"):
                    self.assertNotRegex(text, flag + r" (?!FILE|DIR)[A-Z]")

    def test_convert_refuses_a_folder_with_files_in_it(self):
        model = write_huggingface(self.path("model"), CONFIG, random_weights(CONFIG))
        out = self.path("out")
        os.mkdir(out)
        args = ("convert", model, "-o", out, "--to", "meta", "-q")
        self.llamac(*args)
        before = sorted(os.listdir(out))
        self.assertIn("an empty directory", self.llamac(*args, expect=USAGE).stderr)
        self.assertEqual(sorted(os.listdir(out)), before)


if __name__ == "__main__":
    unittest.main(verbosity=2)
