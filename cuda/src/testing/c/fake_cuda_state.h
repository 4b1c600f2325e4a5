// What the stand-in for libcuda.so keeps: the types, what is open, the calls, and what the tests
// want to go wrong.
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef FAKE_VERSION
#define FAKE_VERSION 13000
#endif
#ifndef FAKE_DEVICES
#define FAKE_DEVICES 1
#endif
#ifndef FAKE_MIG
#define FAKE_MIG 0
#endif
#ifndef FAKE_FREE
#define FAKE_FREE 1000
#endif

#ifdef USE_CUDA_H
#include <cuda.h>
#else
typedef int CUresult, CUdevice, CUdevice_attribute, CUjit_option, CUfunction_attribute;
typedef int CUpointer_attribute, CUmemRangeHandleType, CUflushGPUDirectRDMAWritesTarget;
typedef int CUflushGPUDirectRDMAWritesScope, CUstreamCaptureStatus, CUstreamCaptureMode;
typedef unsigned long long CUdeviceptr;
typedef void *CUcontext, *CUstream, *CUevent, *CUmodule, *CUfunction;
typedef struct {
  char bytes[16];
} CUuuid;
typedef struct {
  int srcAccessOrder, srcType, srcId, dstType, dstId;
  unsigned flags;
} CUmemcpyAttributes;
#endif

enum { MOST_DEVICES = 8, FIRST_DEVICE = 40 };
enum { INVALID_VALUE = 1, NO_DEVICE = 100, INVALID_DEVICE = 101, INVALID_CONTEXT = 201 };
enum { INVALID_PTX = 218, INVALID_HANDLE = 400, NOT_FOUND = 500, ALREADY_REGISTERED = 712 };
enum { CAPTURE_UNSUPPORTED = 900 };
enum { RELAXED = 2 };
enum { MAX_LIVE = 16384, MAX_NAMES = 128, TEXT = 512 };
enum { MEMORY = 1, HOST, REGISTERED, STREAM, EVENT, MODULE, RETAIN };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct {
  int kind, device; // the number of the device in whose context it was made
  void *handle, *block;
} live[MAX_LIVE];
static int used; // Behind the last slot that ever was.
static struct {
  char name[64];
  int calls, placed; // Those by a thread with a memory policy.
  char last[TEXT];
} names[MAX_NAMES];
static char fail_name[64], block_name[64];
static int fail_at, fail_code, waiting, misuses;
static int settling; // Calls that wait for all work; others wait behind them.
static int capture; // What streams say of their capture.
static int captured_elsewhere; // A capture in global mode, of a stream that nobody asks about.
static __thread int capture_mode;
static __thread int current;           // The number of the device whose context it is, counted from 1; 0: none.
static char contexts[MOST_DEVICES];    // Their addresses are the handles of the primary contexts.

static int slot_of(const char *name) {
  for (int i = 0; i < MAX_NAMES; i++) {
    if (names[i].name[0] == 0) {
      snprintf(names[i].name, sizeof names[i].name, "%s", name);
    }
    if (strcmp(names[i].name, name) == 0) {
      return i;
    }
  }
  abort();
}

// Whether memory that this thread touches first is where the thread wants it.
static int has_memory_policy(void) {
  int mode = 0;
  return syscall(SYS_get_mempolicy, &mode, NULL, 0L, NULL, 0L) == 0 && mode != 0;
}

// Writes the call down; the code that a test wants from it, or 0.
static int called(const char *name, const char *format, ...) {
  va_list arguments;
  pthread_mutex_lock(&lock);
  while (settling > 0) {
    pthread_cond_wait(&changed, &lock);
  }
  int slot = slot_of(name);
  int number = ++names[slot].calls;
  names[slot].placed += has_memory_policy();
  va_start(arguments, format);
  vsnprintf(names[slot].last, TEXT, format, arguments);
  va_end(arguments);
  int code = strcmp(name, fail_name) == 0 && number == fail_at ? fail_code : 0;
  if (strcmp(name, block_name) == 0) {
    waiting++;
    pthread_cond_broadcast(&changed);
    while (block_name[0] != 0) {
      pthread_cond_wait(&changed, &lock);
    }
    waiting--;
  }
  pthread_mutex_unlock(&lock);
  return code;
}

static void *add(int kind, void *handle, void *block) {
  pthread_mutex_lock(&lock);
  int i = 0;
  while (live[i].kind != 0) {
    if (++i == MAX_LIVE) {
      abort();
    }
  }
  used = i < used ? used : i + 1;
  live[i].kind = kind;
  live[i].device = kind == RETAIN ? (int)((char *)handle - contexts) : current - 1;
  live[i].handle = handle;
  live[i].block = block;
  pthread_mutex_unlock(&lock);
  return handle;
}

enum { DEFAULT_STREAM = 1, PER_THREAD_STREAM = 2 };

static int is_live(int kind, const void *handle) {
  pthread_mutex_lock(&lock);
  int found = kind == STREAM && (uintptr_t)handle <= PER_THREAD_STREAM;
  for (int i = 0; i < used; i++) {
    found |= live[i].kind == kind && live[i].handle == handle;
  }
  misuses += !found;
  pthread_mutex_unlock(&lock);
  return found;
}

