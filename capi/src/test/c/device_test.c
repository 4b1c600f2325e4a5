// Storage, requests and errors on an embedded device, with the real library.
#include <errno.h>
#include <pthread.h>
#include <unistd.h>

#include "device.h"

#define SIZE ((uint64_t)16 << 20)
#define SEED 7

static void bytes_come_back_from_anywhere(void) {
  gpunvme_storage *storage = open_or_end("sim:size=16MiB", GPUNVME_WRITE);
  gpunvme_info info = {0};
  uint64_t address = 0, random = SEED;
  EXPECT_CODE(GPUNVME_OK, gpunvme_get_info(storage, &info));
  EXPECT(info.size == SIZE && info.alignment >= 512 && info.block_bytes == 512 && info.device == 0 && info.gpu == (strcmp(accelerator(), "cpu") != 0));
  fill_device(storage, SEED, SIZE);
  EXPECT_CODE(GPUNVME_OK, gpunvme_flush(storage));
  EXPECT_CODE(GPUNVME_OK, gpunvme_allocate(storage, SIZE, &address));
  EXPECT_CODE(GPUNVME_OK, gpunvme_read(storage, 0, address, SIZE));
  EXPECT(holds(storage, address, SEED, 0, SIZE));
  for (int i = 0; i < 100; i++) {
    uint64_t offset = next_random(&random) % SIZE, at = next_random(&random) % 5000;
    uint64_t bytes = next_random(&random) % 40000;
    bytes = bytes < SIZE - offset ? bytes : SIZE - offset;
    EXPECT_CODE(GPUNVME_OK, gpunvme_read(storage, offset, address + at, bytes));
    EXPECT(holds(storage, address + at, SEED, offset, bytes));
  }
  // What surrounds an unaligned write stays.
  uint8_t three[3] = {1, 2, 3}, five[5] = {0};
  EXPECT_CODE(GPUNVME_OK, gpunvme_write(storage, 777, (uintptr_t)three, 3));
  EXPECT_CODE(GPUNVME_OK, gpunvme_read(storage, 776, (uintptr_t)five, 5));
  EXPECT(five[0] == byte_at(SEED, 776) && memcmp(five + 1, three, 3) == 0 && five[4] == byte_at(SEED, 780));
  EXPECT_CODE(GPUNVME_OK, gpunvme_free(storage, address));
  EXPECT_CODE(GPUNVME_OK, gpunvme_close(storage));
}

static void many_ranges_at_once(void) {
  enum { COUNT = 200 };
  gpunvme_storage *storage = open_or_end("sim:size=16MiB", GPUNVME_WRITE);
  gpunvme_range ranges[COUNT];
  gpunvme_plan_info plan = {0};
  uint64_t address = 0, random = SEED;
  EXPECT_CODE(GPUNVME_OK, gpunvme_allocate(storage, COUNT * 4096, &address));
  fill_device(storage, SEED, SIZE);
  uint64_t bytes = 0;
  for (int i = 0; i < COUNT; i++) {
    ranges[i] = (gpunvme_range){next_random(&random) % (SIZE - 4096), address + (uint64_t)i * 4096, 1 + next_random(&random) % 4096};
    bytes += ranges[i].bytes;
  }
  EXPECT_CODE(GPUNVME_OK, gpunvme_read_ranges(storage, ranges, COUNT));
  for (int i = 0; i < COUNT; i++) {
    EXPECT(holds(storage, ranges[i].address, SEED, ranges[i].offset, ranges[i].bytes));
  }
  for (int i = 0; i < COUNT; i++) {
    ranges[i].offset = (uint64_t)i * 8192 + 5;
  }
  EXPECT_CODE(GPUNVME_OK, gpunvme_plan(storage, ranges, COUNT, &plan));
  EXPECT(plan.ios > 0 && plan.ios <= COUNT && plan.bytes % 512 == 0 && plan.bytes == bytes + plan.bytes_overread);
  EXPECT_CODE(GPUNVME_OK, gpunvme_write_ranges(storage, ranges, COUNT));
  for (int i = 0; i < COUNT; i++) {
    uint8_t is[4096], was[4096];
    EXPECT_CODE(GPUNVME_OK, gpunvme_copy_to_host(storage, was, ranges[i].address, ranges[i].bytes));
    EXPECT_CODE(GPUNVME_OK, gpunvme_read(storage, ranges[i].offset, (uintptr_t)is, ranges[i].bytes));
    EXPECT(memcmp(is, was, ranges[i].bytes) == 0);
  }
  EXPECT_CODE(GPUNVME_OK, gpunvme_read_ranges(storage, NULL, 0));
  EXPECT_CODE(GPUNVME_OK, gpunvme_close(storage)); // frees the memory
}

