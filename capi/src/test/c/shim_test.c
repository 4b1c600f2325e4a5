// Everything of the shim that needs no virtual machine, against a double of it: built with sanitizers by test.d/capi.sh.
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>

#include "check.h"
#include "fake.h"
#include "shim.h"

#define HANDLE(type) ((type *)(uintptr_t)7)

static void needs_no_start(void) {
  EXPECT(strcmp(gpunvme_version(), SHIM_VERSION) == 0);
  EXPECT(strcmp(gpunvme_last_error(), "") == 0);
  EXPECT(gpunvme_last_errno() == 0);
  EXPECT_CODE(GPUNVME_OK, gpunvme_close(NULL));
  EXPECT_CODE(GPUNVME_OK, gpunvme_request_free(NULL));
  EXPECT_CODE(GPUNVME_OK, gpunvme_kinds_close(NULL));
  EXPECT_CODE(GPUNVME_OK, gpunvme_layer_loader_destroy(NULL));
  EXPECT_CODE(GPUNVME_OK, gpunvme_weights_close(NULL));
  nvme_gpu_cleanup(NULL);
  nvme_read_request_destroy(NULL);
  EXPECT_CODE(GPUNVME_ERROR_CLOSED, gpunvme_close(HANDLE(gpunvme_storage)));
  EXPECT_CODE(GPUNVME_ERROR_CLOSED, gpunvme_flush(HANDLE(gpunvme_storage)));
  EXPECT_ERROR("gpunvme_flush: storage is not a handle");
  EXPECT_CODE(GPUNVME_ERROR_CLOSED, gpunvme_poll(HANDLE(gpunvme_request)));
  EXPECT_CODE(GPUNVME_ERROR_CLOSED, nvme_gpu_read(HANDLE(nvme_gpu), 0, 1, &check_failures));
  EXPECT(nvme_read_request_create(HANDLE(nvme_gpu)) == NULL);
  EXPECT(fake_starts == 0);
}

static void null_arguments(void) {
  gpunvme_storage *storage = HANDLE(gpunvme_storage);
  gpunvme_request *request = HANDLE(gpunvme_request);
  const gpunvme_range range = {0, 0, 1};
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_open("x", NULL, 0, NULL));
  EXPECT_ERROR("gpunvme_open: storage is NULL");
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_storage_on(storage, "gpu:1", NULL));
  EXPECT_ERROR("gpunvme_storage_on: other is NULL");
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_storage_on(storage, NULL, &storage));
  EXPECT_ERROR("gpunvme_storage_on: accelerator is NULL");
  storage = HANDLE(gpunvme_storage);
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_open(NULL, NULL, 0, &storage));
  EXPECT_ERROR("gpunvme_open: uri is NULL");
  EXPECT(storage == NULL);
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_submit_read(NULL, &range, 1, &request));
  EXPECT_ERROR("gpunvme_submit_read: storage is NULL");
  EXPECT(request == NULL);
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_start(NULL, NULL, 1));
  EXPECT_ERROR("options is NULL");
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_start(NULL, (const char *const[]){"-Xmx1g", NULL}, 2));
  EXPECT_ERROR("option 1 is NULL");
  EXPECT(nvme_gpu_init(NULL) == NULL);
  EXPECT_ERROR("nvme_gpu_init: device is NULL");
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_weights_open("x", NULL, NULL));
  EXPECT(fake_starts == 0);
}

static void fails(void) {
  gpunvme_storage *storage = HANDLE(gpunvme_storage);
  fake_next_start = FAKE_FAILS;
  EXPECT_CODE(GPUNVME_ERROR_JAVA, gpunvme_open("x", NULL, 0, &storage));
  EXPECT_ERROR("fake start 1 failed");
  EXPECT(storage == NULL);
  EXPECT_CODE(GPUNVME_ERROR_CLOSED, gpunvme_flush(HANDLE(gpunvme_storage)));
  fake_next_start = FAKE_LEAVES_IT_EMPTY;
  EXPECT(nvme_gpu_init("x") == NULL);
  EXPECT_ERROR("the table of functions empty");
  fake_next_start = FAKE_WORKS;
  EXPECT_CODE(GPUNVME_OK, gpunvme_open("x", NULL, 0, &storage));
  EXPECT(storage != NULL && fake_starts == 3);
}

static void a_failed_start_is_tried_again(void) {
  in_child(fails);
}

static void aborts(void) {
  gpunvme_weights *weights;
  fake_next_start = FAKE_ABORTS;
  EXPECT_CODE(GPUNVME_ERROR_JAVA, gpunvme_start(NULL, NULL, 0));
  EXPECT_ERROR("fake start aborted");
  fake_next_start = FAKE_WORKS;
  EXPECT_CODE(GPUNVME_ERROR_JAVA, gpunvme_weights_open("x", NULL, &weights));
  EXPECT_ERROR("fake start aborted");
  EXPECT(fake_starts == 1);
}

static void an_aborted_start_leaves_the_process_alive(void) {
  in_child(aborts);
}

static void *open_one(void *unused) {
  gpunvme_storage *storage;
  EXPECT_CODE(GPUNVME_OK, gpunvme_open("x", NULL, 0, &storage));
  return unused;
}

static void *init_one(void *unused) {
  EXPECT(nvme_gpu_init("x") == NULL);
  EXPECT_ERROR("fake start");
  return unused;
}

