"""Ctrl-C, wherever it comes: the transfer is over then, and the memory is the program's again."""

from __future__ import annotations

import gc
import importlib.util
import threading
import weakref
from collections.abc import Callable
from typing import Any
from unittest import mock, skipIf

from support import ACCELERATOR, SLOW, Case, make_model, run, seeded, slow_model

import gpunvme
from gpunvme import _native


class InterruptTest(Case):
    """Ctrl-C during a wait of a minute."""

    INTERRUPTED = """
        import signal, sys, threading, time, os
        import gpunvme
        storage = gpunvme.Storage("{uri}", ACCELERATOR, write=True)
        into = bytearray(512)
        {prepare}
        threading.Timer({seconds}, os.kill, (os.getpid(), signal.SIGINT)).start()
        started = time.monotonic()
        try:
            {call}
        except KeyboardInterrupt:
            print("interrupted")
        into += b"x"  # nothing holds it any more
        {after}
        assert time.monotonic() - started < 12
        storage.close()
    """

    def interrupted(self, call: str, prepare: str = "", after: str = "", seconds: float = 0.5) -> None:
        source = self.INTERRUPTED.format(uri=SLOW, call=call, prepare=prepare, after=after, seconds=seconds)
        done = run(source)
        self.assertEqual((done.returncode, done.stdout.strip()), (0, "interrupted"), done.stderr)

    def test_read(self) -> None:
        self.interrupted("storage.read(0, into)")

    def test_read_ranges(self) -> None:
        self.interrupted("storage.read_ranges([(0, into), (4096, bytearray(99))])")

    def test_write(self) -> None:
        self.interrupted("storage.write(0, into)")

    def test_result(self) -> None:
        self.interrupted("request.result()", "request = storage.submit_read(0, into)")

    def test_layer(self) -> None:
        self.interrupted(
            "loader.load(0, memory)",
            "loader = gpunvme.LayerLoader(storage, 4096, 2); memory = storage.allocate(512)",
        )

    def weights(self) -> str:
        return slow_model(self, {"w": ("U8", (8 << 20,), bytes(8 << 20))})

    def test_weights(self) -> None:
        self.interrupted(
            "weights.read([('w', memory)])",
            f"weights = gpunvme.Weights('{self.weights()}', ACCELERATOR); memory = storage.allocate(8 << 20)",
            "assert weights._handle.closed",
        )

    @skipIf(importlib.util.find_spec("torch") is None, "torch is not installed")
    def test_load_file(self) -> None:
        device = "cuda" if ACCELERATOR == "gpu" else "cpu"
        self.interrupted(
            f"gpunvme.torch.load_file('{self.weights()}', '{device}')",
            "import gpunvme.torch",
            seconds=3,  # it was opened by then
        )

    def test_kinds(self) -> None:
        # Nothing ends it: it is over when it is seen.
        uri = "sim:size=1MiB,latency=2s"
        prepare = f"kinds = gpunvme.Kinds(gpunvme.Storage('{uri}', ACCELERATOR)); kinds.add(1, 0, 512, 8)"
        self.interrupted("kinds.read(1, 0, 64, into)", prepare, "kinds.read(1, 0, 1, into)")


class HandlerTest(Case):
    """Handlers of signals run while a transfer goes on."""

    HANDLED = """
        import signal, time
        import gpunvme
        slow = gpunvme.Storage("sim:size=1MiB,latency=1s", ACCELERATOR, write=True)
        other = gpunvme.Storage("sim:size=1MiB", ACCELERATOR, write=True)
        other.write(0, b"handled")
        seen = []
        def handler(number, frame):
            into = bytearray(7)
            other.read(0, into)
            seen.append((bytes(into), time.monotonic() - started))
            {end}
        signal.signal(signal.SIGALRM, handler)
        into = bytearray(b"x" * 512)
        for _ in range(2):
            started = time.monotonic()
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            try:
                slow.read(0, into)
            except ValueError as e:
                print(e)
        assert [text for text, _ in seen] == [b"handled"] * 2, seen
        # On a GPU its first read takes pinned memory, for which the driver waits for the slow read's kernel.
        assert seen[0][1] < (0.9 if ACCELERATOR == "cpu" else 3) and seen[1][1] < 0.9, seen
        {after}
        slow.close()
    """

    def handled(self, end: str, after: str, said: str) -> None:
        done = run(self.HANDLED.format(end=end, after=after))
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, said, ""))

    def test_the_transfer_goes_on(self) -> None:
        self.handled("pass", "assert into == bytes(512)", "")

    def test_what_a_handler_raises_ends_it(self) -> None:
        self.handled('raise ValueError("enough")', "into += b'x'", "enough\nenough\n")


