#!/usr/bin/env bash
# environment: any machine
# The benchmark of the bindings, small, on the stand-in: that it has its results, and that none of its sides takes wrong data for right.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
. scripts/check.sh
. scripts/jdk.sh
. scripts/bindings.sh
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
unset GPUNVME_HOME GPUNVME_LIBRARY GPUNVME_JAVA_OPTS
size=$((16 << 20))
device=sim:size=$size
wrong="$device,faults=corrupt on read lba=20000"

bench() { # OPTION...
  timeout -k 5 300 "$JDK_HOME/bin/java" -XX:+UseSerialGC --enable-native-access=ALL-UNNAMED --illegal-native-access=deny \
    -Dgpunvme.commit=abc1234 -cp 'bench/target/app/*' io.gpunvme.bench.BindingsBench --accelerator cpu --size 16MiB --reps 2 \
    --python "$python" "$@"
}

results() {
  bench --out "$tmp/results" --capi "$tmp/capi" && cat "$tmp"/results/cpu-*/*-abc1234.json &&
    "$python" - "$tmp"/results/cpu-*/*-abc1234.json "$size" <<'PY'
import json
import sys

with open(sys.argv[1]) as file:
    results = {r["id"]: r for r in json.load(file)["results"]}
sides = "java", "c", "python"
ids = ["ceiling.memcpy", *(f"bindings.{kind}.{side}" for kind in ("call", "read") for side in sides)]
assert list(results) == ids, list(results)
for r in results.values():
    assert r["samples"] == 2 and 0 < r["min"] <= r["median"] <= r["max"] and r["verified"], r
for side in sides:
    call, read = results["bindings.call." + side], results["bindings.read." + side]
    assert call["unit"] == "ns" and read["unit"] == "GB/s"
    assert read["limit"]["id"] == "ceiling.memcpy"
    for r in call["conditions"], read["conditions"]:
        assert r["device"] == f"sim:size={sys.argv[2]},pinned=true,workers=1" and r["processors"] > 0 and "stand-in" in r["accelerator"], r
        assert r["turns"] == "java, c, python" and "not_measured" not in r
    if side != "java":
        assert read["conditions"]["to_java"] > 0
        assert read["conditions"]["goal"].startswith("at least 0.98 of Java: m")
assert results["bindings.call.c"]["conditions"]["goal"].startswith("less than 1000 over Java: m")
assert results["bindings.call.python"]["conditions"]["by_ctypes_ns"] > results["bindings.call.java"]["median"]
PY
}

# What is missing is said, and what is there is measured.
missing() {
  GPUNVME_HOME=$PWD/capi/target/app bench --out "$tmp/less" --capi "$tmp/nothing" --only bindings.call. && cat "$tmp"/less/cpu-*/*.json &&
    grep -q '^not measured: bindings.call.c: there is no .*/bindings$' "$tmp/check.log" &&
    grep -q '^not measured: bindings.call.python: there is no ' "$tmp/check.log" &&
    ! grep -q 'bindings.call.c"' "$tmp"/less/cpu-*/*.json && grep -q 'bindings.call.java"' "$tmp"/less/cpu-*/*.json
}

