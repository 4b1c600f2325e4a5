// A program that reads a file into GPU memory by cuFile's interface, by whichever library is named (io.gpunvme.bench.CuFileBench):
//
//   cufile LIBRARY FILE CONTENT device|host
//
// CONTENT is a file with the bytes that FILE has, for comparison. The program says "ready", then answers each line with a number:
//
//   start                     nanoseconds from the loading of the library to the end of the first read, of 4 KiB
//   seq THREADS LENGTH        bytes a second: the file once, LENGTH bytes a call
//   once THREADS LENGTH       the same, by a handle that nothing was read by before
//   cold THREADS LENGTH       the same, after the page cache was told to drop the file
//   rand THREADS LENGTH       calls a second, at random places
//   batch ENTRIES LENGTH      the same, ENTRIES in a batch
//   stream DEPTH LENGTH       bytes a second: the file once by one thread, in order with a stream, DEPTH calls ahead
//   copy DEPTH LENGTH         bytes a second of copies from pinned memory to the GPU: no read can be faster
//
// After each but copy, some of what was read is compared. It says "missing ..." if something is not there, or "error ..." and ends.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cufile_abi.h"

enum { MOST_THREADS = 64, MOST_DEPTH = 256, RANDOM_CALLS = 20000, CHECKS = 64 };
#define MOST_BYTES ((size_t)64 << 20)

// ---- the library

#define FUNCTIONS(X)       \
  X(cuFileDriverOpen)      \
  X(cuFileHandleRegister)  \
  X(cuFileHandleDeregister) \
  X(cuFileBufRegister)     \
  X(cuFileBufDeregister)   \
  X(cuFileRead)            \
  X(cuFileReadAsync)       \
  X(cuFileBatchIOSetUp)    \
  X(cuFileBatchIOSubmit)   \
  X(cuFileBatchIOGetStatus) \
  X(cuFileBatchIODestroy)

#define POINTER(name) __typeof__(name) *name;
static struct { FUNCTIONS(POINTER) } file_api;

// ---- CUDA's driver

typedef uint64_t device_pointer;
static struct {
  int (*init)(unsigned);
  int (*device)(int *, int);
  int (*retain)(void **, int);
  int (*current)(void *);
  int (*allocate)(device_pointer *, size_t);
  int (*free)(device_pointer);
  int (*to_host)(void *, device_pointer, size_t);
  int (*to_device)(device_pointer, const void *, size_t, CUstream);
  int (*fill)(device_pointer, unsigned char, size_t);
  int (*pinned)(void **, size_t, unsigned);
  int (*free_pinned)(void *);
  int (*stream)(CUstream *, unsigned);
  int (*synchronize)(CUstream);
} cuda;
static void *context;

static int on_device;
static int file, content;
static uint64_t bytes;
static uint64_t first_nanos;
static CUfileHandle_t handle;

__attribute__((noreturn, format(printf, 2, 3))) static void leave(const char *how, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  printf("%s ", how);
  vprintf(format, arguments);
  printf("\n");
  fflush(stdout);
  _exit(1);
}
#define fail(...) leave("error", __VA_ARGS__)
#define missing(...) leave("missing", __VA_ARGS__)

static void check(CUfileError_t e, const char *what) {
  if (e.err != CU_FILE_SUCCESS) {
    fail("%s: %d, CUDA %d", what, (int)e.err, (int)e.cu_err);
  }
}

static void check_cuda(int code, const char *what) {
  if (code != 0) {
    fail("%s: CUDA %d", what, code);
  }
}

static uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void *function(void *library, const char *name) {
  void *f = dlsym(library, name);
  if (f == NULL) {
    missing("%s: %s", name, dlerror());
  }
  return f;
}

