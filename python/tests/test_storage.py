"""Reading and writing, synchronous and not, and its ends."""

from __future__ import annotations

import asyncio
import concurrent.futures
import gc
import threading
import weakref

from support import ACCELERATOR, FAKE, SLOW, Case, needs_fake, on_the_stand_in, run, seeded

import gpunvme


class StorageTest(Case):
    def test_what_was_written_is_read(self) -> None:
        storage = self.device()
        random = seeded(self)
        model = bytearray(storage.size)
        for _ in range(200):
            length = random.randrange(1, 20000)
            offset = random.randrange(storage.size - length)
            if random.random() < 0.5:
                data = random.randbytes(length)
                self.assertEqual(storage.write(offset, data), length)
                model[offset : offset + length] = data
            else:
                into = bytearray(length)
                self.assertEqual(storage.read(offset, into), length)
                self.assertEqual(into, model[offset : offset + length])
        storage.flush()

    def test_says_what_it_is(self) -> None:
        storage = self.device("2MiB")
        self.assertEqual((storage.size, storage.on_gpu, storage.closed), (2 << 20, ACCELERATOR == "gpu", False))
        self.assertEqual((storage.alignment, storage.block_bytes), (512, 512))
        self.assertIn("2097152 bytes", repr(storage))
        self.assertEqual(set(storage.stats()), {"paths", "memory", "members", "slowest"})
        self.assertGreaterEqual(storage.stats()["memory"]["pinned_bytes"], 0)
        self.assertTrue(storage.explain())
        plan = storage.plan([(0, 4096, 512), (8192, 65536, 512)])
        self.assertEqual(plan.bytes - plan.bytes_overread, 1024)

    def test_a_file(self) -> None:
        path = self.folder() / "file"
        data = seeded(self).randbytes(100_000)
        path.write_bytes(data)
        into = bytearray(1000)
        with gpunvme.Storage(path, ACCELERATOR) as storage:
            storage.read(12_345, into)
        self.assertEqual(into, data[12_345:13_345])

    @needs_fake
    def test_a_long_text_is_whole(self) -> None:
        self.assertEqual(len(self.device().explain()), 100_000)

    def test_only_a_part_of_the_memory(self) -> None:
        storage, data = self.filled()
        into = bytearray(1000)
        storage.read(100, into, 10)
        self.assertEqual(into, data[100:110] + bytes(990))
        with self.assertRaises(ValueError):
            storage.read(0, into, 1001)
        with self.assertRaises(ValueError):
            storage.read(0, into, -1)
        with self.assertRaises(ValueError):
            storage.read(-1, into)

    def test_nothing_is_moved_in_no_time(self) -> None:
        storage = self.device()
        self.assertEqual(storage.read(0, bytearray()), 0)
        request = storage.submit_read(0, bytearray())
        self.assertTrue(request.poll())
        self.assertEqual(request.result(), 0)
        self.assertEqual(storage.read_ranges([]), 0)

    def test_past_the_end(self) -> None:
        storage = self.device()
        with self.assertRaises(gpunvme.InvalidError):
            storage.read(storage.size - 1, bytearray(2))

    def test_ranges(self) -> None:
        storage, data = self.filled()
        pieces = [bytearray(n) for n in (1, 512, 777, 4096)]
        offsets = [70_000, 0, 3, 99_999]
        self.assertEqual(storage.read_ranges(zip(offsets, pieces)), sum(map(len, pieces)))
        for offset, piece in zip(offsets, pieces):
            self.assertEqual(piece, data[offset : offset + len(piece)])
        storage.write_ranges([(0, b"first"), (600, b"second", 3)])
        into = bytearray(603)
        storage.read(0, into)
        self.assertEqual(into, b"first" + data[5:600] + b"sec")
        with self.assertRaises(TypeError):
            storage.read_ranges([(0,)])

    def test_not_written_unless_allowed(self) -> None:
        with gpunvme.Storage("sim:size=1MiB", ACCELERATOR) as storage:
            with self.assertRaises(PermissionError):
                storage.write(0, b"x")

    @on_the_stand_in
    def test_streams_need_a_gpu(self) -> None:
        with self.assertRaises(gpunvme.UnsupportedError):
            self.device().submit_read(0, bytearray(512), stream=0)

    def test_use_after_close(self) -> None:
        storage = self.device()
        storage.close()
        storage.close()
        for use in (
            lambda: storage.read(0, bytearray(1)),
            lambda: storage.submit_read(0, bytearray(1)),
            storage.flush,
            storage.stats,
            lambda: storage.allocate(512),
            lambda: gpunvme.Kinds(storage),
        ):
            with self.assertRaises(gpunvme.ClosedError):
                use()

    def test_threads(self) -> None:
        storage, data = self.filled()
        seed = seeded(self).randrange(1 << 30)

        def work(number: int) -> None:
            import random

            mine = random.Random(seed + number)
            for _ in range(50):
                length = mine.randrange(1, 5000)
                offset = mine.randrange(len(data) - length)
                into = bytearray(length)
                if mine.random() < 0.3:
                    request = storage.submit_read(offset, into)
                    if mine.random() < 0.3:
                        request.cancel()
                    try:
                        request.result()
                    except gpunvme.CancelledError:
                        continue
                else:
                    storage.read(offset, into)
                assert into == data[offset : offset + length]

        with concurrent.futures.ThreadPoolExecutor(24) as pool:
            for future in [pool.submit(work, n) for n in range(24)]:
                future.result()

    def test_the_interpreter_goes_on_meanwhile(self) -> None:
        storage = gpunvme.Storage("sim:size=1MiB,latency=200ms", ACCELERATOR)
        self.addCleanup(storage.close)
        thread = threading.Thread(target=lambda: storage.read(0, bytearray(512)))
        thread.start()
        turns = 0
        while thread.is_alive():
            turns += 1
        # If the call held the interpreter's lock, this loop would have had hardly a turn.
        self.assertGreater(turns, 1000)
        thread.join()