static void fails_for_all(void) {
  // Whoever waited tries for himself; nobody hangs, and nobody gets another's result.
  fake_next_start = FAKE_FAILS;
  pthread_t threads[6];
  for (int i = 0; i < 6; i++) {
    pthread_create(&threads[i], NULL, init_one, NULL);
  }
  for (int i = 0; i < 6; i++) {
    pthread_join(threads[i], NULL);
  }
  EXPECT(fake_starts == 6);
}

static void a_failed_start_fails_for_all_threads(void) {
  in_child(fails_for_all);
}

static void many_threads_start_once(void) {
  pthread_t threads[16];
  fake_next_start = FAKE_WORKS;
  for (int i = 0; i < 16; i++) {
    pthread_create(&threads[i], NULL, open_one, NULL);
  }
  for (int i = 0; i < 16; i++) {
    pthread_join(threads[i], NULL);
  }
  EXPECT(fake_starts == 1);
  EXPECT(fake_java_home == NULL && fake_options == 0);
  EXPECT_CODE(GPUNVME_OK, gpunvme_start("/nowhere", NULL, 0));
  EXPECT(fake_starts == 1);
}

static void the_starting_thread_takes_no_signals(void) {
  EXPECT(fake_interrupt_blocked);
  EXPECT(!fake_crash_blocked);
  EXPECT(fake_stack_bytes >= 4 << 20);
}

static void starts(void) {
  EXPECT_CODE(GPUNVME_OK, gpunvme_start("/java", (const char *const[]){"-Xmx1g"}, 1));
  EXPECT(fake_starts == 1 && fake_options == 1 && strcmp(fake_java_home, "/java") == 0);
}

static void a_fork_before_the_start_may_start(void) {
  in_child(starts);
}

static void is_refused(void) {
  gpunvme_storage *storage = HANDLE(gpunvme_storage);
  EXPECT_CODE(GPUNVME_ERROR_FORKED, gpunvme_open("x", NULL, 0, &storage));
  EXPECT_ERROR("fork");
  EXPECT(storage == NULL);
  EXPECT_CODE(GPUNVME_ERROR_FORKED, gpunvme_start(NULL, NULL, 0));
  EXPECT_CODE(GPUNVME_ERROR_FORKED, gpunvme_flush(HANDLE(gpunvme_storage)));
  EXPECT_CODE(GPUNVME_ERROR_FORKED, gpunvme_close(HANDLE(gpunvme_storage)));
  EXPECT(nvme_gpu_init("x") == NULL);
  EXPECT(strcmp(gpunvme_version(), SHIM_VERSION) == 0);
}

static void a_fork_after_the_start_is_refused(void) {
  in_child(is_refused);
  EXPECT_CODE(GPUNVME_OK, gpunvme_flush(HANDLE(gpunvme_storage)));
}

static int ends_expected;

static void looks_at_the_end(void) {
  EXPECT(fake_ends == ends_expected);
  fflush(stdout);
  _exit(check_failures != 0);
}

// Exits after a start, with a look at what the library did then: its handler, which comes later, runs earlier.
static void exits_after_a_start(int expected) {
  ends_expected = expected;
  atexit(looks_at_the_end);
  EXPECT_CODE(GPUNVME_OK, gpunvme_start(NULL, NULL, 0));
  exit(1);
}

static void exits(void) {
  exits_after_a_start(1);
}

static void exits_with_a_found_one(void) {
  fake_found = 1;
  exits_after_a_start(0);
}

static void exits_after_a_second_try(void) {
  fake_next_start = FAKE_FAILS;
  EXPECT_CODE(GPUNVME_ERROR_JAVA, gpunvme_start(NULL, NULL, 0));
  fake_next_start = FAKE_WORKS;
  exits_after_a_start(1);
}

static void exits_though_it_hangs(void) {
  fake_end_hangs = 1;
  shim_end_seconds = 1;
  exits_after_a_start(1);
}

static void exit_ends_once_what_was_started_here(void) {
  in_child(exits);
  in_child(exits_with_a_found_one);
  in_child(exits_after_a_second_try);
  in_child(exits_though_it_hangs);
}

static void exits_as_a_fork(void) {
  ends_expected = 0;
  exit(1);
}

static void exits_as_a_clone(void) {
  // As fork, but the library's handlers of forks do not run.
  pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
  if (child == 0) {
    exits_as_a_fork();
  }
  int status = -1;
  EXPECT(waitpid(child, &status, 0) == child && status == 0);
}

static void starts_and_has_children(void) {
  atexit(looks_at_the_end);
  EXPECT_CODE(GPUNVME_OK, gpunvme_start(NULL, NULL, 0));
  in_child(exits_as_a_fork);
  exits_as_a_clone();
}

static void exit_of_a_child_ends_nothing(void) {
  in_child(starts_and_has_children);
}

// Whether the last call was this one, with these numbers.
#define EXPECT_CALL(name, ...)                                                                  \
  do {                                                                                          \
    const uint64_t should_[FAKE_ARGUMENTS] = {__VA_ARGS__};                                     \
    EXPECT(strcmp(fake_last.function, name) == 0);                                              \
    EXPECT(memcmp(fake_last.arguments, should_, sizeof should_) == 0);                          \
    fake_last = (fake_call){.function = ""};                                                    \
  } while (0)

