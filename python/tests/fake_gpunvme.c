// A stand-in for libgpunvme.so, for tests of the Python package: no Java, host memory, and failures on demand.
//
//   sim:size=1MiB[,latency=60s]       zeroed memory, each transfer takes that long
//   fake:error=-4,errno=5             gpunvme_open fails with these
//   fake:size=1MiB,fail=-4,errno=5    transfers fail with these
//   fake:untold=-4                    the end of a layer loader fails with this
//   a path                            the file, read with pread
//
// Models have their description beside them: FILE.json is what gpunvme_weights_describe says, FILE.table has a
// line for each tensor: offset, bytes of an element, number of dimensions, dimensions. FILE?latency=60s is a slow one.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "gpunvme.h"

enum { HANDLES = 1 << 20, DIMENSIONS = 8, KINDS = 64, LAYERS = 1024 };
enum type { FREE, STORAGE, REQUEST, KINDS_HANDLE, LAYER_LOADER, WEIGHTS, MEMORY, KERNELS };

typedef struct object {
  enum type type;
  struct object *storage;
  uint32_t flags;
  int fd;
  uint8_t *data;
  uint64_t size, latency_ns;
  int fail, fail_errno, untold;
  // requests
  gpunvme_range *ranges;
  size_t count;
  bool write;
  uint64_t due;
  int outcome;
  int outcome_errno;
  char why[256];
  // kinds: number, offset, bytes, element; layers: offset, bytes
  int numbers[KINDS];
  uint64_t offsets[LAYERS], lengths[LAYERS], elements[KINDS];
  size_t entries, next;
  // weights
  char *description;
  uint64_t tensor[256][DIMENSIONS + 3];
} object;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static object *handles[HANDLES];
static size_t used = 1;
static pid_t started;
static _Thread_local char message[512];
static _Thread_local int error;

static int failed(int code, int number, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  error = number;
  return code;
}

static uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int start(void) {
  if (started == 0) {
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&changed, &monotonic);
    started = getpid();
  }
  return started == getpid() ? GPUNVME_OK : failed(GPUNVME_ERROR_FORKED, 0, "this process is a fork of %d", started);
}

// A number of its own for each, as the real ones: a closed one is known as that.
static void *added(object *o) {
  pthread_mutex_lock(&lock);
  size_t number = used < HANDLES ? used++ : 0;
  handles[number] = o;
  pthread_mutex_unlock(&lock);
  return (void *)number;
}

static object *found(const void *handle, enum type type) {
  if (start() != GPUNVME_OK) return NULL;
  object *o = (size_t)handle < HANDLES ? handles[(size_t)handle] : NULL;
  if (o == NULL || o->type != type) {
    failed(GPUNVME_ERROR_CLOSED, 0, "the handle %p was closed", handle);
    return NULL;
  }
  return o;
}

#define FIND(name, handle, kind)                 \
  object *name = found(handle, kind);            \
  if (name == NULL) return started == getpid() ? GPUNVME_ERROR_CLOSED : GPUNVME_ERROR_FORKED

static int removed(const void *handle, enum type type) {
  if (handle == NULL) return GPUNVME_OK;
  FIND(o, handle, type);
  o->type = FREE; // kept: a late caller must see it
  return GPUNVME_OK;
}

const char *gpunvme_version(void) { return "0.1.0-fake"; }
const char *gpunvme_last_error(void) { return message; }
int gpunvme_last_errno(void) { return error; }

int gpunvme_start(const char *java_home, const char *const *options, size_t count) {
  (void)options, (void)count;
  if (java_home && access(java_home, F_OK)) return failed(GPUNVME_ERROR_JAVA, ENOENT, "no Java in %s", java_home);
  return start();
}

static uint64_t number(const char *text, const char *name, uint64_t otherwise) {
  const char *at = strstr(text, name);
  if (at == NULL) return otherwise;
  char *end;
  uint64_t value = strtoull(at + strlen(name), &end, 10);
  static const struct { const char *unit; uint64_t factor; } units[] = {
      {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"ms", 1000000}, {"us", 1000}, {"s", 1000000000}};
  for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
    if (strncmp(end, units[i].unit, strlen(units[i].unit)) == 0) return value * units[i].factor;
  }
  return value;
}

static int open_file(const char *uri, object *o) {
  char path[4096];
  snprintf(path, sizeof path, "%s", strncmp(uri, "file:", 5) == 0 ? uri + 5 : uri);
  path[strcspn(path, "?")] = 0;
  struct stat status;
  o->fd = open(path, o->flags & GPUNVME_WRITE ? O_RDWR | O_CLOEXEC : O_RDONLY | O_CLOEXEC);
  if (o->fd < 0 || fstat(o->fd, &status)) {
    int number = errno;
    int code = number == ENOENT ? GPUNVME_ERROR_NOT_FOUND : number == EACCES ? GPUNVME_ERROR_PERMISSION : GPUNVME_ERROR_IO;
    return failed(code, number, "%s cannot be opened: %s", path, strerror(number));
  }
  o->size = (uint64_t)status.st_size;
  return GPUNVME_OK;
}

