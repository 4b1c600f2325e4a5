"""Builds the wheel: the package, libgpunvme.so, the device library, all jars, and a Java runtime. A build backend (PEP 517, 660) without dependencies.

All but the package is what scripts/package has packed before.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import stat
import sysconfig
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parents[1]
ROOT = HERE.parent
PACKED = Path(os.environ.get("GPUNVME_PACKAGE_DIR") or ROOT / "build" / "package") / "tree"

# The names of versions that an ELF file asks for.
_GLIBC = re.compile(rb"\0GLIBC_([0-9]+\.[0-9]+)")

# The oldest time that a zip file can hold: equal contents give equal wheels.
_TIME = (1980, 1, 1, 0, 0, 0)


def _project() -> dict[str, Any]:
    with open(HERE / "pyproject.toml", "rb") as file:
        project: dict[str, Any] = tomllib.load(file)["project"]
    return project


def _sources() -> Iterator[tuple[str, bytes, bool]]:
    source = HERE / "src"
    for path in sorted(source.rglob("*")):
        if path.is_file() and path.suffix in (".py", ".typed"):
            yield path.relative_to(source).as_posix(), path.read_bytes(), False


def _natives() -> Iterator[tuple[str, bytes, bool]]:
    library, app, headers = PACKED / "lib" / "libgpunvme.so", PACKED / "lib" / "gpunvme", PACKED / "include" / "gpunvme"
    if not (library.is_file() and (app / "runtime").is_dir() and (headers / "gpunvme.cuh").is_file()):
        raise SystemExit(f"no library, runtime and headers in {PACKED}: scripts/package wheel packs them, and makes the wheel")
    yield "gpunvme/libgpunvme.so", library.read_bytes(), True
    # The device library, where the C library looks for it.
    for path in sorted(headers.glob("*.cuh")):
        yield f"gpunvme/include/gpunvme/{path.name}", path.read_bytes(), False
    for path in sorted(app.rglob("*")):
        if path.is_file():
            yield f"gpunvme/app/{path.relative_to(app).as_posix()}", path.read_bytes(), os.access(path, os.X_OK)


def _metadata(project: dict[str, Any], folder: str, tag: str) -> Iterator[tuple[str, bytes, bool]]:
    core = [
        "Metadata-Version: 2.4",
        f"Name: {project['name']}",
        f"Version: {project['version']}",
        f"Summary: {project['description']}",
        f"Requires-Python: {project['requires-python']}",
        *_extras(project),
        "License-File: LICENSE",
    ]
    wheel = ["Wheel-Version: 1.0", "Generator: gpunvme_build", "Root-Is-Purelib: false", f"Tag: {tag}"]
    yield f"{folder}/METADATA", "\n".join([*core, "", ""]).encode(), False
    yield f"{folder}/WHEEL", "\n".join([*wheel, ""]).encode(), False
    yield f"{folder}/entry_points.txt", b"[console_scripts]\ngpunvme = gpunvme.__main__:main\n", False
    yield f"{folder}/licenses/LICENSE", (ROOT / "LICENSE").read_bytes(), False


def _extras(project: dict[str, Any]) -> Iterator[str]:
    for extra, requirements in project.get("optional-dependencies", {}).items():
        yield f"Provides-Extra: {extra}"
        for requirement in requirements:
            yield f"Requires-Dist: {requirement}; extra == '{extra}'"


def _platform(files: list[tuple[str, bytes, bool]]) -> str:
    """Of this machine, with the oldest C library that has all that libgpunvme.so and the runtime ask for."""
    machine = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    asked = {tuple(map(int, v.split(b"."))) for _, data, _ in files if data[:4] == b"\x7fELF" for v in _GLIBC.findall(data)}
    return machine.replace("linux", "manylinux_" + "_".join(map(str, max(asked)[:2])), 1) if asked else machine


def _write(directory: str | Path, files: list[tuple[str, bytes, bool]]) -> str:
    """Files are names, contents, and whether they are programs or libraries."""
    project = _project()
    tag = f"py3-none-{_platform(files)}"
    stem = f"{project['name']}-{project['version']}"
    folder = f"{stem}.dist-info"
    files = [*files, *_metadata(project, folder, tag)]
    record = []
    for name, data, _ in files:
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record.append(f"{name},sha256={digest},{len(data)}")
    record.append(f"{folder}/RECORD,,")
    files.append((f"{folder}/RECORD", "\n".join([*record, ""]).encode(), False))
    name = f"{stem}-{tag}.whl"
    Path(directory).mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(Path(directory, name), "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, data, executable in files:
            info = zipfile.ZipInfo(path, _TIME)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = (stat.S_IFREG | (0o755 if executable else 0o644)) << 16
            wheel.writestr(info, data)
    return name


def build_wheel(directory: str, config_settings: Any = None, metadata_directory: Any = None) -> str:
    """Of PEP 517."""
    return _write(directory, [*_sources(), *_natives()])


def build_editable(directory: str, config_settings: Any = None, metadata_directory: Any = None) -> str:
    """Of PEP 660: the package where it is; it finds the library in capi/target."""
    return _write(directory, [("gpunvme.pth", f"{HERE / 'src'}\n".encode(), False)])


def build_sdist(directory: str, config_settings: Any = None) -> str:
    """Of PEP 517. Sources are the whole repository's, not this folder's."""
    raise SystemExit("a source distribution would have no Java sources; use the repository, or its wheel")