static int never(void *data) {
  return data == NULL;
}

static void arguments_of_storage(void) {
  gpunvme_storage *storage = HANDLE(gpunvme_storage), *opened = NULL;
  gpunvme_info info;
  const gpunvme_range ranges[2] = {{1, 2, 3}, {4, 5, 6}};
  EXPECT_CODE(GPUNVME_OK, gpunvme_open("uri", "cpu", GPUNVME_WRITE, &opened));
  EXPECT(strcmp(fake_last.pointers[0], "uri") == 0 && strcmp(fake_last.pointers[1], "cpu") == 0);
  EXPECT_CALL("open", GPUNVME_WRITE);
  EXPECT((uintptr_t)opened >= 1000);
  EXPECT_CODE(GPUNVME_OK, gpunvme_get_info(storage, &info));
  EXPECT(fake_last.pointers[0] == &info);
  EXPECT_CALL("info", 7);
  EXPECT_CODE(GPUNVME_OK, gpunvme_read(storage, 10, 20, 30));
  EXPECT_CALL("transfer", 7, 0, 1, 10, 20, 30);
  EXPECT_CODE(GPUNVME_OK, gpunvme_write(storage, 10, 20, 30));
  EXPECT_CALL("transfer", 7, 1, 1, 10, 20, 30);
  EXPECT_CODE(GPUNVME_OK, gpunvme_read_ranges(storage, ranges, 2));
  EXPECT(fake_last.pointers[0] == ranges);
  EXPECT_CALL("transfer", 7, 0, 2, 1, 2, 3);
  EXPECT_CODE(GPUNVME_OK, gpunvme_write_ranges(storage, ranges, 2));
  EXPECT_CALL("transfer", 7, 1, 2, 1, 2, 3);
  EXPECT(fake_last.pointers[1] == NULL);
  EXPECT_CODE(GPUNVME_OK, gpunvme_read_ranges_cancellable(storage, ranges, 2, never, &info));
  EXPECT(fake_last.pointers[0] == ranges && fake_last.pointers[1] == (void *)(uintptr_t)never && fake_last.pointers[2] == &info);
  EXPECT_CALL("transfer", 7, 0, 2, 1, 2, 3);
  EXPECT_CODE(GPUNVME_OK, gpunvme_write_ranges_cancellable(storage, ranges, 2, NULL, NULL));
  EXPECT_CALL("transfer", 7, 1, 2, 1, 2, 3);
  EXPECT_CODE(GPUNVME_OK, gpunvme_read_ranges(storage, NULL, 0));
  EXPECT_CALL("transfer", 7, 0, 0);
  EXPECT_CODE(GPUNVME_OK, gpunvme_flush(storage));
  EXPECT_CALL("flush", 7);
  gpunvme_storage *other = NULL;
  EXPECT_CODE(GPUNVME_OK, gpunvme_storage_on(storage, "gpu:1", &other));
  EXPECT(other != NULL && strcmp(fake_last.pointers[0], "gpu:1") == 0);
  EXPECT_CALL("on", 7);
  EXPECT_CODE(GPUNVME_OK, gpunvme_close(storage));
  EXPECT_CALL("close", 7);
}

static void arguments_of_requests(void) {
  gpunvme_storage *storage = HANDLE(gpunvme_storage);
  gpunvme_request *request = HANDLE(gpunvme_request), *made = NULL;
  struct CUstream_st *stream = (struct CUstream_st *)(uintptr_t)99;
  const gpunvme_range range = {1, 2, 3};
  EXPECT_CODE(GPUNVME_OK, gpunvme_submit_read(storage, &range, 1, &made));
  EXPECT((uintptr_t)made >= 1000 && fake_last.pointers[0] == &range);
  EXPECT_CALL("submit", 7, 0, 1);
  EXPECT_CODE(GPUNVME_OK, gpunvme_submit_write(storage, &range, 1, &made));
  EXPECT_CALL("submit", 7, 1, 1);
  EXPECT_CODE(GPUNVME_OK, gpunvme_submit_read_on_stream(storage, 10, 20, 30, stream, &made));
  EXPECT_CALL("submit_on_stream", 7, 0, 10, 20, 30, 99);
  EXPECT_CODE(GPUNVME_OK, gpunvme_submit_write_on_stream(storage, 10, 20, 30, NULL, &made));
  EXPECT_CALL("submit_on_stream", 7, 1, 10, 20, 30, 0);
  EXPECT_CODE(GPUNVME_OK, gpunvme_wait(request, UINT64_MAX));
  EXPECT_CALL("wait", 7, UINT64_MAX);
  fake_answer = GPUNVME_PENDING;
  EXPECT_CODE(GPUNVME_PENDING, gpunvme_poll(request));
  EXPECT_CALL("wait", 7, 0);
  fake_answer = 0;
  EXPECT_CODE(GPUNVME_OK, gpunvme_cancel(request));
  EXPECT_CALL("cancel", 7);
  EXPECT_CODE(GPUNVME_OK, gpunvme_request_free(request));
  EXPECT_CALL("close", 7);
}

