#!/usr/bin/env bash
# The launcher: starts from anywhere, fast, builds a fresh copy once, explains what is missing.
set -u
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
. "$root/scripts/check.sh"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

help_through_a_symlink() {
  ln -s "$root/gpunvme" "$tmp/link" && cd "$tmp" && ./link --help >out 2>err &&
    grep -q '^Usage: gpunvme' out && [ ! -s err ]
}

explains_a_missing_jdk() {
  # A tree of its own whose JDK search sees nothing.
  mkdir -p "$tmp/nojdk/scripts" "$tmp/nojdk/empty"
  cp "$root/gpunvme" "$tmp/nojdk/"
  cp "$root/scripts/build.sh" "$tmp/nojdk/scripts/"
  sed 's#/usr/lib/jvm/\*#/nowhere/*#' "$root/scripts/jdk.sh" >"$tmp/nojdk/scripts/jdk.sh"
  for tool in bash dirname readlink cat; do
    ln -sf "$(command -v $tool)" "$tmp/nojdk/empty/$tool"
  done
  local code=0
  env -i "PATH=$tmp/nojdk/empty" "$tmp/nojdk/gpunvme" --help >"$tmp/out" 2>"$tmp/err" || code=$?
  cat "$tmp/err"
  [ $code = 1 ] && [ ! -s "$tmp/out" ] && grep -q 'Temurin 25' "$tmp/err"
}

# Whoever sets GPUNVME_JAVA_HOME means it: no other JDK takes its place, though there is one.
refuses_an_old_gpunvme_java_home() {
  local old=$tmp/old-jdk home code
  mkdir -p "$old/bin" "$tmp/empty-jdk"
  printf '#!/bin/sh\necho "openjdk version \\"17.0.9\\" 2023-10-17" >&2\n' >"$old/bin/java"
  cp "$old/bin/java" "$old/bin/javac"
  chmod +x "$old/bin/java" "$old/bin/javac"
  for home in "$old:Java 17" "$tmp/empty-jdk:no JDK"; do
    code=0
    GPUNVME_JAVA_HOME=${home%:*} "$root/gpunvme" --version >"$tmp/out" 2>"$tmp/err" || code=$?
    cat "$tmp/out" "$tmp/err"
    [ $code = 1 ] && [ ! -s "$tmp/out" ] && [ "$(wc -l <"$tmp/err")" = 1 ] &&
      grep -q "GPUNVME_JAVA_HOME is ${home%:*}, which has ${home#*:}: " "$tmp/err" || return 1
  done
}

two_first_runs_build_once() {
  mkdir "$tmp/fresh"
  tar -C "$root" --exclude=target --exclude=.git --exclude=build -cf - . | tar -C "$tmp/fresh" -xf -
  local first
  "$tmp/fresh/gpunvme" --version >"$tmp/v1" 2>"$tmp/e1" &
  first=$!
  "$tmp/fresh/gpunvme" --version >"$tmp/v2" 2>"$tmp/e2" || return 1
  wait "$first" || return 1
  cat "$tmp/e1" "$tmp/e2"
  cmp "$tmp/v1" "$tmp/v2" && [ -s "$tmp/v1" ] &&
    [ "$(cat "$tmp/e1" "$tmp/e2" | grep -c '^building gpunvme')" = 1 ]
}

builds_again_only_after_a_change() {
  local sources=$tmp/fresh/cli/src/main/java/io/gpunvme/cli
  "$tmp/fresh/gpunvme" --version 2>"$tmp/e1" && [ ! -s "$tmp/e1" ] || return 1
  printf 'package io.gpunvme.cli;\n\nfinal class Broken {\n' >"$sources/Broken.java"
  "$tmp/fresh/gpunvme" --version >"$tmp/out" 2>"$tmp/e2" && return 1
  cat "$tmp/e2"
  [ ! -s "$tmp/out" ] && grep -q 'Broken.java' "$tmp/e2" || return 1
  rm "$sources/Broken.java"
  "$tmp/fresh/gpunvme" --version
}

# What an earlier run has prepared is for the place where the tree was.
works_where_its_tree_was_moved_to() {
  "$tmp/fresh/gpunvme" identify sim:size=16MiB && mv "$tmp/fresh" "$tmp/moved" && "$tmp/moved/gpunvme" identify sim:size=16MiB
}

# Wrongly called, it must not begin: that would be this test once more.
test_knows_its_arguments() {
  local wrong code
  timeout 20 "$root/test" --help >"$tmp/out" 2>"$tmp/err" || return 1
  cat "$tmp/out" "$tmp/err"
  grep -q '\./test --help' "$tmp/out" && [ ! -s "$tmp/err" ] || return 1
  for wrong in --no-such core ''; do
    code=0
    timeout 20 "$root/test" "$wrong" >"$tmp/out" 2>"$tmp/err" || code=$?
    cat "$tmp/out" "$tmp/err"
    [ $code = 2 ] && [ ! -s "$tmp/out" ] && grep -q -- "'$wrong'" "$tmp/err" || return 1
  done
}

"$root/gpunvme" --version >"$tmp/version" # builds where there is nothing yet

check test-knows-its-arguments test_knows_its_arguments
check help-through-a-symlink help_through_a_symlink
check explains-a-missing-jdk explains_a_missing_jdk
check refuses-an-old-gpunvme-java-home refuses_an_old_gpunvme_java_home
check two-first-runs-build-once two_first_runs_build_once
check builds-again-only-after-a-change builds_again_only_after_a_change
check works-where-its-tree-was-moved-to works_where_its_tree_was_moved_to
