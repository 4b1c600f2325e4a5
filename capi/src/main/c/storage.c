// Storage, requests, texts and memory: arguments are looked at here, the rest is Java's.
#include "api.h"

int gpunvme_open(const char *uri, const char *accelerator, uint32_t flags, gpunvme_storage **storage) {
  failure *f = shim_failure();
  const table *t;
  uint64_t number = 0;
  REQUIRE(f, storage);
  *storage = NULL;
  REQUIRE(f, uri);
  CHECK(api_begin(&t, f));
  CHECK(CALL(t, open, f, uri, accelerator, flags, &number));
  *storage = (gpunvme_storage *)(uintptr_t)number;
  return GPUNVME_OK;
}

int gpunvme_close(gpunvme_storage *storage) {
  return api_close(__func__, storage);
}

int gpunvme_storage_on(gpunvme_storage *storage, const char *accelerator, gpunvme_storage **other) {
  failure *f = shim_failure();
  const table *t;
  uint64_t number = 0;
  REQUIRE(f, other);
  *other = NULL;
  REQUIRE(f, accelerator);
  USE(t, f, storage);
  CHECK(CALL(t, on, f, NUMBER(storage), accelerator, &number));
  *other = (gpunvme_storage *)(uintptr_t)number;
  return GPUNVME_OK;
}

int gpunvme_get_info(gpunvme_storage *storage, gpunvme_info *info) {
  failure *f = shim_failure();
  const table *t;
  REQUIRE(f, info);
  USE(t, f, storage);
  return CALL(t, info, f, NUMBER(storage), info);
}

static int transfer(const char *function, gpunvme_storage *storage, int write, const gpunvme_range *ranges, size_t count,
    gpunvme_cancelled cancelled, void *data) {
  failure *f = shim_failure();
  const table *t;
  CHECK(api_use(&t, f, function, "storage", storage));
  CHECK(api_ranges(f, function, ranges, count, 1));
  return CALL(t, transfer, f, NUMBER(storage), write, ranges, count, cancelled, data);
}

static int transfer_one(
    const char *function, gpunvme_storage *storage, int write, uint64_t offset, uint64_t address, uint64_t bytes) {
  const gpunvme_range range = {.offset = offset, .address = address, .bytes = bytes};
  return transfer(function, storage, write, &range, 1, NULL, NULL);
}

int gpunvme_read(gpunvme_storage *storage, uint64_t offset, uint64_t address, uint64_t bytes) {
  return transfer_one(__func__, storage, 0, offset, address, bytes);
}

int gpunvme_write(gpunvme_storage *storage, uint64_t offset, uint64_t address, uint64_t bytes) {
  return transfer_one(__func__, storage, 1, offset, address, bytes);
}

int gpunvme_read_ranges(gpunvme_storage *storage, const gpunvme_range *ranges, size_t count) {
  return transfer(__func__, storage, 0, ranges, count, NULL, NULL);
}

int gpunvme_write_ranges(gpunvme_storage *storage, const gpunvme_range *ranges, size_t count) {
  return transfer(__func__, storage, 1, ranges, count, NULL, NULL);
}

int gpunvme_read_ranges_cancellable(
    gpunvme_storage *storage, const gpunvme_range *ranges, size_t count, gpunvme_cancelled cancelled, void *data) {
  return transfer(__func__, storage, 0, ranges, count, cancelled, data);
}

int gpunvme_write_ranges_cancellable(
    gpunvme_storage *storage, const gpunvme_range *ranges, size_t count, gpunvme_cancelled cancelled, void *data) {
  return transfer(__func__, storage, 1, ranges, count, cancelled, data);
}

int gpunvme_flush(gpunvme_storage *storage) {
  failure *f = shim_failure();
  const table *t;
  USE(t, f, storage);
  return CALL(t, flush, f, NUMBER(storage));
}

// ---- requests