static void open_cuda(void) {
  const char *named = getenv("GPUNVME_LIBCUDA");
  void *library = dlopen(named != NULL ? named : "libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (library == NULL) {
    missing("CUDA: %s", dlerror());
  }
  *(void **)&cuda.init = function(library, "cuInit");
  *(void **)&cuda.device = function(library, "cuDeviceGet");
  *(void **)&cuda.retain = function(library, "cuDevicePrimaryCtxRetain");
  *(void **)&cuda.current = function(library, "cuCtxSetCurrent");
  *(void **)&cuda.allocate = function(library, "cuMemAlloc_v2");
  *(void **)&cuda.free = function(library, "cuMemFree_v2");
  *(void **)&cuda.to_host = function(library, "cuMemcpyDtoH_v2");
  *(void **)&cuda.to_device = function(library, "cuMemcpyHtoDAsync_v2");
  *(void **)&cuda.fill = function(library, "cuMemsetD8_v2");
  *(void **)&cuda.pinned = function(library, "cuMemHostAlloc");
  *(void **)&cuda.free_pinned = function(library, "cuMemFreeHost");
  *(void **)&cuda.stream = function(library, "cuStreamCreate");
  *(void **)&cuda.synchronize = function(library, "cuStreamSynchronize");
  int device;
  check_cuda(cuda.init(0), "cuInit");
  check_cuda(cuda.device(&device, 0), "cuDeviceGet");
  check_cuda(cuda.retain(&context, device), "cuDevicePrimaryCtxRetain");
}

// Each thread that uses memory of the GPU has to have a context.
static void enter(void) {
  if (on_device) {
    check_cuda(cuda.current(context), "cuCtxSetCurrent");
  }
}

// ---- memory

static void *take(size_t length) {
  void *memory = NULL;
  if (on_device) {
    device_pointer address = 0;
    check_cuda(cuda.allocate(&address, length), "cuMemAlloc");
    memory = (void *)(uintptr_t)address;
  } else if (posix_memalign(&memory, 4096, length) != 0) {
    fail("no memory for %zu bytes", length);
  }
  check(file_api.cuFileBufRegister(memory, length, 0), "cuFileBufRegister");
  return memory;
}

static void give(void *memory) {
  check(file_api.cuFileBufDeregister(memory), "cuFileBufDeregister");
  if (on_device) {
    check_cuda(cuda.free((device_pointer)(uintptr_t)memory), "cuMemFree");
  } else {
    free(memory);
  }
}

static void wipe(void *memory, size_t length) {
  if (on_device) {
    check_cuda(cuda.fill((device_pointer)(uintptr_t)memory, 0xA5, length), "cuMemsetD8");
    // A fill may go on after the call.
    check_cuda(cuda.synchronize(NULL), "cuStreamSynchronize");
  } else {
    memset(memory, 0xA5, length);
  }
}

static void *host_memory(size_t length) {
  void *memory = malloc(length);
  if (memory == NULL) {
    fail("no memory for %zu bytes", length);
  }
  return memory;
}

// The content is read for it, not mapped: what is mapped stays in the page cache, and no read would be cold.
static void compare(const void *memory, uint64_t at, size_t length) {
  uint8_t *right = host_memory(length), *copy = on_device ? host_memory(length) : NULL;
  for (size_t have = 0; have < length;) {
    ssize_t n = pread(content, right + have, length - have, (off_t)(at + have));
    if (n <= 0) {
      fail("the content ends before %" PRIu64 ": errno %d", at + length, n < 0 ? errno : 0);
    }
    have += (size_t)n;
  }
  if (on_device) {
    check_cuda(cuda.to_host(copy, (device_pointer)(uintptr_t)memory, length), "cuMemcpyDtoH");
  }
  if (memcmp(on_device ? copy : memory, right, length) != 0) {
    fail("wrong data in %zu bytes at %" PRIu64, length, at);
  }
  free(copy);
  free(right);
}

static void read_at(void *memory, uint64_t at, size_t length) {
  ssize_t got = file_api.cuFileRead(handle, memory, length, (off_t)at, 0);
  if (got != (ssize_t)length) {
    fail("cuFileRead of %zu bytes at %" PRIu64 ": %zd, errno %d", length, at, got, errno);
  }
}

static uint64_t place(uint64_t *state, size_t length) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (*state >> 20) % (bytes / length) * length;
}

static void check_some(void *memory, size_t length, uint64_t state) {
  for (int i = 0; i < CHECKS; i++) {
    uint64_t at = place(&state, length);
    wipe(memory, length);
    read_at(memory, at, length);
    compare(memory, at, length);
  }
}

