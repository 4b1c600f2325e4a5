"""Models of Hugging Face's transformers that are larger than the memory of the GPU: their layers are streamed.

    model = gpunvme.transformers.load("/models/llama", gpu_budget="8GiB")
    model.generate(**tokenizer("Once upon a time", return_tensors="pt").to(model.device))

``python -m gpunvme.transformers generate --help`` is a command for it. Needs the packages ``torch`` and ``transformers`` 5.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import math
import os
import re
import sys
import tempfile
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch
import transformers
from torch import nn

from . import _gguf
from ._checks import size
from ._device import accelerator, torch_device
from ._stored import Stored
from ._experts import Experts, find_experts
from ._recipe import QUANTISED, STORED, Piece, Recipe, stored_type
from ._streamed import FEWEST_SLOTS, Loading, Plan, StreamedLayers, plan_layers
from .errors import FormatError, InvalidError, NotFoundError, UnsupportedError
from .storage import Storage
from .weights import Weights

__all__ = ["load"]

# Of a model; the first must be there.
_CONFIGURATION = ("config.json", "generation_config.json")

# Of a model on an SSD, whoever has any of these.
_SMALL_FILES = (
    *_CONFIGURATION,
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
    "tokenizer.model",
    "chat_template.jinja",
)

# What the scales of a tensor are called: after its name.
_SCALES = ("_scale_inv", "_scale")

# What has them, and who makes that.
_SCALED = ("F8_E4M3", "F8_E5M2", "I8")
_METHODS = ("fp8", "compressed-tensors")

# Architectures of GGUF files whose head is the embedding, whatever the file has.
_ALWAYS_TIED = ("falcon", "bloom")

# What dequantising would need besides.
_UNKNOWN = ("_zero_point", "_packed", "_g_idx", "_global_scale")


def load(
    source: str | os.PathLike[str],
    *,
    gpu_budget: int | str | None = None,
    dtype: torch.dtype | str = "auto",
    device: torch.device | str | None = None,
    config: str | os.PathLike[str] | transformers.PretrainedConfig | None = None,
    model_class: Any = None,
    slots: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> Any:
    """A model of transformers whose decoder layers are streamed as far as they do not fit.

    Embeddings, norms, head and as many layers as the budget holds stay in memory of the device. Each other layer is
    read while those before it run, over the end of a token into the next one. The result is an ordinary model:
    ``generate``, batches, the cache, ``torch.inference_mode`` and pipelines work as with one of ``from_pretrained``,
    and give the same bits. It is not for training.

    :param source: a folder with safetensors files, one such file, a GGUF file, or an address of them (docs/weights.md), as a
        file system on an SSD of its own: ``vfio:0000:01:00.0#1:/models/llama``
    :param gpu_budget: bytes (``"8GiB"``) that all weights together may take; None: as many as there are; 0: no layer
        stays. What does not stream and a ring of two slots must fit, or the budget is refused. The cache and what layers
        compute with come on top
    :param dtype: of the parameters; "auto": what the configuration says, or what most elements are stored in, of which
        quantised ones count as bfloat16
    :param device: ``"cuda:1"``, ``"cpu"``; None: the current GPU if there is one, else the CPU
    :param config: the model's configuration, its folder, or a GGUF file that has it; None: ``source``
    :param model_class: of transformers; None: ``AutoModelForCausalLM``
    :param slots: of the ring, 2 or more; None: 4, or fewer where the budget has no room or layers that stay save more
    :param progress: is called while what stays is read, with the bytes that are there and those that there will be
    :param options: others of ``from_pretrained``, such as ``attn_implementation``
    :returns: the model; ``model.gpunvme`` tells of the streaming, and ``model.gpunvme.close()`` frees it
    :raises FormatError: if the files do not have what the model needs, with the names
    :raises UnsupportedError: if the model has no list of layers, or its parameters are made in ways that are not known
    """
    target = torch_device(device)
    if dtype != "auto":
        dtype = _float(dtype)
    budget = None if gpu_budget is None else size(gpu_budget, "gpu_budget")
    # The configuration comes first: it may be on the SSD that the weights will have.
    with _settings(source if config is None else config, options.get("trust_remote_code")) as settings:
        weights = Weights(source, accelerator(target))
        try:
            model = _described(weights, settings, dtype, model_class, options)
            model.gpunvme = Streaming(model, weights, target, budget, slots, progress)
        except BaseException:
            weights.close()
            raise
    if getattr(model, "generation_config", None) is not None:
        # Compiled code would keep the addresses of a slot.
        model.generation_config.disable_compile = True
    model.to = functools.partial(_to, model.gpunvme)
    model._apply = functools.partial(_apply, model.gpunvme)
    return model


def _float(dtype: torch.dtype | str) -> torch.dtype:
    found = getattr(torch, dtype, None) if isinstance(dtype, str) else dtype
    if not isinstance(found, torch.dtype) or not found.is_floating_point or found.itemsize < 2:
        raise ValueError(f"parameters are floats of 16 bits or more, such as bfloat16, or 'auto', not {dtype}")
    return found


def _to(streaming: Streaming, *arguments: Any, **named: Any) -> Any:
    """Takes the place of the model's ``to``: pipelines call it with the device that the model is on."""
    device, dtype, _, _ = torch._C._nn._parse_to(*arguments, **named)
    model = streaming.model
    # Other types, such as "meta", have no number that could be looked up.
    there = device is not None and device.type == streaming.device.type and torch_device(device) == streaming.device
    if there and dtype in (None, model.dtype):
        return model
    return _apply(streaming)


