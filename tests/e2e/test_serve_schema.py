# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Requests that schemathesis makes of the schemas in OpenAI's own client, valid
ones and ones that are not: none is answered by 5xx, what is refused says why, and
an answer is what the client reads. 125 cases in the default tier, thousands in the
exhaustive one."""

import collections
import json
import typing
import unittest

import support

support.require("openai", "pydantic", "schemathesis", "hypothesis", "jsonschema")

import hypothesis
import jsonschema
import pydantic
import schemathesis
from openai.types import Completion, Model, completion_create_params
from openai.types.chat import ChatCompletion, ChatCompletionChunk, completion_create_params as chat_create_params
from openai.types.shared import ErrorObject
from schemathesis import GenerationMode

import serving
from serving import MODEL
from support import by_tier

# A server's context, so that no answer is long.
CONTEXT = 256
PATHS = {
    "/v1/chat/completions": chat_create_params.CompletionCreateParamsNonStreaming,
    "/v1/completions": completion_create_params.CompletionCreateParamsNonStreaming,
}
# Limits of values beside their types in OpenAI's reference, and limits that
# keep answers short.
VALUES = {
    "model": {"const": MODEL},
    "max_tokens": {"type": "integer", "minimum": 1, "maximum": 4},
    "max_completion_tokens": {"type": "null"},
    "n": {"type": "integer", "minimum": 1, "maximum": 2},
    "temperature": {"type": "number", "minimum": 0, "maximum": 2},
    "top_p": {"type": "number", "minimum": 0.01, "maximum": 1},
    "frequency_penalty": {"type": "number", "minimum": -2, "maximum": 2},
    "presence_penalty": {"type": "number", "minimum": -2, "maximum": 2},
    "seed": {"type": "integer", "minimum": 0, "maximum": 2**63 - 1},
    "logit_bias": {
        "type": "object",
        "patternProperties": {"^[1-9][0-9]{0,3}$": {"type": "integer", "minimum": -100, "maximum": 100}},
        "additionalProperties": False,
    },
    "stop": {"type": "array", "items": {"type": "string", "minLength": 1}, "maxItems": 4},
    "prompt": {"type": ["string", "array"], "minLength": 1, "minItems": 1, "items": {"type": "string", "minLength": 1}},
}
# Fields that llamac has not, or has one value of.
NOT_SUPPORTED = (
    "audio function_call functions metadata modalities moderation prediction prompt_cache_options "
    "prompt_cache_retention reasoning_effort service_tier store stream_options verbosity web_search_options "
    "best_of suffix top_logprobs logprobs tools tool_choice parallel_tool_calls response_format"
).split()


def closed(schema):
    """`schema` with no members but those it names."""
    if isinstance(schema, list):
        return [closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    result = {name: closed(value) for name, value in schema.items()}
    if isinstance(result.get("properties"), dict) and result.get("type") == "object":
        result.setdefault("additionalProperties", False)
    return result


def schema_of(kind, is_narrow):
    """The schema of a type in the client. A narrow one has only values that this server
    should take."""
    schema = pydantic.TypeAdapter(kind).json_schema(ref_template="#/components/schemas/{model}")
    schema = closed(schema)
    properties = schema["properties"]
    for name, value in VALUES.items():
        if name in properties and (is_narrow or name in ("model", "max_tokens", "n")):
            properties[name] = value
    if is_narrow:
        for name in NOT_SUPPORTED:
            properties.pop(name, None)
        if "messages" in properties:
            text = {"type": "string"}
            message = {
                "type": "object",
                "properties": {"role": {"enum": ["system", "user", "assistant", "developer"]}, "content": text},
                "required": ["role", "content"],
                "additionalProperties": False,
            }
            properties["messages"] = {"type": "array", "minItems": 1, "maxItems": 5, "items": message}
    schema["required"] = [*schema["required"], "max_tokens"]
    return schema, schema.pop("$defs", {})


def accepted(path):
    """The schema of what may be taken of a narrow request that is not as its own
    schema says: any field may be null, and some have wider limits here."""
    schema, _ = schema_of(PATHS[path], is_narrow=True)
    wider = {
        "max_tokens": {"type": "integer", "minimum": -1},
        "max_completion_tokens": {"type": "integer", "minimum": -1},
        "n": {"type": "integer", "minimum": 1},
        "stop": {"type": ["string", "array"], "minLength": 1, "items": {"type": "string", "minLength": 1}},
        "seed": {"type": "integer", "minimum": -(2**63), "maximum": 2**64 - 1},
        "stream": {"type": "boolean"},
        "prompt": {"type": ["string", "array"], "minLength": 1, "minItems": 1, "items": {"type": ["string", "integer"]}},
        "top_p": {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
        "temperature": {"type": "number", "minimum": 0},
        "logit_bias": {
            "type": "object",
            "patternProperties": {"^ *[0-9]+ *$": {"type": "number", "minimum": -100, "maximum": 100}},
            "additionalProperties": False,
        },
    }
    properties = {name: wider.get(name, value) for name, value in schema["properties"].items()}
    needed = "messages" if "messages" in properties else "prompt"
    if needed == "messages":
        message = properties["messages"]["items"]
        # One that only calls tools has no content; calls are no part of narrow requests.
        silent = {"properties": {"role": {"const": "assistant"}, "content": {"type": "null"}}, "required": ["role"]}
        tool = {"properties": message["properties"] | {"role": {"const": "tool"}}, "required": ["role", "content"]}
        kinds = [message, *({"type": "object", "additionalProperties": False} | one for one in (silent, tool))]
        properties["messages"] = {"type": "array", "minItems": 1, "items": {"anyOf": kinds}}
    schema["properties"] = {
        name: value if name == needed else {"anyOf": [value, {"type": "null"}]} for name, value in properties.items()
    }
    schema["required"] = [needed]
    # A name that is not known asks for nothing where it is null.
    schema["additionalProperties"] = {"type": "null"}
    return schema


def document(is_narrow):
    """An OpenAPI document of the routes."""
    paths, shared = {}, {}
    text = {"prompt": {"type": "string"}}
    ids = {"tokens": {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 49151}}}
    schemas = {
        "/tokenize": {"type": "object", "properties": text, "required": ["prompt"]},
        "/detokenize": {"type": "object", "properties": ids, "required": ["tokens"]},
    }
    for path, kind in PATHS.items():
        schemas[path], parts = schema_of(kind, is_narrow)
        shared |= parts
    for path, schema in schemas.items():
        body = {"required": True, "content": {"application/json": {"schema": schema}}}
        paths[path] = {"post": {"requestBody": body, "responses": {"200": {"description": "An answer"}}}}
    name = {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}
    paths["/v1/models/{name}"] = {"get": {"parameters": [name], "responses": {"200": {"description": "A model"}}}}
    for path in ("/v1/models", "/health", "/metrics"):
        paths[path] = {"get": {"responses": {"200": {"description": "An answer"}}}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "llamac serve", "version": "1"},
        "paths": paths,
        "components": {"schemas": shared},
    }


# The reader of the answer to a path.
READERS = {
    "/v1/chat/completions": ChatCompletion,
    "/v1/completions": Completion,
    "/v1/models/{name}": Model,
}


class Schema(serving.ServedTestCase):
    options = ("--parallel", 4)
    plan_options = ("-c", CONTEXT)

    def check(self, operation, case, statuses, takes):
        answer = case.call(timeout=120)
        statuses[answer.status_code] += 1
        if takes and answer.status_code == 200:
            jsonschema.validate(case.body, takes)
        body = repr(case.body)[:2000]
        self.assertLess(answer.status_code, 500, f"{answer.content} {body}")
        if answer.status_code == 200:
            reader = READERS.get(operation.path)
            if reader and "json" in answer.headers["content-type"][0]:
                reader.model_validate(answer.json(), strict=True)
            return
        error = answer.json()["error"]
        self.assertEqual(set(error), {"message", "type", "param", "code"})
        self.assertTrue(error["message"], body)

    def explore(self, path, method, mode, cases, is_narrow=False, takes=None):
        """How often each status came. What is answered must be as the schema
        `takes` says, if there is one."""
        schema = schemathesis.openapi.from_dict(document(is_narrow))
        schema.config.update(base_url=self.server.url)
        operation = schema[path][method]
        statuses = collections.Counter()
        settings = hypothesis.settings(
            max_examples=cases,
            deadline=None,
            database=None,
            derandomize=True,
            phases=[hypothesis.Phase.generate],
            suppress_health_check=list(hypothesis.HealthCheck),
        )

        @settings
        @hypothesis.given(case=operation.as_strategy(generation_mode=mode))
        def run(case):
            self.check(operation, case, statuses, takes)

        run()
        return statuses

    def test_requests_of_the_client_s_types(self):
        for path in PATHS:
            with self.subTest(path):
                statuses = self.explore(path, "POST", GenerationMode.POSITIVE, by_tier(10, 1500))
                self.assertLessEqual(set(statuses), {200, 400})

    def test_requests_that_are_supported(self):
        for path in PATHS:
            with self.subTest(path):
                statuses = self.explore(path, "POST", GenerationMode.POSITIVE, by_tier(10, 1500), is_narrow=True)
                self.assertLessEqual(set(statuses), {200, 400})
                # Some prompts are past the context.
                self.assertGreater(statuses[200], statuses.total() * 0.6)

    def test_requests_that_are_not_valid(self):
        for path in (*PATHS, "/tokenize", "/detokenize"):
            with self.subTest(path):
                statuses = self.explore(path, "POST", GenerationMode.NEGATIVE, by_tier(5, 1000))
                self.assertGreater(statuses[400], 0)

    def test_nothing_that_is_wrong_is_taken(self):
        for path in PATHS:
            with self.subTest(path):
                options = {"is_narrow": True, "takes": accepted(path)}
                statuses = self.explore(path, "POST", GenerationMode.NEGATIVE, by_tier(20, 1500), **options)
                self.assertGreater(statuses[400], statuses.total() // 2)

    def test_the_other_routes(self):
        for path in ("/tokenize", "/detokenize"):
            with self.subTest(path):
                statuses = self.explore(path, "POST", GenerationMode.POSITIVE, by_tier(5, 500))
                self.assertLessEqual(set(statuses), {200, 400})
        statuses = self.explore("/v1/models/{name}", "GET", GenerationMode.POSITIVE, by_tier(5, 200))
        self.assertLessEqual(set(statuses), {200, 404})

    # Requests for a short answer to a path, and for one that begins with a text
    # that may stop it at once.
    MESSAGES = [{"role": "user", "content": "Hi"}]
    SHORT = {
        "/v1/chat/completions": {"messages": MESSAGES, "max_tokens": 4, "temperature": 0},
        "/v1/completions": {"prompt": "Once upon a time", "max_tokens": 4, "temperature": 0},
    }

    def test_null_is_as_good_as_absent(self):
        for path, kinds in (
            (
                "/v1/chat/completions",
                (chat_create_params.CompletionCreateParamsStreaming, PATHS["/v1/chat/completions"]),
            ),
            ("/v1/completions", (completion_create_params.CompletionCreateParamsStreaming, PATHS["/v1/completions"])),
        ):
            body = self.SHORT[path]
            expected = self.server.post(path, body)["choices"]
            names = {name for kind in kinds for name in typing.get_type_hints(kind)}
            self.assertGreater(len(names), 17)
            nulls = dict.fromkeys([*names, "not_yet_known"])
            self.assertEqual(self.server.post(path, nulls | body)["choices"], expected)
            options = {"stream": True, "stream_options": dict.fromkeys(("include_usage", "include_obfuscation"))}
            chunks = [json.loads(chunk) for chunk in self.chunks(path, body | options)]
            self.assertTrue(all(chunk["choices"] and "usage" not in chunk for chunk in chunks))
        null_members = dict.fromkeys(("audio", "function_call", "name", "refusal", "tool_calls", "not_yet_known"))
        messages = [*self.MESSAGES, {"role": "assistant", "content": "Ho"}, *self.MESSAGES]
        nulled = [message | (null_members if message["role"] == "assistant" else {"name": None}) for message in messages]
        path, body = "/v1/chat/completions", {"max_tokens": 4, "temperature": 0}
        self.assertEqual(
            self.server.post(path, body | {"messages": nulled})["choices"],
            self.server.post(path, body | {"messages": messages})["choices"],
        )

    def chunks(self, path, body):
        """The events of a stream, but for the last, which ends it."""
        status, _, text = self.server.request("POST", path, body | {"stream": True})
        self.assertEqual(status, 200, text)
        *events, last, end = text.decode().split("\n\n")
        self.assertEqual((last, end), ("data: [DONE]", ""))
        return [event.removeprefix("data: ") for event in events]

    def check_chunk(self, path, text, ended):
        """Checks that a chunk is of its type; `ended` has the choices that have ended."""
        chunk = json.loads(text)
        for choice in chunk["choices"]:
            self.assertNotIn(choice["index"], ended)
            if choice["finish_reason"] is not None:
                ended.add(choice["index"])
            elif path == "/v1/completions":
                # The client has no type for the chunks of a completion.
                choice["finish_reason"] = "stop"
        kind = Completion if path == "/v1/completions" else ChatCompletionChunk
        kind.model_validate(chunk, strict=True)

    def test_answers_are_of_the_client_s_types(self):
        for path, body in self.SHORT.items():
            choice = self.server.post(path, body)["choices"][0]
            first = (choice["text"] if path == "/v1/completions" else choice["message"]["content"])[:1]
            logprobs = {"logprobs": 2} if path == "/v1/completions" else {"logprobs": True, "top_logprobs": 2}
            reader = READERS[path]
            for options in (
                {},
                {"max_tokens": 0},
                {"max_tokens": 1},
                {"stop": first},
                {"n": 2, "temperature": 1, "seed": 1},
                {"stop": first, "n": 2},
                {"echo": True} if path == "/v1/completions" else {"response_format": {"type": "json_object"}},
            ):
                for more in ({}, logprobs):
                    if "echo" in options and more:
                        continue
                    with self.subTest(path=path, **options, **more):
                        _, _, text = self.server.request("POST", path, body | options | more)
                        answer = json.loads(text)
                        reader.model_validate_json(text, strict=True)
                        for choice in answer["choices"]:
                            names = list(choice["logprobs"] or ())
                            if not more:
                                self.assertIsNone(choice["logprobs"])
                            elif path == "/v1/completions":
                                self.assertEqual(
                                    set(names), {"tokens", "token_logprobs", "top_logprobs", "text_offset"}
                                )
                            else:
                                self.assertEqual(names, ["content", "refusal"])
                                self.assertIsInstance(choice["logprobs"]["content"], list)
                        ended = set()
                        usage = {"stream_options": {"include_usage": True}}
                        for chunk in self.chunks(path, body | options | more | usage):
                            self.check_chunk(path, chunk, ended)
                        self.assertEqual(len(ended), options.get("n", 1))
                        usage = json.loads(chunk)["usage"]
                        self.assertEqual(usage["completion_tokens"], answer["usage"]["completion_tokens"])
                        self.assertEqual(usage["total_tokens"], answer["usage"]["total_tokens"])
        models = json.loads(self.server.request("GET", "/v1/models")[2])
        self.assertEqual((models["object"], len(models["data"])), ("list", 1))
        Model.model_validate(models["data"][0], strict=True)
        for path, body, status in (
            ("/v1/completions", b"{", 400),
            ("/v1/completions", {"prompt": "a", "n": 0}, 400),
            ("/v1/completions", {"prompt": "a", "model": "none"}, 404),
            ("/v1/embeddings", {"input": "a"}, 404),
        ):
            got, _, text = self.server.request("POST", path, body)
            self.assertEqual(got, status)
            ErrorObject.model_validate(json.loads(text)["error"], strict=True)


if __name__ == "__main__":
    unittest.main(verbosity=2)
