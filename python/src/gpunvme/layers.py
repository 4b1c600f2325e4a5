"""Reads the layers of a model into a ring of slots, in the order in which they are needed."""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Iterable, Iterator
from ctypes import byref, c_uint64, c_void_p
from typing import Any, NamedTuple

from . import _native
from ._checks import unsigned
from ._handle import Handle
from .errors import NotFoundError
from .memory import DeviceArray, Keeper, region, stream_handle
from .storage import Storage
from .weights import Slice, Weights


class _Lent(Keeper):
    """Keeps the ring of a loader until the loader or its storage is closed."""

    __slots__ = ("_loader",)

    def __init__(self, loader: LayerLoader) -> None:
        self._loader = loader
        for handle in loader._handles():
            handle.show(self)

    def require(self) -> None:
        for handle in self._loader._handles():
            handle.open


class TensorPlace(NamedTuple):
    """A tensor, or a part of one, and the place of its first byte in a layer."""

    name: str
    place: int
    part: Slice | None = None


class TensorLayer:
    """A layer that is made of tensors of a model, for the loaders of that model. Made once, it can be named often."""

    def __init__(self, weights: Weights, name: str, tensors: Iterable[TensorPlace]) -> None:
        reads = []
        for tensor in tensors:
            info = weights.info(tensor.name)
            reads.append(weights._native_read(tensor.name, tensor.part, unsigned(tensor.place, "place"), info.nbytes))
        self.name = name
        self._weights = weights
        self._native_name = name.encode()
        self._reads = (_native.TensorRead * len(reads))(*reads)


class LayerLoader:
    """A ring of ``pipeline_depth`` (1..1024) slots for layers of at most ``max_layer_bytes``.

    Of a storage its layers are ranges (:meth:`prefetch`), of :class:`~gpunvme.Weights` they are made of tensors
    (:meth:`prefetch_tensors`). It takes all of its memory when it is made. Ctrl-C in :meth:`load` or :meth:`next` closes the loader.
    Safe for all threads; each layer is handed out once.
    """

    def __init__(self, source: Storage | Weights, max_layer_bytes: int, pipeline_depth: int) -> None:
        library = _native.lib()
        native = c_void_p()
        longest = unsigned(max_layer_bytes, "max_layer_bytes")
        depth = unsigned(pipeline_depth, "pipeline_depth", 32)
        of_tensors = isinstance(source, Weights)
        init = library.gpunvme_weights_layer_loader_init if of_tensors else library.gpunvme_layer_loader_init
        _native.check(init(source._handle.open, longest, depth, byref(native)))
        assert native.value is not None
        self._source = source  # stays open longer
        self._handle = Handle(native.value, library.gpunvme_layer_loader_destroy, "the layer loader")
        self._handle.own(self)

    def load(self, offset: int, into: Any, bytes: int | None = None) -> int:
        """Reads one layer into memory of the caller, waits, and returns the number of bytes."""
        offset = unsigned(offset, "offset")
        target = region(into, bytes, writable=True)
        target.settle()
        native = self._handle.open
        library = _native.lib()
        _native.interruptible(
            lambda: int(library.gpunvme_load_layer(native, offset, target.nbytes, target.address)), self._handle.close
        )
        return target.nbytes

    def prefetch(self, layers: Iterable[tuple[int, int]]) -> None:
        """Names the layers ``(offset, bytes)`` that :meth:`next` gives next, and reads them ahead. Does not wait."""
        offsets, lengths = array("Q"), array("Q")
        for offset, nbytes in layers:
            offsets.append(unsigned(offset, "offset"))
            lengths.append(unsigned(nbytes, "bytes"))
        n = len(offsets)
        if n:
            _native.check(
                _native.lib().gpunvme_prefetch_layers(
                    self._handle.open, (c_uint64 * n).from_buffer(offsets), (c_uint64 * n).from_buffer(lengths), n
                )
            )

    def prefetch_tensors(self, layer: TensorLayer) -> None:
        """Names a layer of tensors that :meth:`next` gives after those that are named, and reads it ahead. Does not wait."""
        if layer._weights is not self._source:
            raise ValueError(f"{layer.name!r} is a layer of {layer._weights!r}, and this loader reads {self._source!r}")
        _native.check(
            _native.lib().gpunvme_prefetch_tensors(
                self._handle.open, layer._native_name, layer._reads, len(layer._reads)
            )
        )

    def cancel(self) -> None:
        """Forgets the layers that are named and were not given, and ends their reads."""
        _native.check(_native.lib().gpunvme_cancel_layers(self._handle.open))

    def stats(self) -> dict[str, Any]:
        """Of the layers that were given, and that no stream uses: ``layers``, ``bytes``, ``read_seconds``, ``wait_seconds``.

        Of reads side by side each counts with the time that it added; waits are those of who took the layers.
        ``paths`` has, for each path by which the same was read since the loader was made, by anybody, ``read_bytes`` and
        ``mode``, which says how it works.
        """
        told: dict[str, Any] = json.loads(_native.read_text(_native.lib().gpunvme_layer_loader_stats, self._handle.open))
        return told

    def next(self, stream: Any = None) -> DeviceArray | None:
        """The next layer, in the ring, or None if no layer is named any more.

        It is valid until the next call of this method. With a stream, the stream waits for the data;
        at the next call, the slot becomes free once the stream has done its work up to that call. Without a stream,
        this call waits for the data. PyTorch's default stream, and 0, count as streams.
        """
        library, native = _native.lib(), self._handle.open
        handle = None if stream is None else stream_handle(stream)
        return self._given(lambda a, n: library.gpunvme_next_layer(native, handle, a, n), stream is None)

    def take(self, stream: Any) -> DeviceArray | None:
        """The next layer for a stream that must not wait for it: this call waits for the data.

        At the next call, the slot becomes free once the stream has done its work up to that call. For programs
        that do not know every call of CUDA that is made beside the stream, such as those with PyTorch: one that allocates,
        or loads a kernel, waits for streams that wait, and keeps the data from arriving.
        """
        library, native, handle = _native.lib(), self._handle.open, stream_handle(stream)
        return self._given(lambda a, n: library.gpunvme_take_layer(native, handle, a, n), True)

    def _given(self, call: Callable[[Any, Any], int], waits: bool) -> DeviceArray | None:
        address, nbytes = c_uint64(), c_uint64()
        try:
            if waits:
                _native.interruptible(lambda: int(call(byref(address), byref(nbytes))), self._handle.close)
            else:
                _native.check(call(byref(address), byref(nbytes)))
        except NotFoundError:
            return None
        return DeviceArray(address.value, nbytes.value, self._source.accelerator, keep=_Lent(self))

    def __iter__(self) -> Iterator[DeviceArray]:
        """The layers that were named, each valid until the next one."""
        while (layer := self.next()) is not None:
            yield layer

    def _handles(self) -> tuple[Handle, Handle]:
        return self._handle, self._source._handle

    @property
    def closed(self) -> bool:
        return self._handle.closed

    def close(self) -> None:
        """Waits for a layer that a stream uses, and ends all other reads.

        If that layer could not be read, raises what :meth:`next` would have raised: the stream worked on wrong data.
        """
        _native.check(self._handle.close())

    def __enter__(self) -> LayerLoader:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self._handle.close()
