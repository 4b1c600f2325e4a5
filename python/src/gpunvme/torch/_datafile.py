"""A data file of a checkpoint while it is written, from its beginning to its end, by one thread."""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import errno
import io
import os
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import torch
from torch.distributed.checkpoint.filesystem import _StorageInfo
from torch.distributed.checkpoint.planner import WriteItem, WriteItemType
from torch.distributed.checkpoint.storage import WriteResult

from ..errors import DeniedError, NoSpaceError, TransferError
from . import _records

BLOCK: Final = 4096
"""Places, lengths and memory of O_DIRECT writes are multiples of it; tensors in files begin at one."""

SLABS: Final = 3
"""Pieces of staging memory of a file: one is written, the others are filled meanwhile."""

_LARGE: Final = 1 << 20
"""Bytes of a tensor in host memory from which on it is written from where it is."""

_LEAST_DIRECT: Final = 64 << 20
"""Bytes of a file that is worth O_DIRECT."""


@dataclasses.dataclass
class WriteReport:
    """What a save did on this rank."""

    items: int = 0
    files: int = 0
    bytes_written: int = 0
    """To data files, with what is around tensors and between them."""
    bytes_from_gpu: int = 0
    """Copied to pinned memory by the GPU."""
    bytes_staged: int = 0
    """Of host memory, copied before they were written."""
    bytes_in_place: int = 0
    """Of host memory, written from where they were."""
    bytes_encoded: int = 0
    """Of items that Python or ``torch.save`` encoded: objects, subclasses of Tensor."""
    paths: dict[str, int] = dataclasses.field(default_factory=dict)
    """Files by the way they were written: "O_DIRECT", or "page cache" and why."""
    removed: int = 0
    """Files of earlier saves that were removed; rank 0 counts them."""
    kept: str = ""
    """Why files of earlier saves were kept."""
    seconds: float = 0.0
    """Of the data: from the plan until it is on stable storage."""


class WriteOptions(NamedTuple):
    """How data files are written; :class:`StorageWriter` says what each means."""

    threads: int
    staging_bytes: int
    sync_files: bool
    direct: bool | str
    checksums: bool


def failure(path: Path, error: OSError) -> TransferError | NoSpaceError | DeniedError:
    """The same with a type and the file's name."""
    text, number = f"{path} cannot be written: {error.strerror}", error.errno or 0
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return NoSpaceError(number, f"{text}; the checkpoint before is whole still: make room, and save again")
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return DeniedError(number, text)
    return TransferError(number, f"{text}; the checkpoint before is whole still")


def cuda_in_use() -> bool:
    """Whether there can be tensors on a GPU, whose copies want pinned memory. Does not make CUDA begin."""
    return bool(torch.cuda.is_initialized())  # type: ignore[no-untyped-call]


class Memory:
    """Staging memory that saves have used, kept for the next."""

    def __init__(self) -> None:
        self._free: dict[tuple[int, bool], list[torch.Tensor]] = {}
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def take(self, nbytes: int) -> Iterator[list[torch.Tensor]]:
        pinned = cuda_in_use()
        with self._lock:
            kept = self._free.setdefault((nbytes, pinned), [])
            taken = [kept.pop() for _ in range(min(SLABS, len(kept)))]
        try:
            while len(taken) < SLABS:
                taken.append(_slab(nbytes, pinned))
            yield taken
        finally:
            with self._lock:
                kept.extend(taken)


def _slab(nbytes: int, pinned: bool) -> torch.Tensor:
    whole = torch.empty(nbytes + BLOCK, dtype=torch.uint8, pin_memory=pinned)
    start = -whole.data_ptr() % BLOCK
    return whole[start : start + nbytes]


def _view(tensor: torch.Tensor) -> memoryview:
    """The bytes of a contiguous tensor in host memory, without NumPy."""
    nbytes = tensor.numel() * tensor.element_size()
    return memoryview((ctypes.c_char * nbytes).from_address(tensor.data_ptr())).cast("B")