// ---- threads

static struct {
  int count;
  size_t length;
  int random;
  pthread_barrier_t begin, end;
} work;

static void *reader(void *argument) {
  uint64_t number = (uintptr_t)argument, state = number + 1, last = 0, calls = bytes / work.length;
  enter();
  void *memory = take(work.length);
  wipe(memory, work.length);
  read_at(memory, 0, work.length);
  pthread_barrier_wait(&work.begin);
  if (work.random) {
    for (int i = 0; i < RANDOM_CALLS; i++) {
      read_at(memory, last = place(&state, work.length), work.length);
    }
  } else {
    for (uint64_t i = number; i < calls; i += (uint64_t)work.count) {
      read_at(memory, last = i * work.length, work.length);
    }
  }
  pthread_barrier_wait(&work.end);
  compare(memory, last, work.length);
  check_some(memory, work.length, state);
  give(memory);
  return NULL;
}

static double with_threads(int threads, size_t length, int random) {
  pthread_t ids[MOST_THREADS];
  work.count = threads;
  work.length = length;
  work.random = random;
  pthread_barrier_init(&work.begin, NULL, (unsigned)threads + 1);
  pthread_barrier_init(&work.end, NULL, (unsigned)threads + 1);
  for (int i = 0; i < threads; i++) {
    if (pthread_create(&ids[i], NULL, reader, (void *)(uintptr_t)i) != 0) {
      fail("no thread %d", i);
    }
  }
  pthread_barrier_wait(&work.begin);
  uint64_t start = now();
  pthread_barrier_wait(&work.end);
  double seconds = (double)(now() - start) / 1e9;
  for (int i = 0; i < threads; i++) {
    pthread_join(ids[i], NULL);
  }
  pthread_barrier_destroy(&work.begin);
  pthread_barrier_destroy(&work.end);
  double calls = random ? (double)threads * RANDOM_CALLS : (double)(bytes / length);
  return calls * (random ? 1 : (double)length) / seconds;
}

// How many pages of the file are in the page cache.
static size_t cached(void) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = (size_t)((bytes + page - 1) / page);
  unsigned char *there = host_memory(pages);
  void *mapped = mmap(NULL, bytes, PROT_READ, MAP_SHARED, file, 0);
  size_t count = 0;
  if (mapped == MAP_FAILED || mincore(mapped, bytes, there) != 0 || munmap(mapped, bytes) != 0) {
    fail("what the page cache has of the file is unknown: errno %d", errno);
  }
  for (size_t i = 0; i < pages; i++) {
    count += there[i] & 1;
  }
  free(there);
  return count;
}

static void register_file(void) {
  CUfileDescr_t described = {.type = CU_FILE_HANDLE_TYPE_OPAQUE_FD};
  described.handle.fd = file;
  check(file_api.cuFileHandleRegister(&handle, &described), "cuFileHandleRegister");
}

static void renew(void) {
  file_api.cuFileHandleDeregister(handle);
  usleep(50000); // what the library tidies up is not timed
  register_file();
}

// Some pages may be in use elsewhere for a moment, and the first block is read before the time begins. A library may have pinned what was
// read often, until it knows the file no more, and for a moment after it.
static void drop(void) {
  const uint64_t begin = now();
  size_t left;
  file_api.cuFileHandleDeregister(handle);
  do {
    if (fdatasync(file) != 0 || posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED) != 0) {
      fail("the page cache keeps the file: errno %d", errno);
    }
    left = cached();
  } while (left > 0 && now() - begin < 1000000000u);
  register_file();
  if (left > bytes / 100 / (size_t)sysconf(_SC_PAGESIZE)) {
    fail("the page cache keeps %zu pages of the file, so no read of it is cold: put it on a file system with a disk, and let no program map it", left);
  }
}

// ---- batches

