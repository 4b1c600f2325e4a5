"""Models for several GPUs: each reads its shards, and what all have is read once and copied between them."""

from __future__ import annotations

import bisect
import contextlib
import dataclasses
import functools
import hashlib
import itertools
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import torch

from .. import _native
from .._checks import size
from .._device import accelerator, torch_device
from ..errors import BY_CODE, GpuNvmeError, InvalidError, UnsupportedError
from ..weights import BYTES, ShardRules, Slice, TensorInfo, Weights
from ._types import layout

_BLOCK: Final = 4096
"""What the devices' shares of common bytes are multiples of: in files whose data begins at a page no two of them read a block of an SSD."""

_BUCKETS: Final = 2
"""Of a part, being read at a time: while one ends, the next keeps what moves the data busy."""

_Read = tuple[str, Any, Slice | None]


@dataclasses.dataclass
class ShardReport:
    """What :func:`load_sharded` did. A part is a device of one process, or a rank."""

    parts: int
    model_bytes: int
    """Of all tensors."""
    replicated_bytes: int
    """Of the tensors that every part has."""
    bytes_read: list[int]
    """By each part from storage; their sum is ``model_bytes``."""
    bytes_copied: int = 0
    """Between parts, together: the replicated bytes that they did not read themselves."""
    exchange: str = "none"
    """How they were copied: "peer" (between GPUs, over NVLink or PCIe), "host" (through or in host memory), or torch's name of the
    group's backend, such as "nccl"."""
    bytes_overread: int = 0
    """Read by all parts with what was asked for, since they lay in the same blocks or between ranges."""
    paths: dict[str, int] = dataclasses.field(default_factory=dict)
    """Bytes that this process read, by each path of the storage API (docs/paths.md)."""
    seconds: dict[str, float] = dataclasses.field(default_factory=dict)
    """Of this process: "open", "allocate", "read" until all of its bytes were there, "exchange" after that, and "total"."""


class LoadedShards(list[dict[str, torch.Tensor]]):
    """The tensors of each device of this process, by name in the model's order, and how they came."""

    def __init__(self, tensors: Sequence[dict[str, torch.Tensor]], report: ShardReport) -> None:
        super().__init__(tensors)
        self.report = report


def load_sharded(
    filename: str | os.PathLike[str],
    devices: Sequence[torch.device | str | int] | torch.device | str | int,
    rules: ShardRules | None = None,
    *,
    group: Any = None,
    bucket_bytes: int | str = "512MiB",
) -> LoadedShards:
    """Loads a model (safetensors, GGUF; a file, a folder, an address) to several GPUs, and reads no byte of it twice.

        on = load_sharded("/models/llama", ["cuda:0", "cuda:1"], "megatron")    # one process, a part for each device
        on[1]["lm_head.weight"]
        load_sharded("/models/llama", device, "megatron", group=dist.group.WORLD)[0]    # a part for each rank of torchrun

    A tensor that the rules divide goes straight to the devices, an even part to each. Of all others each device reads the N-th part
    of the bytes, and copies it to the other ones while later bytes are being read: directly between GPUs if they reach each
    other's memory, otherwise through the host; ranks gather them by the group. What is quantised, or of a type that PyTorch
    does not have, is rows of bytes (:func:`load_file`).

    Ctrl-C ends it and frees all. With a group every rank calls it with the same model, rules and sizes. If one fails, all raise
    its error, the others with its rank; a rank that dies, or ends by Ctrl-C, makes the others raise what the group does at the end of its
    timeout. It must not run beside other collectives of the group.

    :param devices: ``"cuda:1"``, a number, or ``"cpu"``; one may be there twice. With a group, the one of this rank
    :param rules: which tensors are divided, along which dimension: see :meth:`gpunvme.Weights.shard_dimensions`; None: every
        device has the whole model
    :param group: a process group of torch.distributed with a part for each rank: NCCL for GPUs, gloo for the CPU
    :param bucket_bytes: of what all have, how much is read before it is copied (with a group half of it), 4 KiB for each part at
        least; two such reads are under way at a time. With a group a rank needs twice this much memory while it loads, in one process none
    :raises InvalidError: a tensor cannot be divided evenly as the rules say, or ranks do not ask for the same
    :raises UnsupportedError: PyTorch does not have the type of a tensor, or the group cannot move memory of the device
    :raises GpuNvmeError: reading failed; nothing is at work in any tensor any more
    """
    found = [torch_device(devices)] if isinstance(devices, (torch.device, str, int)) else [torch_device(d) for d in devices]
    bucket = size(bucket_bytes, "bucket_bytes")
    if group is None:
        if not found:
            raise ValueError("devices: at least one")
        return _OneProcess(filename, found, rules, bucket).load()
    if len(found) != 1:
        raise ValueError(f"with a group, devices is the one of this rank, not {len(found)}")
    return _Rank(filename, found[0], rules, bucket, group).load()


