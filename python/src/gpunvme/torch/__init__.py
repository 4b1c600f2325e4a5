"""PyTorch: tensors filled from storage, or left there; models, and datasets that stream samples."""

from __future__ import annotations

import os
import random
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch.utils.data import IterableDataset, get_worker_info

from .._checks import unsigned, whole
from .._device import accelerator, torch_device
from .._disk import DiskTensor
from .._embedding import EmbeddingTable, SparseAdagrad, SparseSGD
from .._quantised import dequantize
from .._recipe import Piece, Recipe
from .._streamed import StreamedLayers
from ..errors import UnsupportedError
from ..request import Request
from ..storage import Storage
from ..weights import Slice, TensorInfo, Weights
from ._reading import read_whole
from ._shards import LoadedShards, ShardReport, load_sharded
from ._types import layout

__all__ = [
    "DiskTensor",
    "EmbeddingTable",
    "LoadedShards",
    "Piece",
    "Recipe",
    "SampleDataset",
    "ShardReport",
    "SparseAdagrad",
    "SparseSGD",
    "StreamedLayers",
    "TensorSlice",
    "dequantize",
    "load_file",
    "load_sharded",
    "read_into_tensor",
    "safe_open",
]

# ---- one tensor

_default: Storage | None = None
_default_lock = threading.Lock()


def default_storage() -> Storage:
    """The storage of :func:`set_default_storage`; otherwise that of GPUNVME_DEVICE, opened once in this process."""
    global _default
    with _default_lock:
        if _default is None or _default.closed:
            uri = os.environ.get("GPUNVME_DEVICE")
            if not uri:
                raise ValueError("no storage: pass one, or set GPUNVME_DEVICE to an address (docs/paths.md)")
            _default = Storage(uri)
        return _default


def set_default_storage(storage: Storage | None) -> None:
    """Sets the storage that :func:`read_into_tensor` reads by default. The caller closes it."""
    global _default
    with _default_lock:
        _default = storage


def read_into_tensor(
    tensor: torch.Tensor, lba: int = 0, storage: Storage | None = None, block_bytes: int | None = None
) -> torch.Tensor:
    """Fills a contiguous tensor, on a GPU or the CPU, from a logical block on, and returns it.

    :param block_bytes: of a logical block; None: the device's, or 512 of a file
    """
    source = storage or default_storage()
    block = source.block_bytes if block_bytes is None else whole(block_bytes, "block_bytes", 1, 2**63)
    source.read(unsigned(lba, "lba") * block, tensor)
    return tensor


# ---- models


def load_file(
    filename: str | os.PathLike[str], device: torch.device | str | int | None = None
) -> dict[str, torch.Tensor]:
    """Reads a model (safetensors, GGUF; a file, a folder, an address) to tensors that own their memory.

    :param device: ``"cuda:1"``, ``"cpu"``; None: the current GPU if there is one, else the CPU
    """
    with safe_open(filename, "pt", device) as model:
        return model.get_tensors(model.keys())


class safe_open:  # the name and shape of safetensors' own
    """A model whose tensors are read one by one.

    >>> with safe_open("model.safetensors", framework="pt", device="cuda") as model:
    ...     weight = model.get_tensor("lm_head.weight")
    ...     part = model.get_slice("lm_head.weight")[:1000]
    """

    def __init__(
        self,
        filename: str | os.PathLike[str],
        framework: str = "pt",
        device: torch.device | str | int | None = None,
    ) -> None:
        if framework not in ("pt", "torch", "pytorch"):
            raise ValueError(f"framework must be 'pt', not {framework!r}")
        self._device = torch_device(device)
        self._weights = Weights(filename, accelerator(self._device))

    def keys(self) -> list[str]:
        """The names of the tensors, in the model's order."""
        return list(self._weights.tensors)

    offset_keys = keys

    def metadata(self) -> dict[str, Any]:
        return dict(self._weights.metadata)

    def get_tensor(self, name: str) -> torch.Tensor:
        """Reads one tensor."""
        return self.get_tensors([name])[name]

    def get_tensors(self, names: Sequence[str]) -> dict[str, torch.Tensor]:
        """Reads some, all at once."""
        return read_whole(self._weights, [self._weights.info(name) for name in dict.fromkeys(names)], self._device)

    def get_slice(self, name: str) -> TensorSlice:
        """A tensor of which parts are read, by ``[...]``."""
        return TensorSlice(self, self._weights.info(name))

    def close(self) -> None:
        self._weights.close()

    def __enter__(self) -> safe_open:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read_part(self, info: TensorInfo, part: Slice) -> torch.Tensor:
        dtype, shape = layout(info)
        if shape != info.shape and part.dimension == len(shape) - 1:
            raise UnsupportedError.of(
                f"rows of {info.name!r} are quantised ({info.dtype}) and cannot be cut; slice another dimension"
            )
        shape = (*shape[: part.dimension], part.stop - part.start, *shape[part.dimension + 1 :])
        tensor = torch.empty(shape, dtype=dtype, device=self._device)
        self._weights.read([(info.name, tensor, part)])
        return tensor