int gpunvme_open(const char *uri, const char *accelerator, uint32_t flags, gpunvme_storage **storage) {
  if (start() != GPUNVME_OK) return GPUNVME_ERROR_FORKED;
  if (accelerator && strncmp(accelerator, "gpu", 3) == 0) return failed(GPUNVME_ERROR_ACCELERATOR, 0, "no GPU here");
  object *o = calloc(1, sizeof *o);
  o->type = STORAGE, o->flags = flags, o->fd = -1;
  int code = GPUNVME_OK;
  if (strncmp(uri, "sim:", 4) == 0 || strncmp(uri, "fake:", 5) == 0) {
    o->size = number(uri, "size=", 1 << 20);
    o->latency_ns = number(uri, "latency=", 0);
    o->fail = -(int)number(uri, "fail=-", 0);
    o->fail_errno = (int)number(uri, "errno=", 0);
    o->untold = -(int)number(uri, "untold=-", 0);
    code = -(int)number(uri, "error=-", 0);
    if (code) failed(code, o->fail_errno, "%s was to fail", uri);
    o->data = calloc(1, o->size);
  } else if (uri[0] == '/' || uri[0] == '.' || strncmp(uri, "file:", 5) == 0) {
    code = open_file(uri, o);
  } else {
    code = failed(GPUNVME_ERROR_INVALID, 0, "'%s' is not an address", uri);
  }
  if (code == GPUNVME_OK) {
    *storage = added(o);
  } else {
    free(o->data);
    free(o);
  }
  return code;
}

int gpunvme_storage_on(gpunvme_storage *storage, const char *accelerator, gpunvme_storage **other) {
  (void)storage, (void)other;
  return failed(GPUNVME_ERROR_ACCELERATOR, 0, "no %s here", accelerator);
}

int gpunvme_close(gpunvme_storage *storage) {
  if (storage == NULL) return GPUNVME_OK;
  FIND(o, storage, STORAGE);
  pthread_mutex_lock(&lock);
  o->type = FREE;
  if (o->fd >= 0) close(o->fd);
  for (size_t i = 1; i < used; i++) {
    if (handles[i]->storage == o && handles[i]->type == MEMORY) free(handles[i]->data), handles[i]->type = FREE;
    if (handles[i]->storage == o && handles[i]->type == REQUEST && handles[i]->outcome == GPUNVME_PENDING) {
      handles[i]->outcome = GPUNVME_ERROR_CANCELLED;
      snprintf(handles[i]->why, sizeof handles[i]->why, "the storage was closed");
    }
  }
  free(o->data);
  o->data = NULL;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
  return GPUNVME_OK;
}

int gpunvme_get_info(gpunvme_storage *storage, gpunvme_info *info) {
  FIND(o, storage, STORAGE);
  *info = (gpunvme_info){.size = o->size, .alignment = o->fd < 0 ? 512 : 4096, .block_bytes = 512};
  return GPUNVME_OK;
}

static int move(object *o, object *r) {
  for (size_t i = 0; i < r->count; i++) {
    void *memory = (void *)(uintptr_t)r->ranges[i].address; // NOLINT: addresses are numbers in this interface
    uint64_t offset = r->ranges[i].offset, bytes = r->ranges[i].bytes;
    if (o->fd < 0) {
      memcpy(r->write ? o->data + offset : memory, r->write ? memory : o->data + offset, bytes);
    } else {
      ssize_t n = r->write ? pwrite(o->fd, memory, bytes, (off_t)offset) : pread(o->fd, memory, bytes, (off_t)offset);
      if (n != (ssize_t)bytes) return GPUNVME_ERROR_IO;
    }
  }
  return GPUNVME_OK;
}

static int submit(gpunvme_storage *storage, bool write, const gpunvme_range *ranges, size_t count, object **request) {
  FIND(o, storage, STORAGE);
  if (write && !(o->flags & GPUNVME_WRITE)) return failed(GPUNVME_ERROR_PERMISSION, 0, "opened for reading only");
  for (size_t i = 0; i < count; i++) {
    if (ranges[i].offset > o->size || ranges[i].bytes > o->size - ranges[i].offset) {
      return failed(GPUNVME_ERROR_INVALID, 0, "%llu bytes at %llu are not inside a storage of %llu bytes",
          (unsigned long long)ranges[i].bytes, (unsigned long long)ranges[i].offset, (unsigned long long)o->size);
    }
  }
  object *r = calloc(1, sizeof *r);
  r->type = REQUEST, r->storage = o, r->write = write, r->count = count, r->outcome = GPUNVME_PENDING;
  r->ranges = malloc(count * sizeof *ranges);
  memcpy(r->ranges, ranges, count * sizeof *ranges);
  r->due = now() + o->latency_ns;
  *request = r;
  return GPUNVME_OK;
}

// The outcome of a request after so long at most.
static int await(object *r, uint64_t timeout_ns) {
  uint64_t end = timeout_ns > UINT64_MAX / 2 ? UINT64_MAX / 2 : now() + timeout_ns;
  pthread_mutex_lock(&lock);
  while (r->outcome == GPUNVME_PENDING) {
    uint64_t t = now();
    if (t >= r->due) {
      r->outcome = r->storage->fail ? r->storage->fail : move(r->storage, r);
      r->outcome_errno = r->storage->fail ? r->storage->fail_errno : EIO;
      snprintf(r->why, sizeof r->why, "the transfer was to fail");
      pthread_cond_broadcast(&changed);
    } else if (t >= end) {
      break;
    } else {
      uint64_t until = r->due < end ? r->due : end;
      struct timespec at = {(time_t)(until / 1000000000u), (long)(until % 1000000000u)};
      pthread_cond_timedwait(&changed, &lock, &at);
    }
  }
  int code = r->outcome;
  pthread_mutex_unlock(&lock);
  return code < 0 ? failed(code, code == GPUNVME_ERROR_CANCELLED ? 0 : r->outcome_errno, "%s", r->why) : code;
}

