# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prompts that are messages: their ids are those of jinja2 and llama.cpp. And
`chat`, through pipes and at a pseudo terminal."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import stat
import struct
import subprocess
import termios
import time
import unittest

import support

support.require("gguf", "jinja2", "llama_cpp_library")

import jinja2.sandbox

from llama_cpp_library import Llama

MODEL = support.require_model("smollm2.gguf")
GREEDY = ("--temp", "0")
LIMIT = ("-n", "48")

QUESTIONS = [
    "What is the capital of France?",
    "How many days are in a week?",
    "What color is the sky?",
    "Who wrote Romeo and Juliet?",
    "What is 2 + 2?",
    "Name three fruits.",
    "How do I boil an egg?",
    "What is the largest ocean?",
    "Write a sentence about a dog.",
    "Why do we sleep? Été, 日本語 🙂",
]


def template():
    """SmolLM2's chat template, as Hugging Face would set it up."""
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    source = support.gguf_fields(MODEL)["tokenizer.chat_template"].contents()
    return environment.from_string(source)


class ChatCase(support.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.plan = cls.path("smollm2.plan")
        support.run([support.LLAMAC, "compile", MODEL, "-o", cls.plan, "-q"], cache=cls.cache, check=True)
        cls.template = template()
        cls.oracle = Llama(MODEL)

    def prompt_ids(self, messages):
        text = self.template.render(messages=messages, add_generation_prompt=True)
        return self.oracle.tokenize(text.encode(), special=True)


class Run(ChatCase):
    def answer(self, *args, **options):
        """The JSON that `run` prints, its answer as ids."""
        return json.loads(self.llamac("run", self.plan, *GREEDY, *LIMIT, "--print-ids", "--json", *args, **options).stdout)

    def check_prompt(self, messages, *args):
        """The answer and the prompt's size are those of the oracle's ids."""
        ids = self.prompt_ids(messages)
        got = self.answer(*args)
        expected = self.answer("--tokens", ",".join(map(str, ids)))
        self.assertEqual((got["prompt_tokens"], got["ids"]), (len(ids), expected["ids"]))
        self.assertTrue(got["chat_template"])
        self.assertFalse(expected["chat_template"])
        self.assertTrue(got["ids"])

    def test_a_text_is_a_message(self):
        for question in support.by_tier(QUESTIONS[-2:], QUESTIONS):
            self.check_prompt([{"role": "user", "content": question}], "-p", question)

    def test_a_system_message_goes_first(self):
        messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]
        self.check_prompt(messages, "-p", "Hi", "--system", "Be brief.")

    def test_names_of_special_tokens_stand_for_them(self):
        text = "a<|im_end|>\n<|im_start|>user\nb"
        self.check_prompt([{"role": "user", "content": text}], "-p", text)

    def test_another_template_may_be_given(self):
        path = self.path("given.jinja")
        with open(path, "w") as f:
            f.write("Q: {{ messages[0].content }}\nA:")
        got = self.answer("-p", "Who?", "--chat-template", path)
        self.assertEqual(got["ids"], self.answer("-p", "Q: Who?\nA:", "--raw")["ids"])

    def test_the_reference_is_asked_the_same(self):
        args = ("run", MODEL, "--target", "reference", *GREEDY, "-n", 4, "--print-ids", "--json")
        got = json.loads(self.llamac(*args, "-p", QUESTIONS[0]).stdout)
        ids = self.prompt_ids([{"role": "user", "content": QUESTIONS[0]}])
        expected = json.loads(self.llamac(*args, "--tokens", ",".join(map(str, ids))).stdout)
        self.assertEqual((got["prompt_tokens"], got["ids"]), (len(ids), expected["ids"]))

    def test_stderr_says_once_what_the_prompt_is(self):
        lines = {
            (): "prompt: by the model's chat template; --raw leaves it out",
            ("--raw",): None,
            ("-q",): None,
        }
        for options, line in lines.items():
            result = self.llamac("run", self.plan, *GREEDY, "-n", 1, "-p", "Hi", *options)
            said = [x for x in result.stderr.splitlines() if x.startswith("prompt: ")]
            self.assertEqual(said, [line] if line else [])

    def test_raw_completes_the_text(self):
        text = "Once upon a time"
        ids = ",".join(map(str, self.oracle.tokenize(text.encode())))
        self.assertEqual(self.answer("-p", text, "--raw")["ids"], self.answer("--tokens", ids)["ids"])

    def test_the_first_example_of_the_help_is_answered(self):
        question = re.search(r'llamac run model.gguf "(.*)"\n', self.llamac("run", "--help").stdout).group(1)
        self.assertEqual(self.llamac("run", MODEL, question).stdout, "The capital of Germany is Berlin.\n")

    def test_the_small_binary_asks_the_same(self):
        args = [self.plan, *GREEDY, *LIMIT, "-p", QUESTIONS[1]]
        expected = self.llamac("run", *args).stdout
        self.assertEqual(support.run([support.LLAMAC_RUN, *args], check=True).stdout, expected)

    def test_options_that_a_prompt_has_no_use_for_are_refused(self):
        path = self.path("wrong.jinja")
        with open(path, "w") as f:
            f.write("{% if %}")
        for args, code, text in (
            (("-p", "Hi", "--raw", "--system", "a"), support.USAGE, "--system"),
            (("--tokens", "1", "--chat-template", "a"), support.USAGE, "--chat-template"),
            (("-p", "Hi", "--chat-template", "/nowhere"), support.BAD_FILE, "/nowhere"),
            (("-p", "Hi", "--chat-template", path), support.BAD_FILE, "wrong.jinja: chat template, line 1"),
            (("-p", "Hi", "--system", b"\xff"), support.USAGE, "--system: expected UTF-8"),
        ):
            result = support.run([support.LLAMAC, "run", self.plan, *args])
            self.assertEqual(result.returncode, code, result.stderr)
            self.assertIn(text, result.stderr)
            self.assertEqual(len(result.stderr.splitlines()), 1)


