// A stand-in for libcuda.so: devices without a GPU. It keeps device memory in host memory, writes
// down the calls, and fails or waits where a test tells it to.
//
// FAKE_VERSION  what cuDriverGetVersion says; functions newer than it are left out
// FAKE_DEVICES  number of devices, 8 at most; with 0 cuInit fails. The environment's FAKE_CUDA_DEVICES takes its place
// FAKE_MIG      1: the devices are parts of GPUs
// FAKE_FREE     bytes of device memory that are said to be free
// FAKE_INTERIOR 1: addresses inside allocations are known, too
// FAKE_MAPPED   how far from where the CPU finds host memory the GPU does
// USE_CUDA_H    take the types from NVIDIA's header, to check these signatures against it
#include "fake_cuda_state.h"
#include "fake_cuda_order.h"

// ---- errors, devices

CUresult cuGetErrorName(CUresult error, const char **text) {
  switch ((int)error) {
    case INVALID_VALUE: *text = "CUDA_ERROR_INVALID_VALUE"; return 0;
    case 2: *text = "CUDA_ERROR_OUT_OF_MEMORY"; return 0;
    case NO_DEVICE: *text = "CUDA_ERROR_NO_DEVICE"; return 0;
    case INVALID_PTX: *text = "CUDA_ERROR_INVALID_PTX"; return 0;
    case NOT_FOUND: *text = "CUDA_ERROR_NOT_FOUND"; return 0;
    case 700: *text = "CUDA_ERROR_ILLEGAL_ADDRESS"; return 0;
    default: *text = NULL; return (CUresult)INVALID_VALUE;
  }
}

CUresult cuGetErrorString(CUresult error, const char **text) {
  switch ((int)error) {
    case INVALID_VALUE: *text = "invalid argument"; return 0;
    case 2: *text = "out of memory"; return 0;
    case NO_DEVICE: *text = "no CUDA-capable device is detected"; return 0;
    case INVALID_PTX: *text = "a PTX JIT compilation failed"; return 0;
    case NOT_FOUND: *text = "named symbol not found"; return 0;
    case 700: *text = "an illegal memory access was encountered"; return 0;
    default: *text = NULL; return (CUresult)INVALID_VALUE;
  }
}

CUresult cuDriverGetVersion(int *version) {
  *version = FAKE_VERSION;
  return 0;
}

static int devices(void) {
  const char *other = getenv("FAKE_CUDA_DEVICES");
  return other != NULL ? atoi(other) : FAKE_DEVICES;
}

CUresult cuInit(unsigned flags) {
  CALLED("%u", flags);
  return devices() > 0 ? 0 : (CUresult)NO_DEVICE;
}

CUresult cuDeviceGetCount(int *count) {
  CALLED("");
  *count = devices();
  return 0;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  CALLED("%d", ordinal);
  NEED(ordinal >= 0 && ordinal < devices(), INVALID_DEVICE);
  *device = FIRST_DEVICE + ordinal; // Not the ordinal, so that the two cannot be mixed up.
  return 0;
}

CUresult cuDeviceGetName(char *name, int length, CUdevice device) {
  CALLED("%d", device);
  snprintf(name, (size_t)length, "Fake %d", device);
  return 0;
}

CUresult cuDeviceGetPCIBusId(char *id, int length, CUdevice device) {
  CALLED("%d", device);
  snprintf(id, (size_t)length, "0000:%02X:00.0", 0x3B + device - FIRST_DEVICE);
  return 0;
}

// The bytes of the second device begin with 41. With FAKE_MIG it is a part of a GPU, whose own bytes begin with C1.
static CUresult uuid_of(unsigned char *bytes, int device, int part) {
  for (int i = 0; i < 16; i++) {
    bytes[i] = (unsigned char)(16 * i);
  }
  bytes[0] = (unsigned char)(0x40 + device - FIRST_DEVICE + (part ? 0 : 0x80 * FAKE_MIG));
  return 0;
}

// The header has the newer one only.
#ifndef USE_CUDA_H
CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device) {
  CALLED("%d", device);
  return uuid_of((unsigned char *)uuid->bytes, device, 0);
}
#endif

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device) {
  CALLED("%d", device);
  return uuid_of((unsigned char *)uuid->bytes, device, 1);
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
  CALLED("%d %d", (int)attribute, device);
  NEED((int)attribute < 140, INVALID_VALUE);
  *value = (int)attribute == 118 ? 100 : (int)attribute == 117 ? 1 : (int)attribute;
  return 0;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
  CALLED("%d", device);
  *bytes = (size_t)80 << 30;
  return 0;
}

