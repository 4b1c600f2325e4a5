"""Several GPUs in one process: by the stand-in's, which are the CPU, or by those of a machine that has two."""

from __future__ import annotations

import os
import sys
import unittest

from support import ACCELERATOR, Case

import gpunvme

try:
    import torch
except ImportError:
    torch = None  # type: ignore[assignment]

KINDS = ("file:", "sim:latency=0,file=")


def gpus() -> int:
    """How many there are: the last that can be opened tells."""
    count = 0
    while True:
        try:
            gpunvme.Storage("sim:size=1MiB", accelerator=f"gpu:{count}").close()
        except gpunvme.GpuNvmeError:
            return count
        count += 1


# Without a second GPU they are no tests, so that nothing is skipped.
TWO = ACCELERATOR == "gpu" and gpus() > 1
TORCH = torch is not None and torch.cuda.device_count() > 1


class Gpus(Case if TWO else object):  # type: ignore[misc]
    def setUp(self) -> None:
        super().setUp()
        self.data = os.urandom(1 << 20)
        self.file = self.folder() / "file"
        self.file.write_bytes(self.data)

    def test_each_is_named_by_its_number(self) -> None:
        for name in ("gpu:0", "gpu:1"):
            with gpunvme.Storage(self.file, accelerator=name) as storage:
                self.assertEqual(storage.accelerator, name)
                self.assertEqual(storage.allocate(16).accelerator, name)
                self.assertEqual(storage.allocate(16).__dlpack_device__(), (2, int(name[-1])))
        with self.assertRaisesRegex(gpunvme.InvalidError, "no GPU is 'gpu:99'; CUDA lists gpu:0 .*; gpu:1 "):
            gpunvme.Storage(self.file, accelerator="gpu:99")

    def test_reads_go_to_where_the_memory_is(self) -> None:
        for kind in KINDS:
            with gpunvme.Storage(kind + str(self.file), "gpu:0") as storage, storage.on("gpu:1") as other:
                self.assertEqual((storage.accelerator, other.accelerator), ("gpu:0", "gpu:1"))
                ours, theirs, host = storage.allocate(8192), other.allocate(8192), bytearray(8192)
                # The storage of the one reads into memory of the other.
                storage.read(100, theirs)
                self.assertEqual(theirs.tobytes(), self.data[100:8292])
                other.read(7, ours)
                self.assertEqual(ours.tobytes(), self.data[7:8199])
                storage.read_ranges([(0, ours), (10_000, theirs), (20_000, host)])
                request = storage.submit_read_ranges([(30_000, host), (0, ours), (10_000, theirs)])
                request.result()
                self.assertEqual(ours.tobytes(), self.data[:8192])
                self.assertEqual(theirs.tobytes(), self.data[10_000:18_192])
                self.assertEqual(bytes(host), self.data[30_000:38_192])
                late = storage.on("gpu:1")
            self.assertTrue(storage.closed)
            with self.assertRaises(gpunvme.GpuNvmeError):
                late.read(0, theirs)

    def test_writes_come_from_all_of_them(self) -> None:
        for kind in KINDS:
            with gpunvme.Storage(kind + str(self.file), "gpu:0", write=True) as storage:
                arrays = [storage.on(name).read_array(offset, 4096) for name, offset in (("gpu:0", 5000), ("gpu:1", 9000))]
                storage.write_ranges([(100_000, arrays[0]), (200_000, arrays[1])])
                storage.flush()
            data = self.file.read_bytes()
            self.assertEqual(data[100_000:104_096], self.data[5000:9096])
            self.assertEqual(data[200_000:204_096], self.data[9000:13_096])

    def tensors_of_the_second_are_filled_where_they_lie(self) -> None:
        from gpunvme.torch import DiskTensor, SampleDataset

        expected = torch.frombuffer(bytearray(self.data), dtype=torch.uint8)
        for kind in KINDS:
            with gpunvme.Storage(kind + str(self.file)) as storage:
                tensors = [torch.empty(65_536, dtype=torch.uint8, device=f"cuda:{i}") for i in range(2)]
                storage.read_ranges([(1000, tensors[0]), (2000, tensors[1])])
                self.assertTrue(torch.equal(tensors[0].cpu(), expected[1000:66_536]))
                self.assertTrue(torch.equal(tensors[1].cpu(), expected[2000:67_536]))
                with torch.cuda.device(1):
                    stream = torch.cuda.Stream()
                    into = torch.zeros(65_536, dtype=torch.uint8, device="cuda:1")
                    torch.cuda.synchronize()
                    with torch.cuda.stream(stream):
                        request = storage.submit_read(3000, into, stream=stream)
                        copy = into.clone()
                    stream.synchronize()
                    request.result()
                self.assertTrue(torch.equal(copy.cpu(), expected[3000:68_536]))
        samples = SampleDataset(self.file, sample_bytes=4096, device="cuda:1")
        for i, sample in enumerate(samples):
            self.assertEqual(sample.device, torch.device("cuda", 1))
            self.assertTrue(torch.equal(sample.cpu(), expected[4096 * i : 4096 * (i + 1)]))
        samples.close()
        # Kernels of both on one SSD.
        with gpunvme.Storage("sim:latency=0,file=" + str(self.file), "gpu:0") as ssd:
            disks = [DiskTensor(ssd, (4096, 64), torch.float32, cache_bytes="1MiB", device=f"cuda:{i}") for i in range(2)]
            rows = expected.view(torch.float32).view(4096, 64)
            for _ in range(20):
                ids = [torch.randint(4096, (1000,), device=f"cuda:{i}") for i in range(2)]
                got = [disk.gather(i) for disk, i in zip(disks, ids, strict=True)]
                for g, i in zip(got, ids, strict=True):
                    self.assertEqual(g.device, i.device)
                    self.assertTrue(torch.equal(g.cpu().view(torch.uint8), rows[i.cpu()].view(torch.uint8)))
            for disk in disks:
                disk.close()

    if TORCH:
        test_tensors_of_the_second_are_filled_where_they_lie = tensors_of_the_second_are_filled_where_they_lie


if __name__ == "__main__":
    sys.exit(unittest.main())
