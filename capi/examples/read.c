// Reads the beginning of a file or device to the accelerator, and prints its first bytes.
//
//   read URI [BYTES]      read /data/model.bin; read sim:size=16MiB 1000000
//
// cc read.c $(pkg-config --cflags --libs gpunvme)
#include <gpunvme.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static int failed(const char *what) {
  fprintf(stderr, "%s: %s\n", what, gpunvme_last_error());
  return 1;
}

int main(int count, char **arguments) {
  if (count < 2) {
    fprintf(stderr, "read URI [BYTES]\n");
    return 2;
  }
  gpunvme_storage *storage;
  if (gpunvme_open(arguments[1], "auto", 0, &storage) < 0) {
    return failed("open");
  }
  gpunvme_info info;
  if (gpunvme_get_info(storage, &info) < 0) {
    return failed("info");
  }
  uint64_t bytes = count > 2 ? strtoull(arguments[2], NULL, 10) : info.size;

  // A program that uses CUDA has memory of cudaMalloc instead, and gives its address.
  uint64_t address;
  if (gpunvme_allocate(storage, bytes, &address) < 0) {
    return failed("allocate");
  }
  if (gpunvme_read(storage, 0, address, bytes) < 0) {
    return failed("read");
  }

  uint8_t first[16] = {0};
  uint64_t shown = bytes < sizeof first ? bytes : sizeof first;
  if (gpunvme_copy_to_host(storage, first, address, shown) < 0) {
    return failed("copy");
  }
  printf("%" PRIu64 " of %" PRIu64 " bytes are in memory of the %s, beginning with", bytes, info.size,
      info.gpu ? "GPU" : "CPU");
  for (uint64_t i = 0; i < shown; i++) {
    printf(" %02x", first[i]);
  }
  printf("\n");
  return gpunvme_close(storage) < 0 ? failed("close") : 0; // frees the memory, too
}
