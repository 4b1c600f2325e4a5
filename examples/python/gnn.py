"""Trains a graph network on sampled neighbours; the features of its nodes stay on an SSD.

    python examples/python/gnn.py                                        a small graph that it makes, features in a file
    python examples/python/gnn.py --nodes 2000000 --dim 1024 --cache 2GiB
    python examples/python/gnn.py --features vfio:0000:01:00.0#1 --write an SSD of yours: its first bytes become features
    python examples/python/gnn.py --from mmap                            the same training from a memory-mapped file

Nodes belong to communities, neighbours mostly to the same one, and features are noisy: a node's own say little, those of its
neighbourhood a lot. Two layers (GraphSAGE, mean) learn the community. Each batch samples neighbours on the device, and gathers
the features of the nodes that it met; those of the next batch are prefetched meanwhile.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from gpunvme import Storage
from gpunvme.torch import DiskTensor

COMMUNITIES = 16
NOISE = 3.0
CHUNK = 1 << 16


class Graph:
    """Neighbours of each node, as many for all: mostly of its community."""

    def __init__(self, nodes: int, degree: int, device: torch.device) -> None:
        self.device = device
        random = torch.Generator(device).manual_seed(1)
        self.label = torch.randint(COMMUNITIES, (nodes,), generator=random, device=device)
        by_label = self.label.argsort(stable=True)
        first = torch.searchsorted(self.label[by_label], torch.arange(COMMUNITIES + 1, device=device))
        size = (first[1:] - first[:-1]).clamp(min=1)
        place = torch.rand(nodes, degree, generator=random, device=device)
        same = by_label[(first[self.label, None] + (place * size[self.label, None]).long()).clamp(max=nodes - 1)]
        anyone = torch.randint(nodes, (nodes, degree), generator=random, device=device)
        loyal = torch.rand(nodes, degree, generator=random, device=device) < 0.8
        self.neighbours = torch.where(loyal, same, anyone)

    def sample(self, seeds: torch.Tensor, fanout: int) -> torch.Tensor:
        """Some neighbours of each, perhaps one of them more than once: one more dimension."""
        one = torch.randint(self.neighbours.shape[1], (*seeds.shape, fanout), device=self.device)
        return self.neighbours[seeds[..., None].expand_as(one), one]


class Batch:
    """Nodes whose labels are learned, and the features that this takes."""

    def __init__(self, graph: Graph, seeds: torch.Tensor, fanouts: tuple[int, int]) -> None:
        self.label = graph.label[seeds]
        near = graph.sample(seeds, fanouts[0])
        far = graph.sample(near, fanouts[1])
        self.shapes = [seeds.shape, near.shape, far.shape]
        everyone = torch.cat([t.reshape(-1) for t in (seeds, near, far)])
        self.nodes, self.place = everyone.unique(return_inverse=True)

    def spread(self, features: torch.Tensor) -> list[torch.Tensor]:
        """The features of the seeds, of their neighbours, and of those of these."""
        parts = self.place.split([shape.numel() for shape in self.shapes])
        return [features[part].view(*shape, -1) for part, shape in zip(parts, self.shapes, strict=True)]


class Sage(nn.Module):
    def __init__(self, dim: int, hidden: int) -> None:
        super().__init__()
        self.own1, self.near1 = nn.Linear(dim, hidden), nn.Linear(dim, hidden)
        self.own2, self.near2 = nn.Linear(hidden, COMMUNITIES), nn.Linear(hidden, COMMUNITIES)

    def forward(self, seeds: torch.Tensor, near: torch.Tensor, far: torch.Tensor) -> torch.Tensor:
        own = functional.relu(self.own1(seeds) + self.near1(near.mean(-2)))
        neighbours = functional.relu(self.own1(near) + self.near1(far.mean(-2)))
        return self.own2(own) + self.near2(neighbours.mean(-2))


def features_of(label: torch.Tensor, first: int, dim: int) -> torch.Tensor:
    """The features of some nodes, the same each time."""
    random = torch.Generator().manual_seed(first + 2)
    centres = torch.randn(COMMUNITIES, dim, generator=torch.Generator().manual_seed(1))
    return centres[label.cpu()] + NOISE * torch.randn(len(label), dim, generator=random)


def fill(storage: Storage, label: torch.Tensor, dim: int) -> None:
    for first in range(0, len(label), CHUNK):
        part = features_of(label[first : first + CHUNK], first, dim)
        storage.write(first * dim * 4, part)
        print(f"\rfeatures: {first + len(part)} of {len(label)}", end="", file=sys.stderr)
    print(file=sys.stderr)
    storage.flush()


class Mapped:
    """The way without gpunvme: a memory-mapped file, whose rows are copied to the device."""

    initiator = "cpu"

    def __init__(self, path: str, shape: tuple[int, int], device: torch.device) -> None:
        self.rows = torch.from_file(path, size=shape[0] * shape[1], dtype=torch.float32).view(shape)
        self.device = device

    def gather(self, ids: torch.Tensor) -> torch.Tensor:
        return self.rows[ids.cpu()].to(self.device)

    def prefetch(self, ids: torch.Tensor) -> None:
        pass

    def stats(self) -> dict[str, Any]:
        return {"initiator": self.initiator}

    def close(self) -> None:
        pass


def opened(options: argparse.Namespace, graph: Graph, shape: tuple[int, int]) -> Any:
    address, path = options.features, None
    if ":" not in address:
        path = address
        size = -(-shape[0] * shape[1] * 4 // 4096) * 4096
        if not os.path.exists(path) or os.path.getsize(path) != size:
            new = path + ".new"
            with open(new, "wb") as file:
                file.truncate(size)
            with Storage(new, "cpu", write=True) as storage:
                fill(storage, graph.label, shape[1])
            os.replace(new, path)
    elif options.write:
        with Storage(address, "cpu", write=True) as storage:
            fill(storage, graph.label, shape[1])
    if options.source == "mmap":
        if path is None:
            raise SystemExit("--from mmap needs a file, not the address of an SSD")
        return Mapped(path, shape, graph.device)
    if path is not None and graph.device.type == "cuda":
        address = f"sim:file={os.path.abspath(path)},latency=0,readonly=on"
    return DiskTensor(
        address, shape, torch.float32, cache_bytes=options.cache, placement=options.placement, device=graph.device
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--features", default="gnn-features.bin", help="a file, made if it is not there, or an SSD's address")
    parser.add_argument("--write", action="store_true", help="write the features to the SSD before")
    parser.add_argument("--from", dest="source", choices=["disk", "mmap"], default="disk", help="where they are read from")
    parser.add_argument("--nodes", type=int, default=20_000)
    parser.add_argument("--dim", type=int, default=128)
    parser.add_argument("--degree", type=int, default=16)
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--cache", default="64MiB", help="of the GPU's memory, for pages of features")
    parser.add_argument("--placement", default="host", help="of queues and cache: host, vram-data, vram")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()

    device = torch.device(options.device)
    torch.manual_seed(3)
    graph = Graph(options.nodes, options.degree, device)
    features = opened(options, graph, (options.nodes, options.dim))
    model = Sage(options.dim, 64).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    train, test = torch.arange(options.nodes, device=device).split([options.nodes * 9 // 10, options.nodes - options.nodes * 9 // 10])

    def batch_of(nodes: torch.Tensor) -> Batch:
        return Batch(graph, nodes[torch.randint(len(nodes), (options.batch,), device=device)], (10, 5))

    losses, gathered = [], 0
    batch = batch_of(train)
    begin = time.perf_counter()
    for step in range(options.steps):
        rows = features.gather(batch.nodes)
        following = batch_of(train)
        features.prefetch(following.nodes)
        loss = functional.cross_entropy(model(*batch.spread(rows)), batch.label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        gathered += len(batch.nodes)
        losses.append(loss.detach())
        if step % 10 == 0 and sys.stderr.isatty():
            print(f"\rstep {step}: loss {loss.item():.3f}", end="", file=sys.stderr)
        batch = following
    first, last = losses[0].item(), torch.stack(losses[-10:]).mean().item()
    seconds = time.perf_counter() - begin
    with torch.no_grad():
        checked = batch_of(test)
        right = model(*checked.spread(features.gather(checked.nodes))).argmax(-1) == checked.label
        accuracy = right.float().mean().item()
    stats = features.stats()
    features.close()
    told = {
        "initiator": stats["initiator"],
        "source": options.source,
        "device": str(device),
        "steps": options.steps,
        "seconds": seconds,
        "steps_per_second": options.steps / seconds,
        "rows": gathered,
        "row_bytes": options.dim * 4,
        "rows_per_second": gathered / seconds,
        "first_loss": first,
        "last_loss": last,
        "accuracy": accuracy,
        "hit_rate": stats.get("hit_rate"),
        "reads": stats.get("reads"),
    }
    if options.json:
        print(json.dumps(told))
    else:
        print(f"{options.steps} steps in {seconds:.2f} s, {gathered / seconds / 1e6:.3f} M rows/s of {options.dim * 4} bytes, by the {stats['initiator'].upper()}")
        print(f"loss {first:.3f} -> {last:.3f}; {accuracy:.1%} of unseen nodes right (guessing: {1 / COMMUNITIES:.1%})")
    if not (last < first and accuracy > 0.5):
        raise SystemExit("it has not learned the communities")


if __name__ == "__main__":
    main()
