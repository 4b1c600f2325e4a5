// A stand-in for libcufile.so without a GPU: device memory is host memory, so that pread and pwrite do
// the transfers. It writes the calls down, fails where a test tells it to, and counts what a caller
// must not do.
//
// FAKE_CUFILE_VERSION  what cuFileGetVersion says; functions newer than it are left out
// USE_CUFILE_H         take the types from NVIDIA's header, to check these signatures against it
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#ifndef FAKE_CUFILE_VERSION
#define FAKE_CUFILE_VERSION 1150
#endif

#ifdef USE_CUFILE_H
#include <cufile.h>
#else
typedef struct { int err, cu_err; } CUfileError_t;
typedef void *CUfileHandle_t, *CUfileBatchHandle_t, *CUstream;
typedef struct {
  int type;
  union { int fd; void *handle; } handle;
  const void *fs_ops;
} CUfileDescr_t;
typedef struct {
  struct {
    unsigned major_version, minor_version;
    size_t poll_thresh_size, max_direct_io_size;
    unsigned dstatusflags, dcontrolflags;
  } nvfs;
  unsigned fflags, max_device_cache_size, per_buffer_cache_size, max_device_pinned_mem_size;
  unsigned max_batch_io_size, max_batch_io_timeout_msecs;
} CUfileDrvProps_t;
typedef struct {
  int mode;
  union {
    struct { void *devPtr_base; off_t file_offset, devPtr_offset; size_t size; } batch;
  } u;
  CUfileHandle_t fh;
  int opcode;
  void *cookie;
} CUfileIOParams_t;
typedef struct { void *cookie; int status; size_t ret; } CUfileIOEvents_t;
typedef int CUFileSizeTConfigParameter_t, CUFileBoolConfigParameter_t, CUFileStringConfigParameter_t;
typedef struct { uint64_t words[64]; } CUfileStatsLevel1_t;
typedef struct { uint64_t words[128]; } CUfileStatsLevel2_t;
typedef struct { uint64_t words[625]; } CUfileStatsLevel3_t;
#endif