// ---- context

CUresult cuDevicePrimaryCtxRetain(CUcontext *result, CUdevice device) {
  CALLED("%d", device);
  *result = (CUcontext)add(RETAIN, &contexts[device - FIRST_DEVICE], NULL);
  return 0;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  int code = called(__func__, "%d", device);
  int taken = take(RETAIN, &contexts[device - FIRST_DEVICE]);
  return (CUresult)(code != 0 ? code : taken);
}

CUresult cuCtxGetCurrent(CUcontext *c) {
  CALLED("%s", "");
  *c = current > 0 ? (CUcontext)&contexts[current - 1] : NULL;
  return 0;
}

CUresult cuCtxSetCurrent(CUcontext c) {
  CALLED("%p", (void *)c);
  if (c == NULL) {
    current = 0;
    return 0;
  }
  NEED(is_live(RETAIN, c), 709);
  current = (int)((char *)c - contexts) + 1;
  return 0;
}

CUresult cuCtxSynchronize(void) {
  CALLED("");
  IN_CONTEXT;
  settle(0);
  return 0;
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest) {
  CALLED("%s", "");
  IN_CONTEXT;
  *least = 0;
  *greatest = -5;
  return 0;
}

CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total) {
  CALLED("");
  IN_CONTEXT;
  *free_bytes = FAKE_FREE;
  *total = 2 * FAKE_FREE;
  return 0;
}

CUresult cuFlushGPUDirectRDMAWrites(
    CUflushGPUDirectRDMAWritesTarget target, CUflushGPUDirectRDMAWritesScope scope) {
  CALLED("%d %d", (int)target, (int)scope);
  IN_CONTEXT;
  return 0;
}

// ---- memory

// Where the GPU finds host memory is not where the CPU does, unless kernels run here.
#ifndef FAKE_MAPPED
#define FAKE_MAPPED 0x1000000000000ull
#endif
static const CUdeviceptr mapped = FAKE_MAPPED;

static void *at(CUdeviceptr address) {
  return (void *)(uintptr_t)(address < mapped ? address : address - mapped);
}

CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes) {
  settle(1);
  CALLED("%zu", bytes);
  IN_CONTEXT;
  char *block = aligned_alloc(4096, (bytes + 8191) / 4096 * 4096);
  *address = (CUdeviceptr)(uintptr_t)add(MEMORY, block + 512, block); // Aligned to no page.
  return 0;
}

CUresult cuMemFree_v2(CUdeviceptr address) {
  settle(1);
  FREES(MEMORY, (uintptr_t)address);
}

static size_t block_bytes(int kind, const void *handle) {
  size_t bytes = 0;
  pthread_mutex_lock(&lock);
  for (int i = 0; i < used; i++) {
    if (live[i].kind == kind && live[i].handle == handle) {
      bytes = malloc_usable_size(live[i].block) - (size_t)((char *)handle - (char *)live[i].block);
    }
  }
  pthread_mutex_unlock(&lock);
  return bytes;
}

#ifndef FAKE_INTERIOR
#define FAKE_INTERIOR 0
#endif

// The allocation that an address is of.
static const void *allocation_of(const void *address) {
  pthread_mutex_lock(&lock);
  for (int i = 0; FAKE_INTERIOR && i < used; i++) {
    const char *begin = live[i].handle;
    if ((live[i].kind == MEMORY || live[i].kind == HOST) && (const char *)address >= begin &&
        (const char *)address < (char *)live[i].block + malloc_usable_size(live[i].block)) {
      address = begin;
      break;
    }
  }
  pthread_mutex_unlock(&lock);
  return address;
}

// The number of the device that memory is of, or was pinned for; 0 if nobody knows the memory.
static int owner_of(const void *handle) {
  pthread_mutex_lock(&lock);
  int memory = device_of(MEMORY, handle);
  int host = device_of(HOST, handle);
  pthread_mutex_unlock(&lock);
  return memory >= 0 ? memory : host >= 0 ? host : 0;
}

// What the next questions about addresses are answered with.
static struct {
  CUdeviceptr mapped; // three pieces of this many bytes begin there
  size_t piece;
  int other_context;
} pretended;

void fake_pretend(CUdeviceptr mapped, size_t piece, int other_context);

