// Memory and streams of the CUDA runtime, in a process that used it before: for machines with a GPU.
#include <cuda.h>
#include <cuda_runtime_api.h>

#include "device.h"

#define SIZE ((uint64_t)32 << 20)
#define SEED 13

static gpunvme_storage *storage;

#define CUDA(call)                                                                        \
  do {                                                                                    \
    cudaError_t code_ = (call);                                                           \
    if (code_ != cudaSuccess) {                                                           \
      printf("  %s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(code_)); \
      check_failures++;                                                                   \
    }                                                                                     \
  } while (0)

// A function of the driver, which this program is not linked with.
static void *driver(const char *name) {
  void *function = NULL;
  enum cudaDriverEntryPointQueryResult found;
  // As of that version: later ones of some take other arguments.
  CUDA(cudaGetDriverEntryPointByVersion(name, &function, strncmp(name, "cuMem", 5) == 0 ? 12000 : 4000, cudaEnableDefault, &found));
  EXPECT(function != NULL && found == cudaDriverEntryPointSuccess);
  return function;
}

static int arrived(const void *device, uint64_t offset, uint64_t bytes) {
  uint8_t *host = calloc(1, bytes);
  CUDA(cudaMemcpy(host, device, bytes, cudaMemcpyDefault));
  uint64_t wrong = first_wrong(host, SEED, offset, bytes);
  free(host);
  if (wrong < bytes) {
    printf("  byte %" PRIu64 " of %" PRIu64 " is wrong\n", wrong, bytes);
  }
  return wrong == bytes;
}

static void reads_into(void *device, uint64_t offset, uint64_t bytes) {
  void *zeros = calloc(1, bytes);
  CUDA(cudaMemcpy(device, zeros, bytes, cudaMemcpyDefault));
  CUDA(cudaDeviceSynchronize());
  free(zeros);
  EXPECT_CODE(GPUNVME_OK, gpunvme_read(storage, offset, (uintptr_t)device, bytes));
  EXPECT(arrived(device, offset, bytes));
}

static void memory_of_before_and_after(void) {
  uint8_t *before = NULL, *after = NULL;
  CUDA(cudaMalloc((void **)&before, 5000000));
  CUDA(cudaMemset(before, 1, 5000000));
  storage = open_or_end("sim:size=32MiB", GPUNVME_WRITE);
  fill_device(storage, SEED, SIZE);
  CUDA(cudaMalloc((void **)&after, 5000000));
  reads_into(before, 0, 5000000);
  reads_into(after, 777, 4999999);
  reads_into(after + 12345, 5, 70001);
  CUDA(cudaFree(before));
  CUDA(cudaFree(after));
}

// The driver gives addresses out again, for longer and shorter memory.
static void addresses_come_back(void) {
  uint64_t random = SEED;
  for (int i = 0; i < 100; i++) {
    uint64_t bytes = (next_random(&random) % 9 + 1) << 20;
    uint8_t *memory = NULL;
    CUDA(cudaMalloc((void **)&memory, bytes));
    reads_into(memory, next_random(&random) % (SIZE - bytes), bytes);
    CUDA(cudaFree(memory));
  }
}

static void memory_of_a_pool(void) {
  cudaStream_t stream;
  CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  for (int i = 0; i < 10; i++) {
    uint8_t *memory = NULL;
    CUDA(cudaMallocAsync((void **)&memory, 3000000, stream));
    CUDA(cudaStreamSynchronize(stream));
    reads_into(memory + i, 99, 2999990);
    CUDA(cudaFreeAsync(memory, stream));
  }
  CUDA(cudaStreamSynchronize(stream));
  CUDA(cudaStreamDestroy(stream));
}

// What PyTorch's expandable segments are made of: a row of pieces, each mapped by itself.
static void memory_mapped_piece_by_piece(void) {
  enum { PIECES = 3 };
  const uint64_t piece = (uint64_t)2 << 20;
  CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
  CUmemAccessDesc access = {.location = properties.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUresult (*reserve)(CUdeviceptr *, size_t, size_t, CUdeviceptr, unsigned long long) = driver("cuMemAddressReserve");
  CUresult (*create)(CUmemGenericAllocationHandle *, size_t, const CUmemAllocationProp *, unsigned long long) = driver("cuMemCreate");
  CUresult (*map)(CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long) = driver("cuMemMap");
  CUresult (*set_access)(CUdeviceptr, size_t, const CUmemAccessDesc *, size_t) = driver("cuMemSetAccess");
  CUresult (*unmap)(CUdeviceptr, size_t) = driver("cuMemUnmap");
  CUresult (*release)(CUmemGenericAllocationHandle) = driver("cuMemRelease");
  CUresult (*give_back)(CUdeviceptr, size_t) = driver("cuMemAddressFree");
  CUdeviceptr row = 0;
  EXPECT(reserve(&row, PIECES * piece, 0, 0, 0) == CUDA_SUCCESS);
  for (int i = 0; i < PIECES; i++) {
    CUmemGenericAllocationHandle handle;
    EXPECT(create(&handle, piece, &properties, 0) == CUDA_SUCCESS);
    EXPECT(map(row + i * piece, piece, 0, handle, 0) == CUDA_SUCCESS);
    EXPECT(release(handle) == CUDA_SUCCESS);
  }
  EXPECT(set_access(row, PIECES * piece, &access, 1) == CUDA_SUCCESS);
  reads_into((void *)(uintptr_t)row, 1000, piece);
  reads_into((void *)(uintptr_t)(row + piece + 4096), 1000, 100000);
  reads_into((void *)(uintptr_t)row, 4711, PIECES * piece); // across their borders
  // A part of it goes, and comes back as other memory.
  EXPECT(unmap(row + piece, piece) == CUDA_SUCCESS);
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_read(storage, 0, row + piece - 512, 1024));
  reads_into((void *)(uintptr_t)row, 99, piece);
  CUmemGenericAllocationHandle other;
  EXPECT(create(&other, piece, &properties, 0) == CUDA_SUCCESS);
  EXPECT(map(row + piece, piece, 0, other, 0) == CUDA_SUCCESS && release(other) == CUDA_SUCCESS);
  EXPECT(set_access(row + piece, piece, &access, 1) == CUDA_SUCCESS);
  reads_into((void *)(uintptr_t)row, 4712, PIECES * piece);
  EXPECT(unmap(row, PIECES * piece) == CUDA_SUCCESS);
  EXPECT(give_back(row, PIECES * piece) == CUDA_SUCCESS);
}

static void host_memory_of_every_kind(void) {
  uint8_t *pinned = NULL, *plain = aligned_alloc(4096, 1 << 20);
  CUDA(cudaMallocHost((void **)&pinned, 1 << 20));
  CUDA(cudaHostRegister(plain, 1 << 20, cudaHostRegisterDefault));
  reads_into(pinned, 31, (1 << 20) - 100);
  reads_into(plain + 5, 33, (1 << 20) - 100);
  CUDA(cudaHostUnregister(plain));
  reads_into(plain, 34, 1 << 20);
  CUDA(cudaFreeHost(pinned));
  free(plain);
}

static void managed_memory(void) {
  uint8_t *managed = NULL;
  CUDA(cudaMallocManaged((void **)&managed, 1 << 20, cudaMemAttachGlobal));
  reads_into(managed, 35, 1 << 20);
  memset(managed, 7, 1 << 20); // by the CPU: its pages move
  reads_into(managed, 36, 1 << 20);
  CUDA(cudaFree(managed));
}

static void work_of_a_stream_keeps_its_order(void) {
  cudaStream_t stream;
  uint8_t *into, *copies[20];
  gpunvme_request *requests[20];
  const uint64_t bytes = 3 << 20;
  CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CUDA(cudaMalloc((void **)&into, bytes));
  for (int i = 0; i < 20; i++) {
    CUDA(cudaMalloc((void **)&copies[i], bytes));
  }
  for (int i = 0; i < 20; i++) {
    CUDA(cudaMemsetAsync(into, i, bytes, stream));
    EXPECT_CODE(GPUNVME_OK, gpunvme_submit_read_on_stream(storage, 100 * i, (uintptr_t)into, bytes, stream, &requests[i]));
    CUDA(cudaMemcpyAsync(copies[i], into, bytes, cudaMemcpyDeviceToDevice, stream));
  }
  CUDA(cudaStreamSynchronize(stream));
  for (int i = 0; i < 20; i++) {
    EXPECT_CODE(GPUNVME_OK, gpunvme_poll(requests[i]));
    EXPECT_CODE(GPUNVME_OK, gpunvme_request_free(requests[i]));
    EXPECT(arrived(copies[i], 100 * i, bytes));
    CUDA(cudaFree(copies[i]));
  }
  // Written is what the stream put there before.
  CUDA(cudaMemsetAsync(into, 42, 4096, stream));
  EXPECT_CODE(GPUNVME_OK, gpunvme_submit_write_on_stream(storage, SIZE - 4096, (uintptr_t)into, 4096, stream, &requests[0]));
  CUDA(cudaMemsetAsync(into, 43, 4096, stream));
  EXPECT_CODE(GPUNVME_OK, gpunvme_wait(requests[0], UINT64_MAX));
  EXPECT_CODE(GPUNVME_OK, gpunvme_request_free(requests[0]));
  uint8_t back[4096];
  EXPECT_CODE(GPUNVME_OK, gpunvme_read(storage, SIZE - 4096, (uintptr_t)back, sizeof back));
  EXPECT(back[0] == 42 && memcmp(back, back + 1, sizeof back - 1) == 0);
  fill(back, SEED, SIZE - 4096, sizeof back);
  EXPECT_CODE(GPUNVME_OK, gpunvme_write(storage, SIZE - 4096, (uintptr_t)back, sizeof back));
  CUDA(cudaStreamSynchronize(stream));
  CUDA(cudaFree(into));
  CUDA(cudaStreamDestroy(stream));
}

static void the_first_proposals_calls_with_a_stream(void) {
  setenv("GPUNVME_ACCELERATOR", "gpu", 1);
  nvme_gpu *gpu = nvme_gpu_init("sim:size=8MiB");
  cudaStream_t stream;
  uint8_t *memory, *copy;
  CUDA(cudaStreamCreate(&stream));
  CUDA(cudaMalloc((void **)&memory, 1 << 20));
  CUDA(cudaMalloc((void **)&copy, 1 << 20));
  CUDA(cudaMemsetAsync(memory, 3, 1 << 20, stream));
  EXPECT_CODE(GPUNVME_OK, nvme_gpu_write_async(gpu, 100, 2048, memory, stream));
  CUDA(cudaMemsetAsync(memory, 4, 1 << 20, stream));
  EXPECT_CODE(GPUNVME_OK, nvme_gpu_read_async(gpu, 100, 2048, memory, stream));
  CUDA(cudaMemcpyAsync(copy, memory, 1 << 20, cudaMemcpyDeviceToDevice, stream));
  CUDA(cudaStreamSynchronize(stream));
  EXPECT_CODE(GPUNVME_OK, nvme_gpu_synchronize(gpu));
  uint8_t *host = malloc(1 << 20);
  CUDA(cudaMemcpy(host, copy, 1 << 20, cudaMemcpyDeviceToHost));
  EXPECT(host[0] == 3 && memcmp(host, host + 1, (1 << 20) - 1) == 0);
  free(host);
  nvme_gpu_cleanup(gpu);
  CUDA(cudaFree(memory));
  CUDA(cudaFree(copy));
  CUDA(cudaStreamDestroy(stream));
}

// The slots of a loader are used again when the stream has come so far, the default stream too.
static void layers_in_the_order_of_a_stream(void) {
  enum { COUNT = 24 };
  const uint64_t length = 1 << 20;
  cudaStream_t own;
  CUDA(cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking));
  for (int round = 0; round < 2; round++) {
    cudaStream_t stream = round == 0 ? own : cudaStreamLegacy;
    uint8_t *copies;
    uint64_t offsets[COUNT], lengths[COUNT], address, bytes;
    gpunvme_layer_loader *loader;
    CUDA(cudaMalloc((void **)&copies, COUNT * length));
    EXPECT_CODE(GPUNVME_OK, gpunvme_layer_loader_init(storage, length, 3, &loader));
    for (uint64_t i = 0; i < COUNT; i++) {
      offsets[i] = i * 1000003;
      lengths[i] = length - i;
    }
    EXPECT_CODE(GPUNVME_OK, gpunvme_prefetch_layers(loader, offsets, lengths, COUNT));
    for (uint64_t i = 0; i < COUNT; i++) {
      EXPECT_CODE(GPUNVME_OK, gpunvme_next_layer(loader, stream, &address, &bytes));
      EXPECT(bytes == lengths[i]);
      CUDA(cudaMemcpyAsync(copies + i * length, (void *)(uintptr_t)address, bytes, cudaMemcpyDeviceToDevice, stream));
    }
    EXPECT_CODE(GPUNVME_ERROR_NOT_FOUND, gpunvme_next_layer(loader, stream, &address, &bytes));
    CUDA(cudaStreamSynchronize(stream));
    for (uint64_t i = 0; i < COUNT; i++) {
      EXPECT(arrived(copies + i * length, offsets[i], lengths[i]));
    }
    EXPECT_CODE(GPUNVME_OK, gpunvme_layer_loader_destroy(loader));
    CUDA(cudaFree(copies));
  }
  CUDA(cudaStreamDestroy(own));
}

// Floats are made behind the work of the stream before, and before that after it; nobody waits.
static void floats_in_the_order_of_a_stream(void) {
  enum { ROWS = 1000, COLUMNS = 777 };
  const uint64_t elements = (uint64_t)ROWS * COLUMNS;
  int8_t *source = NULL, *bytes = malloc(elements);
  float *target = NULL, *copy = NULL, *scales = NULL, *floats = malloc(elements * sizeof *floats);
  float factors[ROWS];
  cudaStream_t stream;
  CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CUDA(cudaMalloc((void **)&source, elements));
  CUDA(cudaMalloc((void **)&target, elements * sizeof *target));
  CUDA(cudaMalloc((void **)&copy, elements * sizeof *copy));
  CUDA(cudaMalloc((void **)&scales, sizeof factors));
  fill((uint8_t *)bytes, SEED, 0, elements);
  for (int i = 0; i < ROWS; i++) {
    factors[i] = (float)i / 7;
  }
  const gpunvme_quantized tensor = {.type = "I8", .source = (uintptr_t)source, .target_type = "F32",
      .target = (uintptr_t)target, .rows = ROWS, .columns = COLUMNS, .scales = (uintptr_t)scales, .block_rows = 1,
      .block_columns = COLUMNS};
  EXPECT_CODE(GPUNVME_OK, gpunvme_dequantize("gpu", NULL, 0, NULL));
  CUDA(cudaMemcpyAsync(scales, factors, sizeof factors, cudaMemcpyHostToDevice, stream));
  CUDA(cudaMemcpyAsync(source, bytes, elements, cudaMemcpyHostToDevice, stream));
  EXPECT_CODE(GPUNVME_OK, gpunvme_dequantize("gpu", &tensor, 1, stream));
  CUDA(cudaMemcpyAsync(copy, target, elements * sizeof *copy, cudaMemcpyDeviceToDevice, stream));
  CUDA(cudaMemsetAsync(target, 0xff, elements * sizeof *target, stream));
  CUDA(cudaStreamSynchronize(stream));
  CUDA(cudaMemcpy(floats, copy, elements * sizeof *floats, cudaMemcpyDeviceToHost));
  uint64_t right = 0;
  while (right < elements && floats[right] == (float)bytes[right] * factors[right / COLUMNS]) {
    right++;
  }
  EXPECT(right == elements);
  // The default stream waits for copies by itself.
  EXPECT_CODE(GPUNVME_OK, gpunvme_dequantize("gpu", &tensor, 1, NULL));
  CUDA(cudaMemcpy(floats, target, elements * sizeof *floats, cudaMemcpyDeviceToHost));
  EXPECT(floats[elements - 1] == (float)bytes[elements - 1] * factors[ROWS - 1]);
  gpunvme_quantized wrong = tensor;
  wrong.source = (uintptr_t)bytes;
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_dequantize("gpu", &wrong, 1, stream));
  EXPECT_ERROR("not memory of the GPU");
  wrong = tensor;
  wrong.rows = 1 << 20;
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_dequantize("gpu", &wrong, 1, stream));
  CUDA(cudaStreamDestroy(stream));
  CUDA(cudaFree(source));
  CUDA(cudaFree(target));
  CUDA(cudaFree(copy));
  CUDA(cudaFree(scales));
  free(bytes);
  free(floats);
}

