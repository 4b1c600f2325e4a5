"""Models for several devices: on the CPU in one process and on ranks, and on the GPUs of a machine that has two."""

from __future__ import annotations

import random
import sys
import threading
import time
import unittest
from collections.abc import Callable
from typing import Any, ClassVar
from unittest import mock

from support import ACCELERATOR, Case, make_model, needs_real, run, slow_model

try:
    import torch
except ImportError:
    raise unittest.SkipTest("torch is not installed") from None
if not torch.distributed.is_available():
    raise unittest.SkipTest("torch.distributed is not installed")

import gpunvme  # noqa: E402
import gpunvme.torch  # noqa: E402
from gpunvme.torch import load_file, load_sharded  # noqa: E402
from gpunvme.torch._reading import Taken, _Shared  # noqa: E402
from gpunvme.torch._shards import _Bucket, _Clock, _Plan, _Rank  # noqa: E402
from ranks import Ranks  # noqa: E402
from shard_ranks import bytes_of  # noqa: E402

Content = dict[str, tuple[str, tuple[int, ...], bytes]]

SHAPES: dict[str, tuple[str, tuple[int, ...]]] = {
    "embed": ("BF16", (96, 64)),
    "layers.0.q_proj.weight": ("F32", (64, 48)),
    "layers.0.o_proj.weight": ("F32", (48, 64)),
    "layers.0.norm": ("F32", (64,)),
    "layers.0.odd": ("U8", (13, 7)),
    "mask": ("BOOL", (5,)),
    "nothing": ("F32", (4, 0)),
    "scalar": ("I64", ()),
    "thin": ("F16", (1, 1, 9001)),
    "large": ("U8", (8, 9000)),
}
RULES: dict[str, int | None] = {"embed": 0, "layers.0.q_proj.weight": 0, "layers.0.o_proj.weight": 1, "large": None}


def content(seed: int) -> Content:
    chosen = random.Random(seed)
    all: Content = {}
    for name, (dtype, shape) in SHAPES.items():
        nbytes = torch.Size(shape).numel() * {"BF16": 2, "F16": 2, "F32": 4, "I64": 8}.get(dtype, 1)
        all[name] = (dtype, shape, bytes(chosen.choices((0, 1), k=nbytes)) if dtype == "BOOL" else chosen.randbytes(nbytes))
    return all


def part(whole: torch.Tensor, dimension: int | None, number: int, parts: int) -> torch.Tensor:
    return whole if dimension is None else whole.chunk(parts, dimension)[number].contiguous()


