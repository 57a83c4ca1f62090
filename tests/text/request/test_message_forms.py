# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The form in which models' templates are given an assistant's message with calls, in each
form that clients send: what jinja2 makes of the message as it was sent, where
that has the call, and else what it makes of the same message in another form."""

import datetime
import glob
import json
import os
import subprocess
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(ROOT, "tests", "text", "templates"))

import jinja_oracle

import support

WRITE = os.environ.get("LLAMAC_WRITE_CONVERSATIONS", os.path.join(ROOT, "build", "tests", "write-conversations"))
# Dates are those of the day, as the clock of llamac's cannot be set from here.
jinja_oracle.ENVIRONMENT.globals["strftime_now"] = datetime.datetime.now().strftime

ABSENT = object()
CONTENTS = {"null": None, "absent": ABSENT, "empty": "", "text": "Let me see."}
ARGUMENTS = {"city": "Oslo", "at": [1, 2]}
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "The weather.",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        },
    }
]


def assistant(content, arguments=None):
    """A message of the assistant, with a call where there are arguments."""
    message = {"role": "assistant"}
    if content is not ABSENT:
        message["content"] = content
    if arguments is not None:
        function = {"name": "get_weather", "arguments": arguments}
        message["tool_calls"] = [{"id": "call12345", "type": "function", "function": function}]
    return message


def conversation(*messages, calls):
    last = {"role": "tool", "tool_call_id": "call12345", "name": "get_weather", "content": "Rain."}
    return [{"role": "user", "content": "Weather?"}, *messages, last if calls else {"role": "user", "content": "And?"}]


def forms(content, calls):
    """Conversations that mean the same, by the form of the message."""
    contents = {name: it for name, it in CONTENTS.items() if name != "text"} if content != "text" else {"text": "Let me see."}
    texts = {"object": ARGUMENTS, "written": json.dumps(ARGUMENTS, ensure_ascii=False)} if calls else {"none": None}
    found = {}
    for argument, it in texts.items():
        for name, value in contents.items():
            found[name, argument] = conversation(assistant(value, it), calls=calls)
        if content == "text" and calls:
            apart = (assistant("Let me see."), assistant(None, it))
            found["apart", argument] = conversation(*apart, calls=calls)
    return found


class Forms(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.templates = {}
        for path in sorted(glob.glob(os.path.join(support.require_model("chat-templates"), "*.jinja"))):
            with open(path, encoding="utf-8", newline="") as file:
                cls.templates[os.path.basename(path)] = file.read()

    def render(self, template, messages, tools):
        case = {"template": template, "messages": messages, "add_generation_prompt": True}
        text, _ = jinja_oracle.expected(case | {"tools": tools, "bos_token": "<|start|>", "eos_token": "<|eot_id|>"})
        return text

    def has_call(self, text):
        return all(part in text for part in ("get_weather", "Oslo", "city")) and not any(
            part in text for part in ('\\"city', "'city'")
        )

    def good(self, rendered, calls):
        """The forms whose texts have the call once as it is, and no needless None."""
        texts = {form: text for form, text in rendered.items() if text is not None}
        if calls:
            texts = {form: text for form, text in texts.items() if self.has_call(text)}
        least = min((text.count("None") for text in texts.values()), default=0)
        return {form: text for form, text in texts.items() if text.count("None") == least}

    def test_no_call_is_dropped_and_what_was_sent_is_what_is_written(self):
        cases = []
        for name, template in self.templates.items():
            for calls in (True, False):
                tools = TOOLS if calls and "tools" in template else None
                for content in CONTENTS:
                    same = forms(content, calls)
                    rendered = {form: self.render(template, messages, tools) for form, messages in same.items()}
                    good = self.good(rendered, calls)
                    for form, messages in same.items():
                        if form[0] == content and good:
                            body = {"messages": messages} | ({"tools": tools} if tools else {})
                            cases.append(((name, form), template, body, form, good))
        self.assertGreater(len(cases), 500)
        lines = "".join(json.dumps(case[1]) + "\n" + json.dumps(case[2]) + "\n" for case in cases)
        run = subprocess.run([WRITE], input=lines, capture_output=True, text=True, timeout=600, check=True)
        results = [json.loads(line) for line in run.stdout.splitlines()]
        self.assertEqual(len(results), len(cases))
        wrong = []
        for (what, _, _, form, good), result in zip(cases, results):
            wanted = [good[form]] if form in good else list(good.values())
            if result.get("text") not in wanted:
                wrong.append((what, sorted(good), result))
        self.assertEqual(wrong, [])


if __name__ == "__main__":
    unittest.main()
