"""The memory that bytes go to and come from: of any object that shows its memory, and our own on the accelerator."""

from __future__ import annotations

import ctypes
import math
import numbers
import re
import sys
import weakref
from collections.abc import Callable, Sequence
from ctypes import POINTER, PYFUNCTYPE, Structure, c_char_p, c_int, c_ssize_t, c_uint64, c_void_p, py_object
from typing import Any, Final

from . import _cuda, _dlpack, _native
from ._checks import item_bytes, unsigned

_NOTHING: Final[Callable[[], None]] = lambda: None  # noqa: E731


class _PyBuffer(Structure):
    # Py_buffer; part of the stable ABI since 3.11
    _fields_ = [
        ("buf", c_void_p),
        ("obj", c_void_p),
        ("len", c_ssize_t),
        ("itemsize", c_ssize_t),
        ("readonly", c_int),
        ("ndim", c_int),
        ("format", c_char_p),
        ("shape", POINTER(c_ssize_t)),
        ("strides", POINTER(c_ssize_t)),
        ("suboffsets", POINTER(c_ssize_t)),
        ("internal", c_void_p),
    ]


_WRITABLE: Final = 1
_FIELD_NAME: Final = re.compile(":[^:]*:")  # in a format, as in T{<i4:name:}
_get_buffer = PYFUNCTYPE(c_int, py_object, POINTER(_PyBuffer), c_int)(("PyObject_GetBuffer", ctypes.pythonapi))
_release_buffer = PYFUNCTYPE(None, POINTER(_PyBuffer))(("PyBuffer_Release", ctypes.pythonapi))
_has_buffer = PYFUNCTYPE(c_int, py_object)(("PyObject_CheckBuffer", ctypes.pythonapi))


class _Buffer:
    """Holds an object by the buffer protocol: a bytearray, for one, keeps its size meanwhile."""

    def __init__(self, owner: Any, writable: bool) -> None:
        self._view = _PyBuffer()
        self._held = False
        _get_buffer(owner, self._view, _WRITABLE if writable else 0)  # raises BufferError
        self._held = True
        self.address: int = self._view.buf or 0
        self.nbytes: int = self._view.len

    def __del__(self, _release: Any = _release_buffer) -> None:
        if self._held:
            self._held = False
            _release(self._view)


def _has_references(memory: Any) -> bool:
    """Whether elements are, or have, references to objects: bytes from a device would be taken for them."""
    try:
        layout = memoryview(memory).format
    except (BufferError, TypeError, ValueError):
        return False  # of a type that has no name there, such as NumPy's times; no references
    return "O" in layout and "O" in _FIELD_NAME.sub("", layout)


class Region:
    """A piece of memory: address, length, the object that keeps it alive, and how to wait for work in it.

    It is memory for :func:`region`, too: of a caller who knows the address, and that no work is in it.
    """

    __slots__ = ("address", "nbytes", "keep", "settle")

    def __init__(self, address: int, nbytes: int, keep: Any, settle: Callable[[], None] = _NOTHING) -> None:
        self.address = address
        self.nbytes = nbytes
        self.keep = keep
        self.settle = settle


def region(memory: Any, nbytes: int | None = None, *, writable: bool) -> Region:
    """The memory of an object, all of it or its first nbytes.

    It takes torch tensors, objects with ``__cuda_array_interface__``, the buffer protocol or ``__dlpack__``, and
    addresses: int, or an object that turns into one (a ``DeviceAllocation`` of PyCUDA), with nbytes. Memory must be
    contiguous; strides and other layouts raise BufferError.
    """
    if nbytes is not None:
        nbytes = unsigned(nbytes, "bytes")
    found = _find(memory, writable)
    if found is None:
        address = _address(memory)
        if nbytes is None:
            raise TypeError("an address needs bytes: how many to move")
        return Region(address, nbytes, memory)
    if nbytes is not None:
        if nbytes > found.nbytes:
            raise ValueError(f"{nbytes} bytes do not fit into {type(memory).__name__} of {found.nbytes}")
        found.nbytes = nbytes
    return found


