# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Conversations in Python. `llamac serve` says what is right: its answers to the
same messages, tools and formats, and its errors.

    test_conversations.py SmolLM2 | OwnTemplate | Scripted | Arguments
"""

import asyncio
import json
import pickle
import re
import unittest

from test_package import MODEL, PackageTest  # First: it finds the others.

import scripted_model
import support
from serving import Server
from support import LLAMAC
from test_serve_scripted import MARKS, SPECIALS, STRICT, TEMPLATE, TEXT, TOOL

import llamac
from llamac import Code

FRANCE = [{"role": "user", "content": "What is the capital of France?"}]
TURNS = [
    {"role": "system", "content": "You answer in one short sentence."},
    {"role": "user", "content": "Name a colour."},
    {"role": "assistant", "content": "Blue."},
    {"role": "user", "content": [{"type": "text", "text": "And another one?"}]},
]
SCHEMA = {
    "type": "object",
    "properties": {"city": {"enum": ["Paris", "Oslo"]}, "people": {"type": "integer", "maximum": 9}},
    "required": ["city", "people"],
    "additionalProperties": False,
}
AS_SCHEMA = {"type": "json_schema", "json_schema": {"name": "city", "schema": SCHEMA}}
POPULATION = {
    "type": "function",
    "function": {"name": "get_population", "description": "People in a city", "parameters": SCHEMA},
}


def without_ids(message):
    """A message as the server and the library both have it."""
    calls = [{**call, "id": None} for call in message.get("tool_calls", ())]
    return {"role": message["role"], "content": message["content"], "tool_calls": calls}


class ServedCase(PackageTest):
    """Compares answers of `engine` with those of `server`."""

    def assert_served(self, messages, model=None, **options):
        """The answer of the engine, which is the server's, whole and in parts."""
        answer = self.engine.chat(messages, **options)
        parts = list(answer)
        results = answer.results()
        body = {"messages": messages} | ({"model": model} if model else {}) | options
        served = self.server.post("/v1/chat/completions", body)
        self.assertEqual(len(results), len(served["choices"]))
        for result, choice in zip(results, served["choices"]):
            self.assertEqual(without_ids(result.message), without_ids(choice["message"]))
            self.assertEqual(result.end.finish_reason, choice["finish_reason"])
            own = [part for part in parts if part.index == result.index]
            self.assertEqual("".join(part.text for part in own), result.text)
            calls = [["", ""] for _ in result.tool_calls]
            for call in (call for part in own for call in part.tool_calls):
                calls[call.index][0] = call.name
                calls[call.index][1] += call.arguments
                self.assertEqual(call.id, result.tool_calls[call.index].id)
            self.assertEqual(calls, [[call.name, call.arguments] for call in result.tool_calls])
        self.assertEqual(results[0].end.prompt_tokens, served["usage"]["prompt_tokens"])
        tokens = sum(result.end.answer_tokens for result in results)
        self.assertEqual(tokens, served["usage"]["completion_tokens"])
        return results[0]


