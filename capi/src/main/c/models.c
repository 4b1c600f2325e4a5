// Kinds, layers, weights, their floats, and plans of layers.
#include "api.h"

// ---- kinds

static int kinds_open(const char *function, const char *name, const void *storage, uint64_t *kinds) {
  failure *f = shim_failure();
  const table *t;
  CHECK(api_use(&t, f, function, name, storage));
  return CALL(t, kinds_open, f, NUMBER(storage), kinds);
}

static int kinds_add(const char *function, const void *kinds, int32_t number, int blocks, uint64_t offset, uint64_t length,
    uint64_t element) {
  failure *f = shim_failure();
  const table *t;
  CHECK(api_use(&t, f, function, "kinds", kinds));
  return CALL(t, kinds_add, f, NUMBER(kinds), number, blocks, offset, length, element);
}

static int kinds_read(const char *function, const void *kinds, int32_t number, uint64_t index, uint64_t elements,
    uint64_t address) {
  failure *f = shim_failure();
  const table *t;
  CHECK(api_use(&t, f, function, "kinds", kinds));
  CHECK(api_address(f, function, address, elements));
  // How much memory the caller has is not said here.
  return CALL(t, kinds_read, f, NUMBER(kinds), &number, &index, &elements, 1, address, INT64_MAX);
}

int gpunvme_kinds_open(gpunvme_storage *storage, gpunvme_kinds **kinds) {
  uint64_t number = 0;
  REQUIRE(shim_failure(), kinds);
  *kinds = NULL;
  CHECK(kinds_open(__func__, "storage", storage, &number));
  *kinds = (gpunvme_kinds *)(uintptr_t)number;
  return GPUNVME_OK;
}

int gpunvme_kinds_add(gpunvme_kinds *kinds, int32_t number, uint64_t offset, uint64_t bytes, uint64_t element) {
  return kinds_add(__func__, kinds, number, 0, offset, bytes, element);
}

int gpunvme_kinds_read(
    gpunvme_kinds *kinds, int32_t number, uint64_t index, uint64_t elements, uint64_t address) {
  return kinds_read(__func__, kinds, number, index, elements, address);
}

int gpunvme_kinds_read_many(gpunvme_kinds *kinds, const int32_t *numbers, const uint64_t *indexes,
    const uint64_t *elements, size_t count, uint64_t address, uint64_t capacity) {
  failure *f = shim_failure();
  const table *t;
  USE(t, f, kinds);
  CHECK(api_array(f, __func__, "numbers", numbers, count, sizeof *numbers));
  CHECK(api_array(f, __func__, "indexes", indexes, count, sizeof *indexes));
  CHECK(api_array(f, __func__, "elements", elements, count, sizeof *elements));
  CHECK(api_address(f, __func__, address, capacity));
  return CALL(t, kinds_read, f, NUMBER(kinds), numbers, indexes, elements, count, address, capacity);
}

int gpunvme_kinds_close(gpunvme_kinds *kinds) {
  return api_close(__func__, kinds);
}

nvme_read_request *nvme_read_request_create(nvme_gpu *gpu) {
  uint64_t number = 0;
  return kinds_open(__func__, "gpu", gpu, &number) < 0 ? NULL : (nvme_read_request *)(uintptr_t)number;
}

int nvme_read_request_add_kind(
    nvme_read_request *request, int kind, uint64_t start_lba, uint64_t blocks, uint64_t element_bytes) {
  return kinds_add(__func__, request, kind, 1, start_lba, blocks, element_bytes);
}

int read_nvme_kind(nvme_read_request *request, int kind, uint64_t index, uint64_t elements, void *address) {
  return kinds_read(__func__, request, kind, index, elements, NUMBER(address));
}

void nvme_read_request_destroy(nvme_read_request *request) {
  (void)api_close(__func__, request);
}

// ---- layers

// of_tensors: whether the source is a model
static int loader_init(const char *function, const char *name, const void *source, int of_tensors,
    uint64_t max_layer_bytes, uint32_t depth, gpunvme_layer_loader **loader) {
  failure *f = shim_failure();
  const table *t;
  uint64_t number = 0;
  if (loader == NULL) {
    return shim_fail(f, GPUNVME_ERROR_INVALID, "%s: loader is NULL", function);
  }
  *loader = NULL;
  CHECK(api_use(&t, f, function, name, source));
  CHECK(of_tensors ? CALL(t, layers_open_model, f, NUMBER(source), max_layer_bytes, depth, &number)
                   : CALL(t, layers_open, f, NUMBER(source), max_layer_bytes, depth, &number));
  *loader = (gpunvme_layer_loader *)(uintptr_t)number;
  return GPUNVME_OK;
}

int gpunvme_layer_loader_init(gpunvme_storage *storage, uint64_t max_layer_bytes, uint32_t pipeline_depth,
    gpunvme_layer_loader **loader) {
  return loader_init(__func__, "storage", storage, 0, max_layer_bytes, pipeline_depth, loader);
}

int gpunvme_weights_layer_loader_init(gpunvme_weights *weights, uint64_t max_layer_bytes, uint32_t pipeline_depth,
    gpunvme_layer_loader **loader) {
  return loader_init(__func__, "weights", weights, 1, max_layer_bytes, pipeline_depth, loader);
}

