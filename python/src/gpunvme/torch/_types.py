"""The types and shapes that PyTorch has for what models store."""

from __future__ import annotations

import math

import torch

from ..errors import UnsupportedError
from ..weights import TensorInfo

# Types of safetensors and GGUF that PyTorch has, some only in later versions.
_TYPES = {
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


def layout(info: TensorInfo) -> tuple[torch.dtype, tuple[int, ...]]:
    """The type and shape of a tensor. Quantised ones are bytes: their rows as they are stored."""
    name = _TYPES.get(info.dtype)
    if name is None:
        rows = math.prod(info.shape[:-1])
        if len(info.shape) == 0 or rows == 0 or info.nbytes % rows != 0:
            return torch.uint8, (info.nbytes,)
        return torch.uint8, (*info.shape[:-1], info.nbytes // rows)
    dtype = getattr(torch, name, None)
    if dtype is None:
        raise UnsupportedError.of(
            f"tensor {info.name!r} is of type {info.dtype}, which PyTorch {torch.__version__} does not have"
        )
    return dtype, info.shape
