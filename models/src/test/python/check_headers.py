#!/usr/bin/env python3
"""Says of every *.safetensors and *.gguf in a folder what the reference makes of it, one JSON object a line:

    {"file", "error": "" or why not, "tensors": [{"name", "type", "shape", "bytes"}]}

Needs safetensors; exits with 3 without it. Without gguf the error of those files is "missing".
"""

import json
import os
import sys

try:
    import safetensors
except ImportError as e:
    print(f"missing: safetensors: {e}")
    sys.exit(3)
try:
    import gguf
except ImportError:
    gguf = None


def read_safetensors(path):
    with open(path, "rb") as file:
        data = file.read()
    return [{"name": name, "type": t["dtype"], "shape": list(t["shape"]), "bytes": len(t["data"])}
            for name, t in safetensors.deserialize(data)]


def read_gguf(path):
    if gguf is None:
        raise ImportError("missing")
    return [{"name": t.name, "type": t.tensor_type.name, "shape": [int(n) for n in reversed(t.shape)],
             "bytes": t.n_bytes, "offset": int(t.data_offset)} for t in gguf.GGUFReader(path).tensors]


def check(path):
    try:
        return {"error": "", "tensors": (read_gguf if path.endswith(".gguf") else read_safetensors)(path)}
    except BaseException as e:  # a panic of the library is not an Exception
        return {"error": f"{type(e).__name__}: {e}"[:300], "tensors": []}


for name in sorted(os.listdir(sys.argv[1])):
    print(json.dumps({"file": name, **check(os.path.join(sys.argv[1], name))}))
