"""Experts of layers that are streamed: only those that the routers choose are read."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
import torch.utils.dlpack
from torch import nn

from . import _native
from ._quantised import dequantize_all
from ._recipe import Add, Cast, Recipe, fitted, frozen, owner_of
from .errors import GpuNvmeError
from .layers import LayerLoader, TensorLayer, TensorPlace
from .memory import DeviceArray
from .weights import Weights

# The argument by which modules of experts are told, for each token, which of them it goes to.
_CHOICE = "top_k_index"

# Kernels store floats in pieces of so many bytes.
_FLOATS_ALIGNMENT = 16


class Experts(NamedTuple):
    """The experts of a layer, found by structure: a module that is told which of them each token goes to."""

    path: str
    """Of the module, in the layer."""
    total: int
    parameters: tuple[str, ...]
    """Of the layer, that have a part for each expert along their first dimension."""
    router: str | None
    """The parameter of the layer by which experts are scored: a row for each."""


def find_experts(layer: nn.Module, recipes: Mapping[str, Recipe]) -> Experts | None:
    """Those of a layer; None if it has none, or has them in a way that is not known to be one part for each."""
    for path, module in layer.named_modules():
        if not path or _CHOICE not in inspect.signature(module.forward).parameters:
            continue
        names = tuple(f"{path}.{name}" for name, _ in module.named_parameters(recurse=False))
        counts = {recipes[name].laid[0] if len(recipes[name].laid) > 1 else 0 for name in names}
        # A layer whose slot has nothing in it is not streamed.
        if len(counts) != 1 or not any(recipe.slot_bytes for name, recipe in recipes.items() if name not in names):
            return None
        count = counts.pop()
        block = path[: path.rfind(".") + 1]
        routers = [
            name
            for name, recipe in recipes.items()
            if name.startswith(block) and name not in names and "shared" not in name and recipe.shape[:1] == (count,)
            and len(recipe.shape) == 2
        ]
        # Whoever only looks like it must not be read by parts.
        known = count > 1 and (getattr(module, "num_experts", None) == count or bool(routers))
        if not known or not all(_has_parts(recipes[name], count) for name in names):
            return None
        return Experts(path, count, names, routers[0] if routers else None)
    return None


def _has_parts(recipe: Recipe, count: int) -> bool:
    return all(isinstance(step, (Add, Cast)) for step in recipe.steps) and (
        recipe.scales is None or recipe.scales.laid[:1] == (count,)
    )


class _Stack:
    """A parameter that has a part for each expert, and its place in a slot."""

    def __init__(self, owner: nn.Module, name: str, recipe: Recipe, count: int, place: int) -> None:
        self.owner, self.name, self.recipe, self.place = owner, name, recipe, place
        self.parts = [recipe.part(i, count) for i in range(count)]
        self.empty = nn.Parameter(torch.empty(recipe.shape, dtype=recipe.dtype, device="meta"), requires_grad=False)
        scales = self.parts[0].scales
        of_scales = 0 if scales is None else scales.stored_bytes
        # Without gaps: parts are one parameter together.
        each = self.parts[0].stored_bytes - of_scales
        floats = self.parts[0].dequantised_bytes
        # Whether each part's floats can be made where they belong, which must be aligned.
        self._direct = floats > 0 and floats % _FLOATS_ALIGNMENT == 0
        self.at = [place + i * each for i in range(count)]
        self.scales_at = [place + recipe.scales_place + i * of_scales for i in range(count)]

    def places(self, weights: Weights, expert: int) -> list[TensorPlace]:
        return self.parts[expert].places_of_both(weights, self.at[expert], self.scales_at[expert])

    def in_slot(self, slot: torch.Tensor) -> nn.Parameter:
        """All of it, where it needs no conversion."""
        return frozen(self.recipe.convert(slot[self.place : self.place + self.recipe.slot_bytes]))

    def converted(
        self, slot: torch.Tensor, chosen: Iterable[int], wanted: list[_native.Quantized]
    ) -> nn.Parameter:
        """The parts of those that were chosen; the others are whatever the memory had.

        :param wanted: gets what has still to be made
        """
        whole = torch.empty(self.recipe.shape, dtype=self.recipe.dtype, device=slot.device)
        part, stored = self.parts[0], slot.data_ptr()
        for i in chosen:
            if self._direct:
                target = whole.data_ptr() + i * part.bytes
                wanted.append(part.dequantising(stored + self.at[i], stored + self.scales_at[i], target))
            else:
                whole[i] = self.parts[i].convert_both(slot[self.at[i] :], slot[self.scales_at[i] :])
        return frozen(whole)


class LayerExperts:
    """The experts of a layer that is streamed."""

    def __init__(self, weights: Weights, name: str, layer: nn.Module, found: Experts, recipes: Mapping[str, Recipe]) -> None:
        self.name = name
        self.count = found.total
        self.module = layer.get_submodule(found.path)
        self.signature = inspect.signature(self.module.forward)
        self.stacks: list[_Stack] = []
        at = 0
        for path in found.parameters:
            owner, parameter = owner_of(layer, path)
            self.stacks.append(_Stack(owner, parameter, recipes[path], found.total, at))
            at += recipes[path].slot_bytes
        self.slot_bytes = at
        self.places = [[p for stack in self.stacks for p in stack.places(weights, i)] for i in range(found.total)]
        self.bytes = sum(stack.parts[0].stored_bytes for stack in self.stacks)
        """Of one expert."""
        self.views: dict[int, list[nn.Parameter | None]] = {}

    def bind(self, address: int, slot: torch.Tensor, chosen: Sequence[int]) -> None:
        """Gives the module its parameters."""
        views = self.views.get(address)
        if views is None:
            views = [None if s.recipe.converted else s.in_slot(slot) for s in self.stacks]
            self.views[address] = views
        wanted: list[_native.Quantized] = []
        for stack, view in zip(self.stacks, views):
            stack.owner._parameters[stack.name] = stack.converted(slot, chosen, wanted) if view is None else view
        if wanted:
            dequantize_all(wanted, slot.device)

    def unbind(self) -> None:
        for stack in self.stacks:
            stack.owner._parameters[stack.name] = stack.empty


class Guesses(NamedTuple):
    """How well it was guessed which experts would be chosen."""

    chosen: int
    """Experts that were, in all layers and passes so far."""
    guessed: int
    """Those of them that had been read ahead."""
    wasted: int
    """Others that were read ahead."""

    @property
    def hit_rate(self) -> float:
        return self.guessed / self.chosen if self.chosen else 0.0


class ExpertRing:
    """Reads experts when they are chosen, and guesses those of the next layer by its router and this layer's input."""

    def __init__(
        self,
        weights: Weights,
        device: torch.device,
        experts: Mapping[int, LayerExperts],
        routers: Mapping[int, torch.Tensor],
        slot_bytes: int,
        slots: int,
    ) -> None:
        self._weights = weights
        self._device = device
        self._experts = experts
        self._routers = routers
        order = sorted(experts)
        self._next = dict(zip(order, order[1:] + order[:1]))
        self._last: dict[int, list[int]] = {}
        self._slot_bytes = slot_bytes
        self._slots = slots
        self._loader: LayerLoader | None = None
        self._named: tuple[int, frozenset[int]] | None = None
        self.bytes_read = 0
        """Of experts, chosen or guessed."""
        self.chosen_bytes = 0
        """Of those that were chosen."""
        self.guesses = Guesses(0, 0, 0)
        for one in experts.values():
            one.unbind()

    def run(self, number: int, forward: Callable[..., Any], arguments: Any, named: Any) -> Any:
        """Runs the experts of a layer: what ``forward`` of their module has become."""
        experts = self._experts[number]
        given = experts.signature.bind(*arguments, **named).arguments
        try:
            # What they are made of must outlive an inference_mode that ends.
            with torch.inference_mode(False), torch.no_grad():
                chosen, ahead = self._choose(number, next(iter(given.values())), given[_CHOICE])
                self._read(number, sorted(chosen), ahead)
            return forward(*arguments, **named)
        finally:
            experts.unbind()

    def _choose(self, number: int, hidden: torch.Tensor, index: torch.Tensor) -> tuple[set[int], set[int]]:
        """Those that are needed, and those that the next layer will perhaps need."""
        count, following = self._experts[number].count, self._next[number]
        router = self._routers.get(following)
        if index.numel() == 0:
            chosen, ahead = set[int](), set[int]()
        elif following > number and router is not None and router.shape[1] == hidden.shape[-1]:
            scores = hidden.reshape(-1, hidden.shape[-1]).to(router.dtype) @ router.T
            guess = scores.topk(min(index.shape[-1], router.shape[0]), -1).indices
            # One wait for both.
            both = torch.cat([index.reshape(-1).long(), guess.reshape(-1)]).tolist()
            chosen, ahead = set(both[: index.numel()]), set(both[index.numel() :])
        else:
            # Of another token there is nothing to go by but the last one.
            chosen = set(index.reshape(-1).tolist())
            ahead = set(self._last.get(following, range(min(index.shape[-1], self._experts[following].count))))
        # Some ways of running in parallel have numbers for none.
        return {i for i in chosen if 0 <= i < count} or {0}, ahead

    def _read(self, number: int, chosen: list[int], ahead: set[int]) -> None:
        experts, loader = self._experts[number], self._ready()
        guessed = frozenset[int]()
        if self._named is not None and self._named[0] == number:
            guessed = self._named[1]
        else:
            self._name_only(loader, number, chosen)
        self._named = None
        try:
            slot = self._take(loader)
        except GpuNvmeError:
            if not guessed or loader.closed:
                raise
            # One that nobody needs may be the one that cannot be read.
            guessed = frozenset()
            self._name_only(loader, number, chosen)
            slot = self._take(loader)
        memory: torch.Tensor = torch.utils.dlpack.from_dlpack(
            DeviceArray(slot.address, self._slot_bytes, slot.accelerator, keep=slot._keep)
        )
        missing = [i for i in chosen if guessed and i not in guessed]
        if missing:
            self._read_now(experts, memory, missing)
        if ahead:
            following = self._next[number]
            self._name(loader, following, frozenset(ahead))
            self._named = (following, frozenset(ahead))
        self._last[number] = chosen
        right = len(guessed.intersection(chosen))
        self.chosen_bytes += len(chosen) * experts.bytes
        self.guesses = Guesses(
            self.guesses.chosen + len(chosen), self.guesses.guessed + right, self.guesses.wasted + len(guessed) - right
        )
        experts.bind(slot.address, memory, chosen)

    def _take(self, loader: LayerLoader) -> DeviceArray:
        # As layers themselves: the thread waits, and the stream does not.
        on_gpu = self._device.type == "cuda"
        slot = loader.take(torch.cuda.current_stream(self._device)) if on_gpu else loader.next()
        assert slot is not None
        return slot

    def _read_now(self, experts: LayerExperts, memory: torch.Tensor, missing: Sequence[int]) -> None:
        places = [p for i in missing for p in experts.places[i]]
        try:
            # Ctrl-C must leave the model usable, and waits for this.
            self._weights._read_to_the_end(fitted(self._weights, [(name, memory[at:], part) for name, at, part in places]))
        except GpuNvmeError as e:
            raise type(e).of(f"layer {experts.name!r}: {e}") from e
        self.bytes_read += len(missing) * experts.bytes

    def _name_only(self, loader: LayerLoader, number: int, wanted: Iterable[int]) -> None:
        loader.cancel()
        self._name(loader, number, frozenset(wanted))

    def _name(self, loader: LayerLoader, number: int, wanted: frozenset[int]) -> None:
        experts = self._experts[number]
        places = [p for i in sorted(wanted) for p in experts.places[i]]
        loader.prefetch_tensors(TensorLayer(self._weights, experts.name, places))
        self.bytes_read += len(wanted) * experts.bytes

    def stats(self) -> dict[str, Any] | None:
        """Those of the ring; None if there is none now."""
        return None if self._loader is None or self._loader.closed else self._loader.stats()

    def _ready(self) -> LayerLoader:
        if self._loader is None or self._loader.closed:  # Ctrl-C has closed it
            self._forget()
            self._loader = LayerLoader(self._weights, self._slot_bytes, self._slots)
        return self._loader

    def _forget(self) -> None:
        self._named = None
        for experts in self._experts.values():
            experts.views.clear()

    def close(self) -> None:
        """Frees the ring."""
        self._forget()
        loader, self._loader = self._loader, None
        if loader is not None:
            loader.close()
