# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Completes a prompt, word by word."""

import argparse

import llamac


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", help="a plan, a model directory or a .gguf file")
    parser.add_argument("prompt")
    parser.add_argument("max_tokens", nargs="?", type=int, default=40)
    args = parser.parse_args()
    with llamac.Model.load(args.model) as model, llamac.Engine(model) as engine:
        for part in engine.submit(args.prompt, max_tokens=args.max_tokens, temperature=0):
            print(part.text, end="", flush=True)
        print()


if __name__ == "__main__":
    try:
        main()
    except llamac.Error as error:
        raise SystemExit(f"complete.py: {error}") from None