void fake_pretend(CUdeviceptr mapped, size_t piece, int other_context) {
  pretended.mapped = mapped;
  pretended.piece = piece;
  pretended.other_context = other_context;
}

static CUresult of_a_piece(void *data, int attribute, CUdeviceptr address) {
  size_t number = (address - pretended.mapped) / pretended.piece;
  switch (attribute) {
    case 2: *(unsigned *)data = 2; return 0;
    case 7: *(unsigned long long *)data = 100 + number; return 0;
    case 8: case 9: case 10: *(int *)data = 0; return 0;
    case 11: *(CUdeviceptr *)data = pretended.mapped; return 0; // what was reserved: more than was mapped
    case 12: *(size_t *)data = 10 * pretended.piece; return 0;
    case 18: *(size_t *)data = pretended.piece; return 0;
    case 19: *(CUdeviceptr *)data = pretended.mapped + number * pretended.piece; return 0;
    default: return (CUresult)INVALID_VALUE; // it has neither a context nor a pool
  }
}

CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr address) {
  CALLED("%d %llx", (int)attribute, address);
  IN_CONTEXT;
  if (pretended.piece > 0 && address >= pretended.mapped && address < pretended.mapped + 3 * pretended.piece) {
    return of_a_piece(data, (int)attribute, address);
  }
  const void *handle = allocation_of((const void *)(uintptr_t)address);
  int device = owner_of(handle);
  size_t memory = block_bytes(MEMORY, handle);
  size_t host = block_bytes(HOST, handle);
  NEED(memory + host > 0, INVALID_VALUE);
  switch ((int)attribute) {
    case 1: *(void **)data = pretended.other_context ? &pretended : (void *)&contexts[device]; return 0;
    case 10: *(unsigned *)data = 1; return 0;
    case 2: *(unsigned *)data = memory > 0 ? 2 : 1; return 0;
    case 7: *(unsigned long long *)data = address; return 0;
    case 8: *(unsigned *)data = 0; return 0;
    case 9: *(int *)data = device; return 0;
    case 11: *(CUdeviceptr *)data = (CUdeviceptr)(uintptr_t)handle; return 0;
    case 12: *(size_t *)data = memory + host; return 0;
    default: return (CUresult)INVALID_VALUE;
  }
}

CUresult cuMemHostAlloc(void **address, size_t bytes, unsigned flags) {
  settle(1);
  CALLED("%zu %u", bytes, flags);
  IN_CONTEXT;
  NEED(!captured_elsewhere || capture_mode == RELAXED, CAPTURE_UNSUPPORTED);
  char *block = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  *address = add(HOST, block, block);
  return 0;
}

CUresult cuMemFreeHost(void *address) {
  settle(1);
  FREES(HOST, address);
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *device, void *host, unsigned flags) {
  CALLED("%p %u", host, flags);
  IN_CONTEXT;
  *device = (CUdeviceptr)(uintptr_t)host + mapped;
  return 0;
}

static int is_registered(const void *address) {
  pthread_mutex_lock(&lock);
  int found = device_of(REGISTERED, address) >= 0;
  pthread_mutex_unlock(&lock);
  return found;
}

CUresult cuMemHostRegister_v2(void *address, size_t bytes, unsigned flags) {
  CALLED("%p %zu %u", address, bytes, flags);
  IN_CONTEXT;
  NEED(!is_registered(address), ALREADY_REGISTERED);
  add(REGISTERED, address, NULL);
  return 0;
}

CUresult cuMemHostUnregister(void *address) {
  settle(1);
  FREES(REGISTERED, address);
}

CUresult cuMemGetHandleForAddressRange(
    void *handle, CUdeviceptr address, size_t bytes, CUmemRangeHandleType type,
    unsigned long long flags) {
  CALLED("%llx %zu %d %llu", address, bytes, (int)type, flags);
  IN_CONTEXT;
  *(int *)handle = open("/dev/zero", O_RDONLY | O_CLOEXEC);
  return 0;
}

// ---- copies

static int is_pinned(const void *address) {
  pthread_mutex_lock(&lock);
  int found = 0;
  for (int i = 0; i < used; i++) {
    const char *begin = live[i].block;
    found |= live[i].kind == HOST && (const char *)address >= begin &&
        (const char *)address < begin + malloc_usable_size(live[i].block);
  }
  pthread_mutex_unlock(&lock);
  return found;
}

