"""How fast a model reaches two GPUs by gpunvme.torch.load_sharded, in parts and whole, beside one GPU and beside reading it twice.

    shards.py --folder FOLDER [--size 8GiB] [--reps 5] [--device cuda|cpu] [--rules rows] [--options path=auto] [--address ADDRESS]
        [--bucket 512MiB] [--no-ranks] [--out FILE] [--commit C]

The model has the tensors of a LLaMA-like transformer in bfloat16, in 4 safetensors files that are in the page cache; it is made in FOLDER
and removed. With --address it is read from there instead, such as an embedded SSD in RAM to which "gpunvme write-model" has written what
--keep left in FOLDER. Results, in turn and with memory of its own each time:
  shards.half.1gpu           all of it to the first GPU
  shards.half.2gpus          divided by --rules, one process
  shards.half.2ranks         the same, a process for each GPU, NCCL (gloo on the CPU)
  shards.replicated.2gpus    all of it to both: read once, and copied
  shards.replicated.2ranks   the same, a process for each GPU
  shards.replicated.twice    all of it to both: read by each, at the same time
  shards.limit.h2d.<0|1|both>, shards.limit.peer   plain copies of 256 MiB from pinned memory to each GPU alone and to both, and from the
                             first GPU to the second; on the CPU, copies in host memory
Units are GB/s of the model, of whose bytes each counts once; of ranks the slower one's time counts. Each tensor is compared with the model by a checksum that its
device computes, and the bytes that were asked for must be the model's, before a number counts. "read_of_model" is what was read of the SSDs for it, with
what lies in the same blocks: short models have more of that. Goals for two GPUs: "read_of_model" at most 1.01, "time_of_1gpu" at most 0.6,
"times_as_fast_as_twice" at least 1.7.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import datetime
import json
import math
import os
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time

import torch
import torch.distributed as dist

from gpunvme._checks import size
from gpunvme.torch import load_sharded
from machine import tell

FILES = 4
CHUNK = 1 << 22
COPIED = 256 << 20


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", required=True, help="where the model is made")
    parser.add_argument("--size", default="8GiB", help="of the model, about")
    parser.add_argument("--reps", type=int, default=5)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--rules", default="rows", help="which tensors are divided: docs/weights.md")
    parser.add_argument("--options", default="path=auto", help="of the files' addresses: docs/paths.md")
    parser.add_argument("--address", help="where to read the model instead")
    parser.add_argument("--bucket", default="512MiB", help="bucket_bytes")
    parser.add_argument("--no-ranks", action="store_true")
    parser.add_argument("--keep", action="store_true", help="leave the model")
    parser.add_argument("--out")
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--store", help=argparse.SUPPRESS)
    return parser.parse_args()


# ---- the model


def shapes(nbytes):
    """Names and shapes of about so many bytes of bfloat16, four layers at least."""
    hidden = next((h for h in (4096, 2048, 1024, 512, 256) if 4 * 26 * h * h <= nbytes), 128)
    matrices = {
        "q_proj": (hidden, hidden), "k_proj": (hidden // 4, hidden), "v_proj": (hidden // 4, hidden), "o_proj": (hidden, hidden),
        "gate_proj": (hidden * 7 // 2, hidden), "up_proj": (hidden * 7 // 2, hidden), "down_proj": (hidden, hidden * 7 // 2),
        "input_norm": (hidden,), "output_norm": (hidden,),
    }  # fmt: skip
    layer = sum(2 * math.prod(shape) for shape in matrices.values())
    for number in range(max(4, round(nbytes / layer))):
        for name, shape in matrices.items():
            yield f"layers.{number}.{name}.weight", shape


def random(number, shape, device):
    """The bits of a tensor, the same each time; made where they will be compared, since long models take minutes on the CPU."""
    generator = torch.Generator(device).manual_seed(number)
    return torch.randint(-32768, 32767, shape, dtype=torch.int16, generator=generator, device=device)


def make(folder, nbytes, device):
    """Writes the model; returns the shapes of its tensors, in their order."""
    os.makedirs(folder, exist_ok=True)
    tensors = list(shapes(nbytes))
    per_file = -(-len(tensors) // FILES)
    weight_map = {}
    for number in range(FILES):
        some = tensors[number * per_file : (number + 1) * per_file]
        name = f"model-{number + 1:05}-of-{FILES:05}.safetensors"
        header, at = {}, 0
        for tensor, shape in some:
            length = 2 * math.prod(shape)
            header[tensor] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [at, at + length]}
            at += length
            weight_map[tensor] = name
        text = json.dumps(header).encode()
        text += b" " * (-(8 + len(text)) % 4096)
        with open(os.path.join(folder, name), "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text)
            for place, (_, shape) in enumerate(some, number * per_file):
                file.write(memoryview(random(place, shape, device).view(-1).view(torch.uint8).cpu().numpy()))
            # Who reads would share the memory's bandwidth with what is still written.
            file.flush()
            os.fsync(file.fileno())
    with open(os.path.join(folder, "model.safetensors.index.json"), "w") as file:
        json.dump({"weight_map": weight_map}, file)
    return dict(tensors)


WEIGHTS = {}


def checksum(tensor):
    """Of its bytes and their order, by its device."""
    device = tensor.device
    if device not in WEIGHTS:
        WEIGHTS[device] = torch.arange(1, 2 * CHUNK, 2, dtype=torch.int64, device=device)
    total = torch.zeros((), dtype=torch.int64, device=device)
    for chunk in tensor.contiguous().view(-1).view(torch.int16).split(CHUNK):
        total = total * 31 + (chunk.long() * WEIGHTS[device][: chunk.numel()]).sum()
    return total


def check(shards, expected, parts):
    """:param parts: the numbers of the parts that these are"""
    for tensors, part in zip(shards, parts, strict=True):
        if list(tensors) != list(expected[part]):
            raise ValueError("other tensors than the model's")
        sums = torch.stack([checksum(t) for t in tensors.values()]).cpu().tolist()
        for name, found in zip(tensors, sums, strict=True):
            if found != expected[part][name]:
                raise ValueError(f"{name} of part {part} is wrong")


def expected_sums(model, divided, parts, device):
    """For each part, name: checksum.

    :param model: shapes by name
    :param divided: the dimension along which a tensor is, by name
    """
    sums = [{} for _ in range(parts)]
    for number, (name, shape) in enumerate(model.items()):
        tensor = random(number, shape, device)
        for part in range(parts):
            sums[part][name] = checksum(tensor.chunk(parts, divided[name])[part] if name in divided else tensor).item()
    return sums


# ---- ranks


def devices(kind):
    return [f"{kind}:{i}" if kind == "cuda" else kind for i in range(2)]


def be_rank(chosen):
    """A process that loads when its standard input says so: a line is the JSON of rules and where the checksums are."""
    device = devices(chosen.device)[chosen.rank]
    if chosen.device == "cuda":
        torch.cuda.set_device(device)
    backend = "nccl" if chosen.device == "cuda" else "gloo"
    dist.init_process_group(backend, store=dist.FileStore(chosen.store, 2), rank=chosen.rank, world_size=2, timeout=datetime.timedelta(minutes=5))
    for line in sys.stdin:
        asked = json.loads(line)
        synchronize(chosen.device)
        dist.barrier()
        begin = time.perf_counter()
        shards = load_sharded(asked["address"], device, asked["rules"], group=dist.group.WORLD, bucket_bytes=chosen.bucket)
        synchronize(chosen.device)
        taken = time.perf_counter() - begin
        with open(asked["sums"]) as file:
            check(shards, json.load(file), [chosen.rank])
        told = {"seconds": taken, "report": vars(shards.report)}
        del shards
        empty(chosen.device)
        # Not before its memory is free: that would disturb what is measured next.
        print(json.dumps(told), flush=True)
    dist.destroy_process_group()


class Ranks:
    def __init__(self):
        self.folder = tempfile.mkdtemp()
        command = [sys.executable, os.path.abspath(__file__), *sys.argv[1:], "--store", os.path.join(self.folder, "store"), "--rank"]
        self.processes = [
            subprocess.Popen([*command, str(rank)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for rank in range(2)
        ]

    def load(self, address, rules, sums):
        """Seconds of the slower one, and the report of the first."""
        path = os.path.join(self.folder, "sums")
        with open(path, "w") as file:
            json.dump(sums, file)
        for process in self.processes:
            process.stdin.write(json.dumps({"address": address, "rules": rules, "sums": path}) + "\n")
            process.stdin.flush()
        told = []
        for process in self.processes:
            line = process.stdout.readline()
            if not line:
                raise RuntimeError(f"a rank ended with code {process.wait()}")
            told.append(json.loads(line))
        return max(t["seconds"] for t in told), told[0]["report"]

    def close(self):
        for process in self.processes:
            process.stdin.close()
        for process in self.processes:
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self.folder)


# ---- measuring


def synchronize(kind):
    if kind == "cuda":
        for device in range(torch.cuda.device_count()):
            torch.cuda.synchronize(device)


def empty(kind):
    """Memory goes back to CUDA, so that each load takes it anew."""
    if kind == "cuda":
        torch.cuda.empty_cache()


class Bench:
    def __init__(self, chosen):
        self.chosen = chosen
        self.devices = devices(chosen.device)
        if chosen.device == "cuda" and torch.cuda.device_count() < 2:
            raise SystemExit("two GPUs are needed, and CUDA shows fewer; --device cpu tries the program without")
        first = self.devices[0]
        model = make(os.path.join(chosen.folder, "model"), size(chosen.size, "--size"), first)
        self.address = chosen.address or f"file:{os.path.abspath(chosen.folder)}/model?{chosen.options}"
        self.nbytes = sum(2 * math.prod(shape) for shape in model.values())
        with gpunvme_weights(self.address) as weights:
            divided = {name: d for name, d in weights.shard_dimensions(chosen.rules, 2).items() if d is not None}
        self.whole = expected_sums(model, {}, 1, first)
        self.halves = expected_sums(model, divided, 2, first)
        self.rows = []

    def timed(self, load, expected, parts):
        synchronize(self.chosen.device)
        begin = time.perf_counter()
        shards = load()
        synchronize(self.chosen.device)
        taken = time.perf_counter() - begin
        check(shards, expected, parts)
        report = vars(shards.report) if hasattr(shards, "report") else None
        del shards
        empty(self.chosen.device)
        return taken, report

    def load(self, some, rules):
        return load_sharded(self.address, some, rules, bucket_bytes=self.chosen.bucket)

    def twice(self):
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            return [one[0] for one in pool.map(lambda d: self.load([d], None), self.devices)]

    def measure(self, ranks):
        rules = self.chosen.rules
        both = self.whole * 2
        cases = {
            "half.1gpu": lambda: self.timed(lambda: self.load(self.devices[:1], None), self.whole, [0]),
            "half.2gpus": lambda: self.timed(lambda: self.load(self.devices, rules), self.halves, [0, 1]),
            "replicated.2gpus": lambda: self.timed(lambda: self.load(self.devices, None), both, [0, 1]),
            "replicated.twice": lambda: self.timed(self.twice, both, [0, 1]),
        }
        if ranks:
            cases["half.2ranks"] = lambda: ranks.load(self.address, rules, self.halves)
            cases["replicated.2ranks"] = lambda: ranks.load(self.address, None, both)
        seconds = {name: [] for name in cases}
        reports = {}
        limits = self.limits()
        copies = {name: [] for name in limits}
        for repetition in range(self.chosen.reps + 1):
            for name, case in cases.items():
                taken, reports[name] = case()
                if repetition:  # the first one starts Java
                    seconds[name].append(taken)
            for name, copy in limits.items():
                synchronize(self.chosen.device)
                begin = time.perf_counter()
                moved = copy()
                synchronize(self.chosen.device)
                if repetition:
                    copies[name].append(moved / (time.perf_counter() - begin) / 1e9)
        limit = {name: self.add(f"limit.{name}", rates, {}) for name, rates in copies.items()}
        one, twice = statistics.median(seconds["half.1gpu"]), statistics.median(seconds["replicated.twice"])
        for name, taken in seconds.items():
            told = {"rules": rules if "half.2" in name else None}
            report = reports[name]
            if report is not None:
                read = sum(report["bytes_read"]) + report["bytes_overread"]
                told |= {k: report[k] for k in ("bytes_read", "bytes_overread", "bytes_copied", "exchange", "paths", "seconds")}
                told["read_of_model"] = read / self.nbytes
                if sum(report["bytes_read"]) != self.nbytes:
                    raise ValueError(f"{name}: {report['bytes_read']} bytes were asked for of a model of {self.nbytes}")
            median = statistics.median(taken)
            if name.startswith("half.2"):
                told["time_of_1gpu"] = median / one
            elif name.startswith("replicated.2"):
                told["times_as_fast_as_twice"] = twice / median
            above = limit["h2d.0" if name == "half.1gpu" else "h2d.both"]
            self.add(name, [self.nbytes / s / 1e9 for s in taken], told, above)

    def limits(self):
        """Name: what copies, and returns how many bytes that were."""
        pinned = self.chosen.device == "cuda"
        count = COPIED if pinned else 16 << 20
        sources = [torch.zeros(count, dtype=torch.uint8, pin_memory=pinned) for _ in self.devices]
        targets = [torch.zeros(count, dtype=torch.uint8, device=d) for d in self.devices]
        times = 8

        def copies(*pairs):
            for _ in range(times):
                for source, target in pairs:
                    target.copy_(source, non_blocking=True)
            return times * count * len(pairs)

        return {
            "h2d.0": lambda: copies((sources[0], targets[0])),
            "h2d.1": lambda: copies((sources[1], targets[1])),
            "h2d.both": lambda: copies(*zip(sources, targets, strict=True)),
            "peer": lambda: copies((targets[0], targets[1])),
        }

    def add(self, id, rates, told, limit=None):
        around = {
            "bytes": self.nbytes, "tensors": len(self.whole[0]), "device": self.chosen.device, "address": self.chosen.address or self.chosen.options,
            "bucket": self.chosen.bucket, "processors": len(os.sched_getaffinity(0)), "cache": "warm",
        }  # fmt: skip
        row = {
            "id": f"shards.{id}", "unit": "GB/s", "median": statistics.median(rates), "min": min(rates), "max": max(rates),
            "samples": len(rates), "verified": limit is not None, "conditions": around | told,
        }  # fmt: skip
        if limit:
            row["limit"] = {"id": limit["id"], "value": limit["median"], "ratio": row["median"] / limit["median"]}
        self.rows.append(row)
        print(json.dumps(row), file=sys.stderr, flush=True)
        return row


def gpunvme_weights(address):
    from gpunvme import Weights

    return Weights(address)


def main():
    chosen = options()
    if chosen.rank is not None:
        be_rank(chosen)
        return
    try:
        bench = Bench(chosen)
        ranks = None if chosen.no_ranks else Ranks()
        try:
            bench.measure(ranks)
        finally:
            if ranks:
                ranks.close()
    finally:
        if not chosen.keep:
            shutil.rmtree(os.path.join(chosen.folder, "model"), ignore_errors=True)
    tell(bench.rows, chosen.commit, chosen.out)


if __name__ == "__main__":
    main()