class Exact(ChatCase):
    def test_exact_answers_are_those_of_the_reference(self):
        ask = ("run", MODEL, *GREEDY, "-n", support.by_tier(12, 48), "--print-ids", "--json", "-p")
        # 8-bit activations give the first question another answer.
        for question in support.by_tier(QUESTIONS[:2], QUESTIONS):
            with self.subTest(question):
                expected, got = (
                    json.loads(self.llamac(*ask, question, *flags).stdout)["ids"]
                    for flags in (("--target", "reference"), ("--exact",))
                )
                self.assertEqual(got, expected)


class Requests(ChatCase):
    def test_messages_are_written_by_the_template(self):
        messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": QUESTIONS[-1]}]
        ids = self.prompt_ids(messages)
        parts = [message | {"content": [{"type": "text", "text": message["content"]}]} for message in messages]
        lines = [{"messages": messages}, {"tokens": ids}, {"messages": messages, "tokens": ids}, {"messages": "Hi"}]
        lines += [{"messages": parts}, {"messages": messages, "tools": [{"type": "function"}]}]
        prompts = self.path("requests.jsonl")
        with open(prompts, "w") as f:
            f.writelines(json.dumps(line | {"temperature": 0, "max_tokens": 12}) + "\n" for line in lines)
        out = self.llamac("generate", self.plan, "--prompts", prompts, "-o", "-", "-q").stdout
        answers = {a["id"]: a for a in map(json.loads, out.splitlines())}
        self.assertEqual(answers[1]["tokens"], answers[2]["tokens"])
        self.assertEqual(answers[1]["prompt_tokens"], len(ids))
        self.assertIn("one of prompt, tokens and messages", answers[3]["error"])
        self.assertIn("messages: expected an array", answers[4]["error"])
        # The server reads messages in the same way.
        self.assertEqual(answers[5]["tokens"], answers[2]["tokens"])
        self.assertIn("function: expected an object", answers[6]["error"])


