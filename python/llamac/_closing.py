# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is closed at the end of a `with`."""

import inspect
from types import TracebackType
from typing import Generic, Protocol, Self, TypeVar

from llamac._arguments import checked


class _Native(Protocol):
    def closed(self) -> bool: ...


_Handle = TypeVar("_Handle", bound=_Native)


class Closing(Generic[_Handle]):
    _native: _Handle

    def __init_subclass__(cls) -> None:
        """Makes what callers do wrong with the package's own methods an Error."""
        if not cls.__module__.startswith("llamac."):
            return
        for name, method in list(vars(cls).items()):
            if name.startswith("_") and name != "__init__":
                continue
            if inspect.isfunction(method):
                setattr(cls, name, checked(method))
            elif isinstance(method, classmethod):
                setattr(cls, name, classmethod(checked(method.__func__)))

    def close(self) -> None:
        raise NotImplementedError

    @property
    def closed(self) -> bool:
        """Whether close() was called; nothing else can be asked of it then."""
        return self._native.closed()

    def _described(self, about: str) -> str:
        """For repr(): the kind of object, `about`, and whether it is closed."""
        package = type(self).__module__.partition(".")[0]
        return f"<{package}.{type(self).__name__} {about}{', closed' if self.closed else ''}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
