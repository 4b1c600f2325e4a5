"""Threads that read, write and cancel at random for a while; every byte is compared, and memory has to stay flat: what is
resident, and what is pinned. On a GPU every other thread reads into GPU memory, which needs PyTorch, and compares there.

stress.py [SECONDS [THREADS [ACCELERATOR]]]; not part of ../../test
"""

from __future__ import annotations

import gc
import random
import sys
import threading
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

import gpunvme  # noqa: E402

SIZE = 64 << 20
LONGEST = 1 << 20
MAY_GROW = 96  # MiB
MAY_KEEP = 32  # MiB, for reuse: four pieces of pinned memory


class Host:
    """Memory to read into, and what is to be in it."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.into = bytearray(LONGEST)

    def holds(self, offset: int, length: int) -> bool:
        return self.into[:length] == self.data[offset : offset + length]

    def takes(self, array: gpunvme.DeviceArray) -> None:
        self.into[: array.nbytes] = array.tobytes()


class Gpu:
    """The same on a GPU."""

    def __init__(self, whole: Any) -> None:
        import torch

        self.torch = torch
        self.whole = whole
        self.into = torch.empty(LONGEST, dtype=torch.uint8, device="cuda")

    def holds(self, offset: int, length: int) -> bool:
        return bool(self.torch.equal(self.into[:length], self.whole[offset : offset + length]))

    def takes(self, array: gpunvme.DeviceArray) -> None:
        self.into[: array.nbytes] = self.torch.from_dlpack(array)


def work(storage: gpunvme.Storage, data: bytes, memory: Host | Gpu, seed: int, end: float, told: list[object]) -> None:
    mine = random.Random(seed)
    reads = cancelled = 0
    try:
        while time.monotonic() < end:
            length = int(LONGEST ** mine.random())
            offset = mine.randrange(SIZE - length)
            turn = mine.random()
            if turn < 0.5:
                storage.read(offset, memory.into, length)
            elif turn < 0.6:
                memory.takes(storage.read_array(offset, length))
            elif turn < 0.7:
                # What is on it already: others read it meanwhile.
                storage.write(offset, data[offset : offset + length])
                continue
            else:
                request = storage.submit_read(offset, memory.into, length)
                if turn < 0.85:
                    request.cancel()
                try:
                    request.result()
                except gpunvme.CancelledError:
                    cancelled += 1
                    continue
            reads += 1
            if not memory.holds(offset, length):
                raise AssertionError(f"wrong bytes at {offset}, {length} of them")
        told.append((reads, cancelled))
    except BaseException as e:
        told.append(e)


def memories(storage: gpunvme.Storage, data: bytes, threads: int) -> list[Host | Gpu]:
    if not storage.on_gpu:
        return [Host(data) for _ in range(threads)]
    import torch

    whole = torch.frombuffer(bytearray(data), dtype=torch.uint8).cuda()
    torch.cuda.synchronize()
    return [Gpu(whole) if n % 2 else Host(data) for n in range(threads)]


def used(storage: gpunvme.Storage) -> tuple[int, int]:
    """MiB that are resident, and MiB that the accelerator has given, pinned ones included."""
    gc.collect()
    resident = int(Path("/proc/self/statm").read_text().split()[1]) * 4096 >> 20
    return resident, sum(storage.stats()["memory"].values()) >> 20


def run(storage: gpunvme.Storage, data: bytes, places: list[Host | Gpu], seed: int, seconds: float) -> tuple[int, int]:
    """What is used when all threads are done."""
    told: list[object] = []
    end = time.monotonic() + seconds
    threads = [
        threading.Thread(target=work, args=(storage, data, place, seed + n, end, told)) for n, place in enumerate(places)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for failure in (t for t in told if isinstance(t, BaseException)):
        raise failure
    counts = [t for t in told if isinstance(t, tuple)]
    resident, taken = used(storage)
    print(
        f"{sum(c[0] for c in counts)} reads compared, {sum(c[1] for c in counts)} cancelled; {resident} MiB resident,"
        f" {taken} MiB of the accelerator and pinned",
        flush=True,
    )
    return resident, taken


def main() -> int:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60
    threads = int(sys.argv[2]) if len(sys.argv) > 2 else 24
    accelerator = sys.argv[3] if len(sys.argv) > 3 else None
    seed = time.time_ns() % 2**32
    print(f"seed {seed}")
    data = random.Random(seed).randbytes(SIZE)
    with gpunvme.Storage(f"sim:size={SIZE}", accelerator, write=True) as storage:
        storage.write(0, data)
        places = memories(storage, data, threads)
        # Everything was there once after a third.
        early = run(storage, data, places, seed, seconds / 3)
        late = run(storage, data, places, seed + threads, seconds * 2 / 3)
    if late[0] > early[0] + MAY_GROW or late[1] > early[1] + MAY_KEEP:
        print("memory grew")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
