"""The types and shapes that PyTorch has for what models store."""

from __future__ import annotations

import math

import torch

from ..errors import UnsupportedError
from ..weights import NAMES_OF_TYPES, TensorInfo


def layout(info: TensorInfo) -> tuple[torch.dtype, tuple[int, ...]]:
    """The type and shape of a tensor. Quantised ones are bytes: their rows as they are stored."""
    name = NAMES_OF_TYPES.get(info.dtype)
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