static void requests_are_waited_for(void) {
  gpunvme_storage *storage = open_or_end("sim:size=16MiB", GPUNVME_WRITE);
  gpunvme_request *requests[16];
  uint64_t address = 0;
  fill_device(storage, SEED, SIZE);
  EXPECT_CODE(GPUNVME_OK, gpunvme_allocate(storage, SIZE, &address));
  for (uint64_t i = 0; i < 16; i++) {
    gpunvme_range range = {i << 20, address + (i << 20), 1 << 20};
    EXPECT_CODE(GPUNVME_OK, gpunvme_submit_read(storage, &range, 1, &requests[i]));
    memset(&range, 0xff, sizeof range); // it was copied
  }
  for (uint64_t i = 0; i < 16; i++) {
    int code = gpunvme_poll(requests[i]);
    EXPECT(code == GPUNVME_OK || code == GPUNVME_PENDING);
    EXPECT_CODE(GPUNVME_OK, gpunvme_wait(requests[i], UINT64_MAX));
    EXPECT_CODE(GPUNVME_OK, gpunvme_poll(requests[i]));
    EXPECT_CODE(GPUNVME_OK, gpunvme_cancel(requests[i])); // it is over
    EXPECT_CODE(GPUNVME_OK, gpunvme_poll(requests[i]));
    EXPECT_CODE(GPUNVME_OK, gpunvme_request_free(requests[i]));
    EXPECT_CODE(GPUNVME_ERROR_CLOSED, gpunvme_poll(requests[i]));
  }
  EXPECT(holds(storage, address, SEED, 0, SIZE));
  const gpunvme_range back = {5, address, 70000};
  EXPECT_CODE(GPUNVME_OK, gpunvme_submit_write(storage, &back, 1, &requests[0]));
  EXPECT_CODE(GPUNVME_OK, gpunvme_wait(requests[0], UINT64_MAX));
  EXPECT_CODE(GPUNVME_OK, gpunvme_request_free(requests[0]));
  EXPECT_CODE(GPUNVME_OK, gpunvme_read(storage, 5, address + 100000, 70000));
  EXPECT(holds(storage, address + 100000, SEED, 0, 70000));
  EXPECT_CODE(GPUNVME_OK, gpunvme_close(storage));
}

static gpunvme_request *submitted(gpunvme_storage *storage, uint64_t address) {
  const gpunvme_range range = {0, address, SIZE};
  gpunvme_request *request = NULL;
  EXPECT_CODE(GPUNVME_OK, gpunvme_submit_read(storage, &range, 1, &request));
  EXPECT_CODE(GPUNVME_PENDING, gpunvme_poll(request));
  return request;
}

// Commands that a controller has begun are waited for; here they are few of those that a request needs.
static void requests_are_cancelled(void) {
  gpunvme_storage *storage = open_or_end("sim:size=16MiB,latency=200ms,mdts=8KiB", 0);
  uint64_t address = 0;
  EXPECT_CODE(GPUNVME_OK, gpunvme_allocate(storage, SIZE, &address));
  gpunvme_request *request = submitted(storage, address);
  EXPECT_CODE(GPUNVME_PENDING, gpunvme_wait(request, 1000000));
  EXPECT_CODE(GPUNVME_OK, gpunvme_cancel(request));
  EXPECT_CODE(GPUNVME_ERROR_CANCELLED, gpunvme_wait(request, UINT64_MAX));
  EXPECT(strlen(gpunvme_last_error()) > 0);
  EXPECT_CODE(GPUNVME_ERROR_CANCELLED, gpunvme_poll(request));
  EXPECT_CODE(GPUNVME_OK, gpunvme_request_free(request));
  request = submitted(storage, address);
  EXPECT_CODE(GPUNVME_OK, gpunvme_request_free(request)); // while it is under way
  request = submitted(storage, address);
  EXPECT_CODE(GPUNVME_OK, gpunvme_close(storage));
  EXPECT_CODE(GPUNVME_ERROR_CANCELLED, gpunvme_wait(request, UINT64_MAX));
  EXPECT_CODE(GPUNVME_OK, gpunvme_request_free(request));
}

