// Kinds, layers, weights and the names of the first proposals on an embedded device, with the real library.
#include <sys/stat.h>

#include "device.h"

#define SIZE ((uint64_t)16 << 20)
#define SEED 11

static gpunvme_storage *filled(void) {
  gpunvme_storage *storage = open_or_end("sim:size=16MiB", GPUNVME_WRITE);
  fill_device(storage, SEED, SIZE);
  return storage;
}

static void kinds_are_read_by_index(void) {
  gpunvme_storage *storage = filled();
  gpunvme_kinds *kinds = NULL;
  uint64_t address = 0;
  EXPECT_CODE(GPUNVME_OK, gpunvme_allocate(storage, 65536, &address));
  EXPECT_CODE(GPUNVME_OK, gpunvme_kinds_open(storage, &kinds));
  EXPECT_CODE(GPUNVME_OK, gpunvme_kinds_add(kinds, 1, 1000, 100 * 300, 300));
  EXPECT_CODE(GPUNVME_OK, gpunvme_kinds_add(kinds, 5, 40000, 8 * 100, 8));
  EXPECT_CODE(GPUNVME_OK, gpunvme_kinds_read(kinds, 1, 10, 5, address));
  EXPECT(holds(storage, address, SEED, 1000 + 10 * 300, 5 * 300));
  const int32_t numbers[] = {5, 1, 5};
  const uint64_t indexes[] = {99, 0, 3}, elements[] = {1, 2, 4};
  EXPECT_CODE(GPUNVME_OK, gpunvme_kinds_read_many(kinds, numbers, indexes, elements, 3, address, 8 + 600 + 32));
  EXPECT(holds(storage, address, SEED, 40000 + 99 * 8, 8));
  EXPECT(holds(storage, address + 8, SEED, 1000, 600));
  EXPECT(holds(storage, address + 608, SEED, 40000 + 3 * 8, 32));
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_kinds_read_many(kinds, numbers, indexes, elements, 3, address, 8 + 600 + 31));
  EXPECT_CODE(GPUNVME_ERROR_NOT_FOUND, gpunvme_kinds_read(kinds, 2, 0, 1, address));
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_kinds_read(kinds, 1, 99, 2, address));
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_kinds_read(kinds, 1, UINT64_MAX, 2, address));
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_kinds_add(kinds, 3, 0, 100, 0));
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_kinds_add(kinds, -1, 0, 100, 10));
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_kinds_add(kinds, 3, 0, 100, 7));
  EXPECT_CODE(GPUNVME_OK, gpunvme_kinds_close(kinds));
  EXPECT_CODE(GPUNVME_ERROR_CLOSED, gpunvme_kinds_read(kinds, 1, 0, 1, address));
  EXPECT_CODE(GPUNVME_OK, gpunvme_close(storage));
}

static void layers_come_in_their_order(void) {
  enum { COUNT = 20 };
  gpunvme_storage *storage = filled();
  gpunvme_layer_loader *loader = NULL;
  uint64_t offsets[COUNT], lengths[COUNT], address = 0, bytes = 0, mine = 0;
  EXPECT_CODE(GPUNVME_OK, gpunvme_layer_loader_init(storage, 300000, 3, &loader));
  for (uint64_t i = 0; i < COUNT; i++) {
    offsets[i] = i * 400000 + i;
    lengths[i] = 100000 + i * 10000;
  }
  EXPECT_CODE(GPUNVME_OK, gpunvme_prefetch_layers(loader, offsets, lengths, COUNT));
  for (uint64_t i = 0; i < COUNT; i++) {
    EXPECT_CODE(GPUNVME_OK, gpunvme_next_layer(loader, NULL, &address, &bytes));
    EXPECT(bytes == lengths[i]);
    EXPECT(holds(storage, address, SEED, offsets[i], bytes));
  }
  EXPECT_CODE(GPUNVME_ERROR_NOT_FOUND, gpunvme_next_layer(loader, NULL, &address, &bytes));
  EXPECT(address == 0 && bytes == 0);
  EXPECT_CODE(GPUNVME_OK, gpunvme_allocate(storage, 200000, &mine));
  EXPECT_CODE(GPUNVME_OK, gpunvme_load_layer(loader, 12345, 200000, mine));
  EXPECT(holds(storage, mine, SEED, 12345, 200000));
  offsets[0] = SIZE - 10;
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_prefetch_layers(loader, offsets, lengths, 1));
  lengths[1] = 300001;
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_prefetch_layers(loader, offsets + 1, lengths + 1, 1));
  EXPECT_CODE(GPUNVME_OK, gpunvme_prefetch_layers(loader, offsets + 2, lengths + 2, 5)); // and nobody takes them
  EXPECT_CODE(GPUNVME_OK, gpunvme_layer_loader_destroy(loader));
  EXPECT_CODE(GPUNVME_ERROR_CLOSED, gpunvme_next_layer(loader, NULL, &address, &bytes));
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_layer_loader_init(storage, 300000, 0, &loader));
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_layer_loader_init(storage, 300000, 1025, &loader));
  EXPECT_CODE(GPUNVME_OK, gpunvme_close(storage));
}