def _find(memory: Any, writable: bool) -> Region | None:
    if isinstance(memory, DeviceArray):
        return Region(memory.address, memory.nbytes, memory)
    if type(memory) is bytearray:
        return _buffer(memory, writable)  # nothing else that is asked below can be true of it
    if isinstance(memory, Region):
        return Region(memory.address, memory.nbytes, memory.keep, memory.settle)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(memory, torch.Tensor):
        return _tensor(torch, memory)
    if isinstance(memory, numbers.Integral):
        return None
    interface = getattr(memory, "__cuda_array_interface__", None)
    if interface is not None:
        return _cuda_array(memory, interface, writable)
    if _has_buffer(memory):
        if _has_references(memory):
            raise BufferError(f"{type(memory).__name__} has references to Python objects, not plain memory")
        return _buffer(memory, writable)
    if hasattr(memory, "__dlpack__"):
        imported = _dlpack.Imported(memory)
        if writable and imported.read_only:
            raise BufferError(f"{type(memory).__name__} is read-only")
        if writable and imported.copied:
            raise BufferError(f"{type(memory).__name__} shows a copy of its memory, which a read would fill instead")
        address = imported.address
        settle = (lambda: _cuda.synchronize(1, address)) if imported.on_gpu else _NOTHING
        return Region(address, imported.nbytes, (memory, imported), settle)
    return None


def _buffer(memory: Any, writable: bool) -> Region:
    buffer = _Buffer(memory, writable)
    return Region(buffer.address, buffer.nbytes, buffer)


def _tensor(torch: Any, tensor: Any) -> Region:
    if tensor.layout is not torch.strided or not tensor.is_contiguous():
        raise BufferError("a tensor must be contiguous: use .contiguous(), or read into a contiguous one and copy")
    if tensor.is_conj() or tensor.is_neg():
        raise BufferError("a conjugated or negated view does not show its memory: use .resolve_conj().resolve_neg()")
    kind = tensor.device.type
    if kind not in ("cuda", "cpu"):
        raise TypeError(f"a tensor must be on a CUDA GPU or the CPU, not on {tensor.device}")
    settle = _NOTHING
    if kind == "cuda":
        # Its memory may be at work in this stream still, even as that of a tensor that was dropped.
        def settle() -> None:
            torch.cuda.current_stream(tensor.device).synchronize()

    return Region(tensor.data_ptr(), tensor.element_size() * tensor.numel(), tensor, settle)


def _cuda_array(memory: Any, interface: dict[str, Any], writable: bool) -> Region:
    if interface.get("mask") is not None:
        raise BufferError(f"{type(memory).__name__} has a mask")
    shape = tuple(interface["shape"])
    item = item_bytes(interface["typestr"])
    if item is None:
        raise BufferError(f"{type(memory).__name__} is of type {interface['typestr']!r}, which is not plain memory")
    strides = interface.get("strides")
    if not _dlpack.contiguous(shape, None if strides is None else tuple(strides), item):
        raise BufferError(f"memory must be contiguous: shape {shape}, strides {strides}")
    address, read_only = interface["data"]
    if writable and read_only:
        raise BufferError(f"{type(memory).__name__} is read-only")
    address = unsigned(address or 0, "an address")
    stream = interface.get("stream")
    settle = _NOTHING if stream is None else (lambda: _cuda.synchronize(int(stream), address))
    return Region(address, item * math.prod(shape), memory, settle)


def _address(memory: Any) -> int:
    if isinstance(memory, bool) or not (hasattr(memory, "__index__") or hasattr(memory, "__int__")):
        raise TypeError(
            f"{type(memory).__name__} shows no memory: it has neither __cuda_array_interface__, __dlpack__, nor the"
            " buffer protocol, and is not an address"
        )
    address = int(memory)
    if not 0 < address < 2**64:
        raise ValueError(f"not an address: {address:#x}")
    return address


# CU_STREAM_LEGACY: the default stream by a name of its own. The C library takes 0 for no stream.
_DEFAULT_STREAM: Final = 1


def stream_handle(stream: Any) -> int:
    """The CUstream of a stream of PyTorch, CuPy, PyCUDA or CUDA's own Python package, or an int.

    0, the default stream, is replaced by CUDA's other name for it.
    """
    return unsigned(_stream_handle(stream), "a stream") or _DEFAULT_STREAM


def _stream_handle(stream: Any) -> Any:
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        return (protocol() if callable(protocol) else protocol)[1]
    for name in ("cuda_stream", "ptr", "handle"):
        value = getattr(stream, name, None)
        if value is not None:
            return value
    return stream if isinstance(stream, (str, numbers.Number)) else int(stream)


# ---- memory of the accelerator

class Keeper:
    """What keeps a piece of memory."""

    __slots__ = ("__weakref__",)

    def require(self) -> None:
        """Raises ClosedError if the memory is gone."""


class _Owned(Keeper):
    """Frees a piece of memory, but not when the interpreter ends: something may still use it."""

    def __init__(self, accelerator: bytes, address: int) -> None:
        weakref.finalize(self, _native.lib().gpunvme_memory_free, accelerator, address).atexit = False


