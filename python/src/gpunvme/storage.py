"""Files and SSDs, read into memory of a GPU."""

from __future__ import annotations

import json
import os
import threading
import weakref
from array import array
from collections.abc import Callable, Iterable, Sequence
from ctypes import byref, c_void_p
from typing import Any, NamedTuple

from . import _native
from ._checks import unsigned
from ._handle import Handle
from .memory import DeviceArray, Region, region, stream_handle
from .request import Request


class Plan(NamedTuple):
    """The I/Os that a read would do."""

    ios: int
    """Reads of the device or file."""
    bytes: int
    """By these, together."""
    bytes_overread: int
    """Read only because they lie in the same blocks, or between ranges."""
    bytes_staged: int
    """That take a copy more on their way."""


class _Transfer:
    """Ranges as the C library takes them, with what keeps their memory."""

    def __init__(self, ranges: Iterable[Sequence[Any]], *, writable: bool, settle: bool = True) -> None:
        flat: list[int] = []
        keep: list[Any] = []
        self.nbytes = 0
        for entry in ranges:
            if not 2 <= len(entry) <= 3:
                raise TypeError(f"a range is (offset, memory) or (offset, memory, bytes), not {entry!r}")
            offset = unsigned(entry[0], "offset")
            found: Region = region(entry[1], entry[2] if len(entry) == 3 else None, writable=writable)
            if found.nbytes == 0:
                continue
            if settle:
                found.settle()
            flat += (offset, found.address, found.nbytes)
            keep.append(found.keep)
            self.nbytes += found.nbytes
        self.keep = keep
        self.count = len(flat) // 3
        self.native: Any = None
        if self.count == 1:
            self.native = _native.Range(*flat)  # an array takes three times as long
        elif flat:
            self.native = (_native.Range * self.count).from_buffer(array("Q", flat))