static int transfer(gpunvme_storage *storage, bool write, const gpunvme_range *ranges, size_t count, gpunvme_cancelled cancelled, void *data) {
  object *r;
  int code = submit(storage, write, ranges, count, &r);
  if (code != GPUNVME_OK) return code;
  void *handle = added(r);
  while ((code = await(r, cancelled ? 10000000 : UINT64_MAX)) == GPUNVME_PENDING) {
    if (cancelled(data)) gpunvme_cancel(handle);
  }
  removed(handle, REQUEST);
  return code;
}

static int submitted(gpunvme_storage *storage, bool write, const gpunvme_range *ranges, size_t count, gpunvme_request **request) {
  object *r;
  int code = submit(storage, write, ranges, count, &r);
  if (code == GPUNVME_OK) *request = added(r);
  return code;
}

int gpunvme_read(gpunvme_storage *s, uint64_t offset, uint64_t address, uint64_t bytes) {
  return transfer(s, false, &(gpunvme_range){offset, address, bytes}, 1, NULL, NULL);
}
int gpunvme_write(gpunvme_storage *s, uint64_t offset, uint64_t address, uint64_t bytes) {
  return transfer(s, true, &(gpunvme_range){offset, address, bytes}, 1, NULL, NULL);
}
int gpunvme_flush(gpunvme_storage *storage) {
  FIND(o, storage, STORAGE);
  return o->flags & GPUNVME_WRITE ? GPUNVME_OK : failed(GPUNVME_ERROR_PERMISSION, 0, "opened for reading only");
}
int gpunvme_read_ranges(gpunvme_storage *s, const gpunvme_range *r, size_t n) { return transfer(s, false, r, n, NULL, NULL); }
int gpunvme_write_ranges(gpunvme_storage *s, const gpunvme_range *r, size_t n) { return transfer(s, true, r, n, NULL, NULL); }
int gpunvme_read_ranges_cancellable(gpunvme_storage *s, const gpunvme_range *r, size_t n, gpunvme_cancelled f, void *data) {
  return transfer(s, false, r, n, f, data);
}
int gpunvme_write_ranges_cancellable(gpunvme_storage *s, const gpunvme_range *r, size_t n, gpunvme_cancelled f, void *data) {
  return transfer(s, true, r, n, f, data);
}
int gpunvme_submit_read(gpunvme_storage *s, const gpunvme_range *r, size_t n, gpunvme_request **request) {
  return submitted(s, false, r, n, request);
}
int gpunvme_submit_write(gpunvme_storage *s, const gpunvme_range *r, size_t n, gpunvme_request **request) {
  return submitted(s, true, r, n, request);
}
int gpunvme_submit_read_on_stream(gpunvme_storage *s, uint64_t offset, uint64_t address, uint64_t bytes,
    struct CUstream_st *stream, gpunvme_request **request) {
  (void)s, (void)offset, (void)address, (void)bytes, (void)stream, (void)request;
  return failed(GPUNVME_ERROR_UNSUPPORTED, 0, "there are no streams without a GPU");
}
int gpunvme_submit_write_on_stream(gpunvme_storage *s, uint64_t offset, uint64_t address, uint64_t bytes,
    struct CUstream_st *stream, gpunvme_request **request) {
  return gpunvme_submit_read_on_stream(s, offset, address, bytes, stream, request);
}

int gpunvme_wait(gpunvme_request *request, uint64_t timeout_ns) {
  FIND(r, request, REQUEST);
  return await(r, timeout_ns);
}
int gpunvme_poll(gpunvme_request *request) { return gpunvme_wait(request, 0); }
int gpunvme_cancel(gpunvme_request *request) {
  FIND(r, request, REQUEST);
  pthread_mutex_lock(&lock);
  if (r->outcome == GPUNVME_PENDING) {
    r->outcome = GPUNVME_ERROR_CANCELLED;
    snprintf(r->why, sizeof r->why, "the request was cancelled");
    pthread_cond_broadcast(&changed);
  }
  pthread_mutex_unlock(&lock);
  return GPUNVME_OK;
}
int gpunvme_request_free(gpunvme_request *request) {
  if (request == NULL) return GPUNVME_OK;
  int code = gpunvme_cancel(request);
  return code < 0 ? code : removed(request, REQUEST);
}

int gpunvme_plan(gpunvme_storage *storage, const gpunvme_range *ranges, size_t count, gpunvme_plan_info *plan) {
  FIND(o, storage, STORAGE);
  *plan = (gpunvme_plan_info){.ios = count};
  for (size_t i = 0; i < count; i++) plan->bytes += ranges[i].bytes;
  return o->size == 0 ? GPUNVME_ERROR_INVALID : GPUNVME_OK;
}

