"""Which samples there are, and where: what tasks and workers are told."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import ray
from ray.exceptions import RayTaskError

from .. import _native
from .._checks import unsigned, whole
from ..errors import FormatError, InvalidError, UnsupportedError
from ..storage import Storage
from ..weights import NAMES_OF_TYPES, TensorInfo, Weights

Sources = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]

_TYPES: Final = frozenset(NAMES_OF_TYPES.values())
_LARGEST_DIMENSION: Final = 2**31 - 1  # of a sample, as Arrow's tensors count
_SOURCES_OF_A_TASK: Final = 64


class Column(NamedTuple):
    """One tensor of each sample."""

    name: str
    dtype: str
    """As PyTorch calls it."""
    shape: tuple[int, ...]
    """Of a sample."""

    @property
    def row_bytes(self) -> int:
        return item_bytes(self.dtype) * math.prod(self.shape)


class Source(NamedTuple):
    """A file or device with samples."""

    uri: str
    rows: int
    starts: tuple[int, ...]
    """The offset of each column's first sample."""


class Piece(NamedTuple):
    """Samples that follow one another in a source."""

    source: Source
    first: int
    """Counted in the source."""
    rows: int


class Layout:
    """Samples of some sources. They are numbered from 0, in the order of the sources. Small, and may be pickled."""

    def __init__(self, sources: Sequence[Source], columns: Sequence[Column]) -> None:
        self.sources = tuple(sources)
        self.columns = tuple(columns)
        self.row_bytes = sum(c.row_bytes for c in columns)
        # The number of each source's first sample, and behind the last.
        self.firsts = np.cumsum([0, *(s.rows for s in sources)], dtype=np.int64)

    @property
    def rows(self) -> int:
        return int(self.firsts[-1])

    def pieces(self, start: int, stop: int) -> Iterator[Piece]:
        """The samples of these numbers."""
        at = start
        number = int(np.searchsorted(self.firsts, start, side="right")) - 1
        while at < stop:
            first, end = int(self.firsts[number]), int(self.firsts[number + 1])
            rows = min(stop, end) - at
            if rows > 0:
                yield Piece(self.sources[number], at - first, rows)
                at += rows
            number += 1

    def part(self, start: int, stop: int) -> Layout:
        """The samples of these numbers alone."""
        sources = []
        for source, first, rows in self.pieces(start, stop):
            starts = (at + first * c.row_bytes for at, c in zip(source.starts, self.columns, strict=True))
            sources.append(Source(source.uri, rows, tuple(starts)))
        return Layout(sources, self.columns)


def item_bytes(dtype: str) -> int:
    """Of an element of a type of PyTorch."""
    bits = re.search(r"[0-9]+", dtype)
    return 1 if bits is None else int(bits[0]) // 8  # bool has none in its name


def addresses(sources: Sources) -> list[str]:
    """As each worker understands them: names of files are absolute."""
    given = [sources] if isinstance(sources, (str, os.PathLike)) else list(sources)
    if not given:
        raise InvalidError.of("there are no sources: give a file's name or an address, or several")
    return [os.fsdecode(_native.encoded(s)) for s in given]


def of_samples(
    sources: Sources,
    shape: Sequence[int],
    dtype: Any,
    count: int | None,
    offset: int,
    ray_remote_args: Mapping[str, Any] | None,
) -> Layout:
    """Samples of one length, one after the other, as column "data"."""
    name = _dtype(dtype)
    column = Column("data", name, tuple(whole(d, "a dimension of shape", 1, _LARGEST_DIMENSION) for d in shape))
    offset = unsigned(offset, "offset")
    wanted = None if count is None else unsigned(count, "count")
    uris = addresses(sources)
    found = []
    for uri, size in zip(uris, sizes(uris, ray_remote_args), strict=True):
        what = f"samples of {column.row_bytes} bytes ({name}, shape {column.shape})"
        if offset > size:
            raise InvalidError.of(f"{uri} has {size} bytes, and samples are to begin at {offset}; correct offset, or leave the source out")
        if wanted is None:
            rows, rest = divmod(size - offset, column.row_bytes)
            if rest:
                raise FormatError.of(
                    f"{uri} has {size - offset} bytes from offset {offset} on, which are {rows} {what} and {rest} bytes more;"
                    " correct shape, dtype or offset, or give count"
                )
        else:
            rows = wanted
            if rows * column.row_bytes > size - offset:
                raise InvalidError.of(
                    f"{uri} has {size} bytes: from offset {offset} on, {(size - offset) // column.row_bytes} {what} and not"
                    f" {rows}; correct count, or find the rest of the file"
                )
        found.append(Source(uri, rows, (offset,)))
    return Layout(found, [column])


