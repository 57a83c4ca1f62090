# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""EAGLE-3 heads draft what the formulas say, and change no token of an answer.

The model of these tests goes through its vocabulary in a fixed order, so that no
token comes twice and look-up never has a draft: each one is the head's.
"""

import json
import unittest

import numpy as np

import support

from safetensors.numpy import load_file

from eagle_heads import draft, features_of, make_head, write_head, write_speculators_head, write_torch_head
from llama_numpy import Config
from make_model import random_weights, write_huggingface

CONFIG = Config(64, 6, 4, 2, vocab=128)
LAYERS = [1, 3, 6]
EXACT = ("--exact", "--kv-type", "f32")


def cyclic_model(seed=1):
    """Random weights but for a head by which the token behind number i of a random
    order is number i + 1, and that order."""
    weights = {name: x.copy() for name, x in random_weights(CONFIG, "f32", seed).items()}
    order = np.random.default_rng(seed).permutation(CONFIG.vocab)
    embedding = np.random.default_rng(seed + 1).normal(size=weights["tok_embeddings"].shape).astype(np.float32)
    weights["tok_embeddings"] = embedding
    for name in weights:  # Layers add little beside the embedding.
        if name.endswith(("wo", "w2")):
            weights[name] *= np.float32(0.4)
    weights["norm"][:] = 1
    weights["output"] = np.empty_like(embedding)
    weights["output"][np.roll(order, -1)] = embedding[order]
    return weights, order


class Heads(support.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.weights, cls.order = cyclic_model()
        cls.model, cls.head_path = cls.path("model"), cls.path("head")
        write_huggingface(cls.model, CONFIG, cls.weights, "f32")
        cls.texts = [np.tile(cls.order, 2)[i : i + 100] for i in (0, 30, 60, 90)]
        cls.head = make_head(CONFIG, cls.weights, LAYERS, 115, cls.texts)
        cls.settings = {"eagle_config": {"eagle_aux_hidden_state_layer_ids": LAYERS}}
        write_head(cls.head_path, CONFIG, cls.head, cls.settings)

    def generate(self, requests, *flags, model=None):
        """The tokens of the answers in order, and the summary."""
        prompts, out = self.path("requests.jsonl"), self.path("answers.jsonl")
        with open(prompts, "w", encoding="utf-8") as f:
            for number, request in enumerate(requests):
                f.write(json.dumps({"id": number, "ignore_eos": True} | request) + "\n")
        run = ("generate", model or self.model, "--prompts", prompts, "-o", out, "--overwrite", "--json", "--print-ids", *flags)
        summary = json.loads(self.llamac(*run).stdout)
        with open(out, encoding="utf-8") as f:
            answers = {line["id"]: line for line in map(json.loads, f)}
        return [answers[number]["tokens"] for number in range(len(requests))], summary

    def expected_drafts(self, head, prompt, answer, count):
        """Draft tokens of `head`, and those accepted by place, of a greedy answer."""
        tokens = np.concatenate([prompt, answer])
        features = features_of(CONFIG, self.weights, tokens, LAYERS)
        embedding = self.weights["tok_embeddings"].astype(np.float64)
        known, drafted, accepted = len(prompt) + 1, 0, [0] * count
        while known < len(tokens):
            most = min(count, len(tokens) - known - 1)
            ids = draft(CONFIG, head, embedding, tokens[:known], features[: known - 1], most)
            drafted += len(ids)
            right = 0
            while right < len(ids) and ids[right] == tokens[known + right]:
                accepted[right] += 1
                right += 1
            known += right + 1
        return drafted, accepted

    def test_drafts_are_those_of_the_formulas(self):
        self.check_drafts(self.head_path, self.head)

    def test_a_head_of_speculators_adds_to_the_norm_of_its_stream(self):
        head = make_head(CONFIG, self.weights, LAYERS, 115, self.texts, seed=4, adds_to_norm=True)
        write_head(self.path("plain"), CONFIG, head)
        settings = {"norm_before_residual": True, "eagle_aux_hidden_state_layer_ids": LAYERS}
        tensors = load_file(self.path("plain") + "/model.safetensors")
        write_speculators_head(self.path("speculators"), self.path("plain"), tensors, settings)
        self.check_drafts(self.path("speculators"), head)
        more = {"norm_before_fc": True}
        write_speculators_head(self.path("fc_norm"), self.path("plain"), tensors, settings | more)
        run = support.run([support.LLAMAC, "run", self.model, "--tokens", "1", "-q", "--draft", self.path("fc_norm")])
        self.assertEqual(run.returncode, support.UNSUPPORTED, run.stderr)
        self.assertIn("norm_before_fc: expected false, got true", run.stderr)

    def check_drafts(self, path, head):
        prompt, length = self.order[3:8], 60
        answer = self.order[8 : 8 + length]
        request = {"prompt": prompt.tolist(), "max_tokens": length, "temperature": 0, "speculative": 4}
        answers, summary = self.generate([request], "--draft", path, *EXACT)
        self.assertEqual(answers, [answer.tolist()])
        drafted, accepted = self.expected_drafts(head, prompt, answer, 4)
        self.assertEqual((summary["draft_tokens"], summary["accepted_by_place"][:4]), (drafted, accepted))
        self.assertGreater(sum(accepted), 20)
        self.assertLess(sum(accepted), drafted)

    def test_answers_are_the_same_and_drafts_accepted(self):
        prompts = [self.order[first : first + 6].tolist() for first in (0, 11, 37)]
        prompts.append(prompts[0] * 20 + prompts[1])  # The prefix cache has its beginning.
        options = [{"temperature": 0}, {"temperature": 0.8, "seed": 5}, {"temperature": 0.9, "top_p": 0.8, "seed": 2}]
        # For the simulator, which is slow: still more answers than run at once, and attention of drafts in two splits.
        few = [prompts[1], prompts[3]]
        for target, more in self.targets():
            expected = None
            for speculative in (0, 1, 6, -1):
                requests = [
                    {"prompt": prompt, "max_tokens": 24 if target == "cpu" else 12, "speculative": speculative} | option
                    for prompt in (prompts if target == "cpu" else few)
                    for option in options
                ]
                flags = ("--target", target, *more, "--draft", self.head_path)
                with self.subTest(target=target, flags=more, speculative=speculative):
                    answers, summary = self.generate(requests, *flags)
                    expected = expected or answers
                    self.assertEqual(answers, expected)
                    self.assertEqual(summary["errors"], 0)
                    if speculative > 0:
                        self.assertGreater(summary["accepted_tokens"], 20 if target == "cpu" else 0)

    @staticmethod
    def targets():
        yield "cpu", ("--parallel", "4")
        yield "cpu", ("--parallel", "4", "--ranks", "2")
        yield "sim", ("--batch-invariant", "-c", "512", "--parallel", "3")  # A program has 4 rows.

    def test_a_long_prompt_is_read_piece_by_piece(self):
        # Look-up is wrong there: each time another token follows.
        prompt = np.random.default_rng(3).integers(0, CONFIG.vocab, 1300).tolist()
        request = {"prompt": prompt, "max_tokens": 20, "temperature": 0}
        plain, _ = self.generate([request | {"speculative": 0}], "--draft", self.head_path)
        drafted, summary = self.generate([request | {"speculative": 3}], "--draft", self.head_path)
        self.assertEqual(drafted, plain)
        self.assertGreater(summary["accepted_tokens"], 2)

    def test_plans_of_both_are_run_without_the_compiler(self):
        plans = self.path("model.plan"), self.path("head.plan")
        self.llamac("compile", self.model, "--feature-layers", "1,3,6", "-o", plans[0], "-q")
        self.llamac("compile", self.head_path, "--head-of", self.model, "-o", plans[1], "-q")
        prompts = self.path("one.jsonl")
        request = {"prompt": self.order[:5].tolist(), "max_tokens": 30, "temperature": 0, "ignore_eos": True, "speculative": 3}
        with open(prompts, "w", encoding="utf-8") as f:
            json.dump(request, f)
        flags = ("--prompts", prompts, "-o", self.path("one.out"), "--json", "--print-ids", "-q")
        run = support.run([support.LLAMAC_RUN, "generate", plans[0], *map(str, flags), "--draft", plans[1]])
        self.assertEqual(run.returncode, support.OK, run.stderr)
        self.assertGreater(json.loads(run.stdout)["accepted_tokens"], 5)
        alone = self.llamac("run", plans[1], "-p", "Hi", expect=support.USAGE)
        self.assertIn("got that of a draft head", alone.stderr)
        self.llamac("compile", self.model, "--feature-layers", "0,3,6", "-o", plans[0], "-q")
        other = self.llamac("generate", plans[0], *flags, "--draft", plans[1], expect=support.USAGE)
        self.assertIn("to give the inputs of layers 1,3,6, got 0,3,6", other.stderr)
        unknown = self.llamac("compile", self.model, "--feature-layers", "1,7", "-o", plans[0], expect=support.USAGE)
        self.assertIn("--feature-layers: expected numbers from 0 to 6, behind the last layer, got 7", unknown.stderr)

    def test_a_head_that_is_of_no_use_is_refused_in_one_line(self):
        def changed(**settings):
            return lambda path: write_head(path, CONFIG, self.head, self.settings | settings)

        def edited(edit):
            return lambda path: write_head(path, CONFIG, self.head, self.settings, change=edit)

        def set_last_id(tensors):
            tensors["d2t"][-1] = CONFIG.vocab

        cases = [
            (changed(vocab_size=256), "vocab_size: expected 128, as"),
            (changed(target_hidden_size=128), "target_hidden_size: expected 64, as"),
            (changed(num_hidden_layers=2), "num_hidden_layers: expected 1, got 2"),
            (changed(eagle_config={"eagle_aux_hidden_state_layer_ids": [1, 9]}), "expected layers from 0 to 6 of"),
            (changed(draft_vocab_size=129), "draft_vocab_size: expected 1 to 128, got 129"),
            (changed(draft_vocab_size=100), "d2t: expected a shape of [100], got [115]"),
            (edited(set_last_id), "d2t[114]: expected a number from -114 to 13, to an id of the vocabulary, got 128"),
            (edited(lambda t: t.pop("fc.weight")), "fc.weight: expected a tensor [64, 192], got none"),
            (edited(lambda t: t.update(extra=np.zeros(3, np.float32))), "extra: expected only the tensors of an EAGLE-3 head"),
        ]
        for number, (write, words) in enumerate(cases):
            with self.subTest(words=words):
                head = write(self.path(f"bad{number}"))
                run = support.run([support.LLAMAC, "run", self.model, "--tokens", "1,2", "-n", "4", "-q", "--draft", head])
                self.assertIn(run.returncode, (support.BAD_FILE, support.UNSUPPORTED, support.USAGE), run.stderr)
                errors = [line for line in run.stderr.splitlines() if "error" in line]
                self.assertEqual(len(errors), 1, run.stderr)
                self.assertIn(words, errors[0])
        alone = self.llamac("compile", self.head_path, "-o", self.path("x.plan"), expect=support.USAGE)
        self.assertIn("compile it with --head-of MODEL", alone.stderr)

    def test_a_head_may_bring_its_embedding_and_be_a_torch_file(self):
        own = self.path("own")
        write_head(own, CONFIG, self.head, self.settings, embedding=self.weights["tok_embeddings"])
        tensors = load_file(f"{own}/model.safetensors")
        write_torch_head(self.path("torch"), own, tensors)
        request = {"prompt": self.order[:5].tolist(), "max_tokens": 30, "temperature": 0, "speculative": 3}
        counts = [
            self.generate([request], "--draft", head, *EXACT)[1]["accepted_by_place"]
            for head in (self.head_path, own, self.path("torch"))
        ]
        self.assertEqual(counts, counts[:1] * 3)
        self.assertGreater(sum(counts[0]), 5)


if __name__ == "__main__":
    unittest.main(verbosity=2)
