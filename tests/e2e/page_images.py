# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Draws the images of docs/page.md: page_images.py FOLDER

The page shows a conversation and figures that are written here; no model runs.
"""

import json
import math
import os
import random
import sys

from browser import Browser
from page_server import PageServer

QUESTIONS = [
    "How do I sort players by team, and by score within a team?",
    "Plan a weekend in Lisbon",
    "Explain RoPE to a web developer",
    "Regex for ISO dates",
    "Why is my Docker image 2 GB?",
    "Birthday poem for Ana",
]
ANSWER = '''\
Both ideas work; which one is right depends on whether the order *inside* a group has to survive.

A stable sort keeps equal items in the order they came in. Python's `sorted` is stable, so you can sort \
twice, **least important key first**:

```python
from operator import attrgetter

def by_team_then_score(players):
    """Best players first, grouped by team."""
    ranked = sorted(players, key=attrgetter("score"), reverse=True)
    return sorted(ranked, key=attrgetter("team"))  # stable: keeps the ranking
```

How the usual choices compare:

| approach | new list | keys at a time |
|:--|:-:|--:|
| `sorted`, twice | yes | 1 |
| `sorted` with a tuple key | yes | 2 |
| `list.sort`, twice | no | 1 |

1. Use `list.sort` if nobody else holds the list.
2. Use a tuple key if all keys go the same way.

> Measure with your own data: nearly sorted input is *much* faster.

See the [sorting guide](https://docs.python.org/3/howto/sorting.html) for more.
'''
SIZES = ((360, 760), (900, 900), (1600, 1080))


def answer(body):
    if body["messages"][-1]["content"] != QUESTIONS[0]:
        yield "Of course."
        return
    for i in range(0, len(ANSWER), 4):
        yield ANSWER[i : i + 4]


def metrics():
    """Five minutes of a server's figures."""
    draw = random.Random(1)
    answers, prompts = 0, 0
    for second in range(300):
        answers += 30 + draw.random() * 60 if second < 40 else 330 + 90 * math.sin(second / 35) + 60 * draw.random()
        prompts += 1800 * draw.random() if draw.random() < 0.15 else 0
        values = {
            "num_requests_running": 1 if second < 40 else round(5 + 3 * math.sin(second / 35)),
            "num_requests_waiting": max(0, round(3 * math.sin(second / 25) - 1.3)),
            "kv_cache_usage_perc": 0.3 + 0.2 * math.sin(second / 60),
            "generation_tokens_total": answers,
            "prompt_tokens_total": prompts,
            "prefix_cache_queries_total": prompts,
            "prefix_cache_hits_total": 0.62 * prompts,
            "num_preemptions_total": 2,
        }
        yield {f"vllm:{name}": value for name, value in values.items()}


def main(folder):
    os.makedirs(folder, exist_ok=True)
    server = PageServer(answer)
    with Browser(*SIZES[-1]) as browser:
        browser.open(server.address)
        browser.wait_for("app.models.length > 0")
        for question in reversed(QUESTIONS):
            browser.evaluate("beginChat()")
            browser.write(question)
            browser.press("Enter")
            browser.wait_for("app.chat.messages.length === 2 && app.runs.size === 0")
            browser.wait_for("app.store.load(app.chat.id).then(chat => chat && !chat.messages[1].state)")
        # Speeds of a server that sends what is written are none.
        stats = {
            "completion": 263,
            "rate": 61.2,
            "first": 0.21,
            "cached": 96,
            "prompt": 120,
            "total": 383,
            "counted": True,
        }
        browser.evaluate(f"(app.chat.messages[1].stats = {json.dumps(stats)}, saveChat(app.chat, false))")
        for width, height in SIZES:
            for scheme in ("light", "dark"):
                browser.resize(width, height)
                browser.prefer(scheme)
                browser.open(server.address)
                browser.wait_for("document.querySelectorAll('.answer').length === 1")
                browser.evaluate("(byId('prompt').blur(), byId('scroller').scrollTop = 0)")
                browser.resize(width, height)
                browser.screenshot(os.path.join(folder, f"page-chat-{width}-{scheme}.png"))
            browser.evaluate("showTab('server')")
            browser.wait_for("document.querySelectorAll('.kernels tr').length > 0")
            browser.evaluate(
                "(clearInterval(app.server.timer), app.server.samples = [],"
                " performance.now = () => 1000 * window.second,"
                f" {json.dumps(list(metrics()))}"
                ".forEach((sample, i) => { window.second = i; app.server.add(sample); }))"
            )
            browser.resize(width, min(height, 960))
            browser.screenshot(os.path.join(folder, f"page-server-{width}-dark.png"))
    server.close()


if __name__ == "__main__":
    main(sys.argv[1])
