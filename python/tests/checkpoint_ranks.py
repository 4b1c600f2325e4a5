"""What ranks do for test_checkpoint.py."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

try:
    from torch.distributed.fsdp import fully_shard
except ImportError:  # before PyTorch 2.6
    from torch.distributed._composable.fsdp import fully_shard

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from gpunvme.torch.checkpoint import StorageReader, StorageWriter  # noqa: E402
from ranks import group  # noqa: E402

WRITERS: dict[str, Callable[[Path], Any]] = {
    "torch": dcp.FileSystemWriter,
    "ours": StorageWriter,
    "ours direct": lambda folder: StorageWriter(folder, direct=True, threads=2, checksums=True),
}
READERS: dict[str, Callable[[Path], Any]] = {"torch": dcp.FileSystemReader, "ours": StorageReader}


# ---- states


def filled(generator: torch.Generator, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """Any bits; of bool, 0 and 1."""
    if dtype is torch.bool:
        return torch.randint(0, 2, shape, generator=generator).bool()
    count = torch.Size(shape).numel() * dtype.itemsize
    return torch.randint(0, 256, (count,), dtype=torch.uint8, generator=generator).view(dtype).view(shape)


def plain_state(seed: int) -> dict[str, Any]:
    g = torch.Generator().manual_seed(seed)
    types = (torch.float32, torch.bfloat16, torch.float16, torch.float64, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.bool,
             torch.complex64, torch.uint16, torch.float8_e4m3fn)  # fmt: skip
    return {
        "types": {str(t): filled(g, (5, 3), t) for t in types},
        "deep": [1, {"tensor": filled(g, (300, 41), torch.float32)}, ("text", seed)],
        "scalar": filled(g, (), torch.float32),
        "nothing": torch.zeros(0, 4),
        "large": filled(g, (700_000,), torch.float32),
        "turned": filled(g, (90, 70), torch.float32).t(),
        "every second": filled(g, (5000,), torch.int32)[::2],
        "conjugated": torch.view_as_complex(torch.randn(5, 2, generator=g)).conj(),
        "parameter": torch.nn.Parameter(torch.randn(6, generator=g)),
        "object": {"epoch": seed, "name": f"run {seed}"},
    }


def sharded_state(seed: int) -> dict[str, Any]:
    """By rows and by columns, evenly and not, with long and short rows."""
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    g = torch.Generator().manual_seed(seed)
    state: dict[str, Any] = {"object": [seed], "same": filled(g, (50,), torch.float32)}
    for name, shape, dtype in (("even", (16, 4096), torch.float32), ("odd", (13, 7), torch.bfloat16), ("few", (3, 2), torch.int64), ("wide", (9, 9000), torch.float32)):
        for kind, placement in (("rows", Shard(0)), ("columns", Shard(1)), ("copies", Replicate())):
            state[f"{name}.{kind}"] = distribute_tensor(filled(g, shape, dtype), mesh, [placement])
    return state


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up = torch.nn.Linear(24, 50)
        self.down = torch.nn.Linear(50, 10, bias=False)

    def forward(self, x: torch.Tensor) -> Any:
        return self.down(torch.relu(self.up(x)))


def fsdp_state(seed: int) -> dict[str, Any]:
    """Of a model and its optimizer, after a step."""
    torch.manual_seed(seed)
    model = Model()
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    fully_shard(model.up, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters())
    for parameter in model.parameters():
        parameter.grad = parameter.detach().sin()
    optimizer.step()
    state, optimizer_state = get_state_dict(model, optimizer)
    return {"model": state, "optimizer": optimizer_state}


def tensor_parallel_state(seed: int) -> dict[str, Any]:
    torch.manual_seed(seed)
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    return parallelize_module(Model(), mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()}).state_dict()


STATES = {"plain": plain_state, "sharded": sharded_state, "fsdp": fsdp_state, "tensor parallel": tensor_parallel_state}


def differences(a: Any, b: Any, name: str = "state") -> list[str]:
    """The names of what is not the same, bit for bit."""
    if isinstance(a, DTensor):
        return differences(a.to_local(), b.to_local(), name)
    if isinstance(a, torch.Tensor):
        a, b = a.detach().resolve_conj().contiguous(), b.detach().resolve_conj().contiguous()
        same = a.dtype == b.dtype and a.shape == b.shape and torch.equal(a.view(-1).view(torch.uint8), b.view(-1).view(torch.uint8))
        return [] if same else [name]
    if isinstance(a, dict):
        return [name] if a.keys() != b.keys() else [d for k in a for d in differences(a[k], b[k], f"{name}.{k}")]
    if isinstance(a, (list, tuple)):
        return [name] if len(a) != len(b) else [d for i, (x, y) in enumerate(zip(a, b, strict=True)) for d in differences(x, y, f"{name}.{i}")]
    return [] if a == b else [name]


# ---- what ranks do


def save(folder: Path, kind: str, side: str, seed: int) -> Any:
    writer = WRITERS[side](folder)
    dcp.save(STATES[kind](seed), storage_writer=writer)
    return getattr(writer, "report", None)


def load(folder: Path, kind: str, side: str, seed: int) -> Any:
    """Loads into a state of other bytes, and returns what differs from that of the seed, with the report."""
    state = STATES[kind](seed + 1)
    reader = READERS[side](folder)
    dcp.load(state, storage_reader=reader)
    return differences(STATES[kind](seed), state), getattr(reader, "report", None)


def save_asynchronously(folders: list[Path], kind: str, seed: int) -> list[str]:
    """Saves two states of one model, one after the other, and changes it as soon as it may."""
    writer = StorageWriter(folders[0])
    state = STATES[kind](seed)
    futures = []
    for folder in folders:
        writer = writer if folder == folders[0] else StorageWriter(folder)
        futures.append(dcp.async_save(state, storage_writer=writer))
        add_one(state)
        futures[-1].result()
    return [type(f).__name__ for f in futures]


def load_asynchronous(folders: list[Path], kind: str, seed: int) -> list[str]:
    wrong = []
    expected = STATES[kind](seed)
    for folder in folders:
        state = STATES[kind](seed + 1)
        dcp.load(state, storage_reader=StorageReader(folder))
        wrong += differences(expected, state, folder.name)
        add_one(expected)
    return wrong


def add_one(state: dict[str, Any]) -> None:
    with torch.no_grad():
        for value in state.values():
            if isinstance(value, torch.Tensor):
                (value.to_local() if isinstance(value, DTensor) else value).add_(1)


def fail_on_one_rank(folder: Path) -> str:
    """Rank 1 has no room; what each rank hears of it."""
    writer = StorageWriter(folder)
    if dist.get_rank() == 1:

        def full(*_: Any) -> Any:
            raise OSError(28, "No space left on device")

        os.pwrite = full
    try:
        dcp.save(sharded_state(3), storage_writer=writer)
    except dcp.api.CheckpointException as e:
        return f"{list(e.failures)}: {type(e.failures[1][0]).__name__}"
    finally:
        os.pwrite = PWRITE
    return "saved"


PWRITE = os.pwrite


# ---- kills


def small_state(seed: int, ranks: int = 1) -> dict[str, Any]:
    state: dict[str, Any] = {"step": seed}
    for rank in range(ranks):
        state |= shard(seed, rank)
    return state


def shard(seed: int, rank: int) -> dict[str, Any]:
    return {f"{name} of {rank}": torch.full((length,), seed * 10 + rank) for name, length in (("a", 10), ("b", 3000), ("c", 40_000))}


class Killed:
    """Saves of one folder that are killed, and what is in it then."""

    def __init__(self, folder: Path, ranks: int) -> None:
        self.folder = folder
        self.ranks = ranks
        self.seed = 1
        dcp.save(small_state(1, ranks), storage_writer=StorageWriter(folder), no_dist=True)

    def child(self, rank: int, store: str, begun: int, prepare: Callable[[], None]) -> int:
        """A process that saves the next state; it writes a byte when it begins."""
        pid = os.fork()
        if pid:
            return pid
        code = 1
        try:
            seed = self.seed + 1
            with group(self.ranks if self.ranks > 1 else 0, rank, store):
                if self.ranks > 1:
                    dist.barrier()
                prepare()
                os.write(begun, b".")
                state = small_state(seed) if self.ranks == 1 else shard(seed, rank) | {"step": seed}
                dcp.save(state, storage_writer=StorageWriter(self.folder, threads=2), no_dist=self.ranks == 1)
            code = 0
        except BaseException:
            if self.ranks == 1:  # else another rank was killed
                traceback.print_exc()
        finally:
            os._exit(code)

    def look(self, side: str) -> bool:
        """Whether the folder has the next state; the one before, whole, or nothing is wrong otherwise."""
        state = small_state(0, self.ranks)
        dcp.load(state, storage_reader=READERS[side](self.folder), no_dist=True)
        if state["step"] not in (self.seed, self.seed + 1):
            raise AssertionError(f"the folder has state {state['step']}, and the last whole one is {self.seed}")
        wrong = differences(small_state(state["step"], self.ranks), state)
        if wrong:
            raise AssertionError(f"state {state['step']} is not whole: {wrong}")
        return bool(state["step"] == self.seed + 1)


def kill_saves(folder: Path, ranks: int, count: int, seed: int) -> list[int]:
    """Kills so many saves at random moments; returns how many ended before, and after, the checkpoint was the new one."""
    chosen = random.Random(seed)
    killed = Killed(folder, ranks)
    duration = 0.02
    outcomes = [0, 0]
    for number in range(count):
        readable, begun = os.pipe()
        store = f"{folder}.{number}"
        children = [killed.child(rank, store, begun, lambda: None) for rank in range(ranks)]
        os.close(begun)
        for _ in range(ranks):
            os.read(readable, 1)
        victim = chosen.randrange(ranks)
        time.sleep(chosen.uniform(0, 2 * duration))
        os.kill(children[victim], signal.SIGKILL)
        os.waitpid(children[victim], 0)
        until = time.monotonic() + 0.1
        for rank, pid in enumerate(children):
            # The others hear of it, or wait for it in vain.
            while rank != victim and os.waitpid(pid, os.WNOHANG)[0] == 0:
                if time.monotonic() > until:
                    os.kill(pid, signal.SIGKILL)
                time.sleep(0.001)
        os.close(readable)
        try:
            new = killed.look("torch")
        except BaseException as e:
            raise AssertionError(f"kill {number} of rank {victim}, seed {seed} (GPUNVME_TEST_SEED): {e}; {sorted(os.listdir(folder))}") from e
        outcomes[new] += 1
        killed.seed += new
        # As many before as after, however fast the machine is at the moment.
        duration *= 0.85 if new else 1.2
        with contextlib.suppress(FileNotFoundError):
            os.unlink(store)
    return [*outcomes, killed.seed]


def check_small(folder: Path, ranks: int, seed: int) -> list[str]:
    state = small_state(0, ranks)
    dcp.load(state, storage_reader=StorageReader(folder), no_dist=True)
    return differences(small_state(seed, ranks), state)


STEPS = ("open", "pwrite", "ftruncate", "fsync", "replace", "unlink", "close")


def kill_each_step(folder: Path) -> list[list[str]]:
    """A save that is killed before its first call of the kernel, one before its second, and so on, and one that is not.

    Returns the calls of each. Its last one was not made, except of the last save. What is found in the folder is the new state exactly
    if the call was made that publishes it.
    """
    killed = Killed(folder, 1)
    saves: list[list[str]] = []
    while True:
        readable, begun = os.pipe()

        def prepare(left: int = len(saves), told: int = begun) -> None:
            lock = threading.Lock()

            def counted(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
                def step(*arguments: Any, **named: Any) -> Any:
                    nonlocal left
                    # One thread is killed before its call, and no other begins one meanwhile.
                    with lock:
                        os.write(told, name.encode() + b" ")
                        if left == 0:
                            os.kill(os.getpid(), signal.SIGKILL)
                        left -= 1
                    return call(*arguments, **named)

                return step

            for name in STEPS:
                setattr(os, name, counted(name, getattr(os, name)))

        pid = killed.child(0, "", begun, prepare)
        os.close(begun)
        told = b""
        while some := os.read(readable, 4096):
            told += some
        os.close(readable)
        code = os.waitpid(pid, 0)[1]
        saves.append(told[1:].decode().split())
        new = killed.look("torch")
        over = os.WIFEXITED(code)
        if over and os.WEXITSTATUS(code):
            raise AssertionError(f"the save that was not killed failed: {code}")
        if new != ("replace" in (saves[-1] if over else saves[-1][:-1])):
            raise AssertionError(f"the folder has the {'new' if new else 'old'} state, and these were the calls: {saves[-1]}")
        if over:
            return saves
        killed.seed += new
