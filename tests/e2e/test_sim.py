# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The cuda target's kernels on the simulator, from a model to its tokens.

    test_sim.py                   everything
    test_sim.py Tokens            greedy answers and logits against the reference
    test_sim.py CheckedFormats    every kernel variant in checked mode, two schedules
    test_sim.py CheckedShapes     the same for every way that attention is cut
    test_sim.py Fidelity          a prompt's distributions against plain execution in bf16
    test_sim.py Draws             drawn answers, sampled by the plan
    test_sim.py Plans             plans for sim, and what goes wrong
"""

import re
import unittest

import support

support.require("numpy", "gguf", "safetensors")

import numpy as np

from llama_numpy import Config, forward, rms_norm, rope, rope_frequencies, silu, softmax_attention
from make_model import quantise, random_weights, round_to, write_gguf, write_meta

# Largest difference over the largest |logit|: prefill rounds to bf16 what it
# multiplies.
BF16_TOLERANCE = 1e-2

PROMPT, ANSWER = 41, 33


class Tokens(support.TestCase):
    """Meta models, in bf16 as stored and as Q4_0: the greedy answer to a prompt
    is the reference's, through prefill and 32 steps of decode. The default tier
    has small and large heads, tied and not, once."""

    CONFIGS = {
        "gqa1_h16": Config(64, 2, 4, 4, vocab=258, multiple_of=32),
        "gqa1_h128": Config(256, 1, 2, 2, vocab=258, multiple_of=32, tied=True),
        "gqa3_h32": Config(96, 2, 3, 1, vocab=258, multiple_of=32),
        "gqa3_h64": Config(384, 1, 6, 2, vocab=258, multiple_of=32, tied=True),
        "gqa8_h16": Config(128, 2, 8, 1, vocab=258, multiple_of=32, theta=10000.0),
        "gqa8_h64": Config(512, 1, 8, 1, vocab=258, multiple_of=32),
    }

    def answer(self, model, target, prompt, *flags):
        out = self.llamac(
            *("run", model, "--target", target, "--tokens", ",".join(map(str, prompt))),
            *("-n", ANSWER, "--print-ids", "--ignore-eos", "-q", "--temp", 0, *flags),
        ).stdout
        ids = [int(x) for x in out.split()]
        self.assertEqual(len(ids), ANSWER)
        return ids


def _add_tokens(name, config, weights):
    def test(self):
        model = self.path(f"{name}-{weights}")
        write_meta(model, config, random_weights(config, "bf16", 5), "bf16")
        prompt = np.random.default_rng(7).integers(0, config.vocab, PROMPT).tolist()
        flags = ("--weights", weights, "-c", 128)
        on_sim = (*flags, "--step-rows", 128)
        answer = self.answer(model, "sim", prompt, *on_sim)
        self.assertEqual(answer, self.answer(model, "reference", prompt, *flags))
        # One step of the reference gives the same.
        tokens = prompt + answer
        expected = self.logits(model, tokens, "reference", "--weights", weights)
        self.assertEqual(expected[PROMPT - 1 : -1].argmax(axis=1).tolist(), answer)
        if weights == "keep":
            got = self.logits(model, tokens, "sim", *on_sim)
            error = np.abs(got - expected).max() / np.abs(expected).max()
            print(f"  logits {error:.2e} of {BF16_TOLERANCE:.0e}")
            self.assertLessEqual(error, BF16_TOLERANCE)

    setattr(Tokens, f"test_{name}_{weights}", test)


_every = [(name, weights) for name in Tokens.CONFIGS for weights in ("keep", "q4_0")]
for _name, _weights in support.by_tier([("gqa1_h128", "keep"), ("gqa3_h32", "q4_0")], _every):
    _add_tokens(_name, Tokens.CONFIGS[_name], _weights)


def bf16_forward(config, weights, tokens):
    """Logits [N, V] as plain execution in bf16 has them: every op rounds its result to bf16, and within an op sums
    are exact."""

    def rounded(x):
        return round_to(x.astype(np.float32), "bf16").astype(np.float64)

    def product(x, name):
        return rounded(x @ weights[name].astype(np.float64).T)

    def norm(x, name):
        return rounded(rms_norm(x, weights[name].astype(np.float64), config.eps))

    x = weights["tok_embeddings"].astype(np.float64)[np.asarray(tokens)]
    frequencies = rope_frequencies(config, 0)
    for layer in range(config.layers):
        part = f"layers.{layer}."
        y = norm(x, part + "attention_norm")
        q, k, v = (product(y, f"{part}attention.w{name}").reshape(len(x), -1, config.head_size) for name in "qkv")
        q, k = rounded(rope(q, frequencies)), rounded(rope(k, frequencies))
        y = rounded(softmax_attention(q, k, v, 1 / np.sqrt(config.head_size), 0)).reshape(len(x), -1)
        x = rounded(x + product(y, part + "attention.wo"))
        y = norm(x, part + "ffn_norm")
        y = rounded(rounded(silu(product(y, part + "feed_forward.w1"))) * product(y, part + "feed_forward.w3"))
        x = rounded(x + product(y, part + "feed_forward.w2"))
    return product(norm(x, "norm"), "output")


class Fidelity(support.TestCase):
    """A prompt is no further from float64 than plain execution in bf16 is, by the mean KL divergence of its
    distributions, in each program for prompts and for batches: in wgmma's products x is rounded to bf16."""

    CONFIG = Config(256, 3, 4, 2, vocab=512, multiple_of=32)

    def test_prompts_are_as_exact_as_plain_bf16(self):
        model = self.path("model")
        weights = random_weights(self.CONFIG, "bf16", 3)
        write_meta(model, self.CONFIG, weights, "bf16")
        tokens = np.random.default_rng(4).integers(0, self.CONFIG.vocab, 280).tolist()

        def logarithms(logits):
            x = logits.astype(np.float64)
            return x - np.log(np.exp(x).sum(axis=-1, keepdims=True))

        exact = logarithms(forward(self.CONFIG, weights, tokens))

        def mean_kl(logits):
            return (np.exp(exact) * (exact - logarithms(logits))).sum(axis=-1).mean()

        plain = mean_kl(bf16_forward(self.CONFIG, weights, tokens))
        # Steps of prefill, decode256, decode32 and decode16.
        for chunk in (280, 140, 28, 14):
            kl = mean_kl(self.logits(model, tokens, "sim", "-c", 512, "--chunk", chunk))
            print(f"  chunks of {chunk}: mean KL {kl:.2e}, plain bf16 {plain:.2e}")
            self.assertLess(kl, plain)
            self.assertGreater(kl, 0)


