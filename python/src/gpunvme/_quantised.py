"""Floats of quantised tensors of PyTorch: :func:`gpunvme.torch.dequantize`."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from typing import Any

import torch

from . import _dequantize, _native
from ._checks import whole
from ._device import accelerator
from .errors import UnsupportedError

_MOST = 2**63 - 1

# What quantised elements can become.
FLOATS = {torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16"}
_EIGHT_BITS = {torch.int8: "I8", torch.float8_e4m3fn: "F8_E4M3", torch.float8_e5m2: "F8_E5M2"}


def dequantize(
    data: torch.Tensor,
    type: str | None = None,
    dtype: torch.dtype = torch.float32,
    *,
    shape: Sequence[int] | None = None,
    scales: torch.Tensor | None = None,
    block: tuple[int, int] | None = None,
) -> torch.Tensor:
    """Floats of a quantised tensor, where it is: on a GPU by kernels in the current stream, without waiting.

    They are bit for bit those of ``gguf.quants.dequantize``, and elements of 8 bits become float32 and are multiplied by
    their scales; then they are rounded to ``dtype``.

    :param data: bytes as they are stored, as rows (what :func:`load_file` gives) or in one dimension; or a tensor of
        int8, float8_e4m3fn or float8_e5m2
    :param type: of the elements: Q4_0, Q8_0, Q4_K, Q5_K, Q6_K, I8, F8_E4M3, F8_E5M2; None: that of ``data``
    :param dtype: of the result: float32, float16 or bfloat16
    :param shape: of the result; None: that of ``data``, with elements in place of bytes
    :param scales: of elements of 8 bits: one for each block of rows and columns, in as many dimensions as the result if it
        has more than two; or a single one for all
    :param block: rows and columns of the block of a scale; the last ones may be cut. None: what divides rows and columns
    :raises UnsupportedError: if there is no way for these types
    """
    name = type or _EIGHT_BITS.get(data.dtype)
    known = _dequantize.BLOCKS.get(name or "")
    target = FLOATS.get(dtype)
    if name is None or known is None or target is None:
        raise UnsupportedError.of(f"no {dtype} is made of {name or data.dtype}; there is a way for {[*_dequantize.BLOCKS]}")
    if data.element_size() != 1:
        raise TypeError(f"quantised elements are bytes (uint8) or of 8 bits, not {data.dtype}")
    elements, stored, alignment = known
    size = _unpacked(data.shape, elements, stored) if shape is None else tuple(whole(n, "a length", 0, _MOST) for n in shape)
    columns = size[-1] if size else 1
    rows = math.prod(size[:-1])
    if rows * columns * stored != data.numel() * elements or columns % elements:
        raise ValueError(f"{tuple(data.shape)} bytes are not {size} elements of {name} in blocks of {elements}")
    source = data.contiguous()
    if source.data_ptr() % alignment:
        source = source.clone()
    result = torch.empty(size, dtype=dtype, device=data.device)
    if result.numel() == 0:
        return result
    by, each = (None, (1, 1)) if scales is None else _scales(scales, size, block, data.device)
    tensor = _dequantize.quantized(
        name, source.data_ptr(), target, result.data_ptr(), rows, columns, 0 if by is None else by.data_ptr(), each
    )
    dequantize_all([tensor], data.device)
    return result


def dequantize_all(tensors: Sequence[_native.Quantized] | ctypes.Array[Any], device: torch.device) -> None:
    """Makes the floats of all of them at once, on a GPU in its current stream."""
    on_gpu = device.type == "cuda"
    stream = torch.cuda.current_stream(device).cuda_stream if on_gpu else 0
    _dequantize.dequantize(accelerator(device), tensors, stream)


def _unpacked(shape: Sequence[int], elements: int, stored: int) -> tuple[int, ...]:
    """The shape of the elements that have these rows of bytes."""
    row = shape[-1] if shape else 1
    if row % stored:
        raise ValueError(f"rows of {row} bytes are not whole blocks of {stored}")
    return (*shape[:-1], row // stored * elements)


def _scales(
    scales: torch.Tensor,
    size: tuple[int, ...],
    block: tuple[int, int] | None,
    device: torch.device,
) -> tuple[torch.Tensor, tuple[int, int]]:
    """The scales of a matrix of rows and columns, and the block of each."""
    if not scales.is_floating_point():
        raise TypeError(f"scales are floats, not {scales.dtype}")
    given = scales.to(device=device, dtype=torch.float32).contiguous()
    return given, area(tuple(given.shape), size, block)


def area(of: tuple[int, ...], size: tuple[int, ...], block: tuple[int, int] | None = None) -> tuple[int, int]:
    """Rows and columns that have a scale each.

    :param of: the shape of the scales
    :param size: of what they belong to
    :param block: what the caller says it is; None: what divides rows and columns
    """
    rows, columns = math.prod(size[:-1]), size[-1] if size else 1
    if math.prod(of) == 1 and block is None:
        return rows, columns
    given = of
    if len(of) == 1:
        of = (*of, 1)  # one for each row
    height = size[-2] if len(size) > 1 else 1
    if block is not None:
        block = (whole(block[0], "rows of a block", 1, _MOST), whole(block[1], "columns of a block", 1, _MOST))
    down, right = block or (_share(height, of[-2]), _share(columns, of[-1]))
    expected = (*size[:-2], -(-height // down), -(-columns // right))
    if of[: len(of) - 2] != size[:-2] or of[-2:] != expected[-2:]:
        raise ValueError(
            f"scales of shape {given} are not {expected}, one for each {down} x {right} of {size};"
            " say by block= how many rows and columns have one"
        )
    if height % down and rows != height:
        raise ValueError(f"blocks of {down} rows would go from one matrix of {height} rows to the next")
    return down, right


def _share(length: int, blocks: int) -> int:
    """How long each of so many blocks is."""
    if blocks == 0 or length % blocks:
        raise ValueError(f"{length} are not {blocks} equal blocks: give block=")
    return length // blocks