static void arguments_of_texts_and_memory(void) {
  gpunvme_storage *storage = HANDLE(gpunvme_storage);
  const gpunvme_range range = {0, 0, 3}; // plans look at no address
  gpunvme_plan_info plan;
  char text[8];
  size_t needed = 0;
  uint64_t address = 0;
  EXPECT_CODE(GPUNVME_OK, gpunvme_plan(storage, &range, 1, &plan));
  EXPECT(fake_last.pointers[0] == &range && fake_last.pointers[1] == &plan);
  EXPECT_CALL("plan", 7, 1);
  EXPECT_CODE(GPUNVME_OK, gpunvme_stats(storage, text, sizeof text, &needed));
  EXPECT(needed == 77 && fake_last.pointers[0] == text);
  EXPECT_CALL("text", 7, 0, 8);
  EXPECT_CODE(GPUNVME_OK, gpunvme_explain(storage, NULL, 0, NULL));
  EXPECT_CALL("text", 7, 1, 0);
  EXPECT_CODE(GPUNVME_OK, gpunvme_weights_describe(HANDLE(gpunvme_weights), NULL, 0, NULL));
  EXPECT_CALL("text", 7, 2, 0);
  EXPECT_CODE(GPUNVME_OK, gpunvme_layer_loader_stats(HANDLE(gpunvme_layer_loader), text, sizeof text, &needed));
  EXPECT_CALL("text", 7, 3, 8);
  EXPECT_CODE(GPUNVME_OK, gpunvme_weights_stats(HANDLE(gpunvme_weights), text, sizeof text, &needed));
  EXPECT_CALL("text", 7, 6, 8);
  EXPECT_CODE(GPUNVME_OK, gpunvme_allocate(storage, 4096, &address));
  EXPECT(address >= 1000);
  EXPECT_CALL("allocate", 7, 4096);
  EXPECT_CODE(GPUNVME_OK, gpunvme_free(storage, 55));
  EXPECT_CALL("release", 7, 55);
  EXPECT_CODE(GPUNVME_OK, gpunvme_copy_to_host(storage, text, 55, 8));
  EXPECT(fake_last.pointers[0] == text);
  EXPECT_CALL("copy", 7, 1, 55, 8);
  EXPECT_CODE(GPUNVME_OK, gpunvme_copy_from_host(storage, 55, text, 8));
  EXPECT(fake_last.pointers[0] == text);
  EXPECT_CALL("copy", 7, 0, 55, 8);
  static const char gpu[] = "gpu";
  EXPECT_CODE(GPUNVME_OK, gpunvme_memory_allocate(gpu, 4096, &address));
  EXPECT(address >= 1000 && fake_last.pointers[0] == gpu);
  EXPECT_CALL("memory_allocate", 4096);
  EXPECT_CODE(GPUNVME_OK, gpunvme_memory_copy_to_host(gpu, text, 55, 8));
  EXPECT(fake_last.pointers[0] == gpu && fake_last.pointers[1] == text);
  EXPECT_CALL("memory_copy", 1, 55, 8);
  EXPECT_CODE(GPUNVME_OK, gpunvme_memory_copy_from_host(gpu, 55, text, 8));
  EXPECT_CALL("memory_copy", 0, 55, 8);
  EXPECT_CODE(GPUNVME_OK, gpunvme_memory_free(gpu, 55));
  EXPECT_CALL("memory_free", 55);
}

static void arguments_of_kinds(void) {
  gpunvme_kinds *kinds = HANDLE(gpunvme_kinds), *made = NULL;
  nvme_read_request *request = HANDLE(nvme_read_request);
  const int32_t numbers[2] = {-3, 4};
  const uint64_t indexes[2] = {5, 6}, elements[2] = {7, 8};
  EXPECT_CODE(GPUNVME_OK, gpunvme_kinds_open(HANDLE(gpunvme_storage), &made));
  EXPECT((uintptr_t)made >= 1000);
  EXPECT_CALL("kinds_open", 7);
  EXPECT_CODE(GPUNVME_OK, gpunvme_kinds_add(kinds, -1, 10, 20, 30));
  EXPECT_CALL("kinds_add", 7, (uint64_t)-1, 0, 10, 20, 30);
  EXPECT_CODE(GPUNVME_OK, gpunvme_kinds_read(kinds, -1, 10, 20, 30));
  EXPECT_CALL("kinds_read", 7, (uint64_t)-1, 10, 20, 1, 30, INT64_MAX);
  EXPECT_CODE(GPUNVME_OK, gpunvme_kinds_read_many(kinds, numbers, indexes, elements, 2, 99, 1000));
  EXPECT(fake_last.pointers[0] == numbers && fake_last.pointers[1] == indexes && fake_last.pointers[2] == elements);
  EXPECT_CALL("kinds_read", 7, (uint64_t)-3, 5, 7, 2, 99, 1000);
  EXPECT_CODE(GPUNVME_OK, gpunvme_kinds_close(kinds));
  EXPECT_CALL("close", 7);
  EXPECT((uintptr_t)nvme_read_request_create(HANDLE(nvme_gpu)) >= 1000);
  EXPECT_CALL("kinds_open", 7);
  EXPECT_CODE(GPUNVME_OK, nvme_read_request_add_kind(request, 2, 10, 20, 30));
  EXPECT_CALL("kinds_add", 7, 2, 1, 10, 20, 30);
  EXPECT_CODE(GPUNVME_OK, read_nvme_kind(request, 2, 10, 20, (void *)(uintptr_t)30));
  EXPECT_CALL("kinds_read", 7, 2, 10, 20, 1, 30, INT64_MAX);
  nvme_read_request_destroy(request);
  EXPECT_CALL("close", 7);
}

