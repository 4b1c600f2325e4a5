"""Models of Hugging Face's transformers that are larger than the memory of the GPU: their layers are streamed.

    model = gpunvme.transformers.load("/models/llama", gpu_budget="8GiB")
    model.generate(**tokenizer("Once upon a time", return_tensors="pt").to(model.device))

``python -m gpunvme.transformers generate --help`` is a command for it. Needs the packages ``torch`` and ``transformers`` 5.
"""

from __future__ import annotations

import contextlib
import functools
import math
import os
import re
import sys
import tempfile
import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
import transformers
from torch import nn

from ._checks import size
from ._stored import Stored
from ._streamed import FEWEST_SLOTS, Piece, Plan, Recipe, StreamedLayers, load_tensors, plan_layers, stored_type
from .errors import FormatError, InvalidError, NotFoundError, UnsupportedError
from .storage import Storage
from .weights import Weights

__all__ = ["load"]

# Of a model; the first must be there.
_CONFIGURATION = ("config.json", "generation_config.json")


def load(
    source: str | os.PathLike[str],
    *,
    gpu_budget: int | str | None = None,
    dtype: torch.dtype | str = "auto",
    device: torch.device | str | None = None,
    config: str | os.PathLike[str] | transformers.PretrainedConfig | None = None,
    model_class: Any = None,
    slots: int | None = None,
    **options: Any,
) -> Any:
    """A model of transformers whose decoder layers are streamed as far as they do not fit.

    Embeddings, norms, head and as many layers as the budget holds stay in memory of the device. Each other layer is
    read while those before it run, over the end of a token into the next one. The result is an ordinary model:
    ``generate``, batches, the cache, ``torch.inference_mode`` and pipelines work as with one of ``from_pretrained``,
    and give the same bits. It is not for training.

    :param source: a folder with safetensors files, one such file, or an address of them (docs/weights.md), as a file
        system on an SSD of its own: ``vfio:0000:01:00.0#1:/models/llama``
    :param gpu_budget: bytes (``"8GiB"``) that all weights together may take; None: as many as there are; 0: no layer
        stays. What does not stream and a ring of two slots must fit, or the budget is refused. The cache and what layers
        compute with come on top
    :param dtype: of the parameters; "auto": what the configuration says
    :param device: None: the GPU if there is one, else the CPU. Of several GPUs only the first
    :param config: the model's configuration, or its folder; None: ``source``
    :param model_class: of transformers; None: ``AutoModelForCausalLM``
    :param slots: of the ring, 2 or more; None: 4, or fewer where the budget has no room
    :param options: others of ``from_pretrained``, such as ``attn_implementation``
    :returns: the model; ``model.gpunvme`` tells of the streaming, and ``model.gpunvme.close()`` frees it
    :raises FormatError: if the files do not have what the model needs, with the names
    :raises UnsupportedError: if the model has no list of layers, or its parameters are made in ways that are not known
    """
    target = _device(device)
    budget = None if gpu_budget is None else size(gpu_budget, "gpu_budget")
    # The configuration comes first: it may be on the SSD that the weights will have.
    with _folder(source if config is None else config) as folder:
        weights = Weights(source, "gpu" if target.type == "cuda" else "cpu")
        try:
            model = _described(weights, folder, dtype, model_class, options)
            model.gpunvme = Streaming(model, weights, target, budget, slots)
        except BaseException:
            weights.close()
            raise
    if getattr(model, "generation_config", None) is not None:
        # Compiled code would keep the addresses of a slot.
        model.generation_config.disable_compile = True
    model.to = functools.partial(_to, model.gpunvme)
    model._apply = functools.partial(_apply, model.gpunvme)
    return model


def _to(streaming: Streaming, *arguments: Any, **named: Any) -> Any:
    """Takes the place of the model's ``to``: pipelines call it with the device that the model is on."""
    device, dtype, _, _ = torch._C._nn._parse_to(*arguments, **named)
    model = streaming.model
    if dtype in (None, model.dtype) and device is not None and _first(device) == streaming.device:
        return model
    return _apply(streaming)


def _apply(streaming: Streaming, *_: Any, **__: Any) -> Any:
    raise UnsupportedError.of(
        f"the layers of this model are streamed to {streaming.device}: choose device and dtype in load()"
    )


def _first(device: torch.device) -> torch.device:
    """The GPU by its number: only the first is used."""
    return torch.device("cuda", 0) if device.type == "cuda" and device.index is None else device


