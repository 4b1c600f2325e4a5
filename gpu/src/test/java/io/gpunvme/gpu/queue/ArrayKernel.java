package io.gpunvme.gpu.queue;

/** Threads that use an array as a list of operations says. */
final class ArrayKernel {
  /** Bytes of an {@code Op}, and where its fields are. */
  static final long OP = 32;

  static final long OP_VALUE = 8;
  static final long OP_COUNT = 16;
  static final long OP_KIND = 20;
  static final long OP_STATUS = 24;

  static final int GET = 0;
  static final int STORE = 1;

  /** Pins as many elements as there are up to {@code count}; the value is their sum. */
  static final int PIN = 2;

  /** Overwrites so many elements, from the value on. */
  static final int OVERWRITE = 3;

  static final int PREFETCH = 4;

  /** By the thread's warp, as if it were the only one. */
  static final int CLEAN = 5;

  /** As {@link #GET} with elements of half the size. */
  static final int WRONG_SIZE = 6;

  /** Adds the value to a pinned element, in its place. */
  static final int ADD = 7;

  /** Pins so many elements, each a page behind the one before; the value is how many it got. */
  static final int PIN_MANY = 8;

  /**
   * {@code use_array}: thread t of n does operations t, t + n, … one after the other. {@code
   * use_array_served}: so does each thread behind the first block, which serves; behind the
   * operations is the number of threads.
   */
  static final String SOURCE =
      """
      #include "gpunvme/gpunvme.cuh"
      using namespace gpunvme;

      struct Op {
        u64 index;
        u64 value;
        u32 count;
        u32 kind;
        Status status;
        u32 reserved;
      };

      template <bool kHelps>
      __device__ void use(const DeviceArray* array, Op* ops, u32 count, u32 thread, u32 threads) {
        for (u32 i = thread; i < count; i += threads) {
          Array<u64, kHelps> a(array);
          Op op = ops[i];
          switch (op.kind) {
            case 0:
              op.value = a[op.index];
              break;
            case 1:
              a.store(op.index, op.value);
              break;
            case 2: {
              Span<u64, kHelps> span = a.pin(op.index, op.count);
              op.value = 0;
              for (u32 n = 0; n < span.size(); n++) {
                op.value += span[n];
              }
              op.count = span.size();
              break;
            }
            case 3: {
              Span<u64, kHelps> span = a.pin_to_overwrite(op.index, op.count);
              u64* data = span.mutable_data();
              for (u32 n = 0; n < span.size(); n++) {
                data[n] = op.value + n;
              }
              op.count = span.size();
              break;
            }
            case 4:
              a.prefetch(op.index, op.count);
              break;
            case 5:
              a.clean(0, 1);
              break;
            case 6: {
              Array<u32, kHelps> halves(array);
              op.value = halves[op.index];
              op.status = halves.status();
              ops[i] = op;
              continue;
            }
            case 7: {
              Span<u64, kHelps> span = a.pin(op.index, 1);
              u64* data = span.mutable_data();
              if (data != nullptr) {
                data[0] += op.value;
              }
              break;
            }
            default: {
              Span<u64, kHelps> spans[24];
              u32 got = 0;
              for (u32 n = 0; n < op.count; n++) {
                spans[n] = a.pin(op.index + n * 512ull, 1);
                got += spans[n].size();
              }
              op.value = got;
            }
          }
          op.status = a.status();
          ops[i] = op;
        }
      }

      extern "C" __global__ void __launch_bounds__(256, 1) use_array(const DeviceArray* array, Op* ops, u32 count, u32 threads) {
        u32 thread = blockIdx.x * blockDim.x + threadIdx.x;
        if (thread < threads) {
          use<true>(array, ops, count, thread, threads);
        }
      }

      extern "C" __global__ void __launch_bounds__(256, 1) use_array_served(const DeviceArray* array, Op* ops, u32 count,
                                                                            u32 threads) {
        u32* callers = reinterpret_cast<u32*>(ops + count);
        const Storage& storage = *array->cache->storage;
        if (blockIdx.x < storage.namespace_count) {
          serve(storage, storage.namespaces[blockIdx.x], threadIdx.x / warp::kWidth,
                (blockDim.x + warp::kWidth - 1) / warp::kWidth, callers);
          return;
        }
        u32 thread = (blockIdx.x - storage.namespace_count) * blockDim.x + threadIdx.x;
        if (thread < threads) {
          use<false>(array, ops, count, thread, threads);
          leave(callers);
        }
      }
      """;

  private ArrayKernel() {}
}
