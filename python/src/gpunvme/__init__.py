"""NVMe storage that a GPU drives itself.

    with gpunvme.Storage("/data/model.bin") as storage:
        storage.read(0, tensor)

Nothing is loaded until it is used: not the C library, not NumPy, not PyTorch.
"""

from ._native import start, version
from .errors import (
    AcceleratorError,
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
from .kinds import Kinds
from .layers import LayerLoader
from .memory import DeviceArray
from .request import Request
from .storage import Plan, Storage
from .weights import Slice, TensorInfo, Weights

__version__ = "0.1.0"

__all__ = [
    "AcceleratorError",
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
    "Kinds",
    "LayerLoader",
    "NVMeGPU",
    "NoSpaceError",
    "NotFoundError",
    "OutOfMemoryError",
    "Plan",
    "Request",
    "Slice",
    "Storage",
    "TensorInfo",
    "TimedOutError",
    "TransferError",
    "UnsupportedError",
    "Weights",
    "start",
    "version",
]
