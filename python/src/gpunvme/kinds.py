"""Kinds: numbered lists of elements of the same length, read by kind and index."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from ctypes import byref, c_int32, c_uint64, c_void_p
from typing import Any

from . import _native
from ._handle import Handle
from .memory import region
from .storage import Storage


class Kinds:
    """Element i of a kind lies at its offset + i * element.

    Reads are not ended by Ctrl-C, which is seen when they are over. Safe for all threads.
    """

    def __init__(self, storage: Storage) -> None:
        library = _native.lib()
        native = c_void_p()
        _native.check(library.gpunvme_kinds_open(storage._handle.open, byref(native)))
        assert native.value is not None
        self._storage = storage
        self._handle = Handle(native.value, library.gpunvme_kinds_close, "the kinds")
        self._handle.own(self)
        self._elements: dict[int, int] = {}

    def add(self, number: int, offset: int, bytes: int, element: int) -> None:
        """Says where a kind lies; bytes is a multiple of element."""
        _native.check(_native.lib().gpunvme_kinds_add(self._handle.open, number, offset, bytes, element))
        self._elements[number] = element

    def read(self, number: int, index: int, elements: int, into: Any) -> int:
        """Reads elements of one kind from index on, waits, and says how many bytes that are."""
        nbytes = self._bytes(number, elements)
        target = region(into, nbytes, writable=True)
        target.settle()
        _native.check(
            _native.lib().gpunvme_kinds_read(self._handle.open, number, index, elements, target.address)
        )
        return nbytes

    def read_many(self, runs: Iterable[tuple[int, int, int]], into: Any) -> int:
        """Reads ``(number, index, elements)``, many at once, one behind the other in memory."""
        numbers, indexes, elements = array("i"), array("Q"), array("Q")
        nbytes = 0
        for number, index, count in runs:
            numbers.append(number)
            indexes.append(index)
            elements.append(count)
            nbytes += self._bytes(number, count)
        n = len(numbers)
        if n == 0:
            return 0
        target = region(into, nbytes, writable=True)
        target.settle()
        _native.check(
            _native.lib().gpunvme_kinds_read_many(
                self._handle.open,
                (c_int32 * n).from_buffer(numbers),
                (c_uint64 * n).from_buffer(indexes),
                (c_uint64 * n).from_buffer(elements),
                n,
                target.address,
                nbytes,
            )
        )
        return nbytes

    def close(self) -> None:
        self._handle.close()

    def __enter__(self) -> Kinds:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _bytes(self, number: int, elements: int) -> int:
        if elements < 0:
            raise ValueError(f"elements has to be 0 or more: {elements}")
        # An unknown kind is the library's to refuse: no byte is moved.
        return elements * self._elements.get(number, 0)
