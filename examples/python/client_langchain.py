# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Asks `llamac serve` by LangChain (pip install langchain-openai): a prompt with a
place for the question, the model and a parser in a chain, word by word."""

import argparse

from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_openai import ChatOpenAI
from pydantic import SecretStr


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url", help="of the server: http://127.0.0.1:8080/v1")
    parser.add_argument("model", help="its name there, as GET /v1/models has it")
    parser.add_argument("question")
    args = parser.parse_args()
    model = ChatOpenAI(model=args.model, base_url=args.url, api_key=SecretStr("any"), temperature=0, max_completion_tokens=200)
    prompt = ChatPromptTemplate.from_messages([("system", "You answer in one sentence."), ("user", "{question}")])
    chain = prompt | model | StrOutputParser()
    for text in chain.stream({"question": args.question}):
        print(text, end="", flush=True)
    print()


if __name__ == "__main__":
    main()
