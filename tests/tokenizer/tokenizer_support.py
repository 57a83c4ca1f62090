# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the tokenizer tests share: running tokenize_tool, and Llama 3's names.

ctest sets LLAMAC_BIN_DIR (its sibling tests/ holds tokenize_tool) and
LLAMAC_MODELS (smollm2.gguf and llama3/). A test that lacks a Python package or
a model ends with 77, which ctest shows as skipped; where CI=true it fails.
"""

import importlib
import os
import struct
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN_DIR = os.environ.get("LLAMAC_BIN_DIR", os.path.join(ROOT, "build", "bin"))
MODELS = os.environ.get("LLAMAC_MODELS", os.path.join(ROOT, "build", "models"))
TOOL = os.path.join(os.path.dirname(BIN_DIR), "tests", "tokenize_tool")

LLAMA3_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
GPT2_PATTERN = (
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
)


def skip(reason):
    """Ends this test: skipped, or failed where everything must be there."""
    print(f"cannot run: {reason}", file=sys.stderr)
    sys.exit(1 if os.environ.get("CI") == "true" else 77)


def require(name):
    try:
        return importlib.import_module(name)
    except ImportError as error:
        skip(str(error))


def require_model(*parts):
    path = os.path.join(MODELS, *parts)
    if not os.path.exists(path):
        skip(f"no {path}")
    return path


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


def byte_spelling():
    """GPT-2's printable character for every byte."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [b for b in range(256) if b not in printable]
    return {b: chr(b) for b in printable} | {b: chr(256 + i) for i, b in enumerate(others)}


def char_classes():
    """Every code point's class: 0 other, 1 letter, 2 number, 3 space."""
    run = subprocess.run([TOOL, "classes"], capture_output=True, check=True)
    return run.stdout