enum { NOT_OPEN = 5001, CUDA_ERROR = 5011, INVALID = 5022, REGISTERED = 5023, UNREGISTERED = 5024 };
enum { ALREADY_OPEN = 5026, NO_RECORD = 5027, TWICE = 5028 };
enum { MOST = 256, TEXT = 16384 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int opened, misuses, level, handles, streams, batches;
static struct { int fd; } files[MOST];
static struct { const char *base; size_t bytes; } buffers[MOST];
static char order[TEXT];
static char fail_name[64];
static int fail_at, fail_times, fail_code, fail_calls;
static long most_bytes;
static uint64_t reads, writes, read_bytes, write_bytes, unaligned;
static size_t sizes[16];
static bool switches[16];
static char texts[4][256];
static struct batch {
  CUfileIOParams_t *entries;
  unsigned count, done;
  int open, cancelled;
} all_batches[MOST];

static void misuse(const char *what) {
  misuses++;
  snprintf(order + strlen(order), TEXT - strlen(order), "MISUSE %s\n", what);
}

// Writes the call down; the code that a test wants from it, or 0.
static int called(const char *name, const char *format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (strlen(order) + strlen(name) + strlen(text) + 8 < TEXT) {
    snprintf(order + strlen(order), TEXT - strlen(order), "%s %s\n", name, text);
  }
  if (strcmp(name, fail_name) != 0) {
    return 0;
  }
  fail_calls++;
  return fail_calls >= fail_at && fail_calls < fail_at + fail_times ? fail_code : 0;
}

static CUfileError_t result(int code) {
  CUfileError_t error;
  memset(&error, 0, sizeof error);
  memcpy(&error, &code, sizeof code);
  if (code == CUDA_ERROR) {
    int cuda = 2;
    memcpy((char *)&error + sizeof code, &cuda, sizeof cuda);
  }
  return error;
}

#define ENTER pthread_mutex_lock(&lock)
#define LEAVE(code)                \
  do {                             \
    int leaving = (code);          \
    pthread_mutex_unlock(&lock);   \
    return result(leaving);        \
  } while (0)
#define LOGGED(...)                             \
  ENTER;                                        \
  {                                             \
    int wanted = called(__func__, __VA_ARGS__); \
    if (wanted != 0) LEAVE(wanted);             \
  }
#define NEED(condition, code)         \
  do {                                \
    if (!(condition)) LEAVE(code);    \
  } while (0)

// ---- for the tests

void fake_cufile_reset(void);
void fake_cufile_fail(const char *name, int nth, int times, int code);
void fake_cufile_short(long bytes);
void fake_cufile_freed(const void *block, size_t bytes);
int fake_cufile_misuses(void);
int fake_cufile_live(void);
const char *fake_cufile_order(void);

void fake_cufile_reset(void) {
  ENTER;
  opened = misuses = level = handles = streams = batches = fail_at = fail_calls = 0;
  memset(files, 0, sizeof files);
  memset(buffers, 0, sizeof buffers);
  memset(sizes, 0, sizeof sizes);
  memset(switches, 0, sizeof switches);
  memset(texts, 0, sizeof texts);
  memset(all_batches, 0, sizeof all_batches);
  order[0] = fail_name[0] = 0;
  most_bytes = INT64_MAX;
  reads = writes = read_bytes = write_bytes = unaligned = 0;
  pthread_mutex_unlock(&lock);
}

// The nth call of a function from now on fails, and those after it: `times` in all. For transfers a
// code below 5000 is an errno.
void fake_cufile_fail(const char *name, int nth, int times, int code) {
  ENTER;
  snprintf(fail_name, sizeof fail_name, "%s", name);
  fail_at = nth;
  fail_times = times;
  fail_code = code;
  fail_calls = 0;
  pthread_mutex_unlock(&lock);
}

// No transfer moves more than this from now on.
void fake_cufile_short(long bytes) { most_bytes = bytes; }

// Device memory is about to be freed.
void fake_cufile_freed(const void *block, size_t bytes) {
  ENTER;
  for (int i = 0; i < MOST; i++) {
    const char *begin = block;
    if (buffers[i].base != NULL && buffers[i].base >= begin && buffers[i].base < begin + bytes) {
      misuse("memory freed while it is registered");
    }
  }
  pthread_mutex_unlock(&lock);
}

int fake_cufile_misuses(void) { return misuses; }

int fake_cufile_live(void) {
  int count = opened + handles + streams + batches;
  for (int i = 0; i < MOST; i++) {
    count += buffers[i].base != NULL;
  }
  return count;
}

const char *fake_cufile_order(void) { return order; }

// ---- driver

CUfileError_t cuFileGetVersion(int *version) {
  *version = FAKE_CUFILE_VERSION;
  return result(0);
}

CUfileError_t cuFileDriverOpen(void) {
  LOGGED("");
  if (opened++ > 0) misuse("driver opened twice");
  LEAVE(0);
}

CUfileError_t cuFileDriverClose_v2(void) {
  ENTER;
  int code = called("cuFileDriverClose", "");
  if (opened-- <= 0) misuse("driver closed twice");
  if (handles + streams + batches > 0) misuse("driver closed before what it has");
  LEAVE(code);
}

CUfileError_t cuFileDriverGetProperties(CUfileDrvProps_t *props) {
  LOGGED("");
  NEED(opened, NOT_OPEN);
  memset(props, 0, sizeof *props);
  props->nvfs.major_version = 2;
  props->nvfs.minor_version = 26;
  props->nvfs.poll_thresh_size = 4;
  props->nvfs.max_direct_io_size = 16384;
  props->nvfs.dstatusflags = 1 << 4;
  props->nvfs.dcontrolflags = 2;
  props->fflags = 15;
  props->max_device_cache_size = 131072;
  props->per_buffer_cache_size = 1024;
  props->max_device_pinned_mem_size = 33554432;
  props->max_batch_io_size = 128;
  props->max_batch_io_timeout_msecs = 5;
  LEAVE(0);
}

// ---- files and buffers

CUfileError_t cuFileHandleRegister(CUfileHandle_t *fh, CUfileDescr_t *descr) {
  int fd = descr->handle.fd;
  LOGGED("%d%s", (int)descr->type, fcntl(fd, F_GETFL) & O_DIRECT ? " O_DIRECT" : "");
  NEED(opened, NOT_OPEN);
  NEED((int)descr->type == 1 && descr->fs_ops == NULL && fcntl(fd, F_GETFD) >= 0, INVALID);
  int place = -1;
  for (int i = 1; i < MOST; i++) {
    NEED(files[i].fd != fd, TWICE);
    place = place < 0 && files[i].fd == 0 ? i : place;
  }
  files[place].fd = fd;
  handles++;
  *fh = (CUfileHandle_t)(uintptr_t)(place + 0x1000);
  LEAVE(0);
}

static int fd_of(CUfileHandle_t fh) {
  uintptr_t place = (uintptr_t)fh - 0x1000;
  if (place >= MOST || files[place].fd == 0) {
    misuse("a handle that is not registered");
    return -1;
  }
  if (fcntl(files[place].fd, F_GETFD) < 0) misuse("a descriptor that is closed");
  return files[place].fd;
}

void cuFileHandleDeregister(CUfileHandle_t fh) {
  ENTER;
  called(__func__, "");
  if (fd_of(fh) >= 0) {
    files[(uintptr_t)fh - 0x1000].fd = 0;
    handles--;
  }
  pthread_mutex_unlock(&lock);
}

CUfileError_t cuFileBufRegister(const void *base, size_t length, int flags) {
  LOGGED("%zu %d", length, flags);
  NEED(opened, NOT_OPEN);
  int place = -1;
  for (int i = 0; i < MOST; i++) {
    NEED(buffers[i].base != base, REGISTERED);
    place = place < 0 && buffers[i].base == NULL ? i : place;
  }
  buffers[place].base = base;
  buffers[place].bytes = length;
  LEAVE(0);
}

CUfileError_t cuFileBufDeregister(const void *base) {
  LOGGED("");
  for (int i = 0; i < MOST; i++) {
    if (buffers[i].base == base) {
      buffers[i].base = NULL;
      LEAVE(0);
    }
  }
  misuse("a buffer that is not registered");
  LEAVE(INVALID);
}

// ---- transfers

static ssize_t transfer(
    const char *name, int writing, CUfileHandle_t fh, void *base, size_t size, off_t offset,
    off_t place) {
  ENTER;
  int code = called(name, "%zu %ld %ld", size, (long)offset, (long)place);
  int fd = fd_of(fh);
  long most = most_bytes;
  pthread_mutex_unlock(&lock);
  if (code != 0) {
    errno = code;
    return code < 5000 ? -1 : -code;
  }
  if (fd < 0) {
    return -NO_RECORD;
  }
  size_t bytes = size > (size_t)most ? (size_t)most : size;
  char *memory = (char *)base + place;
  ssize_t done = writing ? pwrite(fd, memory, bytes, offset) : pread(fd, memory, bytes, offset);
  int problem = errno;
  ENTER;
  if (done >= 0) {
    *(writing ? &writes : &reads) += 1;
    *(writing ? &write_bytes : &read_bytes) += (uint64_t)done;
    unaligned += ((uintptr_t)offset | size | (uintptr_t)place) % 4096 != 0;
  }
  pthread_mutex_unlock(&lock);
  errno = problem;
  return done;
}

ssize_t cuFileRead(CUfileHandle_t fh, void *base, size_t size, off_t offset, off_t place) {
  return transfer("cuFileRead", 0, fh, base, size, offset, place);
}

ssize_t cuFileWrite(CUfileHandle_t fh, const void *base, size_t size, off_t offset, off_t place) {
  return transfer("cuFileWrite", 1, fh, (void *)(uintptr_t)base, size, offset, place);
}

static CUfileError_t in_stream(const char *name, int writing, CUfileHandle_t fh, void *base,
    size_t *size, off_t *offset, off_t *place, ssize_t *done, CUstream stream) {
  ENTER;
  int code = called(name, "%d", stream != NULL);
  NEED(code == 0, code);
  pthread_mutex_unlock(&lock);
  *done = transfer(writing ? "cuFileWrite" : "cuFileRead", writing, fh, base, *size, *offset, *place);
  return result(0);
}

CUfileError_t cuFileReadAsync(CUfileHandle_t fh, void *base, size_t *size, off_t *offset,
    off_t *place, ssize_t *done, CUstream stream) {
  return in_stream(__func__, 0, fh, base, size, offset, place, done, stream);
}

CUfileError_t cuFileWriteAsync(CUfileHandle_t fh, void *base, size_t *size, off_t *offset,
    off_t *place, ssize_t *done, CUstream stream) {
  return in_stream(__func__, 1, fh, base, size, offset, place, done, stream);
}

CUfileError_t cuFileStreamRegister(CUstream stream, unsigned flags) {
  LOGGED("%d %u", stream != NULL, flags);
  streams++;
  LEAVE(0);
}

CUfileError_t cuFileStreamDeregister(CUstream stream) {
  LOGGED("%d", stream != NULL);
  streams--;
  LEAVE(0);
}

// ---- batches

CUfileError_t cuFileBatchIOSetUp(CUfileBatchHandle_t *id, unsigned nr) {
  LOGGED("%u", nr);
  NEED(nr > 0 && nr <= 128, INVALID);
  int place = 0;
  while (place < MOST - 1 && all_batches[place].open) place++;
  memset(&all_batches[place], 0, sizeof all_batches[place]);
  all_batches[place].open = 1;
  batches++;
  *id = (CUfileBatchHandle_t)&all_batches[place];
  LEAVE(0);
}

CUfileError_t cuFileBatchIOSubmit(
    CUfileBatchHandle_t id, unsigned nr, CUfileIOParams_t *entries, unsigned flags) {
  LOGGED("%u %u", nr, flags);
  struct batch *batch = (struct batch *)id;
  for (unsigned i = 0; i < nr; i++) {
    NEED((int)entries[i].mode == 1, INVALID);
  }
  batch->entries = entries;
  batch->count = nr;
  batch->done = 0;
  batch->cancelled = 0;
  LEAVE(0);
}

static void run_one(struct batch *batch, CUfileIOEvents_t *event) {
  // The last first: they end in no order.
  CUfileIOParams_t *entry = &batch->entries[batch->count - ++batch->done];
  int status = 8;
  ssize_t done = 0;
  if (!batch->cancelled) {
    int writing = (int)entry->opcode == 1;
    done = transfer(writing ? "cuFileWrite" : "cuFileRead", writing, entry->fh,
        entry->u.batch.devPtr_base, entry->u.batch.size, entry->u.batch.file_offset,
        entry->u.batch.devPtr_offset);
    status = done < 0 ? 0x40 : 0x10;
  }
  event->cookie = entry->cookie;
  memcpy(&event->status, &status, sizeof status);
  event->ret = (size_t)(done == -1 ? -errno : done);
}

// Ends two at a time, or as many as are waited for.
CUfileError_t cuFileBatchIOGetStatus(CUfileBatchHandle_t id, unsigned min, unsigned *nr,
    CUfileIOEvents_t *events, struct timespec *timeout) {
  LOGGED("%u %u %ld.%09ld", min, *nr, (long)timeout->tv_sec, timeout->tv_nsec);
  pthread_mutex_unlock(&lock);
  struct batch *batch = (struct batch *)id;
  unsigned wanted = min < 2 ? 2 : min, room = *nr;
  for (*nr = 0; *nr < wanted && *nr < room && batch->done < batch->count; ++*nr) {
    run_one(batch, &events[*nr]);
  }
  return result(0);
}

CUfileError_t cuFileBatchIOCancel(CUfileBatchHandle_t id) {
  LOGGED("");
  ((struct batch *)id)->cancelled = 1;
  LEAVE(0);
}

void cuFileBatchIODestroy(CUfileBatchHandle_t id) {
  ENTER;
  called(__func__, "");
  struct batch *batch = (struct batch *)id;
  if (batch->done < batch->count) misuse("a batch destroyed before its end");
  batch->open = 0;
  batches--;
  pthread_mutex_unlock(&lock);
}

// ---- parameters

#if FAKE_CUFILE_VERSION >= 1140
CUfileError_t cuFileGetParameterSizeT(CUFileSizeTConfigParameter_t param, size_t *value) {
  LOGGED("%d", (int)param);
  *value = sizes[param];
  LEAVE(0);
}

CUfileError_t cuFileGetParameterBool(CUFileBoolConfigParameter_t param, bool *value) {
  LOGGED("%d", (int)param);
  *value = switches[param];
  LEAVE(0);
}

CUfileError_t cuFileGetParameterString(CUFileStringConfigParameter_t param, char *text, int len) {
  LOGGED("%d", (int)param);
  snprintf(text, (size_t)len, "%s", texts[param]);
  LEAVE(0);
}

CUfileError_t cuFileGetParameterMinMaxValue(
    CUFileSizeTConfigParameter_t param, size_t *min, size_t *max) {
  LOGGED("%d", (int)param);
  *min = 1;
  *max = (size_t)param + 100;
  LEAVE(0);
}

CUfileError_t cuFileSetParameterSizeT(CUFileSizeTConfigParameter_t param, size_t value) {
  LOGGED("%d %zu", (int)param, value);
  NEED(!opened, ALREADY_OPEN);
  sizes[param] = value;
  LEAVE(0);
}

CUfileError_t cuFileSetParameterBool(CUFileBoolConfigParameter_t param, bool value) {
  LOGGED("%d %d", (int)param, value);
  NEED(!opened, ALREADY_OPEN);
  switches[param] = value;
  LEAVE(0);
}

CUfileError_t cuFileSetParameterString(CUFileStringConfigParameter_t param, const char *text) {
  LOGGED("%d %s", (int)param, text);
  NEED(!opened, ALREADY_OPEN);
  snprintf(texts[param], sizeof texts[param], "%s", text);
  LEAVE(0);
}
#endif

// ---- statistics

#if FAKE_CUFILE_VERSION >= 1150
CUfileError_t cuFileSetStatsLevel(int new_level) {
  LOGGED("%d", new_level);
  level = new_level;
  LEAVE(0);
}

CUfileError_t cuFileGetStatsLevel(int *answer) {
  *answer = level;
  return result(0);
}

CUfileError_t cuFileStatsStart(void) {
  LOGGED("");
  NEED(opened, NOT_OPEN);
  LEAVE(0);
}

CUfileError_t cuFileStatsStop(void) {
  LOGGED("");
  LEAVE(0);
}

CUfileError_t cuFileStatsReset(void) {
  LOGGED("");
  reads = writes = read_bytes = write_bytes = unaligned = 0;
  LEAVE(0);
}

static void fill(uint64_t *words, int wanted) {
  words[0] = reads;
  words[2] = writes;
  words[12] = read_bytes;
  words[13] = write_bytes;
  words[34] = 77;
  if (wanted >= 2) {
    words[64 + 3] = reads;
    words[96 + 31] = writes;
  }
  if (wanted >= 3) {
    words[128] = 1; // One GPU; its UUID has two words.
    uint64_t *gpu = words + 129;
    gpu[0] = 0x0706050403020100u;
    gpu += 2;
    gpu[0] = read_bytes;
    gpu[4] = gpu[7] = reads;
    gpu[8] = unaligned;
    gpu[13] = write_bytes;
    gpu[17] = gpu[20] = writes;
    gpu[25] = 5;
    gpu[28] = 4096;
  }
}

CUfileError_t cuFileGetStatsL1(CUfileStatsLevel1_t *stats) {
  ENTER;
  NEED(level >= 1, INVALID);
  fill((uint64_t *)stats, 1);
  LEAVE(0);
}

CUfileError_t cuFileGetStatsL2(CUfileStatsLevel2_t *stats) {
  ENTER;
  NEED(level >= 2, INVALID);
  fill((uint64_t *)stats, 2);
  LEAVE(0);
}

CUfileError_t cuFileGetStatsL3(CUfileStatsLevel3_t *stats) {
  ENTER;
  NEED(level >= 3, INVALID);
  fill((uint64_t *)stats, 3);
  LEAVE(0);
}
#endif
