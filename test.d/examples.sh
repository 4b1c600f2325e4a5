#!/usr/bin/env bash
# environment: any machine
# The programs of examples/ compile and run as docs/first-program.md says, and the page quotes what is there.
set -u
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=scripts/jdk.sh
. "$root/scripts/check.sh"
. "$root/scripts/jdk.sh"
page=$root/docs/first-program.md
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir "$tmp/tmpdir"
modules=io.gpunvme.ffi,io.gpunvme.cuda

# blocks LANGUAGE [N]: the text of the page's blocks in this language, or of the Nth of them
blocks() {
  awk -v start="\`\`\`$1" -v wanted="${2:-0}" '
    $0 == start { inside = 1; number++; next }
    $0 == "```" { inside = 0 }
    inside && (wanted == 0 || number == wanted)' "$page"
}

# run JAVA_OPTION... CLASS ARGUMENT...: native access is denied to all who are not given it. Output is in $tmp/out and $tmp/err.
run() {
  local code=0
  timeout 60 java -Xshare:auto -XX:TieredStopAtLevel=1 -XX:+UseSerialGC "-Djava.io.tmpdir=$tmp/tmpdir" --illegal-native-access=deny "$@" \
    >"$tmp/out" 2>"$tmp/err" || code=$?
  cat "$tmp/out" "$tmp/err"
  return $code
}

on_class_path() { # CLASS ARGUMENT...
  run --enable-native-access=ALL-UNNAMED -cp "$app/*:$tmp/classes" "$@"
}

on_module_path() { # MODULES CLASS ARGUMENT...
  run -p "$app" --add-modules io.gpunvme.models "--enable-native-access=$1" -cp "$tmp/classes" "${@:2}"
}

