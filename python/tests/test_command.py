"""``python -m gpunvme``."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from unittest import mock

from support import PYTHON, Case, needs_real, run

from gpunvme import __main__ as command


class CommandTest(Case):
    def package(self) -> Path:
        package = self.folder() / "a" / "b" / "gpunvme"
        package.mkdir(parents=True)
        return package

    def java(self, version: str) -> Path:
        home = self.folder()
        (home / "bin").mkdir()
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

    def test_in_a_wheel_it_is_java(self) -> None:
        package, home = self.package(), self.java("25.0.1")
        (package / "app").mkdir()
        with self.where(package, JAVA_HOME=str(home), GPUNVME_JAVA_OPTS="-Xmx1g -Da=b"):
            words = command.command(["identify", "sim:size=1MiB"])
        self.assertEqual(words[0], str(home / "bin" / "java"))
        self.assertIn("-Xmx1g", words)
        self.assertEqual(words[words.index("-p") + 1], str(package / "app"))
        self.assertEqual(words[-3:], ["io.gpunvme.cli/io.gpunvme.cli.Main", "identify", "sim:size=1MiB"])

    def test_java_is_looked_for_in_order(self) -> None:
        package, old, first, second = self.package(), self.java("17.0.2"), self.java("26"), self.java("25")
        with self.where(package, GPUNVME_JAVA_HOME=str(first), JAVA_HOME=str(second)):
            self.assertEqual(command.find_java(), first)
        with self.where(package, JAVA_HOME=str(second)):
            self.assertEqual(command.find_java(), second)
        with self.where(package, JAVA_HOME=str(old), PATH=str(first / "bin")):
            self.assertEqual(command.find_java(), first)

    def test_a_java_that_is_named_is_that_one_or_none(self) -> None:
        package, old, good = self.package(), self.java("17.0.2"), self.java("25")
        (package / "app").mkdir()
        for wrong in (old, Path("/nowhere")):
            with self.where(package, GPUNVME_JAVA_HOME=str(wrong), JAVA_HOME=str(good)):
                self.assertIsNone(command.find_java())
                with self.assertRaisesRegex(SystemExit, f"GPUNVME_JAVA_HOME, which is {wrong}"):
                    command.command([])
        with self.where(package, GPUNVME_JAVA_HOME="", JAVA_HOME=str(good)):
            self.assertEqual(command.find_java(), good)

    def test_says_what_is_missing(self) -> None:
        package = self.package()
        with self.where(package), self.assertRaisesRegex(SystemExit, "not complete"):
            command.command([])
        (package / "app").mkdir()
        with self.where(package), mock.patch.object(command, "find_java", lambda: None):
            with self.assertRaisesRegex(SystemExit, "no Java 25"):
                command.command([])

    @needs_real
    def test_runs(self) -> None:
        done = run("import runpy, sys; sys.argv = ['gpunvme', '--version']; runpy.run_module('gpunvme', run_name='__main__')")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("gpunvme", done.stdout)
