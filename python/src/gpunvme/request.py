"""Running transfers."""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import contextlib
import os
import threading
import time
import weakref
from collections.abc import Callable, Generator
from ctypes import c_void_p
from typing import Any, Final

from . import _native
from .errors import GpuNvmeError

_TICK_NS: Final = 1_000_000


class Request:
    """A transfer that was submitted. It keeps its memory and its storage alive until it is over.

    If it is dropped before, it is cancelled. Safe for all threads. ``await request`` gives its result in asyncio.
    """

    def __init__(self, nbytes: int, keep: Any, submit: Callable[[c_void_p], int]) -> None:
        self.nbytes = nbytes
        self._native = c_void_p()
        self._lock = threading.RLock()
        self._over = nbytes == 0
        self._error: GpuNvmeError | None = None
        self._future: concurrent.futures.Future[int] | None = None
        # The finalizer keeps what must live until the library does not use it any more. It is there first: a signal
        # handler may raise as soon as the library has begun.
        self._free = weakref.finalize(self, _free, self._native, keep)
        if not self._over:
            _native.check(submit(self._native))

    def poll(self) -> bool:
        """Whether it is over, with or without success. Does not wait."""
        return self._over or self._step(0)

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until it is over, at most this many seconds; returns whether it is. Does not raise its failure."""
        end = None if timeout is None else time.monotonic() + timeout
        while not self._over:
            left = _native.SLICE_NS if end is None else min(_native.SLICE_NS, (end - time.monotonic()) * 1e9)
            if self._step(max(0, int(left))):
                break
            if end is not None and time.monotonic() >= end:
                return False
        return True

    def result(self, timeout: float | None = None) -> int:
        """Waits and returns the number of bytes moved.

        :raises TimeoutError: if it is not over in time; it goes on
        :raises GpuNvmeError: if it failed
        """
        try:
            if not self.wait(timeout):
                raise TimeoutError(f"the transfer is not over after {timeout} s")
        except KeyboardInterrupt:
            self.close()
            raise
        if self._error is not None:
            raise self._error
        return self.nbytes

    def exception(self) -> GpuNvmeError | None:
        """The exception of its failure; None if it did not fail, or is running."""
        return self._error

    def cancel(self) -> None:
        """Asks it to end soon. It then fails as cancelled, unless it is over before."""
        if not self._over:
            _native.lib().gpunvme_cancel(self._native)

    def close(self) -> None:
        """Cancels it if it is running, and waits until nothing uses its memory."""
        if not self._over:
            self.cancel()
            while not self._over:
                self._step(_native.SLICE_NS)

    def future(self) -> concurrent.futures.Future[int]:
        """The result as a future, completed by a thread of this module. Cancelling the future cancels the request."""
        with self._lock:
            if self._future is None:
                self._future = concurrent.futures.Future()
                self._future.add_done_callback(self._future_done)
                if self._over:
                    self._complete()
                else:
                    _waiter.add(self)
            return self._future

    def __await__(self) -> Generator[Any, None, int]:
        return self._awaited().__await__()

    async def _awaited(self) -> int:
        future = asyncio.wrap_future(self.future())
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            # The memory is the caller's again only when the request is over.
            self.cancel()
            while not self._over:
                with contextlib.suppress(asyncio.CancelledError):  # whoever cancels again
                    # One that was cancelled by itself is done before the request is over.
                    await (asyncio.sleep(_TICK_NS / 1e9) if future.done() else asyncio.wait([future]))
            if future.done() and not future.cancelled():
                future.exception()
            raise

    def __enter__(self) -> Request:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "failed" if self._error else "over" if self._over else "under way"
        return f"Request({self.nbytes} bytes, {state})"

    def _step(self, timeout_ns: int) -> bool:
        library = _native.lib()
        code = library.gpunvme_wait(self._native, timeout_ns) if timeout_ns else library.gpunvme_poll(self._native)
        if code == _native.PENDING:
            return False
        error = _native.failure(code) if code < 0 else None
        with self._lock:
            # Another thread may have seen the end, and freed it.
            if not self._over:
                self._error = error
                self._over = True
                self._free()
        return True

    def _future_done(self, future: concurrent.futures.Future[int]) -> None:
        if future.cancelled():
            self.cancel()

    def _complete(self) -> None:
        future = self._future
        if future is None or not future.set_running_or_notify_cancel():
            return
        if self._error is not None:
            future.set_exception(self._error)
        else:
            future.set_result(self.nbytes)


def _free(native: c_void_p, keep: Any) -> None:
    _native.lib().gpunvme_request_free(native)


class _Waiter:
    """One thread that completes the futures of requests. It ends when there are none."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: list[Request] = []
        self._thread: threading.Thread | None = None
        self._stopped = False

    def add(self, request: Request) -> None:
        with self._lock:
            if self._stopped:
                raise RuntimeError("the interpreter is ending")
            self._requests.append(request)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="gpunvme-waiter", daemon=True)
                self._thread.start()

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            thread = self._thread
        if thread is not None:
            thread.join()

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._requests or self._stopped:
                    self._requests = []
                    self._thread = None
                    return
                requests = list(self._requests)
            requests[0]._step(_TICK_NS)
            over = [r for r in requests if r.poll()]
            with self._lock:
                self._requests = [r for r in self._requests if r not in over]
            for request in over:
                request._complete()
            # The last names of requests would keep them alive while there is nothing to do.
            del requests, over


_waiter = _Waiter()
atexit.register(lambda: _waiter.stop())


def _forked() -> None:
    global _waiter
    _waiter = _Waiter()


os.register_at_fork(after_in_child=_forked)