// Two tensors: "a" of 4 times 6 float32, "b" of 100 bytes.
static void write_model(const char *path) {
  static const char header[] =
      "{\"a\":{\"dtype\":\"F32\",\"shape\":[4,6],\"data_offsets\":[0,96]},"
      "\"b\":{\"dtype\":\"U8\",\"shape\":[100],\"data_offsets\":[96,196]}}";
  uint64_t length = sizeof header - 1;
  uint8_t data[196];
  fill(data, SEED, 0, sizeof data);
  FILE *out = fopen(path, "w");
  EXPECT(out != NULL && fwrite(&length, 8, 1, out) == 1 && fwrite(header, length, 1, out) == 1 &&
         fwrite(data, sizeof data, 1, out) == 1);
  fclose(out);
}

static void weights_are_read_and_sliced(void) {
  char path[300], file[320], text[4000];
  temporary(path, sizeof path);
  uint8_t a[96] = {0}, b[100] = {0}, columns[48] = {0};
  gpunvme_weights *weights = NULL;
  EXPECT(mkdtemp(path) != NULL);
  snprintf(file, sizeof file, "%s/model.safetensors", path);
  write_model(file);
  EXPECT_CODE(GPUNVME_OK, gpunvme_weights_open(file, accelerator(), &weights));
  EXPECT_CODE(GPUNVME_OK, gpunvme_weights_describe(weights, text, sizeof text, NULL));
  const char *at_a = strstr(text, "\"a\""), *at_b = strstr(text, "\"b\"");
  EXPECT(at_a != NULL && at_b != NULL && strstr(text, "F32") != NULL);
  // Their 196 bytes are the file's last.
  struct stat info;
  char offsets[2][40];
  EXPECT(stat(file, &info) == 0);
  snprintf(offsets[0], sizeof offsets[0], "\"offset\":%lld,", (long long)info.st_size - 196);
  snprintf(offsets[1], sizeof offsets[1], "\"offset\":%lld,", (long long)info.st_size - 100);
  EXPECT(strstr(at_a, offsets[0]) != NULL && strstr(at_b, offsets[1]) != NULL);
  uint32_t number_a = at_a > at_b, number_b = !number_a;
  const gpunvme_tensor_read reads[] = {
      {.tensor = number_a, .dimension = -1, .address = (uintptr_t)a, .capacity = sizeof a},
      {.tensor = number_b, .dimension = -1, .address = (uintptr_t)b, .capacity = sizeof b},
      {.tensor = number_a, .dimension = 1, .start = 2, .stop = 5, .address = (uintptr_t)columns, .capacity = sizeof columns},
  };
  EXPECT_CODE(GPUNVME_OK, gpunvme_weights_read(weights, reads, 3));
  EXPECT(first_wrong(a, SEED, 0, sizeof a) == sizeof a);
  EXPECT(first_wrong(b, SEED, 96, sizeof b) == sizeof b);
  for (uint64_t row = 0; row < 4; row++) {
    EXPECT(first_wrong(columns + row * 12, SEED, row * 24 + 8, 12) == 12);
  }
  const gpunvme_tensor_read middle = {.tensor = number_a, .dimension = GPUNVME_TENSOR_BYTES, .start = 5, .stop = 42, .address = (uintptr_t)b, .capacity = 37};
  EXPECT_CODE(GPUNVME_OK, gpunvme_weights_read(weights, &middle, 1));
  EXPECT(first_wrong(b, SEED, 5, 37) == 37);
  int32_t dimensions[2] = {-9, -9};
  EXPECT_CODE(GPUNVME_OK, gpunvme_weights_shards(weights, "a=1", 2, dimensions, 2));
  EXPECT(dimensions[number_a] == 1 && dimensions[number_b] == -1);
  dimensions[number_a] = 0;
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_weights_shards(weights, NULL, 3, dimensions, 2));
  EXPECT_CODE(GPUNVME_OK, gpunvme_weights_shards(weights, "rows", 3, dimensions, 2));
  EXPECT(dimensions[number_a] == -1 && dimensions[number_b] == -1);
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_weights_shards(weights, "rows", 3, dimensions, 1));
  EXPECT_CODE(GPUNVME_OK, gpunvme_weights_stats(weights, text, sizeof text, NULL));
  EXPECT(strstr(text, "\"read_bytes\"") != NULL);
  gpunvme_tensor_read wrong = reads[0];
  wrong.capacity = 95;
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_weights_read(weights, &wrong, 1));
  wrong = reads[0];
  wrong.tensor = 2;
  EXPECT_CODE(GPUNVME_ERROR_NOT_FOUND, gpunvme_weights_read(weights, &wrong, 1));
  wrong = reads[2];
  wrong.stop = 7;
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_weights_read(weights, &wrong, 1));
  EXPECT_CODE(GPUNVME_OK, gpunvme_weights_close(weights));
  EXPECT_CODE(GPUNVME_ERROR_CLOSED, gpunvme_weights_read(weights, reads, 1));
  FILE *damaged = fopen(file, "r+");
  fwrite("\xff\xff\xff\xff\xff\xff\xff\x7f", 8, 1, damaged);
  fclose(damaged);
  EXPECT_CODE(GPUNVME_ERROR_FORMAT, gpunvme_weights_open(file, accelerator(), &weights));
  EXPECT(weights == NULL);
  unlink(file);
  rmdir(path);
  EXPECT_CODE(GPUNVME_ERROR_NOT_FOUND, gpunvme_weights_open(file, accelerator(), &weights));
}

