"""What a token of a streamed model costs: beside the same model in memory, the source's own rate, and accelerate's offloading.

    generate.py --folder FOLDER [--gigabytes 14] [--tokens 6] [--only PREFIX,...] [--slots N] [--out FILE] [--commit C]

Makes a Llama of random bfloat16 weights in FOLDER (kept there for the next run), and measures single tokens at a batch of one:
  generate.compute        all weights in memory of the device
  generate.rate.SOURCE    the streamed layers alone: bytes a second, nothing computed; of cold limited by generate.disk
  generate.disk           the model's files read with O_DIRECT by 8 threads: what the disk gives
  generate.SOURCE.bN      with N percent of the layers resident; its limit is the larger of compute and bytes by that rate
  generate.TYPE.*         the same shapes in a GGUF file of random blocks (q6_k, q4_k): compute, rate and bN as above, from the page
                          cache; needs the package gguf
  generate.TYPE.dequantize  a layer's conversion: bytes read and written a second, limited by a copy within the device; and .numpy, the
                          same by gguf's own code on one processor
  generate.experts.*      a mixture of experts (Qwen3-30B-A3B's layers): compute, the source's rate, and a token of which only chosen experts are read
  generate.70b.*          with --large only: Llama-70B's shape in Q6_K (58 GB), a raw model on an embedded SSD in memory, driven by the GPU
  generate.accelerate.*   accelerate's cpu_offload and disk_offload
SOURCE is file (in the page cache), cold (not in it) or ssd (a raw model on an embedded SSD in memory, driven by the GPU).
Each model's logits are compared with those in memory, bit for bit, before its times count. Of quantised models that is one of which all
layers stay; the 70B one does not fit, and its passes are compared with each other. "gpu_bytes" is what the GPU's memory lost by
loading and the first pass, beside "device_bytes", what the plan allows; "host_bytes" what the process's own memory grew by at loading.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import datetime
import gc
import json
import mmap
import os
import shutil
import statistics
import subprocess
import sys
import threading
import time
import typing

import torch
import transformers

import gpunvme
import gpunvme.transformers
from gpunvme._quantised import dequantize_all
from machine import machine

HIDDEN, WIDE, HEADS, KEYS, VOCABULARY = 4096, 14336, 32, 8, 32000
PROMPT = 16
WARM = 2


class Shape(typing.NamedTuple):
    hidden: int
    wide: int
    heads: int
    keys: int
    vocabulary: int


SHAPE = Shape(HIDDEN, WIDE, HEADS, KEYS, VOCABULARY)


def host_bytes():
    """Of this process, without mapped files."""
    with open("/proc/self/status") as status:
        return sum(int(line.split()[1]) * 1024 for line in status if line.startswith(("RssAnon", "RssShmem")))


def bytes_of(path):
    return os.path.getsize(path) if os.path.isfile(path) else sum(os.path.getsize(os.path.join(path, f)) for f in os.listdir(path))


class Bench:
    def __init__(self, options):
        self.options = options
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.model = os.path.join(options.folder, "model")
        self.rows = []
        self.prompt = torch.arange(5, 5 + PROMPT, device=self.device)[None]
        self.expected = self.reference = None
        self.images = []
        self.unused = self.host = 0

    # ---- the model

    def make(self):
        if os.path.exists(os.path.join(self.model, "complete")):
            return
        layer = 2 * HIDDEN * (2 * HIDDEN + 2 * KEYS * HIDDEN // HEADS + 3 * WIDE)
        layers = max(2, round((self.options.gigabytes * 1e9 - 4 * HIDDEN * VOCABULARY) / layer))
        config = transformers.LlamaConfig(
            hidden_size=HIDDEN, intermediate_size=WIDE, num_hidden_layers=layers, num_attention_heads=HEADS,
            num_key_value_heads=KEYS, vocab_size=VOCABULARY, max_position_embeddings=2048,
        )
        self.write(config, self.model)

    def write(self, config, folder):
        torch.manual_seed(1)
        torch.set_default_device(self.device)
        model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
        torch.set_default_device("cpu")
        model.save_pretrained(folder, max_shard_size="4GB")
        open(os.path.join(folder, "complete"), "w").close()
        del model
        self.empty()

    def files(self):
        return [os.path.join(self.model, f) for f in os.listdir(self.model) if f.endswith(".safetensors")]

    def layers(self):
        with open(os.path.join(self.model, "config.json")) as config:
            return json.load(config)["num_hidden_layers"]

    def cache(self, wanted, folder=None):
        """Has the model's files, or all of a folder, in the page cache, or not."""
        paths = self.files() if folder is None else [os.path.join(folder, f) for f in os.listdir(folder)]
        if wanted:
            self.read(paths)
            return
        for path in paths:
            fd = os.open(path, os.O_RDONLY)
            os.fsync(fd)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(fd)

    def read(self, paths):
        for path in paths:
            with open(path, "rb", buffering=0) as file:
                while file.read(64 << 20):
                    pass

    def empty(self):
        gc.collect()
        if self.device == "cuda":
            torch.cuda.empty_cache()

    # ---- one model

    def check(self, model):
        with torch.inference_mode():
            logits = model(self.prompt).logits.cpu()
        if self.expected is None:
            self.expected = logits
        if not torch.isfinite(logits).all():
            raise ValueError("the logits are no numbers")
        if not torch.equal(logits, self.expected):
            raise ValueError("the logits are not those of the model in memory")

    def tokens(self, model, before=lambda: None, slow=False):
        """Seconds of single tokens; of few, where each takes many."""
        self.check(model)
        warm, count = (1, 2) if slow else (WARM, self.options.tokens)
        seconds = []
        with torch.inference_mode():
            out = model(self.prompt, use_cache=True)
            for i in range(warm + count):
                token = out.logits[:, -1:].argmax(-1)
                token.cpu()
                before()
                begin = time.perf_counter()
                out = model(token, past_key_values=out.past_key_values, use_cache=True)
                out.logits[0, -1, 0].item()
                if i >= warm:
                    seconds.append(time.perf_counter() - begin)
        return seconds

    def rate(self, model, before, slow):
        """Bytes a second of what is streamed, without anything that computes."""
        layers = model.gpunvme.layers
        seconds = []
        for _ in range(3 if slow else 4):
            self.settle()
            before()
            begin = time.perf_counter()
            for number, layer in enumerate(layers._layers):
                loader = layers._ready(number)
                if self.device == "cuda":
                    loader.take(torch.cuda.current_stream())
                else:
                    loader.next()
                loader.prefetch_tensors(layer.tensors)
                layers._due = (number + 1) % len(layers._layers)
            self.settle()
            seconds.append(time.perf_counter() - begin)
        return [layers.plan.pass_bytes / s for s in seconds[1:]]

    def disk(self):
        """Bytes a second that the disk gives: whole blocks of all files by several threads, past the page cache."""
        piece, threads = 8 << 20, 8
        pieces = [(path, at) for path in self.files() for at in range(0, os.path.getsize(path) // 4096 * 4096, piece)]
        local = threading.local()

        def read(one):
            if not hasattr(local, "memory"):
                local.memory = mmap.mmap(-1, piece)
            path, at = one
            fd = os.open(path, os.O_RDONLY | os.O_DIRECT)
            try:
                return os.preadv(fd, [local.memory], at)
            finally:
                os.close(fd)

        samples = []
        for _ in range(2):
            self.cache(False)
            begin = time.perf_counter()
            with concurrent.futures.ThreadPoolExecutor(threads) as pool:
                size = sum(pool.map(read, pieces))
            samples.append(size / (time.perf_counter() - begin))
        return self.add("generate.disk", "bytes/s", samples, self.conditions() | {"threads": threads, "piece": piece})

    def settle(self):
        if self.device == "cuda":
            torch.cuda.synchronize()

    # ---- rows

    def add(self, id, unit, samples, conditions, limit=None):
        row = {
            "id": id, "unit": unit, "median": statistics.median(samples), "min": min(samples), "max": max(samples),
            "samples": len(samples), "conditions": conditions, "verified": True,
        }
        if limit:
            row["limit"] = {"id": limit[0], "value": limit[1], "ratio": row["median"] / limit[1]}
        self.rows.append(row)
        print(json.dumps(row), file=sys.stderr, flush=True)
        return row["median"]

    def wanted(self, id):
        only = self.options.only
        return not only or any(id.startswith(o) for o in only.split(","))

    def wanted_any(self, *ids):
        return any(self.wanted(id) for id in ids)

    def run(self):
        self.make()
        if self.wanted_any("generate.compute", "generate.file", "generate.ssd", "generate.cold", "generate.accelerate"):
            self.bfloat16()
        for kind in "Q6_K", "Q4_K":
            if self.wanted(f"generate.{kind.lower()}"):
                path = self.gguf(kind, SHAPE, self.layers())
                self.read([path])
                self.whole(f"generate.{kind.lower()}", path, None, path, {"dtype": torch.bfloat16})
                os.remove(path)
        if self.wanted("generate.experts"):
            self.experts()
        if self.options.large:
            self.large()
        self.accelerate(self.conditions())

    def conditions(self):
        size = sum(os.path.getsize(f) for f in self.files())
        return {"bytes": size, "layers": self.layers(), "dtype": "bfloat16", "batch": 1, "prompt": PROMPT}

    def bfloat16(self):
        self.cache(True)
        model, told = self.load(self.model, None)
        fixed, most = model.gpunvme.fixed_bytes, model.gpunvme.device_bytes
        compute = self.add("generate.compute", "s/token", self.tokens(model), self.conditions() | told)
        self.reference = self.expected
        model.gpunvme.close()
        del model
        for source in "file", "ssd", "cold":
            if not self.wanted(f"generate.{source}"):
                continue
            address, options = self.model, {}
            if source == "ssd":
                address, options = self.ssd(self.model, sum(os.path.getsize(f) for f in self.files())), {"config": self.model}
            cold = source == "cold"
            self.shares(
                f"generate.{source}", f"generate.rate.{source}", address, (0,) if cold else self.options.shares, compute, fixed, most,
                self.conditions(), options, (lambda: self.cache(False)) if cold else None, ("generate.disk", self.disk()) if cold else None,
            )

    def whole(self, id, address, shares, source, options, more=None):
        """A model in memory, and then with shares of it."""
        self.expected = None
        conditions = {"bytes": bytes_of(source), "dtype": "bfloat16", "batch": 1, "prompt": PROMPT} | (more or {})
        model, told = self.load(address, None, options)
        fixed, most = model.gpunvme.fixed_bytes, model.gpunvme.device_bytes
        compute = self.add(f"{id}.compute", "s/token", self.tokens(model), conditions | told)
        model.gpunvme.close()
        del model
        self.shares(id, f"{id}.rate", address, shares or self.options.shares[::2], compute, fixed, most, conditions, options)

    def load(self, address, budget, options=None):
        """The model, and what its loading took."""
        self.empty()
        self.unused, self.host = self.free(), host_bytes()
        model = gpunvme.transformers.load(address, gpu_budget=budget, device=self.device, slots=self.options.slots, **(options or {}))
        streaming = model.gpunvme
        return model, {
            "resident_layers": len(streaming.plan.resident), "slots": streaming.plan.slots, "reads": streaming.plan.reads, "device_bytes": streaming.device_bytes,
            "pass_bytes": streaming.plan.pass_bytes, "source": str(address),
        } | self.used()

    def used(self):
        """Since loading began."""
        return {"gpu_bytes": self.unused - self.free(), "host_bytes": host_bytes() - self.host}

    def free(self):
        """Bytes of the GPU's memory that nobody has."""
        if self.device != "cuda":
            return 0
        self.settle()
        return torch.cuda.mem_get_info()[0]

    def shares(self, id, rate_id, address, shares, compute, fixed, most, conditions, options=None, before=None, most_rate=None):
        """A model of which shares are resident; the first of them without any tells the source's rate. A source with something to do before each pass is slow."""
        rate, slow, before = None, before is not None, before or (lambda: None)
        for share in shares:
            budget = 0 if share == 0 else fixed + (most - fixed) * share // 100
            model, told = self.load(address, budget, options)
            streaming = model.gpunvme
            self.check(model)
            # The rings are there only now.
            told = conditions | told | self.used()
            if rate is None:
                rate = self.add(rate_id, "bytes/s", self.rate(model, before, slow), told, most_rate)
            if streaming.layers.guesses is None:
                self.dequantized(id, model, told)
            seconds = self.tokens(model, before, slow)
            if streaming.layers.guesses is not None:
                told |= {"guesses": streaming.layers.guesses._asdict()}
            told["pass_bytes"] = streaming.layers.pass_bytes
            measured = streaming.layers.measured()
            told["paths"] = measured and measured.paths
            limit = max(compute, streaming.layers.pass_bytes / rate)
            self.add(f"{id}.b{share}", "s/token", seconds, told, (rate_id if limit > compute else "compute", limit))
            model.gpunvme.close()
            del model, streaming

    def experts(self):
        """Layers of Qwen3-30B-A3B, fewer of them."""
        folder = os.path.join(self.options.folder, "experts")
        if not os.path.exists(os.path.join(folder, "complete")):
            config = transformers.Qwen3MoeConfig(
                hidden_size=2048, moe_intermediate_size=768, intermediate_size=6144, num_hidden_layers=max(2, round(self.options.gigabytes / 2.5)), num_attention_heads=32,
                num_key_value_heads=4, head_dim=128, num_experts=128, num_experts_per_tok=8, vocab_size=VOCABULARY, norm_topk_prob=True, max_position_embeddings=2048,
            )
            self.write(config, folder)
        self.read([os.path.join(folder, f) for f in os.listdir(folder)])
        self.whole("generate.experts", folder, (0,), folder, {}, {"experts": 128, "chosen": 8})

    def large(self):
        """Llama-3.1-70B's shape. Both its file, for a while, and its image are in memory."""
        shape = Shape(8192, 28672, 64, 8, 128256)
        path = self.gguf("Q6_K", shape, self.options.large, self.options.memory)
        size = os.path.getsize(path)
        try:
            address = self.ssd(path, size)
        finally:
            os.remove(path)
        path = self.gguf("Q6_K", shape, self.options.large, whole=False)
        self.expected = None
        conditions = {"bytes": size, "layers": self.options.large, "dtype": "bfloat16", "batch": 1, "prompt": PROMPT}
        model, told = self.load(address, 0, {"dtype": torch.bfloat16, "config": path})
        self.check(model)
        told |= self.used()
        rate = self.add("generate.70b.rate", "bytes/s", self.rate(model, lambda: None, False), conditions | told)
        self.add(
            "generate.70b.q6_k.ssd.b0", "s/token", self.tokens(model, slow=True), conditions | told,
            ("generate.70b.rate", model.gpunvme.plan.pass_bytes / rate),
        )
        model.gpunvme.close()

    def dequantized(self, id, model, told):
        """What converting one layer costs."""
        layers = model.gpunvme.layers
        layer = layers._layers[0]
        if not layer.floats_bytes or f"{id}.dequantize" in [row["id"] for row in self.rows]:
            return
        slot = torch.randint(0, 4, (layer.bytes,), dtype=torch.uint8, device=self.device)
        quantised = [p.recipe for p in layer.parameters if p.recipe.dequantised_bytes]
        written = sum(recipe.bytes for recipe in quantised)
        read = sum(recipe.slot_bytes for recipe in quantised)
        floats = torch.empty(layer.floats_bytes, dtype=torch.uint8, device=self.device)
        views = layer._views(slot, floats)

        def convert():
            dequantize_all(views.floats, floats.device)

        source, target = (torch.empty((read + written) // 2, dtype=torch.uint8, device=self.device) for _ in range(2))
        copied = statistics.median(self.repeated(lambda: target.copy_(source)))
        self.add(
            f"{id}.dequantize", "bytes/s", [(read + written) / s for s in self.repeated(convert)],
            told | {"read_bytes": read, "written_bytes": written}, ("a copy within the device", (read + written) / copied),
        )
        if "gguf" in sys.modules:
            import gguf
            import numpy

            kind = gguf.GGMLQuantizationType[id.split(".")[1].upper()]
            some = numpy.random.default_rng(1).integers(0, 4, (1024, gguf.quant_shape_to_byte_shape((4096,), kind)[0]), dtype=numpy.uint8)
            begin = time.perf_counter()
            whole = gguf.quants.dequantize(some, kind)
            self.add(f"{id}.dequantize.numpy", "bytes/s", [(some.nbytes + whole.nbytes // 2) / (time.perf_counter() - begin)], {"elements": whole.size})

    def repeated(self, what):
        """Seconds of it, on the device, many in a row."""
        seconds = []
        for _ in range(5):
            self.settle()
            begin = time.perf_counter()
            for _ in range(10):
                what()
            self.settle()
            seconds.append((time.perf_counter() - begin) / 10)
        return seconds[1:]

    def gguf(self, kind, shape, layers, folder=None, whole=True):
        """The file; its layers have the same random blocks. It has none unless it is whole."""
        path = os.path.join(folder or self.options.folder, f"{kind}-{layers}{'' if whole else '-settings'}.gguf")
        if os.path.exists(path):
            return path
        import gguf
        import numpy

        writer = gguf.GGUFWriter(path + ".part", "llama")
        for key, value in {
            "context_length": 2048, "block_count": layers, "feed_forward_length": shape.wide, "embedding_length": shape.hidden,
            "attention.head_count": shape.heads, "attention.head_count_kv": shape.keys, "rope.dimension_count": shape.hidden // shape.heads,
            "vocab_size": shape.vocabulary,
        }.items():
            writer.add_uint32(f"llama.{key}", value)
        writer.add_float32("llama.attention.layer_norm_rms_epsilon", 1e-6)
        random, made = numpy.random.default_rng(1), {}
        elements, size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[kind]]

        def matrix(name, rows, columns):
            if (rows, columns) not in made:
                blocks = random.integers(0, 256, (rows, columns // elements, size), dtype=numpy.uint8)
                # The upper bytes of scales: small ones.
                blocks[..., [size - 1] if kind == "Q6_K" else [1, 3]] = 0x04
                made[rows, columns] = blocks.reshape(rows, -1)
            writer.add_tensor(f"{name}.weight", made[rows, columns], raw_dtype=gguf.GGMLQuantizationType[kind])

        hidden, wide, narrow = shape.hidden, shape.wide, shape.hidden * shape.keys // shape.heads
        matrix("token_embd", shape.vocabulary, hidden)
        matrix("output", shape.vocabulary, hidden)
        norm = numpy.ones(hidden, dtype=numpy.float32)
        writer.add_tensor("output_norm.weight", norm)
        for i in range(layers if whole else 0):
            for name in "attn_norm", "ffn_norm":
                writer.add_tensor(f"blk.{i}.{name}.weight", norm)
            for name, rows, columns in (
                ("attn_q", hidden, hidden), ("attn_k", narrow, hidden), ("attn_v", narrow, hidden), ("attn_output", hidden, hidden),
                ("ffn_gate", wide, hidden), ("ffn_up", wide, hidden), ("ffn_down", hidden, wide),
            ):
                matrix(f"blk.{i}.{name}", rows, columns)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        os.rename(path + ".part", path)
        return path

    def ssd(self, model, size):
        """A raw model on an embedded SSD, whose blocks are in memory."""
        image = os.path.join(self.options.memory, f"gpunvme-generate-{size}.image")
        address = f"sim:file={image},mdts=1MiB"
        if not os.path.exists(image):
            command = [*self.options.cli.split(), "write-model", model, "--device", f"{address},size={(size >> 30) + 2}GiB", "--allow-write"]
            self.images.append(image)
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return address

    def accelerate(self, conditions):
        for kind in "cpu", "disk", "disk-cold":
            id = f"generate.accelerate.{kind}"
            if not self.wanted(id):
                continue
            import accelerate

            self.expected = self.reference
            self.cache(True)
            folder = os.path.join(self.options.folder, "offloaded")
            model = transformers.AutoModelForCausalLM.from_pretrained(self.model, dtype=torch.bfloat16).eval()
            if kind == "cpu":
                accelerate.cpu_offload(model, execution_device=self.device)
            else:
                accelerate.disk_offload(model, folder, execution_device=self.device)
            try:
                before = (lambda: self.cache(False, folder)) if kind == "disk-cold" else lambda: None
                self.add(id, "s/token", self.tokens(model, before, kind != "cpu"), conditions)
            finally:
                del model
                shutil.rmtree(folder, ignore_errors=True)
                self.empty()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", required=True)
    parser.add_argument("--memory", default="/dev/shm", help="where the embedded SSD's image is")
    parser.add_argument("--gigabytes", type=float, default=14)
    parser.add_argument("--tokens", type=int, default=6)
    parser.add_argument("--only", default="")
    parser.add_argument("--shares", type=lambda text: [int(n) for n in text.split(",")], default=[0, 25, 50], help="percent that stay; 0 is the first")
    parser.add_argument("--slots", type=int, help="of the ring, instead of what the plan chooses")
    parser.add_argument("--large", type=int, default=0, metavar="LAYERS", help="of the 70B model: 80 are all; 0: without it")
    parser.add_argument("--cli", default=f"{sys.executable} -m gpunvme")
    parser.add_argument("--out")
    parser.add_argument("--commit", default="unknown")
    options = parser.parse_args()
    transformers.utils.logging.disable_progress_bar()
    bench = Bench(options)
    try:
        bench.run()
    finally:
        for image in bench.images:
            os.remove(image)
        text = json.dumps(
            {"machine": machine() | {"transformers": transformers.__version__}, "commit": options.commit, "date": str(datetime.date.today()), "results": bench.rows}, indent=1
        )
        print(text)
        if options.out:
            with open(options.out, "w") as out:
                out.write(text + "\n")


if __name__ == "__main__":
    main()