static int say(const char *said, char *text, size_t capacity, size_t *needed) {
  if (capacity) snprintf(text, capacity, "%s", said);
  if (needed) *needed = strlen(said) + 1;
  return GPUNVME_OK;
}
int gpunvme_stats(gpunvme_storage *storage, char *text, size_t capacity, size_t *needed) {
  FIND(o, storage, STORAGE);
  return o ? say("{\"paths\": {}, \"memory\": {\"accelerator_bytes\": 0, \"pinned_bytes\": 0}}", text, capacity, needed) : GPUNVME_OK;
}
int gpunvme_explain(gpunvme_storage *storage, char *text, size_t capacity, size_t *needed) {
  FIND(o, storage, STORAGE);
  // Longer than what anybody would offer at first.
  char *long_text = malloc(100001);
  memset(long_text, 'x', 100000);
  long_text[100000] = 0;
  int code = o ? say(long_text, text, capacity, needed) : GPUNVME_OK;
  free(long_text);
  return code;
}

static size_t allocated; // pieces, for the tests
size_t fake_allocated(void) { return allocated; }

static int allocate(object *owner, uint64_t bytes, uint64_t *address) {
  object *m = calloc(1, sizeof *m);
  m->type = MEMORY, m->storage = owner;
  m->data = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  if (m->data == NULL) return failed(GPUNVME_ERROR_MEMORY, ENOMEM, "no %llu bytes", (unsigned long long)bytes);
  memset(m->data, 0, bytes);
  *address = (uint64_t)(uintptr_t)m->data;
  added(m);
  __atomic_add_fetch(&allocated, 1, __ATOMIC_RELAXED);
  return GPUNVME_OK;
}
static int release(object *owner, uint64_t address) {
  for (size_t i = 1; i < used; i++) {
    if (handles[i]->type == MEMORY && handles[i]->storage == owner && (uint64_t)(uintptr_t)handles[i]->data == address) {
      handles[i]->type = FREE;
      memset(handles[i]->data, 0xEE, 16); // whoever looks at it still is to see that
      free(handles[i]->data);
      handles[i]->data = NULL;
      __atomic_sub_fetch(&allocated, 1, __ATOMIC_RELAXED);
      return GPUNVME_OK;
    }
  }
  return failed(GPUNVME_ERROR_INVALID, 0, "no memory at %#llx", (unsigned long long)address);
}

int gpunvme_allocate(gpunvme_storage *storage, uint64_t bytes, uint64_t *address) {
  FIND(o, storage, STORAGE);
  return allocate(o, bytes, address);
}
int gpunvme_free(gpunvme_storage *storage, uint64_t address) {
  FIND(o, storage, STORAGE);
  return release(o, address);
}
int gpunvme_copy_to_host(gpunvme_storage *storage, void *host, uint64_t address, uint64_t bytes) {
  FIND(o, storage, STORAGE);
  if (o) memcpy(host, (void *)(uintptr_t)address, bytes);
  return GPUNVME_OK;
}
int gpunvme_copy_from_host(gpunvme_storage *storage, uint64_t address, const void *host, uint64_t bytes) {
  FIND(o, storage, STORAGE);
  if (o) memcpy((void *)(uintptr_t)address, host, bytes);
  return GPUNVME_OK;
}
int gpunvme_memory_allocate(const char *accelerator, uint64_t bytes, uint64_t *address) {
  (void)accelerator;
  return allocate(NULL, bytes, address);
}
int gpunvme_memory_free(const char *accelerator, uint64_t address) {
  (void)accelerator;
  return release(NULL, address);
}
int gpunvme_memory_copy_to_host(const char *accelerator, void *host, uint64_t address, uint64_t bytes) {
  (void)accelerator;
  memcpy(host, (void *)(uintptr_t)address, bytes);
  return GPUNVME_OK;
}
int gpunvme_memory_copy_from_host(const char *accelerator, uint64_t address, const void *host, uint64_t bytes) {
  (void)accelerator;
  memcpy((void *)(uintptr_t)address, host, bytes);
  return GPUNVME_OK;
}

static void *handle_of(const object *o) {
  for (size_t i = 1; i < used; i++) {
    if (handles[i] == o) return (void *)i;
  }
  return NULL;
}

