"""Modules whose parameters come from storage while they run: :class:`gpunvme.torch.StreamedLayers`."""

from __future__ import annotations

import ctypes
import functools
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
from ._device import accelerator, device_of, torch_device
from ._experts import ExpertRing, Experts, Guesses, LayerExperts, find_experts
from ._quantised import dequantize_all
from ._recipe import Recipe, aligned, fitted, frozen, owner_of
from .errors import ClosedError, FormatError, GpuNvmeError, InvalidError, UnsupportedError
from .layers import LayerLoader, TensorLayer, TensorPlace
from .weights import Slice, Weights

FEWEST_SLOTS = 2

# What a rate is measured by at least.
_ENOUGH = 64 << 20

# So many of the last passes count for what they cost.
_PASSES = 64


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
    """Read for each pass through the layers: for each token, when one token is made at a time. Experts come on top."""
    device_bytes: int
    """Memory of the device that layers take at most."""
    reads: int
    """How many layers are read at a time."""
    expert_slots: int
    """Of the second ring, which experts go through that routers choose; 0 if no layer that is streamed has any."""
    expert_slot_bytes: int
    expert_ring_bytes: int
    router_bytes: int
    """Of the routers of layers that are streamed, which stay. Like the second ring they count in ``device_bytes``."""


def plan_layers(
    layers: Sequence[Mapping[str, Recipe]],
    budget: int | None,
    slots: int | None = None,
    experts: Sequence[Experts | None] | None = None,
) -> Plan:
    """What stays of layers within a budget of bytes.

    :param layers: what their parameters are made of
    :param budget: None: everything; 0: no layer
    :param slots: of the ring; None: 4, or fewer where the budget has no room or layers that stay save more
    :param experts: what is not read with its layer, for each of them
    """
    sizes = [_size(layer, found) for layer, found in zip(layers, experts or [None] * len(layers))]
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
        plan.expert_slots,
        plan.expert_slot_bytes,
        plan.expert_ring_bytes,
        plan.router_bytes,
    )


def _size(layer: Mapping[str, Recipe], experts: Experts | None) -> _native.LayerSize:
    apart = () if experts is None else experts.parameters
    return _native.LayerSize(
        sum(r.slot_bytes for name, r in layer.items() if name not in apart),
        sum(aligned(r.bytes) for r in layer.values()),
        sum(r.slot_bytes for r in layer.values() if r.converted),
        converted_bytes(layer.values())
        # Experts are converted one by one, and go to their places then.
        + max((layer[name].part(0, layer[name].laid[0]).working_bytes for name in apart if layer[name].converted), default=0),
        sum(layer[name].slot_bytes for name in apart),
        0 if experts is None or experts.router is None else aligned(layer[experts.router].bytes),
    )


def converted_bytes(layer: Iterable[Recipe]) -> int:
    """Memory for the parameters of a layer that are not as they are stored, while they are made and used."""
    kept = most = 0
    for recipe in layer:
        if recipe.converted:
            most = max(most, kept + aligned(recipe.working_bytes))
            kept += aligned(recipe.bytes)
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
    paths: Mapping[str, str]
    """By which paths it was read, and how each works."""

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
        """The parameter; if it has to be converted, what is stored."""
        nbytes = self.recipe.slot_bytes
        # Nothing has no place, and need not be aligned.
        stored = slot[self.place : self.place + nbytes] if nbytes else slot[:0]
        return stored if self.recipe.converted else frozen(self.recipe.convert(stored))


class _Views(NamedTuple):
    """What the parameters of a layer are in a slot."""

    parameters: list[torch.Tensor]
    """Those that need conversion: as they are stored; quantised ones: where their floats will be."""
    floats: ctypes.Array[Any]
    """What makes the floats."""


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
        self.floats_bytes = sum(aligned(p.recipe.dequantised_bytes) for p in self.parameters)
        """Of all floats that are made in one call."""
        # Those that are made one by one, each time.
        self._made = [p.recipe.converted and not p.recipe.dequantised_bytes for p in self.parameters]
        # By the slot's address.
        self.views: dict[int, _Views] = {}

    def bind(self, address: int, memory: Callable[[], torch.Tensor], floats: torch.Tensor) -> None:
        """Gives the module its parameters of a slot.

        :param floats: memory for those that are made each time, of ``floats_bytes`` or more
        """
        views = self.views.get(address)
        if views is None:
            views = self._views(memory(), floats)
            self.views[address] = views
        if views.floats:
            dequantize_all(views.floats, floats.device)
        for parameter, view, made in zip(self.parameters, views.parameters, self._made):
            value = frozen(parameter.recipe.convert(view)) if made else view
            parameter.owner._parameters[parameter.name] = value  # type: ignore[assignment]

    def _views(self, slot: torch.Tensor, floats: torch.Tensor) -> _Views:
        made: list[torch.Tensor] = []
        wanted: list[_native.Quantized] = []
        at = 0
        for parameter in self.parameters:
            recipe = parameter.recipe
            stored = parameter.in_slot(slot)
            if not recipe.dequantised_bytes:
                made.append(stored)
                continue
            place = stored.data_ptr()
            target = floats[at : at + recipe.bytes]
            wanted.append(recipe.dequantising(place, place + recipe.scales_place, target.data_ptr()))
            made.append(frozen(recipe.dequantised(target)))
            at += aligned(recipe.bytes)
        return _Views(made, (_native.Quantized * len(wanted))(*wanted))

    def unbind(self) -> None:
        """Takes them away: whoever would use them now is told, instead of seeing the slot's next layer."""
        for parameter in self.parameters:
            parameter.owner._parameters[parameter.name] = parameter.empty


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


