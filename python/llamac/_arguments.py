# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arguments of the package's functions: what is wrong is an Error of it."""

import difflib
import functools
import inspect
import json
import operator
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar, cast

from llamac import _native
from llamac._errors import Code, Error, error_of

_Function = TypeVar("_Function", bound=Callable[..., Any])


def wrong(name: str, expected: str, value: object) -> Error:
    return error_of(Code.USAGE, f"{name}: expected {expected}, got {_native.shown(value)}")


def near(name: str, names: Iterable[str]) -> str:
    """The one of `names` that is meant by `name`, for a message."""
    found = difflib.get_close_matches(name, names, 1)
    return f"; did you mean {found[0]}?" if found else ""


def checked(function: _Function) -> _Function:
    """`function`, which also has an Error for arguments that it does not take."""

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        try:
            return function(*args, **options)
        except TypeError as error:
            # The function itself was not entered.
            if error.__traceback__ is not None and error.__traceback__.tb_next is None:
                raise _unfit(function, options, error) from None
            raise

    return cast(_Function, call)


def _unfit(function: Callable[..., Any], options: Iterable[str], error: TypeError) -> Error:
    parameters = inspect.signature(function).parameters.values()
    called = function.__qualname__.removesuffix(".__init__")
    names = [each.name for each in parameters if each.name not in ("self", "cls")]
    takes_any = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters)
    for name in options:
        if name not in names and not takes_any:
            expected = f"one of {', '.join(names)}" if names else "no argument"
            reason = f"expected {expected}, got {name}{near(name, names)}"
            return error_of(Code.USAGE, f"{called}: {reason}")
    return error_of(Code.USAGE, f"{called}: {str(error).removeprefix(f'{function.__qualname__}() ')}")


def path(name: str, value: str | os.PathLike[str]) -> str:
    try:
        text = os.fsdecode(value)
    except TypeError:
        text = "\0"
    if "\0" in text:
        raise wrong(name, "a path", value)
    return text


def flag(name: str, value: bool) -> bool:
    if not isinstance(value, bool):
        raise wrong(name, "a bool", value)
    return value


def integer(name: str, value: int) -> int:
    try:
        if not isinstance(value, bool):
            return operator.index(value)
    except TypeError:
        pass
    raise wrong(name, "an int", value)


def utf8(name: str, value: str | bytes) -> bytes:
    if isinstance(value, bytes):
        return value
    if not isinstance(value, str):
        raise wrong(name, "a text", value)
    try:
        return value.encode()
    except UnicodeEncodeError:
        raise wrong(name, "a text without halves of characters", value) from None


def ids(name: str, values: Iterable[int] | None, expected: str = "token ids") -> list[int]:
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise wrong(name, expected, values)
    return list(values)


def names(name: str, value: Mapping[str, object]) -> dict[str, object]:
    """`value`, options by name."""
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise wrong(name, "a dict of options", value)
    return dict(value)


def to_json(name: str, value: object) -> bytes:
    def plain(part: object) -> object:
        if isinstance(part, Mapping):
            return dict(part)
        if isinstance(part, Iterable) and not isinstance(part, (bytes, bytearray)):
            return list(part)
        raise wrong(name, "what JSON has", part)

    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False, default=plain)
    except Error:
        raise
    except (TypeError, ValueError, RecursionError):
        raise wrong(name, "what JSON has", value) from None
    return utf8(name, text)
