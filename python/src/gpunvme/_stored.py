"""Tensors of a checkpoint that nobody has read."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ._recipe import Add, Cast, Piece, Recipe, Reshape, Step, Swap, cut, dtype_after
from .errors import UnsupportedError

# More pieces than this are no tensor that somebody has put together, but one that was cut in columns.
_MOST_PIECES = 1 << 16


class Stored(torch.Tensor):
    """A tensor of a checkpoint that nobody has read: it knows what it is made of, whatever a model's loader does with it."""

    _recipe: Recipe
    _scales: Stored | None
    refused: list[UnsupportedError]

    @staticmethod
    def __new__(
        cls,
        shape: Sequence[int],
        pieces: tuple[Piece, ...],
        stored: str,
        steps: tuple[Step, ...] = (),
        scales: Stored | None = None,
        refused: list[UnsupportedError] | None = None,
    ) -> Stored:
        """``shape`` is that of the pieces, before the steps."""
        recipe = Recipe(pieces, tuple(shape), stored, steps, None if scales is None else scales.recipe())
        made: Stored = torch.Tensor._make_wrapper_subclass(
            cls, recipe.shape, dtype=recipe.dtype, device=torch.device("cpu")
        )
        made._recipe, made._scales = recipe, scales
        made.refused = [] if refused is None else refused
        return made

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        return f"Stored({tuple(self.shape)}, {self._recipe})"

    def made(
        self,
        shape: Sequence[int],
        pieces: tuple[Piece, ...] | None = None,
        scales: Stored | None = None,
    ) -> Stored:
        """Another one that is made of the same or other pieces, which have this shape together."""
        of = self._recipe
        return Stored(
            shape,
            of.pieces if pieces is None else pieces,
            of.stored,
            of.steps,
            self._scales if pieces is None else scales,
            self.refused,
        )

    def then(self, step: Step) -> Stored:
        """This one with something done to it."""
        of = self._recipe
        steps = (*_without_detour(of), step) if isinstance(step, Cast) else (*of.steps, step)
        if isinstance(step, Cast) and step.dtype == dtype_after(of.stored, of.quantised, steps[:-1]):
            steps = steps[:-1]
        return Stored(of.laid, of.pieces, of.stored, steps, self._scales, self.refused)

    def recipe(self) -> Recipe:
        return self._recipe

    @property
    def pieces(self) -> tuple[Piece, ...]:
        return self._recipe.pieces

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


def _without_detour(recipe: Recipe) -> tuple[Step, ...]:
    """The steps before a conversion, without one to float32 that it makes vain: half precision loses nothing by it."""
    for at in reversed(range(len(recipe.steps))):
        step = recipe.steps[at]
        if isinstance(step, Add):
            break
        if isinstance(step, Cast):
            before = dtype_after(recipe.stored, recipe.quantised, recipe.steps[:at])
            if step.dtype == torch.float32 and before in (torch.float16, torch.bfloat16):
                return (*recipe.steps[:at], *recipe.steps[at + 1 :])
            break
    return recipe.steps


def _same(tensor: Stored, *_: Any, **__: Any) -> Stored:
    return tensor.made(tensor.recipe().laid)


def _cast(tensor: Stored, *_: Any, dtype: torch.dtype | None = None, **__: Any) -> Stored:
    return _same(tensor) if dtype in (None, tensor.dtype) else tensor.then(Cast(dtype))


def _add(tensor: Stored, other: Any, alpha: float = 1) -> Stored:
    if not isinstance(other, (int, float)):
        raise UnsupportedError.of(f"a parameter is made by adding {other} to {tensor}")
    return tensor.then(Add(other * alpha))


def _subtract(tensor: Stored, other: Any, alpha: float = 1) -> Stored:
    return _add(tensor, other, -alpha)


def _swap(tensor: Stored, first: int, second: int) -> Stored:
    return tensor.then(Swap(first % tensor.dim(), second % tensor.dim()))


def _transposed(tensor: Stored) -> Stored:
    return _swap(tensor, 0, tensor.dim() - 1) if tensor.dim() > 1 else _same(tensor)


