# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How far the cpu target and llama.cpp are from the reference on real text.

SmolLM2-135M-Instruct (Q4_1) reads a text in windows, each token given, and
every position's distribution is compared. With P the reference target's
distribution (fp32, op by op) and Q another's, both over the whole vocabulary:

    KL(P || Q) = sum over tokens of P log(P / Q), in nats, averaged
    top-1      = share of positions with the same argmax
    perplexity = exp(-mean log-probability of the token that follows)

The reference target itself is held against a float64 forward by
test_logits.py, so what is left here is rounding: activations to int8 or bf16,
and the order of sums. The cpu target must lose no more by it than llama.cpp.
What --weights loses beside is held to what its formats are known to lose, and
what a KV cache in 8 bits changes to what llama.cpp's own changes: there P is
the same engine's distribution with a cache in fp16.
"""

import json
import unittest

import support

support.require("numpy", "llama_cpp_library")

import llama_cpp_library as llama_cpp
import numpy as np

from distributions import TEXT, Comparison, log_softmax

# The exhaustive tier reads the whole text.
WINDOW = support.by_tier(256, 512)
WINDOWS = support.by_tier(1, None)
MIN_POSITIONS = support.by_tier(WINDOW, 1000)
FORMATS = {"cpu q8_0": "q8_0", "cpu mxfp8": "mxfp8"}
FLASH = "llama.cpp, flash attention"
CACHES = {"cpu, 8-bit cache": "cpu", "llama.cpp, 8-bit cache": FLASH}


class Perplexity:
    def __init__(self):
        self.total, self.count = 0.0, 0

    def add(self, log_probabilities, tokens):
        followed = log_probabilities[np.arange(len(tokens) - 1), tokens[1:]]
        self.total += followed.sum()
        self.count += len(followed)

    def result(self):
        return float(np.exp(-self.total / self.count))


def measure(test, model):
    """Reads the text with the three engines; a dictionary of the figures."""
    # Its cache in 8 bits needs flash attention, so that with fp16 has it too.
    peers = {
        "llama.cpp": llama_cpp.Llama(model, WINDOW),
        FLASH: llama_cpp.Llama(model, WINDOW, flash_attention=True),
        "llama.cpp, 8-bit cache": llama_cpp.Llama(model, WINDOW, llama_cpp.Q8_0, flash_attention=True),
    }
    with open(TEXT, "rb") as f:
        tokens = peers["llama.cpp"].tokenize(f.read())
    windows = [tokens[i : i + WINDOW] for i in range(0, len(tokens), WINDOW)][:WINDOWS]

    against = {name: Comparison() for name in ("cpu", "llama.cpp", *FORMATS)}
    perplexity = {name: Perplexity() for name in ("reference", *against, *CACHES)}
    caches = {name: Comparison() for name in CACHES}
    for window in windows:
        if len(window) < 2:
            continue
        logits = {
            "reference": test.logits(model, window, "reference"),
            "cpu": test.logits(model, window, "cpu"),
            "cpu, 8-bit cache": test.logits(model, window, "cpu", "--kv-type", "q8_0"),
        }
        for name, engine in peers.items():
            logits[name] = engine.logits(window)
        for name, weights in FORMATS.items():
            logits[name] = test.logits(model, window, "cpu", "--weights", weights)
        log_probabilities = {name: log_softmax(x) for name, x in logits.items()}
        for name, sums in against.items():
            sums.add(log_probabilities["reference"], log_probabilities[name])
        for name, sums in caches.items():
            sums.add(log_probabilities[CACHES[name]], log_probabilities[name])
        for name, sums in perplexity.items():
            sums.add(log_probabilities[name], window)
    return {
        "positions": against["cpu"].positions,
        "against reference": {name: sums.result() for name, sums in against.items()},
        "against the cache in fp16": {name: sums.result() for name, sums in caches.items()},
        "perplexity": {name: sums.result() for name, sums in perplexity.items()},
    }


class Divergence(support.TestCase):
    def test_cpu_is_as_close_to_the_reference_as_llama_cpp(self):
        found = measure(self, support.require_model("smollm2.gguf"))
        print(json.dumps(found, indent=2))
        self.assertGreaterEqual(found["positions"], MIN_POSITIONS)
        ours, peers = (found["against reference"][name] for name in ("cpu", "llama.cpp"))
        self.assertGreaterEqual(ours["mean_kl"], 0.0)
        self.assertLessEqual(ours["mean_kl"], peers["mean_kl"])
        self.assertGreaterEqual(ours["top1"], 0.98)
        ours, peers = (found["against the cache in fp16"][name] for name in CACHES)
        self.assertGreater(ours["mean_kl"], 0.0)
        self.assertLessEqual(ours["mean_kl"], peers["mean_kl"])
        self.assertLessEqual(ours["mean_kl"], 0.002)
        perplexity = found["perplexity"]
        for name in ("reference", "cpu", "cpu, 8-bit cache"):
            ratio = perplexity[name] / perplexity["llama.cpp"]
            self.assertLess(abs(ratio - 1), 0.01, f"perplexity of {name}")
        # The bounds follow their errors: MXFP8's has 23 times the mean square
        # of Q8_0's.
        for name, kl, ratio in (("cpu q8_0", 0.003, 1.01), ("cpu mxfp8", 0.05, 1.06)):
            self.assertLessEqual(found["against reference"][name]["mean_kl"], kl, name)
            self.assertLess(perplexity[name] / perplexity["reference"], ratio, name)


if __name__ == "__main__":
    unittest.main(verbosity=2)
