"""Tensors of a checkpoint that nobody has read."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ._streamed import Piece, Recipe
from .errors import UnsupportedError

# More pieces than this are no tensor that somebody has put together, but one that was cut in columns.
_MOST_PIECES = 1 << 16


class Stored(torch.Tensor):
    """A tensor of a checkpoint that nobody has read: it knows what it is made of, whatever a model's loader does with it."""

    _pieces: tuple[Piece, ...]
    _stored: torch.dtype
    _casts: tuple[torch.dtype, ...]
    refused: list[UnsupportedError]

    @staticmethod
    def __new__(
        cls,
        shape: Sequence[int],
        pieces: tuple[Piece, ...],
        stored: torch.dtype,
        casts: tuple[torch.dtype, ...] = (),
        refused: list[UnsupportedError] | None = None,
    ) -> Stored:
        dtype = casts[-1] if casts else stored
        made: Stored = torch.Tensor._make_wrapper_subclass(cls, shape, dtype=dtype, device=torch.device("cpu"))
        made._pieces, made._stored, made._casts = pieces, stored, casts
        made.refused = [] if refused is None else refused
        return made

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        return f"Stored({tuple(self.shape)}, {self._pieces})"

    def made(
        self,
        shape: Sequence[int],
        pieces: tuple[Piece, ...] | None = None,
        casts: tuple[torch.dtype, ...] | None = None,
    ) -> Stored:
        """Another one that is made of this one."""
        return Stored(
            shape,
            self._pieces if pieces is None else pieces,
            self._stored,
            self._casts if casts is None else casts,
            self.refused,
        )

    def recipe(self) -> Recipe:
        return Recipe(self._pieces, tuple(self.shape), self._stored, self._casts)

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        try:
            operation = _OPERATIONS.get(str(func.overloadpacket))
            if operation is None:
                raise UnsupportedError.of(
                    f"transformers makes a parameter of stored tensors by {func}, which streaming does not know: {args}"
                )
            return operation(*args, **(kwargs or {}))
        except UnsupportedError as e:
            # Its loader tells of a failure, and not why.
            for one in args:
                for tensor in one if isinstance(one, (list, tuple)) else (one,):
                    if isinstance(tensor, Stored):
                        tensor.refused.append(e)
            raise


def _same(tensor: Stored, *_: Any, **__: Any) -> Stored:
    return tensor.made(tensor.shape)


def _cast(tensor: Stored, *_: Any, dtype: torch.dtype | None = None, **__: Any) -> Stored:
    casts = tensor._casts if dtype in (None, tensor.dtype) else (*tensor._casts, dtype)
    return tensor.made(tensor.shape, casts=casts)


def _cut(pieces: Sequence[Piece], start: int, stop: int) -> list[Piece]:
    """Elements of pieces that lie one after the other."""
    cut = []
    at = 0
    for tensor, first, last in pieces:
        begin, end = max(start, at), min(stop, at + last - first)
        if begin < end:
            cut.append(Piece(tensor, first + begin - at, first + end - at))
        at += last - first
    return cut


def _joined(pieces: Sequence[Piece]) -> tuple[Piece, ...]:
    joined: list[Piece] = []
    for piece in pieces:
        if joined and joined[-1].tensor == piece.tensor and joined[-1].stop == piece.start:
            joined[-1] = Piece(piece.tensor, joined[-1].start, piece.stop)
        else:
            joined.append(piece)
        if len(joined) > _MOST_PIECES:
            raise UnsupportedError.of(f"a parameter is made of more than {_MOST_PIECES} pieces, some of {piece.tensor!r}")
    return tuple(joined)


def _alike(tensors: Sequence[Stored]) -> Stored:
    """The first of some that are stored and converted alike."""
    first = tensors[0]
    for other in tensors:
        if (other._stored, other._casts) != (first._stored, first._casts):
            raise UnsupportedError.of(f"a parameter is made of tensors that are stored differently: {first}, {other}")
    return first


def _cat(tensors: Sequence[Stored], dim: int = 0) -> Stored:
    first = _alike(tensors)
    dim %= first.dim()
    shape = list(first.shape)
    shape[dim] = sum(t.shape[dim] for t in tensors)
    pieces: list[Piece] = []
    for row in range(math.prod(shape[:dim])):
        for tensor in tensors:
            width = math.prod(tensor.shape[dim:])
            pieces += _cut(tensor._pieces, row * width, (row + 1) * width)
    return first.made(shape, _joined(pieces))


def _stack(tensors: Sequence[Stored], dim: int = 0) -> Stored:
    shape = tensors[0].shape
    dim %= len(shape) + 1
    return _cat([t.made((*shape[:dim], 1, *shape[dim:])) for t in tensors], dim)


def _slice(tensor: Stored, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Stored:
    dim %= tensor.dim()
    length = tensor.shape[dim]
    start, end, _ = slice(start, end).indices(length)
    if step != 1:
        raise UnsupportedError.of(f"transformers takes every {step}th element of {tensor}")
    if (start, end) == (0, length):
        return _same(tensor)
    inner = math.prod(tensor.shape[dim + 1 :])
    pieces: list[Piece] = []
    for row in range(math.prod(tensor.shape[:dim])):
        pieces += _cut(tensor._pieces, (row * length + start) * inner, (row * length + end) * inner)
    shape = (*tensor.shape[:dim], max(0, end - start), *tensor.shape[dim + 1 :])
    return tensor.made(shape, _joined(pieces))


def _split(tensor: Stored, sizes: int | Sequence[int], dim: int = 0) -> list[Stored]:
    length = tensor.shape[dim]
    if isinstance(sizes, int):
        sizes = [min(sizes, length - at) for at in range(0, length, sizes)]
    parts = []
    at = 0
    for one in sizes:
        parts.append(_slice(tensor, dim, at, at + one))
        at += one
    return parts


def _view(tensor: Stored, shape: Sequence[int]) -> Stored:
    shape = list(shape)
    if -1 in shape:
        known = -math.prod(shape)
        shape[shape.index(-1)] = tensor.numel() // known
    return tensor.made(shape)


_OPERATIONS: dict[str, Callable[..., Any]] = {
    "aten.alias": _same,
    "aten.clone": _same,
    "aten.detach": _same,
    "aten.lift_fresh": _same,
    "aten.contiguous": _same,
    "aten._to_copy": _cast,
    "aten.cat": _cat,
    "aten.stack": _stack,
    "aten.slice": _slice,
    "aten.split": _split,
    "aten.split_with_sizes": _split,
    "aten.view": _view,
    "aten._unsafe_view": _view,
    "aten.reshape": _view,
}
