"""DLPack without a compiled extension: reading what others export, and capsules of our own.

Layouts: ``dlpack.h`` of DLPack 1.0.
"""

from __future__ import annotations

import atexit
import ctypes
import sys
import threading
from ctypes import CFUNCTYPE, POINTER, PYFUNCTYPE, Structure, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p
from typing import Any, Final

from ._checks import item_bytes

CPU: Final = 1
CUDA: Final = 2
CUDA_HOST: Final = 3
CUDA_MANAGED: Final = 13

_READ_ONLY: Final = 1
_IS_COPIED: Final = 2
_LONGEST: Final = 16  # bytes of an element: their bits are a number of 8 bits
_FOREIGN_ORDER: Final = ">" if sys.byteorder == "little" else "<"
_CODES: Final = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}


class _Device(Structure):
    _fields_ = [("type", c_int32), ("id", c_int32)]


class _DataType(Structure):
    _fields_ = [("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16)]


class _Tensor(Structure):
    _fields_ = [
        ("data", c_void_p),
        ("device", _Device),
        ("ndim", c_int32),
        ("dtype", _DataType),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    ]


class _Managed(Structure):
    _fields_ = [("tensor", _Tensor), ("context", c_void_p), ("deleter", c_void_p)]


class _Versioned(Structure):
    _fields_ = [
        ("major", c_uint32),
        ("minor", c_uint32),
        ("context", c_void_p),
        ("deleter", c_void_p),
        ("flags", c_uint64),
        ("tensor", _Tensor),
    ]


_python = ctypes.pythonapi
_capsule_is = PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_IsValid", _python))
_capsule_pointer = PYFUNCTYPE(c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", _python))
_capsule_new = PYFUNCTYPE(ctypes.py_object, c_void_p, ctypes.c_char_p, c_void_p)(("PyCapsule_New", _python))
# The same of a capsule that is being destroyed: nothing may count references to it.
_dying_is = PYFUNCTYPE(ctypes.c_int, c_void_p, ctypes.c_char_p)(("PyCapsule_IsValid", _python))
_dying_pointer = PYFUNCTYPE(c_void_p, c_void_p, ctypes.c_char_p)(("PyCapsule_GetPointer", _python))


def contiguous(shape: tuple[int, ...], strides: tuple[int, ...] | None, unit: int) -> bool:
    """Whether elements lie one after the other with the last dimension fastest; strides as multiples of unit."""
    if strides is None or 0 in shape:
        return True
    expected = unit
    for length, stride in zip(reversed(shape), reversed(strides)):
        if length != 1 and stride != expected:
            return False
        expected *= length
    return True


class Imported:
    """Memory that somebody's ``__dlpack__`` shows; it lives as long as this does."""

    def __init__(self, exporter: Any) -> None:
        kind, self.device_id = (int(v) for v in exporter.__dlpack_device__())
        if kind not in (CPU, CUDA, CUDA_HOST, CUDA_MANAGED):
            raise TypeError(
                f"{type(exporter).__name__} lies on a device of DLPack's type {kind}; it must be a CUDA GPU or the CPU"
            )
        self.on_gpu = kind in (CUDA, CUDA_MANAGED)
        # 1 is the legacy default stream: it waits for what the exporter has in its streams, and we for it.
        stream = 1 if self.on_gpu else None
        try:
            self.capsule = exporter.__dlpack__(stream=stream, max_version=(1, 0))
        except TypeError:
            self.capsule = exporter.__dlpack__(stream=stream)
        if _capsule_is(self.capsule, b"dltensor_versioned"):
            at = _capsule_pointer(self.capsule, b"dltensor_versioned")
            versioned = _Versioned.from_address(at)
            if versioned.major != 1:
                raise BufferError(f"DLPack {versioned.major}.{versioned.minor} is unknown; only 1.x is supported")
            tensor = versioned.tensor
            self.read_only = bool(versioned.flags & _READ_ONLY)
            self.copied = bool(versioned.flags & _IS_COPIED)
        elif _capsule_is(self.capsule, b"dltensor"):
            tensor = _Managed.from_address(_capsule_pointer(self.capsule, b"dltensor")).tensor
            self.read_only = self.copied = False
        else:
            raise BufferError(f"{type(exporter).__name__}.__dlpack__ gave no DLPack capsule")
        shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
        strides = tuple(tensor.strides[i] for i in range(tensor.ndim)) if tensor.strides else None
        if not contiguous(shape, strides, 1):
            raise BufferError(f"memory must be contiguous: shape {shape}, strides {strides}")
        count = 1
        for length in shape:
            count *= length
        self.nbytes: int = (count * tensor.dtype.bits * tensor.dtype.lanes + 7) // 8
        self.address: int = (tensor.data or 0) + tensor.byte_offset


# What is exported, by the address of its structure, until the importer is done with it.
_exported: dict[int, tuple[Any, ...]] = {}
_lock = threading.RLock()


def _delete(at: int, _exported: dict[int, tuple[Any, ...]] = _exported, _lock: Any = _lock) -> None:
    # Called by whoever imported the memory, on any thread.
    with _lock:
        _exported.pop(at, None)


def _destroy(
    capsule: int,
    _names: tuple[bytes, ...] = (b"dltensor", b"dltensor_versioned"),
    _is: Any = _dying_is,
    _pointer: Any = _dying_pointer,
    _delete: Any = _delete,
) -> None:
    # A capsule that was taken has another name: then the taker calls the deleter.
    for name in _names:
        if _is(capsule, name):
            _delete(_pointer(capsule, name))


_deleter = CFUNCTYPE(None, c_void_p)(_delete)
_destructor = PYFUNCTYPE(None, c_void_p)(_destroy)
# They may be called while the interpreter tears modules down, so they are never freed.
for _callback in (_deleter, _destructor):
    _python.Py_IncRef(ctypes.py_object(_callback))

# What importers call when there is no interpreter any more to run ours: a function of C that takes a word and does nothing.
_no_deleter: Final = ctypes.cast(ctypes.CDLL(None).labs, c_void_p)
_ended = False


def _end() -> None:
    """From here on what is exported stays for ever: it may be let go by destructors of C++ after the interpreter."""
    global _ended
    with _lock:
        _ended = True
        for managed, *_ in _exported.values():
            managed.deleter = _no_deleter


atexit.register(_end)


def export(
    owner: Any,
    address: int,
    shape: tuple[int, ...],
    typestr: str,
    device: tuple[int, int],
    versioned: bool,
) -> Any:
    """A capsule of contiguous memory; owner is kept until the importer is done."""
    code, size = _CODES.get(typestr[1]), item_bytes(typestr)
    if code is None or size is None or size > _LONGEST:
        raise BufferError(f"DLPack has no type for {typestr}")
    if size > 1 and typestr[0] == _FOREIGN_ORDER:
        raise BufferError(f"DLPack has only this machine's byte order: {typestr}")
    sizes = (c_int64 * len(shape))(*shape)
    strides = (c_int64 * len(shape))()
    step = 1
    for i in reversed(range(len(shape))):
        strides[i] = step
        step *= shape[i]
    managed: Any = _Versioned() if versioned else _Managed()
    if versioned:
        managed.major, managed.minor = 1, 0
    tensor = managed.tensor
    tensor.data = address
    tensor.device = _Device(*device)
    tensor.ndim = len(shape)
    tensor.dtype = _DataType(code, 8 * size, 1)
    tensor.shape = ctypes.cast(sizes, POINTER(c_int64))
    tensor.strides = ctypes.cast(strides, POINTER(c_int64))
    at = ctypes.addressof(managed)
    with _lock:
        managed.deleter = _no_deleter if _ended else ctypes.cast(_deleter, c_void_p)
        _exported[at] = (managed, sizes, strides, owner)
    # The name has to outlive the capsule: a constant does.
    name = _VERSIONED if versioned else _PLAIN
    return _capsule_new(at, name, ctypes.cast(_destructor, c_void_p))


_PLAIN: Final = ctypes.c_char_p(b"dltensor")
_VERSIONED: Final = ctypes.c_char_p(b"dltensor_versioned")
