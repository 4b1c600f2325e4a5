// The calls of the first proposals: a device in logical blocks, and kinds of elements by index.
//
//   blocks DEVICE         blocks sim:size=16MiB; blocks /dev/nvme0n1
#include <gpunvme.h>
#include <stdio.h>

enum { BLOCKS = 1024, BLOCK = 512 };

static char buffer[BLOCKS * BLOCK]; // or memory of cudaMalloc

int main(int count, char **arguments) {
  nvme_gpu *gpu = count == 2 ? nvme_gpu_init(arguments[1]) : NULL;
  if (gpu == NULL) {
    fprintf(stderr, "blocks DEVICE\n%s\n", gpunvme_last_error());
    return 2;
  }
  // Read 1024 blocks from block 0 on, and wait.
  int code = nvme_gpu_read(gpu, 0, BLOCKS, buffer);

  // The same in two halves without waiting.
  if (code >= 0) {
    code = nvme_gpu_read_async(gpu, 0, BLOCKS / 2, buffer, NULL);
  }
  if (code >= 0) {
    code = nvme_gpu_read_async(gpu, BLOCKS / 2, BLOCKS / 2, buffer + BLOCKS / 2 * BLOCK, NULL);
  }
  if (code >= 0) {
    code = nvme_gpu_synchronize(gpu);
  }

  // Kind 3: elements of 64 bytes from block 16 on. Ten of them, from the fifth on.
  nvme_read_request *request = code < 0 ? NULL : nvme_read_request_create(gpu);
  if (request != NULL) {
    code = nvme_read_request_add_kind(request, 3, 16, 128, 64);
    if (code >= 0) {
      code = read_nvme_kind(request, 3, 5, 10, buffer);
    }
    nvme_read_request_destroy(request);
  }
  if (code < 0 || request == NULL) {
    fprintf(stderr, "%s\n", gpunvme_last_error());
  } else {
    printf("read %d blocks and 10 elements\n", BLOCKS);
  }
  nvme_gpu_cleanup(gpu);
  return code < 0 || request == NULL;
}
