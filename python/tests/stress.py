"""Threads that read, write and cancel at random for a while; every byte is compared, and memory has to stay flat.

stress.py [SECONDS [THREADS [ACCELERATOR]]]; not part of ../../test
"""

from __future__ import annotations

import random
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

import gpunvme  # noqa: E402

SIZE = 64 << 20
LONGEST = 1 << 20


def resident() -> int:
    """MiB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 >> 20


def work(storage: gpunvme.Storage, data: bytes, seed: int, end: float, told: list[object]) -> None:
    mine = random.Random(seed)
    reads = cancelled = 0
    into = bytearray(LONGEST)
    try:
        while time.monotonic() < end:
            length = int(LONGEST ** mine.random())
            offset = mine.randrange(SIZE - length)
            turn = mine.random()
            if turn < 0.5:
                storage.read(offset, into, length)
            elif turn < 0.6:
                array = storage.read_array(offset, length)
                into[:length] = array.tobytes()
            elif turn < 0.7:
                # What is on it already: others read it meanwhile.
                storage.write(offset, data[offset : offset + length])
                continue
            else:
                request = storage.submit_read(offset, into, length)
                if turn < 0.85:
                    request.cancel()
                try:
                    request.result()
                except gpunvme.CancelledError:
                    cancelled += 1
                    continue
            reads += 1
            if into[:length] != data[offset : offset + length]:
                raise AssertionError(f"wrong bytes at {offset}, {length} of them")
        told.append((reads, cancelled))
    except BaseException as e:
        told.append(e)


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60
    threads = int(sys.argv[2]) if len(sys.argv) > 2 else 24
    accelerator = sys.argv[3] if len(sys.argv) > 3 else None
    seed = time.time_ns() % 2**32
    print(f"seed {seed}")
    data = random.Random(seed).randbytes(SIZE)
    end = time.monotonic() + seconds
    told: list[object] = []
    with gpunvme.Storage(f"sim:size={SIZE}", accelerator, write=True) as storage:
        storage.write(0, data)
        running = [threading.Thread(target=work, args=(storage, data, seed + n, end, told)) for n in range(threads)]
        for thread in running:
            thread.start()
        while time.monotonic() < end:
            time.sleep(max(0.0, min(seconds / 10, end - time.monotonic())))
            print(f"{seconds - end + time.monotonic():.0f} s, {resident()} MiB resident", flush=True)
        for thread in running:
            thread.join()
    for failure in (t for t in told if isinstance(t, BaseException)):
        raise failure
    counts = [t for t in told if isinstance(t, tuple)]
    print(f"{sum(c[0] for c in counts)} reads compared, {sum(c[1] for c in counts)} cancelled")


if __name__ == "__main__":
    main()
