"""How fast two GPUs read at the same time, beside each of them alone.

    gpus.py --folder FOLDER [--size 4GiB] [--reps 5] [--device cuda|cpu] [--out FILE] [--commit C]

One process, one storage for both, a thread for each GPU. Results, for the first GPU alone (.0), the second (.1) and both (.both):
  gpus.copy.limit.*    copies of as many bytes from pinned host memory to each GPU; GB/s
  gpus.copy.peer.*     from one GPU to the other, and both ways at once; GB/s
  gpus.read.file.*     Storage.read of a file in the page cache, --size of it for each GPU; GB/s
  gpus.read.ssd.*      the same of one embedded SSD in memory, which the GPUs have pinned; GB/s
  gpus.rows.ssd.*      rows of 4 KiB at random places of that SSD, gathered by kernels of each GPU through a page cache of its own,
                       which holds a sixteenth of them; millions of rows a second
What was read is compared with what was written before a number counts. "ratio_of_alone" of .both is its rate by the sum of the two alone.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import threading
import time

import torch
from machine import tell

import gpunvme
from gpunvme._checks import size
from gpunvme.torch import DiskTensor

ROW = 4096
ROWS_A_BATCH = 1 << 16


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", required=True, help="where a file of --size is made, and removed")
    parser.add_argument("--size", default="4GiB", help="that each GPU reads")
    parser.add_argument("--reps", type=int, default=5)
    parser.add_argument("--device", choices=("cuda", "cpu"), help="cpu: two threads read to host memory; no rows, no peer copies")
    parser.add_argument("--only", default="", help="ids that begin with gpus.ONLY")
    parser.add_argument("--out")
    parser.add_argument("--commit", default="unknown")
    return parser.parse_args()


class Bench:
    def __init__(self, told):
        self.told = told
        self.nbytes = size(told.size, "--size") // ROW * ROW
        cuda = told.device != "cpu"
        if cuda and torch.cuda.device_count() < 2:
            raise SystemExit(f"gpus: PyTorch sees {torch.cuda.device_count()} GPUs, and two are needed; --device cpu is a rehearsal")
        self.cuda = cuda
        self.devices = [torch.device("cuda", i) if cuda else torch.device("cpu") for i in range(2)]
        self.names = [f"gpu:{i}" if cuda else "cpu" for i in range(2)]
        self.rows = []
        generator = torch.Generator().manual_seed(1)
        self.data = torch.empty(self.nbytes, dtype=torch.uint8, pin_memory=cuda)
        self.data.view(torch.int64).copy_(torch.randint(-(2**63), 2**63 - 1, (self.nbytes // 8,), generator=generator))
        self.expected = [self.data.to(d) if cuda else self.data for d in self.devices]
        self.targets = [torch.empty(self.nbytes, dtype=torch.uint8, device=d) for d in self.devices]

    def settle(self):
        if self.cuda:
            for d in self.devices:
                torch.cuda.synchronize(d)

    def timed(self, which, work):
        """Seconds until the last of them is done; what a thread raises is raised."""
        failures = []
        start = threading.Barrier(len(which) + 1)

        def run(i):
            try:
                if self.cuda:
                    torch.cuda.set_device(i)
                start.wait()
                work(i)
                if self.cuda:
                    torch.cuda.synchronize(i)
            except BaseException as e:
                failures.append(e)
                start.abort()

        threads = [threading.Thread(target=run, args=(i,)) for i in which]
        for t in threads:
            t.start()
        self.settle()
        try:
            start.wait()
        except threading.BrokenBarrierError:
            pass
        begin = time.perf_counter()
        for t in threads:
            t.join()
        seconds = time.perf_counter() - begin
        if failures:
            raise failures[0]
        return seconds

    def measure(self, id, amount, unit, work, check=None, conditions=None, limits=None):
        """Alone and both, in turn."""
        if not id.startswith("gpus." + self.told.only):
            return {}
        ways = {"0": [0], "1": [1], "both": [0, 1]}
        rates = {way: [] for way in ways}
        for repetition in range(self.told.reps + 1):
            for way, which in ways.items():
                seconds = self.timed(which, work)
                if check and repetition in (0, self.told.reps):
                    for i in which:
                        check(i)
                if repetition:  # the first one opens and loads
                    rates[way].append(amount * len(which) / seconds)
        found = {}
        for way, all_ in rates.items():
            row = {
                "id": f"{id}.{way}", "unit": unit, "median": statistics.median(all_), "min": min(all_), "max": max(all_), "samples": len(all_),
                "verified": check is not None, "conditions": {"device": self.devices[0].type, "bytes_each": self.nbytes} | (conditions() if conditions else {}),
            }  # fmt: skip
            found[way] = row
            if way == "both":
                row["conditions"]["ratio_of_alone"] = row["median"] / (found["0"]["median"] + found["1"]["median"])
            if limits:
                row["limit"] = {"id": limits[way]["id"], "value": limits[way]["median"], "ratio": row["median"] / limits[way]["median"]}
            self.rows.append(row)
            print(json.dumps(row), file=sys.stderr, flush=True)
        return found

    def wipe(self, i):
        self.targets[i].fill_(0)

    def check(self, i):
        if not torch.equal(self.targets[i], self.expected[i]):
            raise ValueError(f"what {self.devices[i]} read is wrong")
        self.wipe(i)

    def reads(self, id, storage, limits):
        self.measure(
            id, self.nbytes / 1e9, "GB/s", lambda i: storage.read(0, self.targets[i]), self.check,
            lambda: {"paths": " ".join(sorted(storage.stats()["paths"]))}, limits,
        )  # fmt: skip

    def gathers(self, storage):
        disks = [
            DiskTensor(storage, (self.nbytes // ROW, ROW), torch.uint8, cache_bytes=max(self.nbytes // 16, 1 << 20), device=d)
            for d in self.devices
        ]
        ids = [torch.randint(self.nbytes // ROW, (ROWS_A_BATCH,), device=d) for d in self.devices]
        outs = [torch.zeros(ROWS_A_BATCH, ROW, dtype=torch.uint8, device=d) for d in self.devices]
        batches = 8

        def gather(i):
            for _ in range(batches):
                ids[i].random_(self.nbytes // ROW)
                disks[i].gather(ids[i], out=outs[i])

        def check(i):
            if not torch.equal(outs[i], self.expected[i].view(-1, ROW)[ids[i]]):
                raise ValueError(f"rows that {self.devices[i]} gathered are wrong")
            outs[i].zero_()

        self.measure("gpus.rows.ssd", batches * ROWS_A_BATCH / 1e6, "M rows/s", gather, check, lambda: {"row_bytes": ROW, "batch": ROWS_A_BATCH})
        for disk in disks:
            disk.close()

    def run(self):
        copies = self.measure(
            "gpus.copy.limit", self.nbytes / 1e9, "GB/s", lambda i: self.targets[i].copy_(self.data, non_blocking=True), self.check
        )
        if self.cuda:
            self.measure(
                "gpus.copy.peer", self.nbytes / 1e9, "GB/s", lambda i: self.targets[i].copy_(self.expected[1 - i], non_blocking=True), self.check
            )
        path = os.path.join(self.told.folder, "gpus.bin")
        with open(path, "wb") as file:
            file.write(memoryview(self.data.numpy()))
        try:
            with gpunvme.Storage(f"file:{path}", self.names[0]) as storage:
                self.reads("gpus.read.file", storage, copies)
        finally:
            os.remove(path)
        address = f"sim:size={self.nbytes},latency=0{',pinned=true' if self.cuda else ''}"
        with gpunvme.Storage(address, self.names[0], write=True) as storage:
            storage.write(0, self.data)
            self.reads("gpus.read.ssd", storage, copies)
            if self.cuda:
                self.gathers(storage)


def main():
    told = options()
    os.makedirs(told.folder, exist_ok=True)
    bench = Bench(told)
    try:
        bench.run()
    finally:
        tell(bench.rows, told.commit, told.out)


if __name__ == "__main__":
    main()
