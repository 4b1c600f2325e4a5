"""PyTorch Distributed Checkpoint on gpunvme: a reader and a writer of torch's own format (docs/checkpoint.md).

    import torch.distributed.checkpoint as dcp
    from gpunvme.torch.checkpoint import StorageReader, StorageWriter

    dcp.save(state, storage_writer=StorageWriter("/checkpoints/1000"))
    dcp.load(state, storage_reader=StorageReader("/checkpoints/1000"))
"""

from __future__ import annotations

from ._datafile import WriteReport
from ._reader import ReadReport, StorageReader
from ._writer import StorageWriter

__all__ = ["ReadReport", "StorageReader", "StorageWriter", "WriteReport"]
