"""The Python side of the benchmark of short reads: see ../c/small.c for what it is told and says.

A fourth word, main or worker, says which thread reads.
"""

import concurrent.futures
import ctypes
import random
import statistics
import sys
import time

READS = 5_000
CHECKED = 200
BLOCK = 4096
LONGEST = 64 << 10


def say(text):
    print(" ".join(text.split()), flush=True)


class Side:
    def __init__(self, file, ssd):
        with open(file, "rb") as content:
            self.content = content.read()
        self.storages = {"sim": gpunvme.Storage(ssd, "cpu", write=True), "auto": gpunvme.Storage(file, "cpu")}
        for path in "mmap", "pinned":
            self.storages[path] = gpunvme.Storage(f"file:{file}?path={path}", "cpu")
        self.storages["sim"].write(0, self.content)

    def median(self, path, length, seed):
        storage = self.storages[path]
        into = storage.allocate(length)
        places = random.Random(seed)
        blocks = (len(self.content) - LONGEST) // BLOCK
        nanos = []
        for _ in range(READS):
            at = places.randrange(blocks) * BLOCK
            begin = time.perf_counter_ns()
            storage.read(at, into)
            nanos.append(time.perf_counter_ns() - begin)
        for _ in range(CHECKED):
            at = places.randrange(blocks) * BLOCK
            ctypes.memset(into.address, 0, length)  # on the stand-in it is the host's
            storage.read(at, into)
            if into.tobytes() != self.content[at : at + length]:
                raise ValueError(f"wrong data in {length} bytes at {at}")
        return statistics.median(nanos)

    def answer(self, line):
        path, length, seed, thread = line.split()
        if thread == "main":
            return self.median(path, int(length), int(seed))
        with concurrent.futures.ThreadPoolExecutor(1) as worker:
            return worker.submit(self.median, path, int(length), int(seed)).result()


def main(file, ssd):
    side = Side(file, ssd)
    say("ready")
    for line in sys.stdin:
        if line == "end\n":
            break
        say(str(side.answer(line)))
    for storage in side.storages.values():
        storage.close()


try:
    import gpunvme
except ImportError as e:
    say(f"missing {e}")
    sys.exit(0)
try:
    main(*sys.argv[1:])
except Exception as e:
    say(f"error {type(e).__name__}: {e}")
    sys.exit(1)