class Pipes(ChatCase):
    def chat(self, lines, *options, tool=(support.LLAMAC, "chat")):
        """Sends lines; the result of a chat that ended well."""
        args = [*tool, self.plan, *GREEDY, *LIMIT, *map(str, options)]
        result = support.run(args, cache=self.cache, stdin=None, input="".join(line + "\n" for line in lines))
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def saved(self, lines, *options):
        """The messages of a chat after `lines`."""
        path = self.path("saved.json")
        self.chat([*lines, f"/save {path}"], *options)
        with open(path) as f:
            return json.load(f)["messages"]

    def test_the_answers_are_those_of_run(self):
        questions = support.by_tier(QUESTIONS[-3:], QUESTIONS)
        lines = [line for question in questions for line in (question, "/clear")]
        answers = [self.llamac("run", self.plan, "-p", question, *GREEDY, *LIMIT).stdout for question in questions]
        self.assertNotIn("\n", answers)
        self.assertEqual(self.chat(lines).stdout, "".join(answers))

    def test_a_turn_sees_those_before_it(self):
        messages = self.saved([QUESTIONS[0], "And of Spain?"])
        self.assertEqual([m["role"] for m in messages], ["user", "assistant"] * 2)
        ids = ",".join(map(str, self.prompt_ids(messages[:3])))
        expected = self.llamac("run", self.plan, "--tokens", ids, *GREEDY, *LIMIT).stdout
        self.assertEqual(messages[3]["content"] + "\n", expected)

    def test_what_was_computed_is_not_computed_again(self):
        said = self.chat(["Tell me about the sea, the sky and the land. " * 8, "Why?", "/stats"]).stderr
        prompt, cached = map(int, re.search(r"prompt (\d+) tokens, (\d+) of them cached", said).groups())
        self.assertGreater(cached, 0)
        # A page of the cache, and the template's few tokens.
        self.assertLess(prompt - cached, 64 + 48)

    def test_system_messages_and_settings(self):
        lines = ["/system Be brief.", "/set temp 1", "/set seed 5", "/set max_tokens 8", "Hi"]
        messages = self.saved(lines)
        self.assertEqual(messages[0], {"role": "system", "content": "Be brief."})
        ids = ",".join(map(str, self.prompt_ids(messages[:2])))
        options = ("--temp", "1", "-s", "5", "-n", "8")
        self.assertEqual(messages[2]["content"] + "\n", self.llamac("run", self.plan, "--tokens", ids, *options).stdout)

    def test_no_prompt_and_no_escapes_come(self):
        result = self.chat(["Hi", "/help"])
        for text in (result.stdout, result.stderr):
            self.assertNotRegex(text, r"[\x00-\x09\x0b-\x1f\x7f]")
            self.assertFalse(text.startswith("> "))
        self.assertIn("/regenerate", result.stderr)
        self.assertEqual(self.chat(["/exit", "Hi"], "-q").stderr, "")

    def test_the_small_binary_chats_the_same(self):
        lines = [QUESTIONS[1], QUESTIONS[2]]
        self.assertEqual(self.chat(lines, tool=(support.LLAMAC_RUN, "chat")).stdout, self.chat(lines).stdout)

    def test_a_full_context_is_said_and_the_conversation_goes_on(self):
        plan = self.path("short.plan")
        if not os.path.exists(plan):
            self.llamac("compile", MODEL, "-o", plan, "-c", 64, "-q")
        path = self.path("short.json")
        lines = ["Hi", "word " * 80, f"/save {path}", "/clear", "Hi"]
        args = [support.LLAMAC_RUN, "chat", plan, *GREEDY]
        result = support.run(args, stdin=None, input="".join(line + "\n" for line in lines))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stderr, r"context is full: the conversation has \d+ tokens with this message, and 64 fit; /clear")
        with open(path) as f:
            self.assertEqual(len(json.load(f)["messages"]), 2)
        cut = re.findall(r"cut: the context of 64 tokens is full, with (\d+) of the conversation and (\d+) of the answer", result.stderr)
        for prompt, answer in cut:
            self.assertIn(int(prompt) + int(answer), (64, 65))

    def test_a_conversation_replaces_no_other_file(self):
        path = self.path("notes.txt")
        with open(path, "w") as f:
            f.write("keep")
        args = [support.LLAMAC_RUN, "chat", self.plan, *GREEDY, "-q"]
        said = support.run(args, stdin=None, input=f"/save {path}\n").stderr
        self.assertIn(f"/save: expected a new file or one of a conversation, got {path}", said)
        with open(path) as f:
            self.assertEqual(f.read(), "keep")

    def test_what_cannot_be_is_refused_before_it_begins(self):
        wrong = self.path("wrong.json")
        with open(wrong, "w") as f:
            f.write('{"messages": 5}')
        for options, code, text in (
            (("--load", wrong), support.BAD_FILE, "messages: expected"),
            (("--load", self.path("none.json")), support.BAD_FILE, "none.json: cannot be opened"),
            (("--regex", "("), support.USAGE, "regex"),
            (("--target", "reference"), support.USAGE, "expected"),
        ):
            result = self.llamac("chat", MODEL if "--target" in options else self.plan, *options, expect=code)
            self.assertIn(text, result.stderr)
            self.assertEqual(result.stdout, "")

    def test_an_interrupt_ends_the_program(self):
        args = [support.LLAMAC, "chat", self.plan, *GREEDY, "-n", "-1", "--ignore-eos"]
        pipes = {name: subprocess.PIPE for name in ("stdin", "stdout", "stderr")}
        with subprocess.Popen(args, **pipes, env=dict(os.environ, XDG_CACHE_HOME=self.cache)) as process:
            process.stdin.write(b"Count to a million.\nHi\n")
            process.stdin.flush()
            process.stdout.read(8)
            process.send_signal(signal.SIGINT)
            process.stdout.read()
            self.assertEqual(process.wait(60), -signal.SIGINT)


