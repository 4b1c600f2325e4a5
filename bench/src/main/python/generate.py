"""What a token of a streamed model costs: beside the same model in memory, the source's own rate, and accelerate's offloading.

    generate.py --folder FOLDER [--gigabytes 14] [--tokens 6] [--only PREFIX,...] [--out FILE] [--commit C]

Makes a Llama of random bfloat16 weights in FOLDER (kept there for the next run), and measures single tokens at a batch of one:
  generate.compute        all weights in memory of the device
  generate.rate.SOURCE    the streamed layers alone: bytes a second, nothing computed
  generate.SOURCE.bN      with N percent of the layers resident; its limit is the larger of compute and bytes by that rate
  generate.TYPE.*         the same shapes in a GGUF file of random blocks (q6_k, q4_k): compute, rate and bN as above, from the page
                          cache; needs the package gguf
  generate.accelerate.*   accelerate's cpu_offload and disk_offload
SOURCE is file (in the page cache), cold (not in it) or ssd (a raw model on an embedded SSD in memory, driven by the GPU).
Each model's logits are compared with those in memory, bit for bit, before its times count. Of quantised models that is one of which all
layers stay.
"""

from __future__ import annotations

import argparse
import datetime
import gc
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import time

import torch
import transformers

import gpunvme
import gpunvme.transformers

HIDDEN, WIDE, HEADS, KEYS, VOCABULARY = 4096, 14336, 32, 8, 32000
PROMPT = 16
WARM = 2