class Storage:
    """A file, an SSD, or a set of them.

    :param uri: ``/data/model.bin?path=pinned``, ``sim:size=64MiB``, ``vfio:0000:01:00.0``; docs/paths.md has all
    :param accelerator: ``"gpu"`` (the first), ``"gpu:1"`` as CUDA counts, the PCI address or UUID of a GPU, ``"cpu"`` (the
        stand-in), ``"auto"`` or None: what GPUNVME_ACCELERATOR names, or else the first GPU, or else the stand-in. Memory
        of the other GPUs is read into and written from, too
    :param write: whether it may be written

    Safe for all threads. Offsets and lengths are bytes of any alignment. Where memory is taken, ``into`` and ``source``
    may be whatever :func:`gpunvme.memory.region` knows, on a GPU or in host memory.
    """

    def __init__(self, uri: str | os.PathLike[str], accelerator: str | None = None, write: bool = False) -> None:
        native = c_void_p()
        kind = _native.accelerator(accelerator)
        flags = _native.WRITE if write else 0
        _native.check(_native.lib().gpunvme_open(_native.encoded(uri), kind, flags, byref(native)))
        self._begin(native, os.fspath(uri), write)

    def _begin(self, native: c_void_p, uri: str, write: bool) -> None:
        """With what the library has opened."""
        assert native.value is not None
        library = _native.lib()
        self.uri = uri
        self._handle = Handle(native.value, library.gpunvme_close, self.uri)
        self._handle.own(self)
        self._requests: weakref.WeakSet[Request] = weakref.WeakSet()
        self._lock = threading.RLock()
        info = _native.Info()
        try:
            _native.check(library.gpunvme_get_info(native, byref(info)))
        except BaseException:
            self.close()
            raise
        self.size: int = info.size
        self.alignment: int = info.alignment
        self.block_bytes: int = info.block_bytes
        self.on_gpu: bool = bool(info.gpu)
        self.accelerator: str = f"gpu:{info.device}" if info.gpu else "cpu"
        """``"gpu:1"``, as CUDA counts, or ``"cpu"``."""
        self.write_allowed = write

    def on(self, accelerator: str) -> Storage:
        """The same storage for another accelerator, over the same open file or SSD, with queues of its own.

        For kernels, layers and memory of that one; reads and writes find the GPU by their memory. Closing it leaves this
        one open; closing this one closes it.
        """
        native = c_void_p()
        name = _native.accelerator(accelerator)
        _native.check(_native.lib().gpunvme_storage_on(self._handle.open, name, byref(native)))
        other = Storage.__new__(Storage)
        other._begin(native, self.uri, self.write_allowed)
        return other

    # ---- moving bytes

    def read(self, offset: int, into: Any, bytes: int | None = None) -> int:
        """Reads bytes of them (as many as ``into`` has) from offset on, waits, and returns their number.

        Ctrl-C ends it: when KeyboardInterrupt is raised, nothing uses the memory any more.
        """
        return self._move(_Transfer([(offset, into, bytes)], writable=True), False)

    def write(self, offset: int, source: Any, bytes: int | None = None) -> int:
        """Writes, waits, and returns the number of bytes. They are on stable storage after :meth:`flush`."""
        return self._move(_Transfer([(offset, source, bytes)], writable=False), True)

    def read_ranges(self, ranges: Iterable[Sequence[Any]]) -> int:
        """Reads many ``(offset, into)`` or ``(offset, into, bytes)`` at once, in any order."""
        return self._move(_Transfer(ranges, writable=True), False)

    def write_ranges(self, ranges: Iterable[Sequence[Any]]) -> int:
        """Writes many ``(offset, source)`` or ``(offset, source, bytes)`` at once, in any order."""
        return self._move(_Transfer(ranges, writable=False), True)

    def flush(self) -> None:
        """When this returns, all written data is on stable storage."""
        _native.check(_native.lib().gpunvme_flush(self._handle.open))

    def submit_read(self, offset: int, into: Any, bytes: int | None = None, stream: Any = None) -> Request:
        """Reads without waiting.

        :param stream: of PyTorch, CuPy, PyCUDA or an int; work that is put into it afterwards sees the data
        """
        return self._submit_one(offset, into, bytes, stream, False)

    def submit_write(self, offset: int, source: Any, bytes: int | None = None, stream: Any = None) -> Request:
        """Writes without waiting; with a stream, writes the data that earlier work in the stream left."""
        return self._submit_one(offset, source, bytes, stream, True)

    def submit_read_ranges(self, ranges: Iterable[Sequence[Any]]) -> Request:
        """Many at once, as :meth:`read_ranges`, without waiting. If one of them fails, the request fails."""
        return self._submit(_Transfer(ranges, writable=True), False)

    def submit_write_ranges(self, ranges: Iterable[Sequence[Any]]) -> Request:
        """Many at once, as :meth:`write_ranges`, without waiting. If one of them fails, the request fails."""
        return self._submit(_Transfer(ranges, writable=False), True)

    def read_array(
        self, offset: int, bytes: int, dtype: str = "|u1", shape: Sequence[int] | None = None
    ) -> DeviceArray:
        """Reads into new memory of the accelerator."""
        into = self.allocate(bytes, dtype, shape)
        self.read(offset, into)
        return into

    # ---- telling

    def plan(self, ranges: Iterable[Sequence[Any]]) -> Plan:
        """The I/Os that :meth:`read_ranges` would do. Reads nothing."""
        transfer = _Transfer(ranges, writable=False, settle=False)
        info = _native.PlanInfo()
        if transfer.count:
            _native.check(
                _native.lib().gpunvme_plan(self._handle.open, transfer.native, transfer.count, byref(info))
            )
        return Plan(info.ios, info.bytes, info.bytes_overread, info.bytes_staged)

    def stats(self) -> dict[str, Any]:
        """The counts of each path ("paths") and of each member of a set ("members"), and the slowest of these ("slowest": its
        "name" and "why"; None if it is not a set)."""
        told: dict[str, Any] = json.loads(_native.read_text(_native.lib().gpunvme_stats, self._handle.open))
        return told

    def explain(self) -> str:
        """The path in use, why no better path is, and how to change that."""
        return _native.read_text(_native.lib().gpunvme_explain, self._handle.open)

    # ---- memory

    def allocate(self, bytes: int, dtype: str = "|u1", shape: Sequence[int] | None = None) -> DeviceArray:
        """Zeroed, page-aligned memory of the accelerator, which outlives the storage."""
        self._handle.open
        return DeviceArray.allocate(bytes, self.accelerator, shape, dtype)

    # ---- the end

    @property
    def closed(self) -> bool:
        return self._handle.closed

    def close(self) -> None:
        """Ends running requests, which fail as cancelled, and closes the file or SSD.

        Arrays of :meth:`allocate` and :meth:`read_array` live on.
        """
        with self._lock:
            requests = list(self._requests)
        for request in requests:
            request.cancel()
        self._handle.close()

    def __enter__(self) -> Storage:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Storage({self.uri!r}, {self.size} bytes{', closed' if self.closed else ''})"

    def __reduce__(self) -> Any:
        raise TypeError("a Storage belongs to its process: open another one in the other process")

    def _move(self, transfer: _Transfer, write: bool) -> int:
        native = self._handle.open
        if transfer.count == 0:
            return 0
        library = _native.lib()
        function = library.gpunvme_write_ranges_cancellable if write else library.gpunvme_read_ranges_cancellable
        _native.cancellable(function, native, transfer.native, transfer.count)
        return transfer.nbytes

    def _submit_one(self, offset: int, memory: Any, bytes: int | None, stream: Any, write: bool) -> Request:
        if stream is None:
            return self._submit(_Transfer([(offset, memory, bytes)], writable=not write), write)
        transfer = _Transfer([(offset, memory, bytes)], writable=not write, settle=False)
        native, library = self._handle.open, _native.lib()
        function = library.gpunvme_submit_write_on_stream if write else library.gpunvme_submit_read_on_stream
        handle = stream_handle(stream)
        transfer.keep.append(stream)

        def submit(request: c_void_p) -> int:
            one = transfer.native
            return int(function(native, one.offset, one.address, one.bytes, handle, byref(request)))

        return self._request(transfer, submit)

    def _submit(self, transfer: _Transfer, write: bool) -> Request:
        native, library = self._handle.open, _native.lib()
        function = library.gpunvme_submit_write if write else library.gpunvme_submit_read
        return self._request(
            transfer, lambda request: int(function(native, transfer.native, transfer.count, byref(request)))
        )

    def _request(self, transfer: _Transfer, submit: Callable[[c_void_p], int]) -> Request:
        request = Request(transfer.nbytes, (self, transfer.keep), submit)
        with self._lock:
            self._requests.add(request)
        return request