static void errors_say_what_where_and_why(void) {
  gpunvme_storage *storage = NULL;
  gpunvme_request *request = (gpunvme_request *)&storage;
  uint8_t host[512] = {0};
  uint64_t at = (uintptr_t)host;
  EXPECT_CODE(GPUNVME_ERROR_NOT_FOUND, gpunvme_open("/nowhere/model.bin", accelerator(), 0, &storage));
  EXPECT_ERROR("/nowhere/model.bin");
  EXPECT(storage == NULL);
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_open("sim:size=nonsense", accelerator(), 0, &storage));
  EXPECT_ERROR("nonsense");
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_open("sim:size=1MiB", "abacus", 0, &storage));
  EXPECT_ERROR("abacus");
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_open("sim:size=1MiB", accelerator(), 0x80, &storage));
  storage = open_or_end("sim:size=1MiB", 0);
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_read(storage, (1 << 20) - 511, at, 512));
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_read(storage, UINT64_MAX, at, 512));
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_read(storage, 0, at, UINT64_MAX));
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_read(storage, UINT64_MAX - 100, at, 512));
  EXPECT_CODE(GPUNVME_ERROR_PERMISSION, gpunvme_write(storage, 0, at, 512));
  EXPECT_ERROR("rit"); // write, writing
  int code = gpunvme_submit_read(storage, &(gpunvme_range){1 << 20, at, 1}, 1, &request);
  EXPECT(code == GPUNVME_ERROR_INVALID && request == NULL);
  EXPECT_CODE(GPUNVME_ERROR_CLOSED, gpunvme_flush((gpunvme_storage *)(uintptr_t)UINT64_MAX));
  EXPECT_CODE(GPUNVME_ERROR_CLOSED, gpunvme_poll((gpunvme_request *)storage)); // of another kind
  if (strcmp(accelerator(), "cpu") == 0) {
    EXPECT_CODE(GPUNVME_ERROR_UNSUPPORTED, gpunvme_submit_read_on_stream(storage, 0, at, 512, NULL, &request));
  }
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_free(storage, at));
  uint64_t address = 1;
  code = gpunvme_allocate(storage, UINT64_MAX, &address);
  EXPECT(code == GPUNVME_ERROR_INVALID || code == GPUNVME_ERROR_MEMORY);
  EXPECT_CODE(GPUNVME_OK, gpunvme_read(storage, 0, at, 512));
  EXPECT_CODE(GPUNVME_OK, gpunvme_close(storage));
  EXPECT_CODE(GPUNVME_ERROR_CLOSED, gpunvme_read(storage, 0, at, 512));
  EXPECT_CODE(GPUNVME_ERROR_CLOSED, gpunvme_flush(storage));
  EXPECT_CODE(GPUNVME_ERROR_CLOSED, gpunvme_close(storage));
}

static void errno_of_the_kernel_is_kept(void) {
  gpunvme_storage *storage = NULL;
  EXPECT_CODE(GPUNVME_ERROR_NOT_FOUND, gpunvme_open("/nowhere/model.bin", accelerator(), 0, &storage));
  EXPECT(gpunvme_last_errno() == ENOENT);
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_open(NULL, NULL, 0, &storage));
  EXPECT(gpunvme_last_errno() == 0);
}

static void texts_are_cut_where_memory_ends(void) {
  gpunvme_storage *storage = open_or_end("sim:size=1MiB", 0);
  size_t needed = 0, again = 0;
  EXPECT_CODE(GPUNVME_OK, gpunvme_explain(storage, NULL, 0, &needed));
  EXPECT(needed > 1);
  char *text = malloc(needed), some[5] = "....";
  EXPECT_CODE(GPUNVME_OK, gpunvme_explain(storage, text, needed, &again));
  EXPECT(again == needed && strlen(text) == needed - 1);
  EXPECT(strstr(text, "direct") != NULL);
  EXPECT_CODE(GPUNVME_OK, gpunvme_explain(storage, some, sizeof some, NULL));
  EXPECT(strlen(some) == 4 && strncmp(some, text, 4) == 0);
  free(text);
  EXPECT_CODE(GPUNVME_OK, gpunvme_stats(storage, NULL, 0, &needed));
  text = malloc(needed);
  EXPECT_CODE(GPUNVME_OK, gpunvme_stats(storage, text, needed, NULL));
  EXPECT(text[0] == '{' && text[strlen(text) - 1] == '}');
  EXPECT(strstr(text, "\"paths\":{") != NULL && strstr(text, "\"pinned_bytes\":") != NULL);
  free(text);
  EXPECT_CODE(GPUNVME_OK, gpunvme_close(storage));
}

