#!/usr/bin/env python3
"""Calls a libcufile.so.0 as Python programs do: the sequence of cuda.bindings, and that of KvikIO.

Usage: client.py LIBRARY FOLDER. Prints a line for each test. Needs the standard library only. GPUNVME_LIBCUDA, or libcuda.so.1, gives
device memory and streams; without one, memory is the host's, and streams are skipped.
"""

import concurrent.futures
import ctypes
import os
import sys

SIZE = 4 << 20
DATA = bytes((i * 7 + (i >> 9)) & 0xFF for i in range(65536)) * (SIZE // 65536)


class Error(ctypes.Structure):
    _fields_ = [("err", ctypes.c_int), ("cu_err", ctypes.c_int)]


class Handle(ctypes.Union):
    _fields_ = [("fd", ctypes.c_int), ("handle", ctypes.c_void_p)]


class Description(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("handle", Handle), ("fs_ops", ctypes.c_void_p)]


def load_cufile(path):
    library = ctypes.CDLL(path)
    for name in ("DriverOpen", "DriverClose_v2", "HandleRegister", "BufRegister", "BufDeregister", "GetVersion", "ReadAsync",
                 "WriteAsync", "StreamRegister", "StreamDeregister"):
        getattr(library, "cuFile" + name).restype = Error
    for name in ("Read", "Write"):
        function = getattr(library, "cuFile" + name)
        function.restype = ctypes.c_ssize_t
        function.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int64, ctypes.c_int64]
    library.cuFileHandleDeregister.restype = None
    library.cuFileHandleDeregister.argtypes = [ctypes.c_void_p]
    library.cuFileBufRegister.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    library.cuFileBufDeregister.argtypes = [ctypes.c_void_p]
    library.cuFileUseCount.restype = ctypes.c_long
    for name in ("ReadAsync", "WriteAsync"):
        getattr(library, "cuFile" + name).argtypes = [ctypes.c_void_p] * 7
    library.cuFileStreamRegister.argtypes = [ctypes.c_void_p, ctypes.c_uint]
    library.cuFileStreamDeregister.argtypes = [ctypes.c_void_p]
    return library


class HostMemory:
    """Memory of the host, with the calls of Device's."""

    def __init__(self):
        self.kept = {}

    def use(self):
        pass

    def allocate(self, size):
        buffer = ctypes.create_string_buffer(size + 4096)
        address = (ctypes.addressof(buffer) + 4095) & -4096
        self.kept[address] = buffer
        return address

    def put(self, address, data):
        ctypes.memmove(address, data, len(data))

    def get(self, address, size):
        return ctypes.string_at(address, size)


class DeviceMemory:
    """Memory of the device, by the calls of the driver that the stand-in has, too."""

    def __init__(self, library):
        self.cuda = library
        self.context = ctypes.c_void_p()
        self.good(library.cuInit(0))
        device = ctypes.c_int()
        self.good(library.cuDeviceGet(ctypes.byref(device), 0))
        self.good(library.cuDevicePrimaryCtxRetain(ctypes.byref(self.context), device))
        self.use()
        self.stream = self.new_stream()

    @staticmethod
    def good(code):
        if code != 0:
            raise OSError(f"CUDA says {code}")

    def use(self):
        self.good(self.cuda.cuCtxSetCurrent(self.context))

    def new_stream(self):
        stream = ctypes.c_void_p()
        self.good(self.cuda.cuStreamCreateWithPriority(ctypes.byref(stream), 1, 0))
        return stream

    def synchronize(self, stream):
        self.good(self.cuda.cuStreamSynchronize(stream))

    def allocate(self, size):
        address = ctypes.c_uint64()
        self.good(self.cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size)))
        return address.value

    def put(self, address, data):
        self.good(self.cuda.cuMemcpyHtoDAsync_v2(ctypes.c_uint64(address), data, ctypes.c_size_t(len(data)), self.stream))
        self.synchronize(self.stream)

    def get(self, address, size):
        data = ctypes.create_string_buffer(size)
        self.good(self.cuda.cuMemcpyDtoHAsync_v2(data, ctypes.c_uint64(address), ctypes.c_size_t(size), self.stream))
        self.synchronize(self.stream)
        return data.raw


class File:
    """An open file and its handle."""

    def __init__(self, library, path, flags):
        self.library = library
        self.fd = os.open(path, flags, 0o600)
        self.handle = ctypes.c_void_p()
        description = Description(type=1, fs_ops=None)
        description.handle.fd = self.fd
        error = library.cuFileHandleRegister(ctypes.byref(self.handle), ctypes.byref(description))
        assert error.err == 0, f"cuFileHandleRegister: {error.err}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.library.cuFileHandleDeregister(self.handle)
        os.close(self.fd)


