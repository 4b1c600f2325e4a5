"""The zip that ``torch.save`` makes of one tensor: how it begins and ends, and where in it the tensor's bytes are.

A stream from a file is not trusted: every size and place in it is checked before it is used, and its pickle is only
looked at. Nothing that it names is imported or called.
"""

from __future__ import annotations

import functools
import io
import math
import pickle
import pickletools
import struct
import sys
import zlib
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import torch

ALIGNMENT: Final = 64
"""Of a tensor's bytes, counted from the beginning of its stream, in bytes."""

_MAX32: Final = 0xFFFFFFFF
_MOST_DIRECTORY: Final = 1 << 20
_MOST_PICKLE: Final = 1 << 16
_MOST_DIMENSIONS: Final = 64  # PyTorch's own limit

_UTF8, _SIZES_FOLLOW, _ENCRYPTED = 0x800, 0x8, 0x1
_DATE: Final = 0x21  # 1 January 1980, the oldest that a zip knows: equal tensors make equal streams

_LOCAL: Final = struct.Struct("<4sHHHHHIIIHH")
_CENTRAL: Final = struct.Struct("<4sHHHHHHIIIHHHHHII")
_END: Final = struct.Struct("<4sHHHHIIH")
_END64: Final = struct.Struct("<4sQHHIIQQQQ")
_LOCATOR: Final = struct.Struct("<4sIQI")

_STORAGES: Final = {
    torch.float32: torch.FloatStorage,
    torch.float64: torch.DoubleStorage,
    torch.float16: torch.HalfStorage,
    torch.bfloat16: torch.BFloat16Storage,
    torch.uint8: torch.ByteStorage,
    torch.int8: torch.CharStorage,
    torch.int16: torch.ShortStorage,
    torch.int32: torch.IntStorage,
    torch.int64: torch.LongStorage,
    torch.bool: torch.BoolStorage,
    torch.complex64: torch.ComplexFloatStorage,
    torch.complex128: torch.ComplexDoubleStorage,
}
"""Types that PyTorch writes by the class of their storage; the others it writes by their names."""

_DTYPES: Final = {f"torch {storage.__name__}": dtype for dtype, storage in _STORAGES.items()}


# ---- making one


class _Storage:
    """Stands in a pickle for the storage whose bytes are the record data/0."""

    def __init__(self, kind: Any, elements: int) -> None:
        self.kind = kind
        self.elements = elements


class _Rebuilt:
    def __init__(self, function: Any, arguments: tuple[Any, ...]) -> None:
        self._reduced = function, arguments

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return self._reduced


class _Pickler(pickle.Pickler):
    def persistent_id(self, value: Any) -> Any:
        return ("storage", value.kind, "0", "cpu", value.elements) if isinstance(value, _Storage) else None


def _pickled(dtype: torch.dtype, shape: Sequence[int]) -> bytes:
    shape = tuple(shape)
    elements = math.prod(shape)
    strides = tuple(math.prod(max(1, n) for n in shape[i + 1 :]) for i in range(len(shape)))
    kind = _STORAGES.get(dtype)
    if kind is not None:
        storage = _Storage(kind, elements)
        tensor = _Rebuilt(torch._utils._rebuild_tensor_v2, (storage, 0, shape, strides, False, OrderedDict()))
    else:
        storage = _Storage(torch.UntypedStorage, elements * dtype.itemsize)
        tensor = _Rebuilt(torch._utils._rebuild_tensor_v3, (storage, 0, shape, strides, False, OrderedDict(), dtype))
    into = io.BytesIO()
    _Pickler(into, 2).dump(tensor)
    return into.getvalue()


class _Entry(NamedTuple):
    name: bytes
    flags: int
    crc: int
    nbytes: int
    at: int


