# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The page of llamac serve: chats, what is kept of them, keys, looks.

test_page.py          all
test_page.py Chats    one of the classes below
"""

import json
import os
from importlib import resources

import support
from page_case import ANSWER, PageCase, main, pieces
from page_server import MODEL


def axe_script():
    """axe-core, which finds what keeps people out of a page."""
    return resources.files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")


class Chats(PageCase):
    def test_an_answer_is_shown_while_it_streams(self):
        self.server.answer = lambda body: ["The first ", "words", None, ", and the last."]
        self.ask("Go on", wait=False)
        self.wait_for("document.querySelector('.answer .text').textContent.includes('words')")
        self.assertEqual(self.evaluate("byId('send').getAttribute('aria-label')"), "Stop")
        self.assertEqual(self.evaluate("document.querySelector('.answer').getAttribute('aria-busy')"), "true")
        self.server.hold.set()
        self.wait_for("app.runs.size === 0")
        self.assertEqual(self.text(".answer .text"), "The first words, and the last.")
        self.assertEqual(self.evaluate("byId('send').getAttribute('aria-label')"), "Send")

    def test_what_was_said_is_sent_with_the_settings(self):
        self.click("#open-settings")
        self.fill("#setting-system", "Be brief.")
        for name, value in (("temperature", "0.5"), ("top_k", "40"), ("max_tokens", "100"), ("seed", "7")):
            self.fill(f"#setting-{name}", value)
        self.fill("#setting-stop", "END\\n\nHalt")
        self.browser.press("Escape")
        self.ask("One")
        self.ask("Two")
        body = self.server.bodies[1]
        self.assertEqual([m["role"] for m in body["messages"]], ["system", "user", "assistant", "user"])
        self.assertEqual(body["messages"][0]["content"], "Be brief.")
        self.assertEqual(body["messages"][2]["content"], ANSWER.strip())
        del body["messages"]
        self.assertEqual(
            body,
            {"model": MODEL, "stream": True, "stream_options": {"include_usage": True, "continuous_usage_stats": True},
             "temperature": 0.5, "top_k": 40, "max_tokens": 100, "seed": 7, "stop": ["END\n", "Halt"]},
        )  # fmt: skip

    def test_a_field_out_of_range_keeps_the_settings_open(self):
        self.click("#open-settings")
        for value in ("7", "0"):
            self.evaluate("byId('setting-top_p').value = ''")
            self.fill("#setting-top_p", value)
            self.click("#settings [data-close]")
            self.assertTrue(self.evaluate("byId('settings').open"))
            self.assertTrue(self.evaluate("byId('setting-top_p').matches(':focus:invalid')"))
        self.assertIn("above 0", self.evaluate("byId('setting-top_p').validationMessage"))
        self.fill("#setting-top_p", ".5")
        self.browser.press("Escape")
        self.assertFalse(self.evaluate("byId('settings').open"))
        self.ask("One")
        self.assertEqual(self.server.bodies[0]["top_p"], 0.5)

    def test_an_answer_is_counted_by_the_server(self):
        self.server.tokens_of_piece = 3
        self.server.answer = lambda body: ["One ", "two ", None, "three"]
        self.ask("Count", wait=False)
        self.wait_for("document.querySelector('.answer .text').textContent.includes('two')")
        self.click("#send")
        self.wait_for("app.runs.size === 0")
        self.assertRegex(self.text(".answer .stats"), "^6 tokens")

    def test_stop_closes_the_connection_and_keeps_the_text(self):
        self.server.answer = lambda body: ["Some text", None, "never"]
        self.ask("Go on", wait=False)
        self.wait_for("document.querySelector('.answer .text').textContent.includes('Some')")
        self.click("#send")
        self.wait_for("app.runs.size === 0")
        self.browser.wait_for("document.querySelector('.answer .note').textContent === 'Stopped.'")
        self.assertEqual(self.text(".answer .text"), "Some text")
        deadline = 500
        while not self.server.cancelled and deadline:
            deadline -= 1
            self.evaluate("new Promise(done => setTimeout(done, 20))")
        self.assertEqual(self.server.cancelled, 1)

    def test_the_figures_of_an_answer_are_shown(self):
        self.ask("One")
        stats = self.text(".answer .stats")
        self.assertIn(f"{len(pieces(ANSWER))} tokens", stats)
        self.assertIn("tokens/s", stats)
        self.assertIn("first after", stats)
        self.assertIn("96 of 120 prompt tokens cached", stats)
        total = 120 + len(pieces(ANSWER))
        self.assertEqual(self.text("#context-text"), f"{total} of 8,192 tokens")
        self.assertEqual(self.evaluate("byId('context-meter').getAttribute('aria-valuenow')"), str(total))

    def test_answering_again_replaces_the_answer_and_can_be_undone(self):
        answers = iter(["first", "second"])
        self.server.answer = lambda body: [next(answers)]
        self.ask("One")
        self.click(".answer [aria-label='Answer again']")
        self.wait_for("app.runs.size === 0 && document.querySelector('.answer .text').textContent === 'second'")
        self.assertEqual(self.count(".message"), 2)
        self.assertEqual(self.server.bodies[0]["messages"], self.server.bodies[1]["messages"])
        self.click("#toast button")
        self.wait_for("document.querySelector('.answer .text').textContent === 'first'")

    def test_a_changed_message_is_answered_from_there(self):
        for text in ("One", "Two"):
            self.ask(text)
        self.click(".question [aria-label='Edit message']")
        self.browser.write(" and a half")
        self.browser.press("Enter")
        self.wait_for("app.runs.size === 0 && app.chat.messages.length === 2")
        sent = [m["content"] for m in self.server.bodies[-1]["messages"]]
        self.assertEqual(sent, ["One and a half"])
        self.click("#toast button")
        self.wait_for("app.chat.messages.length === 4")
        self.assertEqual(self.texts(".question .text"), ["One", "Two"])

    def test_a_chat_goes_on_while_another_one_is_shown(self):
        self.server.answer = lambda body: ["before ", None, "after"]
        self.ask("Long", wait=False)
        self.click("#new-chat")
        self.assertEqual(self.count(".message"), 0)
        self.server.hold.set()
        self.wait_for("app.runs.size === 0")
        self.click("#chats .open")
        self.wait_for("document.querySelector('.answer .text')?.textContent === 'before after'")

    def test_an_answer_that_reached_its_limit_says_so(self):
        self.server.answer = lambda body: ["cut", {"finish_reason": "length"}]
        self.ask("One")
        self.assertIn("longest length", self.text(".answer .note"))

    def test_a_thought_is_folded_and_not_sent_again(self):
        for answer in (["<think>\n", "It is 4", "2.</think>\n\n", "42"], ["It is 42.</think>", "42"],
                       [{"delta": {"reasoning_content": "It is 42."}}, "42"]):  # fmt: skip
            self.click("#new-chat")
            self.server.answer = lambda body: answer  # noqa: B023
            self.ask("What?")
            self.assertEqual(self.text(".answer > .body > .text"), "42")
            self.assertEqual(self.text(".thought .text"), "It is 42.")
            self.assertFalse(self.evaluate("document.querySelector('.thought').open"))
            self.ask("Why?")
            self.assertEqual(self.server.bodies[-1]["messages"][1], {"role": "assistant", "content": "42"})

    def test_errors_are_shown_and_can_be_tried_again(self):
        self.expected = ["503", "400"]
        for refusal, shown in [
            ((503, "the queue is full", [("Retry-After", "3")]), "the queue is full. Try again in 3 seconds."),
            ((400, "the prompt has 9000 tokens, the context 8192", []), "9000 tokens"),
        ]:
            self.server.refusal = refusal
            self.ask("One")
            self.assertIn(shown, self.text(".answer .error"))
            self.assertEqual(self.text("#announcer"), refusal[1])
            self.server.refusal = None
            self.click(".answer .error button")
            self.wait_for("app.runs.size === 0 && !document.querySelector('.answer .error')")
            self.assertIn("Sorting", self.text(".answer .text"))
            self.click("#new-chat")

    def test_an_error_within_a_stream_keeps_the_text(self):
        self.server.answer = lambda body: ["half", {"error": {"message": "the device failed"}}]
        self.ask("One")
        self.assertEqual(self.text(".answer .text"), "half")
        self.assertIn("the device failed", self.text(".answer .error"))

    def test_a_question_that_was_refused_is_not_sent_again(self):
        self.expected = ["400"]
        self.ask("Zero")
        self.server.refusal = (400, "the prompt has 9000 tokens, the context 8192")
        self.ask("One")
        self.server.refusal = None
        self.ask("Two")
        contents = [m["content"] for m in self.server.bodies[-1]["messages"]]
        self.assertEqual(contents, ["Zero", ANSWER.strip(), "Two"])

    def test_questions_beside_a_failed_answer_are_sent_as_one(self):
        self.expected = ["503"]
        self.server.refusal = (503, "busy")
        self.ask("One")
        self.server.refusal = None
        self.ask("Two")
        self.assertEqual(self.server.bodies[-1]["messages"], [{"role": "user", "content": "One\n\nTwo"}])

    def test_the_model_can_be_chosen(self):
        self.evaluate("(byId('model').value = 'another', byId('model').dispatchEvent(new Event('change')))")
        self.ask("One")
        self.assertEqual(self.server.bodies[0]["model"], "another")
        self.assertIn("of 2,048 tokens", self.text("#context-text"))
        self.open()
        self.assertEqual(self.evaluate("byId('model').value"), "another")

    def test_copying_gives_the_text_as_it_was_written(self):
        self.ask("One")
        self.browser.call("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
        for selector, expected in [
            (".answer .foot [aria-label='Copy answer']", ANSWER),
            (".code [aria-label='Copy code']", ANSWER.split("```python\n")[1].split("\n```")[0]),
            (".question [aria-label='Copy message']", "One"),
        ]:
            self.evaluate(
                "navigator.clipboard.writeText = (text) => { window.copied = text; return Promise.resolve(); }"
            )
            self.click(selector)
            self.assertEqual(self.evaluate("window.copied"), expected)


class Kept(PageCase):
    def test_a_reload_keeps_chats(self):
        self.ask("One")
        self.click("#new-chat")
        self.ask("Two")
        shown = self.evaluate("byId('messages').innerHTML")
        self.open()
        self.assertEqual(self.texts("#chats .open"), ["Two", "One"])
        self.assertEqual(self.evaluate("byId('messages').innerHTML"), shown)

    def test_a_reload_within_an_answer_keeps_what_came(self):
        self.server.answer = lambda body: ["half", None]
        self.ask("One", wait=False)
        self.wait_for("app.store.load(app.chat.id).then(chat => chat?.messages[1]?.content === 'half')")
        self.open()
        self.assertEqual(self.text(".answer .text"), "half")
        self.assertIn("Cut off", self.text(".answer .note"))

    def test_chats_are_renamed_deleted_and_brought_back(self):
        self.ask("One")
        self.click("#chats [aria-label='Rename One']")
        self.browser.write("Uno <i>")
        self.browser.press("Enter")
        self.wait_for("document.querySelector('#chats .open')?.textContent === 'Uno <i>'")
        self.open()
        self.assertEqual(self.texts("#chats .open"), ["Uno <i>"])
        self.click("#chats li button:last-child")
        self.wait_for("document.querySelectorAll('#chats li').length === 0 && app.chat.messages.length === 0")
        self.click("#toast button")
        self.wait_for("document.querySelectorAll('#chats li').length === 1 && app.chat.messages.length === 2")

    def test_a_deleted_chat_stays_deleted_when_its_answer_ends(self):
        self.server.answer = lambda body: ["half", None]
        self.ask("One", wait=False)
        self.wait_for("document.querySelectorAll('#chats li').length === 1")
        self.click("#chats li button:last-child")
        self.wait_for("app.runs.size === 0")
        self.evaluate("new Promise(done => setTimeout(done, 100))")
        self.open()
        self.assertEqual(self.count("#chats li"), 0)

    def test_a_change_in_another_window_is_shown(self):
        self.ask("One")
        self.evaluate(
            "app.store.load(app.chat.id)"
            ".then(chat => app.store.save({...chat, title: 'Elsewhere', updated: Date.now() + 1,"
            " messages: [...chat.messages, {role: 'user', content: 'Two'}]}))"
            ".then(() => new BroadcastChannel('llamac').postMessage('changed'))"
        )
        self.wait_for("document.querySelector('#chats .open').textContent === 'Elsewhere'")
        self.wait_for("document.querySelectorAll('.question').length === 2")

    def test_the_list_can_be_searched(self):
        for text in ("Apples and pears", "Bread"):
            self.ask(text)
            self.click("#new-chat")
        self.fill("#search", "PEAR app")
        self.wait_for("document.querySelectorAll('#chats li').length === 1")
        self.assertEqual(self.texts("#chats .open"), ["Apples and pears"])

    def test_what_is_exported_can_be_imported(self):
        self.click("#open-settings")
        self.fill("#setting-system", "Be brief.")
        self.fill("#setting-temperature", "0.5")
        self.browser.press("Escape")
        self.ask("One")
        exported = self.evaluate("JSON.stringify(chatToJson(app.chat))")
        chat, first = json.loads(exported), self.evaluate("app.chat.id")
        self.assertEqual([m["role"] for m in chat["messages"]], ["system", "user", "assistant"])
        self.assertEqual((chat["temperature"], chat["metadata"]["title"]), (0.5, "One"))
        self.import_files(exported)
        # The list shows a chat before it is opened.
        self.wait_for(f"app.chat.id !== {json.dumps(first)}")
        self.assertEqual(self.evaluate("JSON.stringify(chatToJson(app.chat))"), exported)

    def test_exporting_downloads_a_file(self):
        self.ask("One")
        self.click("#new-chat")
        self.ask("Two")
        self.browser.call("Page.setDownloadBehavior", behavior="allow", downloadPath=self.folder)
        self.click("#export")
        path = self.path("chats.json")
        for _ in range(500):
            if os.path.exists(path):
                break
            self.evaluate("new Promise(done => setTimeout(done, 20))")
        with open(path) as file:
            titles = [chat["metadata"]["title"] for chat in json.load(file)]
        self.assertEqual(titles, ["Two", "One"])

    def import_files(self, *texts):
        paths = []
        for i, text in enumerate(texts):
            paths.append(self.path(f"import-{i}.json"))
            with open(paths[-1], "w") as file:
                file.write(text)
        self.browser.choose_files("#import-file", *paths)

    def test_other_forms_of_chats_are_imported(self):
        messages = [
            {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
            {"role": "assistant", "content": "Ho"},
        ]
        line = json.dumps({"messages": messages})
        self.import_files(json.dumps(messages), line + "\n" + line + "\n")
        self.wait_for("document.querySelector('.question .text')?.textContent === 'Hi'")
        self.assertEqual(self.count("#chats li"), 3)

    def test_what_is_no_chat_is_refused_by_name(self):
        for text, why in [
            ("{", "JSON"),
            ("{}", "no messages"),
            ("[1]", "no messages"),
            ('{"messages": [{"role": "tool", "content": "x"}]}', '"tool"'),
            ('{"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}', "other than text"),
            ('{"messages": [{"role": "user"}]}', "other than text"),
        ]:
            self.import_files(text)
            self.wait_for("!byId('banner').hidden")
            self.assertIn(why, self.text("#banner"))
            self.click("#banner [aria-label='Dismiss']")
            self.assertEqual(self.count("#chats li"), 0)

    def test_a_key_is_asked_for_and_kept_for_the_window_alone(self):
        self.expected = ["401"]
        self.server.key = "secret"
        self.open()
        self.assertIn("asks for a key", self.text("#banner"))
        self.click("#banner .labelled")
        self.fill("#key", "secret")
        self.browser.press("Enter")
        self.wait_for("app.models.length === 2 && byId('banner').hidden && !byId('settings').open")
        self.ask("One")
        self.assertEqual(self.evaluate("[sessionStorage['llamac-key'], localStorage['llamac-key']]"), ["secret", None])
        self.click("#key-remember")
        self.assertEqual(self.evaluate("[sessionStorage['llamac-key'], localStorage['llamac-key']]"), [None, "secret"])

    def test_without_a_data_base_the_page_works(self):
        self.browser.call("Page.enable")
        script = "Object.defineProperty(window, 'indexedDB', {value: undefined})"
        identifier = self.browser.call("Page.addScriptToEvaluateOnNewDocument", source=script)["identifier"]
        self.open()
        self.browser.call("Page.removeScriptToEvaluateOnNewDocument", identifier=identifier)
        self.ask("One")
        self.click("#new-chat")
        self.click("#chats .open")
        self.wait_for("document.querySelectorAll('.message').length === 2")


class Keyboard(PageCase):
    def test_a_chat_needs_no_mouse(self):
        press, write = self.browser.press, self.browser.write
        self.assertEqual(self.focused(), "prompt")
        write("First")
        press("Enter", shift=True)
        write("line")
        self.assertEqual(self.evaluate("byId('prompt').value"), "First\nline")
        press("Enter")
        self.wait_for("app.runs.size === 0 && app.chat.messages.length === 2")
        press("ArrowUp")
        self.assertEqual(self.focused(), "Message")
        write("!")
        press("Escape")
        self.assertEqual(self.focused(), "prompt")
        self.assertEqual(self.text(".question .text"), "First\nline")
        press("ArrowUp")
        write("?")
        press("Enter")
        self.wait_for("app.runs.size === 0 && app.chat.messages.length === 2")
        self.assertEqual(self.text(".question .text"), "First\nline?")
        press("r", alt=True)
        self.wait_for("app.runs.size === 0")
        self.wait_for("document.querySelectorAll('.answer').length === 1")
        self.assertEqual(len(self.server.bodies), 3)
        press("n", alt=True)
        self.assertEqual(self.count(".message"), 0)
        self.assertEqual(self.focused(), "prompt")

    def test_escape_stops_the_answer(self):
        self.server.answer = lambda body: ["half", None]
        self.ask("One", wait=False)
        self.browser.press("Escape")
        self.wait_for("app.runs.size === 0")
        self.assertEqual(self.text(".answer .note"), "Stopped.")

    def test_escape_within_a_dialog_closes_it_alone(self):
        self.server.answer = lambda body: ["half", None]
        self.ask("One", wait=False)
        for key, dialog in (("/", "help"), ("s", "settings")):
            self.browser.press(key, alt=True)
            self.assertTrue(self.evaluate(f"byId('{dialog}').open"))
            self.browser.press("Escape")
            self.wait_for(f"!byId('{dialog}').open")
        self.assertEqual(self.evaluate("app.runs.size"), 1)
        self.server.hold.set()

    def test_enter_that_ends_a_composed_word_does_not_send(self):
        self.fill("#prompt", "\u3053\u3093")
        self.evaluate(
            "byId('prompt').dispatchEvent("
            "new KeyboardEvent('keydown', {key: 'Enter', isComposing: true, bubbles: true}))"
        )
        self.assertEqual(self.evaluate("app.chat.messages.length"), 0)

    def test_tab_reaches_everything_and_shows_where_it_is(self):
        self.ask("One")
        self.evaluate("document.activeElement.blur()")
        wanted = self.evaluate(
            "[...document.querySelectorAll('button, a, input, select, textarea, [tabindex=\"0\"]')]"
            ".filter(e => e.checkVisibility()"
            " && e.tabIndex >= 0 && !e.disabled).map(e => e.dataset.probe = Math.random().toString())"
        )
        reached = []
        for _ in range(len(wanted) + 2):
            self.browser.press("Tab")
            probe, ring = self.evaluate(
                "[document.activeElement.dataset.probe,"
                " getComputedStyle(document.activeElement).outlineStyle !== 'none'"
                " || document.activeElement.id === 'prompt']"
            )
            reached.append(probe)
            self.assertTrue(ring or probe is None, self.focused())
        self.assertEqual(set(wanted) - set(reached), set())

    def test_arrows_move_between_the_views(self):
        self.evaluate("byId('tab-chat').focus()")
        self.browser.press("ArrowRight")
        self.assertEqual(self.focused(), "tab-server")
        self.assertFalse(self.evaluate("byId('server').hidden"))
        self.browser.press("ArrowRight")
        self.assertTrue(self.evaluate("byId('server').hidden"))

    def test_only_the_end_of_an_answer_is_announced(self):
        self.evaluate(
            "window.said = [], new MutationObserver(() => window.said.push(byId('announcer').textContent))"
            ".observe(byId('announcer'), {childList: true}), 0"
        )
        self.server.answer = lambda body: pieces("word " * 100)
        self.ask("One")
        said = self.evaluate("window.said")
        self.assertEqual(said[0], "Answering")
        self.assertEqual(len(said), 2)
        self.assertTrue(said[1].startswith("Answer complete. word word"), said[1])
        self.assertEqual(self.count("[aria-live]"), 1)


class Looks(PageCase):
    def states(self):
        """The page in its states, each with its name."""
        self.ask("What sorts faster?")
        yield "chat"
        self.click("#open-settings")
        yield "settings"
        self.evaluate("byId('settings').close()")
        self.evaluate("byId('help').showModal()")
        yield "keys"
        self.evaluate("byId('help').close()")
        if self.evaluate("isNarrow()"):
            self.click("#menu")
            yield "drawer"
            self.browser.press("Escape")
        self.evaluate("[...document.querySelectorAll('.question [aria-label=\"Edit message\"]')].at(-1).click()")
        yield "editing"
        self.browser.press("Escape")
        self.click("#tab-server")
        self.wait_for("document.querySelectorAll('.kernels tbody tr').length > 0")
        self.wait_for("document.querySelectorAll('.plot svg').length === 4")
        yield "server"
        self.server.refusal = (503, "the queue is full")
        self.click("#new-chat")
        self.ask("And now?")
        yield "error"
        self.server.refusal = None
        self.click("#new-chat")
        yield "empty"

    def test_nothing_keeps_people_out(self):
        axe = axe_script()
        violations = (
            "axe.run(document, {resultTypes: ['violations'], runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa',"
            " 'wcag22aa', 'best-practice']}).then(result => result.violations.map(v => [v.id,"
            " ...v.nodes.map(n => n.html.slice(0, 150) + ' ' + (n.any[0]?.message ?? ''))]))"
        )
        self.expected = ["503"]
        for width, scheme in support.by_tier(
            [(360, "dark"), (1600, "light")], [(w, s) for w in (360, 900, 1600) for s in ("light", "dark")]
        ):
            self.browser.resize(width)
            self.browser.prefer(scheme)
            self.open()
            self.evaluate(axe + "; 0")
            self.evaluate("document.body.append(el('button', {id: 'nameless'}))")
            self.assertIn("button-name", [name for name, *_ in self.evaluate(violations)])
            self.evaluate("byId('nameless').remove()")
            for state in self.states():
                # Buttons that come up with the mouse are judged as they look then.
                self.evaluate(
                    "for (const e of document.querySelectorAll('.actions'))"
                    " e.style.cssText = 'opacity: 1; transition: none'"
                )
                with self.subTest(state=state, width=width, scheme=scheme):
                    self.assertEqual(self.evaluate(violations), [])
            self.browser.prefer("light")
            self.browser.resize(1280)

    def test_windows_from_360_to_2000_pixels_need_no_scrolling_to_the_side(self):
        self.expected = ["503"]
        wide = "x" * 300
        self.server.answer = lambda body: pieces(
            f"{ANSWER}\n\n{wide}\n\n`{wide}`\n\n```\n{wide}\n```\n\n|{wide}|b|\n|-|-|\n", 40
        )
        for width in support.by_tier((360, 900, 2000), (360, 420, 600, 768, 899, 900, 1280, 1600, 2000)):
            self.browser.resize(width)
            self.open()
            for state in self.states():
                outside = self.evaluate(
                    "[...document.querySelectorAll('body *')].filter(e => e.checkVisibility()"
                    " && !e.closest('.wide, pre, .hidden, .skip, svg')"
                    " && (e.getBoundingClientRect().right > innerWidth + 1 || e.getBoundingClientRect().left < -1))"
                    ".map(e => e.outerHTML.slice(0, 120))"
                )
                with self.subTest(state=state, width=width):
                    self.assertEqual(outside, [])
                    too_wide = "[document.documentElement, byId('scroller'), byId('server')]"
                    too_wide += ".filter(e => e.scrollWidth > e.clientWidth).map(e => e.id || e.localName)"
                    self.assertEqual(self.evaluate(too_wide), [])
        self.browser.resize(1280)

    def test_each_view_has_one_bar_to_scroll_it(self):
        # Hidden titles of messages have a place in the conversation alone.
        self.open()
        for _ in range(3):
            self.ask("Hello", wait=True)
        for view in ("chat", "server"):
            self.evaluate(f"byId('tab-{view}').click()")
            beyond = "[document.scrollingElement, document.body, byId('page'), document.querySelector('main')]"
            beyond += ".filter(e => e.scrollHeight > e.clientHeight).map(e => e.localName)"
            with self.subTest(view=view):
                self.assertEqual(self.evaluate(beyond), [])
        self.evaluate("byId('tab-chat').click()")
        self.assertGreater(self.evaluate("byId('scroller').scrollHeight - byId('scroller').clientHeight"), 500)

    def test_colours_follow_the_system_and_the_switch(self):
        def background():
            return self.evaluate("getComputedStyle(document.body).backgroundColor")

        colours = {}
        for scheme in ("light", "dark"):
            self.browser.prefer(scheme)
            colours[scheme] = background()
        self.assertNotEqual(colours["light"], colours["dark"])
        self.click("#theme")
        self.assertEqual(background(), colours["light"])
        self.click("#theme")
        self.assertEqual(background(), colours["dark"])
        self.browser.prefer("light")
        self.open()
        self.assertEqual(background(), colours["dark"])
        self.click("#theme")
        self.assertEqual(background(), colours["light"])


class ServerTab(PageCase):
    def open_tab(self):
        self.click("#tab-server")
        self.wait_for("document.querySelectorAll('.plot svg').length === 4")
        self.wait_for("document.querySelectorAll('.kernels tbody tr').length > 0")

    def test_figures_are_those_of_the_chosen_model(self):
        self.open_tab()
        cards = dict(zip(self.texts(".cards dt"), self.texts(".cards strong")))
        self.assertEqual(
            cards, {"Running": "3", "Waiting": "2", "Cache": "38 %", "Prefix hits": "25 %", "Preempted": "7"}
        )
        self.evaluate("(byId('model').value = 'another', byId('model').dispatchEvent(new Event('change')))")
        self.wait_for("document.querySelector('.cards strong').textContent === '40'")

    def test_rates_follow_from_counters(self):
        self.evaluate(
            "[[8, 0], [10, 0], [12, 30]].forEach(([time, tokens]) => { performance.now = () => 1000 * time;"
            " app.server.add({'vllm:generation_tokens_total': tokens, 'vllm:prompt_tokens_total': 0}); })"
        )
        self.assertEqual(self.text("#server figure:first-child strong"), "15 tokens/s")
        points = self.evaluate("document.querySelector('#server polyline').getAttribute('points')")
        self.assertEqual(points, "298.0,100.00 300.0,25.00")

    def test_charts_begin_with_what_the_server_kept(self):
        tokens, running = "vllm:generation_tokens_total", "vllm:num_requests_running"
        self.server.history = {"seconds_ago": [150, 100, 50], "figures": {tokens: [0, 500, 2500], running: [0, 1, 4]}}
        self.open_tab()
        shown = self.evaluate(
            "['0', '2'].map(i => document.querySelectorAll('#server figure')[i].querySelector('polyline')"
            ".getAttribute('points').split(' ').slice(0, 3).map(point => point.split(',').map(x => Math.round(x))))"
        )
        self.assertEqual([y for _, y in shown[0][:2]], [80, 20])  # 10 and 40 tokens/s of 50
        self.assertEqual([y for _, y in shown[1]], [100, 75, 0])  # 0, 1 and 4 requests of 4
        for (x, _), expected in zip(shown[1], (150, 200, 250)):
            self.assertAlmostEqual(x, expected, delta=3)

    def test_kernels_have_their_share_of_the_limit(self):
        self.open_tab()
        rows = self.evaluate(
            "[...document.querySelectorAll('.kernels tbody tr')].map(r => [...r.cells].map(c => c.textContent))"
        )
        self.assertEqual(rows[0][:3], ["qkv_n960_k576", "matmul", "30"])
        self.assertEqual(rows[0][6:], ["16.0 %", "83.0 %"])
        self.assertEqual(rows[-1][5:], ["\u2013"] * 3)
        self.assertIn("A dash", self.text(".kernels"))

    def test_the_server_is_asked_only_while_it_is_looked_at(self):
        self.open_tab()
        self.click("#tab-chat")
        self.evaluate("1")
        self.browser.requests.clear()
        self.evaluate("new Promise(done => setTimeout(done, 1300))")
        self.assertEqual(self.browser.requests, [])
        self.click("#tab-server")
        self.wait_for("app.server.samples.length > 1")

    def test_a_server_that_does_not_answer_is_said(self):
        self.expected = ["401"]
        self.server.key = "secret"
        self.click("#tab-server")
        self.wait_for("!app.server.problem.hidden")
        self.assertIn("no key", self.text("#server .error"))


if __name__ == "__main__":
    main("axe_playwright_python")
