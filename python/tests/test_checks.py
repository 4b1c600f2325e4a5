"""Numbers that ctypes would cut, and types: refused before the C library sees them."""

from __future__ import annotations

import unittest
from collections.abc import Callable
from typing import Any

from support import ACCELERATOR, Case, make_model

import gpunvme
from gpunvme import _checks
from gpunvme.memory import region, stream_handle

try:
    import gpunvme.torch as gt
except ImportError:
    gt = None  # type: ignore[assignment]

NO_UNSIGNED = (-1, 2**64, 2**64 + 512, 0.5, "1", float("nan"))
NO_INT32 = (-(2**31) - 1, 2**31, 2**32 + 1, 0.5)


class ChecksTest(Case):
    def refused(self, wrong: tuple[Any, ...], *uses: Callable[[Any], object]) -> None:
        for i, use in enumerate(uses):
            for number in wrong:
                with self.subTest(use=i, number=number), self.assertRaises(ValueError):
                    use(number)

    def test_whole_numbers(self) -> None:
        for number in (0, 7, 7.0, True, 2**64 - 1):
            self.assertEqual(_checks.unsigned(number, "it"), number)
        self.assertIs(type(_checks.unsigned(7.0, "it")), int)
        self.assertEqual(_checks.signed(-(2**31), "it"), -(2**31))
        self.refused(NO_UNSIGNED, lambda n: _checks.unsigned(n, "it"))
        self.refused(NO_INT32, lambda n: _checks.signed(n, "it"))
        with self.assertRaises(TypeError):
            _checks.unsigned(None, "it")

    def test_sizes_of_types(self) -> None:
        sizes = {"<f4": 4, "|u1": 1, ">c16": 16, "<M8[ns]": 8, "<m8[25us]": 8, "|S7": 7, "<U3": 12, "|V10": 10, "=i2": 2}
        for typestr, size in sizes.items():
            self.assertEqual(_checks.item_bytes(typestr), size)
        for wrong in ("f4", "<f", "<f0", "<f4 ", "<f-4", "|O8", "<f4,<f4", "", "|t3", "<M8[ns", "<f1e3"):
            self.assertIsNone(_checks.item_bytes(wrong), wrong)

    def test_storage(self) -> None:
        storage = self.device()
        into = bytearray(512)
        self.refused(
            NO_UNSIGNED,
            lambda n: storage.read(n, into),
            lambda n: storage.read(0, into, n),
            lambda n: storage.submit_read(n, into),
            lambda n: storage.submit_read(n, into, stream=1),
            lambda n: storage.submit_read(0, into, stream=n),
            lambda n: storage.write(n, b"x"),
            lambda n: storage.plan([(n, into)]),
            lambda n: storage.allocate(n),
            lambda n: storage.allocate(4, shape=(n, 4)),
            lambda n: storage.read_array(n, 4),
            lambda n: storage.read_array(0, n),
        )
        with self.assertRaises(ValueError):
            storage.read(2**63, into)  # the library's: it counts no further
        with self.assertRaises(ValueError):
            gpunvme.Storage("sim:size=1MiB", ACCELERATOR + "\0")

    def test_addresses_and_streams(self) -> None:
        class Array:
            __cuda_array_interface__ = {"shape": (4,), "typestr": "|u1", "data": (2**64 + 4096, False), "version": 3}

        with self.assertRaises(ValueError):
            region(Array(), writable=True)
        self.refused((-1, 2**64, 0.5, "1"), stream_handle)

    def test_kinds(self) -> None:
        with gpunvme.Kinds(self.device()) as kinds:
            kinds.add(1, 0, 5120, 512)
            into = bytearray(5120)
            self.refused(
                NO_UNSIGNED,
                lambda n: kinds.add(2, n, 512, 512),
                lambda n: kinds.add(2, 0, n, 512),
                lambda n: kinds.add(2, 0, 512, n),
                lambda n: kinds.read(1, n, 1, into),
                lambda n: kinds.read(1, 0, n, into),
                lambda n: kinds.read_many([(1, 0, 1), (1, n, 1)], into),
                lambda n: kinds.read_many([(1, 0, n)], into),
            )
            self.refused(NO_INT32, lambda n: kinds.add(n, 0, 512, 512), lambda n: kinds.read(n, 0, 1, into))
            self.refused((2**32 + 1,), lambda n: kinds.read(n, 0, 1, into))  # which is 1 in 32 bits

    def test_layers(self) -> None:
        storage = self.device()
        self.refused(NO_UNSIGNED, lambda n: gpunvme.LayerLoader(storage, n, 2))
        self.refused((-1, 2**32 + 2, 0.5), lambda n: gpunvme.LayerLoader(storage, 4096, n))
        with gpunvme.LayerLoader(storage, 4096, 2) as loader:
            into = storage.allocate(512)
            self.refused(
                NO_UNSIGNED,
                lambda n: loader.load(n, into),
                lambda n: loader.load(0, into, n),
                lambda n: loader.prefetch([(n, 512)]),
                lambda n: loader.prefetch([(0, n)]),
            )

    def test_blocks(self) -> None:
        with gpunvme.NVMeGPU("sim:size=1MiB", ACCELERATOR) as nvme:
            into = bytearray(512)
            self.refused((-1, 2**56, 0.3), lambda n: nvme.read(n, 1, into), lambda n: nvme.read(0, n, into))
            self.refused((0.5,), lambda n: nvme.read(n, 1, into), lambda n: nvme.write_async(0, n, into))
        self.refused((-512, 0, 0.5), lambda n: gpunvme.NVMeGPU("sim:size=1MiB", ACCELERATOR, block_bytes=n))

    def test_weights(self) -> None:
        path = make_model(self.folder() / "m.safetensors", {"a": ("U8", (6, 10), bytes(60))})
        with gpunvme.Weights(path, ACCELERATOR) as weights:
            for part in ((0, 1, 2.5), (0, 0.5, 2), (2**32, 0, 1), (0, -1, 2), (0, 0, 2**64 + 1)):
                with self.subTest(part), self.assertRaises((ValueError, IndexError)):
                    weights.read([("a", bytearray(60), gpunvme.Slice(*part))])  # type: ignore[arg-type]

    @unittest.skipIf(gt is None, "torch is not installed")
    def test_torch(self) -> None:
        import torch

        storage = self.device()
        self.refused(
            (-1, 0, 0.5), lambda n: gt.read_into_tensor(torch.empty(1), storage=storage, block_bytes=n)
        )
        self.refused(
            (-1, 2**64, 0.5),
            lambda n: gt.read_into_tensor(torch.empty(1), n, storage),
            lambda n: gt.SampleDataset("file", sample_bytes=n),
            lambda n: gt.SampleDataset("file", sample_bytes=1, offset=n),
            lambda n: gt.SampleDataset("file", sample_bytes=1, count=n),
        )
        path = self.folder() / "file"
        path.write_bytes(bytes(100))
        for offsets, lengths in (([0.5], [1]), ([0], [1.5]), ([0], [-1]), ([2**64], [1])):
            dataset = gt.SampleDataset(path, offsets=offsets, lengths=lengths, device="cpu")  # type: ignore[arg-type]
            self.addCleanup(dataset.close)
            with self.assertRaises(ValueError):
                list(dataset)
