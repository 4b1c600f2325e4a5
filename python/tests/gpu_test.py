"""Tensors and arrays in GPU memory, compared there. For machines with a GPU; ../../test.d/python.sh runs it on these.

It needs PyTorch; what is about CuPy skips without it. The address of the device is GPUNVME_TEST_DEVICE, or an embedded SSD.
"""

from __future__ import annotations

import asyncio
import gc
import os
import threading
import time
import unittest
import warnings
from typing import Any

from support import Case, make_model, run, seeded

import gpunvme

try:
    import torch
except ImportError:
    raise unittest.SkipTest("torch is not installed") from None
if not torch.cuda.is_available():
    raise unittest.SkipTest("PyTorch sees no GPU")
try:
    import cupy
except ImportError:
    cupy = None

import torch.distributed.checkpoint as dcp  # noqa: E402

import gpunvme.torch as gt  # noqa: E402
import pycuda_nvme  # noqa: E402
import torch_nvme  # noqa: E402
from gpunvme.torch.checkpoint import StorageReader, StorageWriter  # noqa: E402

SIZE = 64 << 20
DEVICE = os.environ.get("GPUNVME_TEST_DEVICE", f"sim:size={SIZE}")


class OnlyDlpack:
    """A tensor that shows itself by DLPack and by nothing else."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor

    def __dlpack_device__(self) -> Any:
        return self.tensor.__dlpack_device__()

    def __dlpack__(self, *, stream: Any = None) -> Any:
        return self.tensor.__dlpack__(stream=stream)


class GpuTest(Case):
    def setUp(self) -> None:
        self.storage = gpunvme.Storage(DEVICE, "gpu", write=True)
        self.addCleanup(self.storage.close)
        self.assertTrue(self.storage.on_gpu)
        data = seeded(self).randbytes(SIZE)
        self.storage.write(0, data)
        self.data = torch.frombuffer(bytearray(data), dtype=torch.uint8).cuda()

    def same(self, seen: torch.Tensor, offset: int = 0) -> None:
        """Compared on the GPU."""
        flat = seen.contiguous().view(-1).view(torch.uint8)
        self.assertTrue(flat.is_cuda)
        self.assertTrue(torch.equal(flat, self.data[offset : offset + flat.numel()]))

    def test_tensors(self) -> None:
        for dtype in (torch.uint8, torch.float16, torch.bfloat16, torch.float32, torch.int64):
            for elements in (1, 777, 1 << 20):
                tensor = torch.empty(elements, dtype=dtype, device="cuda")
                self.storage.read(12_345, tensor)
                self.same(tensor, 12_345)
        whole = torch.empty(SIZE, dtype=torch.uint8, device="cuda")
        self.assertIs(gt.read_into_tensor(whole, storage=self.storage), whole)
        self.same(whole)

    def test_writes(self) -> None:
        tensor = torch.randint(0, 255, (5 << 20,), dtype=torch.uint8, device="cuda")
        self.storage.write(4096, tensor)
        back = torch.zeros_like(tensor)
        self.storage.read(4096, back)
        self.assertTrue(torch.equal(tensor, back))

    def test_parts_of_tensors(self) -> None:
        matrix = torch.zeros(100, 1000, dtype=torch.uint8, device="cuda")
        self.storage.read(3, matrix[10:20])
        self.same(matrix[10:20], 3)
        self.assertEqual(int(matrix[:10].sum()) + int(matrix[20:].sum()), 0)
        with self.assertRaises(BufferError):
            self.storage.read(0, matrix[:, 10:20])

    def test_memory_that_is_at_work_is_waited_for(self) -> None:
        # What a dropped tensor had comes back at once, with work of the stream in it still.
        for _ in range(20):
            busy = torch.empty(1 << 26, dtype=torch.uint8, device="cuda")
            for _ in range(50):
                busy.fill_(7)
            del busy
            tensor = torch.empty(1 << 26, dtype=torch.uint8, device="cuda")
            self.storage.read(0, tensor, SIZE)
            self.same(tensor[:SIZE])

    def test_ranges_and_requests(self) -> None:
        pieces = [torch.empty(n, dtype=torch.uint8, device="cuda") for n in (1, 4096, 99_999)]
        self.storage.read_ranges([(i * 1_000_000 + 1, p) for i, p in enumerate(pieces)])
        requests = [self.storage.submit_read(77, torch.empty(1 << 20, dtype=torch.uint8, device="cuda")) for _ in range(8)]
        for i, piece in enumerate(pieces):
            self.same(piece, i * 1_000_000 + 1)
        for request in requests:
            self.assertEqual(request.result(), 1 << 20)

        async def main() -> None:
            tensor = torch.empty(1 << 20, dtype=torch.uint8, device="cuda")
            self.assertEqual(await self.storage.submit_read(5, tensor), 1 << 20)
            self.same(tensor, 5)

        asyncio.run(main())

    def test_in_the_order_of_a_stream(self) -> None:
        stream = torch.cuda.Stream()
        tensor = torch.empty(8 << 20, dtype=torch.uint8, device="cuda")
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            request = self.storage.submit_read(999, tensor, stream=stream)
            copy = tensor.clone()
            tensor.zero_()
        self.assertEqual(request.result(), 8 << 20)
        stream.synchronize()
        self.same(copy, 999)
        with torch.cuda.stream(stream):
            tensor.fill_(9)
            request = self.storage.submit_write(0, tensor, 4096, stream=stream)
        request.result()
        back = torch.empty(4096, dtype=torch.uint8, device="cuda")
        self.storage.read(0, back)
        self.assertTrue(bool((back == 9).all()))

    def test_in_the_order_of_the_default_stream(self) -> None:
        tensor = torch.empty(8 << 20, dtype=torch.uint8, device="cuda")
        for stream in (torch.cuda.default_stream(), 0):
            request = self.storage.submit_read(999, tensor, stream=stream)
            copy = tensor.clone()
            tensor.zero_()
            self.assertEqual(request.result(), 8 << 20)
            self.same(copy, 999)

    def test_arrays_of_nothing(self) -> None:
        array = self.storage.allocate(0, "<f4", (3, 0))
        for seen in (torch.from_dlpack(array), torch.as_tensor(array, device="cuda")):
            self.assertEqual(tuple(seen.shape), (3, 0))

    def test_arrays_outlive_the_handlers_of_the_end(self) -> None:
        done = run(
            """
            import atexit
            atexit.register(lambda: print(seen.cpu().tolist(), len(array.tobytes())))
            import gpunvme, torch
            storage = gpunvme.Storage("sim:size=1MiB", "gpu", write=True)
            storage.write(0, b"abcd")
            array = storage.read_array(0, 4096)
            seen = torch.from_dlpack(array)[:4]
            storage.close()
            """
        )
        self.assertEqual((done.returncode, done.stdout), (0, "[97, 98, 99, 100] 4096\n"), done.stderr)

    def test_dlpack(self) -> None:
        tensor = torch.empty(1000, 33, device="cuda")
        self.storage.read(512, OnlyDlpack(tensor))
        self.same(tensor, 512)

    def test_addresses(self) -> None:
        tensor = torch.empty(4096, dtype=torch.uint8, device="cuda")
        torch.cuda.synchronize()
        self.storage.read(1, tensor.data_ptr(), 4096)
        self.same(tensor, 1)

    def test_host_memory(self) -> None:
        tensor = torch.empty(100_000, dtype=torch.uint8)
        self.storage.read(7, tensor)
        self.same(tensor.cuda(), 7)
        pinned = torch.empty(100_000, dtype=torch.uint8).pin_memory()
        self.storage.read(7, pinned)
        self.same(pinned.cuda(), 7)

    def test_arrays(self) -> None:
        array = self.storage.read_array(100, 4096, "<f4", (32, 32))
        for seen in (torch.from_dlpack(array), torch.as_tensor(array, device="cuda")):
            self.assertEqual((seen.data_ptr(), tuple(seen.shape)), (array.address, (32, 32)))
            self.same(seen, 100)
        kept = torch.from_dlpack(array)
        del array, seen
        self.storage.close()
        gc.collect()
        self.same(kept, 100)

    @unittest.skipIf(cupy is None, "cupy is not installed")
    def test_cupy(self) -> None:
        array = cupy.zeros((100, 100), cupy.float32)
        self.storage.read(31, array)
        self.same(torch.from_dlpack(array), 31)
        with cupy.cuda.Stream(non_blocking=True) as stream:
            request = self.storage.submit_read(62, array, stream=stream)
            copy = array.copy()
            request.result()
            stream.synchronize()
        self.same(torch.from_dlpack(copy), 62)
        self.same(torch.from_dlpack(cupy.asarray(self.storage.read_array(5, 1000))), 5)

    def test_threads(self) -> None:
        seed = seeded(self).randrange(1 << 30)
        wrong: list[BaseException] = []

        def work(number: int) -> None:
            import random

            mine = random.Random(seed + number)
            try:
                for _ in range(30):
                    length = mine.randrange(1, 1 << 20)
                    offset = mine.randrange(SIZE - length)
                    tensor = torch.empty(length, dtype=torch.uint8, device="cuda")
                    self.storage.read(offset, tensor)
                    self.same(tensor, offset)
            except BaseException as e:
                wrong.append(e)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(24)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_others_take_memory_and_load_kernels_meanwhile(self) -> None:
        # The driver waits for kernels then: one that waited for the embedded SSD's copies stood until its commands timed out, 30 s.
        whole = torch.empty(SIZE, dtype=torch.uint8, device="cuda")
        over = threading.Event()
        wrong: list[BaseException] = []
        # Code that was not loaded yet.
        kernels: Any = iter((torch.erfinv, torch.lgamma, torch.digamma, torch.special.i0e, torch.trace, torch.median, torch.frac))

        def work() -> None:
            try:
                while not over.is_set():
                    next(kernels, torch.sin)(torch.ones(3, 3, device="cuda"))
                    torch.empty(32 << 20, dtype=torch.uint8, device="cuda")
                    torch.cuda.empty_cache()
            except BaseException as e:
                wrong.append(e)

        thread = threading.Thread(target=work)
        began = time.monotonic()
        thread.start()
        try:
            for _ in range(30):
                self.storage.read(0, whole)
        finally:
            over.set()
            thread.join()
        self.assertLess(time.monotonic() - began, 25)
        self.assertEqual(wrong, [])
        self.same(whole)
        if DEVICE.startswith("sim:"):
            self.assertIn("by way of host memory, because other code uses CUDA", self.storage.explain())

    def test_the_first_proposals_snippets(self) -> None:
        image = self.folder() / "image"
        image.write_bytes(bytes(self.data.cpu().tolist()))
        device = f"sim:file={image}"
        nvme = pycuda_nvme.NVMeGPU(device)
        data = nvme.read_to_gpu(lba=0, size_mb=10)
        self.same(torch.as_tensor(data, device="cuda"))
        gpu_buffer = torch.zeros(1024 * 512, dtype=torch.uint8, device="cuda")
        torch.cuda.synchronize()
        nvme.read(lba=100, count=1024, gpu_ptr=gpu_buffer.data_ptr())
        self.same(gpu_buffer, 100 * 512)
        nvme.close()  # the memory lives on
        storage = torch_nvme.open(device)
        self.addCleanup(storage.close)
        tensor = torch.empty(1024, 1024, device="cuda")
        torch_nvme.read_into_tensor(tensor, lba=0)
        self.same(tensor)
        self.same(torch.as_tensor(data, device="cuda"))


class GpuModelTest(Case):
    def test_load_file(self) -> None:
        random = seeded(self)
        tensors = {
            "w": ("F32", (600, 1000), random.randbytes(2_400_000)),
            "h": ("BF16", (33,), random.randbytes(66)),
            "none": ("F16", (0, 5), b""),
        }
        path = make_model(self.folder() / "m.safetensors", tensors)
        on_gpu, on_cpu = gt.load_file(path), gt.load_file(path, "cpu")
        for name, (_, shape, data) in tensors.items():
            self.assertTrue(on_gpu[name].is_cuda)
            self.assertEqual(tuple(on_gpu[name].shape), shape)
            if data:
                expected = torch.frombuffer(bytearray(data), dtype=torch.uint8).cuda()
                self.assertTrue(torch.equal(on_gpu[name].view(-1).view(torch.uint8), expected))
                self.assertTrue(torch.equal(on_cpu[name].view(-1).view(torch.uint8), expected.cpu()))
        with gt.safe_open(path, device="cuda") as model:
            part = model.get_slice("w")[100:200, 3:500]
            self.assertTrue(torch.equal(part.view(torch.int32), on_gpu["w"][100:200, 3:500].view(torch.int32)))

    def test_samples(self) -> None:
        path = self.folder() / "samples"
        path.write_bytes(b"".join(i.to_bytes(4, "little") * 1024 for i in range(500)))
        dataset = gt.SampleDataset(path, sample_bytes=4096, dtype=torch.int32, seed=5)
        self.addCleanup(dataset.close)
        seen = torch.stack(list(dataset))
        self.assertTrue(seen.is_cuda)
        self.assertTrue(bool((seen == seen[:, :1]).all()))
        self.assertEqual(sorted(seen[:, 0].tolist()), list(range(500)))


class GpuCheckpointTest(Case):
    """What python/tests/test_checkpoint.py does with tensors in host memory."""

    def setUp(self) -> None:
        quiet = warnings.catch_warnings()
        quiet.__enter__()
        self.addCleanup(quiet.__exit__, None, None, None)
        warnings.simplefilter("ignore")

    def state(self, seed: int, device: str = "cuda") -> dict[str, Any]:
        g = torch.Generator(device).manual_seed(seed)
        integers = {n: torch.randint(-9999, 9999, n, dtype=torch.int16, device=device, generator=g) for n in ((50_000_000,), (700, 5000), (3,))}
        rows = integers[700, 5000]
        return {
            "large": integers[50_000_000,].view(torch.bfloat16),
            "rows": rows,
            "turned": rows.t(),
            "part": rows[:, 100:4000],
            "small": integers[3,],
            "scalar": torch.tensor(float(seed), device=device),
            "host": rows.cpu() + seed,
            "object": {"epoch": seed},
        }

    def assert_same(self, a: dict[str, Any], b: dict[str, Any]) -> None:
        for name, tensor in a.items():
            if not isinstance(tensor, torch.Tensor):
                self.assertEqual(tensor, b[name])
                continue
            self.assertEqual((tensor.device, tensor.dtype, tensor.shape), (b[name].device, b[name].dtype, b[name].shape), name)
            x, y = (t.contiguous().view(-1).view(torch.uint8) for t in (tensor, b[name]))
            self.assertTrue(torch.equal(x, y), name)

    def test_round_trips(self) -> None:
        state = self.state(1)
        ours: list[dict[str, Any]] = [{}, {"direct": False, "threads": 1}, {"staging_bytes": "1MiB", "threads": 2, "checksums": True}]
        writers = [(lambda f: dcp.FileSystemWriter(f), StorageReader)]
        writers += [(lambda f, o=o: StorageWriter(f, **o), reader) for o in ours for reader in (StorageReader, dcp.FileSystemReader)]
        for write, read in writers:
            folder = self.folder()
            writer, reader, loaded = write(folder), read(folder), self.state(2)
            dcp.save(state, storage_writer=writer, no_dist=True)
            dcp.load(loaded, storage_reader=reader, no_dist=True)
            with self.subTest(writer=type(writer).__name__, reader=read.__name__):
                self.assert_same(state, loaded)
                if isinstance(writer, StorageWriter):
                    self.assertGreater(writer.report.bytes_from_gpu, 100_000_000)
                if isinstance(reader, StorageReader):
                    self.assertGreater(reader.report.bytes_direct, 100_000_000)
                    self.assertIn("pieces shorter than 4096 bytes", reader.report.staged_why)

    def test_work_of_the_callers_stream_is_waited_for(self) -> None:
        folder = self.folder()
        tensor = torch.zeros(30_000_000, device="cuda")
        torch.cuda.synchronize()
        with torch.cuda.stream(torch.cuda.Stream()):
            torch.cuda._sleep(200_000_000)
            tensor.fill_(7)
            dcp.save({"t": tensor}, storage_writer=StorageWriter(folder), no_dist=True)
            torch.cuda._sleep(200_000_000)
            tensor.fill_(1)
            dcp.load({"t": tensor}, storage_reader=StorageReader(folder), no_dist=True)
        self.assertTrue(bool((tensor == 7).all()))

    def test_other_types(self) -> None:
        folder = self.folder()
        source = torch.randn(1000, 3000, device="cuda")
        dcp.save({"t": source}, storage_writer=StorageWriter(folder), no_dist=True)
        target = torch.zeros(1000, 3000, device="cuda", dtype=torch.bfloat16)
        reader = StorageReader(folder)
        dcp.load({"t": target}, storage_reader=reader, no_dist=True)
        self.assertTrue(torch.equal(target, source.bfloat16()))
        self.assertEqual(reader.report.bytes_staged, 12_000_000)

    def test_asynchronous_saves(self) -> None:
        state, folders = self.state(1), [self.folder(), self.folder()]
        writer = StorageWriter(folders[0])
        for number, folder in enumerate(folders):
            future = dcp.async_save(state, storage_writer=writer, checkpoint_id=folder, no_dist=True)
            state["small"].add_(1)
            state["large"].zero_()
            future.result()
            self.assertEqual(writer.report.bytes_from_gpu, 0, number)
        for number, folder in enumerate(folders):
            loaded = self.state(2)
            dcp.load(loaded, storage_reader=StorageReader(folder), no_dist=True)
            expected = self.state(1)
            expected["small"].add_(number)
            if number:
                expected["large"].zero_()
            self.assert_same(expected, loaded)
        self.assertTrue(writer.stage(state)["large"].is_pinned())

    def test_other_gpus(self) -> None:
        if torch.cuda.device_count() < 2:
            self.skipTest("there is one GPU")
        folder, state = self.folder(), self.state(1, "cuda:1")
        dcp.save(state, storage_writer=StorageWriter(folder), no_dist=True)
        loaded, reader = self.state(2, "cuda:1"), StorageReader(folder)
        dcp.load(loaded, storage_reader=reader, no_dist=True)
        self.assert_same(state, loaded)
        self.assertGreater(reader.report.bytes_direct, 0)
        self.assertNotIn("cuda:1", str(reader.report.staged_why))


class GpuLayerTest(Case):
    def test_layers(self) -> None:
        with gpunvme.Storage("sim:size=8MiB", "gpu", write=True) as storage:
            data = seeded(self).randbytes(8 << 20)
            storage.write(0, data)
            whole = torch.frombuffer(bytearray(data), dtype=torch.uint8).cuda()
            stream = torch.cuda.Stream()
            layers = [(i * 1_000_000, 900_000 + i) for i in range(8)]
            with gpunvme.LayerLoader(storage, 1 << 20, 3) as loader:
                loader.prefetch(layers)
                for offset, length in layers:
                    layer = loader.next(stream)
                    assert layer is not None
                    with torch.cuda.stream(stream):
                        seen = torch.as_tensor(layer, device="cuda").clone()
                    stream.synchronize()
                    self.assertTrue(torch.equal(seen, whole[offset : offset + length]))
                # The default stream's handle is 0. Slots are not used again while it is at work in them.
                loader.prefetch(layers)
                copies = []
                busy = torch.empty(1 << 28, dtype=torch.uint8, device="cuda")
                for _ in layers:
                    layer = loader.next(torch.cuda.default_stream())
                    assert layer is not None
                    for _ in range(20):
                        busy.fill_(7)
                    copies.append(torch.as_tensor(layer, device="cuda").clone())
                for (offset, length), seen in zip(layers, copies):
                    self.assertTrue(torch.equal(seen, whole[offset : offset + length]))
                loader.prefetch(layers[:2])
                for (offset, length), layer in zip(layers, loader):
                    self.assertTrue(torch.equal(torch.as_tensor(layer, device="cuda"), whole[offset : offset + length]))

    def test_the_last_layer_that_failed_is_told_at_the_end(self) -> None:
        bad = "sim:size=4MiB,faults=status=media/unrecovered-read on read lba=4096..4100"
        stream = torch.cuda.Stream()
        with gpunvme.Storage(bad, "gpu") as storage:
            loader = gpunvme.LayerLoader(storage, 1 << 20, 3)
            loader.prefetch([(0, 1 << 20), (2 << 20, 1 << 20)])
            with self.assertRaises(gpunvme.TransferError):
                with loader:
                    loader.next(stream)
                    loader.next(stream)  # fails here if it has failed already
            stream.synchronize()
