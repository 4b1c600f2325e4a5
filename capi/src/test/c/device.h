// What tests with a real device share: its accelerator, bytes that tell where they belong, and numbers that seem random.
#ifndef GPUNVME_DEVICE_H
#define GPUNVME_DEVICE_H

#include "check.h"
#include "gpunvme.h"

// GPUNVME_TEST_ACCELERATOR, else the stand-in.
static inline const char *accelerator(void) {
  const char *wanted = getenv("GPUNVME_TEST_ACCELERATOR");
  return wanted == NULL ? "cpu" : wanted;
}

static inline gpunvme_storage *open_or_end(const char *uri, uint32_t flags) {
  gpunvme_storage *storage = NULL;
  if (gpunvme_open(uri, accelerator(), flags, &storage) < 0) {
    printf("FAIL opening %s: %s\n", uri, gpunvme_last_error());
    exit(1);
  }
  return storage;
}

// A template for mkstemp and mkdtemp where temporary files belong.
static inline void temporary(char *path, size_t capacity) {
  const char *folder = getenv("TMPDIR");
  snprintf(path, capacity, "%s/gpunvme-capi-XXXXXX", folder == NULL ? "/tmp" : folder);
}

// Byte i of a device whose bytes were filled with this seed.
static inline uint8_t byte_at(uint64_t seed, uint64_t i) {
  uint64_t x = (i >> 3) + seed * 0x9e3779b97f4a7c15u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return (uint8_t)(x >> (i & 7) * 8);
}

static inline void fill(uint8_t *to, uint64_t seed, uint64_t from, uint64_t bytes) {
  for (uint64_t i = 0; i < bytes; i++) {
    to[i] = byte_at(seed, from + i);
  }
}

// The first byte that is another, or `bytes`.
static inline uint64_t first_wrong(const uint8_t *is, uint64_t seed, uint64_t from, uint64_t bytes) {
  uint64_t i = 0;
  while (i < bytes && is[i] == byte_at(seed, from + i)) {
    i++;
  }
  return i;
}

static inline uint64_t next_random(uint64_t *state) {
  *state += 0x9e3779b97f4a7c15u;
  uint64_t x = *state;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

static inline void fill_device(gpunvme_storage *storage, uint64_t seed, uint64_t bytes) {
  uint8_t *host = malloc(bytes);
  fill(host, seed, 0, bytes);
  EXPECT_CODE(GPUNVME_OK, gpunvme_write(storage, 0, (uint64_t)(uintptr_t)host, bytes));
  free(host);
}

// Whether memory of the accelerator holds what the device has from there on.
static inline int holds(gpunvme_storage *storage, uint64_t address, uint64_t seed, uint64_t from, uint64_t bytes) {
  uint8_t *host = calloc(1, bytes == 0 ? 1 : bytes);
  EXPECT_CODE(GPUNVME_OK, gpunvme_copy_to_host(storage, host, address, bytes));
  uint64_t wrong = first_wrong(host, seed, from, bytes);
  if (wrong < bytes) {
    printf("  byte %" PRIu64 " of %" PRIu64 " from %" PRIu64 " on is 0x%02x\n", wrong, bytes, from, host[wrong]);
  }
  free(host);
  return wrong == bytes;
}

#endif
