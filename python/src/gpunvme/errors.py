"""What can go wrong: one class for each code of ``enum gpunvme_status`` in ``gpunvme.h``."""

from __future__ import annotations

import errno as _errno
from typing import ClassVar


class GpuNvmeError(OSError):
    """Something failed. ``code`` is the C library's, ``errno`` the kernel's if there is one."""

    code: ClassVar[int] = -99
    usual_errno: ClassVar[int | None] = None

    @classmethod
    def of(cls, message: str, error: int = 0) -> GpuNvmeError:
        """Makes one with the errno of the failure, or the usual one of its class."""
        number = error or cls.usual_errno
        return cls(message) if number is None else cls(number, message)


class InvalidError(GpuNvmeError, ValueError):
    """An argument is not possible, or out of range."""

    code = -1
    usual_errno = _errno.EINVAL


class NotFoundError(GpuNvmeError, FileNotFoundError):
    """There is no such file, device, tensor or kind."""

    code = -2
    usual_errno = _errno.ENOENT


class DeniedError(GpuNvmeError, PermissionError):
    """Not allowed, or opened without ``write=True``."""

    code = -3
    usual_errno = _errno.EACCES


class TransferError(GpuNvmeError):
    """The device or the kernel failed, or the file is shorter than expected."""

    code = -4
    usual_errno = _errno.EIO


class NoSpaceError(GpuNvmeError):
    """There is no room for the data to write."""

    code = -5
    usual_errno = _errno.ENOSPC


class GoneError(GpuNvmeError):
    """The device is not there any more."""

    code = -6
    usual_errno = _errno.ENODEV


class CancelledError(GpuNvmeError):
    """The request was cancelled, or its storage was closed."""

    code = -7
    usual_errno = _errno.ECANCELED


class OutOfMemoryError(GpuNvmeError):
    """The GPU or the host has not enough memory."""

    code = -8
    usual_errno = _errno.ENOMEM


class AcceleratorError(GpuNvmeError):
    """CUDA failed."""

    code = -9


class TimedOutError(GpuNvmeError, TimeoutError):
    """A command or a controller did not answer in time."""

    code = -10
    usual_errno = _errno.ETIMEDOUT


class UnsupportedError(GpuNvmeError):
    """This storage or accelerator cannot do that."""

    code = -11
    usual_errno = _errno.ENOTSUP


class FormatError(GpuNvmeError, ValueError):
    """A damaged file, or one of another format."""

    code = -12


class ClosedError(GpuNvmeError, ValueError):
    """It was closed."""

    code = -13
    usual_errno = _errno.EBADF


class JavaError(GpuNvmeError):
    """No Java virtual machine could be found or started."""

    code = -14


class ForkedError(GpuNvmeError):
    """This process is a fork of one that used the library before."""

    code = -15


class BusyError(GpuNvmeError):
    """Kernels or commands are at work in it still; the message says what ends them."""

    code = -16
    usual_errno = _errno.EBUSY


class InternalError(GpuNvmeError):
    """A defect of the library; the message is worth a report."""

    code = -99


BY_CODE: dict[int, type[GpuNvmeError]] = {
    c.code: c
    for c in (
        InvalidError,
        NotFoundError,
        DeniedError,
        TransferError,
        NoSpaceError,
        GoneError,
        CancelledError,
        OutOfMemoryError,
        AcceleratorError,
        TimedOutError,
        UnsupportedError,
        FormatError,
        ClosedError,
        JavaError,
        ForkedError,
        BusyError,
        InternalError,
    )
}