class DeviceArray:
    """Memory of an accelerator. It is freed when nothing uses it any more, whether or not its storage is open.

    On a GPU it has ``__cuda_array_interface__`` (CuPy, Numba, PyTorch take it), on the CPU stand-in
    ``__array_interface__`` (``numpy.asarray`` takes it) and, from Python 3.12, the buffer protocol; DLPack on both.
    """

    def __init__(
        self,
        address: int,
        nbytes: int,
        accelerator: str,
        shape: Sequence[int] | None = None,
        dtype: str = "|u1",
        keep: Keeper | None = None,
    ) -> None:
        self._keep = keep
        self.accelerator = accelerator
        """Whose memory it is: ``"gpu:1"``, as CUDA counts, or ``"cpu"``."""
        self.address = address
        self.nbytes = nbytes
        self.dtype = dtype
        item = item_bytes(dtype)
        if item is None:
            raise ValueError(f"a type is written as in numpy's typestr, such as '<f4': {dtype!r}")
        if shape is None:
            if nbytes % item != 0:
                raise ValueError(f"{nbytes} bytes are not a whole number of {dtype} elements")
            shape = (nbytes // item,)
        self.shape: tuple[int, ...] = tuple(unsigned(length, "a shape's length") for length in shape)
        if math.prod(self.shape) * item != nbytes:
            raise ValueError(f"shape {self.shape} of {dtype} does not have {nbytes} bytes")

    @classmethod
    def allocate(
        cls, nbytes: int, accelerator: str, shape: Sequence[int] | None = None, dtype: str = "|u1"
    ) -> DeviceArray:
        """Takes zeroed memory; of 0 bytes none, at the address 0."""
        array = cls(0, unsigned(nbytes, "bytes"), accelerator, shape, dtype)
        if array.nbytes:
            kind = accelerator.encode()
            address = c_uint64()
            _native.check(_native.lib().gpunvme_memory_allocate(kind, array.nbytes, ctypes.byref(address)))
            array.address = address.value
            array._keep = _Owned(kind, address.value)
        return array

    @property
    def _on_gpu(self) -> bool:
        return self.accelerator != "cpu"

    def view(self, dtype: str, shape: Sequence[int] | None = None) -> DeviceArray:
        """The same memory as another type ("<f2", "<f4", "|u1") or shape."""
        return DeviceArray(self.address, self.nbytes, self.accelerator, shape, dtype, self._keep)

    def tobytes(self) -> bytes:
        """A copy in host memory."""
        text = bytearray(self.nbytes)
        if self.nbytes:
            if self._keep is not None:
                self._keep.require()
            host = (ctypes.c_char * self.nbytes).from_buffer(text)
            copy = _native.lib().gpunvme_memory_copy_to_host
            _native.check(copy(self.accelerator.encode(), ctypes.addressof(host), self.address, self.nbytes))
        return bytes(text)

    def __len__(self) -> int:
        return self.shape[0] if self.shape else 1

    def __repr__(self) -> str:
        where = self.accelerator if self._on_gpu else "host"
        return f"DeviceArray({self.nbytes} bytes of {where} memory at {self.address:#x}, {self.shape} {self.dtype})"

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if not self._on_gpu:
            raise AttributeError("this memory is the host's: there is no GPU")
        return self._interface() | {"version": 3, "stream": None}

    @property
    def __array_interface__(self) -> dict[str, Any]:
        if self._on_gpu:
            raise AttributeError("this memory is a GPU's; tobytes() copies it")
        # NumPy takes the address 0 for an error.
        nothing = {} if self.nbytes else {"data": bytearray(1)}
        return self._interface() | {"version": 3} | nothing

    def _interface(self) -> dict[str, Any]:
        return {"shape": self.shape, "typestr": self.dtype, "data": (self.address, False), "strides": None}

    def __buffer__(self, flags: int) -> memoryview:
        if self._on_gpu:
            raise BufferError("this memory is a GPU's; tobytes() copies it")
        if self.nbytes == 0:
            return memoryview(bytearray())
        host = (ctypes.c_char * self.nbytes).from_address(self.address)
        host._owner = self  # type: ignore[attr-defined]
        return memoryview(host).cast("B")

    def __dlpack_device__(self) -> tuple[int, int]:
        return (_dlpack.CUDA, int(self.accelerator.removeprefix("gpu:"))) if self._on_gpu else (_dlpack.CPU, 0)

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        # Nothing is under way in it: reads into it have been waited for.
        device = self.__dlpack_device__()
        if copy or (dl_device is not None and tuple(int(v) for v in dl_device) != device):
            raise BufferError("this memory is exported in place: without a copy, and not to another device")
        versioned = max_version is not None and max_version[0] >= 1
        return _dlpack.export(self, self.address, self.shape, self.dtype, device, versioned)
