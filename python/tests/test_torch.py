"""PyTorch: tensors, models, datasets."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import textwrap
import threading
import time
import unittest
from typing import Any
from unittest import mock

from support import ACCELERATOR, Case, make_model, needs_fake, needs_real, on_an_ssd, run, seeded

import gpunvme

try:
    import torch
except ImportError:
    raise unittest.SkipTest("torch is not installed") from None

import gpunvme.torch as gt  # noqa: E402
import torch_nvme  # noqa: E402
from gpunvme.torch import _reading  # noqa: E402


def raw(tensor: torch.Tensor) -> bytes:
    """The bytes of a tensor, without NumPy."""
    return bytes(tensor.contiguous().view(-1).view(torch.uint8).tolist())


class TensorTest(Case):
    def test_read_into_tensor(self) -> None:
        storage, data = self.filled()
        tensor = torch.empty(10, 100)
        self.assertIs(gt.read_into_tensor(tensor, lba=3, storage=storage), tensor)
        self.assertEqual(raw(tensor), data[1536:5536])
        gt.read_into_tensor(tensor[4], lba=0, storage=storage)
        self.assertEqual(raw(tensor[4]), data[:400])
        for dtype in (torch.bfloat16, torch.float16, torch.int64, torch.bool, torch.complex64):
            typed = torch.empty(100, dtype=dtype)
            storage.read(0, typed)
            self.assertEqual(raw(typed.view(torch.uint8)), data[: typed.numel() * typed.element_size()])

    def test_writes_from_tensors(self) -> None:
        storage = self.device()
        tensor = torch.arange(1000, dtype=torch.int32)
        storage.write(77, tensor)
        back = torch.empty(1000, dtype=torch.int32)
        storage.submit_read(77, back).result()
        self.assertTrue(torch.equal(tensor, back))

    def test_refuses_what_shows_no_memory(self) -> None:
        storage = self.device()
        for wrong in (
            torch.empty(10, 10).t(),
            torch.empty(100)[::2],
            torch.eye(4).to_sparse(),
            torch.zeros(4, dtype=torch.complex64).conj(),
        ):
            with self.assertRaises(BufferError):
                storage.read(0, wrong)
        with self.assertRaisesRegex(TypeError, "meta"):
            storage.read(0, torch.empty(10, device="meta"))

    def test_parameters(self) -> None:
        storage, data = self.filled()
        parameter = torch.nn.Parameter(torch.zeros(100))
        storage.read(0, parameter)
        self.assertEqual(raw(parameter.detach()), data[:400])

    def test_arrays_become_tensors(self) -> None:
        storage, data = self.filled()
        tensor = torch.from_dlpack(storage.read_array(0, 4000, "<f4", (10, 100)))
        storage.close()
        gc.collect()
        self.assertEqual((tensor.dtype, tuple(tensor.shape)), (torch.float32, (10, 100)))
        self.assertEqual(raw(tensor), data[:4000])

    def test_the_first_proposals_snippet(self) -> None:
        storage = torch_nvme.open("sim:size=8MiB", ACCELERATOR, write=True)
        self.addCleanup(storage.close)
        data = seeded(self).randbytes(4 << 20)
        storage.write(0, data)

        tensor = torch.empty(1024, 1024)
        torch_nvme.read_into_tensor(tensor, lba=0)

        self.assertEqual(tensor.view(torch.uint8).flatten().equal(torch.frombuffer(bytearray(data), dtype=torch.uint8)), True)

    def test_the_environment_names_the_device(self) -> None:
        source = """
            import torch, torch_nvme
            tensor = torch.ones(1024)
            try:
                torch_nvme.read_into_tensor(tensor, lba=0)
                print(tensor.sum().item())
            except ValueError as e:
                print(e)
        """
        self.assertEqual(run(source, GPUNVME_DEVICE="sim:size=1MiB").stdout, "0.0\n")
        self.assertIn("GPUNVME_DEVICE", run(source, GPUNVME_DEVICE="").stdout)


class ModelTest(Case):
    def model(self) -> Any:
        random = seeded(self)
        tensors = {
            "w": ("F32", (6, 10, 4), random.randbytes(960)),
            "h": ("BF16", (33,), random.randbytes(66)),
            "scalar": ("I64", (), (42).to_bytes(8, "little")),
            "none": ("F16", (0, 5), b""),
            "flags": ("BOOL", (3,), b"\1\0\1"),
        }
        return make_model(self.folder() / "m.safetensors", tensors, format="pt"), tensors

    def test_load_file(self) -> None:
        path, tensors = self.model()
        loaded = gt.load_file(path, "cpu")
        self.assertEqual(list(loaded), list(tensors))
        types = {"F32": torch.float32, "BF16": torch.bfloat16, "I64": torch.int64, "F16": torch.float16, "BOOL": torch.bool}
        for name, (dtype, shape, data) in tensors.items():
            self.assertEqual((loaded[name].dtype, tuple(loaded[name].shape)), (types[dtype], shape))
            if data:
                self.assertEqual(raw(loaded[name]), data)
        self.assertEqual(loaded["scalar"].item(), 42)

    def test_safe_open(self) -> None:
        path, tensors = self.model()
        with gt.safe_open(path, framework="pt", device="cpu") as model:
            self.assertEqual(model.keys(), list(tensors))
            self.assertEqual(model.metadata()["format"], "pt")
            self.assertEqual(raw(model.get_tensor("h")), tensors["h"][2])
            with self.assertRaises(gpunvme.NotFoundError):
                model.get_tensor("other")
        with self.assertRaises(gpunvme.ClosedError):
            model.get_tensor("h")
        with self.assertRaises(ValueError):
            gt.safe_open(path, framework="np")
        with self.assertRaises(ValueError):
            gt.safe_open(path, device="meta")

    def test_slices(self) -> None:
        path, tensors = self.model()
        with gt.safe_open(path, device="cpu") as model:
            part = model.get_slice("w")
            self.assertEqual((part.get_shape(), part.get_dtype()), ([6, 10, 4], "F32"))
            whole = model.get_tensor("w")
            s = slice
            for index in (
                s(None), s(1, 3), (s(None), s(2, 7)), (s(None), s(None), s(1, 2)), (s(1, 5), s(3, 4), s(None)), 2, -1,
                (1, s(2, 4)), (s(-3, None),), (..., s(0, 2)), (s(1, 2), ..., 3), (s(0, 6, 2), s(1, 9, 3)), (5, 9, 3), s(4, 4),
                (s(3, 1), s(0, 2)), s(2, 100), (Ellipsis,), (s(None), 4),
            ):  # fmt: skip
                with self.subTest(index=index):
                    self.assertTrue(torch.equal(part[index].view(torch.int32), whole[index].view(torch.int32)))
                    self.assertEqual(part[index].shape, whole[index].shape)
            for wrong, kind in ((6, IndexError), ((0, 0, 0, 0), IndexError), ("a", TypeError), (s(None, None, -1), ValueError)):
                with self.assertRaises(kind):
                    part[wrong]
            self.assertEqual(model.get_slice("none")[0:0].shape, (0, 5))

    def test_memory_is_taken_while_others_read(self) -> None:
        path, tensors = self.model()
        empty = torch.empty
        read = gpunvme.Weights._read_to_the_end
        seen: list[str] = []

        def reads(weights: gpunvme.Weights, some: Any) -> int:
            seen.extend(f"read {name}" for name, *_ in some)
            return read(weights, some)

        def takes(shape: tuple[int, ...], **kind: Any) -> torch.Tensor:
            if shape == (33,):
                # The tensor before is read meanwhile, so this ends.
                end = time.monotonic() + 30
                while "read w" not in seen and time.monotonic() < end:
                    time.sleep(0.001)
            seen.append(f"take {shape}")
            return empty(shape, **kind)

        with self.in_short_batches(reads), mock.patch("torch.empty", takes):
            loaded = gt.load_file(path, "cpu")
        self.assertEqual({name: raw(t) for name, t in loaded.items()}, {name: data for name, (_, _, data) in tensors.items()})
        self.assertEqual(list(loaded), list(tensors))
        self.assertLess(seen.index("read w"), seen.index("take (33,)"))
        # What has no bytes is not read.
        self.assertEqual(sorted(s for s in seen if s.startswith("read")), ["read flags", "read h", "read scalar", "read w"])

    @needs_real
    def test_an_ssd_is_read_when_all_memory_is_taken(self) -> None:
        path, tensors = self.model()
        address = on_an_ssd(self, path)
        seen: list[str] = []
        empty = torch.empty
        read = gpunvme.Weights._read_to_the_end

        def reads(weights: gpunvme.Weights, some: Any) -> int:
            seen.append("read")
            return read(weights, some)

        def takes(shape: tuple[int, ...], **kind: Any) -> torch.Tensor:
            time.sleep(0.05)
            seen.append("take")
            return empty(shape, **kind)

        with self.in_short_batches(reads), mock.patch("torch.empty", takes):
            loaded = gt.load_file(address, "cpu")
        self.assertEqual({name: raw(t) for name, t in loaded.items()}, {name: data for name, (_, _, data) in tensors.items()})
        self.assertEqual(seen, ["take"] * 5 + ["read"] * 4)

    def test_a_failure_leaves_the_model_open(self) -> None:
        path, tensors = self.model()
        empty = torch.empty
        read = gpunvme.Weights._read_to_the_end
        threads = threading.active_count()

        def reads(weights: gpunvme.Weights, some: Any) -> int:
            if some[0][0] == "scalar":
                raise gpunvme.TransferError.of("a test: a block is unreadable")
            return read(weights, some)

        def takes(shape: tuple[int, ...], **kind: Any) -> torch.Tensor:
            if shape == (3,):
                raise MemoryError("a test: no memory is left")
            return empty(shape, **kind)

        with gt.safe_open(path, device="cpu") as model:
            with self.in_short_batches(reads), self.assertRaisesRegex(gpunvme.TransferError, "a block is unreadable"):
                model.get_tensors(model.keys())
            with self.in_short_batches(read), mock.patch("torch.empty", takes), self.assertRaisesRegex(MemoryError, "no memory"):
                model.get_tensors(model.keys())
            self.assertEqual(raw(model.get_tensor("h")), tensors["h"][2])
            self.assertEqual(threading.active_count(), threads)

    @contextlib.contextmanager
    def in_short_batches(self, reads: Any) -> Any:
        """Each tensor is one, and memory is told of at once."""
        with (
            mock.patch.object(_reading, "_BATCH", 1),
            mock.patch.object(_reading, "_TOLD", 1),
            mock.patch.object(gpunvme.Weights, "_read_to_the_end", reads),
        ):
            yield

    @needs_fake
    def test_quantised_tensors_are_rows_of_bytes(self) -> None:
        path, _ = self.model()
        described = path.with_name(path.name + ".json")
        described.write_text(described.read_text().replace('"F32", "shape": [6, 10, 4]', '"Q4_0", "shape": [6, 1, 256]'))
        with gt.safe_open(path, device="cpu") as model:
            tensor = model.get_tensor("w")
            self.assertEqual((tensor.dtype, tuple(tensor.shape)), (torch.uint8, (6, 1, 160)))

    def test_tensors_own_their_memory(self) -> None:
        path, tensors = self.model()
        loaded = gt.load_file(path, "cpu")
        path.write_bytes(b"")
        gc.collect()
        self.assertEqual(raw(loaded["w"]), tensors["w"][2])
        self.assertNotEqual(loaded["w"].data_ptr(), loaded["h"].data_ptr())


class SampleTest(Case):
    """Samples hold their own number."""

    SAMPLE = 1000

    def samples(self, count: int = 100) -> Any:
        path = self.folder() / "samples"
        path.write_bytes(b"head" + b"".join(i.to_bytes(4, "little") * (self.SAMPLE // 4) for i in range(count)) + b"rest")
        return path

    def numbers(self, given: Any) -> list[int]:
        seen = []
        for sample in given:
            sample = sample.reshape(-1)
            self.assertEqual((sample.dtype, sample.numel()), (torch.int32, self.SAMPLE // 4))
            self.assertTrue(bool((sample == sample[0]).all()))
            seen.append(int(sample[0]))
        return seen

    def dataset(self, **options: Any) -> gt.SampleDataset:
        given = {"sample_bytes": self.SAMPLE, "offset": 4, "count": 100, "dtype": torch.int32, "device": "cpu"}
        dataset = gt.SampleDataset(self.samples(), **(given | options))
        self.addCleanup(dataset.close)
        return dataset

    def test_in_order(self) -> None:
        dataset = self.dataset()
        self.assertEqual(self.numbers(dataset), list(range(100)))
        self.assertEqual(self.numbers(dataset), list(range(100)))
        self.assertEqual(len(dataset), 100)
        self.assertEqual(self.numbers(self.dataset(count=None, ahead=1)), list(range(100)))

    def test_some_of_them(self) -> None:
        self.assertEqual(self.numbers(self.dataset(indices=[5, 99, 5, 0])), [5, 99, 5, 0])
        with self.assertRaises(IndexError):
            list(self.dataset(indices=[100]))

    def test_random_order_is_another_one_each_time(self) -> None:
        dataset = self.dataset(seed=1)
        first, second = self.numbers(dataset), self.numbers(dataset)
        self.assertEqual(sorted(first), list(range(100)))
        self.assertEqual(sorted(second), list(range(100)))
        self.assertNotEqual(first, second)
        dataset.set_epoch(0)
        self.assertEqual(self.numbers(dataset), first)

    def test_offsets_and_lengths(self) -> None:
        dataset = self.dataset(
            sample_bytes=None, count=None, offsets=[4 + 3000, 4], lengths=[1000, 400], transform=lambda t: t.tolist()
        )
        self.assertEqual(list(dataset), [[3] * 250, [0] * 100])
        self.assertEqual(len(dataset), 2)

    def test_shape_and_transform(self) -> None:
        dataset = self.dataset(shape=(10, 25), transform=lambda t: (tuple(t.shape), int(t[0, 0])))
        self.assertEqual(list(dataset)[7], ((10, 25), 7))

    def test_says_what_is_missing(self) -> None:
        for options in ({"sample_bytes": None}, {"offsets": [1], "lengths": [1]}, {"ahead": 0}, {"sample_bytes": 0}):
            with self.assertRaises(ValueError):
                self.dataset(**options)
        with self.assertRaises(ValueError):
            self.dataset(sample_bytes=None, offsets=[1, 2], lengths=[1])

    def test_left_early(self) -> None:
        dataset = self.dataset(ahead=50)
        for sample in dataset:
            break
        self.assertEqual(int(sample[0]), 0)
        gc.collect()
        dataset.close()

    WORKERS = """
        import os, signal, sys, torch
        from gpunvme.torch import SampleDataset
        import gpunvme

        def numbers(batches):
            return sorted(int(s[0]) for b in batches for s in b)

        if __name__ == "__main__":
            path, method, when = sys.argv[1:]
            if when == "after":
                storage = gpunvme.Storage(path, "cpu")
            dataset = SampleDataset(path, sample_bytes=1000, offset=4, count=100, seed=3, dtype=torch.int32)
            loader = torch.utils.data.DataLoader(dataset, batch_size=8, num_workers=2, multiprocessing_context=method)
            try:
                for epoch in range(2):
                    assert numbers(loader) == list(range(100))
                print("all samples once")
            except Exception as e:
                print(type(e).__name__, str(e).splitlines()[-1])
    """

    EPOCHS = """
        import multiprocessing, sys, torch
        from gpunvme.torch import SampleDataset

        # Children of a process that has PyTorch and has not used the library.
        server = multiprocessing.get_context("forkserver")
        server.set_forkserver_preload(["gpunvme.torch"])

        def dataset(**options):
            return SampleDataset(sys.argv[1], sample_bytes=1000, offset=4, count=100, dtype=torch.int32, device="cpu", **options)

        def epochs(data, many, persistent=False, first=None):
            loader = torch.utils.data.DataLoader(
                data, batch_size=8, num_workers=2, multiprocessing_context=server, persistent_workers=persistent
            )
            orders = []
            for epoch in range(many):
                if first is not None:
                    data.set_epoch(first + epoch)
                orders.append([int(s[0]) for batch in loader for s in batch])
                assert sorted(orders[-1]) == list(range(100)), orders[-1]
            return orders

        def run(persistent):
            torch.manual_seed(11)
            orders = epochs(dataset(seed=3), 3, persistent)
            assert len(set(map(tuple, orders))) == 3, orders
            return orders

        if __name__ == "__main__":
            for persistent in (False, True):
                first = run(persistent)
                assert run(persistent) == first
                print("another one each time, the same again" + ", by workers that stay" * persistent)
            # By epoch, whatever PyTorch draws.
            orders = epochs(dataset(seed=3), 2, first=5)
            assert orders[0] != orders[1] and epochs(dataset(seed=3), 2, first=5) == orders
            assert epochs(dataset(seed=4), 1, first=5)[0] != orders[0]
            print("by epoch")
            # The same one as in this process: workers take turns by batches of 8.
            alone = dataset(seed=3)
            alone.set_epoch(5)
            order = [int(s[0]) for s in alone]
            shares = [order[w::2] for w in (0, 1)]
            turns = [shares[w][8 * b : 8 * b + 8] for b in range(7) for w in (0, 1)]
            assert [i for t in turns for i in t] == orders[0]
            print("as alone")
    """

    def workers(self, *arguments: str, source: str = WORKERS) -> str:
        script = self.folder() / "main.py"
        script.write_text(textwrap.dedent(source))
        done = run(
            "import runpy, sys; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')",
            str(script),
            str(self.samples()),
            *arguments,
            timeout=300,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.strip()

    def test_orders_of_epochs_with_workers(self) -> None:
        self.assertEqual(
            self.workers(source=self.EPOCHS).splitlines(),
            [
                "another one each time, the same again",
                "another one each time, the same again, by workers that stay",
                "by epoch",
                "as alone",
            ],
        )

    def test_orders_of_epochs_without_workers(self) -> None:
        def epochs(seed: int) -> list[list[int]]:
            loader = torch.utils.data.DataLoader(self.dataset(seed=seed), batch_size=8, num_workers=0)
            return [[int(s[0]) for batch in loader for s in batch] for _ in range(3)]

        orders = epochs(3)
        for order in orders:
            self.assertEqual(sorted(order), list(range(100)))
        self.assertEqual(len(set(map(tuple, orders))), 3)
        self.assertEqual(epochs(3), orders)
        self.assertNotEqual(epochs(4)[0], orders[0])

    def test_workers_by_fork_before_the_library_was_used(self) -> None:
        self.assertEqual(self.workers("fork", "before"), "all samples once")

    def test_workers_by_fork_after_it_are_refused(self) -> None:
        said = self.workers("fork", "after")
        self.assertTrue(said.startswith("ForkedError"), said)
        self.assertIn("spawn", said)

    def test_workers_by_spawn(self) -> None:
        self.assertEqual(self.workers("spawn", "after"), "all samples once")

    def test_a_killed_worker(self) -> None:
        dataset = self.dataset(device=None)
        loader = torch.utils.data.DataLoader(
            dataset, batch_size=1, num_workers=2, multiprocessing_context="spawn", prefetch_factor=2
        )
        batches = iter(loader)
        next(batches)
        # PyTorch tells by a signal handler, which raises wherever we are, or by a batch that it cannot fetch.
        with self.assertRaises((RuntimeError, EOFError, OSError)):
            os.kill(batches._workers[0].pid, signal.SIGKILL)  # type: ignore[attr-defined]
            for _ in batches:
                pass
        for _ in range(3):
            with contextlib.suppress(RuntimeError):
                batches._shutdown_workers()  # type: ignore[attr-defined]
                break
        self.assertEqual(self.numbers(self.dataset()), list(range(100)))
