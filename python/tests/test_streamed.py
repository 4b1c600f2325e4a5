"""Models whose layers are streamed, beside the same models in memory."""

from __future__ import annotations

import contextlib
import functools
import gc
import io
import json
import os
import re
import signal
import subprocess
import sys
import unittest
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from support import ACCELERATOR, FAKE, PYTHON, Case, seeded

try:
    import tokenizers
    import torch
    import transformers
    from torch import nn
except ImportError as e:
    raise unittest.SkipTest(f"{e.name} is not installed") from None

import gpunvme
import gpunvme.torch
import gpunvme.transformers
from gpunvme import _experts, _generate, _recipe, _stored, _streamed
from gpunvme.layers import TensorLayer

transformers.utils.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()
# Matrices are small, and threads that wait for each other take the time of what runs beside.
torch.set_num_threads(1)



def load_tests(_loader: Any, tests: unittest.TestSuite, _pattern: Any) -> unittest.TestSuite:
    """None with the fake library, which has no layers of tensors."""
    return unittest.TestSuite() if FAKE else tests


DEVICE = "cuda" if ACCELERATOR == "gpu" else "cpu"

_COMMON = dict(
    vocab_size=97,
    hidden_size=32,
    intermediate_size=48,
    num_hidden_layers=5,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=256,
    bos_token_id=1,
    eos_token_id=2,
    pad_token_id=0,
)
_EXPERTS = dict(num_experts=4, moe_intermediate_size=16, num_experts_per_tok=2)

ARCHITECTURES: dict[str, Callable[[], Any]] = {
    "llama": lambda: transformers.LlamaConfig(**_COMMON),
    "llama with tied embeddings": lambda: transformers.LlamaConfig(**_COMMON, tie_word_embeddings=True),
    "qwen2": lambda: transformers.Qwen2Config(**_COMMON),
    "qwen3": lambda: transformers.Qwen3Config(**_COMMON, head_dim=8),
    "mistral": lambda: transformers.MistralConfig(**_COMMON),
    "gemma": lambda: transformers.GemmaConfig(**_COMMON, head_dim=8),
    "gemma2": lambda: transformers.Gemma2Config(**_COMMON, head_dim=8),
    "gpt2": lambda: transformers.GPT2Config(
        vocab_size=97, n_embd=32, n_layer=5, n_head=4, n_positions=256, bos_token_id=1, eos_token_id=2, pad_token_id=0
    ),
    "mixtral": lambda: transformers.MixtralConfig(**_COMMON, num_local_experts=4),
    "qwen2-moe": lambda: transformers.Qwen2MoeConfig(**_COMMON, **_EXPERTS, shared_expert_intermediate_size=16),
    "qwen3-moe": lambda: transformers.Qwen3MoeConfig(**_COMMON, **_EXPERTS, head_dim=8),
}


_STORED_AS = {torch.bfloat16: "BF16", torch.float16: "F16", torch.float32: "F32"}