class Frame:
    """What is before and after the bytes of a contiguous tensor."""

    def __init__(self, dtype: torch.dtype, shape: Sequence[int]) -> None:
        self.nbytes = math.prod(shape) * dtype.itemsize
        head = bytearray()
        self._before = (
            _plain(head, 0, b"archive/data.pkl", _pickled(dtype, shape)),
            _plain(head, 0, b"archive/byteorder", sys.byteorder.encode()),
        )
        self._data_at = len(head)
        # The CRC comes after the bytes, so that they can be written before all are known.
        wide = struct.pack("<HHQQ", 1, 16, 0, 0) if self.nbytes >= _MAX32 else b""
        padding = -(len(head) + _LOCAL.size + len(_DATA) + len(wide) + 4) % ALIGNMENT
        extra = wide + b"FB" + struct.pack("<H", padding) + bytes(padding)
        version, size = (45, _MAX32) if wide else (20, 0)
        flags = _UTF8 | _SIZES_FOLLOW
        head += _LOCAL.pack(b"PK\3\4", version, flags, 0, 0, _DATE, 0, size, size, len(_DATA), len(extra)) + _DATA + extra
        self.head = bytes(head)

    def tail(self, crc: int) -> bytes:
        """What follows the bytes. Its length does not depend on them.

        :param crc: CRC-32 of the bytes; 0 if nobody counted it. PyTorch does not look at it, programs for zip files do
        """
        tail = bytearray(b"PK\7\x08" + struct.pack("<IQQ" if self.nbytes >= _MAX32 else "<III", crc, self.nbytes, self.nbytes))
        after = len(self.head) + self.nbytes
        data = _Entry(_DATA, _UTF8 | _SIZES_FOLLOW, crc, self.nbytes, self._data_at)
        entries = (*self._before, data, _plain(tail, after, b"archive/version", b"3\n"))
        directory = after + len(tail)
        for entry in entries:
            tail += _central(entry)
        length = after + len(tail) - directory
        if directory >= _MAX32:
            at = after + len(tail)
            tail += _END64.pack(b"PK\6\6", _END64.size - 12, 45, 45, 0, 0, len(entries), len(entries), length, directory)
            tail += _LOCATOR.pack(b"PK\6\7", 0, at, 1)
        tail += _END.pack(b"PK\5\6", 0, 0, len(entries), len(entries), length, min(directory, _MAX32), 0)
        return bytes(tail)


_DATA: Final = b"archive/data/0"


def _plain(into: bytearray, start: int, name: bytes, data: bytes) -> _Entry:
    """Adds a record; ``into`` begins at ``start`` of the stream."""
    entry = _Entry(name, _UTF8, zlib.crc32(data), len(data), start + len(into))
    into += _LOCAL.pack(b"PK\3\4", 20, _UTF8, 0, 0, _DATE, entry.crc, len(data), len(data), len(name), 0) + name + data
    return entry


def _central(entry: _Entry) -> bytes:
    name, flags, crc, nbytes, at = entry
    wide = [n for n in (nbytes, nbytes, at) if n >= _MAX32]
    extra = struct.pack(f"<HH{len(wide)}Q", 1, 8 * len(wide), *wide) if wide else b""
    size, place, version = min(nbytes, _MAX32), min(at, _MAX32), 45 if wide else 20
    header = (version, version, flags, 0, 0, _DATE, crc, size, size, len(name), len(extra), 0, 0, 0, 0, place)
    return _CENTRAL.pack(b"PK\1\2", *header) + name + extra


# ---- finding the bytes of one


class Stored(NamedTuple):
    """A tensor in a stream, whose bytes are there as they are in memory."""

    dtype: torch.dtype
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    """In elements."""
    offset: int
    """Of the first element in the record, in elements."""
    at: int
    """Of the record in the stream, in bytes."""
    nbytes: int
    """Of the record."""


class Foreign(NamedTuple):
    """What only ``torch.load`` can read: a subclass of Tensor, another byte order, a format from before 1.6."""

    why: str


class Damaged(Exception):
    """The stream is not what it should be; the text says what."""


class Wanted(Exception):
    """More of the stream is needed: its bytes from ``at`` on."""

    def __init__(self, at: int, nbytes: int) -> None:
        super().__init__(at, nbytes)
        self.at = at
        self.nbytes = nbytes


class Windows:
    """The parts of a stream that have been read."""

    def __init__(self, length: int) -> None:
        self.length = length
        self._parts: list[tuple[int, bytes | bytearray]] = []

    @property
    def any(self) -> bool:
        return bool(self._parts)

    def add(self, at: int, data: bytes | bytearray) -> None:
        self._parts.append((at, data))

    def get(self, at: int, nbytes: int, what: str) -> bytes:
        """These bytes.

        :raises Wanted: if they have not been read
        :raises Damaged: if there are no such bytes
        """
        if at < 0 or nbytes < 0 or at + nbytes > self.length:
            raise Damaged(f"{what} would be {nbytes} bytes at {at}, and the item has {self.length}")
        for start, data in self._parts:
            if start <= at and at + nbytes <= start + len(data):
                return bytes(data[at - start : at - start + nbytes])
        raise Wanted(at, nbytes)


