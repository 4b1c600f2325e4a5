#!/usr/bin/env python3
"""Makes random models with other people's writers, and says what must be found in them.

    make_models.py OUT [--count N] [--seed S] [--kinds safetensors,sharded,gguf] [--large BYTES]

Needs numpy and safetensors. Uses torch, huggingface_hub and gguf where they can be imported, and says on
standard output what is missing. OUT/expected.json then lists every model:

    {"writers": {"safetensors": "0.8.0", ...},
     "missing": ["gguf: No module named 'gguf'", ...],
     "models": [{"path": what to open, relative to OUT, "kind", "writer",
                 "metadata": {key: {"type", "value"}},      what can be compared of it
                 "tensors": [{"name", "type", "shape", "bytes", "sha256"}]}]}

Types have safetensors' or ggml's names; shapes are row-major. --large adds one sharded model of about so
many bytes, in layers. Exits with 3 if not even safetensors can be written.
"""

import argparse
import hashlib
import importlib
import importlib.metadata
import json
import logging
import math
import os
import pathlib
import struct
import sys

MISSING = []


def try_import(name):
    try:
        return importlib.import_module(name)
    except Exception as e:  # a broken installation raises anything
        MISSING.append(f"{name}: {e}")
        return None


np = try_import("numpy")
safetensors = try_import("safetensors")
if np is None or safetensors is None:
    print("missing: " + "; ".join(MISSING))
    sys.exit(3)
safetensors_numpy = try_import("safetensors.numpy")
torch = try_import("torch")
safetensors_torch = try_import("safetensors.torch") if torch else None
huggingface_hub = try_import("huggingface_hub")
gguf = try_import("gguf")

NUMPY_TYPES = {
    "BOOL": "bool", "U8": "uint8", "I8": "int8", "U16": "uint16", "I16": "int16", "F16": "float16",
    "U32": "uint32", "I32": "int32", "F32": "float32", "U64": "uint64", "I64": "int64", "F64": "float64",
    "C64": "complex64",
}
TORCH_TYPES = {
    **NUMPY_TYPES, "BF16": "bfloat16", "F8_E5M2": "float8_e5m2", "F8_E4M3": "float8_e4m3fn",
    "F8_E8M0": "float8_e8m0fnu", "F8_E4M3FNUZ": "float8_e4m3fnuz", "F8_E5M2FNUZ": "float8_e5m2fnuz",
}
# What the binding calls them, whichever library they come from; pairs of 4 bits are its elements.
RAW_TYPES = {**TORCH_TYPES, "F4": "float4_e2m1fn_x2"}
BYTES = {"BOOL": 1, "F4": 0.5, "C64": 8}


def element_bytes(kind):
    return BYTES.get(kind) or int("".join(c for c in kind.split("_")[0] if c.isdigit())) // 8


NAME_PIECES = ["model", "layers", "0", "31", "self_attn", "q_proj", "weight", "bias", "norm", "é", "重み", "😀",
               '"', "\\", " ", "\t", "/", "\x7f", "a" * 40]
PLAIN_PIECES = ["blk", "token_embd", "0", "17", "attn_q", "ffn_up", "weight", "bias"]


class Tensor:
    """A name, type, shape and the bytes in the file."""

    def __init__(self, name, kind, shape, data):
        self.name, self.kind, self.shape, self.data = name, kind, [int(n) for n in shape], data

    def expected(self):
        return {"name": self.name, "type": self.kind, "shape": self.shape, "bytes": len(self.data),
                "sha256": hashlib.sha256(self.data).hexdigest()}


def random_bytes(random, kind, count):
    if kind == "BOOL":
        return random.integers(0, 2, count, dtype="uint8").tobytes()
    return random.bytes(count)


def names(random, pieces, most):
    found = {}
    for _ in range(int(random.integers(0, most + 1))):
        count = int(random.integers(1, 6))
        found[".".join(pieces[int(random.integers(len(pieces)))] for _ in range(count))] = None
    return list(found)