def _expert_forward(
    streamed: weakref.ref[StreamedLayers], number: int, forward: Callable[..., Any]
) -> Callable[..., Any]:
    """The same for the experts of a layer."""

    @functools.wraps(forward)
    def run(*arguments: Any, **named: Any) -> Any:
        layers = streamed()
        if layers is None:
            raise _closed()
        return layers.run_experts(number, forward, arguments, named)

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
    :param slots: of the ring, 2 or more; None: 4, or fewer where the budget has no room or layers that stay save more
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
        self.device = device_of(weights.accelerator) if device is None else torch_device(device)
        if accelerator(self.device) != weights.accelerator:
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
            dequantize_all([], self.device)
        experts = [find_experts(layer, wanted) for layer, wanted in zip(layers, recipes, strict=True)]
        self.plan = plan_layers(recipes, budget, slots, experts)
        self.count = len(layers)
        """Of layers."""
        self.passes = 0
        """How often all layers have run."""
        self.bytes_read = 0
        """Of the layers that were used."""
        self._closed = False
        self._pass_began = 0.0
        self._seconds: list[float] = []
        self._chosen: list[int] = []
        self._chosen_before = 0
        self._bound: _Layer | None = None
        self._floats: torch.Tensor | None = None
        self._stream: torch.cuda.Stream | None = None
        self._due: int | None = None
        self._loader: LayerLoader | None = None
        self._layers: list[_Layer] = []
        loading = loading or Loading(weights, self.device)
        title = title or (names if isinstance(names, str) and names else "layers")
        apart: dict[int, LayerExperts] = {}
        routers: dict[int, torch.Tensor] = {}
        for i, (layer, wanted, found) in enumerate(zip(layers, recipes, experts)):
            if i in self.plan.resident:
                for path, tensor in loading.tensors(wanted).items():
                    owner, parameter = owner_of(layer, path)
                    owner._parameters[parameter] = frozen(tensor)
                continue
            number, name = len(self._layers), f"{title}.{i}"
            if found is not None:
                apart[number] = LayerExperts(weights, f"{name}.{found.path}", layer, found, wanted)
                if found.router is not None:
                    routers[number] = loading.tensors({found.router: wanted[found.router]})[found.router]
                wanted = {path: recipe for path, recipe in wanted.items() if path not in found.parameters}
            self._layers.append(_Layer(weights, name, layer, wanted))
        ring = (self.plan.expert_slot_bytes, self.plan.expert_slots)
        self._experts = ExpertRing(weights, self.device, apart, routers, *ring) if apart else None
        for number, one in apart.items():
            one.module.forward = _expert_forward(weakref.ref(self), number, one.module.forward)
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

    def run_experts(self, number: int, forward: Callable[..., Any], arguments: Any, named: Any) -> Any:
        """Runs the experts of a layer: what ``forward`` of their module has become."""
        if self._experts is None or self._closed:
            raise _closed()
        return self._experts.run(number, forward, arguments, named)

    @property
    def guesses(self) -> Guesses | None:
        """How well it was guessed which experts would be chosen; None if there are none that are streamed."""
        return None if self._experts is None else self._experts.guesses

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
            layer.bind(slot.address, lambda: torch.utils.dlpack.from_dlpack(slot), self._memory_of_floats())
        self.bytes_read += layer.bytes

    def _memory_of_floats(self) -> torch.Tensor:
        """Of one layer after the other, in the order of the stream."""
        if self._floats is None:
            most = max(layer.floats_bytes for layer in self._layers)
            self._floats = torch.empty(most, dtype=torch.uint8, device=self.device)
        if self.device.type == "cuda" and self._floats.numel():
            stream = torch.cuda.current_stream(self.device)
            if self._stream is not None and stream != self._stream:
                stream.wait_stream(self._stream)
            self._stream = stream
        return self._floats

    def _leave(self, number: int) -> None:
        layer = self._layers[number]
        if self._bound is not layer:
            return
        self._bound = None
        layer.unbind()

    def _passed(self) -> None:
        self.passes += 1
        if self._experts is not None:
            self._chosen.append(self._experts.chosen_bytes - self._chosen_before)
            self._chosen_before = self._experts.chosen_bytes
            del self._chosen[:-_PASSES]
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
        told = [self._loader.stats(), *([self._experts.stats()] if self._experts is not None else [])]
        # Two rings read at the same time.
        seconds = max(one["read_seconds"] for one in told if one is not None)
        if not seconds:
            return None
        rate = sum(one["bytes"] for one in told if one is not None) / seconds
        paths = {path: use["mode"] for one in told if one is not None for path, use in one["paths"].items()}
        return Measured(self.passes, statistics.median(self._seconds), rate, self.pass_bytes / rate, paths)

    @property
    def pass_bytes(self) -> int:
        """What a pass needs, with the experts that were chosen in most of the last ones."""
        return self.plan.pass_bytes + (int(statistics.median(self._chosen)) if self._chosen else 0)

    def close(self) -> None:
        """Frees the ring. The layers that were streamed cannot run any more; those that stayed can."""
        self._closed = True
        self._floats = None
        for layer in self._layers:
            layer.views.clear()
        loader, self._loader = self._loader, None
        try:
            if loader is not None:
                loader.close()
        finally:
            if self._experts is not None:
                self._experts.close()

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
        self._bytes += self._weights.read(fitted(self._weights, reads))
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
