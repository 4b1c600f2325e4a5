// The C side of the benchmark of short reads, told what to do line by line (io.gpunvme.bench.SmallReadsBench):
//
//   small FILE SSD
//
// The SSD, an embedded one, gets the bytes of the file. It says "ready", then answers "PATH LENGTH SEED" with the nanoseconds of one
// read into memory of the accelerator, as Java's rows have it: the median of many at random places; some more are compared.
// PATH is sim, auto, mmap or pinned, the last three of the file. Or it answers "error ..." and ends. "end", or the end of its
// input, ends it.
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpunvme.h"

enum { READS = 20000, CHECKED = 200, BLOCK = 4096, LONGEST = 64 << 10 };

static const char *const paths[] = {"sim", "auto", "mmap", "pinned"};
static gpunvme_storage *storages[4];
static uint8_t *content;
static uint64_t bytes;
static uint64_t target;
static uint64_t nanos[READS];

__attribute__((noreturn, format(printf, 1, 2))) static void fail(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  printf("error ");
  vprintf(format, arguments);
  printf("\n");
  fflush(stdout);
  exit(1);
}

static void check(int code, const char *what) {
  if (code != GPUNVME_OK) {
    fail("%s: %d, %s", what, code, gpunvme_last_error());
  }
}

static void load(const char *file) {
  FILE *in = fopen(file, "rb");
  if (in == NULL || fseek(in, 0, SEEK_END) != 0) {
    fail("%s cannot be read", file);
  }
  bytes = (uint64_t)ftell(in);
  rewind(in);
  content = malloc(bytes);
  if (content == NULL || fread(content, 1, bytes, in) != bytes) {
    fail("%s cannot be read", file);
  }
  fclose(in);
}

static void prepare(const char *file, const char *ssd) {
  char uri[4096];
  load(file);
  check(gpunvme_open(ssd, "cpu", GPUNVME_WRITE, &storages[0]), ssd);
  check(gpunvme_write(storages[0], 0, (uintptr_t)content, bytes), "writing the pattern");
  check(gpunvme_allocate(storages[0], LONGEST, &target), "taking memory");
  for (int i = 1; i < 4; i++) {
    snprintf(uri, sizeof uri, i == 1 ? "file:%s" : "file:%s?path=%s", file, paths[i]);
    check(gpunvme_open(uri, "cpu", 0, &storages[i]), uri);
  }
}

static uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t place(uint64_t *state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (*state >> 33) % ((bytes - LONGEST) / BLOCK) * BLOCK;
}

static int ascending(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

static uint64_t median(gpunvme_storage *storage, uint64_t length, uint64_t state) {
  for (int i = 0; i < READS; i++) {
    uint64_t at = place(&state);
    uint64_t begin = now();
    int code = gpunvme_read(storage, at, target, length);
    nanos[i] = now() - begin;
    check(code, "reading");
  }
  for (int i = 0; i < CHECKED; i++) {
    uint64_t at = place(&state);
    // On the stand-in, the only accelerator here, it is the host's.
    memset((void *)(uintptr_t)target, 0, length);
    check(gpunvme_read(storage, at, target, length), "reading");
    if (memcmp((void *)(uintptr_t)target, content + at, length) != 0) {
      fail("wrong data in %" PRIu64 " bytes at %" PRIu64, length, at);
    }
  }
  qsort(nanos, READS, sizeof *nanos, ascending);
  return nanos[READS / 2];
}

static gpunvme_storage *named(const char *path) {
  for (int i = 0; i < 4; i++) {
    if (strcmp(path, paths[i]) == 0) {
      return storages[i];
    }
  }
  fail("unknown path %s", path);
}

int main(int count, char **arguments) {
  char line[64], path[16];
  uint64_t length, seed;
  if (count != 3) {
    fprintf(stderr, "usage: small FILE SSD\n");
    return 2;
  }
  setvbuf(stdout, NULL, _IOLBF, 0);
  prepare(arguments[1], arguments[2]);
  printf("ready\n");
  while (fgets(line, sizeof line, stdin) != NULL && strcmp(line, "end\n") != 0) {
    if (sscanf(line, "%15s %" SCNu64 " %" SCNu64, path, &length, &seed) != 3 || length == 0 || length > LONGEST) {
      fail("unknown command %s", line);
    }
    printf("%" PRIu64 "\n", median(named(path), length, seed));
  }
  check(gpunvme_free(storages[0], target), "giving memory back");
  for (int i = 0; i < 4; i++) {
    check(gpunvme_close(storages[i]), "closing");
  }
  free(content);
  return 0;
}
