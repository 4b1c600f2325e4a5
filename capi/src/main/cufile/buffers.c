// Memory that is registered: known by its base, so that transfers need not ask CUDA what it is.
#include <stdlib.h>

#include "parts.h"

#define CUFILE_PART "buffers"

typedef struct buffer {
  uintptr_t base;
  size_t bytes;
  memory m;
} buffer;

// Sorted by base.
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static buffer *all;
static size_t count, capacity;

// With the lock: where it is, or would be.
static size_t find(uintptr_t base) {
  size_t low = 0, high = count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (all[middle].base < base) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

bool buffer_find(const void *base, memory *m) {
  pthread_rwlock_rdlock(&lock);
  size_t at = find((uintptr_t)base);
  bool found = at < count && all[at].base == (uintptr_t)base;
  if (found) {
    *m = all[at].m;
    m->registered = true;
    m->begin = (device_address)all[at].base;
    m->bytes = all[at].bytes;
  }
  pthread_rwlock_unlock(&lock);
  return found;
}

static CUfileError_t look_at(const void *base, size_t length, memory *m) {
  CUresult code = cuda_memory(base, m);
  if (code != 0) {
    LOG(LOG_ERROR, "CUDA does not say what memory %p is: %s", base, cuda_error(code));
    return cuda_failed(code);
  }
  const device_address from = (device_address)(uintptr_t)base;
  if (m->device && m->bytes > 0 && (from < m->begin || length > m->bytes - (from - m->begin))) {
    LOG(LOG_ERROR, "%zu bytes at %p are more than was allocated there", length, base);
    return status_of(CU_FILE_CUDA_POINTER_RANGE_ERROR);
  }
  if (!m->device && !setting_bool(CUFILE_PARAM_PROPERTIES_ALLOW_SYSTEM_MEMORY)) {
    LOG(LOG_ERROR, "%p is host memory, and properties.allow_system_memory is false", base);
    return status_of(CU_FILE_CUDA_MEMORY_TYPE_INVALID);
  }
  return status_of(CU_FILE_SUCCESS);
}

static CUfileOpError add(uintptr_t base, size_t length, const memory *m) {
  pthread_rwlock_wrlock(&lock);
  // What comes behind buffers_drop would stay for ever.
  CUfileOpError code = library_is_open() ? CU_FILE_SUCCESS : CU_FILE_DRIVER_CLOSING;
  size_t at = find(base);
  if (code == CU_FILE_SUCCESS && at < count && all[at].base == base) {
    code = CU_FILE_MEMORY_ALREADY_REGISTERED;
  } else if (code == CU_FILE_SUCCESS && count == capacity) {
    buffer *more = realloc(all, (2 * capacity + 64) * sizeof *more);
    if (more == NULL) {
      code = CU_FILE_NOMEM_ERROR;
    } else {
      all = more;
      capacity = 2 * capacity + 64;
    }
  }
  if (code == CU_FILE_SUCCESS) {
    for (size_t i = count; i > at; i--) {
      all[i] = all[i - 1];
    }
    all[at] = (buffer){.base = base, .bytes = length, .m = *m};
    count++;
  }
  pthread_rwlock_unlock(&lock);
  return code;
}

CUfileError_t cuFileBufRegister(const void *bufPtr_base, size_t length, int flags) {
  (void)flags; // of RDMA, which is not here
  memory m = {.gpu = -1};
  CUfileError_t status = status_of(library_begin());
  if (status.err != CU_FILE_SUCCESS) {
    return status;
  }
  if (bufPtr_base == NULL || length == 0 || length > SIZE_MAX - (uintptr_t)bufPtr_base) {
    status = status_of(CU_FILE_INVALID_VALUE);
  } else {
    status = look_at(bufPtr_base, length, &m);
  }
  if (status.err == CU_FILE_SUCCESS) {
    status = status_of(add((uintptr_t)bufPtr_base, length, &m));
  }
  stats_count(COUNT_BUFFER_REGISTER, status.err == CU_FILE_SUCCESS);
  stats_buffer(m.gpu, length, true, status.err == CU_FILE_SUCCESS);
  return status;
}

CUfileError_t cuFileBufDeregister(const void *bufPtr_base) {
  if (!library_is_open()) {
    return status_of(library_forked() ? CU_FILE_DRIVER_NOT_INITIALIZED : CU_FILE_DRIVER_CLOSING);
  }
  if (bufPtr_base == NULL) {
    return status_of(CU_FILE_INVALID_VALUE);
  }
  pthread_rwlock_wrlock(&lock);
  size_t at = find((uintptr_t)bufPtr_base);
  bool found = at < count && all[at].base == (uintptr_t)bufPtr_base;
  buffer gone = {.m = {.gpu = -1}};
  if (found) {
    gone = all[at];
    count--;
    for (size_t i = at; i < count; i++) {
      all[i] = all[i + 1];
    }
  }
  pthread_rwlock_unlock(&lock);
  stats_count(COUNT_BUFFER_DEREGISTER, found);
  stats_buffer(gone.m.gpu, gone.bytes, false, found);
  return status_of(found ? CU_FILE_SUCCESS : CU_FILE_MEMORY_NOT_REGISTERED);
}

void buffers_drop(void) {
  pthread_rwlock_wrlock(&lock);
  free(all);
  all = NULL;
  count = capacity = 0;
  pthread_rwlock_unlock(&lock);
}
