# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Engines and answers."""

import secrets
from collections.abc import AsyncIterator, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, Unpack

from llamac import _native
from llamac._arguments import ids, to_json, utf8, wrong
from llamac._asyncio import wait_for_news
from llamac._chat import ChatOptions, Message, conversation
from llamac._closing import Closing
from llamac._errors import Code, Error, error_of
from llamac._model import Model
from llamac._options import EngineOptions
from llamac._parts import End, Part, Result, TokenLogprobs, ToolCall, ToolCallPart


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts of an engine since it was made; `running`, `waiting` and the pages
    are those of now."""

    running: int
    waiting: int
    steps: int
    preemptions: int
    prompt_tokens: int
    cached_tokens: int
    """Tokens of the prompts that were found in the prefix cache."""
    answer_tokens: int
    finished: int
    """Answers, the failed ones included."""
    failed: int
    pages: int
    free_pages: int
    loaded_tokens: int
    """Tokens that the prefix cache brought from its file."""
    draft_tokens: int
    """Tokens that were drafted (the option speculative)."""
    accepted_tokens: int


class Answer(Closing[_native.Answer]):
    """The answers to one request, as parts that are taken one by one: by `for`,
    by `async for`, or all at once by text(), result() or `await`. One thread or
    task at a time takes them. An answer that is dropped is cancelled."""

    def __init__(self, native: _native.Answer, count: int) -> None:
        self._native = native
        self._tokens: list[list[int]] = [[] for _ in range(count)]
        self._texts: list[list[str]] = [[] for _ in range(count)]
        self._logprobs: list[list[TokenLogprobs]] = [[] for _ in range(count)]
        self._calls: list[list[ToolCall]] = [[] for _ in range(count)]
        self._ends: list[End | Error | None] = [None] * count

    def next(self, timeout: float | None = None) -> Part | None:
        """The next part; waits at most `timeout` seconds, or without end. None
        when none came, or no more will. Raises the error that ended an answer;
        the others of the request go on."""
        if timeout is None:
            return self._take(-1)
        if not isinstance(timeout, (int, float)):
            raise wrong("timeout", "seconds or None", timeout)
        return self._take(max(0.0, timeout))

    @property
    def done(self) -> bool:
        """Whether the ends of all answers were taken."""
        return self._native.done()

    def cancel(self) -> None:
        """Ends the answers with the next step; their ends still come."""
        self._native.cancel()

    def close(self) -> None:
        """Cancels what has not ended."""
        self._native.close()

    def results(self) -> list[Result]:
        """All answers, whole, once they have ended; the parts that were taken
        before too. Raises the first error."""
        while not all(self._ends):
            self._receive(-1)
        return self._results()

    def result(self) -> Result:
        """The answer, whole; of several, the first."""
        return self.results()[0]

    def text(self) -> str:
        """Its text."""
        return self.result().text

    def __iter__(self) -> Iterator[Part]:
        return self

    def __next__(self) -> Part:
        part = self._take(-1)
        if part is None:
            raise StopIteration
        return part

    def __aiter__(self) -> AsyncIterator[Part]:
        return self

    async def __anext__(self) -> Part:
        while True:
            part = self._take(0)
            if part is not None:
                return part
            if self.done:
                raise StopAsyncIteration
            await wait_for_news(self._native)

    def __await__(self) -> Generator[Any, None, Result]:
        """The answer, whole; of several, the first: `await gather()` has all."""
        return self._wait_for_result().__await__()

    async def gather(self) -> list[Result]:
        """results(), for an event loop."""
        while not all(self._ends):
            if self._receive(0) is None:
                await wait_for_news(self._native)
        return self._results()

    async def _wait_for_result(self) -> Result:
        return (await self.gather())[0]

    def _take(self, seconds: float) -> Part | None:
        received = self._receive(seconds)
        if isinstance(received, Error):
            raise received
        return received

    def _receive(self, seconds: float) -> Part | Error | None:
        """A part, or the error that ended an answer."""
        taken = self._native.next(seconds)
        if taken is None:
            return None
        index, tokens, text, ended, logprobs, calls = taken
        end: End | None = None
        part_logprobs = [TokenLogprobs(*each) for each in logprobs]
        self._tokens[index] += tokens
        self._texts[index].append(text)
        self._logprobs[index] += part_logprobs
        part_calls = [self._add_call(self._calls[index], *each) for each in calls]
        if ended is not None:
            if ended[0] != 0:
                self._ends[index] = error = error_of(ended[0], ended[1])
                return error
            self._ends[index] = end = End(*ended[2:])
        return Part(index, tokens, text, end, part_logprobs, part_calls)

    @staticmethod
    def _add_call(calls: list[ToolCall], index: int, name: str, arguments: str) -> ToolCallPart:
        """Adds a piece to the last of `calls`, or a new one."""
        if index == len(calls):
            calls.append(ToolCall(f"call_{secrets.token_hex(12)}", name, ""))
        call = calls[index]
        calls[index] = ToolCall(call.id, call.name, call.arguments + arguments)
        return ToolCallPart(call.id, call.name, arguments, index)

    def _results(self) -> list[Result]:
        results = []
        for index, end in enumerate(self._ends):
            if isinstance(end, Error):
                raise end
            assert end is not None
            text = "".join(self._texts[index])
            results.append(
                Result(index, self._tokens[index], text, end, self._logprobs[index], self._calls[index])
            )
        return results

    def __repr__(self) -> str:
        """Counts what was taken; takes nothing."""
        count, tokens = len(self._ends), sum(map(len, self._tokens))
        ends = sum(end is not None for end in self._ends)
        return self._described(f"of which {tokens} tokens and {ends} of {count} ends are taken")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Engine(Closing[_native.Engine]):
    """Runs the requests of any thread and event loop, many at once, on a thread
    of its own."""

    def __init__(self, model: Model, **options: Unpack[EngineOptions]) -> None:
        """Starts it. help(llamac.EngineOptions) has the options."""
        if not isinstance(model, Model):
            raise wrong("model", "a llamac.Model, as Model.load(path) makes it", model)
        self.model = model
        self._native = _native.Engine(model._native, dict(options))

    def submit(
        self,
        prompt: str | Iterable[int] | None = None,
        *,
        messages: Iterable[Message] | None = None,
        **options: Unpack[ChatOptions],
    ) -> Answer:
        """Queues a prompt, a text or ids, or the messages of a conversation.
        Raises at once what is wrong with it; Code.MEMORY when more wait than the
        engine's option max_waiting says. help(llamac.RequestOptions) and
        help(llamac.ChatOptions) have the options."""
        given: dict[str, Any] = dict(options)
        if (prompt is None) == (messages is None):
            got = "neither" if prompt is None else "both"
            raise error_of(Code.USAGE, f"prompt: expected one of prompt and messages, got {got}")
        if isinstance(schema := given.get("json_schema"), Mapping):
            given["json_schema"] = to_json("json_schema", schema).decode()
        chat = conversation(messages, given)
        if chat is not None:
            native = self._native.submit_chat(chat, given)
        elif isinstance(prompt, str):
            native = self._native.submit_text(utf8("prompt", prompt), given)
        else:
            native = self._native.submit(ids("prompt", prompt, "a text or token ids"), given)
        count = options.get("n", 1)
        return Answer(native, 1 if count is None else int(count))

    def chat(self, messages: Iterable[Message], **options: Unpack[ChatOptions]) -> Answer:
        """submit(messages=...): queues a conversation, in the messages of OpenAI's
        interface, for the model to go on with. help(llamac.ChatOptions) has the
        options."""
        return self.submit(messages=messages, **options)

    def counts(self) -> Counts:
        """The counts at the end of the last step."""
        return Counts(*self._native.counts())

    def close(self) -> None:
        """Waits for the step that runs. Answers that have not ended end with an
        error, which they raise."""
        self._native.close()

    def __repr__(self) -> str:
        return self._described(f"of {self.model.name} on {self.model.device}")
