"""Whatever shows its memory: what is taken, and what is refused."""

from __future__ import annotations

import array
import ctypes
import gc
import mmap
import os
import sys
import threading
import time
import unittest
from pathlib import Path
from typing import Any

from support import ACCELERATOR, FAKE, SLOW, Case, on_the_stand_in, seeded

import gpunvme
from gpunvme import _dlpack, _native
from gpunvme.memory import region, stream_handle

try:
    import numpy
except ImportError:
    numpy = None  # type: ignore[assignment]

needs_numpy = unittest.skipIf(numpy is None, "numpy is not installed")


class OnlyDlpack:
    """An array that shows itself by DLPack and by nothing else."""

    def __init__(self, array: Any, versions: bool = True, device: tuple[int, int] | None = None) -> None:
        self.array, self.versions, self.device = array, versions, device

    def __dlpack_device__(self) -> Any:
        return self.device or self.array.__dlpack_device__()

    def __dlpack__(self, *, stream: Any = None, **options: Any) -> Any:
        if options and not self.versions:
            raise TypeError("no versions here")
        return self.array.__dlpack__(**options)


class OnlyCuda:
    """The interface of CuPy and Numba, for host memory: without a GPU addresses are the host's."""

    def __init__(self, **changes: Any) -> None:
        self.memory = bytearray(4096)
        host = (ctypes.c_char * 4096).from_buffer(self.memory)
        shown = {"shape": (4, 256), "typestr": "<f4", "data": (ctypes.addressof(host), False), "version": 3}
        self.__cuda_array_interface__ = shown | changes


