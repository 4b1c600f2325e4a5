// The C side of the benchmark of the bindings, told what to do line by line (io.gpunvme.bench.BindingsBench):
//
//   bindings ACCELERATOR URI BYTES
//
// It says "ready" when its pattern is on the storage, then answers "read" with the nanoseconds of one read of
// everything, whose bytes were compared, and "call" with those of one gpunvme_poll of a finished request; or with "error ..." and
// ends. "end", or the end of its input, ends it.
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpunvme.h"

enum { PIECE = 64 << 20, WORD = 8, BLOCK = 4096, CALLS = 1000000 };

// Each side has a number of its own here, so that none takes another's data for its own.
static const uint64_t PATTERN = (uint64_t)2 << 48;

static gpunvme_storage *storage;
static uint64_t bytes, target, waking;
static uint64_t *piece;
static gpunvme_request *finished;
static uint8_t byte;

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

// The finalizer of splitmix64, as io.gpunvme.tools.bench.BlockPattern has it.
static uint64_t word_at(uint64_t i) {
  uint64_t x = PATTERN + i + 0x9e3779b97f4a7c15u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

static uint64_t piece_at(uint64_t at) {
  return bytes - at < PIECE ? bytes - at : PIECE;
}

static void write_pattern(void) {
  for (uint64_t at = 0; at < bytes; at += PIECE) {
    for (uint64_t i = 0; i < piece_at(at) / WORD; i++) {
      piece[i] = word_at(at / WORD + i);
    }
    check(gpunvme_copy_from_host(storage, target + at, piece, piece_at(at)), "copying the pattern");
  }
  check(gpunvme_write(storage, 0, target, bytes), "writing the pattern");
}

static void wipe(void) {
  memset(piece, 0, PIECE);
  for (uint64_t at = 0; at < bytes; at += PIECE) {
    check(gpunvme_copy_from_host(storage, target + at, piece, piece_at(at)), "overwriting the memory");
  }
}

static void compare(void) {
  for (uint64_t at = 0; at < bytes; at += PIECE) {
    check(gpunvme_copy_to_host(storage, piece, target + at, piece_at(at)), "copying what was read");
    for (uint64_t i = 0; i < piece_at(at) / WORD; i++) {
      if (piece[i] != word_at(at / WORD + i)) {
        fail("wrong data: the word at byte %" PRIu64 " is %016" PRIx64 " and not %016" PRIx64, at + i * WORD, piece[i],
            word_at(at / WORD + i));
      }
    }
  }
}

static double nanos_since(const struct timespec *begin) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)(now.tv_sec - begin->tv_sec) * 1e9 + (double)(now.tv_nsec - begin->tv_nsec);
}

static double timed_read(void) {
  struct timespec begin;
  wipe();
  // An embedded controller's threads that had nothing to do sleep up to a millisecond: this wakes all.
  check(gpunvme_read(storage, 0, waking, piece_at(0)), "reading a piece");
  clock_gettime(CLOCK_MONOTONIC, &begin);
  int code = gpunvme_read(storage, 0, target, bytes);
  double nanos = nanos_since(&begin);
  check(code, "reading");
  compare();
  return nanos;
}

static double timed_call(void) {
  struct timespec begin;
  int sum = 0;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  for (int i = 0; i < CALLS; i++) {
    sum |= gpunvme_poll(finished);
  }
  double nanos = nanos_since(&begin);
  check(sum, "polling");
  return nanos / CALLS;
}

static void prepare(const char *accelerator, const char *uri) {
  gpunvme_info info;
  const gpunvme_range range = {0, (uintptr_t)&byte, 1};
  check(gpunvme_open(uri, accelerator, GPUNVME_WRITE, &storage), uri);
  check(gpunvme_get_info(storage, &info), uri);
  if (info.size < bytes || (info.gpu != 0) != (strcmp(accelerator, "gpu") == 0)) {
    fail("%s has %" PRIu64 " bytes, its accelerator is %s GPU", uri, info.size, info.gpu ? "a" : "no");
  }
  piece = malloc(PIECE);
  if (piece == NULL) {
    fail("no memory");
  }
  check(gpunvme_allocate(storage, bytes, &target), "allocating");
  check(gpunvme_allocate(storage, piece_at(0), &waking), "allocating");
  write_pattern();
  check(gpunvme_submit_read(storage, &range, 1, &finished), "submitting");
  check(gpunvme_wait(finished, UINT64_MAX), "waiting");
}

int main(int count, char **arguments) {
  char line[16];
  if (count != 4) {
    fprintf(stderr, "usage: bindings ACCELERATOR URI BYTES\n");
    return 2;
  }
  bytes = strtoull(arguments[3], NULL, 10);
  if (bytes == 0 || bytes % BLOCK != 0) {
    fail("%s is not a multiple of %d bytes", arguments[3], BLOCK);
  }
  setvbuf(stdout, NULL, _IOLBF, 0);
  prepare(arguments[1], arguments[2]);
  printf("ready\n");
  while (fgets(line, sizeof line, stdin) != NULL && strcmp(line, "end\n") != 0) {
    if (strcmp(line, "read\n") == 0) {
      printf("%.0f\n", timed_read());
    } else if (strcmp(line, "call\n") == 0) {
      printf("%.2f\n", timed_call());
    } else {
      fail("unknown command %s", line);
    }
  }
  check(gpunvme_request_free(finished), "freeing");
  check(gpunvme_close(storage), "closing");
  return 0;
}