def screen(output):
    """The lines that a terminal shows of `output`."""
    lines = [""]
    for text, column in re.findall(r"([^\x1b]+)|\x1b\[(\d+)G\x1b\[K|\x1b\[\?2004[hl]", output):
        if column:
            lines[-1] = lines[-1][: int(column) - 1]
        first, *rest = text.replace("\r", "").split("\n")
        lines[-1] += first
        lines += rest
    return lines


class Terminal(ChatCase):
    """At a pseudo terminal, in a locale without UTF-8."""

    SECONDS = 120

    def setUp(self):
        self.state = self.path(self._testMethodName)
        self.start()

    def start(self, *options):
        self.spawn(support.LLAMAC_RUN, "chat", self.plan, *GREEDY, *options)
        return self.wait("> ")

    def spawn(self, *command, columns=80):
        environment = dict(os.environ, TERM="xterm", LC_ALL="C", XDG_STATE_HOME=self.state, HOME=self.folder, XDG_CACHE_HOME=self.cache)
        self.process, self.terminal = pty.fork()
        if self.process == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("4H", 24, columns, 0, 0))
            os.execve(command[0], command, environment)
        self.addCleanup(os.close, self.terminal)
        self.addCleanup(self.end, self.process)

    def end(self, process):
        if process == self.process:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
            self.process = 0

    def wait(self, text, pause=0.3):
        """The output up to `text`, which must come; then the terminal is ready."""
        came, last = b"", time.monotonic() + self.SECONDS
        while text.encode() not in came:
            ready = select.select([self.terminal], [], [], max(last - time.monotonic(), 0))[0]
            try:
                piece = os.read(self.terminal, 1 << 16) if ready else b""
            except OSError:  # The program has ended.
                piece = b""
            if not piece:
                self.fail(f"expected {text!r}, got {came[-300:]!r}")
            came += piece
        time.sleep(pause)
        return came.decode()

    def send(self, keys, text="\n> "):
        os.write(self.terminal, keys.encode())
        return self.wait(text)

    def check_end(self, code=0):
        """The program ends well, or as `code` says."""
        pid, status = os.waitpid(self.process, 0)
        self.process = 0
        self.assertEqual(os.waitstatus_to_exitcode(status), code)

    def begin_endless(self):
        """An answer begins that does not end by itself."""
        self.send("/set ignore_eos true\r")
        self.send("/set max_tokens -1\r")
        os.write(self.terminal, b"Count to a million.\r")
        self.wait("\n", pause=1.5)

    def saved(self):
        """The messages of the conversation."""
        path = self.path("saved at a terminal.json")
        self.send(f"/save {path}\r")
        with open(path, encoding="utf-8") as f:
            return json.load(f)["messages"]

    def test_an_answer_comes_and_ctrl_d_ends(self):
        expected = self.llamac("run", self.plan, "-p", QUESTIONS[1], *GREEDY).stdout
        self.assertIn(expected.strip().replace("\n", "\r\n"), self.send(QUESTIONS[1] + "\r"))
        os.write(self.terminal, b"\x04")
        self.check_end()

    def test_ctrl_c_stops_the_answer_alone(self):
        self.begin_endless()
        os.write(self.terminal, b"\x03\x03")  # In a hurry; in two writes the second could meet the next line.
        self.wait("stopped\r\n> ")
        self.send("/stats\r", "answer ")

    def test_ctrl_d_after_ctrl_c_ends(self):
        self.begin_endless()
        os.write(self.terminal, b"\x03\x04")
        self.wait("stopped\r\n")
        self.check_end()

    def test_what_is_typed_during_an_answer_is_read_after_it(self):
        os.write(self.terminal, b"Count to ten.\r")
        self.wait("\n", pause=0)
        os.write(self.terminal, b"/set temp\r/stats\r\x04")
        lines = screen(self.wait("context "))
        self.assertIn(["> /set temp", "temperature 0", "> /stats"], [lines[i : i + 3] for i in range(len(lines))])
        self.assertEqual(sum("/set temp" in line for line in lines), 1)
        self.check_end()

    def test_an_answer_that_was_stopped_at_once_has_no_rate(self):
        self.send("\x1b[200~" + "word " * 1500 + "\x1b[201~", "word")
        os.write(self.terminal, b"\r")
        time.sleep(0.3)
        self.send("\x03", "stopped\r\n")
        said = self.send("/stats\r", "context ")
        self.assertRegex(said, r"prompt \d+ tokens, \d+ of them cached; answer 0 tokens\r\n")

    def test_a_signal_leaves_the_terminal_as_it_was(self):
        self.begin_endless()
        os.kill(self.process, signal.SIGTERM)
        self.wait("\n")
        self.check_end(-signal.SIGTERM)
        self.assertTrue(termios.tcgetattr(self.terminal)[3] & termios.ECHO)

    def test_a_paste_is_one_message(self):
        self.send("\x1b[200~/system Été\r\tb\x03\rc\r\x1b[201~", "c")
        self.send("d\r")
        self.assertEqual([m["content"] for m in self.saved()], ["Été\n\tb\ncd"])

    def test_tab_completes_commands(self):
        self.assertIn("/save /set /stats /system", self.send("/s\t\t", "/system"))
        self.send("ys\tBe brief.\r")
        self.assertEqual(self.saved()[0]["content"], "Be brief.")
        self.send("/set tem\t0.5\r")
        self.send("/set temp\r", "temperature 0.5")

    def test_words_are_wrapped_at_the_terminals_width(self):
        question = "Tell me about the sea in three sentences."
        expected = self.llamac("run", self.plan, question, *GREEDY, *LIMIT).stdout
        self.spawn(support.LLAMAC_RUN, self.plan, question, *GREEDY, *LIMIT, "-q", columns=30)
        lines = screen(self.wait(expected.split()[-1]))
        self.assertEqual(" ".join(lines).split(), expected.split())
        self.assertLessEqual(max(map(len, lines)), 30)

    def test_the_banner_names_the_model(self):
        self.spawn(support.LLAMAC, "chat", MODEL)
        self.assertIn(f"{MODEL}, context of 8192 tokens", self.wait("> "))

    def test_an_interrupted_run_says_how_far_it_came(self):
        self.spawn(support.LLAMAC, "run", self.plan, "Count to a million.", "-n", "-1", "--ignore-eos")
        self.wait("leaves it out", pause=1.5)
        os.write(self.terminal, b"\x03")
        self.assertRegex(self.wait("interrupted"), r"load [\d.]+ s, prompt .* answer \d+ tokens, decode at [\d.]+ tok/s, interrupted")
        self.check_end(-signal.SIGINT)

    def test_two_ctrl_c_with_nothing_typed_end(self):
        self.assertIn("abc^C", self.send("abc\x03"))
        self.send("\x03", "Ctrl-C again, or Ctrl-D, ends\r\n> ")
        self.send("d\x7f/set temp\r", "temperature 0")
        self.send("\x03", "Ctrl-C again")
        os.write(self.terminal, b"\x03")
        self.check_end()

    def test_characters_are_erased_whole(self):
        path = self.path("erased.json")
        self.send("/system Été 日本\x7f\x7f語\r")
        self.send(f"/save {path}\r")
        with open(path, encoding="utf-8") as f:
            self.assertEqual(json.load(f)["messages"][0]["content"], "Été 語")

    def test_lines_are_called_back_also_by_the_next_chat(self):
        self.send("/system first\r")
        self.send("/set temp\r")
        self.assertIn("/system first", self.send("\x1b[A\x1b[A\r"))
        os.write(self.terminal, b"\x04")
        self.check_end()
        file = os.path.join(self.state, "llamac", "chat_history")
        self.assertEqual(stat.S_IMODE(os.stat(file).st_mode), 0o600)
        self.start()
        self.send("\x1b[A", "/system first")

    def test_without_a_history_nothing_is_kept(self):
        os.write(self.terminal, b"\x04")
        self.check_end()
        self.state = self.path("none")
        self.start("--no-history")
        self.send("/system first\r")
        self.assertFalse(os.path.exists(self.state))

    def test_a_message_of_several_lines(self):
        path = self.path("lines.json")
        self.send('"""/a\r', "... ")
        self.send('b"""\r', "/a: unknown command")
        self.send("/system a\\\r", "... ")
        self.send("b\r")
        self.send(f"/save {path}\r")
        with open(path) as f:
            self.assertEqual(json.load(f)["messages"][0]["content"], "a\nb")


if __name__ == "__main__":
    unittest.main(verbosity=2)