class TensorSlice:
    """A tensor that is read when it is indexed: along one dimension, it reads no more than the requested part."""

    def __init__(self, model: safe_open, info: TensorInfo) -> None:
        self._model = model
        self._info = info

    def get_shape(self) -> list[int]:
        return list(self._info.shape)

    def get_dtype(self) -> str:
        return self._info.dtype

    def __getitem__(self, index: Any) -> torch.Tensor:
        shape = self._info.shape
        parts = _indices(index, len(shape))
        # The dimension that leaves most out is read in part; the others are cut afterwards.
        best, best_share, window = -1, 1.0, (0, 0)
        for dimension, part in enumerate(parts):
            start, stop = _window(part, shape[dimension])
            share = (stop - start) / shape[dimension] if shape[dimension] else 1.0
            if share < best_share:
                best, best_share, window = dimension, share, (start, stop)
        if best < 0:
            tensor = self._model.get_tensor(self._info.name)
        elif window[0] == window[1]:
            dtype, full = layout(self._info)
            size = (*full[:best], 0, *full[best + 1 :])
            tensor = torch.empty(size, dtype=dtype, device=self._model._device)
        else:
            tensor = self._model._read_part(self._info, Slice(best, *window))
        rest = [_shifted(p, shape[d], window[0]) if d == best else p for d, p in enumerate(parts)]
        if all(p == slice(None) for p in rest):
            return tensor
        return tensor[tuple(rest)]


def _indices(index: Any, dimensions: int) -> list[Any]:
    """One int or slice for each dimension."""
    given = list(index) if isinstance(index, tuple) else [index]
    if Ellipsis in given:
        at = given.index(Ellipsis)
        given[at : at + 1] = [slice(None)] * (dimensions - len(given) + 1)
    if len(given) > dimensions:
        raise IndexError(f"{len(given)} indices for {dimensions} dimensions")
    for part in given:
        if not isinstance(part, (int, slice)):
            raise TypeError(f"index a tensor with ints and slices, not with {type(part).__name__}")
        if isinstance(part, slice) and part.step is not None and part.step < 1:
            raise ValueError("a slice's step must be 1 or more")
    return given + [slice(None)] * (dimensions - len(given))


def _window(part: int | slice, length: int) -> tuple[int, int]:
    """The first element that is needed, and the one after the last."""
    if isinstance(part, int):
        if not -length <= part < length:
            raise IndexError(f"index {part} is outside a dimension of {length}")
        return part % length, part % length + 1
    start, stop, _ = part.indices(length)
    return start, max(start, stop)


def _shifted(part: int | slice, length: int, by: int) -> int | slice:
    """The same relative to the window's start."""
    if isinstance(part, int):
        return part % length - by
    step = part.step or 1
    return slice(None) if step == 1 else slice(0, None, step)


# ---- datasets


