// The driver: whether it is open, its properties, and what forks and versions are told.
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "parts.h"
#include "shim.h"

#define CUFILE_PART "library"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long uses;          // guarded by lock
static atomic_bool opened; // stored with the lock
static atomic_bool forked;

// By what tools know that this is ours; cuFile has no such function.
const char *gpunvme_cufile_version(void);

const char *gpunvme_cufile_version(void) {
  return SHIM_VERSION;
}

static void before_fork(void) {
  pthread_mutex_lock(&lock);
  settings_fork(true);
}

static void after_fork(void) {
  settings_fork(false);
  pthread_mutex_unlock(&lock);
}

// Threads, streams and contexts of the parent are not here. Who had opened nothing may begin anew.
static void in_child(void) {
  if (atomic_load(&opened)) {
    atomic_store(&forked, true);
  }
  after_fork();
}

__attribute__((constructor)) static void watch_forks(void) {
  pthread_atfork(before_fork, after_fork, in_child);
}

bool library_forked(void) {
  return atomic_load_explicit(&forked, memory_order_relaxed);
}

bool library_is_open(void) {
  return atomic_load_explicit(&opened, memory_order_acquire) && !library_forked();
}

// With the lock.
static void open_driver(void) {
  settings s;
  settings_open(&s);
  cuda_load();
  stats_begin((int)s.sizes[CUFILE_PARAM_PROFILE_STATS]);
  LOG(LOG_INFO, "gpunvme " SHIM_VERSION " in the place of cuFile %d.%d; GPU memory: %s; compatibility mode: %s", CUFILE_VERSION / 1000,
      CUFILE_VERSION % 1000 / 10, cuda_is_there() ? "yes" : "no",
      s.bools[CUFILE_PARAM_FORCE_COMPAT_MODE]              ? "always"
      : s.bools[CUFILE_PARAM_PROPERTIES_ALLOW_COMPAT_MODE] ? "where nothing else is"
                                                           : "never");
  windows_open();
  atomic_store_explicit(&opened, true, memory_order_release);
}

// Opens it if it is not, and adds to the number of its uses.
static CUfileOpError begin(int more) {
  if (library_forked()) {
    return CU_FILE_DRIVER_NOT_INITIALIZED;
  }
  pthread_mutex_lock(&lock);
  if (!atomic_load(&opened)) {
    open_driver();
    more = 1;
  }
  uses += more;
  pthread_mutex_unlock(&lock);
  return CU_FILE_SUCCESS;
}

CUfileOpError library_begin(void) {
  return library_is_open() ? CU_FILE_SUCCESS : begin(0);
}

CUfileError_t cuFileDriverOpen(void) {
  return status_of(begin(1));
}

// The last one to close ends all that was registered.
static CUfileError_t end(void) {
  if (library_forked()) {
    return status_of(CU_FILE_DRIVER_NOT_INITIALIZED);
  }
  pthread_mutex_lock(&lock);
  CUfileOpError code = atomic_load(&opened) ? CU_FILE_SUCCESS : CU_FILE_DRIVER_NOT_INITIALIZED;
  if (code == CU_FILE_SUCCESS && --uses == 0) {
    atomic_store(&opened, false);
    workers_end();
    streams_drop();
    buffers_drop();
    handles_drop();
    windows_close();
    lanes_drop();
    stats_end();
    settings_release();
    LOG(LOG_INFO, "closed");
  }
  pthread_mutex_unlock(&lock);
  return status_of(code);
}

CUfileError_t cuFileDriverClose_v2(void) {
  return end();
}

#undef cuFileDriverClose
CUfileError_t cuFileDriverClose(void) {
  return end();
}

long cuFileUseCount(void) {
  if (library_forked()) {
    return 0;
  }
  pthread_mutex_lock(&lock);
  long now = uses;
  pthread_mutex_unlock(&lock);
  return now;
}

CUfileError_t cuFileGetVersion(int *version) {
  if (version == NULL) {
    return status_of(CU_FILE_INVALID_VALUE);
  }
  *version = CUFILE_VERSION;
  return status_of(CU_FILE_SUCCESS);
}