class DestinationTest(Case):
    def arrives(self, into: Any, contents: Any, nbytes: int | None = None) -> None:
        storage, data = self.filled(65536)
        n = storage.read(111, into, nbytes)
        self.assertEqual(bytes(contents()), data[111 : 111 + n])
        self.assertEqual(storage.write(40_000, into, nbytes), n)
        back = bytearray(n)
        storage.read(40_000, back)
        self.assertEqual(back, data[111 : 111 + n])

    def test_bytearray_memoryview_array_mmap_ctypes(self) -> None:
        text = bytearray(1000)
        self.arrives(text, lambda: text)
        view = memoryview(bytearray(1000))[100:200]
        self.arrives(view, lambda: view)
        numbers = array.array("d", [0.0] * 100)
        self.arrives(numbers, numbers.tobytes)
        with mmap.mmap(-1, 8192) as mapped:
            self.arrives(mapped, lambda: mapped[:])
        native = (ctypes.c_uint32 * 10)()
        self.arrives(native, lambda: bytes(native))

    def test_addresses(self) -> None:
        native = (ctypes.c_char * 100)()
        self.arrives(ctypes.addressof(native), lambda: bytes(native), 100)

        class Allocation:  # as PyCUDA's
            def __int__(self) -> int:
                return ctypes.addressof(native)

        self.arrives(Allocation(), lambda: bytes(native), 100)
        storage = self.device()
        for wrong in (ctypes.addressof(native), Allocation()):
            with self.assertRaisesRegex(TypeError, "bytes"):
                storage.read(0, wrong)
        for no_address in (0, -1, 2**64):
            with self.assertRaises(ValueError):
                storage.read(0, no_address, 10)
        for nothing in (None, True, "text", 1.5j, object()):
            with self.assertRaises(TypeError):
                storage.read(0, nothing, 10)

    def test_a_read_only_buffer_is_a_source_only(self) -> None:
        storage = self.device()
        for memory in (b"bytes", memoryview(b"bytes")):
            self.assertEqual(storage.write(0, memory), 5)
            with self.assertRaises(BufferError):
                storage.read(0, memory)

    def test_a_buffer_with_gaps_is_refused(self) -> None:
        with self.assertRaises(BufferError):
            self.device().read(0, memoryview(bytearray(100))[::2])

    def test_buffers_are_let_go(self) -> None:
        storage = self.device()
        text = bytearray(100)
        storage.read(0, text)
        with self.assertRaises(gpunvme.InvalidError):
            storage.read(storage.size, text)
        text.append(1)  # BufferError if it were still held

    @needs_numpy
    def test_numpy(self) -> None:
        matrix = numpy.zeros((3, 5, 7), numpy.float32)
        self.arrives(matrix, matrix.tobytes)
        part = numpy.zeros((10, 16), numpy.int16)[2:5]
        self.arrives(part, part.tobytes)
        native = (ctypes.c_char * 64)()
        self.arrives(numpy.uint64(ctypes.addressof(native)), lambda: bytes(native), 64)
        storage = self.device()
        for wrong in (matrix[:, 1:3], numpy.asfortranarray(matrix), matrix[::-1]):
            with self.assertRaises((BufferError, ValueError)):
                storage.read(0, wrong)
        matrix.flags.writeable = False
        with self.assertRaises((BufferError, ValueError)):
            storage.read(0, matrix)

    def test_references_are_no_memory_to_fill(self) -> None:
        storage = self.device()
        targets: list[Any] = [(ctypes.py_object * 8)()]
        if numpy is not None:
            targets.append(numpy.zeros(512, object))
            targets.append(numpy.zeros(512, [("Other", "<i4"), ("a", object)]))
            names = numpy.zeros(16, [("Other", "<i4"), ("O", "<f4")])
            self.arrives(names, names.tobytes)
            times = numpy.zeros(16, "<M8[ns]")
            self.arrives(times, times.tobytes)
        for target in targets:
            for move in (storage.read, storage.write):
                with self.assertRaisesRegex(BufferError, "references"):
                    move(0, target)

    @needs_numpy
    def test_dlpack(self) -> None:
        for versions in (True, False):
            for dtype in (numpy.float32, numpy.uint8, numpy.complex128):
                matrix = numpy.zeros((3, 5), dtype)
                self.arrives(OnlyDlpack(matrix, versions), matrix.tobytes)
            part = numpy.zeros((10, 16), numpy.int16)[2:5]
            self.arrives(OnlyDlpack(part, versions), part.tobytes)
            with self.assertRaisesRegex(BufferError, "contiguous"):
                self.device().read(0, OnlyDlpack(numpy.zeros((4, 4))[:, 1:], versions))
        with self.assertRaisesRegex(TypeError, "type 8"):
            self.device().read(0, OnlyDlpack(matrix, device=(8, 0)))

    @on_the_stand_in
    def test_dlpack_that_shows_a_copy(self) -> None:
        array = self.device().allocate(64)

        class Copied(OnlyDlpack):
            def __dlpack__(self, *, stream: Any = None, **options: Any) -> Any:
                capsule = super().__dlpack__(**options)
                at = _dlpack._capsule_pointer(capsule, b"dltensor_versioned")
                _dlpack._Versioned.from_address(at).flags = 2
                return capsule

        storage = self.device()
        self.assertEqual(storage.write(0, Copied(array)), 64)
        with self.assertRaisesRegex(BufferError, "copy"):
            storage.read(0, Copied(array))

    @needs_numpy
    def test_dlpack_that_is_read_only(self) -> None:
        if numpy.lib.NumpyVersion(numpy.__version__) < "2.1.0":
            self.skipTest("numpy exports no read-only memory before 2.1")
        matrix = numpy.zeros(10)
        matrix.flags.writeable = False
        storage = self.device()
        self.assertEqual(storage.write(0, OnlyDlpack(matrix)), 80)
        with self.assertRaisesRegex(BufferError, "read-only"):
            storage.read(0, OnlyDlpack(matrix))

    def test_cuda_array_interface(self) -> None:
        whole = OnlyCuda()
        self.arrives(whole, lambda: whole.memory)
        strided = OnlyCuda(strides=(1024, 4))
        self.arrives(strided, lambda: strided.memory)
        times = OnlyCuda(shape=(128, 4), typestr="<M8[ns]")
        self.arrives(times, lambda: times.memory)
        empty = OnlyCuda(shape=(0, 4), data=(0, False))
        self.assertEqual(self.device().read(0, empty), 0)
        for wrong in (
            OnlyCuda(strides=(2048, 4)),
            OnlyCuda(mask=whole),
            OnlyCuda(typestr="|O8"),
            OnlyCuda(typestr="<f4[ns"),
            OnlyCuda(data=(whole.__cuda_array_interface__["data"][0], True)),
        ):
            with self.assertRaises(BufferError):
                self.device().read(0, wrong)

    def test_a_stream_without_cuda_is_told(self) -> None:
        try:
            ctypes.CDLL("libcuda.so.1")
            self.skipTest("there is a CUDA driver")
        except OSError:
            pass
        with self.assertRaises(gpunvme.AcceleratorError):
            self.device().read(0, OnlyCuda(stream=1))

    def test_streams_of_others(self) -> None:
        def thing(**names: Any) -> Any:
            return type("Stream", (), names)()

        for default in (0, thing(cuda_stream=0), thing(ptr=0), thing(__cuda_stream__=lambda self: (0, 0))):
            self.assertEqual(stream_handle(default), 1)  # CU_STREAM_LEGACY
        self.assertEqual(stream_handle(thing(ptr=2)), 2)  # CuPy's per-thread one
        self.assertEqual(stream_handle(7), 7)
        self.assertEqual(stream_handle(thing(cuda_stream=8)), 8)
        self.assertEqual(stream_handle(thing(ptr=9)), 9)
        self.assertEqual(stream_handle(thing(handle=10)), 10)
        self.assertEqual(stream_handle(thing(__cuda_stream__=lambda self: (0, 11))), 11)