def bindings(library, memory, folder):
    """Driver open, buffer and handle registered, a write and a read, all of it undone."""
    path = os.path.join(folder, "bindings.bin")
    version = ctypes.c_int()
    assert library.cuFileGetVersion(ctypes.byref(version)).err == 0 and version.value >= 1000
    assert library.cuFileDriverOpen().err == 0
    assert library.cuFileUseCount() >= 1
    source, target = memory.allocate(SIZE), memory.allocate(SIZE)
    memory.put(source, DATA)
    for buffer in (source, target):
        assert library.cuFileBufRegister(buffer, SIZE, 0).err == 0
    with File(library, path, os.O_CREAT | os.O_RDWR) as file:
        assert library.cuFileWrite(file.handle, source, SIZE, 0, 0) == SIZE
        with open(path, "rb") as plain:
            assert plain.read() == DATA
        assert library.cuFileRead(file.handle, target, SIZE, 0, 0) == SIZE
        assert memory.get(target, SIZE) == DATA
        assert library.cuFileRead(file.handle, target, SIZE, SIZE - 1000, 0) == 1000
    for buffer in (source, target):
        assert library.cuFileBufDeregister(buffer).err == 0
    assert library.cuFileDriverClose_v2().err == 0


def tasks(library, memory, folder):
    """A read in tasks of a pool of threads, each a part of one buffer, whose start and end are not aligned."""
    path = os.path.join(folder, "tasks.bin")
    with open(path, "wb") as plain:
        plain.write(DATA)
    target = memory.allocate(SIZE)
    part = 300_001
    with File(library, path, os.O_RDONLY) as file, concurrent.futures.ThreadPoolExecutor(8) as pool:

        def read(at):
            memory.use()
            return library.cuFileRead(file.handle, target, min(part, SIZE - at), at, at)

        assert sum(pool.map(read, range(0, SIZE, part))) == SIZE
        assert memory.get(target, SIZE) == DATA
    with File(library, path, os.O_RDWR) as file, concurrent.futures.ThreadPoolExecutor(8) as pool:
        memory.put(target, DATA[::-1])

        def write(at):
            memory.use()
            return library.cuFileWrite(file.handle, target, min(part, SIZE - at), at, at)

        assert sum(pool.map(write, range(0, SIZE, part))) == SIZE
    with open(path, "rb") as plain:
        assert plain.read() == DATA[::-1]


def asynchronous(library, memory, folder):
    """Reads and writes on a stream, whose arguments and results the program keeps until the stream is done."""
    path = os.path.join(folder, "async.bin")
    with open(path, "wb") as plain:
        plain.write(DATA)
    stream = memory.new_stream()
    assert library.cuFileStreamRegister(stream, 0).err == 0
    target = memory.allocate(SIZE)
    assert library.cuFileBufRegister(target, SIZE, 0).err == 0
    part = SIZE // 8
    with File(library, path, os.O_RDWR) as file:

        def calls(function):
            kept = []
            for at in range(0, SIZE, part):
                size, file_at, buffer_at = ctypes.c_size_t(part), ctypes.c_int64(at), ctypes.c_int64(at)
                done = ctypes.c_ssize_t(-1)
                kept.append((size, file_at, buffer_at, done))
                pointers = [ctypes.byref(value) for value in kept[-1]]
                error = function(file.handle, target, *pointers, stream)
                assert error.err == 0, f"error {error.err}"
            memory.synchronize(stream)
            return [done.value for *_, done in kept]

        assert calls(library.cuFileReadAsync) == [part] * 8
        assert memory.get(target, SIZE) == DATA
        memory.put(target, DATA[::-1])
        assert calls(library.cuFileWriteAsync) == [part] * 8
    assert library.cuFileBufDeregister(target).err == 0
    assert library.cuFileStreamDeregister(stream).err == 0
    with open(path, "rb") as plain:
        assert plain.read() == DATA[::-1]


def main():
    path, folder = sys.argv[1:]
    library = load_cufile(path)
    tests = [(test, "host", HostMemory()) for test in (bindings, tasks)]
    try:
        device = DeviceMemory(ctypes.CDLL(os.environ.get("GPUNVME_LIBCUDA") or "libcuda.so.1", ctypes.RTLD_GLOBAL))
        tests += [(test, "device", device) for test in (bindings, tasks, asynchronous)]
    except OSError as missing:
        print(f"SKIP cufile-python-device: {missing}")
    failed = False
    for test, kind, memory in tests:
        name = f"cufile-python-{test.__name__}-{kind}"
        try:
            test(library, memory, folder)
            print(f"PASS {name}")
        except AssertionError as wrong:
            failed = True
            line = wrong.__traceback__
            while line.tb_next:
                line = line.tb_next
            print(f"FAIL {name}: line {line.tb_lineno}: {wrong}")
    return failed


sys.exit(main())
