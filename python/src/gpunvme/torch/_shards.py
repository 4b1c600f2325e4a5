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

from .._checks import size
from .._device import accelerator, torch_device
from ..errors import BY_CODE, GpuNvmeError, InvalidError, UnsupportedError
from ..weights import BYTES, ShardRules, Slice, TensorInfo, Weights
from ._reading import AT_A_TIME, Readers, Shape, Taken, in_batches, is_taken_beside_reads, read_while_taking, settle, wait
from ._types import layout

_BLOCK: Final = 4096
"""What the devices' shares of common bytes are multiples of: in files whose data begins at a page no two of them read a block of an SSD."""

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
    """Of this process: "open", "connect" for what copies need, "read" until all of its bytes were there, "exchange" after that, and
    "total"."""


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
    :param bucket_bytes: how much is read at a time, by all parts together (with a group half of it), and of what all have is copied
        then; 4 KiB for each part at least. Two such reads are under way at a time, while memory for the next tensors is taken. With a group
        a rank needs twice this much more while it loads, in one process nothing more
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
        self._shapes = [self._shape(t) for t in self.tensors.values()]
        self.report = ShardReport(
            parts, sum(t.nbytes for t in self.tensors.values()), sum(t.nbytes for t in whole), [0] * parts
        )

    def _shape(self, t: TensorInfo) -> Shape:
        """Of a part."""
        dtype, shape = layout(t)
        d = self.dimensions[t.name]
        if d is not None and d < len(shape):
            # Rows of bytes are divided as their elements are: between blocks. Only a tensor without any has no such dimension.
            shape = (*shape[:d], shape[d] // self.parts, *shape[d + 1 :])
        return t.name, dtype, shape

    def taken(self, devices: Sequence[torch.device]) -> Taken:
        """The tensors of some parts."""
        return Taken(self._shapes, devices)

    def own_batches(self) -> Iterator[list[TensorInfo]]:
        """What each part reads its own of."""
        return in_batches(self._own, self.common.most, self.parts)

    def own_reads(self, part: int, batch: Sequence[TensorInfo], bytes_of: Callable[[str], torch.Tensor]) -> list[_Read]:
        """A part's own of these."""
        reads: list[_Read] = []
        for t in batch:
            d = self.dimensions[t.name]
            if d is None or self.parts == 1:
                reads.append((t.name, bytes_of(t.name), None))
            else:
                each = t.shape[d] // self.parts
                reads.append((t.name, bytes_of(t.name), Slice(d, part * each, (part + 1) * each)))
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
            if plan.common.nbytes:
                self._connect(plan.report)
            clock.lap("connect")
            taken = plan.taken(self._devices)
            try:
                read_while_taking(weights, taken, [self._works(weights, plan, taken, part) for part in range(plan.parts)])
            finally:
                # Nothing is at work in the tensors when they are given back or freed.
                clock.lap("read")
                self._synchronize()
            clock.lap("exchange")
            _tell(plan.report, weights)
        plan.report.seconds = clock.seconds
        return LoadedShards(taken.tensors, plan.report)

    def _connect(self, report: ShardReport) -> None:
        """Makes a stream for the copies of each pair, and has CUDA make them reachable: that waits for kernels, and later some read."""
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

    def _works(self, weights: Weights, plan: _Plan, taken: Taken, part: int) -> Iterator[Callable[[], None]]:
        """What a part reads, and copies from itself to the others."""

        def own(batch: Sequence[TensorInfo]) -> None:
            self._read(weights, plan, part, plan.own_reads(part, batch, functools.partial(taken.bytes_of, part)))

        for bucket in plan.common.buckets():
            yield functools.partial(self._read_common, weights, plan, taken, part, bucket)
        for batch in plan.own_batches():
            yield functools.partial(own, batch)

    def _read_common(self, weights: Weights, plan: _Plan, taken: Taken, part: int, bucket: tuple[int, int, int]) -> None:
        spans = list(plan.common.spans(*plan.share(part, bucket)))
        own = {name: taken.bytes_of(part, name) for name, _, _ in spans}
        self._read(weights, plan, part, [(name, own[name][start:stop], Slice(BYTES, start, stop)) for name, start, stop in spans])
        for other in range(plan.parts):
            if other != part:
                with _on(self._streams[part, other]):
                    for name, start, stop in spans:
                        taken.bytes_of(other, name)[start:stop].copy_(own[name][start:stop], non_blocking=True)
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
                taken = plan.taken([self._device])
                buckets = [_Bucket(nbytes, self._device) for nbytes in self._bucket_lengths(plan)]
                exchange = self._exchange(plan)
                settle([self._device])
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
            counts = self._move(weights, plan, taken, buckets, clock)
            clock.lap("exchange")
            _tell(plan.report, weights)
            totals = self._agree(None, (*counts, plan.report.bytes_overread))
        report = plan.report
        report.bytes_read = [read for read, _, _ in totals]
        report.bytes_copied = sum(copied for _, copied, _ in totals)
        report.bytes_overread = sum(overread for _, _, overread in totals)
        report.seconds = clock.seconds
        return LoadedShards(taken.tensors, report)

    def _bucket_lengths(self, plan: _Plan) -> list[int]:
        """Of twice as many as are being read, so that others can be gathered meanwhile."""
        return [share * self._ranks for _, _, share in itertools.islice(plan.common.buckets(), 2 * AT_A_TIME)]

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
        self, weights: Weights, plan: _Plan, taken: Taken, buckets: list[_Bucket], clock: _Clock
    ) -> tuple[int, int]:
        """Reads and gathers. Returns the bytes that this rank read, and that it got from others.

        A rank that fails takes part in what is gathered until the end, so that the others can hear of it.
        """
        streams = [_stream(self._device)] if self._device.type == "cuda" and buckets else []
        if buckets:
            # NCCL takes memory for its first call, which would wait for kernels that read.
            self._gather(buckets[0].memory[: _BLOCK * self._ranks], streams)
            for stream in streams:
                stream.synchronize()
        clock.lap("connect")
        read: list[int] = []
        readers = Readers(weights)
        try:
            if not is_taken_beside_reads(weights):
                readers.take(taken)
            readers.start(self._works(weights, plan, taken, buckets, readers, read))
            copied = 0
            for number, bucket in enumerate(plan.common.buckets()):
                start, stop, share = bucket
                spans = list(plan.common.spans(start, stop))
                readers.take(taken, (name for name, _, _ in spans))
                memory = buckets[number % len(buckets)]
                wait(memory.full, lambda: readers.over)
                memory.full.clear()
                self._gather(memory.memory[: share * self._ranks], streams)
                with _on(streams):
                    for name, first, end in () if readers.over else spans:
                        at = start - plan.common.first(name)
                        taken.bytes_of(0, name)[first:end].copy_(memory.memory[first - at : end - at], non_blocking=True)
                    if memory.copied is not None:
                        memory.copied.record()
                memory.free.set()
                mine = plan.share(self._rank, bucket)
                copied += stop - start - max(0, mine[1] - mine[0])
            readers.take(taken)
            readers.wait()
        except BaseException:
            # Before the memories are free: nobody gathers any more, so nobody is to read for it.
            readers.over = True
            for memory in buckets:
                memory.free.set()
            readers.end(taken)
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
        self, weights: Weights, plan: _Plan, taken: Taken, buckets: list[_Bucket], readers: Readers, read: list[int]
    ) -> Iterator[Callable[[], None]]:
        """What this rank reads; each adds its bytes to the list. Those of a bucket come when there is memory for them, which is theirs."""

        def common(bucket: tuple[int, int, int], memory: _Bucket) -> None:
            if memory.copied is not None:
                memory.copied.synchronize()
            read.append(self._read_share(weights, plan, bucket, memory.memory))
            memory.full.set()

        def own(batch: Sequence[TensorInfo]) -> None:
            read.append(weights._read_to_the_end(plan.own_reads(self._rank, batch, functools.partial(taken.bytes_of, 0))))

        for number, bucket in enumerate(plan.common.buckets()):
            memory = buckets[number % len(buckets)]
            # Here, where one reader is at a time: taken later, the memory of a bucket could be taken for a later one before.
            memory.free.wait()
            if readers.over:
                return
            memory.free.clear()
            yield functools.partial(common, bucket, memory)
        for batch in plan.own_batches():
            yield functools.partial(own, batch)

    def _read_share(self, weights: Weights, plan: _Plan, bucket: tuple[int, int, int], memory: torch.Tensor) -> int:
        start, stop = plan.share(self._rank, bucket)
        reads: list[_Read] = []
        for name, first, end in plan.common.spans(start, stop):
            at = bucket[0] - plan.common.first(name)
            reads.append((name, memory[first - at : end - at], Slice(BYTES, first, end)))
        return weights._read_to_the_end(reads)
