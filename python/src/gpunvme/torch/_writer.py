"""The writer of :mod:`gpunvme.torch.checkpoint`."""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import inspect
import os
import threading
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch.distributed._state_dict_utils import _copy_state_dict, _create_cpu_state_dict
from torch.distributed.checkpoint import filesystem, storage
from torch.distributed.checkpoint.metadata import Metadata, StorageMeta
from torch.distributed.checkpoint.planner import SavePlan, SavePlanner, WriteItem
from torch.distributed.checkpoint.staging import BlockingAsyncStager
from torch.distributed.checkpoint.storage import WriteResult
from torch.futures import Future

from .._checks import size, whole
from ..errors import DeniedError, InvalidError
from ._datafile import BLOCK, SLABS, DataFile, Memory, WriteOptions, WriteReport, cuda_in_use, failure, ready, write_file
from ._metadata import SUFFIX, metadata_path, publish, remove_leftovers, sync_folder


@dataclasses.dataclass(frozen=True)
class _Rank:
    """What a plan tells the rank that writes it."""

    rank: int


class StorageWriter(storage.StorageWriter, BlockingAsyncStager):
    """Writes checkpoints of ``torch.distributed.checkpoint`` in torch's own format, which ``FileSystemReader`` reads, too.

        dcp.save(state, storage_writer=StorageWriter("/checkpoints/1000"))

    The folder has a whole checkpoint at each moment from the end of the first save on, also if a process is killed: data goes
    to files with new names, then ``.metadata`` is replaced at one moment, then the files of the checkpoint before are
    removed. One save at a time into a folder. It needs no Java.

    It is an ``AsyncStager``, too: ``dcp.async_save(state, storage_writer=writer)`` returns when the state has been copied to
    pinned memory (ordinary memory where there is no GPU), which is used again by the next save if that one is over.

    :param path: the folder; made if it is not there
    :param threads: of this rank; each writes a file of its own, 1 to 256
    :param staging_bytes: memory of all threads that bytes of GPUs, and what is written with O_DIRECT, go through; pinned if
        there is a GPU. Bytes, or a text such as ``"256MiB"``; at least 48 KiB a thread
    :param sync_files: whether data is on stable storage before ``.metadata`` says that it is there. Without it a crash of the
        machine, but not of a process, may damage the checkpoint
    :param overwrite: whether the folder may have a checkpoint, which is replaced
    :param direct: whether to write past the page cache (O_DIRECT): ``"auto"``, files of 64 MiB and more that are synced, where
        the file system can; True: all, and fail where it cannot; False: none
    :param checksums: whether to count the CRC-32 that zip files have. PyTorch never looks at it; other programs that take a
        tensor's stream for a zip file do
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        threads: int = 4,
        staging_bytes: int | str = 192 << 20,
        sync_files: bool = True,
        overwrite: bool = True,
        direct: bool | str = "auto",
        checksums: bool = False,
    ) -> None:
        storage.StorageWriter.__init__(self)
        BlockingAsyncStager.__init__(self)
        if direct not in (True, False, "auto"):
            raise InvalidError.of(f"direct is True, False or 'auto', not {direct!r}")
        self.path = Path(path)
        self.threads = whole(threads, "threads", 1, 256)
        self.staging_bytes = whole(size(staging_bytes, "staging_bytes"), "staging_bytes", SLABS * BLOCK * 4 * self.threads, 1 << 40)
        self.sync_files = sync_files
        self.overwrite = overwrite
        self.direct = direct
        self.checksums = checksums
        self.save_id = str(uuid.uuid4())
        self.report = WriteReport()
        """Of the last save, as far as it got."""
        self._rank: int | None = None
        self._use_collectives = True
        self._memory = Memory()
        self._staged: tuple[Any, Any] | None = None  # what it looks like, and the memory
        self._staged_in_use = False

    def __getstate__(self) -> dict[str, Any]:
        # Another process has memory of its own.
        return self.__dict__ | {"_memory": None, "_staged": None, "_staged_in_use": False}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state | {"_memory": Memory()})

    # ---- the protocol of StorageWriter

    @property
    def checkpoint_id(self) -> str | os.PathLike[str]:
        return self.path

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        """Whether it can be the name of a folder here: no address such as ``s3://…``."""
        return "://" not in os.fspath(checkpoint_id)

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        if checkpoint_id:
            self.path = Path(checkpoint_id)
        self.save_id = str(uuid.uuid4())

    def storage_meta(self) -> StorageMeta | None:
        return StorageMeta(checkpoint_id=self.checkpoint_id, save_id=self.save_id)

    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        self._rank = kwargs.get("rank")
        self._use_collectives = kwargs.get("use_collectives", True)

    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        self.report = WriteReport()
        self.path.mkdir(parents=True, exist_ok=True)
        published = metadata_path(self.path, self._own_rank)
        if not self.overwrite and published.exists():
            raise DeniedError.of(f"{published}: there is a checkpoint already; take another folder, or overwrite=True")
        if self._own_rank is not None:
            self._remove_leftovers(published=False)
            plan = dataclasses.replace(plan, storage_data=_Rank(self._own_rank))
        return plan

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        if self._own_rank is not None:
            return plans
        # Before any rank writes. A killed save must not fill the disk.
        self._remove_leftovers(published=False)
        return [dataclasses.replace(plan, storage_data=_Rank(rank)) for rank, plan in enumerate(plans)]

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        """Writes all items of the plan. When it returns, they are on stable storage (``sync_files``), and nothing names them yet.

        :raises NoSpaceError: the file system is full; what was written is removed
        :raises TransferError: a file cannot be written
        """
        begin = time.perf_counter()
        try:
            results = self._write(plan, planner)
        finally:
            self._staged_in_use = False
            self.report.seconds = time.perf_counter() - begin
        done: Future[list[WriteResult]] = Future()
        done.set_result(results)
        return done

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        """Makes the checkpoint the folder's, and removes the one before."""
        if hasattr(filesystem, "CURRENT_DCP_VERSION"):
            metadata.version = filesystem.CURRENT_DCP_VERSION
        metadata.storage_data = {result.index: result.storage_data for some in results for result in some}
        metadata.storage_meta = self.storage_meta()
        path = metadata_path(self.path, self._own_rank)
        try:
            publish(path, metadata, self._tag, self.sync_files)
        except OSError as e:
            raise failure(path, e) from e
        self._remove_leftovers(published=True)

    # ---- staging for dcp.async_save

    def stage(self, state_dict: dict[str, Any]) -> dict[str, Any]:
        """Copies the state to memory of this writer, and returns it when that has been done."""
        looks = _looks(state_dict)
        if self._staged is None or self._staged[0] != looks or self._staged_in_use:
            # What another save is still reading stays its own.
            self._staged = looks, _create_cpu_state_dict(state_dict, pin_memory=cuda_in_use())
        self._staged_in_use = True
        # PyTorch 2.4 does not check types.
        options = {"type_check": False} if "type_check" in inspect.signature(_copy_state_dict).parameters else {}
        staged: dict[str, Any] = _copy_state_dict(state_dict, self._staged[1], **options)
        return staged

    def synchronize_staging(self) -> None:
        """:meth:`stage` has done it."""

    def close(self) -> None:
        """Gives the memory back that is kept for the next save."""
        self._staged = None
        self._memory = Memory()

    # ---- the data

    @property
    def _own_rank(self) -> int | None:
        """The rank whose metadata it is, where each has its own."""
        return None if self._use_collectives else self._rank

    @property
    def _tag(self) -> str:
        return uuid.UUID(self.save_id).hex[:12]

    def _remove_leftovers(self, published: bool) -> None:
        removed, self.report.kept = remove_leftovers(self.path, self._own_rank, published)
        self.report.removed += removed

    def _write(self, plan: SavePlan, planner: SavePlanner) -> list[WriteResult]:
        rank: int = plan.storage_data.rank
        buckets = _buckets(plan.items, self.threads)
        names = self._names(rank, len(buckets))
        self.report.items, self.report.files = len(plan.items), len(buckets)
        stop = threading.Event()
        resolving = threading.Lock()

        def resolve(item: WriteItem) -> Any:
            with resolving:
                return planner.resolve_data(item)

        begun = ready()
        options = WriteOptions(self.threads, self.staging_bytes, self.sync_files, self.direct, self.checksums)
        paths = [self.path / name for name in names]
        pool = concurrent.futures.ThreadPoolExecutor(len(buckets) or 1, thread_name_prefix="gpunvme-save")
        futures: list[concurrent.futures.Future[list[WriteResult]]] = []
        try:
            for path, bucket in zip(paths, buckets, strict=True):
                writing = DataFile(path, options, self._memory, self.report, sum(map(_nbytes, bucket)), stop)
                futures.append(pool.submit(write_file, writing, bucket, resolve, begun))
            concurrent.futures.wait(futures, return_when=concurrent.futures.FIRST_EXCEPTION)
            for future in futures:
                if future.done():
                    future.result()
            results = [result for future in futures for result in future.result()]
            if self.sync_files:
                sync_folder(self.path)
            return results
        except BaseException:
            stop.set()
            pool.shutdown(wait=True, cancel_futures=True)
            for path in paths:
                with contextlib.suppress(OSError):
                    path.unlink()
            raise
        finally:
            pool.shutdown(wait=True)

    def _names(self, rank: int, count: int) -> list[str]:
        """Of files that are not there: torch's own in a new folder, else with a tag that no other save has."""
        prefix = f"__{rank}_"
        tag = f"_{self._tag}" if any(n.startswith(prefix) for n in os.listdir(self.path)) else ""
        return [f"{prefix}{i}{tag}{SUFFIX}" for i in range(count)]


def _nbytes(item: WriteItem) -> int:
    if item.tensor_data is None:
        return 0
    return item.tensor_data.chunk.sizes.numel() * item.tensor_data.properties.dtype.itemsize


def _buckets(items: Sequence[WriteItem], count: int) -> list[list[WriteItem]]:
    """Items for each file: equally many bytes, the largest first."""
    buckets: list[list[WriteItem]] = [[] for _ in range(min(count, len(items)))]
    sizes = [0] * len(buckets)
    for item in sorted(items, key=_nbytes, reverse=True):
        least = sizes.index(min(sizes))
        buckets[least].append(item)
        sizes[least] += _nbytes(item) + BLOCK
    return buckets


def _looks(value: Any) -> Any:
    """What must be the same of two states for one to be copied over the other."""
    if isinstance(value, torch.Tensor):
        local = value.to_local() if hasattr(value, "to_local") else value
        return type(value), tuple(value.shape), tuple(local.shape), value.dtype
    if isinstance(value, dict):
        return {key: _looks(v) for key, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_looks(v) for v in value]
    return type(value)
