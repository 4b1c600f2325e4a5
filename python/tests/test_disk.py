"""Tensors on SSDs: rows gathered, updated, trained. On the CPU stand-in; and where GPUNVME_TEST_ACCELERATOR is gpu, by kernels."""

from __future__ import annotations

import types
import unittest
from typing import Any
from unittest import mock

from support import ACCELERATOR, Case, needs_real, on_the_stand_in, seeded

import gpunvme

try:
    import torch
except ImportError:
    raise unittest.SkipTest("torch is not installed") from None

import gpunvme.torch as gt  # noqa: E402
from gpunvme import memory  # noqa: E402

ROWS = 1000
ON_CPU_CUDA = ACCELERATOR == "gpu" and not torch.cuda.is_available()
"""Kernels run on the CPU: what is the GPU's memory to them is host memory to PyTorch."""


PLACEMENT = "host" if ON_CPU_CUDA else "vram-data"
DEVICE = "cuda" if ACCELERATOR == "gpu" and not ON_CPU_CUDA else "cpu"


def of_gpu(tensor: torch.Tensor) -> torch.Tensor:
    """A copy where kernels find it."""
    if not ON_CPU_CUDA:
        return tensor.cuda() if ACCELERATOR == "gpu" else tensor.clone()
    if tensor.numel() == 0:
        return tensor.clone()
    array = memory.DeviceArray.allocate(tensor.numel() * tensor.element_size(), ACCELERATOR)
    host = (memory.ctypes.c_char * array.nbytes).from_address(array.address)
    host._owner = array  # type: ignore[attr-defined]
    copy = torch.frombuffer(host, dtype=tensor.dtype).view(tensor.shape)
    return copy.copy_(tensor)


class Tensor(gt.DiskTensor):
    """One whose memory is where kernels find it, also where these run on the CPU: PyTorch does not know their stream then."""

    def _opened(self, storage: Any, device: Any) -> Any:
        return super()._opened(storage, None if ON_CPU_CUDA and str(device) == DEVICE else device)

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.device = torch.device(DEVICE) if ON_CPU_CUDA else self.device

    def gather(self, ids: torch.Tensor, out: torch.Tensor | None = None, *, requires_grad: bool = False) -> torch.Tensor:
        rows = super().gather(ids, out, requires_grad=requires_grad)
        if ON_CPU_CUDA:
            self.synchronize()
        return rows

    def update(self, ids: torch.Tensor, rows: torch.Tensor) -> None:
        super().update(ids, rows)
        if ON_CPU_CUDA:
            self.synchronize()

    def prefetch(self, ids: torch.Tensor) -> None:
        super().prefetch(ids)
        if ON_CPU_CUDA:
            self.synchronize()

    def _ids(self, ids: torch.Tensor) -> torch.Tensor:
        return of_gpu(super()._ids(ids)) if ON_CPU_CUDA else super()._ids(ids)

    def _rows_of(self, ids: torch.Tensor, rows: torch.Tensor, what: str) -> torch.Tensor:
        checked = super()._rows_of(ids, rows, what)
        return of_gpu(checked) if ON_CPU_CUDA and what == "rows" else checked

    def _empty(self, shape: Any) -> torch.Tensor:
        return of_gpu(super()._empty(shape)) if ON_CPU_CUDA else super()._empty(shape)


