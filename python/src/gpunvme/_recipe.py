"""What parameters are made of: stored tensors, or parts of them, and what is done with these."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import nn

from . import _dequantize, _native
from ._dequantize import BLOCKS
from ._quantised import FLOATS, area, dequantize
from .errors import UnsupportedError
from .layers import TensorPlace
from .weights import Slice, Weights

# Tensors of PyTorch's own allocations begin at multiples of this on a GPU, and kernels choose their way by that.
_ALIGNMENT = 512

# What a checkpoint calls the types that parameters are stored in, as PyTorch does.
STORED = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}

# Those that are dequantised just before they are used: elements and bytes of a block. Numbers of 8 bits only with scales.
QUANTISED = {name: (elements, nbytes) for name, (elements, nbytes, _) in BLOCKS.items() if name not in STORED}


class Piece(NamedTuple):
    """Elements of a stored tensor, counted row by row."""

    tensor: str
    start: int
    stop: int


def cut(pieces: Sequence[Piece], start: int, stop: int) -> list[Piece]:
    """Elements of pieces that lie one after the other."""
    found = []
    at = 0
    for tensor, first, last in pieces:
        begin, end = max(start, at), min(stop, at + last - first)
        if begin < end:
            found.append(Piece(tensor, first + begin - at, first + end - at))
        at += last - first
    return found


class Cast(NamedTuple):
    """A parameter in another type."""

    dtype: torch.dtype

    def __call__(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.to(self.dtype)


class Add(NamedTuple):
    """A number on top of each element."""

    number: float

    def __call__(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor + self.number


class Swap(NamedTuple):
    """Two dimensions, one for the other: the memory stays."""

    first: int
    second: int

    def __call__(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.transpose(self.first, self.second)


class Reshape(NamedTuple):
    """Another shape of what was swapped: a copy."""

    shape: tuple[int, ...]

    def __call__(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.reshape(self.shape)


Step = Cast | Add | Swap | Reshape


class Recipe(NamedTuple):
    """How stored tensors become a parameter: pieces one after the other, then what is done with them."""

    pieces: tuple[Piece, ...]
    laid: tuple[int, ...]
    """The shape that the pieces have together."""
    stored: str
    """Their type, as a checkpoint calls it."""
    steps: tuple[Step, ...] = ()
    scales: Recipe | None = None
    """Of quantised elements: each for as many rows and columns as divide those of the pieces."""

    @classmethod
    def whole(cls, weights: Weights, tensor: str, dtype: torch.dtype) -> Recipe:
        """A tensor as it is stored; in that type if it is quantised."""
        info = weights.info(tensor)
        stored = stored_type(weights, tensor)
        steps = (Cast(dtype),) if stored in QUANTISED else ()
        return cls((Piece(tensor, 0, math.prod(info.shape)),), info.shape, stored, steps)

    @property
    def quantised(self) -> bool:
        return self.stored in QUANTISED or self.scales is not None

    @property
    def dtype(self) -> torch.dtype:
        """Of the parameter."""
        return dtype_after(self.stored, self.quantised, self.steps)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the parameter."""
        return shape_after(self.laid, self.steps)

    @property
    def stored_bytes(self) -> int:
        """Of what is stored, with scales."""
        scales = 0 if self.scales is None else self.scales.stored_bytes
        return stored_bytes(self.stored, math.prod(self.laid)) + scales

    @property
    def slot_bytes(self) -> int:
        """Of what is stored, with scales, in a slot."""
        scales = 0 if self.scales is None else self.scales.slot_bytes
        return aligned(stored_bytes(self.stored, math.prod(self.laid))) + scales

    @property
    def bytes(self) -> int:
        """Of the parameter."""
        return math.prod(self.laid) * self.dtype.itemsize

    @property
    def converted(self) -> bool:
        """Whether the parameter takes memory besides what is stored."""
        return self.quantised or any(not isinstance(step, Swap) for step in self.steps)

    @property
    def working_bytes(self) -> int:
        """Memory that converting takes at most, with the parameter's own; 0 if it is a view of what is stored."""
        dtype = self._dequantised if self.quantised else STORED[self.stored]
        count = math.prod(self.laid)
        most = own = count * dtype.itemsize if self.quantised else 0
        for step in self.steps:
            if isinstance(step, Swap) or (isinstance(step, Cast) and step.dtype == dtype):
                continue
            if isinstance(step, Cast):
                dtype = step.dtype
            most = max(most, own + count * dtype.itemsize)
            own = count * dtype.itemsize
        return most

    @property
    def _dequantised(self) -> torch.dtype:
        """What quantised elements become first: what comes out is the same as if they were float32 until they are cast."""
        for step in self.steps:
            if isinstance(step, Cast):
                return step.dtype if step.dtype in FLOATS else torch.float32
            if isinstance(step, Add):
                break
        return torch.float32

    def part(self, index: int, count: int) -> Recipe:
        """One of so many equal parts along the first dimension."""
        assert self.laid[0] == count
        each = math.prod(self.laid) // count
        pieces = tuple(cut(self.pieces, index * each, (index + 1) * each))
        scales = None if self.scales is None else self.scales.part(index, count)
        return Recipe(pieces, self.laid[1:], self.stored, self.steps, scales)

    def places(self, weights: Weights, at: int) -> list[TensorPlace]:
        """Where the pieces go if what is stored begins there: first the elements, then scales."""
        return self.places_of_both(weights, at, at + self.scales_place)

    @property
    def scales_place(self) -> int:
        """Where scales begin, from where what is stored does."""
        return self.slot_bytes - (0 if self.scales is None else self.scales.slot_bytes)

    def places_of_both(self, weights: Weights, at: int, scales_at: int) -> list[TensorPlace]:
        """The same with a place for elements and one for scales."""
        places = []
        for piece in self.pieces:
            if piece.stop > piece.start:
                places.append(TensorPlace(piece.tensor, at, _rows(weights, piece)))
                at += stored_bytes(self.stored, piece.stop - piece.start)
        if self.scales is not None:
            places += self.scales.places(weights, scales_at)
        return places

    @property
    def dequantised_bytes(self) -> int:
        """Of the parameter, if nothing but dequantising makes it of what is stored; else 0."""
        stays = all(isinstance(step, Swap) or step == Cast(self._dequantised) for step in self.steps)
        known = self.scales is None or (self.scales.stored == "F32" and not self.scales.converted)
        return self.bytes if self.quantised and stays and known else 0

    def dequantising(self, stored: int, scales: int, target: int) -> _native.Quantized:
        """What makes its floats there, of what is stored and scales at addresses.

        Only if there are :attr:`dequantised_bytes`.
        """
        rows, columns = math.prod(self.laid[:-1]), self.laid[-1] if self.laid else 1
        block = (1, 1) if self.scales is None else area(self.scales.shape, self.laid)
        by = 0 if self.scales is None else scales
        return _dequantize.quantized(self.stored, stored, FLOATS[self._dequantised], target, rows, columns, by, block)

    def dequantised(self, floats: torch.Tensor) -> torch.Tensor:
        """The parameter, a view of the bytes where its floats are."""
        tensor = floats[: self.bytes].view(self.dtype).view(self.laid)
        for step in self.steps:
            tensor = step(tensor)
        return tensor

    def convert(self, stored: torch.Tensor) -> torch.Tensor:
        """The parameter of the stored bytes, which begin a slot or a part of one; a view of them if nothing is to be converted."""
        return self.convert_both(stored, stored[self.scales_place :])

    def convert_both(self, stored: torch.Tensor, stored_scales: torch.Tensor) -> torch.Tensor:
        """The same with elements and scales in places of their own."""
        elements = stored[: stored_bytes(self.stored, math.prod(self.laid))]
        if self.quantised:
            scales = None if self.scales is None else self.scales.convert(stored_scales).float()
            tensor = dequantize(elements, self.stored, self._dequantised, shape=self.laid, scales=scales)
        else:
            tensor = elements.view(STORED[self.stored]).view(self.laid)
        for step in self.steps:
            tensor = step(tensor)
        return tensor