static void layers_are_made_of_tensors(void) {
  char path[300], file[320];
  temporary(path, sizeof path);
  gpunvme_weights *weights = NULL;
  gpunvme_layer_loader *loader = NULL;
  gpunvme_storage *storage = filled();
  uint64_t address = 0, bytes = 0;
  EXPECT(mkdtemp(path) != NULL);
  snprintf(file, sizeof file, "%s/model.safetensors", path);
  write_model(file);
  EXPECT_CODE(GPUNVME_OK, gpunvme_weights_open(file, accelerator(), &weights));
  EXPECT_CODE(GPUNVME_OK, gpunvme_weights_layer_loader_init(weights, 1024, 2, &loader));
  // "b" first, then columns 2 to 4 of "a"; the places of both leave room.
  const gpunvme_tensor_read both[] = {
      {.tensor = 1, .dimension = -1, .address = 0, .capacity = 100},
      {.tensor = 0, .dimension = 1, .start = 2, .stop = 5, .address = 256, .capacity = 48},
  };
  for (int i = 0; i < 3; i++) {
    EXPECT_CODE(GPUNVME_OK, gpunvme_prefetch_tensors(loader, "both", both, 2));
  }
  for (int i = 0; i < 2; i++) {
    EXPECT_CODE(GPUNVME_OK, gpunvme_next_layer(loader, NULL, &address, &bytes));
    EXPECT(bytes == 256 + 48);
    EXPECT(holds(storage, address, SEED, 96, 100));
    for (uint64_t row = 0; row < 4; row++) {
      EXPECT(holds(storage, address + 256 + row * 12, SEED, row * 24 + 8, 12));
    }
  }
  char stats[500];
  EXPECT_CODE(GPUNVME_OK, gpunvme_layer_loader_stats(loader, stats, sizeof stats, NULL));
  EXPECT(strstr(stats, "\"layers\":2,\"bytes\":608,\"read_seconds\":") != NULL);
  EXPECT(strstr(stats, "\"paths\":{\"") != NULL && strstr(stats, "\"mode\":\"") != NULL);
  EXPECT_CODE(GPUNVME_OK, gpunvme_cancel_layers(loader));
  EXPECT_CODE(GPUNVME_ERROR_NOT_FOUND, gpunvme_next_layer(loader, NULL, &address, &bytes));
  gpunvme_tensor_read wrong = both[0];
  wrong.address = 925;
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_prefetch_tensors(loader, "too long", &wrong, 1));
  EXPECT(strstr(gpunvme_last_error(), "too long") != NULL);
  wrong.address = UINT64_MAX;
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_prefetch_tensors(loader, "x", &wrong, 1));
  wrong.tensor = 2;
  EXPECT_CODE(GPUNVME_ERROR_NOT_FOUND, gpunvme_prefetch_tensors(loader, "x", &wrong, 1));
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_prefetch_tensors(loader, "empty", both, 0));
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_prefetch_tensors(loader, NULL, both, 1));
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_prefetch_layers(loader, &address, &bytes, 1));
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_load_layer(loader, 0, 8, address));
  EXPECT_CODE(GPUNVME_OK, gpunvme_weights_close(weights));
  EXPECT_CODE(GPUNVME_ERROR_CLOSED, gpunvme_next_layer(loader, NULL, &address, &bytes));
  EXPECT_CODE(GPUNVME_OK, gpunvme_layer_loader_destroy(loader));
  EXPECT_CODE(GPUNVME_OK, gpunvme_layer_loader_init(storage, 1024, 2, &loader));
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_prefetch_tensors(loader, "x", both, 1));
  EXPECT_CODE(GPUNVME_OK, gpunvme_close(storage));
  unlink(file);
  rmdir(path);
}

