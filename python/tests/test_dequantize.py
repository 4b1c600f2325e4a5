"""Floats of quantised tensors, against those who know: ggml's Python package, and PyTorch."""

from __future__ import annotations

import itertools
import random
import threading
import unittest
from typing import Any

from support import ACCELERATOR, FAKE, Case, seeded

import gpunvme

try:
    import numpy
    import torch
except ImportError:
    raise unittest.SkipTest("torch or numpy is not installed") from None

import gpunvme.torch as gt  # noqa: E402
from gpunvme import _dequantize, _native  # noqa: E402

try:
    import gguf
    from gguf.quants import dequantize as theirs
except ImportError:
    gguf = None


def load_tests(_loader: Any, tests: unittest.TestSuite, _pattern: Any) -> unittest.TestSuite:
    """None with the fake library, which makes no floats."""
    return unittest.TestSuite() if FAKE else tests


DEVICE = "cuda" if ACCELERATOR == "gpu" else "cpu"
FLOATS = (torch.float32, torch.float16, torch.bfloat16)
BLOCKS = ("Q4_0", "Q8_0", "Q4_K", "Q5_K", "Q6_K")
EIGHT = {"I8": torch.int8}
if hasattr(torch, "float8_e5m2"):  # since PyTorch 2.1
    EIGHT |= {"F8_E4M3": torch.float8_e4m3fn, "F8_E5M2": torch.float8_e5m2}
