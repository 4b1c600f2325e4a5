# shellcheck shell=bash
# shellcheck disable=SC2154 # next is its user's; app and java are scripts/build.sh's
# Sourced by what packs gpunvme and its tests for another machine, in the repository root, after
# scripts/jdk.sh, find_jdk and scripts/build.sh. Each function fills the folder $next.

test_tools=target/tools/test
# java.xml: reports of tests. java.logging and java.management: JUnit and jline.
# jdk.management: the benchmarks count what threads allocate. jdk.zipfs: JUnit finds tests in jars. jdk.httpserver: gpunvme top --metrics.
# The rest: gpunvme and its libraries.
kit_modules=java.base,java.logging,java.management,java.xml,jdk.httpserver,jdk.jfr,jdk.management,jdk.unsupported,jdk.zipfs

# ./test leaves target/complete, as new as the sources that it built.
compile_needed() {
  [ -f target/complete ] || return 0
  [ -n "$(find pom.xml ./*/pom.xml ./*/src -newer target/complete -print -quit)" ]
}

# Everything and its tests, into the usual folders but for the application.
compile() {
  require_maven
  echo 'compiling' >&2
  maven -q -Dgpunvme.fast=true -Dmaven.test.skip=false -DskipTests "-Dgpunvme.app=$next/app" package >&2
  maven -q -N dependency:copy@test-tools >&2
}

# What ./test has built is taken if no source is newer; otherwise everything is compiled first.
pack_app() {
  if compile_needed; then
    compile
  else
    cp -R "$app" "$next/app"
  fi
}

pack_runtime() { # OPTION...: further options for jlink
  "$JDK_HOME/bin/jlink" --add-modules "$kit_modules" --strip-debug --no-header-files --no-man-pages \
    --vm server "$@" --output "$next/jdk"
  # A sixth of the virtual machine, and an eighth of its libraries, is symbols that only its own crash reports use.
  if command -v strip >/dev/null; then
    strip --strip-unneeded "$next"/jdk/lib/*.so "$next"/jdk/lib/server/libjvm.so
  fi
}

pack_tests() {
  local classes module
  mkdir "$next/test"
  cp "$test_tools"/*.jar "$next/test/"
  for classes in ./*/target/test-classes; do
    module=${classes#./}
    cp -R "$classes" "$next/test/${module%%/*}"
  done
}

# The tests of each module as one file, a third as large.
jar_tests() {
  local module
  for module in "$next"/test/*/; do
    "$JDK_HOME/bin/jar" --create --no-manifest --date=2026-01-01T00:00:00Z --file "$next/test/gpunvme-$(basename "$module").jar" -C "$module" .
    rm -r "$module"
  done
}

# The options that ./gpunvme gives java, less what would write beside the application.
pack_options() {
  local option
  app_command "$PWD"
  for option in "${java[@]:1}"; do
    case $option in
      --enable-native-access=* | --illegal-native-access=* | -XX:+Use*GC | -Xlog:*) echo "$option" ;;
    esac
  done >"$next/app.options"
}
