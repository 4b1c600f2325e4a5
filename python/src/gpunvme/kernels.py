"""SSDs for kernels of your own that read and write them: of CuPy, Numba, PyCUDA and others; docs/device-library.md."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from ctypes import byref, c_uint32, c_uint64, c_void_p
from typing import Any, Final, NamedTuple, Self

from . import _native
from ._checks import unsigned
from ._handle import Handle
from .memory import region, stream_handle
from .storage import Storage

_PLACEMENTS: Final = {"vram-data": 0, "host": 1, "vram": 2}
_RECOVER: Final = 1
_SKIP: Final = 1


def include_dir() -> str:
    """The folder of the device library for a compiler: ``-I`` it, and ``#include "gpunvme/gpunvme.cuh"``."""
    return _native.read_text(_native.lib().gpunvme_include_dir)


class RegisteredBuffer(NamedTuple):
    """Memory that kernels read into and write from."""

    number: int
    """Kernels find it with ``storage->buffer(number, ssd)``."""
    offset: int
    """Where its first byte is there: kernels add it to the offsets that they give to ``read`` and ``write``."""


class _KernelGroup:
    """Kernels that are given the same address, and so are stopped together."""

    def __init__(self, native: int, what: str) -> None:
        self._handle = Handle(native, _native.lib().gpunvme_kernel_storage_close, what, again=True)
        self._handle.own(self)

    @property
    def device_handle(self) -> int:
        """The device address of the ``gpunvme::Storage`` that kernels are given, as a 64-bit number."""
        address = c_uint64()
        _native.check(_native.lib().gpunvme_kernel_storage_device_handle(self._handle.open, byref(address)))
        return address.value

    def wait(self, stream: Any, timeout: float | None = None) -> None:
        """Waits for kernels that use the storage: until all work in a stream is over.

        Call it after each launch, before anything that waits for the GPU: nothing else ends a kernel whose SSD does not answer.
        The kernels are told to stop when an SSD is in trouble, when the time is up, or on Ctrl-C. Their reads and writes then end
        with ``status::kStopped``, and this raises when they are over; call :meth:`KernelStorage.recover` before the next kernel.

        :param stream: of PyTorch, CuPy, PyCUDA, or an int; 0 is the default stream, which Numba uses unless it is told another
        :param timeout: seconds that the kernels may take; None: without a limit
        :raises TimedOutError: if the time was up; also if they did not end within 10 s, and then nothing can be called but :meth:`close`
        :raises TransferError: if an SSD is in trouble
        :raises CancelledError: if this was closed meanwhile
        """
        self._wait(_native.lib().gpunvme_kernel_storage_await, stream_handle(stream), timeout)

    def wait_event(self, event: Any, timeout: float | None = None) -> None:
        """As :meth:`wait`, until all work before an event is over, which was recorded behind the kernels.

        :param event: of PyTorch, CuPy, PyCUDA, or an int
        """
        handle = next((getattr(event, name) for name in ("cuda_event", "ptr", "handle") if hasattr(event, name)), event)
        self._wait(_native.lib().gpunvme_kernel_storage_await_event, unsigned(handle, "an event"), timeout)

    def _wait(self, function: Any, what: int, timeout: float | None) -> None:
        if timeout is None or timeout == float("inf"):
            limit = _native.FOREVER
        elif timeout >= 0:
            limit = min(int(timeout * 1e9), _native.FOREVER)
        else:
            raise ValueError(f"timeout is a number of seconds, 0 or more: {timeout!r}")
        _native.cancellable(function, self._handle.open, what, limit)

    def stop(self, value: bool = True) -> None:
        """Tells kernels to end their waits, or cancels that. It is cancelled by itself when the last one that is waited for is over."""
        _native.check(_native.lib().gpunvme_kernel_storage_stop(self._handle.open, int(value)))

    @property
    def closed(self) -> bool:
        return self._handle.closed

    def close(self) -> None:
        _native.check(self._handle.close())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self._handle.close()


