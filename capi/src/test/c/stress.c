// Many threads that read, submit, cancel, open and close at once, for a while.
//
//   stress SECONDS THREADS [SEED]
//
// Exits with 0 if no byte was wrong, nothing failed that should not, and memory stayed what it was.
#include <pthread.h>
#include <time.h>

#include "device.h"

#define SIZE ((uint64_t)64 << 20)
#define LONGEST ((uint64_t)1 << 20)
#define MAY_GROW ((uint64_t)96 << 20) // of resident memory after the first third, when everything was there once
#define MAY_GROW_ON_GPU ((uint64_t)256 << 20) // CUDA's own memory grows for 40 s, and then stays (H200)
#define MAY_KEEP ((uint64_t)32 << 20) // for reuse: four pieces of pinned memory
#define STAGING (((uint64_t)4 * 32 + 16) << 20) // of one storage in host memory; how soon all of it is made is chance

static uint64_t seed;
static gpunvme_storage *shared;
static struct timespec end;
static atomic_ullong reads, cancels, opens;

static int time_left(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec < end.tv_sec || (now.tv_sec == end.tv_sec && now.tv_nsec < end.tv_nsec);
}

static uint64_t resident(void) {
  unsigned long long all = 0, pages = 0;
  FILE *statm = fopen("/proc/self/statm", "r");
  EXPECT(statm != NULL && fscanf(statm, "%llu %llu", &all, &pages) == 2);
  fclose(statm);
  return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t number(const char *text, const char *name) {
  const char *at = strstr(text, name);
  EXPECT(at != NULL);
  return at == NULL ? 0 : strtoull(at + strlen(name), NULL, 10);
}

// Bytes that the accelerator has given, its own and pinned ones.
static uint64_t taken(void) {
  char text[4096] = "";
  EXPECT_CODE(GPUNVME_OK, gpunvme_stats(shared, text, sizeof text, NULL));
  return number(text, "\"accelerator_bytes\":") + number(text, "\"pinned_bytes\":");
}

typedef struct caller {
  pthread_t thread;
  uint64_t random;
  uint8_t *memory; // of LONGEST
  uint64_t device; // likewise, of a GPU, which memory is a copy of then; or 0
} caller;

static uint64_t address_of(const caller *c) {
  return c->device != 0 ? c->device : (uintptr_t)c->memory;
}

static void set(caller *c, uint8_t byte, uint64_t bytes) {
  memset(c->memory, byte, bytes);
  if (c->device != 0) {
    EXPECT_CODE(GPUNVME_OK, gpunvme_copy_from_host(shared, c->device, c->memory, bytes));
  }
}

static void fetch(caller *c, uint64_t bytes) {
  if (c->device != 0) {
    memset(c->memory, 0, bytes);
    EXPECT_CODE(GPUNVME_OK, gpunvme_copy_to_host(shared, c->memory, c->device, bytes));
  }
}

static gpunvme_range some_range(caller *c) {
  uint64_t bytes = 1 + next_random(&c->random) % (next_random(&c->random) % 8 == 0 ? LONGEST : 20000);
  return (gpunvme_range){next_random(&c->random) % (SIZE - bytes), address_of(c), bytes};
}

static void arrived(caller *c, const gpunvme_range *range) {
  fetch(c, range->bytes);
  uint64_t wrong = first_wrong(c->memory, seed, range->offset, range->bytes);
  if (wrong < range->bytes) {
    printf("  byte %" PRIu64 " of %" PRIu64 " at %" PRIu64 " is wrong\n", wrong, range->bytes, range->offset);
    check_failures++;
  }
  reads++;
}

static void read_some(caller *c) {
  gpunvme_range range = some_range(c);
  set(c, 0, range.bytes);
  EXPECT_CODE(GPUNVME_OK, gpunvme_read(shared, range.offset, range.address, range.bytes));
  arrived(c, &range);
}

static void submit_some(caller *c) {
  gpunvme_range range = some_range(c);
  gpunvme_request *request;
  set(c, 0, range.bytes);
  EXPECT_CODE(GPUNVME_OK, gpunvme_submit_read(shared, &range, 1, &request));
  int cancel = next_random(&c->random) % 3 == 0;
  if (cancel) {
    EXPECT_CODE(GPUNVME_OK, gpunvme_cancel(request));
    cancels++;
  }
  int code = gpunvme_wait(request, next_random(&c->random) % 2 == 0 ? UINT64_MAX : 1000);
  if (code == GPUNVME_PENDING) {
    code = gpunvme_wait(request, UINT64_MAX);
  }
  EXPECT(code == GPUNVME_OK || (cancel && code == GPUNVME_ERROR_CANCELLED));
  if (code == GPUNVME_OK) {
    arrived(c, &range);
  }
  EXPECT_CODE(GPUNVME_OK, gpunvme_request_free(request));
}

// Freed while it is under way: its memory is the caller's again at once.
static void abandon_some(caller *c) {
  gpunvme_range range = some_range(c);
  gpunvme_request *request;
  EXPECT_CODE(GPUNVME_OK, gpunvme_submit_read(shared, &range, 1, &request));
  EXPECT_CODE(GPUNVME_OK, gpunvme_request_free(request));
  set(c, 0xa5, range.bytes);
  fetch(c, range.bytes);
  for (uint64_t i = 0; i < range.bytes; i++) {
    if (c->memory[i] != 0xa5) {
      printf("  memory of a freed request was written to\n");
      check_failures++;
      break;
    }
  }
  cancels++;
}

static void open_another(caller *c) {
  gpunvme_storage *storage = open_or_end("sim:size=64KiB", 0);
  c->memory[0] = 1;
  EXPECT_CODE(GPUNVME_OK, gpunvme_read(storage, next_random(&c->random) % 65536, (uintptr_t)c->memory, 1));
  EXPECT(c->memory[0] == 0);
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_read(storage, 65536, (uintptr_t)c->memory, 1));
  EXPECT_CODE(GPUNVME_OK, gpunvme_close(storage));
  EXPECT_CODE(GPUNVME_ERROR_CLOSED, gpunvme_flush(storage));
  opens++;
}

