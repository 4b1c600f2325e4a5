"""Arrays and matrices on SSDs that are larger than the GPU's memory, through a cache of pages; docs/page-cache.md."""

from __future__ import annotations

import json
from ctypes import byref, c_uint64, c_void_p
from typing import Any, Final, Self

from . import _native
from ._checks import size, unsigned
from ._handle import Handle
from .kernels import KernelStorage
from .memory import region, stream_handle
from .storage import Storage

_UNCOUNTED: Final = 1
_VERIFY: Final = 2
_ID_BYTES: Final = 8


class PageCache:
    """Pages of SSDs in GPU memory, for arrays of kernels and for rows that the GPU moves by their numbers.

    :param kernels: whose queues read and write; stays open longer. With its placement ``"host"`` the pages are in pinned host memory
    :param bytes: of pages, at least 16 of them: a number, or a text such as ``"8GiB"``
    :param page_bytes: what one miss reads, a power of two from 512 to 65536: a large one suits what is read in order
    :param timeout: seconds that a page waits for a frame while others hold all in which it may be, above 0 and up to 3600
    :param counting: whether acquires are counted, which hits pay a little for
    :param host_bytes: of pinned host memory between cache and SSD, for pages that are missed often and that no kernel may store to;
        0: none
    :param verify: whether each page that comes again is compared with what it was, by a CRC-32C: for finding damage, and slow

    Make it, its arrays and its rows before kernels are launched. Safe for all threads.
    """

    def __init__(
        self,
        kernels: KernelStorage,
        bytes: int | str,
        page_bytes: int = 4096,
        timeout: float = 10.0,
        counting: bool = True,
        host_bytes: int | str = 0,
        verify: bool = False,
    ) -> None:
        if not 0 < timeout <= 3600:
            raise ValueError(f"timeout is a number of seconds above 0 and up to 3600: {timeout!r}")
        library = _native.lib()
        # 0 is the library's word for its default.
        if unsigned(page_bytes, "page_bytes", 32) == 0:
            raise ValueError("page_bytes is a power of two from 512 to 65536, not 0")
        options = _native.CacheOptions(
            size(bytes, "bytes"),
            size(host_bytes, "host_bytes"),
            max(1, int(timeout * 1e9)),
            page_bytes,
            (0 if counting else _UNCOUNTED) | (_VERIFY if verify else 0),
        )
        native = c_void_p()
        _native.check(library.gpunvme_cache_open(kernels._handle.open, byref(options), byref(native)))
        assert native.value is not None
        self._handle = Handle(native.value, library.gpunvme_cache_close, "the cache", again=True)
        self._handle.own(self)
        self.kernels = kernels
        self.page_bytes: int = page_bytes

    def array(
        self, storage: Storage, element_bytes: int, count: int | None = None, offset: int = 0, writable: bool = False
    ) -> int:
        """Tells kernels of elements of a storage: a file on an SSD, a partition, a whole SSD, a stripe set.

        Returns the device address of the ``gpunvme::DeviceArray`` for ``Array<T>``, which is there until
        :meth:`KernelStorage.free` or :meth:`KernelStorage.close`.

        :param storage: one of those that the storage for kernels was opened on; stays open as long as this
        :param element_bytes: ``sizeof(T)``, a power of two up to a page
        :param count: elements; None: as many as there are behind ``offset``
        :param offset: bytes before element 0, a multiple of ``element_bytes``
        :param writable: whether kernels may store elements; the storage was opened for writing then
        """
        element_bytes = unsigned(element_bytes, "element_bytes", 32)
        offset = unsigned(offset, "offset")
        if count is None:
            count = max(0, storage.size - offset) // max(1, element_bytes)
        address = c_uint64()
        _native.check(
            _native.lib().gpunvme_cache_array(
                self._handle.open,
                storage._handle.open,
                offset,
                unsigned(count, "count"),
                element_bytes,
                _native.WRITE if writable else 0,
                byref(address),
            )
        )
        return address.value

    def rows(
        self, storage: Storage, row_bytes: int, count: int | None = None, offset: int = 0, writable: bool = False
    ) -> Rows:
        """A matrix of a storage, whose rows lie one behind the other.

        :param storage: as for :meth:`array`
        :param row_bytes: above 0
        :param count: rows; None: as many as there are behind ``offset``
        :param offset: bytes before row 0
        :param writable: whether rows may be updated; the storage was opened for writing then
        """
        row_bytes = unsigned(row_bytes, "row_bytes")
        offset = unsigned(offset, "offset")
        if count is None:
            count = max(0, storage.size - offset) // max(1, row_bytes)
        return Rows(self, storage, row_bytes, unsigned(count, "count"), offset, writable)

    def flush(self, timeout: float | None = None) -> None:
        """Has everything that was stored written to the SSDs and made durable. No kernel runs that stores, but those of rows.

        :param timeout: seconds that it may take; None: without a limit
        :raises TransferError: if a page could not be written; it stays in the cache, to be flushed again
        """
        limit = _native.FOREVER if timeout is None else max(0, min(int(timeout * 1e9), _native.FOREVER))
        _native.check(_native.lib().gpunvme_cache_flush(self._handle.open, limit))

    def counters(self) -> dict[str, Any]:
        """What was counted, in pages, also while kernels run: ``acquires``, ``hit_rate``, ``misses``, ``reads``, ``writes``, and more."""
        told: dict[str, Any] = json.loads(_native.read_text(_native.lib().gpunvme_cache_counters, self._handle.open))
        return told

    @property
    def closed(self) -> bool:
        return self._handle.closed

    def close(self) -> None:
        """Frees the pages, with all arrays and rows; what was not flushed is lost. No kernel uses it any more.

        :raises BusyError: while a kernel is waited for, or commands may still move data; :meth:`KernelStorage.recover` ends these
        """
        _native.check(self._handle.close())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self._handle.close()


