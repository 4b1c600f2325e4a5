"""PyTorch's devices and gpunvme's accelerators."""

from __future__ import annotations

import torch


def torch_device(device: torch.device | str | int | None) -> torch.device:
    """A GPU by its number, or the CPU.

    :param device: None: the GPU that is current in this thread if there is one, else the CPU
    :raises ValueError: if it is neither a GPU of CUDA nor the CPU
    """
    if device is None:
        device = "cuda" if torch.cuda.is_available() else "cpu"
    found = torch.device("cuda", device) if isinstance(device, int) else torch.device(device)
    if found.type not in ("cuda", "cpu"):
        raise ValueError(f"a device is 'cuda', 'cuda:1' or 'cpu', not {str(device)!r}")
    if found.type == "cuda" and found.index is None:
        return torch.device("cuda", torch.cuda.current_device() if torch.cuda.is_available() else 0)
    return found


def accelerator(device: torch.device) -> str:
    """The name of an accelerator for a device of :func:`torch_device`."""
    return f"gpu:{device.index}" if device.type == "cuda" else "cpu"


def device_of(name: str) -> torch.device:
    """The device of an accelerator: ``"gpu:1"`` or ``"cpu"``."""
    return torch.device("cuda", int(name.removeprefix("gpu:"))) if name != "cpu" else torch.device("cpu")
