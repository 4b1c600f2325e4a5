"""How fast torch.distributed.checkpoint saves and loads, with torch's storage and with gpunvme's, in turn.

    torchrun --standalone --nproc-per-node 2 checkpoint.py --folder FOLDER [--size 4GiB] [--reps 5] [--device cuda|cpu]
        [--threads N] [--options path=auto] [--cold] [--only save|load] [--out FILE] [--commit C]

Without torchrun it is one rank. The state is a model's: matrices of 32 MiB and vectors, in bfloat16, --size of them together, sharded by
rows over the ranks as DTensor. With cuda, each rank has a GPU of its own. Results:
  dcp.save.<ours|torch>.<N>ranks   dcp.save until it returns: all is on stable storage, in a new folder
  dcp.load.<ours|torch>.<N>ranks   dcp.load of one checkpoint, which torch wrote, into tensors that are there already; the files are in the
                                   page cache, or with --cold (dcp.load.cold.…) not in it
  dcp.write.limit.<N>ranks         plain pwrite of as many bytes to new files, by --threads threads a rank, and fsync
  dcp.write.direct.<N>ranks        the same past the page cache (O_DIRECT)
  dcp.read.limit.<N>ranks          a copy of as many bytes within host memory, or from pinned host memory to the GPU
  dcp.read.disk.<N>ranks           with --cold: the files read with O_DIRECT by --threads threads a rank
Units are GB/s of the state, over all ranks: the slowest rank's time counts. "torch" has its defaults but for thread_count, --threads, too. What was saved is
loaded by the other side, and what was loaded is compared, bit for bit, before a number counts.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import datetime
import json
import mmap
import os
import shutil
import statistics
import sys
import time
import warnings

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from machine import tell
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Shard

from gpunvme._checks import size
from gpunvme.torch.checkpoint import StorageReader, StorageWriter

COLUMNS = 4096
PIECE = 32 << 20


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", required=True, help="where checkpoints are made, and removed")
    parser.add_argument("--size", default="4GiB", help="of the state, all ranks together")
    parser.add_argument("--reps", type=int, default=5)
    parser.add_argument("--device", choices=("cuda", "cpu"))
    parser.add_argument("--threads", type=int, default=4, help="of a rank")
    parser.add_argument("--options", default="path=auto", help="of gpunvme's files: docs/paths.md")
    parser.add_argument("--checksums", action="store_true", help="gpunvme counts CRC-32, as torch does")
    parser.add_argument("--cold", action="store_true")
    parser.add_argument("--only", choices=("save", "load"))
    parser.add_argument("--out")
    parser.add_argument("--commit", default="unknown")
    return parser.parse_args()


OPTIONS = options()
RANK, RANKS, LOCAL = (int(os.environ.get(name, default)) for name, default in (("RANK", 0), ("WORLD_SIZE", 1), ("LOCAL_RANK", 0)))


def device():
    """The GPU of this rank, or the CPU."""
    cuda = torch.cuda.is_available() if OPTIONS.device is None else OPTIONS.device == "cuda"
    return torch.device("cuda", LOCAL) if cuda else torch.device("cpu")


class Bench:
    def __init__(self):
        self.device = device()
        self.mesh = init_device_mesh(self.device.type, (RANKS,))
        self.rows = []
        self.state = self.make(1)
        self.nbytes = sum(t.numel() * t.element_size() for t in self.state.values())
        self.target = self.make(None)

    def make(self, seed):
        """The state, or one of the same shape with other bytes."""
        count = max(1, size(OPTIONS.size, "--size") // (4096 * COLUMNS * 2))
        state = {}
        for layer in range(count):
            for name, rows, columns in (("weight", 4096, COLUMNS), ("norm", COLUMNS, 1)):
                shape = (rows // RANKS, columns)
                if seed is None:
                    local = torch.zeros(shape, dtype=torch.bfloat16, device=self.device)
                else:
                    generator = torch.Generator(self.device).manual_seed(seed + 1000 * RANK + layer)
                    # Any bits: NaNs, too.
                    local = torch.randint(-32768, 32767, shape, dtype=torch.int16, device=self.device, generator=generator).view(torch.bfloat16)
                state[f"layers.{layer}.{name}"] = DTensor.from_local(local, self.mesh, [Shard(0)], run_check=False)
        return state

    def wipe(self):
        for tensor in self.target.values():
            tensor.to_local().view(torch.int16).fill_(-1)

    def check(self, what):
        for name, tensor in self.state.items():
            loaded = self.target[name].to_local()
            if not torch.equal(loaded.view(torch.int16), tensor.to_local().view(torch.int16)):
                raise ValueError(f"{what}: {name} is wrong")

    def timed(self, call):
        """Seconds of the slowest rank, from when all begin."""
        if self.device.type == "cuda":
            torch.cuda.synchronize()
        dist.barrier()
        begin = time.perf_counter()
        call()
        if self.device.type == "cuda":
            torch.cuda.synchronize()
        seconds = torch.tensor(time.perf_counter() - begin, dtype=torch.float64)
        dist.all_reduce(seconds, op=dist.ReduceOp.MAX)
        return seconds.item()

    def folder(self, name):
        return os.path.join(OPTIONS.folder, name)

    def remove(self, folder):
        dist.barrier()
        if RANK == 0:
            shutil.rmtree(folder, ignore_errors=True)
            os.sync()
        dist.barrier()

    def add(self, id, seconds, conditions, limit=None):
        rates = [self.nbytes / s / 1e9 for s in seconds]
        row = {
            "id": f"{id}.{RANKS}ranks", "unit": "GB/s", "median": statistics.median(rates), "min": min(rates), "max": max(rates),
            "samples": len(rates), "verified": True,
            "conditions": {"bytes": self.nbytes, "tensors": len(self.state), "device": self.device.type, "threads": OPTIONS.threads} | conditions,
        }  # fmt: skip
        if limit:
            row["limit"] = {"id": limit["id"], "value": limit["median"], "ratio": row["median"] / limit["median"]}
        self.rows.append(row)
        if RANK == 0:
            print(json.dumps(row), file=sys.stderr, flush=True)
        return row

    # ---- saving

    def save(self):
        folder = self.folder("saved")
        own = StorageWriter(folder, threads=OPTIONS.threads, checksums=OPTIONS.checksums)
        sides = {"ours": own, "torch": dcp.FileSystemWriter(folder, thread_count=OPTIONS.threads)}
        readers = {"ours": dcp.FileSystemReader, "torch": StorageReader}
        seconds = {side: [] for side in (*sides, "limit", "direct")}
        reports = []
        for repetition in range(OPTIONS.reps + 1):
            for side, writer in sides.items():
                self.remove(folder)
                taken = self.timed(lambda writer=writer: dcp.save(self.state, storage_writer=writer, checkpoint_id=folder))
                if repetition:  # the first one takes memory
                    seconds[side].append(taken)
                if repetition in (0, OPTIONS.reps):
                    self.wipe()
                    dcp.load(self.target, storage_reader=readers[side](folder))
                    self.check(f"saved by {side}")
            reports.append(own.report)
            for side in "limit", "direct":
                self.remove(folder)
                if RANK == 0:
                    os.makedirs(folder)
                with self.plain(folder, side == "direct") as write:
                    taken = self.timed(write)
                if repetition:
                    seconds[side].append(taken)
        self.remove(folder)
        around = self.around()
        limit = self.add("dcp.write.limit", seconds["limit"], around)
        direct = self.add("dcp.write.direct", seconds["direct"], around)
        best = max(limit, direct, key=lambda row: row["median"])
        report = reports[-1]
        self.add("dcp.save.ours", seconds["ours"], around | {"paths": report.paths, "from_gpu": report.bytes_from_gpu, "crc32": OPTIONS.checksums}, best)
        self.add("dcp.save.torch", seconds["torch"], around | {"crc32": True}, best)

    @contextlib.contextmanager
    def plain(self, folder, direct):
        """Writes this rank's share of the bytes from host memory."""
        memory = mmap.mmap(-1, PIECE)
        memory.write(os.urandom(PIECE))
        share = self.nbytes // RANKS // OPTIONS.threads // 4096 * 4096

        def one(number):
            fd = os.open(os.path.join(folder, f"{RANK}-{number}"), os.O_WRONLY | os.O_CREAT | (os.O_DIRECT if direct else 0))
            try:
                with memoryview(memory) as view:
                    for at in range(0, share, PIECE):
                        piece = min(PIECE, share - at)
                        if os.pwrite(fd, view[:piece], at) != piece:
                            raise OSError("a short write")
                os.fsync(fd)
            finally:
                os.close(fd)

        with concurrent.futures.ThreadPoolExecutor(OPTIONS.threads) as pool:
            dist.barrier()
            yield lambda: list(pool.map(one, range(OPTIONS.threads)))
        memory.close()

    # ---- loading

    def load(self):
        folder = self.folder("torch")
        self.remove(folder)
        dcp.save(self.state, storage_writer=dcp.FileSystemWriter(folder, thread_count=OPTIONS.threads))
        files = [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name.endswith(".distcp")]
        own = StorageReader(folder, options=OPTIONS.options)
        sides = {"ours": own, "torch": dcp.FileSystemReader(folder)}
        seconds = {side: [] for side in (*sides, "limit", "disk")}
        for repetition in range(OPTIONS.reps + 1):
            for side, reader in sides.items():
                self.cache(files)
                self.wipe()
                taken = self.timed(lambda reader=reader: dcp.load(self.target, storage_reader=reader))
                self.check(f"loaded by {side}")
                if repetition:  # the first one starts Java
                    seconds[side].append(taken)
            taken = self.timed(self.copy)
            if repetition:
                seconds["limit"].append(taken)
            if OPTIONS.cold:
                self.cache(files)
                taken = self.timed(lambda: self.disk(files))
                if repetition:
                    seconds["disk"].append(taken)
        around = self.around() | {"cache": "cold" if OPTIONS.cold else "warm"}
        report = own.report
        limit = self.add("dcp.read.limit", seconds["limit"], around)
        if OPTIONS.cold:
            limit = min(limit, self.add("dcp.read.disk", seconds["disk"], around), key=lambda row: row["median"])
        told = {"paths": report.paths, "bytes_direct": report.bytes_direct, "bytes_staged": report.bytes_staged, "batches": report.batches}
        kind = "dcp.load.cold" if OPTIONS.cold else "dcp.load"
        self.add(f"{kind}.ours", seconds["ours"], around | {"options": OPTIONS.options} | told, limit)
        self.add(f"{kind}.torch", seconds["torch"], around, limit)
        self.remove(folder)

    def copy(self):
        """As many bytes as this rank loads, from pinned memory to the GPU or within the host's."""
        target = next(iter(self.target.values())).to_local().view(torch.uint8).view(-1)
        if not hasattr(self, "source"):
            self.source = torch.zeros(target.numel(), dtype=torch.uint8, pin_memory=self.device.type == "cuda")
        for _ in range(self.nbytes // RANKS // target.numel()):
            target.copy_(self.source, non_blocking=True)

    def cache(self, files):
        """Has the files in the page cache, or not."""
        dist.barrier()
        for path in files[RANK::RANKS]:
            with open(path, "rb", buffering=0) as file:
                os.fsync(file.fileno())
                if OPTIONS.cold:
                    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
                else:
                    while file.read(PIECE):
                        pass
        dist.barrier()

    def disk(self, files):
        pieces = [(path, at) for path in files for at in range(0, os.path.getsize(path) // 4096 * 4096, PIECE)][RANK::RANKS]

        def read(some):
            memory = mmap.mmap(-1, PIECE)
            for path, at in some:
                fd = os.open(path, os.O_RDONLY | os.O_DIRECT)
                try:
                    os.preadv(fd, [memory], at)
                finally:
                    os.close(fd)

        with concurrent.futures.ThreadPoolExecutor(OPTIONS.threads) as pool:
            list(pool.map(read, [pieces[i :: OPTIONS.threads] for i in range(OPTIONS.threads)]))

    def around(self):
        stat = os.stat(OPTIONS.folder)
        where = "unknown"
        with open("/proc/self/mountinfo") as mounts:
            for line in mounts:
                if line.split()[2] == f"{os.major(stat.st_dev)}:{os.minor(stat.st_dev)}":
                    where = line.split(" - ")[1].split()[0]
        return {"ranks": RANKS, "file_system": where, "processors": len(os.sched_getaffinity(0))}


def main():
    warnings.simplefilter("ignore")
    os.makedirs(OPTIONS.folder, exist_ok=True)
    if device().type == "cuda":
        torch.cuda.set_device(device())
    if RANKS > 1:
        # DTensor's meshes of GPUs have NCCL; plans travel by gloo.
        backend = "cpu:gloo,cuda:nccl" if device().type == "cuda" else "gloo"
        dist.init_process_group(backend, timeout=datetime.timedelta(minutes=10))
    else:
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    bench = Bench()
    if OPTIONS.only != "load":
        bench.save()
    if OPTIONS.only != "save":
        bench.load()
    if RANK == 0:
        tell(bench.rows, OPTIONS.commit, OPTIONS.out)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
