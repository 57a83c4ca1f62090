# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Quantised Hugging Face checkpoints: logits against a float64 forward of what their tensors stand for.

test_quantized.py         everything
test_quantized.py Logits  every scheme, of two families
test_quantized.py Bad     tensors and settings that are wrong
test_quantized.py Convert a plain model of a quantised one
"""

import json
import os
import unittest

import support

support.require("numpy", "gguf", "ml_dtypes", "safetensors")

import model_families as families
import numpy as np
import quantized_models
import test_logits

from llama_numpy import Config, forward
from make_model import LLAMA, random_weights
from quantized_models import SCHEMES, write_quantized

BAD_FILE, UNSUPPORTED = 3, 4

# f16, which the matrices are widened to, has three bits more than bf16.
CONFIG = Config(128, 2, 4, 2, vocab=256, multiple_of=64)


class Logits(test_logits.LogitsCase):
    config = CONFIG

    # The formats that keep the codes and scales; all others are widened.
    KEPT = {
        "gptq-row-symmetric": "q4_0",
        "w4a16-g32": "q4_0",
        "w4a16-row": "q4_0",
        "gptq-g32": "q4_1",
        "gptq-g64-v2": "q4_1",
        "awq-g32": "q4_1",
        "awq-g64": "q4_1",
        "w4a16-g64-zeros": "q4_1",
        "w8a8": "q8_0",
        "mxfp4": "mxfp4",
        "fp8-tensor": "fp8",
        "fp8-channel": "fp8",
        "fp8-block": "fp8",
        "fp8-block-f32": "fp8",
        "fbgemm": "fp8",
        "modelopt-fp8": "fp8",
    }

    def compare_scheme(self, name, family=LLAMA, **config):
        config = CONFIG if not config else Config(128, 2, 4, 2, vocab=256, multiple_of=64, **config)
        weights = random_weights(config, "bf16", 3)
        model = self.path(f"{name}-{family.model_type}")
        values = write_quantized(model, config, weights, SCHEMES[name], family)
        kept = self.KEPT.get(name, "f16")
        tolerance = test_logits.CPU_TOLERANCE if kept in ("f16", "fp8") else test_logits.INT8_TOLERANCE
        # The minimum of Q4_1 is a number of f16, and so are the scale of FP8 and what is widened.
        is_exact = kept not in ("f16", "q4_1") and getattr(SCHEMES[name], "dtype", "") != "F32"
        self.reference_tolerance = test_logits.REFERENCE_TOLERANCE if is_exact else 1e-3
        self.compare(model, values, tolerance, config=config)
        if name in self.KEPT:
            # Activations in f32 show the weights alone.
            exact = self.logits(model, self.tokens, "cpu", "--exact")
            self.check(exact, forward(config, values, self.tokens), 1e-3)

    def test_every_scheme_has_the_logits_of_what_it_stands_for(self):
        for name in SCHEMES:
            with self.subTest(name):
                self.compare_scheme(name)

    def test_biases_stay_beside_quantised_matrices(self):
        for name in support.by_tier(("gptq-g32-act-order", "awq-g64", "fp8-channel"), tuple(SCHEMES)):
            with self.subTest(name):
                self.compare_scheme(name, families.QWEN2, qkv_bias=True, eps=1e-6)

    def test_fused_tensors_are_cut_by_rows(self):
        for name in support.by_tier(("w4a16-g32", "fp8-channel"), ("w4a16-g32", "gptq-g64-v2", "fp8-channel", "w8a8")):
            with self.subTest(name):
                self.compare_scheme(name, families.PHI3, windows=(32, 32))

    def test_every_pass_and_launch_agrees_with_the_reference(self):
        weights = random_weights(CONFIG, "bf16", 3)
        for name in support.by_tier(("gptq-g32-act-order", "awq-g32", "fp8-channel"), tuple(SCHEMES)):
            with self.subTest(name):
                model = self.path(f"check-{name}")
                write_quantized(model, CONFIG, weights, SCHEMES[name])
                self.llamac("check", model)

    def test_on_the_simulator(self):
        weights = random_weights(CONFIG, "bf16", 3)
        tokens = self.tokens[:9]
        for name in ("awq-g32", "fp8-channel"):
            with self.subTest(name):
                model = self.path(f"sim-{name}")
                values = write_quantized(model, CONFIG, weights, SCHEMES[name])
                got = self.logits(model, tokens, "sim", "-c", 64, "--step-rows", len(tokens))
                self.check(got, forward(CONFIG, values, tokens), test_logits.DEQUANTISED_TOLERANCE)

    def test_ranks_hold_columns_of_them(self):
        weights = random_weights(CONFIG, "bf16", 3)
        for name in ("gptq-row-symmetric", "awq-g32", "w8a8", "fp8-block"):
            with self.subTest(name):
                model = self.path(f"ranks-{name}")
                values = write_quantized(model, CONFIG, weights, SCHEMES[name])
                got = self.logits(model, self.tokens, "cpu", "--exact", "--ranks", 2)
                self.check(got, forward(CONFIG, values, self.tokens), 1e-3)

    def test_codes_and_scales_are_kept_where_a_format_has_them(self):
        for name, scheme in SCHEMES.items():
            with self.subTest(name):
                model = self.path(f"kept-{name}")
                write_quantized(model, CONFIG, random_weights(CONFIG, "bf16", 3), scheme)
                result = self.llamac("inspect", model, "--json")
                self.assertEqual("are widened to" in result.stderr, name not in self.KEPT)
                types = {w["name"]: w["type"] for w in json.loads(result.stdout)["tensors"]}
                self.assertEqual(types["layers.1.feed_forward.w2"], self.KEPT.get(name, "f16"))
                self.assertEqual(types["output"], "bf16")

    def test_a_line_says_what_the_matrices_are_widened_to(self):
        model = self.path("line")
        write_quantized(model, CONFIG, random_weights(CONFIG, "bf16", 3), SCHEMES["gptq-g32-act-order"])
        result = self.llamac("compile", model, "-q", "-o", self.path("line.plan"))
        line = "GPTQ with 4 bits, groups of 32, act-order: 14 matrices are widened to f16, as no format has groups of"
        self.assertIn(line, result.stderr)

    def test_a_scale_that_fp8_has_not_is_no_reason_to_lose_it(self):
        """256 times the scale is a normal number of f16, or the matrices are widened."""
        for value, type_name in ((2.0**-22, "fp8"), (2.0**-23, "bf16"), (255.75, "fp8"), (256.0, "bf16")):
            with self.subTest(value):

                def put(tensors, value=value):
                    tensors["model.layers.1.mlp.down_proj.weight_scale"][1][5] = value

                model = self.path(f"scale-{value}")
                write_quantized(model, CONFIG, random_weights(CONFIG, "bf16", 3), SCHEMES["fbgemm"], change=put)
                result = self.llamac("inspect", model, "--json")
                self.assertEqual("as a scale is beyond fp8's" in result.stderr, type_name != "fp8", result.stderr)
                types = {w["name"]: w["type"] for w in json.loads(result.stdout)["tensors"]}
                self.assertEqual(types["layers.0.feed_forward.w1"], type_name)

    def test_a_version_may_be_called_format(self):
        scheme = quantized_models.Gptq(32, version="gptq_v2")
        scheme.settings = without(scheme.settings, "checkpoint_format") | {"format": "gptq_v2"}
        model = self.path("format")
        values = write_quantized(model, CONFIG, random_weights(CONFIG, "bf16", 3), scheme)
        got = self.logits(model, self.tokens, "reference")
        self.check(got, forward(CONFIG, values, self.tokens), 1e-3)

    def test_modelopt_may_say_it_in_a_file_beside(self):
        for name in ("modelopt-fp8", "modelopt-nvfp4"):
            algorithm = SCHEMES[name].settings["quant_algo"]
            for both in (False, True):
                with self.subTest(name, both=both):
                    model = self.path(f"beside-{name}-{both}")
                    values = write_quantized(model, CONFIG, random_weights(CONFIG, "bf16", 3), SCHEMES[name])
                    say_beside(model, modelopt_says(algorithm), both)
                    got = self.logits(model, self.tokens, "reference")
                    self.check(got, forward(CONFIG, values, self.tokens), 1e-3)
                    plain = self.path(f"plain-{name}-{both}")
                    self.llamac("convert", model, "--to", "huggingface", "-o", plain, "-q")
                    self.assertNotIn("hf_quant_config.json", os.listdir(plain))

    def test_a_configuration_alone_counts_as_that_of_plain_weights(self):
        model = self.path("alone")
        write_quantized(model, CONFIG, random_weights(CONFIG, "bf16", 3), SCHEMES["gptq-g32"])
        sizes = []
        for path in (model, os.path.join(model, "config.json")):
            result = self.llamac("plan", path, "--json")
            sizes.append(json.loads(result.stdout)["memory"]["weights"])
            self.assertEqual("count as plain ones" in result.stderr, path != model, result.stderr)
        self.assertLess(sizes[0], sizes[1])

    def test_zero_biases_that_the_model_has_not_are_dropped(self):
        def add_biases(tensors):
            for name in [name for name in tensors if name.endswith(".qweight")]:
                tensors[name.replace("qweight", "bias")] = ("F16", np.zeros(128, np.float16))

        model = self.path("biases")
        values = write_quantized(
            model, CONFIG, random_weights(CONFIG, "bf16", 3), SCHEMES["gptq-g32"], change=add_biases
        )
        got = self.logits(model, self.tokens, "reference")
        self.check(got, forward(CONFIG, values, self.tokens), 1e-3)


def without(settings, key):
    return {name: value for name, value in settings.items() if name != key}


def modelopt_says(algorithm):
    """hf_quant_config.json as ModelOpt 0.33 writes it."""
    return {
        "producer": {"name": "modelopt", "version": "0.33.0"},
        "quantization": {"quant_algo": algorithm, "kv_cache_quant_algo": "FP8", "exclude_modules": ["lm_head"]},
    }


def say_beside(model, content, both=False):
    """Writes hf_quant_config.json, text or what JSON is made of; without `both`, config.json then
    has no quantization_config."""
    path = os.path.join(model, "config.json")
    with open(path) as f:
        config = json.load(f)
    with open(path, "w") as f:
        json.dump(config if both else without(config, "quantization_config"), f)
    with open(os.path.join(model, "hf_quant_config.json"), "w") as f:
        f.write(content if isinstance(content, str) else json.dumps(content))


def open_tensors(path):
    """The header of a safetensors file."""
    with open(path, "rb") as f:
        return json.loads(f.read(int.from_bytes(f.read(8), "little")))


class Convert(support.TestCase):
    # Half a step of bf16 and of f16, and what layers make of it.
    BOUNDS = {"bf16": 5e-3, "f32": 1e-3}

    def test_a_quantised_model_becomes_a_plain_one_of_the_same_logits(self):
        weights = random_weights(CONFIG, "bf16", 3)
        tokens = list(range(20))
        for name in support.by_tier(("gptq-g32", "fp8-block"), tuple(SCHEMES)):
            with self.subTest(name):
                model = self.path(name)
                expected = forward(CONFIG, write_quantized(model, CONFIG, weights, SCHEMES[name]), tokens)
                for dtype, bound in self.BOUNDS.items():
                    plain = self.path(f"{name}-{dtype}")
                    self.llamac("convert", model, "--to", "huggingface", "-o", plain, "-q", "--type", dtype)
                    with open(os.path.join(plain, "config.json")) as f:
                        self.assertNotIn("quantization_config", json.load(f))
                    tensors = open_tensors(os.path.join(plain, "model.safetensors"))
                    self.assertEqual(tensors["model.layers.0.mlp.up_proj.weight"]["dtype"], dtype.upper())
                    error = np.abs(self.logits(plain, tokens, "reference") - expected).max() / np.abs(expected).max()
                    self.assertLess(error, bound)


class Bad(support.TestCase):
    MODULE = "model.layers.1.mlp.down_proj"

    def refuse(self, name, change, code, *words):
        model = self.path(f"bad{Bad.models}")
        Bad.models += 1
        write_quantized(model, CONFIG, random_weights(CONFIG, "bf16", 3), SCHEMES[name], change=change)
        error = self.llamac("compile", model, "-q", "-o", self.path("bad.plan"), expect=code).stderr
        self.assertEqual(len(error.splitlines()), 1, error)
        for word in ("expected", "got", *words):
            self.assertIn(word, error)
        self.assertFalse(os.path.exists(self.path("bad.plan")))

    models = 0

    def part(self, part, edit):
        """A change of one tensor of MODULE: `edit` gives its dtype and array, or None for no tensor."""

        def change(tensors):
            name = f"{self.MODULE}.{part}"
            edited = edit(*tensors.pop(name))
            if edited is not None:
                tensors[name] = edited

        return change

    def test_scales_that_are_not_above_zero(self):
        for wrong in (0, -1, np.nan, np.inf):
            with self.subTest(wrong=wrong):

                def put(dtype, scales, wrong=wrong):
                    scales = scales.copy()
                    scales.reshape(-1)[5] = wrong
                    return dtype, scales

                for name, part in (("gptq-g32", "scales"), ("w4a16-g32", "weight_scale"), ("fbgemm", "weight_scale")):
                    self.refuse(name, self.part(part, put), BAD_FILE, f"{self.MODULE}.{part}", "above 0", "at 5")

    def test_tensors_that_are_missing(self):
        for name, part in (
            ("gptq-g32", "scales"),
            ("awq-g32", "qzeros"),
            ("nvfp4", "weight_global_scale"),
            ("fp8-block", "weight_scale_inv"),
            ("gptq-g32-act-order", "g_idx"),
            ("w4a16-g32-act-order", "weight_g_idx"),
        ):
            with self.subTest(name=name, part=part):
                self.refuse(name, self.part(part, lambda *_: None), BAD_FILE, part, "none")

    def test_an_order_that_older_files_call_true_needs_its_tensor(self):
        scheme = quantized_models.Packed(32)
        for actorder, code in ((False, support.OK), (True, BAD_FILE)):
            weights = scheme.settings["config_groups"]["group_0"]["weights"]
            weights["actorder"] = actorder
            model = self.path(f"order-{actorder}")
            write_quantized(model, CONFIG, random_weights(CONFIG, "bf16", 3), scheme)
            error = self.llamac("compile", model, "-q", "-o", self.path("order.plan"), expect=code).stderr
            self.assertEqual("weight_g_idx beside it" in error, actorder, error)

    def test_shapes_that_disagree(self):
        for name, part in (
            ("gptq-g32", "qweight"),
            ("gptq-g32", "qzeros"),
            ("gptq-g32", "scales"),
            ("gptq-g32", "g_idx"),
            ("awq-g64", "qweight"),
            ("w4a16-g64-zeros", "weight_zero_point"),
            ("fp8-channel", "weight_scale"),
            ("fp8-block", "weight_scale_inv"),
        ):
            with self.subTest(name=name, part=part):
                self.refuse(name, self.part(part, lambda dtype, x: (dtype, x[:-1])), BAD_FILE, self.MODULE)

    def test_elements_of_another_type(self):
        for name, part in (("gptq-g32", "qweight"), ("fp8-tensor", "weight"), ("nvfp4", "weight_packed")):
            with self.subTest(name=name):
                edit = self.part(part, lambda dtype, x: ("I64", x.astype(np.int64)))
                self.refuse(name, edit, BAD_FILE, part, "I64")

    def test_permutations_that_are_none(self):
        for wrong in (-1, 12, 0):

            def put(dtype, groups, wrong=wrong):
                groups = groups.copy()
                groups[np.flatnonzero(groups == 3)[0]] = wrong
                return dtype, groups

            with self.subTest(wrong=wrong):
                self.refuse("gptq-g32-act-order", self.part("g_idx", put), BAD_FILE, "g_idx")

    def test_zero_points_that_readers_disagree_on(self):
        def put(dtype, zeros):
            zeros = zeros.copy()
            zeros.view(np.uint8).reshape(-1)[3] = 0x1F
            return dtype, zeros

        self.refuse("gptq-g32", self.part("qzeros", put), BAD_FILE, "qzeros", "15 in byte 3")

    def test_groups_that_do_not_divide(self):
        scheme = quantized_models.Gptq(32)
        scheme.settings = scheme.settings | {"group_size": 40}
        model = self.path("groups")
        write_quantized(model, CONFIG, random_weights(CONFIG, "bf16", 3), scheme)
        error = self.llamac("compile", model, "-q", "-o", self.path("bad.plan"), expect=BAD_FILE).stderr
        self.assertIn("groups of 40", error)

    def test_settings_that_are_not_honoured_are_named(self):
        packed = SCHEMES["w4a16-g32"].settings
        group = packed["config_groups"]["group_0"]
        eight = {"weights": group["weights"] | {"num_bits": 8}}
        for word, settings in (
            ("bits: expected 4, got 8", SCHEMES["gptq-g32"].settings | {"bits": 8}),
            ("dynamic", SCHEMES["gptq-g32"].settings | {"dynamic": {"-:mlp": {}}}),
            ('"marlin"', SCHEMES["gptq-g32"].settings | {"checkpoint_format": "marlin"}),
            ('"bitblas"', without(SCHEMES["gptq-g32"].settings, "checkpoint_format") | {"format": "bitblas"}),
            ('"gemv"', SCHEMES["awq-g32"].settings | {"version": "gemv"}),
            ('"sparse-24"', packed | {"sparsity_config": {"format": "sparse-24"}}),
            ('"marlin-24"', packed | {"format": "marlin-24"}),
            ('"frozen"', packed | {"quantization_status": "frozen"}),
            ("config_groups", packed | {"config_groups": {"group_0": group, "group_1": group}}),
            ("num_bits: expected 4, got 8", packed | {"config_groups": {"group_0": eight}}),
            ('"W4A8"', {"quant_method": "modelopt", "quant_algo": "W4A8"}),
            ('"e5m2"', {"quant_method": "fp8", "fmt": "e5m2"}),
        ):
            with self.subTest(word):
                model = self.path(f"bad{Bad.models}")
                Bad.models += 1
                write_quantized(model, CONFIG, random_weights(CONFIG, "bf16", 3), SCHEMES["gptq-g32"])
                path = os.path.join(model, "config.json")
                with open(path) as f:
                    config = json.load(f)
                with open(path, "w") as f:
                    json.dump(config | {"quantization_config": settings}, f)
                error = self.llamac("compile", model, "-q", "-o", self.path("bad.plan"), expect=UNSUPPORTED).stderr
                self.assertEqual(len(error.splitlines()), 1, error)
                self.assertIn(word, error)

    def test_files_of_modelopt_beside_config_json(self):
        for scheme, content, code, word in (
            (None, "{", BAD_FILE, "JSON"),
            (None, [], BAD_FILE, "an object"),
            (None, {"producer": {"name": "modelopt"}}, BAD_FILE, "quantization: expected an object, got none"),
            (None, {"quantization": "FP8"}, BAD_FILE, "quantization: expected an object"),
            (None, {"quantization": {"quant_algo": 8}}, BAD_FILE, "quant_algo: expected a string"),
            (None, {"quantization": {}}, UNSUPPORTED, 'quant_algo: expected "FP8" or "NVFP4", got ""'),
            (None, modelopt_says("W4A16_AWQ"), UNSUPPORTED, 'quant_algo: expected "FP8" or "NVFP4", got "W4A16_AWQ"'),
            ("modelopt-fp8", modelopt_says("NVFP4"), UNSUPPORTED, 'ModelOpt with "FP8", got ModelOpt with "NVFP4"'),
            ("nvfp4", modelopt_says("NVFP4"), UNSUPPORTED, 'compressed-tensors with format "nvfp4-pack-quantized", got'),
        ):
            with self.subTest(word):
                model = self.path(f"bad{Bad.models}")
                Bad.models += 1
                write_quantized(model, CONFIG, random_weights(CONFIG, "bf16", 3), SCHEMES[scheme or "modelopt-fp8"])
                say_beside(model, content, both=scheme is not None)
                error = self.llamac("compile", model, "-q", "-o", self.path("bad.plan"), expect=code).stderr
                self.assertEqual(len(error.splitlines()), 1, error)
                self.assertRegex(error, r"hf_quant_config\.json:\d+:\d+: ")
                self.assertIn(word, error)

    def test_weights_of_quantised_matrices_cannot_be_referenced(self):
        model = self.path("referenced")
        write_quantized(model, CONFIG, random_weights(CONFIG, "bf16", 3), SCHEMES["fp8-channel"])
        flags = "--reference-weights", "-q", "-o", self.path("bad.plan")
        self.assertIn("--reference-weights", self.llamac("compile", model, *flags, expect=UNSUPPORTED).stderr)


if __name__ == "__main__":
    unittest.main()