static void arguments_of_layers_and_weights(void) {
  gpunvme_layer_loader *loader = HANDLE(gpunvme_layer_loader), *made = NULL;
  gpunvme_weights *weights = HANDLE(gpunvme_weights), *opened = NULL;
  const uint64_t offsets[1] = {1}, lengths[1] = {2};
  const gpunvme_tensor_read read = {.tensor = 1, .dimension = -1, .address = 9, .capacity = 8};
  uint64_t address, bytes;
  EXPECT_CODE(GPUNVME_OK, gpunvme_layer_loader_init(HANDLE(gpunvme_storage), 10, 20, &made));
  EXPECT((uintptr_t)made >= 1000);
  EXPECT_CALL("layers_open", 7, 10, 20);
  EXPECT_CODE(GPUNVME_OK, gpunvme_load_layer(loader, 10, 20, 30));
  EXPECT_CALL("layers_load", 7, 10, 20, 30);
  EXPECT_CODE(GPUNVME_OK, gpunvme_prefetch_layers(loader, offsets, lengths, 1));
  EXPECT(fake_last.pointers[0] == offsets && fake_last.pointers[1] == lengths);
  EXPECT_CALL("layers_prefetch", 7, 1);
  EXPECT_CODE(GPUNVME_OK, gpunvme_next_layer(loader, NULL, &address, &bytes));
  EXPECT(address == 11 && bytes == 12);
  EXPECT_CALL("layers_next", 7, 0, 0);
  EXPECT_CODE(GPUNVME_OK, gpunvme_next_layer(loader, (struct CUstream_st *)(uintptr_t)99, &address, &bytes));
  EXPECT_CALL("layers_next", 7, 1, 99);
  EXPECT_CODE(GPUNVME_OK, gpunvme_take_layer(loader, (struct CUstream_st *)(uintptr_t)99, &address, &bytes));
  EXPECT(address == 11 && bytes == 12);
  EXPECT_CALL("layers_take", 7, 99);
  EXPECT_CODE(GPUNVME_OK, gpunvme_cancel_layers(loader));
  EXPECT_CALL("layers_cancel", 7);
  EXPECT_CODE(GPUNVME_OK, gpunvme_layer_loader_destroy(loader));
  EXPECT_CALL("close", 7);
  EXPECT_CODE(GPUNVME_OK, gpunvme_weights_open("uri", NULL, &opened));
  EXPECT((uintptr_t)opened >= 1000);
  EXPECT(strcmp(fake_last.pointers[0], "uri") == 0 && fake_last.pointers[1] == NULL);
  EXPECT_CALL("weights_open", 0);
  EXPECT_CODE(GPUNVME_OK, gpunvme_weights_read(weights, &read, 1));
  EXPECT(fake_last.pointers[0] == &read);
  EXPECT_CALL("weights_read", 7, 1);
  int32_t dimensions[2];
  EXPECT_CODE(GPUNVME_OK, gpunvme_weights_shards(weights, "rows", 3, dimensions, 2));
  EXPECT(strcmp(fake_last.pointers[0], "rows") == 0 && fake_last.pointers[1] == dimensions);
  EXPECT_CALL("weights_shards", 7, 3, 2);
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_weights_shards(weights, "rows", 3, NULL, 2));
  EXPECT_CODE(GPUNVME_OK, gpunvme_weights_layer_loader_init(weights, 10, 20, &made));
  EXPECT((uintptr_t)made >= 1000);
  EXPECT_CALL("layers_open_model", 7, 10, 20);
  EXPECT_CODE(GPUNVME_OK, gpunvme_prefetch_tensors(loader, "name", &read, 1));
  EXPECT(strcmp(fake_last.pointers[0], "name") == 0 && fake_last.pointers[1] == &read);
  EXPECT_CALL("layers_prefetch_tensors", 7, 1);
  EXPECT_CODE(GPUNVME_OK, gpunvme_weights_close(weights));
  EXPECT_CALL("close", 7);
  const gpunvme_quantized tensor = {.type = "I8", .target_type = "F32", .rows = 1, .columns = 8};
  EXPECT_CODE(GPUNVME_OK, gpunvme_dequantize("gpu", &tensor, 1, (struct CUstream_st *)(uintptr_t)99));
  EXPECT(strcmp(fake_last.pointers[0], "gpu") == 0 && fake_last.pointers[1] == &tensor);
  EXPECT_CALL("dequantize", 1, 99);
  EXPECT_CODE(GPUNVME_OK, gpunvme_dequantize(NULL, NULL, 0, NULL));
  EXPECT(fake_last.pointers[0] == NULL && fake_last.pointers[1] == NULL);
  EXPECT_CALL("dequantize", 0, 0);
}

