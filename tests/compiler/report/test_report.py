# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""llamac inspect --html: the page in a headless Chromium.

    test_report.py            all
    test_report.py SmallModel one of the classes below
"""

import json
import math
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
INPUTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "Inputs")


def luminance(color):
    """Relative luminance of a computed colour, as WCAG 2 defines it."""
    parts = [int(number) / 255 for number in re.findall(r"\d+", color)[:3]]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear))


def contrast(a, b):
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


# Options that quantise weights.
QUANTISED = ("--weights", "q8_0")


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

    def cells(self, selector):
        """The text of the cells of the table rows `selector`."""
        rows = f"[...document.querySelectorAll({json.dumps(selector)})]"
        return self.value(f"{rows}.map(row => [...row.cells].map(cell => cell.innerText.trim()))")

    def open_tab(self, section, name):
        tabs = f"[...document.querySelectorAll('#{section} [role=tab]')]"
        self.value(f"{tabs}.find(e => e.innerText == '{name}').click()")

    def check_fits(self, width):
        """The page is no wider than a window of `width`, and nothing is squeezed."""
        self.browser.resize(width)
        self.addCleanup(self.browser.resize, 1280)
        self.assertEqual(self.value("document.documentElement.scrollWidth"), width)
        heights = self.value("[...document.querySelectorAll('.top a')].map(e => e.getBoundingClientRect().height)")
        self.assertLess(max(heights), 30, "the names of sections are on one line each")
        narrow = self.value(
            "[...document.querySelectorAll('main tbody > tr > *')]"
            ".filter(e => e.innerText.length > 3 && e.getBoundingClientRect().height > 0)"
            ".filter(e => e.getBoundingClientRect().width < 40).map(e => e.innerText)"
        )
        self.assertEqual(narrow, [])
        # Charts are drawn for the width, so that their text has its size.
        for drawn in self.value("[...document.querySelectorAll('.chart svg')].map(e => e.viewBox.baseVal.width)"):
            self.assertLessEqual(drawn, max(400, width))
            self.assertGreater(drawn, 0.75 * min(width, 1200))

    def selected_pass(self):
        return self.value("document.querySelector('#timeline [aria-selected=true]').dataset.pass")

    def check_nothing_went_wrong(self):
        """After using the page as well."""
        self.assertEqual(self.browser.exceptions, [])
        self.assertEqual(self.browser.messages, [])
        self.assertEqual(len(self.browser.requests), 1)
        texts = self.value("[...document.querySelectorAll('main *')].flatMap(e => [...e.childNodes]).filter(n => n.nodeType === 3).map(n => n.data)")
        self.assertEqual([text for text in texts if text in ("null", "undefined", "NaN")], [])


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
                self.open_tab(section, name)
            launches = self.value("document.querySelector('#kernels tfoot').rows[0].cells[2].innerText")
            self.assertEqual(int(launches.replace(",", "")), program["launches"])
            arena = inspected["memory"]["arenas"][name]
            figures = self.value(
                "[...document.querySelectorAll('#memory [role=tabpanel] tbody tr')].map(row => row.cells[2].innerText)"
            )
            self.assertEqual(
                [int(re.sub(r"\D", "", figure)) for figure in figures],
                [arena["arena"], arena["lower_bound"], arena["without_reuse"]],
            )
            self.assertEqual(self.count("#memory .buffer"), len(arena["buffers"]))
        self.check_nothing_went_wrong()

    def test_facts_are_named_so_that_numbers_speak_for_themselves(self):
        self.open_report(self.config())
        names = self.value("[...document.querySelectorAll('#facts dt')].map(e => e.innerText)")
        values = self.value("[...document.querySelectorAll('#facts dd')].map(e => e.innerText)")
        facts = dict(zip(names, values))
        for name, value in [
            ("Layers", "4"),
            ("Hidden size", "64"),
            ("Query heads", "4"),
            ("Key/value heads", "2"),
            ("Head size", "16"),
            ("Vocabulary size", "101"),
        ]:
            self.assertEqual(facts[name], value)
        # Options that were not given are left out.
        self.assertRegex(facts["Compiled with"], r"^target=cpu ")
        self.assertNotRegex(facts["Compiled with"], r"=( |$)")
        # Every column of every table has a title.
        titles = self.value("[...document.querySelectorAll('main thead th')].map(e => e.innerText)")
        self.assertGreater(len(titles), 20)
        self.assertNotIn("", titles)

    def test_memory_counts_the_cache(self):
        self.open_report(self.config(), "-c", "1024", "--parallel", "3", "--kv-type", "f32")
        table = self.cells("#memory-body > table tr:not(thead *)")
        rows = {name: int(size.replace(",", "")) for name, _, _, size, _ in table}
        # Keys and values of 4 layers and 2 heads of 16 f32, in 3 sequences.
        self.assertEqual(rows["KV cache, when full"], 2 * 4 * 2 * 16 * 4 * 1024 * 3)
        self.assertGreater(rows["Weights"], 4 * 64 * 64 * 2)
        self.assertGreater(rows["Workspace"], 64 * 4)
        self.assertEqual(rows["All"], sum(rows.values()) - rows["All"])
        self.assertIn("3 sequences of 1,024 tokens each", self.text("#memory"))

    def test_kernels_say_what_explain_kernels_says(self):
        model = os.path.join(INPUTS, "shapes", "gemma-3-1b", "config.json")
        target = ("--target", "cuda", "--gpu", "sm_86")
        explained = self.llamac("compile", model, *target, "--explain-kernels", "--stop-after", "schedule").stdout
        tables = dict(table.split(":", 1) for table in explained.split("\n\n")[:-1])
        self.open_report(model, *target)
        slow = 0
        for program in ("decode", "prefill"):
            self.open_tab("kernels", program)
            shown = sorted(self.cells("#kernels [role=tabpanel] > div > table tbody tr"))
            said = []  # Each row with the reasons below it.
            for line in tables[program].splitlines()[2:-1]:
                if line.strip().startswith("slow path: "):
                    said[-1][1].append(line.strip()[11:])
                else:
                    said.append((line, []))
            self.assertEqual(len(shown), len(said))
            for line, reasons in said:
                numbers, name, tiles = re.fullmatch(r"( .*)  (\w+): \w+ ?(.*)", line).groups()
                _, launches, rows, _, _, limit, *expected = numbers.split()
                place = f"{launches} of {int(rows):,} "
                row = next(row for row in shown if row[0].split("\n")[0] == name and row[2].startswith(place))
                shown.remove(row)
                lines = row[0].split("\n")
                self.assertEqual(lines[1].endswith(tiles), True, (lines, tiles))
                self.assertEqual([text[11:] for text in lines[2:]], reasons)
                slow += len(reasons)
                if len(expected) == 3:
                    time, unit, share, bound = re.match(r"(\S+) (\S+), (\S+) % of the (\w+) limit", row[-1]).groups()
                    ms = float(time.replace(",", "")) * {"s": 1e3, "ms": 1, "\u00b5s": 1e-3, "us": 1e-3}[unit]
                    self.assertAlmostEqual(int(launches) * ms, float(expected[0]), delta=0.0006 + 0.01 * float(expected[0]))
                    self.assertAlmostEqual(float(share), float(expected[1]), delta=0.6)
                    self.assertEqual(bound, expected[2])
        self.assertGreater(slow, 5)

    def test_a_kernel_leads_to_its_source(self):
        for options, file in [((), "kernels.cpp"), (("--target", "cuda", "--gpu", "sm_90a"), None)]:
            self.open_report(self.config(), *options)
            name = self.value("document.querySelector('#kernels tbody a').innerText")
            self.assertEqual(self.count("#source details[open]"), 0)
            for _ in range(2):
                self.value("document.querySelector('#kernels tbody a').click()")
                self.assertEqual(self.count("#source details[open]"), 1)
                self.assertTrue(self.text("#source details[open] summary").startswith(file or f"{name}.cu"))
                self.assertRegex(self.text("#source mark"), rf'extern "C"[^;]*\b{name}\(')
                self.assertEqual(self.value("document.activeElement.tagName"), "MARK")
            box = self.value("(r => [r.top, r.bottom])(document.querySelector('#source mark').getBoundingClientRect())")
            self.assertTrue(box[1] > 0 and box[0] < 900, "it is on the screen")
        self.check_nothing_went_wrong()

    def test_the_file_names_no_other_address(self):
        self.open_report(self.config(), "--compare", self.config())
        with open(self.path("report.html")) as file:
            addresses = set(re.findall(r"https?://[^\s\"'<)]+", file.read()))
        self.assertLessEqual(addresses, {"http://www.w3.org/2000/svg"})

    def test_a_model_compared_with_itself_differs_in_nothing(self):
        self.open_report(self.config(), "--compare", self.config())
        text = self.text("#comparison-body")
        self.assertIn("All facts of the model and the options are the same", text)
        self.assertIn("No op differs", text)
        self.assertEqual(len(self.cells("#comparison [role=tabpanel] tbody tr")), 0)
        self.assertNotIn("\u2192", text)

    def test_skipped_passes_are_named(self):
        self.open_report(self.config())
        self.assertNotIn("--skip-pass", self.text("#passes"))
        self.open_report(self.config(), "--skip-pass", "fuse-norm", "--skip-pass", "fuse-qkv")
        self.assertIn("Left out by --skip-pass: fuse-norm, fuse-qkv.", self.text("#passes"))
        self.assertEqual(self.count("#timeline [data-pass=fuse-norm]"), 0)

    def test_costs_follow_the_context(self):
        def cache_bytes(context):
            self.open_report(self.config(), "--cost-context", context)
            rows = self.value(
                "[...document.querySelectorAll('#kernels tbody tr')]"
                ".map(row => [row.cells[0].innerText, row.cells[5].innerText])"
            )
            return next(bytes_ for name, bytes_ in rows if name.startswith("attention_split"))

        # Two heads of 16 numbers of two bytes, keys and values: 128 bytes a token. Partial
        # results add one in the mean.
        self.assertEqual(cache_bytes(64), "8.06 KiB")
        self.assertEqual(cache_bytes(512), "64.5 KiB")

    def test_a_roof_is_drawn_only_of_known_peaks(self):
        self.open_report(self.config(), "--tune-cpu", "znver4")
        self.assertEqual(self.count("#kernels .roof"), 0)
        self.assertEqual(self.count("#kernels .measured"), 0)
        self.assertIn("No machine", self.text("#kernels .roofline"))
        self.open_report(self.config(), "--peak-gbs", "33", "--peak-gflops", "200")
        self.assertEqual(self.count("#kernels .roof"), 1)
        self.assertIn(
            "The peak of memory is given as --peak-gbs, that of arithmetic given as --peak-gflops. ",
            self.text("#kernels .roofline"),
        )
        self.assertIn("ridge at 6.06 FLOP/byte", self.value("document.querySelector('#kernels svg').textContent"))
        self.check_nothing_went_wrong()

    def test_wrong_uses_are_refused(self):
        model, page = self.config(), self.path("refused.html")
        for options, said in [
            (["--json"], "--html: expected neither --json nor --memory"),
            (["--cost-context", "100000"], "--cost-context: expected 1 to "),
            (["--peak-gbs", "-1"], "--peak-gbs"),
            (["--compare-measured", "times.json"], "--compare-measured: expected --compare as well"),
        ]:
            result = self.llamac("inspect", model, "--html", page, *options, expect=support.USAGE)
            self.assertIn(said, result.stderr)
            self.assertFalse(os.path.exists(page))
        times = self.path("times.json")
        with open(times, "w") as file:
            file.write('{"work": "nothing", "kernels": []}\n{"work": "less"}\n')
        result = self.llamac("inspect", model, "--html", page, "--measured", times, expect=support.BAD_FILE)
        self.assertIn("times.json:2:1: kernels: expected those that bench --kernels measures", result.stderr)
        for option in ("--measured", "--compare", "--compare-measured", "--cost-context"):
            result = self.llamac("inspect", model, option, "1", expect=support.USAGE)
            self.assertIn(f"{option}: expected --html", result.stderr)

    def test_narrow_windows_need_no_scrolling_to_the_side(self):
        shape = os.path.join(INPUTS, "shapes", "gemma-3-1b", "config.json")
        self.open_report(shape, "--target", "cuda", "--gpu", "sm_90a", "--compare", self.config())
        for width in (500, 761, 1041, 1280):
            with self.subTest(width=width):
                self.check_fits(width)
        # Each cell says what it is where the head of its table is away.
        self.browser.resize(500)
        title = "getComputedStyle(document.querySelector('#kernels td:nth-child(4)'), '::before').content"
        self.assertEqual(self.value(title), '"Weights"')
        self.browser.resize(1280)
        self.assertEqual(self.value(title), "none")
        self.check_nothing_went_wrong()


class HostileName(ReportCase):
    def test_a_path_with_markup_is_only_text(self):
        name = "<script>window.hostile = 1;<!--&amp;"
        self.open_report(self.config(name))
        self.assertIsNone(self.value("window.hostile"))
        self.assertIn(name, self.text("h1"))
        self.assertIn(name, self.value("document.title"))


class PlanFile(ReportCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        support.require("numpy", "gguf", "safetensors")
        from llama_numpy import Config
        from make_model import random_weights, write_meta

        config = Config(64, 2, 4, 2, vocab=101, multiple_of=32)
        cls.model = cls.path("meta")
        write_meta(cls.model, config, random_weights(config), "bf16")
        cls.plan = cls.path("small.plan")

    def setUp(self):
        if not os.path.exists(self.plan):
            self.llamac("compile", self.model, "-o", self.plan)

    def quantised(self):
        """The plan with quantised weights."""
        plan = self.path("quantised.plan")
        if not os.path.exists(plan):
            self.llamac("compile", self.model, *QUANTISED, "-o", plan)
        return plan

    def check_near(self, text, value):
        """`text` begins with `value` to three digits."""
        self.assertAlmostEqual(float(text.split()[0].replace(",", "")) / value, 1, delta=0.006)

    def measure(self, plan):
        """The file of what bench measures of `plan`, and its lines."""
        times = f"{plan}.json"
        counts = ("--prompt-tokens", "9", "--gen-tokens", "3")
        lines = self.llamac("bench", plan, "--kernels", "--json", *counts).stdout
        with open(times, "w") as file:
            file.write(lines)
        return times, [json.loads(line) for line in lines.splitlines()]

    def test_a_plan_shows_what_it_knows(self):
        inspected = json.loads(self.llamac("inspect", self.plan, "--json").stdout)
        self.open_report(self.plan)
        self.assertIn("needs the model", self.text("#passes-body"))
        self.assertIn("needs the model", self.text("#graph-body"))
        self.assertEqual(self.count("#timeline"), 0)
        launches = self.value("document.querySelector('#kernels tfoot').rows[0].cells[2].innerText")
        self.assertEqual(int(launches), inspected["programs"][0]["launches"])
        self.assertGreater(self.count("#memory .buffer"), 10)
        self.assertIn('extern "C"', self.value("document.querySelector('#source pre').textContent"))
        self.assertIn("which need the model", self.text("#kernels"))
        self.assertEqual(
            int(self.cells("#memory table tbody tr")[1][3].replace(",", "")),
            inspected["memory"]["kv_per_token"] * inspected["memory"]["context"] * 8,
        )
        self.check_nothing_went_wrong()

    def test_a_plan_costs_what_its_model_costs(self):
        def figures():
            """The kernels of decode by name, and the columns of figures of each."""
            rows = self.cells("#kernels [role=tabpanel] > div > table :is(tbody, tfoot) tr")
            return [(row[0].split("\n")[0], *row[1:9]) for row in rows]

        self.open_report(self.model, "--cost-context", "300")
        expected = figures()
        self.assertGreater(len(expected), 8)
        self.open_report(self.plan, "--cost-context", "300")
        self.assertEqual(figures(), expected)

    def test_roofs_are_measured_of_this_machine(self):
        # Quantised weights are multiplied in int8, attention and norms in f32.
        for model in self.quantised(), self.model:
            self.open_report(model, *([] if model.endswith(".plan") else QUANTISED))
            self.open_tab("kernels", "prefill")
            self.assertEqual(self.count(".roofline .roof"), 2)
            self.assertIn(
                ", that of arithmetic measured, that of products of int8 measured. ",
                self.text(".roofline"),
            )
            inputs = self.value("[...document.querySelectorAll('.roofline input')].map(e => e.value)")
            memory, f32, int8 = map(float, inputs)
            text = self.value("document.querySelector('.roofline svg').textContent")
            for name, rate in (("f32", f32), ("int8", int8)):
                ridge = float(re.search(rf"ridge of {name} at (\S+) FLOP/byte", text).group(1))
                self.assertAlmostEqual(ridge * memory / rate, 1, delta=0.01)
        self.check_nothing_went_wrong()

    def test_measured_points_lie_where_the_measurement_says(self):
        times, works = self.measure(self.quantised())
        self.open_report(self.quantised(), "--measured", times)
        for program, work in (("decode", works[1]), ("prefill", works[0])):
            self.open_tab("kernels", program)
            chosen = self.value("document.querySelector('.roofline select').selectedOptions[0].text")
            self.assertEqual(chosen, work["work"])
            kernels = {kernel["kernel"]: kernel for kernel in work["kernels"]}
            everything = kernels.pop("all")
            limits = work["limits"]
            rows = self.cells(".roofline table tbody tr")
            self.assertEqual([row[0] for row in rows], list(kernels))
            for name, launches, time, bandwidth, rate, roof, share in rows:
                kernel = kernels[name]
                seconds, moved, operations = (kernel[key] for key in ("seconds", "bytes", "operations"))
                self.assertEqual(int(launches.replace(",", "")), kernel["launches"])
                self.check_near(time, 1e6 * seconds / kernel["launches"])
                self.check_near(bandwidth, 1e-9 * moved / seconds)
                if operations:
                    self.check_near(rate, 1e-9 * operations / seconds)
                of_int8 = kernel["int8_operations"]
                self.assertEqual(of_int8, operations if name.startswith(("gem", "qkv_gem")) else 0, name)
                arithmetic = (operations - of_int8) / limits["f32_operations"] + of_int8 / limits["int8_operations"]
                least = max(moved / limits["bandwidth"], arithmetic)
                self.assertAlmostEqual(float(roof.split()[0]), 100 * least / seconds, delta=0.6)
                self.assertAlmostEqual(float(share.split()[0]), 100 * seconds / everything["seconds"], delta=0.1)
            # On a logarithmic axis a point is between two marks as its logarithm is.
            marks = self.value(
                "[...document.querySelectorAll('.roofline text[text-anchor=end]')]"
                ".map(e => [+e.textContent.replace(/,/g, ''), +e.getAttribute('y') - 4]).filter(([value]) => value > 0)"
            )
            (first, bottom), (last, top) = marks[0], marks[-1]
            points = self.value(
                "[...document.querySelectorAll('.roofline .measured')].map(e => +e.getAttribute('cy'))"
            )
            computing = [kernel for kernel in kernels.values() if kernel["operations"]]
            computing.sort(key=lambda kernel: kernel["operations"] / kernel["bytes"])
            self.assertEqual(len(points), len(computing))
            for kernel, y in zip((computing[0], computing[-1]), (points[0], points[-1])):
                rate = 1e-9 * kernel["operations"] / kernel["seconds"]
                self.assertAlmostEqual(y, bottom + (top - bottom) * math.log(rate / first, last / first), delta=0.5)
            self.assertEqual(self.count(".roofline .roof"), 2)
            self.assertIn(f"measured, of {limits['bandwidth_of']}", self.text(".roofline"))
        # A kernel of another plan is shown, and said to be unknown.
        with open(times, "w") as file:
            works[1]["kernels"][0]["kernel"] = "gemv_of_another_plan"
            works[1]["kernels"][1]["seconds"] = 1e-9
            file.write(json.dumps(works[1]))
        self.open_report(self.quantised(), "--measured", times)
        self.assertIn("1 kernel of it is not in this report", self.text(".roofline"))
        self.assertIn("gemv_of_another_plan", self.text(".roofline table"))
        self.assertIn("More than 100 %: the bytes came from a cache", self.text(".roofline"))
        self.check_nothing_went_wrong()

    def test_two_plans_are_compared_op_by_op(self):
        before, after = self.plan, self.path("after.plan")
        self.llamac("compile", self.model, "-o", after, "--weights", "q8_0")
        (old, was), (new, now) = self.measure(before), self.measure(after)
        self.open_report(after, "--measured", new, "--compare", before, "--compare-measured", old)
        text = self.text("#comparison")
        self.assertIn("From small.plan (before) to after.plan (after)", text)
        sizes = dict(self.cells("#comparison-body > table:nth-of-type(2) tbody tr"))
        self.assertRegex(sizes["Weights"], r"\u2192 .* \(\u2212\d+ %\)")
        self.assertNotIn("\u2192", sizes["KV cache, when full"])
        rows = {row[0]: row[1:] for row in self.cells("#comparison [role=tabpanel] tbody tr")}
        self.assertEqual(
            rows["layers.*.feed_forward.w2"][0],
            "gemv_feed_forward_w2_n64_k192_bf16\n\u2192 gemv_feed_forward_w2_n64_k192_q8_0",
        )
        self.assertEqual(rows["layers.*.feed_forward.w2"][1], "2")
        # Two launches: weights of two bytes or of 34 / 32, 192 of the input, 64 of residual and of result.
        sizes = [2 * (64 * 192 * each + 4 * (192 + 2 * 64)) / 1024 for each in (2, 34 / 32)]
        self.assertEqual(
            rows["layers.*.feed_forward.w2"][2],
            f"{sizes[0]:.1f} KiB \u2192 {sizes[1]:.1f} KiB (\u2212{100 * (1 - sizes[1] / sizes[0]):.0f} %)",
        )
        # Steps of the bench are of one row each, so times of a launch add up to those of a step.
        foot = self.cells("#comparison tfoot tr")[0]
        steps = [1e6 * work[1]["kernels"][-1]["seconds"] / 3 for work in (was, now)]
        shown = [float(part.split()[0].replace(",", "")) for part in foot[-1].split("\u2192")]
        for time, step in zip(shown, steps):
            self.assertAlmostEqual(time / step, 1, delta=0.01)
        self.check_nothing_went_wrong()


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
            # Tabs: decode's neighbour.
            self.value(f"document.querySelector('#{section} [role=tab]').focus()")
            browser.press("ArrowRight")
            self.assertEqual(self.text(f"#{section} [role=tab][aria-selected=true]"), "decode32")
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

    def test_fits_into_narrow_windows(self):
        for width in (500, 1280):
            self.check_fits(width)


if __name__ == "__main__":
    try:
        find_chromium()
    except BrowserError as error:
        sys.exit(f"cannot run: {error}")
    unittest.main()
