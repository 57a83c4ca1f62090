# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tokenizer tests share this: running tokenize_tool, and Llama 3's names;
missing files are handled as in tests/e2e/support.py."""

import importlib
import os
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "e2e"))

import support

# The number of lines of text and of invalid UTF-8 from corpus.py; the first few
# have every kind.
by_tier = support.by_tier
LINES, BROKEN = by_tier((3000, 500), (12000, 2000))

TOOL = os.path.join(os.path.dirname(support.BIN_DIR), "tests", "tokenize_tool")

LLAMA3_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
GPT2_PATTERN = (
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
)

LETTERS = r"[^\r\n\p{L}\p{N}]?"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"


def cased_pattern(contraction, numbers):
    words = rf"{LETTERS}{UPPER}*{LOWER}+{contraction}|{LETTERS}{UPPER}+{LOWER}*{contraction}"
    return words + "|" + numbers + r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"


GPT4O_PATTERN = cased_pattern(CONTRACTION, r"\p{N}{1,3}")
TEKKEN_PATTERN = cased_pattern("", r"\p{N}")


def require(name):
    support.require(name)
    return importlib.import_module(name)


def require_model(*parts):
    return support.require_model(os.path.join(*parts))


def tokenize(kind, path, texts, *options):
    """Encodes byte strings with tokenize_tool. One (ids, decoded) for each."""
    data = b"".join(struct.pack("<I", len(t)) + t for t in texts)
    run = subprocess.run([TOOL, kind, path, *options], input=data, capture_output=True, check=False)
    if run.returncode:
        raise RuntimeError(f"tokenize_tool: exit {run.returncode}: {run.stderr.decode()}")
    print(run.stderr.decode().strip(), flush=True)
    out, results, at = run.stdout, [], 0

    def take(size):
        nonlocal at
        at += size
        return out[at - size : at]

    for _ in texts:
        (count,) = struct.unpack("<I", take(4))
        ids = list(struct.unpack(f"<{count}i", take(4 * count)))
        (length,) = struct.unpack("<I", take(4))
        results.append((ids, take(length)))
    return results


def stop_ids(kind, path):
    """The ids that end an answer, by tokenize_tool."""
    run = subprocess.run([TOOL, "stops", kind, path], capture_output=True, text=True, check=True)
    return [int(line) for line in run.stdout.split()]


def merge_pair(word, pair):
    """The parts of `word`, with every `pair` of neighbours joined."""
    out = []
    for part in word:
        if out and (out[-1], part) == pair:
            out[-1] += part
        else:
            out.append(part)
    return out


def byte_spelling():
    """GPT-2's printable character for every byte."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [b for b in range(256) if b not in printable]
    return {b: chr(b) for b in printable} | {b: chr(256 + i) for i, b in enumerate(others)}


def char_classes():
    """The class of every code point (0 other, 1 letter, 2 number, 3 space), and
    whether it may stand among upper-case and among lower-case letters."""
    run = subprocess.run([TOOL, "classes"], capture_output=True, check=True)
    return [[byte & mask for byte in run.stdout] for mask in (3, 4, 8)]
