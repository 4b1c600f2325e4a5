#!/usr/bin/env python3
"""Programs for cuFile that know nothing of gpunvme: torch.cuda.gds, and cuda.bindings.cufile where it is installed.

Usage: torch_client.py FOLDER. Prints a line for each test; needs PyTorch and a GPU. Which libcufile.so.0 they find is the
caller's choice; "library" names it.
"""

import os
import sys
import traceback

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils.serialization import config

SIZES = (4096, 1 << 20, (8 << 20) + 4096)


def library():
    """The file that the process has mapped."""
    with open("/proc/self/maps") as maps:
        return sorted({line.split()[-1] for line in maps if "libcufile.so" in line})


def pattern(size, seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 256, (size,), dtype=torch.uint8, generator=generator)


def torch_storages(folder):
    """Registered and other storages are saved one behind the other, loaded again, and what is on the disk is looked at."""
    path = os.path.join(folder, "torch.bin")
    sources = [pattern(size, seed).cuda() for seed, size in enumerate(SIZES)]
    targets = [torch.zeros(size, dtype=torch.uint8, device="cuda") for size in SIZES]
    torch.cuda.gds.gds_register_buffer(sources[1].untyped_storage())
    torch.cuda.gds.gds_register_buffer(targets[1].untyped_storage())
    file = torch.cuda.gds.GdsFile(path, os.O_CREAT | os.O_RDWR)
    at = 0
    for source in sources:
        file.save_storage(source.untyped_storage(), offset=at)
        at += source.nbytes
    at = 0
    for target in targets:
        file.load_storage(target.untyped_storage(), offset=at)
        at += target.nbytes
    file.deregister_handle()
    file.register_handle()
    for source, target in zip(sources, targets):
        assert torch.equal(source, target)
    torch.cuda.gds.gds_deregister_buffer(sources[1].untyped_storage())
    torch.cuda.gds.gds_deregister_buffer(targets[1].untyped_storage())
    with open(path, "rb") as plain:
        data = plain.read()
    assert data == b"".join(bytes(source.cpu().numpy()) for source in sources)


def torch_checkpoint(folder):
    """A file that torch.save wrote, of which each storage is loaded at its place, as the documentation of torch.cuda.gds shows."""
    path = os.path.join(folder, "checkpoint.pt")
    state = {"a": torch.randn(1000, 333), "b": torch.arange(100_000), "c": torch.randn(7).half()}
    config.save.storage_alignment = 4096
    torch.save(state, path)
    with FakeTensorMode():
        fake = torch.load(path)
    file = torch.cuda.gds.GdsFile(path, os.O_RDONLY)
    for name, tensor in state.items():
        loaded = torch.zeros_like(tensor, device="cuda")
        file.load_storage(loaded.untyped_storage(), offset=fake[name].untyped_storage()._checkpoint_offset)
        assert torch.equal(loaded.cpu(), tensor), name


def bindings(folder):
    """NVIDIA's Python bindings: driver, a registered buffer, a write, a read, and the version."""
    from cuda.bindings import cufile

    path = os.path.join(folder, "bindings.bin")
    source = pattern(SIZES[1], 5).cuda()
    target = torch.zeros_like(source)
    torch.cuda.synchronize()
    cufile.driver_open()
    fd = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    description = cufile.Descr()
    description.type = cufile.FileHandleType.OPAQUE_FD
    description.handle.fd = fd
    description.fs_ops = 0
    handle = cufile.handle_register(description.ptr)
    for buffer in (source, target):
        cufile.buf_register(buffer.data_ptr(), buffer.nbytes, 0)
    assert cufile.write(handle, source.data_ptr(), source.nbytes, 0, 0) == source.nbytes
    assert cufile.read(handle, target.data_ptr(), target.nbytes, 0, 0) == target.nbytes
    assert torch.equal(source, target)
    for buffer in (source, target):
        cufile.buf_deregister(buffer.data_ptr())
    cufile.handle_deregister(handle)
    os.close(fd)
    assert cufile.get_version() >= 1000
    cufile.driver_close()


def main():
    failed = False
    for test in (torch_storages, torch_checkpoint, bindings):
        name = "cufile-" + test.__name__.replace("_", "-")
        try:
            test(sys.argv[1])
            print(f"PASS {name}", flush=True)
        except ImportError as missing:
            print(f"SKIP {name}: {missing}", flush=True)
        except Exception:
            failed = True
            print(f"FAIL {name}: {traceback.format_exc(limit=-2)}", flush=True)
    print("library " + " ".join(library()))
    return failed


sys.exit(main())