class PlaceTest(Case):
    """The signal comes at a certain place of a call."""

    def setUp(self) -> None:
        self.begun, self.stopped = threading.Event(), threading.Event()
        self.ended: list[bool] = []
        self.stops = 0

    def call(self) -> int:
        self.begun.set()
        self.ended.append(self.stopped.wait(60))
        return 0

    def stop(self) -> None:
        self.stops += 1
        if self.stops == 1:
            raise KeyboardInterrupt  # once more
        self.stopped.set()

    def interrupted(self, start: Callable[[threading.Thread], None]) -> None:
        with mock.patch.object(threading.Thread, "start", start), self.assertRaises(KeyboardInterrupt):
            _native.interruptible(self.call, self.stop)

    def test_before_the_thread_begins(self) -> None:
        def start(thread: threading.Thread) -> None:
            raise KeyboardInterrupt

        self.interrupted(start)
        self.assertEqual((self.begun.is_set(), self.stops), (False, 0))

    def test_before_the_thread_has_a_turn(self) -> None:
        late: list[threading.Thread] = []

        def start(thread: threading.Thread) -> None:
            late.append(thread)
            raise KeyboardInterrupt

        self.interrupted(start)
        late[0].run()
        self.assertEqual((self.begun.is_set(), self.stops), (False, 0))

    def test_as_the_thread_has_begun(self) -> None:
        begin = threading.Thread.start

        def start(thread: threading.Thread) -> None:
            begin(thread)
            self.assertTrue(self.begun.wait(60))
            raise KeyboardInterrupt

        self.interrupted(start)
        self.assertEqual((self.ended, self.stops), ([True], 2))

    def kept(self, use: Callable[[Any], object]) -> None:
        """Whoever carries out the call keeps the memory, also when everybody else is gone."""

        class Memory(bytearray):
            pass

        calls: list[Callable[[], int]] = []

        def interruptible(call: Callable[[], int], stop: Callable[[], object]) -> None:
            calls.append(call)
            raise KeyboardInterrupt

        memory = Memory(240)
        seen = weakref.ref(memory)
        with mock.patch.object(_native, "interruptible", interruptible), self.assertRaises(KeyboardInterrupt):
            use(memory)
        del memory
        gc.collect()
        self.assertIsNotNone(seen())
        calls.clear()
        gc.collect()
        self.assertIsNone(seen())

    def test_the_memory_of_weights_is_kept(self) -> None:
        path = make_model(self.folder() / "m.safetensors", {"a": ("F32", (6, 10), seeded(self).randbytes(240))})
        with gpunvme.Weights(path, ACCELERATOR) as weights:
            self.kept(lambda memory: weights.read([("a", memory)]))

    def test_the_memory_of_a_layer_is_kept(self) -> None:
        with gpunvme.LayerLoader(self.device(), 4096, 2) as loader:
            self.kept(lambda memory: loader.load(0, memory))

    def test_a_close_that_was_interrupted_can_be_made_again(self) -> None:
        storage = self.device()
        free = storage._handle._free
        with mock.patch.object(storage._handle, "_free", side_effect=KeyboardInterrupt):
            with self.assertRaises(KeyboardInterrupt):
                storage.close()
        self.assertTrue(storage.closed)
        self.assertFalse(storage._handle._freed)
        with mock.patch.object(storage._handle, "_free", side_effect=free) as again:
            storage.close()
            storage.close()
        again.assert_called_once()