@needs_real
class ShardsTest(Case):
    """What must be the same in one process and on ranks: compared with what load_file reads, and torch cuts."""

    ranks: ClassVar[Ranks]

    @classmethod
    def setUpClass(cls) -> None:
        cls.ranks = Ranks("shard_ranks")
        cls.addClassCleanup(cls.ranks.close)

    def setUp(self) -> None:
        self.model = make_model(self.folder() / "m.safetensors", content(1))
        self.nbytes = sum(len(data) for _, _, data in content(1).values())

    def expected(self, parts: int, dimensions: dict[str, int | None]) -> list[Any]:
        whole = load_file(self.model, "cpu")
        return [bytes_of({n: part(t, dimensions.get(n), number, parts) for n, t in whole.items()}) for number in range(parts)]

    def check_report(self, report: Any, parts: int, copied: int) -> None:
        self.assertEqual((report.parts, report.model_bytes, len(report.bytes_read)), (parts, self.nbytes, parts))
        # Each byte is read once, and as many by each, but for blocks that nobody cuts in two.
        self.assertEqual(sum(report.bytes_read), self.nbytes)
        self.assertLess(max(report.bytes_read) - min(report.bytes_read), 20 * 4096)
        self.assertEqual(report.bytes_copied, copied)
        self.assertLessEqual(set(report.seconds), {"open", "connect", "read", "exchange", "total"})
        self.assertAlmostEqual(report.seconds["total"], sum(s for n, s in report.seconds.items() if n != "total"), places=6)

    def test_parts_of_one_process(self) -> None:
        for rules, dimensions in ((None, {}), (RULES, RULES), (RULES.get, RULES)):
            replicated = sum(len(data) for name, (_, _, data) in content(1).items() if dimensions.get(name) is None)
            # Three do not divide evenly.
            for parts in (1, 2, 4) if dimensions else (1, 2, 3):
                for bucket in (1, 8192, 1 << 20):
                    with self.subTest(rules=rules, parts=parts, bucket=bucket):
                        shards = load_sharded(self.model, ["cpu"] * parts, rules, bucket_bytes=bucket)
                        self.assertEqual([bytes_of(tensors) for tensors in shards], self.expected(parts, dimensions))
                        self.assertEqual(list(shards[0]), list(SHAPES))
                        self.check_report(shards.report, parts, (parts - 1) * replicated)
                        self.assertEqual(shards.report.exchange, "none" if parts == 1 else "host")
                        self.assertEqual(sum(shards.report.paths.values()), self.nbytes)

    def test_ranks(self) -> None:
        for rules, dimensions in ((None, {}), (RULES, RULES)):
            replicated = sum(len(data) for name, (_, _, data) in content(1).items() if dimensions.get(name) is None)
            for parts in (4, 2, 1):
                for bucket in (1, 1 << 20):
                    with self.subTest(rules=rules, parts=parts, bucket=bucket):
                        found = self.ranks.run(parts, "load", str(self.model), rules, bucket)
                        self.assertEqual([tensors for tensors, _ in found], self.expected(parts, dimensions))
                        for _, report in found:
                            self.check_report(report, parts, (parts - 1) * replicated)
                            self.assertEqual(report.exchange, "none" if parts == 1 else "gloo")
                        self.assertEqual(sum(sum(r.paths.values()) for _, r in found), self.nbytes)

    def test_rules_are_those_of_the_command(self) -> None:
        with gpunvme.Weights(self.model, "cpu") as weights:
            rows = weights.shard_dimensions("rows", 4)
            self.assertEqual({n for n, d in rows.items() if d == 0}, {"embed", "layers.0.q_proj.weight", "layers.0.o_proj.weight", "layers.0.norm", "nothing", "large"})
            megatron = weights.shard_dimensions("megatron", 2)
            self.assertEqual({n: d for n, d in megatron.items() if d is not None}, {"layers.0.q_proj.weight": 0, "layers.0.o_proj.weight": 1})
            for rules in ("norm=whole\n.*proj=1", ["norm=whole", ".*proj=1"]):
                self.assertEqual({n: d for n, d in weights.shard_dimensions(rules, 2).items() if d is not None}, {n: 1 for n in SHAPES if "proj" in n})
            self.assertEqual(set(weights.shard_dimensions([], 2).values()), {None})
        shards = load_sharded(self.model, ["cpu", "cpu"], "rows")
        self.assertEqual([bytes_of(t) for t in shards], self.expected(2, {n: 0 for n, (_, s) in SHAPES.items() if s and s[0] % 2 == 0}))

    def test_what_cannot_be(self) -> None:
        refused: list[tuple[type[Exception], str, Callable[[], Any]]] = [
            (gpunvme.InvalidError, "'layers.0.odd' cannot be divided into 2 parts along dimension 0", lambda: self.two({"layers.0.odd": 0})),
            (gpunvme.InvalidError, "'scalar' cannot be divided into 2 parts", lambda: self.two(["scalar=0"])),
            (gpunvme.InvalidError, "'columns' is not a rule", lambda: self.two("columns")),
            (gpunvme.NotFoundError, "no tensor 'none'", lambda: self.two({"none": 0})),
            (ValueError, "the dimension of 'embed' must be a whole number from 0", lambda: self.two({"embed": -1})),
            (ValueError, "at least one", lambda: load_sharded(self.model, [])),
            (ValueError, "one of this rank, not 2", lambda: load_sharded(self.model, ["cpu", "cpu"], group=object())),
            (ValueError, "'cuda', 'cuda:1' or 'cpu'", lambda: load_sharded(self.model, ["meta"])),
            (gpunvme.NotFoundError, "", lambda: load_sharded(self.model.with_name("none"), ["cpu"])),
        ]
        for kind, text, call in refused:
            with self.subTest(text=text), self.assertRaisesRegex(kind, text):
                call()
        with mock.patch.dict(gpunvme.weights.NAMES_OF_TYPES, {"BOOL": "bool2"}), self.assertRaisesRegex(gpunvme.UnsupportedError, "'mask' is of type BOOL"):
            self.two(None)

    def two(self, rules: Any) -> Any:
        return load_sharded(self.model, ["cpu", "cpu"], rules)

    def test_quantised_tensors_are_rows_of_bytes(self) -> None:
        try:
            import gguf
            import numpy
        except ImportError as e:
            self.skipTest(f"{e.name} is not installed")
        path = self.folder() / "m.gguf"
        writer = gguf.GGUFWriter(path, "llama")
        rows = numpy.frombuffer(random.Random(2).randbytes(8 * 4 * 34), dtype=numpy.uint8).reshape(8, 4 * 34)
        writer.add_tensor("q", rows, raw_dtype=gguf.GGMLQuantizationType.Q8_0)
        writer.add_tensor("f", numpy.arange(6, dtype=numpy.float32))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        self.model = path
        for dimensions in ({"q": 0}, {"q": 1}, {}):
            shards = load_sharded(path, ["cpu", "cpu"], dimensions)
            self.assertEqual([bytes_of(t) for t in shards], self.expected(2, dimensions))
            self.assertEqual(shards[0]["q"].dtype, torch.uint8)
        # 128 elements are 4 blocks.
        with self.assertRaisesRegex(gpunvme.InvalidError, "'q' cannot be divided into 8 parts along dimension 1"):
            load_sharded(path, ["cpu"] * 8, {"q": 1})

    def test_a_failed_read_ends_all(self) -> None:
        read = gpunvme.Weights._read_to_the_end
        for after in range(4):
            left = iter(range(after))

            def fails(weights: gpunvme.Weights, some: Any, left: Any = left) -> int:
                if next(left, None) is None:
                    raise gpunvme.TransferError.of("a test: the SSD is gone")
                return read(weights, some)

            threads = threading.active_count()
            with mock.patch.object(gpunvme.Weights, "_read_to_the_end", fails), self.assertRaisesRegex(gpunvme.TransferError, "the SSD is gone"):
                load_sharded(self.model, ["cpu", "cpu"], RULES, bucket_bytes=8192)
            self.assertEqual(threading.active_count(), threads)

    def test_too_little_memory_ends_all(self) -> None:
        empty = torch.empty
        for after in range(0, 2 * len(SHAPES) - 3, 3):  # one is a scalar
            left = iter(range(after))

            def takes(shape: Any, left: Any = left, **kind: Any) -> torch.Tensor:
                if isinstance(shape, tuple) and shape and next(left, None) is None:
                    raise MemoryError("a test: no memory is left")
                return empty(shape, **kind)

            threads = threading.active_count()
            with mock.patch("torch.empty", takes), self.assertRaisesRegex(MemoryError, "no memory is left"):
                load_sharded(self.model, ["cpu", "cpu"], RULES, bucket_bytes=8192)
            self.assertEqual(threading.active_count(), threads)

    def test_all_ranks_hear_of_too_little_memory(self) -> None:
        for name in ("embed", "layers.0.odd", "large"):
            found = self.ranks.run(2, "lack_memory", str(self.model), list(SHAPES[name][1]))
            self.assertEqual(found[1], "MemoryError: a test: no memory is left")
            self.assertRegex(found[0], "^InternalError: rank 1 failed: MemoryError: a test: no memory is left")

    def test_all_ranks_hear_of_a_failure(self) -> None:
        own, other = "TransferError: [Errno 5] a test: the SSD is gone", "TransferError: [Errno 5] rank 1 failed: "
        for after in (0, 1, 2, 3):
            found = self.ranks.run(2, "fail_to_read", str(self.model), after)
            self.assertEqual(found[1], own)
            self.assertTrue(found[0].startswith(other) and found[0].endswith("the SSD is gone"), found)
        found = self.ranks.run(4, "fail_to_read", str(self.model), 0)
        self.assertEqual([text.split(" failed")[0] for text in found], [other.split(" failed")[0], own, *[other.split(" failed")[0]] * 2])

    def test_ranks_must_ask_for_the_same(self) -> None:
        second = make_model(self.folder() / "n.safetensors", {"a": ("U8", (10,), bytes(10))})
        for rank, (model, rules, bucket, none, uneven, same) in enumerate(self.ranks.run(2, "ask_for_another", [str(self.model), str(second)])):
            for text in (model, rules, bucket):
                self.assertRegex(text, "InvalidError: .*rank 1 loads another model, or by other rules")
            self.assertRegex(none, "^NotFoundError: ")
            self.assertRegex(uneven, "^InvalidError: .*'scalar' cannot be divided into 2 parts")
            for text in (none, uneven):
                self.assertEqual("rank 1 failed" in text, rank == 0)
            self.assertEqual(same, "loaded")

    def test_a_group_of_some_ranks(self) -> None:
        found = self.ranks.run(4, "load_of_two_groups", str(self.model))
        self.assertEqual(found[0::2], ["this process is no rank of the group"] * 2)
        self.assertEqual(found[1::2], self.expected(2, {n: 0 for n, (_, s) in SHAPES.items() if s and s[0] % 2 == 0}))

    def test_ctrl_c_ends_it(self) -> None:
        address = slow_model(self, {"a": ("U8", (4 << 20,), bytes(4 << 20))})
        done = run(
            """
            import os, signal, sys, threading, time
            from gpunvme.torch import load_sharded
            threading.Timer(3, os.kill, (os.getpid(), signal.SIGINT)).start()
            begin = time.monotonic()
            try:
                load_sharded(sys.argv[1], ["cpu", "cpu"])
            except KeyboardInterrupt:
                left = [t.name for t in threading.enumerate() if t.name == "gpunvme-reads"]
                print("ended", time.monotonic() - begin < 30, left)
            """,
            address,
        )
        self.assertEqual((done.stdout, done.returncode), ("ended True []\n", 0), done.stderr)


