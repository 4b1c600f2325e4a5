package io.gpunvme.gpu.bar;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.gpu.queue.DeviceSources;
import io.gpunvme.testing.CLibrary;
import io.gpunvme.testing.NativeCompiler;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

/**
 * The kernels of {@code marks.cu} as the CPU's compiler sees them, one thread after the other: they
 * do what Java does, to the same bytes and to no others.
 */
class MarkKernelsTwinTest {
  private static final String SOURCE =
      DeviceSources.CUDA_WORDS
          + """
          static void atomicMin(unsigned long long* to, unsigned long long value) { if (value < *to) *to = value; }
          #include "kernels/marks.cu"

          extern "C" void run(int what, u64 memory, u64 page_offset, u64 bytes, u64 numbers, u64 low, u64 high, u64 other) {
            Marked m = {memory, page_offset, bytes, numbers};
            gridDim = {3};
            for (blockIdx = {0}; blockIdx.x < gridDim.x; blockIdx.x++) {
              switch (what) {
                case 0: gpunvme_marks_save(m, reinterpret_cast<Mark*>(other)); break;
                case 1: gpunvme_marks_write(m, {low, high}); break;
                case 2: gpunvme_marks_check(m, {low, high}, reinterpret_cast<u64*>(other)); break;
                case 3: gpunvme_marks_restore(m, reinterpret_cast<const Mark*>(other)); break;
              }
            }
          }
          """;

  private static final int SAVE = 0;
  private static final int WRITE = 1;
  private static final int CHECK = 2;
  private static final int RESTORE = 3;

  private final long seed = Long.getLong("gpunvme.seed", System.nanoTime());
  private final SplittableRandom random = new SplittableRandom(seed);

  @Test
  void theyMarkWhatJavaMarks() throws Throwable {
    MethodHandle run = compile();
    for (int round = 0; round < 100; round++) {
      try (Arena arena = Arena.ofConfined()) {
        int granules = 1 + random.nextInt(70);
        PageCut cut = new PageCut(4096L * random.nextInt(16), 4096L * granules);
        compare(run, arena, cut);
      }
    }
  }

  private static MethodHandle compile() {
    Class<?>[] arguments = new Class<?>[8];
    Arrays.fill(arguments, long.class);
    arguments[0] = int.class;
    Path library = NativeCompiler.CPP.library("marks", SOURCE, "-O2", DeviceSources.INCLUDE);
    return new CLibrary(library).function("run", void.class, arguments);
  }

  private void compare(MethodHandle run, Arena arena, PageCut cut) throws Throwable {
    // A page before and after, which must stay as they are.
    MemorySegment around = arena.allocate(cut.size() + 2L * PageCut.PAGE, PageCut.PAGE);
    MemorySegment memory = around.asSlice(PageCut.PAGE, cut.size());
    byte[] bytes = new byte[(int) around.byteSize()];
    random.nextBytes(bytes);
    MemorySegment.copy(bytes, 0, around, ValueLayout.JAVA_BYTE, 0, bytes.length);
    MarkKey key = MarkKey.random();
    long numbers = (long) cut.pages() * PageCut.MARKS;
    MemorySegment saved = arena.allocate(numbers * PageCut.MARK, 16);
    MemorySegment wrong = arena.allocateFrom(ValueLayout.JAVA_LONG, -1L);
    Step step =
        (what, other) ->
            run.invoke(
                what,
                memory.address(),
                cut.pageOffset(),
                cut.size(),
                numbers,
                key.low(),
                key.high(),
                other.address());

    step.run(SAVE, saved);
    step.run(WRITE, saved);
    assertThat(around.toArray(ValueLayout.JAVA_BYTE))
        .as("%s, seed %d", cut, seed)
        .isEqualTo(marked(bytes, cut, key));
    step.run(CHECK, wrong);
    assertThat(wrong.get(ValueLayout.JAVA_LONG, 0)).isEqualTo(-1);

    int page = random.nextInt(cut.pages());
    int i = random.nextInt(cut.marks(page));
    long at = cut.start(page) + cut.offset(page, i) + random.nextInt(PageCut.MARK);
    memory.set(ValueLayout.JAVA_BYTE, at, (byte) ~memory.get(ValueLayout.JAVA_BYTE, at));
    step.run(CHECK, wrong);
    assertThat(wrong.get(ValueLayout.JAVA_LONG, 0))
        .as("%s, seed %d", cut, seed)
        .isEqualTo(cut.number(page, i));

    step.run(RESTORE, saved);
    assertThat(around.toArray(ValueLayout.JAVA_BYTE)).isEqualTo(bytes);
  }

  private interface Step {
    void run(int what, MemorySegment other) throws Throwable;
  }

  private static byte[] marked(byte[] bytes, PageCut cut, MarkKey key) {
    MemorySegment copy = MemorySegment.ofArray(bytes.clone());
    for (int page = 0; page < cut.pages(); page++) {
      for (int i = 0; i < cut.marks(page); i++) {
        long at = PageCut.PAGE + cut.start(page) + cut.offset(page, i);
        long number = cut.number(page, i);
        copy.set(ValueLayout.JAVA_LONG_UNALIGNED, at, key.first(number));
        copy.set(ValueLayout.JAVA_LONG_UNALIGNED, at + Long.BYTES, key.second(number));
      }
    }
    return copy.toArray(ValueLayout.JAVA_BYTE);
  }
}
