#include "fake.h"

#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "shim.h"

_Thread_local fake_call fake_last;
_Thread_local int fake_answer;
enum fake_start fake_next_start;
int fake_starts;
int fake_makes;
int fake_make_fails;
atomic_int fake_ends;
int fake_end_hangs;
int fake_found;
uint64_t fake_stack_bytes;
int fake_interrupt_blocked, fake_crash_blocked;
const char *fake_java_home;
uint64_t fake_options;

static _Thread_local uint64_t next_handle = 1000;

static int32_t answer(failure *f) {
  if (fake_answer < 0) {
    shim_fail(f, fake_answer, "fake failure %d", -fake_answer);
    f->error = 5;
  }
  return fake_answer;
}

#define CALLED(...) \
  fake_last = (fake_call){.function = __func__ + 5, .arguments = {__VA_ARGS__}} // without "fake_"
#define POINTED(...) memcpy(fake_last.pointers, (const void *[3]){__VA_ARGS__}, sizeof fake_last.pointers)

static int32_t made(uint64_t *handle, failure *f) {
  if (fake_answer >= 0) {
    *handle = next_handle++;
  }
  return answer(f);
}

static int32_t fake_close(uint64_t handle, failure *f) {
  CALLED(handle);
  return answer(f);
}

static int32_t fake_open(const char *uri, const char *accelerator, uint32_t flags, uint64_t *storage, failure *f) {
  CALLED(flags);
  POINTED(uri, accelerator);
  return made(storage, f);
}

static int32_t fake_on(uint64_t storage, const char *accelerator, uint64_t *other, failure *f) {
  CALLED(storage);
  POINTED(accelerator);
  return made(other, f);
}

static int32_t fake_info(uint64_t storage, gpunvme_info *info, failure *f) {
  CALLED(storage);
  POINTED(info);
  return answer(f);
}

static int32_t fake_transfer(uint64_t storage, int32_t write, const gpunvme_range *ranges, uint64_t count,
    gpunvme_cancelled cancelled, void *data, failure *f) {
  CALLED(storage, (uint64_t)write, count, count == 0 ? 0 : ranges[0].offset, count == 0 ? 0 : ranges[0].address,
      count == 0 ? 0 : ranges[0].bytes);
  POINTED(ranges, (const void *)(uintptr_t)cancelled, data);
  return answer(f);
}

static int32_t fake_flush(uint64_t storage, failure *f) {
  CALLED(storage);
  return answer(f);
}

static int32_t fake_submit(
    uint64_t storage, int32_t write, const gpunvme_range *ranges, uint64_t count, uint64_t *request, failure *f) {
  CALLED(storage, (uint64_t)write, count);
  POINTED(ranges);
  return made(request, f);
}

static int32_t fake_submit_on_stream(
    uint64_t storage, int32_t write, const gpunvme_range *range, uint64_t stream, uint64_t *request, failure *f) {
  CALLED(storage, (uint64_t)write, range->offset, range->address, range->bytes, stream);
  return made(request, f);
}

static int32_t fake_wait(uint64_t request, uint64_t timeout_ns, failure *f) {
  CALLED(request, timeout_ns);
  return answer(f);
}

static int32_t fake_cancel(uint64_t request, failure *f) {
  CALLED(request);
  return answer(f);
}

static int32_t fake_plan(
    uint64_t storage, const gpunvme_range *ranges, uint64_t count, gpunvme_plan_info *plan, failure *f) {
  CALLED(storage, count);
  POINTED(ranges, plan);
  return answer(f);
}

static int32_t fake_text(uint64_t handle, int32_t which, char *text, uint64_t capacity, uint64_t *needed, failure *f) {
  CALLED(handle, (uint64_t)which, capacity);
  POINTED(text);
  *needed = 77;
  return answer(f);
}

static int32_t fake_allocate(uint64_t storage, uint64_t bytes, uint64_t *address, failure *f) {
  CALLED(storage, bytes);
  return made(address, f);
}

static int32_t fake_release(uint64_t storage, uint64_t address, failure *f) {
  CALLED(storage, address);
  return answer(f);
}

static int32_t fake_memory_allocate(const char *accelerator, uint64_t bytes, uint64_t *address, failure *f) {
  CALLED(bytes);
  POINTED(accelerator);
  return made(address, f);
}

static int32_t fake_memory_free(const char *accelerator, uint64_t address, failure *f) {
  CALLED(address);
  POINTED(accelerator);
  return answer(f);
}

static int32_t fake_memory_copy(
    const char *accelerator, int32_t to_host, uint64_t address, void *host, uint64_t bytes, failure *f) {
  CALLED((uint64_t)to_host, address, bytes);
  POINTED(accelerator, host);
  return answer(f);
}

