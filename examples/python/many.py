# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Answers many prompts at once in an event loop: each as soon as it has ended.

many.py MODEL PROMPT...
"""

import asyncio
import sys

import llamac


async def answer(engine: llamac.Engine, prompt: str) -> None:
    result = await engine.submit(prompt, max_tokens=16, temperature=0)
    print(f"{prompt} ->{result.text!r}, {result.end.reason} in {result.end.seconds:.2f} s")


async def main(path: str, prompts: list[str]) -> None:
    with llamac.Model.load(path, sequences=16) as model, llamac.Engine(model) as engine:
        await asyncio.gather(*(answer(engine, prompt) for prompt in prompts))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2:]))