int gpunvme_kinds_open(gpunvme_storage *storage, gpunvme_kinds **kinds) {
  FIND(o, storage, STORAGE);
  object *k = calloc(1, sizeof *k);
  k->type = KINDS_HANDLE, k->storage = o;
  *kinds = added(k);
  return GPUNVME_OK;
}
int gpunvme_kinds_add(gpunvme_kinds *kinds, int32_t kind, uint64_t offset, uint64_t bytes, uint64_t element) {
  FIND(k, kinds, KINDS_HANDLE);
  for (size_t i = 0; i < k->entries; i++) {
    if (k->numbers[i] == kind) return failed(GPUNVME_ERROR_INVALID, 0, "kind %d is there already", kind);
  }
  if (element == 0 || bytes % element || k->entries == KINDS) return failed(GPUNVME_ERROR_INVALID, 0, "bytes is not a multiple of element");
  size_t i = k->entries++;
  k->numbers[i] = kind, k->offsets[i] = offset, k->lengths[i] = bytes, k->elements[i] = element;
  return GPUNVME_OK;
}
int gpunvme_kinds_read_many(gpunvme_kinds *kinds, const int32_t *numbers, const uint64_t *indexes,
    const uint64_t *elements, size_t count, uint64_t address, uint64_t capacity) {
  FIND(k, kinds, KINDS_HANDLE);
  uint64_t at = 0;
  for (size_t i = 0; i < count; i++) {
    size_t e = 0;
    while (e < k->entries && k->numbers[e] != numbers[i]) e++;
    if (e == k->entries) return failed(GPUNVME_ERROR_NOT_FOUND, 0, "no kind %d", numbers[i]);
    uint64_t bytes = elements[i] * k->elements[e];
    if (indexes[i] * k->elements[e] + bytes > k->lengths[e] || at + bytes > capacity) {
      return failed(GPUNVME_ERROR_INVALID, 0, "kind %d has not so many elements", numbers[i]);
    }
    int code = gpunvme_read(handle_of(k->storage), k->offsets[e] + indexes[i] * k->elements[e], address + at, bytes);
    if (code != GPUNVME_OK) return code;
    at += bytes;
  }
  return GPUNVME_OK;
}
int gpunvme_kinds_read(gpunvme_kinds *kinds, int32_t kind, uint64_t index, uint64_t elements, uint64_t address) {
  return gpunvme_kinds_read_many(kinds, &kind, &index, &elements, 1, address, UINT64_MAX);
}
int gpunvme_kinds_close(gpunvme_kinds *kinds) { return removed(kinds, KINDS_HANDLE); }

int gpunvme_layer_loader_init(gpunvme_storage *storage, uint64_t max_layer_bytes, uint32_t depth, gpunvme_layer_loader **loader) {
  FIND(o, storage, STORAGE);
  if (depth < 1 || depth > 1024 || max_layer_bytes == 0) return failed(GPUNVME_ERROR_INVALID, 0, "depth has to be 1..1024");
  object *l = calloc(1, sizeof *l);
  l->type = LAYER_LOADER, l->storage = o, l->size = max_layer_bytes, l->data = malloc(max_layer_bytes);
  *loader = added(l);
  return GPUNVME_OK;
}
int gpunvme_load_layer(gpunvme_layer_loader *loader, uint64_t offset, uint64_t bytes, uint64_t address) {
  FIND(l, loader, LAYER_LOADER);
  gpunvme_request *request;
  int code = gpunvme_submit_read(handle_of(l->storage), &(gpunvme_range){offset, address, bytes}, 1, &request);
  if (code != GPUNVME_OK) return code;
  do {
    code = gpunvme_wait(request, 1000000);
  } while (code == GPUNVME_PENDING && l->type == LAYER_LOADER);
  gpunvme_request_free(request);
  return code == GPUNVME_PENDING ? failed(GPUNVME_ERROR_CANCELLED, 0, "the loader was closed") : code;
}
int gpunvme_prefetch_layers(gpunvme_layer_loader *loader, const uint64_t *offsets, const uint64_t *bytes, size_t count) {
  FIND(l, loader, LAYER_LOADER);
  for (size_t i = 0; i < count && l->entries < LAYERS; i++) {
    if (bytes[i] > l->size) return failed(GPUNVME_ERROR_INVALID, 0, "a layer of %llu bytes is too long", (unsigned long long)bytes[i]);
    l->offsets[l->entries] = offsets[i], l->lengths[l->entries++] = bytes[i];
  }
  return GPUNVME_OK;
}
int gpunvme_next_layer(gpunvme_layer_loader *loader, struct CUstream_st *stream, uint64_t *address, uint64_t *bytes) {
  FIND(l, loader, LAYER_LOADER);
  if (stream != NULL) return failed(GPUNVME_ERROR_UNSUPPORTED, 0, "there are no streams without a GPU");
  if (l->next == l->entries) return failed(GPUNVME_ERROR_NOT_FOUND, 0, "no more layers");
  *address = (uint64_t)(uintptr_t)l->data, *bytes = l->lengths[l->next];
  return gpunvme_load_layer(loader, l->offsets[l->next++], *bytes, *address);
}
int gpunvme_layer_loader_destroy(gpunvme_layer_loader *loader) {
  FIND(l, loader, LAYER_LOADER);
  int untold = l->storage->untold;
  removed(loader, LAYER_LOADER);
  return untold ? failed(untold, 0, "the last layer was to fail") : GPUNVME_OK;
}