class DiskCase(Case):
    def disk(
        self, data: torch.Tensor, *, offset: int = 0, write: bool = False, faults: str = "", **options: Any
    ) -> Tensor:
        """A tensor on an SSD that has this data."""
        where = self.folder() / "data"
        where.write_bytes(bytes(offset) + bytes(data.contiguous().view(-1).view(torch.uint8).tolist()) + bytes(1 << 20))
        with where.open("ab") as file:
            file.truncate(-(-where.stat().st_size // 4096) * 4096)
        storage = gpunvme.Storage(f"sim:latency=0,lba=512{faults},file={where}", ACCELERATOR, write=write)
        self.addCleanup(storage.close)
        options = {"cache_bytes": "256KiB", "placement": PLACEMENT, "device": DEVICE, **options}
        disk = Tensor(storage, data.shape, data.dtype, offset, write=write, **options)
        self.addCleanup(disk.close)
        return disk

    def numbers(self, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        generator = torch.Generator().manual_seed(seeded(self).randrange(2**31))
        return (torch.randn(shape, generator=generator) * 100).to(dtype)

    def same(self, got: torch.Tensor, expected: torch.Tensor) -> None:
        self.assertEqual((got.dtype, got.shape), (expected.dtype, expected.shape))
        self.assertTrue(torch.equal(got.cpu(), expected.cpu()))


@needs_real
class RowsTest(DiskCase):
    def test_rows_in_any_order_and_of_any_kind(self) -> None:
        for dtype, shape in (
            (torch.float32, (ROWS, 128)),
            (torch.bfloat16, (ROWS, 7)),
            (torch.int64, (ROWS,)),
            (torch.uint8, (ROWS, 3, 5)),
            (torch.float16, (40, 3000)),
        ):
            data = self.numbers(*shape, dtype=dtype)
            disk = self.disk(data, offset=1000)
            for ids in (
                torch.randint(0, shape[0], (500,)),
                torch.randint(0, shape[0], (4, 5), dtype=torch.int32),
                torch.tensor([7, 7, 0, shape[0] - 1, 7]),
                torch.tensor(3),
                torch.empty(0, dtype=torch.int64),
            ):
                got = disk.gather(ids)
                disk.synchronize()
                self.same(got, data[ids.long()])

    def test_slices_and_single_rows(self) -> None:
        data = self.numbers(100, 16)
        disk = self.disk(data)
        for index in (slice(10, 20), slice(None, None, 7), slice(-5, None), slice(5, 5), 3, -1, torch.tensor([4, 2])):
            got = disk[index]
            disk.synchronize()
            self.same(got, data[index])
        with self.assertRaises(IndexError):
            disk[100]
        self.assertEqual((len(disk), disk.shape, disk.nbytes), (100, (100, 16), 6400))

    def test_an_own_tensor_is_filled(self) -> None:
        data = self.numbers(100, 16)
        disk = self.disk(data)
        out = disk._empty((3, 16))
        got = disk.gather(torch.tensor([5, 6, 5]), out)
        disk.synchronize()
        self.assertEqual(got.data_ptr(), out.data_ptr())
        self.same(out, data[[5, 6, 5]])
        for wrong in (out[:2], out.double(), disk._empty((3, 32))[:, ::2]):
            with self.assertRaisesRegex(ValueError, "out is contiguous"):
                disk.gather(torch.tensor([5, 6, 5]), wrong)

    def test_a_number_that_no_row_has(self) -> None:
        data = self.numbers(100, 16)
        disk = self.disk(data)
        for wrong in (100, -1, 2**40):
            with self.assertRaises((IndexError, gpunvme.InvalidError)) as raised:
                disk.gather(torch.tensor([1, wrong]))
                disk.synchronize()
            self.assertIn("rows 0 to 99", str(raised.exception))
        got = disk.gather(torch.tensor([99]))
        disk.synchronize()
        self.same(got, data[[99]])

    def test_what_cannot_be_is_refused(self) -> None:
        disk = self.disk(self.numbers(100, 16))
        with self.assertRaisesRegex(ValueError, "integers"):
            disk.gather(torch.tensor([1.0]))
        with self.assertRaisesRegex(ValueError, "reading only"):
            disk.update(torch.tensor([1]), torch.zeros(1, 16))
        with self.assertRaisesRegex(ValueError, "bytes, and"):
            Tensor(disk.storage, (10**9, 16), torch.float32, placement=PLACEMENT, device=disk.device)
        for shape in ((), (0, 4), (4, 0)):
            with self.assertRaises(ValueError):
                Tensor(disk.storage, shape, torch.float32)
        with self.assertRaisesRegex(ValueError, "opened for reading only"):
            Tensor(disk.storage, (10, 16), torch.float32, write=True)
        with self.assertRaisesRegex(ValueError, "gradient"):
            disk.gather(torch.tensor([1]), disk._empty((1, 16)), requires_grad=True)
        if ACCELERATOR == "cpu":
            with self.assertRaisesRegex(ValueError, "opened for cpu"):
                Tensor(disk.storage, (10, 16), torch.float32, device="cuda")
            with self.assertRaisesRegex(ValueError, "plain memory"):
                disk.gather(torch.tensor([1]), torch.empty(1, 16, device="meta"))
        with self.assertRaisesRegex(ValueError, "'cuda', 'cuda:1' or 'cpu'"):
            Tensor("sim:size=1MiB", (10, 16), torch.float32, device="meta")
        with self.assertRaises(TypeError):
            disk.__reduce__()

    def test_updates_are_seen_and_flushed(self) -> None:
        data = self.numbers(ROWS, 50)
        disk = self.disk(data, write=True)
        for _ in range(5):
            ids = torch.randperm(ROWS)[:200]
            rows = self.numbers(200, 50)
            disk.update(ids, rows)
            data[ids] = rows
            got = disk.gather(ids[:50])
            disk.synchronize()
            self.same(got, rows[:50])
        disk.flush()
        back = torch.empty(ROWS, 50)
        disk.storage.read(0, back)
        self.same(back, data)
        with self.assertRaisesRegex(ValueError, "rows is contiguous"):
            disk.update(torch.tensor([1]), torch.zeros(1, 16))

    def test_a_damaged_row_is_told(self) -> None:
        disk = self.disk(self.numbers(1000, 128), faults=",faults=status=media/unrecovered-read-error dnr on read lba=400")
        with self.assertRaises(gpunvme.TransferError):
            disk.gather(torch.tensor([400]))
            disk.synchronize()

    def test_what_is_wanted_often_comes_from_host_memory(self) -> None:
        data = self.numbers(2000, 128)
        disk = self.disk(data, cache_bytes="64KiB", host_bytes="1MiB")
        for _ in range(8):
            ids = torch.randint(0, 500, (400,))
            got = disk.gather(ids)
            disk.synchronize()
            self.same(got, data[ids])
        if ACCELERATOR == "gpu":
            self.assertGreater(disk.stats()["host_hits"], 0)

    def test_it_says_who_reads(self) -> None:
        disk = self.disk(self.numbers(100, 16))
        disk.gather(torch.arange(100))
        disk.synchronize()
        stats = disk.stats()
        self.assertEqual((stats["initiator"], disk.initiator), (ACCELERATOR, ACCELERATOR))
        self.assertIn(ACCELERATOR.upper(), repr(disk))
        if ACCELERATOR == "gpu":
            self.assertGreater(stats["reads"], 0)
            self.assertEqual(stats["read_failures"], 0)

    def test_what_is_prefetched_is_not_read_again(self) -> None:
        data = self.numbers(100, 16)
        disk = self.disk(data)
        ids = torch.arange(0, 100, 3)
        disk.prefetch(ids)
        disk.synchronize()
        before = disk.stats()
        got = disk.gather(ids)
        disk.synchronize()
        self.same(got, data[ids])
        if ACCELERATOR == "gpu":
            self.assertEqual(disk.stats()["reads"], before["reads"])

    def test_an_address_is_opened_and_closed(self) -> None:
        with gt.DiskTensor("sim:size=1MiB", (64, 64), torch.float32, write=True, placement=PLACEMENT, device=DEVICE) as disk:
            disk.update(torch.tensor([5]), torch.ones(1, 64))
            self.assertEqual(float(disk[5].sum()), 64)
            storage = disk.storage
        self.assertTrue(storage.closed)
        with self.assertRaises(gpunvme.ClosedError):
            disk.gather(torch.tensor([1]))


@needs_real
class GradientTest(DiskCase):
    def test_gradients_are_sparse_and_add_up(self) -> None:
        data = self.numbers(50, 8)
        disk = self.disk(data)
        embedding = torch.nn.Embedding.from_pretrained(data.clone(), freeze=False, sparse=True)
        for ids in (torch.tensor([1, 2, 1]), torch.tensor([[2, 49]])):
            rows = disk.gather(ids, requires_grad=True)
            disk.synchronize()
            rows.pow(2).sum().backward()
            embedding(ids).pow(2).sum().backward()
        assert disk.grad is not None and embedding.weight.grad is not None
        self.assertTrue(disk.grad.is_sparse)
        self.same(disk.grad.to_dense(), embedding.weight.grad.to_dense())
        disk.zero_grad()
        self.assertIsNone(disk.grad)
        self.assertFalse(disk.gather(torch.tensor([1])).requires_grad)

    def test_only_floating_point_has_gradients(self) -> None:
        disk = self.disk(self.numbers(50, 8, dtype=torch.int32))
        with self.assertRaisesRegex(ValueError, "floating point"):
            disk.gather(torch.tensor([1]), requires_grad=True)


@needs_real
class EmbeddingTest(DiskCase):
    def table(self, data: torch.Tensor, state: bool) -> gt.EmbeddingTable:
        weight = self.disk(data, write=True)
        with mock.patch("gpunvme._embedding.DiskTensor", lambda *_, **__: weight):
            return gt.EmbeddingTable(weight.storage, *data.shape, state=state)

    def trained(self, table: gt.EmbeddingTable, ours: Any, theirs: Any, embedding: torch.nn.Embedding) -> None:
        generator = torch.Generator().manual_seed(1)
        for _ in range(4):
            ids = torch.randint(0, table.num_embeddings, (30,), generator=generator)
            target = torch.randn(30, table.embedding_dim, generator=generator)
            got = table(ids)
            table.weight.synchronize()
            (got.cpu() if got.is_cuda else got).sub(target).pow(2).mean().backward()
            embedding(ids).sub(target).pow(2).mean().backward()
            ours.step()
            theirs.step()
            ours.zero_grad()
            theirs.zero_grad()
        table.flush()
        back = torch.empty_like(embedding.weight)
        table.weight.storage.read(0, back.detach())
        torch.testing.assert_close(back, embedding.weight.detach(), rtol=1e-6, atol=1e-6)

    def test_sgd_as_pytorchs(self) -> None:
        data = self.numbers(200, 12)
        table = self.table(data, state=False)
        embedding = torch.nn.Embedding.from_pretrained(data.clone(), freeze=False, sparse=True)
        self.trained(table, gt.SparseSGD([table], lr=0.5), torch.optim.SGD(embedding.parameters(), lr=0.5), embedding)
        self.assertEqual(list(table.parameters()), [])

    def test_adagrad_as_pytorchs(self) -> None:
        data = self.numbers(200, 12)
        table = self.table(data, state=True)
        embedding = torch.nn.Embedding.from_pretrained(data.clone(), freeze=False, sparse=True)
        theirs = torch.optim.Adagrad(embedding.parameters(), lr=0.5, lr_decay=0.1)
        self.trained(table, gt.SparseAdagrad([table], lr=0.5, lr_decay=0.1), theirs, embedding)

    def test_a_new_table_is_filled(self) -> None:
        table = self.table(self.numbers(300, 10), state=True)
        with mock.patch("gpunvme._embedding._CHUNK_BYTES", 4000):
            table.reset_parameters(std=2.0)
        assert table.state is not None
        weight, state = table.weight[:], table.state[:]
        table.weight.synchronize()
        table.state.synchronize()
        self.assertTrue(1.8 < float(weight.std()) < 2.2 and not state.any())
        self.assertEqual(gt.EmbeddingTable.nbytes(300, 10, state=True), 12288 + 12000)
        table.eval()
        self.assertFalse(table(torch.tensor([1])).requires_grad)

    def test_what_cannot_be_is_refused(self) -> None:
        table = self.table(self.numbers(20, 10), state=False)
        with self.assertRaisesRegex(ValueError, "state=True"):
            gt.SparseAdagrad([table])
        with self.assertRaises(ValueError):
            gt.SparseSGD([])
        with self.assertRaises(ValueError):
            gt.SparseSGD([table], lr=-1)


@needs_real
class FeatureStoreTest(DiskCase):
    def test_features_of_nodes(self) -> None:
        try:
            from gpunvme.pyg import FeatureStore
        except ImportError:
            self.skipTest("torch-geometric is not installed")
        data, labels = self.numbers(100, 16), torch.arange(100)
        disk = self.disk(data, write=True)
        store = FeatureStore()
        store.add(disk, "paper", "x")
        self.assertTrue(store.put_tensor(labels, group_name="paper", attr_name="y", index=None))
        ids = torch.tensor([5, 99, 5])
        got = store.get_tensor(group_name="paper", attr_name="x", index=ids)
        disk.synchronize()
        self.same(got, data[ids])
        self.same(store["paper", "y", ids], labels[ids])
        whole = store["paper", "x", None]
        disk.synchronize()
        self.same(whole, data)
        part = store["paper", "x", slice(3, 9, 2)]
        disk.synchronize()
        self.same(part, data[3:9:2])
        self.assertEqual(store.get_tensor_size(group_name="paper", attr_name="x"), (100, 16))
        self.assertEqual({(a.group_name, a.attr_name) for a in store.get_all_tensor_attrs()}, {("paper", "x"), ("paper", "y")})
        self.assertTrue(store.put_tensor(data[:2] + 1, group_name="paper", attr_name="x", index=torch.tensor([7, 8])))
        got = store["paper", "x", torch.tensor([8])]
        disk.synchronize()
        self.same(got, data[[1]] + 1)
        self.assertIsNone(store.get_tensor(group_name="author", attr_name="x", index=ids))
        self.assertFalse(store.put_tensor(labels, group_name="author", attr_name="x", index=ids))
        self.assertTrue(store.remove_tensor(group_name="paper", attr_name="x", index=None))
        self.assertFalse(disk.storage.closed)


@needs_real
class CacheTest(DiskCase):
    """The cache by itself, for kernels of others."""

    def cache(self, **options: Any) -> tuple[gpunvme.PageCache, gpunvme.Storage]:
        storage = self.device()
        kernels = gpunvme.KernelStorage(storage, PLACEMENT, queue_pairs=1, depth=32)
        self.addCleanup(kernels.close)
        cache = gpunvme.PageCache(kernels, "128KiB", **options)
        self.addCleanup(cache.close)
        return cache, storage

    def test_arrays_have_an_address(self) -> None:
        cache, storage = self.cache(page_bytes=512, timeout=1.5, counting=False, host_bytes="64KiB", verify=True)
        address = cache.array(storage, 8)
        self.assertTrue(address > 0 and address % 64 == 0)
        cache.kernels.free(address)
        with self.assertRaises(gpunvme.InvalidError):
            cache.array(storage, 12)
        counters = cache.counters()
        self.assertEqual((counters["bytes"], counters["host_bytes"], counters["acquires"], counters["reads"]), (131072, 65536, 0, 0))
        cache.close()
        self.assertTrue(cache.closed)
        with self.assertRaises(gpunvme.ClosedError):
            cache.counters()

    def test_numbers_are_looked_at(self) -> None:
        for options in ({"page_bytes": 0}, {"timeout": 0}, {"timeout": 3601}):
            with self.assertRaises(ValueError):
                self.cache(**options)
        with self.assertRaises(gpunvme.InvalidError):
            self.cache(page_bytes=1000)

    @on_the_stand_in
    def test_rows_need_a_gpu(self) -> None:
        cache, storage = self.cache()
        with self.assertRaisesRegex(gpunvme.InvalidError, "kernels of a GPU"):
            cache.rows(storage, 16)

    def test_lengths_are_compared(self) -> None:
        rows = types.SimpleNamespace(row_bytes=16, _count=gpunvme.Rows._count)
        with self.assertRaisesRegex(ValueError, "64-bit"):
            gpunvme.Rows._move(rows, None, bytes(12), bytearray(16), None)
        with self.assertRaisesRegex(ValueError, "2 rows of 16 bytes"):
            gpunvme.Rows._move(rows, None, bytes(16), bytearray(16), None)
