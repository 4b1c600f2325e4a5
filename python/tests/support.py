"""What the tests share: devices, models, processes of their own."""

from __future__ import annotations

import json
import math
import os
import random
import struct
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest
from pathlib import Path
from typing import Any

PYTHON = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PYTHON / "src"))

import gpunvme  # noqa: E402

FAKE = "fake" in gpunvme.version()
"""Whether the library is fake_gpunvme.c, which fails on demand."""

ACCELERATOR = os.environ.get("GPUNVME_TEST_ACCELERATOR", "cpu")
"""What storages are opened for: "cpu", the stand-in, or "gpu". Tests in processes of their own know it, too."""

on_the_stand_in = unittest.skipUnless(ACCELERATOR == "cpu", "of memory that is the host's")

def needs_fake(test: Any) -> Any:
    """Of failures on demand; they are no tests of the real library, so that it has nothing to skip."""
    return test if FAKE else None


def needs_real(test: Any) -> Any:
    return None if FAKE else test


# A command of a controller is waited for even if its transfer is cancelled, so the real one is not as slow.
SLOW = "sim:size=1MiB,latency=60s" if FAKE else "sim:size=1MiB,latency=2s"


def seeded(test: unittest.TestCase) -> random.Random:
    """Randomness that can be had again: the seed is told if the test fails."""
    seed = int(os.environ.get("GPUNVME_TEST_SEED", time.time_ns() % 2**32))
    test.addCleanup(lambda: print(f"seed {seed} (GPUNVME_TEST_SEED)") if _failed(test) else None)
    return random.Random(seed)


def _failed(test: unittest.TestCase) -> bool:
    result = test._outcome.result  # type: ignore[attr-defined]
    return any(t is test for t, _ in (*result.failures, *result.errors)) or sys.exc_info()[0] is not None


class Case(unittest.TestCase):
    def folder(self) -> Path:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        return Path(folder.name)

    def device(self, size: str = "1MiB") -> gpunvme.Storage:
        """An empty SSD in memory."""
        storage = gpunvme.Storage(f"sim:size={size}", ACCELERATOR, write=True)
        self.addCleanup(storage.close)
        return storage

    def filled(self, nbytes: int = 1 << 20) -> tuple[gpunvme.Storage, bytes]:
        """One with random bytes on it."""
        data = seeded(self).randbytes(nbytes)
        storage = self.device(f"{nbytes // 1024}KiB")
        storage.write(0, data)
        return storage, data


ITEM = {"F32": 4, "F16": 2, "BF16": 2, "I64": 8, "U8": 1, "BOOL": 1, "I32": 4}


def make_model(path: Path, tensors: dict[str, tuple[str, tuple[int, ...], bytes]], **metadata: str) -> Path:
    """A safetensors file, and beside it what the fake library reads instead of the header."""
    header: dict[str, object] = {"__metadata__": metadata} if metadata else {}
    at = 0
    for name, (dtype, shape, data) in tensors.items():
        assert len(data) == ITEM[dtype] * math.prod(shape), name
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    start = 8 + len(text)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(t[2] for t in tensors.values()))
    table, described = [], []
    for name, (dtype, shape, data) in tensors.items():
        table.append(" ".join(map(str, (start, ITEM[dtype], len(shape), *shape))))
        described.append({"name": name, "dtype": dtype, "shape": list(shape), "bytes": len(data), "file": path.name, "offset": start})
        start += len(data)
    if FAKE:
        told = {"format": "safetensors", "metadata": metadata, "files": [path.name], "tensors": described}
        path.with_name(path.name + ".json").write_text(json.dumps(told))
        path.with_name(path.name + ".table").write_text("\n".join(table) + "\n")
    return path


def slow_model(case: Case, tensors: dict[str, tuple[str, tuple[int, ...], bytes]]) -> str:
    """The address of a model that takes much longer to read than anybody waits."""
    folder = case.folder()
    path = make_model(folder / "m.safetensors", tensors)
    if FAKE:
        return f"{path}?latency=60s"
    # Short commands, and few of them at a time.
    return f"{on_an_ssd(case, path)},latency=300ms,mdts=8KiB,mqes=3"


def on_an_ssd(case: Case, model: Path) -> str:
    """The address of an embedded SSD that a model was written to."""
    image = f"sim:file={case.folder() / 'image'}"
    write = [sys.executable, "-m", "gpunvme", "write-model", str(model), "--device", f"{image},size=64MiB", "--allow-write"]
    subprocess.run(write, env=os.environ | {"PYTHONPATH": str(PYTHON / "src")}, check=True, capture_output=True)
    return image


def run(source: str, *arguments: str, timeout: float = 120, **environment: str) -> subprocess.CompletedProcess[str]:
    """A Python process with these lines; the package is on its path."""
    lines = f"ACCELERATOR = {ACCELERATOR!r}\n" + textwrap.dedent(source)
    return subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", lines, *arguments],
        env=os.environ | {"PYTHONPATH": str(PYTHON / "src")} | environment,
        capture_output=True,
        text=True,
        timeout=timeout,
    )