class DeviceArrayTest(Case):
    def test_is_zeroed_aligned_and_freed(self) -> None:
        storage, data = self.filled()
        array = storage.allocate(10_000)
        self.assertEqual(array.tobytes(), bytes(10_000))
        self.assertEqual((array.nbytes, array.shape, array.dtype, len(array)), (10_000, (10_000,), "|u1", 10_000))
        self.assertEqual(array.address % 4096, 0)
        storage.read(5, array)
        self.assertEqual(array.tobytes(), data[5:10_005])
        if FAKE:
            allocated = _native.lib().fake_allocated
            before = allocated()
            del array
            gc.collect()
            self.assertEqual(allocated(), before - 1)

    def test_outlives_its_storage(self) -> None:
        storage, data = self.filled()
        allocated = _native.lib().fake_allocated() if FAKE else 0
        array = storage.read_array(0, 4096)
        storage.close()
        self.assertTrue(storage._handle._freed)
        self.assertEqual(array.tobytes(), data[:4096])
        del array
        gc.collect()
        if FAKE:
            self.assertEqual(_native.lib().fake_allocated(), allocated)

    def test_does_not_keep_a_storage_open(self) -> None:
        path = self.folder() / "file"
        data = seeded(self).randbytes(8192)
        path.write_bytes(data)

        def opened() -> bool:
            files = Path("/proc/self/fd").iterdir()
            return any(os.path.realpath(f) == str(path) for f in files)

        storage = gpunvme.Storage(path, ACCELERATOR)
        array = storage.read_array(0, 4096)
        self.assertTrue(opened())
        storage.close()
        self.assertFalse(opened())
        with gpunvme.Storage(path, ACCELERATOR) as other:
            other.read(4096, array)
        self.assertEqual(array.tobytes(), data[4096:])

    def test_requests_end_when_a_storage_with_arrays_is_closed(self) -> None:
        storage = gpunvme.Storage(SLOW, ACCELERATOR)
        array = storage.allocate(512)
        failed: list[BaseException] = []

        def read() -> None:
            try:
                for _ in range(5):
                    storage.read(0, array)
            except gpunvme.GpuNvmeError as e:
                failed.append(e)

        thread = threading.Thread(target=read)
        thread.start()
        time.sleep(0.2)
        storage.close()
        thread.join(30)
        self.assertEqual(len(failed), 1)
        self.assertIsInstance(failed[0], (gpunvme.CancelledError, gpunvme.ClosedError))

    def test_of_nothing(self) -> None:
        storage = self.device()
        empty = storage.allocate(0, "<f4")
        for array in (empty, storage.read_array(0, 0, "<f4"), empty.view("<f2").view("<f4", (0,))):
            self.assertEqual((array.address, array.nbytes, array.shape, array.tobytes()), (0, 0, (0,), b""))
            self.assertEqual(storage.read(0, array), 0)
        self.assertEqual(storage.allocate(0, "<f2", (3, 0, 5)).shape, (3, 0, 5))
        self.assertEqual(storage.read_array(storage.size, 0).nbytes, 0)
        storage.close()
        with self.assertRaises(gpunvme.ClosedError):
            storage.allocate(0)

    @on_the_stand_in
    @needs_numpy
    def test_numpy_sees_nothing(self) -> None:
        array = self.device().allocate(0, "<f4", (3, 0))
        for seen in (numpy.asarray(array), numpy.from_dlpack(array)):
            self.assertEqual((seen.shape, seen.dtype.str), ((3, 0), "<f4"))
        self.assertEqual(array.__buffer__(0).nbytes, 0)

    @on_the_stand_in
    def test_dlpack_has_no_order_of_bytes(self) -> None:
        array = self.device().allocate(32)
        other = ">" if sys.byteorder == "little" else "<"
        for dtype in (f"{other}u4", f"{other}f8", "<M8[ns]", "|S4", "<U2", "|V8", "<c32"):
            with self.assertRaises(BufferError):
                array.view(dtype).__dlpack__()
        for dtype in (f"{other}u1", "|i1", "=u4", "|b1"):
            array.view(dtype).__dlpack__()

    @on_the_stand_in
    @needs_numpy
    def test_numpy_sees_orders_and_times(self) -> None:
        array = self.device().allocate(32)
        for dtype in (">u4", "<M8[ns]", "|S4", "<U2"):
            self.assertEqual(numpy.asarray(array.view(dtype)).dtype.str, dtype)

    def test_types_and_shapes(self) -> None:
        array = self.device().allocate(96, "<f4", (4, 6))
        self.assertEqual((array.shape, len(array)), ((4, 6), 4))
        self.assertEqual(array.view("<f2").shape, (48,))
        self.assertIn("(4, 6) <f4", repr(array))
        for dtype, shape in (("<f4", (5, 5)), ("<f8", (4, 6)), ("f", None), ("<f5", None)):
            with self.assertRaises(ValueError):
                array.view(dtype, shape)
        self.assertEqual(hasattr(array, "__cuda_array_interface__"), ACCELERATOR == "gpu")

    @on_the_stand_in
    @needs_numpy
    def test_numpy_sees_the_same_memory(self) -> None:
        storage, data = self.filled()
        array = storage.read_array(0, 4096, "<i4", (32, 32))
        expected = numpy.frombuffer(data[:4096], "<i4").reshape(32, 32)
        for seen in (numpy.asarray(array), numpy.from_dlpack(array)):
            numpy.testing.assert_array_equal(seen, expected)
            self.assertEqual(seen.__array_interface__["data"][0], array.address)
        piece = numpy.asarray(array.view("<i2", (2048,)))
        address = array.address
        del array, storage
        gc.collect()
        numpy.testing.assert_array_equal(piece, numpy.frombuffer(data[:4096], "<i2"))
        self.assertEqual(piece.__array_interface__["data"][0], address)

    @on_the_stand_in
    @needs_numpy
    def test_dlpack_keeps_the_memory(self) -> None:
        storage, data = self.filled()
        exported = len(_dlpack._exported)
        seen = numpy.from_dlpack(storage.read_array(0, 4096))
        gc.collect()
        self.assertEqual(bytes(seen), data[:4096])
        self.assertEqual(len(_dlpack._exported), exported + 1)
        del seen
        gc.collect()
        self.assertEqual(len(_dlpack._exported), exported)

    @on_the_stand_in
    def test_dlpack_as_the_protocol_has_it(self) -> None:
        array = self.device().allocate(4096, "<f4")
        exported = len(_dlpack._exported)
        self.assertEqual(array.__dlpack_device__(), (1, 0))
        capsule = array.__dlpack__()
        self.assertIn('"dltensor"', repr(capsule))
        newer = array.__dlpack__(max_version=(1, 1), dl_device=(1, 0), copy=False)
        self.assertIn('"dltensor_versioned"', repr(newer))
        with self.assertRaises(BufferError):
            array.__dlpack__(copy=True)
        with self.assertRaises(BufferError):
            array.__dlpack__(dl_device=(2, 0))
        self.assertEqual(len(_dlpack._exported), exported + 2)
        del capsule, newer  # nobody took them
        gc.collect()
        self.assertEqual(len(_dlpack._exported), exported)

    @on_the_stand_in
    def test_dlpack_of_our_own(self) -> None:
        array = self.device().allocate(4096, "<c8", (8, 64))
        imported = _dlpack.Imported(array)
        self.assertEqual((imported.address, imported.nbytes, imported.on_gpu), (array.address, 4096, False))

    def test_a_gpus_memory_shows_itself_as_such(self) -> None:
        array = gpunvme.DeviceArray(0x7F0000000000, 4096, "gpu:1", (2, 512), "<f4")
        self.assertEqual(
            array.__cuda_array_interface__,
            {
                "shape": (2, 512),
                "typestr": "<f4",
                "data": (0x7F0000000000, False),
                "strides": None,
                "version": 3,
                "stream": None,
            },
        )
        self.assertEqual(array.__dlpack_device__(), (2, 1))
        self.assertFalse(hasattr(array, "__array_interface__"))
        with self.assertRaises(BufferError):
            array.__buffer__(0)

    @on_the_stand_in
    def test_the_buffer_protocol(self) -> None:
        storage, data = self.filled()
        array = storage.read_array(0, 512)
        view = array.__buffer__(0)  # what memoryview(array) calls from Python 3.12 on
        del array
        gc.collect()
        self.assertEqual(view.tobytes(), data[:512])

    def test_a_region_of_it(self) -> None:
        array = self.device().allocate(512)
        self.assertEqual(region(array, 100, writable=True).nbytes, 100)