no_torch() {
  printf 'import sys\nraise ImportError("none here")\n' >"$tmp/torch.py"
  PYTHONPATH=$tmp bench --out "$tmp/torchless" --capi "$tmp/capi" --only bindings.call.python,bindings.call.c &&
    grep -q '^not measured: bindings.call.python: none here$' "$tmp/check.log" && grep -q 'bindings.call.c"' "$tmp"/torchless/cpu-*/*.json
}

# sees_wrong_data COMMAND...: one bit of a read is another; the side has to say so, and to end with 1
sees_wrong_data() {
  local code=0
  echo read | timeout -k 5 60 "$@" cpu "$wrong" $size >"$tmp/out" || code=$?
  cat "$tmp/out"
  [ $code = 1 ] && grep -q '^ready$' "$tmp/out" && grep -q '^error .*wrong data' "$tmp/out"
}

# Two ranks: what each side has saved the other loads, and a load of wrong bytes is no result.
checkpoints() {
  timeout -k 5 200 "$python" -m torch.distributed.run --standalone --nproc-per-node 2 bench/src/main/python/checkpoint.py --folder "$tmp/checkpoints" \
    --size 32MiB --reps 2 --device cpu --threads 2 --out "$tmp/checkpoints.json" && "$python" - "$tmp/checkpoints.json" <<'PY'
import json
import sys

with open(sys.argv[1]) as file:
    results = {r["id"]: r for r in json.load(file)["results"]}
ids = [f"dcp.{kind}.2ranks" for kind in ("write.limit", "write.direct", "save.ours", "save.torch", "read.limit", "load.ours", "load.torch")]
assert list(results) == ids, list(results)
for r in results.values():
    assert r["unit"] == "GB/s" and r["samples"] == 2 and 0 < r["min"] <= r["median"] <= r["max"] and r["verified"], r
    assert r["conditions"]["bytes"] == (4096 * 4096 + 4096) * 2 and r["conditions"]["ranks"] == 2, r
for name in "save.ours", "save.torch", "load.ours", "load.torch":
    assert results[f"dcp.{name}.2ranks"]["limit"]["ratio"] > 0
assert results["dcp.load.ours.2ranks"]["conditions"]["bytes_direct"] == (4096 * 4096 + 4096)
PY
}

# Two threads in the places of two GPUs.
gpus() {
  timeout -k 5 60 "$python" bench/src/main/python/gpus.py --folder "$tmp/gpus" --size 32MiB --reps 2 --device cpu --out "$tmp/gpus.json" &&
    "$python" - "$tmp/gpus.json" <<'PY'
import json
import sys

with open(sys.argv[1]) as file:
    results = {r["id"]: r for r in json.load(file)["results"]}
assert list(results) == [f"gpus.{kind}.{way}" for kind in ("copy.limit", "read.file", "read.ssd") for way in ("0", "1", "both")], list(results)
for r in results.values():
    assert r["samples"] == 2 and 0 < r["min"] <= r["median"] <= r["max"] and r["verified"], r
    assert r["id"].startswith("gpus.copy") or r["limit"]["ratio"] > 0
PY
}

# The program's own comparison, with a tensor of which one element differs.
checkpoints_see_wrong_data() {
  "$python" - "$tmp/wrong" <<'PY'
import sys

sys.argv = ["checkpoint.py", "--folder", sys.argv[1], "--size", "32MiB", "--reps", "1", "--device", "cpu"]
sys.path.insert(0, "bench/src/main/python")
import checkpoint

checkpoint.dist.init_process_group("gloo", store=checkpoint.dist.HashStore(), rank=0, world_size=1)
bench = checkpoint.Bench()
for name, tensor in bench.state.items():
    bench.target[name].to_local().copy_(tensor.to_local())
bench.check("a copy")
bench.target["layers.0.weight"].to_local().view(checkpoint.torch.int16)[77, 99] += 1
try:
    bench.check("a copy")
except ValueError as e:
    sys.exit("layers.0.weight is wrong" not in str(e))
sys.exit("the difference was not seen")
PY
}

# Two parts on the CPU, in one process and on two ranks; a tensor of which one element differs is no result.
shards() {
  timeout -k 5 200 "$python" bench/src/main/python/shards.py --folder "$tmp/shards" --size 4MiB --reps 1 --device cpu --bucket 1MiB \
    --out "$tmp/shards.json" && [ ! -e "$tmp/shards/model" ] && "$python" - "$tmp/shards.json" <<'PY'
import json
import sys

with open(sys.argv[1]) as file:
    results = {r["id"].removeprefix("shards."): r for r in json.load(file)["results"]}
halves, wholes = ["half.2gpus", "half.2ranks"], ["replicated.2gpus", "replicated.2ranks"]
assert set(results) == {*halves, *wholes, "half.1gpu", "replicated.twice", "limit.peer", *(f"limit.h2d.{k}" for k in (0, 1, "both"))}, list(results)
for name, r in results.items():
    assert r["unit"] == "GB/s" and r["samples"] == 1 and r["median"] > 0 and r["verified"] != name.startswith("limit."), r
for name in halves + wholes:
    told = results[name]["conditions"]
    assert sum(told["bytes_read"]) == told["bytes"] and len(told["bytes_read"]) == 2, told
    # Halves have nothing in common.
    assert told["exchange"] == ("none" if name in halves else "gloo" if "ranks" in name else "host"), told
    assert told["bytes_copied"] == (told["bytes"] if name in wholes else 0), told
assert all(results[n]["conditions"]["time_of_1gpu"] > 0 for n in halves)
assert all(results[n]["conditions"]["times_as_fast_as_twice"] > 0 for n in wholes)
PY
}

shards_see_wrong_data() {
  "$python" - <<'PY'
import sys

sys.path.insert(0, "bench/src/main/python")
import shards
import torch

model = {"a": (40, 3), "b": (8,)}
expected = shards.expected_sums(model, {"a": 0}, 2, "cpu")
a, b = (shards.random(number, shape, "cpu") for number, shape in enumerate(model.values()))
halves = [{"a": half.clone(), "b": b.clone()} for half in a.chunk(2)]
shards.check(halves, expected, [0, 1])
halves[1]["a"][7, 1] += 1
try:
    shards.check(halves, expected, [0, 1])
except ValueError as e:
    sys.exit("a of part 1 is wrong" not in str(e))
sys.exit("the difference was not seen")
PY
}

if ! find_jdk; then
  echo 'SKIP bench-bindings: no JDK 25 or newer'
  exit 0
fi
export GPUNVME_JAVA_HOME=$JDK_HOME
if ! command -v "${CC:-gcc}" >/dev/null; then
  echo 'SKIP bench-bindings: no C compiler (gcc)'
  exit 0
fi
if [ ! -d bench/target/app ] || [ ! -d capi/target/app ] || [ ! -f capi/target/libgpunvme.so ]; then
  echo 'FAIL bench-bindings: bench/target/app, capi/target/app or capi/target/libgpunvme.so is not there'
  exit 0
fi
mkdir "$tmp/capi"
cp capi/target/libgpunvme.so "$tmp/capi/"
cp capi/target/libgpunvme.so "$tmp/capi/libgpunvme.so.0"
cp -R capi/target/app "$tmp/capi/app"
check bench-bindings-compiles compile_bindings "$tmp/capi" || exit 0

modules=io.gpunvme.ffi,io.gpunvme.cuda,io.gpunvme.capi
own=(bench/target/app/gpunvme-bench.jar bench/target/app/gpunvme-tools-*.jar)
check bench-bindings-java-sees-wrong-data sees_wrong_data "$JDK_HOME/bin/java" --module-path=capi/target/app \
  --add-modules=io.gpunvme.capi "--enable-native-access=$modules" -cp "${own[0]}:${own[1]}" io.gpunvme.bench.BindingsJava
check bench-bindings-c-sees-wrong-data sees_wrong_data "$tmp/capi/bindings"
# small COMMAND...: the same for the benchmark of short reads, all of whose reads are wrong; on a file they are right
small() {
  local code=0
  head -c 1048576 /dev/urandom >"$tmp/small.bin"
  echo 'auto 4096 1 main' | timeout -k 5 60 "$@" "$tmp/small.bin" sim:size=1MiB >"$tmp/out" || return 1
  cat "$tmp/out"
  grep -qE '^[1-9][0-9.]*$' "$tmp/out" || return 1
  echo 'sim 4096 1 worker' | timeout -k 5 60 "$@" "$tmp/small.bin" 'sim:size=1MiB,faults=corrupt on read' >"$tmp/out" || code=$?
  cat "$tmp/out"
  [ $code = 1 ] && grep -q '^error .*wrong data' "$tmp/out"
}
check bench-small-c small "$tmp/capi/small"
GPUNVME_LIBRARY=$tmp/capi/libgpunvme.so PYTHONPATH=python/src check bench-small-python small python3 bench/src/main/python/small.py
find_torch
check bench-bindings-says-what-is-missing missing
if ! "$python" -c 'import torch' >/dev/null 2>&1; then
  echo "SKIP bench-bindings: no Python with PyTorch; $(scripts/test-python --why torch)"
  exit 0
fi
check bench-bindings-without-torch no_torch
GPUNVME_LIBRARY=$tmp/capi/libgpunvme.so PYTHONPATH=python/src check bench-bindings-python-sees-wrong-data sees_wrong_data \
  "$python" bench/src/main/python/bindings.py
check bench-bindings results
export GPUNVME_LIBRARY=$tmp/capi/libgpunvme.so PYTHONPATH=python/src
if "$python" -c 'import torch.distributed.tensor' >/dev/null 2>&1; then
  check bench-checkpoint checkpoints
  check bench-checkpoint-sees-wrong-data checkpoints_see_wrong_data
  check bench-gpus gpus
  check bench-shards shards
  check bench-shards-sees-wrong-data shards_see_wrong_data
else
  echo "SKIP bench-checkpoint: no PyTorch 2.5 or newer; $(scripts/test-python --why torch)"
fi
