// Files that are registered.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "parts.h"

#define CUFILE_PART "handles"

enum { MOST_HANDLES = 1 << 16 };

// A handle is the number of its place in the table and of its turn there, so that no use of an old one touches memory.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static handle *_Atomic table[MOST_HANDLES]; // changed with the lock
static size_t used;                         // guarded by lock: behind the last place that ever was
static uint64_t turns;                      // guarded by lock

static size_t place_of(CUfileHandle_t fh) {
  return (size_t)((uintptr_t)fh & (MOST_HANDLES - 1));
}

// Transfers that look a handle up, in two halves: who takes one away waits for the half that may still see it.
static atomic_int looking[2];
static atomic_uint half;

handle *handle_use(CUfileHandle_t fh) {
  if (fh == NULL) {
    return NULL;
  }
  unsigned mine = atomic_load(&half) & 1;
  atomic_fetch_add(&looking[mine], 1);
  handle *h = atomic_load(&table[place_of(fh)]);
  if (h != NULL && h->magic == (uint64_t)(uintptr_t)fh) {
    atomic_fetch_add(&h->users, 1);
  } else {
    h = NULL;
  }
  atomic_fetch_sub(&looking[mine], 1);
  return h;
}

void handle_hold(handle *h) {
  atomic_fetch_add(&h->users, 1);
}

void handle_leave(handle *h) {
  if (atomic_fetch_sub(&h->users, 1) == 1) {
    if (h->buffered >= 0 && h->buffered != h->fd) {
      close(h->buffered);
    }
    if (h->place != NULL) {
      place_close(h->place);
    }
    windows_leave(h->windows);
    pthread_mutex_destroy(&h->lock);
    free(h);
  }
}

// With the lock. What was taken out of the table is seen by no lookup when this returns.
static void wait_for_lookups(void) {
  for (int i = 0; i < 2; i++) {
    unsigned before = atomic_fetch_add(&half, 1) & 1;
    while (atomic_load(&looking[before]) != 0) {
      sched_yield();
    }
  }
}

// What kind of file it is, and how it was opened.
static CUfileOpError look_at(int fd, handle *h) {
  struct stat status;
  int flags = fd < 0 ? -1 : fcntl(fd, F_GETFL);
  if (flags < 0 || fstat(fd, &status) != 0) {
    LOG(LOG_ERROR, "file descriptor %d is not open", fd);
    return CU_FILE_INVALID_VALUE;
  }
  if (!S_ISREG(status.st_mode) && !S_ISBLK(status.st_mode)) {
    LOG(LOG_ERROR, "file descriptor %d is neither a regular file nor a block device", fd);
    return CU_FILE_INVALID_FILE_TYPE;
  }
  if (flags & (O_APPEND | O_PATH) || (flags & O_TMPFILE) == O_TMPFILE) {
    LOG(LOG_ERROR, "file descriptor %d was opened with O_APPEND, O_PATH or O_TMPFILE", fd);
    return CU_FILE_INVALID_FILE_OPEN_FLAG;
  }
  const int mode = flags & O_ACCMODE;
  *h = (handle){.fd = fd, .buffered = fd, .direct = (flags & O_DIRECT) != 0, .reads = mode != O_WRONLY, .writes = mode != O_RDONLY, .users = 1};
  pthread_mutex_init(&h->lock, NULL);
  if (h->direct) {
    // What is not aligned goes through the page cache, which the kernel keeps coherent with O_DIRECT. It is as durable as the program
    // wants it.
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    h->buffered = open(path, mode | (flags & (O_SYNC | O_DSYNC)) | O_CLOEXEC);
    if (h->buffered < 0) {
      LOG(LOG_WARN, "file descriptor %d: no second one without O_DIRECT, so all transfers must be aligned to 4 KiB", fd);
    }
  }
  return CU_FILE_SUCCESS;
}

