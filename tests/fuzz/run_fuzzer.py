# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""run_fuzzer.py BINARY READER SECONDS: fuzzes a reader of FuzzReaders.cpp from
small good files of its format. More than 1 GiB of memory, more than ten seconds
for an input, a leak and whatever a sanitizer reports are failures; the input
stays in fuzz-findings/ beside the binary.

In the default tier (see tests/Tier.h) every run tries the same inputs.
"""

import json
import os
import subprocess
import sys
import tempfile
import zipfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))

import support

support.require("numpy", "gguf", "safetensors")

from llama_numpy import Config, RopeScaling
from make_model import quantise, random_weights, write_gguf, write_huggingface, write_meta
from quantized_models import SCHEMES, write_quantized

QUANTIZED = Config(64, 1, 2, 1, vocab=8, multiple_of=64, tied=True)
CONFIG = Config(8, 1, 1, 1, vocab=300, multiple_of=8, tied=True, scaling=RopeScaling())


def read(*path):
    with open(os.path.join(*path), "rb") as f:
        return f.read()


def seeds(reader, folder):
    """Good files, as bytes."""
    weights = {n: x for n, x in random_weights(CONFIG).items() if n != "tok_embeddings"}
    if reader.startswith("gguf"):
        path = write_gguf(os.path.join(folder, "m.gguf"), CONFIG, quantise(weights, "F16")[0])
        return [read(path)]
    if reader == "json":
        return [json.dumps({"a": 1, "b": [1, 2.5], "c": {"d": "text", "e": None}, "f": True, "g": ["x"]}).encode()]
    if reader == "quantized":
        found = []
        for name, scheme in SCHEMES.items():
            model = os.path.join(folder, name)
            write_quantized(model, QUANTIZED, random_weights(QUANTIZED), scheme)
            beside = b""
            if scheme.settings["quant_method"] == "modelopt":
                beside = json.dumps({"quantization": {"quant_algo": scheme.settings["quant_algo"]}}).encode()
            found.append(b"\0".join((read(model, "config.json"), beside, read(model, "model.safetensors"))))
        return found
    if reader in ("config", "safetensors"):
        model = write_huggingface(os.path.join(folder, "m"), CONFIG, weights)
        if reader == "safetensors":
            return [read(model, "model.safetensors")]
        generation = b'{"temperature": 0.6, "top_p": 0.9, "do_sample": true, "eos_token_id": [1, 2]}'
        index = b'{"weight_map": {"lm_head.weight": "empty.safetensors"}}'
        return [read(model, "config.json"), b"\0".join((read(model, "config.json"), generation, index))]
    model = write_meta(os.path.join(folder, "m"), CONFIG, weights)
    if reader == "params":
        return [read(model, "params.json")]
    if reader == "torch":
        return [read(model, "consolidated.00.pth")]
    if reader == "pickle":
        with zipfile.ZipFile(os.path.join(model, "consolidated.00.pth")) as archive:
            return [archive.read("archive/data.pkl")]
    return []


def main(binary, reader, seconds):
    findings = os.path.join(os.path.dirname(binary), "fuzz-findings", "")
    os.makedirs(findings, exist_ok=True)
    env = dict(os.environ, LLAMAC_FUZZ_READER=reader)
    # In memory where there is such a place: every input is written to a file.
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(prefix="llamac-fuzz-", dir=memory) as folder:
        corpus = os.path.join(folder, "corpus")
        os.makedirs(corpus)
        for number, seed in enumerate(seeds(reader, folder)):
            with open(os.path.join(corpus, str(number)), "wb") as f:
                f.write(seed)
        subprocess.run([binary], env=dict(env, LLAMAC_FUZZ_SEEDS=corpus, ASAN_OPTIONS="detect_leaks=0"), check=True)
        if not os.listdir(corpus):
            sys.exit(f"no seeds for {reader}")
        limits = ["-rss_limit_mb=1024", "-timeout=10", f"-max_total_time={seconds}"]
        if not support.EXHAUSTIVE:
            limits.append("-seed=1")
        # libFuzzer's own exit code, 77, would be a skipped test.
        failed = subprocess.run(
            [binary, *limits, "-print_final_stats=1", f"-artifact_prefix={findings}{reader}-", corpus],
            env=dict(env, TMPDIR=folder),
        ).returncode
        return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
