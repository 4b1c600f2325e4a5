"""The names of the project's first proposals for PyTorch:

    import torch_nvme

    tensor = torch.empty(1024, 1024, device="cuda")
    torch_nvme.read_into_tensor(tensor, lba=0)

The storage is the one that the environment variable GPUNVME_DEVICE names, or that :func:`open` opened.
"""

from __future__ import annotations

from gpunvme import Storage
from gpunvme.torch import load_file, read_into_tensor, set_default_storage

__all__ = ["load_file", "open", "read_into_tensor"]


def open(uri: str, accelerator: str | None = None, write: bool = False) -> Storage:
    """Opens the storage that :func:`read_into_tensor` reads from then on."""
    storage = Storage(uri, accelerator, write)
    set_default_storage(storage)
    return storage