int gpunvme_load_layer(gpunvme_layer_loader *loader, uint64_t offset, uint64_t bytes, uint64_t address) {
  failure *f = shim_failure();
  const table *t;
  USE(t, f, loader);
  CHECK(api_address(f, __func__, address, bytes));
  return CALL(t, layers_load, f, NUMBER(loader), offset, bytes, address);
}

int gpunvme_prefetch_layers(
    gpunvme_layer_loader *loader, const uint64_t *offsets, const uint64_t *bytes, size_t count) {
  failure *f = shim_failure();
  const table *t;
  USE(t, f, loader);
  CHECK(api_array(f, __func__, "offsets", offsets, count, sizeof *offsets));
  CHECK(api_array(f, __func__, "bytes", bytes, count, sizeof *bytes));
  return CALL(t, layers_prefetch, f, NUMBER(loader), offsets, bytes, count);
}

int gpunvme_prefetch_tensors(
    gpunvme_layer_loader *loader, const char *name, const gpunvme_tensor_read *tensors, size_t count) {
  failure *f = shim_failure();
  const table *t;
  REQUIRE(f, name);
  USE(t, f, loader);
  CHECK(api_array(f, __func__, "tensors", tensors, count, sizeof *tensors));
  return CALL(t, layers_prefetch_tensors, f, NUMBER(loader), name, tensors, count);
}

int gpunvme_cancel_layers(gpunvme_layer_loader *loader) {
  failure *f = shim_failure();
  const table *t;
  USE(t, f, loader);
  return CALL(t, layers_cancel, f, NUMBER(loader));
}

int gpunvme_next_layer(
    gpunvme_layer_loader *loader, struct CUstream_st *stream, uint64_t *address, uint64_t *bytes) {
  failure *f = shim_failure();
  const table *t;
  REQUIRE(f, address);
  REQUIRE(f, bytes);
  *address = 0;
  *bytes = 0;
  USE(t, f, loader);
  return CALL(t, layers_next, f, NUMBER(loader), stream != NULL, NUMBER(stream), address, bytes);
}

int gpunvme_take_layer(
    gpunvme_layer_loader *loader, struct CUstream_st *stream, uint64_t *address, uint64_t *bytes) {
  failure *f = shim_failure();
  const table *t;
  REQUIRE(f, address);
  REQUIRE(f, bytes);
  *address = 0;
  *bytes = 0;
  USE(t, f, loader);
  return CALL(t, layers_take, f, NUMBER(loader), NUMBER(stream), address, bytes);
}

int gpunvme_layer_loader_destroy(gpunvme_layer_loader *loader) {
  return api_close(__func__, loader);
}

// ---- weights

int gpunvme_weights_open(const char *uri, const char *accelerator, gpunvme_weights **weights) {
  failure *f = shim_failure();
  const table *t;
  uint64_t number = 0;
  REQUIRE(f, weights);
  *weights = NULL;
  REQUIRE(f, uri);
  CHECK(api_begin(&t, f));
  CHECK(CALL(t, weights_open, f, uri, accelerator, &number));
  *weights = (gpunvme_weights *)(uintptr_t)number;
  return GPUNVME_OK;
}

int gpunvme_weights_shards(
    gpunvme_weights *weights, const char *rules, uint32_t parts, int32_t *dimensions, size_t count) {
  failure *f = shim_failure();
  const table *t;
  USE(t, f, weights);
  CHECK(api_array(f, __func__, "dimensions", dimensions, count, sizeof *dimensions));
  return CALL(t, weights_shards, f, NUMBER(weights), rules, parts, dimensions, count);
}

int gpunvme_weights_read(gpunvme_weights *weights, const gpunvme_tensor_read *reads, size_t count) {
  failure *f = shim_failure();
  const table *t;
  USE(t, f, weights);
  CHECK(api_array(f, __func__, "reads", reads, count, sizeof *reads));
  for (size_t i = 0; i < count; i++) {
    if (reads[i].address == 0 && reads[i].capacity > 0) {
      return shim_fail(f, GPUNVME_ERROR_INVALID, "%s: the address of read %zu is 0", __func__, i);
    }
  }
  return CALL(t, weights_read, f, NUMBER(weights), reads, count);
}

int gpunvme_weights_close(gpunvme_weights *weights) {
  return api_close(__func__, weights);
}

// ---- plans

int gpunvme_plan_layers(const gpunvme_layer_size *layers, size_t count, uint64_t budget, uint32_t slots,
    gpunvme_layer_plan *plan, uint8_t *stays) {
  failure *f = shim_failure();
  const table *t;
  REQUIRE(f, plan);
  *plan = (gpunvme_layer_plan){0};
  CHECK(api_array(f, __func__, "layers", layers, count, sizeof *layers));
  CHECK(api_begin(&t, f));
  return CALL(t, plan_layers, f, layers, count, budget, slots, plan, stays);
}

// ---- floats

int gpunvme_dequantize(
    const char *accelerator, const gpunvme_quantized *tensors, size_t count, struct CUstream_st *stream) {
  failure *f = shim_failure();
  const table *t;
  CHECK(api_array(f, __func__, "tensors", tensors, count, sizeof *tensors));
  CHECK(api_begin(&t, f));
  return CALL(t, dequantize, f, accelerator, tensors, count, NUMBER(stream));
}
