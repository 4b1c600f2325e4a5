#!/usr/bin/env bash
# quick
# The command line as a process: the main job, exit codes, streams, pipes, and being told to end.
set -u
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
gpunvme=$root/gpunvme
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir "$tmp/tmpdir"
# Where the commands make their temporary files.
export GPUNVME_JAVA_OPTS="-Djava.io.tmpdir=$tmp/tmpdir"

check() { # NAME COMMAND...: passes if the command does
  local name=$1
  shift
  if "$@" >"$tmp/check.log" 2>&1; then
    echo "PASS $name"
  else
    sed 's/^/  /' "$tmp/check.log" | tail -n 20
    echo "FAIL $name"
  fi
}

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

# told_to_end SIGNAL STATE COMMAND...: sends the signal while the command runs, which then says the
# state, on standard error only. It is not sent before there is something in the folder $working, if that is set; else not before
# the command waits, and takes no processor time.
told_to_end() {
  local signal=$1 state=$2 pid code=0 i same last ticks
  shift 2
  # A command in the background ignores SIGINT unless told otherwise.
  env --default-signal=INT "$gpunvme" "$@" >"$tmp/out" 2>"$tmp/err" &
  pid=$!
  if [ -n "${working:-}" ]; then
    for ((i = 0; i < 300; i++)); do
      [ -z "$(ls -A "$working")" ] || break
      sleep 0.1
    done
    sleep 3
  else
    for ((i = 0, same = 0, last = 0; i < 300 && same < 8; i++)); do
      ticks=$(awk '{ print $14 + $15 }' "/proc/$pid/stat")
      # Before it has used a tenth of a second it waits for the disk, or for a processor.
      if [ "$ticks" = "$last" ] && [ "$ticks" -gt 10 ]; then same=$((same + 1)); else same=0; fi
      last=$ticks
      sleep 0.2
    done
  fi
  kill -s "$signal" $pid
  wait $pid || code=$?
  cat "$tmp/out" "$tmp/err"
  [ $code = $((128 + $(kill -l "$signal"))) ] && [ ! -s "$tmp/out" ] &&
    [ "$(cat "$tmp/err")" = "gpunvme: interrupted$state" ]
}

deleted='; unfinished and temporary files are deleted'

demo_cleans_up_when_told_to_end() {
  working=$tmp/tmpdir told_to_end "$1" "$deleted" demo --size 8MiB --device sim:latency=60s,mdts=8KiB && ls -la "$tmp/tmpdir" &&
    [ -z "$(ls "$tmp/tmpdir")" ]
}

read_cleans_up_when_told_to_end() {
  mkdir "$tmp/target"
  working=$tmp/target told_to_end TERM "$deleted" read sim:latency=60s --lba 0 --bytes 1MiB --out "$tmp/target/file" &&
    ls -la "$tmp/target" && [ -z "$(ls -A "$tmp/target")" ]
}

write_leaves_only_the_image_when_interrupted() {
  mkdir "$tmp/disks"
  head -c 1048576 /dev/urandom >"$tmp/data"
  working=$tmp/disks told_to_end INT '; of the blocks from LBA 0 to 2047 some are written, some are not' write "sim:file=$tmp/disks/disk.img,size=8MiB,latency=60s" --lba 0 --in "$tmp/data" --allow-write &&
    ls -la "$tmp/disks" "$tmp/tmpdir" && [ "$(ls -A "$tmp/disks")" = disk.img ] &&
    [ -z "$(ls -A "$tmp/tmpdir")" ]
}

bench_paths_cleans_up_when_told_to_end() {
  mkdir -p "$tmp/bench"
  working=$tmp/bench told_to_end "$1" "$deleted" bench paths "$tmp/bench" --size 64MiB --paths mmap --repetitions 9999 --accelerator cpu --json &&
    ls -la "$tmp/bench" "$tmp/tmpdir" && [ -z "$(ls -A "$tmp/bench")" ] && [ -z "$(ls -A "$tmp/tmpdir")" ]
}

