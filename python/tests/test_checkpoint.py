"""torch.distributed.checkpoint: our reader and writer beside torch's own, on several ranks, killed, and with damaged files."""

from __future__ import annotations

import errno
import io
import logging
import os
import pickle
import tempfile
import unittest
import warnings
import zipfile
import zlib
from pathlib import Path
from typing import Any, ClassVar
from unittest import mock

from support import Case, needs_real, seeded

try:
    import torch
except ImportError:
    raise unittest.SkipTest("torch is not installed") from None
if not torch.distributed.is_available() or tuple(map(int, torch.__version__.split(".")[:2])) < (2, 4):
    raise unittest.SkipTest("torch.distributed of PyTorch 2.4 or newer is not installed")

import torch.distributed.checkpoint as dcp  # noqa: E402
from torch.distributed.checkpoint.default_planner import DefaultSavePlanner  # noqa: E402

import gpunvme  # noqa: E402
from checkpoint_ranks import differences, filled, plain_state, small_state  # noqa: E402
from gpunvme.torch import _datafile, _records  # noqa: E402
from gpunvme.torch.checkpoint import StorageReader, StorageWriter  # noqa: E402
from ranks import Ranks  # noqa: E402

# Of ranks and of single processes, where the disk is fast.
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


class CheckpointCase(Case):
    def setUp(self) -> None:
        quiet = warnings.catch_warnings()
        quiet.__enter__()
        self.addCleanup(quiet.__exit__, None, None, None)
        warnings.simplefilter("ignore")
        # Of metadata that is looked for first as that of all ranks, then as that of one.
        logging.disable(logging.WARNING)
        self.addCleanup(logging.disable, logging.NOTSET)

    def folder(self) -> Path:
        folder = tempfile.TemporaryDirectory(dir=MEMORY)
        self.addCleanup(folder.cleanup)
        return Path(folder.name)

    def refused(self, kind: type[BaseException], text: str, call: Any, *arguments: Any, **named: Any) -> None:
        """torch wraps what a rank raises."""
        with self.assertRaises((dcp.api.CheckpointException, kind)) as caught:
            call(*arguments, **named)
        error: Any = caught.exception
        if isinstance(error, dcp.api.CheckpointException):
            error = error.failures[0][0]
        self.assertIsInstance(error, kind, error)
        self.assertRegex(str(error), text)

    def load(self, folder: Path, state: dict[str, Any], **options: Any) -> StorageReader:
        reader = StorageReader(folder, **options)
        dcp.load(state, storage_reader=reader, no_dist=True)
        return reader