def _device(device: torch.device | str | None) -> torch.device:
    if device is None:
        device = "cuda" if torch.cuda.is_available() else "cpu"
    found = torch.device(device)
    if found.type not in ("cuda", "cpu"):
        raise ValueError(f"a device is 'cuda' or 'cpu', not {str(device)!r}")
    if found.index:
        raise UnsupportedError.of(f"layers are streamed to the first GPU, not to {found}; CUDA_VISIBLE_DEVICES chooses it")
    return _first(found)


@contextlib.contextmanager
def _folder(config: Any) -> Iterator[Any]:
    """The folder with a model's configuration, if it is not one already: of a file, or copied from an SSD's file system."""
    if isinstance(config, transformers.PretrainedConfig) or os.path.isdir(config):
        yield config
    elif os.path.exists(config):
        yield os.path.dirname(os.path.abspath(config))
    else:
        with tempfile.TemporaryDirectory(prefix="gpunvme-config-") as folder:
            base = re.sub(r"/[^/]*\.(safetensors|safetensors\.index\.json)$", "", os.fspath(config))
            for name in _CONFIGURATION:
                try:
                    with Storage(f"{base}/{name}", "cpu") as file:
                        text = bytearray(file.size)
                        file.read(0, text)
                except (NotFoundError, InvalidError) as e:
                    if name == _CONFIGURATION[0]:
                        raise InvalidError.of(
                            f"{base} has no {name} ({e}): say by config= which folder has the model's configuration"
                        ) from e
                else:
                    with open(os.path.join(folder, name), "wb") as copy:
                        copy.write(text)
            yield folder


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """Without the bar for weights: none are loaded yet."""
    logging: Any = transformers.utils.logging
    was = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if was:
            logging.enable_progress_bar()


def _described(weights: Weights, folder: Any, dtype: Any, model_class: Any, options: Mapping[str, Any]) -> Any:
    """The model, as transformers loads it, with parameters that know what they are made of."""
    config = folder
    if not isinstance(folder, transformers.PretrainedConfig):
        config = transformers.AutoConfig.from_pretrained(folder, trust_remote_code=options.get("trust_remote_code"))
    refused: list[UnsupportedError] = []
    stored = {
        name: Stored(info.shape, (Piece(name, 0, math.prod(info.shape)),), stored_type(weights, name), (), refused)
        for name, info in weights.tensors.items()
    }
    chosen: Any = model_class or transformers.AutoModelForCausalLM
    if hasattr(chosen, "_model_mapping"):
        try:
            chosen = chosen._model_mapping[type(config)]
        except KeyError:
            raise UnsupportedError.of(
                f"{chosen.__name__} has no model for {type(config).__name__}: say by model_class= which one it is"
            ) from None
    if dtype == "auto":
        dtype = getattr(config, "dtype", None) or torch.get_default_dtype()
    try:
        with _quietly():
            model, told = chosen.from_pretrained(
                None,
                config=config,
                state_dict=stored,
                dtype=dtype,
                output_loading_info=True,
                # They are told below, by their names.
                ignore_mismatched_sizes=True,
                **options,
            )
    except RuntimeError as e:
        if refused:
            raise refused[0] from e
        raise FormatError.of(f"{weights.uri}: {e}") from e
    for name, found, needed in sorted(told["mismatched_keys"]):
        raise FormatError.of(
            f"{weights.uri}: {name} has shape {tuple(found)}, and {type(model).__name__} needs {tuple(needed)}"
        )
    if config is not folder and os.path.exists(os.path.join(folder, "generation_config.json")):
        model.generation_config = transformers.GenerationConfig.from_pretrained(folder)
    missing = sorted(told["missing_keys"])
    if missing:
        some = ", ".join(missing[:5]) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
        raise FormatError.of(f"{weights.uri} does not have what {type(model).__name__} needs: {some}")
    return model.eval()


def _longest_list(model: nn.Module) -> tuple[str, nn.ModuleList]:
    """The layers: of all lists of modules the one with most parameters."""
    best, most = None, 0
    for name, module in model.named_modules():
        if isinstance(module, nn.ModuleList) and len(module) > 0:
            count = sum(p.numel() for p in module.parameters())
            if count > most:  # a list within a layer has fewer
                best, most = (name, module), count
    if best is None:
        raise UnsupportedError.of(f"{type(model).__name__} has no list of layers to stream")
    return best


