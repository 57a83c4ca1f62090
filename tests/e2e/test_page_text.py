# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The page of llamac serve: text as elements. Hostile text stays text, markdown is
CommonMark's, long answers leave the page usable.

    test_page_text.py            all
    test_page_text.py Hostile    one of the classes below
"""

import json
import os
import random
import re
import time
import unittest
from html.parser import HTMLParser

import support
from page_case import ANSWER, PageCase, main, pieces
from page_server import PAGE

# These payloads must stay text, wherever they stand.
PAYLOADS = [
    "<script>window.hit = 1</script>",
    "<img src=x onerror=window.hit=1>",
    "<svg/onload=window.hit=1>",
    "<iframe srcdoc='<script>parent.hit=1</script>'></iframe>",
    "<details open ontoggle=window.hit=1>",
    "</title><script>window.hit=1</script>",
    "</textarea><script>window.hit=1</script>",
    "'\"><img src=x onerror=window.hit=1>",
    "<a href=javascript:window.hit=1>x</a>",
    "<math><mtext></form><form><mglyph><style></math><img src onerror=window.hit=1>",
    "<style>@import url(https://evil.example/x)</style>",
    "<link rel=stylesheet href=https://evil.example/x>",
    "<meta http-equiv=refresh content='0;url=https://evil.example'>",
    "<base href=https://evil.example>",
    "<form action=https://evil.example><button>x</button></form>",
    "<object data=https://evil.example></object>",
    "<!--<img src=--><img src=x onerror=window.hit=1>",
    "&lt;script&gt;window.hit=1&lt;/script&gt;",
    "[x](javascript:window.hit=1)",
    "[x](JaVaScRiPt:window.hit=1)",
    "[x](&#106;avascript:window.hit=1)",
    "[x](java\tscript:window.hit=1)",
    "[x](\x01javascript:window.hit=1)",
    "[x](data:text/html,<script>window.hit=1</script>)",
    "[x](vbscript:x)",
    "[x](blob:https://evil.example/x)",
    "[x](file:///etc/passwd)",
    "[x](//evil.example)",
    "[x](https://ok.example/\"onmouseover=window.hit=1)",
    "[x](https://ok.example 'onmouseover=window.hit=1')",
    "![x](https://evil.example/x.png)",
    "![<img src=x onerror=window.hit=1>](https://evil.example/x.png)",
    "![x](javascript:window.hit=1)",
    "<javascript:window.hit=1>",
    "[<script>window.hit=1</script>](https://ok.example)",
    "[a](https://ok.example)[b](javascript:window.hit=1)",
    "```<script>window.hit=1</script>\n<script>window.hit=1</script>\n```",
    "```\"onclick=window.hit=1\n</code></pre><script>window.hit=1</script>\n```",
    "```js\n</script><script>window.hit=1</script>\n```",
    "```html\n<img src=x onerror=window.hit=1>\n```",
    "`<img src=x onerror=window.hit=1>`",
    "| <img src=x onerror=window.hit=1> | b |\n|---|---|\n| <script>window.hit=1</script> | [x](javascript:hit) |",
    "# <img src=x onerror=window.hit=1>",
    "> <img src=x onerror=window.hit=1>",
    "- <img src=x onerror=window.hit=1>",
    "<think><img src=x onerror=window.hit=1></think><img src=x onerror=window.hit=1>",
    "**<img src=x onerror=window.hit=1>**",
    "{{constructor.constructor('window.hit=1')()}}",
    "${window.hit=1}",
    "\u202e<script>window.hit=1</script>",
    "__proto__",
    "constructor",
]  # fmt: skip

# Elements that no text of a chat may become.
FORBIDDEN = (
    "script:not(body > script), img, iframe, object, embed, link:not([rel=icon]), base, math,"
    " meta:not(head > meta), style:not(head > style), form:not(#key-form)"
)


class Hostile(PageCase):
    def check_is_text(self):
        self.assertIsNone(self.evaluate("window.hit ?? null"))
        self.assertEqual(self.count(FORBIDDEN), 0)
        attributes = "[...document.querySelectorAll('*')].flatMap(e => [...e.attributes].map(a => a.name))"
        self.assertEqual([name for name in self.evaluate(attributes) if name.startswith("on")], [])
        addresses = self.evaluate("[...document.querySelectorAll('#messages a')].map(a => [a.href, a.rel, a.target])")
        for address, rel, target in addresses:
            self.assertRegex(address, "^(https?://|mailto:)")
            self.assertEqual((rel, target), ("noopener noreferrer", "_blank"))

    def test_payloads_in_answers_and_questions_are_text(self):
        self.server.answer = lambda body: pieces("\n\n".join(PAYLOADS), 7)
        self.ask("\n".join(PAYLOADS))
        self.check_is_text()
        # Characters that a field of text does not take are not those of the payloads.
        self.assertIn("<img src=x onerror=window.hit=1>", self.text(".question .text"))
        self.assertIn("<script>window.hit = 1</script>", self.text(".answer .text"))

    def test_each_payload_alone_is_text(self):
        for payload in PAYLOADS:
            with self.subTest(payload):
                messages = [{"role": role, "content": payload} for role in ("user", "assistant")]
                self.evaluate(f"showChat({{...newChat(), messages: {json.dumps(messages)}}})")
                self.check_is_text()

    def test_payloads_in_titles_and_imports_are_text(self):
        chats = [
            {"messages": [{"role": role, "content": p} for role in ("system", "user", "assistant")],
             "metadata": {"title": p}, "stop": [p], "temperature": p, "__proto__": {"title": p}}
            for p in PAYLOADS
        ]  # fmt: skip
        path = self.path("hostile.json")
        with open(path, "w") as file:
            json.dump(chats, file)
        self.browser.choose_files("#import-file", path)
        self.wait_for(f"document.querySelectorAll('#chats li').length === {len(PAYLOADS)}")
        self.click("#open-settings")
        self.check_is_text()
        self.assertEqual(sorted(self.texts("#chats .open")), sorted(p.strip() for p in PAYLOADS))
        self.evaluate("byId('settings').close()")
        self.click("#chats [aria-label^='Rename']")
        self.check_is_text()

    def test_payloads_of_the_server_are_text(self):
        hostile = "<img src=x onerror=window.hit=1>"
        self.expected = ["503"]
        self.server.refusal = (503, hostile)
        self.ask("One")
        self.assertIn(hostile, self.text(".answer .error"))
        self.evaluate(
            "(app.server.kernels.replaceChildren(...kernelTable({device: 'x', kernels: [{name: HOSTILE, kind: HOSTILE,"
            " launches: 1, bytes: 1, flops: 1, seconds: null, share_of_step: null, share_of_limit: null}]})), 0)".replace(
                "HOSTILE", json.dumps(hostile)
            )
        )
        self.check_is_text()

    def test_only_the_page_s_own_style_and_script_run(self):
        self.expected = ["Content Security Policy", "'Trusted"]
        self.evaluate(
            "(() => { const script = document.createElement('script'); try { script.textContent = 'window.hit = 1'; }"
            " catch {} document.body.append(script); script.remove(); })()"
        )
        self.evaluate("(() => { try { document.body.insertAdjacentHTML('beforeend', '<b>x</b>'); } catch {} })()")
        self.check_is_text()

    def test_what_the_libraries_might_write_is_cleaned(self):
        """The libraries seem to write what they were given."""
        self.expected = ["Content Security Policy"]  # The error of a document that is not shown.
        for payload in [*PAYLOADS, "<p style=color:red id=prompt name=x data-x=1 onclick=hit()>x</p>", "<input autofocus>"]:
            with self.subTest(payload):
                elements = self.evaluate(
                    f"[...clean({json.dumps(payload)}).querySelectorAll('*')].map(e => [e.localName, e.getAttributeNames(),"
                    " e.getAttribute('href')])"
                )
                for name, attributes, address in elements:
                    self.assertIn(name, ("a", "code", "p", "pre", "li", "ul"))
                    self.assertLessEqual(set(attributes), {"href"})
                    self.assertRegex(address or "https://", "^(https?://|mailto:)")

    def test_the_source_makes_no_elements_of_text(self):
        for name in os.listdir(PAGE):
            with open(os.path.join(PAGE, name), encoding="utf-8") as file:
                source = file.read()
            for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "DOMParser",
                         "createContextualFragment", "srcdoc", "new Function"):  # fmt: skip
                self.assertNotIn(word, source, name)


class Tree(HTMLParser):
    """HTML as nested lists, without what only looks: classes, and paragraphs in the
    items of lists."""

    VOID = ("br", "hr")
    TAGS = {f"h{i}": "heading" for i in range(1, 7)} | {
        "div": None,
        "button": None,
        "svg": None,
        "path": None,
        "span": None,
    }
    TAGS |= {"tbody": None, "thead": None}

    def __init__(self, html):
        super().__init__()
        self.root = ["root"]
        self.open = [self.root]
        self.skipped = 0
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if self.skipped or attributes.get("class") == "code-head":
            self.skipped += tag not in ("path",)
            return
        name = self.TAGS.get(tag, tag)
        if tag == "p" and self.open[-1][0] == "li":
            name = None
        node = [name, *(attributes[k] for k in ("href", "start") if k in attributes)]
        if name:
            self.open[-1].append(node)
        if tag not in self.VOID:
            self.open.append(node if name else self.open[-1])

    def handle_endtag(self, tag):
        if self.skipped:
            self.skipped -= tag not in ("path",)
        elif tag not in self.VOID:
            self.open.pop()

    def handle_data(self, text):
        node = self.open[-1]
        text = text if node[0] in ("code", "p") else text.strip("\n")
        if self.skipped or not text:
            return
        if isinstance(node[-1], str) and len(node) > 1 and node[0] != "a":
            node[-1] += text
        else:
            node.append(text)


def tree(html):
    def tidy(node):
        if isinstance(node, str):
            return node
        children = [tidy(child) for child in node[1:]]
        if node[0] == "code" and children:
            children[-1] = children[-1].rstrip("\n")
        return [node[0], *(child for child in children if child not in ("", " "))]

    return tidy(Tree(html).root)


# Where the page follows CommonMark and GitHub's tables.
COMMONMARK = [
    ANSWER,
    "Plain text.\nSecond line.\n\nSecond paragraph.",
    "# One #\n## Two\n###### Six\n####### seven\n#none",
    "*a* **b** ***c*** _d_ __e__ ~~f~~ a*b*c snake_case_name 2 * 3 * 4",
    "**a *b* c** *a **b** c*",
    "**open *and `code` **",
    "`a` ``b ` c`` `` ` `` `unclosed",
    "\\*no\\* \\\\ \\a 1\\. \\`x\\`",
    '[a](https://x.org/) [b](https://x.org/a_(b)_c) [c](<https://x.org/> "title") [d] [e][] [f](no',
    "<https://x.org/?a=b&c=d> <me@x.org> a < b > c <5",
    "&amp; &lt;b&gt; &quot; &unknown; &",
    "- a\n- b\n  - c\n    - d\n- e",
    "* a\n\n  second paragraph\n\n* b",
    "3. three\n4. four\n\n   more\n5. five",
    "0. zero\n1. one",
    "1. one\n   ```sh\n   ls -l\n   ```\n2. two\n   > quote",
    "> a\n> b\n>\n> - c\n> - d\n\nafter",
    "> > nested\n> one",
    "```\na\n  b\n```\n~~~python\n```\n~~~\n````\n```\n````",
    "```c++ title=x\nint a;\n```",
    "```\nunclosed\n\ncode",
    "    indented\n      code\n\n    more\n\ntext",
    "a\n***\nb\n___\n- - -\nc",
    "| a | b |\n|---|--:|\n| 1 | 2 |\n| `x` | **y** |\n| only |\n| 1 | 2 | 3 |",
    "a | b\n--|--\n1 \\| 2 | 3\n\nafter",
    "text\n| a |\n|---|\n| b |",
    "text\n- list\n1. one",
    "*a\nb*\n**c\nd**",
    "-\n- a\n- b",
    "a\\\nb".replace("\\\n", "\n"),
    "**\u201cquoted\u201d** und *\u00fcber* \u4e2d**\u6587**\u5b57",
]


class Markdown(PageCase):
    def test_elements_are_those_of_commonmark(self):
        from markdown_it import MarkdownIt

        oracle = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
        for text in COMMONMARK:
            with self.subTest(text):
                expected = oracle.render(text).replace("<s>", "<del>").replace("</s>", "</del>")
                self.assertEqual(tree(self.render(text)), tree(expected))

    def test_text_that_grows_ends_as_text_that_came_at_once(self):
        texts = COMMONMARK + ["\n\n".join(COMMONMARK)]
        generator = random.Random(1)
        alphabet = [*"*_`|a [)\n\\", "**", "```", "\n\n", "- ", "1. ", "> ", "# ", "|-|", "  ", "word "]
        alphabet += ["[x](https://x.org)", "](", "<br>", "~~", "![", "https://x.org", "---", "    "]
        for _ in range(support.by_tier(50, 3000)):
            texts.append("".join(generator.choices(alphabet, k=generator.randint(1, 60))))
        for text in texts:
            with self.subTest(text):
                whole = self.render(text)
                self.assertEqual(self.render(text, step=support.by_tier(3, 1)), whole)

    def test_bold_whose_end_has_not_come_is_bold(self):
        for text, shown in [
            ("a **b", "<p>a <strong>b</strong></p>"),
            ("- **b c", "<ul><li><p><strong>b c</strong></p>\n</li></ul>"),
            ("**a** b", "<p><strong>a</strong> b</p>"),
            ("2 ** 3", "<p>2 ** 3</p>"),
        ]:
            with self.subTest(text):
                shown_now = f"(() => {{ const host = el('div'); new MarkdownView(host).update({json.dumps(text)}, false);"
                self.assertEqual(self.evaluate(shown_now + " return host.innerHTML; })()"), shown)

    def test_formulas_stay_as_they_were_written(self):
        for text in ("$a_i + b_i * c$", "$$x_{1} < y_{2}$$", "$\\alpha_1 * \\beta_1$"):
            self.assertEqual(self.evaluate(f"clean({json.dumps(self.render(text))}).textContent"), text)

    def test_code_keeps_its_tabs(self):
        text = "all:\n\tcc a.c\n\t\tb"
        for before, indent in (("", ""), ("- a\n\n", "  "), ("1. a\n\n", "\t")):
            code = "\n".join(indent + line for line in ["```make", *text.split("\n"), "```"])
            with self.subTest(before):
                self.evaluate("window.copied = null, navigator.clipboard.writeText = async (t) => { copied = t; }, 0")
                self.evaluate(f"(() => {{ const host = el('div'); new MarkdownView(host).update("
                              f"{json.dumps(before + code)}, true); host.querySelector('.code button').click(); }})()")  # fmt: skip
                self.assertEqual(self.evaluate("window.copied"), text)

    def test_addresses_in_text_are_links_without_what_ends_the_sentence(self):
        for text, address in [
            ("See https://x.org/a, then", "https://x.org/a"),
            ("(https://x.org/a)", "https://x.org/a"),
            ("https://x.org/a_(b).", "https://x.org/a_(b)"),
            ("**https://x.org/a**", "https://x.org/a"),
        ]:
            self.assertIn(f'href="{address}"', self.render(text))

    def test_a_picture_is_a_link_and_is_not_loaded(self):
        html = self.render("![a cat](https://x.org/cat.png)")
        self.assertNotIn("<img", html)
        self.assertIn('href="https://x.org/cat.png"', html)

    def test_tasks_say_whether_they_are_done(self):
        html = self.render("- [x] one\n- [ ] two")
        self.assertIn('aria-label="done"', html)
        self.assertIn('aria-label="not done"', html)

    def test_text_that_is_made_to_be_slow_is_not(self):
        # Each would take hours where the time grows with the square of the length.
        n = support.by_tier(2_000, 200_000)
        marks = [*"[*_`<&\\#>|\"'\n", "](", "![", "*a ", "**a ", "` `` ", "~~", "<a", "# ", "> ", "- ", "|-", "-|"]
        marks += ["    ", "https://", "https://x.org/.", "[x](", "[x](y ", "\n>", "\n-", "\n1.", "\n```\n"]
        marks += ["/*", "<!--", '"""', "a\n|-|\n", "> - a\n", "> a\n>\n", "|a|b|\n"]
        for unit in marks:
            with self.subTest(unit):
                self.render(unit * n)
                self.render("```py\n" + unit * n)

    def test_code_is_coloured_by_its_language(self):
        for language, text, kinds in [
            (
                "python",
                'def f(x):  # "no"\n    return "#" + 1',
                ["keyword", "title", "comment", "keyword", "string", "number"],
            ),
            ("c", 'char *a = "x"; /* b\nc */ int b = 0x1F;', ["keyword", "string", "comment", "comment", "keyword", "number"]),
            ("json", '{"a": "b", "c": [1, true]}', ["attr", "string", "attr", "number", "literal"]),
            ("sql", "SELECT a -- b\nFROM t", ["keyword", "comment", "keyword"]),
            ("cuda", "int a;", ["keyword"]),
            ("text", "if 1 # no", []),
            ("constructor", "if 1 # no", []),
            ("diff", "-a\n+b\n c", ["deletion", "addition"]),
        ]:
            with self.subTest(language):
                html = self.render(f"```{language}\n{text}\n```")
                kinds_shown = re.findall('<span class="hljs-([a-z]+)">', html)
                self.assertEqual([kind for kind in kinds_shown if kind not in ("function", "params")], kinds)
                self.assertEqual(tree(html)[1][1][1], text)

    def test_all_languages_that_are_built_in_colour_text(self):
        for language in self.evaluate("hljs.listLanguages()"):
            with self.subTest(language):
                text = "a = 'b' // 1\n# c\n<d e=\"f\">\nif (g) { return 2; }"
                self.assertEqual(tree(self.render(f"```{language}\n{text}\n```"))[1][1][1], text)