class Watched:
    """Looks after slots: a layer's parameters are the same from its beginning to its end, and are poison afterwards."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.seen = 0
        self.layers = model.gpunvme.layers
        self._enter, self._leave = self.layers._enter, self.layers._leave
        self._before: list[torch.Tensor] = []
        self._slot = 0
        self.wrong: list[str] = []
        self.seen_experts = 0
        self.layers._enter, self.layers._leave = self.enter, self.leave
        for layer in self.layers._layers:
            layer.bind = functools.partial(self.bind, layer.bind)  # type: ignore[method-assign]
        ring = self.layers._experts
        for experts in ring._experts.values() if ring else ():
            experts.unbind = functools.partial(self.poison, experts, experts.unbind)  # type: ignore[method-assign]
            experts.bind = functools.partial(self.bind_experts, experts.bind)  # type: ignore[method-assign]

    def bind(self, bind: Any, address: int, *memory: Any) -> None:
        self._slot = address
        bind(address, *memory)
        self._memory = memory

    def bind_experts(self, bind: Any, address: int, slot: torch.Tensor, chosen: Any) -> None:
        self._slot_of_experts = slot
        bind(address, slot, chosen)

    def poison(self, experts: Any, unbind: Any) -> None:
        """What an expert has left must be of no use to others, and neither must what was not read."""
        unbind()
        self._slot_of_experts.fill_(255)
        self.seen_experts += 1

    def _now(self) -> list[torch.Tensor]:
        bound = self.layers._bound
        return [p.owner._parameters[p.name] for p in bound.parameters]

    def enter(self, number: int) -> None:
        self._enter(number)
        self._before = [p.clone() for p in self._now()]

    def leave(self, number: int) -> None:
        parameters = self._now()
        for before, now in zip(self._before, parameters):
            if not torch.equal(before, now):
                self.wrong.append(f"layer {number} was overwritten while it ran")
        # The slot, and floats that were made of it.
        self._memory[0]().fill_(255)
        self._memory[1].fill_(255)
        self._leave(number)
        self.seen += 1


def tokenizer() -> Any:
    """Of words w0 to w96."""
    words = {f"w{i}": i for i in range(97)}
    model = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="w0"))
    model.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    return transformers.PreTrainedTokenizerFast(tokenizer_object=model, pad_token="w0", bos_token="w1", eos_token="w2")


class Models(Case):
    def saved(self, config: Any, dtype: torch.dtype = torch.bfloat16, **options: Any) -> Path:
        """The folder of a model of random weights."""
        torch.manual_seed(seeded(self).randrange(2**32))
        folder = self.folder()
        model = transformers.AutoModelForCausalLM.from_config(config, dtype=dtype)
        # Those that a fresh model has all alike, such as norms, would hide that they are mixed up.
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.02)
        model.save_pretrained(folder, **options)
        return folder

    def memory(self, folder: Path, **options: Any) -> Any:
        return transformers.AutoModelForCausalLM.from_pretrained(folder, **options).to(DEVICE).eval()

    def streamed(self, source: Any, **options: Any) -> Any:
        model = gpunvme.transformers.load(source, device=DEVICE, **options)
        self.addCleanup(model.gpunvme.close)
        return model

    def gpunvme(self, *words: Any) -> None:
        command = [sys.executable, "-m", "gpunvme", *map(str, words)]
        subprocess.run(command, env=self.environment(), check=True, capture_output=True)

    def generate(self, *words: Any) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "gpunvme.transformers", "generate", *map(str, words), "--device", DEVICE]
        return subprocess.run(command, env=self.environment(), capture_output=True, text=True)

    def same_plan(self, source: Path, dtype: torch.dtype | None = None) -> int:
        """What ``plan-model`` says beforehand is what a streamed model has, at any budget: the most layers that stay."""
        options: dict[str, Any] = {} if dtype is None else {"dtype": dtype}
        words = [] if dtype is None else ["--dtype", _STORED_AS[dtype]]
        first = self.told_plan(source, 0, *words)
        # Nobody can know these from the files.
        made = sum(buffer.numel() * buffer.element_size() for buffer in self.streamed(source, **options).buffers())
        everything, stay = first["everything_bytes"], 0
        for budget in (0, first["least_budget"], (first["device_bytes"] + everything) // 2, everything - 1):
            if budget and not first["least_budget"] <= budget < everything:
                continue
            told = self.told_plan(source, budget, *words) if budget else first
            model = self.streamed(source, gpu_budget=budget and budget + made, **options)
            streaming, plan, ring = model.gpunvme, model.gpunvme.plan, model.gpunvme.layers._experts
            stay = max(stay, len(plan.resident))
            has = {
                "resident": list(plan.resident),
                "slots": plan.slots,
                "slot_bytes": plan.slot_bytes,
                "ring_bytes": plan.ring_bytes,
                "reads_in_flight": plan.reads,
                "resident_bytes": plan.resident_bytes,
                "converted_bytes": plan.converted_bytes,
                "pass_bytes": plan.pass_bytes,
                "fixed_bytes": streaming.fixed_bytes - made,
                "device_bytes": streaming.device_bytes - made,
            }
            self.assertEqual({key: told[key] for key in has}, has, budget)
            experts = told["experts"] or {"slots": 0, "slot_bytes": 0, "ring_bytes": 0, "router_bytes": 0, "layers": []}
            self.assertEqual(
                [experts[key] for key in ("slots", "slot_bytes", "ring_bytes", "router_bytes")],
                [plan.expert_slots, plan.expert_slot_bytes, plan.expert_ring_bytes, plan.router_bytes],
                budget,
            )
            apart = ring._experts.values() if ring else ()
            self.assertEqual([(e["experts"], e["expert_bytes"]) for e in experts["layers"]], [(e.count, e.bytes) for e in apart])
            if ring is None:
                continue
            self.assertEqual(plan.router_bytes, sum(_recipe.aligned(router.nbytes) for router in ring._routers.values()))
            self.assertEqual(experts["per_token"], model.config.num_experts_per_tok)
            model(self.tokens(1, 1))
            chosen = streaming.layers.pass_bytes - plan.pass_bytes
            self.assertEqual((experts["least_token_bytes"], experts["most_token_bytes"]), (chosen, chosen))
        return stay

    def told_plan(self, source: Path, budget: int, *words: str) -> Any:
        command = [sys.executable, "-m", "gpunvme", "plan-model", source, "--gpu-budget", budget, "--json", *words]
        done = subprocess.run([*map(str, command)], env=self.environment(), check=True, capture_output=True)
        return json.loads(done.stdout)

    def environment(self) -> dict[str, str]:
        path = [str(PYTHON / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
        return os.environ | {"PYTHONPATH": os.pathsep.join(path), "OMP_NUM_THREADS": "1"}

    def tokens(self, rows: int = 2, columns: int = 9) -> torch.Tensor:
        return torch.randint(3, 97, (rows, columns), generator=torch.Generator().manual_seed(1)).to(DEVICE)

    def same(self, a: Any, b: Any) -> None:
        tokens = self.tokens()
        with torch.inference_mode():
            for _ in range(2):
                self.assertTrue(torch.equal(a(tokens).logits, b(tokens).logits))


class Interrupting(transformers.TextStreamer):
    """Ctrl-C when so many tokens have come; the prompt is the first."""

    def __init__(self, count: int) -> None:
        self.left = count

    def put(self, value: Any) -> None:
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt

    def end(self) -> None:
        pass


class Failing(Models):
    """What goes wrong has a type and says where; then all is given back, and the next load works."""

    def held(self, folder: Path) -> tuple[list[str], Any]:
        """Files of a folder that are open, and the accelerator's memory."""
        gc.collect()
        files = [os.path.realpath(f) for f in Path("/proc/self/fd").iterdir()]
        with gpunvme.Storage("sim:size=1MiB", ACCELERATOR) as other:
            return [f for f in files if f.startswith(str(folder))], other.stats()["memory"]

    @contextlib.contextmanager
    def released(self, folder: Path, source: Any, memory: Any, **options: Any) -> Iterator[None]:
        """What is done here leaves nothing behind, and a model can be loaded afterwards, and is right."""

        def works() -> None:
            model = gpunvme.transformers.load(source, device=DEVICE, gpu_budget=0, **options)
            self.same(model, memory)
            model.gpunvme.close()

        # What is made once for all is there then.
        works()
        before = self.held(folder)
        self.assertEqual(before[0], [])
        yield
        self.assertEqual(self.held(folder), before)
        works()

    def fails(self, error: type[Exception], pattern: str, source: Any, **options: Any) -> None:
        """Loading it does."""
        with self.assertRaisesRegex(error, pattern):
            gpunvme.transformers.load(source, device=DEVICE, gpu_budget=0, **options)

    def interrupted(self, folder: Path, source: Any, memory: Any) -> None:
        """At each token of a text."""
        prompt, whole = self.tokens(1, 3), dict(max_new_tokens=6, min_new_tokens=6, do_sample=False)
        expected = memory.generate(prompt, **whole)
        for count in range(7):
            with self.subTest(count), self.released(folder, source, memory):
                model = gpunvme.transformers.load(source, device=DEVICE, gpu_budget=0)
                with self.assertRaises(KeyboardInterrupt):
                    model.generate(prompt, streamer=Interrupting(count), **whole)
                self.assertTrue(torch.equal(model.generate(prompt, **whole), expected))
                with self.assertRaises(KeyboardInterrupt):
                    model.generate(prompt, streamer=Interrupting(count), **whole)
                model.gpunvme.close()

    def shrinks(self, path: Path, source: Any, memory: Any) -> None:
        data = path.read_bytes()
        with self.released(path.parent, source, memory):
            model = gpunvme.transformers.load(source, device=DEVICE, gpu_budget=0, slots=2)
            os.truncate(path, 4096)
            with self.assertRaisesRegex(OSError, r"layer 'model\.layers\.\d' \(\d+ bytes in \d+ pieces\)"):
                for _ in range(3):
                    model(self.tokens())
            path.write_bytes(data)
            self.same(model, memory)
            model.gpunvme.close()

    def breaks(self, model: Path, config: Path, memory: Any) -> None:
        """An SSD with the model does, in the middle: a read that fails, and then the whole of it."""
        image = self.folder() / "image"
        device = f"sim:file={image}"
        self.gpunvme("write-model", model, "--device", f"{device},size=64MiB", "--allow-write")
        for fault, error in (("status=unrecovered-read-error dnr on read nth=40", gpunvme.GpuNvmeError), ("gone on read nth=40", OSError)):
            with self.subTest(fault), self.released(image.parent, device, memory, config=config):
                streamed = gpunvme.transformers.load(f"{device},faults={fault}", config=config, device=DEVICE, gpu_budget=0)
                with self.assertRaisesRegex(error, r"layer 'model\.layers\.\d' \(\d+ bytes in \d+ pieces\): "):
                    for _ in range(20):
                        streamed(self.tokens())
                if "gone" not in fault:
                    self.same(streamed, memory)
                streamed.gpunvme.close()


