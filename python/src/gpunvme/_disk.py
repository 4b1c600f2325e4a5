"""Tensors on SSDs whose rows are gathered and updated by their numbers."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any, Self

import torch

from ._checks import size, unsigned
from ._device import accelerator, device_of, torch_device
from .cache import PageCache, Rows
from .errors import UnsupportedError
from .kernels import KernelStorage
from .storage import Storage

_QUARTER_GIB = 256 << 20


class DiskTensor:
    """A tensor that stays on an SSD, larger than the GPU's memory: rows of it are gathered and updated by their numbers.

    >>> features = DiskTensor("vfio:0000:01:00.0:/features.bin", (111_059_956, 128), torch.float32, cache_bytes="8GiB")
    >>> batch = features.gather(ids)            # ids on the GPU, rows on the GPU; nothing passes the host

    On a GPU, kernels read what their cache does not have from the SSD by themselves, in the order of the current stream, and the
    calls return at once. On the CPU stand-in the CPU reads and writes rows, without a cache, and calls return when it is done.
    :attr:`initiator` says which.

    What failed on a GPU is raised by the next call, or by :meth:`synchronize`; rows that did not come are filled with bytes FFh,
    which are no number in floating point.

    :param storage: an SSD, a partition, a file on one, a stripe set: open, or its address. An ordinary file has the address
        ``sim:file=/data/features.bin``: an embedded SSD serves it. What this opens it closes, too
    :param shape: rows, and the shape of a row: ``(rows, 128)``; ``(n,)`` has rows of one element
    :param dtype: of the elements
    :param offset: bytes of the storage before row 0
    :param cache_bytes: of pages in the GPU's memory (with placement ``"host"`` in pinned host memory), or a text such as ``"8GiB"``
    :param host_bytes: of pinned host memory behind that, for pages that are missed often, of tensors that are not written; 0: none
    :param page_bytes: what one miss reads, from 512 to 65536: the length of a row, or about that
    :param write: whether rows may be updated; an open storage was opened for writing then
    :param placement: of the queues, as :class:`KernelStorage` has it; None: ``"vram-data"``, but ``"host"`` with an embedded SSD, which
        would need the driver to copy into GPU memory while PyTorch may wait in it
    :param cache: that of another tensor on the same storages, instead of one of its own: ``other.cache``
    :param device: ``"cuda"`` or ``"cpu"``, the stand-in; None: the GPU if there is one, or where an open storage is

    Safe for all threads, but for :attr:`grad`.
    """

    def __init__(
        self,
        storage: Storage | str | os.PathLike[str],
        shape: Sequence[int],
        dtype: torch.dtype,
        offset: int = 0,
        *,
        cache_bytes: int | str = _QUARTER_GIB,
        host_bytes: int | str = 0,
        page_bytes: int = 4096,
        write: bool = False,
        placement: str | None = None,
        cache: PageCache | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        self.shape = torch.Size(unsigned(length, "a shape's length") for length in shape)
        if len(self.shape) == 0 or self.shape.numel() == 0:
            raise ValueError(f"a tensor on an SSD has at least one row, with something in it: {tuple(shape)}")
        self.dtype = dtype
        self.offset = unsigned(offset, "offset")
        self.row_shape = self.shape[1:]
        self.row_bytes = math.prod(self.row_shape) * dtype.itemsize
        self.write_allowed = write
        self.grad: torch.Tensor | None = None
        """What :meth:`gather` with ``requires_grad`` has accumulated in backward passes: sparse, of the tensor's shape."""
        self._closing: list[Any] = []
        try:
            self.storage = self._opened(storage, device)
            self.device = device_of(self.storage.accelerator)
            if self.offset + self.nbytes > self.storage.size:
                raise ValueError(
                    f"{tuple(self.shape)} of {dtype} from byte {offset} on needs {self.offset + self.nbytes} bytes, and"
                    f" {self.storage.uri} has {self.storage.size}"
                )
            self._rows: Rows | None = None
            self.cache: PageCache | None = None
            if self.storage.on_gpu:
                self.cache = cache or self._new_cache(cache_bytes, host_bytes, page_bytes, placement)
                self._rows = self.cache.rows(self.storage, self.row_bytes, self.shape[0], self.offset, write)
                self._closing.append(self._rows)
            elif cache is not None:
                raise ValueError("on the CPU stand-in there is no cache to share")
        except BaseException:
            self._close()
            raise
        self._side: Any = None

    def _opened(self, storage: Storage | str | os.PathLike[str], device: torch.device | str | None) -> Storage:
        wanted = None if device is None else accelerator(torch_device(device))
        if isinstance(storage, Storage):
            if self.write_allowed and not storage.write_allowed:
                raise ValueError(f"{storage.uri} was opened for reading only: open it with write=True")
            if wanted is None or wanted == storage.accelerator:
                return storage
            if not storage.on_gpu or wanted == "cpu":
                raise ValueError(f"{storage.uri} was opened for {storage.accelerator}: its tensors are there, not on {device}")
            opened = storage.on(wanted)
        else:
            opened = Storage(storage, wanted, self.write_allowed)
        self._closing.append(opened)
        return opened

    def _new_cache(self, cache_bytes: int | str, host_bytes: int | str, page_bytes: int, placement: str | None) -> PageCache:
        try:
            kernels = KernelStorage(self.storage, placement or ("host" if "sim:" in self.storage.uri else "vram-data"))
        except UnsupportedError as e:
            raise UnsupportedError.of(
                f"{e}. A file that the system has opened is read by kernels as sim:file={self.storage.uri}"
            ) from e
        self._closing.append(kernels)
        made = PageCache(kernels, size(cache_bytes, "cache_bytes"), page_bytes, host_bytes=host_bytes)
        self._closing.append(made)
        return made

    # ---- what it is

    @property
    def nbytes(self) -> int:
        """On the SSD."""
        return self.shape[0] * self.row_bytes

    @property
    def initiator(self) -> str:
        """Who submits the commands: ``"gpu"`` or ``"cpu"``."""
        return "cpu" if self._rows is None else "gpu"

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"DiskTensor({self.storage.uri!r}, {tuple(self.shape)}, {self.dtype}, by the {self.initiator.upper()})"

    # ---- rows

    def gather(
        self, ids: torch.Tensor, out: torch.Tensor | None = None, *, requires_grad: bool = False
    ) -> torch.Tensor:
        """Rows by their numbers: a tensor of shape ``(*ids.shape, *row_shape)``.

        :param ids: integers of any shape, from 0 on, in any order, some perhaps more than once. On the GPU; others are copied there
        :param out: contiguous, to be filled instead of a new one
        :param requires_grad: whether a backward pass through the rows adds to :attr:`grad`
        """
        if requires_grad:
            if out is not None:
                raise ValueError("out and requires_grad: a tensor that is overwritten has no gradient")
            if not self.dtype.is_floating_point:
                raise ValueError(f"only floating point has gradients, not {self.dtype}")
            anchor = torch.empty(0, dtype=self.dtype, requires_grad=True)
            rows: torch.Tensor = _Gather.apply(anchor, self, ids)  # type: ignore[no-untyped-call]
            return rows
        ids = self._ids(ids)
        into = self._empty((*ids.shape, *self.row_shape)) if out is None else self._rows_of(ids, out, "out")
        if self._rows is not None:
            self._rows.gather(ids, into, self._stream())
        elif ids.numel():
            self._check_host(ids)
            self.storage.read_ranges(self._range(i, k, into) for k, i in enumerate(ids.view(-1).tolist()))
        return into

    def update(self, ids: torch.Tensor, rows: torch.Tensor) -> None:
        """Overwrites rows; :meth:`flush` has them written to the SSD.

        Of a row that is named more than once any of its values may be kept, or parts of several.

        :param rows: of shape ``(*ids.shape, *row_shape)`` and of this tensor's type
        """
        if not self.write_allowed:
            raise ValueError("this tensor was opened for reading only: open it with write=True")
        ids = self._ids(ids)
        rows = self._rows_of(ids, rows.detach().resolve_conj().resolve_neg().to(self.device).contiguous(), "rows")
        if self._rows is not None:
            self._rows.update(ids, rows, self._stream())
        elif ids.numel():
            self._check_host(ids)
            # A row that is named twice would be written twice at once.
            last = dict(zip(ids.view(-1).tolist(), range(ids.numel()), strict=True))
            self.storage.write_ranges(self._range(i, k, rows) for i, k in last.items())

    def prefetch(self, ids: torch.Tensor) -> None:
        """Has rows read into the cache beside what the current stream does: :meth:`gather` waits less for them, or not at all.

        On the CPU stand-in, which has no cache, this does nothing.
        """
        if self._rows is None:
            return
        ids = self._ids(ids)
        if not ids.is_cuda:
            self._rows.fetch(ids)
            return
        if self._side is None:
            self._side = torch.cuda.Stream(ids.device)  # type: ignore[no-untyped-call]
        self._side.wait_stream(torch.cuda.current_stream(ids.device))
        ids.record_stream(self._side)
        self._rows.fetch(ids, self._side)

    def __getitem__(self, index: Any) -> torch.Tensor:
        """Rows ``[i]``, ``[i:j]``, ``[i:j:step]`` or ``[ids]``; negative numbers count from the end, but not those in ``ids``."""
        if isinstance(index, torch.Tensor):
            return self.gather(index)
        if isinstance(index, slice):
            ids = torch.arange(*index.indices(len(self)), dtype=torch.int64, device=self.device)
            return self.gather(ids)
        i = int(index)
        if not -len(self) <= i < len(self):
            raise IndexError(f"row {i} of {len(self)} rows")
        return self.gather(torch.tensor([i % len(self)], device=self.device))[0]

    def _ids(self, ids: torch.Tensor) -> torch.Tensor:
        if ids.is_floating_point() or ids.is_complex() or ids.dtype is torch.bool:
            raise ValueError(f"numbers of rows are integers, not {ids.dtype}")
        return ids.detach().to(device=self.device, dtype=torch.int64).contiguous()

    def _rows_of(self, ids: torch.Tensor, rows: torch.Tensor, what: str) -> torch.Tensor:
        wanted = (*ids.shape, *self.row_shape)
        if rows.device.type != self.device.type or rows.is_conj() or rows.is_neg():
            raise ValueError(f"{what} is plain memory of the {self.device.type}; not of {rows.device}, or a conjugated or negated view")
        if tuple(rows.shape) != wanted or rows.dtype is not self.dtype or not rows.is_contiguous():
            raise ValueError(
                f"{what} is contiguous, of shape {wanted} and {self.dtype}; not of {tuple(rows.shape)} and {rows.dtype}"
            )
        return rows.detach()

    def _check_host(self, ids: torch.Tensor) -> None:
        low, high = (int(v) for v in ids.aminmax())
        if low < 0 or high >= len(self):
            raise IndexError(f"row {low if low < 0 else high}: there are rows 0 to {len(self) - 1}")

    def _range(self, row: int, k: int, rows: torch.Tensor) -> tuple[int, int, int]:
        """A row on the SSD, and its place in memory, number k, which the caller keeps."""
        return self.offset + row * self.row_bytes, rows.data_ptr() + k * self.row_bytes, self.row_bytes

    def _empty(self, shape: Sequence[int]) -> torch.Tensor:
        return torch.empty(tuple(shape), dtype=self.dtype, device=self.device)

    def _stream(self) -> Any:
        return torch.cuda.current_stream(self.device) if self.device.type == "cuda" else None

    # ---- gradients

    def zero_grad(self) -> None:
        """Forgets :attr:`grad`."""
        self.grad = None

    def _accumulate(self, ids: torch.Tensor, grad: torch.Tensor) -> None:
        count = ids.numel()
        one = torch.sparse_coo_tensor(
            ids.reshape(1, count), grad.reshape(count, *self.row_shape), tuple(self.shape), check_invariants=False
        )
        self.grad = one if self.grad is None else self.grad + one

    # ---- the SSD

    def synchronize(self) -> None:
        """Waits until all that was started is over, and raises what failed."""
        if self._rows is not None:
            self._rows.synchronize()

    def flush(self, timeout: float | None = None) -> None:
        """Has all updates written to the SSD and made durable: of all tensors that share the cache.

        :param timeout: seconds that it may take; None: without a limit
        """
        if self.cache is not None:
            self.synchronize()
            self.cache.flush(timeout)
        else:
            self.storage.flush()

    def recover(self) -> None:
        """Makes the queues usable again behind a command that timed out, or an SSD that failed."""
        if self.cache is not None:
            self.cache.kernels.recover()

    def stats(self) -> dict[str, Any]:
        """Who reads, and what its cache has counted (:meth:`PageCache.counters`), or each path of the CPU's."""
        told = {} if self.cache is None else self.cache.counters()
        return {"initiator": self.initiator, **(self.storage.stats() if self.cache is None else told)}

    def close(self) -> None:
        """Waits for what was started, and closes what this opened. What was not flushed is lost."""
        self._close()

    def _close(self) -> None:
        while self._closing:
            self._closing.pop().close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise TypeError("a DiskTensor belongs to its process: open another one in the other process")


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, anchor: torch.Tensor, disk: DiskTensor, ids: torch.Tensor) -> torch.Tensor:
        ids = disk._ids(ids)
        ctx.disk = disk
        ctx.save_for_backward(ids)
        return disk.gather(ids)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[None, None, None]:
        (ids,) = ctx.saved_tensors
        ctx.disk._accumulate(ids, grads[0])
        return None, None, None