class SampleDataset(IterableDataset[Any]):
    """Streams samples of a file or device, many reads ahead, each into a tensor of its own.

    Samples have one length, ``sample_bytes`` at ``offset + i * sample_bytes``, or the places in ``offsets`` and
    ``lengths``. Each worker of a DataLoader takes its share of them and opens the storage for itself. The workers must
    be started by ``multiprocessing_context="spawn"`` if this process has used the library before: a forked one is refused.

    :param count: of samples of one length; None: as many as the storage has
    :param indices: which ones, in this order; None: all
    :param seed: not None: in random order, another one for each epoch; see :meth:`set_epoch`
    :param dtype: of the tensors; None: bytes
    :param shape: of each; None: one dimension
    :param device: None: the CPU in workers, else the GPU if there is one
    :param ahead: reads running at a time
    :param transform: applied to each tensor; its result is the sample
    """

    def __init__(
        self,
        uri: str | os.PathLike[str],
        *,
        sample_bytes: int | None = None,
        offset: int = 0,
        count: int | None = None,
        offsets: Sequence[int] | None = None,
        lengths: Sequence[int] | None = None,
        indices: Sequence[int] | None = None,
        seed: int | None = None,
        dtype: torch.dtype | None = None,
        shape: Sequence[int] | None = None,
        device: torch.device | str | int | None = None,
        ahead: int = 32,
        transform: Callable[[torch.Tensor], Any] | None = None,
    ) -> None:
        super().__init__()
        if (sample_bytes is None) == (offsets is None) or (offsets is None) != (lengths is None):
            raise ValueError("give the places of the samples: either sample_bytes, or offsets and lengths")
        if offsets is not None and lengths is not None and len(offsets) != len(lengths):
            raise ValueError(f"{len(offsets)} offsets and {len(lengths)} lengths: must be equally many")
        if ahead < 1 or (sample_bytes is not None and sample_bytes < 1):
            raise ValueError("ahead and sample_bytes must be 1 or more")
        self.uri = os.fspath(uri)
        self.sample_bytes = None if sample_bytes is None else unsigned(sample_bytes, "sample_bytes")
        self.offset = unsigned(offset, "offset")
        self.count = None if count is None else unsigned(count, "count")
        if offsets is not None:
            self.count = len(offsets)
        self.offsets = offsets
        self.lengths = lengths
        self.indices = indices
        self.seed = seed
        self.dtype = dtype or torch.uint8
        self.shape = None if shape is None else tuple(shape)
        self.device = device
        self.ahead = ahead
        self.transform = transform
        self.epoch = 0
        self._epoch_was_set = False
        self._storage: Storage | None = None
        self._storage_pid = 0

    def set_epoch(self, epoch: int) -> None:
        """Sets the next random order: the one of seed and epoch, in every process that reads.

        Without it each iteration has another order. In this process the next epoch's; in workers of a DataLoader, which
        get a copy of this object for each iteration, one of seed and of the number that PyTorch draws for the iteration
        from the loader's ``generator`` (or its default one: ``torch.manual_seed``). With ``persistent_workers`` the
        copies live on: they count epochs by themselves, and do not see later calls of this method.
        """
        self.epoch = epoch
        self._epoch_was_set = True

    def __iter__(self) -> Iterator[Any]:
        worker = get_worker_info()
        device = torch.device("cpu") if self.device is None and worker is not None else torch_device(self.device)
        storage = self._open(device)
        # At once, not by the first sample: the copies of workers count epochs alike.
        order = self._order(storage, worker)
        if worker is not None:
            order = order[worker.id :: worker.num_workers]
        return self._stream(storage, order, device)

    def _stream(self, storage: Storage, order: Sequence[int], device: torch.device) -> Iterator[Any]:
        under_way: deque[tuple[Request, torch.Tensor]] = deque()
        try:
            for index in order:
                under_way.append(self._start(storage, index, device))
                if len(under_way) >= self.ahead:
                    yield self._take(under_way)
            while under_way:
                yield self._take(under_way)
        finally:
            for request, _ in under_way:
                request.cancel()
            for request, _ in under_way:
                request.close()

    def __len__(self) -> int:
        if self.indices is not None:
            return len(self.indices)
        if self.count is None:
            raise TypeError("the number of samples is known only after the storage is opened; give count")
        return self.count

    def close(self) -> None:
        """Closes the storage of this process."""
        if self._storage is not None and self._storage_pid == os.getpid():
            self._storage.close()
        self._storage = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_storage": None}

    def _open(self, device: torch.device) -> Storage:
        if self._storage is None or self._storage_pid != os.getpid() or self._storage.closed:
            self._storage = Storage(self.uri, accelerator(device))
            self._storage_pid = os.getpid()
        return self._storage

    def _order(self, storage: Storage, worker: Any) -> Sequence[int]:
        count = self.count
        if count is None:
            assert self.sample_bytes is not None
            count = max(0, storage.size - self.offset) // self.sample_bytes
        if self.indices is not None:
            for index in self.indices:
                if not 0 <= index < count:
                    raise IndexError(f"there is no sample {index}: there are {count}")
        order: Sequence[int] = range(count) if self.indices is None else self.indices
        if self.seed is not None:
            order = list(order)
            # The same in all workers: each takes its share of one order. So is what their seeds begin with.
            drawn = "" if worker is None or self._epoch_was_set else f"/{worker.seed - worker.id}"
            random.Random(f"{self.seed}/{self.epoch}{drawn}").shuffle(order)
            self.epoch += 1
        return order

    def _start(self, storage: Storage, index: int, device: torch.device) -> tuple[Request, torch.Tensor]:
        if self.offsets is not None and self.lengths is not None:
            offset, length = unsigned(self.offsets[index], "offset"), unsigned(self.lengths[index], "a length")
        else:
            assert self.sample_bytes is not None
            offset, length = self.offset + index * self.sample_bytes, self.sample_bytes
        tensor = torch.empty(length, dtype=torch.uint8, device=device)
        return storage.submit_read(offset, tensor), tensor

    def _take(self, under_way: deque[tuple[Request, torch.Tensor]]) -> Any:
        request, tensor = under_way[0]
        request.result()
        under_way.popleft()
        if self.dtype != torch.uint8:
            tensor = tensor.view(self.dtype)
        if self.shape is not None:
            tensor = tensor.view(self.shape)
        return tensor if self.transform is None else self.transform(tensor)
