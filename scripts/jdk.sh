# shellcheck shell=bash
# shellcheck disable=SC2034 # JDK_HOME is for whoever sources this
# Sourced by the scripts of this repository: find_jdk sets JDK_HOME to a JDK of at least version 25.

# jdk_version HOME: prints the major version of the JDK there, nothing if there is none.
jdk_version() {
  [ -x "$1/bin/java" ] && [ -x "$1/bin/javac" ] || return 0
  local line
  if [ -r "$1/release" ]; then
    while IFS= read -r line; do
      case $line in
        JAVA_VERSION=*)
          line=${line#*\"}
          printf '%s' "${line%%[!0-9]*}"
          return 0
          ;;
      esac
    done <"$1/release"
  fi
  line=$("$1/bin/java" -version 2>&1 | head -n 1)
  line=${line#*\"}
  printf '%s' "${line%%[!0-9]*}"
}

# find_jdk: a GPUNVME_JAVA_HOME that is too old, or no JDK, is an error: nobody sets it for nothing.
find_jdk() {
  local home version path_java
  if [ -n "${GPUNVME_JAVA_HOME:-}" ]; then
    version=$(jdk_version "$GPUNVME_JAVA_HOME")
    [ -n "$version" ] && [ "$version" -ge 25 ] || return 1
    JDK_HOME=$GPUNVME_JAVA_HOME
    return 0
  fi
  path_java=$(command -v java || true)
  [ -n "$path_java" ] && path_java=$(readlink -f "$path_java")
  for home in "${JAVA_HOME:-}" "${path_java%/bin/java}" /usr/lib/jvm/*; do
    [ -n "$home" ] || continue
    version=$(jdk_version "$home")
    if [ -n "$version" ] && [ "$version" -ge 25 ]; then
      JDK_HOME=$home
      return 0
    fi
  done
  return 1
}

# How to get one; for standard error.
explain_jdk() {
  if [ -n "${GPUNVME_JAVA_HOME:-}" ]; then
    local version
    version=$(jdk_version "$GPUNVME_JAVA_HOME")
    echo "GPUNVME_JAVA_HOME is $GPUNVME_JAVA_HOME, which has ${version:+Java }${version:-no JDK}: set it to a JDK 25 or newer, or unset it."
    return 0
  fi
  cat <<'TEXT'
No JDK 25 or newer found (looked at GPUNVME_JAVA_HOME, JAVA_HOME, java on PATH, /usr/lib/jvm).
Install Temurin 25, for example on Debian or Ubuntu:
  sudo apt-get install -y wget gpg
  wget -qO- https://packages.adoptium.net/artifactory/api/gpg/key/public | sudo gpg --dearmor -o /usr/share/keyrings/adoptium.gpg
  echo "deb [signed-by=/usr/share/keyrings/adoptium.gpg] https://packages.adoptium.net/artifactory/deb $(. /etc/os-release; echo $VERSION_CODENAME) main" | sudo tee /etc/apt/sources.list.d/adoptium.list
  sudo apt-get update && sudo apt-get install -y temurin-25-jdk
or unpack https://adoptium.net/temurin/releases/?version=25 anywhere and set GPUNVME_JAVA_HOME to it.
TEXT
}
