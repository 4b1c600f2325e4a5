"""The C library, declared as ``gpunvme.h`` has it. The only module that calls it without a check.

ctypes gives the interpreter's lock away during each call.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
from collections.abc import Callable, Generator
from ctypes import CFUNCTYPE, POINTER, Structure, c_char_p, c_int, c_int32, c_size_t, c_uint8, c_uint32, c_uint64, c_void_p
from pathlib import Path
from typing import Any, Final

from .errors import BY_CODE, ForkedError, GpuNvmeError, InternalError, NotFoundError

OK: Final = 0
PENDING: Final = 1
WRITE: Final = 1
FOREVER: Final = 2**64 - 1

# A main thread looks for signals as often as this while it waits.
SLICE_NS: Final = 100_000_000


class Info(Structure):
    _fields_ = [
        ("size", c_uint64),
        ("gpu_bytes", c_uint64),
        ("alignment", c_uint32),
        ("block_bytes", c_uint32),
        ("gpu", c_uint32),
        ("device", c_uint32),
    ]


class Range(Structure):
    _fields_ = [("offset", c_uint64), ("address", c_uint64), ("bytes", c_uint64)]


class PlanInfo(Structure):
    _fields_ = [
        ("ios", c_uint64),
        ("bytes", c_uint64),
        ("bytes_overread", c_uint64),
        ("bytes_staged", c_uint64),
    ]


class TensorRead(Structure):
    _fields_ = [
        ("tensor", c_uint32),
        ("dimension", c_int32),
        ("start", c_uint64),
        ("stop", c_uint64),
        ("address", c_uint64),
        ("capacity", c_uint64),
    ]


class LayerSize(Structure):
    _fields_ = [
        ("stored", c_uint64),
        ("used", c_uint64),
        ("unconverted", c_uint64),
        ("converted", c_uint64),
        ("experts", c_uint64),
        ("router", c_uint64),
    ]


class LayerPlan(Structure):
    _fields_ = [
        ("slot_bytes", c_uint64),
        ("ring_bytes", c_uint64),
        ("resident_bytes", c_uint64),
        ("converted_bytes", c_uint64),
        ("device_bytes", c_uint64),
        ("pass_bytes", c_uint64),
        ("expert_slot_bytes", c_uint64),
        ("expert_ring_bytes", c_uint64),
        ("router_bytes", c_uint64),
        ("slots", c_uint32),
        ("reads", c_uint32),
        ("expert_slots", c_uint32),
    ]


class Quantized(Structure):
    _fields_ = [
        ("type", c_char_p),
        ("source", c_uint64),
        ("target_type", c_char_p),
        ("target", c_uint64),
        ("rows", c_uint64),
        ("columns", c_uint64),
        ("scales", c_uint64),
        ("block_rows", c_uint64),
        ("block_columns", c_uint64),
    ]


class KernelOptions(Structure):
    _fields_ = [
        ("placement", c_uint32),
        ("queue_pairs", c_uint32),
        ("depth", c_uint32),
        ("buffers", c_uint32),
        ("nsid", c_uint32),
        ("flags", c_uint32),
    ]


class CacheOptions(Structure):
    _fields_ = [
        ("bytes", c_uint64),
        ("host_bytes", c_uint64),
        ("timeout_ns", c_uint64),
        ("page_bytes", c_uint32),
        ("flags", c_uint32),
    ]


Cancelled = CFUNCTYPE(c_int, c_void_p)

_handle = c_void_p
_handle_out = POINTER(c_void_p)
_u64_out = POINTER(c_uint64)
_u64s = POINTER(c_uint64)
_text = (_handle, c_void_p, c_size_t, POINTER(c_size_t))
_many = (_handle, POINTER(Range), c_size_t)
_one = (_handle, c_uint64, c_uint64, c_uint64)

# name: (what it returns, what it takes)
FUNCTIONS: Final[dict[str, tuple[Any, tuple[Any, ...]]]] = {
    "gpunvme_version": (c_char_p, ()),
    "gpunvme_last_error": (c_char_p, ()),
    "gpunvme_last_errno": (c_int, ()),
    "gpunvme_start": (c_int, (c_char_p, POINTER(c_char_p), c_size_t)),
    "gpunvme_open": (c_int, (c_char_p, c_char_p, c_uint32, _handle_out)),
    "gpunvme_close": (c_int, (_handle,)),
    "gpunvme_storage_on": (c_int, (_handle, c_char_p, _handle_out)),
    "gpunvme_get_info": (c_int, (_handle, POINTER(Info))),
    "gpunvme_read": (c_int, _one),
    "gpunvme_write": (c_int, _one),
    "gpunvme_flush": (c_int, (_handle,)),
    "gpunvme_read_ranges": (c_int, _many),
    "gpunvme_write_ranges": (c_int, _many),
    "gpunvme_read_ranges_cancellable": (c_int, (*_many, Cancelled, c_void_p)),
    "gpunvme_write_ranges_cancellable": (c_int, (*_many, Cancelled, c_void_p)),
    "gpunvme_submit_read": (c_int, (*_many, _handle_out)),
    "gpunvme_submit_write": (c_int, (*_many, _handle_out)),
    "gpunvme_submit_read_on_stream": (c_int, (*_one, c_void_p, _handle_out)),
    "gpunvme_submit_write_on_stream": (c_int, (*_one, c_void_p, _handle_out)),
    "gpunvme_poll": (c_int, (_handle,)),
    "gpunvme_wait": (c_int, (_handle, c_uint64)),
    "gpunvme_cancel": (c_int, (_handle,)),
    "gpunvme_request_free": (c_int, (_handle,)),
    "gpunvme_plan": (c_int, (*_many, POINTER(PlanInfo))),
    "gpunvme_stats": (c_int, _text),
    "gpunvme_explain": (c_int, _text),
    "gpunvme_allocate": (c_int, (_handle, c_uint64, _u64_out)),
    "gpunvme_free": (c_int, (_handle, c_uint64)),
    "gpunvme_copy_to_host": (c_int, (_handle, c_void_p, c_uint64, c_uint64)),
    "gpunvme_copy_from_host": (c_int, (_handle, c_uint64, c_void_p, c_uint64)),
    "gpunvme_memory_allocate": (c_int, (c_char_p, c_uint64, _u64_out)),
    "gpunvme_memory_free": (c_int, (c_char_p, c_uint64)),
    "gpunvme_memory_copy_to_host": (c_int, (c_char_p, c_void_p, c_uint64, c_uint64)),
    "gpunvme_memory_copy_from_host": (c_int, (c_char_p, c_uint64, c_void_p, c_uint64)),
    "gpunvme_kinds_open": (c_int, (_handle, _handle_out)),
    "gpunvme_kinds_add": (c_int, (_handle, c_int32, c_uint64, c_uint64, c_uint64)),
    "gpunvme_kinds_read": (c_int, (_handle, c_int32, c_uint64, c_uint64, c_uint64)),
    "gpunvme_kinds_read_many": (
        c_int,
        (_handle, POINTER(c_int32), _u64s, _u64s, c_size_t, c_uint64, c_uint64),
    ),
    "gpunvme_kinds_close": (c_int, (_handle,)),
    "gpunvme_layer_loader_init": (c_int, (_handle, c_uint64, c_uint32, _handle_out)),
    "gpunvme_load_layer": (c_int, _one),
    "gpunvme_prefetch_layers": (c_int, (_handle, _u64s, _u64s, c_size_t)),
    "gpunvme_next_layer": (c_int, (_handle, c_void_p, _u64_out, _u64_out)),
    "gpunvme_layer_loader_destroy": (c_int, (_handle,)),
    "gpunvme_weights_layer_loader_init": (c_int, (_handle, c_uint64, c_uint32, _handle_out)),
    "gpunvme_prefetch_tensors": (c_int, (_handle, c_char_p, POINTER(TensorRead), c_size_t)),
    "gpunvme_take_layer": (c_int, (_handle, c_void_p, _u64_out, _u64_out)),
    "gpunvme_cancel_layers": (c_int, (_handle,)),
    "gpunvme_layer_loader_stats": (c_int, _text),
    "gpunvme_weights_open": (c_int, (c_char_p, c_char_p, _handle_out)),
    "gpunvme_weights_describe": (c_int, _text),
    "gpunvme_weights_stats": (c_int, _text),
    "gpunvme_weights_shards": (c_int, (_handle, c_char_p, c_uint32, POINTER(c_int32), c_size_t)),
    "gpunvme_weights_read": (c_int, (_handle, POINTER(TensorRead), c_size_t)),
    "gpunvme_weights_close": (c_int, (_handle,)),
    "gpunvme_plan_layers": (
        c_int,
        (POINTER(LayerSize), c_size_t, c_uint64, c_uint32, POINTER(LayerPlan), POINTER(c_uint8)),
    ),
    "gpunvme_dequantize": (c_int, (c_char_p, POINTER(Quantized), c_size_t, c_void_p)),
    "gpunvme_include_dir": (c_int, _text[1:]),
    "gpunvme_kernel_storage_open": (c_int, (_handle_out, c_size_t, POINTER(KernelOptions), _handle_out)),
    "gpunvme_kernel_storage_close": (c_int, (_handle,)),
    "gpunvme_kernel_storage_handle": (c_int, (_handle, _handle_out)),
    "gpunvme_kernel_storage_device_handle": (c_int, (_handle, _u64_out)),
    "gpunvme_kernel_storage_register": (c_int, (_handle, c_uint64, c_uint64, POINTER(c_uint32), _u64_out)),
    "gpunvme_kernel_storage_unregister": (c_int, (_handle, c_uint32)),
    "gpunvme_kernel_storage_file": (c_int, (_handle, _handle, _u64_out)),
    "gpunvme_kernel_storage_directory": (c_int, (_handle, _handle, c_char_p, c_uint32, _u64_out)),
    "gpunvme_kernel_storage_skipped": (c_int, (_handle, c_uint64, *_text[1:])),
    "gpunvme_kernel_storage_free": (c_int, (_handle, c_uint64)),
    "gpunvme_kernel_storage_await": (c_int, (_handle, c_void_p, c_uint64, Cancelled, c_void_p)),
    "gpunvme_kernel_storage_await_event": (c_int, (_handle, c_void_p, c_uint64, Cancelled, c_void_p)),
    "gpunvme_kernel_storage_stop": (c_int, (_handle, c_int)),
    "gpunvme_kernel_storage_recover": (c_int, (_handle,)),
    "gpunvme_kernel_storage_recoveries": (c_int, (_handle, _u64_out)),
    "gpunvme_kernel_storage_errors": (c_int, _text),
    "gpunvme_cache_open": (c_int, (_handle, POINTER(CacheOptions), _handle_out)),
    "gpunvme_cache_close": (c_int, (_handle,)),
    "gpunvme_cache_array": (c_int, (_handle, _handle, c_uint64, c_uint64, c_uint32, c_uint32, _u64_out)),
    "gpunvme_cache_flush": (c_int, (_handle, c_uint64)),
    "gpunvme_cache_counters": (c_int, _text),
    "gpunvme_rows_open": (c_int, (_handle, _handle, c_uint64, c_uint64, c_uint64, c_uint32, _handle_out)),
    "gpunvme_rows_close": (c_int, (_handle,)),
    "gpunvme_rows_gather": (c_int, (_handle, c_uint64, c_uint64, c_uint64, c_void_p)),
    "gpunvme_rows_fetch": (c_int, (_handle, c_uint64, c_uint64, c_void_p)),
    "gpunvme_rows_update": (c_int, (_handle, c_uint64, c_uint64, c_uint64, c_void_p)),
    "gpunvme_rows_synchronize": (c_int, (_handle,)),
    "nvme_gpu_init": (_handle, (c_char_p,)),
    "nvme_gpu_read": (c_int, (_handle, c_uint64, c_uint64, c_void_p)),
    "nvme_gpu_read_async": (c_int, (_handle, c_uint64, c_uint64, c_void_p, c_void_p)),
    "nvme_gpu_write": (c_int, (_handle, c_uint64, c_uint64, c_void_p)),
    "nvme_gpu_write_async": (c_int, (_handle, c_uint64, c_uint64, c_void_p, c_void_p)),
    "nvme_gpu_synchronize": (c_int, (_handle,)),
    "nvme_gpu_cleanup": (None, (_handle,)),
    "nvme_read_request_create": (_handle, (_handle,)),
    "nvme_read_request_add_kind": (c_int, (_handle, c_int, c_uint64, c_uint64, c_uint64)),
    "read_nvme_kind": (c_int, (_handle, c_int, c_uint64, c_uint64, c_void_p)),
    "nvme_read_request_destroy": (None, (_handle,)),
}

_loading = threading.Lock()
_loaded: ctypes.CDLL | None = None


def places() -> list[Path]:
    """The places to look for the library, in order; only GPUNVME_LIBRARY if it is set."""
    named = os.environ.get("GPUNVME_LIBRARY")
    if named:
        return [Path(named)]
    package = Path(__file__).resolve().parent
    return [package / "libgpunvme.so", package.parents[2] / "capi" / "target" / "libgpunvme.so"]


def lib() -> Any:
    """The library, loaded by the first call. Any thread."""
    global _loaded
    if _loaded is None:
        with _loading:
            if _loaded is None:
                _loaded = _load()
    return _loaded


def _load() -> ctypes.CDLL:
    looked = places()
    found = next((p for p in looked if p.is_file()), None)
    try:
        # The last resort is what the system's loader knows: an installed libgpunvme.
        library = ctypes.CDLL(str(found or "libgpunvme.so"))
    except OSError as e:
        if found is None:
            raise NotFoundError.of(
                f"libgpunvme.so was found neither in {', '.join(map(str, looked))} nor by the system's loader;"
                " build it with ./test, or set GPUNVME_LIBRARY"
            ) from e
        raise GpuNvmeError.of(f"{found} cannot be loaded: {e}") from e
    for name, (result, arguments) in FUNCTIONS.items():
        try:
            function = getattr(library, name)
        except AttributeError as e:
            raise GpuNvmeError.of(
                f"{found or library._name} has no {name}: it is of another version than this package"
            ) from e
        function.restype = result
        function.argtypes = arguments
    return library


def version() -> str:
    """Of the C library."""
    text: bytes = lib().gpunvme_version()
    return text.decode()


def failure(code: int) -> GpuNvmeError:
    """The exception for the failure of this thread's last call."""
    library = lib()
    text: bytes = library.gpunvme_last_error() or b""
    error: int = library.gpunvme_last_errno()
    message = text.decode("utf-8", "replace") or f"failed with code {code}"
    kind = BY_CODE.get(code, InternalError)
    if kind is ForkedError:
        message += (
            " (start processes with multiprocessing.get_context('spawn'), or use the library in the child only)"
        )
    return kind.of(message, error)


