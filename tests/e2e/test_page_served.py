# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The page as `llamac serve` serves it, with the real model."""

import support
from page_case import PageCase, main
from page_server import assemble
from serving import MODEL, Server, smollm2_plan, wait_for

KEY = "a key of the test"


class ServedPage(PageCase):
    """The tests of a class share a server."""

    @classmethod
    def options(cls):
        return ()

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.real = Server([smollm2_plan(cls)], cls.path("access.log"), *cls.options())
        cls.addClassCleanup(cls.real.__exit__, None, None, None)

    def serve(self):
        """Forgets what tests before have kept."""
        self.browser.call("Storage.clearDataForOrigin", origin=self.real.url, storageTypes="all")
        return f"{self.real.url}/"


class Served(ServedPage):
    def test_it_is_the_page_that_the_other_tests_see(self):
        page, policy = assemble()
        status, fields, body = self.real.request("GET", "/")
        self.assertEqual((status, body), (200, page))
        self.assertEqual(set(fields["Content-Security-Policy"].split("; ")), set(policy.split("; ")))

    def test_a_question_is_answered(self):
        self.click("#open-settings")
        self.fill("#setting-temperature", "0")
        self.fill("#setting-max_tokens", "40")
        self.browser.press("Escape")
        self.ask("What is the capital of France?")
        body = {"model": MODEL, "messages": [{"role": "user", "content": "What is the capital of France?"}]}
        answer = self.real.post("/v1/chat/completions", body | {"temperature": 0, "max_tokens": 40})
        self.assertEqual(self.evaluate("app.chat.messages[1].content"), answer["choices"][0]["message"]["content"])
        self.assertIn(f"{answer['usage']['completion_tokens']} tokens", self.text(".answer .stats"))
        self.ask("And of Italy?")
        self.assertIn("prompt tokens cached", self.text(".message:last-child .stats"))
        self.assertRegex(self.text("#context-text"), "[0-9]+ of [0-9,]+ tokens")

    def test_all_settings_are_taken(self):
        self.click("#open-settings")
        self.fill("#setting-system", "Be brief.")
        for name, value in [
            ("temperature", 0.7),
            ("top_p", 0.9),
            ("top_k", 40),
            ("min_p", 0.05),
            ("max_tokens", 5),
            ("seed", 1),
        ]:
            self.fill(f"#setting-{name}", str(value))
        self.fill("#setting-stop", "END")
        self.browser.press("Escape")
        self.ask("Hello")
        self.assertIsNone(self.text(".answer .error"))

    def test_stop_frees_the_slot(self):
        self.click("#open-settings")
        self.fill("#setting-max_tokens", "1500")
        self.browser.press("Escape")
        self.ask("Count from one to a thousand, in words.", wait=False)
        self.wait_for("app.chat.messages[1].content.length > 0")
        self.assertEqual(self.real.metric("num_requests_running"), 1)
        self.browser.press("Escape")
        self.wait_for("app.runs.size === 0")
        self.assertTrue(wait_for(lambda: self.real.metric("num_requests_running") == 0, seconds=10))

    def test_the_tab_of_the_server_shows_its_figures(self):
        self.ask("Hello")
        self.click("#tab-server")
        self.wait_for("document.querySelectorAll('.kernels tbody tr').length > 3")
        self.wait_for("app.server.samples.length > 1")
        self.assertEqual(self.texts(".cards strong")[:2], ["0", "0"])
        self.assertTrue(self.evaluate("app.server.problem.hidden"))

    def test_an_error_of_the_server_is_shown(self):
        self.expected = ["400"]
        self.fill("#prompt", "x " * 10_000)
        self.browser.press("Enter")
        self.wait_for("document.querySelector('.answer .error') !== null")
        self.assertRegex(self.text(".answer .error"), "[0-9]{4,}")


class WithKey(ServedPage):
    @classmethod
    def options(cls):
        keys = cls.path("keys")
        with open(keys, "w") as file:
            file.write(KEY)
        return "--api-key-file", keys

    def test_the_key_opens_the_server(self):
        self.expected = ["401"]
        self.assertIn("asks for a key", self.text("#banner"))
        self.click("#banner .labelled")
        self.fill("#key", KEY)
        self.browser.press("Enter")
        self.wait_for("app.models.length === 1 && byId('banner').hidden")


if __name__ == "__main__":
    support.require_model("smollm2.gguf")
    main()
