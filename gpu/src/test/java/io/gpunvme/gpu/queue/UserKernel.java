package io.gpunvme.gpu.queue;

/** A kernel as users write them: every thread reads, checks and writes blocks of its own choice. */
final class UserKernel {
  /**
   * Thread t of n: for each round, reads range (t * 37 + round * 101) mod ranges, {@code span}
   * blocks each, of SSD (t mod namespaces) into its own place of buffer 0, compares the first word
   * of each block with what is expected, and writes the range to the same place of the upper half
   * of the namespace. {@code copy_blocks_served} does the same on SSD 0, with a block before the
   * others that serves; behind the results is the number of threads.
   *
   * <p>{@code read_ranges} reads ranges of a file to a buffer; buffer 1 has a scratch block for
   * each thread. {@code call_set} does reads, writes and flushes of a set; {@code call_set_served}
   * does the same, with a block for each SSD before the others that serves it; behind the calls is
   * the number of threads.
   */
  static final String SOURCE =
      """
      #include "gpunvme/gpunvme.cuh"
      using namespace gpunvme;

      struct Result {
        u32 reads;
        u32 wrong;
        Status last;
        u32 reserved;
      };

      template <bool kHelps>
      __device__ void copy(const Storage* storage, CallersQueue<kHelps> queue, Result* results, u32 thread, u32 ssd,
                           u32 rounds, u32 span) {
        const Namespace& ns = storage->namespaces[ssd];
        const Buffer& buffer = storage->buffer(0, ssd);
        u64 offset = static_cast<u64>(thread) * span << ns.block_shift;
        u64 half = ns.blocks / 2;
        Result r = {0, 0, status::kSuccess, 0};
        for (u32 round = 0; round < rounds; round++) {
          u64 block = (thread * 37ull + round * 101ull) % (half / span) * span;
          Status s = read(ns, queue, block, span, buffer, offset);
          if (!failed(s)) {
            for (u32 i = 0; i < span; i++) {
              const char* at = static_cast<char*>(buffer.memory) + offset + (static_cast<u64>(i) << ns.block_shift);
              r.wrong += *reinterpret_cast<const volatile u32*>(at) != (block + i) * 3 + ssd;
            }
            s = write(ns, queue, half + block, span, buffer, offset);
          }
          if (failed(s)) {
            r.last = s;
            break;
          }
          r.reads++;
        }
        results[thread] = r;
      }

      extern "C" __global__ void copy_blocks(const Storage* storage, Result* results, u32 threads, u32 rounds,
                                             u32 span) {
        u32 thread = blockIdx.x * blockDim.x + threadIdx.x;
        if (thread < threads) {
          u32 ssd = thread % storage->namespace_count;
          copy(storage, storage->queue(storage->namespaces[ssd], thread), results, thread, ssd, rounds, span);
        }
      }

      struct FileRead {
        u64 offset;
        u64 bytes;
        u64 to;
        u32 buffer;
        Status status;
      };

      extern "C" __global__ void read_ranges(const Storage* storage, const DeviceFile* file, FileRead* reads, u32 count,
                                             u32 threads) {
        u32 thread = blockIdx.x * blockDim.x + threadIdx.x;
        for (u32 i = thread; thread < threads && i < count; i += threads) {
          FileRead r = reads[i];
          reads[i].status = read_file(storage->queues(thread), *file, r.offset, r.bytes, {r.buffer, r.to},
                                      {1, static_cast<u64>(thread) << file->set.block_shift});
        }
      }

      struct SetCall {
        u64 block;
        u64 blocks;
        u64 at;
        u32 buffer;
        u32 call;
        Status status;
        u32 reserved;
      };

      template <bool kHelps>
      __device__ void call(CallersQueues<kHelps> queues, const DeviceSet& set, SetCall* calls, u32 count, u32 thread,
                           u32 threads) {
        for (u32 i = thread; i < count; i += threads) {
          SetCall c = calls[i];
          Place place = {c.buffer, c.at};
          calls[i].status = c.call == 0   ? read(queues, set, c.block, c.blocks, place)
                            : c.call == 1 ? write(queues, set, c.block, c.blocks, place)
                            : c.call == 2 ? read_one(queues, set, c.block, c.blocks, place)
                                          : flush(queues, set);
        }
      }

      extern "C" __global__ void call_set(const Storage* storage, const DeviceSet* set, SetCall* calls, u32 count,
                                          u32 threads) {
        u32 thread = blockIdx.x * blockDim.x + threadIdx.x;
        if (thread < threads) {
          call(storage->queues(thread), *set, calls, count, thread, threads);
        }
      }

      extern "C" __global__ void call_set_served(const Storage* storage, const DeviceSet* set, SetCall* calls, u32 count,
                                                 u32 threads) {
        u32* callers = reinterpret_cast<u32*>(calls + count);
        if (blockIdx.x < storage->namespace_count) {
          serve(*storage, storage->namespaces[blockIdx.x], threadIdx.x / warp::kWidth,
                (blockDim.x + warp::kWidth - 1) / warp::kWidth, callers);
          return;
        }
        u32 thread = (blockIdx.x - storage->namespace_count) * blockDim.x + threadIdx.x;
        if (thread < threads) {
          call(storage->served_queues(thread), *set, calls, count, thread, threads);
          leave(callers);
        }
      }

      extern "C" __global__ void copy_blocks_served(const Storage* storage, Result* results, u32 threads, u32 rounds,
                                                    u32 span) {
        const Namespace& ns = storage->namespaces[0];
        u32* callers = reinterpret_cast<u32*>(results + threads);
        if (blockIdx.x == 0) {
          serve(*storage, ns, threadIdx.x / warp::kWidth, (blockDim.x + warp::kWidth - 1) / warp::kWidth, callers);
          return;
        }
        u32 thread = (blockIdx.x - 1) * blockDim.x + threadIdx.x;
        if (thread < threads) {
          copy(storage, storage->served_queue(ns, thread), results, thread, 0, rounds, span);
          leave(callers);
        }
      }
      """;

  /** Bytes of a {@code FileRead}. */
  static final long FILE_READ_BYTES = 32;

  /** Bytes of a {@code SetCall}. */
  static final long SET_CALL_BYTES = 40;

  /** Bytes of a {@code Result}. */
  static final long RESULT_BYTES = 16;

  private UserKernel() {}
}