static void a_layer_that_cannot_be_read_is_told(void) {
  enum { COUNT = 5, BAD = 2 };
  gpunvme_storage *bad = open_or_end("sim:size=16MiB,faults=status=media/unrecovered-read on read lba=4096..4100", 0);
  for (int last = 0; last < 2; last++) {
    uint64_t offsets[COUNT], lengths[COUNT], address, bytes;
    int count = last ? BAD + 1 : COUNT, failures = 0, taken = 0, code;
    gpunvme_layer_loader *loader;
    cudaStream_t stream;
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    EXPECT_CODE(GPUNVME_OK, gpunvme_layer_loader_init(bad, 1 << 20, 3, &loader));
    for (uint64_t i = 0; i < COUNT; i++) {
      offsets[i] = i << 20;
      lengths[i] = 1 << 20;
    }
    EXPECT_CODE(GPUNVME_OK, gpunvme_prefetch_layers(loader, offsets, lengths, (size_t)count));
    // The bad one either fails at once, or is given to the stream and fails at the next call.
    for (int calls = 0; (code = gpunvme_next_layer(loader, stream, &address, &bytes)) != GPUNVME_ERROR_NOT_FOUND && calls < 20; calls++) {
      failures += code < 0;
      taken += code == GPUNVME_OK;
      EXPECT(code == GPUNVME_OK || code == GPUNVME_ERROR_IO);
    }
    EXPECT(failures == 1 && (taken == count || taken == count - 1));
    EXPECT_CODE(GPUNVME_OK, gpunvme_layer_loader_destroy(loader));
    CUDA(cudaStreamSynchronize(stream));
    CUDA(cudaStreamDestroy(stream));
  }
  EXPECT_CODE(GPUNVME_OK, gpunvme_close(bad));
}

