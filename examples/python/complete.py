# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Completes a prompt, word by word.

complete.py MODEL PROMPT [MAX_TOKENS]
"""

import sys

import llamac


def main(path: str, prompt: str, max_tokens: int = 40) -> None:
    with llamac.Model.load(path) as model, llamac.Engine(model) as engine:
        for part in engine.submit(prompt, max_tokens=max_tokens, temperature=0):
            print(part.text, end="", flush=True)
        print()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:]))