def _apply(streaming: Streaming, *_: Any, **__: Any) -> Any:
    raise UnsupportedError.of(
        f"the layers of this model are streamed to {streaming.device}: choose device and dtype in load()"
    )


class _Settings(NamedTuple):
    """A model's configuration, and where generation's is, if it has one of its own."""

    config: transformers.PretrainedConfig
    folder: str | None = None


@contextlib.contextmanager
def configuration(config: str | os.PathLike[str]) -> Iterator[tuple[str, dict[str, str]]]:
    """What ``from_pretrained`` of a configuration or a tokenizer takes for a model: a folder, and the name of a GGUF file in it.

    Of a model on an SSD, its small files are copied for a while.
    """
    place = os.fspath(config)
    with contextlib.ExitStack() as stack:
        here = os.path.exists(place)
        if not here:
            place = _copied(place, stack.enter_context(tempfile.TemporaryDirectory(prefix="gpunvme-config-")))
        folder = place if os.path.isdir(place) else os.path.dirname(os.path.abspath(place))
        file = _gguf_file(place)
        if file is None:
            yield folder, {}
        else:
            if here:
                # Reads it strictly, as copying does: others take what they find.
                Weights(os.path.join(folder, file), "cpu").close()
            yield folder, {"gguf_file": file}


def _gguf_file(place: str) -> str | None:
    """The GGUF file that says how a model is made: of a set of files the first; None if it is no such model."""
    if not os.path.isdir(place):
        name = os.path.basename(place)
        return re.sub(r"-\d{5}(-of-\d{5}\.gguf)$", r"-00001\1", name) if name.endswith(".gguf") else None
    names = os.listdir(place)
    if any(name.endswith(".safetensors") for name in names):
        return None
    models = sorted(n for n in names if n.endswith(".gguf") and not re.search(r"-(?!00001)\d{5}-of-\d{5}\.gguf$", n))
    if len(models) > 1:
        raise InvalidError.of(f"{place} has {len(models)} models: name one, such as {os.path.join(place, models[0])}")
    return models[0] if models else None


def _copied(address: str, folder: str) -> str:
    """A copy of what says how a model is made: of a GGUF file all but its tensors."""
    first, tensors = "", 0
    # A folder may have nothing but a configuration.
    with contextlib.suppress(NotFoundError, InvalidError, FormatError), Weights(address, "cpu") as weights:
        first = weights.files[0] if weights.files else ""
        tensors = sum(info.nbytes for info in weights.tensors.values() if info.file == first)
    if first.endswith(".gguf"):
        inside = address.rpartition("/")[0] if address.endswith(".gguf") else address.rstrip("/")
        return _header(f"{inside}/{first}", tensors, os.path.join(folder, first))
    base = re.sub(r"/[^/]*\.(safetensors|safetensors\.index\.json)$", "", address)
    for name in _SMALL_FILES:
        try:
            with Storage(f"{base}/{name}", "cpu") as small:
                text = bytearray(small.size)
                small.read(0, text)
        except (NotFoundError, InvalidError) as e:
            if name == _CONFIGURATION[0]:
                raise InvalidError.of(
                    f"{base} has no {name} ({e}): say by config= which folder has the model's configuration"
                ) from e
        else:
            with open(os.path.join(folder, name), "wb") as file:
                file.write(text)
    return folder