static void arguments_of_plans(void) {
  const gpunvme_layer_size layers[2] = {{1, 2, 0, 0, 0, 0}, {3, 4, 0, 0, 0, 0}};
  gpunvme_layer_plan plan = {.slots = 9};
  uint8_t stays[2];
  EXPECT_CODE(GPUNVME_OK, gpunvme_plan_layers(layers, 2, 10, 20, &plan, stays));
  EXPECT(fake_last.pointers[0] == layers && fake_last.pointers[1] == &plan && fake_last.pointers[2] == stays);
  EXPECT_CALL("plan_layers", 2, 10, 20);
  EXPECT(plan.slots == 0);
  EXPECT_CODE(GPUNVME_OK, gpunvme_plan_layers(NULL, 0, UINT64_MAX, 0, &plan, NULL));
  EXPECT_CALL("plan_layers", 0, UINT64_MAX, 0);
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_plan_layers(layers, 2, 10, 20, NULL, stays));
  EXPECT_ERROR("gpunvme_plan_layers: plan is NULL");
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_plan_layers(NULL, 2, 10, 20, &plan, stays));
  EXPECT_ERROR("gpunvme_plan_layers: layers is NULL");
}

static void arguments_of_kernels(void) {
  gpunvme_kernel_storage *kernels = HANDLE(gpunvme_kernel_storage), *made = kernels;
  gpunvme_storage *storages[2] = {(gpunvme_storage *)(uintptr_t)5, HANDLE(gpunvme_storage)};
  const gpunvme_kernel_options options = {.depth = 32};
  struct CUevent_st *event = (struct CUevent_st *)(uintptr_t)99;
  uint64_t address = 5, offset = 5;
  uint32_t number = 5;
  size_t needed = 5;
  char text[9];
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_open(storages, 2, &options, &made));
  EXPECT((uintptr_t)made >= 1000 && fake_last.pointers[0] == &options);
  EXPECT_CALL("kernels_open", 2, 5, 7);
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_device_handle(kernels, &address));
  EXPECT(address >= 1000);
  EXPECT_CALL("kernels_device_handle", 7);
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_handle(kernels, &made));
  EXPECT((uintptr_t)made >= 1000);
  EXPECT_CALL("kernels_handle", 7);
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_register(kernels, 20, 30, &number, &offset));
  EXPECT(number == 11 && offset == 12);
  EXPECT_CALL("kernels_register", 7, 20, 30);
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_unregister(kernels, 20));
  EXPECT_CALL("kernels_unregister", 7, 20);
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_file(kernels, storages[0], &address));
  EXPECT(address >= 1000);
  EXPECT_CALL("kernels_file", 7, 5);
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_directory(kernels, storages[0], "/x", 3, &address));
  EXPECT(address >= 1000 && strcmp(fake_last.pointers[0], "/x") == 0);
  EXPECT_CALL("kernels_directory", 7, 5, 3);
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_skipped(kernels, 20, text, sizeof text, &needed));
  EXPECT(needed == 77 && fake_last.pointers[0] == text);
  EXPECT_CALL("kernels_skipped", 7, 20, sizeof text);
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_skipped(kernels, 20, NULL, 0, NULL));
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_free(kernels, 20));
  EXPECT_CALL("kernels_free", 7, 20);
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_await(kernels, NULL, UINT64_MAX, never, &number));
  EXPECT(fake_last.pointers[0] == (void *)(uintptr_t)never && fake_last.pointers[1] == &number);
  EXPECT_CALL("kernels_await", 7, 0, UINT64_MAX);
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_await_event(kernels, event, 5, NULL, NULL));
  EXPECT(fake_last.pointers[0] == NULL && fake_last.pointers[1] == NULL);
  EXPECT_CALL("kernels_await_event", 7, 99, 5);
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_stop(kernels, 256));
  EXPECT_CALL("kernels_stop", 7, 1);
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_recover(kernels));
  EXPECT_CALL("kernels_recover", 7);
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_recoveries(kernels, &address));
  EXPECT(address == 11);
  EXPECT_CALL("kernels_recoveries", 7);
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_errors(kernels, NULL, 0, NULL));
  EXPECT_CALL("text", 7, 4, 0);
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_close(kernels));
  EXPECT_CALL("close", 7);
}

