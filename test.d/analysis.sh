#!/usr/bin/env bash
# environment: any machine
# build: none
# Error Prone, NullAway and javac's own warnings on all sources, in a copy of them: the build and its tests need not wait for it.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
. scripts/jdk.sh
. scripts/build.sh
find_jdk || exit 1
copy=$PWD/target/analysis
rm -rf "$copy"
mkdir -p "$copy" || exit 1
tar -cf - --exclude=target .mvn pom.xml ./*/pom.xml ./*/src | tar -xf - -C "$copy"
if (cd "$copy" && maven -q test-compile) >"$copy/log" 2>&1; then
  echo 'PASS analysis'
else
  # Maven says what is wrong twice; the first time is enough.
  sed '/Failed to execute goal/,$d' "$copy/log" | tail -n 40
  echo "FAIL analysis: whole log: $copy/log"
fi
