package io.gpunvme.gpu.queue;

/** Random reads and writes by every thread on blocks of its own, each byte checked. */
final class SoakKernel {
  static final String SOURCE =
      """
      #include "gpunvme/gpunvme.cuh"
      using namespace gpunvme;

      struct Result {
        u64 reads;
        u64 writes;
        u64 wrong;      // reads that brought something else than was written last
        u64 refused;    // ended by the controller with an error
        Status last;    // why the thread ended early
        u32 reserved;
      };

      // A block's version: what was written last. Above it, whether the version after it may be there instead, because the
      // fate of its write is unknown.
      constexpr u32 kUnsure = 1u << 31;

      __device__ u32 mix(u32 x) {
        x = (x ^ x >> 16) * 0x7feb352du;
        x = (x ^ x >> 15) * 0x846ca68bu;
        return x ^ x >> 16;
      }

      __device__ u32 word(u64 block, u32 version, u32 i) {
        return mix(static_cast<u32>(block) * 0x9E3779B1u + version * 0x85EBCA6Bu + i);
      }

      // The whole warp writes or checks the blocks of its lanes one after the other, 16 bytes a lane: blocks have 512 bytes.
      __device__ void fill(char* warp_data, u32 lanes, u64 block, u32 version) {
        u32 first = warp::lane() * 4;
        for (; lanes != 0; lanes &= lanes - 1) {
          u32 from = warp::lowest(lanes);
          u64 b = warp::shuffle(warp::kFull, block, from);
          u32 v = warp::shuffle(warp::kFull, version, from);
          mem::store_system(reinterpret_cast<Quad*>(warp_data + from * 512 + first * 4),
                            {word(b, v, first), word(b, v, first + 1), word(b, v, first + 2), word(b, v, first + 3)});
        }
        __syncwarp();
      }

      // Which of the lanes' blocks hold what they should.
      __device__ u32 holds(const char* warp_data, u32 lanes, u64 block, u32 version) {
        u32 first = warp::lane() * 4;
        u32 good = 0;
        for (; lanes != 0; lanes &= lanes - 1) {
          u32 from = warp::lowest(lanes);
          u64 b = warp::shuffle(warp::kFull, block, from);
          u32 v = warp::shuffle(warp::kFull, version, from);
          Quad q = mem::load_system(reinterpret_cast<const Quad*>(warp_data + from * 512 + first * 4));
          bool same = q.x == word(b, v, first) && q.y == word(b, v, first + 1) && q.z == word(b, v, first + 2) &&
                      q.w == word(b, v, first + 3);
          good |= warp::ballot(warp::kFull, same) == warp::kFull ? 1u << from : 0;
        }
        return good;
      }

      extern "C" __global__ void soak(const Storage* storage, Result* results, u32* versions, u32 blocks_each, u32 operations,
                                      u32 seed) {
        u32 thread = blockIdx.x * blockDim.x + threadIdx.x;
        u32 lane = warp::lane();
        const Namespace& ns = storage->namespaces[0];
        const Buffer& buffer = storage->buffer(0, 0);
        SharedQueue queue = storage->queue(ns, thread / 32);
        u64 offset = static_cast<u64>(thread) * 512;
        char* warp_data = static_cast<char*>(buffer.memory) + (thread & ~31u) * 512ull;
        Result r = {0, 0, 0, 0, status::kSuccess, 0};
        bool going = true;
        for (u32 i = 0; i < operations; i++) {
          u32 random = mix(mix(seed + thread) + i);
          u64 block = static_cast<u64>(thread) * blocks_each + random % blocks_each;
          u32 version = versions[block];
          u32 sure = version & ~kUnsure;
          bool unsure = (version & kUnsure) != 0;
          bool writing = sure == 0 || (random >> 20 & 1) != 0;
          u32 next = sure + (unsure ? 2 : 1);
          u32 writers = warp::ballot(warp::kFull, going && writing);
          fill(warp_data, writers, block, next);
          // What is there before must not pass for what is read.
          fill(warp_data, warp::ballot(warp::kFull, going) & ~writers, ~block, 0);
          Status s = status::kSuccess;
          if (going && writing) {
            s = write(ns, queue, block, 1, buffer, offset);
            // One that was refused may have been carried out when a recovery ended it before.
            for (u32 tries = 0; may_retry(s) && ns.queues->recovery != nullptr && tries < 16; tries++) {
              r.refused++;
              s = write(ns, queue, block, 1, buffer, offset);
            }
          } else if (going) {
            s = read(ns, queue, block, 1, buffer, offset);
          }
          __syncwarp();
          bool arrived = going && !writing && s == status::kSuccess;
          u32 readers = warp::ballot(warp::kFull, arrived);
          u32 good = holds(warp_data, readers, block, sure);
          u32 maybe = warp::ballot(warp::kFull, arrived && unsure) & ~good;
          u32 newer = holds(warp_data, maybe, block, sure + 1);
          if (arrived) {
            r.reads++;
            r.wrong += ((good | newer) >> lane & 1) == 0;
            versions[block] = sure + (newer >> lane & 1);
          } else if (going && writing && s == status::kSuccess) {
            r.writes++;
            versions[block] = next;
          } else if (going && ((s & status::kMade) != 0 || (writing && s == status::kAbortedByHost))) {
            // The controller may still use the thread's buffer, or has used it.
            versions[block] = writing && s != status::kBusy ? (next - 1) | kUnsure : version;
            r.last = s;
            going = false;
          } else if (going) {
            r.refused++;
          }
        }
        results[thread] = r;
      }
      """;

  /** Bytes of a {@code Result}. */
  static final long RESULT_BYTES = 40;

  private SoakKernel() {}
}