static double batches(int entries, size_t length) {
  static CUfileIOParams_t reads[MOST_DEPTH];
  static CUfileIOEvents_t events[MOST_DEPTH];
  CUfileBatchHandle_t batch;
  uint64_t state = 5;
  check(file_api.cuFileBatchIOSetUp(&batch, (unsigned)entries), "cuFileBatchIOSetUp");
  uint8_t *memory = take(length * (size_t)entries);
  uint64_t spent = 0;
  int rounds = RANDOM_CALLS / entries + 1;
  for (int round = 0; round < rounds; round++) {
    memset(reads, 0, sizeof reads);
    for (int i = 0; i < entries; i++) {
      reads[i].mode = CUFILE_BATCH;
      reads[i].fh = handle;
      reads[i].opcode = CUFILE_READ;
      reads[i].cookie = &reads[i];
      reads[i].u.batch.devPtr_base = memory;
      reads[i].u.batch.devPtr_offset = (off_t)((size_t)i * length);
      reads[i].u.batch.file_offset = (off_t)place(&state, length);
      reads[i].u.batch.size = length;
    }
    if (round == rounds - 1) {
      wipe(memory, length * (size_t)entries);
    }
    uint64_t start = now();
    check(file_api.cuFileBatchIOSubmit(batch, (unsigned)entries, reads, 0), "cuFileBatchIOSubmit");
    for (int done = 0; done < entries;) {
      unsigned count = (unsigned)(entries - done);
      struct timespec limit = {10, 0};
      check(file_api.cuFileBatchIOGetStatus(batch, 1, &count, events, &limit), "cuFileBatchIOGetStatus");
      for (unsigned i = 0; i < count; i++) {
        if (events[i].status != CUFILE_COMPLETE || events[i].ret != length) {
          fail("a read of a batch: status %d, %zu bytes", (int)events[i].status, events[i].ret);
        }
      }
      if (count == 0) {
        fail("a batch does not end within 10 s");
      }
      done += (int)count;
    }
    spent += now() - start;
  }
  for (int i = 0; i < entries; i++) {
    compare(memory + (size_t)i * length, (uint64_t)reads[i].u.batch.file_offset, length);
  }
  file_api.cuFileBatchIODestroy(batch);
  give(memory);
  return (double)rounds * entries / ((double)spent / 1e9);
}

// ---- streams

static CUstream new_stream(void) {
  CUstream stream = NULL;
  check_cuda(cuda.stream(&stream, 1), "cuStreamCreate");
  return stream;
}

static double in_stream(int depth, size_t length) {
  static size_t sizes[MOST_DEPTH];
  static off_t at[MOST_DEPTH], in_memory[MOST_DEPTH];
  static ssize_t got[MOST_DEPTH];
  static CUstream stream;
  if (!on_device) {
    fail("a stream needs a GPU");
  }
  if (stream == NULL) {
    stream = new_stream();
  }
  uint8_t *memory = take(length * (size_t)depth);
  uint64_t calls = bytes / length, start = 0;
  wipe(memory, length * (size_t)depth);
  for (uint64_t i = 0; i < calls + (uint64_t)depth; i++) {
    // The first ones make ready what is made once.
    if (i == (uint64_t)depth) {
      start = now();
    }
    int slot = (int)(i % (uint64_t)depth);
    sizes[slot] = length;
    at[slot] = (off_t)(i % calls * length);
    in_memory[slot] = (off_t)((size_t)slot * length);
    got[slot] = 0;
    check(file_api.cuFileReadAsync(handle, memory, &sizes[slot], &at[slot], &in_memory[slot], &got[slot], stream), "cuFileReadAsync");
    if (slot == depth - 1 || i + 1 == calls + (uint64_t)depth) {
      check_cuda(cuda.synchronize(stream), "cuStreamSynchronize");
      for (int k = 0; k <= slot; k++) {
        if (got[k] != (ssize_t)length) {
          fail("a read in a stream: %zd bytes", got[k]);
        }
      }
    }
  }
  double seconds = (double)(now() - start) / 1e9;
  for (int i = 0; i < depth; i++) {
    compare(memory + (size_t)i * length, (uint64_t)at[i], length);
  }
  give(memory);
  return (double)calls * (double)length / seconds;
}

