"""Modules whose parameters come from storage while they run: :class:`gpunvme.torch.StreamedLayers`."""

from __future__ import annotations

import ctypes
import functools
import math
import statistics
import time
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
import torch.utils.dlpack
from torch import nn

from . import _native
from ._checks import unsigned
from ._dequantize import BLOCKS
from ._dequantize import dequantize as dequantize_many
from ._quantised import FLOATS, dequantize
from .errors import ClosedError, FormatError, GpuNvmeError, InvalidError, UnsupportedError
from .layers import LayerLoader, TensorLayer, TensorPlace
from .weights import Slice, Weights

# Tensors of PyTorch's own allocations begin at multiples of this on a GPU, and kernels choose their way by that.
_ALIGNMENT = 512

FEWEST_SLOTS = 2

# What a rate is measured by at least.
_ENOUGH = 64 << 20

# So many of the last passes count for what they cost.
_PASSES = 64

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
        return _aligned(stored_bytes(self.stored, math.prod(self.laid))) + scales

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

    def places(self, weights: Weights, at: int) -> list[TensorPlace]:
        """Where the pieces go if what is stored begins there: first the elements, then scales."""
        places = []
        end = at
        for piece in self.pieces:
            if piece.stop > piece.start:
                places.append(TensorPlace(piece.tensor, end, _rows(weights, piece)))
                end += stored_bytes(self.stored, piece.stop - piece.start)
        if self.scales is not None:
            places += self.scales.places(weights, at + self.slot_bytes - self.scales.slot_bytes)
        return places

    def convert(self, stored: torch.Tensor) -> torch.Tensor:
        """The parameter of the stored bytes, which begin a slot or a part of one; a view of them if nothing is to be converted."""
        elements = stored[: stored_bytes(self.stored, math.prod(self.laid))]
        if self.quantised:
            scales = None
            if self.scales is not None:
                scales = self.scales.convert(stored[self.slot_bytes - self.scales.slot_bytes :]).float()
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


