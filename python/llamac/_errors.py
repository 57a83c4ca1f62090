# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Errors."""

import enum


class Code(enum.IntEnum):
    """Kinds of errors: the exit codes of the tools."""

    INTERNAL = 1
    """A bug in llamac."""
    USAGE = 2
    """A wrong argument or request, or an object that was closed."""
    BAD_FILE = 3
    """A missing, truncated or malformed model file."""
    UNSUPPORTED = 4
    """Something that llamac does not do."""
    BAD_PLAN = 5
    """A corrupt or stale plan."""
    MEMORY = 6
    """Not enough memory, or a full queue."""
    DEVICE = 7
    """The device failed, or its threads stayed behind in a fork."""
    ACCURACY = 8
    """Numbers that are not finite."""


class Error(Exception):
    """A failure of llamac: a `code`, and one line of text."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(code, message)
        self.code = Code(code)
        self.message = message

    def __str__(self) -> str:
        return self.message

    def __repr__(self) -> str:
        return f"llamac.{type(self).__name__}(Code.{self.code.name}, {self.message!r})"


class UsageError(Error, ValueError):
    """An error of Code.USAGE: an argument or option that its text names, a number
    that is out of range, or an object that was closed."""


def error_of(code: int, message: str) -> Error:
    """The error of `code`."""
    return (UsageError if code == Code.USAGE else Error)(code, message)