static void arguments_of_caches_and_rows(void) {
  gpunvme_kernel_storage *kernels = HANDLE(gpunvme_kernel_storage);
  gpunvme_storage *storage = (gpunvme_storage *)(uintptr_t)5;
  gpunvme_cache *cache = HANDLE(gpunvme_cache), *made = cache;
  gpunvme_rows *matrix = HANDLE(gpunvme_rows), *opened = matrix;
  struct CUstream_st *stream = (struct CUstream_st *)(uintptr_t)99;
  const gpunvme_cache_options options = {.bytes = 70, .page_bytes = 80};
  uint64_t address = 1;
  EXPECT_CODE(GPUNVME_OK, gpunvme_cache_open(kernels, &options, &made));
  EXPECT(made != NULL && made != cache);
  EXPECT_CALL("cache_open", 7, 70, 80);
  EXPECT_CODE(GPUNVME_OK, gpunvme_cache_array(cache, storage, 20, 30, 40, 1, &address));
  EXPECT(address > 1);
  EXPECT_CALL("cache_array", 7, 5, 20, 30, 40, 1);
  EXPECT_CODE(GPUNVME_OK, gpunvme_cache_flush(cache, UINT64_MAX));
  EXPECT_CALL("cache_flush", 7, UINT64_MAX);
  EXPECT_CODE(GPUNVME_OK, gpunvme_cache_counters(cache, NULL, 0, NULL));
  EXPECT_CODE(GPUNVME_OK, gpunvme_rows_open(cache, storage, 20, 30, 40, 1, &opened));
  EXPECT(opened != NULL && opened != matrix);
  EXPECT_CALL("rows_open", 7, 5, 20, 30, 40, 1);
  EXPECT_CODE(GPUNVME_OK, gpunvme_rows_gather(matrix, 20, 30, 40, stream));
  EXPECT_CALL("rows_gather", 7, 20, 30, 40, 99);
  EXPECT_CODE(GPUNVME_OK, gpunvme_rows_fetch(matrix, 20, 30, NULL));
  EXPECT_CALL("rows_fetch", 7, 20, 30, 0);
  EXPECT_CODE(GPUNVME_OK, gpunvme_rows_update(matrix, 20, 30, 40, stream));
  EXPECT_CALL("rows_update", 7, 20, 30, 40, 99);
  EXPECT_CODE(GPUNVME_OK, gpunvme_rows_synchronize(matrix));
  EXPECT_CALL("rows_synchronize", 7);
  EXPECT_CODE(GPUNVME_OK, gpunvme_rows_close(matrix));
  EXPECT_CODE(GPUNVME_OK, gpunvme_cache_close(cache));
  EXPECT_CODE(GPUNVME_OK, gpunvme_rows_close(NULL));
  EXPECT_CODE(GPUNVME_OK, gpunvme_cache_close(NULL));

  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_cache_open(kernels, NULL, &made));
  EXPECT_ERROR("gpunvme_cache_open: options is NULL");
  EXPECT(made == NULL);
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_cache_open(kernels, &options, NULL));
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_cache_array(cache, NULL, 0, 1, 1, 0, &address));
  EXPECT(address == 0);
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_cache_array(cache, storage, 0, 1, 1, 0, NULL));
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_rows_open(cache, NULL, 0, 1, 1, 0, &opened));
  EXPECT(opened == NULL);
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_rows_open(cache, storage, 0, 1, 1, 0, NULL));
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_rows_synchronize(NULL));
  EXPECT_ERROR("gpunvme_rows_synchronize: matrix is NULL");
}

static void arguments_of_kernels_are_looked_at(void) {
  gpunvme_kernel_storage *kernels = HANDLE(gpunvme_kernel_storage), *made = kernels;
  gpunvme_storage *storages[2] = {HANDLE(gpunvme_storage), NULL};
  uint64_t address = 5, offset = 5;
  uint32_t number = 5;
  fake_last = (fake_call){.function = "nothing"};
  EXPECT_CODE(GPUNVME_OK, gpunvme_kernel_storage_close(NULL));
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_kernel_storage_open(storages, 2, NULL, &made));
  EXPECT_ERROR("gpunvme_kernel_storage_open: storage 1 is NULL");
  EXPECT(made == NULL);
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_kernel_storage_open(storages, 0, NULL, &made));
  EXPECT_ERROR("no storage");
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_kernel_storage_open(NULL, 1, NULL, &made));
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_kernel_storage_open(storages, 1, NULL, NULL));
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_kernel_storage_device_handle(NULL, &address));
  EXPECT_ERROR("gpunvme_kernel_storage_device_handle: kernels is NULL");
  EXPECT(address == 0);
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_kernel_storage_register(kernels, 0, 1, &number, &offset));
  EXPECT(number == 0 && offset == 0);
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_kernel_storage_register(kernels, 1, 1, &number, NULL));
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_kernel_storage_register(kernels, 1, 1, NULL, &offset));
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_kernel_storage_file(kernels, NULL, &address));
  EXPECT_ERROR("file is NULL");
  made = kernels;
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_kernel_storage_handle(NULL, &made));
  EXPECT(made == NULL);
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_kernel_storage_handle(kernels, NULL));
  EXPECT_ERROR("handle is NULL");
  address = 5;
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_kernel_storage_directory(kernels, NULL, "/", 0, &address));
  EXPECT_ERROR("storage is NULL");
  EXPECT(address == 0);
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_kernel_storage_directory(kernels, storages[0], NULL, 0, &address));
  EXPECT_ERROR("path is NULL");
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_kernel_storage_directory(kernels, storages[0], "/", 0, NULL));
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_kernel_storage_skipped(kernels, 5, NULL, 9, NULL));
  EXPECT_ERROR("gpunvme_kernel_storage_skipped: text is NULL");
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_kernel_storage_recoveries(kernels, NULL));
  EXPECT_ERROR("count is NULL");
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_kernel_storage_await_event(kernels, NULL, 1, NULL, NULL));
  EXPECT_ERROR("event is NULL");
  EXPECT(strcmp(fake_last.function, "nothing") == 0);
}