def of_safetensors(
    files: Sources, names: Sequence[str] | None, ray_remote_args: Mapping[str, Any] | None
) -> Layout:
    """Samples that are rows of tensors: a column for each name."""
    wanted = None if names is None else list(names)
    if wanted is not None and (not wanted or len(set(wanted)) < len(wanted)):
        raise InvalidError.of(f"names are those of one tensor or more, each once: {wanted}")
    found: list[Source] = []
    columns: list[Column] = []
    uris = addresses(files)
    for uri, tensors in zip(uris, _asked(_tensors, uris, ray_remote_args), strict=True):
        rows, here, starts = _rows_of(uri, tensors, wanted)
        if not found:
            columns = here
        elif here != columns:
            raise FormatError.of(f"{uri} does not have the tensors of {uris[0]}: {_difference(columns, here)}; read them apart, or give names")
        found.append(Source(uri, rows, starts))
    return Layout(found, columns)


def _rows_of(uri: str, tensors: Mapping[str, TensorInfo], wanted: Sequence[str] | None) -> tuple[int, list[Column], tuple[int, ...]]:
    columns, starts = [], []
    first: TensorInfo | None = None
    for name in sorted(tensors) if wanted is None else wanted:
        info = tensors.get(name)
        if info is None:
            raise FormatError.of(f"{uri} has no tensor {name!r}; it has {', '.join(sorted(tensors)) or 'none'}")
        if not info.shape:
            raise FormatError.of(f"{uri}: tensor {name!r} is a single number, without rows; give names of those that have rows")
        if first is not None and info.shape[0] != first.shape[0]:
            raise FormatError.of(
                f"{uri}: {first.name!r} has {first.shape[0]} rows and {name!r} has {info.shape[0]}; give names of tensors that have equally many"
            )
        first = first or info
        dtype = NAMES_OF_TYPES.get(info.dtype)
        if dtype is None:
            raise UnsupportedError.of(f"{uri}: tensor {name!r} is of type {info.dtype}, which PyTorch does not have; leave it out by names")
        if 0 in info.shape[1:]:
            raise FormatError.of(f"{uri}: tensor {name!r} of shape {info.shape} has rows without elements; leave it out by names")
        columns.append(Column(name, dtype, info.shape[1:]))
        starts.append(info.offset)
    if first is None:
        raise FormatError.of(f"{uri} has no tensors")
    return first.shape[0], columns, tuple(starts)


def _difference(there: Sequence[Column], here: Sequence[Column]) -> str:
    for a, b in zip(there, here, strict=False):
        if a != b:
            return f"{b.name!r} of {b.dtype} with rows of {b.shape}, not {a.name!r} of {a.dtype} with rows of {a.shape}"
    return f"{len(here)} tensors, not {len(there)}"


def _dtype(given: Any) -> str:
    """The name of a type of PyTorch, of one of NumPy, or of what NumPy makes one of."""
    name = str(given).removeprefix("torch.")
    if name in _TYPES:
        return name
    try:
        # NumPy takes None for float64.
        made = np.dtype("" if given is None else given)
    except TypeError:
        raise InvalidError.of(f"dtype is a type of PyTorch or NumPy, not {given!r}") from None
    if made.name not in _TYPES or made.byteorder == ">":
        raise UnsupportedError.of(f"samples of type {made.str!r} are not supported; read bytes (uint8), and convert them")
    return str(made.name)


# ---- what only those know who have the sources


def sizes(uris: Sequence[str], ray_remote_args: Mapping[str, Any] | None) -> list[int]:
    """Bytes of each source."""
    return _asked(_sizes, uris, ray_remote_args)


def _asked(ask: Callable[[Sequence[str]], list[Any]], uris: Sequence[str], ray_remote_args: Mapping[str, Any] | None) -> list[Any]:
    """Asks tasks: the driver's machine may have neither the SSDs nor a Java."""
    if not ray.is_initialized() and _native._loaded is not None:
        raise UnsupportedError.of(
            "this process has used gpunvme before Ray, whose handlers of signals would replace those of the virtual machine;"
            " call ray.init() before the first use of gpunvme"
        )
    task = ray.remote(ask).options(**{"num_cpus": 1, **(ray_remote_args or {})})
    answers = [task.remote(uris[i : i + _SOURCES_OF_A_TASK]) for i in range(0, len(uris), _SOURCES_OF_A_TASK)]
    try:
        return [one for some in ray.get(answers) for one in some]
    except RayTaskError as e:
        if isinstance(e.cause, Exception):
            raise e.cause from None
        raise


def _sizes(uris: Sequence[str]) -> list[int]:
    found = []
    for uri in uris:
        with Storage(uri, "cpu") as storage:
            found.append(storage.size)
    return found


def _tensors(uris: Sequence[str]) -> list[dict[str, TensorInfo]]:
    found = []
    for uri in uris:
        if os.path.isdir(uri):
            raise InvalidError.of(f"{uri} is a folder; give the names of its files")
        with Weights(uri, "cpu") as weights:
            if weights.format != "safetensors":
                raise FormatError.of(f"{uri} is of format {weights.format}, not safetensors")
            if len(weights.files) != 1:
                raise InvalidError.of(f"{uri} has several files ({', '.join(weights.files)}); give their names")
            found.append(weights.tensors)
    return found