// Reads of a program leave its device and context as they were.
static void the_context_of_the_caller_stays(void) {
  CUresult (*current)(CUcontext *) = driver("cuCtxGetCurrent");
  CUresult (*set)(CUcontext) = driver("cuCtxSetCurrent");
  CUcontext before = NULL, after = NULL;
  uint8_t *memory = NULL;
  CUDA(cudaMalloc((void **)&memory, 4096));
  EXPECT(current(&before) == CUDA_SUCCESS && before != NULL);
  EXPECT(set(NULL) == CUDA_SUCCESS);
  EXPECT_CODE(GPUNVME_OK, gpunvme_read(storage, 0, (uintptr_t)memory, 4096));
  EXPECT(current(&after) == CUDA_SUCCESS && after == NULL);
  EXPECT(set(before) == CUDA_SUCCESS);
  EXPECT(arrived(memory, 0, 4096));
  CUDA(cudaFree(memory));
}

// Another context's memory is none of the primary one's: told, never written to by accident.
static void memory_of_another_context_is_refused(void) {
  CUresult (*create)(CUcontext *, unsigned, CUdevice) = driver("cuCtxCreate");
  CUresult (*destroy)(CUcontext) = driver("cuCtxDestroy");
  CUresult (*pop)(CUcontext *) = driver("cuCtxPopCurrent");
  CUresult (*allocate)(CUdeviceptr *, size_t) = driver("cuMemAlloc");
  CUcontext other = NULL, popped = NULL;
  CUdeviceptr memory = 0;
  int code = create(&other, 0, 0);
  EXPECT(code == CUDA_SUCCESS);
  if (code != CUDA_SUCCESS) {
    printf("  cuCtxCreate: %d\n", code);
    return;
  }
  EXPECT(allocate(&memory, 1 << 20) == CUDA_SUCCESS);
  EXPECT(pop(&popped) == CUDA_SUCCESS && popped == other);
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_read(storage, 0, memory, 4096));
  EXPECT_ERROR("context");
  EXPECT(destroy(other) == CUDA_SUCCESS);
}