def _header(address: str, tensors: int, copy: str) -> str:
    """A copy of a GGUF file that has so many bytes of tensors, without these."""
    with Storage(address, "cpu") as file, open(copy, "wb") as header:
        # What is not tensors comes first, and padding. Whoever reads the header wants room for the tensors.
        text = bytearray(file.size - tensors)
        file.read(0, text)
        header.write(text)
        header.truncate(file.size)
    return copy


@contextlib.contextmanager
def _settings(config: Any, trust: bool | None) -> Iterator[_Settings]:
    if isinstance(config, transformers.PretrainedConfig):
        yield _Settings(config)
        return
    with configuration(config) as (folder, gguf):
        try:
            read = transformers.AutoConfig.from_pretrained(folder, trust_remote_code=trust, **gguf)
        except ValueError as e:
            raise UnsupportedError.of(f"{config}: {e}") from e
        except Exception as e:
            if not gguf:
                raise
            raise FormatError.of(f"{config}: transformers makes no configuration of it: {e!r}") from e
        yield _Settings(read, None if gguf else folder)


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


def _described(weights: Weights, settings: _Settings, dtype: Any, model_class: Any, options: Mapping[str, Any]) -> Any:
    """The model, as transformers loads it, with parameters that know what they are made of."""
    config, folder = settings
    chosen: Any = model_class or transformers.AutoModelForCausalLM
    if hasattr(chosen, "_model_mapping"):
        try:
            chosen = chosen._model_mapping[type(config)]
        except KeyError:
            raise UnsupportedError.of(
                f"{chosen.__name__} has no model for {type(config).__name__}: say by model_class= which one it is"
            ) from None
    refused: list[UnsupportedError] = []
    stored = _stored(weights, config, refused)
    config = copy.deepcopy(config)
    if getattr(config, "quantization_config", None) is not None:
        # The model is that of what is dequantised.
        del config.quantization_config
    if _gguf.ARCHITECTURE in weights.metadata:
        if "output.weight" in stored and weights.metadata[_gguf.ARCHITECTURE] not in _ALWAYS_TIED:
            # The configuration comes from the first file only.
            config.tie_word_embeddings = False
        stored = _gguf.as_transformers(weights, stored, chosen, config)
    if dtype == "auto":
        dtype = getattr(config, "dtype", None) or _usual_type(stored.values())
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
        if isinstance(e, torch.OutOfMemoryError) or "allocate memory" in str(e):
            raise
        raise FormatError.of(f"{weights.uri}: {e}") from e
    for name, found, needed in sorted(told["mismatched_keys"]):
        raise FormatError.of(
            f"{weights.uri}: {name} has shape {tuple(found)}, and {type(model).__name__} needs {tuple(needed)}"
        )
    if folder is not None and os.path.exists(os.path.join(folder, _CONFIGURATION[1])):
        model.generation_config = transformers.GenerationConfig.from_pretrained(folder)
    missing = sorted(told["missing_keys"])
    if missing:
        some = ", ".join(missing[:5]) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
        raise FormatError.of(f"{weights.uri} does not have what {type(model).__name__} needs: {some}")
    return model.eval()


def _stored(weights: Weights, config: Any, refused: list[UnsupportedError]) -> dict[str, Stored]:
    """The tensors of a checkpoint. Those with scales of their own have them, and the scales are no tensors any more."""
    scales = {name + end: name for name in weights.tensors for end in _SCALES if name + end in weights.tensors}
    found = {of: name for name, of in scales.items()}
    told = getattr(config, "quantization_config", None)
    _check_quantisation(weights, told, found)

    def one(name: str) -> Stored:
        info = weights.info(name)
        return Stored(info.shape, (Piece(name, 0, math.prod(info.shape)),), stored_type(weights, name), (), None, refused)

    stored = {}
    for name in weights.tensors:
        if name not in scales:
            stored[name] = one(name) if name not in found else _scaled(weights, one(name), one(found[name]), _block(told))
    return stored


