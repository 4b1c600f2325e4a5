// CUDA's driver library, looked up when the driver opens: one library serves every version of it, and machines without.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parts.h"

#define CUFILE_PART "cuda"

enum { NOT_INITIALIZED = 3, INVALID_CONTEXT = 201, INVALID_VALUE = 1, NOT_SUPPORTED = 801 };
enum { ATTRIBUTE_CONTEXT = 1, ATTRIBUTE_TYPE = 2, ATTRIBUTE_REACHED = 3, ATTRIBUTE_ORDINAL = 9, ATTRIBUTE_BEGIN = 11, ATTRIBUTE_BYTES = 12 };
enum { TYPE_DEVICE = 2, HOST_PORTABLE = 1, HOST_READ_ONLY = 8, STREAM_NON_BLOCKING = 1, HIGHEST_PRIORITY = -1000, CAPTURE_RELAXED = 2 };
enum { MOST_GPUS = 16 };

typedef struct CUfunc_st *function;
typedef struct CUmod_st *module;

// X(result, name, arguments): what must be there.
#define NEEDED(X)                                                                                                     \
  X(cuInit, (unsigned))                                                                                               \
  X(cuDeviceGetCount, (int *))                                                                                        \
  X(cuDeviceGet, (int *, int))                                                                                        \
  X(cuDeviceGetPCIBusId, (char *, int, int))                                                                          \
  X(cuDevicePrimaryCtxRetain, (cuda_context *, int))                                                                  \
  X(cuCtxGetCurrent, (cuda_context *))                                                                                \
  X(cuCtxSetCurrent, (cuda_context))                                                                                  \
  X(cuPointerGetAttribute, (void *, int, device_address))                                                             \
  X(cuMemHostAlloc, (void **, size_t, unsigned))                                                                      \
  X(cuMemFreeHost, (void *))                                                                                          \
  X(cuMemcpyHtoDAsync_v2, (device_address, const void *, size_t, CUstream))                                           \
  X(cuMemcpyDtoHAsync_v2, (void *, device_address, size_t, CUstream))                                                 \
  X(cuStreamCreateWithPriority, (CUstream *, unsigned, int))                                                          \
  X(cuStreamDestroy_v2, (CUstream))                                                                                   \
  X(cuStreamSynchronize, (CUstream))                                                                                  \
  X(cuStreamIsCapturing, (CUstream, int *))                                                                           \
  X(cuModuleLoadDataEx, (module *, const void *, unsigned, int *, void **))                                           \
  X(cuModuleGetFunction, (function *, module, const char *))                                                          \
  X(cuModuleUnload, (module))                                                                                         \
  X(cuLaunchKernel, (function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void **, void **))

// What does without.
#define WANTED(X)                                                       \
  X(cuPointerGetAttributes, (unsigned, int *, void **, device_address)) \
  X(cuDeviceGetUuid_v2, (char *, int))                                  \
  X(cuStreamGetCtx, (CUstream, cuda_context *))                         \
  X(cuLaunchHostFunc, (CUstream, void (*)(void *), void *))             \
  X(cuMemHostRegister_v2, (void *, size_t, unsigned))                   \
  X(cuMemHostUnregister, (void *))                                      \
  X(cuMemHostGetDevicePointer_v2, (device_address *, void *, unsigned)) \
  X(cuThreadExchangeStreamCaptureMode, (int *))                         \
  X(cuGetErrorName, (CUresult, const char **))

static struct {
#define MEMBER(name, arguments) CUresult(*name) arguments;
  NEEDED(MEMBER) WANTED(MEMBER)
#undef MEMBER
} cuda;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static atomic_bool there;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static cuda_context primary[MOST_GPUS]; // guarded by lock

typedef void *__attribute__((may_alias)) any_pointer;

static bool find(void *library, const char *name, void *place) {
  *(any_pointer *)place = dlsym(library, name);
  return *(any_pointer *)place != NULL;
}

