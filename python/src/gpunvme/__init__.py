"""NVMe storage driven by a GPU.

    with gpunvme.Storage("/data/model.bin") as storage:
        storage.read(0, tensor)

The C library, NumPy and PyTorch are loaded only when they are used.
"""

from ._native import start, version
from .cache import PageCache, Rows
from .errors import (
    AcceleratorError,
    BusyError,
    CancelledError,
    ClosedError,
    DeniedError,
    ForkedError,
    FormatError,
    GoneError,
    GpuNvmeError,
    InternalError,
    InvalidError,
    JavaError,
    NoSpaceError,
    NotFoundError,
    OutOfMemoryError,
    TimedOutError,
    TransferError,
    UnsupportedError,
)
from .gpu import NVMeGPU
from .kernels import KernelHandle, KernelStorage, RegisteredBuffer, include_dir
from .kinds import Kinds
from .layers import LayerLoader, TensorLayer, TensorPlace
from .memory import DeviceArray
from .request import Request
from .storage import Plan, Storage
from .weights import Slice, TensorInfo, Weights

__version__ = "0.1.0"

__all__ = [
    "AcceleratorError",
    "BusyError",
    "CancelledError",
    "ClosedError",
    "DeniedError",
    "DeviceArray",
    "ForkedError",
    "FormatError",
    "GoneError",
    "GpuNvmeError",
    "InternalError",
    "InvalidError",
    "JavaError",
    "KernelHandle",
    "KernelStorage",
    "Kinds",
    "LayerLoader",
    "NVMeGPU",
    "NoSpaceError",
    "NotFoundError",
    "OutOfMemoryError",
    "PageCache",
    "Plan",
    "RegisteredBuffer",
    "Request",
    "Rows",
    "Slice",
    "Storage",
    "TensorInfo",
    "TensorLayer",
    "TensorPlace",
    "TimedOutError",
    "TransferError",
    "UnsupportedError",
    "Weights",
    "include_dir",
    "start",
    "version",
]
