"""Trains a model of clicks whose embeddings stay on an SSD: rows that a batch names are read, trained, and written back.

    python examples/python/embedding.py                                   a table on an SSD in memory
    python examples/python/embedding.py --table vfio:0000:01:00.0#1 --write --rows 100000000 --cache 8GiB
    python examples/python/embedding.py --check                           beside the same training in memory, and compared

Users click on what suits them: each user and each item has a hidden taste. Two embeddings, a product and a bias learn it; some
users and items are far more frequent than others, as they are in life.
"""

from __future__ import annotations

import argparse
import json
import sys
import time

import torch
from torch import nn
from torch.nn import functional

from gpunvme import Storage
from gpunvme.torch import EmbeddingTable, SparseAdagrad

TASTES = 8


class Clicks:
    """Pairs of users and items, and whether it was a click. Rows below half are users, the others items."""

    def __init__(self, rows: int, device: torch.device) -> None:
        self.rows, self.device = rows, device
        self.random = torch.Generator(device).manual_seed(5)

    def taste(self, ids: torch.Tensor) -> torch.Tensor:
        return (ids * 2654435761 % 2**32 // 2**20) % TASTES

    def batch(self, size: int) -> tuple[torch.Tensor, torch.Tensor]:
        place = torch.rand(size, 2, generator=self.random, device=self.device).pow(3)
        ids = (place * (self.rows // 2)).long() + torch.tensor([0, self.rows // 2], device=self.device)
        taste = self.taste(ids)
        return ids, (taste[:, 0] == taste[:, 1]).float()


def loss_of(rows: torch.Tensor, clicked: torch.Tensor) -> torch.Tensor:
    """Most pairs are none: what is learned is who clicks nevertheless."""
    return functional.binary_cross_entropy_with_logits((rows[:, 0] * rows[:, 1]).sum(-1) - 2, clicked)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", help="an SSD's address, or sim:file=…; without it an SSD in memory")
    parser.add_argument("--write", action="store_true", help="a table of yours may be overwritten")
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--dim", type=int, default=16)
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--lr", type=float, default=0.3)
    parser.add_argument("--cache", default="16MiB", help="of the GPU's memory, for pages of the table")
    parser.add_argument("--placement", default="host", help="of queues and cache: host, vram-data, vram")
    parser.add_argument("--check", action="store_true", help="train the same in memory, too, and compare")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.table and not options.write:
        raise SystemExit(f"--table {options.table} is overwritten: allow that by --write")

    device = torch.device(options.device)
    size = EmbeddingTable.nbytes(options.rows, options.dim, state=True)
    address = options.table or f"sim:size={-(-size // 2**20)}MiB,latency=0"
    storage = Storage(address, "gpu" if device.type == "cuda" else "cpu", write=True)
    where = {} if device.type == "cpu" else {"cache_bytes": options.cache, "placement": options.placement}
    table = EmbeddingTable(storage, options.rows, options.dim, state=True, device=device, **where)
    table.reset_parameters(std=0.3, generator=torch.Generator(device).manual_seed(7))
    optimizer = SparseAdagrad([table], lr=options.lr)
    memory = nn.Embedding.from_pretrained(table.weight[:].clone(), freeze=False, sparse=True) if options.check else None
    peer = torch.optim.Adagrad(memory.parameters(), lr=options.lr) if memory is not None else None
    clicks = Clicks(options.rows, device)
    losses, seconds, difference = [], 0.0, 0.0

    for step in range(options.steps):
        ids, clicked = clicks.batch(options.batch)
        begin = time.perf_counter()
        loss = loss_of(table(ids), clicked)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
        seconds += time.perf_counter() - begin
        if memory is not None and peer is not None:
            theirs = loss_of(memory(ids), clicked)
            theirs.backward()
            peer.step()
            peer.zero_grad()
            difference = max(difference, abs(theirs.item() - losses[-1]))
        if step % 10 == 0 and sys.stderr.isatty():
            print(f"\rstep {step}: loss {losses[-1]:.3f}", end="", file=sys.stderr)
    begin = time.perf_counter()
    table.flush()
    seconds += time.perf_counter() - begin

    apart = None
    if memory is not None:
        # Adagrad's first step has the sign of the gradient: where that is the sum of next to nothing, its order decides.
        apart = ((table.weight[:] - memory.weight.detach()).abs() > 1e-3).float().mean().item()
    stats = table.weight.stats()
    told = {
        "initiator": stats["initiator"],
        "device": str(device),
        "table": address,
        "rows": options.rows,
        "row_bytes": table.weight.row_bytes,
        "steps": options.steps,
        "seconds": seconds,
        "pairs_per_second": options.steps * options.batch / seconds,
        "first_loss": losses[0],
        "last_loss": sum(losses[-10:]) / 10,
        "largest_difference_of_losses": None if memory is None else difference,
        "weights_apart": apart,
        "hit_rate": stats.get("hit_rate"),
        "reads": stats.get("reads"),
        "writes": stats.get("writes"),
    }
    table.close()
    storage.close()
    if options.json:
        print(json.dumps(told))
    else:
        print(f"{options.steps} steps in {seconds:.2f} s, {told['pairs_per_second'] / 1e6:.3f} M pairs/s, by the {stats['initiator'].upper()}")
        print(f"loss {losses[0]:.3f} -> {told['last_loss']:.3f}")
        if apart is not None:
            print(f"beside the same training in memory: losses differ by {difference:.1e} at most, {apart:.1e} of the weights by more than 0.001")
    if apart is not None and (difference > 1e-3 or apart > 1e-3):
        raise SystemExit("it has not learned what the same training in memory does")


if __name__ == "__main__":
    main()
