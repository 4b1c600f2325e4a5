"""``python -m gpunvme ARGS`` is the command line, ``gpunvme ARGS``."""

from __future__ import annotations

import os
import re
import shutil
import sys
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


def find_java() -> Path | None:
    """As the C library does: what GPUNVME_JAVA_HOME names or none; else JAVA_HOME, PATH, the newest in /usr/lib/jvm."""
    named = os.environ.get("GPUNVME_JAVA_HOME")
    if named:
        # Another one would hide that it is wrong.
        return Path(named) if java_version(Path(named)) >= _OLDEST else None
    homes = [Path(os.environ["JAVA_HOME"])] if os.environ.get("JAVA_HOME") else []
    on_path = shutil.which("java")
    if on_path:
        homes.append(Path(on_path).resolve().parents[1])
    installed = Path("/usr/lib/jvm")
    if installed.is_dir():
        homes += sorted(installed.iterdir(), key=java_version, reverse=True)
    return next((h for h in homes if java_version(h) >= _OLDEST), None)


def command(arguments: list[str]) -> list[str]:
    """The command that runs the command line: a source tree's launcher, or Java with the jars next to this file."""
    package = Path(__file__).resolve().parent
    jars = package / "app"
    launcher = package.parents[2] / "gpunvme"
    if not jars.is_dir():
        if launcher.is_file():
            return [str(launcher), *arguments]
        raise SystemExit(f"gpunvme: no {jars} and no {launcher}: the package is not complete; install its wheel")
    home = find_java()
    if home is None:
        named = os.environ.get("GPUNVME_JAVA_HOME")
        where = f"in GPUNVME_JAVA_HOME, which is {named}" if named else "in JAVA_HOME, by java on PATH, in /usr/lib/jvm"
        raise SystemExit(
            f"gpunvme: no Java {_OLDEST} or newer {where}; install one (https://adoptium.net), or name its folder in"
            " GPUNVME_JAVA_HOME"
        )
    return [
        str(home / "bin" / "java"),
        "-XX:+UseSerialGC",
        "-Xlog:disable",
        "--enable-native-access=io.gpunvme.ffi,io.gpunvme.cuda",
        "--illegal-native-access=deny",
        *os.environ.get("GPUNVME_JAVA_OPTS", "").split(),
        "-p",
        str(jars),
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