// The device of something that is open; -1 if it is not. Under the lock.
static int device_of(int kind, const void *handle) {
  for (int i = 0; i < used; i++) {
    if (live[i].kind == kind && live[i].handle == handle) {
      return live[i].device;
    }
  }
  return -1;
}

// Told of every block of device memory that is freed, before it is.
static void (*freed)(const void *block, size_t bytes);

static int take(int kind, const void *handle) {
  pthread_mutex_lock(&lock);
  int found = 0;
  for (int i = 0; i < used && !found; i++) {
    if (live[i].kind == kind && live[i].handle == handle) {
      if (kind == MEMORY && freed != NULL) {
        freed(live[i].block, malloc_usable_size(live[i].block));
      }
      free(live[i].block);
      memset(&live[i], 0, sizeof live[i]);
      found = 1;
    }
  }
  misuses += !found;
  pthread_mutex_unlock(&lock);
  return found ? 0 : INVALID_HANDLE;
}

static int misuse_unless(int good) {
  if (!good) {
    pthread_mutex_lock(&lock);
    misuses++;
    pthread_mutex_unlock(&lock);
  }
  return good;
}

// Calls without the context, or with a handle that is not open, are mistakes of the caller.
static int in_context(void) { return misuse_unless(current > 0) && is_live(RETAIN, &contexts[current - 1]); }

// So is work in the stream of a device whose context is not the current one; the driver's own streams are of every one.
static int in_its_context(const void *stream) {
  pthread_mutex_lock(&lock);
  int device = device_of(STREAM, stream);
  pthread_mutex_unlock(&lock);
  return misuse_unless(device < 0 || device == current - 1);
}

#define CALLED(...)                          \
  do {                                       \
    int code = called(__func__, __VA_ARGS__); \
    if (code != 0) return (CUresult)code;    \
  } while (0)
#define NEED(condition, code)                   \
  do {                                          \
    if (!(condition)) return (CUresult)(code);  \
  } while (0)
#define IN_CONTEXT NEED(in_context(), INVALID_CONTEXT)
// What frees does so even when it reports a failure: then a test can ask for everything to be freed.
#define FREES_BY(end, kind, handle)                       \
  do {                                                    \
    int code = called(__func__, "%p", (void *)(handle));  \
    int taken = take(kind, (const void *)(handle));       \
    if (taken == 0) end((void *)(handle));                \
    return (CUresult)(code != 0 ? code : taken);          \
  } while (0)
#define FREES(kind, handle) FREES_BY((void), kind, handle)

// ---- for the tests

void fake_reset(void);
void fake_on_free(void (*hook)(const void *block, size_t bytes));
void fake_fail(const char *name, int nth, int code);
void fake_block(const char *name);
void fake_capture(int status);
void fake_capture_elsewhere(int begun);
void fake_await_waiting(int count);
int fake_misuses(void);
int fake_live(void);
int fake_live_but_modules(void);
const char *fake_name(int index);
int fake_calls(const char *name);
int fake_placed(const char *name);
const char *fake_last(const char *name);

void fake_reset(void) {
  pthread_mutex_lock(&lock);
  memset(live, 0, sizeof live);
  used = 0;
  memset(names, 0, sizeof names);
  fail_name[0] = block_name[0] = 0;
  misuses = capture = captured_elsewhere = settling = 0;
  freed = NULL;
  pthread_mutex_unlock(&lock);
}

void fake_on_free(void (*hook)(const void *block, size_t bytes)) { freed = hook; }

void fake_fail(const char *name, int nth, int code) {
  pthread_mutex_lock(&lock);
  snprintf(fail_name, sizeof fail_name, "%s", name);
  fail_at = nth;
  fail_code = code;
  pthread_mutex_unlock(&lock);
}

void fake_capture(int status) { capture = status; }

// Threads in any but the relaxed mode must not take memory meanwhile.
void fake_capture_elsewhere(int begun) { captured_elsewhere = begun; }

// Calls of this name wait from now on, until it is called with "".
void fake_block(const char *name) {
  pthread_mutex_lock(&lock);
  snprintf(block_name, sizeof block_name, "%s", name);
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
}

void fake_await_waiting(int count) {
  pthread_mutex_lock(&lock);
  while (waiting < count) {
    pthread_cond_wait(&changed, &lock);
  }
  pthread_mutex_unlock(&lock);
}

int fake_misuses(void) { return misuses; }

static int count_live(int modules) {
  int count = 0;
  for (int i = 0; i < used; i++) {
    count += live[i].kind != 0 && (modules || live[i].kind != MODULE);
  }
  return count;
}

int fake_live(void) { return count_live(1); }

int fake_live_but_modules(void) { return count_live(0); }

const char *fake_name(int index) {
  return index < MAX_NAMES && names[index].name[0] != 0 ? names[index].name : NULL;
}

int fake_calls(const char *name) { return names[slot_of(name)].calls; }

int fake_placed(const char *name) { return names[slot_of(name)].placed; }

const char *fake_last(const char *name) { return names[slot_of(name)].last; }
