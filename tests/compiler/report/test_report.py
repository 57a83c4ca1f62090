# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""llamac inspect --html: the page in a headless Chromium.

    test_report.py            all
    test_report.py SmallModel one of the classes below
"""

import json
import os
import re
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "e2e"))

import support  # noqa: E402
from browser import Browser, BrowserError, find_chromium  # noqa: E402

PARAMS = {
    "dim": 64,
    "n_layers": 4,
    "n_heads": 4,
    "n_kv_heads": 2,
    "vocab_size": 101,
    "multiple_of": 32,
    "norm_eps": 1e-05,
    "rope_theta": 10000.0,
}
LIMIT = 5_000_000


def luminance(color):
    """Relative luminance of a computed colour, as WCAG 2 defines it."""
    parts = [int(number) / 255 for number in re.findall(r"\d+", color)[:3]]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear))


def contrast(a, b):
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


class ReportCase(support.TestCase):
    """Opens the reports that it makes in one browser."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.close)

    @classmethod
    def config(cls, folder="model"):
        os.makedirs(cls.path(folder), exist_ok=True)
        path = cls.path(folder, "params.json")
        with open(path, "w") as file:
            json.dump(PARAMS, file)
        return path

    def open_report(self, model, *options):
        """Makes the report of `model`, opens it, and gives its size."""
        browser = self.browser
        page = self.path("report.html")
        self.llamac("inspect", model, "--html", page, *options)
        browser.messages.clear()
        browser.exceptions.clear()
        browser.requests.clear()
        browser.open(page)
        self.assertEqual(browser.exceptions, [])
        self.assertEqual(browser.messages, [])
        self.assertEqual(browser.requests, ["file://" + page])
        return os.path.getsize(page)

    def value(self, expression):
        return self.browser.evaluate(expression)

    def text(self, selector):
        return self.value(f"document.querySelector({json.dumps(selector)}).innerText")

    def count(self, selector):
        return self.value(f"document.querySelectorAll({json.dumps(selector)}).length")

    def selected_pass(self):
        return self.value("document.querySelector('#timeline [aria-selected=true]').dataset.pass")

    def check_nothing_went_wrong(self):
        """After using the page as well."""
        self.assertEqual(self.browser.exceptions, [])
        self.assertEqual(self.browser.messages, [])
        self.assertEqual(len(self.browser.requests), 1)


class SmallModel(ReportCase):
    def test_sections_hold_what_the_compiler_says(self):
        model = self.config()
        self.open_report(model)
        inspected = json.loads(self.llamac("inspect", model, "--json", "--memory").stdout)
        for section in ("passes", "graph", "kernels", "memory", "weights", "source"):
            self.assertGreater(len(self.text(f"#{section}-body")), 20, section)
        passes = self.value("[...document.querySelectorAll('#timeline [role=option]')].map(e => e.dataset.pass)")
        self.assertEqual(passes[:3], ["import", "canonicalize", "cse"])
        self.assertEqual(passes[-3:], ["choose-kernels", "lower-to-plan", "plan-memory"])
        self.assertEqual(self.count("#graph svg"), 2)
        before, after = (
            self.value(f"document.querySelectorAll('#graph svg')[{i}].querySelectorAll('.node:not(.end)').length")
            for i in (0, 1)
        )
        self.assertEqual(before, 26, "ops of a layer before fusion, as the formulas have them")
        self.assertLess(after, 10)
        programs = {program["name"]: program for program in inspected["programs"]}
        for name, program in programs.items():
            for section in ("kernels", "memory"):
                self.value(
                    f"[...document.querySelectorAll('#{section} [role=tab]')].find(e => e.innerText == '{name}').click()"
                )
            launches = self.value("document.querySelector('#kernels tfoot').rows[0].cells[2].innerText")
            self.assertEqual(int(launches.replace(",", "")), program["launches"])
            arena = inspected["memory"]["arenas"][name]
            figures = self.value(
                "[...document.querySelectorAll('#memory tbody tr')].map(row => row.cells[2].innerText)"
            )
            self.assertEqual(
                [int(re.sub(r"\D", "", figure)) for figure in figures],
                [arena["arena"], arena["lower_bound"], arena["without_reuse"]],
            )
            self.assertEqual(self.count("#memory .buffer"), len(arena["buffers"]))
        self.check_nothing_went_wrong()

    def test_costs_follow_the_context(self):
        def cache_bytes(context):
            self.open_report(self.config(), "--cost-context", context)
            rows = self.value(
                "[...document.querySelectorAll('#kernels tbody tr')]"
                ".map(row => [row.cells[0].innerText, row.cells[5].innerText])"
            )
            return next(bytes_ for name, bytes_ in rows if name.startswith("attention_split"))

        # Two heads of 16 numbers of two bytes, keys and values: 128 bytes a token.
        self.assertEqual(cache_bytes(64), "8.00 KiB")
        self.assertEqual(cache_bytes(512), "64.0 KiB")

    def test_a_roof_is_drawn_only_of_given_peaks(self):
        self.open_report(self.config())
        self.assertEqual(self.count("#kernels .roof"), 0)
        self.assertIn("No machine", self.text("#kernels .roofline"))
        self.open_report(self.config(), "--peak-gbs", "33", "--peak-gflops", "200")
        self.assertEqual(self.count("#kernels .roof"), 1)
        self.assertIn("given as --peak-gbs and --peak-gflops, not measured", self.text("#kernels .roofline"))
        self.assertIn("ridge at 6.06 FLOP/byte", self.value("document.querySelector('#kernels svg').textContent"))
        self.check_nothing_went_wrong()

    def test_wrong_uses_are_refused(self):
        model, page = self.config(), self.path("refused.html")
        for options, said in [
            (["--json"], "--html: expected neither --json nor --memory"),
            (["--cost-context", "100000"], "--cost-context: expected 1 to "),
            (["--peak-gbs", "-1"], "--peak-gbs"),
        ]:
            result = self.llamac("inspect", model, "--html", page, *options, expect=support.USAGE)
            self.assertIn(said, result.stderr)
            self.assertFalse(os.path.exists(page))


