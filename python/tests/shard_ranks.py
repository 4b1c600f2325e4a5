"""What ranks do for test_shards.py."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import torch
import torch.distributed as dist

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

import gpunvme  # noqa: E402
from gpunvme.torch import load_sharded  # noqa: E402


def bytes_of(tensors: dict[str, torch.Tensor]) -> dict[str, tuple[str, tuple[int, ...], bytes]]:
    """Type, shape and bytes by name, of tensors of the CPU; without NumPy, which does not have all types."""
    return {
        name: (str(t.dtype), tuple(t.shape), ctypes.string_at(t.data_ptr(), t.numel() * t.element_size()) if t.numel() else b"")
        for name, t in tensors.items()
    }


def load(model: str, rules: Any, bucket: int) -> Any:
    shards = load_sharded(model, "cpu", rules, group=dist.group.WORLD, bucket_bytes=bucket)
    return bytes_of(shards[0]), shards.report


def load_of_two_groups(model: str) -> Any:
    """Ranks 1 and 3 load as ranks 0 and 1 of a group of theirs."""
    group = dist.new_group([1, 3])
    if dist.get_rank() not in (1, 3):
        try:
            load_sharded(model, "cpu", "rows", group=group)
        except ValueError as e:
            return str(e)
    return bytes_of(load_sharded(model, "cpu", "rows", group=group)[0])


def heard(model: str, rules: Any = None, bucket: int = 8192) -> str:
    """What a rank is told."""
    try:
        load(model, rules, bucket)
    except Exception as e:
        return f"{type(e).__name__}: {e}"
    return "loaded"


def fail_to_read(model: str, after: int) -> str:
    """Rank 1 fails in its so-manyth read."""
    read = gpunvme.Weights._read_to_the_end
    left = after if dist.get_rank() == 1 else 1 << 30

    def reads(weights: gpunvme.Weights, some: Any) -> int:
        nonlocal left
        left -= 1
        if left == -1:  # once: nothing later may hide it
            raise gpunvme.TransferError.of("a test: the SSD is gone")
        return read(weights, some)

    gpunvme.Weights._read_to_the_end = reads  # type: ignore[method-assign]
    try:
        return heard(model, "rows")
    finally:
        gpunvme.Weights._read_to_the_end = read  # type: ignore[method-assign]


def lack_memory(model: str, shape: list[int]) -> str:
    """Rank 1 has no memory for the tensors of a shape."""
    empty = torch.empty

    def takes(of: Any, **kind: Any) -> torch.Tensor:
        if isinstance(of, tuple) and list(of) == shape and dist.get_rank() == 1:
            raise MemoryError("a test: no memory is left")
        return empty(of, **kind)

    with mock.patch("torch.empty", takes):
        return heard(model)


def ask_for_another(models: list[str]) -> list[str]:
    """Rank 1 has another model, another rule, no model, or a rule that does not divide."""
    rank = dist.get_rank()
    return [
        heard(models[1 if rank == 1 else 0]),
        heard(models[0], "rows" if rank == 1 else None),
        heard(models[0], bucket=1 << 20 if rank == 1 else 8192),
        heard(os.devnull + "/none" if rank == 1 else models[0]),
        heard(models[0], {"scalar": 0} if rank == 1 else "rows"),
        heard(models[0], "rows"),
    ]
