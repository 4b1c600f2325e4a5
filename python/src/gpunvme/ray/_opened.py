"""Storages that a process has open, and what they did."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from ..storage import Storage

_COUNTS = ("read_bytes", "operations", "retries", "staged_bytes", "overread_bytes")


class Opened:
    """The storages that were used last. For one thread."""

    def __init__(self, accelerator: str, most: int) -> None:
        self.accelerator = accelerator
        self._most = most
        self._open: OrderedDict[str, Storage] = OrderedDict()
        self._counts: dict[str, Any] = {"accelerator": accelerator, "paths": {}, "used": []}

    def get(self, uri: str, settle: Callable[[], None] = lambda: None) -> Storage:
        """:param settle: called before one is closed to make room: when it returns, nothing reads from any of them"""
        storage = self._open.get(uri)
        if storage is None:
            if len(self._open) >= self._most:
                settle()
                _, oldest = self._open.popitem(last=False)
                with oldest:
                    add(self._counts, _told(oldest))
            storage = self._open[uri] = Storage(uri, self.accelerator)
        self._open.move_to_end(uri)
        return storage

    def stats(self) -> dict[str, Any]:
        """Bytes and operations of each path ("paths"), and how each worked ("used"), since the beginning."""
        total: dict[str, Any] = {}
        for counts in (self._counts, *(_told(s) for s in self._open.values())):
            add(total, counts)
        return total

    def close(self) -> None:
        while self._open:
            _, storage = self._open.popitem()
            with storage:
                add(self._counts, _told(storage))


def add(total: dict[str, Any], counts: dict[str, Any]) -> None:
    """Adds what one did to what others did."""
    total.setdefault("accelerator", counts["accelerator"])
    paths = total.setdefault("paths", {})
    for name, path in counts["paths"].items():
        sums = paths.setdefault(name, dict.fromkeys(_COUNTS, 0))
        for count in _COUNTS:
            sums[count] += path.get(count, 0)
    used = total.setdefault("used", [])
    used += [line for line in counts["used"] if line not in used]


def _told(storage: Storage) -> dict[str, Any]:
    lines = (line.strip() for line in storage.explain().splitlines())
    return {
        "accelerator": storage.accelerator,
        "paths": storage.stats()["paths"],
        "used": [line.removeprefix("used: ") for line in lines if line.startswith("used: ")],
    }
