"""Ray Data: datasets of samples, safetensors and ranges, and batches that workers read.

One Ray for all tests, in a process of its own: Ray's handlers of signals must be there before those of the virtual machine.
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import re
import shutil
import signal
import tempfile
import threading
import time
import unittest
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from support import PYTHON, Case, make_model, seeded

os.environ |= {
    "RAY_USAGE_STATS_ENABLED": "0",
    # A machine that is busy, or has a full disk, is no failure.
    "RAY_DISABLE_MEMORY_MONITOR": "1",
    "RAY_local_fs_capacity_threshold": "1",
    # Processes that know PyTorch and have a virtual machine are kept for the next test.
    "RAY_idle_worker_killing_time_threshold_ms": "600000",
    # Workers find the package as this process does.
    "PYTHONPATH": str(PYTHON / "src"),
}

try:
    import numpy as np
    import ray
    import ray.data
    import torch
except ImportError as e:
    raise unittest.SkipTest(f"{(e.name or 'ray').partition('.')[0]} is not installed") from None

import gpunvme  # noqa: E402
import gpunvme.ray as gr  # noqa: E402
from gpunvme.ray._datasource import _table  # noqa: E402
from gpunvme.ray._index import permuted  # noqa: E402
from gpunvme.ray._layout import Column, Layout, Source  # noqa: E402

_ray_folder = ""


def setUpModule() -> None:
    global _ray_folder
    # Names of its sockets have a limit.
    _ray_folder = tempfile.mkdtemp(prefix="ray", dir="/tmp")
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        object_store_memory=96 << 20,
        _temp_dir=_ray_folder,
        log_to_driver=False,
        logging_level="error",
    )
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    # Errors that are wanted; Ray's folder has the log.
    logging.getLogger("ray.data").setLevel(logging.CRITICAL + 1)


def tearDownModule() -> None:
    ray.shutdown()
    shutil.rmtree(_ray_folder)


class RayCase(Case):
    def files(self, rows: list[int]) -> tuple[list[Path], np.ndarray[Any, Any]]:
        """Files of float32 samples of shape (3, 5); all samples differ, and have their number first."""
        folder = self.folder()
        samples = np.random.default_rng(1).random((sum(rows), 3, 5), np.float32)
        samples[:, 0, 0] = np.arange(sum(rows))
        paths, at = [], 0
        for i, n in enumerate(rows):
            paths.append(folder / f"part{i}.bin")
            samples[at : at + n].tofile(paths[-1])
            at += n
        return paths, samples

    @contextlib.contextmanager
    def small_blocks(self, nbytes: int) -> Iterator[None]:
        context = ray.data.DataContext.get_current()
        before = context.target_max_block_size
        context.target_max_block_size = nbytes
        try:
            yield
        finally:
            context.target_max_block_size = before


class ReadTest(RayCase):
    def test_samples(self) -> None:
        paths, samples = self.files([100, 0, 257, 1])
        with self.small_blocks(60 * 20):
            dataset = gr.read_samples(paths, shape=(3, 5), dtype="float32", include_paths=True, override_num_blocks=3)
            read = dataset.materialize()
        # Each task several blocks, as large as Ray takes them without a copy.
        self.assertGreater(read.num_blocks(), 9)
        self.assertEqual((read.count(), dataset.count()), (358, 358))
        names = [str(paths[i]) for i, n in enumerate([100, 0, 257, 1]) for _ in range(n)]
        seen = np.zeros(358, int)
        for batch in read.iter_batches(batch_size=50, batch_format="numpy"):
            numbers = batch["data"][:, 0, 0].astype(int)
            seen[numbers] += 1
            self.assertEqual(batch["data"].tobytes(), samples[numbers].tobytes())
            self.assertEqual(batch["path"].tolist(), [names[n] for n in numbers])
        self.assertTrue((seen == 1).all())
        told = gr.stats(read)
        self.assertEqual((told["reads"], told["accelerator"]), (3, "cpu"))
        self.assertEqual(sum(p["read_bytes"] for p in told["paths"].values()), samples.nbytes)
        self.assertTrue(told["used"])
        with self.assertRaisesRegex(ValueError, "do not tell"):
            gr.stats(read.map_batches(lambda batch: {"sum": batch["data"].sum(axis=(1, 2))}))

    def test_an_ssd_of_ours(self) -> None:
        image = self.folder() / "image"
        data = seeded(self).randbytes(1 << 20)
        with gpunvme.Storage(f"sim:file={image},size=1MiB", "cpu", write=True) as ssd:
            ssd.write(0, data)
            ssd.flush()
        # An SSD is driven by one process at a time; the first sample is not where a block begins.
        dataset = gr.read_samples(f"sim:file={image}", shape=(), dtype=np.int16, offset=3, count=70_000, concurrency=1)
        numbers = np.concatenate([b["data"] for b in dataset.iter_batches(batch_size=None, batch_format="numpy")])
        self.assertEqual(sorted(numbers), sorted(np.frombuffer(data, np.int16, 70_000, 3)))

    def test_safetensors(self) -> None:
        random, folder = seeded(self), self.folder()
        paths, tensors = [], []
        for i, rows in enumerate((70, 30)):
            some = {
                "x": ("F32", (rows, 2, 3), random.randbytes(rows * 24)),
                "y": ("I64", (rows,), random.randbytes(rows * 8)),
                "z": ("BF16", (rows, 4), random.randbytes(rows * 8)),
                "scalar": ("I64", (), bytes(8)),
            }
            paths.append(make_model(folder / f"{i}.safetensors", some))
            tensors.append(some)
        dataset = gr.read_safetensors(paths, names=["y", "x", "z"], words=True)
        wanted = {}
        for some in tensors:
            rows = some["x"][1][0]
            for row in range(rows):
                x, y, z = (some[n][2][row * size : (row + 1) * size] for n, size in (("x", 24), ("y", 8), ("z", 8)))
                wanted[y] = (x, z)
        self.assertEqual(dataset.count(), len(wanted))
        for row in dataset.iter_rows():
            self.assertEqual((row["x"].shape, row["x"].dtype, row["z"].dtype), ((2, 3), np.float32, np.uint16))
            self.assertEqual(wanted.pop(np.int64(row["y"]).tobytes()), (row["x"].tobytes(), row["z"].tobytes()))
        self.assertEqual(wanted, {})

    def test_ranges(self) -> None:
        random, folder = seeded(self), self.folder()
        files = {str(folder / name): random.randbytes(100_000) for name in "ab"}
        ranges = []
        for name, data in files.items():
            Path(name).write_bytes(data)
            starts = [random.randrange(100_000) for _ in range(100)]
            ranges.append([(at, random.randrange(min(5000, 100_000 - at))) for at in starts] + [(100_000, 0), (7, 0)])
        with self.small_blocks(20_000):
            dataset = gr.read_ranges(list(files), [np.array(ranges[0], np.uint64), ranges[1]], override_num_blocks=4)
            read = dataset.materialize()
        self.assertGreater(read.num_blocks(), 8)
        self.assertEqual(sum(p["read_bytes"] for p in gr.stats(read)["paths"].values()), sum(n for some in ranges for _, n in some))
        rows = read.take_all()
        for row in rows:
            self.assertEqual(row["bytes"], files[row["path"]][row["offset"] :][: len(row["bytes"])])
        wanted = sorted((name, *r) for name, some in zip(files, ranges, strict=True) for r in some)
        self.assertEqual(sorted((r["path"], r["offset"], len(r["bytes"])) for r in rows), wanted)
        self.assertEqual(gr.read_ranges(list(files)[0], []).count(), 0)

    def test_a_killed_worker_is_replaced(self) -> None:
        image = self.folder() / "image"
        data = np.arange(1 << 17, dtype=np.int64)
        with gpunvme.Storage(f"sim:file={image},size=1MiB", "cpu", write=True) as ssd:
            ssd.write(0, data)
            ssd.flush()
        # Short commands, and few of them at a time: it takes seconds.
        slow = f"sim:file={image},latency=40ms,mdts=8KiB,mqes=3"
        dataset = gr.read_samples(slow, shape=(1024,), dtype="int64", concurrency=1, override_num_blocks=1)
        killed: list[int] = []

        def kill() -> None:
            end = time.monotonic() + 60
            while not killed and time.monotonic() < end:
                killed.extend(pid for pid in _users(image) if pid != os.getpid())
                time.sleep(0.05)
            time.sleep(0.2)
            os.kill(killed[0], signal.SIGKILL)

        thread = threading.Thread(target=kill)
        thread.start()
        rows = dataset.take_all()
        thread.join()
        self.assertEqual(len(killed), 1)
        self.assertFalse(Path(f"/proc/{killed[0]}/exe").exists())
        self.assertEqual(sorted(np.concatenate([r["data"] for r in rows]).tolist()), data.tolist())

    def test_errors_are_told_before_anything_is_read(self) -> None:
        (path,), _ = self.files([10])
        folder = path.parent
        model = make_model(
            folder / "m.safetensors",
            {"a": ("F32", (2, 3), bytes(24)), "b": ("F32", (3, 3), bytes(36)), "h": ("BF16", (2,), bytes(4)), "s": ("U8", (), b"1")},
        )
        other = make_model(folder / "o.safetensors", {"a": ("F32", (2, 4), bytes(32))})
        invalid, wrong, unsupported = gpunvme.InvalidError, gpunvme.FormatError, gpunvme.UnsupportedError
        for error, why, call in (
            (wrong, r"part0.bin has 600 bytes from offset 0 on, which are 21 .* 12 bytes more; correct", lambda: self.samples(path, shape=(7,))),
            (invalid, r"part0.bin has 600 bytes: .*, 150 samples of 4 .* not 151; correct count", lambda: self.samples(path, count=151)),
            (invalid, r"part0.bin has 600 bytes, .* at 601", lambda: self.samples(path, offset=601)),
            (gpunvme.NotFoundError, "nothing.bin", lambda: self.samples(folder / "nothing.bin")),
            (invalid, "no sources", lambda: self.samples([])),
            (invalid, "dtype is a type", lambda: self.samples(path, dtype="float33")),
            (invalid, "dtype is a type", lambda: self.samples(path, dtype=None)),
            (unsupported, ">f4", lambda: self.samples(path, dtype=">f4")),
            (unsupported, "bfloat16, which NumPy and Arrow lack; .*uint16", lambda: self.samples(path, dtype=torch.bfloat16)),
            (unsupported, "complex64, which Arrow lacks", lambda: self.samples(path, dtype="complex64")),
            (ValueError, "a dimension of shape", lambda: self.samples(path, shape=(0,))),
            (wrong, "'a' has 2 rows and 'b' has 3", lambda: gr.read_safetensors(model, names=["a", "b"])),
            (wrong, "'s' is a single number", lambda: gr.read_safetensors(model, names=["s"])),
            (wrong, "no tensor 'c'; it has a, b, h, s", lambda: gr.read_safetensors(model, names=["c"])),
            (unsupported, "'h' is of type bfloat16.*words=True", lambda: gr.read_safetensors(model, names=["h"])),
            (wrong, r"o.safetensors does not have the tensors of .*m.safetensors: 'a' .*\(4,\), not", lambda: gr.read_safetensors([model, other], names=["a"])),
            (gpunvme.GpuNvmeError, "part0.bin", lambda: gr.read_safetensors(path)),
            (invalid, "a folder; give", lambda: gr.read_safetensors(folder)),
            (invalid, r"part0.bin has 600 bytes, and range 1 is 2 bytes at 599", lambda: gr.read_ranges(path, [(0, 600), (599, 2)])),
            (invalid, r"range 0 is 9223372036854775807 bytes at 1", lambda: gr.read_ranges(path, [(1, 2**63 - 1)])),
            (invalid, r"range 0 is 1 bytes at -1", lambda: gr.read_ranges(path, [(-1, 1)])),
            (invalid, r"pairs", lambda: gr.read_ranges(path, [(0.5, 1)])),
            (invalid, r"pairs", lambda: gr.read_ranges(path, [(1, 2, 3)])),
            (invalid, r"2 sources, and ranges of 1", lambda: gr.read_ranges([path, path], [[(0, 1)]])),
        ):
            with self.subTest(why), self.assertRaisesRegex(error, why):
                call()

    def samples(self, sources: Any, **arguments: Any) -> ray.data.Dataset:
        return gr.read_samples(sources, **({"shape": (), "dtype": "float32"} | arguments))

    def test_a_file_that_became_shorter(self) -> None:
        (path,), _ = self.files([10])
        dataset = gr.read_samples(path, shape=(3, 5), dtype="float32")
        os.truncate(path, 100)
        with self.assertRaisesRegex(gpunvme.GpuNvmeError, "part0.bin"):
            dataset.take_all()

    def test_blocks_are_the_memory_that_was_read_to(self) -> None:
        for dtype, shape in ((np.float32, (7, 3)), (np.int64, ())):
            array = np.ones((5, *shape), dtype)
            column = _table([Column("data", np.dtype(dtype).name, shape)], [array], None).column("data").chunk(0)
            values = column.storage.flatten() if shape else column
            self.assertEqual(values.buffers()[1].address, array.ctypes.data)


class IndexTest(RayCase):
    def test_epochs_on_several_workers(self) -> None:
        paths, samples = self.files([400, 0, 600])
        index = gr.SampleIndex.of_samples(paths, shape=(3, 5), dtype=torch.float32)
        self.assertEqual(len(index), 1000)

        @ray.remote(num_cpus=0)
        def epochs(index: gr.SampleIndex, shard: Any) -> Any:
            all_found = []
            for _ in range(2):
                found = []
                with index.iter_torch_batches(shard, batch_size=64, device="cpu", open_files=1) as batches:
                    for batch in batches:
                        found.append((batch["sample"].numpy(), batch["data"].numpy()))
                    all_found.append((found, batches.stats()))
            return os.getpid(), all_found

        shards = index.dataset(seed=5, override_num_blocks=6).streaming_split(2)
        workers = ray.get([epochs.remote(index, s) for s in shards])
        self.assertEqual(len({pid for pid, _ in workers} | {os.getpid()}), 3)
        orders = []
        for epoch in zip(*(found for _, found in workers), strict=True):
            numbers = [np.concatenate([n for n, _ in found]) if found else np.empty(0, int) for found, _ in epoch]
            self.assertTrue((np.sort(np.concatenate(numbers)) == np.arange(1000)).all())
            for found, told in epoch:
                for n, data in found:
                    self.assertEqual(data.tobytes(), samples[n].tobytes())
                self.assertEqual(sum(p["read_bytes"] for p in told["paths"].values()), sum(d.nbytes for _, d in found))
            orders.append(np.concatenate(numbers).tolist())
        for order in orders:
            # Of random numbers one in two is larger than its predecessor.
            rises = sum(a < b for a, b in zip(order, order[1:], strict=False))
            self.assertTrue(400 < rises < 600, rises)
        # Positions that two random orders share are one on average.
        self.assertLess(sum(a == b for a, b in zip(*orders, strict=True)), 50)

    def test_in_order_over_several_files(self) -> None:
        paths, samples = self.files([40, 0, 60])
        index = gr.SampleIndex.of_samples(paths, shape=(3, 5), dtype="float32")
        with index.iter_torch_batches(index.dataset(override_num_blocks=1), batch_size=70, device="cpu") as batches:
            found = list(batches)
            told = batches.stats()
        self.assertEqual([b["sample"].tolist() for b in found], [list(range(70)), list(range(70, 100))])
        self.assertEqual(b"".join(b["data"].numpy().tobytes() for b in found), samples.tobytes())
        # One range for what lies together in a file.
        self.assertEqual(sum(p["operations"] for p in told["paths"].values()), 3)

    def test_safetensors_with_other_columns(self) -> None:
        random = seeded(self)
        data = {"x": random.randbytes(50 * 6), "y": random.randbytes(50 * 4)}
        path = make_model(self.folder() / "m.safetensors", {"x": ("BF16", (50, 3), data["x"]), "y": ("F32", (50,), data["y"])})
        index = gr.SampleIndex.of_safetensors(path)
        self.assertEqual([c.dtype for c in index.columns], ["bfloat16", "float32"])
        odd = index.dataset().filter(lambda row: row["sample"] % 2 == 1).map(lambda row: row | {"label": row["sample"] * 10})
        x = torch.frombuffer(bytearray(data["x"]), dtype=torch.bfloat16).view(50, 3)
        y = torch.frombuffer(bytearray(data["y"]), dtype=torch.float32)
        seen: list[int] = []
        for batch in index.iter_torch_batches(odd, batch_size=10, device="cpu", drop_last=True, prefetch_batches=0):
            numbers = batch["sample"]
            self.assertEqual(len(numbers), 10)
            self.assertTrue(torch.equal(batch["x"].view(torch.int16), x[numbers].view(torch.int16)))
            self.assertTrue(torch.equal(batch["y"].view(torch.int32), y[numbers].view(torch.int32)))
            self.assertEqual(batch["label"].tolist(), (numbers * 10).tolist())
            seen += numbers.tolist()
        self.assertEqual(len(set(seen)), 20)

    def test_whoever_leaves_early(self) -> None:
        image = self.folder() / "image"
        with gpunvme.Storage(f"sim:file={image},size=1MiB", "cpu", write=True):
            pass
        index = gr.SampleIndex.of_samples(f"sim:file={image},latency=50ms,mdts=8KiB,mqes=3", shape=(4096,), dtype="uint8")
        batches = index.iter_torch_batches(index.dataset(), batch_size=4, device="cpu", prefetch_batches=8)
        next(batches)
        batches.close()
        self.assertEqual(list(batches), [])
        self.assertNotIn(os.getpid(), _users(image))
        for _ in index.iter_torch_batches(index.dataset(), batch_size=4, device="cpu", prefetch_batches=8):
            break  # its reads end by themselves, in memory that they keep
        with index.iter_torch_batches(index.dataset(), batch_size=4, device="cpu") as batches:
            self.assertEqual(len(next(batches)["data"]), 4)

    def test_errors(self) -> None:
        (path,), _ = self.files([10])
        index = gr.SampleIndex.of_samples(path, shape=(3, 5), dtype="float32")
        for why, shard in (
            ("no column 'sample', but", ray.data.from_items([{"id": 1}])),
            ("has sample 10, and the index has 10", ray.data.from_items([{"sample": 10}])),
            ("float64 and not int64", ray.data.from_items([{"sample": 1.5}])),
            ("has a column 'data'", ray.data.from_items([{"sample": 1, "data": 2}])),
        ):
            with self.subTest(why), self.assertRaisesRegex(gpunvme.InvalidError, why):
                next(index.iter_torch_batches(shard, device="cpu"))
        model = make_model(path.with_name("m.safetensors"), {"sample": ("U8", (2,), b"ab")})
        with self.assertRaisesRegex(gpunvme.InvalidError, "is called 'sample'"):
            gr.SampleIndex.of_safetensors(model)
        os.truncate(path, 100)
        batches = index.iter_torch_batches(index.dataset(), device="cpu")
        with self.assertRaisesRegex(gpunvme.GpuNvmeError, "part0.bin"):
            next(batches)
        self.assertEqual(list(batches), [])

    def test_the_example_of_the_documentation(self) -> None:
        text = (PYTHON.parent / "docs" / "ray.md").read_text()
        examples = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
        self.assertGreaterEqual(len(examples), 1)
        before, told = os.getcwd(), io.StringIO()
        os.chdir(self.folder())
        try:
            for example in examples:
                # Of __main__, functions go to workers as they are.
                with contextlib.redirect_stdout(told):
                    exec(compile(example, "docs/ray.md", "exec"), {"__name__": "__main__"})
        finally:
            os.chdir(before)
        self.assertIn("4000 samples", told.getvalue())


class PermutationTest(unittest.TestCase):
    def test_it_is_one(self) -> None:
        for count in (1, 2, 3, 4, 5, 17, 64, 65, 1000, 4097):
            for key in ("1/0", "1/1"):
                # As two tasks have it.
                parts = np.array_split(np.arange(count, dtype=np.int64), 2)
                found = np.concatenate([permuted(part, count, key) for part in parts])
                self.assertEqual(sorted(found.tolist()), list(range(count)))
        self.assertNotEqual(permuted(np.arange(100), 100, "1/0").tolist(), permuted(np.arange(100), 100, "1/1").tolist())

    def test_large_numbers(self) -> None:
        numbers = np.arange(10**15 - 1000, 10**15, dtype=np.int64)
        found = permuted(numbers, 10**15, "x")
        self.assertEqual(len(set(found.tolist())), 1000)
        self.assertTrue((found >= 0).all() and (found < 10**15).all())


class LayoutTest(unittest.TestCase):
    def test_parts_are_where_the_whole_is(self) -> None:
        columns = [Column("a", "float32", (2,)), Column("b", "uint8", ())]
        whole = Layout([Source("x", 3, (100, 200)), Source("e", 0, (0, 0)), Source("y", 4, (0, 50))], columns)
        self.assertEqual((whole.rows, whole.row_bytes), (7, 9))
        self.assertEqual(whole.part(2, 5).sources, (Source("x", 1, (116, 202)), Source("y", 2, (0, 50))))
        self.assertEqual(whole.part(2, 5).part(2, 3).sources, (Source("y", 1, (8, 51)),))
        self.assertEqual(whole.part(3, 3).sources, ())


def _users(path: Path) -> list[int]:
    """Processes that have a file open."""
    found = []
    for folder in Path("/proc").glob("[0-9]*/fd"):
        with contextlib.suppress(OSError):
            if any(os.readlink(fd) == str(path) for fd in folder.iterdir()):
                found.append(int(folder.parent.name))
    return found