int gpunvme_weights_open(const char *uri, const char *accelerator, gpunvme_weights **weights) {
  (void)accelerator;
  if (start() != GPUNVME_OK) return GPUNVME_ERROR_FORKED;
  object *w = calloc(1, sizeof *w);
  int code = open_file(uri, w);
  if (code != GPUNVME_OK) return code;
  w->type = WEIGHTS;
  w->latency_ns = number(uri, "latency=", 0);
  char path[4200];
  int named = (int)strcspn(uri, "?");
  snprintf(path, sizeof path, "%.*s.json", named, uri);
  FILE *file = fopen(path, "r");
  if (file == NULL) return failed(GPUNVME_ERROR_FORMAT, 0, "%s is not a model", uri);
  w->description = calloc(1, 1 << 20);
  if (fread(w->description, 1, (1 << 20) - 1, file) == 0) w->description[0] = 0;
  fclose(file);
  snprintf(path, sizeof path, "%.*s.table", named, uri);
  file = fopen(path, "r");
  unsigned long long value;
  for (size_t t = 0; file && t < 256; t++) {
    for (size_t i = 0; i < 3 + (i > 2 ? w->tensor[t][2] : 0); i++) {
      if (fscanf(file, "%llu", &value) != 1) break;
      w->tensor[t][i] = value;
    }
  }
  if (file) fclose(file);
  *weights = added(w);
  return GPUNVME_OK;
}
int gpunvme_weights_describe(gpunvme_weights *weights, char *text, size_t capacity, size_t *needed) {
  FIND(w, weights, WEIGHTS);
  return say(w->description, text, capacity, needed);
}
int gpunvme_weights_stats(gpunvme_weights *weights, char *text, size_t capacity, size_t *needed) {
  FIND(w, weights, WEIGHTS);
  return say("{}", text, capacity, needed);
}
int gpunvme_weights_read(gpunvme_weights *weights, const gpunvme_tensor_read *reads, size_t count) {
  FIND(w, weights, WEIGHTS);
  uint64_t due = now() + w->latency_ns;
  while (now() < due) {
    if (w->type != WEIGHTS) return failed(GPUNVME_ERROR_CANCELLED, 0, "the model was closed");
    usleep(1000);
  }
  for (size_t i = 0; i < count; i++) {
    const uint64_t *t = w->tensor[reads[i].tensor], *dimensions = t + 3;
    uint64_t outer = 1, inner = t[1], length = 1, from = 0, to = 1;
    for (size_t d = 0; d < t[2]; d++) {
      if ((int32_t)d < reads[i].dimension) outer *= dimensions[d];
      else if ((int32_t)d == reads[i].dimension) length = dimensions[d], from = reads[i].start, to = reads[i].stop;
      else inner *= dimensions[d];
    }
    uint8_t *at = (uint8_t *)(uintptr_t)reads[i].address;
    if (outer * (to - from) * inner > reads[i].capacity) return failed(GPUNVME_ERROR_INVALID, 0, "no room for the tensor");
    for (uint64_t o = 0; o < outer; o++, at += (to - from) * inner) {
      uint64_t bytes = (to - from) * inner, offset = t[0] + (o * length + from) * inner;
      if (pread(w->fd, at, bytes, (off_t)offset) != (ssize_t)bytes) return failed(GPUNVME_ERROR_IO, EIO, "too short");
    }
  }
  return GPUNVME_OK;
}
int gpunvme_weights_close(gpunvme_weights *weights) { return removed(weights, WEIGHTS); }

// What a program has in static storage: memory that was imported by DLPack, let go when the process ends.
static void (**kept_deleter)(void *);
static void *kept;
static void let_go(void) {
  write(1, "let go\n", 7);
  (*kept_deleter)(kept);
}
void fake_keep(void *managed, void (**deleter)(void *)) {
  kept = managed, kept_deleter = deleter;
  atexit(let_go);
}

// Of the real library only.
int gpunvme_weights_layer_loader_init(gpunvme_weights *w, uint64_t m, uint32_t d, gpunvme_layer_loader **l) { (void)w, (void)m, (void)d, (void)l; return failed(GPUNVME_ERROR_UNSUPPORTED, 0, "no layers of tensors"); }
int gpunvme_weights_shards(gpunvme_weights *w, const char *r, uint32_t p, int32_t *d, size_t c) { (void)w, (void)r, (void)p, (void)d, (void)c; return failed(GPUNVME_ERROR_UNSUPPORTED, 0, "no shards"); }
int gpunvme_prefetch_tensors(gpunvme_layer_loader *l, const char *n, const gpunvme_tensor_read *t, size_t c) { (void)l, (void)n, (void)t, (void)c; return GPUNVME_ERROR_UNSUPPORTED; }
int gpunvme_take_layer(gpunvme_layer_loader *l, struct CUstream_st *s, uint64_t *a, uint64_t *b) { (void)l, (void)s, (void)a, (void)b; return GPUNVME_ERROR_UNSUPPORTED; }
int gpunvme_cancel_layers(gpunvme_layer_loader *l) { (void)l; return GPUNVME_ERROR_UNSUPPORTED; }
int gpunvme_layer_loader_stats(gpunvme_layer_loader *l, char *text, size_t capacity, size_t *needed) {
  (void)l;
  return say("{}", text, capacity, needed);
}

// What it would fill in is of the real library.
int gpunvme_plan_layers(const gpunvme_layer_size *l, size_t n, uint64_t b, uint32_t s, gpunvme_layer_plan *p, uint8_t *y) { (void)l, (void)n, (void)b, (void)s, (void)p, (void)y; return failed(GPUNVME_ERROR_UNSUPPORTED, 0, "no plans"); }

int gpunvme_dequantize(const char *a, const gpunvme_quantized *t, size_t n, struct CUstream_st *s) { (void)a, (void)t, (void)n, (void)s; return failed(GPUNVME_ERROR_UNSUPPORTED, 0, "no floats of quantised tensors"); }

