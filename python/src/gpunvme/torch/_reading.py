"""Reads of a model by several threads, to tensors whose memory is taken meanwhile."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import torch

from .. import _native
from ..weights import TensorInfo, Weights
from ._types import layout

AT_A_TIME: Final = 2
"""Batches of a part that are being read: while one ends, the next keeps what moves the data busy."""

_BATCH: Final = 512 << 20
"""Bytes of a batch, where nobody says."""

_TOLD: Final = 64 << 20
"""After so many bytes of new memory those who wait hear of it: each time the streams are waited for."""

Shape = tuple[str, torch.dtype, tuple[int, ...]]


def settle(devices: Iterable[torch.device]) -> None:
    """Memory that was just allocated may be at work still in the stream of this thread, where it was freed."""
    for device in {d for d in devices if d.type == "cuda"}:
        torch.cuda.current_stream(device).synchronize()


def wait(event: threading.Event, over: Callable[[], bool] = lambda: False) -> None:
    """Returns soon if it is over, too."""
    while not over() and not event.wait(_native.SLICE_NS / 1e9):
        pass  # signal handlers run


def in_batches(tensors: Iterable[TensorInfo], most: int, parts: int = 1) -> Iterator[list[TensorInfo]]:
    """Those that have bytes, in their order, in lists with about as many bytes as asked for.

    :param parts: each is read in part
    """
    batch: list[TensorInfo] = []
    nbytes = 0
    for t in tensors:
        if t.nbytes:
            batch.append(t)
            nbytes += t.nbytes // parts
        if nbytes >= most:
            yield batch
            batch, nbytes = [], 0
    if batch:
        yield batch


class Taken:
    """Tensors of each part. One thread takes them in their order, while others read to those that are there.

    To take memory of a GPU costs about 0.1 ms each time, so a model of many tensors would wait for it as long as for many bytes.
    """

    def __init__(self, shapes: Sequence[Shape], devices: Sequence[torch.device]) -> None:
        self.tensors: list[dict[str, torch.Tensor]] = [{} for _ in devices]
        """Of each part, by name."""
        self._shapes = shapes
        self._devices = devices
        self._numbers = {name: number for number, (name, _, _) in enumerate(shapes)}
        self._taken = self._told = 0
        self._ended = False
        self._changed = threading.Condition()

    def take(self, names: Iterable[str] | None = None) -> None:
        """Those up to the last one that is named; None: all. Only one thread calls this."""
        stop = len(self._shapes) if names is None else max((self._numbers[name] + 1 for name in names), default=0)
        untold = 0
        for name, dtype, shape in self._shapes[self._taken : stop]:
            for device, tensors in zip(self._devices, self.tensors, strict=True):
                tensors[name] = torch.empty(shape, dtype=dtype, device=device)
                untold += tensors[name].nbytes
            self._taken += 1
            if untold >= _TOLD:
                self._tell()
                untold = 0
        self._tell()

    def _tell(self) -> None:
        if self._told < self._taken:
            settle(self._devices)
            with self._changed:
                self._told = self._taken
                self._changed.notify_all()

    def end(self) -> None:
        """Nobody takes any more: those who wait for a tensor end by an exception."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def bytes_of(self, part: int, name: str) -> torch.Tensor:
        """A tensor as its bytes, when it is there."""
        number = self._numbers[name]
        with self._changed:
            self._changed.wait_for(lambda: self._ended or self._told > number)
            if self._told <= number:
                raise RuntimeError("no more memory is taken")
        return self.tensors[part][name].view(-1).view(torch.uint8)


class _Shared:
    """Works that several threads carry out, each once, and in their order as far as threads have one."""

    def __init__(self, works: Iterator[Callable[[], None]]) -> None:
        self._works = works
        self._lock = threading.Lock()

    def next(self) -> Callable[[], None] | None:
        with self._lock:
            return next(self._works, None)


class Readers:
    """Threads that read. After the first failure, of whomever, they begin nothing more."""

    def __init__(self, weights: Weights) -> None:
        self._weights = weights
        self._overs: list[threading.Event] = []
        self._lock = threading.Lock()
        self.failure: BaseException | None = None
        self.over = False
        """Whether nothing more is to be read."""

    def start(self, works: Iterator[Callable[[], None]]) -> None:
        """Carries them out, some at a time."""
        shared = _Shared(works)
        for _ in range(AT_A_TIME):
            over = threading.Event()
            threading.Thread(target=self._run, args=(shared, over), name="gpunvme-reads", daemon=True).start()
            self._overs.append(over)

    def _run(self, shared: _Shared, over: threading.Event) -> None:
        try:
            while not self.over and (work := shared.next()) is not None:
                work()
        except BaseException as e:
            self.fail(e)
        finally:
            over.set()

    def fail(self, failure: BaseException) -> None:
        with self._lock:
            if self.failure is None:
                self.failure = failure
        self.over = True

    def take(self, taken: Taken, names: Iterable[str] | None = None) -> None:
        """Takes memory for them; if there is not enough, that is the failure. After one, those who wait for memory hear of it."""
        if not self.over:
            try:
                taken.take(names)
                return
            except Exception as e:
                self.fail(e)
        taken.end()

    def wait(self) -> None:
        """Returns when all are over."""
        for over in self._overs:
            wait(over)

    def rethrow(self) -> None:
        failure, self.failure = self.failure, None
        try:
            if failure is not None:
                raise failure
        finally:
            del failure  # its frames hold it

    def end(self, taken: Taken) -> None:
        """Ends them at once, however often it is interrupted: closes the model, which ends what is being read."""

        def stop() -> None:
            taken.end()
            self._weights.close()

        self.over = True
        for over in self._overs:
            _native._end(over, stop)
        self.failure = None  # its frames hold this


def is_taken_beside_reads(weights: Weights) -> bool:
    """Whether memory is taken while the model is read: if it is in files that the kernel reads.

    Kernels of the GPU may read an SSD of ours, and the driver gives memory when none runs: seconds, in which nobody copies.
    """
    return os.path.exists(os.fsdecode(weights.uri).partition("?")[0])


def read_while_taking(weights: Weights, taken: Taken, works: Iterable[Iterator[Callable[[], None]]]) -> None:
    """Takes all tensors in this thread, while others carry out each of the works. Ctrl-C closes the model.

    Nothing is at work in any tensor when it returns or raises, but for what the works left to streams.
    """
    readers = Readers(weights)
    if not is_taken_beside_reads(weights):
        taken.take()
    try:
        for each in works:
            readers.start(each)
        readers.take(taken)
        readers.wait()
    except BaseException:
        readers.end(taken)
        raise
    readers.rethrow()


def read_whole(weights: Weights, tensors: Sequence[TensorInfo], device: torch.device) -> dict[str, torch.Tensor]:
    """Some tensors of a model, to memory of their own."""
    taken = Taken([(t.name, *layout(t)) for t in tensors], [device])
    batches = list(in_batches(tensors, _BATCH))

    def read(batch: Sequence[TensorInfo]) -> None:
        weights._read_to_the_end([(t.name, taken.bytes_of(0, t.name), None) for t in batch])

    if len(batches) > 1:
        read_while_taking(weights, taken, [(functools.partial(read, batch) for batch in batches)])
    else:
        taken.take()
        weights.read((t.name, taken.tensors[0][t.name]) for t in tensors)
    return taken.tensors[0]
