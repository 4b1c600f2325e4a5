"""Floats of quantised tensors, made in memory by the C library. No PyTorch in here: addresses and numbers."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, Final

from . import _native

BLOCKS: Final[dict[str, tuple[int, int, int]]] = {
    "Q4_0": (32, 18, 2),
    "Q8_0": (32, 34, 2),
    "Q4_K": (256, 144, 16),
    "Q5_K": (256, 176, 16),
    "Q6_K": (256, 210, 2),
    "I8": (1, 1, 1),
    "F8_E4M3": (1, 1, 1),
    "F8_E5M2": (1, 1, 1),
}
"""By type: elements of a block, its bytes, and of what its address is a multiple."""


def quantized(
    type: str,
    source: int,
    target_type: str,
    target: int,
    rows: int,
    columns: int,
    scales: int = 0,
    block: tuple[int, int] = (1, 1),
) -> _native.Quantized:
    """One of the tensors of :func:`dequantize`; see ``gpunvme_quantized``."""
    return _native.Quantized(type.encode(), source, target_type.encode(), target, rows, columns, scales, *block)


def dequantize(accelerator: str, tensors: Sequence[_native.Quantized] | ctypes.Array[Any], stream: int = 0) -> None:
    """Makes the floats of all of them: on a GPU in the order of the stream, without waiting.

    :param tensors: an array of ctypes spares a copy
    :param stream: a ``cudaStream_t``; 0: CUDA's legacy default stream, and on the CPU none
    """
    many = tensors if isinstance(tensors, ctypes.Array) else (_native.Quantized * len(tensors))(*tensors)
    _native.check(_native.lib().gpunvme_dequantize(accelerator.encode(), many, len(many), stream or None))
