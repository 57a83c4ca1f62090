# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Answers a question with the help of a function of Python, which the model
calls. Its chat template must know of tools."""

import argparse
import json

import llamac


def get_population(city: str) -> dict[str, object]:
    """The number of people that a program would look up."""
    return {"city": city, "population": {"Oslo": 717_710, "Paris": 2_102_650}.get(city, "unknown")}


TOOL = {
    "type": "function",
    "function": {
        "name": "get_population",
        "description": "The number of people in a city",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
            "additionalProperties": False,
        },
        "strict": True,
    },
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", help="a plan, a model directory or a .gguf file")
    parser.add_argument("question")
    args = parser.parse_args()
    messages: list[llamac.Message] = [{"role": "user", "content": args.question}]
    with llamac.Model.load(args.model) as model, llamac.Engine(model) as engine:
        result = engine.chat(messages, tools=[TOOL], max_tokens=400).result()
        while result.end.finish_reason == "tool_calls":
            messages.append(result.message)
            for call in result.tool_calls:
                print(f"{call.name} {call.arguments}")
                content = json.dumps(get_population(**json.loads(call.arguments)))
                messages.append({"role": "tool", "tool_call_id": call.id, "content": content})
            result = engine.chat(messages, tools=[TOOL], max_tokens=400).result()
        print(result.text)


if __name__ == "__main__":
    try:
        main()
    except llamac.Error as error:
        raise SystemExit(f"tools.py: {error}") from None
