// Storages for kernels.
#include <string.h>

#include "api.h"

int gpunvme_include_dir(char *text, size_t capacity, size_t *needed) {
  failure *f = shim_failure();
  char folder[PATH_MAX];
  api_clear(text, capacity, needed);
  CHECK(api_array(f, __func__, "text", text, capacity, 1));
  CHECK(shim_find_headers(folder, f));
  size_t length = strlen(folder);
  if (capacity > 0) {
    size_t n = length < capacity - 1 ? length : capacity - 1;
    memcpy(text, folder, n);
    text[n] = 0;
  }
  if (needed != NULL) {
    *needed = length + 1;
  }
  return GPUNVME_OK;
}

int gpunvme_kernel_storage_open(gpunvme_storage *const *storages, size_t count, const gpunvme_kernel_options *options,
    gpunvme_kernel_storage **kernels) {
  failure *f = shim_failure();
  const table *t;
  uint64_t number = 0;
  REQUIRE(f, kernels);
  *kernels = NULL;
  CHECK(api_array(f, __func__, "storages", storages, count, sizeof *storages));
  if (count == 0) {
    return shim_fail(f, GPUNVME_ERROR_INVALID, "%s: no storage: kernels need the SSD of at least one", __func__);
  }
  for (size_t i = 0; i < count; i++) {
    if (storages[i] == NULL) {
      return shim_fail(f, GPUNVME_ERROR_INVALID, "%s: storage %zu is NULL", __func__, i);
    }
  }
  USE(t, f, storages[0]);
  // Handles are numbers as wide as pointers.
  CHECK(CALL(t, kernels_open, f, (const uint64_t *)storages, count, options, &number));
  *kernels = (gpunvme_kernel_storage *)(uintptr_t)number;
  return GPUNVME_OK;
}

int gpunvme_kernel_storage_handle(gpunvme_kernel_storage *kernels, gpunvme_kernel_storage **handle) {
  failure *f = shim_failure();
  const table *t;
  uint64_t number = 0;
  REQUIRE(f, handle);
  *handle = NULL;
  USE(t, f, kernels);
  CHECK(CALL(t, kernels_handle, f, NUMBER(kernels), &number));
  *handle = (gpunvme_kernel_storage *)(uintptr_t)number;
  return GPUNVME_OK;
}

int gpunvme_kernel_storage_device_handle(gpunvme_kernel_storage *kernels, uint64_t *address) {
  failure *f = shim_failure();
  const table *t;
  REQUIRE(f, address);
  *address = 0;
  USE(t, f, kernels);
  return CALL(t, kernels_device_handle, f, NUMBER(kernels), address);
}

int gpunvme_kernel_storage_register(
    gpunvme_kernel_storage *kernels, uint64_t address, uint64_t bytes, uint32_t *number, uint64_t *offset) {
  failure *f = shim_failure();
  const table *t;
  REQUIRE(f, number);
  REQUIRE(f, offset);
  *number = 0;
  *offset = 0;
  USE(t, f, kernels);
  CHECK(api_address(f, __func__, address, bytes));
  return CALL(t, kernels_register, f, NUMBER(kernels), address, bytes, number, offset);
}

int gpunvme_kernel_storage_unregister(gpunvme_kernel_storage *kernels, uint32_t number) {
  failure *f = shim_failure();
  const table *t;
  USE(t, f, kernels);
  return CALL(t, kernels_unregister, f, NUMBER(kernels), number);
}

int gpunvme_kernel_storage_file(gpunvme_kernel_storage *kernels, gpunvme_storage *file, uint64_t *address) {
  failure *f = shim_failure();
  const table *t;
  REQUIRE(f, address);
  *address = 0;
  REQUIRE(f, file);
  USE(t, f, kernels);
  return CALL(t, kernels_file, f, NUMBER(kernels), NUMBER(file), address);
}

int gpunvme_kernel_storage_directory(
    gpunvme_kernel_storage *kernels, gpunvme_storage *storage, const char *path, uint32_t flags, uint64_t *address) {
  failure *f = shim_failure();
  const table *t;
  REQUIRE(f, address);
  *address = 0;
  REQUIRE(f, storage);
  REQUIRE(f, path);
  USE(t, f, kernels);
  return CALL(t, kernels_directory, f, NUMBER(kernels), NUMBER(storage), path, flags, address);
}

int gpunvme_kernel_storage_skipped(
    gpunvme_kernel_storage *kernels, uint64_t address, char *text, size_t capacity, size_t *needed) {
  failure *f = shim_failure();
  const table *t;
  uint64_t length = 0;
  api_clear(text, capacity, needed);
  USE(t, f, kernels);
  CHECK(api_array(f, __func__, "text", text, capacity, 1));
  CHECK(CALL(t, kernels_skipped, f, NUMBER(kernels), address, text, capacity, &length));
  if (needed != NULL) {
    *needed = (size_t)length;
  }
  return GPUNVME_OK;
}

int gpunvme_kernel_storage_free(gpunvme_kernel_storage *kernels, uint64_t address) {
  failure *f = shim_failure();
  const table *t;
  USE(t, f, kernels);
  return CALL(t, kernels_free, f, NUMBER(kernels), address);
}