// A block of Q8_0 and a matrix of 3 times 5 bytes with a scale for each 2 times 2.
static void floats_are_made_of_tensors(void) {
  gpunvme_storage *storage = open_or_end("sim:size=1MiB", 0);
  uint8_t stored[128] = {0x00, 0x38}; // 0.5
  const float scales[6] = {1, 2, 3, -1, -2, 0.5f};
  float floats[47], expected[47];
  uint64_t source = 0, target = 0;
  for (int i = 0; i < 32; i++) {
    stored[2 + i] = (uint8_t)(i - 7);
  }
  for (int i = 0; i < 15; i++) {
    stored[64 + i] = (uint8_t)(3 * i - 20);
  }
  memcpy(stored + 96, scales, sizeof scales);
  EXPECT_CODE(GPUNVME_OK, gpunvme_allocate(storage, sizeof stored, &source));
  EXPECT_CODE(GPUNVME_OK, gpunvme_allocate(storage, sizeof floats, &target));
  EXPECT_CODE(GPUNVME_OK, gpunvme_copy_from_host(storage, source, stored, sizeof stored));
  const gpunvme_quantized both[] = {
      {.type = "Q8_0", .source = source, .target_type = "F32", .target = target, .rows = 1, .columns = 32},
      {.type = "I8", .source = source + 64, .target_type = "F32", .target = target + 128, .rows = 3, .columns = 5,
          .scales = source + 96, .block_rows = 2, .block_columns = 2},
  };
  EXPECT_CODE(GPUNVME_OK, gpunvme_dequantize(accelerator(), NULL, 0, NULL));
  EXPECT_CODE(GPUNVME_OK, gpunvme_dequantize(accelerator(), both, 2, NULL));
  for (int i = 0; i < 32; i++) {
    expected[i] = 0.5f * (float)(i - 7);
  }
  for (int i = 0; i < 15; i++) {
    expected[32 + i] = (float)(3 * i - 20) * scales[i / 5 / 2 * 3 + i % 5 / 2];
  }
  // On a GPU nothing of this program waits for a stream, which is CUDA's.
  for (int looks = strcmp(accelerator(), "cpu") == 0 ? 1 : 1000; looks > 0; looks--) {
    EXPECT_CODE(GPUNVME_OK, gpunvme_copy_to_host(storage, floats, target, sizeof floats));
    if (memcmp(floats, expected, sizeof floats) == 0) {
      break;
    }
    usleep(10000);
  }
  for (int i = 0; i < 47; i++) {
    EXPECT(floats[i] == expected[i]);
  }
  gpunvme_quantized wrong = both[0];
  wrong.columns = 33;
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_dequantize(accelerator(), &wrong, 1, NULL));
  wrong = both[0];
  wrong.type = NULL;
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_dequantize(accelerator(), &wrong, 1, NULL));
  wrong.type = "Q5_1";
  EXPECT_CODE(GPUNVME_ERROR_UNSUPPORTED, gpunvme_dequantize(accelerator(), &wrong, 1, NULL));
  EXPECT_ERROR("Q5_1");
  EXPECT_CODE(GPUNVME_OK, gpunvme_close(storage));
}

