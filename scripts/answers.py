#!/usr/bin/env python3
# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Counts how often greedy answers are those of the reference target.

Each line of a file is asked as a message, by the model's chat template. The cpu
target answers it, so does the cpu target with --exact, and so does llama.cpp,
all from the same ids; an answer is the argmax of each step, up to a limit or
the end of the turn. The script prints how many begin with the reference's token
and how many are the reference's from the first token to the last. Then each reads the
reference's answers, and its distributions are compared with those of --exact.

The reference reads a guess of its answer in one step rather than token by
token: as far as its argmaxes are the guess, that is its answer.

    scripts/setup.sh test
    build/venv/bin/python scripts/answers.py --model build/models/smollm2.gguf
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

import gguf
import jinja2.sandbox
import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))

from kl_divergence import Comparison, log_softmax
from llama_cpp_library import Llama

CONTEXT = 512


def prompts(args, peer):
    """The ids of each question."""
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string(gguf.GGUFReader(args.model).fields["tokenizer.chat_template"].contents())
    with open(args.questions) as f:
        questions = f.read().splitlines()[: args.limit]
    for question in questions:
        message = {"role": "user", "content": question}
        yield peer.tokenize(template.render(messages=[message], add_generation_prompt=True).encode(), special=True)


def llamac(args, *command, **options):
    """The output of llamac."""
    result = subprocess.run([args.llamac, *map(str, command)], capture_output=True, text=True, **options)
    if result.returncode:
        sys.exit(f"llamac {' '.join(map(str, command))[:120]} failed:\n{result.stderr}")
    return result.stdout


def answers(args, asked, *flags):
    """The cpu target's answers."""
    requests = [{"id": i, "tokens": ids, "temperature": 0, "max_tokens": args.tokens} for i, ids in enumerate(asked)]
    lines = "".join(json.dumps(request) + "\n" for request in requests)
    printed = llamac(args, "generate", args.model, "--prompts", "-", "-o", "-", "-q", *flags, input=lines)
    found = {answer["id"]: answer["tokens"] for answer in map(json.loads, printed.splitlines())}
    return [found[i] for i in range(len(asked))]


def logits(args, folder, tokens, *flags):
    """llamac's after each of `tokens`."""
    path = os.path.join(folder, "logits.npy")
    llamac(args, "logits", args.model, *flags, "--tokens", ",".join(map(str, tokens)), "-o", path)
    return np.load(path)


def reference_answer(args, peer, prompt, guess, folder):
    """The reference's, whose first guess is `guess`."""
    answer = []
    while True:
        found = logits(args, folder, prompt + answer + guess, "--target", "reference")
        chosen = found[len(prompt) + len(answer) - 1 :].argmax(axis=1).tolist()
        for token, guessed in zip(chosen, [*guess, None]):
            if peer.ends(token):
                return answer
            answer.append(token)
            if len(answer) == args.tokens:
                return answer
            if token != guessed:
                break
        guess = answers(args, [prompt + answer], "--exact")[0][: args.tokens - len(answer)]


def divergences(args, peer, asked, reference, folder):
    """The divergences of the first token and of all tokens, by engine."""
    found = {name: (Comparison(), Comparison()) for name in ("cpu", "llama.cpp")}
    for prompt, answer in zip(asked, reference):
        tokens = prompt + answer
        exact = log_softmax(logits(args, folder, tokens, "--exact"))[len(prompt) - 1 :]
        others = {"cpu": logits(args, folder, tokens), "llama.cpp": peer.logits(tokens)}
        for name, (first, every) in found.items():
            other = log_softmax(others[name])[len(prompt) - 1 :]
            first.add(exact[:1], other[:1])
            every.add(exact, other)
    return {name: [sums.result() for sums in both] for name, both in found.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--llamac", default=os.path.join(ROOT, "build", "bin", "llamac"))
    parser.add_argument("--model", default=os.path.join(ROOT, "build", "models", "smollm2.gguf"), help="a .gguf file")
    parser.add_argument("--questions", default=os.path.join(ROOT, "tests", "e2e", "data", "questions.txt"))
    parser.add_argument("--tokens", type=int, default=32, help="of an answer, at most (default: 32)")
    parser.add_argument("--limit", type=int, help="questions to ask (default: all)")
    parser.add_argument("-o", "--output", help="a file for all answers, as JSON")
    args = parser.parse_args()

    peer = Llama(args.model, CONTEXT)
    asked = list(prompts(args, peer))
    found = {
        "cpu": answers(args, asked),
        "cpu --exact": answers(args, asked, "--exact"),
        "llama.cpp": [peer.answer(ids, args.tokens) for ids in asked],
    }
    reference = []
    with tempfile.TemporaryDirectory(prefix="llamac-answers-") as folder:
        for ids, guess in zip(asked, found["cpu --exact"]):
            reference.append(reference_answer(args, peer, ids, guess, folder))
            print(f"\r{len(reference)} of {len(asked)}", end="", file=sys.stderr)
        print(file=sys.stderr)
        compared = divergences(args, peer, asked, reference, folder)
    if args.output:
        with open(args.output, "w") as f:
            json.dump({"prompts": asked, "reference": reference, **found}, f)
    print(f"{len(asked)} questions, {args.tokens} tokens at most\n")
    print("| | first token | whole answer |\n|---|---|---|")
    for name, given in found.items():
        first = sum(a[:1] == b[:1] for a, b in zip(given, reference))
        whole = sum(a == b for a, b in zip(given, reference))
        print(f"| {name} | {first} | {whole} |")
    print("\n| | mean KL, first tokens | mean KL, all tokens | equal argmax, all tokens |\n|---|---|---|---|")
    for name, (first, every) in compared.items():
        print(f"| {name} | {first['mean_kl']:.5f} | {every['mean_kl']:.5f} | {every['top1']:.1%} |")


if __name__ == "__main__":
    main()
