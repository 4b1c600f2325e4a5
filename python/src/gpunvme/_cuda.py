"""The few CUDA calls for arrays of other libraries: waiting for a stream. Loaded only when such an array comes."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_int, c_uint64, c_void_p
from functools import cache
from typing import Any, Final

from .errors import AcceleratorError

_POINTER_CONTEXT: Final = 1  # CU_POINTER_ATTRIBUTE_CONTEXT


@cache
def _driver() -> Any:
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError as e:
        raise AcceleratorError.of(f"this is memory of a GPU, but there is no CUDA driver here: {e}") from e
    driver.cuPointerGetAttribute.argtypes = (c_void_p, c_int, c_uint64)
    driver.cuCtxPushCurrent_v2.argtypes = (c_void_p,)
    driver.cuCtxPopCurrent_v2.argtypes = (c_void_p,)
    driver.cuStreamSynchronize.argtypes = (c_void_p,)
    return driver


def synchronize(stream: int, address: int) -> None:
    """Waits for a stream, as ``__cuda_array_interface__`` names it, in the context that the memory belongs to."""
    driver = _driver()
    context = c_void_p()
    pushed = (
        driver.cuPointerGetAttribute(byref(context), _POINTER_CONTEXT, address) == 0
        and bool(context.value)
        and driver.cuCtxPushCurrent_v2(context) == 0
    )
    try:
        code = driver.cuStreamSynchronize(stream)
    finally:
        if pushed:
            driver.cuCtxPopCurrent_v2(byref(context))
    if code != 0:
        raise AcceleratorError.of(f"cuStreamSynchronize failed with CUDA's error {code}")
