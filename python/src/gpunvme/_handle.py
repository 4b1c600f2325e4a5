"""Handles of the C library, closed once: by hand, with their owner, or when the interpreter ends."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any

from .errors import ClosedError


class Handle:
    """A native handle and who uses it. It is freed when it was closed and nobody retains it any more."""

    def __init__(self, native: int, free: Callable[[int], object], what: str) -> None:
        self.native = native
        self._free = free
        self._what = what
        # Finalizers run on any thread, also on one that holds it.
        self._lock = threading.RLock()
        self._retained = 0
        self._closed = False
        self._freed = False

    def own(self, owner: Any) -> None:
        """Closes it when the owner is collected, or the interpreter ends."""
        weakref.finalize(owner, self.close)

    @property
    def closed(self) -> bool:
        return self._closed

    @property
    def open(self) -> int:
        """The handle for a call."""
        if self._closed:
            raise ClosedError.of(f"{self._what} was closed")
        return self.native

    def retain(self) -> None:
        with self._lock:
            if self._closed:
                raise ClosedError.of(f"{self._what} was closed")
            self._retained += 1

    def release(self) -> None:
        with self._lock:
            self._retained -= 1
        self._free_unused()

    def close(self) -> None:
        with self._lock:
            self._closed = True
        self._free_unused()

    def _free_unused(self) -> None:
        with self._lock:
            if not self._closed or self._freed or self._retained > 0:
                return
            self._freed = True
        # Not under the lock: it waits for what is under way.
        self._free(self.native)