def _check_quantisation(weights: Weights, told: Any, found: Mapping[str, str]) -> None:
    """Refuses what would become other numbers than those that are meant."""
    method = told.get("quant_method") if isinstance(told, Mapping) else getattr(told, "quant_method", None)
    method = getattr(method, "value", method)
    if told is not None and method not in _METHODS:
        raise UnsupportedError.of(
            f"{weights.uri} is quantised by {method}: float8 and int8 with scales ({', '.join(_METHODS)}) are streamed,"
            f" and GGUF's {', '.join(name for name in QUANTISED if name not in _SCALED)}"
        )
    for name, info in weights.tensors.items():
        if name in found and info.dtype not in _SCALED:
            raise UnsupportedError.of(
                f"{weights.uri}: {name} has scales and is stored as {info.dtype}; those that are streamed: {', '.join(_SCALED)}"
            )
        of = next((name.removesuffix(end) for end in _UNKNOWN if name.endswith(end)), None)
        if of is not None and (told is not None or of in found):
            raise UnsupportedError.of(f"{weights.uri} has {name}, and only numbers and scales are streamed")
        if name not in found and info.dtype in _SCALED:
            # Scales under a name that is not known would be left out.
            prefix = name.rpartition(".")[0] + "."
            other = next((n for n in weights.tensors if n.startswith(prefix) and "scale" in n[len(prefix) :]), None)
            if told is not None or other is not None:
                raise UnsupportedError.of(
                    f"{weights.uri}: {name} is stored as {info.dtype} without {name}{_SCALES[0]} or {name}{_SCALES[1]}"
                    + (f"; what is {other}?" if other else "")
                )


def _block(told: Any) -> tuple[int, int] | None:
    """Rows and columns that have a scale, if the configuration tells."""
    if told is None:
        return None
    settings = dict(told) if isinstance(told, Mapping) else told.to_dict()
    block = settings.get("weight_block_size")
    for group in (settings.get("config_groups") or {}).values():
        block = block or ((group or {}).get("weights") or {}).get("block_structure")
    if not block:
        return None
    rows, columns = block
    return int(rows), int(columns)