class CheckedCase(support.TestCase):
    """Every launch of steps of all sizes against the reference, with races,
    bounds and uninitialised reads checked, forward and at random. The default
    tier has the formats and shapes whose kernels differ most, at random: single
    ops of all of them are checked by conformance.sim_checked."""

    SCHEDULES = support.by_tier(("random:1",), ("forward", "random:1"))

    def check(self, model, *flags):
        for schedule in self.SCHEDULES:
            with self.subTest(schedule):
                run = ("check", model, "--target", "sim", "--sim-check", "--sim-schedule", schedule, *flags)
                out = self.llamac(*run).stdout
                kernels = [line.split()[0] for line in out.split("\nkernel ")[1].split("\n\n")[0].splitlines()[1:]]
                # Products of all row counts were among them.
                for rows in ("_m2", "_m4", "_m16"):
                    self.assertTrue(any(k.endswith(rows) for k in kernels), kernels)
                # A tied head has the name of the embedding.
                self.assertTrue(any(re.match("gemm_(wgmma_)?(output|tok_embeddings)", k) for k in kernels), kernels)


class CheckedFormats(CheckedCase):
    """Every format of weights."""

    # One layer has every kernel. Odd vocabularies have a last output alone.
    CONFIG = Config(64, 1, 4, 2, vocab=261)