class KernelStorage(_KernelGroup):
    """One namespace of each of one or several SSDs, for kernels that read and write by themselves.

    :param storages: of which SSDs; kernels count these in this order, a stripe set as its SSDs in turn, and use all of each
        namespace. They stay open longer
    :param placement: of the queues: ``"vram-data"`` (in host memory; completions of an SSD that is no embedded one in the
        GPU's), ``"host"`` or ``"vram"``
    :param queue_pairs: on each SSD; 0: as many as are useful, and the SSD has
    :param depth: commands in flight per queue pair, a multiple of 32; 0: as many as are useful
    :param buffers: how many can be registered at a time, 1..65536
    :param nsid: the namespace of each SSD
    :param recovery: an SSD in trouble is recovered while kernels run, which go on: they are told to stop only if it cannot be
        brought back. Commands that were in flight are submitted again, once, by device calls that wait for one command; others end
        with ``status::kAbortedByHost``. Each kernel that runs must be waited for all the time

    Kernels can write even if the storages were opened for reading: nobody sees their commands. Safe for all threads while no
    kernel runs; while one does, only :meth:`wait`, :meth:`wait_event`, :meth:`stop`, :meth:`register`, :attr:`recoveries` and
    :meth:`close` may be called, and those of a :meth:`handle`.
    """

    def __init__(
        self,
        storages: Storage | Sequence[Storage],
        placement: str = "vram-data",
        queue_pairs: int = 0,
        depth: int = 0,
        buffers: int = 64,
        nsid: int = 1,
        recovery: bool = False,
    ) -> None:
        all_of_them = [storages] if isinstance(storages, Storage) else list(storages)
        if placement not in _PLACEMENTS:
            raise ValueError(f"placement is one of {', '.join(_PLACEMENTS)}, not {placement!r}")
        # 0 is the library's word for its default.
        if unsigned(buffers, "buffers", 32) == 0 or unsigned(nsid, "nsid", 32) == 0:
            raise ValueError("buffers and nsid are 1 at least")
        options = _native.KernelOptions(
            _PLACEMENTS[placement],
            unsigned(queue_pairs, "queue_pairs", 32),
            unsigned(depth, "depth", 32),
            buffers,
            nsid,
            _RECOVER if recovery else 0,
        )
        library = _native.lib()
        native = c_void_p()
        handles = (c_void_p * len(all_of_them))(*[storage._handle.open for storage in all_of_them])
        _native.check(library.gpunvme_kernel_storage_open(handles, len(all_of_them), byref(options), byref(native)))
        assert native.value is not None
        super().__init__(native.value, "the storage for kernels")
        self._storages = all_of_them
        self._lock = threading.RLock()
        self._keep: dict[int, Any] = {}

    def register(self, memory: Any, bytes: int | None = None) -> RegisteredBuffer:
        """Registers memory of the GPU that kernels read into and write from, and keeps it until it is unregistered.

        :param memory: whatever :func:`gpunvme.memory.region` knows, on a GPU: tensors, arrays, addresses with ``bytes``
        """
        found = region(memory, bytes, writable=True)
        found.settle()
        number, offset = c_uint32(), c_uint64()
        with self._lock:
            _native.check(
                _native.lib().gpunvme_kernel_storage_register(
                    self._handle.open, found.address, found.nbytes, byref(number), byref(offset)
                )
            )
            self._keep[number.value] = found.keep
        return RegisteredBuffer(number.value, offset.value)

    def unregister(self, number: int) -> None:
        """Takes a buffer back; its number may be another's next.

        :raises BusyError: while a kernel is waited for, or commands may still move data: those that timed out or were stopped,
            or that no kernel waited for. :meth:`recover` ends these
        """
        number = unsigned(number, "a buffer's number", 32)
        with self._lock:
            _native.check(_native.lib().gpunvme_kernel_storage_unregister(self._handle.open, number))
            self._keep.pop(number, None)

    def file(self, storage: Storage) -> int:
        """Tells kernels where the bytes of a storage are: a file on an SSD, a partition, a whole SSD, a stripe set.

        Returns the device address of the ``gpunvme::DeviceFile`` for ``read_file``, which is there until :meth:`free` or
        :meth:`close`. Make it before kernels are launched. Nobody changes the file meanwhile.

        :param storage: one of those that this was opened on
        """
        address = c_uint64()
        _native.check(
            _native.lib().gpunvme_kernel_storage_file(self._handle.open, storage._handle.open, byref(address))
        )
        return address.value

    def directory(self, storage: Storage, path: str, skip: bool = False) -> int:
        """The same for the files below a directory of the ext4 or FAT32 file system on a storage.

        Returns the device address of the ``gpunvme::DeviceDirectory``, with which kernels find files by their paths from the directory
        on, or count through them.

        :param storage: an SSD, a stripe set, a partition, or an image that is a file there
        :param path: of the directory; ``/`` for all of the file system
        :param skip: leaves out what kernels cannot be told of, which :meth:`skipped` tells; docs/device-library.md says what that is
        :raises UnsupportedError: names the first file that kernels cannot be told of, unless these are left out
        :raises NotFoundError: if there is no such directory
        :raises FormatError: if there is no file system, or a damaged one
        """
        address = c_uint64()
        _native.check(
            _native.lib().gpunvme_kernel_storage_directory(
                self._handle.open,
                storage._handle.open,
                _native.without_null(path, "a path"),
                _SKIP if skip else 0,
                byref(address),
            )
        )
        return address.value

    def skipped(self, address: int) -> list[str]:
        """A line for each of the first 1000 files that a directory was made without: its path and the reason.

        :param address: of :meth:`directory`
        """
        text = _native.read_text(
            _native.lib().gpunvme_kernel_storage_skipped, self._handle.open, unsigned(address, "an address")
        )
        return [str(line) for line in json.loads(text)["skipped"]]

    def free(self, address: int) -> None:
        """Frees what :meth:`file` or :meth:`directory` returned; no kernel uses it any more."""
        _native.check(_native.lib().gpunvme_kernel_storage_free(self._handle.open, unsigned(address, "an address")))

    def handle(self) -> KernelHandle:
        """A handle for one of several kernels that run at once, to be stopped and waited for by itself.

        Make those of all kernels before the first is launched.
        """
        return KernelHandle(self)

    def recover(self) -> None:
        """Makes queues usable again that have lost commands, or whose SSD failed. No kernel runs.

        Reads and writes that ended with ``kTimeout`` or ``kStopped`` move no more data.
        """
        _native.check(_native.lib().gpunvme_kernel_storage_recover(self._handle.open))

    @property
    def recoveries(self) -> int:
        """How many recoveries have come to their end while kernels ran (``recovery=True``), of all SSDs together."""
        count = c_uint64()
        _native.check(_native.lib().gpunvme_kernel_storage_recoveries(self._handle.open, byref(count)))
        return count.value

    def errors(self) -> list[str]:
        """A line for each of the first 1000 errors that kernels have met so far. No kernel runs."""
        told = json.loads(_native.read_text(_native.lib().gpunvme_kernel_storage_errors, self._handle.open))
        return [str(line) for line in told["errors"]]

    def close(self) -> None:
        """Stops kernels that are waited for, waits for them, and gives the queues back, with all handles. No other kernel uses it.

        :raises TransferError: if an SSD has not let go of its queues: nothing is freed, and nothing but this can be called. Call it
            again when the storages are closed, at the latest
        """
        super().close()
        with self._lock:
            self._keep.clear()


class KernelHandle(_KernelGroup):
    """A :class:`KernelStorage` as one of several kernels is given it: the same queues and buffers, and a stop of its own.

    Made by :meth:`KernelStorage.handle`; closed before that, or with it. Safe for all threads.
    """

    def __init__(self, kernels: KernelStorage) -> None:
        native = c_void_p()
        _native.check(_native.lib().gpunvme_kernel_storage_handle(kernels._handle.open, byref(native)))
        assert native.value is not None
        super().__init__(native.value, "the handle of a kernel")
        self._kernels = kernels

    def close(self) -> None:
        """Stops the kernel if it is waited for, and waits for it. No other kernel uses this."""
        super().close()