class Streaming:
    """The streaming of a model: ``model.gpunvme``."""

    def __init__(
        self, model: Any, weights: Weights, device: torch.device, budget: int | None, slots: int | None
    ) -> None:
        self._model = weakref.ref(model)
        self._weights = weights
        self.device = device
        title, layers = _longest_list(model)
        recipes = [_recipes(layer) for layer in layers]
        inside = {id(p) for p in layers.parameters()}
        others = {path: p for path, p in model.named_parameters(remove_duplicate=False) if id(p) not in inside}
        kept = {id(t): t for t in (*others.values(), *model.buffers())}.values()
        self.fixed_bytes: int = sum(t.numel() * t.element_size() for t in kept)
        """Of parameters outside the layers, and of buffers, which stay."""
        left = None if budget is None else budget and self._left(budget, recipes, slots)
        self._place_others(model, others)
        self.layers = StreamedLayers(
            list(layers), weights, budget=left, slots=slots, device=device, recipes=recipes, title=title
        )
        """The layers, as :class:`gpunvme.torch.StreamedLayers` has them."""
        self._place_buffers(model)

    def _left(self, budget: int, recipes: Sequence[Mapping[str, Recipe]], slots: int | None) -> int:
        """What a budget leaves for layers."""
        least = self.fixed_bytes + plan_layers([r.values() for r in recipes], 0, slots or FEWEST_SLOTS).device_bytes
        everything = self.fixed_bytes + plan_layers([r.values() for r in recipes], None).device_bytes
        if budget < min(least, everything):
            raise InvalidError.of(
                f"gpu_budget of {budget} bytes is not enough for {self._weights.uri}: what does not stream takes"
                f" {self.fixed_bytes}, and with the smallest ring it is {least}; 0 means that no layer stays, whatever that takes"
            )
        return budget - self.fixed_bytes

    def _place_others(self, model: nn.Module, others: Mapping[str, nn.Parameter]) -> None:
        placed: dict[int, nn.Parameter] = {}
        for path, parameter in others.items():
            owner_path, _, name = path.rpartition(".")
            owner = model.get_submodule(owner_path)
            there = placed.get(id(parameter))
            if there is None:
                if isinstance(parameter, Stored):
                    stored = load_tensors(self._weights, {name: parameter.recipe()}, self.device)[name]
                    there = nn.Parameter(stored, requires_grad=False)
                else:  # made by the model itself
                    there = nn.Parameter(parameter.data.to(self.device), requires_grad=False)
                placed[id(parameter)] = there
            owner._parameters[name] = there

    def _place_buffers(self, model: nn.Module) -> None:
        for owner in model.modules():
            for name, buffer in owner._buffers.items():
                if isinstance(buffer, Stored):
                    owner._buffers[name] = load_tensors(self._weights, {name: buffer.recipe()}, self.device)[name]
                elif buffer is not None:
                    owner._buffers[name] = buffer.to(self.device)

    @property
    def model(self) -> Any:
        """The model; None once nobody has it any more."""
        return self._model()

    @property
    def plan(self) -> Plan:
        """What stays, and what is streamed."""
        return self.layers.plan

    @property
    def device_bytes(self) -> int:
        """Memory of the device that the weights take at most."""
        return self.fixed_bytes + self.plan.device_bytes

    def explain(self) -> str:
        """What stays, what is streamed, and how many bytes each token costs."""
        plan, count = self.plan, self.layers.count
        if plan.slots == 0:
            return f"all {count} layers stay: {self.device_bytes} bytes of {self.device}; nothing is streamed"
        return (
            f"{len(plan.resident)} of {count} layers stay; the others go through a ring of {plan.slots} slots of"
            f" {plan.slot_bytes} bytes\n"
            f"memory of {self.device}: {self.device_bytes} bytes at most ({self.fixed_bytes} outside the layers,"
            f" {plan.resident_bytes} of layers that stay, {plan.slots * plan.slot_bytes} ring,"
            f" {plan.converted_bytes} for conversions), the cache and what layers compute with on top\n"
            f"each pass, one token at a time, reads {plan.pass_bytes} bytes: at 10 GB/s it takes"
            f" {plan.pass_bytes / 10e9:.3f} s at least"
        )

    def close(self) -> None:
        """Ends the streaming and closes the files. The model cannot run any more, unless all its layers stay."""
        try:
            self.layers.close()
        finally:
            self._weights.close()

    def __enter__(self) -> Streaming:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _recipes(layer: nn.Module) -> dict[str, Recipe]:
    recipes = {}
    for name, parameter in layer.named_parameters(remove_duplicate=False):
        if not isinstance(parameter, Stored):
            raise UnsupportedError.of(f"{type(layer).__name__}.{name} does not come from the model's files")
        recipes[name] = parameter.recipe()
    return recipes


if __name__ == "__main__":
    from ._generate import main

    sys.exit(main())