static int32_t fake_dequantize(
    const char *accelerator, const gpunvme_quantized *tensors, uint64_t count, uint64_t stream, failure *f) {
  CALLED(count, stream);
  POINTED(accelerator, tensors);
  return answer(f);
}

static int32_t fake_copy(uint64_t storage, int32_t to_host, uint64_t address, void *host, uint64_t bytes, failure *f) {
  CALLED(storage, (uint64_t)to_host, address, bytes);
  POINTED(host);
  return answer(f);
}

static int32_t fake_kinds_open(uint64_t storage, uint64_t *kinds, failure *f) {
  CALLED(storage);
  return made(kinds, f);
}

static int32_t fake_kinds_add(uint64_t kinds, int32_t number, int32_t blocks, uint64_t offset, uint64_t length,
    uint64_t element, failure *f) {
  CALLED(kinds, (uint64_t)number, (uint64_t)blocks, offset, length, element);
  return answer(f);
}

static int32_t fake_kinds_read(uint64_t kinds, const int32_t *numbers, const uint64_t *indexes, const uint64_t *elements,
    uint64_t count, uint64_t address, uint64_t capacity, failure *f) {
  CALLED(kinds, (uint64_t)numbers[0], indexes[0], elements[0], count, address, capacity);
  POINTED(numbers, indexes, elements);
  return answer(f);
}

static int32_t fake_layers_open(
    uint64_t storage, uint64_t max_layer_bytes, uint32_t depth, uint64_t *loader, failure *f) {
  CALLED(storage, max_layer_bytes, depth);
  return made(loader, f);
}

static int32_t fake_layers_load(uint64_t loader, uint64_t offset, uint64_t bytes, uint64_t address, failure *f) {
  CALLED(loader, offset, bytes, address);
  return answer(f);
}

static int32_t fake_layers_prefetch(
    uint64_t loader, const uint64_t *offsets, const uint64_t *bytes, uint64_t count, failure *f) {
  CALLED(loader, count);
  POINTED(offsets, bytes);
  return answer(f);
}

static int32_t fake_layers_open_model(
    uint64_t weights, uint64_t max_layer_bytes, uint32_t depth, uint64_t *loader, failure *f) {
  CALLED(weights, max_layer_bytes, depth);
  return made(loader, f);
}

static int32_t fake_layers_prefetch_tensors(
    uint64_t loader, const char *name, const gpunvme_tensor_read *tensors, uint64_t count, failure *f) {
  CALLED(loader, count);
  POINTED(name, tensors);
  return answer(f);
}

static int32_t fake_layers_cancel(uint64_t loader, failure *f) {
  CALLED(loader);
  return answer(f);
}

static int32_t fake_layers_next(
    uint64_t loader, int32_t has_stream, uint64_t stream, uint64_t *address, uint64_t *bytes, failure *f) {
  CALLED(loader, (uint64_t)has_stream, stream);
  *address = 11;
  *bytes = 12;
  return answer(f);
}

static int32_t fake_layers_take(uint64_t loader, uint64_t stream, uint64_t *address, uint64_t *bytes, failure *f) {
  CALLED(loader, stream);
  *address = 11;
  *bytes = 12;
  return answer(f);
}

static int32_t fake_weights_open(const char *uri, const char *accelerator, uint64_t *weights, failure *f) {
  CALLED(0);
  POINTED(uri, accelerator);
  return made(weights, f);
}

static int32_t fake_weights_shards(
    uint64_t weights, const char *rules, uint32_t parts, int32_t *dimensions, uint64_t count, failure *f) {
  CALLED(weights, parts, count);
  POINTED(rules, dimensions);
  return answer(f);
}

static int32_t fake_weights_read(uint64_t weights, const gpunvme_tensor_read *reads, uint64_t count, failure *f) {
  CALLED(weights, count);
  POINTED(reads);
  return answer(f);
}

static int32_t fake_gpu_open(const char *device, uint64_t *gpu, failure *f) {
  CALLED(0);
  POINTED(device);
  return made(gpu, f);
}

static int32_t fake_gpu_transfer(
    uint64_t gpu, int32_t write, uint64_t lba, uint64_t blocks, uint64_t address, failure *f) {
  CALLED(gpu, (uint64_t)write, lba, blocks, address);
  return answer(f);
}

static int32_t fake_gpu_start(
    uint64_t gpu, int32_t write, uint64_t lba, uint64_t blocks, uint64_t address, uint64_t stream, failure *f) {
  CALLED(gpu, (uint64_t)write, lba, blocks, address, stream);
  return answer(f);
}

static int32_t fake_gpu_synchronize(uint64_t gpu, failure *f) {
  CALLED(gpu);
  return answer(f);
}