def find(windows: Windows) -> Stored | Foreign:
    """Where the tensor is whose stream this is.

    :raises Wanted: more must be read first
    :raises Damaged: this is no stream of ``torch.save``
    """
    magic = windows.get(0, min(9, windows.length), "its beginning")
    if not magic.startswith(b"PK\3\4"):
        if magic[8:9] == b"{":
            raise Damaged("it has the format of safetensors (SerializationFormat.SAFETENSORS)")
        return Foreign("it is no zip")
    entries = dict(_entries(windows))
    pickles = [name for name in entries if name.endswith("/data.pkl")]
    if len(pickles) != 1:
        raise Damaged(f"it has {len(pickles)} records data.pkl instead of one")
    root = pickles[0][: -len("data.pkl")]
    order = entries.get(f"{root}byteorder")
    if order is not None and windows.get(*_record(windows, "byteorder", *order)) != sys.byteorder.encode():
        return Foreign("its byte order is not this machine's")
    place = _record(windows, "data.pkl", *entries[pickles[0]])
    if place[1] > _MOST_PICKLE:
        return Foreign(f"its pickle has {place[1]} bytes")
    tensor = _described(windows.get(*place))
    if isinstance(tensor, Foreign):
        return tensor
    record = entries.get(f"{root}data/{tensor.key}")
    if record is None:
        raise Damaged(f"it has no record data/{tensor.key}")
    at, nbytes, _ = _record(windows, f"data/{tensor.key}", *record)
    item = tensor.dtype.itemsize
    if nbytes != tensor.nbytes:
        raise Damaged(f"the record data/{tensor.key} has {nbytes} bytes, and its storage {tensor.nbytes}")
    last = tensor.offset + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.strides, strict=True))
    if 0 not in tensor.shape and (last + 1) * item > nbytes:
        raise Damaged(f"a tensor of shape {tensor.shape} and strides {tensor.strides} is larger than its storage")
    return Stored(tensor.dtype, tensor.shape, tensor.strides, tensor.offset, at, nbytes)


def _entries(windows: Windows) -> Iterator[tuple[str, tuple[int, int]]]:
    """Names of the records, with the places of their local headers and their bytes."""
    end_at = windows.length - _END.size
    end = _END.unpack(windows.get(end_at, _END.size, "the end of its zip"))
    if end[0] != b"PK\5\6":
        raise Damaged("it is cut short: its zip has no end")
    count, size, at = end[4], end[5], end[6]
    if end_at >= _LOCATOR.size:
        locator = _LOCATOR.unpack(windows.get(end_at - _LOCATOR.size, _LOCATOR.size, "a locator"))
        if locator[0] == b"PK\6\7":
            end64 = _END64.unpack(windows.get(locator[2], _END64.size, "the end of its zip64"))
            if end64[0] != b"PK\6\6":
                raise Damaged("its zip64 has no end")
            count, size, at = end64[7], end64[8], end64[9]
    if size > _MOST_DIRECTORY:
        raise Damaged(f"the directory of its zip has {size} bytes")
    directory = windows.get(at, size, "the directory of its zip")
    place = 0
    for _ in range(count):
        if place + _CENTRAL.size > size:
            raise Damaged("the directory of its zip is cut short")
        entry = _CENTRAL.unpack_from(directory, place)
        names = place + _CENTRAL.size
        extras, place = names + entry[10], names + entry[10] + entry[11] + entry[12]
        if entry[0] != b"PK\1\2" or place > size:
            raise Damaged("the directory of its zip is damaged")
        name = directory[names:extras].decode("utf-8", "replace")
        packed, nbytes, local = _wide(directory[extras : extras + entry[11]], [entry[8], entry[9], entry[16]])
        if entry[4] != 0 or entry[3] & _ENCRYPTED or packed != nbytes:
            raise Damaged(f"its record {name!r} is compressed or encrypted")
        yield name, (local, nbytes)


