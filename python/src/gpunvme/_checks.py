"""Checks of numbers and types for the C library: ctypes silently cuts numbers that are too large."""

from __future__ import annotations

import math
import re
from typing import Any, Final

# As in numpy's typestr: byte order, kind, length, and the unit of times.
_TYPE: Final = re.compile(r"[<>|=]([biufcmMSUV])([1-9][0-9]{0,9})(?:\[[^\]]*\])?")

_BYTES_OF_CHARACTER: Final = 4  # of numpy's texts, which are counted in characters


def whole(value: Any, what: str, least: int, most: int) -> int:
    """The number as an int in that range. Takes an int, also NumPy's and the like, or a float without a fraction."""
    number = int(value)
    if number != value or not least <= number <= most:
        raise ValueError(f"{what} must be a whole number from {least} to {most}: {value!r}")
    return number


def unsigned(value: Any, what: str, bits: int = 64) -> int:
    return whole(value, what, 0, (1 << bits) - 1)


def signed(value: Any, what: str, bits: int = 32) -> int:
    return whole(value, what, -(1 << bits - 1), (1 << bits - 1) - 1)


_UNITS: Final = {"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


def size(value: Any, what: str) -> int:
    """Bytes: a whole number, or a text such as "8GiB" or "1.5 GB"."""
    if not isinstance(value, str):
        return unsigned(value, what)
    found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*", value)
    unit = None if found is None else _UNITS.get(found[2])
    if found is None or unit is None:
        raise ValueError(f"{what} is a number of bytes such as 8GiB, not {value!r}")
    return unsigned(math.floor(float(found[1]) * unit) if "." in found[1] else int(found[1]) * unit, what)


def item_bytes(typestr: str) -> int | None:
    """Bytes of an element of a type such as "<f4" or "<M8[ns]"; None if it is not plain memory."""
    found = _TYPE.fullmatch(typestr)
    if found is None:
        return None
    return int(found[2]) * (_BYTES_OF_CHARACTER if found[1] == "U" else 1)