static int32_t fake_plan_layers(const gpunvme_layer_size *layers, uint64_t count, uint64_t budget, uint32_t slots,
    gpunvme_layer_plan *plan, uint8_t *stays, failure *f) {
  CALLED(count, budget, slots);
  POINTED(layers, plan, stays);
  return answer(f);
}

static int32_t fake_kernels_open(const uint64_t *storages, uint64_t count, const gpunvme_kernel_options *options,
    uint64_t *kernels, failure *f) {
  CALLED(count, storages[0], storages[count - 1]);
  POINTED(options);
  return made(kernels, f);
}

static int32_t fake_kernels_handle(uint64_t kernels, uint64_t *handle, failure *f) {
  CALLED(kernels);
  return made(handle, f);
}

static int32_t fake_kernels_device_handle(uint64_t kernels, uint64_t *address, failure *f) {
  CALLED(kernels);
  return made(address, f);
}

static int32_t fake_kernels_register(
    uint64_t kernels, uint64_t address, uint64_t bytes, uint32_t *number, uint64_t *offset, failure *f) {
  CALLED(kernels, address, bytes);
  *number = 11;
  *offset = 12;
  return answer(f);
}

static int32_t fake_kernels_unregister(uint64_t kernels, uint32_t number, failure *f) {
  CALLED(kernels, number);
  return answer(f);
}

static int32_t fake_kernels_file(uint64_t kernels, uint64_t storage, uint64_t *address, failure *f) {
  CALLED(kernels, storage);
  return made(address, f);
}

static int32_t fake_kernels_directory(
    uint64_t kernels, uint64_t storage, const char *path, uint32_t flags, uint64_t *address, failure *f) {
  CALLED(kernels, storage, flags);
  POINTED(path);
  return made(address, f);
}

static int32_t fake_kernels_skipped(
    uint64_t kernels, uint64_t address, char *text, uint64_t capacity, uint64_t *needed, failure *f) {
  CALLED(kernels, address, capacity);
  POINTED(text);
  *needed = 77;
  return answer(f);
}

static int32_t fake_kernels_free(uint64_t kernels, uint64_t address, failure *f) {
  CALLED(kernels, address);
  return answer(f);
}

static int32_t fake_kernels_await(
    uint64_t kernels, uint64_t stream, uint64_t timeout_ns, gpunvme_cancelled cancelled, void *data, failure *f) {
  CALLED(kernels, stream, timeout_ns);
  POINTED((const void *)(uintptr_t)cancelled, data);
  return answer(f);
}

static int32_t fake_kernels_await_event(
    uint64_t kernels, uint64_t event, uint64_t timeout_ns, gpunvme_cancelled cancelled, void *data, failure *f) {
  CALLED(kernels, event, timeout_ns);
  POINTED((const void *)(uintptr_t)cancelled, data);
  return answer(f);
}

static int32_t fake_kernels_stop(uint64_t kernels, int32_t value, failure *f) {
  CALLED(kernels, (uint64_t)value);
  return answer(f);
}

static int32_t fake_kernels_recover(uint64_t kernels, failure *f) {
  CALLED(kernels);
  return answer(f);
}

static int32_t fake_kernels_recoveries(uint64_t kernels, uint64_t *count, failure *f) {
  CALLED(kernels);
  *count = 11;
  return answer(f);
}

static int32_t fake_cache_open(uint64_t kernels, const gpunvme_cache_options *options, uint64_t *cache, failure *f) {
  CALLED(kernels, options->bytes, options->page_bytes);
  return made(cache, f);
}

static int32_t fake_cache_array(uint64_t cache, uint64_t storage, uint64_t offset, uint64_t count, uint32_t element_bytes,
    uint32_t flags, uint64_t *address, failure *f) {
  CALLED(cache, storage, offset, count, element_bytes, flags);
  return made(address, f);
}

static int32_t fake_cache_flush(uint64_t cache, uint64_t timeout_ns, failure *f) {
  CALLED(cache, timeout_ns);
  return answer(f);
}

static int32_t fake_rows_open(uint64_t cache, uint64_t storage, uint64_t offset, uint64_t rows, uint64_t row_bytes,
    uint32_t flags, uint64_t *matrix, failure *f) {
  CALLED(cache, storage, offset, rows, row_bytes, flags);
  return made(matrix, f);
}

static int32_t fake_rows_gather(uint64_t matrix, uint64_t ids, uint64_t count, uint64_t target, uint64_t stream, failure *f) {
  CALLED(matrix, ids, count, target, stream);
  return answer(f);
}

static int32_t fake_rows_fetch(uint64_t matrix, uint64_t ids, uint64_t count, uint64_t stream, failure *f) {
  CALLED(matrix, ids, count, stream);
  return answer(f);
}