class SmolLM2(ServedCase):
    """With a template that knows of tools; the model's own does not."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        template = support.require_model("chat-templates/Qwen-Qwen2.5-7B-Instruct.jinja")
        with open(template, encoding="utf-8") as file:
            cls.template = file.read()
        cls.server = Server([cls.model.path], cls.path("access.log"), "--chat-template", template)
        cls.server.__enter__()
        cls.addClassCleanup(cls.server.__exit__, None, None, None)

    def setUp(self):
        self.engine = llamac.Engine(self.model, chat_template=self.template)
        self.addCleanup(self.engine.close)

    def test_conversations_have_the_servers_answers(self):
        greedy = {"temperature": 0, "max_tokens": 20}
        for messages in (FRANCE, TURNS, [{"role": "user", "content": " «Ελλάδα» <|im_end|>\n{{ 1 }} 😀"}]):
            for options in (greedy, {"max_tokens": 12, "temperature": 0.9, "seed": 5, "n": 3}, {**greedy, "stop": "a"},
                            {"max_completion_tokens": 7, "temperature": 0}):  # fmt: skip
                with self.subTest(messages=messages, options=options):
                    self.assert_served(messages, **options)

    def test_formats_of_answers_are_the_servers(self):
        greedy = {"temperature": 0, "max_tokens": 60}
        self.assert_served(FRANCE, response_format={"type": "text"}, **greedy)
        for messages in (FRANCE, TURNS):
            result = self.assert_served(messages, response_format=AS_SCHEMA, **greedy)
            self.assertEqual(set(json.loads(result.text)), {"city", "people"})
            self.assert_served(messages, response_format={"type": "json_object"}, **greedy)
        self.assert_served(FRANCE, json_schema=SCHEMA, **greedy)
        self.assert_served(FRANCE, regex="[a-f]{5}", **greedy)

    def test_tools_are_called_as_the_server_has_them_called(self):
        greedy = {"temperature": 0, "max_tokens": 60}
        other = {"type": "function", "function": {"name": "get_weather"}}
        named = {"type": "function", "function": {"name": "get_population"}}
        for options in (
            {"tools": [POPULATION]},
            {"tools": [POPULATION, other], "tool_choice": "required"},
            {"tools": [other, POPULATION], "tool_choice": named},
            {"tools": [POPULATION], "tool_choice": "required", "parallel_tool_calls": False},
            {"tools": [POPULATION], "tool_choice": "none"},
            {"tools": [POPULATION], "tool_choice": "required", "n": 2, "temperature": 1.0, "seed": 3},
            # Cut inside the arguments.
            {"tools": [POPULATION], "tool_choice": named, "max_tokens": 12},
        ):
            with self.subTest(options=options):
                result = self.assert_served(FRANCE, **(greedy | options))
                if options.get("tool_choice") == named and "max_tokens" not in options:
                    self.assertEqual([call.name for call in result.tool_calls], ["get_population"])
                    self.assertIn(json.loads(result.tool_calls[0].arguments)["city"], ("Paris", "Oslo"))
                    self.assertIsNone(result.message["content"])

    def test_an_answer_goes_on_from_its_own_message(self):
        options = {"temperature": 0, "max_tokens": 60, "tools": [POPULATION]}
        result = self.engine.chat(FRANCE, tool_choice="required", **options).result()
        (call,) = result.tool_calls
        self.assertRegex(call.id, r"^call_\w{24}$")
        told = {"role": "tool", "tool_call_id": call.id, "content": '{"people": 7}'}
        self.assert_served([*FRANCE, result.message, told], **options)

    def test_errors_are_the_servers(self):
        for wrong in (
            {"messages": []},
            {"messages": "hello"},
            {"messages": [5]},
            {"messages": [{"role": "usr", "content": "a"}]},
            {"messages": [{"role": "user", "contnt": "a"}]},
            {"messages": [{"role": "user", "content": 5}]},
            {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
            {"tool_choice": "auto"},
            {"tool_choice": "some", "tools": [TOOL]},
            {"tool_choice": {"type": "function", "function": {"name": "g"}}, "tools": [TOOL]},
            {"tools": [{"type": "function", "function": {"name": "a b"}}]},
            {"tools": [{"type": "functoin"}]},
            {"tools": "get_weather"},
            {"parallel_tool_calls": "no", "tools": [TOOL]},
            {"response_format": "json"},
            {"response_format": {"type": "jsn"}},
            {"response_format": {"type": "json_schema"}},
            {"response_format": {"type": "json_object"}, "tool_choice": "required", "tools": [TOOL]},
            {"reasoning_effort": "high"},
            {"chat_template_kwargs": {"thinking": True}},
            {"documents": "none"},
            {"max_token": 5},
        ):
            with self.subTest(wrong):
                given = {"messages": FRANCE} | wrong
                error = self.server.post("/v1/chat/completions", given, expect=400)["error"]["message"]
                error = re.sub(r"body:[\d:]+ ", "", error)
                self.assert_error(Code.USAGE, error, self.engine.submit, **given)

    def test_many_are_answered_at_once_in_an_event_loop(self):
        async def parts(answer):
            return [part async for part in answer]

        async def main():
            answers = [
                self.engine.chat(FRANCE, tools=[POPULATION], tool_choice="required", max_tokens=60, seed=seed)
                for seed in range(8)
            ]
            streamed = parts(self.engine.chat(TURNS, temperature=0, max_tokens=10))
            return await asyncio.gather(streamed, *answers)

        streamed, *results = asyncio.run(main())
        for result in results:
            self.assertEqual(result.end.finish_reason, "tool_calls")
        again = self.engine.submit(messages=TURNS, temperature=0, max_tokens=10).text()
        self.assertEqual("".join(part.text for part in streamed), again)


class OwnTemplate(PackageTest):
    def test_the_models_own_template_is_that_of_the_tool(self):
        question = "Name three fruits."
        tool = json.loads(self.llamac("run", MODEL, "-p", question, "-n", 12, "--temp", 0, "--json").stdout)
        answer = self.engine.chat([{"role": "user", "content": question}], max_tokens=12, temperature=0)
        self.assertEqual(answer.text(), tool["text"])
        self.assert_error(Code.USAGE, "knows no tools", self.engine.chat, FRANCE, tools=[TOOL])

    def test_messages_may_be_any_sequences_and_mappings(self):
        class Message(dict):
            pass

        expected = self.engine.chat(FRANCE, max_tokens=5, temperature=0).result().tokens
        for messages in (tuple(FRANCE), (message for message in FRANCE), [Message(FRANCE[0])]):
            self.assertEqual(self.engine.chat(messages, max_tokens=5, temperature=0).result().tokens, expected)
        ids = self.engine.chat(FRANCE, max_tokens=1, add_special_tokens=True).result().end.prompt_tokens
        # The model has no token that begins a text.
        self.assertEqual(ids, self.engine.chat(FRANCE, max_tokens=1).result().end.prompt_tokens)


class Scripted(ServedCase):
    """Answers whose tokens are chosen."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        plans = {}
        for name, pieces in (("marks", MARKS), ("text", scripted_model.cut(TEXT))):
            model = scripted_model.make(cls.path(f"{name}.gguf"), pieces, TEMPLATE, SPECIALS)
            plans[name] = cls.path(f"{name}.plan")
            support.run([LLAMAC, "compile", model, "-o", plans[name]], cache=cls.cache, check=True)
        cls.models = {name: llamac.Model.load(plan, threads=1) for name, plan in plans.items()}
        cls.server = Server([f"{name}={plan}" for name, plan in plans.items()], cls.path("access.log"))
        cls.server.__enter__()
        cls.addClassCleanup(cls.server.__exit__, None, None, None)

    def test_calls_are_the_servers(self):
        greedy = {"temperature": 0, "max_tokens": 90}
        for name, model in self.models.items():
            with llamac.Engine(model) as self.engine:
                for options in ({}, {"tools": [TOOL]}, {"tools": [STRICT]}, {"tools": [TOOL], "stop": "Osl"}):
                    with self.subTest(name, options=options):
                        result = self.assert_served([{"role": "user", "content": "x"}], model=name, **(greedy | options))
                        if name == "marks" and "stop" not in options and options:
                            self.assertEqual(result.tool_calls[0].arguments, '{"city": "Oslo"}')
                            self.assertEqual((result.text, result.end.finish_reason), ("", "tool_calls"))


