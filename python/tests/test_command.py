"""``python -m gpunvme``."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from unittest import mock

from support import PYTHON, Case, needs_real, run

from gpunvme import __main__ as command


class CommandTest(Case):
    def package(self) -> Path:
        package = self.folder() / "a" / "b" / "gpunvme"
        package.mkdir(parents=True)
        return package

    def java(self, version: str, home: Path | None = None) -> Path:
        home = home or self.folder()
        (home / "bin").mkdir(parents=True)
        (home / "bin" / "java").write_text("")
        (home / "bin" / "java").chmod(0o755)
        (home / "release").write_text(f'IMPLEMENTOR="somebody"\nJAVA_VERSION="{version}"\n')
        return home

    @contextlib.contextmanager
    def where(self, package: Path, **environment: str) -> object:
        with mock.patch.object(command, "__file__", str(package / "__main__.py")):
            with mock.patch.dict(os.environ, {"PATH": "/nowhere"} | environment, clear=True):
                yield

    def test_in_a_source_tree_it_is_the_launcher(self) -> None:
        self.assertEqual(command.command(["a", "b"]), [str(PYTHON.parent / "gpunvme"), "a", "b"])

    def test_in_a_wheel_it_is_the_java_of_the_wheel(self) -> None:
        package, other = self.package(), self.java("26")
        own = self.java("25.0.1", package / "app" / "runtime")
        with self.where(package, JAVA_HOME=str(other), GPUNVME_JAVA_OPTS="-Xmx1g -Da=b"):
            words = command.command(["identify", "sim:size=1MiB"])
        self.assertEqual(words[0], str(own / "bin" / "java"))
        self.assertIn("-Xmx1g", words)
        self.assertNotIn("-p", words)
        self.assertEqual(words[-3:], ["io.gpunvme.cli/io.gpunvme.cli.Main", "identify", "sim:size=1MiB"])

    def test_programs_for_cufile_are_started_without_java(self) -> None:
        package = self.package()
        start = str(package / "app" / "cufile" / "start")
        with self.where(package):
            (package / "app").mkdir()
            self.assertEqual(command.command(["cufile", "--", "ls", "--help"]), [start, "--", "ls", "--help"])
            self.java("25.0.1", package / "app" / "runtime")
            words = command.command(["cufile", "--log", "a", "--help"])
            self.assertEqual(words[-5:], ["io.gpunvme.cli/io.gpunvme.cli.Main", "cufile", "--log", "a", "--help"])
            self.assertIn(f"-Dgpunvme.cufile={package / 'app' / 'cufile'}", words)

    def test_java_is_told_how_it_was_called(self) -> None:
        package = self.package()
        self.java("25.0.1", package / "app" / "runtime")
        with self.where(package):
            for called, told in (("/venv/bin/gpunvme", ["-Dgpunvme.program=/venv/bin/gpunvme"]), ("/x/gpunvme/__main__.py", [])):
                with mock.patch.object(sys, "argv", [called]):
                    words = command.command([])
                self.assertEqual([word for word in words if "program" in word], told)

    def test_a_java_that_is_named_is_that_one_or_none(self) -> None:
        package, old, good = self.package(), self.java("17.0.2"), self.java("25")
        own = self.java("25.0.1", package / "app" / "runtime")
        for wrong in (old, Path("/nowhere")):
            with self.where(package, GPUNVME_JAVA_HOME=str(wrong)):
                with self.assertRaisesRegex(SystemExit, f"GPUNVME_JAVA_HOME, which is {wrong}"):
                    command.command([])
        with self.where(package, GPUNVME_JAVA_HOME=str(good)):
            words = command.command([])
            self.assertEqual(words[0], str(good / "bin" / "java"))
            self.assertEqual(words[words.index("-p") + 1], str(package / "app"))
        with self.where(package, GPUNVME_JAVA_HOME=""):
            self.assertEqual(command.find_java(own), own)

    def test_says_what_is_missing(self) -> None:
        package = self.package()
        with self.where(package), self.assertRaisesRegex(SystemExit, "not complete"):
            command.command([])
        (package / "app").mkdir()
        with self.where(package), self.assertRaisesRegex(SystemExit, "no Java in .*not complete"):
            command.command([])

    @needs_real
    def test_runs(self) -> None:
        done = run("import runpy, sys; sys.argv = ['gpunvme', '--version']; runpy.run_module('gpunvme', run_name='__main__')")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("gpunvme", done.stdout)
