"""Kinds: numbered lists of elements of the same length, read by kind and index."""

from __future__ import annotations

import threading
from array import array
from collections.abc import Iterable
from ctypes import byref, c_int32, c_uint64, c_void_p
from typing import Any

from . import _native
from ._checks import signed, unsigned
from ._handle import Handle
from .errors import NotFoundError
from .memory import Region, region
from .storage import Storage


class Kinds:
    """Element i of a kind lies at its offset + i * element.

    Ctrl-C does not end a read; it takes effect when the read is over. Safe for all threads.
    """

    def __init__(self, storage: Storage) -> None:
        library = _native.lib()
        native = c_void_p()
        _native.check(library.gpunvme_kinds_open(storage._handle.open, byref(native)))
        assert native.value is not None
        self._storage = storage
        self._handle = Handle(native.value, library.gpunvme_kinds_close, "the kinds")
        self._handle.own(self)
        self._lock = threading.Lock()
        self._elements: dict[int, int] = {}

    def add(self, number: int, offset: int, bytes: int, element: int) -> None:
        """Adds a kind with its place; bytes must be a multiple of element."""
        number = signed(number, "a kind's number")
        offset, bytes = unsigned(offset, "offset"), unsigned(bytes, "bytes")
        element = unsigned(element, "element")
        with self._lock:
            _native.check(_native.lib().gpunvme_kinds_add(self._handle.open, number, offset, bytes, element))
            self._elements[number] = element

    def read(self, number: int, index: int, elements: int, into: Any) -> int:
        """Reads elements of one kind from index on, waits, and returns the number of bytes."""
        return self.read_many([(number, index, elements)], into)

    def read_many(self, runs: Iterable[tuple[int, int, int]], into: Any) -> int:
        """Reads ``(number, index, elements)``, many at once, one after the other in memory."""
        numbers, indexes, elements = array("i"), array("Q"), array("Q")
        nbytes = 0
        for number, index, count in runs:
            number, count = signed(number, "a kind's number"), unsigned(count, "elements")
            numbers.append(number)
            indexes.append(unsigned(index, "index"))
            elements.append(count)
            nbytes += count * self._element(number)
        if not numbers:
            return 0
        target = region(into, nbytes, writable=True)
        target.settle()
        self._read(numbers, indexes, elements, target)
        return nbytes

    def _read(self, numbers: array[int], indexes: array[int], elements: array[int], target: Region) -> None:
        n = len(numbers)
        # The library knows how much room there is: it never trusts what is known of the elements here.
        _native.check(
            _native.lib().gpunvme_kinds_read_many(
                self._handle.open,
                (c_int32 * n).from_buffer(numbers),
                (c_uint64 * n).from_buffer(indexes),
                (c_uint64 * n).from_buffer(elements),
                n,
                target.address,
                target.nbytes,
            )
        )

    def _element(self, number: int) -> int:
        self._handle.open
        with self._lock:
            element = self._elements.get(number)
        if element is None:
            raise NotFoundError.of(f"no kind {number}: the kinds are {sorted(self._elements)[:8]}")
        return element

    def close(self) -> None:
        self._handle.close()

    def __enter__(self) -> Kinds:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
