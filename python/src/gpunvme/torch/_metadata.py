"""The file ``.metadata`` of a checkpoint: read without running what it names, and published at one moment."""

from __future__ import annotations

import contextlib
import os
import pickle
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, Final

import torch
from torch.distributed.checkpoint import filesystem, metadata
from torch.distributed.checkpoint.metadata import Metadata

from ..errors import FormatError, GpuNvmeError, NotFoundError, TransferError, UnsupportedError

SUFFIX: Final = ".distcp"

_DATA: Final = re.compile(r"__(\d+)_\d+(?:_[0-9a-f]{12})?\.distcp")
_TAGGED: Final = re.compile(r"__\d+_\d+_[0-9a-f]{12}\.distcp")
_TEMPORARY: Final = re.compile(r"(?:__(\d+))?\.metadata\.[0-9a-f]{12}\.tmp")
_METADATA: Final = re.compile(r"(?:__(\d+))?\.metadata")

_PLAIN: Final = {
    "builtins": {"set", "frozenset", "complex", "bytearray", "slice", "range"},
    "collections": {"OrderedDict", "defaultdict", "deque"},
    "torch": {"Size"},
    "torch.serialization": {"_get_layout"},
}
_PATHS: Final = {"Path", "PosixPath", "WindowsPath", "PurePosixPath", "PureWindowsPath"}


class _Unpickler(pickle.Unpickler):
    """Knows the classes of a checkpoint's metadata, and no others."""

    def __init__(self, file: Any, classes: Collection[type]) -> None:
        super().__init__(file)
        self._classes = {(c.__module__, c.__qualname__): c for c in classes}

    def find_class(self, module: str, name: str) -> Any:
        given = self._classes.get((module, name))
        if given is not None:
            return given
        if module.split(".")[0] == "pathlib" and name in _PATHS:
            # Each Python has them in a module of its own, and a path of another system cannot be made here.
            return os.path.join
        found = None
        if module == metadata.__name__ or (module, name) == (filesystem.__name__, "_StorageInfo"):
            found = getattr(metadata if module == metadata.__name__ else filesystem, name, None)
            found = found if isinstance(found, type) and found.__module__ == module else None
        elif module == "torch" and isinstance(getattr(torch, name, None), (torch.dtype, torch.layout, torch.memory_format)):
            found = getattr(torch, name)
        elif name in _PLAIN.get(module, ()):
            found = super().find_class(module, name)
        if found is None:
            raise UnsupportedError.of(
                f"the metadata has a {module}.{name}, which this reader does not make; if you trust the checkpoint, pass the"
                " class in metadata_classes"
            )
        return found


def metadata_path(folder: Path, rank: int | None) -> Path:
    """Of all ranks, or of one that was saved with ``use_collectives=False``."""
    return folder / (".metadata" if rank is None else f"__{rank}.metadata")


def read_metadata(path: Path, classes: Collection[type] = ()) -> Metadata:
    """The metadata of a whole checkpoint.

    :raises NotFoundError: there is none
    :raises UnsupportedError: it has objects of classes that are not known
    :raises FormatError: it is damaged
    """
    try:
        with open(path, "rb") as file:
            found = _Unpickler(file, classes).load()
    except FileNotFoundError as e:
        raise NotFoundError.of(f"{path}: there is no whole checkpoint in this folder: a save ends by making this file") from e
    except GpuNvmeError as e:
        raise type(e).of(f"{path}: {e.args[-1]}") from e
    except OSError as e:
        raise TransferError.of(f"{path} cannot be read: {e.strerror}", e.errno or 0) from e
    except Exception as e:  # whatever damaged bytes make pickle call
        raise FormatError.of(f"{path} is damaged: {type(e).__name__}: {e}; load an older checkpoint") from e
    if not isinstance(found, Metadata):
        raise FormatError.of(f"{path} has a {type(found).__name__} and no metadata of a checkpoint")
    return found


def publish(path: Path, value: Metadata, tag: str, sync: bool) -> None:
    """Makes this the metadata at one moment: whoever looks sees the old one or the new one, whole."""
    temporary = path.with_name(f"{path.name}.{tag}.tmp")
    try:
        with open(temporary, "wb") as file:
            pickle.dump(value, file)
            file.flush()
            if sync:
                os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    if sync:
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """When this returns, the names in the folder are on stable storage."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def remove_leftovers(folder: Path, rank: int | None, published: bool) -> tuple[int, str]:
    """Removes data files that no metadata names: of saves that were killed, or of the checkpoint before this one.

    :param rank: only this rank's files; None: those of all ranks
    :param published: a new checkpoint is whole. Before that, files that may belong to a checkpoint whose metadata was
        taken away (torch's own writer does so for a moment) are kept
    :return: the number of removed files, and why others were kept, or ""
    """
    names = os.listdir(folder)
    described = [n for n in names if _METADATA.fullmatch(n)]
    try:
        used = {info.relative_path for n in described for info in _infos(folder / n)}
    except (GpuNvmeError, AttributeError, TypeError) as e:
        return 0, f"files of earlier saves are kept, because a metadata file cannot be read: {e}"
    pattern = _DATA if published or described else _TAGGED
    removed = 0
    for name in names:
        found = (pattern.fullmatch(name) and _DATA.fullmatch(name)) or _TEMPORARY.fullmatch(name)
        if found is None or name in used or (rank is not None and found[1] != str(rank)):
            continue
        with contextlib.suppress(FileNotFoundError):
            os.unlink(folder / name)
            removed += 1
    return removed, ""


def _infos(path: Path) -> Iterator[Any]:
    yield from (read_metadata(path).storage_data or {}).values()