class CheckedShapes(CheckedCase):
    """Every variant of attention."""

    CONFIGS = {
        "gqa1_h128": Config(128, 1, 1, 1, vocab=260, tied=True),
        "gqa2_h64": Config(128, 1, 2, 1, vocab=261),
        "gqa3_h24": Config(72, 1, 3, 1, vocab=261),
        "gqa8_h16": Config(128, 1, 8, 1, vocab=260),
    }


def _add_checked(case, name, config, dtype, stored_type=None, flags=()):
    def test(self):
        weights = random_weights(config, dtype, 3)
        if stored_type:
            model = write_gguf(self.path(f"{name}.gguf"), config, quantise(weights, stored_type)[0])
        else:
            model = self.path(name)
            write_meta(model, config, weights, dtype)
        self.check(model, *flags)

    setattr(case, f"test_{name}", test)


for _dtype in support.by_tier((), ("bf16", "f16")):
    _add_checked(CheckedFormats, _dtype, CheckedFormats.CONFIG, _dtype)
# Q5_1 stands for what has a plane of high bits.
for _type in support.by_tier(("Q4_1",), ("Q8_0", "Q4_0", "Q4_1", "Q5_1")):
    _add_checked(CheckedFormats, _type.lower(), CheckedFormats.CONFIG, "f32", _type)
for _type in support.by_tier((), ("mxfp8", "fp8")):
    _add_checked(CheckedFormats, _type, CheckedFormats.CONFIG, "f32", flags=("--weights", _type))
for _name in support.by_tier(("gqa3_h24",), CheckedShapes.CONFIGS):
    _add_checked(CheckedShapes, _name, CheckedShapes.CONFIGS[_name], "bf16")


class Plans(support.TestCase):
    """A plan for sim is a plan as any other."""

    PROMPT = ("--tokens", "1,5,9,2,77,30", "-n", "6", "--print-ids", "--ignore-eos", "-q")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        config = Config(64, 2, 4, 2, vocab=261)
        cls.model = cls.path("model")
        write_meta(cls.model, config, random_weights(config, "bf16", 4), "bf16")

    def run_plan(self, plan, *flags, expect=support.OK):
        result = support.run([support.LLAMAC, "run", plan, *self.PROMPT, *flags])
        self.assertEqual(result.returncode, expect, result.stderr)
        return result.stdout if expect == support.OK else result.stderr

    def test_every_schedule_gives_the_tokens_of_the_cpu(self):
        expected = self.llamac("run", self.model, "--target", "cpu", *self.PROMPT).stdout
        for flags in ((), ("--sim-check",), ("--reference-weights",)):
            with self.subTest(flags):
                plan = self.path("sim.plan")
                self.llamac("compile", self.model, "--target", "sim", "--step-rows", 6, "-o", plan, "-q", *flags)
                for schedule in support.by_tier(("reverse", "random:9"), ("forward", "reverse", "random", "random:9")):
                    self.assertEqual(self.run_plan(plan, "--sim-schedule", schedule), expected)

    def test_options_that_do_not_fit_are_refused(self):
        plan = self.path("fit.plan")
        self.llamac("compile", self.model, "--target", "sim", "--step-rows", 6, "-o", plan, "-q")
        error = self.run_plan(plan, "--sim-schedule", "random:x", expect=support.USAGE)
        self.assertIn("--sim-schedule: expected forward, reverse, random, random:SEED, stalled or stalled:SEED, "
                      "got random:x", error)
        error = self.run_plan(plan, "--isa", "x86-64-v3", expect=support.USAGE)
        self.assertIn("--isa: expected a plan for cpu, got one for sim", error)
        for flags, message in (
            (("--sim-schedule", "reverse"), "--sim-schedule: expected a plan for sim, got one for cpu"),
            (("--sim-check",), "--sim-check: expected --target sim, got cpu"),
        ):
            error = self.llamac("run", self.model, *self.PROMPT, *flags, expect=support.USAGE).stderr
            self.assertIn(message, error)