static double copies(int depth, size_t length) {
  if (!on_device) {
    fail("a copy needs a GPU");
  }
  CUstream stream = new_stream();
  uint8_t *memory = take(length * (size_t)depth);
  void *host;
  check_cuda(cuda.pinned(&host, length * (size_t)depth, 0), "cuMemHostAlloc");
  memset(host, 7, length * (size_t)depth);
  uint64_t calls = bytes / length, start = now();
  for (uint64_t i = 0; i < calls; i++) {
    size_t at = (size_t)(i % (uint64_t)depth) * length;
    check_cuda(cuda.to_device((device_pointer)(uintptr_t)(memory + at), (uint8_t *)host + at, length, stream), "cuMemcpyHtoDAsync");
  }
  check_cuda(cuda.synchronize(stream), "cuStreamSynchronize");
  double seconds = (double)(now() - start) / 1e9;
  check_cuda(cuda.free_pinned(host), "cuMemFreeHost");
  give(memory);
  return (double)calls * (double)length / seconds;
}

// ---- the program

static void prepare(const char *library, const char *name, const char *with) {
  struct stat status;
  file = open(name, O_RDONLY);
  content = open(with, O_RDONLY);
  if (file < 0 || content < 0 || fstat(content, &status) != 0) {
    missing("%s or %s: %s", name, with, strerror(errno));
  }
  bytes = (uint64_t)status.st_size;
  if (bytes < MOST_BYTES) {
    missing("%s has less than %zu bytes", with, MOST_BYTES);
  }
  if (on_device) {
    open_cuda();
    enter();
  }
  uint64_t start = now();
  void *opened = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (opened == NULL) {
    missing("%s", dlerror());
  }
#define FIND(name) *(void **)&file_api.name = function(opened, #name);
  FUNCTIONS(FIND)
  check(file_api.cuFileDriverOpen(), "cuFileDriverOpen");
  register_file();
  void *memory = take(4096);
  read_at(memory, 0, 4096);
  first_nanos = now() - start;
  compare(memory, 0, 4096);
  give(memory);
}

static double answer(const char *what, int number, size_t length) {
  if (strcmp(what, "start") == 0) {
    return (double)first_nanos;
  }
  int threads = strcmp(what, "seq") == 0 || strcmp(what, "once") == 0 || strcmp(what, "cold") == 0 || strcmp(what, "rand") == 0;
  if (number < 1 || number > (threads ? MOST_THREADS : MOST_DEPTH) || length < 512 || length * (size_t)number > MOST_BYTES) {
    fail("cannot do %s %d %zu", what, number, length);
  }
  const int cold = strcmp(what, "cold") == 0;
  if (cold) {
    drop();
  } else if (strcmp(what, "once") == 0) {
    renew(); // nothing is known of a file that nobody has read by this handle
  }
  if (threads) {
    const double rate = with_threads(number, length, what[0] == 'r');
    if (cold) {
      drop(); // a library that pinned the file would have it warm for the next one
    }
    return rate;
  }
  if (strcmp(what, "batch") == 0) {
    return batches(number, length);
  }
  if (strcmp(what, "stream") == 0) {
    return in_stream(number, length);
  }
  if (strcmp(what, "copy") == 0) {
    return copies(number, length);
  }
  fail("what is %s?", what);
}

int main(int count, char **arguments) {
  char line[128], what[16];
  if (count != 5 || (strcmp(arguments[4], "device") != 0 && strcmp(arguments[4], "host") != 0)) {
    fprintf(stderr, "usage: cufile LIBRARY FILE CONTENT device|host\n");
    return 2;
  }
  on_device = strcmp(arguments[4], "device") == 0;
  prepare(arguments[1], arguments[2], arguments[3]);
  printf("ready\n");
  fflush(stdout);
  while (fgets(line, sizeof line, stdin) != NULL && strcmp(line, "end\n") != 0) {
    int number = 0;
    size_t length = 0;
    if (sscanf(line, "%15s %d %zu", what, &number, &length) < 1) {
      fail("what is %s", line);
    }
    printf("%.6g\n", answer(what, number, length));
    fflush(stdout);
  }
  return 0;
}
