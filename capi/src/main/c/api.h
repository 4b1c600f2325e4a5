// How the public functions begin.
#ifndef GPUNVME_API_PARTS_H
#define GPUNVME_API_PARTS_H

#include <stddef.h>
#include <stdint.h>

#include "shim.h"

// Handles are Java's numbers, so that no use of one can touch memory.
#define NUMBER(handle) ((uint64_t)(uintptr_t)(handle))

// Returns from the calling function if the argument is NULL.
#define REQUIRE(f, argument)                                                                    \
  do {                                                                                          \
    if ((argument) == NULL) {                                                                   \
      return shim_fail(f, GPUNVME_ERROR_INVALID, "%s: %s is NULL", __func__, #argument);        \
    }                                                                                           \
  } while (0)

// Returns from the calling function if what it calls fails.
#define CHECK(call)        \
  do {                     \
    int code_ = (call);    \
    if (code_ < 0) {       \
      return code_;        \
    }                      \
  } while (0)

// Returns from the calling function unless the handle may be one; else t is the table.
#define USE(t, f, handle) CHECK(api_use(&(t), f, __func__, #handle, handle))

// The code of a function of the table, or of the failure to make it.
#define CALL(t, name, f, ...) (api_make(t, offsetof(table, name), f) ?: (t)->name(__VA_ARGS__, f))

// Has Java make the function there, unless it did.
int api_make(const table *t, size_t offset, failure *f);

// For functions that make the first handle: starts what there is to start.
int api_begin(const table **t, failure *f);

// For functions of handles. Before the start there are none, so this starts nothing.
int api_use(const table **t, failure *f, const char *function, const char *name, const void *handle);

// For functions that end a handle; NULL is fine.
int api_close(const char *function, const void *handle);

// Whether there are so many at all, and addresses where there are bytes.
int api_ranges(failure *f, const char *function, const gpunvme_range *ranges, size_t count, int use_addresses);
int api_array(failure *f, const char *function, const char *name, const void *array, size_t count, size_t element);
int api_address(failure *f, const char *function, uint64_t address, uint64_t bytes);

// What a function that gives a text leaves if it fails.
void api_clear(char *text, size_t capacity, size_t *needed);

#endif