static int32_t fake_rows_update(uint64_t matrix, uint64_t ids, uint64_t count, uint64_t source, uint64_t stream, failure *f) {
  CALLED(matrix, ids, count, source, stream);
  return answer(f);
}

static int32_t fake_rows_synchronize(uint64_t matrix, failure *f) {
  CALLED(matrix);
  return answer(f);
}

static void look_around(const start_options *options) {
  pthread_attr_t attributes;
  size_t bytes = 0;
  void *low;
  sigset_t mask;
  pthread_getattr_np(pthread_self(), &attributes);
  pthread_attr_getstack(&attributes, &low, &bytes);
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, NULL, &mask);
  fake_stack_bytes = bytes;
  fake_interrupt_blocked = sigismember(&mask, SIGINT) && sigismember(&mask, SIGTERM) && sigismember(&mask, SIGALRM);
  fake_crash_blocked = sigismember(&mask, SIGSEGV);
  fake_java_home = options->java_home;
  fake_options = options->count;
}

static table *filled;

static int32_t fake_make(uint64_t place, failure *f) {
  fake_makes++;
  if (fake_make_fails) {
    return shim_fail(f, GPUNVME_ERROR_MEMORY, "fake function %d cannot be made", (int)place);
  }
  if (place * sizeof(void *) == offsetof(table, gpu_synchronize)) {
    filled->gpu_synchronize = fake_gpu_synchronize;
  }
  return GPUNVME_OK;
}

int shim_fill(table *to, const start_options *options, int *ours, failure *f) {
  *ours = !fake_found;
  fake_starts++;
  look_around(options);
  usleep(20000); // so that others come in the meantime; nothing depends on it
  if (fake_next_start == FAKE_FAILS) {
    return shim_fail(f, GPUNVME_ERROR_JAVA, "fake start %d failed", fake_starts);
  }
  if (fake_next_start == FAKE_ABORTS) {
    shim_fail(f, GPUNVME_ERROR_JAVA, "fake start aborted");
    shim_start_aborted(f);
    for (;;) {
      pause();
    }
  }
  *to = (table){.close = fake_close, .open = fake_open, .on = fake_on, .info = fake_info, .transfer = fake_transfer, .flush = fake_flush,
      .submit = fake_submit, .submit_on_stream = fake_submit_on_stream, .wait = fake_wait, .cancel = fake_cancel,
      .plan = fake_plan, .text = fake_text, .allocate = fake_allocate, .release = fake_release, .copy = fake_copy,
      .memory_allocate = fake_memory_allocate, .memory_free = fake_memory_free, .memory_copy = fake_memory_copy, .dequantize = fake_dequantize,
      .kinds_open = fake_kinds_open, .kinds_add = fake_kinds_add, .kinds_read = fake_kinds_read,
      .layers_open = fake_layers_open, .layers_load = fake_layers_load, .layers_prefetch = fake_layers_prefetch,
      .layers_open_model = fake_layers_open_model, .layers_prefetch_tensors = fake_layers_prefetch_tensors,
      .layers_cancel = fake_layers_cancel, .layers_next = fake_layers_next, .layers_take = fake_layers_take, .weights_open = fake_weights_open, .weights_shards = fake_weights_shards, .weights_read = fake_weights_read,
      .gpu_open = fake_gpu_open, .gpu_transfer = fake_gpu_transfer, .gpu_start = fake_gpu_start,
      .plan_layers = fake_plan_layers, .kernels_open = fake_kernels_open, .kernels_handle = fake_kernels_handle,
      .kernels_device_handle = fake_kernels_device_handle,
      .kernels_register = fake_kernels_register, .kernels_unregister = fake_kernels_unregister, .kernels_file = fake_kernels_file,
      .kernels_directory = fake_kernels_directory, .kernels_skipped = fake_kernels_skipped, .kernels_free = fake_kernels_free,
      .kernels_await = fake_kernels_await,
      .kernels_await_event = fake_kernels_await_event, .kernels_stop = fake_kernels_stop, .kernels_recover = fake_kernels_recover,
      .kernels_recoveries = fake_kernels_recoveries, .cache_open = fake_cache_open, .cache_array = fake_cache_array,
      .cache_flush = fake_cache_flush, .rows_open = fake_rows_open, .rows_gather = fake_rows_gather,
      .rows_fetch = fake_rows_fetch, .rows_update = fake_rows_update, .rows_synchronize = fake_rows_synchronize,
      .make = fake_next_start == FAKE_LEAVES_IT_EMPTY ? NULL : fake_make};
  filled = to;
  return GPUNVME_OK;
}

void shim_end(void) {
  fake_ends++;
  while (fake_end_hangs) {
    pause();
  }
}
