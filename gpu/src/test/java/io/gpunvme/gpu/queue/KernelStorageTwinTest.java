package io.gpunvme.gpu.queue;

import io.gpunvme.gpu.accel.Accelerator;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.io.TempDir;

/** {@link UserKernel} compiled for the CPU, a thread for each of its threads. */
class KernelStorageTwinTest extends KernelStorageContract {
  private static final String ENTRY =
      """
      extern "C" void twin_copy(const Storage* s, Result* r, unsigned threads, unsigned rounds, unsigned span,
                                unsigned i) {
        blockIdx.x = i;
        copy_blocks(s, r, threads, rounds, span);
      }
      """;

  @TempDir static Path folder;
  private static MethodHandle copy;

  @BeforeAll
  static void compile() throws Exception {
    Path library =
        NativeCompiler.compile(
            folder,
            "user.so",
            NativeCompiler.KERNEL_SHIM + UserKernel.SOURCE + ENTRY,
            "-O1",
            "-shared",
            "-fPIC");
    copy =
        Linker.nativeLinker()
            .downcallHandle(
                SymbolLookup.libraryLookup(library, Arena.global()).findOrThrow("twin_copy"),
                FunctionDescriptor.ofVoid(
                    ValueLayout.JAVA_LONG,
                    ValueLayout.JAVA_LONG,
                    ValueLayout.JAVA_INT,
                    ValueLayout.JAVA_INT,
                    ValueLayout.JAVA_INT,
                    ValueLayout.JAVA_INT));
  }

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
      Accelerator on, long storage, long results, int threads, int rounds, int span) {
    List<Thread> running = new ArrayList<>();
    for (int i = 0; i < threads; i++) {
      int index = i;
      running.add(
          Thread.ofPlatform()
              .daemon()
              .start(
                  () -> {
                    try {
                      copy.invokeExact(storage, results, threads, rounds, span, index);
                    } catch (Throwable e) {
                      throw new AssertionError(e);
                    }
                  }));
    }
    return () -> running.stream().noneMatch(Thread::isAlive);
  }
}
