"""Kinds, layers, weights, and the first proposals' interface."""

from __future__ import annotations

import ctypes
import os
import threading
from unittest import mock

from support import ACCELERATOR, Case, make_model, needs_fake, needs_real, on_the_stand_in, seeded

import gpunvme
import pycuda_nvme


class KindsTest(Case):
    def test_read(self) -> None:
        storage, data = self.filled()
        with gpunvme.Kinds(storage) as kinds:
            kinds.add(1, 0, 51200, 512)
            kinds.add(7, 60_000, 800, 8)
            into = bytearray(1024)
            self.assertEqual(kinds.read(1, 3, 2, into), 1024)
            self.assertEqual(into, data[1536:2560])
            many = storage.allocate(3 * 512 + 16)
            self.assertEqual(kinds.read_many([(1, 99, 1), (7, 98, 2), (1, 0, 2)], many), 1552)
            expected = data[99 * 512 : 100 * 512] + data[60_000 + 98 * 8 : 60_800] + data[:1024]
            self.assertEqual(many.tobytes(), expected)
            self.assertEqual(kinds.read_many([], many), 0)

    def test_refuses(self) -> None:
        with gpunvme.Kinds(self.device()) as kinds:
            kinds.add(1, 0, 1024, 512)
            with self.assertRaises(gpunvme.InvalidError):
                kinds.add(2, 0, 1000, 512)
            with self.assertRaises(gpunvme.NotFoundError):
                kinds.read(5, 0, 1, bytearray(512))
            with self.assertRaises(gpunvme.InvalidError):
                kinds.read(1, 1, 2, bytearray(1024))
            with self.assertRaises(ValueError):
                kinds.read(1, 0, 2, bytearray(1023))
            with self.assertRaises(gpunvme.InvalidError):
                kinds.add(1, 0, 1024, 4)
            with self.assertRaises(ValueError):
                kinds.read(1, 0, -1, bytearray(512))
        with self.assertRaises(gpunvme.ClosedError):
            kinds.read(1, 0, 1, bytearray(512))

    def test_memory_has_room_whatever_is_known_of_elements(self) -> None:
        with gpunvme.Kinds(self.filled()[0]) as kinds:
            kinds.add(1, 0, 51200, 512)
            kinds._elements[1] = 8  # less than the library knows
            into = bytearray(64)
            with self.assertRaises(gpunvme.InvalidError):
                kinds.read(1, 0, 4, memoryview(into)[:32])
            self.assertEqual(into, bytes(64))

    def test_adding_beside_reading(self) -> None:
        storage, data = self.filled()
        wrong: list[BaseException] = []
        with gpunvme.Kinds(storage) as kinds:

            def read(number: int) -> None:
                while True:
                    into = bytearray(8)
                    try:
                        if kinds.read(number, 3, 1, into) == 8 and into == data[24:32]:
                            return
                        wrong.append(AssertionError(into))
                        return
                    except gpunvme.NotFoundError:
                        continue
                    except BaseException as e:
                        wrong.append(e)
                        return

            threads = [threading.Thread(target=read, args=(n,)) for n in range(10)]
            for thread in threads:
                thread.start()
            for number in range(10):
                kinds.add(number, 0, 800, 8)
            for thread in threads:
                thread.join()
        self.assertEqual(wrong, [])