class RequestTest(Case):
    def test_result(self) -> None:
        storage, data = self.filled()
        into = bytearray(5000)
        request = storage.submit_read(77, into)
        self.assertEqual(request.result(), 5000)
        self.assertEqual(into, data[77:5077])
        self.assertTrue(request.poll() and request.wait() and request.wait(0))
        self.assertIsNone(request.exception())
        request.cancel()
        request.close()
        self.assertEqual(request.result(), 5000)

    def test_writes(self) -> None:
        storage = self.device()
        self.assertEqual(storage.submit_write(5, b"hello").result(), 5)
        self.assertEqual(storage.submit_write_ranges([(100, b"a"), (200, b"b")]).result(), 2)
        into = bytearray(5)
        storage.submit_read_ranges([(5, into)]).result()
        self.assertEqual(into, b"hello")

    def slow(self) -> gpunvme.Storage:
        storage = gpunvme.Storage(SLOW, ACCELERATOR)
        self.addCleanup(storage.close)
        return storage

    def test_cancel(self) -> None:
        request = self.slow().submit_read(0, bytearray(512))
        self.assertFalse(request.poll())
        self.assertFalse(request.wait(0.01))
        with self.assertRaises(TimeoutError):
            request.result(0.01)
        request.cancel()
        with self.assertRaises(gpunvme.CancelledError):
            request.result()
        self.assertIsInstance(request.exception(), gpunvme.CancelledError)

    def test_closing_the_storage_cancels(self) -> None:
        storage = self.slow()
        request = storage.submit_read(0, bytearray(512))
        storage.close()
        with self.assertRaises(gpunvme.CancelledError):
            request.result()

    def test_a_block_cancels(self) -> None:
        with self.slow().submit_read(0, bytearray(512)) as request:
            pass
        self.assertTrue(request.poll())

    def test_dropped_ones_are_cancelled(self) -> None:
        request = self.slow().submit_read(0, bytearray(512))
        gone = weakref.ref(request)
        del request
        gc.collect()
        self.assertIsNone(gone())

    def test_memory_lives_as_long_as_the_request(self) -> None:
        class Memory(bytearray):
            pass

        storage = self.slow()
        memory = Memory(512)
        seen = weakref.ref(memory)
        request = storage.submit_read(0, memory)
        with self.assertRaises(BufferError):
            memory.append(0)  # it would move
        del memory
        gc.collect()
        self.assertIsNotNone(seen())
        request.close()
        gc.collect()
        self.assertIsNone(seen())

    @needs_fake
    def test_failures(self) -> None:
        with gpunvme.Storage("fake:size=1MiB,fail=-6,errno=19") as storage:
            for _ in range(2):
                request = storage.submit_read(0, bytearray(512))
                with self.assertRaises(gpunvme.GoneError) as raised:
                    request.result()
                self.assertEqual(raised.exception.errno, 19)
            with self.assertRaises(gpunvme.GoneError):
                storage.read(0, bytearray(512))

    def test_futures(self) -> None:
        storage, data = self.filled()
        into = [bytearray(512) for _ in range(50)]
        requests = [storage.submit_read(i * 512, m) for i, m in enumerate(into)]
        futures = [r.future() for r in requests]
        for future in concurrent.futures.as_completed(futures, 60):
            self.assertEqual(future.result(), 512)
        self.assertEqual(b"".join(into), data[: 50 * 512])
        self.assertIs(requests[0].future(), futures[0])

    def test_cancelling_a_future_cancels_the_request(self) -> None:
        request = self.slow().submit_read(0, bytearray(512))
        self.assertTrue(request.future().cancel())
        with self.assertRaises(gpunvme.CancelledError):
            request.result(60)

    def test_asyncio(self) -> None:
        storage, data = self.filled()

        async def main() -> None:
            into = [bytearray(1000) for _ in range(20)]
            done = await asyncio.gather(*(storage.submit_read(i * 1000, m) for i, m in enumerate(into)))
            self.assertEqual(done, [1000] * 20)
            self.assertEqual(b"".join(into), data[:20_000])

        asyncio.run(main())

    def test_a_cancelled_task_leaves_no_request(self) -> None:
        storage = self.slow()

        async def main() -> None:
            request = storage.submit_read(0, bytearray(512))

            async def wait() -> int:
                return await request

            with self.assertRaises(TimeoutError):
                await asyncio.wait_for(wait(), 0.05)
            self.assertTrue(request.poll())
            self.assertIsInstance(request.exception(), gpunvme.CancelledError)

        asyncio.run(main())

    def test_a_task_that_is_cancelled_again_waits_for_its_request(self) -> None:
        with gpunvme.Storage("sim:size=1MiB,latency=400ms", ACCELERATOR) as storage:

            async def main(by_future: bool) -> None:
                request = storage.submit_read(0, bytearray(512))
                request.cancel = lambda: None  # type: ignore[method-assign] # as if it had no effect yet

                async def wait() -> int:
                    return await request

                task = asyncio.create_task(wait())
                await asyncio.sleep(0.05)
                if by_future:
                    request.future().cancel()
                for _ in range(3):
                    task.cancel()
                    await asyncio.sleep(0.02)
                with self.assertRaises(asyncio.CancelledError):
                    await task
                self.assertTrue(request._over)

            for by_future in (False, True):
                with self.subTest(by_future=by_future):
                    asyncio.run(main(by_future))

    def test_waits_for_ever(self) -> None:
        storage, _ = self.filled()
        self.assertEqual(storage.submit_read(0, bytearray(512)).result(float("inf")), 512)

    def test_many_waiters(self) -> None:
        request = self.slow().submit_read(0, bytearray(512))
        outcomes: list[type[BaseException]] = []

        def wait() -> None:
            try:
                request.result()
            except gpunvme.GpuNvmeError as e:
                outcomes.append(type(e))

        threads = [threading.Thread(target=wait) for _ in range(8)]
        for thread in threads:
            thread.start()
        request.cancel()
        for thread in threads:
            thread.join(60)
        self.assertEqual(outcomes, [gpunvme.CancelledError] * 8)