class Arguments(PackageTest):
    """Every wrong argument is an Error that says what was expected."""

    def refuse(self, words, function, *args, **options):
        self.assert_error(Code.USAGE, words, function, *args, **options)

    def test_conversations(self):
        chat, submit = self.engine.chat, self.engine.submit
        self.refuse("Engine.chat: missing 1 required positional argument: 'messages'", chat)
        self.refuse("Engine.chat: takes 2 positional arguments but 3 were given", chat, FRANCE, FRANCE)
        self.refuse("prompt: expected one of prompt and messages, got neither", submit)
        self.refuse("prompt: expected one of prompt and messages, got both", submit, "a", messages=FRANCE)
        self.refuse("tools: expected messages beside it, got none", submit, "a", tools=[TOOL])
        self.refuse("tool_choise: expected a field of a request, got an unknown one; did you mean tool_choice?",
                    chat, FRANCE, tool_choise="auto")  # fmt: skip
        self.refuse("did you mean max_tokens?", chat, FRANCE, max_token=5)
        self.refuse("did you mean max_tokens?", submit, "a", max_token=5)
        self.refuse("messages: expected what JSON has, got <object", chat, [object()])
        self.refuse("messages: expected what JSON has, got b'a'", chat, [{"role": "user", "content": b"a"}])
        self.refuse("messages: expected a text without halves of characters, got", chat,
                    [{"role": "user", "content": "\ud800"}])  # fmt: skip
        self.refuse("tools: expected what JSON has, got nan", chat, FRANCE, tools=float("nan"))
        loop = []
        loop.append(loop)
        self.refuse("documents: expected what JSON has", chat, FRANCE, documents=loop)
        self.refuse("option temperature: expected a float, got 'hot'", chat, FRANCE, temperature="hot")
        self.refuse("n: expected 1 to 1024, got 0", chat, FRANCE, n=0)
        self.refuse("parse_special: expected a prompt of text", chat, FRANCE, parse_special=False)

    def test_prompts_and_answers(self):
        submit = self.engine.submit
        for wrong in (5, b"ab", 1.5):
            self.refuse(f"prompt: expected a text or token ids, got {wrong!r}", submit, wrong)
        self.refuse("prompt: expected a text without halves of characters", submit, "\ud800")
        self.refuse("prompt: expected an int", submit, [1.5])
        for name in ("max_tokens", "n", "top_k", "logprobs", "seed"):
            self.refuse(f"option {name}: expected an int, got True", submit, "a", **{name: True})
        self.refuse("option temperature: expected a float, got True", submit, "a", temperature=True)
        self.refuse("option seed: expected an int from -9223372036854775808 to 18446744073709551615, got", submit, "a",
                    seed=2**64)  # fmt: skip
        self.refuse("option stop: expected str or a list of them, got 5", submit, "a", stop=5)
        self.refuse("option logit_bias: expected a dict from ids to numbers, got [1]", submit, "a", logit_bias=[1])
        self.refuse("json_schema: expected what JSON has", submit, "a", json_schema={"a": object()})
        answer = submit("a", max_tokens=1)
        self.refuse("timeout: expected seconds or None, got 'x'", answer.next, "x")
        self.refuse("Answer.next: expected one of timeout, got timeot; did you mean timeout?", answer.next, timeot=3)
        self.refuse("Answer.result: expected no argument, got timeout", answer.result, timeout=3)

    def test_models_and_engines(self):
        load = llamac.Model.load
        self.refuse("Model.load: missing 1 required positional argument: 'path'", load)
        for wrong in (5, None, "a\0b"):
            self.refuse(f"path: expected a path, got {wrong!r}", load, wrong)
        # Before anything is compiled.
        self.refuse("option thread: expected one of a model: threads", load, "/no/model.gguf", thread=1)
        self.refuse("did you mean threads?", load, "/no/model.gguf", thread=1)
        for wrong in (5, {1: 2}):
            self.refuse(f"compile: expected a dict of options, got {wrong!r}", load, MODEL, compile=wrong)
        self.refuse("unknown option ctxsize; did you mean ctx_size?", load, MODEL, compile={"ctxsize": 64})
        self.refuse("ctx_size: expected no NUL in it", load, MODEL, compile={"ctx_size": "1\0"})
        self.refuse("Model: expected Model.load(path), which makes one, got 'a'", llamac.Model, "a")
        self.refuse("model: expected a path, got 5", llamac.compile, 5, "a.plan")
        self.refuse("compile: missing 1 required positional argument: 'output'", llamac.compile, MODEL)
        self.refuse("Engine: missing 1 required positional argument: 'model'", llamac.Engine)
        self.refuse("model: expected a llamac.Model, as Model.load(path) makes it, got 'a'", llamac.Engine, "a")
        self.refuse("did you mean max_waiting?", llamac.Engine, self.model, max_wait=1)
        self.refuse("option chat_template: chat template, line 1", llamac.Engine, self.model, chat_template="{% if %}")

    def test_tokens_and_logits(self):
        model = self.model
        for wrong in (5, None):
            self.refuse(f"text: expected a text, got {wrong}", model.encode, wrong)
            self.refuse(f"tokens: expected token ids, got {wrong}", model.decode, wrong)
        self.refuse("text: expected a text without halves of characters", model.encode, "\ud800")
        self.refuse("special: expected a bool, got 1", model.encode, "a", special=1)
        self.refuse("Model.encode: expected one of text, special, continues, got specal; did you mean special?",
                    model.encode, "a", specal=True)  # fmt: skip
        self.refuse("Model.decode: takes 2 positional arguments but 3 were given", model.decode, [5], True)
        self.refuse("tokens: expected token ids, got 'ab'", model.decode, "ab")
        self.refuse("tokens: expected an int", model.decode_bytes, ["a"])
        self.refuse("token: expected an int, got 1.5", model.token_bytes, 1.5)
        with model.sequence() as sequence:
            self.refuse("rows: expected none, last or all, got 'lst'", sequence.step, [5], "lst")
            self.refuse("rows: expected none, last or all, got []", sequence.step, [5], [])
            self.refuse("tokens: expected token ids, got 5", sequence.step, 5)
            self.refuse("length: expected an int, got 'a'", sequence.truncate, "a")

    def test_errors_of_what_a_caller_passes_are_the_callers(self):
        def tokens():
            yield 5
            raise TypeError("mine")

        with self.assertRaisesRegex(TypeError, "mine"):
            self.engine.submit(tokens())

        class Own(llamac.Model):
            def greet(self):
                return "hello"

        with self.assertRaises(TypeError):
            Own(self.model._native).greet(5)

    def test_a_repr_names_the_model(self):
        self.assertEqual(repr(self.model), "<llamac.Model smollm2 on cpu, 2 threads>")
        self.assertEqual(repr(self.engine), "<llamac.Engine of smollm2 on cpu, 2 threads>")
        plan = llamac.compile(MODEL, self.path("own.plan"), ctx_size=64)
        with llamac.Model.load(plan) as model:
            self.assertRegex(repr(model), r"^<llamac\.Model own on cpu, .*s>$")
            self.assertFalse(model.closed)
            with llamac.Engine(model) as engine, model.sequence() as sequence:
                sequence.step([5, 6])
                self.assertEqual(repr(sequence), "<llamac.Sequence of 2 tokens>")
                answer = engine.submit([5])
                answer.close()
        for handle in (model, engine, sequence, answer):
            self.assertTrue(handle.closed)
            self.assertRegex(repr(handle), f"^<llamac.{type(handle).__name__} .*, closed>$")

    def test_a_repr_of_an_error_names_its_code(self):
        with self.assertRaises(llamac.Error) as raised:
            self.engine.submit("a", max_tokens=-5)
        self.assertRegex(repr(raised.exception), r"^llamac\.UsageError\(Code\.USAGE, 'max_tokens: ")
        self.assertEqual(repr(pickle.loads(pickle.dumps(raised.exception))), repr(raised.exception))

    def test_the_package_has_its_own_names_alone(self):
        names = {name for name in vars(llamac) if not name.startswith("_")}
        self.assertEqual(names, set(llamac.__all__))


if __name__ == "__main__":
    unittest.main(verbosity=2)
