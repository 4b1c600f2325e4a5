"""Tensors of GGUF files under the names that transformers has for them, laid out as it has them."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import numpy
import torch
import transformers

from ._stored import Stored
from .errors import FormatError, UnsupportedError
from .weights import Weights

ARCHITECTURE = "general.architecture"
"""The key of GGUF's metadata that says what the names of tensors mean."""


class _Array:
    """A stored tensor for functions of transformers that were written for arrays of NumPy."""

    def __init__(self, stored: Stored) -> None:
        self.stored = stored

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.stored.shape)

    def reshape(self, *shape: Any) -> _Array:
        return _Array(self.stored.view(*shape))  # type: ignore[arg-type]

    def swapaxes(self, first: int, second: int) -> _Array:
        return _Array(self.stored.transpose(first, second))  # type: ignore[arg-type]

    @property
    def T(self) -> _Array:
        return _Array(self.stored.t())  # type: ignore[arg-type]

    def __sub__(self, other: Any) -> _Array:
        return _Array(self.stored - other)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function is numpy.expand_dims:
            return self._expanded(*args[1:], **kwargs)
        raise UnsupportedError.of(f"transformers makes a parameter by {function.__name__}, which is not streamed")

    def _expanded(self, axis: int) -> _Array:
        shape = list(self.shape)
        shape.insert(axis % (len(shape) + 1), 1)
        return self.reshape(shape)


def as_transformers(weights: Weights, stored: Mapping[str, Stored], model_class: Any, config: Any) -> dict[str, Stored]:
    """The tensors of a GGUF file as ``model_class`` names them, by what transformers itself does with them."""
    loader = _loader(weights)
    try:
        processor = loader.TENSOR_PROCESSORS.get(weights.metadata[ARCHITECTURE], loader.TensorProcessor)(config=config.to_dict())
        with torch.device("meta"):
            names = loader.get_gguf_hf_weights_map(model_class._from_config(config), processor)
    except NotImplementedError as e:
        raise UnsupportedError.of(f"{weights.uri}: {e}") from e
    except Exception as e:
        raise FormatError.of(f"{weights.uri}: transformers makes no model of its configuration: {e!r}") from e
    made: dict[str, Stored] = {}
    experts: dict[str, dict[str, Stored]] = {}

    # Takes the place of what copies an expert's numbers.
    def expert(array: _Array, _: Any, name: str, kind: str) -> None:
        if kind == "down":
            made[name] = array.stored
            return
        parts = experts.setdefault(name, {})
        parts[kind] = array.stored
        if len(parts) == 2:
            made[name] = torch.cat([parts["gate"], parts["up"]], 1)  # type: ignore[assignment]

    processor._set_moe_expert_tensor = expert
    for name, tensor in stored.items():
        # As the file's reader gives everything that is not quantised, too.
        whole = _Array(tensor.to(torch.float32))  # type: ignore[arg-type]
        if name == "output.weight" and name in names:
            # Always as it is, and sometimes by ways of its own.
            made[names[name]] = whole.stored
            continue
        try:
            result = processor.process(
                weights=whole, name=name, tensor_key_mapping=names, parsed_parameters={"tensors": made}
            )
        except Exception as e:
            # These rules are transformers', and so is what they expect.
            raise UnsupportedError.of(f"{weights.uri}: {name} is not what transformers expects: {e!r}") from e
        if result.name in names:
            made[names[result.name]] = result.weights.stored
    return made


def _loader(weights: Weights) -> Any:
    """The part of transformers that reads GGUF files, if it is the one that reads this file."""
    architecture = weights.metadata[ARCHITECTURE]
    try:
        from transformers import modeling_gguf_pytorch_utils as loader

        loader.TENSOR_PROCESSORS, loader.get_gguf_hf_weights_map
    except (ImportError, AttributeError) as e:
        raise UnsupportedError.of(
            f"{weights.uri}: transformers {transformers.__version__} reads GGUF files in a way that is not known: {e}"
        ) from e
    if _reads_otherwise(architecture):
        raise UnsupportedError.of(f"{weights.uri}: GGUF files of architecture {architecture!r} are not streamed")
    return loader


def _reads_otherwise(architecture: str) -> bool:
    """Whether transformers has a newer reader for it, which lays tensors out by rules of its own."""
    try:
        newer: Any = importlib.import_module("transformers.integrations.gguf")
    except ImportError:
        return False
    return bool(newer.is_gguf_arch_supported(architecture))
