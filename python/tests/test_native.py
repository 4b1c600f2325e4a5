"""The declarations are those of the header, and failures become exceptions."""

from __future__ import annotations

import os
import pickle
import re
import unittest
from ctypes import POINTER, c_char_p, c_int, c_int32, c_size_t, c_uint8, c_uint32, c_uint64, c_void_p
from pathlib import Path
from typing import Any

from support import FAKE, PYTHON, Case, needs_fake, run

import gpunvme
from gpunvme import _native, errors

HEADER = PYTHON.parent / "capi" / "include" / "gpunvme.h"

PLAIN = {
    "int": c_int,
    "void": None,
    "int32_t": c_int32,
    "uint32_t": c_uint32,
    "uint64_t": c_uint64,
    "size_t": c_size_t,
    "gpunvme_cancelled": _native.Cancelled,
}
POINTED = {
    "gpunvme_range": POINTER(_native.Range),
    "gpunvme_info": POINTER(_native.Info),
    "gpunvme_plan_info": POINTER(_native.PlanInfo),
    "gpunvme_tensor_read": POINTER(_native.TensorRead),
    "gpunvme_layer_size": POINTER(_native.LayerSize),
    "gpunvme_layer_plan": POINTER(_native.LayerPlan),
    "uint8_t": POINTER(c_uint8),
    "gpunvme_quantized": POINTER(_native.Quantized),
    "gpunvme_kernel_options": POINTER(_native.KernelOptions),
    "gpunvme_cache_options": POINTER(_native.CacheOptions),
    "uint32_t": POINTER(c_uint32),
    "uint64_t": POINTER(c_uint64),
    "int32_t": POINTER(c_int32),
    "size_t": POINTER(c_size_t),
}
STRUCTURES = {
    "gpunvme_info": _native.Info,
    "gpunvme_range": _native.Range,
    "gpunvme_plan_info": _native.PlanInfo,
    "gpunvme_tensor_read": _native.TensorRead,
    "gpunvme_layer_size": _native.LayerSize,
    "gpunvme_layer_plan": _native.LayerPlan,
    "gpunvme_quantized": _native.Quantized,
    "gpunvme_kernel_options": _native.KernelOptions,
    "gpunvme_cache_options": _native.CacheOptions,
}


def header() -> str:
    return re.sub(r"/\*.*?\*/", "", HEADER.read_text(), flags=re.DOTALL)


def declared(text: str) -> Any:
    """The ctypes type of a parameter or result as C writes it."""
    text = text.replace("const ", "").replace("const*", "*").strip()
    stars = text.count("*")
    base = re.match(r"(struct )?(\w+)", text.replace("*", " "))
    assert base is not None
    name = base[2]
    if stars == 0:
        return PLAIN[name]
    if stars == 2:
        return POINTER(c_char_p) if name == "char" else POINTER(c_void_p)
    if name == "char":
        return c_char_p
    return POINTED.get(name, c_void_p)


