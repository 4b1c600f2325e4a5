// Memory of the host and of the device, and CUDA's driver by dlopen.
#include "suite.h"

#include <dlfcn.h>

struct cuda_table cuda;
const char *cuda_missing = "CUDA was not opened";

void open_cuda(void) {
  static void *context;
  if (context != NULL) {
    cuda.CtxSetCurrent(context);
    return;
  }
  const char *name = getenv("GPUNVME_LIBCUDA");
  void *library = dlopen(name == NULL || *name == 0 ? "libcuda.so.1" : name, RTLD_NOW | RTLD_GLOBAL);
  if (library == NULL) {
    cuda_missing = strdup(text("no libcuda: %s", dlerror()));
    return;
  }
#define FIND(name) *(void **)&cuda.name = dlsym(library, "cu" #name)
  FIND(Init);
  FIND(DeviceGet);
  FIND(DeviceGetCount);
  FIND(DevicePrimaryCtxRetain);
  FIND(CtxSetCurrent);
  FIND(MemAlloc_v2);
  FIND(MemFree_v2);
  FIND(MemcpyHtoDAsync_v2);
  FIND(MemcpyDtoHAsync_v2);
  FIND(MemHostAlloc);
  FIND(MemFreeHost);
  FIND(MemAllocManaged);
  FIND(StreamCreateWithPriority);
  FIND(StreamWaitValue32_v2);
  FIND(StreamSynchronize);
  FIND(StreamDestroy_v2);
  FIND(LaunchHostFunc);
#undef FIND
  int device = 0;
  cuda_result result = cuda.Init == NULL ? -1 : cuda.Init(0);
  if (result != 0 || cuda.DeviceGet(&device, 0) != 0 || cuda.DevicePrimaryCtxRetain(&context, device) != 0 || cuda.CtxSetCurrent(context) != 0) {
    cuda_missing = strdup(text("CUDA does not start here (%d)", result));
    context = NULL;
    return;
  }
  cuda_missing = NULL;
}

void *allocate(size_t size) {
  void *memory_ = NULL;
  cuda_address address = 0;
  if (memory == HOST) {
    if (posix_memalign(&memory_, 4096, size) != 0) {
      give_up("no memory");
    }
    memset(memory_, 0, size);
    return memory_;
  }
  if (cuda.MemAlloc_v2(&address, size) != 0) {
    give_up("no device memory");
  }
  fill((void *)address, 0, size);
  return (void *)address;
}

void release(void *memory_) {
  if (memory == HOST) {
    free(memory_);
  } else {
    cuda.MemFree_v2((cuda_address)memory_);
  }
}

// Copies of CUDA that wait may return before the bytes are in the GPU's memory, and other streams come first. So they are made on a
// stream of the thread, and waited for there.
static void *copies(void) {
  static _Thread_local void *stream;
  if (stream == NULL && cuda.StreamCreateWithPriority(&stream, 1, 0) != 0) {
    give_up("no stream for copies");
  }
  return stream;
}

void put(void *to, const void *from, size_t size) {
  if (memory == HOST) {
    memcpy(to, from, size);
  } else if (cuda.MemcpyHtoDAsync_v2((cuda_address)to, from, size, copies()) != 0 || cuda.StreamSynchronize(copies()) != 0) {
    give_up("a copy to the device failed");
  }
}

void get(void *to, const void *from, size_t size) {
  if (memory == HOST) {
    memcpy(to, from, size);
  } else if (cuda.MemcpyDtoHAsync_v2(to, (cuda_address)from, size, copies()) != 0 || cuda.StreamSynchronize(copies()) != 0) {
    give_up("a copy from the device failed");
  }
}

void fill(void *to, int byte, size_t size) {
  void *bytes = malloc(size);
  memset(bytes, byte, size);
  put(to, bytes, size);
  free(bytes);
}

void put_pattern(void *to, uint32_t seed, size_t position, size_t size) {
  void *bytes = malloc(size);
  pattern(bytes, seed, position, size);
  put(to, bytes, size);
  free(bytes);
}

// The place of the first byte that differs from the pattern, or from a byte if seed is 0; size if there is none.
static size_t first_other(const void *from, uint32_t seed, size_t position, int byte, size_t size, int *is) {
  uint8_t *bytes = malloc(size + 1), *expected = malloc(size + 1);
  get(bytes, from, size);
  if (seed == 0) {
    memset(expected, byte, size);
  } else {
    pattern(expected, seed, position, size);
  }
  size_t i = memcmp(bytes, expected, size) == 0 ? size : 0;
  while (i < size && bytes[i] == expected[i]) {
    i++;
  }
  bytes[size] = 0;
  *is = bytes[i];
  free(bytes);
  free(expected);
  return i;
}

bool has_pattern(const void *from, uint32_t seed, size_t position, size_t size) {
  int is;
  return first_other(from, seed, position, 0, size, &is) == size;
}

bool has_byte(const void *from, int byte, size_t size) {
  int is;
  return first_other(from, 0, 0, byte, size, &is) == size;
}

void is_pattern(const char *id, const void *from, uint32_t seed, size_t position, size_t size) {
  int is;
  size_t at = first_other(from, seed, position, 0, size, &is);
  is_true(id, at == size, text("the file's %zu bytes", size),
          at == size ? text("the file's %zu bytes", size) : text("%02x, not %02x, at byte %zu", is, pattern_at(seed, position + at), at));
}

void is_byte(const char *id, const void *from, int byte, size_t size) {
  int is;
  size_t at = first_other(from, 0, 0, byte, size, &is);
  is_true(id, at == size, text("%zu bytes %02x", size, byte), at == size ? text("%zu bytes %02x", size, byte) : text("%02x at byte %zu", is, at));
}
