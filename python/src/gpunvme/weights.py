"""Models (safetensors, GGUF), read tensor by tensor into memory of the caller."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from ctypes import byref, c_int32, c_void_p
from typing import Any, Final, NamedTuple, TypeAlias

from . import _native
from ._checks import whole
from ._handle import Handle
from .errors import NotFoundError
from .memory import region


class TensorInfo(NamedTuple):
    """A model's description of a tensor."""

    name: str
    dtype: str
    """As safetensors and ggml write it: F32, BF16, F8_E4M3, Q4_K."""
    shape: tuple[int, ...]
    """Row-major: the slowest dimension first."""
    nbytes: int
    file: str = ""
    """The name of the file that it is in, or of the device."""
    offset: int = 0
    """Of its first byte in the file."""


NAMES_OF_TYPES: Final = {
    "BOOL": "bool",
    "U8": "uint8",
    "I8": "int8",
    "I16": "int16",
    "U16": "uint16",
    "I32": "int32",
    "U32": "uint32",
    "I64": "int64",
    "U64": "uint64",
    "F16": "float16",
    "BF16": "bfloat16",
    "F32": "float32",
    "F64": "float64",
    "C64": "complex64",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
    "F8_E8M0": "float8_e8m0fnu",
    "F8_E4M3FNUZ": "float8_e4m3fnuz",
    "F8_E5M2FNUZ": "float8_e5m2fnuz",
}
"""What PyTorch calls the types of safetensors and GGUF, some only in later versions; those that NumPy has are called the same there."""

BYTES: Final = -2
"""In place of a dimension: a slice counts bytes of the tensor as it is stored, of any type."""


class Slice(NamedTuple):
    """A part of a tensor along one dimension."""

    dimension: int
    """Or :data:`BYTES`."""
    start: int
    stop: int


ShardRules: TypeAlias = "str | Iterable[str] | Mapping[str, int | None] | Callable[[str], int | None]"