class ArchitectureTest(Models):
    def test_logits_are_the_same_bits(self) -> None:
        for name, config in ARCHITECTURES.items():
            folder = self.saved(config(), max_shard_size="40KB")
            self.assertGreater(len(list(folder.glob("*.safetensors"))), 1)
            memory = self.memory(folder)
            for share in (0, 0.6, None):
                with self.subTest(name, budget=share):
                    model = self.streamed(folder, gpu_budget=0, slots=2)
                    budget: int | None = 0
                    if share is None:
                        budget = None
                    elif share:
                        most = sum(p.numel() * p.element_size() for p in memory.parameters())
                        budget = max(int(most * share), model.gpunvme.device_bytes)
                    model = self.streamed(folder, gpu_budget=budget)
                    plan = model.gpunvme.plan
                    if budget:
                        self.assertLessEqual(model.gpunvme.device_bytes, budget)
                    self.assertEqual(len(plan.resident) == 5, share is None)
                    self.same(model, memory)
                    self.assertIn("layers stay", model.gpunvme.explain())

    def test_all_kinds_of_generation(self) -> None:
        folder = self.saved(ARCHITECTURES["llama"]())
        memory, model = self.memory(folder), self.streamed(folder, gpu_budget=0)
        prompt = self.tokens(2, 5)
        mask = torch.ones_like(prompt)
        mask[0, :2] = 0
        for kind in (
            dict(max_new_tokens=200, min_new_tokens=200, do_sample=False),
            dict(max_new_tokens=12, do_sample=False, num_beams=3),
            dict(max_new_tokens=12, do_sample=True, top_k=20),
            dict(max_new_tokens=12, do_sample=False, use_cache=False),
            dict(max_new_tokens=12, do_sample=False, cache_implementation="static", disable_compile=True),
        ):
            with self.subTest(kind):
                made = []
                for one in (memory, model):
                    torch.manual_seed(5)
                    made.append(one.generate(prompt, attention_mask=mask, **kind))
                self.assertTrue(torch.equal(*made))
        self.assertGreater(model.gpunvme.layers.passes, 200)

    def test_a_pipeline(self) -> None:
        folder = self.saved(ARCHITECTURES["gpt2"]())
        made = []
        for model in (self.memory(folder), self.streamed(folder, gpu_budget=0)):
            pipe = transformers.pipeline("text-generation", model=model, tokenizer=tokenizer(), device=DEVICE)
            made.append(pipe("w5 w9 w40", max_new_tokens=20, do_sample=False, return_tensors=True))
        self.assertEqual(*made)

    def test_the_command(self) -> None:
        folder = self.saved(ARCHITECTURES["llama"]())
        tokenizer().save_pretrained(folder)
        memory = self.memory(folder)
        prompt = tokenizer()("w5 w9 w40", return_tensors="pt").to(DEVICE)
        expected = memory.generate(**prompt, max_new_tokens=7, do_sample=False)
        text = tokenizer().decode(expected[0, 3:], skip_special_tokens=True)
        more = ["--tokens", "7", "--gpu-budget", "0"]

        def run(*words: str) -> subprocess.CompletedProcess[str]:
            return self.generate(folder, "--prompt", "w5 w9 w40", *words)

        done = run(*more, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        told = json.loads(done.stdout)
        self.assertEqual((told["text"], told["tokens"], told["resident_layers"]), (text, expected.shape[1] - 3, 0))
        self.assertGreater(told["tokens_per_second"], 0)
        self.assertAlmostEqual(told["share_of_floor"], told["tokens_per_second"] * told["pass_bytes"] / told["read_rate"], places=6)
        self.assertEqual(done.stderr, "")
        done = run(*more)
        self.assertEqual((done.returncode, done.stdout.strip()), (0, text.strip()), done.stderr)
        self.assertRegex(done.stderr, r"tokens/s.*layers come at [\d.]+ GB/s.*\d+% of its time; \w+ limits")
        done = run("--gpu-budget", "1KiB")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertRegex(done.stderr, r"\Agpunvme: .*gpu_budget of 1024 bytes is not enough[^\n]*\n\Z")
        (folder / "model.safetensors").unlink()
        done = run()
        self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1), done.stderr)

    def test_tokenizers_that_are_odd(self) -> None:
        folder = self.saved(ARCHITECTURES["llama"]())

        def told(*words: str) -> tuple[int, str]:
            with contextlib.redirect_stderr(io.StringIO()) as error, contextlib.redirect_stdout(io.StringIO()) as out:
                code = _generate.main(["generate", str(folder), "--tokens", "2", "--device", DEVICE, *words])
            self.assertEqual((code == 0, out.getvalue() != ""), (True, True) if code == 0 else (False, False))
            return code, error.getvalue()

        def refused(code: int, pattern: str, prompt: str = "w5 w9") -> None:
            # One line, with the place and what is wrong.
            got, text = told("--prompt", prompt)
            self.assertEqual((got, text.count("\n")), (code, 1), text)
            self.assertRegex(text, rf"\Agpunvme: .*{pattern}")

        place = re.escape(str(folder))
        refused(1, f"{place}: transformers makes no tokenizer of it: ")
        for name, content in (
            ("tokenizer.json", "{}"), ("tokenizer.json", "\0\1"), ("tokenizer_config.json", "[]"), ("tokenizer_config.json", '{"tokenizer_class": 7}'),
        ):
            tokenizer().save_pretrained(folder)
            (folder / name).write_text(content)
            refused(1, rf"{place}: transformers makes no tokenizer of it: \w+Error: ")
        tokenizer().save_pretrained(folder)
        self.assertEqual(told("--prompt", "w5 w9")[0], 0)
        refused(2, "the prompt has no tokens", "")

        class Panic(BaseException):
            """As code in Rust ends."""

        with mock.patch.object(transformers.AutoTokenizer, "from_pretrained", side_effect=Panic("in\nRust")):
            refused(1, f"{place}: transformers makes no tokenizer of it: Panic: in Rust")
        with mock.patch.object(transformers.AutoTokenizer, "from_pretrained", side_effect=KeyboardInterrupt):
            self.assertEqual(told("--prompt", "w5"), (130, "gpunvme: interrupted\n"))
        path = folder / "tokenizer.json"
        changed = json.loads(path.read_text())
        changed["model"]["vocab"]["big"] = 97
        path.write_text(json.dumps(changed))
        refused(1, f"{place}: its tokenizer makes token 97 of the prompt, and the model has 97", "w5 big")
        changed["model"]["vocab"] = {}
        path.write_text(json.dumps(changed))
        refused(1, f"{place}: its tokenizer does not take the prompt: Exception: ")

    def test_the_examples_of_the_page(self) -> None:
        folder = self.saved(ARCHITECTURES["llama"]())
        tokenizer().save_pretrained(folder)
        text = (PYTHON.parent / "docs" / "streaming.md").read_text()
        whole, layers = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
        with mock.patch("builtins.print") as printed:
            exec(whole.replace("/models/llama", str(folder)), {})
        self.assertIn("layers stay", printed.call_args.args[0])
        from safetensors.torch import save_file

        memory = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3)).to(DEVICE)
        save_file({f"blocks.{name}": t.contiguous() for name, t in memory.state_dict().items()}, folder / "model.safetensors")
        module = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3)).to(DEVICE)
        module.blocks = list(module)  # type: ignore[assignment]
        x = torch.ones(2, 3, device=DEVICE)
        names: dict[str, Any] = {"gpunvme": gpunvme, "module": module, "x": x}
        with torch.no_grad():
            exec(layers.replace('"gpu"', repr(ACCELERATOR)).replace("model.safetensors", str(folder / "model.safetensors")), names)
            self.assertTrue(torch.equal(module(x), memory(x)))
        names["streamed"].close()
        names["weights"].close()

    def test_other_types_than_stored(self) -> None:
        folder = self.saved(ARCHITECTURES["mixtral"](), torch.float32)
        for dtype in (torch.bfloat16, torch.float16, torch.float32):
            for budget in (0, None):
                with self.subTest(dtype, budget=budget):
                    model = self.streamed(folder, gpu_budget=budget, dtype=dtype)
                    self.assertEqual(model.dtype, dtype)
                    self.same(model, self.memory(folder, dtype=dtype))

    def test_what_passes_cost(self) -> None:
        folder = self.saved(ARCHITECTURES["llama"]())
        steps: list[tuple[int, int]] = []
        model = self.streamed(folder, gpu_budget=0, progress=lambda done, all: steps.append((done, all)))
        self.assertEqual(steps[0][0], 0)
        self.assertEqual(steps[-1][0], steps[-1][1])
        self.assertEqual(steps, sorted(steps))
        layers = model.gpunvme.layers
        self.assertIsNone(layers.measured())
        self.assertIn("too little to measure", model.gpunvme.explain())
        for _ in range(3):
            model(self.tokens())
        measured = layers.measured()
        self.assertEqual(measured.passes, 3)
        self.assertGreater(measured.seconds, 0)
        self.assertAlmostEqual(measured.floor * measured.read_rate, model.gpunvme.plan.pass_bytes, delta=1)
        self.assertIn(measured.limit, ("reading", "compute"))
        self.assertRegex(model.gpunvme.explain(), r"measured: layers come at [\d.]+ GB/s.* limits\nread by (pinned|mmap): .+\Z")
        self.assertLessEqual({*measured.paths}, {"pinned", "mmap"})
        self.assertTrue(measured.paths and all(measured.paths.values()))
        told = layers._loader.stats()
        self.assertLessEqual(told["bytes"], layers.bytes_read)
        self.assertGreater(told["layers"], 10)
        whole = self.streamed(folder)
        whole(self.tokens())
        self.assertIsNone(whole.gpunvme.layers.measured())

    def test_only_experts_that_were_chosen_are_read(self) -> None:
        few = dict(num_experts=8, moe_intermediate_size=16, num_experts_per_tok=2)
        for name, config in (
            ("mixtral", transformers.MixtralConfig(**_COMMON, num_local_experts=8)),
            ("qwen2-moe", transformers.Qwen2MoeConfig(**_COMMON, **few, shared_expert_intermediate_size=16, mlp_only_layers=[1])),
        ):
            for implementation in ("eager", "grouped_mm", "batched_mm") if name == "mixtral" else ("eager",):
                with self.subTest(name, implementation=implementation):
                    folder = self.saved(config)
                    options = {"experts_implementation": implementation}
                    memory = self.memory(folder, **options)
                    model = self.streamed(folder, gpu_budget=0, **options)
                    self.same(model, memory)
                    watched = Watched(model)
                    prompt = self.tokens(1, 3)
                    made = [m.generate(prompt, max_new_tokens=20, min_new_tokens=20, do_sample=False) for m in (memory, model)]
                    self.assertTrue(torch.equal(*made))
                    self.assertEqual(watched.wrong, [])
                    ring = model.gpunvme.layers._experts
                    self.assertEqual(watched.seen_experts, 20 * len(ring._experts))
                    guesses = model.gpunvme.layers.guesses
                    self.assertGreater(guesses.guessed, 0)
                    self.assertLess(guesses.guessed, guesses.chosen)
                    places: list[int] = []
                    with (
                        mock.patch.object(_experts, "TensorLayer", lambda w, n, p: places.append(len(p)) or TensorLayer(w, n, p)),
                        mock.patch.object(_experts, "fitted", lambda w, r: places.append(len(r)) or _recipe.fitted(w, r)),
                    ):
                        for _ in range(4):
                            model(prompt[:, :1])
                    # Two matrices, or three that were stored, of two experts, and of two that were guessed in vain.
                    self.assertLessEqual(sum(places), 4 * len(ring._experts) * 4 * 3)
                    self.assertGreaterEqual(sum(places), 4 * len(ring._experts) * 2 * 3 - 4 * 3)
                    self.assertEqual(model.gpunvme.layers.pass_bytes - model.gpunvme.plan.pass_bytes, len(ring._experts) * 2 * next(iter(ring._experts.values())).bytes)
                    self.assertIn("had been read ahead", model.gpunvme.explain())

    def test_plan_model_says_the_same(self) -> None:
        # Sizes that are no multiples of 512 bytes.
        odd = _COMMON | {"hidden_size": 40, "intermediate_size": 24, "num_hidden_layers": 8}
        few = dict(num_experts=3, moe_intermediate_size=24, num_experts_per_tok=2)
        mixed = transformers.Qwen2MoeConfig(**odd, **few, shared_expert_intermediate_size=24, mlp_only_layers=[1, 2])
        for name, config, dtype in (
            ("qwen3-moe", transformers.Qwen3MoeConfig(**odd, **few, head_dim=8), None),
            ("mixtral as F32", transformers.MixtralConfig(**odd, num_local_experts=3), torch.float32),
            ("qwen2-moe", mixed, None),
        ):
            with self.subTest(name):
                folder = self.saved(config)
                self.assertGreater(self.same_plan(folder, dtype), 0)

    def test_slots_are_never_used_too_early_or_too_late(self) -> None:
        folder = self.saved(ARCHITECTURES["qwen3"]())
        memory = self.memory(folder)
        for slots in (2, 3, 5, 12):
            with self.subTest(slots=slots):
                model = self.streamed(folder, gpu_budget=0, slots=slots)
                watched = Watched(model)
                self.same(model, memory)
                model.generate(self.tokens(1, 3), max_new_tokens=20, min_new_tokens=20)
                self.assertEqual(watched.wrong, [])
                self.assertEqual(watched.seen, model.gpunvme.layers.passes * 5)
                self.assertGreaterEqual(model.gpunvme.layers.passes, 22)


