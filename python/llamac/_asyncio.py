# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Waiting for answers in an event loop: each loop has a queue of the library,
whose descriptor it watches."""

import asyncio
import weakref

from llamac import _native


class _LoopQueue:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.queue = _native.Queue()
        self.waiting: dict[int, asyncio.Future[None]] = {}
        loop.add_reader(self.queue.descriptor(), self.wake)

    def wake(self) -> None:
        while (answer := self.queue.next()) != 0:
            future = self.waiting.pop(answer, None)
            if future is not None and not future.done():
                future.set_result(None)


_queues: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _LoopQueue] = weakref.WeakKeyDictionary()


async def wait_for_news(answer: _native.Answer) -> None:
    """Returns when `answer` may have another part."""
    loop = asyncio.get_running_loop()
    queue = _queues.get(loop)
    if queue is None:
        queue = _queues[loop] = _LoopQueue(loop)
    number = answer.number()
    future = queue.waiting[number] = loop.create_future()
    # Adding wakes at once where it is new here, and asks nothing else.
    queue.queue.add(answer)
    try:
        await future
    finally:
        if queue.waiting.get(number) is future:
            del queue.waiting[number]
