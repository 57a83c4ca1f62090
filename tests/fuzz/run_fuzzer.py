# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""run_fuzzer.py BINARY READER RUNS: fuzzes a reader for RUNS inputs, starting
from small good files of its format."""

import json
import os
import subprocess
import sys
import tempfile
import zipfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "e2e"))

import support

support.require("numpy", "gguf", "safetensors")

from llama_numpy import Config
from make_model import quantise, random_weights, write_gguf, write_huggingface, write_meta

CONFIG = Config(8, 1, 1, 1, vocab=300, multiple_of=8, tied=True)


def write_seeds(folder, reader):
    weights = {n: x for n, x in random_weights(CONFIG).items() if n != "tok_embeddings"}
    if reader == "gguf":
        stored, _ = quantise(weights, "F16")
        write_gguf(os.path.join(folder, "seed.gguf"), CONFIG, stored)
        return
    if reader == "json":
        with open(os.path.join(folder, "seed.json"), "w") as f:
            json.dump({"a": 1, "b": [1, 2.5], "c": {"d": "text", "e": None}, "f": True, "g": ["x"]}, f)
        return
    with tempfile.TemporaryDirectory() as model:
        if reader == "safetensors":
            write_huggingface(os.path.join(model, "m"), CONFIG, weights)
            os.rename(os.path.join(model, "m", "model.safetensors"), os.path.join(folder, "seed"))
            return
        path = os.path.join(write_meta(os.path.join(model, "m"), CONFIG, weights), "consolidated.00.pth")
        if reader == "pickle":
            with zipfile.ZipFile(path) as archive, open(os.path.join(folder, "seed"), "wb") as f:
                f.write(archive.read("archive/data.pkl"))
        else:
            os.rename(path, os.path.join(folder, "seed"))


def main(binary, reader, runs):
    with tempfile.TemporaryDirectory(prefix="llamac-fuzz-") as folder:
        corpus = os.path.join(folder, "corpus")
        os.makedirs(corpus)
        write_seeds(corpus, reader)
        limits = ["-rss_limit_mb=1024", "-timeout=5", "-max_len=20000"]
        return subprocess.run(
            [binary, f"-runs={runs}", *limits, "-print_final_stats=1", f"-artifact_prefix={folder}/", corpus]
        ).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
