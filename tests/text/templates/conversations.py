# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Conversations for chat templates: plain turns, system messages, tools, calls
of tools and their results, thoughts, parts of content, and odd ones."""

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "Weather of a city.\nIn °C or \"F\".",
            "parameters": {
                "type": "object",
                "properties": {
                    "city": {"type": "string", "description": "The city, e.g. <Zürich> & more"},
                    "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
                    "days": {"type": ["integer", "null"], "default": 1},
                    "where": {"type": "object", "properties": {"lat": {"type": "number"}}, "required": ["lat"]},
                    "tags": {"type": "array", "items": {"type": "string"}},
                },
                "required": ["city"],
            },
            "return": {"type": "number", "description": "Degrees"},
        },
    },
    {
        "type": "function",
        "function": {"name": "now", "description": "The time", "parameters": {"type": "object", "properties": {}}},
    },
]

DOCUMENTS = [{"title": "One", "text": "First text.", "doc_id": 1}, {"title": "Two", "text": "Second: \"ü\".", "doc_id": 2}]


def message(role, content, **more):
    return {"role": role, "content": content, **more}


def call(name, arguments, identifier="call00001"):
    return {"id": identifier, "type": "function", "function": {"name": name, "arguments": arguments}}


SYSTEM = message("system", "  You are terse.\n")
HELLO = message("user", "Hello!\n  How are you? 🙂")
FINE = message("assistant", "Fine, thanks. \n")
MORE = message("user", "  Which day is it? <|im_end|> {{ x }} \\n 'q' \"r\"")
ASKED = message("user", "Weather in Zürich?")
CALLED = message("assistant", "", tool_calls=[call("get_weather", {"city": "Zürich", "days": 2, "x": [1.5, None, True]})])
TEXT_CALLED = message("assistant", None, tool_calls=[call("get_weather", '{"city": "Bern"}')])
TWICE = message("assistant", "Let me see.", tool_calls=[call("get_weather", {"city": "Rome"}), call("now", {}, "call00002")])
RESULT = message("tool", '{"temperature": 21.5}', name="get_weather", tool_call_id="call00001")
SECOND = message("tool", "12:00", name="now", tool_call_id="call00002")
THOUGHT = message("assistant", "<think>\nI think.\n</think>\n\nIt is 21.5.", reasoning_content="I think.", thinking="Hm.")
PARTS = message("user", [{"type": "text", "text": "Look: "}, {"type": "text", "text": "a cat?"}])
IMAGE = message("user", [{"type": "image"}, {"type": "text", "text": "What is it?"}])


def case(name, messages, tools=None, **more):
    return {"name": name, "messages": messages, "tools": tools, "bos_token": "<s>", "eos_token": "</s>", **more}


CASES = [
    case("hello", [HELLO]),
    case("prompt", [HELLO], add_generation_prompt=True),
    case("system", [SYSTEM, HELLO], add_generation_prompt=True),
    case("system alone", [SYSTEM]),
    case("turns", [HELLO, FINE, MORE], add_generation_prompt=True),
    case("system and turns", [SYSTEM, HELLO, FINE, MORE, FINE]),
    case("tools", [HELLO], TOOLS, add_generation_prompt=True),
    case("tools and system", [SYSTEM, ASKED], TOOLS, add_generation_prompt=True),
    case("a call", [ASKED, CALLED], TOOLS),
    case("a result", [SYSTEM, ASKED, CALLED, RESULT], TOOLS, add_generation_prompt=True),
    case("an answer", [ASKED, CALLED, RESULT, THOUGHT, MORE], TOOLS, add_generation_prompt=True),
    case("a text of arguments", [ASKED, TEXT_CALLED, RESULT], TOOLS, add_generation_prompt=True),
    case("two calls", [SYSTEM, ASKED, TWICE, RESULT, SECOND, FINE, HELLO], TOOLS, add_generation_prompt=True),
    case("calls without tools", [ASKED, TWICE, RESULT, SECOND], add_generation_prompt=True),
    case("thoughts", [HELLO, THOUGHT, MORE, THOUGHT], add_generation_prompt=True),
    case("no thoughts", [HELLO], add_generation_prompt=True, variables={"enable_thinking": False}),
    case("thoughts wanted", [SYSTEM, HELLO], add_generation_prompt=True,
         variables={"enable_thinking": True, "thinking": True, "reasoning_effort": "high"}),
    case("parts", [SYSTEM, PARTS, FINE], add_generation_prompt=True),
    case("an image", [IMAGE], add_generation_prompt=True),
    case("documents", [HELLO], documents=DOCUMENTS, add_generation_prompt=True),
    case("documents and tools", [SYSTEM, HELLO], TOOLS, documents=DOCUMENTS, add_generation_prompt=True),
    case("wrong order", [FINE, HELLO]),
    case("two users", [HELLO, MORE]),
    case("two systems", [SYSTEM, SYSTEM, HELLO]),
    case("late system", [HELLO, SYSTEM]),
    case("an unknown role", [message("judge", "Order!")]),
    case("a developer", [message("developer", "Be kind."), HELLO], add_generation_prompt=True),
    case("nothing", []),
    case("no content", [{"role": "user"}]),
    case("null content", [message("user", None)]),
    case("empty content", [message("system", ""), message("user", ""), message("assistant", "")]),
    case("a prefix", [HELLO, message("assistant", "Sure,", prefix=True)]),
    case("variables", [SYSTEM, HELLO], TOOLS, add_generation_prompt=True, variables={
        "date_string": "1 Jan 2025", "tools_in_user_message": False, "custom_tools": TOOLS,
        "builtin_tools": ["brave_search", "code_interpreter"], "xml_tools": TOOLS, "keep_past_thinking": True}),
]
