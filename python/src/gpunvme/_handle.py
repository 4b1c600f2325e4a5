"""Handles of the C library, closed by hand, with their owner, or when the interpreter ends."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from .errors import ClosedError


class Handle:
    """A native handle. Safe for all threads: the library knows one that was closed, and gives no number twice."""

    def __init__(self, native: int, free: Callable[[int], int], what: str, *, again: bool = False) -> None:
        """``again``: where closing fails the library keeps it, and it can be tried again."""
        self.native = native
        self._free = free
        self._what = what
        self._again = again
        self._closed = False
        self._freed = False
        self._shown: weakref.WeakSet[Any] = weakref.WeakSet()

    def own(self, owner: Any) -> None:
        """Closes it when the owner is collected, or the interpreter ends."""
        weakref.finalize(owner, self._dropped)

    def show(self, keeper: Any) -> None:
        """While who shows the handle's memory to others lives, the end of the interpreter does not close it."""
        self._shown.add(keeper)

    @property
    def closed(self) -> bool:
        return self._closed

    @property
    def open(self) -> int:
        """The handle for a call."""
        if self._closed:
            raise ClosedError.of(f"{self._what} was closed")
        return self.native

    def close(self) -> int:
        """It waits for what is under way. One that was interrupted can be called again.

        The library's code: less than 0 if it had a failure to tell, 0 when there is nothing left to close.
        """
        self._closed = True
        if self._freed:
            return 0
        code = self._free(self.native)
        if code >= 0 or not self._again:
            self._freed = True
        return code

    def _dropped(self) -> None:
        # Whoever shows its memory keeps the owner: this is the interpreter's end, and others may look at it still.
        if not self._shown:
            self.close()