def stored_type(weights: Weights, tensor: str) -> str:
    """How a tensor is stored, if that can be streamed."""
    kind = weights.info(tensor).dtype
    if kind not in STORED and kind not in QUANTISED:
        raise UnsupportedError.of(
            f"{weights.uri}: tensor {tensor!r} is stored as {kind}, which is not streamed; quantised types that are: "
            + ", ".join(QUANTISED)
        )
    return kind


def stored_bytes(stored: str, elements: int) -> int:
    """Bytes that elements of a type take."""
    if stored in QUANTISED:
        block, nbytes = QUANTISED[stored]
        return elements // block * nbytes
    return elements * STORED[stored].itemsize


def dtype_after(stored: str, quantised: bool, steps: Sequence[Step]) -> torch.dtype:
    """The type of what is stored, after some steps."""
    for step in reversed(steps):
        if isinstance(step, Cast):
            return step.dtype
    return torch.float32 if quantised else STORED[stored]


def shape_after(laid: Sequence[int], steps: Sequence[Step]) -> tuple[int, ...]:
    """The shape of what is stored, after some steps."""
    shape = list(laid)
    for step in steps:
        if isinstance(step, Swap):
            shape[step.first], shape[step.second] = shape[step.second], shape[step.first]
        elif isinstance(step, Reshape):
            shape = list(step.shape)
    return tuple(shape)


def _rows(weights: Weights, piece: Piece) -> Slice | None:
    """The part of dimension 0 that a piece is; None if it is the whole tensor."""
    shape = weights.info(piece.tensor).shape
    if piece.stop - piece.start == math.prod(shape):
        return None
    row = math.prod(shape[1:])
    if piece.start % row or piece.stop % row:
        raise UnsupportedError.of(
            f"{weights.uri}: elements {piece.start} to {piece.stop} of {piece.tensor!r} are not whole rows of {row}"
        )
    return Slice(0, piece.start // row, piece.stop // row)


def aligned(nbytes: int) -> int:
    return -(-nbytes // _ALIGNMENT) * _ALIGNMENT


def frozen(tensor: torch.Tensor) -> nn.Parameter:
    return nn.Parameter(tensor, requires_grad=False)


def owner_of(module: nn.Module, path: str) -> tuple[nn.Module, str]:
    """The module that has a parameter, and its name there."""
    parent, _, name = path.rpartition(".")
    return module.get_submodule(parent), name


def fitted(weights: Weights, reads: list[tuple[str, Any, Slice | None]]) -> list[tuple[str, Any, Slice | None]]:
    """Reads of tensors, or of parts of them, with targets that are cut to what goes there."""
    cut_off = []
    for name, target, part in reads:
        info = weights.info(name)
        nbytes = info.nbytes if part is None else info.nbytes // info.shape[0] * (part.stop - part.start)
        cut_off.append((name, target[:nbytes], part))
    return cut_off