@needs_real
class OneOfTwoRanksTest(Case):
    """A rank without a group: what the other one reads is there when it is gathered."""

    def move(self, gathering: Callable[[int], None] = lambda number: None) -> None:
        """:param gathering: called before each bucket is gathered, with its number"""
        nbytes = 40 * 8192 - 100
        model = make_model(self.folder() / "m.safetensors", {"all": ("U8", (nbytes,), random.Random(5).randbytes(nbytes))})
        whole = load_file(model, "cpu")["all"]
        rank = self.rank(model)
        with gpunvme.Weights(model) as weights:
            plan = _Plan(weights, None, 2, 8192)
            taken = plan.taken([torch.device("cpu")])
            buckets = [_Bucket(nbytes, torch.device("cpu")) for nbytes in rank._bucket_lengths(plan)]
            under_way = enumerate(plan.common.buckets())

            def gather(memory: torch.Tensor, streams: object) -> None:
                if started:
                    number, bucket = next(under_way)
                    gathering(number)
                    start, stop = plan.share(1, bucket)
                    memory[start - bucket[0] : stop - bucket[0]] = whole[start:stop]
                started.append(True)

            started: list[bool] = []
            with mock.patch.object(rank, "_gather", gather), mock.patch.object(rank, "_agree", lambda failure, value: [value]):
                rank._move(weights, plan, taken, buckets, _Clock())
        self.assertEqual(len(buckets), 4)
        self.assertTrue(torch.equal(taken.tensors[0]["all"], whole))

    def test_a_late_reader_keeps_its_memory(self) -> None:
        following = _Shared.next
        late = iter([True])

        def slow(works: _Shared) -> Any:
            work = following(works)
            if next(late, False):
                time.sleep(0.3)
            return work

        with mock.patch.object(_Shared, "next", slow):
            self.move()

    def test_who_waits_for_memory_hears_of_a_failure(self) -> None:
        """Of a divided tensor behind the only common one, which cannot be read."""
        tensors = {"common": ("U8", (9000,), bytes(9000)), "own": ("U8", (8, 9000), bytes(72000))}
        model = make_model(self.folder() / "m.safetensors", tensors)
        rank = self.rank(model, {"own": 0})
        waits = threading.Event()

        class Waiting(Taken):
            def bytes_of(self, part: int, name: str) -> torch.Tensor:
                if name == "own":
                    waits.set()
                return super().bytes_of(part, name)

        def fails(weights: gpunvme.Weights, some: Any) -> int:
            self.assertTrue(waits.wait(30))
            raise gpunvme.TransferError.of("a test: the SSD is gone")

        told: list[BaseException | None] = []
        threads = threading.active_count()
        with gpunvme.Weights(model) as weights:
            plan = _Plan(weights, {"own": 0}, 2, 1 << 20)
            taken = Waiting(plan._shapes, [torch.device("cpu")])
            buckets = [_Bucket(nbytes, torch.device("cpu")) for nbytes in rank._bucket_lengths(plan)]
            with (
                mock.patch.object(gpunvme.Weights, "_read_to_the_end", fails),
                mock.patch.object(rank, "_gather", lambda memory, streams: None),
                mock.patch.object(rank, "_agree", lambda failure, value: told.append(failure) or [value]),
            ):
                mover = threading.Thread(target=rank._move, args=(weights, plan, taken, buckets, _Clock()), daemon=True)
                mover.start()
                mover.join(60)
        self.assertFalse(mover.is_alive())
        self.assertRegex(str(told), "the SSD is gone")
        self.assertEqual(threading.active_count(), threads)

    @staticmethod
    def rank(model: Any, rules: Any = None) -> _Rank:
        """The first of two."""
        with mock.patch("torch.distributed.get_rank", lambda group: 0), mock.patch("torch.distributed.get_world_size", lambda group: 2):
            return _Rank(model, torch.device("cpu"), rules, 16384, None)

    def test_who_gathers_no_more_ends(self) -> None:
        def interrupts(number: int) -> None:
            if number == 8:
                raise KeyboardInterrupt

        threads = threading.active_count()
        with self.assertRaises(KeyboardInterrupt):
            self.move(interrupts)
        self.assertEqual(threading.active_count(), threads)