def _as_bytes(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().view(-1).view(torch.uint8)


class _Slab:
    """A piece of staging memory, and the part of the file that it is for."""

    def __init__(self, memory: torch.Tensor) -> None:
        self.memory = memory
        self.view = _view(memory)
        self.at = 0
        self.filled = 0
        self.copied: torch.cuda.Event | None = None
        self.keep: list[Any] = []


class DataFile:
    """A file that is being written.

    :param nbytes: of its tensors, about
    :param stop: set when the save has failed elsewhere
    """

    def __init__(
        self, path: Path, options: WriteOptions, memory: Memory, report: WriteReport, nbytes: int, stop: threading.Event
    ) -> None:  # fmt: skip
        self.path = path
        self.report = report
        self._options = options
        self._memory = memory
        self._nbytes = nbytes
        self._stop = stop
        self._fd = -1
        self._direct = False
        self._at = 0  # of the next byte
        self._slabs: list[_Slab] = []
        self._waiting: list[_Slab] = []  # full ones, in the file's order; the oldest is written first

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """Makes the file; it is whole when this ends."""
        how = self._open()
        # No more memory than the file needs.
        largest = self._options.staging_bytes // (self._options.threads * SLABS) // BLOCK * BLOCK
        slab = min(largest, 1 << max(self._nbytes + 16 * BLOCK, 16 * BLOCK).bit_length())
        try:
            with self._memory.take(slab) as memory:
                self._slabs = [_Slab(m) for m in memory]
                yield
                self._end()
            self.report.paths[how] = self.report.paths.get(how, 0) + 1
            self.report.bytes_written += self._at
        except OSError as e:
            raise e if isinstance(e, TransferError) else failure(self.path, e) from e
        finally:
            os.close(self._fd)

    def _open(self) -> str:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        wanted = self._options.direct
        if wanted == "auto":
            why = "" if self._options.sync_files else "it is not synced"
            if self._nbytes < _LEAST_DIRECT:
                why = "small"
        else:
            why = "" if wanted else "direct=False"
        try:
            self._fd = os.open(self.path, flags, 0o666)
        except OSError as e:
            raise failure(self.path, e) from e
        if not why:
            try:
                os.close(self._fd)
                self._fd = os.open(self.path, os.O_WRONLY | os.O_DIRECT | os.O_CLOEXEC)
                self._direct = True
                return "O_DIRECT"
            except OSError as e:
                if wanted is True or e.errno != errno.EINVAL:
                    raise failure(self.path, e) from e
                why = "the file system has no O_DIRECT"
                self._fd = os.open(self.path, os.O_WRONLY | os.O_CLOEXEC)
        return f"page cache: {why}"

    @property
    def at(self) -> int:
        return self._at

    def put(self, data: bytes | bytearray | memoryview) -> None:
        """Appends bytes of host memory, which are the caller's again then."""
        view = memoryview(data)
        while view:
            slab = self._room()
            some = min(len(view), len(slab.view) - slab.filled)
            slab.view[slab.filled : slab.filled + some] = view[:some]
            self._filled(slab, some)
            view = view[some:]

    def put_tensor(self, tensor: torch.Tensor) -> int:
        """Appends the bytes of a contiguous tensor of one byte's type; returns their CRC, or 0."""
        on_gpu = tensor.device.type != "cpu"
        crc = 0
        nbytes = tensor.numel()
        if not on_gpu:
            if self._options.checksums and nbytes:
                crc = zlib.crc32(_view(tensor))
            if not self._direct and nbytes >= _LARGE:
                self._flush()
                self._pwrite(_view(tensor), self._at)
                self._at += nbytes
                self.report.bytes_in_place += nbytes
                return crc
            self.report.bytes_staged += nbytes
        else:
            self.report.bytes_from_gpu += nbytes
        start = 0
        while start < nbytes:
            slab = self._room()
            some = min(nbytes - start, slab.memory.numel() - slab.filled)
            into = slab.memory[slab.filled : slab.filled + some]
            into.copy_(tensor[start : start + some], non_blocking=on_gpu)
            if on_gpu:
                slab.keep.append(tensor)
                slab.copied = torch.cuda.Event()  # type: ignore[no-untyped-call]
                slab.copied.record()
                if self._options.checksums:
                    slab.copied.synchronize()
                    crc = zlib.crc32(slab.view[slab.filled : slab.filled + some], crc)
            self._filled(slab, some)
            start += some
        return crc

    def _room(self) -> _Slab:
        """The piece that is being filled."""
        if self._stop.is_set():
            raise TransferError.of(f"{self.path}: the save has failed elsewhere")
        if self._waiting and self._waiting[-1].filled < len(self._waiting[-1].view):
            return self._waiting[-1]
        # The GPU fills the others while the oldest is written.
        slab = self._slabs[len(self._waiting)] if len(self._waiting) < len(self._slabs) else self._write_oldest()
        slab.at, slab.filled = self._at, 0
        self._waiting.append(slab)
        return slab

    def _filled(self, slab: _Slab, nbytes: int) -> None:
        slab.filled += nbytes
        self._at += nbytes

    def _write_oldest(self) -> _Slab:
        slab = self._waiting.pop(0)
        if slab.copied is not None:
            slab.copied.synchronize()
            slab.copied = None
        slab.keep.clear()
        length = slab.filled
        if self._direct:
            padded = -(-length // BLOCK) * BLOCK
            slab.view[length:padded] = bytes(padded - length)
            length = padded
        self._pwrite(slab.view[:length], slab.at)
        return slab

    def _flush(self) -> None:
        """Writes all that waits. With O_DIRECT only at the end: places must stay multiples of a block."""
        slabs = self._slabs
        done = []
        while self._waiting:
            done.append(self._write_oldest())
        self._slabs = done + [s for s in slabs if s not in done]

    def _pwrite(self, view: memoryview, at: int) -> None:
        while view:
            written = os.pwrite(self._fd, view, at)
            view, at = view[written:], at + written

    def _end(self) -> None:
        self._flush()
        if self._direct:
            os.ftruncate(self._fd, self._at)
        if self._options.sync_files:
            os.fsync(self._fd)


def write_file(file: DataFile, items: Sequence[WriteItem], resolve: Callable[[WriteItem], Any], ready: dict[int, torch.cuda.Event]) -> list[WriteResult]:
    results = []
    with torch.no_grad(), _Streams(ready) as streams, file.opened():
        for item in items:
            data = resolve(item)
            if item.type == WriteItemType.BYTE_IO:
                start = file.at
                file.report.bytes_encoded += len(data.getbuffer())
                file.put(data.getbuffer())
            else:
                start = _write_tensor(file, data.detach(), streams)
            length = file.at - start
            results.append(WriteResult(item.index, length, _StorageInfo(file.path.name, start, length)))
            del data
    return results


def _write_tensor(file: DataFile, tensor: torch.Tensor, streams: _Streams) -> int:
    """Appends a tensor as torch.save would, and returns where."""
    if type(tensor) is not torch.Tensor or tensor.layout is not torch.strided or tensor.is_quantized or tensor.is_conj() or tensor.is_neg():
        stream = io.BytesIO()
        torch.save(tensor.cpu().clone(), stream)
        start = file.at
        file.report.bytes_encoded += len(stream.getbuffer())
        file.put(stream.getbuffer())
        return start
    frame = _records.Frame(tensor.dtype, tensor.shape)
    # The bytes begin at a multiple of a block: whoever reads them past the page cache reads no others.
    alignment = BLOCK if frame.nbytes >= BLOCK else _records.ALIGNMENT
    file.put(bytes(-(file.at + len(frame.head)) % alignment))
    start = file.at
    file.put(frame.head)
    with streams.of(tensor.device):
        crc = file.put_tensor(_as_bytes(tensor))
    file.put(frame.tail(crc))
    return start


class _Streams:
    """A stream of this thread on each GPU, for copies beside the program's own work."""

    def __init__(self, ready: dict[int, torch.cuda.Event]) -> None:
        self._ready = ready
        self._streams: dict[int, torch.cuda.Stream] = {}

    def __enter__(self) -> _Streams:
        return self

    def __exit__(self, *_: object) -> None:
        for stream in self._streams.values():
            stream.synchronize()

    def of(self, device: torch.device) -> Any:
        if device.type != "cuda":
            return contextlib.nullcontext()
        index = device.index or 0
        if index not in self._streams:
            self._streams[index] = torch.cuda.Stream(index)  # type: ignore[no-untyped-call]
            if index in self._ready:
                self._streams[index].wait_event(self._ready[index])
        # A planner may have made the tensor just now.
        self._streams[index].wait_stream(torch.cuda.current_stream(index))
        return torch.cuda.stream(self._streams[index])


def ready() -> dict[int, torch.cuda.Event]:
    """For each GPU in use, when the work is done that the caller has given it."""
    if not cuda_in_use():
        return {}
    events = {}
    for device in range(torch.cuda.device_count()):
        # Others stay untouched: a context takes hundreds of MiB.
        if device == torch.cuda.current_device() or torch.cuda.memory_allocated(device):
            events[device] = torch.cuda.Event()  # type: ignore[no-untyped-call]
            events[device].record(torch.cuda.current_stream(device))
    return events