class SourceTest(Models):
    def test_a_file_an_ssd_and_a_file_system_on_one(self) -> None:
        folder = self.saved(ARCHITECTURES["llama"]())
        memory = self.memory(folder)
        self.same(self.streamed(folder / "model.safetensors", gpu_budget=0), memory)
        image = f"sim:file={self.folder() / 'image'}"
        self.gpunvme("write-model", folder, "--device", f"{image},size=64MiB", "--allow-write")
        with self.assertRaisesRegex(gpunvme.InvalidError, "config="):
            gpunvme.transformers.load(image, device=DEVICE)
        self.same(self.streamed(image, config=folder, gpu_budget=0), memory)
        two = ",".join(f"sim:file={self.folder() / 'image'}" for _ in range(2))
        self.gpunvme("write-model", folder, "--device", f"stripe:{two.replace(',', ',size=32MiB,')},size=32MiB;unit=64KiB", "--allow-write")
        self.same(self.streamed(f"stripe:{two};unit=64KiB", config=folder, gpu_budget=0), memory)
        disk = self.folder() / "disk"
        subprocess.run(["mke2fs", "-q", "-t", "ext4", "-d", str(folder), str(disk), "64M"], check=True, capture_output=True)
        inside = self.streamed(f"sim:file={disk}:/", gpu_budget=0)
        self.assertEqual(inside.generation_config.eos_token_id, memory.generation_config.eos_token_id)
        self.same(inside, memory)
        inside.gpunvme.close()
        with self.assertRaisesRegex(gpunvme.NotFoundError, "nowhere"):
            gpunvme.transformers.load(f"sim:file={disk}:/nowhere", config=folder, device=DEVICE)


