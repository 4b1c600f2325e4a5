"""Ray Data: samples, safetensors and ranges of bytes that tasks read, and batches that training workers read to their GPUs.

    dataset = gpunvme.ray.read_samples("train.bin", shape=(3, 224, 224), dtype="uint8")

``read_samples``, ``read_safetensors`` and ``read_ranges`` give datasets whose blocks are in host memory, as Ray has them. With
:class:`SampleIndex` Ray shards only numbers of samples, and each worker reads its samples to where it uses them. docs/ray.md.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

try:
    import ray.data
except ImportError as e:
    raise ImportError(f"gpunvme.ray needs Ray Data ({e}): pip install 'ray[data]>=2.58'", name=e.name) from e

from ._datasource import TOLD, RangeDatasource, SampleDatasource
from ._index import SampleIndex
from ._layout import Column, Sources, of_safetensors, of_samples
from ._opened import add

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "Column",
    "RangeDatasource",
    "SampleDatasource",
    "SampleIndex",
    "read_ranges",
    "read_safetensors",
    "read_samples",
    "stats",
]


def read_samples(
    sources: Sources,
    *,
    shape: Sequence[int],
    dtype: Any,
    count: int | None = None,
    offset: int = 0,
    include_paths: bool = False,
    ray_remote_args: Mapping[str, Any] | None = None,
    concurrency: int | None = None,
    override_num_blocks: int | None = None,
) -> ray.data.Dataset:
    """Samples of one length, one after the other: column "data", of Arrow tensors.

    :param sources: names of files, or addresses (docs/paths.md), as the workers know them
    :param shape: of a sample, each dimension 1 or more; ``()``: a number each
    :param dtype: of NumPy or PyTorch, little endian; one that both have
    :param count: samples of each source; None: as many as it has, which must be a whole number
    :param offset: of the first one in each source, in bytes
    :param include_paths: whether a column "path" has the address of each sample's source
    :param ray_remote_args: of tasks that touch the sources: for instance ``{"resources": {"ssd": 1}}`` where some machines have them
    :param concurrency: tasks that read at a time; 1 for an SSD of ours, which one process drives at a time
    :raises FormatError: a file is not a whole number of samples
    :raises InvalidError: a source is too short, or an argument is not possible
    :raises NotFoundError: there is no such source
    """
    layout = of_samples(sources, shape, dtype, count, offset, ray_remote_args)
    return _dataset(SampleDatasource(layout, include_paths=include_paths), ray_remote_args, concurrency, override_num_blocks)


def read_safetensors(
    files: Sources,
    *,
    names: Sequence[str] | None = None,
    words: bool = False,
    include_paths: bool = False,
    ray_remote_args: Mapping[str, Any] | None = None,
    concurrency: int | None = None,
    override_num_blocks: int | None = None,
) -> ray.data.Dataset:
    """Rows of the tensors of safetensors files: a column for each tensor, row i of all tensors of a file in one row.

    All files have the same tensors, which differ only in their first dimensions.

    :param names: of the tensors to read, in this order; None: all, in the order of their names
    :param words: whether types that NumPy lacks (BF16, F8) become unsigned words with their bits; otherwise they are an error
    :raises FormatError: a file is damaged, lacks a tensor, or its tensors do not have equally many rows
    :raises UnsupportedError: a type that Arrow cannot have

    Further parameters are those of :func:`read_samples`.
    """
    layout = of_safetensors(files, names, ray_remote_args)
    source = SampleDatasource(layout, words=words, include_paths=include_paths)
    return _dataset(source, ray_remote_args, concurrency, override_num_blocks)


def read_ranges(
    sources: Sources,
    ranges: Any,
    *,
    ray_remote_args: Mapping[str, Any] | None = None,
    concurrency: int | None = None,
    override_num_blocks: int | None = None,
) -> ray.data.Dataset:
    """Ranges of bytes: columns "path", "offset" and "bytes" (binary).

    :param ranges: pairs ``(offset, bytes)``, also as an array of integers; for a list of sources a list of them for each
    :raises InvalidError: a range is not within its source

    Further parameters are those of :func:`read_samples`.
    """
    return _dataset(RangeDatasource(sources, ranges, ray_remote_args), ray_remote_args, concurrency, override_num_blocks)


def _dataset(
    source: SampleDatasource | RangeDatasource,
    ray_remote_args: Mapping[str, Any] | None,
    concurrency: int | None,
    override_num_blocks: int | None,
) -> ray.data.Dataset:
    return ray.data.read_datasource(
        source,
        ray_remote_args=dict(ray_remote_args or {}),
        concurrency=concurrency,
        override_num_blocks=override_num_blocks,
    )


def stats(dataset: ray.data.Dataset) -> dict[str, Any]:
    """What the reads of a dataset did: "reads" (their number), "accelerator", bytes and operations of each path of docs/paths.md
    ("paths"), and how each worked ("used").

    It is in the metadata of the blocks' schemas, which operations drop. So give what ``read_…`` returned, or, to have it read only once,
    ``materialize()`` of that. Where Ray joined parts of blocks, which it does after ranges that are longer than a block, counts may
    lack a last part.

    :raises ValueError: the blocks do not tell
    """
    reads: dict[str, dict[str, Any]] = {}
    for row in dataset.map_batches(_told, batch_size=None, batch_format="pyarrow").iter_rows():
        for read, counts in json.loads(row["told"]).items():
            known = reads.setdefault(read, counts)
            if _bytes(counts) > _bytes(known):
                reads[read] = counts
    if not reads and dataset.count():
        raise ValueError("the blocks do not tell how they were read: give the dataset as gpunvme.ray.read_… returned it, or materialize() of that")
    total: dict[str, Any] = {"reads": len(reads)}
    for counts in reads.values():
        add(total, counts)
    return total


def _bytes(counts: dict[str, Any]) -> int:
    return sum(path["read_bytes"] for path in counts["paths"].values())


def _told(table: pa.Table) -> pa.Table:
    import pyarrow as pa

    told = (table.schema.metadata or {}).get(TOLD, b"{}")
    return pa.table({"told": [told.decode()]})
