// The names of the first proposals: a device, counted in logical blocks.
#include "api.h"

nvme_gpu *nvme_gpu_init(const char *device) {
  failure *f = shim_failure();
  const table *t;
  uint64_t number = 0;
  if (device == NULL) {
    shim_fail(f, GPUNVME_ERROR_INVALID, "%s: device is NULL", __func__);
    return NULL;
  }
  if (api_begin(&t, f) < 0 || CALL(t, gpu_open, f, device, &number) < 0) {
    return NULL;
  }
  return (nvme_gpu *)(uintptr_t)number;
}

static int transfer(const char *function, nvme_gpu *gpu, int write, uint64_t lba, uint64_t blocks, const void *address) {
  failure *f = shim_failure();
  const table *t;
  CHECK(api_use(&t, f, function, "gpu", gpu));
  CHECK(api_address(f, function, NUMBER(address), blocks));
  return CALL(t, gpu_transfer, f, NUMBER(gpu), write, lba, blocks, NUMBER(address));
}

static int start(const char *function, nvme_gpu *gpu, int write, uint64_t lba, uint64_t blocks, const void *address,
    struct CUstream_st *stream) {
  failure *f = shim_failure();
  const table *t;
  CHECK(api_use(&t, f, function, "gpu", gpu));
  CHECK(api_address(f, function, NUMBER(address), blocks));
  return CALL(t, gpu_start, f, NUMBER(gpu), write, lba, blocks, NUMBER(address), NUMBER(stream));
}

int nvme_gpu_read(nvme_gpu *gpu, uint64_t lba, uint64_t blocks, void *address) {
  return transfer(__func__, gpu, 0, lba, blocks, address);
}

int nvme_gpu_read_async(nvme_gpu *gpu, uint64_t lba, uint64_t blocks, void *address, struct CUstream_st *stream) {
  return start(__func__, gpu, 0, lba, blocks, address, stream);
}

int nvme_gpu_write(nvme_gpu *gpu, uint64_t lba, uint64_t blocks, const void *address) {
  return transfer(__func__, gpu, 1, lba, blocks, address);
}

int nvme_gpu_write_async(
    nvme_gpu *gpu, uint64_t lba, uint64_t blocks, const void *address, struct CUstream_st *stream) {
  return start(__func__, gpu, 1, lba, blocks, address, stream);
}

int nvme_gpu_synchronize(nvme_gpu *gpu) {
  failure *f = shim_failure();
  const table *t;
  USE(t, f, gpu);
  return CALL(t, gpu_synchronize, f, NUMBER(gpu));
}

void nvme_gpu_cleanup(nvme_gpu *gpu) {
  (void)api_close(__func__, gpu);
}
