"""``python -m gpunvme ARGS`` is the command line, ``gpunvme ARGS``."""

from __future__ import annotations

import os
import re
import sys
from itertools import takewhile
from pathlib import Path

_MAIN = "io.gpunvme.cli/io.gpunvme.cli.Main"
_OLDEST = 25


def java_version(home: Path) -> int:
    """The major version of the Java there; 0 if there is none."""
    if not (home / "bin" / "java").is_file():
        return 0
    try:
        found = re.search(r'^JAVA_VERSION="(\d+)', (home / "release").read_text(), re.MULTILINE)
    except OSError:
        return 0
    return int(found[1]) if found else 0


def find_java(own: Path) -> Path | None:
    """As the C library does: what GPUNVME_JAVA_HOME names or none; without that the package's own."""
    named = os.environ.get("GPUNVME_JAVA_HOME")
    home = Path(named) if named else own
    # Another one would hide that it is wrong.
    return home if java_version(home) >= _OLDEST else None


def command(arguments: list[str]) -> list[str]:
    """The command that runs the command line: a source tree's launcher, or the Java and the jars next to this file."""
    package = Path(__file__).resolve().parent
    jars = package / "app"
    launcher = package.parents[2] / "gpunvme"
    if not jars.is_dir():
        if launcher.is_file():
            return [str(launcher), *arguments]
        raise SystemExit(f"gpunvme: no {jars} and no {launcher}: the package is not complete; install its wheel")
    if arguments[:1] == ["cufile"] and not {"-h", "--help"} & set(takewhile(lambda word: word != "--", arguments)):
        # It starts programs, and needs no Java for that.
        return [str(jars / "cufile" / "start"), *arguments[1:]]
    own = jars / "runtime"
    home = find_java(own)
    if home is None:
        named = os.environ.get("GPUNVME_JAVA_HOME")
        if named:
            raise SystemExit(f"gpunvme: no Java {_OLDEST} or newer in GPUNVME_JAVA_HOME, which is {named}; unset it, or name another")
        raise SystemExit(f"gpunvme: no Java in {own}: the package is not complete; install its wheel again")
    return [
        str(home / "bin" / "java"),
        "-XX:+UseSerialGC",
        "-Xlog:disable",
        "-XX:-UsePerfData",
        "--enable-native-access=io.gpunvme.ffi,io.gpunvme.cuda",
        "--illegal-native-access=deny",
        # What doctor says to call. With python -m it is a file that cannot be called.
        *([f"-Dgpunvme.program={sys.argv[0]}"] if Path(sys.argv[0]).name == "gpunvme" else []),
        f"-Dgpunvme.cufile={jars / 'cufile'}",
        *os.environ.get("GPUNVME_JAVA_OPTS", "").split(),
        # Its own has all that is in the jars.
        *([] if home == own else ["-p", str(jars)]),
        "-m",
        _MAIN,
        *arguments,
    ]


def main() -> None:
    """Becomes the command: signals and the exit code are its own."""
    words = command(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(words[0], words)


if __name__ == "__main__":
    main()