static void *call(void *argument) {
  caller *c = argument;
  while (time_left() && check_failures < 20) {
    switch (next_random(&c->random) % 32) {
      case 0: open_another(c); break;
      case 1: case 2: abandon_some(c); break;
      case 3: case 4: case 5: case 6: case 7: case 8: submit_some(c); break;
      default: read_some(c); break;
    }
  }
  return NULL;
}

static void run(uint64_t seconds, caller *callers, int count) {
  clock_gettime(CLOCK_MONOTONIC, &end);
  end.tv_sec += (time_t)seconds;
  for (int i = 0; i < count; i++) {
    EXPECT(pthread_create(&callers[i].thread, NULL, call, &callers[i]) == 0);
  }
  for (int i = 0; i < count; i++) {
    pthread_join(callers[i].thread, NULL);
  }
}

int main(int count, char **arguments) {
  if (count < 3) {
    return 2;
  }
  uint64_t seconds = strtoull(arguments[1], NULL, 10);
  int threads = atoi(arguments[2]);
  seed = count > 3 ? strtoull(arguments[3], NULL, 10) : (uint64_t)time(NULL);
  printf("seed %" PRIu64 "\n", seed);
  // Java's heap would grow to a part of the machine's memory: what grows beside it is what is looked for.
  setenv("GPUNVME_JAVA_OPTS", "-Xms256m -Xmx256m -XX:+AlwaysPreTouch", 0);
  shared = open_or_end("sim:size=64MiB", GPUNVME_WRITE);
  fill_device(shared, seed, SIZE);
  caller *callers = calloc((size_t)threads, sizeof *callers);
  for (int i = 0; i < threads; i++) {
    callers[i].random = seed + (uint64_t)i * 1000003;
    callers[i].memory = malloc(LONGEST);
    if (i % 2 == 1 && strcmp(accelerator(), "cpu") != 0) {
      EXPECT_CODE(GPUNVME_OK, gpunvme_allocate(shared, LONGEST, &callers[i].device));
    }
  }
  run((seconds + 2) / 3, callers, threads);
  uint64_t before = resident(), taken_before = taken();
  run(seconds - seconds / 3, callers, threads);
  uint64_t after = resident(), taken_after = taken();
  EXPECT(after < before + (strcmp(accelerator(), "cpu") == 0 ? MAY_GROW : MAY_GROW_ON_GPU));
  EXPECT(taken_after <= STAGING || taken_after <= taken_before + MAY_KEEP);
  EXPECT_CODE(GPUNVME_OK, gpunvme_close(shared));
  for (int i = 0; i < threads; i++) {
    free(callers[i].memory); // the device's was the storage's
  }
  free(callers);
  printf("%llu reads, %llu cancels, %llu opened by %d threads; resident %" PRIu64 " MiB, then %" PRIu64 " MiB; taken %" PRIu64 " bytes, then %" PRIu64 "\n",
      reads, cancels, opens, threads, before >> 20, after >> 20, taken_before, taken_after);
  return check_failures != 0;
}