// Host memory that is not pinned is the caller's again when the call returns.
static CUresult copy(CUstream stream, void *to, const void *from, const void *host, size_t bytes) {
  put(stream, (struct work){.kind = COPY, .to = to, .from = from, .bytes = bytes});
  return (CUresult)(FAKE_IN_ORDER && host != NULL && !is_pinned(host) ? stream_state(stream, 1) : 0);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream) {
  CALLED("%llx %p %zu %p", to, from, bytes, (void *)stream);
  IN_CONTEXT;
  NEED(is_live(STREAM, stream) && in_its_context(stream), INVALID_HANDLE);
  return copy(stream, at(to), from, from, bytes);
}

CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream) {
  CALLED("%p %llx %zu %p", to, from, bytes, (void *)stream);
  IN_CONTEXT;
  NEED(is_live(STREAM, stream) && in_its_context(stream), INVALID_HANDLE);
  return copy(stream, to, at(from), to, bytes);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  CALLED("%llx %llx %zu %p", to, from, bytes, (void *)stream);
  IN_CONTEXT;
  NEED(is_live(STREAM, stream) && in_its_context(stream), INVALID_HANDLE);
  return copy(stream, at(to), at(from), NULL, bytes);
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream) {
  CALLED("%llx %u %zu %p", to, value, bytes, (void *)stream);
  IN_CONTEXT;
  NEED(is_live(STREAM, stream) && in_its_context(stream), INVALID_HANDLE);
  return (CUresult)put(stream, (struct work){.kind = FILL, .to = at(to), .value = value, .bytes = bytes});
}

#if FAKE_VERSION >= 12080
static void copy_all(
    CUstream stream, CUdeviceptr *to, CUdeviceptr *from, size_t *sizes, size_t count) {
  for (size_t i = 0; i < count; i++) {
    copy(stream, at(to[i]), at(from[i]), NULL, sizes[i]);
  }
}

#endif

#if FAKE_VERSION >= 13000
CUresult cuMemcpyBatchAsync_v2(
    CUdeviceptr *to, CUdeviceptr *from, size_t *sizes, size_t count,
    CUmemcpyAttributes *attributes, size_t *first, size_t groups, CUstream stream) {
  CALLED("%zu copies, order %d, flags %u, groups %zu from %zu, %p", count,
      (int)attributes->srcAccessOrder, attributes->flags, groups, *first, (void *)stream);
  IN_CONTEXT;
  NEED(is_live(STREAM, stream) && in_its_context(stream), INVALID_HANDLE);
  copy_all(stream, to, from, sizes, count);
  return 0;
}
#endif

// The signature that CUDA 12.8 had; the header of 13.0 only has the other one.
#if FAKE_VERSION >= 12080 && !defined USE_CUDA_H
CUresult cuMemcpyBatchAsync(
    CUdeviceptr *to, CUdeviceptr *from, size_t *sizes, size_t count,
    CUmemcpyAttributes *attributes, size_t *first, size_t groups, size_t *failed,
    CUstream stream) {
  *failed = 7;
  CALLED("%zu copies, order %d, flags %u, groups %zu from %zu, %p", count,
      attributes->srcAccessOrder, attributes->flags, groups, *first, (void *)stream);
  IN_CONTEXT;
  NEED(is_live(STREAM, stream) && in_its_context(stream), INVALID_HANDLE);
  copy_all(stream, to, from, sizes, count);
  return 0;
}
#endif

// ---- streams and events

CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority) {
  CALLED("%u %d", flags, priority);
  IN_CONTEXT;
  *stream = (CUstream)add(STREAM, new_stream(), NULL);
  return 0;
}

CUresult cuStreamDestroy_v2(CUstream stream) { FREES_BY(end_stream, STREAM, stream); }

CUresult cuStreamQuery(CUstream stream) {
  CALLED("%p", (void *)stream);
  IN_CONTEXT;
  return (CUresult)(is_live(STREAM, stream) ? stream_state(stream, 0) : INVALID_HANDLE);
}

