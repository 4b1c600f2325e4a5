#!/usr/bin/env python3
"""Says of every *.safetensors in a folder what the reference makes of it, one JSON object a line:

    {"file", "error": "" or why not, "tensors": [{"name", "type", "shape", "bytes", "sha256"}]}

Needs safetensors; exits with 3 without it.
"""

import hashlib
import json
import os
import sys

try:
    import safetensors
except ImportError as e:
    print(f"missing: safetensors: {e}")
    sys.exit(3)


def check(path):
    with open(path, "rb") as file:
        data = file.read()
    try:
        found = safetensors.deserialize(data)
    except BaseException as e:  # a panic of the library is no Exception
        return {"error": f"{type(e).__name__}: {e}"[:300], "tensors": []}
    return {"error": "", "tensors": [
        {"name": name, "type": t["dtype"], "shape": list(t["shape"]), "bytes": len(t["data"]),
         "sha256": hashlib.sha256(t["data"]).hexdigest()} for name, t in found]}


for name in sorted(os.listdir(sys.argv[1])):
    if name.endswith(".safetensors"):
        print(json.dumps({"file": name, **check(os.path.join(sys.argv[1], name))}))