// Its kernels never end by themselves: whoever waits for one does until he is told to stop, and it has commands outstanding then.
int gpunvme_include_dir(char *text, size_t capacity, size_t *needed) { return say("/fake/include", text, capacity, needed); }
int gpunvme_kernel_storage_open(gpunvme_storage *const *storages, size_t count, const gpunvme_kernel_options *options, gpunvme_kernel_storage **kernels) {
  for (size_t i = 0; i < count; i++) {
    FIND(o, storages[i], STORAGE);
  }
  if (count == 0) return failed(GPUNVME_ERROR_INVALID, 0, "no storage");
  object *k = calloc(1, sizeof *k);
  k->type = KERNELS, k->size = options->buffers, k->flags = options->flags, k->fail = found(storages[0], STORAGE)->fail;
  *kernels = added(k);
  return GPUNVME_OK;
}
// One on storages that fail does so the first time.
int gpunvme_kernel_storage_close(gpunvme_kernel_storage *kernels) {
  object *k = found(kernels, KERNELS);
  if (k != NULL && k->fail != 0) {
    int code = k->fail;
    k->fail = 0;
    return failed(code, 0, "the SSD keeps its queues");
  }
  return removed(kernels, KERNELS);
}
int gpunvme_kernel_storage_handle(gpunvme_kernel_storage *kernels, gpunvme_kernel_storage **handle) {
  FIND(k, kernels, KERNELS);
  object *one = calloc(1, sizeof *one);
  one->type = KERNELS, one->size = k->size;
  *handle = added(one);
  return GPUNVME_OK;
}
int gpunvme_kernel_storage_device_handle(gpunvme_kernel_storage *kernels, uint64_t *address) {
  FIND(k, kernels, KERNELS);
  *address = 64 * (uint64_t)kernels;
  return GPUNVME_OK;
}
int gpunvme_kernel_storage_register(gpunvme_kernel_storage *kernels, uint64_t address, uint64_t bytes, uint32_t *number, uint64_t *offset) {
  FIND(k, kernels, KERNELS);
  if (bytes == 0 || k->entries == k->size) return failed(GPUNVME_ERROR_INVALID, 0, "no bytes, or no number");
  *number = (uint32_t)k->entries++;
  *offset = address & 4095;
  return GPUNVME_OK;
}
int gpunvme_kernel_storage_unregister(gpunvme_kernel_storage *kernels, uint32_t number) {
  FIND(k, kernels, KERNELS);
  if (number >= k->entries) return failed(GPUNVME_ERROR_INVALID, 0, "no buffer is registered with number %u", number);
  if (k->next > 0) return failed(GPUNVME_ERROR_BUSY, 0, "commands may still move data; recover() before");
  k->entries--;
  return GPUNVME_OK;
}
int gpunvme_kernel_storage_file(gpunvme_kernel_storage *kernels, gpunvme_storage *file, uint64_t *address) {
  FIND(k, kernels, KERNELS);
  FIND(o, file, STORAGE);
  *address = 64 * (uint64_t)file;
  return GPUNVME_OK;
}
// Leaves one file out, or fails for it.
int gpunvme_kernel_storage_directory(gpunvme_kernel_storage *kernels, gpunvme_storage *storage, const char *path, uint32_t flags, uint64_t *address) {
  FIND(k, kernels, KERNELS);
  FIND(o, storage, STORAGE);
  if (!(flags & GPUNVME_DIRECTORY_SKIP)) return failed(GPUNVME_ERROR_UNSUPPORTED, 0, "%s/link", path);
  *address = 64 * (uint64_t)storage;
  return GPUNVME_OK;
}
int gpunvme_kernel_storage_skipped(gpunvme_kernel_storage *kernels, uint64_t address, char *text, size_t capacity, size_t *needed) {
  FIND(k, kernels, KERNELS);
  if (address % 64 != 0) return failed(GPUNVME_ERROR_INVALID, 0, "no directory is there");
  return say("{\"total\":1,\"skipped\":[\"/link: why\"]}", text, capacity, needed);
}
int gpunvme_kernel_storage_free(gpunvme_kernel_storage *kernels, uint64_t address) {
  FIND(k, kernels, KERNELS);
  return address % 64 == 0 ? GPUNVME_OK : failed(GPUNVME_ERROR_INVALID, 0, "no file is there");
}
int gpunvme_kernel_storage_await(gpunvme_kernel_storage *kernels, struct CUstream_st *stream, uint64_t timeout_ns, gpunvme_cancelled cancelled, void *data) {
  FIND(k, kernels, KERNELS);
  (void)stream;
  uint64_t began = now();
  while (!k->untold) {
    bool told = cancelled != NULL && cancelled(data);
    if (told || now() - began >= timeout_ns) {
      k->next = 1;
      return told ? failed(GPUNVME_ERROR_CANCELLED, 0, "was stopped") : failed(GPUNVME_ERROR_TIMEOUT, 0, "was told to stop after %u ms", (unsigned)(timeout_ns / 1000000));
    }
    usleep(10000);
  }
  k->untold = 0;
  return GPUNVME_OK;
}
int gpunvme_kernel_storage_await_event(gpunvme_kernel_storage *kernels, struct CUevent_st *event, uint64_t timeout_ns, gpunvme_cancelled cancelled, void *data) {
  return gpunvme_kernel_storage_await(kernels, (struct CUstream_st *)event, timeout_ns, cancelled, data);
}
int gpunvme_kernel_storage_stop(gpunvme_kernel_storage *kernels, int stop) {
  FIND(k, kernels, KERNELS);
  k->untold = stop;
  return GPUNVME_OK;
}
int gpunvme_kernel_storage_recover(gpunvme_kernel_storage *kernels) {
  FIND(k, kernels, KERNELS);
  k->next = 0;
  return GPUNVME_OK;
}
// One, where it was opened for that.
int gpunvme_kernel_storage_recoveries(gpunvme_kernel_storage *kernels, uint64_t *count) {
  FIND(k, kernels, KERNELS);
  *count = k->flags & GPUNVME_KERNELS_RECOVER;
  return GPUNVME_OK;
}
int gpunvme_kernel_storage_errors(gpunvme_kernel_storage *kernels, char *text, size_t capacity, size_t *needed) {
  FIND(k, kernels, KERNELS);
  return say("{\"total\":2,\"errors\":[\"one\",\"two\"]}", text, capacity, needed);
}