def check(code: int) -> int:
    """Returns the code, or raises the exception if it is a failure."""
    if code < 0:
        raise failure(code)
    return code


def read_text(function: Callable[..., int], *handle: int) -> str:
    """Calls a function that fills in text, with as much room as it needs."""
    capacity = 16384
    while True:
        text = ctypes.create_string_buffer(capacity)
        needed = c_size_t()
        check(function(*handle, text, capacity, ctypes.byref(needed)))
        if needed.value <= capacity:
            return text.value.decode("utf-8", "replace")
        capacity = needed.value


def encoded(text: str | os.PathLike[str]) -> bytes:
    """An address as the C library takes it. A path object, or a text without a colon, is a file's name."""
    is_name = not isinstance(text, str) or (text != "" and ":" not in text)
    plain = os.fsencode(os.path.abspath(text) if is_name else text)
    if b"\0" in plain:
        raise ValueError("an address has no null characters in it")
    return plain


def accelerator(name: str | None) -> bytes | None:
    """The name of an accelerator as the C library takes it."""
    return None if name is None else without_null(name, "an accelerator")


def without_null(text: str, what: str) -> bytes:
    plain = text.encode()
    if b"\0" in plain:
        raise ValueError(f"{what} has no null characters in it: {text!r}")
    return plain


