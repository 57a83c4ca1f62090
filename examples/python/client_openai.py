# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Asks `llamac serve` by OpenAI's own client (pip install openai): a question,
answered word by word, and then the same as JSON by a schema."""

import argparse

import openai

SCHEMA = {
    "type": "object",
    "properties": {"answer": {"type": "string", "maxLength": 80}},
    "required": ["answer"],
    "additionalProperties": False,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url", help="of the server: http://127.0.0.1:8080/v1")
    parser.add_argument("model", help="its name there, as GET /v1/models has it")
    parser.add_argument("question")
    args = parser.parse_args()
    client = openai.OpenAI(base_url=args.url, api_key="any")
    stream = client.chat.completions.create(
        model=args.model, messages=[{"role": "user", "content": args.question}], temperature=0, max_tokens=200, stream=True
    )
    for chunk in stream:
        print(chunk.choices[0].delta.content or "", end="", flush=True)
    print()
    answer = client.chat.completions.create(
        model=args.model,
        messages=[{"role": "user", "content": args.question}],
        temperature=0,
        max_tokens=200,
        response_format={"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA}},
    )
    print(answer.choices[0].message.content)


if __name__ == "__main__":
    main()