SCALES = {"Q4_0": (0,), "Q8_0": (0,), "Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,)}


def any_blocks(source: random.Random, name: str, count: int) -> torch.Tensor:
    """Blocks with any bits. Half of the scales are what they usually are, the others too: subnormal, infinite, no number."""
    size = _dequantize.BLOCKS[name][1]
    data = numpy.frombuffer(bytearray(source.randbytes(count * size)), numpy.uint8).reshape(count, size)
    state = numpy.random.default_rng(source.randrange(2**32))
    for at in SCALES[name]:
        usual = state.normal(0, 0.01, count).astype(numpy.float16).view(numpy.uint8).reshape(count, 2)
        chosen = state.random(count) < 0.5
        data[chosen, at : at + 2] = usual[chosen]
    return torch.from_numpy(data.reshape(-1).copy())


def bits(tensor: torch.Tensor) -> torch.Tensor:
    """Of floats, with one pattern for all that are not numbers."""
    cleaned = torch.where(tensor.isnan(), torch.full_like(tensor, float("nan")), tensor).contiguous()
    return cleaned.view(torch.int32 if tensor.element_size() == 4 else torch.int16)


def on_a_gpu(test: Any) -> Any:
    return test if DEVICE == "cuda" else None


class DequantizeTest(Case):
    def same(self, got: torch.Tensor, expected: torch.Tensor) -> None:
        self.assertEqual((got.dtype, got.device.type, got.shape), (expected.dtype, DEVICE, expected.shape))
        wrong = (bits(got.cpu()) != bits(expected)).nonzero()
        self.assertEqual(len(wrong), 0, f"the first of {len(wrong)} wrong ones of {got.numel()} is {wrong[:1].tolist()}")

    @unittest.skipIf(gguf is None, "gguf is not installed")
    def test_blocks_are_those_of_ggml(self) -> None:
        source = seeded(self)
        for name, dtype in itertools.product(BLOCKS, FLOATS):
            for count in (1, 2, 17, 1001, 20_011):
                with self.subTest(name, dtype=dtype, count=count):
                    data = any_blocks(source, name, count)
                    with numpy.errstate(all="ignore"):
                        floats = theirs(data.numpy(), gguf.GGMLQuantizationType[name])
                    expected = torch.from_numpy(floats.copy()).to(dtype)
                    self.same(gt.dequantize(data.to(DEVICE), name, dtype), expected)

    @unittest.skipIf(gguf is None, "gguf is not installed")
    def test_large_tensors(self) -> None:
        source = seeded(self)
        for name in BLOCKS:
            elements, stored, _ = _dequantize.BLOCKS[name]
            data = any_blocks(source, name, 4096 * 2048 // elements).view(4096, -1)
            with self.subTest(name), numpy.errstate(all="ignore"):
                expected = torch.from_numpy(theirs(data.numpy(), gguf.GGMLQuantizationType[name]).copy())
                self.assertEqual(expected.shape, (4096, 2048))
                for dtype in FLOATS:
                    self.same(gt.dequantize(data.to(DEVICE), name, dtype), expected.to(dtype))

    def test_elements_of_8_bits_are_those_of_pytorch(self) -> None:
        every = torch.arange(256, dtype=torch.int16).to(torch.uint8)
        for (name, kind), dtype in itertools.product(EIGHT.items(), FLOATS):
            with self.subTest(name, dtype=dtype):
                stored = every.view(kind)
                expected = stored.to(torch.float32)
                self.same(gt.dequantize(stored.to(DEVICE), dtype=dtype), expected.to(dtype))
                self.same(gt.dequantize(every.to(DEVICE), name, dtype), expected.to(dtype))
                for exponent in range(-149, 128, 9):
                    scale = torch.tensor(1.37 * 2.0**exponent)
                    self.same(
                        gt.dequantize(stored.to(DEVICE), dtype=dtype, scales=scale.to(DEVICE)), (expected * scale).to(dtype)
                    )

    def blocked(self, data: torch.Tensor, scales: torch.Tensor, block: tuple[int, int]) -> torch.Tensor:
        """Each element times the scale of its block."""
        wide = scales.repeat_interleave(block[0], -2).repeat_interleave(block[1], -1)
        return data.to(torch.float32) * wide[..., : data.shape[-2], : data.shape[-1]]

    def test_scales_of_blocks(self) -> None:
        source = seeded(self)
        for kind, dtype in itertools.product(EIGHT.values(), FLOATS):
            for size, block in (
                ((300, 517), (128, 128)),
                ((256, 512), (128, 128)),
                ((7, 1000), (1, 1000)),
                ((1, 1), (1, 1)),
                ((33, 65), (1, 1)),
                ((33, 65), (40, 3)),
                ((1000, 24), (1, 8)),
                ((2, 256, 130), (128, 64)),
                ((3, 2, 10, 6), (5, 4)),
                ((1, 10, 6), (4, 4)),
            ):
                with self.subTest(kind=kind, dtype=dtype, size=size, block=block):
                    count = torch.Size(size).numel()
                    data = torch.frombuffer(bytearray(source.randbytes(count)), dtype=torch.uint8).view(size).view(kind)
                    state = torch.Generator().manual_seed(source.randrange(2**32))
                    of = (*size[:-2], -(-size[-2] // block[0]), -(-size[-1] // block[1]))
                    scales = torch.randn(of, generator=state)
                    expected = self.blocked(data, scales, block).to(dtype)
                    got = gt.dequantize(data.to(DEVICE), dtype=dtype, scales=scales.to(DEVICE), block=block)
                    self.same(got, expected)
                    if all(n % b == 0 for n, b in zip(size[-2:], block)) and count > 1:
                        self.same(gt.dequantize(data.to(DEVICE), dtype=dtype, scales=scales.to(DEVICE)), expected)

    def test_scales_of_rows_and_of_all(self) -> None:
        data = torch.frombuffer(bytearray(seeded(self).randbytes(60)), dtype=torch.int8).view(6, 10)
        scales = torch.tensor([1.5, -2, 0, 0.1, 3, 4])
        expected = data * scales.view(6, 1)
        for given in (scales, scales.view(6, 1), scales.to(torch.float64)):
            self.same(gt.dequantize(data.to(DEVICE), scales=given.to(DEVICE)), expected)
        for one in (torch.tensor(0.3), torch.tensor([0.3]), torch.tensor([[0.3]])):
            self.same(gt.dequantize(data.to(DEVICE), scales=one.to(DEVICE)), data * torch.tensor(0.3))

    def test_shapes(self) -> None:
        source = seeded(self)
        data = any_blocks(source, "Q4_0", 24).to(DEVICE)
        flat = gt.dequantize(data, "Q4_0")
        self.assertEqual(flat.shape, (768,))
        for given, shape, size in (
            (data.view(4, -1), None, (4, 192)),
            (data.view(2, 2, -1), None, (2, 2, 192)),
            (data, (12, 64), (12, 64)),
            (data.view(4, -1), (2, 3, 128), (2, 3, 128)),
        ):
            self.same(gt.dequantize(given, "Q4_0", shape=shape), flat.cpu().view(size))
        nothing = torch.empty(0, 36, dtype=torch.uint8, device=DEVICE)
        self.assertEqual(gt.dequantize(nothing, "Q4_0", torch.bfloat16).shape, (0, 64))

    def test_any_memory(self) -> None:
        source = seeded(self)
        data = any_blocks(source, "Q4_K", 6).to(DEVICE)
        expected = gt.dequantize(data, "Q4_K").cpu().view(6, 256)
        shifted = torch.empty(data.numel() + 3, dtype=torch.uint8, device=DEVICE)[3:]
        shifted.copy_(data)
        self.same(gt.dequantize(shifted.view(6, -1), "Q4_K"), expected)
        self.same(gt.dequantize(data.view(6, -1)[::2], "Q4_K"), expected[::2])
        self.same(gt.dequantize(data.view(6, -1)[1:4], "Q4_K"), expected[1:4])
        eight = torch.frombuffer(bytearray(source.randbytes(1003)), dtype=torch.int8).to(DEVICE)
        for start in range(8):
            self.same(gt.dequantize(eight[start:]), eight[start:].cpu().to(torch.float32))
            self.same(gt.dequantize(eight[start:], dtype=torch.bfloat16), eight[start:].cpu().to(torch.bfloat16))

    def test_many_in_one_call(self) -> None:
        source = seeded(self)
        tensors, targets, expected, keep = [], [], [], []
        for name in BLOCKS * 5:
            data = any_blocks(source, name, source.randrange(1, 50)).to(DEVICE)
            elements, stored, _ = _dequantize.BLOCKS[name]
            columns = data.numel() // stored * elements
            targets.append(torch.empty(columns, dtype=torch.float16, device=DEVICE))
            expected.append(gt.dequantize(data, name, torch.float16).cpu())
            keep.append(data)
            tensors.append(_dequantize.quantized(name, data.data_ptr(), "F16", targets[-1].data_ptr(), 1, columns))
        stream = torch.cuda.current_stream().cuda_stream if DEVICE == "cuda" else 0
        for many in (tensors, (_native.Quantized * len(tensors))(*tensors), []):
            for target in targets:
                target.fill_(7)
            _dequantize.dequantize(ACCELERATOR, many, stream)
            for target, floats in zip(targets, expected):
                self.same(target, floats if len(many) else torch.full_like(floats, 7))

    def test_what_cannot_be_is_refused(self) -> None:
        data = torch.zeros(144 * 2, dtype=torch.uint8, device=DEVICE)
        for name, dtype in (("IQ2_XS", torch.float32), ("Q4_K", torch.float64), (None, torch.float32), ("F32", torch.float32)):
            with self.assertRaises(gpunvme.UnsupportedError):
                gt.dequantize(data, name, dtype)
        with self.assertRaises(TypeError):
            gt.dequantize(data.to(torch.int16), "Q4_K")
        with self.assertRaises(ValueError):
            gt.dequantize(data[1:], "Q4_K")
        with self.assertRaises(ValueError):
            gt.dequantize(data, "Q4_K", shape=(4, 128))
        with self.assertRaises(ValueError):
            gt.dequantize(data, "Q4_K", shape=(3, 256))
        with self.assertRaises(gpunvme.InvalidError):
            gt.dequantize(data, "Q4_K", scales=torch.ones(1, device=DEVICE))
        eight = torch.zeros(2, 300, 8, dtype=torch.int8, device=DEVICE)
        for scales, block in (
            (torch.ones(2, 3, 1), (128, 8)),
            (torch.ones(2, 7, 1), None),
            (torch.ones(3, 1), (100, 8)),
            (torch.ones(2, 3, 1), (100, 4)),
        ):
            with self.subTest(shape=scales.shape), self.assertRaises(ValueError):
                gt.dequantize(eight, scales=scales.to(DEVICE), block=block)

    def test_what_the_library_refuses(self) -> None:
        data = torch.zeros(1024, dtype=torch.uint8, device=DEVICE)
        target = torch.zeros(1024, dtype=torch.float32, device=DEVICE)
        at, to = data.data_ptr(), target.data_ptr()
        for wrong, kind in (
            (_dequantize.quantized("Q4_K", at + 8, "F32", to, 1, 256), gpunvme.InvalidError),
            (_dequantize.quantized("Q4_K", at, "F32", to + 4, 1, 256), gpunvme.InvalidError),
            (_dequantize.quantized("Q4_K", at, "F32", to, 2, 128), gpunvme.InvalidError),
            (_dequantize.quantized("Q4_K", 0, "F32", to, 1, 256), gpunvme.InvalidError),
            (_dequantize.quantized("Q4_K", to, "F32", to, 1, 256), gpunvme.InvalidError),
            (_dequantize.quantized("I8", at, "F32", to, 2**63, 256), gpunvme.InvalidError),
            (_dequantize.quantized("I8", at, "F32", to, 2**32, 2**32), gpunvme.InvalidError),
            (_dequantize.quantized("I8", at, "F32", to, 1, 16, at + 512, (0, 1)), gpunvme.InvalidError),
            (_dequantize.quantized("Q9", at, "F32", to, 1, 256), gpunvme.InvalidError),
            (_dequantize.quantized("Q4_1", at, "F32", to, 1, 256), gpunvme.UnsupportedError),
            (_dequantize.quantized("Q4_K", at, "I32", to, 1, 256), gpunvme.UnsupportedError),
        ):
            with self.assertRaises(kind):
                _dequantize.dequantize(ACCELERATOR, [_dequantize.quantized("I8", at, "F32", to, 1, 16), wrong])
        self.assertEqual(int(target.count_nonzero()), 0)

    @on_a_gpu
    def test_in_the_order_of_a_stream(self) -> None:
        source = seeded(self)
        data = any_blocks(source, "Q6_K", 40_000).to(DEVICE)
        expected = gt.dequantize(data, "Q6_K", torch.float16).cpu()
        stream = torch.cuda.Stream()
        late = torch.zeros_like(data)
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            torch.cuda._sleep(100_000_000)
            late.copy_(data)
            got = gt.dequantize(late, "Q6_K", torch.float16)
            self.assertFalse(stream.query(), "nobody waited")
            copy = got.clone()
        stream.synchronize()
        self.same(copy, expected)

    def test_it_can_be_used_by_many_threads(self) -> None:
        source = seeded(self)
        data = any_blocks(source, "Q5_K", 3000).to(DEVICE)
        expected = gt.dequantize(data, "Q5_K", torch.bfloat16).cpu()
        wrong: list[Any] = []

        def work() -> None:
            try:
                for _ in range(20):
                    self.same(gt.dequantize(data, "Q5_K", torch.bfloat16), expected)
            except BaseException as e:
                wrong.append(e)

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])
