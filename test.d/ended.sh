#!/usr/bin/env bash
# Commands that are told to end in the middle of their work.
set -u
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
. "$root/scripts/check.sh"
gpunvme=$root/gpunvme
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir "$tmp/tmpdir"
# Where the commands make their temporary files.
export GPUNVME_JAVA_OPTS="-Djava.io.tmpdir=$tmp/tmpdir"

# told_to_end SIGNAL STATE COMMAND...: sends the signal while the command runs, which then says the
# state, on standard error only. It is not sent before there is something in the folder $working, if that is set; else not before
# the command waits, and takes a third of a processor at most: it looks whether something has come.
told_to_end() {
  local signal=$1 state=$2 pid code=0 i calm last ticks
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
    for ((i = 0, calm = 0, last = 0; i < 300 && calm < 15; i++)); do
      ticks=$(awk '{ print $14 + $15 }' "/proc/$pid/stat")
      # Before it has used a tenth of a second it waits for the disk, or for a processor. One that starts on a busy machine seems
      # to wait, too, but not for three seconds.
      if [ $((ticks - last)) -le 6 ] && [ "$ticks" -gt 10 ]; then calm=$((calm + 1)); else calm=0; fi
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

top_ends_when_interrupted() {
  told_to_end INT '' top --json --interval 60s
}

a_command_that_changes_nothing_says_only_that() {
  told_to_end INT '' read sim:latency=60s --lba 0 --bytes 4KiB --out -
}

"$gpunvme" --version >"$tmp/version" 2>&1 # builds where there is nothing yet

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
check top-ends-when-interrupted top_ends_when_interrupted
check a-command-that-changes-nothing-says-only-that a_command_that_changes_nothing_says_only_that
