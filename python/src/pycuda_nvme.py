"""The names of the project's first proposals for PyCUDA:

    import pycuda_nvme

    nvme = pycuda_nvme.NVMeGPU("/dev/nvme0n1")
    gpu_buffer = cuda.mem_alloc(size)
    nvme.read(lba=0, count=1024, gpu_ptr=gpu_buffer)
"""

from __future__ import annotations

from gpunvme import DeviceArray, NVMeGPU

__all__ = ["DeviceArray", "NVMeGPU"]
