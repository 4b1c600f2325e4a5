# shellcheck shell=bash
# shellcheck disable=SC2034 # processor is for whoever sources this
# Sourced by what runs long programs beside each other. There is a slot for each processor; whoever has one may keep a processor
# busy. A program that was started with a slot takes part by the folder in GPUNVME_SLOTS.

# make_slots FOLDER: as many as there are processors, fewer where 2 GiB of memory for each are not free.
make_slots() {
  local count n
  count=$(($(sed -n 's/^MemAvailable: *\([0-9]*\) kB$/\1/p' /proc/meminfo) / 2097152))
  [ "$count" -le "$(nproc)" ] || count=$(nproc)
  [ "$count" -gt 0 ] || count=1
  rm -rf "$1"
  mkdir -p "$1"
  for ((n = 0; n < count; n++)); do
    touch "$1/$n"
  done
  export GPUNVME_SLOTS=$1
}

# take_slot: waits until one is free; who came first is first. It is held by this shell and by what it starts, until all of them have
# ended or closed it (give_slot).
take_slot() {
  local one turn
  exec {turn}>>"$GPUNVME_SLOTS.turn"
  flock "$turn"
  while :; do
    for one in "$GPUNVME_SLOTS"/*; do
      exec {slot}>>"$one"
      if flock --nonblock "$slot"; then
        exec {turn}>&-
        return
      fi
      exec {slot}>&-
    done
    sleep 0.2
  done
}

give_slot() {
  exec {slot}>&-
  slot=
}

# take_processor_time: sets processor to the seconds that the programs that this shell has waited for have used so far.
take_processor_time() {
  local file=$GPUNVME_SLOTS.$BASHPID user system
  # In a subshell, as of $(times), it would be the subshell's.
  times >"$file"
  { read -r _ _ && read -r user system; } <"$file"
  rm "$file"
  processor=$(awk -v "t=$user $system" 'BEGIN { split(t, p, /[ms ]+/); printf "%.0f", (p[1] + p[3]) * 60 + p[2] + p[4] }')
}
