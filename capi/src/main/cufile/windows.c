// Windows: parts of a file that are in the page cache, mapped and pinned there for the GPU, which then copies them without the CPU. A file
// gets them where it is read again and again, if GPUNVME_CUFILE_PIN lets it.
//
// What is pinned stays the file's until the file is cut: then the pages are the file's no more. So each transfer looks whether the file was
// changed, and lets go of all windows if it was. A file that was changed just now gets none: the kernel's times are coarse, and the next
// change could leave no trace in them.
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "parts.h"

#define CUFILE_PART "windows"

#define LEAST_PAGE ((size_t)4096)
#define WINDOW ((size_t)32 << 20)
#define LEAST_READ ((size_t)1 << 20)
#ifndef SETTLED_SECONDS // tests need not wait so long
#define SETTLED_SECONDS 2
#endif

enum window_state { READ, POSTED, PINNED };

typedef struct window {
  atomic_int state;
  atomic_size_t read; // bytes, since it was looked at last
  cuda_context context; // of PINNED, as what follows
  device_address device;
} window;

struct windows {
  task ends;
  atomic_int users; // transfers, and 1 for the handle
  struct timespec changed;
  size_t bytes; // of the file
  int fd;       // the handle's, for as long as that has a transfer
  char *_Atomic file; // mapped as a whole, read-only, once there is something to pin: programs read many files but once
  size_t count;
  atomic_size_t pinned; // of them
  atomic_bool never; // CUDA does not take it, or it cannot be mapped
  window all[];
};

typedef struct pin {
  task t;
  windows *w;
  size_t number;
  cuda_context context;
} pin;

static atomic_size_t pinned; // bytes, of all files

// ---- how much

static size_t from_file(const char *path, size_t other) {
  unsigned long long number;
  FILE *file = fopen(path, "re");
  const bool good = file != NULL && fscanf(file, "%llu", &number) == 1;
  if (file != NULL) {
    fclose(file);
  }
  return good && number < other ? (size_t)number : other;
}

size_t memory_of_groups(FILE *list, const char *root, size_t most) {
  static const char *const limits[] = {"memory.max", "memory.high", "memory.limit_in_bytes"};
  char line[4200], folder[4400], file[4500];
  while (list != NULL && fgets(line, sizeof line, list) != NULL) {
    // Its number, its controllers, its path. Version 2 has all controllers in one tree, and names none.
    char *controllers = strchr(line, ':'), *path = controllers == NULL ? NULL : strchr(controllers + 1, ':');
    if (path == NULL) {
      continue;
    }
    *path++ = 0;
    path[strcspn(path, "\n")] = 0;
    const bool second = controllers[1] == 0;
    if (!second && strstr(controllers, "memory") == NULL) {
      continue;
    }
    // The groups above it count, too. In a container the path may be that of the host, and the group is at the root.
    for (char *end = path + strlen(path); end != NULL; end = strrchr(path, '/')) {
      *end = 0;
      snprintf(folder, sizeof folder, "%s%s%s", root, second ? "" : "/memory", path);
      for (size_t i = 0; i < COUNT(limits); i++) {
        snprintf(file, sizeof file, "%s/%s", folder, limits[i]);
        most = from_file(file, most);
      }
    }
  }
  return most;
}

// As the driver lists them: CUDA is not started for that.
static size_t gpus(void) {
  size_t count = 0;
  DIR *folder = opendir("/proc/driver/nvidia/gpus");
  const struct dirent *one;
  while (folder != NULL && (one = readdir(folder)) != NULL) {
    count += one->d_name[0] != '.';
  }
  if (folder != NULL) {
    closedir(folder);
  }
  return count;
}

// A quarter of the machine's memory, or of what its control group may have. Where there may be a process for each of many GPUs, all of
// them have half.
static size_t usual_limit(void) {
  const size_t memory = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
  FILE *list = fopen("/proc/self/cgroup", "re");
  const size_t most = memory_of_groups(list, "/sys/fs/cgroup", memory);
  if (list != NULL) {
    fclose(list);
  }
  const size_t processes = gpus();
  return most / (processes > 2 ? 2 * processes : 4);
}

// Bytes, with KiB, MiB, GiB or TiB behind the number.
static bool size_of(const char *text, size_t *size) {
  static const char *const units[] = {"", "KiB", "MiB", "GiB", "TiB"};
  char *unit;
  errno = 0;
  const unsigned long long number = strtoull(text, &unit, 10);
  for (size_t i = 0; i < COUNT(units) && errno == 0 && *text >= '0' && *text <= '9'; i++) {
    if (strcmp(unit, units[i]) == 0) {
      *size = (size_t)number << 10 * i;
      return *size >> 10 * i == number;
    }
  }
  return false;
}

static atomic_size_t limit;

