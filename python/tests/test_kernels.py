"""Storages for kernels: all but the kernels, which need a GPU (gpu_test.py)."""

from __future__ import annotations

import gc
import os
import subprocess
import threading
import time
import types
import weakref
from typing import Any
from unittest import mock

from support import ACCELERATOR, FAKE, Case, needs_fake, needs_real, on_the_stand_in, run

import gpunvme
from gpunvme import _native


class KernelsTest(Case):
    def kernels(self, **options: Any) -> gpunvme.KernelStorage:
        kernels = gpunvme.KernelStorage(self.device(), **{"queue_pairs": 1, "depth": 32, **options})
        self.addCleanup(kernels.close)
        return kernels

    @needs_real
    def test_the_device_library_is_there(self) -> None:
        self.assertTrue(os.path.isabs(gpunvme.include_dir()))
        self.assertTrue(os.path.isfile(os.path.join(gpunvme.include_dir(), "gpunvme", "gpunvme.cuh")))

    def test_kernels_are_given_an_address(self) -> None:
        handle = self.kernels().device_handle
        self.assertTrue(handle > 0 and handle % 64 == 0)

    def test_several_ssds(self) -> None:
        storages = [self.device(), self.device()]
        with gpunvme.KernelStorage(storages) as kernels:
            self.assertGreater(kernels.device_handle, 0)
            self.assertGreater(kernels.file(storages[1]), 0)
        with self.assertRaises(gpunvme.InvalidError):
            gpunvme.KernelStorage([])

    def test_buffers_are_numbered(self) -> None:
        kernels = self.kernels(buffers=2)
        memory = self.device().allocate(8192)
        self.assertEqual(kernels.register(memory), (0, 0))
        number, offset = kernels.register(memory.address + 512, 1024)
        self.assertEqual((number, offset % 4096), (1, 512))
        with self.assertRaises(gpunvme.InvalidError):
            kernels.register(memory)
        kernels.unregister(1)
        for number in (1, 2**32 - 1):
            with self.assertRaises(gpunvme.InvalidError):
                kernels.unregister(number)
        for number in (-1, 2**32):
            with self.assertRaises(ValueError):
                kernels.unregister(number)
        with self.assertRaises(TypeError):
            kernels.register(memory.address)
        with self.assertRaises(gpunvme.InvalidError):
            kernels.register(memory, 0)

    def test_a_registered_buffer_stays(self) -> None:
        kernels = self.kernels()
        memory = self.device().allocate(4096)
        alive = weakref.ref(memory)
        number = kernels.register(memory).number
        del memory
        gc.collect()
        self.assertIsNotNone(alive())
        kernels.unregister(number)
        gc.collect()
        self.assertIsNone(alive())

    def test_closing_lets_go_of_buffers(self) -> None:
        kernels = self.kernels()
        memory = self.device().allocate(4096)
        alive = weakref.ref(memory)
        kernels.register(memory)
        del memory
        kernels.close()
        gc.collect()
        self.assertIsNone(alive())

    def test_what_cannot_be_is_refused(self) -> None:
        storage = self.device()
        for options in ({"placement": "nowhere"}, {"buffers": 0}, {"nsid": 0}, {"depth": -1}, {"queue_pairs": 2**32}):
            with self.subTest(options), self.assertRaises(ValueError):
                gpunvme.KernelStorage(storage, **options)  # type: ignore[arg-type]
        kernels = self.kernels()
        with self.assertRaises(ValueError):
            kernels.wait(0, timeout=-1)

    @needs_real
    def test_what_the_library_refuses(self) -> None:
        storage = self.device()
        for options in ({"depth": 33}, {"buffers": 65537}, {"placement": "vram"}):
            if options == {"placement": "vram"} and ACCELERATOR != "cpu":
                continue
            with self.subTest(options), self.assertRaises(gpunvme.InvalidError):
                gpunvme.KernelStorage(storage, **options)  # type: ignore[arg-type]
        with self.assertRaises(gpunvme.InvalidError):
            self.kernels().file(storage)  # of another SSD
        with gpunvme.Storage(__file__, ACCELERATOR) as file, self.assertRaises(gpunvme.UnsupportedError):
            gpunvme.KernelStorage(file)

    @needs_real
    @on_the_stand_in
    def test_the_stand_in_has_no_streams(self) -> None:
        with self.assertRaises(gpunvme.UnsupportedError):
            self.kernels().wait(0)

    def test_files(self) -> None:
        storage = self.device()
        with gpunvme.KernelStorage(storage) as kernels:
            address = kernels.file(storage)
            kernels.free(address)
            with self.assertRaises(gpunvme.InvalidError):
                kernels.free(address + 1)

    def test_directories(self) -> None:
        storage = self.device() if FAKE else self.file_system()
        with gpunvme.KernelStorage(storage) as kernels:
            with self.assertRaisesRegex(gpunvme.UnsupportedError, "/set/link"):
                kernels.directory(storage, "/set")
            address = kernels.directory(storage, "/set", skip=True)
            self.assertTrue(address > 0 and address % 64 == 0)
            skipped = kernels.skipped(address)
            self.assertEqual(len(skipped), 1)
            self.assertIn("/link", skipped[0])
            with self.assertRaises(gpunvme.InvalidError):
                kernels.skipped(address + 1)
            with self.assertRaises(ValueError):
                kernels.directory(storage, "/s\0et")
            kernels.free(address)

    def file_system(self) -> gpunvme.Storage:
        """A storage with /set/one.bin, and a link to nothing beside that."""
        folder, disk = self.folder(), self.folder() / "disk"
        (folder / "set").mkdir()
        (folder / "set" / "one.bin").write_bytes(bytes(5000))
        (folder / "set" / "link").symlink_to("nothing")
        subprocess.run(["mke2fs", "-q", "-t", "ext4", "-d", folder, disk, "8M"], check=True, capture_output=True)
        storage = gpunvme.Storage(f"sim:file={disk}", ACCELERATOR)
        self.addCleanup(storage.close)
        return storage

    def test_handles_of_kernels(self) -> None:
        kernels = self.kernels()
        with kernels.handle() as one, kernels.handle() as other:
            addresses = {kernels.device_handle, one.device_handle, other.device_handle}
            self.assertEqual(len(addresses), 3)
            one.stop()
            one.stop(False)
        self.assertTrue(one.closed)
        for call in (one.stop, lambda: one.device_handle, lambda: one.wait(0), lambda: one.wait_event(5)):
            with self.assertRaises(gpunvme.ClosedError):
                call()
        self.assertGreater(kernels.device_handle, 0)

    def test_a_handle_keeps_its_storage(self) -> None:
        kernels = gpunvme.KernelStorage(self.device())
        alive = weakref.ref(kernels)
        handle = kernels.handle()
        del kernels
        gc.collect()
        self.assertIsNotNone(alive())
        self.assertGreater(handle.device_handle, 0)
        handle.close()
        del handle
        gc.collect()
        self.assertIsNone(alive())

    def test_recovery_is_asked_for(self) -> None:
        self.assertEqual(self.kernels().recoveries, 0)
        # The fake has had one; the real library's need kernels.
        self.assertEqual(self.kernels(recovery=True).recoveries, 1 if FAKE else 0)

    def test_closed(self) -> None:
        kernels = self.kernels()
        kernels.recover()
        kernels.stop()
        kernels.stop(False)
        self.assertEqual(kernels.errors(), ["one", "two"] if FAKE else [])
        kernels.close()
        kernels.close()
        self.assertTrue(kernels.closed)
        for call in (
            kernels.recover,
            kernels.errors,
            kernels.handle,
            kernels.stop,
            lambda: kernels.device_handle,
            lambda: kernels.recoveries,
            lambda: kernels.wait(0),
            lambda: kernels.skipped(64),
        ):
            with self.assertRaises(gpunvme.ClosedError):
                call()

    @needs_real
    def test_closing_the_storage_closes_it(self) -> None:
        storage = self.device()
        kernels = gpunvme.KernelStorage(storage)
        handle = kernels.handle()
        storage.close()
        with self.assertRaises(gpunvme.ClosedError):
            kernels.recover()
        with self.assertRaises(gpunvme.ClosedError):
            handle.stop()
        kernels.close()
        handle.close()

    # ---- kernels of the fake never end

    @needs_fake
    def test_a_limit(self) -> None:
        kernels = self.kernels()
        kernels.register(bytearray(4096))
        for wait in (kernels.wait, kernels.wait_event):
            began = time.monotonic()
            with self.assertRaisesRegex(TimeoutError, "after 100 ms"):
                wait(types.SimpleNamespace(ptr=5), timeout=0.1)
            self.assertLess(time.monotonic() - began, 20)
        with self.assertRaises(gpunvme.BusyError):
            kernels.unregister(0)
        kernels.recover()
        kernels.unregister(0)

    @needs_fake
    def test_closing_that_failed_is_tried_again(self) -> None:
        kernels = gpunvme.KernelStorage(gpunvme.Storage("fake:size=1MiB,fail=-4", ACCELERATOR))
        memory = self.device().allocate(4096)
        alive = weakref.ref(memory)
        kernels.register(memory)
        del memory
        with self.assertRaisesRegex(gpunvme.TransferError, "keeps its queues"):
            kernels.close()
        gc.collect()
        self.assertTrue(kernels.closed)
        self.assertIsNotNone(alive(), "an SSD may write to it")
        kernels.close()
        gc.collect()
        self.assertIsNone(alive())

    @needs_fake
    def test_a_handle_is_stopped_alone(self) -> None:
        kernels = self.kernels()
        with kernels.handle() as one:
            one.stop()
            with self.assertRaises(TimeoutError):
                kernels.wait(0, timeout=0.1)
            one.wait(0)

    @needs_fake
    def test_events_of_others(self) -> None:
        kernels = self.kernels()
        for event in (types.SimpleNamespace(cuda_event=7), types.SimpleNamespace(ptr=7), types.SimpleNamespace(handle=7), 7):
            with mock.patch.object(_native, "cancellable") as call:
                kernels.wait_event(event, timeout=2)
            self.assertEqual(call.call_args.args[2:], (7, 2_000_000_000))
        with mock.patch.object(_native, "cancellable") as call:
            kernels.wait(0)  # CUDA's other name for the default stream
        self.assertEqual(call.call_args.args[2:], (1, _native.FOREVER))
        with self.assertRaises((TypeError, ValueError)):
            kernels.wait_event("event")

    @needs_fake
    def test_another_thread_stops_it(self) -> None:
        kernels = self.kernels()
        threading.Timer(0.1, kernels.stop).start()
        kernels.wait(0)

    @needs_fake
    def test_ctrl_c(self) -> None:
        done = run(
            """
            import os, signal, threading, time
            import gpunvme
            storage = gpunvme.Storage("sim:size=1MiB", ACCELERATOR)
            kernels = gpunvme.KernelStorage(storage)
            try:
                threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
                kernels.wait(0)
            except KeyboardInterrupt:
                print("interrupted")
            try:
                kernels.wait(0, timeout=0)
            except TimeoutError:
                print("told")
            """,
            timeout=60,
        )
        self.assertEqual((done.returncode, done.stdout.split()), (0, ["interrupted", "told"]), done.stderr)