def start(java_home: str | None = None, options: list[str] | None = None) -> None:
    """Starts the Java virtual machine. Other calls start it by themselves; this chooses the Java or its options."""
    given = [without_null(o, "an option") for o in options or []]
    array = (c_char_p * len(given))(*given) if given else None
    home = without_null(java_home, "a folder") if java_home else None
    check(lib().gpunvme_start(home, array, len(given)))


def _answers(raised: list[BaseException]) -> Generator[int, object, None]:
    """What a call hears: 1 when a signal handler has raised.

    Handlers run where a generator goes on, and there what they raise can be caught. At the beginning of a function it
    cannot, and would be lost in the library.
    """
    while True:
        try:
            yield 1 if raised else 0
        except GeneratorExit:
            raise
        except BaseException as e:
            raised.append(e)


class _Watch:
    """Lets signal handlers run while the main thread is in a call."""

    def __init__(self) -> None:
        self.raised: list[BaseException] = []
        answers = _answers(self.raised)
        next(answers)
        self.cancelled = Cancelled(answers.send)


_NOBODY: Final = Cancelled()
_watches: list[_Watch] = []  # that nobody uses; a handler may need one more while it runs


def cancellable(function: Callable[..., int], *arguments: Any) -> None:
    """Calls a function that asks now and then whether to end. What a signal handler raises meanwhile ends it, and is raised."""
    # Signals come to the main thread, and no other could run their handlers.
    if threading.current_thread() is not threading.main_thread():
        check(function(*arguments, _NOBODY, None))
        return
    watch = _watches.pop() if _watches else _Watch()
    code = function(*arguments, watch.cancelled, None)
    if watch.raised:
        raise watch.raised.pop(0)
    _watches.append(watch)
    check(code)