class Weights:
    """A model: a file or folder, or a device that holds one; docs/weights.md.

    Ctrl-C in :meth:`read` closes it. Safe for all threads.
    """

    def __init__(self, uri: str | os.PathLike[str], accelerator: str | None = None) -> None:
        library = _native.lib()
        native = c_void_p()
        kind = _native.accelerator(accelerator)
        _native.check(library.gpunvme_weights_open(_native.encoded(uri), kind, byref(native)))
        assert native.value is not None
        self.uri = os.fspath(uri)
        self._handle = Handle(native.value, library.gpunvme_weights_close, self.uri)
        self._handle.own(self)
        told = json.loads(_native.read_text(library.gpunvme_weights_describe, native.value))
        self.format: str = told["format"]
        self.on_gpu: bool = told.get("gpu", False)
        self.accelerator: str = told.get("accelerator", "cpu")
        """``"gpu:1"``, as CUDA counts, or ``"cpu"``."""
        self.files: tuple[str, ...] = tuple(told.get("files", ()))
        """Names; the first one has the metadata."""
        self.metadata: Mapping[str, Any] = told.get("metadata") or {}
        self.tensors: dict[str, TensorInfo] = {}
        self._numbers: dict[str, int] = {}
        for number, t in enumerate(told["tensors"]):
            self.tensors[t["name"]] = TensorInfo(t["name"], t["dtype"], tuple(t["shape"]), t["bytes"], t.get("file", ""), t.get("offset", 0))
            self._numbers[t["name"]] = number

    def info(self, name: str) -> TensorInfo:
        try:
            return self.tensors[name]
        except KeyError:
            raise NotFoundError.of(f"{self.uri} has no tensor {name!r}") from None

    def read(self, reads: Iterable[tuple[str, Any] | tuple[str, Any, Slice | None]]) -> int:
        """Reads ``(name, into)``, or ``(name, into, Slice(...))``, all at once; returns the number of bytes read."""
        array, keep, total = self._natives(reads)
        if not total:
            return 0
        native = self._handle.open
        library = _native.lib()

        # Nobody else may be left to keep the memory when the wait is interrupted.
        def call(keep: list[Any] = keep) -> int:
            return int(library.gpunvme_weights_read(native, array, len(array)))

        _native.interruptible(call, self.close)
        return total

    def shard_dimensions(self, rules: ShardRules, parts: int) -> dict[str, int | None]:
        """The dimension along which each tensor is divided evenly into parts; None: every part has all of it.

        :param rules: as those of ``gpunvme load --rank`` (docs/weights.md): ``"rows"``, ``"megatron"``, or ``PATTERN=DIMENSION``
            and ``PATTERN=whole``, one a line or in a list; or a dimension or None for each name, as a dict or a callable. Names
            that a dict does not have stay whole
        :param parts: 1 to 65,536
        :raises InvalidError: a rule is none, or a tensor cannot be divided evenly as a pattern, the dict or the callable says
        :raises NotFoundError: a dict has a name that the model does not have
        """
        parts = whole(parts, "parts", 1, 1 << 16)
        dimensions = (c_int32 * len(self.tensors))(*[-1] * len(self.tensors))
        text = None
        if isinstance(rules, Mapping):
            for name, dimension in rules.items():
                self.info(name)
                if dimension is not None:
                    dimensions[self._numbers[name]] = whole(dimension, f"the dimension of {name!r}", 0, 63)
        elif callable(rules):
            return self.shard_dimensions({name: rules(name) for name in self.tensors}, parts)
        else:
            text = _native.without_null(rules if isinstance(rules, str) else "\n".join(rules), "a rule")
        native = self._handle.open
        _native.check(_native.lib().gpunvme_weights_shards(native, text, parts, dimensions, len(dimensions)))
        return {name: None if d < 0 else d for name, d in zip(self.tensors, dimensions, strict=True)}

    def stats(self) -> dict[str, Any]:
        """The bytes that each path has read, by accelerator; without the headers."""
        told: dict[str, Any] = json.loads(_native.read_text(_native.lib().gpunvme_weights_stats, self._handle.open))
        return told

    def _read_to_the_end(self, reads: Iterable[tuple[str, Any, Slice | None]]) -> int:
        """The same, which Ctrl-C neither ends nor closes: for short reads, and for threads that signals do not come to."""
        array, keep, total = self._natives(reads)
        if total:
            _native.check(_native.lib().gpunvme_weights_read(self._handle.open, array, len(array)))
        del keep
        return total

    def _natives(
        self, reads: Iterable[tuple[str, Any] | tuple[str, Any, Slice | None]]
    ) -> tuple[Any, list[Any], int]:
        natives: list[_native.TensorRead] = []
        keep: list[Any] = []
        total = 0
        for name, into, *part in reads:
            info = self.info(name)
            target = region(into, writable=True)
            if target.nbytes == 0:
                continue
            target.settle()
            keep.append(target.keep)
            natives.append(self._native_read(name, part[0] if part else None, target.address, target.nbytes))
            total += target.nbytes
        return (_native.TensorRead * len(natives))(*natives), keep, total

    def _native_read(self, name: str, piece: Slice | None, address: int, nbytes: int) -> _native.TensorRead:
        dimension, start, stop = (-1, 0, 0) if piece is None else _part(self.info(name), piece)
        return _native.TensorRead(self._numbers[name], dimension, start, stop, address, nbytes)

    def close(self) -> None:
        self._handle.close()

    def __enter__(self) -> Weights:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Weights({self.uri!r}, {self.format}, {len(self.tensors)} tensors)"


def _part(info: TensorInfo, piece: Slice) -> tuple[int, int, int]:
    dimension, start, stop = (whole(number, "a slice's number", -(2**63), 2**63 - 1) for number in piece)
    if dimension == BYTES:
        length = info.nbytes
    else:
        length = info.shape[dimension] if 0 <= dimension < len(info.shape) else 0
    if not 0 <= start < stop <= length:
        raise IndexError(f"{piece} is not a part of {info.name!r}, which has shape {info.shape}")
    return dimension, start, stop
