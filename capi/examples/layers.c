// Brings the layers of a model into a ring of memory, read ahead while earlier ones are in use.
//
//   layers URI LAYER_BYTES LAYERS
#include <gpunvme.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static int failed(const char *what) {
  fprintf(stderr, "%s: %s\n", what, gpunvme_last_error());
  return 1;
}

// What a kernel would do with the layer.
static int use(gpunvme_storage *storage, uint64_t number, uint64_t address, uint64_t bytes) {
  uint8_t first;
  if (gpunvme_copy_to_host(storage, &first, address, 1) < 0) {
    return failed("copy");
  }
  printf("layer %" PRIu64 ": %" PRIu64 " bytes, the first is 0x%02x\n", number, bytes, first);
  return 0;
}

static int run(gpunvme_storage *storage, uint64_t layer_bytes, uint64_t layers) {
  gpunvme_layer_loader *loader;
  if (gpunvme_layer_loader_init(storage, layer_bytes, 3, &loader) < 0) {
    return failed("layer_loader_init");
  }
  int code = 0;
  for (uint64_t i = 0; i < layers && code == 0; i++) {
    uint64_t offset = i * layer_bytes;
    code = gpunvme_prefetch_layers(loader, &offset, &layer_bytes, 1) < 0 ? failed("prefetch_layers") : 0;
  }
  for (uint64_t i = 0; i < layers && code == 0; i++) {
    uint64_t address, bytes;
    // With a CUDA stream in the place of NULL this does not wait; the stream does, where the kernel is put afterwards.
    code = gpunvme_next_layer(loader, NULL, &address, &bytes) < 0 ? failed("next_layer") : use(storage, i, address, bytes);
  }
  if (gpunvme_layer_loader_destroy(loader) < 0) {
    return failed("layer_loader_destroy");
  }
  return code;
}

int main(int count, char **arguments) {
  if (count != 4) {
    fprintf(stderr, "layers URI LAYER_BYTES LAYERS\n");
    return 2;
  }
  gpunvme_storage *storage;
  if (gpunvme_open(arguments[1], NULL, 0, &storage) < 0) {
    return failed("open");
  }
  int code = run(storage, strtoull(arguments[2], NULL, 10), strtoull(arguments[3], NULL, 10));
  return gpunvme_close(storage) < 0 ? failed("close") : code;
}
