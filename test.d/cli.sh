#!/usr/bin/env bash
# quick
# The command line as a process: the main job, exit codes, streams and pipes.
set -u
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
. "$root/scripts/check.sh"
gpunvme=$root/gpunvme
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir "$tmp/tmpdir"
# Where the commands make their temporary files.
export GPUNVME_JAVA_OPTS="-Djava.io.tmpdir=$tmp/tmpdir"

# field NAME: prints a field of the object in $tmp/out
field() {
  sed -n "s/^  \"$1\": \(.*[^,]\),\{0,1\}$/\1/p" "$tmp/out"
}

demo_arrives() {
  "$gpunvme" demo --json >"$tmp/out" 2>"$tmp/err" || return 1
  cat "$tmp/out" "$tmp/err"
  [ ! -s "$tmp/err" ] && [ "$(field verified)" = true ] && [ "$(field bytes)" -ge 268435456 ] &&
    [ "$(field sha256)" = "$(field source_sha256)" ] && [ "$(field path)" = '"direct"' ] &&
    [ "$(field commands)" -ge 512 ] && [ -z "$(ls "$tmp/tmpdir")" ]
}

demo_of_a_file() {
  head -c 10000001 /dev/urandom >"$tmp/file"
  "$gpunvme" demo "$tmp/file" --queues 2 --depth 8 --json >"$tmp/out" || return 1
  cat "$tmp/out"
  [ "$(field sha256)" = "\"$(sha256sum <"$tmp/file" | cut -d' ' -f1)\"" ] &&
    [ "$(field queue_pairs)" = 2 ]
}

exit_codes() {
  local code=0
  "$gpunvme" identify nowhere:1 >"$tmp/out" 2>"$tmp/err" || code=$?
  cat "$tmp/err"
  [ $code = 2 ] && [ ! -s "$tmp/out" ] && [ "$(wc -l <"$tmp/err")" = 1 ] || return 1
  code=0
  "$gpunvme" demo --size 4MiB --faults 'corrupt on read nth=2' >"$tmp/out" 2>"$tmp/err" || code=$?
  cat "$tmp/err"
  [ $code = 1 ] && [ "$(wc -l <"$tmp/err")" = 1 ]
}

survives_the_process() {
  local disk=$tmp/disk.img
  head -c 1234567 /dev/urandom >"$tmp/data"
  "$gpunvme" write "sim:file=$disk,size=8MiB" --lba 64 --in "$tmp/data" --allow-write || return 1
  [ "$(stat -c %s "$disk")" = 8388608 ] && cmp -n 1234567 "$tmp/data" "$disk" 0 $((64 * 512)) &&
    "$gpunvme" read "sim:file=$disk" --lba 64 --bytes 1234567 --out - 2>"$tmp/err" | cmp - "$tmp/data"
}

a_closed_pipe_is_no_crash() {
  "$gpunvme" read sim:size=64MiB,latency=0 --lba 0 --bytes 64MiB --out - 2>"$tmp/err" | head -c 10 >"$tmp/out"
  cat "$tmp/err"
  [ "$(stat -c %s "$tmp/out")" = 10 ] && ! grep -q 'Exception' "$tmp/err"
}

# The demo reads slowly, so that it is there to be seen.
top_sees_another_process() {
  local pid code=0 seen='' i
  "$gpunvme" demo --size 8MiB --device sim:latency=60s,mdts=8KiB,serial=SEEN >/dev/null 2>&1 &
  pid=$!
  for ((i = 0; i < 60 && ${#seen} == 0; i++)); do
    "$gpunvme" top --count 1 --interval 100ms --json sim:serial=SEEN vfio:ffff:ff:1f.7 >"$tmp/out" 2>"$tmp/err" || code=$?
    seen=$(grep -o '"side":"driver","address":"sim:latency=60s,mdts=8KiB,serial=SEEN,' "$tmp/out")
  done
  kill $pid
  wait $pid
  cat "$tmp/out" "$tmp/err"
  [ $code = 0 ] && [ -n "$seen" ] && [ "$(wc -l <"$tmp/out")" = 1 ] && [ ! -s "$tmp/err" ] &&
    grep -q '"program":"gpunvme demo"' "$tmp/out" && grep -q '"not_driven":\["vfio:ffff:ff:1f.7"\]' "$tmp/out"
}

# As somebody pastes them who is in another folder, or in this one, or has it in the PATH. SSDs of this machine are left alone.
what_doctor_says_can_be_done_works() {
  local called line lines
  for called in "$gpunvme" ./gpunvme gpunvme; do
    lines=$(cd "$root" && PATH=$PATH:$([ "$called" != gpunvme ] || echo "$root") "$called" doctor |
      sed -e '1,/^What you can do now:/d' -e 's/^  //' -e 's/  .*//' -e '/ try /d')
    echo "$lines"
    [ "$(head -n 1 <<<"$lines")" = "$called demo" ] && [ "$(wc -l <<<"$lines")" -ge 2 ] || return 1
    while IFS= read -r line; do
      (cd "$root" && PATH=$PATH:$([ "$called" != gpunvme ] || echo "$root") bash -c "$line") >"$tmp/out" 2>&1 || {
        cat "$tmp/out"
        return 1
      }
    done <<<"$lines"
  done
}

"$gpunvme" --version >"$tmp/version" 2>&1 # builds where there is nothing yet

check demo-arrives demo_arrives
check demo-of-a-file demo_of_a_file
check exit-codes exit_codes
check survives-the-process survives_the_process
check a-closed-pipe-is-no-crash a_closed_pipe_is_no_crash
check what-doctor-says-can-be-done-works what_doctor_says_can_be_done_works
check top-sees-another-process top_sees_another_process
