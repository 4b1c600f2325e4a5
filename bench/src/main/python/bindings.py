"""The Python side of the benchmark of the bindings: see ../c/bindings.c for what it is told and says.

Where something is missing that it needs it says "missing ...". "call" is answered by two numbers: the nanoseconds of Request.poll(),
and of gpunvme_poll by ctypes as the package declares it, both of a request that is finished.
"""

import sys
import time
from ctypes import byref, c_void_p

WAKING = 64 << 20
WORD = 8
CALLS = 200_000
# Each side has a number of its own here, so that none takes another's data for its own.
SEED = 3


def say(text):
    print(" ".join(text.split()), flush=True)


class Side:
    def __init__(self, accelerator, uri, size):
        self.device = "cuda" if accelerator == "gpu" else "cpu"
        self.storage = gpunvme.Storage(uri, accelerator, write=True)
        if self.storage.size < size or self.storage.on_gpu != (accelerator == "gpu"):
            raise ValueError(f"{self.storage!r} is not what was asked for")
        generator = torch.Generator(self.device).manual_seed(SEED)
        self.pattern = torch.randint(
            0, 2**63 - 1, (size // WORD,), dtype=torch.int64, device=self.device, generator=generator
        )
        self.tensor = self.pattern.clone()
        self.waking = torch.empty(min(size, WAKING), dtype=torch.uint8, device=self.device)
        self.storage.write(0, self.tensor)
        self.request = self.storage.submit_read(0, bytearray(1))
        self.request.result()
        self.native = self.plain_request()

    def plain_request(self):
        """A request that only the library knows of; the package frees its own at their end."""
        library = _native.lib()
        request = c_void_p()
        self.byte = torch.zeros(1, dtype=torch.uint8)
        one = _native.Range(0, self.byte.data_ptr(), 1)
        _native.check(library.gpunvme_submit_read(self.storage._handle.open, byref(one), 1, byref(request)))
        _native.check(library.gpunvme_wait(request, _native.FOREVER))
        return request

    def settle(self):
        if self.device == "cuda":
            torch.cuda.synchronize()

    def read(self):
        self.tensor.zero_()
        self.settle()
        # An embedded controller's threads that had nothing to do sleep up to a millisecond: this wakes all.
        self.storage.read(0, self.waking)
        begin = time.perf_counter_ns()
        read_into_tensor(self.tensor, storage=self.storage)
        nanos = time.perf_counter_ns() - begin
        if not torch.equal(self.tensor, self.pattern):
            wrong = (self.tensor != self.pattern).nonzero().flatten()
            raise ValueError(f"wrong data: {len(wrong)} words, the first at byte {int(wrong[0]) * WORD}")
        self.settle()
        return str(nanos)

    def call(self):
        poll = self.request.poll
        begin = time.perf_counter_ns()
        for _ in range(CALLS):
            poll()
        middle = time.perf_counter_ns()
        poll, request = _native.lib().gpunvme_poll, self.native
        for _ in range(CALLS):
            poll(request)
        end = time.perf_counter_ns()
        _native.check(poll(request))
        return f"{(middle - begin) / CALLS:.2f} {(end - middle) / CALLS:.2f}"

    def close(self):
        _native.check(_native.lib().gpunvme_request_free(self.native))
        self.storage.close()


def main(accelerator, uri, size):
    if accelerator == "gpu" and not torch.cuda.is_available():
        say(f"missing PyTorch {torch.__version__} sees no GPU")
        return
    side = Side(accelerator, uri, int(size))
    say("ready")
    for line in sys.stdin:
        if line == "end\n":
            break
        say({"read\n": side.read, "call\n": side.call}[line]())
    side.close()


try:
    import torch

    import gpunvme
    from gpunvme import _native
    from gpunvme.torch import read_into_tensor
except ImportError as e:
    say(f"missing {e}")
    sys.exit(0)
try:
    main(*sys.argv[1:])
except Exception as e:
    say(f"error {type(e).__name__}: {e}")
    sys.exit(1)