class Rows:
    """A matrix on SSDs whose rows the GPU moves by their numbers; made by :meth:`PageCache.rows`. Safe for all threads.

    :meth:`gather`, :meth:`fetch` and :meth:`update` put a kernel into a stream and return at once. Their memory stays until it is
    over. What failed is raised by the next of them, which starts nothing then, or by :meth:`synchronize`: InvalidError for a number
    that no row has, else TransferError, TimedOutError, BusyError (no frame) or CancelledError (stopped). A row that does not come is filled with bytes FFh, which are no number in
    floating point.
    """

    def __init__(
        self, cache: PageCache, storage: Storage, row_bytes: int, count: int, offset: int, writable: bool
    ) -> None:
        library = _native.lib()
        native = c_void_p()
        flags = _native.WRITE if writable else 0
        _native.check(
            library.gpunvme_rows_open(
                cache._handle.open, storage._handle.open, offset, count, row_bytes, flags, byref(native)
            )
        )
        assert native.value is not None
        self._handle = Handle(native.value, library.gpunvme_rows_close, "the rows")
        self._handle.own(self)
        self._keep = (cache, storage)
        self.count = count
        self.row_bytes = row_bytes
        self.writable = writable

    def gather(self, ids: Any, into: Any, stream: Any = None) -> None:
        """Copies rows into memory of the GPU, those that the cache does not have from the SSD.

        :param ids: signed 64-bit numbers of rows in memory of the GPU, in any order, some perhaps more than once
        :param into: memory of the GPU, for as many rows
        :param stream: of PyTorch, CuPy, PyCUDA or an int, in whose order it happens; None: the default stream
        """
        self._move(_native.lib().gpunvme_rows_gather, ids, into, stream)

    def update(self, ids: Any, source: Any, stream: Any = None) -> None:
        """Overwrites rows in the cache; :meth:`PageCache.flush` writes them to the SSD.

        Of a row that is named more than once any of its values may be kept, or parts of several.
        """
        self._move(_native.lib().gpunvme_rows_update, ids, source, stream)

    def fetch(self, ids: Any, stream: Any = None) -> None:
        """Has rows read into the cache, without copying them: :meth:`gather` is faster then."""
        found = region(ids, writable=False)
        if stream is None:
            found.settle()
        count = self._count(found.nbytes)
        handle = 0 if stream is None else stream_handle(stream)
        _native.check(_native.lib().gpunvme_rows_fetch(self._handle.open, found.address, count, handle))

    def _move(self, function: Any, ids: Any, memory: Any, stream: Any) -> None:
        named = region(ids, writable=False)
        moved = region(memory, writable=function is _native.lib().gpunvme_rows_gather)
        if stream is None:
            named.settle()
            moved.settle()
        count = self._count(named.nbytes)
        if moved.nbytes != count * self.row_bytes:
            raise ValueError(f"{count} rows of {self.row_bytes} bytes are not the {moved.nbytes} bytes of the memory")
        handle = 0 if stream is None else stream_handle(stream)
        _native.check(function(self._handle.open, named.address, count, moved.address, handle))

    @staticmethod
    def _count(nbytes: int) -> int:
        if nbytes % _ID_BYTES != 0:
            raise ValueError(f"numbers of rows are 64-bit integers: {nbytes} bytes are no whole number of them")
        return nbytes // _ID_BYTES

    def synchronize(self) -> None:
        """Waits until all that was started is over, and raises what failed."""
        _native.check(_native.lib().gpunvme_rows_synchronize(self._handle.open))

    @property
    def closed(self) -> bool:
        return self._handle.closed

    def close(self) -> None:
        """Waits for what was started."""
        _native.check(self._handle.close())