class NativeTest(Case):
    def test_every_function_is_declared_as_in_the_header(self) -> None:
        found = re.findall(r"GPUNVME_API ([\w ]+?\**) ?(\w+)\(([^)]*)\);", header())
        self.assertEqual(sorted(n for _, n, _ in found), sorted(_native.FUNCTIONS))
        for result, name, parameters in found:
            with self.subTest(name):
                expected = [declared(p) for p in parameters.split(",")] if parameters.strip() != "void" else []
                have_result, have = _native.FUNCTIONS[name]
                if "char *text" in parameters:
                    expected[expected.index(c_char_p)] = c_void_p  # memory to write to
                self.assertEqual(expected, list(have))
                self.assertEqual(declared(result), have_result)

    def test_structures_are_those_of_the_header(self) -> None:
        for name, structure in STRUCTURES.items():
            body = re.search(r"typedef struct %s \{(.*?)\}" % name, header(), re.DOTALL)
            assert body is not None
            fields = [(f[1], declared(f[0])) for f in re.findall(r"((?:const )?\w+ \**)(\w+);", body[1])]
            self.assertEqual(fields, structure._fields_)

    def test_every_code_has_its_exception(self) -> None:
        enum = re.search(r"enum gpunvme_status \{(.*?)\}", header(), re.DOTALL)
        assert enum is not None
        codes = {int(v) for v in re.findall(r"= (-\d+)", enum[1])}
        self.assertEqual(codes, set(errors.BY_CODE))
        for kind in errors.BY_CODE.values():
            self.assertIn(kind.__name__, gpunvme.__all__)

    def test_the_version_of_the_package_is_the_librarys(self) -> None:
        self.assertEqual(gpunvme.__version__, gpunvme.version().split("-")[0])

    def test_exceptions_are_os_errors_with_errno(self) -> None:
        with self.assertRaises(FileNotFoundError) as missing:
            gpunvme.Storage("/nowhere/at/all", "cpu")
        self.assertIsInstance(missing.exception, gpunvme.NotFoundError)
        self.assertEqual(missing.exception.errno, 2)
        self.assertIn("/nowhere/at/all", str(missing.exception))
        with self.assertRaises(ValueError):
            gpunvme.Storage("no-such-scheme:1", "cpu")

    def test_names_without_a_colon_are_files(self) -> None:
        for name, expected in (
            ("a.bin", os.path.abspath("a.bin")),
            ("./a.bin?path=mmap", os.path.abspath("a.bin?path=mmap")),
            (Path("b:c"), os.path.abspath("b:c")),
            ("/d:e", "/d:e"),
            ("sim:size=1MiB", "sim:size=1MiB"),
            ("", ""),
        ):
            self.assertEqual(_native.encoded(name), expected.encode())

    def test_exceptions_cross_processes(self) -> None:
        for kind in errors.BY_CODE.values():
            for error in (0, 5):
                e = kind.of("it failed", error)
                again = pickle.loads(pickle.dumps(e))
                self.assertEqual((type(again), again.args, again.errno), (type(e), e.args, e.errno))

    @needs_fake
    def test_code_and_errno_come_from_the_library(self) -> None:
        for code, kind in errors.BY_CODE.items():
            with self.assertRaises(kind) as raised:
                gpunvme.Storage(f"fake:error={code},errno=71")
            self.assertEqual((raised.exception.code, raised.exception.errno), (code, 71))
        with self.assertRaises(gpunvme.InternalError):
            gpunvme.Storage("fake:error=-77")

    def test_a_null_in_an_address_is_refused(self) -> None:
        with self.assertRaises(ValueError):
            gpunvme.Storage("sim:size=1MiB\0,more")

    def test_says_where_the_library_was_looked_for(self) -> None:
        done = run("import gpunvme; gpunvme.version()", GPUNVME_LIBRARY="/nowhere/libgpunvme.so")
        self.assertIn("NotFoundError", done.stderr)
        self.assertIn("/nowhere/libgpunvme.so", done.stderr)

    def test_a_library_of_another_version_is_refused(self) -> None:
        # The C library has none of the functions.
        maps = Path("/proc/self/maps").read_text().split()
        where = next(word for word in maps if "/libc.so" in word or "/libc-" in word)
        done = run("import gpunvme; gpunvme.version()", GPUNVME_LIBRARY=where)
        self.assertIn("another version", done.stderr)

    def test_importing_loads_nothing(self) -> None:
        done = run(
            "import sys, gpunvme; print([m for m in ('numpy', 'torch', 'cupy') if m in sys.modules])",
            GPUNVME_LIBRARY="/nowhere/libgpunvme.so",
        )
        self.assertEqual(done.stdout.strip(), "[]", done.stderr)

    @needs_fake
    def test_start_says_what_is_wrong(self) -> None:
        with self.assertRaises(gpunvme.JavaError):
            gpunvme.start("/nowhere/java")
        gpunvme.start(None, ["-Xmx1g"])


if __name__ == "__main__":
    print("fake" if FAKE else "real")
    unittest.main()
