"""Numbers of samples, which Ray shards instead of the samples."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import ray.data
from ray.data.block import Block
from ray.data.context import DataContext

from .._checks import signed
from ..errors import InvalidError, UnsupportedError
from ._datasource import TaskRanges
from ._layout import Column, Layout, Sources, of_safetensors, of_samples

if TYPE_CHECKING:
    import torch

    from ._batches import TorchBatches

SAMPLE: Final = "sample"
"""The column of numbers."""

_NUMBER_BYTES: Final = 8
_ROUNDS: Final = 6
_INDICES_OF_A_BLOCK: Final = 1 << 20


class SampleIndex:
    """Samples that are read where they are used: by a training worker, straight into the memory of its GPU.

        index = gpunvme.ray.SampleIndex.of_samples(files, shape=(3, 224, 224), dtype="uint8")
        dataset = index.dataset(seed=1)          # of numbers: this is what Ray shards, shuffles and filters
        for batch in index.iter_torch_batches(shard, batch_size=256):  # in each worker, for its shard of the dataset
            ...

    Samples are numbered from 0, in the order of the sources. An index is small and immutable, and may be pickled into tasks, actors
    and training functions. :meth:`of_samples` and :meth:`of_safetensors` make one.
    """

    def __init__(self, layout: Layout) -> None:
        if any(c.name == SAMPLE for c in layout.columns):
            raise InvalidError.of(f"a tensor is called {SAMPLE!r}, and so is the column of numbers; leave it out by names")
        self._layout = layout

    @classmethod
    def of_samples(
        cls,
        sources: Sources,
        *,
        shape: Sequence[int],
        dtype: Any,
        count: int | None = None,
        offset: int = 0,
        ray_remote_args: Mapping[str, Any] | None = None,
    ) -> SampleIndex:
        """Samples of one length, as :func:`gpunvme.ray.read_samples` has them, of any type of PyTorch."""
        return cls(of_samples(sources, shape, dtype, count, offset, ray_remote_args))

    @classmethod
    def of_safetensors(
        cls, files: Sources, *, names: Sequence[str] | None = None, ray_remote_args: Mapping[str, Any] | None = None
    ) -> SampleIndex:
        """Rows of tensors, as :func:`gpunvme.ray.read_safetensors` has them, of any type of PyTorch."""
        return cls(of_safetensors(files, names, ray_remote_args))

    def __len__(self) -> int:
        return self._layout.rows

    def __repr__(self) -> str:
        return f"SampleIndex({len(self)} samples of {self._layout.row_bytes} bytes in {len(self._layout.sources)} sources)"

    @property
    def columns(self) -> tuple[Column, ...]:
        """Names, types and shapes of the tensors of a sample."""
        return self._layout.columns

    def dataset(self, *, seed: int | None = None, override_num_blocks: int | None = None) -> ray.data.Dataset:
        """The numbers, as column "sample" (int64), each once.

        :param seed: not None: in random order over all samples, another one each time that the dataset is executed, and so in each
            epoch of a shard. The order of an execution depends on seed and on how many were before it, and then on which blocks
            come first: ``DataContext.execution_options.preserve_order`` makes it the same in each run
        :param override_num_blocks: at least one for each worker. None: Ray's choice
        """
        source = _IndexDatasource(len(self), None if seed is None else signed(seed, "seed", 64))
        return ray.data.read_datasource(source, override_num_blocks=override_num_blocks)

    def iter_torch_batches(
        self,
        shard: ray.data.DataIterator | ray.data.Dataset,
        *,
        batch_size: int = 256,
        device: torch.device | str | int | None = None,
        drop_last: bool = False,
        prefetch_batches: int = 2,
        open_files: int = 16,
    ) -> TorchBatches:
        """Reads the samples of a shard of :meth:`dataset`, in its order, to tensors that are on the device.

        Only numbers pass through Ray's object store. Bytes go from the storage to the tensors, by the path that the storage API
        takes for this device (``stats`` of what is returned tells which).

        :param shard: what ``ray.train.get_dataset_shard`` or ``streaming_split`` give, or a dataset
        :param batch_size: samples of a batch, 1 or more
        :param device: ``"cuda:1"``, ``"cpu"``; None: the GPU that is current in this thread if there is one, else the CPU
        :param drop_last: whether a last batch that is not full is left out
        :param prefetch_batches: that are read while the caller has one, 0 to 64; each has memory of its own on the device
        :param open_files: sources that are open at a time, 1 to 65,536
        :return: batches: a dict of a tensor for each column, of "sample" with the numbers (on the CPU), and of what other columns the shard
            has, as NumPy arrays
        """
        from ._batches import TorchBatches

        return TorchBatches(self._layout, shard, batch_size, device, drop_last, prefetch_batches, open_files)


class _IndexDatasource(TaskRanges):
    def __init__(self, rows: int, seed: int | None) -> None:
        super().__init__()
        self._rows = rows
        self._seed = seed
        self._schema = pa.schema([(SAMPLE, pa.int64())])

    def get_name(self) -> str:
        return "GpuNvmeIndex"

    def _bytes(self, start: int, stop: int) -> int:
        return (stop - start) * _NUMBER_BYTES

    def _files(self, start: int, stop: int) -> Sequence[str] | None:
        return None

    def _reader(self, start: int, stop: int, context: DataContext | None) -> Callable[[], Iterator[Block]]:
        rows, key, schema = self._rows, self._key(context), self._schema

        def read() -> Iterator[Block]:
            for first in range(start, stop, _INDICES_OF_A_BLOCK):
                numbers = np.arange(first, min(stop, first + _INDICES_OF_A_BLOCK), dtype=np.int64)
                yield pa.table([pa.array(numbers if key is None else permuted(numbers, rows, key))], schema=schema)

        return read

    def _key(self, context: DataContext | None) -> str | None:
        if self._seed is None:
            return None
        if context is None:
            return f"{self._seed}/0"
        # Ray's own datasources take it from there, too.
        execution = getattr(context, "_execution_idx", None)
        if execution is None:
            raise UnsupportedError.of(
                f"Ray {ray.__version__} does not tell datasources which execution this is, so all epochs would have one order;"
                " leave seed out, and use random_shuffle"
            )
        return f"{self._seed}/{execution}"


def permuted(numbers: np.ndarray[Any, Any], count: int, key: str) -> np.ndarray[Any, Any]:
    """Where a random permutation of ``range(count)`` has these numbers (int64, each below count): all tasks compute their parts of one.

    A Feistel network over the next power of four, walked until it is below count again. No secret is kept by it.
    """
    half = np.uint64(max(1, ((count - 1).bit_length() + 1) // 2))
    mask = (np.uint64(1) << half) - np.uint64(1)
    digest = hashlib.blake2b(key.encode(), digest_size=8 * _ROUNDS).digest()
    keys = np.frombuffer(digest, "<u8").astype(np.uint64)
    found = numbers.astype(np.uint64)
    walking = np.arange(len(found))
    while len(walking):
        left, right = found[walking] >> half, found[walking] & mask
        for k in keys:
            left, right = right, left ^ (_mixed(right + k) & mask)
        found[walking] = (left << half) | right
        walking = walking[found[walking] >= count]
    return found.astype(np.int64)


def _mixed(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A bijection of 64 bits whose every bit of the result depends on all of x: the finalizer of MurmurHash3."""
    x = (x ^ (x >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    x = (x ^ (x >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    x ^= x >> np.uint64(33)
    return x