CUresult cuStreamSynchronize(CUstream stream) {
  CALLED("%p", (void *)stream);
  IN_CONTEXT;
  return (CUresult)(is_live(STREAM, stream) ? stream_state(stream, 1) : INVALID_HANDLE);
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status) {
  CALLED("%p", (void *)stream);
  IN_CONTEXT;
  *status = (CUstreamCaptureStatus)capture;
  return is_live(STREAM, stream) ? 0 : (CUresult)INVALID_HANDLE;
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode) {
  CALLED("%d", (int)*mode);
  int before = capture_mode;
  capture_mode = (int)*mode;
  *mode = (CUstreamCaptureMode)before;
  return 0;
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
  CALLED("%p %p %u", (void *)stream, (void *)event, flags);
  IN_CONTEXT;
  NEED(is_live(STREAM, stream) && is_live(EVENT, event), INVALID_HANDLE);
  return (CUresult)put(stream, (struct work){.kind = WAIT_EVENT, .event = (struct event *)event});
}

CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr word, unsigned value, unsigned flags) {
  CALLED("%p %llx %u %u", (void *)stream, (unsigned long long)word, value, flags);
  IN_CONTEXT;
  NEED(is_live(STREAM, stream) && in_its_context(stream), INVALID_HANDLE);
  return (CUresult)put(stream, (struct work){.kind = WAIT_WORD, .to = at(word), .value = (int)value});
}

CUresult cuLaunchHostFunc(CUstream stream, void (*call)(void *), void *data) {
  CALLED("%p", (void *)stream);
  IN_CONTEXT;
  NEED(is_live(STREAM, stream) && in_its_context(stream), INVALID_HANDLE);
  return (CUresult)put(stream, (struct work){.kind = CALL, .call = call, .to = data});
}

CUresult cuEventCreate(CUevent *event, unsigned flags) {
  CALLED("%u", flags);
  IN_CONTEXT;
  *event = (CUevent)add(EVENT, new_event(), NULL);
  return 0;
}

CUresult cuEventDestroy_v2(CUevent event) { FREES_BY(end_event, EVENT, event); }

CUresult cuEventRecord(CUevent event, CUstream stream) {
  CALLED("%p %p", (void *)event, (void *)stream);
  IN_CONTEXT;
  NEED(is_live(STREAM, stream) && in_its_context(stream) && is_live(EVENT, event), INVALID_HANDLE);
  return (CUresult)put(stream, (struct work){.kind = RECORD, .event = (struct event *)event});
}

CUresult cuEventQuery(CUevent event) {
  CALLED("%p", (void *)event);
  IN_CONTEXT;
  return (CUresult)(is_live(EVENT, event) ? event_state(event, 0) : INVALID_HANDLE);
}

CUresult cuEventSynchronize(CUevent event) {
  CALLED("%p", (void *)event);
  IN_CONTEXT;
  return (CUresult)(is_live(EVENT, event) ? event_state(event, 1) : INVALID_HANDLE);
}

#if FAKE_VERSION >= 12080
#define ELAPSED cuEventElapsedTime_v2
#else
#define ELAPSED cuEventElapsedTime
#endif
CUresult ELAPSED(float *milliseconds, CUevent start, CUevent end) {
  CALLED("%p %p", (void *)start, (void *)end);
  IN_CONTEXT;
  NEED(is_live(EVENT, start) && is_live(EVENT, end), INVALID_HANDLE);
  *milliseconds = 1.5f;
  return 0;
}

// ---- modules and kernels

// An image is text: "bad" does not load, anything else does and has every kernel and variable.
CUresult cuModuleLoadDataEx(
    CUmodule *module, const void *image, unsigned count, CUjit_option *options, void **values) {
  settle(1);
  CALLED("%s", (const char *)image);
  IN_CONTEXT;
  for (unsigned i = 0; i + 1 < count; i += 2) {
    int error = (int)options[i] == 5 && (int)options[i + 1] == 6;
    int info = (int)options[i] == 3 && (int)options[i + 1] == 4;
    NEED(error || info, INVALID_VALUE);
    snprintf(values[i], (size_t)(uintptr_t)values[i + 1], "%s: %s\n", error ? "error" : "info",
        (const char *)image);
  }
  NEED(strcmp(image, "bad") != 0, INVALID_PTX);
  void *block = malloc(1);
  *module = (CUmodule)add(MODULE, block, block);
  return 0;
}

CUresult cuModuleUnload(CUmodule module) { FREES(MODULE, module); }

// What is known of a kernel: of those that run here, or of the one that does nothing.
static const struct twin *twin_of(CUfunction function) {
#ifdef FAKE_KERNELS
  return (const struct twin *)function;
#else
  return (void *)function == &kernel ? &kernel : NULL;
#endif
}