def _scaled(weights: Weights, tensor: Stored, scales: Stored, block: tuple[int, int] | None) -> Stored:
    """A matrix, or a stack of them, with its scales: one for all, for each row, or for each block of rows and columns."""
    of = tensor.recipe()
    if scales.recipe().stored not in ("F64", "F32", "F16", "BF16"):
        raise UnsupportedError.of(
            f"{weights.uri}: {of.pieces[0].tensor} has scales that are stored as {scales.recipe().stored}; they are F32, F16 or BF16"
        )
    shape = tuple(scales.shape)
    if math.prod(shape) == 1:
        shape = (1,) * len(of.laid)
    elif len(shape) == len(of.laid) - 1:
        shape = (*shape, 1)
    fits = len(shape) == len(of.laid) >= 2 and (shape[:-2] == of.laid[:-2] or math.prod(shape) == 1)
    # A block that the edge cuts off would be taken for a smaller one.
    if not fits or any(
        n == 0 or size % n or (n > 1 and each not in (None, size // n))
        for size, n, each in zip(of.laid[-2:], shape[-2:], block or (None, None))
    ):
        raise UnsupportedError.of(
            f"{weights.uri}: {of.pieces[0].tensor} of shape {of.laid} has scales of shape {tuple(scales.shape)}"
            + (f" for blocks of {block}" if block else "")
            + ", which do not divide it evenly"
        )
    return Stored(of.laid, of.pieces, of.stored, (), scales.view(shape), tensor.refused)  # type: ignore[arg-type]


def _usual_type(stored: Iterable[Stored]) -> torch.dtype:
    """The type that most elements are stored in; bfloat16 if that is a quantised one."""
    counts: Counter[torch.dtype] = Counter()
    for tensor in stored:
        recipe = tensor.recipe()
        counts[torch.bfloat16 if recipe.quantised else STORED[recipe.stored]] += tensor.numel()
    most = counts.most_common(1)
    return most[0][0] if most and most[0][0].is_floating_point else torch.get_default_dtype()


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
        self,
        model: Any,
        weights: Weights,
        device: torch.device,
        budget: int | None,
        slots: int | None,
        progress: Callable[[int, int], None] | None,
    ) -> None:
        self._model = weakref.ref(model)
        self._weights = weights
        self.device = device
        title, layers = _longest_list(model)
        recipes = [_recipes(layer) for layer in layers]
        experts = [find_experts(layer, recipe) for layer, recipe in zip(layers, recipes)]
        inside = {id(p) for p in layers.parameters()}
        others = {path: p for path, p in model.named_parameters(remove_duplicate=False) if id(p) not in inside}
        kept = {id(t): t for t in (*others.values(), *model.buffers())}.values()
        self.fixed_bytes: int = sum(t.numel() * t.element_size() for t in kept)
        """Of parameters outside the layers, and of buffers, which stay."""
        outside = [p.recipe() for p in kept if isinstance(p, Stored)]
        self._loading_bytes = max((r.slot_bytes + r.working_bytes - r.bytes for r in outside if r.converted), default=0)
        left = None if budget is None else budget and self._left(budget, recipes, slots, experts)
        self._loading = Loading(weights, device, self._told(progress, others, recipes, left, slots, experts))
        self._place_others(model, others)
        self.layers = StreamedLayers(
            list(layers),
            weights,
            budget=left,
            slots=slots,
            device=device,
            recipes=recipes,
            title=title,
            loading=self._loading,
        )
        """The layers, as :class:`gpunvme.torch.StreamedLayers` has them."""
        self._place_buffers(model)

    def _told(
        self,
        progress: Callable[[int, int], None] | None,
        others: Mapping[str, nn.Parameter],
        recipes: Sequence[Mapping[str, Recipe]],
        budget: int | None,
        slots: int | None,
        experts: Sequence[Experts | None],
    ) -> Callable[[int], None] | None:
        """What tells of the bytes that are read until the model runs, and how many there will be."""
        if progress is None:
            return None
        outside = {id(p): p.recipe() for p in others.values() if isinstance(p, Stored)}.values()
        stay = plan_layers(recipes, budget, slots, experts).resident
        routers = [r[e.router] for i, (r, e) in enumerate(zip(recipes, experts)) if i not in stay and e and e.router]
        total = sum(r.stored_bytes for r in (*outside, *routers, *(r for i in stay for r in recipes[i].values())))
        progress(0, total)
        return lambda done: progress(done, total)

    def _left(
        self, budget: int, recipes: Sequence[Mapping[str, Recipe]], slots: int | None, experts: Sequence[Experts | None]
    ) -> int:
        """What a budget leaves for layers."""
        least = self._with(plan_layers(recipes, 0, slots or FEWEST_SLOTS, experts))
        everything = self._with(plan_layers(recipes, None))
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
                    stored = self._loading.tensors({name: parameter.recipe()})[name]
                    there = nn.Parameter(stored, requires_grad=False)
                else:  # made by the model itself
                    there = nn.Parameter(parameter.data.to(self.device), requires_grad=False)
                placed[id(parameter)] = there
            owner._parameters[name] = there

    def _place_buffers(self, model: nn.Module) -> None:
        for owner in model.modules():
            for name, buffer in owner._buffers.items():
                if isinstance(buffer, Stored):
                    owner._buffers[name] = self._loading.tensors({name: buffer.recipe()})[name]
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
        return self._with(self.plan)

    def _with(self, plan: Plan) -> int:
        # Before there is a ring, what stays is converted.
        return self.fixed_bytes + max(plan.device_bytes, self._loading_bytes)

    def explain(self) -> str:
        """What stays, what is streamed, and how many bytes each token costs."""
        plan, count = self.plan, self.layers.count
        experts = (
            f", {plan.expert_ring_bytes} ring of experts, {plan.router_bytes} of routers" if plan.expert_slots else ""
        )
        if plan.slots == 0:
            return f"all {count} layers stay: {self.device_bytes} bytes of {self.device}; nothing is streamed"
        return (
            f"{len(plan.resident)} of {count} layers stay; the others go through a ring of {plan.slots} slots of"
            f" {plan.slot_bytes} bytes\n"
            f"memory of {self.device}: {self.device_bytes} bytes at most ({self.fixed_bytes} outside the layers,"
            f" {plan.resident_bytes} of layers that stay, {plan.ring_bytes} ring,"
            f" {plan.converted_bytes} for conversions{experts}), the cache and what layers compute with on top\n"
            f"each pass, one token at a time, reads {plan.pass_bytes} bytes{' and experts' if experts else ''},"
            f" {plan.reads} layers at a time\n"
            + self._guesses()
            + self._cost()
        )

    def _guesses(self) -> str:
        guesses = self.layers.guesses
        if guesses is None or guesses.chosen == 0:
            return ""
        return (
            f"experts: {guesses.hit_rate:.0%} of those that routers chose had been read ahead; {guesses.wasted} others, beside"
            f" {guesses.chosen} that were chosen\n"
        )

    def _cost(self) -> str:
        measured = self.layers.measured()
        if measured is not None:
            return (
                f"measured: layers come at {measured.read_rate / 1e9:.2f} GB/s, so that a pass takes {measured.floor:.3f} s at"
                f" least; it takes {measured.seconds:.3f} s: {measured.limit} limits\n"
                "read by " + "; ".join(f"{path}: {mode}" for path, mode in measured.paths.items())
            )
        rate = self._loading.rate
        if rate is not None:
            return (
                f"what stays came at {rate / 1e9:.2f} GB/s: at that rate a pass takes"
                f" {self.plan.pass_bytes / rate:.3f} s at least"
            )
        return "what stays was too little to measure a rate; run it and ask again"

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