class LayerTest(Case):
    def test_in_the_order_named(self) -> None:
        storage, data = self.filled()
        random = seeded(self)
        layers = [(offset, random.randrange(1, 4097)) for offset in random.sample(range(1_000_000), 20)]
        with gpunvme.LayerLoader(storage, 4096, 3) as loader:
            loader.prefetch(layers)
            seen = [layer.tobytes() for layer in loader]
            self.assertEqual(seen, [data[o : o + n] for o, n in layers])
            self.assertIsNone(loader.next())
            into = storage.allocate(4096)
            self.assertEqual(loader.load(4096, into), 4096)
            self.assertEqual(into.tobytes(), data[4096:8192])
        with self.assertRaises(gpunvme.ClosedError):
            loader.next()

    @on_the_stand_in
    def test_the_default_stream_is_a_stream(self) -> None:
        class Default:
            cuda_stream = 0

        with gpunvme.LayerLoader(self.device(), 4096, 2) as loader:
            loader.prefetch([(0, 4096)])
            for stream in (Default(), 0, 1):
                with self.assertRaises(gpunvme.UnsupportedError):  # there are none without a GPU
                    loader.next(stream)

    def test_layers_of_a_closed_loader(self) -> None:
        storage = self.device()
        for closed in (True, False):
            loader = gpunvme.LayerLoader(storage, 4096, 2)
            loader.prefetch([(0, 4096)])
            layer = loader.next()
            assert layer is not None
            view = layer.view("<f4")
            (loader if closed else storage).close()
            for gone in (layer, view):
                with self.assertRaises(gpunvme.ClosedError):
                    gone.tobytes()

    @needs_fake
    def test_a_layer_that_failed_is_told_at_the_end(self) -> None:
        with gpunvme.Storage("fake:size=1MiB,untold=-4") as storage:
            loader = gpunvme.LayerLoader(storage, 4096, 2)
            with self.assertRaisesRegex(OSError, "the last layer"):
                loader.close()
            loader.close()
            with self.assertRaisesRegex(OSError, "the last layer"):
                with gpunvme.LayerLoader(storage, 4096, 2):
                    pass
            with self.assertRaises(KeyboardInterrupt):  # which is worth more
                with gpunvme.LayerLoader(storage, 4096, 2):
                    raise KeyboardInterrupt

    def test_refuses(self) -> None:
        storage = self.device()
        for depth in (0, 1025):
            with self.assertRaises(gpunvme.InvalidError):
                gpunvme.LayerLoader(storage, 4096, depth)
        with gpunvme.LayerLoader(storage, 4096, 2) as loader:
            with self.assertRaises(gpunvme.InvalidError):
                loader.prefetch([(0, 4097)])


class WeightsTest(Case):
    def test_read(self) -> None:
        random = seeded(self)
        a, b = random.randbytes(6 * 10 * 4), random.randbytes(100)
        path = make_model(
            self.folder() / "m.safetensors",
            {"a": ("F32", (6, 10), a), "b": ("U8", (100,), b), "none": ("F32", (0, 3), b"")},
            made="here",
        )
        with gpunvme.Weights(path, ACCELERATOR) as weights:
            self.assertEqual(list(weights.tensors), ["a", "b", "none"])
            self.assertEqual(weights.info("a"), gpunvme.TensorInfo("a", "F32", (6, 10), 240, "m.safetensors", path.stat().st_size - 340))
            self.assertEqual(weights.files, ("m.safetensors",))
            self.assertEqual(dict(weights.metadata), {"made": "here"})
            whole, part, rows = bytearray(240), bytearray(30), bytearray(80)
            columns = bytearray(6 * 3 * 4)
            moved = weights.read(
                [
                    ("a", whole),
                    ("b", part, gpunvme.Slice(0, 10, 40)),
                    ("a", rows, gpunvme.Slice(0, 2, 4)),
                    ("a", columns, gpunvme.Slice(1, 4, 7)),
                    ("none", bytearray()),
                ]
            )
            self.assertEqual(moved, 240 + 30 + 80 + 72)
            self.assertEqual((whole, part, rows), (a, b[10:40], a[80:160]))
            # Bytes, not floats: Python quiets signalling NaNs.
            self.assertEqual(columns, b"".join(a[r * 40 + 16 : r * 40 + 28] for r in range(6)))
            with self.assertRaises(FileNotFoundError):
                weights.read([("c", whole)])
            for wrong in (gpunvme.Slice(2, 0, 1), gpunvme.Slice(0, 3, 3), gpunvme.Slice(1, 0, 11)):
                with self.assertRaises(IndexError):
                    weights.read([("a", whole, wrong)])
            with self.assertRaises(gpunvme.InvalidError):
                weights.read([("a", bytearray(100))])

    def test_no_model(self) -> None:
        path = self.folder() / "m.safetensors"
        with self.assertRaises(gpunvme.NotFoundError):
            gpunvme.Weights(path, ACCELERATOR)
        path.write_bytes(b"no header at all")
        with self.assertRaises(gpunvme.FormatError):
            gpunvme.Weights(path, ACCELERATOR)