static void load(void) {
  const char *named = secure_getenv("GPUNVME_LIBCUDA");
  const char *name = named != NULL && *named != 0 ? named : "libcuda.so.1";
  void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    LOG(LOG_NOTICE, "there is no CUDA driver, so all memory is the host's: %s", dlerror());
    return;
  }
  bool good = true;
#define FIND(symbol, arguments) good &= find(library, #symbol, &cuda.symbol);
  NEEDED(FIND)
  if (!good) {
    LOG(LOG_ERROR, "%s lacks functions of CUDA 11, so all memory is taken for the host's", name);
    return;
  }
  WANTED(FIND)
#undef FIND
  atomic_store_explicit(&there, true, memory_order_release);
}

void cuda_load(void) {
  pthread_once(&once, load);
}

bool cuda_is_there(void) {
  return atomic_load_explicit(&there, memory_order_acquire);
}

const char *cuda_error(CUresult code) {
  const char *name = NULL;
  if (cuda_is_there() && cuda.cuGetErrorName != NULL) {
    cuda.cuGetErrorName(code, &name);
  }
  return name != NULL ? name : "an error of CUDA";
}

// Memory of pools and of virtual addresses has no context, but a GPU, whose primary context reaches it.
static CUresult primary_context(int gpu, cuda_context *context) {
  CUresult code = 0;
  if (gpu < 0 || gpu >= MOST_GPUS) {
    return INVALID_VALUE;
  }
  pthread_mutex_lock(&lock);
  if (primary[gpu] == NULL) {
    int device;
    code = cuda.cuDeviceGet(&device, gpu);
    code = code != 0 ? code : cuda.cuDevicePrimaryCtxRetain(&primary[gpu], device);
  }
  *context = primary[gpu];
  pthread_mutex_unlock(&lock);
  return code;
}

// Some drivers want a context for any question, and a thread of the program need not have one.
static CUresult ask(device_address address, unsigned *type, memory *m) {
  int which[] = {ATTRIBUTE_TYPE, ATTRIBUTE_CONTEXT, ATTRIBUTE_ORDINAL, ATTRIBUTE_BEGIN, ATTRIBUTE_BYTES};
  void *to[] = {type, &m->context, &m->gpu, &m->begin, &m->bytes};
  if (cuda.cuPointerGetAttributes != NULL) {
    return cuda.cuPointerGetAttributes(COUNT(which), which, to, address);
  }
  CUresult code = cuda.cuPointerGetAttribute(type, ATTRIBUTE_TYPE, address);
  for (size_t i = 1; i < COUNT(which) && code == 0 && *type == TYPE_DEVICE; i++) {
    CUresult one = cuda.cuPointerGetAttribute(to[i], which[i], address);
    code = which[i] == ATTRIBUTE_CONTEXT ? 0 : one;
  }
  return code;
}

CUresult cuda_memory(const void *address, memory *m) {
  unsigned type = 0;
  *m = (memory){.gpu = -1};
  if (!cuda_is_there()) {
    return 0;
  }
  CUresult code = ask((device_address)(uintptr_t)address, &type, m);
  if (code == INVALID_CONTEXT) {
    cuda_context context;
    caller before;
    code = primary_context(0, &context);
    code = code != 0 ? code : cuda_enter(context, &before);
    if (code == 0) {
      code = ask((device_address)(uintptr_t)address, &type, m);
      cuda_leave(before);
    }
  }
  if (code == NOT_INITIALIZED || code == INVALID_VALUE || (code == 0 && type != TYPE_DEVICE)) {
    *m = (memory){.gpu = -1};
    return 0;
  }
  if (code == 0) {
    m->device = true;
    if (m->context == NULL) {
      code = primary_context(m->gpu, &m->context);
    }
  }
  return code;
}

