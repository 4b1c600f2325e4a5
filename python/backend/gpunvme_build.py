"""Builds the wheel: the package, libgpunvme.so, and all jars. A build backend (PEP 517, 660) without dependencies.

The library and the jars have to be built before: capi/target and cli/target of the source tree.
"""

from __future__ import annotations

import base64
import hashlib
import sysconfig
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parents[1]
ROOT = HERE.parent
LIBRARY = ROOT / "capi" / "target" / "libgpunvme.so"
APPS = (ROOT / "capi" / "target" / "app", ROOT / "cli" / "target" / "app")

# The oldest time that a zip file can hold: equal contents give equal wheels.
_TIME = (1980, 1, 1, 0, 0, 0)


def _project() -> dict[str, Any]:
    with open(HERE / "pyproject.toml", "rb") as file:
        project: dict[str, Any] = tomllib.load(file)["project"]
    return project


def _sources() -> Iterator[tuple[str, bytes]]:
    source = HERE / "src"
    for path in sorted(source.rglob("*")):
        if path.is_file() and path.suffix in (".py", ".typed"):
            yield path.relative_to(source).as_posix(), path.read_bytes()


def _natives() -> Iterator[tuple[str, bytes]]:
    missing = [str(p) for p in (LIBRARY, *APPS) if not p.exists()]
    if missing:
        raise SystemExit(f"not built: {', '.join(missing)}; run ./test, or ./gpunvme --version and mvn -pl capi -am package")
    yield "gpunvme/libgpunvme.so", LIBRARY.read_bytes()
    jars: dict[str, Path] = {}
    for app in APPS:
        for jar in app.glob("*.jar"):
            jars.setdefault(jar.name, jar)
    for name in sorted(jars):
        yield f"gpunvme/app/{name}", jars[name].read_bytes()


def _metadata(project: dict[str, Any], folder: str, tag: str) -> Iterator[tuple[str, bytes]]:
    core = [
        "Metadata-Version: 2.4",
        f"Name: {project['name']}",
        f"Version: {project['version']}",
        f"Summary: {project['description']}",
        f"Requires-Python: {project['requires-python']}",
        "License-File: LICENSE",
    ]
    wheel = ["Wheel-Version: 1.0", "Generator: gpunvme_build", "Root-Is-Purelib: false", f"Tag: {tag}"]
    yield f"{folder}/METADATA", "\n".join([*core, "", ""]).encode()
    yield f"{folder}/WHEEL", "\n".join([*wheel, ""]).encode()
    yield f"{folder}/entry_points.txt", b"[console_scripts]\ngpunvme = gpunvme.__main__:main\n"
    yield f"{folder}/licenses/LICENSE", (ROOT / "LICENSE").read_bytes()


def _write(directory: str | Path, files: list[tuple[str, bytes]]) -> str:
    project = _project()
    tag = f"py3-none-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
    stem = f"{project['name']}-{project['version']}"
    folder = f"{stem}.dist-info"
    files = [*files, *_metadata(project, folder, tag)]
    record = []
    for name, data in files:
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record.append(f"{name},sha256={digest},{len(data)}")
    record.append(f"{folder}/RECORD,,")
    files.append((f"{folder}/RECORD", "\n".join([*record, ""]).encode()))
    name = f"{stem}-{tag}.whl"
    Path(directory).mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(Path(directory, name), "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, data in files:
            info = zipfile.ZipInfo(path, _TIME)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = (0o755 if path.endswith(".so") else 0o644) << 16
            wheel.writestr(info, data)
    return name


def build_wheel(directory: str, config_settings: Any = None, metadata_directory: Any = None) -> str:
    """Of PEP 517."""
    return _write(directory, [*_sources(), *_natives()])


def build_editable(directory: str, config_settings: Any = None, metadata_directory: Any = None) -> str:
    """Of PEP 660: the package where it is; it finds the library in capi/target."""
    return _write(directory, [("gpunvme.pth", f"{HERE / 'src'}\n".encode())])


def build_sdist(directory: str, config_settings: Any = None) -> str:
    """Of PEP 517. Sources are the whole repository's, not this folder's."""
    raise SystemExit("a source distribution would have no Java sources; use the repository, or its wheel")
