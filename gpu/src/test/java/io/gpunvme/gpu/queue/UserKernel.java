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
   *
   * <p>{@code read_together} has a block for each read of a set or file, by its first warp or all
   * of it; each thread says its status and what it sees. {@code look_up} finds files of a directory
   * by their paths or numbers, and reads a range of each; buffer 1 has a scratch block for each
   * thread.
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
                                      {1, static_cast<u64>(thread) << file->set->block_shift});
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

      struct Together {
        u64 first;
        u64 count;
        u64 to;
        u32 file;
        u32 whole_block;
      };

      struct Seen {
        Status status;
        u32 sum;
      };

      // Of all blocks, or bytes, that the thread was told are there.
      __device__ u32 sum_of(const char* at, u64 bytes) {
        u32 sum = 1;
        for (u64 i = 0; i < bytes; i++) {
          sum = sum * 31 + static_cast<u8>(at[i]);
        }
        return sum;
      }

      extern "C" __global__ void read_together(const Storage* storage, const DeviceFile* file, const Together* reads, Seen* seen) {
        Together r = reads[blockIdx.x];
        u32 thread = block::index() * warp::kWidth + warp::lane();
        u32 threads = block::warps() * warp::kWidth;
        if (r.whole_block == 0 && block::index() != 0) {
          return;
        }
        // Each block has scratch of its own.
        Place scratch = {1, static_cast<u64>(blockIdx.x) * threads << file->set->block_shift};
        Place to = {0, r.to};
        SharedQueues queues = storage->queues(blockIdx.x);
        Status s = r.file != 0 ? (r.whole_block != 0 ? read_file_block(queues, *file, r.first, r.count, to, scratch)
                                                     : read_file_warp(queues, *file, r.first, r.count, to, scratch))
                               : (r.whole_block != 0 ? read_block(queues, *file->set, r.first, r.count, to)
                                                     : read_warp(queues, *file->set, r.first, r.count, to));
        u64 bytes = r.file != 0 ? r.count : r.count << file->set->block_shift;
        const char* at = static_cast<const char*>(storage->buffer(0, 0).memory) + r.to;
        seen[blockIdx.x * threads + thread] = {s, failed(s) ? 0 : sum_of(at, bytes)};
      }

      struct LookUp {
        u64 path;    // where it is in the text; for a number: where it goes
        u32 bytes;   // of the path; kNumber: by the number in `file`; kEnded: a byte 0 ends the path
        u32 file;    // the number, ~0 for none
        u64 offset;  // in the file, of the bytes that are read
        u64 length;
        u64 to;
        u64 size;    // of the file
        Status status;
        u32 reserved;

        static constexpr u32 kNumber = ~0u;
        static constexpr u32 kEnded = ~1u;
      };

      extern "C" __global__ void look_up(const Storage* storage, const DeviceDirectory* directory, char* text, LookUp* all,
                                         u32 count, u32 threads) {
        u32 thread = blockIdx.x * blockDim.x + threadIdx.x;
        for (u32 i = thread; thread < threads && i < count; i += threads) {
          LookUp l = all[i];
          const DeviceFile* file;
          if (l.bytes == LookUp::kNumber) {
            file = l.file < directory->count ? directory->files + l.file : nullptr;
            u32 bytes = 0;
            const char* path = file == nullptr ? nullptr : directory->path(l.file, bytes);
            for (u32 b = 0; b < bytes; b++) {
              text[l.path + b] = path[b];
            }
            l.bytes = bytes;
          } else {
            file = l.bytes == LookUp::kEnded ? directory->find(text + l.path) : directory->find(text + l.path, l.bytes);
          }
          l.file = file == nullptr ? ~0u : static_cast<u32>(file - directory->files);
          l.status = status::kSuccess;
          if (file != nullptr) {
            l.size = file->size;
            l.status = read_file(storage->queues(thread), *file, l.offset, l.length, {0, l.to},
                                 {1, static_cast<u64>(thread) << file->set->block_shift});
          }
          all[i] = l;
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

  /** Bytes of a {@code Together}. */
  static final long TOGETHER_BYTES = 32;

  /** Bytes of a {@code Seen}. */
  static final long SEEN_BYTES = 8;

  /** Bytes of a {@code LookUp}. */
  static final long LOOK_UP_BYTES = 56;

  /** Bytes of a {@code Result}. */
  static final long RESULT_BYTES = 16;

  private UserKernel() {}
}
