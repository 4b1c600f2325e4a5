# shellcheck shell=bash
# shellcheck disable=SC2034 # java and main are for whoever sources this
# Sourced by ./gpunvme and ./test, in the repository root, after scripts/jdk.sh and find_jdk.

app=cli/target/app
built=$app/gpunvme-cli.jar # as new as the sources that the application was built from

# True if any source is newer than the application, or there is none.
build_needed() {
  [ -f "$built" ] || return 0
  [ -n "$(find pom.xml ./*/pom.xml ./*/src/main -newer "$built" -print -quit 2>/dev/null)" ]
}

require_maven() {
  if ! command -v mvn >/dev/null; then
    echo 'Maven not found. Install it: sudo apt-get install maven' >&2
    return 1
  fi
}

# One build at a time in this tree, until the calling shell ends.
lock_build() {
  exec 9<pom.xml
  flock 9
}

# Maven on the JDK that was found, wherever it is.
maven() {
  JAVA_HOME=$JDK_HOME \
    MAVEN_OPTS="--enable-native-access=ALL-UNNAMED --sun-misc-unsafe-memory-access=allow ${MAVEN_OPTS:-}" \
    mvn -B -ntp -Dstyle.color=never "$@" </dev/null
}

# Builds the application and nothing else, silently unless it fails. Output goes to standard error.
build_app() {
  local started log next=$PWD/$app.next old=$app.old
  started=$(date +%s.%N)
  log=cli/target/build.log
  mkdir -p cli/target
  # A folder of its own: old jars would stay on the module path beside the new ones, and commands that
  # are running still need theirs.
  rm -rf "$next" "$old"
  if ! maven -q -Dgpunvme.fast=true "-Dgpunvme.app=$next" -pl cli -am package >"$log" 2>&1; then
    # Maven says compilation errors twice; the first time is enough.
    if grep -q 'COMPILATION ERROR' "$log"; then
      sed '/Failed to execute goal/,$d' "$log" >&2
    else
      cat "$log" >&2
    fi
    echo 'gpunvme: the build failed' >&2
    rm -rf "$next"
    return 1
  fi
  touch -d "@$started" "$next/${built##*/}"
  [ ! -e "$app" ] || mv "$app" "$old"
  mv "$next" "$app"
  rm -rf "$old" cli/target/gpunvme*.jsa
}

# app_command ROOT: sets java and main, the two halves of the command that runs the application.
app_command() {
  # The archive has the classes that an earlier run loaded, from jars in this place: in a tree that was copied or moved it
  # would not do. The virtual machine logs nothing: standard output belongs to --json.
  local place=${1//\//-}
  [ ${#place} -le 200 ] || place=${place: -200}
  java=("$JDK_HOME/bin/java" -Xshare:auto -XX:+AutoCreateSharedArchive
    "-XX:SharedArchiveFile=$1/cli/target/gpunvme$place.jsa" -XX:+UseSerialGC -Xlog:disable
    "--enable-native-access=io.gpunvme.ffi,io.gpunvme.cuda" --illegal-native-access=deny "-Dgpunvme.program=$0" "-Dgpunvme.cufile=$1/capi/target/cufile" -p "$1/$app")
  main=(-m io.gpunvme.cli/io.gpunvme.cli.Main)
}

# Fills the archive with what most commands load, from bring-up to shutdown of a controller.
train_app() {
  timeout 60 "${java[@]}" "${main[@]}" identify sim:size=16MiB >/dev/null 2>&1 </dev/null || true
}
