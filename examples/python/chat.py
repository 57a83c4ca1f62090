# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Talks with a model: each message is answered word by word, with the messages
and answers before it in view."""

import argparse

import llamac


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", help="a plan, a model directory or a .gguf file")
    parser.add_argument("message", nargs="+")
    args = parser.parse_args()
    messages: list[llamac.Message] = []
    with llamac.Model.load(args.model) as model, llamac.Engine(model) as engine:
        for message in args.message:
            print(f"> {message}")
            messages.append({"role": "user", "content": message})
            answer = engine.chat(messages, max_tokens=400)
            for part in answer:
                print(part.text, end="", flush=True)
            print()
            messages.append(answer.result().message)


if __name__ == "__main__":
    try:
        main()
    except llamac.Error as error:
        raise SystemExit(f"chat.py: {error}") from None