static void ranges_outside_their_memory_are_refused(void) {
  uint8_t *memory = NULL;
  CUDA(cudaMalloc((void **)&memory, 4 << 20));
  EXPECT_CODE(GPUNVME_ERROR_INVALID, gpunvme_read(storage, 0, (uintptr_t)memory + (4 << 20) - 10, 11));
  EXPECT_CODE(GPUNVME_OK, gpunvme_read(storage, 0, (uintptr_t)memory + (4 << 20) - 10, 10));
  CUDA(cudaFree(memory));
}

int main(void) {
  alarm(240); // against hangs
  setenv("GPUNVME_TEST_ACCELERATOR", "gpu", 1);
  RUN(memory_of_before_and_after);
  RUN(addresses_come_back);
  RUN(memory_of_a_pool);
  RUN(memory_mapped_piece_by_piece);
  RUN(host_memory_of_every_kind);
  RUN(managed_memory);
  RUN(ranges_outside_their_memory_are_refused);
  RUN(work_of_a_stream_keeps_its_order);
  RUN(the_first_proposals_calls_with_a_stream);
  RUN(layers_in_the_order_of_a_stream);
  RUN(floats_in_the_order_of_a_stream);
  RUN(a_layer_that_cannot_be_read_is_told);
  RUN(the_context_of_the_caller_stays);
  RUN(memory_of_another_context_is_refused);
  EXPECT_CODE(GPUNVME_OK, gpunvme_close(storage));
  CUDA(cudaDeviceSynchronize()); // the primary context is there still
  return check_failed_tests != 0;
}
