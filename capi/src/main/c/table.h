// What the shim and Java share: a table of functions, in the order of io.gpunvme.capi.Exports. Java makes each when it is first
// needed, since to make one takes milliseconds and most programs call few: call them by CALL of api.h.
//
// All handles are numbers that Java gives out and never uses again; 0 is none. Every function returns a code of
// enum gpunvme_status and, if that is negative, fills *f, which belongs to the calling thread. Texts are UTF-8 with a
// terminating 0. What pointers point to is read before the function returns, and never kept.
#ifndef GPUNVME_TABLE_H
#define GPUNVME_TABLE_H

#include <stdint.h>

#include "gpunvme.h"

// Changes with the table.
#define GPUNVME_TABLE_VERSION 11

typedef struct failure {
  int32_t error;    // errno, or 0
  int32_t reserved;
  char text[2040];  // cut if it is longer
} failure;

typedef struct table {
  // Makes the function of this place in the table, counted from 0; of several threads' only one. Only this one is always there.
  int32_t (*make)(uint64_t place, failure *f);

  // handles of all kinds: storages, requests, kinds, layer loaders, weights, gpus, kernels, caches, rows
  int32_t (*close)(uint64_t handle, failure *f);

  int32_t (*open)(const char *uri, const char *accelerator, uint32_t flags, uint64_t *storage, failure *f);
  int32_t (*on)(uint64_t storage, const char *accelerator, uint64_t *other, failure *f);
  int32_t (*info)(uint64_t storage, gpunvme_info *info, failure *f);
  // cancelled may be NULL
  int32_t (*transfer)(uint64_t storage, int32_t write, const gpunvme_range *ranges, uint64_t count,
      gpunvme_cancelled cancelled, void *data, failure *f);
  int32_t (*flush)(uint64_t storage, failure *f);
  int32_t (*submit)(uint64_t storage, int32_t write, const gpunvme_range *ranges, uint64_t count,
      uint64_t *request, failure *f);
  int32_t (*submit_on_stream)(uint64_t storage, int32_t write, const gpunvme_range *range, uint64_t stream,
      uint64_t *request, failure *f);
  int32_t (*wait)(uint64_t request, uint64_t timeout_ns, failure *f);
  int32_t (*cancel)(uint64_t request, failure *f);
  int32_t (*plan)(uint64_t storage, const gpunvme_range *ranges, uint64_t count, gpunvme_plan_info *plan, failure *f);

  // storages: 0 stats, 1 explain; weights: 2 describe; layer loaders: 3 stats; kernels: 4 errors; caches: 5 counters; weights: 6 stats. *needed counts the terminating 0.
  int32_t (*text)(uint64_t handle, int32_t which, char *text, uint64_t capacity, uint64_t *needed, failure *f);

  int32_t (*allocate)(uint64_t storage, uint64_t bytes, uint64_t *address, failure *f);
  int32_t (*release)(uint64_t storage, uint64_t address, failure *f);
  int32_t (*copy)(uint64_t storage, int32_t to_host, uint64_t address, void *host, uint64_t bytes, failure *f);

  // memory that belongs to no storage
  int32_t (*memory_allocate)(const char *accelerator, uint64_t bytes, uint64_t *address, failure *f);
  int32_t (*memory_free)(const char *accelerator, uint64_t address, failure *f);
  int32_t (*memory_copy)(const char *accelerator, int32_t to_host, uint64_t address, void *host, uint64_t bytes, failure *f);

  // stream: 0 is the default stream
  int32_t (*dequantize)(const char *accelerator, const gpunvme_quantized *tensors, uint64_t count, uint64_t stream,
      failure *f);

  // of storages and of gpus
  int32_t (*kinds_open)(uint64_t storage, uint64_t *kinds, failure *f);
  // blocks: whether offset and length are in logical blocks
  int32_t (*kinds_add)(uint64_t kinds, int32_t number, int32_t blocks, uint64_t offset, uint64_t length,
      uint64_t element, failure *f);
  int32_t (*kinds_read)(uint64_t kinds, const int32_t *numbers, const uint64_t *indexes, const uint64_t *elements,
      uint64_t count, uint64_t address, uint64_t capacity, failure *f);

  int32_t (*layers_open)(uint64_t storage, uint64_t max_layer_bytes, uint32_t depth, uint64_t *loader, failure *f);
  int32_t (*layers_load)(uint64_t loader, uint64_t offset, uint64_t bytes, uint64_t address, failure *f);
  int32_t (*layers_prefetch)(uint64_t loader, const uint64_t *offsets, const uint64_t *bytes, uint64_t count, failure *f);
  int32_t (*layers_open_model)(uint64_t weights, uint64_t max_layer_bytes, uint32_t depth, uint64_t *loader, failure *f);
  // one layer; the addresses are places in it
  int32_t (*layers_prefetch_tensors)(uint64_t loader, const char *name, const gpunvme_tensor_read *tensors, uint64_t count,
      failure *f);
  int32_t (*layers_cancel)(uint64_t loader, failure *f);
  // has_stream: whether stream is meant; 0 is the default stream
  int32_t (*layers_next)(uint64_t loader, int32_t has_stream, uint64_t stream, uint64_t *address, uint64_t *bytes,
      failure *f);
  int32_t (*layers_take)(uint64_t loader, uint64_t stream, uint64_t *address, uint64_t *bytes, failure *f);

  int32_t (*weights_open)(const char *uri, const char *accelerator, uint64_t *weights, failure *f);
  // rules may be NULL
  int32_t (*weights_shards)(uint64_t weights, const char *rules, uint32_t parts, int32_t *dimensions, uint64_t count, failure *f);
  int32_t (*weights_read)(uint64_t weights, const gpunvme_tensor_read *reads, uint64_t count, failure *f);

  int32_t (*gpu_open)(const char *device, uint64_t *gpu, failure *f);
  int32_t (*gpu_transfer)(uint64_t gpu, int32_t write, uint64_t lba, uint64_t blocks, uint64_t address, failure *f);
  int32_t (*gpu_start)(uint64_t gpu, int32_t write, uint64_t lba, uint64_t blocks, uint64_t address, uint64_t stream,
      failure *f);
  int32_t (*gpu_synchronize)(uint64_t gpu, failure *f);

  // stays may be NULL
  int32_t (*plan_layers)(const gpunvme_layer_size *layers, uint64_t count, uint64_t budget, uint32_t slots,
      gpunvme_layer_plan *plan, uint8_t *stays, failure *f);

  // handles of storages; options may be NULL
  int32_t (*kernels_open)(const uint64_t *storages, uint64_t count, const gpunvme_kernel_options *options,
      uint64_t *kernels, failure *f);
  int32_t (*kernels_handle)(uint64_t kernels, uint64_t *handle, failure *f);
  int32_t (*kernels_device_handle)(uint64_t kernels, uint64_t *address, failure *f);
  int32_t (*kernels_register)(uint64_t kernels, uint64_t address, uint64_t bytes, uint32_t *number, uint64_t *offset,
      failure *f);
  int32_t (*kernels_unregister)(uint64_t kernels, uint32_t number, failure *f);
  int32_t (*kernels_file)(uint64_t kernels, uint64_t storage, uint64_t *address, failure *f);
  int32_t (*kernels_directory)(uint64_t kernels, uint64_t storage, const char *path, uint32_t flags, uint64_t *address,
      failure *f);
  int32_t (*kernels_skipped)(uint64_t kernels, uint64_t address, char *text, uint64_t capacity, uint64_t *needed, failure *f);
  int32_t (*kernels_free)(uint64_t kernels, uint64_t address, failure *f);
  // cancelled may be NULL
  int32_t (*kernels_await)(uint64_t kernels, uint64_t stream, uint64_t timeout_ns, gpunvme_cancelled cancelled, void *data,
      failure *f);
  int32_t (*kernels_await_event)(uint64_t kernels, uint64_t event, uint64_t timeout_ns, gpunvme_cancelled cancelled,
      void *data, failure *f);
  int32_t (*kernels_stop)(uint64_t kernels, int32_t value, failure *f);
  int32_t (*kernels_recover)(uint64_t kernels, failure *f);
  int32_t (*kernels_recoveries)(uint64_t kernels, uint64_t *count, failure *f);

  int32_t (*cache_open)(uint64_t kernels, const gpunvme_cache_options *options, uint64_t *cache, failure *f);
  int32_t (*cache_array)(uint64_t cache, uint64_t storage, uint64_t offset, uint64_t count, uint32_t element_bytes,
      uint32_t flags, uint64_t *address, failure *f);
  int32_t (*cache_flush)(uint64_t cache, uint64_t timeout_ns, failure *f);
  int32_t (*rows_open)(uint64_t cache, uint64_t storage, uint64_t offset, uint64_t rows, uint64_t row_bytes, uint32_t flags,
      uint64_t *matrix, failure *f);
  int32_t (*rows_gather)(uint64_t matrix, uint64_t ids, uint64_t count, uint64_t target, uint64_t stream, failure *f);
  int32_t (*rows_fetch)(uint64_t matrix, uint64_t ids, uint64_t count, uint64_t stream, failure *f);
  int32_t (*rows_update)(uint64_t matrix, uint64_t ids, uint64_t count, uint64_t source, uint64_t stream, failure *f);
  int32_t (*rows_synchronize)(uint64_t matrix, failure *f);
} table;

#endif