class HostileName(ReportCase):
    def test_a_path_with_markup_is_only_text(self):
        name = "<script>window.hostile = 1;<!--&amp;"
        self.open_report(self.config(name))
        self.assertIsNone(self.value("window.hostile"))
        self.assertIn(name, self.text("h1"))
        self.assertIn(name, self.value("document.title"))


class PlanFile(ReportCase):
    def test_a_plan_shows_what_it_knows(self):
        support.require("numpy", "gguf", "safetensors")
        from llama_numpy import Config
        from make_model import random_weights, write_meta

        config = Config(64, 2, 4, 2, vocab=101, multiple_of=32)
        model = self.path("meta")
        write_meta(model, config, random_weights(config), "bf16")
        plan = self.path("small.plan")
        self.llamac("compile", model, "-o", plan)
        inspected = json.loads(self.llamac("inspect", plan, "--json").stdout)
        self.open_report(plan)
        self.assertIn("needs the model", self.text("#passes-body"))
        self.assertIn("needs the model", self.text("#graph-body"))
        self.assertEqual(self.count("#timeline"), 0)
        launches = self.value("document.querySelector('#kernels tfoot').rows[0].cells[2].innerText")
        self.assertEqual(int(launches), inspected["programs"][0]["launches"])
        self.assertGreater(self.count("#memory .buffer"), 10)
        self.assertIn('extern "C"', self.value("document.querySelector('#source pre').textContent"))
        self.check_nothing_went_wrong()
        result = self.llamac(
            "inspect", plan, "--html", self.path("no.html"), "--cost-context", "8", expect=support.USAGE
        )
        self.assertIn("is a plan", result.stderr)