def _plain(tensor: Stored) -> tuple[Piece, ...]:
    """The pieces of a tensor that are in the order of its elements."""
    if any(isinstance(step, Swap) for step in tensor.recipe().steps):
        raise UnsupportedError.of(f"a parameter is made of parts of {tensor}, the dimensions of which were swapped")
    return tensor.pieces


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
        if _kind(other) != _kind(first):
            raise UnsupportedError.of(f"a parameter is made of tensors that are stored differently: {first}, {other}")
    return first


def _kind(tensor: Stored) -> tuple[str, tuple[Step, ...], tuple[int, ...]]:
    """What must be the same of tensors that become one."""
    return tensor.recipe().stored, tensor.recipe().steps, _scaled(tensor)


def _scaled(tensor: Stored) -> tuple[int, ...]:
    """Rows and columns that have a scale together."""
    scales = tensor._scales
    return () if scales is None else tuple(a // b for a, b in zip(tensor.shape[-2:], scales.shape[-2:]))


def _not_columns(tensor: Stored, dim: int) -> None:
    if tensor._scales is not None and dim == tensor.dim() - 1:
        raise UnsupportedError.of(f"a parameter is made of columns of {tensor}, which has scales")


def _cat(tensors: Sequence[Stored], dim: int = 0) -> Stored:
    first = _alike(tensors)
    dim %= first.dim()
    _not_columns(first, dim)
    shape = list(first.shape)
    shape[dim] = sum(t.shape[dim] for t in tensors)
    pieces: list[Piece] = []
    for row in range(math.prod(shape[:dim])):
        for tensor in tensors:
            width = math.prod(tensor.shape[dim:])
            pieces += cut(_plain(tensor), row * width, (row + 1) * width)
    scales = [t._scales for t in tensors if t._scales is not None]
    return first.made(shape, _joined(pieces), _cat(scales, dim) if scales else None)


def _stack(tensors: Sequence[Stored], dim: int = 0) -> Stored:
    dim %= tensors[0].dim() + 1
    return _cat([_view(t, (*t.shape[:dim], 1, *t.shape[dim:])) for t in tensors], dim)


def _slice(tensor: Stored, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Stored:
    dim %= tensor.dim()
    length = tensor.shape[dim]
    start, end, _ = slice(start, end).indices(length)
    if step != 1:
        raise UnsupportedError.of(f"transformers takes every {step}th element of {tensor}")
    if (start, end) == (0, length):
        return _same(tensor)
    _not_columns(tensor, dim)
    inner = math.prod(tensor.shape[dim + 1 :])
    pieces: list[Piece] = []
    for row in range(math.prod(tensor.shape[:dim])):
        pieces += cut(_plain(tensor), (row * length + start) * inner, (row * length + end) * inner)
    shape = (*tensor.shape[:dim], max(0, end - start), *tensor.shape[dim + 1 :])
    scales = tensor._scales
    if scales is not None:
        each = length // scales.shape[dim]
        if start % each or end % each:
            raise UnsupportedError.of(f"a parameter is made of rows {start} to {end} of {tensor}, and scales are for {each} each")
        scales = _slice(scales, dim, start // each, end // each)
    return tensor.made(shape, _joined(pieces), scales)


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
    if tuple(shape) == tuple(tensor.shape):
        return _same(tensor)
    if any(isinstance(step, Swap) for step in tensor.recipe().steps):
        return tensor.then(Reshape(tuple(shape)))
    scales = tensor._scales
    if scales is not None:
        # Matrices stay matrices: scales are for rows and columns.
        if tuple(shape[-2:]) != tuple(tensor.shape[-2:]):
            raise UnsupportedError.of(f"a parameter of shape {shape} is made of {tensor}, which has scales")
        scales = _view(scales, (*shape[:-2], *scales.shape[-2:]))
    return tensor.made(shape, tensor.pieces, scales)


_OPERATIONS: dict[str, Callable[..., Any]] = {
    "aten.add": _add,
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
    "aten.sub": _subtract,
    "aten.t": _transposed,
    "aten.transpose": _swap,
    "aten.view": _view,
    "aten._unsafe_view": _view,
    "aten.reshape": _view,
}
