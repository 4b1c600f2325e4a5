"""One device counted in logical blocks: the interface of the project's first proposals."""

from __future__ import annotations

import os
import re
from typing import Any

from ._checks import unsigned, whole
from .memory import DeviceArray
from .request import Request
from .storage import Storage

_MIB = 1 << 20


class NVMeGPU:
    """An SSD (or a file, in blocks of 512 bytes), read in blocks into GPU memory.

    :param uri: ``/dev/nvme0n1``, or anything that :class:`~gpunvme.Storage` takes
    :param accelerator: as there
    :param block_bytes: of a logical block; None: the device's
    :param write: whether it may be written; None: only an embedded SSD that loses its data when closed, or anything if
    GPUNVME_ALLOW_WRITE is 1
    """

    def __init__(
        self,
        uri: str | os.PathLike[str],
        accelerator: str | None = None,
        block_bytes: int | None = None,
        write: bool | None = None,
    ) -> None:
        given = None if block_bytes is None else whole(block_bytes, "block_bytes", 1, 2**63)
        self.storage = _open(uri, accelerator, write)
        self.block_bytes = given or self.storage.block_bytes

    def read(self, lba: int, count: int, gpu_ptr: Any) -> int:
        """Reads count blocks from lba on into an address or any memory, waits, and returns the number of bytes."""
        return self.storage.read(*self._range(lba, gpu_ptr, count))

    def write(self, lba: int, count: int, gpu_ptr: Any) -> int:
        """Writes count blocks from lba on, waits, and returns the number of bytes."""
        return self.storage.write(*self._range(lba, gpu_ptr, count))

    def read_async(self, lba: int, count: int, gpu_ptr: Any, stream: Any = None) -> Request:
        """Reads without waiting."""
        return self.storage.submit_read(*self._range(lba, gpu_ptr, count), stream)

    def write_async(self, lba: int, count: int, gpu_ptr: Any, stream: Any = None) -> Request:
        """Writes without waiting."""
        return self.storage.submit_write(*self._range(lba, gpu_ptr, count), stream)

    def read_to_gpu(self, lba: int, size_mb: float) -> DeviceArray:
        """Reads this many MiB into new GPU memory."""
        return self.storage.read_array(unsigned(lba, "lba") * self.block_bytes, int(size_mb * _MIB))

    def _range(self, lba: int, gpu_ptr: Any, count: int) -> tuple[int, Any, int]:
        return unsigned(lba, "lba") * self.block_bytes, gpu_ptr, unsigned(count, "count") * self.block_bytes

    def flush(self) -> None:
        """When this returns, all written data is on stable storage."""
        self.storage.flush()

    def close(self) -> None:
        self.storage.close()

    def __enter__(self) -> NVMeGPU:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"NVMeGPU({self.storage.uri!r}, blocks of {self.block_bytes} bytes)"


def _open(uri: str | os.PathLike[str], accelerator: str | None, write: bool | None) -> Storage:
    if write is None:
        write = os.environ.get("GPUNVME_ALLOW_WRITE") == "1" or _forgets(os.fspath(uri))
    return Storage(uri, accelerator, write)


def _forgets(uri: str) -> bool:
    """Whether it is an embedded SSD that loses its data when it is closed."""
    return uri.startswith("sim:") and not re.search(r"[:,](ns\d+\.)?file=", uri)