class Bench:
    def __init__(self, options):
        self.options = options
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.model = os.path.join(options.folder, "model")
        self.rows = []
        self.prompt = torch.arange(5, 5 + PROMPT, device=self.device)[None]
        self.expected = None
        self.image = None

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
        torch.manual_seed(1)
        torch.set_default_device(self.device)
        model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
        torch.set_default_device("cpu")
        model.save_pretrained(self.model, max_shard_size="4GB")
        open(os.path.join(self.model, "complete"), "w").close()
        del model
        self.empty()

    def files(self):
        return [os.path.join(self.model, f) for f in os.listdir(self.model) if f.endswith(".safetensors")]

    def layers(self):
        with open(os.path.join(self.model, "config.json")) as config:
            return json.load(config)["num_hidden_layers"]

    def cache(self, wanted, folder=None):
        """Has the model's files, or all of a folder, in the page cache, or not."""
        for path in self.files() if folder is None else [os.path.join(folder, f) for f in os.listdir(folder)]:
            fd = os.open(path, os.O_RDONLY)
            if wanted:
                while os.read(fd, 64 << 20):
                    pass
            else:
                os.fsync(fd)
                os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(fd)

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

    def rate(self, model):
        """Bytes a second of what is streamed, without anything that computes."""
        layers = model.gpunvme.layers
        seconds = []
        for _ in range(4):
            begin = time.perf_counter()
            for number in range(len(layers._layers)):
                layers._enter(number)
                layers._leave(number)
            self.settle()
            seconds.append(time.perf_counter() - begin)
        return [layers.plan.pass_bytes / s for s in seconds[1:]]

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

    def run(self):
        self.make()
        size = sum(os.path.getsize(f) for f in self.files())
        conditions = {"bytes": size, "layers": self.layers(), "dtype": "bfloat16", "batch": 1, "prompt": PROMPT}
        self.cache(True)
        model = gpunvme.transformers.load(self.model, device=self.device)
        fixed, most = model.gpunvme.fixed_bytes, model.gpunvme.device_bytes
        compute = self.add("generate.compute", "s/token", self.tokens(model), conditions)
        model.gpunvme.close()
        del model
        self.empty()
        for source in "file", "ssd", "cold":
            if not self.wanted(f"generate.{source}"):
                continue
            address, options = self.model, {}
            if source == "ssd":
                address, options = self.ssd(), {"config": self.model}
            rate = None
            for share in (0, 25, 50) if source != "cold" else (0,):
                budget = 0 if share == 0 else fixed + (most - fixed) * share // 100
                if self.device == "cuda":
                    torch.cuda.reset_peak_memory_stats()
                model = gpunvme.transformers.load(address, gpu_budget=budget, device=self.device, **options)
                streaming = model.gpunvme
                told = conditions | {
                    "resident_layers": len(streaming.plan.resident), "slots": streaming.plan.slots, "device_bytes": streaming.device_bytes,
                    "pass_bytes": streaming.plan.pass_bytes, "source": str(address),
                }
                if rate is None and source != "cold":
                    rate = self.add(f"generate.rate.{source}", "bytes/s", self.rate(model), told)
                before = (lambda: self.cache(False)) if source == "cold" else lambda: None
                seconds = self.tokens(model, before, source == "cold")
                limit = max(compute, streaming.plan.pass_bytes / rate) if rate else compute
                self.add(
                    f"generate.{source}.b{share}", "s/token", seconds, told,
                    (f"generate.rate.{source}" if limit > compute else "generate.compute", limit),
                )
                streaming.close()
                del model, streaming
                self.empty()
        for kind in "Q6_K", "Q4_K":
            if self.wanted(f"generate.{kind.lower()}"):
                self.quantised(kind)
        self.accelerate(conditions)

    def quantised(self, kind):
        path = self.gguf(kind)
        with open(path, "rb") as file:
            while file.read(64 << 20):
                pass
        self.expected = None
        id, options = f"generate.{kind.lower()}", {"device": self.device, "dtype": torch.bfloat16}
        conditions = {"bytes": os.path.getsize(path), "layers": self.layers(), "dtype": "bfloat16", "batch": 1, "prompt": PROMPT, "source": path}
        model = gpunvme.transformers.load(path, **options)
        fixed, most = model.gpunvme.fixed_bytes, model.gpunvme.device_bytes
        compute = self.add(f"{id}.compute", "s/token", self.tokens(model), conditions)
        model.gpunvme.close()
        del model
        rate = None
        for share in 0, 50:
            self.empty()
            model = gpunvme.transformers.load(path, gpu_budget=share and fixed + (most - fixed) * share // 100, **options)
            streaming = model.gpunvme
            told = conditions | {"resident_layers": len(streaming.plan.resident), "device_bytes": streaming.device_bytes, "pass_bytes": streaming.plan.pass_bytes}
            self.check(model)
            if rate is None:
                rate = self.add(f"{id}.rate", "bytes/s", self.rate(model), told)
            limit = max(compute, streaming.plan.pass_bytes / rate)
            self.add(f"{id}.b{share}", "s/token", self.tokens(model), told, (f"{id}.rate" if limit > compute else f"{id}.compute", limit))
            streaming.close()
            del model, streaming

    def gguf(self, kind):
        """The file; its layers have the same random blocks."""
        path = os.path.join(self.options.folder, f"{kind}.gguf")
        if os.path.exists(path):
            return path
        import gguf
        import numpy

        writer = gguf.GGUFWriter(path + ".part", "llama")
        for key, value in {
            "context_length": 2048, "block_count": self.layers(), "feed_forward_length": WIDE, "embedding_length": HIDDEN,
            "attention.head_count": HEADS, "attention.head_count_kv": KEYS, "rope.dimension_count": HIDDEN // HEADS, "vocab_size": VOCABULARY,
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

        matrix("token_embd", VOCABULARY, HIDDEN)
        matrix("output", VOCABULARY, HIDDEN)
        norm = numpy.ones(HIDDEN, dtype=numpy.float32)
        writer.add_tensor("output_norm.weight", norm)
        for i in range(self.layers()):
            for name in "attn_norm", "ffn_norm":
                writer.add_tensor(f"blk.{i}.{name}.weight", norm)
            for name, rows, columns in (
                ("attn_q", HIDDEN, HIDDEN), ("attn_k", HIDDEN * KEYS // HEADS, HIDDEN), ("attn_v", HIDDEN * KEYS // HEADS, HIDDEN),
                ("attn_output", HIDDEN, HIDDEN), ("ffn_gate", WIDE, HIDDEN), ("ffn_up", WIDE, HIDDEN), ("ffn_down", HIDDEN, WIDE),
            ):
                matrix(f"blk.{i}.{name}", rows, columns)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        os.rename(path + ".part", path)
        return path

    def ssd(self):
        """A raw model on an embedded SSD, whose blocks are in memory."""
        image = os.path.join(self.options.memory, f"gpunvme-generate-{self.options.gigabytes:g}.image")
        size = sum(os.path.getsize(f) for f in self.files())
        address = f"sim:file={image},mdts=1MiB"
        if not os.path.exists(image):
            command = [*self.options.cli.split(), "write-model", self.model, "--device", f"{address},size={(size >> 30) + 2}GiB", "--allow-write"]
            self.image = image
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return address

    def accelerate(self, conditions):
        for kind in "cpu", "disk", "disk-cold":
            id = f"generate.accelerate.{kind}"
            if not self.wanted(id):
                continue
            import accelerate

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


def machine():
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else "none"
    driver = "none"
    if gpu != "none":
        driver = subprocess.run(
            ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"], capture_output=True, text=True, check=True
        ).stdout.split()[0]
    with open("/proc/cpuinfo") as told:
        cpu = next((line.split(":", 1)[1].strip() for line in told if line.startswith("model name")), "unknown")
    return {
        "gpu": gpu, "driver": f"{driver} (CUDA {torch.version.cuda})", "cpu": cpu, "cores": os.cpu_count(), "kernel": platform.release(), "python": platform.python_version(),
        "torch": torch.__version__, "transformers": transformers.__version__,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", required=True)
    parser.add_argument("--memory", default="/dev/shm", help="where the embedded SSD's image is")
    parser.add_argument("--gigabytes", type=float, default=14)
    parser.add_argument("--tokens", type=int, default=6)
    parser.add_argument("--only", default="")
    parser.add_argument("--cli", default=f"{sys.executable} -m gpunvme")
    parser.add_argument("--out")
    parser.add_argument("--commit", default="unknown")
    options = parser.parse_args()
    transformers.utils.logging.disable_progress_bar()
    bench = Bench(options)
    try:
        bench.run()
    finally:
        if bench.image:
            os.remove(bench.image)
        text = json.dumps(
            {"machine": machine(), "commit": options.commit, "date": str(datetime.date.today()), "results": bench.rows}, indent=1
        )
        print(text)
        if options.out:
            with open(options.out, "w") as out:
                out.write(text + "\n")


if __name__ == "__main__":
    main()