static void memory_is_zeroed_and_aligned(void) {
  gpunvme_storage *storage = open_or_end("sim:size=1MiB", 0);
  for (int i = 0; i < 50; i++) {
    uint64_t address = 0;
    uint8_t bytes[5000];
    memset(bytes, 0xff, sizeof bytes);
    EXPECT_CODE(GPUNVME_OK, gpunvme_allocate(storage, sizeof bytes, &address));
    EXPECT(address != 0 && address % 4096 == 0);
    EXPECT_CODE(GPUNVME_OK, gpunvme_copy_to_host(storage, bytes, address, sizeof bytes));
    EXPECT(bytes[0] == 0 && memcmp(bytes, bytes + 1, sizeof bytes - 1) == 0);
    memset(bytes, 0xff, sizeof bytes);
    EXPECT_CODE(GPUNVME_OK, gpunvme_copy_from_host(storage, address, bytes, sizeof bytes));
    EXPECT_CODE(GPUNVME_OK, gpunvme_free(storage, address));
  }
  EXPECT_CODE(GPUNVME_OK, gpunvme_close(storage));
}

static void memory_outlives_storages(void) {
  uint64_t address = 0;
  gpunvme_storage *storage = open_or_end("sim:size=16MiB", GPUNVME_WRITE);
  fill_device(storage, SEED, SIZE);
  EXPECT_CODE(GPUNVME_OK, gpunvme_memory_allocate(accelerator(), 100000, &address));
  EXPECT_CODE(GPUNVME_OK, gpunvme_read(storage, 4321, address, 100000));
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_free(storage, address)); // it is not the storage's
  EXPECT_CODE(GPUNVME_OK, gpunvme_close(storage));
  uint8_t *host = calloc(1, 100000);
  EXPECT_CODE(GPUNVME_OK, gpunvme_memory_copy_to_host(accelerator(), host, address, 100000));
  EXPECT(first_wrong(host, SEED, 4321, 100000) == 100000);
  EXPECT_CODE(GPUNVME_OK, gpunvme_memory_copy_from_host(accelerator(), address + 5, "12345", 5));
  EXPECT_CODE(GPUNVME_OK, gpunvme_memory_copy_to_host(accelerator(), host, address + 4, 7));
  EXPECT(memcmp(host + 1, "12345", 5) == 0 && host[0] == byte_at(SEED, 4325) && host[6] == byte_at(SEED, 4331));
  EXPECT_CODE(GPUNVME_OK, gpunvme_memory_free(accelerator(), address));
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_memory_free(accelerator(), address));
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_memory_allocate(accelerator(), 0, &address));
  EXPECT(address == 0);
  free(host);
}

// What a program of many threads can come to do.
static void what_was_closed_is_told(void) {
  gpunvme_storage *storage = open_or_end("sim:size=16MiB", 0);
  gpunvme_kinds *kinds = NULL;
  gpunvme_layer_loader *loader = NULL;
  uint64_t offset = 0, bytes = 4096, address = 0;
  uint8_t host[16];
  EXPECT_CODE(GPUNVME_OK, gpunvme_kinds_open(storage, &kinds));
  EXPECT_CODE(GPUNVME_OK, gpunvme_kinds_add(kinds, 1, 0, 160, 16));
  EXPECT_CODE(GPUNVME_OK, gpunvme_layer_loader_init(storage, 4096, 2, &loader));
  EXPECT_CODE(GPUNVME_OK, gpunvme_prefetch_layers(loader, &offset, &bytes, 1));
  EXPECT_CODE(GPUNVME_OK, gpunvme_close(storage));
  EXPECT_CODE(GPUNVME_ERROR_CLOSED, gpunvme_kinds_read(kinds, 1, 0, 1, (uintptr_t)host));
  EXPECT_CODE(GPUNVME_ERROR_CLOSED, gpunvme_next_layer(loader, NULL, &address, &bytes));
  EXPECT_CODE(GPUNVME_ERROR_CLOSED, gpunvme_prefetch_layers(loader, &offset, &bytes, 1));
  EXPECT_CODE(GPUNVME_ERROR_CLOSED, gpunvme_load_layer(loader, 0, 16, (uintptr_t)host));
  EXPECT_CODE(GPUNVME_OK, gpunvme_kinds_close(kinds));
  EXPECT_CODE(GPUNVME_OK, gpunvme_layer_loader_destroy(loader));
}

