# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The perplexity of a text: the exponential of the mean surprise at its tokens,
from the logits that a sequence gives."""

import argparse

import numpy as np

import llamac


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", help="a plan, a model directory or a .gguf file")
    parser.add_argument("text")
    args = parser.parse_args()
    with llamac.Model.load(args.model) as model, model.sequence() as sequence:
        tokens = model.encode(args.text)
        logits = sequence.step(tokens, "all")
        logits -= logits.max(axis=1, keepdims=True)
        logits -= np.log(np.exp(logits).sum(axis=1, keepdims=True))
        surprise = -logits[np.arange(len(tokens) - 1), tokens[1:]]
        print(f"{len(tokens)} tokens, perplexity {np.exp(surprise.mean()):.3f}")


if __name__ == "__main__":
    try:
        main()
    except llamac.Error as error:
        raise SystemExit(f"perplexity.py: {error}") from None