static int submit(const char *function, gpunvme_storage *storage, int write, const gpunvme_range *ranges, size_t count,
    gpunvme_request **request) {
  failure *f = shim_failure();
  const table *t;
  uint64_t number = 0;
  if (request == NULL) {
    return shim_fail(f, GPUNVME_ERROR_INVALID, "%s: request is NULL", function);
  }
  *request = NULL;
  CHECK(api_use(&t, f, function, "storage", storage));
  CHECK(api_ranges(f, function, ranges, count, 1));
  CHECK(CALL(t, submit, f, NUMBER(storage), write, ranges, count, &number));
  *request = (gpunvme_request *)(uintptr_t)number;
  return GPUNVME_OK;
}

int gpunvme_submit_read(
    gpunvme_storage *storage, const gpunvme_range *ranges, size_t count, gpunvme_request **request) {
  return submit(__func__, storage, 0, ranges, count, request);
}

int gpunvme_submit_write(
    gpunvme_storage *storage, const gpunvme_range *ranges, size_t count, gpunvme_request **request) {
  return submit(__func__, storage, 1, ranges, count, request);
}

static int submit_on_stream(const char *function, gpunvme_storage *storage, int write, const gpunvme_range *range,
    struct CUstream_st *stream, gpunvme_request **request) {
  failure *f = shim_failure();
  const table *t;
  uint64_t number = 0;
  if (request == NULL) {
    return shim_fail(f, GPUNVME_ERROR_INVALID, "%s: request is NULL", function);
  }
  *request = NULL;
  CHECK(api_use(&t, f, function, "storage", storage));
  CHECK(api_address(f, function, range->address, range->bytes));
  CHECK(CALL(t, submit_on_stream, f, NUMBER(storage), write, range, NUMBER(stream), &number));
  *request = (gpunvme_request *)(uintptr_t)number;
  return GPUNVME_OK;
}

int gpunvme_submit_read_on_stream(gpunvme_storage *storage, uint64_t offset, uint64_t address, uint64_t bytes,
    struct CUstream_st *stream, gpunvme_request **request) {
  const gpunvme_range range = {.offset = offset, .address = address, .bytes = bytes};
  return submit_on_stream(__func__, storage, 0, &range, stream, request);
}

int gpunvme_submit_write_on_stream(gpunvme_storage *storage, uint64_t offset, uint64_t address, uint64_t bytes,
    struct CUstream_st *stream, gpunvme_request **request) {
  const gpunvme_range range = {.offset = offset, .address = address, .bytes = bytes};
  return submit_on_stream(__func__, storage, 1, &range, stream, request);
}

int gpunvme_poll(gpunvme_request *request) {
  failure *f = shim_failure();
  const table *t;
  USE(t, f, request);
  return CALL(t, wait, f, NUMBER(request), 0);
}

int gpunvme_wait(gpunvme_request *request, uint64_t timeout_ns) {
  failure *f = shim_failure();
  const table *t;
  USE(t, f, request);
  return CALL(t, wait, f, NUMBER(request), timeout_ns);
}

int gpunvme_cancel(gpunvme_request *request) {
  failure *f = shim_failure();
  const table *t;
  USE(t, f, request);
  return CALL(t, cancel, f, NUMBER(request));
}

int gpunvme_request_free(gpunvme_request *request) {
  return api_close(__func__, request);
}

// ---- what is known of a storage

int gpunvme_plan(gpunvme_storage *storage, const gpunvme_range *ranges, size_t count, gpunvme_plan_info *plan) {
  failure *f = shim_failure();
  const table *t;
  REQUIRE(f, plan);
  USE(t, f, storage);
  CHECK(api_ranges(f, __func__, ranges, count, 0));
  return CALL(t, plan, f, NUMBER(storage), ranges, count, plan);
}

static int text_of(const char *function, const char *name, const void *handle, int which, char *text, size_t capacity,
    size_t *needed) {
  failure *f = shim_failure();
  const table *t;
  uint64_t length = 0;
  api_clear(text, capacity, needed);
  CHECK(api_use(&t, f, function, name, handle));
  CHECK(api_array(f, function, "text", text, capacity, 1));
  CHECK(CALL(t, text, f, NUMBER(handle), which, text, capacity, &length));
  if (needed != NULL) {
    *needed = (size_t)length;
  }
  return GPUNVME_OK;
}