static void blocks_by_the_first_names(void) {
  nvme_gpu *gpu = nvme_gpu_init("sim:size=16MiB");
  uint8_t blocks[8 * 512], back[8 * 512] = {0}, later[8 * 512] = {0};
  EXPECT(gpu != NULL);
  fill(blocks, SEED, 0, sizeof blocks);
  EXPECT_CODE(GPUNVME_OK, nvme_gpu_write(gpu, 100, 8, blocks));
  EXPECT_CODE(GPUNVME_OK, nvme_gpu_read(gpu, 100, 8, back));
  EXPECT(memcmp(back, blocks, sizeof back) == 0);
  for (uint64_t i = 0; i < 8; i++) {
    EXPECT_CODE(GPUNVME_OK, nvme_gpu_read_async(gpu, 107 - i, 1, later + i * 512, NULL));
  }
  EXPECT_CODE(GPUNVME_OK, nvme_gpu_synchronize(gpu));
  for (uint64_t i = 0; i < 8; i++) {
    EXPECT(first_wrong(later + i * 512, SEED, (7 - i) * 512, 512) == 512);
  }
  EXPECT_CODE(GPUNVME_OK, nvme_gpu_write_async(gpu, 200, 8, blocks, NULL));
  EXPECT_CODE(GPUNVME_OK, nvme_gpu_synchronize(gpu));
  EXPECT_CODE(GPUNVME_OK, nvme_gpu_read(gpu, 200, 8, back));
  EXPECT(memcmp(back, blocks, sizeof back) == 0);
  nvme_read_request *request = nvme_read_request_create(gpu);
  EXPECT(request != NULL);
  EXPECT_CODE(GPUNVME_OK, nvme_read_request_add_kind(request, 3, 100, 8, 64));
  EXPECT_CODE(GPUNVME_OK, read_nvme_kind(request, 3, 5, 7, back));
  EXPECT(first_wrong(back, SEED, 5 * 64, 7 * 64) == 7 * 64);
  EXPECT_CODE(GPUNVME_ERROR_NOT_FOUND, read_nvme_kind(request, 4, 0, 1, back));
  nvme_read_request_destroy(request);
  EXPECT_CODE(GPUNVME_ERROR_INVALID, nvme_gpu_read(gpu, (16 << 20) / 512, 1, back));
  EXPECT_CODE(GPUNVME_ERROR_INVALID, nvme_gpu_read(gpu, UINT64_MAX / 2, 1, back));
  EXPECT_CODE(GPUNVME_ERROR_INVALID, nvme_gpu_read(gpu, 0, UINT64_MAX / 2, back));
  nvme_gpu_cleanup(gpu);
  EXPECT_CODE(GPUNVME_ERROR_CLOSED, nvme_gpu_read(gpu, 0, 1, back));
  EXPECT(nvme_gpu_init("/dev/no-such-nvme") == NULL);
  EXPECT_ERROR("/dev/no-such-nvme");
}

int main(void) {
  RUN(kinds_are_read_by_index);
  RUN(layers_come_in_their_order);
  RUN(layers_are_made_of_tensors);
  RUN(weights_are_read_and_sliced);
  RUN(floats_are_made_of_tensors);
  RUN(blocks_by_the_first_names);
  return check_failed_tests != 0;
}