bool cuda_reaches(const void *address) {
  device_address there;
  return cuda.cuPointerGetAttribute(&there, ATTRIBUTE_REACHED, (device_address)(uintptr_t)address) == 0;
}

int cuda_gpus(void) {
  int count = 0;
  return cuda_is_there() && cuda.cuInit(0) == 0 && cuda.cuDeviceGetCount(&count) == 0 ? count : 0;
}

void cuda_uuid(int gpu, char uuid[CUFILE_GPU_UUID_LEN]) {
  int device;
  memset(uuid, 0, CUFILE_GPU_UUID_LEN);
  if (cuda.cuDeviceGetUuid_v2 != NULL && cuda.cuDeviceGet(&device, gpu) == 0) {
    cuda.cuDeviceGetUuid_v2(uuid, device);
  }
}

bool cuda_bus_id(int gpu, char *id, int length) {
  int device;
  return cuda.cuDeviceGet(&device, gpu) == 0 && cuda.cuDeviceGetPCIBusId(id, length, device) == 0;
}

// Sets the mode, and gives what was.
static int exchange_capture_mode(int mode) {
  if (cuda.cuThreadExchangeStreamCaptureMode != NULL) {
    cuda.cuThreadExchangeStreamCaptureMode(&mode);
  }
  return mode;
}

CUresult cuda_enter(cuda_context context, caller *before) {
  CUresult code = cuda.cuCtxGetCurrent(&before->context);
  code = code != 0 || before->context == context ? code : cuda.cuCtxSetCurrent(context);
  if (code == 0) {
    before->capture_mode = exchange_capture_mode(CAPTURE_RELAXED);
  }
  return code;
}

void cuda_leave(caller before) {
  cuda_context now;
  exchange_capture_mode(before.capture_mode);
  if (cuda.cuCtxGetCurrent(&now) == 0 && now != before.context) {
    cuda.cuCtxSetCurrent(before.context);
  }
}

CUresult cuda_pinned(void **address, size_t bytes) {
  return cuda.cuMemHostAlloc(address, bytes, HOST_PORTABLE);
}

void cuda_unpin(void *address) {
  cuda.cuMemFreeHost(address);
}

bool cuda_pins_files(void) {
  return cuda_is_there() && cuda.cuMemHostRegister_v2 != NULL && cuda.cuMemHostUnregister != NULL && cuda.cuMemHostGetDevicePointer_v2 != NULL;
}

CUresult cuda_pin_file(void *address, size_t bytes, device_address *device) {
  CUresult code = cuda.cuMemHostRegister_v2(address, bytes, HOST_PORTABLE | HOST_READ_ONLY);
  if (code == 0) {
    code = cuda.cuMemHostGetDevicePointer_v2(device, address, 0);
    if (code != 0) {
      cuda.cuMemHostUnregister(address);
    }
  }
  return code;
}

void cuda_unpin_file(void *address) {
  cuda.cuMemHostUnregister(address);
}

CUresult cuda_stream(CUstream *stream) {
  // CUDA takes the highest there is. Kernels that copy then come before blocks of the program's that wait for a place.
  return cuda.cuStreamCreateWithPriority(stream, STREAM_NON_BLOCKING, HIGHEST_PRIORITY);
}

void cuda_stream_end(CUstream stream) {
  cuda.cuStreamDestroy_v2(stream);
}

CUresult cuda_to_device(device_address to, const void *from, size_t bytes, CUstream stream) {
  return cuda.cuMemcpyHtoDAsync_v2(to, from, bytes, stream);
}

CUresult cuda_to_host(void *to, device_address from, size_t bytes, CUstream stream) {
  return cuda.cuMemcpyDtoHAsync_v2(to, from, bytes, stream);
}

CUresult cuda_wait(CUstream stream) {
  return cuda.cuStreamSynchronize(stream);
}

// ---- streams of the program