class ForkTest(Case):
    def test_a_fork_is_refused_and_spawn_works(self) -> None:
        folder = self.folder()
        (folder / "main.py").write_text(
            f"ACCELERATOR = {ACCELERATOR!r}\n"
            """
import multiprocessing, sys
import gpunvme

def work(queue):
    try:
        with gpunvme.Storage("sim:size=1MiB", ACCELERATOR, write=True) as storage:
            queue.put(str(storage.write(0, b"12345")))
    except Exception as e:
        queue.put(f"{type(e).__name__}: {e}")

if __name__ == "__main__":
    for when in "before", "after":
        for method in "fork", "spawn":
            context = multiprocessing.get_context(method)
            queue = context.Queue()
            process = context.Process(target=work, args=(queue,))
            process.start()
            print(when, method, queue.get(timeout=60), flush=True)
            process.join()
            assert process.exitcode == 0
        storage = gpunvme.Storage("sim:size=1MiB", ACCELERATOR)
"""
        )
        done = run(f"import runpy, sys; sys.path.insert(0, {str(folder)!r}); runpy.run_path({str(folder / 'main.py')!r}, run_name='__main__')")
        lines = done.stdout.splitlines()
        self.assertEqual(lines[:2], ["before fork 5", "before spawn 5"], done.stderr)
        self.assertTrue(lines[2].startswith("after fork ForkedError: "), lines[2])
        self.assertIn("spawn", lines[2])
        self.assertEqual(lines[3], "after spawn 5")
        self.assertEqual(done.returncode, 0, done.stderr)


class EndlessTest(Case):
    def test_many_storages(self) -> None:
        for _ in range(1000 if FAKE else 20):
            with gpunvme.Storage("sim:size=1MiB", ACCELERATOR) as storage:
                storage.read(0, bytearray(16))

    def test_a_dropped_storage_is_closed(self) -> None:
        storage = gpunvme.Storage("sim:size=1MiB", ACCELERATOR)
        handle = storage._handle
        del storage
        gc.collect()
        self.assertTrue(handle.closed)