class FailureTest(Failing):
    def test_files_that_are_not_the_model(self) -> None:
        folder = self.saved(ARCHITECTURES["llama"]())
        from safetensors.torch import load_file, save_file

        path = folder / "model.safetensors"
        whole = load_file(path)
        gone = dict(whole)
        del gone["model.layers.3.mlp.up_proj.weight"]
        save_file(gone, path, {"format": "pt"})
        with self.assertRaisesRegex(gpunvme.FormatError, "layers.3.mlp.up_proj"):
            gpunvme.transformers.load(folder, device=DEVICE)
        other = whole | {"model.layers.3.mlp.up_proj.weight": torch.zeros(48, 31, dtype=torch.bfloat16)}
        save_file(other, path, {"format": "pt"})
        with self.assertRaisesRegex(gpunvme.FormatError, r"layers.3.mlp.up_proj.weight has shape \(48, 31\)"):
            gpunvme.transformers.load(folder, device=DEVICE)
        save_file(whole, path, {"format": "pt"})
        self.same(self.streamed(folder, gpu_budget=0), self.memory(folder))
        os.truncate(path, path.stat().st_size - 1)
        with self.assertRaises(gpunvme.FormatError):
            gpunvme.transformers.load(folder, device=DEVICE)

    def test_a_file_that_shrinks(self) -> None:
        folder = self.saved(ARCHITECTURES["llama"]())
        self.shrinks(folder / "model.safetensors", folder, self.memory(folder))

    def test_an_ssd_that_fails_in_the_middle(self) -> None:
        folder = self.saved(ARCHITECTURES["llama"]())
        self.breaks(folder, folder, self.memory(folder))

    def test_interrupted_at_any_token(self) -> None:
        folder = self.saved(ARCHITECTURES["llama"]())
        self.interrupted(folder, folder, self.memory(folder))

    def test_the_command_is_interrupted(self) -> None:
        folder = self.saved(ARCHITECTURES["llama"](), eos_token_id=None)
        tokenizer().save_pretrained(folder)
        words = ["generate", folder, "--prompt", "w5 w9", "--tokens", "100000", "--gpu-budget", "0", "--device", DEVICE]
        command = [sys.executable, "-m", "gpunvme.transformers", *map(str, words)]
        # With its first words it is in the middle.
        with subprocess.Popen(command, env=self.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert process.stdout and process.stderr
            self.assertNotEqual(process.stdout.read(1), "")
            process.send_signal(signal.SIGINT)
            process.stdout.read()
            told = process.stderr.read()
        self.assertEqual((process.returncode, told.splitlines()[-1]), (130, "gpunvme: interrupted"), told)
        self.assertNotIn("Traceback", told)

    def test_a_corrupt_tensor(self) -> None:
        folder = self.saved(ARCHITECTURES["llama"]())
        path, memory = folder / "model.safetensors", self.memory(folder)
        data = path.read_bytes()
        end = 8 + int.from_bytes(data[:8], "little")
        name = "model.layers.3.mlp.up_proj.weight"
        begin, past = json.loads(data[8:end])[name]["data_offsets"]
        for wrong in ((begin, past + 2), (past, begin), (begin, len(data)), (1 << 62, (1 << 62) + past - begin)):
            with self.subTest(wrong), self.released(folder, folder, memory):
                header = json.loads(data[8:end])
                header[name]["data_offsets"] = wrong
                text = json.dumps(header).encode()
                path.write_bytes(len(text).to_bytes(8, "little") + text + data[end:])
                # Where data overlaps, it may be its neighbour that is named.
                self.fails(gpunvme.FormatError, r"tensor 'model\.layers\.3\.", folder)
                path.write_bytes(data)

    def test_a_model_that_is_not_understood(self) -> None:
        folder = self.saved(ARCHITECTURES["mixtral"]())
        memory = self.memory(folder)
        # What transformers does with the experts of Mixtral.
        with self.released(folder, folder, memory), mock.patch.dict(_stored._OPERATIONS) as operations:
            del operations["aten.cat"]
            self.fails(gpunvme.UnsupportedError, r"aten.cat.*layers\.\d.*experts", folder)

    def test_interrupted_in_the_middle(self) -> None:
        folder = self.saved(ARCHITECTURES["llama"]())
        memory, model = self.memory(folder), self.streamed(folder, gpu_budget=0)

        def interrupt(*_: object) -> None:
            raise KeyboardInterrupt

        for number in (0, 2, 4):
            hook = model.model.layers[number].mlp.register_forward_hook(interrupt)
            with self.assertRaises(KeyboardInterrupt):
                model(self.tokens())
            hook.remove()
            self.same(model, memory)
        folder = self.saved(ARCHITECTURES["mixtral"]())
        memory, model = self.memory(folder), self.streamed(folder, gpu_budget=0)
        ring = model.gpunvme.layers._experts
        for number in (0, 2, 4):
            experts = ring._experts[number]
            bind = experts.bind

            def interrupted(*arguments: Any, bind: Any = bind) -> None:
                bind(*arguments)
                interrupt()

            hook = experts.module.act_fn.register_forward_hook(interrupt)
            with self.assertRaises(KeyboardInterrupt):
                model(self.tokens())
            hook.remove()
            self.same(model, memory)
            for place in ((experts, "bind", interrupted), (ring, "_name", interrupt), (ring, "_take", interrupt)):
                with mock.patch.object(*place), self.assertRaises(KeyboardInterrupt):
                    model(self.tokens())
                self.assertTrue(all(p.device.type == "meta" for p in experts.module.parameters()))
                self.same(model, memory)
        ring._loader.close()
        self.same(model, memory)

    def test_experts_that_cannot_be_read(self) -> None:
        folder = self.saved(ARCHITECTURES["qwen3-moe"]())
        memory, model = self.memory(folder), self.streamed(folder, gpu_budget=0)
        self.same(model, memory)
        ring = model.gpunvme.layers._experts

        def fail(*_: object) -> None:
            raise gpunvme.NotFoundError.of("gone")

        with mock.patch.object(model.gpunvme.layers._weights, "_read_to_the_end", fail):
            # Guessed right by chance, nothing is missing: not in 20 passes of many tokens.
            with self.assertRaisesRegex(gpunvme.NotFoundError, r"layer 'model\.layers\.\d\.mlp\.experts': .*gone"):
                for seed in range(20):
                    model(torch.randint(3, 97, (1, 1), generator=torch.Generator().manual_seed(seed)).to(DEVICE))
        self.same(model, memory)
        # A guess that cannot be read is no reason to fail.
        take, failed = ring._take, []

        def once(loader: Any) -> Any:
            if not failed:
                failed.append(loader.next())
                raise gpunvme.NotFoundError.of("gone")
            return take(loader)

        with mock.patch.object(ring, "_take", once):
            self.same(model, memory)
        self.assertEqual(len(failed), 1)
        none = torch.empty(0, 32, dtype=torch.bfloat16, device=DEVICE)
        with torch.no_grad():
            index, scores = torch.empty(0, 2, dtype=torch.long, device=DEVICE), torch.empty(0, 2, device=DEVICE)
            self.assertEqual(model.model.layers[1].mlp.experts(none, index, scores).shape, (0, 32))
        self.same(model, memory)

    def test_a_ring_that_ctrl_c_has_closed_is_made_again(self) -> None:
        folder = self.saved(ARCHITECTURES["llama"]())
        model = self.streamed(folder, gpu_budget=0)
        self.same(model, self.memory(folder))
        model.gpunvme.layers._loader.close()
        self.same(model, self.memory(folder))

    def test_budgets_that_are_too_small(self) -> None:
        folder = self.saved(ARCHITECTURES["llama"]())
        least = self.streamed(folder, gpu_budget=0, slots=2).gpunvme.device_bytes
        self.assertEqual(self.streamed(folder, gpu_budget=least).gpunvme.device_bytes, least)
        with self.assertRaisesRegex(gpunvme.InvalidError, f"{least}; 0 means"):
            gpunvme.transformers.load(folder, gpu_budget=least - 1, device=DEVICE)
        for wrong in ("8 gigs", "-1", -1, "1e9"):
            with self.assertRaises(ValueError):
                gpunvme.transformers.load(folder, gpu_budget=wrong, device=DEVICE)

    def test_a_closed_model_says_so(self) -> None:
        folder = self.saved(ARCHITECTURES["llama"]())
        model = gpunvme.transformers.load(folder, gpu_budget=0, device=DEVICE)
        model(self.tokens())
        model.gpunvme.close()
        with self.assertRaisesRegex(gpunvme.ClosedError, "closed"):
            model(self.tokens())
        model.gpunvme.close()

    def test_ways_that_are_not_known(self) -> None:
        stored = _stored.Stored((4, 6), (_recipe.Piece("a", 0, 24),), "F32")
        with self.assertRaisesRegex(gpunvme.UnsupportedError, "aten.mul"):
            stored * 2
        with self.assertRaisesRegex(gpunvme.UnsupportedError, "every 2th"):
            stored[::2]
        folder = self.saved(ARCHITECTURES["mixtral"]())
        # What transformers does with the experts of Mixtral.
        with mock.patch.dict(_stored._OPERATIONS) as operations:
            del operations["aten.cat"]
            with self.assertRaisesRegex(gpunvme.UnsupportedError, "aten.cat.*experts"):
                gpunvme.transformers.load(folder, device=DEVICE)
        with self.assertRaisesRegex(gpunvme.UnsupportedError, "BertModel|model_class"):
            gpunvme.transformers.load(folder, device=DEVICE, config=transformers.ViTConfig())

    def test_what_a_streamed_model_cannot_do(self) -> None:
        folder = self.saved(ARCHITECTURES["llama"]())
        model = self.streamed(folder, gpu_budget=0)
        self.assertIs(model.to(DEVICE), model)
        self.assertIs(model.to(torch.device(DEVICE)), model)
        for change in (model.half, model.float, lambda: model.to("meta"), lambda: model.to(torch.float32)):
            with self.assertRaisesRegex(gpunvme.UnsupportedError, "load()"):
                change()
        embedded = model.get_input_embeddings()(self.tokens()).detach().requires_grad_()
        with self.assertRaisesRegex(gpunvme.UnsupportedError, "inference_mode"):
            model(inputs_embeds=embedded)
        self.same(model, self.memory(folder))
        body = self.streamed(folder, gpu_budget=0, model_class=transformers.LlamaModel)
        memory = transformers.LlamaModel.from_pretrained(folder).to(DEVICE).eval()
        with torch.no_grad():
            self.assertTrue(torch.equal(body(self.tokens())[0], memory(self.tokens())[0]))
        with self.assertRaisesRegex(gpunvme.GpuNvmeError, "gpu:99|no GPU|driver"):
            gpunvme.transformers.load(folder, device="cuda:99")

    def test_nothing_is_kept_alive(self) -> None:
        folder = self.saved(ARCHITECTURES["llama"]())
        model = gpunvme.transformers.load(folder, gpu_budget=0, device=DEVICE)
        model(self.tokens())
        layers, layer = weakref.ref(model.gpunvme.layers), model.model.layers[0]
        del model
        gc.collect()
        self.assertIsNone(layers())
        with self.assertRaises(gpunvme.ClosedError):
            layer(None)


class StoredTest(Case):
    def test_cuts_and_joins_are_as_pytorch_does_them(self) -> None:
        random = seeded(self)
        for _ in range(200):
            rows, columns = random.randrange(1, 6), random.randrange(1, 6)
            real, stored = [], []
            for name in "abc":
                real.append(torch.arange(rows * columns).view(rows, columns) + 1000 * ord(name))
                stored.append(
                    _stored.Stored(
                        (rows, columns), (_recipe.Piece(name, 0, rows * columns),), "I64"
                    )
                )
            for _ in range(3):
                dim = random.randrange(-real[0].dim(), real[0].dim())
                kind = random.randrange(4)
                if kind == 0:
                    real, stored = [torch.cat(real, dim)] * 2, [torch.cat(stored, dim)] * 2
                elif kind == 1:
                    real, stored = [torch.stack(real, dim)] * 2, [torch.stack(stored, dim)] * 2
                elif kind == 2:
                    parts = random.randrange(1, 4)
                    real, stored = list(real[0].chunk(parts, dim)), list(stored[0].chunk(parts, dim))
                    if len({tuple(r.shape) for r in real}) > 1:
                        real, stored = real[:1], stored[:1]
                else:
                    start = random.randrange(real[0].shape[dim])
                    real = [r.narrow(dim, start, 1).contiguous() for r in real]
                    stored = [s.narrow(dim, start, 1).contiguous() for s in stored]
            for r, s in zip(real, stored):
                self.assertEqual(r.shape, s.shape)
                made = [i + 1000 * ord(n) for n, a, b in s.recipe().pieces for i in range(a, b)]
                self.assertEqual(r.reshape(-1).tolist(), made)


class LayersTest(Case):
    def test_any_module_with_a_list_of_layers(self) -> None:
        from safetensors.torch import save_file

        torch.manual_seed(seeded(self).randrange(2**32))
        memory = nn.Sequential(*(nn.Sequential(nn.Linear(16, 16), nn.ReLU()) for _ in range(6))).to(DEVICE)
        path = self.folder() / "m.safetensors"
        save_file({f"blocks.{name}": t for name, t in memory.state_dict().items()}, path)
        for budget in (0, 6 * 2048, None):
            with self.subTest(budget=budget), torch.no_grad():
                with torch.device("meta"):
                    module = nn.Sequential(*(nn.Sequential(nn.Linear(16, 16), nn.ReLU()) for _ in range(6)))
                x = torch.randn(3, 16, device=DEVICE)
                with gpunvme.Weights(path, ACCELERATOR) as weights:
                    with gpunvme.torch.StreamedLayers(list(module), weights, "blocks", budget=budget, slots=2) as layers:
                        for _ in range(3):
                            self.assertTrue(torch.equal(module(x), memory(x)))
                        self.assertEqual(layers.passes, 3 if layers.plan.slots else 0)
                        self.assertEqual(layers.bytes_read, 3 * layers.plan.pass_bytes)

    def test_layers_without_parameters(self) -> None:
        from safetensors.torch import save_file

        memory = nn.ModuleList([nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 1), nn.Linear(1, 3)]).to(DEVICE, torch.bfloat16)
        memory[3].register_parameter("empty", nn.Parameter(torch.empty(0, 3, dtype=torch.bfloat16)))
        path = self.folder() / "m.safetensors"
        save_file({f"l.{name}": t for name, t in memory.state_dict().items()}, path)
        with torch.device("meta"):
            module = nn.ModuleList([nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 1), nn.Linear(1, 3)])
            module[3].register_parameter("empty", nn.Parameter(torch.empty(0, 3)))
        x = torch.ones(2, 3, device=DEVICE, dtype=torch.bfloat16)
        with gpunvme.Weights(path, ACCELERATOR) as weights, torch.no_grad():
            with gpunvme.torch.StreamedLayers(list(module), weights, "l") as layers:
                self.assertEqual(layers.plan.resident, (1,))
                for _ in range(2):
                    a, b = x, x
                    for one, other in zip(memory, module):
                        a, b = one(a), other(b)
                    self.assertTrue(torch.equal(a, b))

    def test_plans(self) -> None:
        recipe = _recipe.Recipe((_recipe.Piece("a", 0, 1024),), (1024,), "F32")
        layers = [{"weight": recipe}] * 10
        self.assertEqual(_streamed.plan_layers(layers, 10 * 4096).slots, 0)
        for budget in (0, *range(3 * 4096, 10 * 4096, 1000)):
            plan = _streamed.plan_layers(layers, budget)
            self.assertGreaterEqual(plan.slots, 2)
            self.assertEqual(plan.pass_bytes, (10 - len(plan.resident)) * 4096)
            if budget:
                self.assertLessEqual(plan.device_bytes, budget)
                self.assertGreater(plan.device_bytes + 4096, budget)
        with self.assertRaises(gpunvme.InvalidError):
            _streamed.plan_layers(layers, 3 * 4096 - 1)
        with self.assertRaises(gpunvme.InvalidError):
            _streamed.plan_layers(layers, 0, 1)


if __name__ == "__main__":
    unittest.main()
