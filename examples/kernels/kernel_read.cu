// A kernel that reads an SSD by itself, with the C library: each of its threads chooses a block, reads it and adds up its words. The
// CPU does the same in its own memory and compares. The SSD is an embedded one, in memory of this process.
//
//   nvcc -std=c++17 -arch=native kernel_read.cu $(pkg-config --cflags --libs gpunvme) -o kernel_read
//
// Where gpunvme is built and not installed, the options are -I capi/include -I gpu/src/main/cuda -L capi/target -lgpunvme.
// Exit codes: 0 done and right, 1 failed. Needs a GPU.
#include <cuda_runtime.h>
#include <gpunvme.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "gpunvme/gpunvme.cuh"

struct Answer {
  uint64_t block;   // the block that this thread chose
  uint64_t sum;     // of its words
  uint64_t status;  // 0: it was read
};

constexpr uint32_t kThreads = 1024;
constexpr uint64_t kBlocks = 4096, kBlockBytes = 4096, kWords = kBlockBytes / 8;
constexpr uint64_t kLimit = 20'000'000'000;  // of the kernel, ns

// `data` has a block for each thread; it is registered under the number `buffer`, where it begins at `offset`.
__global__ void sum_blocks(const gpunvme::Storage* storage, uint32_t buffer, uint64_t offset, const uint64_t* data, Answer* answers) {
  uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x;
  const gpunvme::Namespace& ns = storage->namespaces[0];
  Answer a = {thread * 2654435761ull % ns.blocks, 0, 0};
  uint64_t place = static_cast<uint64_t>(thread) << ns.block_shift;
  a.status = gpunvme::read(ns, storage->queue(ns, thread / 32), a.block, 1, storage->buffer(buffer, 0), offset + place);
  if (a.status == gpunvme::status::kSuccess) {
    for (uint64_t i = 0; i < kWords; i++) {
      a.sum += data[thread * kWords + i];
    }
  }
  answers[thread] = a;
}

static void nvme(int code) {
  if (code < 0) {
    fprintf(stderr, "%s\n", gpunvme_last_error());
    exit(1);
  }
}

static void cuda(cudaError_t code) {
  if (code != cudaSuccess) {
    fprintf(stderr, "CUDA: %s\n", cudaGetErrorString(code));
    exit(1);
  }
}

int main() {
  gpunvme_storage* storage;
  nvme(gpunvme_open("sim:size=16MiB,lba=4096,latency=0", "gpu", GPUNVME_WRITE, &storage));
  std::vector<uint64_t> contents(kBlocks * kWords);
  std::mt19937_64 random(1);
  for (uint64_t& word : contents) {
    word = random();
  }
  nvme(gpunvme_write(storage, 0, reinterpret_cast<uintptr_t>(contents.data()), kBlocks * kBlockBytes));

  uint64_t* data;
  Answer* answers;
  cudaStream_t stream;
  cuda(cudaMalloc(&data, kThreads * kBlockBytes));
  cuda(cudaMalloc(&answers, kThreads * sizeof(Answer)));
  cuda(cudaStreamCreate(&stream));

  gpunvme_kernel_storage* kernels;
  uint32_t buffer;
  uint64_t offset, handle;
  nvme(gpunvme_kernel_storage_open(&storage, 1, nullptr, &kernels));
  nvme(gpunvme_kernel_storage_register(kernels, reinterpret_cast<uintptr_t>(data), kThreads * kBlockBytes, &buffer, &offset));
  nvme(gpunvme_kernel_storage_device_handle(kernels, &handle));
  sum_blocks<<<kThreads / 128, 128, 0, stream>>>(reinterpret_cast<const gpunvme::Storage*>(handle), buffer, offset, data, answers);
  cuda(cudaGetLastError());
  nvme(gpunvme_kernel_storage_await(kernels, stream, kLimit, nullptr, nullptr));

  std::vector<Answer> told(kThreads);
  cuda(cudaMemcpy(told.data(), answers, kThreads * sizeof(Answer), cudaMemcpyDeviceToHost));
  for (uint32_t thread = 0; thread < kThreads; thread++) {
    uint64_t block = thread * 2654435761ull % kBlocks, sum = 0;
    for (uint64_t i = 0; i < kWords; i++) {
      sum += contents[block * kWords + i];
    }
    const Answer& a = told[thread];
    if (a.status != 0 || a.block != block || a.sum != sum) {
      fprintf(stderr, "thread %u: status 0x%llx, block %llu; the CPU came to another sum\n", thread, static_cast<unsigned long long>(a.status),
              static_cast<unsigned long long>(a.block));
      return 1;
    }
  }
  nvme(gpunvme_kernel_storage_close(kernels));
  nvme(gpunvme_close(storage));
  cuda(cudaFree(data));
  cuda(cudaFree(answers));
  printf("%u threads read, all sums are right\n", kThreads);
}
