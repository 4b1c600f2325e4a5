package io.gpunvme.gpu.queue;

import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.testing.CLibrary;
import io.gpunvme.testing.NativeCompiler;
import java.lang.invoke.MethodHandle;

/** {@link UserKernel} compiled for the CPU, a thread for each of its threads. */
class KernelStorageTwinTest extends KernelStorageContract {
  private static final String ENTRY =
      """
      extern "C" void twin_copy(const Storage* s, Result* r, unsigned threads, unsigned rounds, unsigned span,
                                unsigned i, unsigned served) {
        blockIdx.x = i;
        blockDim.x = 1;
        (served != 0 ? copy_blocks_served : copy_blocks)(s, r, threads, rounds, span);
      }

      extern "C" void twin_read_ranges(const Storage* s, const DeviceFile* f, FileRead* r, unsigned count, unsigned threads,
                                       unsigned i) {
        blockIdx.x = i;
        blockDim.x = 1;
        read_ranges(s, f, r, count, threads);
      }

      extern "C" void twin_call_set(const Storage* s, const DeviceSet* set, SetCall* c, unsigned count, unsigned threads,
                                    unsigned i, unsigned served) {
        blockIdx.x = i;
        blockDim.x = 1;
        (served != 0 ? call_set_served : call_set)(s, set, c, count, threads);
      }

      extern "C" void twin_together(const Storage* s, const DeviceFile* f, const Together* r, Seen* seen, unsigned warps,
                                    unsigned b) {
        block::Twin twin(warps);
        std::vector<std::thread> threads;
        for (u32 i = 0; i < warps; i++) {
          threads.emplace_back([=, &twin] {
            block::Member member(twin, i);
            blockIdx.x = b;
            read_together(s, f, r, seen);
          });
        }
        for (std::thread& thread : threads) {
          thread.join();
        }
      }

      extern "C" void twin_look_up(const Storage* s, const DeviceDirectory* d, char* text, LookUp* all, unsigned count,
                                   unsigned threads, unsigned i) {
        blockIdx.x = i;
        blockDim.x = 1;
        look_up(s, d, text, all, count, threads);
      }
      """;

  private final CLibrary library =
      new CLibrary(
          NativeCompiler.CPP.library(
              "user",
              "#include <thread>\n#include <vector>\n"
                  + DeviceSources.CUDA_WORDS
                  + UserKernel.SOURCE
                  + ENTRY,
              "-O1",
              "-pthread",
              DeviceSources.INCLUDE));
  private final MethodHandle copy =
      library.function(
          "twin_copy",
          void.class,
          long.class,
          long.class,
          int.class,
          int.class,
          int.class,
          int.class,
          int.class);
  private final MethodHandle readRanges =
      library.function(
          "twin_read_ranges",
          void.class,
          long.class,
          long.class,
          long.class,
          int.class,
          int.class,
          int.class);

  private final MethodHandle callSet =
      library.function(
          "twin_call_set",
          void.class,
          long.class,
          long.class,
          long.class,
          int.class,
          int.class,
          int.class,
          int.class);

  private final MethodHandle together =
      library.function(
          "twin_together",
          void.class,
          long.class,
          long.class,
          long.class,
          long.class,
          int.class,
          int.class);

  private final MethodHandle lookUp =
      library.function(
          "twin_look_up",
          void.class,
          long.class,
          long.class,
          long.class,
          long.class,
          int.class,
          int.class,
          int.class);

  @Override
  Accelerator openAccelerator() {
    return new FakeGpu();
  }

  @Override
  int threads() {
    return 8;
  }

  @Override
  RunningKernel start(
      boolean served, long storage, long results, int threads, int rounds, int span) {
    return TwinThreads.start(
        served ? threads + 1 : threads,
        i -> {
          copy.invokeExact(storage, results, threads, rounds, span, i, served ? 1 : 0);
        });
  }

  @Override
  RunningKernel startRanges(long storage, long file, long reads, int count) {
    return TwinThreads.start(
        threads(),
        i -> {
          readRanges.invokeExact(storage, file, reads, count, threads(), i);
        });
  }

  @Override
  RunningKernel startCalls(int servers, long storage, long set, long calls, int count) {
    return TwinThreads.start(
        threads() + servers,
        i -> {
          callSet.invokeExact(storage, set, calls, count, threads(), i, servers);
        });
  }

  @Override
  int blockThreads() {
    return 3;
  }

  @Override
  int warpThreads() {
    return 1;
  }

  @Override
  RunningKernel startTogether(long storage, long file, long reads, long seen, int count) {
    return TwinThreads.start(
        count,
        i -> {
          together.invokeExact(storage, file, reads, seen, blockThreads(), i);
        });
  }

  @Override
  RunningKernel startLookUps(long storage, long directory, long text, long all, int count) {
    return TwinThreads.start(
        threads(),
        i -> {
          lookUp.invokeExact(storage, directory, text, all, count, threads(), i);
        });
  }
}