// With the lock. *place: the first that is free.
static CUfileOpError find_place(int fd, size_t *place) {
  *place = MOST_HANDLES;
  for (size_t i = 0; i < used; i++) {
    const handle *h = atomic_load(&table[i]);
    if (h == NULL) {
      *place = *place < i ? *place : i;
    } else if (h->fd == fd) {
      LOG(LOG_ERROR, "file descriptor %d is registered already", fd);
      return CU_FILE_HANDLE_ALREADY_REGISTERED;
    }
  }
  *place = *place < used ? *place : used;
  return *place < MOST_HANDLES ? CU_FILE_SUCCESS : CU_FILE_NOMEM_ERROR;
}

static CUfileOpError add(CUfileHandle_t *fh, int fd) {
  size_t place;
  handle *h = malloc(sizeof *h);
  CUfileOpError code = h == NULL ? CU_FILE_NOMEM_ERROR : look_at(fd, h);
  if (code != CU_FILE_SUCCESS) {
    free(h);
    return code;
  }
  if (!setting_bool(CUFILE_PARAM_FORCE_COMPAT_MODE)) {
    code = place_open(fd, h->writes, &h->place);
  }
  if (code == CU_FILE_SUCCESS && h->place == NULL && !setting_bool(CUFILE_PARAM_PROPERTIES_ALLOW_COMPAT_MODE)) {
    LOG(LOG_ERROR, "file descriptor %d is on no SSD of ours (GPUNVME_CUFILE_MAP), and allow_compat_mode is false", fd);
    code = CU_FILE_IO_NOT_SUPPORTED;
  }
  h->windowed = h->place == NULL && windows_may_be(fd, h->reads, h->direct);
  pthread_mutex_lock(&lock);
  // What comes behind handles_drop would stay for ever.
  code = code == CU_FILE_SUCCESS && !library_is_open() ? CU_FILE_DRIVER_CLOSING : code;
  code = code != CU_FILE_SUCCESS ? code : find_place(fd, &place);
  if (code == CU_FILE_SUCCESS) {
    h->magic = ++turns * MOST_HANDLES + place;
    used = place < used ? used : place + 1;
    atomic_store(&table[place], h);
    *fh = (CUfileHandle_t)(uintptr_t)h->magic;
  }
  pthread_mutex_unlock(&lock);
  if (code != CU_FILE_SUCCESS) {
    handle_leave(h);
  }
  return code;
}

CUfileError_t cuFileHandleRegister(CUfileHandle_t *fh, CUfileDescr_t *descr) {
  CUfileOpError code = library_begin();
  if (code != CU_FILE_SUCCESS) {
    return status_of(code);
  }
  if (fh == NULL || descr == NULL) {
    code = CU_FILE_INVALID_VALUE;
  } else if (descr->type != CU_FILE_HANDLE_TYPE_OPAQUE_FD) {
    LOG(LOG_ERROR, "only file descriptors of Linux are supported, not type %u", descr->type);
    code = CU_FILE_IO_NOT_SUPPORTED;
  } else {
    code = add(fh, descr->handle.fd);
  }
  stats_count(COUNT_HANDLE_REGISTER, code == CU_FILE_SUCCESS);
  return status_of(code);
}

void cuFileHandleDeregister(CUfileHandle_t fh) {
  if (fh == NULL || !library_is_open()) {
    return;
  }
  pthread_mutex_lock(&lock);
  handle *h = atomic_load(&table[place_of(fh)]);
  if (h != NULL && h->magic == (uint64_t)(uintptr_t)fh) {
    atomic_store(&table[place_of(fh)], NULL);
    wait_for_lookups();
  } else {
    h = NULL;
  }
  pthread_mutex_unlock(&lock);
  stats_count(COUNT_HANDLE_DEREGISTER, h != NULL);
  if (h != NULL) {
    handle_leave(h);
  }
}

void handles_drop(void) {
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < used; i++) {
    handle *h = atomic_exchange(&table[i], NULL);
    if (h != NULL) {
      wait_for_lookups();
      handle_leave(h);
    }
  }
  used = 0;
  pthread_mutex_unlock(&lock);
}
