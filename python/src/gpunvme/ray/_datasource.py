"""Datasources: tasks that read blocks, in host memory, as Ray has them."""

from __future__ import annotations

import abc
import json
import os
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from ray.data.block import Block, BlockMetadata
from ray.data.context import DataContext
from ray.data.datasource import Datasource, ReadTask
from ray.data.extensions import ArrowTensorArray

from ..errors import InvalidError, UnsupportedError
from ._layout import Column, Layout, Sources, addresses, item_bytes, sizes
from ._opened import Opened

TOLD: Final = b"gpunvme"
"""The key in the metadata of a block's schema under which its reader tells what it did."""

_OPEN_FILES: Final = 16
_WORDS: Final = {1: "uint8", 2: "uint16"}
_NO_ARROW: Final = frozenset({"complex64"})


def _boundaries(total: int, tasks: int) -> list[tuple[int, int]]:
    """Divides a number into ranges of nearly equal lengths; none is empty."""
    parts = max(1, min(total, tasks))
    marks = [total * i // parts for i in range(parts + 1)]
    return [(a, b) for a, b in zip(marks, marks[1:], strict=False) if b > a]


def _least_bytes(context: DataContext | None) -> int | None:
    """Of a block that Ray takes as it is: up to that it copies blocks together. It cuts those of half as much again."""
    most = (context or DataContext.get_current()).target_max_block_size
    return None if most is None else int(most)


def _tell(table: pa.Table, read: str, opened: Opened) -> pa.Table:
    """Has a block tell what its read did so far."""
    return table.replace_schema_metadata({TOLD: json.dumps({read: opened.stats()}).encode()})


class TaskRanges(Datasource, abc.ABC):  # type: ignore[misc]
    """Rows of which each task takes those from a number to another."""

    _rows: int
    _schema: pa.Schema

    @abc.abstractmethod
    def _bytes(self, start: int, stop: int) -> int:
        """Of the blocks of these rows."""

    @abc.abstractmethod
    def _files(self, start: int, stop: int) -> Sequence[str] | None:
        """From which they come."""

    @abc.abstractmethod
    def _reader(self, start: int, stop: int, context: DataContext | None) -> Callable[[], Iterator[Block]]:
        """What a task runs to read them."""

    def estimate_inmemory_data_size(self) -> int:
        return self._bytes(0, self._rows)

    def get_read_tasks(
        self, parallelism: int, per_task_row_limit: int | None = None, data_context: DataContext | None = None
    ) -> list[ReadTask]:
        tasks = []
        for start, end in _boundaries(self._rows, parallelism):
            stop = end if per_task_row_limit is None else min(end, start + per_task_row_limit)
            metadata = BlockMetadata(
                num_rows=stop - start,
                size_bytes=self._bytes(start, stop),
                input_files=self._files(start, stop),
                exec_stats=None,
            )
            tasks.append(ReadTask(self._reader(start, stop, data_context), metadata, schema=self._schema))
        return tasks


class SampleDatasource(TaskRanges):
    """Samples of a layout: a column of tensors for each of its columns.

    :param words: types that NumPy lacks become unsigned words of their length, instead of an error
    :param include_paths: whether a column "path" has the address of each sample's source
    """

    def __init__(self, layout: Layout, *, words: bool = False, include_paths: bool = False) -> None:
        super().__init__()
        self._layout = layout
        self._rows = layout.rows
        self._include_paths = include_paths
        if include_paths and any(c.name == "path" for c in layout.columns):
            raise InvalidError.of("a tensor is called 'path', and so would be the column of include_paths; leave one of them out")
        self._types = [_numpy_type(c, words) for c in layout.columns]
        none = [np.empty((0, *c.shape), t) for c, t in zip(layout.columns, self._types, strict=True)]
        self._schema = _table(layout.columns, none, [] if include_paths else None).schema

    def get_name(self) -> str:
        return "GpuNvmeSamples"

    def _bytes(self, start: int, stop: int) -> int:
        return (stop - start) * self._layout.row_bytes + sum(
            piece.rows * _path_bytes(piece.source.uri) for piece in self._layout.pieces(start, stop) if self._include_paths
        )

    def _files(self, start: int, stop: int) -> Sequence[str]:
        return [piece.source.uri for piece in self._layout.pieces(start, stop)]

    def _reader(self, start: int, stop: int, context: DataContext | None) -> Callable[[], Iterator[Block]]:
        least = _least_bytes(context)
        step = stop - start if least is None else least * (stop - start) // self._bytes(start, stop) + 1
        # A task is told of its own samples only.
        mine, types, include_paths = self._layout.part(start, stop), self._types, self._include_paths
        return lambda: _read_samples(mine, types, step, include_paths)


def _read_samples(layout: Layout, types: Sequence[np.dtype[Any]], step: int, include_paths: bool) -> Iterator[Block]:
    read = uuid.uuid4().hex
    opened = Opened("cpu", _OPEN_FILES)
    try:
        for first in range(0, layout.rows, step):
            stop = min(first + step, layout.rows)
            arrays = [np.empty((stop - first, *c.shape), t) for c, t in zip(layout.columns, types, strict=True)]
            paths: list[tuple[str, int]] = []
            at = 0
            for source, begin, rows in layout.pieces(first, stop):
                opened.get(source.uri).read_ranges(
                    (origin + begin * column.row_bytes, array[at : at + rows])
                    for origin, column, array in zip(source.starts, layout.columns, arrays, strict=True)
                )
                paths.append((source.uri, rows))
                at += rows
            yield _tell(_table(layout.columns, arrays, paths if include_paths else None), read, opened)
    finally:
        opened.close()


def _table(
    columns: Sequence[Column], arrays: Sequence[np.ndarray[Any, Any]], paths: Sequence[tuple[str, int]] | None
) -> pa.Table:
    made = {c.name: ArrowTensorArray.from_numpy(a) if c.shape else pa.array(a) for c, a in zip(columns, arrays, strict=True)}
    if paths is not None:
        made["path"] = _repeated(paths)
    return pa.table(made)


def _numpy_type(column: Column, words: bool) -> np.dtype[Any]:
    name = column.dtype
    if name in _NO_ARROW:
        raise UnsupportedError.of(f"{column.name!r} is of type {name}, which Arrow lacks; leave it out, or use gpunvme.ray.SampleIndex")
    if not hasattr(np, name) and name != "bool":
        if not words:
            raise UnsupportedError.of(
                f"{column.name!r} is of type {name}, which NumPy and Arrow lack; use gpunvme.ray.SampleIndex, or take its bits as"
                f" {_WORDS[item_bytes(name)]}: by words=True of safetensors, as dtype of samples"
            )
        name = _WORDS[item_bytes(name)]
    return np.dtype(name)


def _path_bytes(uri: str) -> int:
    """Of a row's path: a text and where it ends."""
    return len(uri.encode()) + 4


def _repeated(values: Sequence[tuple[str, int]]) -> pa.Array:
    return pa.concat_arrays([pa.repeat(pa.scalar(v, pa.string()), n) for v, n in values]) if values else pa.array([], pa.string())


class RangeDatasource(TaskRanges):
    """Ranges of bytes: columns "path", "offset" and "bytes"."""

    def __init__(self, sources: Sources, ranges: Any, ray_remote_args: Mapping[str, Any] | None) -> None:
        super().__init__()
        self._uris = addresses(sources)
        each = [ranges] if isinstance(sources, (str, os.PathLike)) else list(ranges)
        if len(each) != len(self._uris):
            raise InvalidError.of(f"there are {len(self._uris)} sources, and ranges of {len(each)}; give a list of (offset, bytes) for each source")
        tables = [_checked(uri, given, size) for uri, given, size in zip(self._uris, each, sizes(self._uris, ray_remote_args), strict=True)]
        self._rows = sum(len(t) for t in tables)
        self._ranges = np.concatenate(tables)
        self._numbers = np.repeat(np.arange(len(tables)), [len(t) for t in tables])
        # A range, its offset, where it ends in the block, and its path.
        around = np.array([16 + _path_bytes(uri) for uri in self._uris])[self._numbers]
        self._ends = np.concatenate([[0], np.cumsum(self._ranges[:, 1] + around)])
        self._schema = pa.schema([("path", pa.string()), ("offset", pa.int64()), ("bytes", pa.large_binary())])

    def get_name(self) -> str:
        return "GpuNvmeRanges"

    def _bytes(self, start: int, stop: int) -> int:
        return int(self._ends[stop] - self._ends[start])

    def _files(self, start: int, stop: int) -> Sequence[str]:
        return [self._uris[n] for n in np.unique(self._numbers[start:stop])]

    def _reader(self, start: int, stop: int, context: DataContext | None) -> Callable[[], Iterator[Block]]:
        least = _least_bytes(context)
        # A task is told of its own ranges only.
        uris, numbers, ranges = self._uris, self._numbers[start:stop], self._ranges[start:stop]
        mine = {n: uris[n] for n in np.unique(numbers).tolist()}
        ends = self._ends[start + 1 : stop + 1] - self._ends[start]
        marks = [0] if least is not None else [0, len(ranges)]
        while least is not None and marks[-1] < len(ranges):
            before = int(ends[marks[-1] - 1]) if marks[-1] else 0
            marks.append(min(len(ranges), int(np.searchsorted(ends, before + least, side="right")) + 1))
        schema = self._schema
        return lambda: _read_ranges(mine, numbers, ranges, marks, schema)


def _checked(uri: str, given: Any, size: int) -> np.ndarray[Any, Any]:
    try:
        ranges = np.asarray(given if isinstance(given, np.ndarray) else list(given))
    except (TypeError, ValueError) as e:
        raise InvalidError.of(f"{uri}: ranges are pairs (offset, bytes): {e}") from None
    if ranges.size == 0:
        return np.empty((0, 2), np.int64)
    if ranges.dtype.kind not in "iu" or ranges.ndim != 2 or ranges.shape[1] != 2:
        raise InvalidError.of(f"{uri}: ranges are pairs of whole numbers (offset, bytes), not {ranges.dtype} of shape {ranges.shape}")
    ranges = ranges.astype(np.int64)
    # Without a sum, which might overflow.
    wrong = np.flatnonzero((ranges < 0).any(axis=1) | (ranges[:, 0] > size) | (ranges[:, 1] > size - ranges[:, 0]))
    if len(wrong):
        offset, nbytes = ranges[wrong[0]].tolist()
        raise InvalidError.of(
            f"{uri} has {size} bytes, and range {wrong[0]} is {nbytes} bytes at {offset}; correct it, or find the rest of the file"
        )
    return ranges


def _read_ranges(
    uris: Mapping[int, str],
    numbers: np.ndarray[Any, Any],
    ranges: np.ndarray[Any, Any],
    marks: Sequence[int],
    schema: pa.Schema,
) -> Iterator[Block]:
    read = uuid.uuid4().hex
    opened = Opened("cpu", _OPEN_FILES)
    try:
        for first, stop in zip(marks, marks[1:], strict=False):
            places = np.concatenate([[0], np.cumsum(ranges[first:stop, 1])])
            memory = np.empty(int(places[-1]), np.uint8)
            paths = []
            for number in np.unique(numbers[first:stop]).tolist():
                rows = np.flatnonzero(numbers[first:stop] == number)
                opened.get(uris[number]).read_ranges(
                    (int(ranges[first + row, 0]), memory[places[row] : places[row + 1]]) for row in rows.tolist()
                )
                paths.append((uris[number], len(rows)))
            data = pa.Array.from_buffers(pa.large_binary(), stop - first, [None, pa.py_buffer(places), pa.py_buffer(memory)])
            table = pa.Table.from_arrays([_repeated(paths), pa.array(ranges[first:stop, 0]), data], schema=schema)
            yield _tell(table, read, opened)
    finally:
        opened.close()