@needs_real
class RanksTest(CheckpointCase):
    ranks: ClassVar[Ranks]

    @classmethod
    def setUpClass(cls) -> None:
        cls.ranks = Ranks("checkpoint_ranks")
        cls.addClassCleanup(cls.ranks.close)

    def same(self, ranks: int, folder: Path, kind: str, side: str, seed: int) -> list[Any]:
        found = self.ranks.run(ranks, "load", folder, kind, side, seed)
        for rank, (wrong, _) in enumerate(found):
            self.assertEqual(wrong, [], f"{kind}, read by {side} on rank {rank} of {ranks}")
        return [report for _, report in found]

    def test_from_rank_counts_to_others(self) -> None:
        seed = seeded(self).randrange(1000)
        for kind in ("sharded", "plain"):
            for writer, reader in (("torch", "ours"), ("ours", "torch"), ("ours", "ours"), ("ours direct", "torch")):
                folder = self.folder()
                last = 4
                self.ranks.run(last, "save", folder, kind, writer, seed)
                for ranks in (2, 1, 4):
                    with self.subTest(kind=kind, writer=writer, reader=reader, written=last, read=ranks):
                        self.same(ranks, folder, kind, reader, seed)
                    # The next one reads what these ranks have written, into the same folder.
                    seed += 2
                    self.ranks.run(ranks, "save", folder, kind, writer, seed)
                    last = ranks
                with self.subTest(kind=kind, writer=writer, reader=reader, written=last, read=1):
                    self.same(1, folder, kind, reader, seed)

    def test_fsdp_and_tensor_parallel(self) -> None:
        seed = seeded(self).randrange(1000)
        for kind in ("fsdp", "tensor parallel"):
            for writer, reader, written, read in (("torch", "ours", 4, 2), ("ours", "torch", 2, 4), ("ours", "ours", 4, 1)):
                with self.subTest(kind=kind, writer=writer, reader=reader, written=written, read=read):
                    folder = self.folder()
                    self.ranks.run(written, "save", folder, kind, writer, seed)
                    self.same(read, folder, kind, reader, seed)

    def test_bytes_go_straight_to_tensors(self) -> None:
        folder = self.folder()
        self.ranks.run(2, "save", folder, "sharded", "torch", 5)
        for report in self.same(4, folder, "sharded", "ours", 5):
            # By rows all, by columns those that are long enough.
            self.assertGreater(report.bytes_direct, 16 * 4096 + 9 * 9000)
            self.assertLess(report.batches, 2 * report.files + 4)
            self.assertEqual(report.bytes_read, report.bytes_direct + report.bytes_staged + report.bytes_decoded + report.bytes_around)
            self.assertIn("pieces shorter than 4096 bytes", report.staged_why)

    def test_asynchronous_saves(self) -> None:
        for ranks, kind in ((2, "sharded"), (1, "plain")):
            folders = [self.folder() / "first", self.folder() / "second"]
            self.ranks.run(ranks, "save_asynchronously", folders, kind, 7)
            self.assertEqual(self.ranks.run(ranks, "load_asynchronous", folders, kind, 7), [[]] * ranks)

    def test_all_ranks_hear_of_a_failure(self) -> None:
        folder = self.folder()
        self.ranks.run(2, "save", folder, "sharded", "ours", 3)
        self.assertEqual(self.ranks.run(2, "fail_on_one_rank", folder), ["[1]: NoSpaceError"] * 2)
        self.same(2, folder, "sharded", "ours", 3)

    def alone(self) -> Ranks:
        """Whose children can use PyTorch: in a child of a process that has used a GPU it cannot."""
        ranks = Ranks("checkpoint_ranks")
        self.addCleanup(ranks.close)
        return ranks

    def test_kills(self) -> None:
        seed = seeded(self).randrange(1 << 30)
        killers = self.alone()
        for ranks, count in ((1, 80), (2, 20)):
            folder = self.folder() / "checkpoint"
            [(old, new, last)] = killers.run(0, "kill_saves", folder, ranks, count, seed)
            self.assertEqual(old + new, count)
            # Else the moments were not those of a save.
            self.assertGreater(min(old, new), count // 10, f"seed {seed}")
            self.assertEqual(self.ranks.run(0, "check_small", folder, ranks, last), [[]], f"seed {seed}")

    def test_killed_at_each_step(self) -> None:
        folder = self.folder() / "checkpoint"
        [saves] = self.alone().run(0, "kill_each_step", folder)
        whole = saves[-1]
        # Two files, the folder, the metadata: opened, written, on stable storage, and published by one call.
        self.assertGreater(len(whole), 10, saves)
        self.assertEqual(whole.count("replace"), 1, whole)
        published = whole.index("replace")
        written = max(i for i, call in enumerate(whole) if call == "pwrite")
        self.assertIn("fsync", whole[written:published], whole)


class WriterTest(CheckpointCase):
    def save(self, folder: Path, state: dict[str, Any], planner: Any = None, **options: Any) -> StorageWriter:
        writer = StorageWriter(folder, **options)
        dcp.save(state, storage_writer=writer, planner=planner, no_dist=True)
        return writer

    def assert_whole(self, folder: Path, seed: int) -> None:
        for reader in (dcp.FileSystemReader(folder), StorageReader(folder)):
            state = small_state(0)
            dcp.load(state, storage_reader=reader, no_dist=True)
            self.assertEqual(differences(small_state(seed), state), [])

    def test_says_how_it_wrote(self) -> None:
        folder = self.folder()
        state = {"large": torch.zeros(1 << 20), "small": torch.zeros(10), "object": "text"}
        report = self.save(folder, state, threads=2).report
        self.assertEqual((report.items, report.files, report.paths), (3, 2, {"page cache: small": 2}))
        self.assertEqual(report.bytes_in_place, 4 << 20)
        self.assertEqual(report.bytes_written, sum(p.stat().st_size for p in folder.glob("*.distcp")))
        report = self.save(self.folder(), state, direct=False).report
        self.assertEqual(report.paths, {"page cache: direct=False": 3})

    def test_direct_writes_of_many_pieces(self) -> None:
        # On a disk: not every file system in memory has O_DIRECT.
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            g = torch.Generator().manual_seed(seeded(self).randrange(1000))
            state = {str(n): filled(g, (n,), torch.uint8) for n in (1, 63, 4095, 4096, 4097, 100_001, 262_144, 300_000)}
            try:
                report = self.save(folder, state, direct=True, threads=1, staging_bytes=48 << 10).report
            except dcp.api.CheckpointException as e:
                self.skipTest(f"no O_DIRECT here: {e.failures[0][0]}")
            self.assertEqual(report.paths, {"O_DIRECT": 1})
            loaded = {name: torch.zeros_like(tensor) for name, tensor in state.items()}
            dcp.load(loaded, storage_reader=dcp.FileSystemReader(folder), no_dist=True)
            self.assertEqual(differences(state, loaded), [])

    def test_tensors_begin_at_blocks(self) -> None:
        folder = self.folder()
        self.save(folder, {str(i): torch.zeros(5000 + i) for i in range(5)}, threads=1)
        for info in dcp.FileSystemReader(folder).read_metadata().storage_data.values():
            with open(folder / info.relative_path, "rb") as file:
                file.seek(info.offset)
                data = file.read(info.length)
            windows = _records.Windows(len(data))
            windows.add(0, data)
            self.assertEqual((info.offset + _records.find(windows).at) % 4096, 0)

    def test_streams_are_zip_files(self) -> None:
        for dtype in (torch.float32, torch.uint16, torch.bool):
            tensor = filled(torch.Generator().manual_seed(1), (7, 3), dtype)
            data = bytes(tensor.view(-1).view(torch.uint8).tolist())
            frame = _records.Frame(dtype, tensor.shape)
            stream = io.BytesIO(frame.head + data + frame.tail(zlib.crc32(data)))
            self.assertIsNone(zipfile.ZipFile(stream).testzip())
            stream.seek(0)
            self.assertEqual(differences(torch.load(stream, weights_only=True), tensor), [])

    def test_tensors_of_more_than_4_gib(self) -> None:
        frame = _records.Frame(torch.uint8, (5 << 30,))
        path = self.folder() / "sparse"
        with open(path, "wb") as file:
            file.write(frame.head)
            file.seek(len(frame.head) + frame.nbytes)
            file.write(frame.tail(0))
            size = file.tell()
        self.assertEqual(torch.load(path, mmap=True, weights_only=True).shape, (5 << 30,))
        windows = _records.Windows(size)
        with open(path, "rb") as file:
            windows.add(0, file.read(1024))
            file.seek(size - 1024)
            windows.add(size - 1024, file.read())
        found = _records.find(windows)
        self.assertEqual((found.at, found.nbytes), (len(frame.head), 5 << 30))

    def test_the_checkpoint_before_is_whole_until_the_new_one_is(self) -> None:
        folder = self.folder()
        self.save(folder, small_state(1))
        names = set(os.listdir(folder))
        self.assertTrue(all(n in (".metadata", "__0_0.distcp", "__0_1.distcp", "__0_2.distcp", "__0_3.distcp") for n in names), names)
        with mock.patch.object(_datafile.os, "pwrite", side_effect=OSError(errno.ENOSPC, "full")):
            self.refused(gpunvme.NoSpaceError, r"__0_\d_[0-9a-f]{12}\.distcp.*full.*make room", self.save, folder, small_state(2))
        self.assertEqual(set(os.listdir(folder)), names)
        self.assert_whole(folder, 1)
        with mock.patch("os.replace", side_effect=OSError(errno.EIO, "broken")):
            self.refused(gpunvme.TransferError, r"\.metadata.*broken", self.save, folder, small_state(2))
        self.assert_whole(folder, 1)
        # What the failed one left goes with the next.
        report = self.save(folder, small_state(3)).report
        self.assertEqual(report.removed, 8)
        self.assertEqual(len(os.listdir(folder)), 5)
        self.assert_whole(folder, 3)

    def test_files_of_others_stay(self) -> None:
        folder = self.folder()
        # Of a save of torch's that was killed after it took .metadata away: it can be repaired by hand.
        (folder / "__0_0.distcp").write_bytes(b"torch's")
        (folder / "notes.txt").write_bytes(b"mine")
        with mock.patch("os.replace", side_effect=OSError(errno.EIO, "broken")):
            self.refused(gpunvme.TransferError, "broken", self.save, folder, small_state(1))
        self.assertEqual((folder / "__0_0.distcp").read_bytes(), b"torch's")
        self.save(folder, small_state(2))
        self.assertFalse((folder / "__0_0.distcp").exists())
        self.assertEqual((folder / "notes.txt").read_bytes(), b"mine")
        self.assert_whole(folder, 2)
        # Nothing is removed where a metadata file cannot be understood.
        (folder / "__1_0.distcp").write_bytes(b"?")
        (folder / "__1.metadata").write_bytes(b"?")
        report = self.save(folder, small_state(3)).report
        self.assertIn("__1.metadata", report.kept)
        self.assertTrue((folder / "__1_0.distcp").exists())
        self.assert_whole(folder, 3)

    def test_overwrite_only_if_wanted(self) -> None:
        folder = self.folder()
        self.save(folder, small_state(1), overwrite=False)
        self.refused(gpunvme.DeniedError, "there is a checkpoint already", self.save, folder, small_state(2), overwrite=False)
        self.assert_whole(folder, 1)

    def test_plans_that_the_planner_keeps(self) -> None:
        folder = self.folder()
        try:
            for seed in (1, 2, 3):
                self.save(folder, small_state(seed), planner=DefaultSavePlanner(enable_plan_caching=True))
                self.assert_whole(folder, seed)
        except TypeError as e:
            self.skipTest(f"PyTorch {torch.__version__}: {e}")
        finally:
            for name in vars(dcp.SavePlanner):
                if name.startswith("_cached_"):
                    getattr(dcp.SavePlanner, name).clear()

    def test_metadata_of_each_rank(self) -> None:
        folder = self.folder()
        for seed in (1, 2):
            try:
                dcp.save(small_state(seed), storage_writer=StorageWriter(folder), no_dist=True, use_collectives=False)
            except TypeError as e:
                self.skipTest(f"PyTorch {torch.__version__}: {e}")
            self.assertIn("__0.metadata", os.listdir(folder))
            self.assertEqual(len(os.listdir(folder)), 5)
            self.assert_whole(folder, seed)

    def test_torch_reads_what_it_would_have_written(self) -> None:
        ours, torchs = self.folder(), self.folder()
        dcp.save(plain_state(3), storage_writer=dcp.FileSystemWriter(torchs), no_dist=True)
        self.save(ours, plain_state(3))
        a, b = (dcp.FileSystemReader(f).read_metadata() for f in (ours, torchs))
        self.assertEqual(a.state_dict_metadata.keys(), b.state_dict_metadata.keys())
        self.assertEqual((a.planner_data, a.storage_data.keys()), (b.planner_data, b.storage_data.keys()))
        self.assertEqual((str(a.storage_meta.checkpoint_id), bool(a.storage_meta.save_id)), (str(ours), True))

    def test_staging(self) -> None:
        writer = StorageWriter(self.folder())
        state = {"a": torch.arange(5), "deep": {"b": [torch.ones(2)]}, "text": "x"}
        first = writer.stage(state)
        state["a"].add_(1)
        self.assertEqual(first["a"].tolist(), [0, 1, 2, 3, 4])
        # What a save is still reading is not used again; afterwards it is.
        second = writer.stage(state)
        self.assertEqual((first["a"].tolist(), second["a"].tolist()), ([0, 1, 2, 3, 4], [1, 2, 3, 4, 5]))
        dcp.save(second, storage_writer=writer, no_dist=True)
        self.assertEqual(writer.stage(state)["a"].data_ptr(), second["a"].data_ptr())
        dcp.save(state, storage_writer=writer, no_dist=True)
        self.assertEqual(writer.stage({"other": torch.ones(3)})["other"].tolist(), [1, 1, 1])
        writer.close()
        pickle.loads(pickle.dumps(writer))

    def test_options(self) -> None:
        for wrong in ({"threads": 0}, {"direct": "yes"}, {"staging_bytes": 1000}, {"staging_bytes": "much"}):
            with self.assertRaises(ValueError):
                StorageWriter("x", **wrong)  # type: ignore[arg-type]
        self.assertFalse(StorageWriter.validate_checkpoint_id("s3://bucket/1"))
        self.assertTrue(StorageWriter.validate_checkpoint_id("/checkpoints/1"))


class Mask(dcp.filesystem.StreamTransformExtension if hasattr(dcp.filesystem, "StreamTransformExtension") else object):  # type: ignore[misc]
    """A transform of a stream, as compression is."""

    @staticmethod
    def registry_name() -> str:
        return "test.mask"

    @staticmethod
    def from_descriptor(version: str) -> Any:
        return Mask()

    def get_descriptor(self) -> str:
        return "test.mask/1"

    def transform_to(self, output: Any) -> Any:
        class Writer(io.RawIOBase):
            def writable(self) -> bool:
                return True

            def write(self, data: Any) -> int:
                output.write(bytes(b ^ 0x55 for b in bytes(data)))
                return len(bytes(data))

        return Writer()

    def transform_from(self, input: Any) -> Any:
        return io.BytesIO(bytes(b ^ 0x55 for b in input.read()))


class Danger:
    def __reduce__(self) -> Any:
        return os.mkdir, ("/nowhere/danger",)


class ReaderTest(CheckpointCase):
    def saved(self, state: dict[str, Any] | None = None, **options: Any) -> Path:
        folder = self.folder()
        dcp.save(small_state(1) if state is None else state, storage_writer=dcp.FileSystemWriter(folder, **options), no_dist=True)
        return folder

    def test_one_file_for_each_item(self) -> None:
        folder = self.saved(plain_state(1), single_file_per_rank=False)
        for files in (1, 3, 100):
            state = plain_state(2)
            report = self.load(folder, state, open_files=files, staging_bytes=10_000).report
            self.assertEqual(differences(plain_state(1), state), [])
            self.assertGreater(report.files, 10)

    def test_other_types_and_layouts(self) -> None:
        g = torch.Generator().manual_seed(4)
        for dtype, target, why in (
            (torch.float32, torch.zeros(60, 2000, dtype=torch.bfloat16), "torch.float32 becomes torch.bfloat16"),
            (torch.int32, torch.zeros(2000, 60, dtype=torch.int32).t(), "pieces shorter than 4096 bytes"),
            (torch.int32, torch.zeros(60, 4000, dtype=torch.int32)[:, ::2], "pieces shorter than 4096 bytes"),
        ):
            with self.subTest(why):
                source = torch.randn(60, 2000, generator=g) if dtype is torch.float32 else filled(g, (60, 2000), dtype)
                report = self.load(self.saved({"t": source}), {"t": target}).report
                self.assertTrue(torch.equal(target, source.to(target.dtype)))
                self.assertEqual((report.staged_why, report.bytes_staged), ({why: 1}, 480_000))
        source = filled(g, (60, 2000), torch.int32)
        target = torch.zeros(60, 3000, dtype=torch.int32)[:, 100:2100]
        report = self.load(self.saved({"t": source}), {"t": target}).report
        self.assertTrue(torch.equal(target, source))
        self.assertEqual((report.bytes_direct, report.bytes_staged), (480_000, 0))

    @needs_real
    def test_folders_with_odd_names(self) -> None:
        folder = self.folder() / "what?path=mmap#1: a name"
        dcp.save(small_state(1), storage_writer=StorageWriter(folder), no_dist=True)
        state = small_state(2)
        self.load(folder, state)
        self.assertEqual(differences(small_state(1), state), [])

    def test_transforms(self) -> None:
        if Mask.__mro__[1] is object:
            self.skipTest(f"PyTorch {torch.__version__} has no transforms")
        from torch.distributed.checkpoint._extension import ExtensionRegistry

        folder = self.saved(_extensions=[Mask()])
        self.refused(gpunvme.UnsupportedError, "'. of 0'.*test.mask.*pass extensions", self.load, folder, small_state(2))
        registry = ExtensionRegistry()
        registry.register(Mask)
        state = small_state(2)
        report = self.load(folder, state, extensions=registry).report
        self.assertEqual(differences(small_state(1), state), [])
        self.assertEqual(report.staged_why, {"transforms test.mask/1": 3})

    def test_safetensors_are_refused_by_name(self) -> None:
        try:
            import safetensors.torch  # noqa: F401
            from torch.distributed.checkpoint.filesystem import SerializationFormat
        except ImportError as e:
            self.skipTest(str(e))
        folder = self.saved({"a": torch.ones(3)}, serialization_format=SerializationFormat.SAFETENSORS)
        self.refused(gpunvme.UnsupportedError, "'a'.*safetensors.*HuggingFaceStorageReader", self.load, folder, {"a": torch.zeros(3)})

    def test_streams_of_before_1_6(self) -> None:
        save = torch.save
        with mock.patch("torch.save", lambda *a, **k: save(*a, **k, _use_new_zipfile_serialization=False)):
            folder = self.saved()
        state = small_state(2)
        self.assertEqual(self.load(folder, state).report.staged_why, {"it is no zip": 3})
        self.assertEqual(differences(small_state(1), state), [])

    def test_what_is_missing(self) -> None:
        folder = self.saved()
        self.refused(RuntimeError, "Missing key.*other", self.load, folder, {"other": torch.zeros(1)})
        self.refused(ValueError, "Size mismatch", self.load, folder, {"a of 0": torch.zeros(11)})
        for path in folder.glob("*.distcp"):
            size = path.stat().st_size
            os.truncate(path, size - 1)
            self.refused(gpunvme.FormatError, rf"{path}: item '.*' \(\d+ bytes at \d+\) ends after the file, which has {size - 1} bytes", self.load, folder, small_state(2))
            path.unlink()
            self.refused(gpunvme.NotFoundError, f"{path}.*load again", self.load, folder, small_state(2))
        with self.assertRaisesRegex(gpunvme.NotFoundError, "no whole checkpoint in this folder"):
            StorageReader(self.folder()).read_metadata()

    def changed(self, folder: Path, **fields: Any) -> None:
        """Other fields for the item "c of 0"."""
        path = folder / ".metadata"
        metadata = pickle.loads(path.read_bytes())
        for index, info in metadata.storage_data.items():
            if index.fqn == "c of 0":
                for name, value in fields.items():
                    setattr(info, name, value)
        path.write_bytes(pickle.dumps(metadata))

    def test_places_that_cannot_be(self) -> None:
        for fields, kind, text in (
            ({"relative_path": "../__0_0.distcp"}, gpunvme.FormatError, "outside the folder"),
            ({"relative_path": "/etc/passwd"}, gpunvme.FormatError, "outside the folder"),
            ({"relative_path": 3}, gpunvme.FormatError, "outside the folder"),
            ({"relative_path": "none.distcp"}, gpunvme.NotFoundError, "none.distcp"),
            ({"offset": -1}, gpunvme.FormatError, "at -1"),
            ({"offset": 1 << 62}, gpunvme.FormatError, "ends after the file"),
            ({"length": 1 << 62}, gpunvme.FormatError, "ends after the file"),
            ({"length": "3"}, gpunvme.FormatError, "with '3' bytes"),
            ({"length": 0}, gpunvme.FormatError, "'c of 0' .0 bytes.*cannot be read by torch.load"),
            ({"length": 100_000}, gpunvme.FormatError, "cut short: its zip has no end"),
        ):
            with self.subTest(fields):
                folder = self.saved()
                self.changed(folder, **fields)
                self.refused(kind, text, self.load, folder, small_state(2))

    def test_a_tensor_of_another_size_than_the_metadata_says(self) -> None:
        folder = self.saved({"c of 0": torch.zeros(100, 100)})
        path = folder / ".metadata"
        metadata = pickle.loads(path.read_bytes())
        described = metadata.state_dict_metadata["c of 0"]
        described.size = described.chunks[0].sizes = torch.Size([101, 100])
        path.write_bytes(pickle.dumps(metadata))
        self.refused(gpunvme.FormatError, r"\(101, 100\) at \(0, 0\).*shape \(100, 100\)", self.load, folder, {"c of 0": torch.zeros(101, 100)})

    def test_metadata_runs_nothing(self) -> None:
        folder = self.saved()
        path = folder / ".metadata"
        metadata = pickle.loads(path.read_bytes())
        metadata.planner_data["x"] = Danger()
        path.write_bytes(pickle.dumps(metadata))
        with self.assertRaisesRegex(gpunvme.UnsupportedError, r"\.metadata: the metadata has a posix.mkdir.*metadata_classes"):
            StorageReader(folder).read_metadata()
        for data in (b"", b"\x80\x04", pickle.dumps("text"), path.read_bytes()[:-30]):
            path.write_bytes(data)
            with self.assertRaisesRegex(gpunvme.GpuNvmeError, r"\.metadata"):
                StorageReader(folder).read_metadata()

    def test_damaged_streams(self) -> None:
        """Whatever bytes of an item are changed: it loads, or says that it is damaged."""
        random = seeded(self)
        tensor = torch.arange(50.0)
        folder = self.saved({"t": tensor}, single_file_per_rank=False)
        path = folder / "__0_0.distcp"
        good = path.read_bytes()
        outcomes = {"loaded": 0, "refused": 0}
        for _ in range(400):
            data = bytearray(good)
            for _ in range(random.choice((1, 1, 2, 8))):
                data[random.randrange(len(data))] = random.randrange(256)
            path.write_bytes(data)
            state = {"t": torch.zeros(50)}
            try:
                self.load(folder, state)
                outcomes["loaded"] += 1
            except dcp.api.CheckpointException as e:
                error: Any = e.failures[0][0]
                self.assertIsInstance(error, gpunvme.FormatError, f"{error!r} of {data!r}")
                self.assertIn("'t'", str(error))
                outcomes["refused"] += 1
        self.assertGreater(min(outcomes.values()), 40, outcomes)


if __name__ == "__main__":
    unittest.main()