int gpunvme_stats(gpunvme_storage *storage, char *text, size_t capacity, size_t *needed) {
  return text_of(__func__, "storage", storage, 0, text, capacity, needed);
}

int gpunvme_explain(gpunvme_storage *storage, char *text, size_t capacity, size_t *needed) {
  return text_of(__func__, "storage", storage, 1, text, capacity, needed);
}

int gpunvme_weights_describe(gpunvme_weights *weights, char *text, size_t capacity, size_t *needed) {
  return text_of(__func__, "weights", weights, 2, text, capacity, needed);
}

int gpunvme_weights_stats(gpunvme_weights *weights, char *text, size_t capacity, size_t *needed) {
  return text_of(__func__, "weights", weights, 6, text, capacity, needed);
}

int gpunvme_layer_loader_stats(gpunvme_layer_loader *loader, char *text, size_t capacity, size_t *needed) {
  return text_of(__func__, "loader", loader, 3, text, capacity, needed);
}

int gpunvme_kernel_storage_errors(gpunvme_kernel_storage *kernels, char *text, size_t capacity, size_t *needed) {
  return text_of(__func__, "kernels", kernels, 4, text, capacity, needed);
}

int gpunvme_cache_counters(gpunvme_cache *cache, char *text, size_t capacity, size_t *needed) {
  return text_of(__func__, "cache", cache, 5, text, capacity, needed);
}

// ---- memory

int gpunvme_allocate(gpunvme_storage *storage, uint64_t bytes, uint64_t *address) {
  failure *f = shim_failure();
  const table *t;
  REQUIRE(f, address);
  *address = 0;
  USE(t, f, storage);
  return CALL(t, allocate, f, NUMBER(storage), bytes, address);
}

int gpunvme_free(gpunvme_storage *storage, uint64_t address) {
  failure *f = shim_failure();
  const table *t;
  USE(t, f, storage);
  return CALL(t, release, f, NUMBER(storage), address);
}

static int copy(const char *function, gpunvme_storage *storage, int to_host, uint64_t address, void *host, uint64_t bytes) {
  failure *f = shim_failure();
  const table *t;
  CHECK(api_use(&t, f, function, "storage", storage));
  CHECK(api_array(f, function, "host", host, bytes, 1));
  CHECK(api_address(f, function, address, bytes));
  return CALL(t, copy, f, NUMBER(storage), to_host, address, host, bytes);
}

int gpunvme_copy_to_host(gpunvme_storage *storage, void *host, uint64_t address, uint64_t bytes) {
  return copy(__func__, storage, 1, address, host, bytes);
}

// Host memory is only read, that way.
int gpunvme_copy_from_host(gpunvme_storage *storage, uint64_t address, const void *host, uint64_t bytes) {
  return copy(__func__, storage, 0, address, (void *)host, bytes);
}

int gpunvme_memory_allocate(const char *accelerator, uint64_t bytes, uint64_t *address) {
  failure *f = shim_failure();
  const table *t;
  REQUIRE(f, address);
  *address = 0;
  CHECK(api_begin(&t, f));
  return CALL(t, memory_allocate, f, accelerator, bytes, address);
}

int gpunvme_memory_free(const char *accelerator, uint64_t address) {
  failure *f = shim_failure();
  const table *t;
  CHECK(api_begin(&t, f));
  return CALL(t, memory_free, f, accelerator, address);
}

static int copy_memory(
    const char *function, const char *accelerator, int to_host, uint64_t address, void *host, uint64_t bytes) {
  failure *f = shim_failure();
  const table *t;
  CHECK(api_begin(&t, f));
  CHECK(api_array(f, function, "host", host, bytes, 1));
  CHECK(api_address(f, function, address, bytes));
  return CALL(t, memory_copy, f, accelerator, to_host, address, host, bytes);
}

int gpunvme_memory_copy_to_host(const char *accelerator, void *host, uint64_t address, uint64_t bytes) {
  return copy_memory(__func__, accelerator, 1, address, host, bytes);
}

int gpunvme_memory_copy_from_host(const char *accelerator, uint64_t address, const void *host, uint64_t bytes) {
  return copy_memory(__func__, accelerator, 0, address, (void *)host, bytes);
}
