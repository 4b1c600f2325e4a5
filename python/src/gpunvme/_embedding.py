"""Embeddings that are trained, and whose rows are on an SSD."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

import torch

from ._checks import unsigned
from ._disk import DiskTensor
from .storage import Storage

_CHUNK_BYTES = 64 << 20
_ALIGNMENT = 4096


class EmbeddingTable(torch.nn.Module):
    """As ``torch.nn.Embedding(sparse=True)``, with rows on an SSD: those that a batch names are read, and written once trained.

    >>> table = EmbeddingTable("vfio:0000:01:00.0#1", 1_000_000_000, 64, state=True, cache_bytes="8GiB")
    >>> optimizer = SparseAdagrad([table], lr=0.05)
    >>> loss(model(table(ids))).backward(); optimizer.step(); optimizer.zero_grad()

    :param storage: as for :class:`DiskTensor`; it is opened for writing
    :param num_embeddings: rows
    :param embedding_dim: of a row
    :param dtype: of the weights
    :param offset: bytes before row 0. What is there is the table: a new one is filled by :meth:`reset_parameters`
    :param state: whether there is room behind the weights for a sum for each of them, which :class:`SparseAdagrad` needs
    :param options: ``cache_bytes``, ``page_bytes``, ``placement``, ``device`` of :class:`DiskTensor`

    Rows are no parameters of the module: ``state_dict`` does not have them, because the SSD has, behind :meth:`flush`.
    """

    def __init__(
        self,
        storage: Storage | str | os.PathLike[str],
        num_embeddings: int,
        embedding_dim: int,
        dtype: torch.dtype = torch.float32,
        offset: int = 0,
        *,
        state: bool = False,
        **options: Any,
    ) -> None:
        super().__init__()
        shape = (num_embeddings, embedding_dim)
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.weight = DiskTensor(storage, shape, dtype, offset, write=True, **options)
        self.state: DiskTensor | None = None
        if state:
            behind = offset + _aligned(self.weight.nbytes)
            try:
                self.state = self._beside(shape, dtype, behind)
            except BaseException:
                self.weight.close()
                raise

    def _beside(self, shape: tuple[int, int], dtype: torch.dtype, offset: int) -> DiskTensor:
        weight = self.weight
        return type(weight)(
            weight.storage, shape, dtype, offset, write=True, cache=weight.cache, device=weight.device
        )

    @staticmethod
    def nbytes(num_embeddings: int, embedding_dim: int, dtype: torch.dtype = torch.float32, *, state: bool = False) -> int:
        """How much of the storage a table takes, from its offset on."""
        one = unsigned(num_embeddings, "num_embeddings") * unsigned(embedding_dim, "embedding_dim") * dtype.itemsize
        return _aligned(one) + one if state else one

    def reset_parameters(self, std: float = 1.0, generator: torch.Generator | None = None) -> None:
        """Fills the weights with normally distributed numbers, the state with zeroes, and flushes."""
        each = max(1, _CHUNK_BYTES // self.weight.row_bytes)
        for first in range(0, self.num_embeddings, each):
            ids = torch.arange(first, min(first + each, self.num_embeddings), device=self.weight.device)
            rows = self.weight._empty((len(ids), self.embedding_dim))
            self.weight.update(ids, rows.normal_(0, std, generator=generator))
            if self.state is not None:
                self.state.update(ids, rows.zero_())
        self.flush()

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Rows of shape ``(*ids.shape, embedding_dim)``."""
        return self.weight.gather(ids, requires_grad=torch.is_grad_enabled() and self.training)

    def prefetch(self, ids: torch.Tensor) -> None:
        """Has rows of a later batch read meanwhile."""
        self.weight.prefetch(ids)

    def flush(self) -> None:
        """Has all rows that were trained written to the SSD and made durable."""
        self.weight.flush()

    def close(self) -> None:
        """Closes it; what was not flushed is lost."""
        if self.state is not None:
            self.state.close()
        self.weight.close()

    def extra_repr(self) -> str:
        return f"{self.num_embeddings}, {self.embedding_dim}, on {self.weight.storage.uri}"


def _aligned(nbytes: int) -> int:
    return -(-nbytes // _ALIGNMENT) * _ALIGNMENT


class _SparseOptimizer(ABC):
    def __init__(self, tables: Iterable[EmbeddingTable], lr: float) -> None:
        self.tables = list(tables)
        if not self.tables or lr < 0:
            raise ValueError(f"an optimizer has at least one table, and a rate of 0 or more: {lr}")
        self.lr = lr

    def zero_grad(self) -> None:
        """Forgets all gradients."""
        for table in self.tables:
            table.weight.zero_grad()

    @torch.no_grad()
    def step(self) -> None:
        """Trains the rows that gradients are for."""
        for table in self.tables:
            if table.weight.grad is not None:
                grad = table.weight.grad.coalesce()
                self._train(table, grad.indices()[0], grad.values())

    @abstractmethod
    def _train(self, table: EmbeddingTable, ids: torch.Tensor, grad: torch.Tensor) -> None:
        """Trains rows, each of which is named once."""


class SparseSGD(_SparseOptimizer):
    """``torch.optim.SGD`` without momentum, for the rows of tables that have gradients.

    :param tables: each once
    :param lr: the rate
    """

    def __init__(self, tables: Iterable[EmbeddingTable], lr: float = 1e-3) -> None:
        super().__init__(tables, lr)

    def _train(self, table: EmbeddingTable, ids: torch.Tensor, grad: torch.Tensor) -> None:
        rows = table.weight.gather(ids)
        table.weight.update(ids, rows.add_(grad, alpha=-self.lr))


class SparseAdagrad(_SparseOptimizer):
    """``torch.optim.Adagrad``, for the rows of tables that have gradients; their sums of squares are the tables' state.

    :param tables: each once, made with ``state=True``
    :param lr: the rate
    :param lr_decay: the rate of step n is ``lr / (1 + (n - 1) * lr_decay)``
    :param eps: is added to the root of the sums
    """

    def __init__(
        self, tables: Iterable[EmbeddingTable], lr: float = 1e-2, lr_decay: float = 0.0, eps: float = 1e-10
    ) -> None:
        super().__init__(tables, lr)
        if any(table.state is None for table in self.tables):
            raise ValueError("Adagrad needs tables that were made with state=True")
        self.lr_decay = lr_decay
        self.eps = eps
        self.steps = 0

    @torch.no_grad()
    def step(self) -> None:
        """Trains the rows that gradients are for."""
        self.steps += 1
        super().step()

    def _train(self, table: EmbeddingTable, ids: torch.Tensor, grad: torch.Tensor) -> None:
        assert table.state is not None
        rate = self.lr / (1 + (self.steps - 1) * self.lr_decay)
        sums = table.state.gather(ids).add_(grad.pow(2))
        table.state.update(ids, sums)
        rows = table.weight.gather(ids)
        table.weight.update(ids, rows.add_(grad / sums.sqrt().add_(self.eps), alpha=-rate))