CUresult cuda_stream_context(CUstream stream, cuda_context *context) {
  if (!cuda_is_there() || cuda.cuLaunchHostFunc == NULL) {
    return NOT_SUPPORTED;
  }
  // The default stream is that of the current context.
  if (cuda.cuStreamGetCtx != NULL && (uintptr_t)stream > 2) {
    return cuda.cuStreamGetCtx(stream, context);
  }
  CUresult code = cuda.cuCtxGetCurrent(context);
  return code == 0 && *context == NULL ? INVALID_CONTEXT : code;
}

bool cuda_is_captured(CUstream stream) {
  int status = 0;
  return cuda.cuStreamIsCapturing(stream, &status) != 0 || status != 0;
}

CUresult cuda_call(CUstream stream, void (*call)(void *), void *data) {
  return cuda.cuLaunchHostFunc(stream, call, data);
}

// The kernel, compiled from copy.cu.
extern const char copy_ptx[];
__asm__(".section .rodata\n"
        ".global copy_ptx\n"
        "copy_ptx:\n"
        ".incbin \"" CUFILE_PTX "\"\n"
        ".byte 0\n"
        ".previous\n");

// What is loaded, of the contexts that have stream-ordered transfers, which are few.
static struct {
  cuda_context context;
  CUresult code; // of loading it
  module loaded;
  function kernel;
} known[MOST_GPUS]; // guarded by lock

// Loads it where that has not been tried yet, or has failed, if it is to be tried again.
static CUresult kernel_of(cuda_context context, bool again, function *kernel) {
  CUresult code = 0;
  size_t i = 0;
  pthread_mutex_lock(&lock);
  while (i < COUNT(known) && known[i].context != NULL && known[i].context != context) {
    i++;
  }
  if (i == COUNT(known)) {
    code = INVALID_CONTEXT;
  } else if (known[i].context == NULL || (again && known[i].code != 0)) {
    code = cuda.cuModuleLoadDataEx(&known[i].loaded, copy_ptx, 0, NULL, NULL);
    if (code == 0) {
      code = cuda.cuModuleGetFunction(&known[i].kernel, known[i].loaded, "gpunvme_cufile_copy");
      if (code != 0) {
        cuda.cuModuleUnload(known[i].loaded);
      }
    }
    if (code != 0) {
      LOG(LOG_WARN, "the kernel that copies cannot be loaded: no transfers in streams, and slower batches: %s", cuda_error(code));
    }
    known[i].context = context;
    known[i].code = code;
  }
  code = i < COUNT(known) ? known[i].code : code;
  *kernel = code == 0 ? known[i].kernel : NULL;
  pthread_mutex_unlock(&lock);
  return code;
}

void cuda_drop_kernels(void) {
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < COUNT(known); i++) {
    caller before;
    if (known[i].context != NULL && known[i].code == 0 && cuda_enter(known[i].context, &before) == 0) {
      cuda.cuModuleUnload(known[i].loaded);
      cuda_leave(before);
    }
    known[i].context = NULL;
  }
  pthread_mutex_unlock(&lock);
}

CUresult cuda_prepare_copy(cuda_context context, bool again) {
  function kernel;
  return kernel_of(context, again, &kernel);
}

CUresult cuda_launch_copies(cuda_context context, const copy *descriptors, unsigned count, size_t most, CUstream stream) {
  enum { THREADS = 256, BYTES = 16 * THREADS, MOST_BLOCKS = 32 };
  function kernel;
  CUresult code = kernel_of(context, false, &kernel);
  if (code != 0) {
    return code;
  }
  unsigned each = most / BYTES < MOST_BLOCKS ? (unsigned)((most + BYTES - 1) / BYTES) : MOST_BLOCKS;
  each = each > 0 ? each : 1;
  device_address at = (device_address)(uintptr_t)descriptors;
  void *arguments[] = {&at, &each};
  return cuda.cuLaunchKernel(kernel, count * each, 1, 1, THREADS, 1, 1, 0, stream, arguments, NULL);
}