class RealModel(ReportCase):
    def setUp(self):
        self.size = self.open_report(support.require_model("smollm2.gguf"))

    def test_is_small(self):
        self.assertLess(self.size, LIMIT)

    def test_arrow_keys_choose_a_pass_and_show_what_it_changed(self):
        browser = self.browser
        # Tab reaches the list of passes from the top of the page.
        for _ in range(30):
            browser.press("Tab")
            if self.value("document.activeElement.id") == "timeline":
                break
        self.assertEqual(self.value("document.activeElement.id"), "timeline")
        browser.press("Home")
        self.assertEqual(self.selected_pass(), "import")
        browser.press("ArrowDown")
        self.assertEqual(self.selected_pass(), "canonicalize")
        while self.selected_pass() != "fuse-attention":
            before = self.selected_pass()
            browser.press("ArrowDown")
            self.assertFalse(before == self.selected_pass() == "plan-memory", "fuse-attention is not there")
        self.assertEqual(self.text("#pass-detail h3"), "fuse-attention")
        removed = self.value("[...document.querySelectorAll('.diff td.removed:not(.no)')].map(e => e.innerText).join('\\n')")
        added = self.value("[...document.querySelectorAll('.diff td.added:not(.no)')].map(e => e.innerText).join('\\n')")
        self.assertIn("llama.softmax", removed)
        self.assertNotIn("llama.softmax", added)
        self.assertIn("llama.attention ", added)
        # The other layers' changes are the same and folded, and can be shown.
        folds = self.value("[...document.querySelectorAll('.diff .fold')].map(e => e.innerText)")
        self.assertTrue(any("changes like those above" in fold for fold in folds), folds)
        self.assertEqual(added.count("llama.attention "), 1)
        while self.count(".diff .fold button"):
            self.value("document.querySelector('.diff .fold button').click()")
        added = self.value("[...document.querySelectorAll('.diff td.added:not(.no)')].map(e => e.innerText).join('\\n')")
        self.assertEqual(added.count("llama.attention "), 30)
        # Nothing is left to unfold: focus has gone to the diff.
        self.assertEqual(self.value("document.activeElement.className"), "diff")
        self.value("document.getElementById('timeline').focus()")
        browser.press("End")
        self.assertEqual(self.selected_pass(), "plan-memory")
        self.check_nothing_went_wrong()

    def test_every_pass_shows_as_many_lines_as_it_changed(self):
        steps = self.count("#timeline [role=option]")
        for index in range(steps):
            self.value(f"document.querySelectorAll('#timeline [role=option]')[{index}].click()")
            while self.count(".diff .fold button"):
                self.value("document.querySelectorAll('.diff .fold button').forEach(e => e.click())")
            said = self.value(
                f"document.querySelectorAll('#timeline [role=option]')[{index}].lastElementChild.innerText"
            )
            for sign, kind in (("\u2212", "removed"), ("+", "added")):
                number = re.search(re.escape(sign) + r"([\d,]+)", said)
                expected = int(number.group(1).replace(",", "")) if number else 0
                self.assertEqual(self.count(f".diff td.{kind}.no"), expected, self.selected_pass())
        self.check_nothing_went_wrong()

    def test_arrow_keys_walk_the_graph_and_the_charts(self):
        browser = self.browser
        self.value("document.querySelector('#graph .node[tabindex=\"0\"]').focus()")
        first = self.text("#graph-detail")
        browser.press("ArrowDown")
        self.assertNotEqual(self.text("#graph-detail"), first)
        self.assertEqual(self.value("document.activeElement.classList.contains('node')"), True)
        for section in ("kernels", "memory"):
            self.value(f"document.querySelector('#{section} svg').focus()")
            browser.press("ArrowRight")
            first = self.text(f"#{section} .live")
            self.assertEqual(self.count(f"#{section} .active"), 1)
            browser.press("ArrowRight")
            self.assertNotEqual(self.text(f"#{section} .live"), first)
            self.assertEqual(self.count(f"#{section} .active"), 1)
            # Tabs: prefill beside decode.
            self.value(f"document.querySelector('#{section} [role=tab]').focus()")
            browser.press("ArrowRight")
            self.assertEqual(self.text(f"#{section} [role=tab][aria-selected=true]"), "prefill")
        self.check_nothing_went_wrong()

    def test_focus_is_visible_and_the_first_stop_skips_the_head(self):
        self.browser.press("Tab")
        self.assertEqual(self.value("document.activeElement.className"), "skip")
        self.assertGreaterEqual(self.value("document.activeElement.getBoundingClientRect().left"), 0)
        self.assertNotEqual(self.value("getComputedStyle(document.activeElement).outlineStyle"), "none")
        self.browser.press("Enter")
        self.browser.press("Tab")
        self.assertEqual(self.value("document.activeElement.id"), "timeline")
        self.assertNotEqual(self.value("getComputedStyle(document.activeElement).outlineStyle"), "none")

    def test_colours_follow_the_system_and_the_switch(self):
        def colors(selector="body"):
            style = f"getComputedStyle(document.querySelector('{selector}'))"
            return self.value(f"{style}.color"), self.value("getComputedStyle(document.body).backgroundColor")

        self.browser.prefer("light")
        light = colors()
        self.browser.prefer("dark")
        dark = colors()
        self.assertGreater(luminance(light[1]), 0.8)
        self.assertLess(luminance(dark[1]), 0.1)
        for scheme in ("light", "dark"):
            self.browser.prefer(scheme)
            for selector in ("body", ".quiet", ".top nav a", ".plus", ".minus"):
                self.assertGreater(contrast(*colors(selector)), 4.5, (scheme, selector))
        # The switch overrules the system: light in a dark one.
        self.value(
            "(() => { const s = document.getElementById('theme'); s.value = 'light';"
            " s.dispatchEvent(new Event('change')); })()"
        )
        self.assertEqual(colors(), light)
        self.browser.prefer("light")
        self.value(
            "(() => { const s = document.getElementById('theme'); s.value = 'dark';"
            " s.dispatchEvent(new Event('change')); })()"
        )
        self.assertEqual(colors(), dark)
        self.check_nothing_went_wrong()

    def test_fits_1280_pixels(self):
        self.assertLessEqual(self.value("document.documentElement.scrollWidth"), 1280)
        self.assertLessEqual(self.value("document.querySelector('#kernels .scroll').scrollWidth"), 1280)


if __name__ == "__main__":
    try:
        find_chromium()
    except BrowserError as error:
        sys.exit(f"cannot run: {error}")
    unittest.main()