static void arguments_of_the_first_names(void) {
  nvme_gpu *gpu = HANDLE(nvme_gpu);
  void *at = (void *)(uintptr_t)30;
  struct CUstream_st *stream = (struct CUstream_st *)(uintptr_t)99;
  EXPECT((uintptr_t)nvme_gpu_init("/dev/x") >= 1000);
  EXPECT(strcmp(fake_last.pointers[0], "/dev/x") == 0);
  EXPECT_CALL("gpu_open", 0);
  EXPECT_CODE(GPUNVME_OK, nvme_gpu_read(gpu, 10, 20, at));
  EXPECT_CALL("gpu_transfer", 7, 0, 10, 20, 30);
  EXPECT_CODE(GPUNVME_OK, nvme_gpu_write(gpu, 10, 20, at));
  EXPECT_CALL("gpu_transfer", 7, 1, 10, 20, 30);
  EXPECT_CODE(GPUNVME_OK, nvme_gpu_read_async(gpu, 10, 20, at, stream));
  EXPECT_CALL("gpu_start", 7, 0, 10, 20, 30, 99);
  EXPECT_CODE(GPUNVME_OK, nvme_gpu_write_async(gpu, 10, 20, at, NULL));
  EXPECT_CALL("gpu_start", 7, 1, 10, 20, 30, 0);
  fake_make_fails = 1;
  EXPECT_CODE(GPUNVME_ERROR_MEMORY, nvme_gpu_synchronize(gpu));
  EXPECT_ERROR("fake function 37 cannot be made");
  fake_make_fails = 0;
  EXPECT_CODE(GPUNVME_OK, nvme_gpu_synchronize(gpu));
  EXPECT_CALL("gpu_synchronize", 7);
  EXPECT_CODE(GPUNVME_OK, nvme_gpu_synchronize(gpu));
  EXPECT(fake_makes == 2);
  nvme_gpu_cleanup(gpu);
  EXPECT_CALL("close", 7);
}

static void addresses_and_arrays_are_looked_at(void) {
  gpunvme_storage *storage = HANDLE(gpunvme_storage);
  const gpunvme_range ranges[2] = {{1, 2, 3}, {4, 0, 6}};
  const uint64_t one[1] = {1};
  char text[4] = "xyz";
  size_t needed = 5;
  fake_last = (fake_call){.function = "nothing"};
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_read(storage, 0, 0, 1));
  EXPECT_ERROR("gpunvme_read: the address of range 0 is 0");
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_write_ranges(storage, ranges, 2));
  EXPECT_ERROR("gpunvme_write_ranges: the address of range 1 is 0");
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_read_ranges(storage, NULL, 1));
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_read_ranges(storage, ranges, SIZE_MAX / 2));
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_stats(storage, NULL, 1, &needed));
  EXPECT(needed == 0);
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_stats(NULL, text, sizeof text, NULL));
  EXPECT(text[0] == 0);
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_copy_to_host(storage, NULL, 5, 1));
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_copy_from_host(storage, 0, text, 1));
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_memory_allocate(NULL, 1, NULL));
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_dequantize(NULL, NULL, 1, NULL));
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_prefetch_layers(HANDLE(gpunvme_layer_loader), one, NULL, 1));
  EXPECT_ERROR("gpunvme_prefetch_layers: bytes is NULL");
  EXPECT_CODE(GPUNVME_ERROR_INVALID, nvme_gpu_read_async(HANDLE(nvme_gpu), 0, 1, NULL, NULL));
  EXPECT(strcmp(fake_last.function, "nothing") == 0);
}

static void *fail_here(void *unused) {
  EXPECT(strcmp(gpunvme_last_error(), "") == 0);
  fake_answer = GPUNVME_ERROR_IO;
  EXPECT_CODE(GPUNVME_ERROR_IO, gpunvme_flush(HANDLE(gpunvme_storage)));
  EXPECT(strcmp(gpunvme_last_error(), "fake failure 4") == 0);
  return unused;
}

static void failures_belong_to_threads(void) {
  gpunvme_request *request = HANDLE(gpunvme_request);
  pthread_t other;
  fake_answer = GPUNVME_ERROR_CANCELLED;
  EXPECT_CODE(GPUNVME_ERROR_CANCELLED, gpunvme_submit_read(HANDLE(gpunvme_storage), NULL, 0, &request));
  EXPECT(request == NULL);
  fake_answer = 0;
  pthread_create(&other, NULL, fail_here, NULL);
  pthread_join(other, NULL);
  EXPECT_CODE(GPUNVME_OK, gpunvme_flush(HANDLE(gpunvme_storage)));
  EXPECT(strcmp(gpunvme_last_error(), "fake failure 7") == 0);
  EXPECT(gpunvme_last_errno() == 5);
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_flush(NULL));
  EXPECT(gpunvme_last_errno() == 0);
}

int main(void) {
  RUN(needs_no_start);
  RUN(null_arguments);
  RUN(a_failed_start_is_tried_again);
  RUN(a_failed_start_fails_for_all_threads);
  RUN(an_aborted_start_leaves_the_process_alive);
  RUN(a_fork_before_the_start_may_start);
  RUN(exit_ends_once_what_was_started_here);
  RUN(exit_of_a_child_ends_nothing);
  RUN(many_threads_start_once);
  RUN(the_starting_thread_takes_no_signals);
  RUN(a_fork_after_the_start_is_refused);
  RUN(arguments_of_storage);
  RUN(arguments_of_requests);
  RUN(arguments_of_texts_and_memory);
  RUN(arguments_of_kinds);
  RUN(arguments_of_layers_and_weights);
  RUN(arguments_of_plans);
  RUN(arguments_of_kernels);
  RUN(arguments_of_kernels_are_looked_at);
  RUN(arguments_of_caches_and_rows);
  RUN(arguments_of_the_first_names);
  RUN(addresses_and_arrays_are_looked_at);
  RUN(failures_belong_to_threads);
  return check_failed_tests != 0;
}