// Rows are moved by kernels, which it has none of.
int gpunvme_cache_open(gpunvme_kernel_storage *k, const gpunvme_cache_options *o, gpunvme_cache **c) { (void)k, (void)o, (void)c; return failed(GPUNVME_ERROR_UNSUPPORTED, 0, "no caches"); }
int gpunvme_cache_close(gpunvme_cache *c) { (void)c; return GPUNVME_OK; }
int gpunvme_cache_array(gpunvme_cache *c, gpunvme_storage *s, uint64_t o, uint64_t n, uint32_t e, uint32_t f, uint64_t *a) { (void)c, (void)s, (void)o, (void)n, (void)e, (void)f, (void)a; return GPUNVME_ERROR_UNSUPPORTED; }
int gpunvme_cache_flush(gpunvme_cache *c, uint64_t t) { (void)c, (void)t; return GPUNVME_ERROR_UNSUPPORTED; }
int gpunvme_cache_counters(gpunvme_cache *c, char *t, size_t n, size_t *l) { (void)c, (void)t, (void)n, (void)l; return GPUNVME_ERROR_UNSUPPORTED; }
int gpunvme_rows_open(gpunvme_cache *c, gpunvme_storage *s, uint64_t o, uint64_t n, uint64_t b, uint32_t f, gpunvme_rows **m) { (void)c, (void)s, (void)o, (void)n, (void)b, (void)f, (void)m; return GPUNVME_ERROR_UNSUPPORTED; }
int gpunvme_rows_close(gpunvme_rows *m) { (void)m; return GPUNVME_OK; }
int gpunvme_rows_gather(gpunvme_rows *m, uint64_t i, uint64_t n, uint64_t t, struct CUstream_st *s) { (void)m, (void)i, (void)n, (void)t, (void)s; return GPUNVME_ERROR_UNSUPPORTED; }
int gpunvme_rows_fetch(gpunvme_rows *m, uint64_t i, uint64_t n, struct CUstream_st *s) { (void)m, (void)i, (void)n, (void)s; return GPUNVME_ERROR_UNSUPPORTED; }
int gpunvme_rows_update(gpunvme_rows *m, uint64_t i, uint64_t n, uint64_t t, struct CUstream_st *s) { (void)m, (void)i, (void)n, (void)t, (void)s; return GPUNVME_ERROR_UNSUPPORTED; }
int gpunvme_rows_synchronize(gpunvme_rows *m) { (void)m; return GPUNVME_ERROR_UNSUPPORTED; }

// The Python package has no use for these, and declares them.
nvme_gpu *nvme_gpu_init(const char *device) { (void)device; return NULL; }
int nvme_gpu_read(nvme_gpu *g, uint64_t l, uint64_t b, void *a) { (void)g, (void)l, (void)b, (void)a; return GPUNVME_ERROR_UNSUPPORTED; }
int nvme_gpu_read_async(nvme_gpu *g, uint64_t l, uint64_t b, void *a, struct CUstream_st *s) { (void)s; return nvme_gpu_read(g, l, b, a); }
int nvme_gpu_write(nvme_gpu *g, uint64_t l, uint64_t b, const void *a) { return nvme_gpu_read(g, l, b, (void *)(uintptr_t)a); }
int nvme_gpu_write_async(nvme_gpu *g, uint64_t l, uint64_t b, const void *a, struct CUstream_st *s) { (void)s; return nvme_gpu_write(g, l, b, a); }
int nvme_gpu_synchronize(nvme_gpu *g) { (void)g; return GPUNVME_ERROR_UNSUPPORTED; }
void nvme_gpu_cleanup(nvme_gpu *g) { (void)g; }
nvme_read_request *nvme_read_request_create(nvme_gpu *g) { (void)g; return NULL; }
int nvme_read_request_add_kind(nvme_read_request *r, int k, uint64_t l, uint64_t b, uint64_t e) { (void)r, (void)k, (void)l, (void)b, (void)e; return GPUNVME_ERROR_UNSUPPORTED; }
int read_nvme_kind(nvme_read_request *r, int k, uint64_t i, uint64_t e, void *a) { (void)r, (void)k, (void)i, (void)e, (void)a; return GPUNVME_ERROR_UNSUPPORTED; }
void nvme_read_request_destroy(nvme_read_request *r) { (void)r; }