def noise_keys(seed):
    """The upper halves of the numbers of xoshiro256**, seeded by splitmix64."""
    mask = 2**64 - 1
    state = []
    for _ in range(4):
        seed = (seed + 0x9E3779B97F4A7C15) & mask
        mixed = ((seed ^ seed >> 30) * 0xBF58476D1CE4E5B9) & mask
        mixed = ((mixed ^ mixed >> 27) * 0x94D049BB133111EB) & mask
        state.append(mixed ^ mixed >> 31)
    rotate = lambda x, by: (x << by | x >> 64 - by) & mask
    while True:
        yield (rotate(state[1] * 5 & mask, 7) * 9 & mask) >> 32
        shifted = state[1] << 17 & mask
        state[2] ^= state[0]
        state[3] ^= state[1]
        state[1] ^= state[2]
        state[0] ^= state[3]
        state[2] ^= shifted
        state[3] = rotate(state[3], 45)


def token_noise(key, ids):
    """The hash of `key` and each of `ids`, of 32 bits."""
    mixed = ids.astype(np.uint32) ^ np.uint32(key)
    mixed = (mixed ^ mixed >> 16) * np.uint32(0x21F0AAAD) ^ np.uint32(key * 0x9E3779B9 & 0xFFFFFFFF)
    mixed = (mixed ^ mixed >> 15) * np.uint32(0xD35A2D97)
    return mixed ^ mixed >> 15


def drawn(logits, key, temperature, top_k, top_p):
    """The token that the noise of `key` draws, in float64, of what a sort keeps."""
    logits = logits.astype(np.float64)
    order = np.lexsort((np.arange(logits.size), -logits))[: top_k or None]
    weights = np.exp((logits[order] - logits.max()) / temperature)
    kept = np.searchsorted(np.cumsum(weights), top_p * weights.sum()) + 1
    exponentials = -np.log1p(-(token_noise(key, order[:kept]) + 0.5) / 2**32)
    return int(order[np.argmin(exponentials / weights[:kept])])


class Draws(support.TestCase):
    """The plan samples on the device: its tokens are those that the reference's logits
    give with the same noise."""

    CONFIG = Config(96, 2, 3, 1, vocab=515, multiple_of=32)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.model = cls.path("model")
        write_meta(cls.model, cls.CONFIG, random_weights(cls.CONFIG, "bf16", 5), "bf16")

    def answer(self, seed, *flags):
        command = ("run", self.model, "--target", "sim", "--step-rows", 4, "--tokens", "5,7,300,12", "-n", 16)
        printed = self.llamac(*command, "--print-ids", "--ignore-eos", "-q", "-c", 64, "--seed", seed, *flags).stdout
        return [int(x) for x in printed.split()]

    def check(self, seed, temperature=1.0, top_k=0, top_p=1.0):
        sampling = ("--temp", temperature, "--top-k", top_k, "--top-p", top_p)
        answer = self.answer(seed, *sampling)
        self.assertEqual(len(answer), 16)
        logits = self.logits(self.model, ([5, 7, 300, 12] + answer)[:-1], "reference")
        expected = [drawn(row, key, temperature, top_k, top_p) for row, key in zip(logits[3:], noise_keys(seed))]
        self.assertEqual(answer, expected)
        return answer

    def test_temperature_top_k_and_top_p(self):
        settings = [(1, 0.8, 20, 0.9), (2, 0.8, 20, 0.9), (3, 1.5, 5), (4, 0.3), (5, 1.0, 0, 0.4)]
        answers = [self.check(*each) for each in support.by_tier(settings[1:3], settings)]
        self.assertEqual(len(set(map(tuple, answers))), len(answers))

    def test_the_host_draws_the_same(self):
        flags = ("--temp", 0.8, "--top-k", 20, "--top-p", 0.9)
        self.assertEqual(self.answer(6, *flags), self.answer(6, *flags, "--skip-pass", "append-sampling"))

    def test_checked_kernels_draw_the_same(self):
        flags = ("--temp", 0.8, "--top-k", 20, "--top-p", 0.9)
        self.assertEqual(self.answer(7, *flags), self.answer(7, *flags, "--sim-check"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
