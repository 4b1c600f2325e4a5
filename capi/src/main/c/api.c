#include "api.h"

typedef void *__attribute__((may_alias)) any_pointer;

int api_begin(const table **t, failure *f) {
  *t = shim_table();
  if (*t == NULL || shim_forked()) {
    static const start_options usual = {0};
    CHECK(shim_start(&usual, f));
    *t = shim_table();
  }
  return GPUNVME_OK;
}

int api_use(const table **t, failure *f, const char *function, const char *name, const void *handle) {
  if (handle == NULL) {
    return shim_fail(f, GPUNVME_ERROR_INVALID, "%s: %s is NULL", function, name);
  }
  *t = shim_table();
  if (shim_forked()) {
    return api_begin(t, f);
  }
  if (*t == NULL) {
    return shim_fail(f, GPUNVME_ERROR_CLOSED, "%s: %s is not a handle: this process has opened nothing yet", function, name);
  }
  return GPUNVME_OK;
}

int api_make(const table *t, size_t offset, failure *f) {
  // Java stores the address when the function can be called.
  const any_pointer *place = (const any_pointer *)((const char *)t + offset);
  if (__atomic_load_n(place, __ATOMIC_ACQUIRE) != NULL) {
    return GPUNVME_OK;
  }
  return t->make(offset / sizeof *place, f);
}

int api_close(const char *function, const void *handle) {
  failure *f = shim_failure();
  const table *t;
  if (handle == NULL) {
    return GPUNVME_OK;
  }
  CHECK(api_use(&t, f, function, "the handle", handle));
  return CALL(t, close, f, NUMBER(handle));
}

int api_array(failure *f, const char *function, const char *name, const void *array, size_t count, size_t element) {
  if (array == NULL && count > 0) {
    return shim_fail(f, GPUNVME_ERROR_INVALID, "%s: %s is NULL", function, name);
  }
  if (count > INT64_MAX / element) {
    return shim_fail(f, GPUNVME_ERROR_INVALID, "%s: %s: %zu of them do not fit the address space", function, name, count);
  }
  return GPUNVME_OK;
}

int api_address(failure *f, const char *function, uint64_t address, uint64_t bytes) {
  if (address == 0 && bytes > 0) {
    return shim_fail(f, GPUNVME_ERROR_INVALID, "%s: the address is 0", function);
  }
  return GPUNVME_OK;
}

int api_ranges(failure *f, const char *function, const gpunvme_range *ranges, size_t count, int use_addresses) {
  CHECK(api_array(f, function, "ranges", ranges, count, sizeof *ranges));
  for (size_t i = 0; use_addresses && i < count; i++) {
    if (ranges[i].address == 0 && ranges[i].bytes > 0) {
      return shim_fail(f, GPUNVME_ERROR_INVALID, "%s: the address of range %zu is 0", function, i);
    }
  }
  return GPUNVME_OK;
}

void api_clear(char *text, size_t capacity, size_t *needed) {
  if (needed != NULL) {
    *needed = 0;
  }
  if (text != NULL && capacity > 0) {
    text[0] = 0;
  }
}

int gpunvme_start(const char *java_home, const char *const *options, size_t count) {
  failure *f = shim_failure();
  CHECK(api_array(f, __func__, "options", options, count, sizeof *options));
  for (size_t i = 0; i < count; i++) {
    if (options[i] == NULL) {
      return shim_fail(f, GPUNVME_ERROR_INVALID, "%s: option %zu is NULL", __func__, i);
    }
  }
  const start_options wanted = {.java_home = java_home, .options = options, .count = count};
  return shim_start(&wanted, f);
}