def _wide(extra: bytes, numbers: list[int]) -> list[int]:
    """The numbers with those of zip64 where they do not fit into 32 bits."""
    place = 0
    while place + 4 <= len(extra):
        kind, length = struct.unpack_from("<HH", extra, place)
        place += 4
        if kind == 1:
            values = iter(struct.unpack(f"<{length // 8}Q", extra[place : place + length // 8 * 8].ljust(length // 8 * 8, b"\0")))
            return [next(values, n) if n == _MAX32 else n for n in numbers]
        place += length
    return numbers


def _record(windows: Windows, name: str, local: int, nbytes: int) -> tuple[int, int, str]:
    """Place and length of a record's bytes, and its name."""
    header = _LOCAL.unpack(windows.get(local, _LOCAL.size, f"the header of {name}"))
    if header[0] != b"PK\3\4":
        raise Damaged(f"its record {name} has no header")
    at = local + _LOCAL.size + header[9] + header[10]
    if at + nbytes > windows.length:
        raise Damaged(f"its record {name} would be {nbytes} bytes at {at}, and the item has {windows.length}")
    return at, nbytes, name


# ---- the pickle of one


class _Global(str):
    """A name that a pickle has: "module name"."""


class _Place(NamedTuple):
    """A storage that a pickle names."""

    dtype: torch.dtype | None  # None: its elements are bytes
    key: str
    elements: int


class _Tensor(NamedTuple):
    dtype: torch.dtype
    key: str
    nbytes: int
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


class _Strange(Exception):
    """Not the pickle of a plain tensor."""


@functools.lru_cache(maxsize=4096)  # the layers of a model are alike
def _described(data: bytes) -> _Tensor | Foreign:
    try:
        value = _evaluate(data)
    except _Strange as e:
        return Foreign(str(e))
    except (ValueError, IndexError, KeyError, TypeError) as e:
        raise Damaged(f"its pickle is damaged: {e}") from e
    return value if isinstance(value, _Tensor) else Foreign("its pickle is of no tensor")


_MARK: Final = object()


def _evaluate(data: bytes) -> Any:
    """Runs the few operations that describe a plain tensor, without what they name."""
    stack: list[Any] = []
    memo: dict[int, Any] = {}

    def to_mark() -> list[Any]:
        at = len(stack) - 1 - stack[::-1].index(_MARK)
        found = stack[at + 1 :]
        del stack[at:]
        return found

    for operation, argument, _ in pickletools.genops(data):
        name = operation.name
        if name in ("BININT", "BININT1", "BININT2", "LONG1", "BINUNICODE", "SHORT_BINUNICODE"):
            stack.append(argument)
        elif name in ("BINPUT", "LONG_BINPUT"):
            memo[int(argument or 0)] = stack[-1]
        elif name == "MEMOIZE":
            memo[len(memo)] = stack[-1]
        elif name in ("BINGET", "LONG_BINGET"):
            stack.append(memo[int(argument or 0)])
        elif name == "GLOBAL":
            stack.append(_Global(argument))
        elif name == "STACK_GLOBAL":
            attribute, module = stack.pop(), stack.pop()
            stack.append(_Global(f"{module} {attribute}"))
        elif name == "MARK":
            stack.append(_MARK)
        elif name == "TUPLE":
            stack.append(tuple(to_mark()))
        elif name in _TUPLES:
            count = _TUPLES[name]
            stack[len(stack) - count :] = [tuple(stack[len(stack) - count :])]
        elif name in _CONSTANTS:
            stack.append(_CONSTANTS[name])
        elif name == "BINPERSID":
            stack.append(_storage(stack.pop()))
        elif name == "REDUCE":
            arguments, function = stack.pop(), stack.pop()
            stack.append(_reduced(function, arguments))
        elif name == "STOP":
            return stack.pop()
        elif name not in ("PROTO", "FRAME"):
            raise _Strange(f"its pickle has {name}")
    raise ValueError("it has no end")


_TUPLES: Final = {"EMPTY_TUPLE": 0, "TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_CONSTANTS: Final = {"NEWFALSE": False, "NEWTRUE": True, "NONE": None}


def _storage(named: Any) -> _Place:
    kind, storage, key, _, elements = named
    if kind != "storage" or not isinstance(storage, _Global) or not isinstance(key, str) or not _is_count(elements):
        raise ValueError(f"no storage: {named!r}")
    if storage == "torch.storage UntypedStorage":
        return _Place(None, key, elements)
    dtype = _DTYPES.get(storage)
    if dtype is None:
        raise _Strange(f"its storage is a {storage}")
    return _Place(dtype, key, elements)


def _reduced(function: Any, arguments: Any) -> Any:
    if not isinstance(function, _Global) or not isinstance(arguments, tuple):
        raise ValueError("it calls what is no function")
    if function == "collections OrderedDict" and not arguments:
        return ()
    if function == "torch._utils _rebuild_parameter" and isinstance(arguments[0], _Tensor) and arguments[2:] == ((),):
        return arguments[0]
    if function == "torch._utils _rebuild_tensor_v2" and len(arguments) == 6:
        storage, offset, shape, strides, _, hooks = arguments
        return _tensor(storage, storage.dtype, offset, shape, strides, hooks)
    if function == "torch._utils _rebuild_tensor_v3" and len(arguments) == 7:
        storage, offset, shape, strides, _, hooks, named = arguments
        dtype = getattr(torch, str(named).removeprefix("torch "), None) if isinstance(named, _Global) else None
        return _tensor(storage, dtype, offset, shape, strides, hooks)
    raise _Strange(f"it calls {function} with {len(arguments)} arguments")


def _tensor(storage: Any, dtype: Any, offset: Any, shape: Any, strides: Any, hooks: Any) -> _Tensor:
    if not isinstance(storage, _Place) or not isinstance(dtype, torch.dtype) or hooks != ():
        raise _Strange("it is no plain tensor")
    for numbers in (shape, strides, (offset,)):
        if not isinstance(numbers, tuple) or not all(map(_is_count, numbers)) or len(numbers) > _MOST_DIMENSIONS:
            raise ValueError(f"no sizes: {numbers!r}")
    if len(shape) != len(strides):
        raise ValueError(f"{len(shape)} sizes and {len(strides)} strides")
    nbytes = storage.elements * (1 if storage.dtype is None else storage.dtype.itemsize)
    return _Tensor(dtype, storage.key, nbytes, offset, shape, strides)


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 62
