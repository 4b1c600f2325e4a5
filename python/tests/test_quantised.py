"""Models whose layers are streamed as they are quantised, beside the same models dequantised in memory."""

from __future__ import annotations

import json
import shutil
import subprocess
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

from support import FAKE, seeded

try:
    import gguf
    import numpy
    import torch
    import transformers
    from safetensors.torch import load_file, save_file
except ImportError as e:
    raise unittest.SkipTest(f"{e.name} is not installed") from None

from transformers.integrations import GGUF_CONFIG_MAPPING
from transformers.modeling_gguf_pytorch_utils import TENSOR_PROCESSORS, TensorProcessor, get_gguf_hf_weights_map

import gpunvme
import gpunvme.transformers
from gpunvme import _dequantize
from gpunvme._recipe import QUANTISED
from test_streamed import ARCHITECTURES as STREAMED
from test_streamed import DEVICE, Failing, Models, Watched


def load_tests(_loader: Any, tests: unittest.TestSuite, _pattern: Any) -> unittest.TestSuite:
    """None with the fake library, which has no layers of tensors."""
    return unittest.TestSuite() if FAKE else tests


_COMMON = dict(
    vocab_size=96,
    hidden_size=256,
    intermediate_size=512,
    num_hidden_layers=5,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=256,
)
# How wide experts are is not read from files of all these.
_EXPERTS = dict(num_experts=3, num_experts_per_tok=2)
_FEW = dict(num_hidden_layers=3)

# Architectures of GGUF, and what they are for transformers.
ARCHITECTURES: dict[str, Any] = {
    "llama": lambda: transformers.LlamaConfig(**_COMMON, tie_word_embeddings=False),
    "qwen2": lambda: transformers.Qwen2Config(**_COMMON, tie_word_embeddings=True),
    "qwen3": lambda: transformers.Qwen3Config(**_COMMON, head_dim=128),
    "gemma2": lambda: transformers.Gemma2Config(**_COMMON, head_dim=64, tie_word_embeddings=True),
    "gemma3": lambda: transformers.Gemma3TextConfig(**_COMMON, head_dim=64, tie_word_embeddings=True),
    "gpt2": lambda: transformers.GPT2Config(vocab_size=96, n_embd=256, n_layer=5, n_head=4),
    "qwen2moe": lambda: transformers.Qwen2MoeConfig(**(_COMMON | _FEW), **_EXPERTS),
    "qwen3moe": lambda: transformers.Qwen3MoeConfig(**(_COMMON | _FEW), **_EXPERTS, head_dim=128),
}