int gpunvme_kernel_storage_await(gpunvme_kernel_storage *kernels, struct CUstream_st *stream, uint64_t timeout_ns,
    gpunvme_cancelled cancelled, void *data) {
  failure *f = shim_failure();
  const table *t;
  USE(t, f, kernels);
  return CALL(t, kernels_await, f, NUMBER(kernels), NUMBER(stream), timeout_ns, cancelled, data);
}

int gpunvme_kernel_storage_await_event(gpunvme_kernel_storage *kernels, struct CUevent_st *event, uint64_t timeout_ns,
    gpunvme_cancelled cancelled, void *data) {
  failure *f = shim_failure();
  const table *t;
  REQUIRE(f, event);
  USE(t, f, kernels);
  return CALL(t, kernels_await_event, f, NUMBER(kernels), NUMBER(event), timeout_ns, cancelled, data);
}

int gpunvme_kernel_storage_stop(gpunvme_kernel_storage *kernels, int stop) {
  failure *f = shim_failure();
  const table *t;
  USE(t, f, kernels);
  return CALL(t, kernels_stop, f, NUMBER(kernels), stop != 0);
}

int gpunvme_kernel_storage_recover(gpunvme_kernel_storage *kernels) {
  failure *f = shim_failure();
  const table *t;
  USE(t, f, kernels);
  return CALL(t, kernels_recover, f, NUMBER(kernels));
}

int gpunvme_kernel_storage_recoveries(gpunvme_kernel_storage *kernels, uint64_t *count) {
  failure *f = shim_failure();
  const table *t;
  REQUIRE(f, count);
  *count = 0;
  USE(t, f, kernels);
  return CALL(t, kernels_recoveries, f, NUMBER(kernels), count);
}

int gpunvme_kernel_storage_close(gpunvme_kernel_storage *kernels) {
  return api_close(__func__, kernels);
}

// ---- caches

int gpunvme_cache_open(gpunvme_kernel_storage *kernels, const gpunvme_cache_options *options, gpunvme_cache **cache) {
  failure *f = shim_failure();
  const table *t;
  uint64_t number = 0;
  REQUIRE(f, cache);
  *cache = NULL;
  REQUIRE(f, options);
  USE(t, f, kernels);
  CHECK(CALL(t, cache_open, f, NUMBER(kernels), options, &number));
  *cache = (gpunvme_cache *)(uintptr_t)number;
  return GPUNVME_OK;
}

int gpunvme_cache_close(gpunvme_cache *cache) {
  return api_close(__func__, cache);
}

int gpunvme_cache_array(gpunvme_cache *cache, gpunvme_storage *storage, uint64_t offset, uint64_t count,
    uint32_t element_bytes, uint32_t flags, uint64_t *address) {
  failure *f = shim_failure();
  const table *t;
  REQUIRE(f, address);
  *address = 0;
  REQUIRE(f, storage);
  USE(t, f, cache);
  return CALL(t, cache_array, f, NUMBER(cache), NUMBER(storage), offset, count, element_bytes, flags, address);
}

int gpunvme_cache_flush(gpunvme_cache *cache, uint64_t timeout_ns) {
  failure *f = shim_failure();
  const table *t;
  USE(t, f, cache);
  return CALL(t, cache_flush, f, NUMBER(cache), timeout_ns);
}

// ---- rows

int gpunvme_rows_open(gpunvme_cache *cache, gpunvme_storage *storage, uint64_t offset, uint64_t rows, uint64_t row_bytes,
    uint32_t flags, gpunvme_rows **matrix) {
  failure *f = shim_failure();
  const table *t;
  uint64_t number = 0;
  REQUIRE(f, matrix);
  *matrix = NULL;
  REQUIRE(f, storage);
  USE(t, f, cache);
  CHECK(CALL(t, rows_open, f, NUMBER(cache), NUMBER(storage), offset, rows, row_bytes, flags, &number));
  *matrix = (gpunvme_rows *)(uintptr_t)number;
  return GPUNVME_OK;
}

int gpunvme_rows_close(gpunvme_rows *matrix) {
  return api_close(__func__, matrix);
}

int gpunvme_rows_gather(
    gpunvme_rows *matrix, uint64_t ids, uint64_t count, uint64_t target, struct CUstream_st *stream) {
  failure *f = shim_failure();
  const table *t;
  USE(t, f, matrix);
  return CALL(t, rows_gather, f, NUMBER(matrix), ids, count, target, NUMBER(stream));
}

int gpunvme_rows_fetch(gpunvme_rows *matrix, uint64_t ids, uint64_t count, struct CUstream_st *stream) {
  failure *f = shim_failure();
  const table *t;
  USE(t, f, matrix);
  return CALL(t, rows_fetch, f, NUMBER(matrix), ids, count, NUMBER(stream));
}

int gpunvme_rows_update(
    gpunvme_rows *matrix, uint64_t ids, uint64_t count, uint64_t source, struct CUstream_st *stream) {
  failure *f = shim_failure();
  const table *t;
  USE(t, f, matrix);
  return CALL(t, rows_update, f, NUMBER(matrix), ids, count, source, NUMBER(stream));
}

int gpunvme_rows_synchronize(gpunvme_rows *matrix) {
  failure *f = shim_failure();
  const table *t;
  USE(t, f, matrix);
  return CALL(t, rows_synchronize, f, NUMBER(matrix));
}
