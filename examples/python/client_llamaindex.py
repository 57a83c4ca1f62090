# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Asks `llamac serve` by LlamaIndex (pip install llama-index-llms-openai-like),
word by word."""

import argparse

from llama_index.core.llms import ChatMessage
from llama_index.llms.openai_like import OpenAILike


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url", help="of the server: http://127.0.0.1:8080/v1")
    parser.add_argument("model", help="its name there, as GET /v1/models has it")
    parser.add_argument("question")
    args = parser.parse_args()
    model = OpenAILike(
        model=args.model, api_base=args.url, api_key="any", is_chat_model=True, temperature=0, max_tokens=200
    )
    messages = [
        ChatMessage(role="system", content="You answer in one sentence."),
        ChatMessage(role="user", content=args.question),
    ]
    for part in model.stream_chat(messages):
        print(part.delta or "", end="", flush=True)
    print()


if __name__ == "__main__":
    main()