class GpuShards(Case):
    """On two GPUs."""

    def shards_of_two_gpus(self) -> None:
        model = make_model(self.folder() / "m.safetensors", content(3))
        whole = load_file(model, "cpu")
        nbytes = sum(len(data) for _, _, data in content(3).values())
        devices = ["cuda:0", "cuda:1"]
        for dimensions in ({}, RULES):
            for bucket in (8192, 1 << 20):
                shards = load_sharded(model, devices, dimensions, bucket_bytes=bucket)
                for number, tensors in enumerate(shards):
                    self.assertEqual({str(t.device) for t in tensors.values()}, {devices[number]})
                    expected = {n: part(t, dimensions.get(n), number, 2) for n, t in whole.items()}
                    self.assertEqual(bytes_of({n: t.cpu() for n, t in tensors.items()}), bytes_of(expected))
                self.assertEqual(sum(shards.report.bytes_read), nbytes)
                reach = torch.cuda.can_device_access_peer(0, 1)
                self.assertEqual(shards.report.exchange, "peer" if reach else "host")

    # Without a second GPU it is no test, so that nothing is skipped.
    if ACCELERATOR == "gpu" and torch.cuda.device_count() > 1:
        test_shards_of_two_gpus = shards_of_two_gpus


if __name__ == "__main__":
    sys.exit(unittest.main())