# ---- what goes where


class _Common:
    """The bytes of the tensors that every part has, one tensor behind the other."""

    def __init__(self, tensors: Sequence[TensorInfo], parts: int, bucket: int) -> None:
        self._names = [t.name for t in tensors]
        self._starts = [0, *itertools.accumulate(t.nbytes for t in tensors)]
        self.nbytes = self._starts[-1]
        self.most = max(_BLOCK, bucket // parts // _BLOCK * _BLOCK)
        """Bytes of a part's share of a bucket, at most."""
        self._parts = parts
        self._first = dict(zip(self._names, self._starts, strict=False))

    def first(self, name: str) -> int:
        """The place of a tensor's first byte."""
        return self._first[name]

    def buckets(self) -> Iterator[tuple[int, int, int]]:
        """First and last byte of each bucket, and how much of it each part reads, in their order; the last ones may have less."""
        start = 0
        while start < self.nbytes:
            stop = min(self.nbytes, start + self.most * self._parts)
            share = -(-(stop - start) // (self._parts * _BLOCK)) * _BLOCK
            yield start, stop, share
            start = stop

    def spans(self, start: int, stop: int) -> Iterator[tuple[str, int, int]]:
        """The tensors that have these bytes, and which of theirs."""
        at = bisect.bisect_right(self._starts, start) - 1
        while start < stop:
            first = self._starts[at]
            end = min(stop, self._starts[at + 1])
            if start < end:
                yield self._names[at], start - first, end - first
                start = end
            at += 1


class _Plan:
    def __init__(self, weights: Weights, rules: ShardRules | None, parts: int, bucket: int) -> None:
        self.tensors = weights.tensors
        self.parts = parts
        self.dimensions: dict[str, int | None] = (
            dict.fromkeys(weights.tensors) if rules is None else weights.shard_dimensions(rules, parts)
        )
        whole = [t for t in self.tensors.values() if self.dimensions[t.name] is None]
        # Alone it has nobody to share with.
        self.common = _Common(whole if parts > 1 else [], parts, bucket)
        self._own = [t for t in self.tensors.values() if parts == 1 or self.dimensions[t.name] is not None]
        for t in self.tensors.values():
            layout(t)  # raises before anything is allocated
        self.report = ShardReport(
            parts, sum(t.nbytes for t in self.tensors.values()), sum(t.nbytes for t in whole), [0] * parts
        )

    def allocate(self, device: torch.device) -> dict[str, torch.Tensor]:
        """A part's tensors."""
        tensors = {}
        for t in self.tensors.values():
            dtype, shape = layout(t)
            d = self.dimensions[t.name]
            if d is not None and d < len(shape):
                # Rows of bytes are divided as their elements are: between blocks. Only a tensor without any has no such dimension.
                shape = (*shape[:d], shape[d] // self.parts, *shape[d + 1 :])
            tensors[t.name] = torch.empty(shape, dtype=dtype, device=device)
        return tensors

    def own_reads(self, part: int, flat: dict[str, torch.Tensor]) -> list[_Read]:
        """What only this part reads."""
        reads: list[_Read] = []
        for t in self._own:
            d = self.dimensions[t.name]
            if not t.nbytes:
                continue
            if d is None or self.parts == 1:
                reads.append((t.name, flat[t.name], None))
            else:
                each = t.shape[d] // self.parts
                reads.append((t.name, flat[t.name], Slice(d, part * each, (part + 1) * each)))
        return reads

    def share(self, part: int, bucket: tuple[int, int, int]) -> tuple[int, int]:
        """The bytes of a bucket that a part reads; none if the second is not above the first."""
        start, stop, share = bucket
        return start + part * share, min(stop, start + (part + 1) * share)

    def fingerprint(self) -> str:
        """The same on all ranks that can load together."""
        of = hashlib.sha256(repr((self.parts, self.common.most)).encode())
        for t in self.tensors.values():
            of.update(repr((*t[:4], self.dimensions[t.name])).encode())
        return of.hexdigest()


def _flat(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Their bytes."""
    return {name: tensor.view(-1).view(torch.uint8) for name, tensor in tensors.items() if tensor.numel()}


def _settle(devices: Sequence[torch.device]) -> None:
    """Memory that was just allocated may be at work still in the stream of this thread, where it was freed."""
    for device in {d for d in devices if d.type == "cuda"}:
        torch.cuda.current_stream(device).synchronize()


def _stream(device: torch.device) -> torch.cuda.Stream:
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]


@contextlib.contextmanager
def _on(streams: Sequence[torch.cuda.Stream]) -> Iterator[None]:
    """Work of this thread goes to these, each on its device."""
    with contextlib.ExitStack() as stack:
        for stream in streams:
            stack.enter_context(torch.cuda.stream(stream))
        yield


class _Clock:
    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._begin = self._last = time.perf_counter()

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.seconds[name] = now - self._last
        self.seconds["total"] = now - self._begin
        self._last = now


class _Readers:
    """Threads that read. The first failure, and Ctrl-C in the main thread, close the model, which ends what the others read."""

    def __init__(self, weights: Weights) -> None:
        self._weights = weights
        self._overs: list[threading.Event] = []
        self.failure: BaseException | None = None
        self.ended = False
        """Whether nothing more is to be read."""
        self._lock = threading.Lock()

    def start(self, work: Callable[[], None]) -> None:
        over = threading.Event()

        def run() -> None:
            try:
                work()
            except BaseException as e:
                self.fail(e)
            finally:
                over.set()

        threading.Thread(target=run, name="gpunvme-shards", daemon=True).start()
        self._overs.append(over)

    def fail(self, failure: BaseException) -> None:
        with self._lock:
            first = self.failure is None
            if first:
                self.failure = failure
        if first:
            self._weights.close()

    def wait(self) -> None:
        """Returns when all are over."""
        for over in self._overs:
            _wait(over)

    def rethrow(self) -> None:
        failure, self.failure = self.failure, None
        try:
            if failure is not None:
                raise failure
        finally:
            del failure  # its frames hold it

    def end(self) -> None:
        """The same at once, however often it is interrupted."""
        for over in self._overs:
            _native._end(over, self._weights.close)


def _wait(event: threading.Event) -> None:
    while not event.wait(_native.SLICE_NS / 1e9):
        pass  # signal handlers run


def _tell(report: ShardReport, weights: Weights) -> None:
    for side in weights.stats()["accelerators"].values():
        for path, counts in side["paths"].items():
            if counts["read_bytes"]:
                report.paths[path] = report.paths.get(path, 0) + counts["read_bytes"]
            report.bytes_overread += counts["overread_bytes"]


def _accelerator(devices: Sequence[torch.device]) -> str:
    """What a model is opened for: with it, memory of every GPU and of the host can be reached."""
    return accelerator(next((d for d in devices if d.type == "cuda"), devices[0]))


# ---- one process


class _Shared:
    """Works that several threads carry out, each once, and in their order as far as threads have one."""

    def __init__(self, works: Iterator[Callable[[], None]]) -> None:
        self._works = works
        self._lock = threading.Lock()

    def _next(self) -> Callable[[], None] | None:
        with self._lock:
            return next(self._works, None)

    def carry_out(self) -> None:
        """Until there are none, or one fails."""
        while (work := self._next()) is not None:
            work()


class _OneProcess:
    def __init__(self, filename: str | os.PathLike[str], devices: list[torch.device], rules: ShardRules | None, bucket: int) -> None:
        self._filename = filename
        self._devices = devices
        self._rules = rules
        self._bucket = bucket
        self._streams: dict[tuple[int, int], list[torch.cuda.Stream]] = {}
        self._counting = threading.Lock()

    def load(self) -> LoadedShards:
        clock = _Clock()
        with Weights(self._filename, _accelerator(self._devices)) as weights:
            plan = _Plan(weights, self._rules, len(self._devices), self._bucket)
            clock.lap("open")
            tensors = [plan.allocate(device) for device in self._devices]
            flats = [_flat(t) for t in tensors]
            _settle(self._devices)
            if plan.common.nbytes:
                self._connect(plan.report)
            clock.lap("allocate")
            readers = _Readers(weights)
            try:
                for part in range(plan.parts):
                    works = _Shared(self._works(weights, plan, flats, part))
                    for _ in range(_BUCKETS if plan.common.nbytes else 1):
                        readers.start(works.carry_out)
                readers.wait()
            except BaseException:
                readers.end()
                raise
            finally:
                # Nothing is at work in the tensors when they are given back or freed.
                clock.lap("read")
                self._synchronize()
            readers.rethrow()
            clock.lap("exchange")
            _tell(plan.report, weights)
        plan.report.seconds = clock.seconds
        return LoadedShards(tensors, plan.report)

    def _connect(self, report: ShardReport) -> None:
        """Makes a stream for the copies of each pair, and has CUDA map their memory: that waits for kernels, and later some read."""
        report.exchange = "host"
        pairs = list(itertools.permutations(range(len(self._devices)), 2))
        for source, target in pairs:
            both = [self._devices[target], self._devices[source]]
            self._streams[source, target] = [_stream(d) for d in both if d.type == "cuda"]
            with _on(self._streams[source, target]):
                torch.empty(16, dtype=torch.uint8, device=both[0]).copy_(
                    torch.empty(16, dtype=torch.uint8, device=both[1]), non_blocking=True
                )
        self._synchronize()
        if all(self._reach(self._devices[source], self._devices[target]) for source, target in pairs):
            report.exchange = "peer"

    @staticmethod
    def _reach(one: torch.device, other: torch.device) -> bool:
        return one.type == other.type == "cuda" and (one == other or torch.cuda.can_device_access_peer(one, other))

    def _works(
        self, weights: Weights, plan: _Plan, flats: list[dict[str, torch.Tensor]], part: int
    ) -> Iterator[Callable[[], None]]:
        """What a part reads, and copies from itself to the others."""
        for bucket in plan.common.buckets():
            yield functools.partial(self._read_common, weights, plan, flats, part, bucket)
        yield functools.partial(self._read, weights, plan, part, plan.own_reads(part, flats[part]))

    def _read_common(
        self, weights: Weights, plan: _Plan, flats: list[dict[str, torch.Tensor]], part: int, bucket: tuple[int, int, int]
    ) -> None:
        own = flats[part]
        spans = list(plan.common.spans(*plan.share(part, bucket)))
        self._read(weights, plan, part, [(name, own[name][start:stop], Slice(BYTES, start, stop)) for name, start, stop in spans])
        for other, flat in enumerate(flats):
            if other != part:
                with _on(self._streams[part, other]):
                    for name, start, stop in spans:
                        flat[name][start:stop].copy_(own[name][start:stop], non_blocking=True)
                with self._counting:
                    plan.report.bytes_copied += sum(stop - start for _, start, stop in spans)

    def _read(self, weights: Weights, plan: _Plan, part: int, reads: list[_Read]) -> None:
        read = weights._read_to_the_end(reads)
        with self._counting:
            plan.report.bytes_read[part] += read

    def _synchronize(self) -> None:
        for streams in self._streams.values():
            for stream in streams:
                stream.synchronize()


# ---- ranks


class _Bucket:
    """Memory for a bucket, and who may use it: the reader while it is free, then the group."""

    def __init__(self, nbytes: int, device: torch.device) -> None:
        self.memory = torch.empty(nbytes, dtype=torch.uint8, device=device)
        self.free = threading.Event()
        self.free.set()
        self.full = threading.Event()
        self.copied: Any = torch.cuda.Event() if device.type == "cuda" else None  # type: ignore[no-untyped-call]


class _Rank:
    """A rank reads its part in a thread, while this one has the group gather what was read before."""

    def __init__(
        self, filename: str | os.PathLike[str], device: torch.device, rules: ShardRules | None, bucket: int, group: Any
    ) -> None:
        # Not every PyTorch has it.
        import torch.distributed as dist

        self._dist = dist
        # Its newer name, where PyTorch has that.
        self._all_gather = getattr(dist, "all_gather_single", dist.all_gather_into_tensor)
        self._group = group
        self._rank, self._ranks = dist.get_rank(group), dist.get_world_size(group)
        if self._rank < 0:
            raise ValueError("this process is no rank of the group")
        self._filename = filename
        self._device = device
        self._rules = rules
        self._bucket = bucket

    def load(self) -> LoadedShards:
        clock = _Clock()
        with contextlib.ExitStack() as stack:
            # The group moves objects by the current device.
            if self._device.type == "cuda":
                stack.enter_context(torch.cuda.device(self._device))
            failure: Exception | None = None
            asked = ""
            try:
                weights = stack.enter_context(Weights(self._filename, accelerator(self._device)))
                # As much memory is read to as is gathered from.
                plan = _Plan(weights, self._rules, self._ranks, self._bucket // 2)
                clock.lap("open")
                tensors = plan.allocate(self._device)
                buckets = [_Bucket(nbytes, self._device) for nbytes in self._bucket_lengths(plan)]
                exchange = self._exchange(plan)
                _settle([self._device])
                asked = plan.fingerprint()
            except Exception as e:
                failure = e
            # Before anybody reads: from here on all do the same.
            try:
                every = self._agree(failure, asked)
            finally:
                del failure  # its frames hold it
            other = next((rank for rank, one in enumerate(every) if one != every[0]), None)
            if other is not None:
                raise InvalidError.of(
                    f"rank {other} loads another model, or by other rules or bucket_bytes, than rank 0: pass the same on all ranks"
                )
            plan.report.exchange = exchange
            counts = self._move(weights, plan, tensors, buckets, clock)
            clock.lap("exchange")
            _tell(plan.report, weights)
            totals = self._agree(None, (*counts, plan.report.bytes_overread))
        report = plan.report
        report.bytes_read = [read for read, _, _ in totals]
        report.bytes_copied = sum(copied for _, copied, _ in totals)
        report.bytes_overread = sum(overread for _, _, overread in totals)
        report.seconds = clock.seconds
        return LoadedShards([tensors], report)

    def _bucket_lengths(self, plan: _Plan) -> list[int]:
        """Of twice as many as are being read, so that others can be gathered meanwhile."""
        return [share * self._ranks for _, _, share in itertools.islice(plan.common.buckets(), 2 * _BUCKETS)]

    def _exchange(self, plan: _Plan) -> str:
        """How the group moves what all have."""
        if not plan.common.nbytes:
            return "none"
        name = str(self._dist.get_backend(self._group))
        # A group of several backends names them as "cpu:gloo,cuda:nccl".
        by_device = dict(one.split(":", 1) for one in name.split(",") if ":" in one)
        name = by_device.get(self._device.type, name)
        if (name == "nccl") != (self._device.type == "cuda"):
            raise UnsupportedError.of(
                f"a group of {name} does not gather memory of {self._device}: use NCCL for GPUs and gloo for the CPU"
            )
        return name

    def _agree(self, failure: Exception | None, value: Any) -> list[Any]:
        """The values of all ranks, if none of them failed; raises the failure of the first one that did."""
        told = None
        if failure is not None:
            code = failure.code if isinstance(failure, GpuNvmeError) else GpuNvmeError.code
            told = (code, getattr(failure, "errno", None) or 0, f"{type(failure).__name__}: {failure}")
        every: list[Any] = [None] * self._ranks
        self._dist.all_gather_object(every, (told, value), group=self._group)
        if failure is not None:
            try:
                raise failure
            finally:
                del failure  # its frames hold it
        for rank, (theirs, _) in enumerate(every):
            if theirs is not None:
                code, error, text = theirs
                raise BY_CODE.get(code, GpuNvmeError).of(f"rank {rank} failed: {text}", error)
        return [value for _, value in every]

    def _move(
        self, weights: Weights, plan: _Plan, tensors: dict[str, torch.Tensor], buckets: list[_Bucket], clock: _Clock
    ) -> tuple[int, int]:
        """Reads and gathers. Returns the bytes that this rank read, and that it got from others.

        A rank that fails takes part in what is gathered until the end, so that the others can hear of it.
        """
        flat = _flat(tensors)
        streams = [_stream(self._device)] if self._device.type == "cuda" and buckets else []
        if buckets:
            # NCCL takes memory for its first call, which would wait for kernels that read.
            self._gather(buckets[0].memory[: _BLOCK * self._ranks], streams)
            for stream in streams:
                stream.synchronize()
        clock.lap("allocate")
        read: list[int] = []
        readers = _Readers(weights)
        works = _Shared(self._works(weights, plan, flat, buckets, readers, read))
        try:
            for _ in range(_BUCKETS if buckets else 1):
                readers.start(works.carry_out)
            copied = 0
            for number, bucket in enumerate(plan.common.buckets()):
                start, stop, share = bucket
                memory = buckets[number % len(buckets)]
                _wait(memory.full)
                memory.full.clear()
                self._gather(memory.memory[: share * self._ranks], streams)
                with _on(streams):
                    for name, first, end in plan.common.spans(start, stop):
                        at = start - plan.common.first(name)
                        flat[name][first:end].copy_(memory.memory[first - at : end - at], non_blocking=True)
                    if memory.copied is not None:
                        memory.copied.record()
                memory.free.set()
                mine = plan.share(self._rank, bucket)
                copied += stop - start - max(0, mine[1] - mine[0])
            readers.wait()
        except BaseException:
            # Before the memories are free: nobody gathers any more, so nobody is to read for it.
            readers.ended = True
            for memory in buckets:
                memory.free.set()
            readers.end()
            raise
        finally:
            clock.lap("read")
            for stream in streams:
                stream.synchronize()
        failure = readers.failure
        readers.failure = None
        if failure is not None and not isinstance(failure, Exception):
            raise failure
        try:
            self._agree(failure, None)
        finally:
            del failure
        return sum(read), copied

    def _gather(self, memory: torch.Tensor, streams: Sequence[torch.cuda.Stream]) -> None:
        """Fills it with the shares of all ranks; that of this one is in its place."""
        share = memory.numel() // self._ranks
        with _on(streams):
            self._all_gather(memory, memory[self._rank * share : (self._rank + 1) * share], group=self._group)

    def _works(
        self, weights: Weights, plan: _Plan, flat: dict[str, torch.Tensor], buckets: list[_Bucket], readers: _Readers, read: list[int]
    ) -> Iterator[Callable[[], None]]:
        """What this rank reads; each adds its bytes to the list. Those of a bucket come when there is memory for them, which is theirs."""

        def common(bucket: tuple[int, int, int], memory: _Bucket) -> None:
            if readers.failure is None:
                try:
                    if memory.copied is not None:
                        memory.copied.synchronize()
                    read.append(self._read_share(weights, plan, bucket, memory.memory))
                except BaseException as e:
                    readers.fail(e)
            memory.full.set()

        def own() -> None:
            if readers.failure is None:
                read.append(weights._read_to_the_end(plan.own_reads(self._rank, flat)))

        for number, bucket in enumerate(plan.common.buckets()):
            memory = buckets[number % len(buckets)]
            # Here, where one reader is at a time: taken later, the memory of a bucket could be taken for a later one before.
            memory.free.wait()
            if readers.ended:
                return
            memory.free.clear()
            yield functools.partial(common, bucket, memory)
        yield own

    def _read_share(self, weights: Weights, plan: _Plan, bucket: tuple[int, int, int], memory: torch.Tensor) -> int:
        start, stop = plan.share(self._rank, bucket)
        reads: list[_Read] = []
        for name, first, end in plan.common.spans(start, stop):
            at = bucket[0] - plan.common.first(name)
            reads.append((name, memory[first - at : end - at], Slice(BYTES, first, end)))
        return weights._read_to_the_end(reads)