void windows_open(void) {
  const char *text = secure_getenv("GPUNVME_CUFILE_PIN");
  size_t wanted = 0; // letting go waits for all work of the GPU, and calls of CUDA wait meanwhile: the program has to agree
  if (text != NULL && strcmp(text, "auto") == 0) {
    wanted = usual_limit();
  } else if (text != NULL && *text != 0 && !size_of(text, &wanted)) {
    LOG(LOG_WARN, "GPUNVME_CUFILE_PIN is not auto, 0, or a size such as 4GiB: '%s'; nothing is pinned", text);
  }
  atomic_store(&limit, wanted);
}

// ---- of a handle

bool windows_may_be(int fd, bool reads, bool direct) {
  enum { EXT4 = 0xEF53, XFS = 0x58465342 };
  struct statfs system;
  struct stat status;
  // Of other file systems it is not known that a change of the file shows in its times.
  return atomic_load(&limit) > 0 && reads && !direct && cuda_pins_files() && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && fstatfs(fd, &system) == 0 &&
         (system.f_type == EXT4 || system.f_type == XFS);
}

static bool is_settled(const struct stat *status) {
  struct timespec now;
  return clock_gettime(CLOCK_REALTIME, &now) == 0 && status->st_ctim.tv_sec + SETTLED_SECONDS < now.tv_sec;
}

static bool is_same(const windows *w, const struct stat *status) {
  return (size_t)status->st_size == w->bytes && status->st_ctim.tv_sec == w->changed.tv_sec && status->st_ctim.tv_nsec == w->changed.tv_nsec;
}

static windows *make(int fd, const struct stat *status) {
  const size_t bytes = (size_t)status->st_size, count = (bytes + WINDOW - 1) / WINDOW;
  windows *w = bytes == 0 ? NULL : calloc(1, sizeof *w + count * sizeof *w->all);
  if (w == NULL) {
    return NULL;
  }
  w->users = 1;
  w->fd = fd;
  w->changed = status->st_ctim;
  w->bytes = bytes;
  w->count = count;
  return w;
}

windows *windows_take(handle *h) {
  struct stat now;
  if (!h->windowed || fstat(h->fd, &now) != 0) {
    return NULL;
  }
  windows *old = NULL;
  pthread_mutex_lock(&h->lock);
  if (h->windows != NULL && !is_same(h->windows, &now)) {
    old = h->windows;
    h->windows = NULL;
  }
  if (h->windows == NULL && is_settled(&now)) {
    h->windows = make(h->fd, &now);
  }
  windows *w = h->windows;
  if (w != NULL) {
    atomic_fetch_add(&w->users, 1);
  }
  pthread_mutex_unlock(&h->lock);
  if (old != NULL) {
    windows_leave(old);
  }
  return w;
}

// ---- one

static size_t bytes_of(const windows *w, size_t number) {
  const size_t left = w->bytes - number * WINDOW;
  return left < WINDOW ? left : WINDOW;
}

static size_t pages_of(const windows *w, size_t number) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  return (bytes_of(w, number) + page - 1) / page * page;
}

view windows_view(const windows *w, off_t offset, size_t size) {
  const size_t number = (size_t)offset / WINDOW, at = (size_t)offset % WINDOW;
  if (w == NULL || offset < 0 || (size_t)offset >= w->bytes || atomic_load_explicit(&w->all[number].state, memory_order_acquire) != PINNED) {
    return (view){.bytes = 0};
  }
  const size_t left = bytes_of(w, number) - at;
  return (view){.host = w->file + offset, .device = w->all[number].device + at, .bytes = size < left ? size : left};
}

bool windows_end(const windows *w, off_t offset) {
  return w != NULL && (size_t)offset >= w->bytes;
}

bool windows_have(const windows *w, off_t offset, size_t size) {
  if (w != NULL && atomic_load(&w->pinned) == w->count) {
    return true;
  }
  const view first = windows_view(w, offset, size), second = windows_view(w, offset + (off_t)first.bytes, size - first.bytes);
  return first.bytes + second.bytes == size;
}

static bool is_in_page_cache(char *begin, size_t bytes) {
  unsigned char there[WINDOW / LEAST_PAGE];
  const size_t pages = bytes / (size_t)sysconf(_SC_PAGESIZE);
  bool all = mincore(begin, bytes, there) == 0;
  for (size_t i = 0; all && i < pages; i++) {
    all = there[i] & 1;
  }
  return all;
}

static bool reserve(size_t bytes) {
  const size_t most = atomic_load(&limit);
  if (atomic_fetch_add(&pinned, bytes) + bytes <= most) {
    return true;
  }
  atomic_fetch_sub(&pinned, bytes);
  return false;
}