def random_shape(random, most):
    shape = [int(n) for n in random.integers(1, 7, int(random.integers(0, most + 1)))]
    if shape and random.integers(8) == 0:
        shape[int(random.integers(len(shape)))] = 0
    if len(shape) == 1 and random.integers(6) == 0:
        shape[0] = int(random.integers(1, 100_000))
    return shape


def random_tensors(random, kinds, most=20):
    tensors = []
    for name in names(random, NAME_PIECES, most):
        kind = kinds[int(random.integers(len(kinds)))]
        shape = random_shape(random, 5)
        if kind == "F4":
            shape = (shape or [1]) + [2]
        count = int(math.prod(shape) * element_bytes(kind))
        tensors.append(Tensor(name, kind, shape, random_bytes(random, kind, count)))
    return tensors


# ---- safetensors, by three doors of the same house


def numpy_array(tensor):
    return np.frombuffer(tensor.data, dtype="uint8").view(NUMPY_TYPES[tensor.kind]).reshape(tensor.shape)


def torch_tensor(tensor):
    kind = getattr(torch, TORCH_TYPES[tensor.kind])
    if not tensor.data:
        return torch.empty(tensor.shape, dtype=kind)
    return torch.frombuffer(bytearray(tensor.data), dtype=torch.uint8).view(kind).reshape(tensor.shape)


def raw_spec(tensor, keep):
    shape = list(tensor.shape)
    if tensor.kind == "F4":
        shape[-1] //= 2
    data = np.frombuffer(tensor.data, dtype="uint8")
    keep.append(data)
    if hasattr(safetensors, "TensorSpec"):
        return safetensors.TensorSpec(dtype=RAW_TYPES[tensor.kind], shape=shape, data_ptr=data.ctypes.data,
                                      data_len=data.nbytes)
    return {"dtype": RAW_TYPES[tensor.kind], "shape": shape, "data": tensor.data}


def write_numpy(tensors, path, metadata):
    safetensors_numpy.save_file({t.name: numpy_array(t) for t in tensors}, path, metadata=metadata)


def write_torch(tensors, path, metadata):
    safetensors_torch.save_file({t.name: torch_tensor(t) for t in tensors}, path, metadata=metadata)


def write_raw(tensors, path, metadata):
    keep = []
    safetensors.serialize_file({t.name: raw_spec(t, keep) for t in tensors}, path, metadata=metadata)


def written_kinds(write, kinds, folder):
    """Those that this version of the writer takes, and writes as what they are."""
    path = os.path.join(folder, "probe.safetensors")
    able = []
    for kind in kinds:
        try:
            data = bytes(int(4 * element_bytes(kind)))
            write([Tensor("t", kind, [2, 2], data)], path, None)
            with open(path, "rb") as file:
                header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))["t"]
            if header["dtype"] == kind and header["shape"] == [2, 2]:
                able.append(kind)
        except Exception as e:
            MISSING.append(f"{write.__name__} of {kind}: {e}")
    if os.path.exists(path):
        os.remove(path)
    return able


def safetensors_writers(folder):
    doors = [("safetensors.serialize_file", write_raw, RAW_TYPES)]
    if safetensors_numpy:
        doors.append(("safetensors.numpy", write_numpy, NUMPY_TYPES))
    if safetensors_torch:
        doors.append(("safetensors.torch", write_torch, {k: v for k, v in TORCH_TYPES.items() if hasattr(torch, v)}))
    return [(name, write, kinds) for name, write, all_kinds in doors
            if (kinds := written_kinds(write, all_kinds, folder))]


def random_metadata(random):
    if random.integers(2):
        return None
    return {"format": "pt", "note é\n": "x" * int(random.integers(0, 300))}


def text_metadata(metadata):
    return {k: {"type": "STRING", "value": v} for k, v in (metadata or {}).items()}


def make_safetensors(random, folder, writers):
    name, write, kinds = writers[int(random.integers(len(writers)))]
    tensors = random_tensors(random, kinds)
    metadata = random_metadata(random)
    write(tensors, os.path.join(folder, "model.safetensors"), metadata)
    return "model.safetensors", name, text_metadata(metadata), tensors


# ---- shards and their index, as huggingface_hub divides them


