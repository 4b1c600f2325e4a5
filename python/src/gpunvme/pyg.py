"""PyTorch Geometric: features of nodes and edges that are on SSDs."""

from __future__ import annotations

from typing import Any

import torch
from torch_geometric.data import FeatureStore as _FeatureStore
from torch_geometric.data import TensorAttr

from ._disk import DiskTensor

__all__ = ["FeatureStore"]


class FeatureStore(_FeatureStore):  # type: ignore[misc]
    """Features on SSDs for loaders that sample neighbours: rows of a batch are gathered when it has been sampled.

    >>> store = FeatureStore()
    >>> store.add(DiskTensor("vfio:0000:01:00.0:/x.bin", (nodes, 128), torch.float32), "paper", "x")
    >>> store.put_tensor(labels, group_name="paper", attr_name="y", index=None)
    >>> loader = NeighborLoader((store, graph_store), num_neighbors=[15, 10], input_nodes=("paper", train))

    Tensors that are put are kept where they are; those that are added stay on their SSD. Rows are on the device of their tensor:
    gathered by a loader's process that has the GPU (``num_workers=0``), or by :meth:`get_tensor`.
    """

    def __init__(self) -> None:
        super().__init__()
        self._tensors: dict[tuple[Any, str], torch.Tensor | DiskTensor] = {}

    def add(self, tensor: DiskTensor, group_name: Any, attr_name: str) -> None:
        """Features that are on an SSD; the tensor stays open as long as they are used."""
        self._tensors[group_name, attr_name] = tensor

    def _put_tensor(self, tensor: Any, attr: TensorAttr) -> bool:
        given = torch.as_tensor(tensor)
        key = (attr.group_name, attr.attr_name)
        if attr.index is None:
            self._tensors[key] = given
            return True
        there = self._tensors.get(key)
        if there is None:
            return False
        if isinstance(there, DiskTensor):
            there.update(_ids(attr.index, there), given)
        else:
            there[attr.index] = given
        return True

    def _get_tensor(self, attr: TensorAttr) -> torch.Tensor | None:
        there = self._tensors.get((attr.group_name, attr.attr_name))
        if there is None:
            return None
        if isinstance(there, DiskTensor):
            return there[:] if attr.index is None else there.gather(_ids(attr.index, there))
        return there if attr.index is None else there[attr.index]

    def _remove_tensor(self, attr: TensorAttr) -> bool:
        """What was added stays on its SSD, and open."""
        return self._tensors.pop((attr.group_name, attr.attr_name), None) is not None

    def _get_tensor_size(self, attr: TensorAttr) -> tuple[int, ...] | None:
        there = self._tensors.get((attr.group_name, attr.attr_name))
        if there is None:
            return None
        if attr.index is None:
            return tuple(there.shape)
        rows = len(_ids(attr.index, there)) if isinstance(there, DiskTensor) else len(there[attr.index])
        return (rows, *there.shape[1:])

    def get_all_tensor_attrs(self) -> list[TensorAttr]:
        """One for each tensor."""
        return [TensorAttr(group, name) for group, name in self._tensors]


def _ids(index: Any, tensor: DiskTensor) -> torch.Tensor:
    """What names rows, as numbers: a slice, a range, numbers, a mask."""
    if isinstance(index, slice):
        return torch.arange(*index.indices(len(tensor)), device=tensor.device)
    ids = torch.as_tensor(index)
    return ids.nonzero().view(-1) if ids.dtype is torch.bool else ids