compiles() { # FOLDER OPTION...: without a warning
  javac -Xlint:all -Werror -d "$tmp/$1" "${@:2}" "$root"/examples/*.java
}

# The whole file, in two pieces, and the last piece is short.
reads_a_file() {
  head -c 70000001 /dev/urandom >"$tmp/file"
  "$@" ReadFile "$tmp/file" && [ ! -s "$tmp/err" ] && [ "$(wc -l <"$tmp/out")" = 4 ] &&
    grep -q '^67108864 bytes at 0 arrived' "$tmp/out" && grep -q '^2891137 bytes at 67108864 arrived' "$tmp/out" &&
    grep -q ": $(sha256sum <"$tmp/file" | cut -d' ' -f1)\$" "$tmp/out"
}

loads_a_model() {
  "$@" LoadModel && [ ! -s "$tmp/err" ] && grep -q '^embedding.weight BF16\[1000, 64\] 128000 bytes$' "$tmp/out" &&
    grep -q '^4 tensors, 161796 bytes, all as in the file$' "$tmp/out" && [ -z "$(ls "$tmp/tmpdir")" ]
}

# A GGUF file with layers of all types that become floats, and what gguf makes of them.
makes_a_gguf_file() {
  "$root/build/python/bin/python" - "$tmp/model.gguf" <<'E'
import sys, zlib

import gguf
import numpy

random = numpy.random.default_rng(1)
writer = gguf.GGUFWriter(sys.argv[1], "llama")
for layer, name in enumerate(["Q4_0", "Q8_0", "Q4_K", "Q5_K", "Q6_K"] * 2):
    kind = gguf.GGMLQuantizationType[name]
    elements, size = gguf.GGML_QUANT_SIZES[kind]
    blocks = random.integers(0, 256, (48, 512 // elements, size), dtype=numpy.uint8)
    # The upper bytes of scales, without infinities and what is not a number.
    blocks[..., [size - 1] if name == "Q6_K" else [1, 3] if name in ("Q4_K", "Q5_K") else [1]] &= 0x3F
    data = blocks.reshape(48, -1)
    writer.add_tensor(f"blk.{layer}.ffn_up.weight", data, raw_dtype=kind)
    writer.add_tensor(f"blk.{layer}.attn_norm.weight", random.random(512, dtype=numpy.float32))
    floats = gguf.quants.dequantize(data, kind)
    print(f"blk.{layer}.ffn_up.weight {name} {zlib.crc32(floats.tobytes()):08x}")
writer.write_header_to_file()
writer.write_kv_data_to_file()
writer.write_tensors_to_file()
writer.close()
E
}

streams_layers() {
  makes_a_gguf_file >"$tmp/floats" && "$@" StreamLayers "$tmp/model.gguf" && [ ! -s "$tmp/err" ] &&
    grep -v slots "$tmp/out" | diff - "$tmp/floats" && grep -q '^10 layers of [0-9]* bytes through 3 slots: ' "$tmp/out"
}

sees_the_faults() {
  "$@" Faults && [ ! -s "$tmp/err" ] && grep -v '^  ' "$tmp/out" | diff - <(blocks text 2)
}

# fails CODE CLASS ARGUMENT...: with this exit code and one line that says why
fails() {
  local code=0
  on_class_path "${@:2}" || code=$?
  [ $code = "$1" ] && [ ! -s "$tmp/out" ] && [ "$(wc -l <"$tmp/err")" = 1 ]
}

errors_are_told() {
  head -c 1000 /dev/urandom >"$tmp/broken.safetensors"
  fails 1 ReadFile "$tmp/missing" && grep -q "$tmp/missing" "$tmp/err" && fails 2 ReadFile &&
    fails 1 LoadModel "$tmp/broken.safetensors" && fails 2 LoadModel one two && fails 1 StreamLayers "$tmp/broken.safetensors" &&
    printf '\70\0\0\0\0\0\0\0%-56s\0' '{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}' >"$tmp/flat.safetensors" &&
    fails 1 StreamLayers "$tmp/flat.safetensors" && grep -q 'has no list of layers' "$tmp/err"
}

# Denied to either of the two modules, nothing works.
both_modules_need_native_access() {
  local module
  for module in ${modules//,/ }; do
    on_module_path "$module" ReadFile "$root/LICENSE" && return 1
    grep -q 'IllegalCallerException: Illegal native access from module io.gpunvme' "$tmp/err" || return 1
  done
}

# The kernel is compiled where there is a compiler, and runs where there is a GPU.
kernel_reads() {
  local code=0
  on_class_path KernelRead >"$tmp/check.log" || code=$?
  if [ $code = 3 ]; then
    echo "SKIP examples-kernel-compiles: $(tail -n 1 "$tmp/err")"
    echo 'SKIP examples-kernel-runs: it was not compiled'
    return
  fi
  if grep '^compiled by ' "$tmp/out"; then
    echo 'PASS examples-kernel-compiles'
  else
    echo 'FAIL examples-kernel-compiles'
  fi
  if [ $code = 0 ] && grep -q '^did not run: no GPU' "$tmp/out"; then
    echo 'SKIP examples-kernel-runs: no GPU'
  elif [ $code = 0 ] && grep '^ran on ' "$tmp/out"; then
    echo 'PASS examples-kernel-runs'
  else
    sed 's/^/  /' "$tmp/check.log" | tail -n 20
    echo 'FAIL examples-kernel-runs'
  fi
}

# With NVIDIA's run-time compiler too, where only pip has it.
compiles_with_nvrtc() {
  GPUNVME_LIBNVRTC=$1 on_class_path KernelRead && grep -q '^compiled by NVRTC ' "$tmp/out"
}

# ---- kernels of C++, CuPy and Numba: compiled here, and run by the GPU kit

nvcc_compiles() { # ARGUMENT...
  nvcc -std=c++17 -Werror all-warnings -I "$root/gpu/src/main/cuda" "$@"
}

cpp_compiles() {
  nvcc_compiles -arch=compute_75 -I "$root/capi/include" -c "$kernels/kernel_read.cu" -o "$tmp/kernel_read.o"
}

# The text that CuPy gets.
cupy_source() {
  PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$kernels python3 -c 'import kernel_read_cupy; print(kernel_read_cupy.SOURCE)' >"$tmp/cupy.cu"
}

cupy_compiles() {
  cupy_source && nvcc_compiles -arch=compute_75 -ptx "$tmp/cupy.cu" -o "$tmp/cupy.ptx" && grep -q '\.entry sum_blocks(' "$tmp/cupy.ptx"
}

# As CuPy calls it: with a folder, not with the headers' texts.
cupy_compiles_with_nvrtc() { # LIBRARY
  cupy_source && LD_LIBRARY_PATH=$(dirname "$1") python3 - "$1" "$tmp/cupy.cu" "$root/gpu/src/main/cuda" <<'E'
import ctypes, sys

library, source, folder = sys.argv[1:]
nvrtc, program, size = ctypes.CDLL(library), ctypes.c_void_p(), ctypes.c_size_t()
assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), open(source, "rb").read(), b"cupy.cu", 0, None, None) == 0
options = [b"-std=c++17", b"-I" + folder.encode(), b"-arch=compute_75"]
code = nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
log = ctypes.create_string_buffer(size.value)
nvrtc.nvrtcGetProgramLog(program, log)
sys.exit(f"{code}: {log.value.decode()}" if code else 0)
E
}

# With the name that the kernel of Numba declares, and its arguments: where the result goes, and six numbers.
numba_functions_compile() {
  local name
  nvcc_compiles -arch=compute_75 -rdc=true -ptx "$kernels/device_functions.cu" -o "$tmp/device_functions.ptx" &&
    nvcc_compiles -dlto -arch=sm_75 -rdc=true -ltoir "$kernels/device_functions.cu" -o "$tmp/device_functions.ltoir" || return 1
  name=$(sed -n 's/.*declare_device("\([a-z_]*\)", "uint32(int64, int64, int64, int64, int64, int64)").*/\1/p' "$kernels/kernel_read_numba.py")
  [ -n "$name" ] && [ "$(sed -n "/^\.visible \.func .* $name(/,/^)/p" "$tmp/device_functions.ptx" | grep -c '\.param \.b64')" = 7 ]
}

