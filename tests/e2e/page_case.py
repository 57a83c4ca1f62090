# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tests of the page of llamac serve share this: the page in a headless Chromium,
with a server of the test.

Every test ends with a look at what the browser complained about: scripts that
failed, what the policy kept out, and addresses other than the server's.
"""

import json
import unittest

import support
from browser import Browser, BrowserError, find_chromium
from page_server import PageServer

# The answer of most tests: all kinds of blocks.
ANSWER = """\
# Sorting

Use **`sorted`** for a *new* list, see [the docs](https://docs.python.org/3/howto/sorting.html).

1. Stable: equal items keep their order.
   - and so does `list.sort`
2. Fast on data that is nearly sorted.

| method | new list | time |
|:--|:-:|--:|
| `sorted(a)` | yes | 1.0 |
| `a.sort()` | no | 0.9 |

```python
def by_length(words):  # shortest first
    return sorted(words, key=len)
```

> Measure before you change it.

---
Done & <b>dusted</b>.
"""


def pieces(text, size=4):
    return [text[i : i + size] for i in range(0, len(text), size)]


class PageCase(support.TestCase):
    """Opens the page anew for each test, with nothing kept from others."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.close)

    def setUp(self):
        self.address = self.serve()
        self.expected = []  # Parts of complaints of the browser that a test provokes.
        self.open()

    def serve(self):
        """Starts a server, and gives the page's address."""
        self.server = PageServer(lambda body: pieces(ANSWER))
        self.addCleanup(self.server.close)
        return self.server.address

    def tearDown(self):
        self.browser.open("about:blank")  # Nothing of this test comes during the next one.
        lists = (self.browser.messages, self.browser.exceptions, self.browser.requests)
        messages, exceptions, requests = (list(noted) for noted in lists)
        for noted in lists:
            noted.clear()
        self.assertEqual([m for m in messages if not any(part in m for part in self.expected)], [])
        self.assertEqual(exceptions, [])
        self.assertEqual([a for a in requests if not a.startswith((self.address, "data:", "blob:"))], [])

    def open(self):
        self.browser.open(self.address)
        self.wait_for("app.chat && (app.models.length > 0 || !byId('banner').hidden)")

    def evaluate(self, expression):
        return self.browser.evaluate(expression)

    def wait_for(self, condition):
        self.browser.wait_for(condition)

    def text(self, selector):
        return self.evaluate(f"document.querySelector({json.dumps(selector)})?.textContent")

    def texts(self, selector):
        return self.evaluate(f"[...document.querySelectorAll({json.dumps(selector)})].map(e => e.textContent)")

    def count(self, selector):
        return self.evaluate(f"document.querySelectorAll({json.dumps(selector)}).length")

    def click(self, selector):
        self.evaluate(f"document.querySelector({json.dumps(selector)}).click()")

    def focused(self):
        return self.evaluate("document.activeElement.id || document.activeElement.getAttribute('aria-label')")

    def fill(self, selector, text):
        """Writes into an empty field, as its user would."""
        self.evaluate(f"document.querySelector({json.dumps(selector)}).focus()")
        self.browser.write(text)

    def ask(self, text, wait=True):
        self.fill("#prompt", text)
        self.browser.press("Enter")
        self.wait_for("app.chat.messages.at(-1)?.role === 'assistant'")
        if wait:
            self.wait_for("app.runs.size === 0")
            # And kept, and listed.
            self.wait_for("app.store.load(app.chat.id).then(chat => chat && !chat.messages.at(-1).state)")

    def render(self, text, step=None):
        """The elements that an answer of `text` becomes, at once or in steps."""
        return self.evaluate(
            f"(() => {{ const text = {json.dumps(text)}, host = el('div'), view = new MarkdownView(host);"
            f" for (let n = 0; n < text.length && {step or 0}; n += {step or 1}) view.update(text.slice(0, n), false);"
            " view.update(text, true); return host.innerHTML; })()"
        )


def main(*packages):
    """Runs the tests of a file, which needs Python packages beside the browser."""
    try:
        find_chromium()
    except BrowserError as error:
        support.skip(str(error))
    support.require(*packages)
    unittest.main()