class ProposalTest(Case):
    """The snippets of the first proposals, with a device that exists everywhere."""

    def test_read(self) -> None:
        nvme = pycuda_nvme.NVMeGPU("sim:size=8MiB")
        self.addCleanup(nvme.close)
        data = seeded(self).randbytes(1024 * 512)
        self.assertEqual(nvme.write(lba=100, count=1024, gpu_ptr=data), len(data))
        gpu_buffer = (ctypes.c_char * len(data))()
        self.assertEqual(nvme.read(lba=100, count=1024, gpu_ptr=gpu_buffer), len(data))
        self.assertEqual(bytes(gpu_buffer), data)
        address = ctypes.addressof(gpu_buffer)
        nvme.read(lba=101, count=1, gpu_ptr=address)
        self.assertEqual(bytes(gpu_buffer)[:512], data[512:1024])
        self.assertEqual(nvme.read_async(100, 2, gpu_buffer).result(), 1024)
        self.assertEqual(nvme.write_async(0, 1, gpu_buffer).result(), 512)
        nvme.flush()

    def test_read_to_gpu(self) -> None:
        nvme = pycuda_nvme.NVMeGPU("sim:size=8MiB")
        self.addCleanup(nvme.close)
        nvme.write(3, 1, b"x" * 512)
        data = nvme.read_to_gpu(lba=0, size_mb=5)
        self.assertEqual(data.nbytes, 5 << 20)
        self.assertEqual(data.tobytes()[1535:2049], b"\0" + b"x" * 512 + b"\0")

    @needs_real
    def test_what_stays_is_written_only_if_told(self) -> None:
        image = self.folder() / "image"
        image.write_bytes(bytes(1 << 20))
        for uri in (f"sim:file={image}", f"sim:lba=512,file={image}", str(image)):
            with gpunvme.NVMeGPU(uri, ACCELERATOR) as nvme:
                with self.assertRaises(gpunvme.DeniedError):
                    nvme.write(0, 1, b"x" * 512)
            with mock.patch.dict(os.environ, GPUNVME_ALLOW_WRITE="1"):
                with gpunvme.NVMeGPU(uri, ACCELERATOR) as nvme:
                    nvme.write(0, 1, b"x" * 512)
            self.assertEqual(image.read_bytes()[:513], b"x" * 512 + b"\0")
            image.write_bytes(bytes(1 << 20))

    @needs_real
    def test_blocks_are_the_devices(self) -> None:
        with gpunvme.NVMeGPU("sim:size=1MiB,lba=4096", ACCELERATOR) as nvme:
            self.assertEqual(nvme.block_bytes, 4096)
            nvme.write(3, 1, b"y" * 4096)
            nvme.storage.read(3 * 4096 - 1, into := bytearray(2))
            self.assertEqual(into, b"\0y")

    @needs_real
    def test_a_device_can_be_opened_again_while_its_memory_lives(self) -> None:
        device = f"sim:file={self.folder() / 'image'},size=1MiB"
        nvme = gpunvme.NVMeGPU(device, ACCELERATOR, write=True)
        nvme.write(0, 1, b"z" * 512)
        data = nvme.read_to_gpu(0, 0.5)
        nvme.close()
        with gpunvme.NVMeGPU(device, ACCELERATOR) as again:
            again.read(0, 1, into := bytearray(512))
        self.assertEqual((data.tobytes()[:512], into), (b"z" * 512, b"z" * 512))

    def test_files_have_blocks_of_512_bytes(self) -> None:
        path = self.folder() / "file"
        data = seeded(self).randbytes(8192)
        path.write_bytes(data)
        into = bytearray(512)
        for address in (str(path), f"file:{path}"):
            with gpunvme.NVMeGPU(address, ACCELERATOR, write=False) as nvme:
                nvme.read(3, 1, into)
                self.assertEqual(into, data[1536:2048])
                with self.assertRaises(gpunvme.DeniedError):
                    nvme.write(3, 1, into)
        with gpunvme.NVMeGPU(path, ACCELERATOR, block_bytes=4096, write=False) as nvme:
            nvme.read(1, 1, memory := bytearray(4096))
            self.assertEqual(memory, data[4096:])