// Where kernels do nothing, a kernel's name has the sizes of its parameters: f_8_4; one with an x is missing.
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
  CALLED("%s", name);
  IN_CONTEXT;
  NEED(is_live(MODULE, module), INVALID_HANDLE);
#ifdef FAKE_KERNELS
  *function = (CUfunction)find_twin(name);
  return *function != NULL ? 0 : (CUresult)NOT_FOUND;
#endif
  NEED(strchr(name, 'x') == NULL, NOT_FOUND);
  kernel.parameters = 0;
  for (const char *size = strchr(name, '_'); size != NULL; size = strchr(size + 1, '_')) {
    kernel.sizes[kernel.parameters++] = (unsigned long)atoi(size + 1);
  }
  *function = (CUfunction)&kernel;
  return 0;
}

CUresult cuModuleGetGlobal_v2(
    CUdeviceptr *address, size_t *bytes, CUmodule module, const char *name) {
  CALLED("%s", name);
  IN_CONTEXT;
  NEED(is_live(MODULE, module), INVALID_HANDLE);
  NEED(strchr(name, 'x') == NULL, NOT_FOUND);
  *address = 0x7000;
  *bytes = 24;
  return 0;
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function) {
  CALLED("%d", (int)attribute);
  IN_CONTEXT;
  NEED(twin_of(function) != NULL, INVALID_HANDLE);
  *value = 100 + (int)attribute;
  return 0;
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  CALLED("%d %d", (int)attribute, value);
  IN_CONTEXT;
  return twin_of(function) != NULL ? 0 : (CUresult)INVALID_HANDLE;
}

#if FAKE_VERSION >= 12040
CUresult cuFuncLoad(CUfunction function) {
  CALLED("");
  IN_CONTEXT;
  return twin_of(function) != NULL ? 0 : (CUresult)INVALID_HANDLE;
}

CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t *offset, size_t *size) {
  CALLED("%zu", index);
  IN_CONTEXT;
  NEED(twin_of(function) != NULL, INVALID_HANDLE);
  NEED(index < twin_of(function)->parameters, INVALID_VALUE);
  *offset = 8 * index;
  *size = twin_of(function)->sizes[index];
  return 0;
}
#endif

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(
    int *blocks, CUfunction function, int block_size, size_t shared) {
  CALLED("%d %zu", block_size, shared);
  IN_CONTEXT;
  NEED(twin_of(function) != NULL, INVALID_HANDLE);
  *blocks = 2048 / block_size;
  return 0;
}

static void describe(
    char *text, const struct twin *twin, const unsigned *shape, CUstream stream, void **arguments) {
  int length = snprintf(text, TEXT, "%u,%u,%u x %u,%u,%u + %u in %p:", shape[0], shape[1],
      shape[2], shape[3], shape[4], shape[5], shape[6], (void *)stream);
  for (unsigned long i = 0; i < twin->parameters && twin->run == NULL; i++) {
    length += snprintf(text + length, TEXT - (size_t)length, " ");
    for (size_t b = 0; b < twin->sizes[i]; b++) {
      length += snprintf(text + length, TEXT - (size_t)length, "%02x",
          ((unsigned char *)arguments[i])[b]);
    }
  }
}

static CUresult launch(const char *name, CUfunction function, const unsigned *shape,
    CUstream stream, void **arguments) {
  const struct twin *twin = twin_of(function);
  NEED(twin != NULL, INVALID_HANDLE);
  char text[TEXT];
  describe(text, twin, shape, stream, arguments);
  int code = called(name, "%s", text);
  NEED(code == 0, code);
  IN_CONTEXT;
  NEED(is_live(STREAM, stream) && in_its_context(stream), INVALID_HANDLE);
  return (CUresult)(twin->run == NULL ? 0
                                      : put(stream, (struct work){.kind = KERNEL, .run = new_run(twin, shape, arguments)}));
}

CUresult cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
    unsigned by, unsigned bz, unsigned shared, CUstream stream, void **arguments, void **extra) {
  NEED(extra == NULL, INVALID_VALUE);
  unsigned shape[] = {gx, gy, gz, bx, by, bz, shared};
  return launch(__func__, function, shape, stream, arguments);
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz,
    unsigned bx, unsigned by, unsigned bz, unsigned shared, CUstream stream, void **arguments) {
  unsigned shape[] = {gx, gy, gz, bx, by, bz, shared};
  return launch(__func__, function, shape, stream, arguments);
}