def long_answer(tokens):
    """About `tokens` pieces of four characters: prose, lists, tables and code."""
    blocks = [ANSWER, "Prose that goes on for a while. " * 20, "\n".join(f"- item {i}" for i in range(50)),
              "```c++\n" + "int f(int a) { return a + 1; } // one\n" * 300 + "```"]  # fmt: skip
    text = ""
    while len(text) < 4 * tokens:
        text += "\n\n" + blocks[len(text) % len(blocks)]
    return text[: 4 * tokens]


def paced(text):
    """Pieces of `text`, at most 10,000 a second."""
    for i, piece in enumerate(pieces(text)):
        if i % 100 == 0:
            time.sleep(0.01)
        yield piece


AT_END = "byId('scroller').scrollHeight - byId('scroller').scrollTop - byId('scroller').clientHeight < 80"


class LongAnswers(PageCase):
    def test_a_long_answer_is_shown_as_if_it_came_at_once(self):
        text = long_answer(support.by_tier(6000, 100_000))
        self.server.answer = lambda body: pieces(text)
        self.ask("Go on")
        self.assertEqual(self.evaluate("app.chat.messages[1].content"), text)
        self.assertEqual(self.evaluate("document.querySelector('.answer .text').innerHTML"), self.render(text))
        self.wait_for(AT_END)

    def test_the_end_stays_in_sight_when_heights_change(self):
        """Blocks that come into sight are higher than was guessed, all at once here."""
        paragraphs = "Some word\n\n" * 60 + (("word " * 800) + "\n\n") * 6
        code = "Some word\n\n" * 60 + "```c\nint a = 1;\n```\n\n" * 5 + "```c\n" + "int a = 1;\n" * 900 + "```"
        for text in (paragraphs, code):
            self.click("#new-chat")
            self.server.hold.clear()
            self.server.answer = lambda body: [text, None, " "]  # noqa: B023
            self.ask("Go on", wait=False)
            self.wait_for("byId('scroller').scrollTop > 1000")
            self.browser.draw(10)
            self.assertTrue(self.evaluate(AT_END))
            self.browser.resize(400)
            self.browser.draw(10)
            self.assertTrue(self.evaluate(AT_END))
            self.server.hold.set()
            self.wait_for("app.runs.size === 0")
            self.browser.draw(10)
            self.assertTrue(self.evaluate(AT_END))
            self.assertTrue(self.evaluate("byId('to-end').hidden"))
            self.browser.resize(1280)

    def test_a_reader_who_scrolled_away_stays_there(self):
        text = long_answer(2000)
        self.server.answer = lambda body: [*pieces(text), None, *pieces(text)]
        self.ask("Go on", wait=False)
        self.wait_for("byId('scroller').scrollTop > 1000")  # The new text may not be drawn yet.
        self.evaluate("byId('scroller').scrollTop = 100")
        self.wait_for("!app.following && !byId('to-end').hidden")
        self.server.hold.set()
        self.wait_for("app.runs.size === 0")
        self.assertLess(self.evaluate("byId('scroller').scrollTop"), 200)
        self.click("#to-end")
        self.wait_for("byId('to-end').hidden")

    @unittest.skipUnless(support.EXHAUSTIVE, "measures for a minute")
    def test_an_answer_of_100000_tokens_leaves_the_page_usable(self):
        """While it streams and after it: a timer is late by at most a tenth of a second
        in 95 % of cases, and by a second at most."""
        texts = {"blocks": long_answer(100_000), "one block of code": "```c\n" + "int a = 1; // one\n" * 22_000,
                 "one paragraph": "word " * 80_000, "one list": "- item **b**\n" * 30_000}  # fmt: skip
        for name, text in texts.items():
            self.click("#new-chat")
            self.server.answer = lambda body: paced(text)  # noqa: B023
            self.evaluate(
                "window.late = [], window.beat = () => { const due = performance.now() + 20;"
                " window.timer = setTimeout(() => { window.late.push(performance.now() - due); beat(); }, 20); },"
                " beat(), 0"
            )
            self.ask("Go on", wait=False)
            self.fill("#prompt", "Typed while it streams")
            self.wait_for("app.runs.size === 0")
            late = sorted(self.evaluate("(clearTimeout(window.timer), window.late)"))
            with self.subTest(name):
                self.assertGreater(len(late), 20)
                self.assertLess(late[len(late) * 95 // 100], 100, late[-20:])
                self.assertLess(late[-1], 1000, late[-20:])
                self.assertEqual(self.evaluate("byId('prompt').value"), "Typed while it streams")
            self.evaluate("byId('prompt').value = ''")


if __name__ == "__main__":
    main("markdown_it")
