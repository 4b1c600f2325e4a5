"""The reader of :mod:`gpunvme.torch.checkpoint`."""

from __future__ import annotations

import abc
import contextlib
import dataclasses
import io
import itertools
import math
import os
import time
import uuid
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import torch
from torch.distributed.checkpoint import storage
from torch.distributed.checkpoint.metadata import Metadata, StorageMeta
from torch.distributed.checkpoint.planner import LoadItemType, LoadPlan, LoadPlanner, ReadItem
from torch.futures import Future

from .._checks import size, whole
from .._device import accelerator, torch_device
from ..errors import FormatError, GpuNvmeError, NotFoundError, UnsupportedError
from ..request import Request
from ..storage import Storage
from . import _records
from ._metadata import metadata_path, read_metadata

_EDGE: Final = 1024
"""Bytes read at both ends of each item: what torch.save writes around the tensor fits into them."""

_SHORTEST_RUN: Final = 4096
"""Of bytes that are read straight into a tensor in pieces; shorter ones are read together, and copied from there."""

_MOST_ROUNDS: Final = 8  # of reads that find where a tensor is; torch's own streams take one


@dataclasses.dataclass
class ReadReport:
    """What a load did on this rank."""

    items: int = 0
    files: int = 0
    batches: int = 0
    """Requests that the storages got, each of many ranges."""
    bytes_read: int = 0
    """From files, together."""
    bytes_direct: int = 0
    """Read straight into tensors of the planner."""
    bytes_staged: int = 0
    """Read into other memory, and copied from there with a conversion or in another order."""
    bytes_decoded: int = 0
    """Of items that Python or ``torch.load`` decoded: objects, subclasses of Tensor, transformed streams."""
    bytes_around: int = 0
    """Of headers and directories, which say where tensors are."""
    paths: dict[str, int] = dataclasses.field(default_factory=dict)
    """Bytes by each path of the storage API (docs/paths.md)."""
    staged_why: dict[str, int] = dataclasses.field(default_factory=dict)
    """Why bytes were staged or decoded, with the number of items."""
    seconds: float = 0.0


class _Item:
    """One item of a file: what is known of it, and who wants it."""

    def __init__(self, file: str, info: Any, request: ReadItem) -> None:
        self.name = request.storage_index.fqn
        self.at: int = info.offset
        self.length: int = info.length
        self.transforms: Sequence[str] = getattr(info, "transform_descriptors", None) or ()
        self.requests = [request]
        self.windows = _records.Windows(self.length)
        self.found: _records.Stored | _records.Foreign | None = None
        self._file = file

    def __str__(self) -> str:
        return f"{self._file}: item {self.name!r} ({self.length} bytes at {self.at})"

    def locate(self) -> tuple[int, int] | None:
        """Finds the tensor in what has been read, or says which bytes of the item that needs."""
        try:
            self.found = _records.find(self.windows)
        except _records.Wanted as e:
            return e.at, e.nbytes
        except _records.Damaged as e:
            if "safetensors" in str(e):
                raise UnsupportedError.of(
                    f"{self}: {e}; read it with torch.distributed.checkpoint.HuggingFaceStorageReader, or save with"
                    " SerializationFormat.TORCH_SAVE"
                ) from e
            raise FormatError.of(f"{self} is damaged: {e}; load an older checkpoint") from e
        return None