def _aligned(nbytes: int) -> int:
    return -(-nbytes // _ALIGNMENT) * _ALIGNMENT


class Plan(NamedTuple):
    """What stays on the device, and what is streamed."""

    resident: tuple[int, ...]
    """Numbers of the layers that stay."""
    slots: int
    """Of the ring that the others go through; 0 if all layers stay."""
    slot_bytes: int
    ring_bytes: int
    resident_bytes: int
    """Of the layers that stay."""
    converted_bytes: int
    """While the parameters of a layer are converted that are not stored as they are used."""
    pass_bytes: int
    """Read for each pass through the layers: for each token, when one token is made at a time."""
    device_bytes: int
    """Memory of the device that layers take at most."""
    reads: int
    """How many layers are read at a time."""


def plan_layers(layers: Sequence[Iterable[Recipe]], budget: int | None, slots: int | None = None) -> Plan:
    """What stays of layers within a budget of bytes.

    :param budget: None: everything; 0: no layer
    :param slots: of the ring; None: 4, or fewer where the budget has no room
    """
    sizes = [_size(list(layer)) for layer in layers]
    plan, stays = _native.LayerPlan(), (ctypes.c_uint8 * len(sizes))()
    # A given 0 is not C's "whatever fits", and is as wrong as 1.
    ring = 0 if slots is None else max(1, unsigned(slots, "slots", 32))
    most = _native.FOREVER if budget is None else unsigned(budget, "budget")
    given = (_native.LayerSize * len(sizes))(*sizes)
    _native.check(_native.lib().gpunvme_plan_layers(given, len(sizes), most, ring, ctypes.byref(plan), stays))
    resident = tuple(i for i, yes in enumerate(stays) if yes)
    return Plan(
        resident,
        plan.slots,
        plan.slot_bytes,
        plan.ring_bytes,
        plan.resident_bytes,
        plan.converted_bytes,
        plan.pass_bytes,
        plan.device_bytes,
        plan.reads,
    )


def _size(layer: Sequence[Recipe]) -> _native.LayerSize:
    return _native.LayerSize(
        sum(r.slot_bytes for r in layer),
        sum(_aligned(r.bytes) for r in layer),
        sum(r.slot_bytes for r in layer if r.converted),
        converted_bytes(layer),
    )


def converted_bytes(layer: Iterable[Recipe]) -> int:
    """Memory for the parameters of a layer that are not as they are stored, while they are made and used."""
    kept = most = 0
    for recipe in layer:
        if recipe.converted:
            most = max(most, kept + _aligned(recipe.working_bytes))
            kept += _aligned(recipe.bytes)
    return max(most, kept)


class Measured(NamedTuple):
    """What passes through layers have cost so far."""

    passes: int
    seconds: float
    """Of a pass, from the beginning of its first streamed layer to the end of its last one."""
    read_rate: float
    """Bytes a second that layers came with, of the time in which they were read."""
    floor: float
    """Seconds that a pass takes at least: its bytes at that rate."""

    @property
    def limit(self) -> str:
        """``"reading"`` if a pass takes little more than its bytes need, else ``"compute"``, and what comes with it."""
        return "reading" if self.floor >= 0.9 * self.seconds else "compute"


class _Parameter(NamedTuple):
    """A parameter of a layer, and its place in the layer's slot."""

    owner: nn.Module
    name: str
    recipe: Recipe
    place: int
    empty: nn.Parameter

    def in_slot(self, slot: torch.Tensor) -> torch.Tensor:
        """The parameter; if it has to be converted each time, what is stored."""
        nbytes = self.recipe.slot_bytes
        # Nothing has no place, and need not be aligned.
        stored = slot[self.place : self.place + nbytes] if nbytes else slot[:0]
        return stored if self.recipe.converted else _frozen(self.recipe.convert(stored))


class _Layer:
    """A layer that is streamed."""

    def __init__(self, weights: Weights, name: str, module: nn.Module, recipes: Mapping[str, Recipe]) -> None:
        self.module = module
        self.name = name
        self.parameters: list[_Parameter] = []
        places: list[TensorPlace] = []
        at = 0
        for path, recipe in recipes.items():
            owner, parameter = owner_of(module, path)
            empty = nn.Parameter(torch.empty(recipe.shape, dtype=recipe.dtype, device="meta"), requires_grad=False)
            self.parameters.append(_Parameter(owner, parameter, recipe, at, empty))
            places += recipe.places(weights, at)
            at += recipe.slot_bytes
        self.bytes = at
        self.tensors = TensorLayer(weights, name, places)
        # What its parameters are in each slot, by the slot's address.
        self.views: dict[int, list[torch.Tensor]] = {}

    def bind(self, address: int, memory: Callable[[], torch.Tensor]) -> None:
        """Gives the module its parameters of a slot."""
        views = self.views.get(address)
        if views is None:
            slot = memory()
            views = [p.in_slot(slot) for p in self.parameters]
            self.views[address] = views
        for parameter, view in zip(self.parameters, views):
            value = _frozen(parameter.recipe.convert(view)) if parameter.recipe.converted else view
            parameter.owner._parameters[parameter.name] = value  # type: ignore[assignment]

    def unbind(self) -> None:
        """Takes them away: whoever would use them now is told, instead of seeing the slot's next layer."""
        for parameter in self.parameters:
            parameter.owner._parameters[parameter.name] = parameter.empty


def _frozen(tensor: torch.Tensor) -> nn.Parameter:
    return nn.Parameter(tensor, requires_grad=False)


def owner_of(module: nn.Module, path: str) -> tuple[nn.Module, str]:
    """The module that has a parameter, and its name there."""
    parent, _, name = path.rpartition(".")
    return module.get_submodule(parent), name


def _closed() -> GpuNvmeError:
    return ClosedError.of("these layers were closed: their model cannot run any more")


def _forward(streamed: weakref.ref[StreamedLayers], number: int, forward: Callable[..., Any]) -> Callable[..., Any]:
    """What runs a layer instead of its own ``forward``. It keeps nothing alive but the layer."""

    @functools.wraps(forward)
    def run(*arguments: Any, **named: Any) -> Any:
        layers = streamed()
        if layers is None:
            raise _closed()
        return layers.run(number, forward, arguments, named)

    return run


class StreamedLayers:
    """Layers whose parameters are read while other layers run, in the order of the list, again and again.

    Before a layer runs it gets its parameters in a slot of a ring, and afterwards they are taken from it. Meanwhile the
    next layers are read, over the end of a pass into the next one. A pass that ends early costs one wait.

    :param layers: modules that run one after the other, such as the ``layers`` of a model
    :param weights: what they are read from, opened for the accelerator that they run on; closed by the caller, later
    :param names: of the tensor of a parameter: a function of the layer's number and the parameter's name in the
        layer, or a prefix: ``"model.layers"`` stands for ``model.layers.7.mlp.up_proj.weight``
    :param budget: bytes of memory of the device for layers: those that fit stay there. None: all stay; 0: none
    :param slots: of the ring, 2 or more; None: 4, or fewer where the budget has no room
    :param device: of the parameters; None: the GPU if the weights were opened for one, else the CPU
    :param recipes: for each layer, what its parameters are made of; None: whole tensors by their names
    :param title: of the list, for messages; None: ``names`` if it is a prefix
    :param loading: what reads the layers that stay

    Not for training: run them in ``torch.inference_mode()`` or ``torch.no_grad()``. One thread at a time runs the
    layers. Their parameters are read as long as this object lives; nobody but its user keeps it.
    """

    def __init__(
        self,
        layers: Sequence[nn.Module],
        weights: Weights,
        names: str | Callable[[int, str], str] = "",
        *,
        budget: int | None = 0,
        slots: int | None = None,
        device: torch.device | str | None = None,
        recipes: Sequence[Mapping[str, Recipe]] | None = None,
        title: str | None = None,
        loading: Loading | None = None,
    ) -> None:
        self._weights = weights
        self.device = torch.device(device or ("cuda" if weights.on_gpu else "cpu"))
        if (self.device.type == "cuda") != weights.on_gpu:
            raise InvalidError.of(f"layers on {self.device} need weights that were opened for it, not {weights!r}")
        if recipes is None:
            of = names if callable(names) else (lambda i, name, prefix=names: f"{prefix}.{i}.{name}")
            recipes = [
                {
                    name: Recipe.whole(weights, of(i, name), parameter.dtype)
                    for name, parameter in layer.named_parameters(remove_duplicate=False)
                }
                for i, layer in enumerate(layers)
            ]
            _check_shapes(layers, recipes)
        if any(recipe.quantised for layer in recipes for recipe in layer.values()):
            # Loads the kernels: later it would wait for those that read.
            dequantize_many(weights.on_gpu, [])
        self.plan = plan_layers([layer.values() for layer in recipes], budget, slots)
        self.count = len(layers)
        """Of layers."""
        self.passes = 0
        """How often all layers have run."""
        self.bytes_read = 0
        """Of the layers that were used."""
        self._closed = False
        self._pass_began = 0.0
        self._seconds: list[float] = []
        self._bound: _Layer | None = None
        self._due: int | None = None
        self._loader: LayerLoader | None = None
        self._layers: list[_Layer] = []
        loading = loading or Loading(weights, self.device)
        title = title or (names if isinstance(names, str) and names else "layers")
        for i, (layer, wanted) in enumerate(zip(layers, recipes, strict=True)):
            if i not in self.plan.resident:
                self._layers.append(_Layer(weights, f"{title}.{i}", layer, wanted))
        for i in self.plan.resident:
            for path, tensor in loading.tensors(recipes[i]).items():
                owner, parameter = owner_of(layers[i], path)
                owner._parameters[parameter] = _frozen(tensor)
        for number, streamed in enumerate(self._layers):
            streamed.unbind()
            streamed.module.forward = _forward(weakref.ref(self), number, streamed.module.forward)

    def run(self, number: int, forward: Callable[..., Any], arguments: Any, named: Any) -> Any:
        """Runs a layer with its parameters: what ``forward`` of its module has become."""
        if torch.is_grad_enabled() and any(
            isinstance(a, torch.Tensor) and a.requires_grad for a in (*arguments, *named.values())
        ):
            raise UnsupportedError.of(
                f"{self._layers[number].name} is streamed and has no gradients: run it in torch.inference_mode()"
            )
        try:
            self._enter(number)
            result = forward(*arguments, **named)
            if number == len(self._layers) - 1:
                self._passed()
            return result
        finally:
            # Not a hook: those are not called after KeyboardInterrupt.
            self._leave(number)

    def _enter(self, number: int) -> None:
        if self._closed:
            raise _closed()
        layer = self._layers[number]
        # Of a pass that begins in the middle nobody knows how long it takes.
        self._pass_began = time.monotonic() if number == 0 else self._pass_began if self._due == number else 0.0
        if self._bound is not None:
            raise InvalidError.of(f"{layer.name} begins within {self._bound.name}: one pass at a time, by one thread")
        # What it is made of must outlive an inference_mode that ends.
        with torch.inference_mode(False), torch.no_grad():
            loader = self._ready(number)
            # Nobody knows what comes after a layer that fails.
            self._due = None
            # The stream does not wait for the data itself: PyTorch allocates, and CUDA loads kernels, while it would.
            on_gpu = self.device.type == "cuda"
            slot = loader.take(torch.cuda.current_stream(self.device)) if on_gpu else loader.next()
            assert slot is not None
            loader.prefetch_tensors(layer.tensors)
            self._due = (number + 1) % len(self._layers)
            self._bound = layer
            layer.bind(slot.address, lambda: torch.utils.dlpack.from_dlpack(slot))
        self.bytes_read += layer.bytes

    def _leave(self, number: int) -> None:
        layer = self._layers[number]
        if self._bound is not layer:
            return
        self._bound = None
        layer.unbind()

    def _passed(self) -> None:
        self.passes += 1
        if self._pass_began:
            self._seconds.append(time.monotonic() - self._pass_began)
            del self._seconds[:-_PASSES]

    def _ready(self, number: int) -> LayerLoader:
        """The loader, with this layer as its next."""
        loader = self._loader
        if loader is None or loader.closed:  # Ctrl-C has closed it
            for layer in self._layers:
                layer.views.clear()
            loader = LayerLoader(self._weights, self.plan.slot_bytes, self.plan.slots)
            self._loader = loader
            self._due = None
        if self._due != number:
            loader.cancel()
            for layer in self._layers[number:] + self._layers[:number]:
                loader.prefetch_tensors(layer.tensors)
        return loader

    def measured(self) -> Measured | None:
        """What passes have cost so far; None if nothing is streamed, or no pass is over, or the ring was closed."""
        if self._loader is None or self._loader.closed or not self._seconds:
            return None
        told = self._loader.stats()
        if not told["read_seconds"]:
            return None
        rate = told["bytes"] / told["read_seconds"]
        return Measured(self.passes, statistics.median(self._seconds), rate, self.plan.pass_bytes / rate)

    def close(self) -> None:
        """Frees the ring. The layers that were streamed cannot run any more; those that stayed can."""
        self._closed = True
        if self._loader is not None:
            for layer in self._layers:
                layer.views.clear()
            self._loader.close()
            self._loader = None

    def __enter__(self) -> StreamedLayers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _check_shapes(layers: Sequence[nn.Module], recipes: Sequence[Mapping[str, Recipe]]) -> None:
    for i, (layer, wanted) in enumerate(zip(layers, recipes)):
        for name, parameter in layer.named_parameters(remove_duplicate=False):
            if tuple(parameter.shape) != wanted[name].shape:
                raise FormatError.of(
                    f"layer {i}: {name} has shape {tuple(parameter.shape)}, and {wanted[name].pieces[0].tensor!r} has"
                    f" {wanted[name].shape}"
                )


class Loading:
    """Reads what stays, and counts.

    :param progress: is called with the bytes that were read
    """

    def __init__(self, weights: Weights, device: torch.device, progress: Callable[[int], None] | None = None) -> None:
        self._weights = weights
        self._device = device
        self._progress = progress
        self._bytes = 0
        self._seconds = 0.0

    def tensors(self, recipes: Mapping[str, Recipe]) -> dict[str, torch.Tensor]:
        """Reads tensors to memory of their own, all at once."""
        reads: list[tuple[str, Any, Slice | None]] = []
        memory: dict[str, torch.Tensor] = {}
        for path, recipe in recipes.items():
            stored = torch.empty(recipe.slot_bytes, dtype=torch.uint8, device=self._device)
            memory[path] = stored
            reads += [(tensor, stored[at:], part) for tensor, at, part in recipe.places(self._weights, 0)]
        began = time.monotonic()
        self._bytes += self._weights.read(_fitted(self._weights, reads))
        self._seconds += time.monotonic() - began
        tensors = {path: recipe.convert(memory.pop(path)) for path, recipe in recipes.items()}
        if self._device.type == "cuda" and any(recipe.converted for recipe in recipes.values()):
            # PyTorch would keep what was converted, and the ring is not taken from there.
            torch.cuda.empty_cache()
        if self._progress is not None:
            self._progress(self._bytes)
        return tensors

    @property
    def rate(self) -> float | None:
        """Bytes a second; None of too few bytes to say."""
        return self._bytes / self._seconds if self._bytes >= _ENOUGH else None


def _fitted(weights: Weights, reads: list[tuple[str, Any, Slice | None]]) -> list[tuple[str, Any, Slice | None]]:
    """The same with targets as long as what goes there."""
    fitted = []
    for name, target, part in reads:
        info = weights.info(name)
        nbytes = info.nbytes if part is None else info.nbytes // info.shape[0] * (part.stop - part.start)
        fitted.append((name, target[:nbytes], part))
    return fitted
