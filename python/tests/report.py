"""Runs the tests for ../../test: one line for each, PASS, FAIL or SKIP; what went wrong goes before it.

report.py PREFIX [PATTERN]
"""

from __future__ import annotations

import signal
import sys
import unittest
from pathlib import Path
from typing import Any


class Lines(unittest.TestResult):
    def __init__(self, prefix: str) -> None:
        super().__init__()
        self.prefix = prefix
        self.bad: set[unittest.TestCase] = set()

    def name(self, test: Any) -> str:
        words = test.id().split(".")
        # setUpClass and modules that could not be imported have names of their own
        return f"{self.prefix} {'.'.join(words[-2:])}"

    def say(self, status: str, test: Any, why: str = "") -> None:
        print(f"{status} {self.name(test)}" + (f": {why}" if why else ""), flush=True)

    def addSuccess(self, test: unittest.TestCase) -> None:
        super().addSuccess(test)
        if test not in self.bad:
            self.say("PASS", test)

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        super().addSkip(test, reason)
        self.say("SKIP", test, reason)

    def addFailure(self, test: unittest.TestCase, err: Any) -> None:
        super().addFailure(test, err)
        self.failed(test, self.failures[-1][1])

    def addError(self, test: unittest.TestCase, err: Any) -> None:
        super().addError(test, err)
        self.failed(test, self.errors[-1][1])

    def addSubTest(self, test: unittest.TestCase, subtest: unittest.TestCase, err: Any) -> None:
        super().addSubTest(test, subtest, err)
        if err is not None:
            of = self.failures if issubclass(err[0], test.failureException) else self.errors
            if test not in self.bad:
                self.failed(test, f"{subtest}\n{of[-1][1]}")

    def failed(self, test: unittest.TestCase, text: str) -> None:
        self.bad.add(test)
        print("".join(f"  {line}\n" for line in text.splitlines()[-30:]), end="")
        self.say("FAIL", test, text.strip().splitlines()[-1][:200])


def main() -> int:
    # What runs in the background ignores it, and so would the processes of tests that are to be interrupted.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    prefix, pattern = sys.argv[1], (sys.argv[2:] or ["test_*.py"])[0]
    result = Lines(prefix)
    unittest.defaultTestLoader.discover(str(Path(__file__).parent), pattern).run(result)
    return 0 if result.testsRun else 1


if __name__ == "__main__":
    sys.exit(main())