# Sets ssd, server and pid: the SSD is another process's, slow at writing, so that the command is in the middle of it.
overwriting() { # NAME COMMAND...
  local i
  ssd=$tmp/ssd.$1
  shift
  head -c 33554432 /dev/urandom >"$ssd.img"
  cp "$ssd.img" "$ssd.before"
  "$gpunvme" sim serve --socket "$ssd" --namespace "file=$ssd.img" --allow-write --set mdts=64KiB \
    --faults 'late=150ms on write' >"$tmp/served" 2>&1 &
  server=$!
  for ((i = 0; i < 300; i++)); do
    [ ! -S "$ssd" ] || break
    sleep 0.1
  done
  env --default-signal=INT "$gpunvme" "$@" --device "vfio-user:$ssd" --allow-write --initiator cpu >"$tmp/out" 2>"$tmp/err" &
  pid=$!
  for ((i = 0; i < 300; i++)); do
    cmp -s "$ssd.img" "$ssd.before" || return 0
    sleep 0.1
  done
  kill $pid $server
  return 1
}

puts_back_what_was_there() { # SIGNAL NAME COMMAND...
  local signal=$1 ssd server pid code=0
  shift
  overwriting "$@" || return 1
  kill -s "$signal" $pid
  wait $pid || code=$?
  kill $server
  wait $server
  cat "$tmp/out" "$tmp/err" "$tmp/served"
  [ $code = $((128 + $(kill -l "$signal"))) ] && [ ! -s "$tmp/out" ] && [ -z "$(ls "$tmp/tmpdir")" ] &&
    [ "$(cat "$tmp/err")" = "gpunvme: interrupted; what was in 1048576+25165824 of vfio-user:$ssd is there again" ] &&
    cmp "$ssd.img" "$ssd.before"
}

demo_puts_back_what_was_there() { # SIGNAL
  puts_back_what_was_there "$1" "demo$1" demo --write 1MiB+24MiB
}

bench_puts_back_what_was_there() { # SIGNAL
  puts_back_what_was_there "$1" "bench$1" bench random --mix 50 --range 1MiB+24MiB --seconds 1000
}

# SIGKILL leaves a command no time for that.
a_script_puts_back_what_was_there() {
  local ssd server pid code=0
  overwriting killed bench random --mix 50 --range 1MiB+24MiB --seconds 1000 || return 1
  kill -s KILL $pid
  wait $pid
  GPUNVME=$gpunvme sh "$tmp"/tmpdir/gpunvme-bench-*/put-back.sh || code=$?
  kill $server
  wait $server
  rm -r "$tmp"/tmpdir/gpunvme-bench-*
  cat "$tmp/served"
  [ $code = 0 ] && cmp "$ssd.img" "$ssd.before"
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

top_ends_when_interrupted() {
  told_to_end INT '' top --json --interval 60s
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

a_command_that_changes_nothing_says_only_that() {
  told_to_end INT '' read sim:latency=60s --lba 0 --bytes 4KiB --out -
}

"$gpunvme" --version >"$tmp/version" 2>&1 # builds where there is nothing yet

check demo-arrives demo_arrives
check demo-of-a-file demo_of_a_file
check exit-codes exit_codes
check survives-the-process survives_the_process
check a-closed-pipe-is-no-crash a_closed_pipe_is_no_crash
check demo-cleans-up-when-told-to-end demo_cleans_up_when_told_to_end TERM
check demo-cleans-up-when-interrupted demo_cleans_up_when_told_to_end INT
check demo-puts-back-what-was-there-when-interrupted demo_puts_back_what_was_there INT
check demo-puts-back-what-was-there-when-told-to-end demo_puts_back_what_was_there TERM
check bench-puts-back-what-was-there-when-interrupted bench_puts_back_what_was_there INT
check bench-puts-back-what-was-there-when-told-to-end bench_puts_back_what_was_there TERM
check a-script-puts-back-what-was-there a_script_puts_back_what_was_there
check read-cleans-up-when-told-to-end read_cleans_up_when_told_to_end
check write-leaves-only-the-image-when-interrupted write_leaves_only_the_image_when_interrupted
check bench-paths-cleans-up-when-told-to-end bench_paths_cleans_up_when_told_to_end TERM
check bench-paths-cleans-up-when-interrupted bench_paths_cleans_up_when_told_to_end INT
check what-doctor-says-can-be-done-works what_doctor_says_can_be_done_works
check top-sees-another-process top_sees_another_process
check top-ends-when-interrupted top_ends_when_interrupted
check a-command-that-changes-nothing-says-only-that a_command_that_changes_nothing_says_only_that