class StorageReader(storage.StorageReader):
    """Reads checkpoints of ``torch.distributed.checkpoint`` by gpunvme's storage API, straight into tensors.

        dcp.load(state, storage_reader=StorageReader("/checkpoints/1000"))

    It reads what torch's ``FileSystemWriter`` and :class:`StorageWriter` write, on any number of ranks. All reads of up to
    ``open_files`` files go in one batch each. Bytes of tensors that are stored as their target wants them go to the target,
    in host memory or on any GPU; others are staged (:attr:`report` says how many, and why).

    One load at a time, by one thread. Objects that are no tensors are unpickled by the planner, as torch's own reader has
    it: load only checkpoints that you trust.

    :param path: the folder
    :param options: of the files' addresses, as in docs/paths.md: ``"path=pinned&direct=true"``
    :param staging_bytes: the most memory for what is not read straight into tensors, but at least one item: bytes, or a
        text such as ``"256MiB"``
    :param open_files: files that are read at a time, 1 to 1024
    :param extensions: torch's ``ExtensionRegistry`` with what undoes transforms of other writers; None: torch's own
    :param metadata_classes: more classes that ``.metadata`` may have, of planners of your own
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        options: str = "path=auto",
        staging_bytes: int | str = 1 << 30,
        open_files: int = 16,
        extensions: Any = None,
        metadata_classes: Collection[type] = (),
    ) -> None:
        super().__init__()
        self.path = Path(path)
        self.options = options
        self.staging_bytes = size(staging_bytes, "staging_bytes")
        self.open_files = whole(open_files, "open_files", 1, 1024)
        self.metadata_classes = tuple(metadata_classes)
        self.load_id = str(uuid.uuid4())
        self.report = ReadReport()
        """Of the last load, as far as it got."""
        self._extensions = extensions
        self._storage_data: dict[Any, Any] = {}

    @property
    def checkpoint_id(self) -> str | os.PathLike[str]:
        return self.path

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        """Whether it can be the name of a folder here: no address such as ``s3://…``."""
        return "://" not in os.fspath(checkpoint_id)

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        self._storage_data = {}
        if checkpoint_id:
            self.path = Path(checkpoint_id)
        self.load_id = str(uuid.uuid4())

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """:param rank: whose metadata, of a checkpoint that was saved with ``use_collectives=False``"""
        found = read_metadata(metadata_path(self.path, kwargs.get("rank")), self.metadata_classes)
        if getattr(found, "storage_meta", None) is None:
            found.storage_meta = StorageMeta()
        assert found.storage_meta is not None
        found.storage_meta.load_id = self.load_id
        return found

    def set_up_storage_reader(self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        if not isinstance(metadata.storage_data, dict):
            raise FormatError.of(f"{self.path}: the metadata does not say where items are; was it written by another storage?")
        self._storage_data = metadata.storage_data

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        return plan

    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        return plans

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        """Reads all items of the plan. When it returns, they are in place.

        :raises NotFoundError: a file or an item is missing
        :raises FormatError: a file is too short, or an item is damaged or of another size than the metadata says
        :raises UnsupportedError: an item has a format or a transform that cannot be read here
        """
        self.report = ReadReport(items=len(plan.items))
        begin = time.perf_counter()
        files = self._by_file(plan.items)
        try:
            for group in _groups(list(files.items()), self.open_files):
                self._read_files(group, planner)
        finally:
            self.report.seconds = time.perf_counter() - begin
        done: Future[None] = Future()
        done.set_result(None)
        return done

    def _by_file(self, requests: Iterable[ReadItem]) -> dict[str, list[_Item]]:
        files: dict[str, dict[Any, _Item]] = {}
        folder = str(self.path)
        for request in requests:
            index = request.storage_index
            info = self._storage_data.get(index)
            if info is None:
                raise NotFoundError.of(
                    f"{self.path}: the metadata has no place for {index.fqn!r}"
                    + (f" at {tuple(index.offset)}" if index.offset is not None else "")
                    + "; the checkpoint is not whole, or a planner asks for what it does not have"
                )
            name, at, length = info.relative_path, info.offset, info.length
            if not isinstance(name, str) or (name not in files and not _inside(name)):
                raise FormatError.of(f"{self.path}: the metadata has {index.fqn!r} in a file outside the folder: {name!r}")
            if type(at) is not int or type(length) is not int or at < 0 or length < 0:
                raise FormatError.of(f"{self.path}: the metadata has {index.fqn!r} at {at!r} with {length!r} bytes")
            items = files.setdefault(name, {})
            key = (index, request.type)
            if key in items:
                items[key].requests.append(request)
            else:
                items[key] = _Item(f"{folder}/{name}", info, request)
        return {name: list(items.values()) for name, items in files.items()}

    def _read_files(self, files: list[tuple[str, list[_Item]]], planner: LoadPlanner) -> None:
        targets = _Targets(planner, (request for _, items in files for item in items for request in item.requests))
        with contextlib.ExitStack() as stack:
            loads = []
            for name, items in files:
                opened = stack.enter_context(_open(self.path / name, self.options, targets.accelerator))
                self.report.files += 1
                loads.append(_FileLoad(opened, items, self.report))
            for load in loads:
                load.check()
            # All files of the group at once, each by one batch.
            for _ in range(_MOST_ROUNDS):
                wanted = [(load, ranges) for load in loads if (ranges := load.wanted())]
                if not wanted:
                    break
                _wait_for_all(load.submit(ranges) for load, ranges in wanted)
                for load, ranges in wanted:
                    load.learn(ranges)
            else:
                raise FormatError.of(f"{self.path}: where a tensor is cannot be found in {_MOST_ROUNDS} reads; load an older checkpoint")
            pieces = itertools.chain.from_iterable(self._pieces(load, targets) for load in loads)
            for some in _rounds(pieces, self.staging_bytes):
                by_load: dict[_FileLoad, list[tuple[int, Any, int]]] = {}
                for piece in some:
                    by_load.setdefault(piece.load, []).extend(piece.ranges)
                _wait_for_all(load.submit(ranges) for load, ranges in by_load.items())
                for piece in some:
                    piece.finish()
            targets.settle()
            for load in loads:
                load.tell()

    def _pieces(self, load: _FileLoad, targets: _Targets) -> Iterator[_Piece]:
        for item in load.items:
            if item.requests[0].type == LoadItemType.BYTE_IO or item.transforms or isinstance(item.found, _records.Foreign):
                yield _Decoded(load, item, targets, self._extensions)
            else:
                assert isinstance(item.found, _records.Stored)
                for request in item.requests:
                    yield _piece(load, item, item.found, request, targets)


def _inside(name: str) -> bool:
    """Whether a name is of a file in the folder or below it."""
    return not os.path.isabs(name) and ".." not in Path(name).parts and "\0" not in name


def _groups(values: list[Any], length: int) -> Iterator[list[Any]]:
    for i in range(0, len(values), length):
        yield values[i : i + length]


def _open(path: Path, options: str, accelerator: str) -> Storage:
    # The last question mark begins the options, so that one in a folder's name does not.
    try:
        return Storage(f"file:{os.path.abspath(path)}?{options}", accelerator)
    except NotFoundError as e:
        raise NotFoundError.of(
            f"{path}: the metadata names this file, and it is not there; if the checkpoint was saved again meanwhile, load again"
        ) from e


def _wait_for_all(requests: Iterable[Request]) -> None:
    """Submits all before it waits for the first. When it ends, however it ends, none uses its memory any more."""
    with contextlib.ExitStack() as stack:
        for request in [stack.enter_context(request) for request in requests]:
            request.result()


class _Targets:
    """The planner's tensors, as they are asked for, and the GPU's work in them."""

    def __init__(self, planner: LoadPlanner, requests: Iterable[ReadItem]) -> None:
        self.planner = planner
        self._known: dict[int, Any] = {}
        self._devices: set[torch.device] = set()
        # The first tensor on a GPU says for which one the files are opened: then they are read to all GPUs and to the host.
        self.accelerator = "cpu"
        for request in requests:
            if request.type != LoadItemType.BYTE_IO:
                tensor = planner.resolve_tensor(request)
                self._known[id(request)] = tensor
                if tensor.device.type == "cuda":
                    self.accelerator = accelerator(torch_device(tensor.device))
                    break

    def resolve(self, request: ReadItem) -> Any:
        """The whole target, to be committed, and what is to be written."""
        tensor = self._known.pop(id(request), None)
        if tensor is None:
            tensor = self.planner.resolve_tensor(request)
        view = tensor.detach()
        if view.device.type == "cuda" and view.device not in self._devices:
            self._devices.add(view.device)
            torch.cuda.current_stream(view.device).synchronize()
        return view

    def settle(self) -> None:
        """Copies out of memory that is freed have been done."""
        for device in self._devices:
            torch.cuda.current_stream(device).synchronize()


class _FileLoad:
    """The reads of one file."""

    def __init__(self, opened: Storage, items: list[_Item], report: ReadReport) -> None:
        self.storage = opened
        self.items = items
        self.report = report

    def check(self) -> None:
        for item in self.items:
            if item.at + item.length > self.storage.size:
                raise FormatError.of(
                    f"{item} ends after the file, which has {self.storage.size} bytes: it was cut short; load an older checkpoint"
                )

    def wanted(self) -> list[tuple[_Item, int, bytearray]]:
        """What must be read to know where tensors are: items, places in them, memory."""
        ranges = []
        for item in self.items:
            if item.found is not None or item.requests[0].type == LoadItemType.BYTE_IO or item.transforms:
                continue
            if not item.windows.any:
                ends = [(0, item.length)] if item.length <= 2 * _EDGE else [(0, _EDGE), (item.length - _EDGE, _EDGE)]
            else:
                more = item.locate()
                ends = [] if more is None else [more]
            ranges += [(item, at, bytearray(nbytes)) for at, nbytes in ends]
        return ranges

    def submit(self, ranges: Iterable[Any]) -> Request:
        self.report.batches += 1
        plain = [(r[0].at + r[1], r[2], len(r[2])) if isinstance(r[0], _Item) else r for r in ranges]
        request = self.storage.submit_read_ranges(plain)
        self.report.bytes_read += request.nbytes
        return request

    def learn(self, ranges: list[tuple[_Item, int, bytearray]]) -> None:
        for item, at, data in ranges:
            self.report.bytes_around += len(data)
            item.windows.add(at, data)

    def tell(self) -> None:
        for path, counts in self.storage.stats().get("paths", {}).items():
            if counts["read_bytes"]:
                self.report.paths[path] = self.report.paths.get(path, 0) + counts["read_bytes"]


# ---- pieces: what is read, and what is done with it then


class _Piece(abc.ABC):
    """Reads of one request, or of one item that is decoded."""

    def __init__(self, load: _FileLoad, ranges: list[tuple[int, Any, int]], staged: int) -> None:
        self.load = load
        self.ranges = ranges
        self.staged = staged
        """Bytes of memory that it takes until it is finished."""

    @abc.abstractmethod
    def finish(self) -> None:
        """Does what is to be done once all of it has been read."""


def _rounds(pieces: Iterator[_Piece], most: int) -> Iterator[list[_Piece]]:
    """Pieces together, as many as the memory is for."""
    some: list[_Piece] = []
    staged = 0
    for piece in pieces:
        if some and staged + piece.staged > most:
            yield some
            some, staged = [], 0
        some.append(piece)
        staged += piece.staged
    if some:
        yield some


def _piece(load: _FileLoad, item: _Item, stored: _records.Stored, request: ReadItem, targets: _Targets) -> _Piece:
    target = targets.resolve(request)
    offsets, lengths = tuple(request.storage_offsets), tuple(request.lengths)
    if len(offsets) != len(stored.shape) or any(
        o < 0 or n < 0 or o + n > have for o, n, have in zip(offsets, lengths, stored.shape, strict=True)
    ):
        raise FormatError.of(
            f"{item}: the metadata has a tensor with room for {lengths} at {offsets}, and the file one of shape {stored.shape};"
            " load an older checkpoint"
        )
    if tuple(target.shape) != lengths:
        raise FormatError.of(f"{item}: a target of shape {tuple(target.shape)} for a part of shape {lengths}; is the planner right?")
    nothing = math.prod(lengths) == 0
    why = "" if nothing else _not_direct(stored, target, lengths)
    first = item.at + stored.at + (stored.offset + sum(o * s for o, s in zip(offsets, stored.strides, strict=True))) * stored.dtype.itemsize
    if not why:
        ranges = [] if nothing else _runs(stored, target, lengths, first)
        if ranges is not None:
            return _Direct(load, ranges, request, target, targets)
        why = f"pieces shorter than {_SHORTEST_RUN} bytes"
    return _Staged(load, stored, first, lengths, request, target, targets, why)


def _not_direct(stored: _records.Stored, target: torch.Tensor, lengths: Sequence[int]) -> str:
    """Why a target cannot take the file's bytes as they are; "" if it can."""
    if target.dtype != stored.dtype:
        return f"{stored.dtype} becomes {target.dtype}"
    if target.layout is not torch.strided or target.is_conj() or target.is_neg() or target.is_quantized:
        return "the target shows no memory"
    return ""


def _runs(stored: _records.Stored, target: torch.Tensor, lengths: Sequence[int], first: int) -> list[tuple[int, int, int]] | None:
    """Ranges of the file with addresses in the target; None if they are too short to be worth it."""
    item = stored.dtype.itemsize
    # The innermost dimensions whose elements lie side by side, in the file and in the target.
    run, inner = 1, len(lengths)
    while inner > 0 and (lengths[inner - 1] == 1 or stored.strides[inner - 1] == target.stride(inner - 1) == run):
        inner -= 1
        run *= lengths[inner]
    if inner > 0 and run * item < _SHORTEST_RUN:
        return None
    base, nbytes = target.data_ptr(), run * item
    return [
        (
            first + item * sum(i * s for i, s in zip(place, stored.strides, strict=False)),
            base + item * sum(i * s for i, s in zip(place, target.stride(), strict=False)),
            nbytes,
        )
        for place in itertools.product(*map(range, lengths[:inner]))
    ]


class _Direct(_Piece):
    def __init__(self, load: _FileLoad, ranges: list[tuple[int, Any, int]], request: ReadItem, target: torch.Tensor, targets: _Targets) -> None:
        super().__init__(load, ranges, 0)
        self._request, self._target, self._targets = request, target, targets

    def finish(self) -> None:
        self.load.report.bytes_direct += sum(nbytes for _, _, nbytes in self.ranges)
        self._targets.planner.commit_tensor(self._request, self._target)


class _Staged(_Piece):
    def __init__(
        self, load: _FileLoad, stored: _records.Stored, first: int, lengths: Sequence[int], request: ReadItem, target: torch.Tensor,
        targets: _Targets, why: str,
    ) -> None:  # fmt: skip
        elements = 1 + sum((n - 1) * s for n, s in zip(lengths, stored.strides, strict=True))
        nbytes = elements * stored.dtype.itemsize
        self._bytes = torch.empty(nbytes, dtype=torch.uint8, device=target.device)
        super().__init__(load, [(first, self._bytes, nbytes)], nbytes)
        self._view = self._bytes.view(stored.dtype).as_strided(tuple(lengths), stored.strides)
        self._request, self._target, self._targets, self._why = request, target, targets, why

    def finish(self) -> None:
        self._target.copy_(self._view)
        report = self.load.report
        report.bytes_staged += self._bytes.numel()
        report.staged_why[self._why] = report.staged_why.get(self._why, 0) + 1
        self._targets.planner.commit_tensor(self._request, self._target)


class _Decoded(_Piece):
    """An object's bytes, or a stream that torch.load must read."""

    def __init__(self, load: _FileLoad, item: _Item, targets: _Targets, extensions: Any) -> None:
        self._data = bytearray(item.length)
        super().__init__(load, [(item.at, self._data, item.length)], item.length)
        self._item, self._targets, self._extensions = item, targets, extensions

    def finish(self) -> None:
        item = self._item
        report = self.load.report
        report.bytes_decoded += item.length
        stream = self._plain()
        if item.requests[0].type == LoadItemType.BYTE_IO:
            for request in item.requests:
                stream.seek(0)
                self._targets.planner.load_bytes(request, stream)
            return
        why = f"transforms {', '.join(item.transforms)}" if item.transforms else getattr(item.found, "why", "")
        report.staged_why[why] = report.staged_why.get(why, 0) + 1
        try:
            tensor = torch.load(stream, map_location="cpu", weights_only=True)
        except Exception as e:
            raise FormatError.of(f"{item} cannot be read by torch.load ({why}): {e}") from e
        for request in item.requests:
            target = self._targets.resolve(request)
            if not isinstance(tensor, torch.Tensor) or any(
                o + n > have for o, n, have in zip(request.storage_offsets, request.lengths, tensor.shape, strict=True)
            ):
                raise FormatError.of(f"{item} has no tensor with room for {tuple(request.lengths)} at {tuple(request.storage_offsets)}")
            part = tensor
            for dimension, (start, length) in enumerate(zip(request.storage_offsets, request.lengths, strict=True)):
                part = part.narrow(dimension, start, length)
            target.copy_(part)
            self._targets.planner.commit_tensor(request, target)

    def _plain(self) -> io.BytesIO:
        """The stream without the writer's transforms."""
        item = self._item
        stream: Any = io.BytesIO(self._data)
        if item.transforms:
            registry = self._extensions or _torchs_extensions(item)
            try:
                for extension in registry.from_descriptor_list(item.transforms):
                    stream = extension.transform_from(stream)
                return io.BytesIO(stream.read())
            except GpuNvmeError:
                raise
            except Exception as e:
                raise UnsupportedError.of(f"{item}: its transforms {list(item.transforms)} cannot be undone: {e}; pass extensions") from e
        return io.BytesIO(self._data)


def _torchs_extensions(item: _Item) -> Any:
    try:
        from torch.distributed.checkpoint._extension import ExtensionRegistry
    except ImportError as e:
        raise UnsupportedError.of(f"{item}: it has transforms {list(item.transforms)}, and this PyTorch knows none; pass extensions") from e
    return ExtensionRegistry()
