# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Answers many prompts at once in an event loop: each as soon as it has ended."""

import argparse
import asyncio

import llamac


async def answer(engine: llamac.Engine, prompt: str) -> None:
    result = await engine.submit(prompt, max_tokens=16, temperature=0)
    print(f"{prompt} ->{result.text!r}, {result.end.reason} in {result.end.seconds:.2f} s")


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", help="a plan, a model directory or a .gguf file")
    parser.add_argument("prompt", nargs="+")
    args = parser.parse_args()
    with llamac.Model.load(args.model, sequences=16) as model, llamac.Engine(model) as engine:
        await asyncio.gather(*(answer(engine, prompt) for prompt in args.prompt))


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except llamac.Error as error:
        raise SystemExit(f"many.py: {error}") from None