# Where a block has scales of 16 bits.
_SCALES = {"Q4_0": (0,), "Q8_0": (0,), "Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,)}

GGUF_TYPES = [name for name in QUANTISED if name in _SCALES]


def quantised(random: numpy.random.Generator, shape: tuple[int, ...], kind: str) -> Any:
    """The bytes of a quantised tensor of small random numbers."""
    elements, nbytes = QUANTISED[kind]
    blocks = random.integers(0, 256, (*shape[:-1], shape[-1] // elements, nbytes), dtype=numpy.uint8)
    for at in _SCALES[kind]:
        scale = (random.random(blocks.shape[:-1]) * 0.0004).astype(numpy.float16)
        blocks[..., at : at + 2] = scale[..., None].view(numpy.uint8)
    return blocks.reshape(*shape[:-1], -1)


class GgufModels(Models):
    def written(self, architecture: str, kinds: Any, **changed: Any) -> Path:
        """A GGUF file of random weights, its matrices in types that take turns."""
        config = ARCHITECTURES[architecture]()
        config.update(changed)
        ours = {"qwen2moe": "qwen2_moe", "qwen3moe": "qwen3_moe"}.get(architecture, architecture)
        path = self.folder() / "model.gguf"
        writer = gguf.GGUFWriter(path, architecture)
        for key, attribute in GGUF_CONFIG_MAPPING[ours].items():
            value = getattr(config, attribute or "", None)
            if isinstance(value, (int, float)):
                (writer.add_float32 if isinstance(value, float) else writer.add_uint32)(f"{architecture}.{key}", value)
        self.words(writer)
        model_class = transformers.AutoModelForCausalLM._model_mapping[type(config)]
        with torch.device("meta"):
            model = model_class._from_config(config)
        shapes = {name: tuple(t.shape) for name, t in model.state_dict().items()}
        processor = TENSOR_PROCESSORS.get(architecture, TensorProcessor)(config=config.to_dict())
        random = numpy.random.default_rng(seeded(self).randrange(2**32))
        turn = 0
        for name, ours in sorted(get_gguf_hf_weights_map(model, processor).items()):
            shape = shapes[ours]
            if "_exps" in name:
                name += ".weight"
                if "down" not in name:
                    shape = (shape[0], shape[1] // 2, shape[2])
            elif name.endswith("inp_shexp.weight"):
                shape = shape[1:]
            elif architecture == "gpt2" and len(shape) == 2 and "blk" in name:
                shape = shape[::-1]
            if name == "output.weight" and config.tie_word_embeddings:
                continue
            if len(shape) > 1 and "inp" not in name:
                # Gate and up become one tensor: they are of one type, as in the files that llama.cpp makes.
                kind = kinds[turn % len(kinds)] if "_exps" not in name else kinds[0]
                turn += 1
                if shape[-1] % 256:
                    kind = "Q8_0"
            else:
                kind = "F32"
            if kind in _SCALES:
                writer.add_tensor(name, quantised(random, shape, kind), raw_dtype=gguf.GGMLQuantizationType[kind])
            else:
                numbers = (random.standard_normal(shape) * 0.02).astype(numpy.float32) + ("norm" in name)
                made = gguf.quants.quantize(numbers.astype(numpy.float32), gguf.GGMLQuantizationType[kind])
                writer.add_tensor(name, made, raw_dtype=gguf.GGMLQuantizationType[kind])
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return path

    def words(self, writer: Any) -> None:
        """A tokenizer of letters."""
        writer.add_tokenizer_model("gpt2")
        writer.add_tokenizer_pre("default")
        writer.add_token_list(["ab", "cd", *(chr(33 + i) for i in range(92))] + ["<s>", "</s>"])
        writer.add_token_types([1] * 94 + [3] * 2)
        # Two at least: transformers 5.17 does not take a list of one for a list.
        writer.add_token_merges(["a b", "c d"])
        writer.add_bos_token_id(94)
        writer.add_eos_token_id(95)

    def of_transformers(self, path: Path, dtype: torch.dtype) -> Any:
        model = transformers.AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name, dtype=dtype)
        return model.to(DEVICE).eval()


class GgufTest(GgufModels):
    def test_logits_are_the_same_bits(self) -> None:
        for name in ARCHITECTURES:
            path = self.written(name, GGUF_TYPES)
            with self.subTest(name):
                memory = self.of_transformers(path, torch.bfloat16)
                none = self.streamed(path, gpu_budget=0)
                self.same(none, memory)
                layer = self.streamed(path).gpunvme.plan.resident_bytes // none.gpunvme.layers.count
                budget = none.gpunvme.device_bytes + layer
                some = self.streamed(path, gpu_budget=budget)
                self.assertGreater(len(some.gpunvme.plan.resident), 0)
                self.assertLessEqual(some.gpunvme.device_bytes, budget)
                self.same(some, memory)
                self.same(self.streamed(path), memory)
                if name in ("llama", "qwen3moe"):
                    wide = self.streamed(path, gpu_budget=0, dtype=torch.float32)
                    self.same(wide, self.of_transformers(path, torch.float32))

    def test_what_is_not_quantised_stays_in_its_slot(self) -> None:
        for name, kind, dtype in (("qwen2", "F16", torch.float16), ("gpt2", "BF16", torch.bfloat16), ("llama", "F32", torch.float32)):
            with self.subTest(name, kind=kind):
                path = self.written(name, [kind])
                model = self.streamed(path, gpu_budget=0)
                self.assertEqual(model.dtype, dtype)
                self.same(model, self.of_transformers(path, dtype))
                matrices = [p for p in model.gpunvme.layers._layers[0].parameters if len(p.recipe.shape) == 2]
                # Rows of Llama's queries and keys are in another order than in transformers.
                self.assertEqual(sum(p.recipe.converted for p in matrices), 2 if name == "llama" else 0)

    def test_tokens_in_slots_that_are_poisoned(self) -> None:
        path = self.written("llama", ["Q6_K", "Q4_K"])
        memory = self.of_transformers(path, torch.bfloat16)
        model = self.streamed(path, gpu_budget=0, slots=2)
        self.assertEqual(model.dtype, torch.bfloat16)
        watched = Watched(model)
        # All that a layer needs is made in one call, but queries and keys: their rows get another order.
        with mock.patch.object(_dequantize, "dequantize", wraps=_dequantize.dequantize) as calls:
            model(self.tokens(1, 3))
        self.assertEqual(calls.call_count, 5 * 3)
        prompt = self.tokens(2, 5)
        made = [m.generate(prompt, max_new_tokens=200, min_new_tokens=200, do_sample=False) for m in (memory, model)]
        self.assertTrue(torch.equal(*made))
        self.assertEqual(watched.wrong, [])
        self.assertEqual(watched.seen, 5 * model.gpunvme.layers.passes)

    def test_sources(self) -> None:
        path = self.written("llama", ["Q5_K", "Q8_0"])
        memory = self.of_transformers(path, torch.bfloat16)
        self.same(self.streamed(path.parent, gpu_budget=0), memory)
        image = f"sim:file={self.folder() / 'image'}"
        self.gpunvme("write-model", path, "--device", f"{image},size=64MiB", "--allow-write")
        self.same(self.streamed(image, config=path, gpu_budget=0), memory)
        disk = self.folder() / "disk"
        subprocess.run(["mke2fs", "-q", "-t", "ext4", "-d", path.parent, disk, "64M"], check=True, capture_output=True)
        self.same(self.streamed(f"sim:file={disk}:/model.gguf", gpu_budget=0), memory)

    def split(self, path: Path) -> list[Path]:
        """The same model in three files, the first of which has no tensors."""
        reader = gguf.GGUFReader(path)
        half = len(reader.tensors) // 2
        folder, parts = self.folder(), []
        for number, tensors in enumerate(([], reader.tensors[:half], reader.tensors[half:])):
            parts.append(folder / f"model-{number + 1:05}-of-00003.gguf")
            writer = gguf.GGUFWriter(parts[-1], "llama" if number == 0 else "")
            writer.kv_data[0].clear()
            for key, value in (("no", number), ("count", 3)):
                writer.add_uint16(f"split.{key}", value)
            writer.add_int32("split.tensors.count", len(reader.tensors))
            if number == 0:
                for key, field in reader.fields.items():
                    if not key.startswith("GGUF."):
                        kind = field.types[0]
                        part = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
                        writer.add_key_value(key, field.contents(), kind, part)
            for tensor in tensors:
                writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
            writer.write_header_to_file()
            writer.write_kv_data_to_file()
            writer.write_tensors_to_file()
            writer.close()
        return parts

    def test_sets_of_files(self) -> None:
        path = self.written("llama", ["Q8_0"])
        memory = self.of_transformers(path, torch.bfloat16)
        parts = self.split(path)
        for source in (parts[0], parts[2], parts[0].parent):
            self.same(self.streamed(source, gpu_budget=0), memory)
        disk = self.folder() / "disk"
        subprocess.run(["mke2fs", "-q", "-t", "ext4", "-d", parts[0].parent, disk, "64M"], check=True, capture_output=True)
        for source in ("/", f"/{parts[0].name}"):
            model = self.streamed(f"sim:file={disk}:{source}", gpu_budget=0)
            self.same(model, memory)
            model.gpunvme.close()
        # What else is there does not count, if it is no model.
        (path.parent / "config.json").write_text('{"model_type": "gpt2"}')
        self.same(self.streamed(path.parent, gpu_budget=0), memory)
        shutil.copy(path, path.parent / "other.gguf")
        with self.assertRaisesRegex(gpunvme.GpuNvmeError, "2 models: name one|several models|more than one"):
            gpunvme.transformers.load(path.parent, device=DEVICE)

    def test_a_head_of_its_own(self) -> None:
        for name in ("gpt2", "qwen2"):
            path = self.written(name, ["Q8_0"], tie_word_embeddings=False)
            self.same(self.streamed(path, gpu_budget=0), self.of_transformers(path, torch.bfloat16))

    def test_memory_while_a_head_is_converted(self) -> None:
        path = self.written("llama", ["Q8_0"], vocab_size=96)
        streaming = self.streamed(path, gpu_budget=0).gpunvme
        self.assertGreaterEqual(streaming.device_bytes, streaming.fixed_bytes + streaming._loading_bytes)
        self.assertGreater(streaming._loading_bytes, 96 * 256)

    def test_plan_model_says_the_same(self) -> None:
        for name in ("qwen2", "qwen2moe", "qwen3moe"):
            with self.subTest(name):
                self.same_plan(self.written(name, ["Q6_K", "Q4_K"]))

    def test_the_command(self) -> None:
        path = self.written("qwen2", ["Q4_0"])
        done = self.generate(path, "--prompt", "abc", "--tokens", "7", "--gpu-budget", "0", "--json")
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stderr)
        told = json.loads(done.stdout)
        tokenizer = transformers.AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
        prompt = tokenizer("abc", return_tensors="pt").to(DEVICE)
        memory = self.of_transformers(path, torch.bfloat16)
        expected = memory.generate(**prompt, max_new_tokens=7, do_sample=False)[0, prompt["input_ids"].shape[1] :]
        self.assertEqual((told["text"], told["tokens"]), (tokenizer.decode(expected, skip_special_tokens=True), len(expected)))

    def test_what_is_not_streamed(self) -> None:
        path = self.written("llama", ["Q4_1"])
        with self.assertRaisesRegex(gpunvme.UnsupportedError, r"'blk.0.*' is stored as Q4_1.*Q4_0, Q8_0, Q4_K, Q5_K, Q6_K"):
            gpunvme.transformers.load(path, device=DEVICE)
        other = self.folder() / "other.gguf"
        other.write_bytes(path.read_bytes().replace(b"general.architecture\x08\0\0\0\x05\0\0\0\0\0\0\0llama", b"general.architecture\x08\0\0\0\x05\0\0\0\0\0\0\0lumma"))
        with self.assertRaisesRegex(gpunvme.UnsupportedError, "lumma"):
            gpunvme.transformers.load(other, device=DEVICE)
        other.write_bytes(path.read_bytes()[:3000])
        with self.assertRaises(gpunvme.FormatError):
            gpunvme.transformers.load(other, device=DEVICE)
        done = self.generate(other, "--prompt", "abc")
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (1, "", 1), done.stderr)
        for wrong in ("float8_e4m3fn", torch.int8, "bf17"):
            with self.assertRaisesRegex(ValueError, "floats of 16 bits or more"):
                gpunvme.transformers.load(path, device=DEVICE, dtype=wrong)
        path = self.written("llama", ["Q8_0"])
        key = b"llama.attention.head_count\x04\0\0\0"
        path.write_bytes(path.read_bytes().replace(key + b"\x04", key + b"\0"))
        with self.assertRaisesRegex(gpunvme.FormatError, "model.gguf: transformers makes no"):
            gpunvme.transformers.load(path, device=DEVICE)


class GgufFailureTest(GgufModels, Failing):
    def model(self, *kinds: str) -> tuple[Path, Any]:
        path = self.written("llama", kinds or ["Q6_K", "Q4_K", "Q8_0"])
        return path, self.of_transformers(path, torch.bfloat16)

    def test_interrupted_at_any_token(self) -> None:
        path, memory = self.model()
        self.interrupted(path.parent, path, memory)

    def test_a_file_that_shrinks(self) -> None:
        path, memory = self.model()
        self.shrinks(path, path, memory)

    def test_an_ssd_that_fails_in_the_middle(self) -> None:
        path, memory = self.model()
        self.breaks(path, path, memory)

    def test_a_corrupt_tensor(self) -> None:
        path, memory = self.model()
        data = path.read_bytes()
        name = b"blk.3.ffn_up.weight"
        info = data.index(name) + len(name)
        # Two dimensions of 8 bytes each, the type, the offset.
        for what, at, wrong in (
            ("its rank", info, 9), ("its columns", info + 4, 255), ("its rows", info + 12, 1 << 40), ("its offset", info + 24, 1 << 40),
            ("no multiple of the alignment", info + 24, 1),
        ):
            with self.subTest(what), self.released(path.parent, path, memory):
                nbytes = 4 if at == info else 8
                path.write_bytes(data[:at] + wrong.to_bytes(nbytes, "little") + data[at + nbytes :])
                self.fails(gpunvme.FormatError, name.decode(), path)
                path.write_bytes(data)

    def test_a_model_that_is_not_understood(self) -> None:
        path, memory = self.model()
        other = self.written("llama", ["Q4_1"])
        with self.released(path.parent, path, memory):
            self.fails(gpunvme.UnsupportedError, r"'blk\.\d.*' is stored as Q4_1", other)


class ScaledTest(Models):
    """Matrices of 8 bits with scales."""

    def scaled(self, folder: Path, kind: torch.dtype, blocks: tuple[int, int], end: str, scale: torch.dtype) -> Path:
        """Such a checkpoint of another one: a block of so many rows and columns has a scale; 0: all of them together."""
        tensors = load_file(folder / "model.safetensors")
        made = {}
        for name, tensor in tensors.items():
            if tensor.dim() != 2 or tensor.shape[0] % (blocks[0] or 1) or "embed" in name or "lm_head" in name:
                made[name] = tensor
                continue
            rows, columns = (b or n for b, n in zip(blocks, tensor.shape))
            parts = tensor.float().view(tensor.shape[0] // rows, rows, tensor.shape[1] // columns, columns)
            scales = (parts.abs().amax((1, 3), keepdim=True) / (127 if kind == torch.int8 else 400)).to(scale)
            numbers = (parts / scales.float()).view(tensor.shape)
            made[name] = (numbers.round() if kind == torch.int8 else numbers).to(kind)
            made[name + end] = scales[:, 0, :, 0].reshape(()) if blocks == (0, 0) else scales[:, 0, :, 0].contiguous()
        copy = self.folder()
        shutil.copy(folder / "config.json", copy)
        save_file(made, copy / "model.safetensors")
        return copy

    def told(self, folder: Path, quantisation: dict[str, Any] | None) -> None:
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(config | {"quantization_config": quantisation}))

    def by_hand(self, folder: Path, end: str) -> Any:
        """The model of what is dequantised by PyTorch."""
        tensors = load_file(folder / "model.safetensors")
        for name in [n for n in tensors if n + end in tensors]:
            scales = tensors.pop(name + end).float()
            rows, columns = tensors[name].shape
            scales = scales.reshape(scales.shape if scales.dim() == 2 else (1, 1))
            scales = scales.repeat_interleave(rows // scales.shape[0], 0).repeat_interleave(columns // scales.shape[1], 1)
            tensors[name] = (tensors[name].float() * scales).bfloat16()
        copy = self.folder()
        config = json.loads((folder / "config.json").read_text())
        config.pop("quantization_config", None)
        (copy / "config.json").write_text(json.dumps(config))
        save_file(tensors, copy / "model.safetensors")
        return self.memory(copy)

    def test_blocks_as_transformers_dequantises_them(self) -> None:
        for name in ("llama", "mixtral"):
            with self.subTest(name):
                folder = self.saved(STREAMED[name]())
                folder = self.scaled(folder, torch.float8_e4m3fn, (16, 16), "_scale_inv", torch.float32)
                self.told(folder, {"quant_method": "fp8", "weight_block_size": [16, 16], "activation_scheme": "dynamic"})
                config = transformers.FineGrainedFP8Config(weight_block_size=(16, 16), dequantize=True)
                memory = self.memory(folder, quantization_config=config)
                for budget in (0, None):
                    self.same(self.streamed(folder, gpu_budget=budget), memory)
                self.same_plan(folder)

    def test_a_scale_for_all_experts_together(self) -> None:
        folder = self.saved(STREAMED["qwen3-moe"]())
        model = self.memory(folder)
        tensors = dict(model.state_dict())
        for name in [n for n in tensors if "experts" in n]:
            tensors[name + "_scale"] = torch.tensor([0.004])
            tensors[name] = (tensors[name].float() / 0.004).to(torch.float8_e4m3fn)
        save_file({n: t.contiguous() for n, t in tensors.items()}, folder / "model.safetensors")
        self.told(folder, {"quant_method": "compressed-tensors"})
        self.same(self.streamed(folder, gpu_budget=0), self.streamed(folder))
        self.same_plan(folder)

    def test_all_kinds_of_scales(self) -> None:
        whole = self.saved(STREAMED["llama"]())
        for kind in (torch.float8_e4m3fn, torch.float8_e5m2, torch.int8):
            for blocks, scale in (((1, 0), torch.float32), ((0, 0), torch.bfloat16), ((16, 8), torch.float16)):
                with self.subTest(kind=kind, blocks=blocks):
                    folder = self.scaled(whole, kind, blocks, "_scale", scale)
                    self.told(folder, {"quant_method": "compressed-tensors", "format": "int-quantized"})
                    model = self.streamed(folder, gpu_budget=0)
                    self.same(model, self.by_hand(folder, "_scale"))
                    self.assertLess(model.gpunvme.plan.pass_bytes, 0.8 * self.streamed(whole, gpu_budget=0).gpunvme.plan.pass_bytes)

    def test_what_is_not_streamed(self) -> None:
        folder = self.scaled(self.saved(STREAMED["llama"]()), torch.int8, (1, 0), "_scale", torch.float32)
        self.told(folder, {"quant_method": "gptq", "bits": 4})
        with self.assertRaisesRegex(gpunvme.UnsupportedError, "gptq.*compressed-tensors.*Q6_K"):
            gpunvme.transformers.load(folder, device=DEVICE)
        self.told(folder, {"quant_method": "compressed-tensors"})
        tensors = load_file(folder / "model.safetensors")
        name = "model.layers.1.mlp.up_proj.weight"
        save_file(tensors | {name + "_zero_point": torch.zeros(48, 1)}, folder / "model.safetensors")
        with self.assertRaisesRegex(gpunvme.UnsupportedError, "layers.1.mlp.up_proj.weight_zero_point"):
            gpunvme.transformers.load(folder, device=DEVICE)
        save_file(tensors | {name + "_scale": torch.ones(5, 1)}, folder / "model.safetensors")
        with self.assertRaisesRegex(gpunvme.UnsupportedError, r"layers.1.mlp.up_proj.weight of shape \(48, 32\).*\(5, 1\)"):
            gpunvme.transformers.load(folder, device=DEVICE)
        exponents = torch.full((48, 1), 127, dtype=torch.uint8)
        save_file(tensors | {name + "_scale": exponents}, folder / "model.safetensors")
        with self.assertRaisesRegex(gpunvme.UnsupportedError, "layers.1.mlp.up_proj.weight has scales that are stored as U8"):
            gpunvme.transformers.load(folder, device=DEVICE)
        renamed = {key.replace(name + "_scale", "model.layers.1.mlp.up_proj.scale"): t for key, t in tensors.items()}
        save_file(renamed, folder / "model.safetensors")
        for told in ({"quant_method": "compressed-tensors"}, None):
            self.told(folder, told)
            with self.assertRaisesRegex(gpunvme.UnsupportedError, "layers.1.mlp.up_proj.weight is stored as I8 without.*up_proj.scale"):
                gpunvme.transformers.load(folder, device=DEVICE)
        save_file(tensors | {name + "_zero_point": torch.zeros(48, 1)}, folder / "model.safetensors")
        with self.assertRaisesRegex(gpunvme.UnsupportedError, "weight_zero_point"):
            gpunvme.transformers.load(folder, device=DEVICE)
        # 48 rows in blocks of 32: one and a half.
        save_file(tensors | {name + "_scale": torch.ones(2, 1)}, folder / "model.safetensors")
        self.told(folder, {"quant_method": "fp8", "weight_block_size": [32, 32]})
        with self.assertRaisesRegex(gpunvme.UnsupportedError, r"scales of shape \(\d+, 1\) for blocks of \(32, 32\)"):
            gpunvme.transformers.load(folder, device=DEVICE)
        self.told(folder, {"quant_method": "compressed-tensors"})
        save_file(tensors | {name: torch.zeros(48, 32)}, folder / "model.safetensors")
        with self.assertRaisesRegex(gpunvme.UnsupportedError, "has scales and is stored as F32"):
            gpunvme.transformers.load(folder, device=DEVICE)