def make_sharded(random, folder, writers):
    name, write, kinds = writers[int(random.integers(len(writers)))]
    tensors = random_tensors(random, kinds, 40) or [Tensor("only", "U8", [3], b"abc")]
    limit = max(1, sum(len(t.data) for t in tensors) // int(random.integers(2, 6)))
    if write is write_torch and random.integers(2):
        huggingface_hub.save_torch_state_dict({t.name: torch_tensor(t) for t in tensors}, folder,
                                              max_shard_size=limit)
        name = "huggingface_hub.save_torch_state_dict"
    else:
        divide(tensors, folder, limit, write)
        name = "huggingface_hub and " + name
    index = "model.safetensors.index.json"
    path = index if os.path.exists(os.path.join(folder, index)) else "model.safetensors"
    return path, name, {}, tensors


def divide(tensors, folder, limit, write):
    split = huggingface_hub.split_state_dict_into_shards_factory(
        {t.name: t for t in tensors}, get_storage_size=lambda t: len(t.data),
        filename_pattern="model{suffix}.safetensors", max_shard_size=limit)
    by_name = {t.name: t for t in tensors}
    for file, members in split.filename_to_tensors.items():
        write([by_name[n] for n in members], os.path.join(folder, file), {"format": "pt"})
    if split.is_sharded:
        with open(os.path.join(folder, "model.safetensors.index.json"), "w") as file:
            json.dump({"metadata": split.metadata, "weight_map": split.tensor_to_filename}, file, indent=2)


# ---- GGUF

# Elements that are not in blocks; all others go in as bytes.
GGUF_PLAIN = {"F32": "float32", "F16": "float16", "F64": "float64", "I8": "int8", "I16": "int16", "I32": "int32",
              "I64": "int64", "BF16": "uint16"}


def gguf_value(random, kind, depth=0):
    if kind == "BOOL":
        return bool(random.integers(2))
    if kind == "STRING":
        return NAME_PIECES[int(random.integers(len(NAME_PIECES)))]
    if kind in ("F32", "F64"):
        return int(random.integers(-1000, 1000)) / 8
    if kind == "ARRAY":
        # Its items' type follows from them: whole numbers, text and truth values are told apart.
        inner = ["I32", "STRING", "BOOL", "F32", "ARRAY"][int(random.integers(5 if depth < 2 else 4))]
        return [gguf_value(random, inner, depth + 1) for _ in range(int(random.integers(1, 5)))]
    bits = int(kind[1:])
    low = 0 if kind[0] == "U" else -(1 << bits - 1)
    return int.from_bytes(random.bytes(8), "little") % (1 << bits) + low


def gguf_metadata(random, writer):
    calls = {"U8": "uint8", "I8": "int8", "U16": "uint16", "I16": "int16", "U32": "uint32", "I32": "int32",
             "U64": "uint64", "I64": "int64", "F32": "float32", "F64": "float64", "BOOL": "bool",
             "STRING": "string", "ARRAY": "array"}
    expected = {}
    for key in names(random, PLAIN_PIECES, 12):
        kind = list(calls)[int(random.integers(len(calls)))]
        value = gguf_value(random, kind)
        getattr(writer, "add_" + calls[kind])(key, value)
        expected[key] = {"type": kind, "value": value}
    return expected


def gguf_tensors(random):
    # Q8_1 has 36 bytes in ggml and 40 in this package. No file has it: ggml uses it for activations only.
    kinds = [kind for kind in gguf.GGML_QUANT_SIZES if kind.name != "Q8_1"]
    tensors = []
    for name in names(random, PLAIN_PIECES, 20):
        kind = kinds[int(random.integers(len(kinds)))]
        elements, size = gguf.GGML_QUANT_SIZES[kind]
        shape = random_shape(random, 4)
        if elements > 1:
            shape = shape or [1]
            shape[-1] = min(shape[-1], 3) * elements
        data = random.bytes(math.prod(shape) // elements * size)
        tensors.append((kind, size, elements, Tensor(name, kind.name, shape, data)))
    return tensors


def make_gguf(random, folder, _):
    tensors = gguf_tensors(random)
    parts = int(random.integers(1, 5)) if len(tensors) > 1 and random.integers(2) else 0
    writer = gguf.GGUFWriter(None, "llama", split_max_tensors=math.ceil(len(tensors) / parts) if parts else 0)
    expected = {"general.architecture": {"type": "STRING", "value": "llama"}, **gguf_metadata(random, writer)}
    if not parts and random.integers(2):
        # Only the first part of several would say so.
        writer.add_custom_alignment(8 << int(random.integers(0, 10)))
    for kind, size, elements, tensor in tensors:
        array = np.frombuffer(tensor.data, dtype="uint8")
        if kind.name in GGUF_PLAIN:
            array = array.view(GGUF_PLAIN[kind.name]).reshape(tensor.shape)
        else:
            array = array.reshape(tensor.shape[:-1] + [tensor.shape[-1] // elements * size])
        writer.add_tensor(tensor.name, array, raw_dtype=kind)
    writer.write_header_to_file(pathlib.Path(folder, "model.gguf"))
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    found = sorted(os.listdir(folder))
    return found[int(random.integers(len(found)))], "gguf", expected, [t for _, _, _, t in tensors]


# ---- all


def make_large(random, folder, size, write):
    """Layers of a transformer in BF16 until about so many bytes, in shards of at most 2 GiB."""
    width = 4096 if size >= 1 << 30 else 256
    parts = {"self_attn.qkv_proj.weight": [3 * width, width], "self_attn.o_proj.weight": [width, width],
             "mlp.up_proj.weight": [4 * width, width], "mlp.down_proj.weight": [width, 4 * width],
             "norm.weight": [width]}
    layers = max(1, round(size / sum(2 * math.prod(s) for s in parts.values())))
    tensors = []
    for layer in range(layers):
        for name, shape in parts.items():
            data = random.bytes(2 * math.prod(shape))
            tensors.append(Tensor(f"model.layers.{layer}.{name}", "BF16", shape, data))
    divide(tensors, folder, min(2 << 30, max(1, size // 4)), write)
    found = os.listdir(folder)
    index = "model.safetensors.index.json"
    return (index if index in found else found[0]), "huggingface_hub and safetensors.serialize_file", {}, tensors


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("out")
    options.add_argument("--count", type=int, default=200)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--kinds", default="safetensors,sharded,gguf")
    options.add_argument("--large", type=int, default=0)
    options = options.parse_args()
    logging.disable(logging.WARNING)
    os.makedirs(options.out)

    writers = safetensors_writers(options.out)
    makers = {"safetensors": make_safetensors}
    if huggingface_hub:
        makers["sharded"] = make_sharded
    if gguf:
        makers["gguf"] = make_gguf
    kinds = [k for k in options.kinds.split(",") if k in makers]
    models = []

    def add(folder, kind, made):
        path, writer, metadata, tensors = made
        models.append({"path": f"{folder}/{path}", "kind": kind, "writer": writer, "metadata": metadata,
                       "tensors": [t.expected() for t in tensors]})

    for i in range(options.count if kinds else 0):
        kind = kinds[i % len(kinds)]
        folder = f"{i:05d}-{kind}"
        os.makedirs(os.path.join(options.out, folder))
        random = np.random.default_rng([options.seed, i])
        add(folder, kind, makers[kind](random, os.path.join(options.out, folder), writers))
    if options.large and huggingface_hub:
        os.makedirs(os.path.join(options.out, "large"))
        random = np.random.default_rng([options.seed, 1 << 20])
        add("large", "sharded", make_large(random, os.path.join(options.out, "large"), options.large, write_raw))

    versions = {m.__name__: importlib.metadata.version(m.__name__)
                for m in (np, safetensors, torch, huggingface_hub, gguf) if m}
    with open(os.path.join(options.out, "expected.json"), "w") as file:
        json.dump({"writers": versions, "missing": MISSING, "models": models}, file)
    for line in MISSING:
        print("missing: " + line)
    print(f"{len(models)} models by {versions}")


if __name__ == "__main__":
    main()