def interruptible(call: Callable[[], int], stop: Callable[[], object]) -> None:
    """Makes a call without a time limit so that Ctrl-C ends it: ``stop`` must make it return.

    What the call names is kept until it is over. Signals are for the main thread, so others simply call.
    """
    if threading.current_thread() is not threading.main_thread():
        check(call())
        return
    # Whoever takes it decides: the thread makes the call, or nobody does.
    todo = [call]
    failed: list[BaseException] = []
    over = threading.Event()

    def run() -> None:
        try:
            # Its last name is gone when it is over, and so is what it keeps.
            check(todo.pop()())
        except BaseException as e:
            failed.append(e)
        finally:
            over.set()

    del call
    try:
        # Not joined: a join that is interrupted takes the thread for ended (CPython 3.11).
        threading.Thread(target=run, name="gpunvme-call", daemon=True).start()
        while not over.wait(SLICE_NS / 1e9):
            pass
    except BaseException:
        # The signal may have come before the thread began, as it began, or later.
        try:
            todo.pop()
        except IndexError:
            _end(over, stop)
        failed.clear()
        raise
    if failed:
        error = failed.pop()
        try:
            raise error
        finally:
            del error  # its frames hold it


def _end(over: threading.Event, stop: Callable[[], object]) -> None:
    """Ends a call and waits for that, however often it is interrupted: the memory is at work until then."""
    while not over.is_set():
        with contextlib.suppress(BaseException):  # of signal handlers: the first one is on its way already
            stop()
            over.wait(SLICE_NS / 1e9)
