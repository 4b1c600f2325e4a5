// What a call costs that does nothing in Java but look up its handle and answer: nanoseconds, median of 9 rounds.
#include <time.h>

#include "device.h"

enum { ROUNDS = 9, CALLS = 1000000 };

static int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

int main(void) {
  gpunvme_storage *storage = open_or_end("sim:size=1MiB", 0);
  gpunvme_request *request = NULL;
  uint8_t byte;
  const gpunvme_range range = {0, (uintptr_t)&byte, 1};
  double rounds[ROUNDS];
  EXPECT_CODE(GPUNVME_OK, gpunvme_submit_read(storage, &range, 1, &request));
  EXPECT_CODE(GPUNVME_OK, gpunvme_wait(request, UINT64_MAX));
  for (int r = -2; r < ROUNDS; r++) { // two for the compiler
    struct timespec start, end;
    int sum = 0;
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (int i = 0; i < CALLS; i++) {
      sum += gpunvme_poll(request);
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    EXPECT(sum == 0);
    if (r >= 0) {
      rounds[r] = ((double)(end.tv_sec - start.tv_sec) * 1e9 + (double)(end.tv_nsec - start.tv_nsec)) / CALLS;
    }
  }
  qsort(rounds, ROUNDS, sizeof *rounds, by_size);
  printf("gpunvme_poll: %.0f ns (%.0f to %.0f)\n", rounds[ROUNDS / 2], rounds[0], rounds[ROUNDS - 1]);
  EXPECT_CODE(GPUNVME_OK, gpunvme_request_free(request));
  EXPECT_CODE(GPUNVME_OK, gpunvme_close(storage));
  return check_failures != 0;
}