static void addresses_of_nobody_are_refused(void) {
  gpunvme_storage *storage = open_or_end("sim:size=16MiB", 0);
  static const uint64_t kernels = 0xffff888000000000u;
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_read(storage, 0, kernels, 512));
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_read(storage, 0, INT64_MAX - 10, 512));
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_read(storage, 0, 4096, 0x7fffffffffff0000u));
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_copy_to_host(storage, (void *)(uintptr_t)4096, kernels, 8));
  EXPECT_CODE(GPUNVME_OK, gpunvme_close(storage));
}

static void files_are_read(void) {
  char path[300], uri[320];
  temporary(path, sizeof path);
  uint8_t *bytes = malloc(300000), *host = malloc(300000);
  int fd = mkstemp(path);
  fill(bytes, SEED, 0, 300000);
  EXPECT(fd >= 0 && write(fd, bytes, 300000) == 300000);
  close(fd);
  static const char *const options[] = {"", "?path=mmap", "?path=pinned"};
  for (int i = 0; i < 3; i++) {
    snprintf(uri, sizeof uri, "%s%s", path, options[i]);
    gpunvme_storage *storage = open_or_end(uri, 0);
    memset(host, 0, 300000);
    EXPECT_CODE(GPUNVME_OK, gpunvme_read(storage, 1, (uintptr_t)host, 299999));
    EXPECT(first_wrong(host, SEED, 1, 299999) == 299999);
    EXPECT_CODE(GPUNVME_OK, gpunvme_close(storage));
  }
  unlink(path);
  free(bytes);
  free(host);
}

static void opened_and_closed_a_thousand_times(void) {
  for (int i = 0; i < 1000; i++) {
    gpunvme_storage *storage = open_or_end("sim:size=64KiB", 0);
    uint8_t byte = 1;
    EXPECT_CODE(GPUNVME_OK, gpunvme_read(storage, 65535, (uintptr_t)&byte, 1));
    EXPECT(byte == 0);
    EXPECT_CODE(GPUNVME_OK, gpunvme_close(storage));
  }
}

// A thread with little stack, as programs have that make thousands.
static void *read_one(void *storage) {
  uint8_t bytes[100] = {0};
  EXPECT_CODE(GPUNVME_OK, gpunvme_read(storage, 1000, (uintptr_t)bytes, sizeof bytes));
  EXPECT(first_wrong(bytes, SEED, 1000, sizeof bytes) == sizeof bytes);
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_read(storage, SIZE, (uintptr_t)bytes, 1));
  return NULL;
}

static void threads_come_and_go(void) {
  gpunvme_storage *storage = open_or_end("sim:size=16MiB", GPUNVME_WRITE);
  pthread_attr_t attributes;
  fill_device(storage, SEED, SIZE);
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 512 << 10);
  for (int i = 0; i < 200; i++) {
    pthread_t thread;
    EXPECT(pthread_create(&thread, &attributes, read_one, storage) == 0);
    pthread_join(thread, NULL);
  }
  pthread_attr_destroy(&attributes);
  EXPECT_CODE(GPUNVME_OK, gpunvme_close(storage));
}

int main(void) {
  RUN(bytes_come_back_from_anywhere);
  RUN(many_ranges_at_once);
  RUN(requests_are_waited_for);
  RUN(requests_are_cancelled);
  RUN(errors_say_what_where_and_why);
  RUN(errno_of_the_kernel_is_kept);
  RUN(texts_are_cut_where_memory_ends);
  RUN(memory_is_zeroed_and_aligned);
  RUN(memory_outlives_storages);
  RUN(what_was_closed_is_told);
  RUN(addresses_of_nobody_are_refused);
  RUN(files_are_read);
  RUN(threads_come_and_go);
  RUN(opened_and_closed_a_thousand_times);
  return check_failed_tests != 0;
}
