"""Batches that are read where they are used."""

from __future__ import annotations

import contextlib
from collections import defaultdict, deque
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from .._checks import whole
from .._device import accelerator, torch_device
from ..errors import InvalidError, UnsupportedError
from ..memory import Region
from ..request import Request
from ._index import SAMPLE
from ._layout import Layout
from ._opened import Opened


class _Flight:
    """A batch that is being read."""

    def __init__(self, batch: dict[str, Any]) -> None:
        self.batch = batch
        self.requests: list[Request] = []


class TorchBatches(Iterator[dict[str, Any]]):
    """The iterator of :meth:`gpunvme.ray.SampleIndex.iter_torch_batches`. For one thread.

    At its end, also by an error, it closes the storages. Who leaves it earlier calls :meth:`close`, or uses ``with``.
    """

    def __init__(
        self,
        layout: Layout,
        shard: Any,
        batch_size: int,
        device: torch.device | str | int | None,
        drop_last: bool,
        prefetch_batches: int,
        open_files: int,
    ) -> None:
        self._layout = layout
        self.device = torch_device(device)
        """Where the tensors are."""
        self._ahead = whole(prefetch_batches, "prefetch_batches", 0, 64)
        self._types = [_type(c.name, c.dtype) for c in layout.columns]
        self._under_way: deque[_Flight] = deque()
        self._opened = Opened(accelerator(self.device), whole(open_files, "open_files", 1, 1 << 16))
        # Tensors come from the memory of a stream in which nothing else runs, and go back when those who got them are done with
        # them: so no read waits for the work of batches before it.
        self._stream = torch.cuda.Stream(self.device) if self.device.type == "cuda" else None  # type: ignore[no-untyped-call]
        self._numbers: Iterator[dict[str, Any]] | None = iter(
            shard.iter_batches(batch_size=whole(batch_size, "batch_size", 1, 2**31), batch_format="numpy", drop_last=drop_last)
        )

    def __iter__(self) -> TorchBatches:
        return self

    def __next__(self) -> dict[str, Any]:
        """:raises GpuNvmeError: a sample could not be read; no more batches come"""
        try:
            while self._numbers is not None and len(self._under_way) <= self._ahead:
                some = next(self._numbers, None)
                if some is None:
                    self._numbers = None
                else:
                    self._start(some)
            if not self._under_way:
                self.close()
                raise StopIteration
            return self._finish()
        except StopIteration:
            raise
        except BaseException:
            self.close()
            raise

    def stats(self) -> dict[str, Any]:
        """Which accelerator ("accelerator"), bytes and operations of each path so far ("paths"), and how each worked ("used")."""
        return self._opened.stats()

    def close(self) -> None:
        """Ends reads that are under way, and closes the storages."""
        self._numbers = None
        while self._under_way:
            flight = self._under_way[0]
            for request in flight.requests:
                request.cancel()
            for request in flight.requests:
                request.close()
            self._under_way.popleft()
        self._opened.close()

    def __enter__(self) -> TorchBatches:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _start(self, some: dict[str, Any]) -> None:
        numbers = self._checked(some)
        with contextlib.nullcontext() if self._stream is None else torch.cuda.stream(self._stream):
            tensors = [
                torch.empty((len(numbers), *c.shape), dtype=t, device=self.device)
                for c, t in zip(self._layout.columns, self._types, strict=True)
            ]
        batch = dict(some)
        batch[SAMPLE] = torch.from_numpy(numbers.copy())
        batch |= {c.name: t for c, t in zip(self._layout.columns, tensors, strict=True)}
        flight = _Flight(batch)
        self._under_way.append(flight)
        for uri, ranges in self._ranges(numbers, tensors).items():
            flight.requests.append(self._opened.get(uri, self._settle).submit_read_ranges(ranges))

    def _checked(self, some: dict[str, Any]) -> np.ndarray[Any, Any]:
        if SAMPLE not in some:
            raise InvalidError.of(f"the shard has no column {SAMPLE!r}, but {sorted(some)}; give a shard of SampleIndex.dataset()")
        numbers = np.asarray(some[SAMPLE])
        if numbers.dtype != np.int64:
            raise InvalidError.of(f"column {SAMPLE!r} of the shard has {numbers.dtype} and not int64; give a shard of SampleIndex.dataset()")
        wrong = numbers[(numbers < 0) | (numbers >= self._layout.rows)]
        if len(wrong):
            raise InvalidError.of(f"the shard has sample {wrong[0]}, and the index has {self._layout.rows}; is it of another index?")
        taken = [c.name for c in self._layout.columns if c.name in some]
        if taken:
            raise InvalidError.of(f"the shard has a column {taken[0]!r}, and so have the samples; call it something else")
        return numbers

    def _ranges(self, numbers: np.ndarray[Any, Any], tensors: list[torch.Tensor]) -> dict[str, list[tuple[int, Region]]]:
        """What is to be read, by source; samples that follow one another in source and batch are one range."""
        firsts = self._layout.firsts
        sources = np.searchsorted(firsts, numbers, side="right") - 1
        new = np.flatnonzero((np.diff(numbers) != 1) | (np.diff(sources) != 0)) + 1
        marks = [0, *new.tolist(), len(numbers)]
        found: dict[str, list[tuple[int, Region]]] = defaultdict(list)
        for at, end in zip(marks, marks[1:], strict=False):
            number = int(sources[at])
            source, row = self._layout.sources[number], int(numbers[at] - firsts[number])
            for start, column, tensor in zip(source.starts, self._layout.columns, tensors, strict=True):
                length = column.row_bytes
                # It keeps the tensor: whoever leaves the iteration early may drop the batch before its reads are over.
                memory = Region(tensor.data_ptr() + at * length, (end - at) * length, tensor)
                found[source.uri].append((start + row * length, memory))
        return found

    def _finish(self) -> dict[str, Any]:
        flight = self._under_way[0]
        for request in flight.requests:
            request.result()
        self._under_way.popleft()
        if self._stream is not None:
            current = torch.cuda.current_stream(self.device)
            for column in self._layout.columns:
                flight.batch[column.name].record_stream(current)
        return flight.batch

    def _settle(self) -> None:
        for flight in self._under_way:
            for request in flight.requests:
                request.wait()


def _type(name: str, dtype: str) -> torch.dtype:
    found = getattr(torch, dtype, None)
    if not isinstance(found, torch.dtype):
        raise UnsupportedError.of(f"{name!r} is of type {dtype}, which PyTorch {torch.__version__} does not have")
    return found