# The classes of the project of three files. Maven itself would have to write into the user's repository.
the_project_runs() {
  find "$root/examples/java/src" -name '*.java' -exec javac -Xlint:all,-requires-transitive-automatic -Werror -p "$app" -d "$tmp/project" {} + &&
    run -p "$app:$tmp/project" "--enable-native-access=$modules" -m example/example.FirstRead sim:size=16MiB &&
    grep -q '^4096 of 16777216 bytes of sim:size=16MiB are in memory of ' "$tmp/out" && [ ! -s "$tmp/err" ]
}

the_page_quotes_the_program() {
  blocks java 1 | diff - "$root/examples/ReadFile.java"
}

the_page_names_all_examples() {
  local file
  for file in "$root"/examples/*; do
    grep -q "(../examples/$(basename "$file"))" "$page" || {
      echo "$file"
      return 1
    }
  done
}

# What ReadFile prints, less this machine's accelerator and the path that was chosen here.
same_everywhere() {
  sed -e 's/^accelerator: .*/accelerator/' -e 's/by the path .*//'
}

# In a folder that has what the commands name, so that what they make is gone afterwards.
the_commands_of_the_page_work() {
  local command
  mkdir -p "$tmp/tree/build/first/first"
  ln -s "$root"/{cli,examples,gpunvme,LICENSE} "$tmp/tree/"
  blocks java 2 >"$tmp/tree/build/first/module-info.java"
  { echo 'package first;' && cat "$root/examples/ReadFile.java"; } >"$tmp/tree/build/first/first/ReadFile.java"
  blocks sh >"$tmp/commands"
  [ "$(wc -l <"$tmp/commands")" -ge 9 ] || return 1
  while IFS= read -r command; do
    echo "$command"
    if ! (cd "$tmp/tree" && timeout 60 bash -c "$command" </dev/null >"$tmp/out" 2>"$tmp/err") || [ -s "$tmp/err" ]; then
      cat "$tmp/out" "$tmp/err"
      return 1
    fi
    case $command in
      *ReadFile*' LICENSE') diff <(same_everywhere <"$tmp/out") <(blocks text 1 | same_everywhere) || return 1 ;;
    esac
  done <"$tmp/commands"
}

if ! find_jdk; then
  echo 'SKIP examples: no JDK 25 or newer'
  exit 0
fi
PATH=$JDK_HOME/bin:$PATH:/usr/local/cuda/bin
app=$root/cli/target/app
"$root/gpunvme" --version >"$tmp/version" 2>&1 # builds where there is nothing yet

check examples-compile compiles classes -cp "$app/*"
check examples-compile-with-modules compiles modular -p "$app" --add-modules io.gpunvme.models
check examples-read-a-file reads_a_file on_class_path
check examples-load-a-model loads_a_model on_class_path
check examples-load-a-model-with-modules loads_a_model on_module_path $modules
if "$root/build/python/bin/python" -c 'import gguf' 2>/dev/null; then
  check examples-stream-layers streams_layers on_class_path
else
  echo "SKIP examples-stream-layers: no gguf; $("$root/scripts/test-python" --why gguf)"
fi
check examples-see-the-faults sees_the_faults on_class_path
kernel_reads
nvrtc=$(find "$root"/build/python/lib/python3*/site-packages/nvidia -name 'libnvrtc.so.*' -print -quit 2>/dev/null)
if [ -n "$nvrtc" ]; then
  check examples-kernel-compiles-with-nvrtc compiles_with_nvrtc "$nvrtc"
else
  echo "SKIP examples-kernel-compiles-with-nvrtc: no NVRTC; $("$root/scripts/test-python" --why nvidia-cuda-nvrtc)"
fi
kernels=$root/examples/kernels
if ! command -v nvcc >/dev/null; then
  echo 'SKIP examples-kernels-compile: no nvcc'
else
  check examples-kernels-cpp-compiles cpp_compiles
  check examples-kernels-cupy-compiles cupy_compiles
  check examples-kernels-numba-compiles numba_functions_compile
fi
[ -z "$nvrtc" ] || check examples-kernels-cupy-compiles-with-nvrtc cupy_compiles_with_nvrtc "$nvrtc"
check examples-tell-errors errors_are_told
check examples-both-modules-need-native-access both_modules_need_native_access
check examples-project-runs the_project_runs
check first-program-quotes-the-program the_page_quotes_the_program
check first-program-names-all-examples the_page_names_all_examples
check first-program-commands-work the_commands_of_the_page_work