static bool pin_window(windows *w, size_t number, cuda_context context) {
  window *one = &w->all[number];
  char *begin = w->file + number * WINDOW;
  const size_t bytes = pages_of(w, number);
  caller before;
  if (!is_in_page_cache(begin, bytes) || !reserve(bytes)) {
    return false;
  }
  CUresult code = cuda_enter(context, &before);
  if (code == 0) {
    code = cuda_pin_file(begin, bytes, &one->device);
    cuda_leave(before);
  }
  if (code != 0) {
    atomic_store(&w->never, true);
    atomic_fetch_sub(&pinned, bytes);
    LOG(LOG_INFO, "CUDA does not pin %zu bytes of a file, so they are read: %s", bytes, cuda_error(code));
    return false;
  }
  one->context = context;
  LOG(LOG_DEBUG, "%zu bytes of a file at %zu are pinned in the page cache, for the GPU to copy", bytes, number * WINDOW);
  return true;
}

static void run_pin(task *t) {
  pin *p = (pin *)t;
  window *one = &p->w->all[p->number];
  const bool good = pin_window(p->w, p->number, p->context);
  atomic_store(&one->read, 0);
  atomic_store_explicit(&one->state, good ? PINNED : READ, memory_order_release);
  atomic_fetch_add(&p->w->pinned, good);
  windows_leave(p->w);
  free(p);
}

// By a transfer of the handle.
static bool map(windows *w) {
  char *other = NULL;
  if (atomic_load(&w->file) != NULL) {
    return true;
  }
  char *file = mmap(NULL, w->bytes, PROT_READ, MAP_SHARED, w->fd, 0);
  if (file == MAP_FAILED) {
    atomic_store(&w->never, true);
    return false;
  }
  madvise(file, w->bytes, MADV_DONTFORK);
  if (!atomic_compare_exchange_strong(&w->file, &other, file)) {
    munmap(file, w->bytes);
  }
  return true;
}

static void post_pin(windows *w, size_t number, cuda_context context) {
  window *one = &w->all[number];
  int expected = READ;
  pin *p = malloc(sizeof *p);
  if (p == NULL || !atomic_compare_exchange_strong(&one->state, &expected, POSTED)) {
    free(p);
    return;
  }
  *p = (pin){.t.run = run_pin, .w = w, .number = number, .context = context};
  atomic_fetch_add(&w->users, 1);
  if (!workers_post(&p->t)) {
    atomic_fetch_sub(&w->users, 1);
    atomic_store(&one->state, READ);
    free(p);
  }
}

void windows_count(windows *w, off_t offset, size_t bytes, cuda_context context) {
  if (w == NULL || atomic_load_explicit(&w->never, memory_order_relaxed)) {
    return;
  }
  const size_t end = (size_t)offset + bytes < w->bytes ? (size_t)offset + bytes : w->bytes;
  for (size_t at = (size_t)offset, part; at < end; at += part) {
    const size_t number = at / WINDOW, window_end = (number + 1) * WINDOW;
    window *one = &w->all[number];
    part = (end < window_end ? end : window_end) - at;
    if (atomic_load_explicit(&one->state, memory_order_relaxed) != READ) {
      continue;
    }
    const size_t least = bytes_of(w, number) / 4 * 5 < LEAST_READ ? LEAST_READ : bytes_of(w, number) / 4 * 5; // more than once
    if (atomic_fetch_add_explicit(&one->read, part, memory_order_relaxed) + part >= least && map(w)) {
      post_pin(w, number, context);
    }
  }
}

// ---- the end

static void unpin_all(windows *w) {
  for (size_t i = 0; i < w->count; i++) {
    window *one = &w->all[i];
    caller before;
    if (atomic_load(&one->state) != PINNED) {
      continue;
    }
    // A program may have ended its context, and all that was in it.
    if (cuda_enter(one->context, &before) == 0) {
      cuda_unpin_file(w->file + i * WINDOW);
      cuda_leave(before);
    }
    atomic_fetch_sub(&pinned, pages_of(w, i));
  }
  munmap(w->file, w->bytes);
  free(w);
}

static void run_end(task *t) {
  unpin_all((windows *)t);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static task *left; // guarded by lock: ends that no worker took

void windows_close(void) {
  pthread_mutex_lock(&lock);
  task *t = left;
  left = NULL;
  pthread_mutex_unlock(&lock);
  while (t != NULL) {
    task *next = t->next;
    run_end(t);
    t = next;
  }
}

void windows_leave(windows *w) {
  if (w == NULL || atomic_fetch_sub(&w->users, 1) != 1) {
    return;
  }
  if (atomic_load(&w->file) == NULL) {
    free(w);
    return;
  }
  // Not by a caller, who may be a function of a stream, which may call nothing of CUDA.
  w->ends.run = run_end;
  if (!workers_post(&w->ends)) {
    pthread_mutex_lock(&lock);
    w->ends.next = left;
    left = &w->ends;
    pthread_mutex_unlock(&lock);
  }
}