// There is no nvidia-fs: its version is 0.0, and no file system is said to be direct. Files on SSDs of ours are, by the NVMe bit.
CUfileError_t cuFileDriverGetProperties(CUfileDrvProps_t *props) {
  settings s;
  CUfileOpError code = props == NULL ? CU_FILE_INVALID_VALUE : library_begin();
  if (code != CU_FILE_SUCCESS) {
    return status_of(code);
  }
  settings_now(&s);
  const unsigned poll = s.bools[CUFILE_PARAM_PROPERTIES_USE_POLL_MODE], compatible = s.bools[CUFILE_PARAM_PROPERTIES_ALLOW_COMPAT_MODE];
  *props = (CUfileDrvProps_t){
      .nvfs = {.poll_thresh_size = s.sizes[CUFILE_PARAM_POLLTHRESHOLD_SIZE_KB],
          .max_direct_io_size = s.sizes[CUFILE_PARAM_PROPERTIES_MAX_DIRECT_IO_SIZE_KB],
          .dstatusflags = places_are_mapped() ? 1u << CU_FILE_NVME_SUPPORTED : 0,
          .dcontrolflags = poll << CU_FILE_USE_POLL_MODE | compatible << CU_FILE_ALLOW_COMPAT_MODE},
      .fflags = 1u << CU_FILE_BATCH_IO_SUPPORTED | 1u << CU_FILE_STREAMS_SUPPORTED | 1u << CU_FILE_PARALLEL_IO_SUPPORTED,
      .max_device_cache_size = (unsigned)s.sizes[CUFILE_PARAM_PROPERTIES_MAX_DEVICE_CACHE_SIZE_KB],
      .per_buffer_cache_size = (unsigned)s.sizes[CUFILE_PARAM_PROPERTIES_PER_BUFFER_CACHE_SIZE_KB],
      .max_device_pinned_mem_size = (unsigned)s.sizes[CUFILE_PARAM_PROPERTIES_MAX_DEVICE_PINNED_MEM_SIZE_KB],
      .max_batch_io_size = (unsigned)s.sizes[CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE],
      .max_batch_io_timeout_msecs = (unsigned)s.sizes[CUFILE_PARAM_PROPERTIES_BATCH_IO_TIMEOUT_MS]};
  return status_of(CU_FILE_SUCCESS);
}

static CUfileError_t change(CUFileSizeTConfigParameter_t which, size_t value) {
  CUfileOpError code = library_begin();
  if (code == CU_FILE_SUCCESS && !setting_change(which, value)) {
    code = CU_FILE_DRIVER_UNSUPPORTED_LIMIT;
  }
  return status_of(code);
}

CUfileError_t cuFileDriverSetPollMode(bool poll, size_t poll_threshold_size) {
  CUfileError_t changed = change(CUFILE_PARAM_POLLTHRESHOLD_SIZE_KB, poll_threshold_size);
  if (changed.err == CU_FILE_SUCCESS) {
    setting_poll(poll);
  }
  return changed;
}

CUfileError_t cuFileDriverSetMaxDirectIOSize(size_t max_direct_io_size) {
  return change(CUFILE_PARAM_PROPERTIES_MAX_DIRECT_IO_SIZE_KB, max_direct_io_size);
}

CUfileError_t cuFileDriverSetMaxCacheSize(size_t max_cache_size) {
  return change(CUFILE_PARAM_PROPERTIES_MAX_DEVICE_CACHE_SIZE_KB, max_cache_size);
}

CUfileError_t cuFileDriverSetMaxPinnedMemSize(size_t max_pinned_size) {
  return change(CUFILE_PARAM_PROPERTIES_MAX_DEVICE_PINNED_MEM_SIZE_KB, max_pinned_size);
}

size_t bar1_bytes(FILE *resource) {
  enum { MEMORY_64 = 0x100000 }; // IORESOURCE_MEM_64 of the kernel: the region has the next line, too, which says nothing
  unsigned long long begin = 0, last = 0, flags = 0;
  int wanted = 1;
  for (int line = 0; line <= wanted; line++) {
    if (fscanf(resource, "%llx %llx %llx", &begin, &last, &flags) != 3) {
      return 0;
    }
    wanted = line == 0 && flags & MEMORY_64 ? 2 : wanted;
  }
  return last > begin ? (size_t)(last - begin + 1) : 0;
}

CUfileError_t cuFileGetBARSizeInKB(int gpuIndex, size_t *barSize) {
  char id[32], path[96];
  size_t bytes = 0;
  CUfileOpError code = barSize == NULL ? CU_FILE_INVALID_VALUE : library_begin();
  if (code != CU_FILE_SUCCESS) {
    return status_of(code);
  }
  if (gpuIndex < 0 || gpuIndex >= cuda_gpus() || !cuda_bus_id(gpuIndex, id, sizeof id)) {
    return status_of(CU_FILE_INVALID_VALUE);
  }
  for (char *c = id; *c != 0; c++) {
    *c = *c >= 'A' && *c <= 'F' ? (char)(*c + 'a' - 'A') : *c;
  }
  // CUDA may say eight digits of the domain, where the kernel has four.
  snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/resource", strlen(id) > 12 ? id + strlen(id) - 12 : id);
  FILE *file = fopen(path, "re");
  if (file != NULL) {
    bytes = bar1_bytes(file);
    fclose(file);
  }
  if (bytes == 0) {
    LOG(LOG_WARN, "the size of the BAR of GPU %d is unknown: %s says nothing", gpuIndex, path);
    return status_of(CU_FILE_PLATFORM_NOT_SUPPORTED);
  }
  *barSize = bytes / KIB;
  return status_of(CU_FILE_SUCCESS);
}
