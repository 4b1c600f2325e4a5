package io.gpunvme.storage.soak;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.ffi.MemoryBudget;
import io.gpunvme.nvme.Footprint;
import io.gpunvme.storage.injection.OwnProcess;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SegmentAllocator;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.lang.management.ManagementFactory;
import java.lang.reflect.Field;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * What this process holds while nothing is open.
 *
 * @param descriptors and threads of vfio-user
 * @param mappings that are ours, each with its length
 * @param threads that are neither the virtual machine's nor a process's
 * @param locked bytes that cannot be paged out, and pinned ones
 * @param promised bytes of the machine's memory
 * @param resident bytes beside Java's heap, which is three times as large as what is used of it
 * @param heap bytes in use after a collection
 * @param allocated bytes that C's allocator has given out, also to the virtual machine
 */
record Held(
    Footprint descriptors,
    List<String> mappings,
    List<String> threads,
    List<String> locked,
    long promised,
    long resident,
    long heap,
    long allocated) {
  /** What either language's memory may differ by from one pause to another. */
  private static final long ALLOWANCE = 64L << 20;

  /** The same of all but Java's heap: code and classes come and go, too. */
  private static final long RESIDENT_ALLOWANCE = 128L << 20;

  private static final MethodHandle TRIM =
      Linker.nativeLinker()
          .downcallHandle(
              Linker.nativeLinker().defaultLookup().findOrThrow("malloc_trim"),
              FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.JAVA_LONG));

  /** {@code struct mallinfo2}: ten words. */
  private static final MethodHandle MALLINFO =
      Linker.nativeLinker()
          .downcallHandle(
              Linker.nativeLinker().defaultLookup().findOrThrow("mallinfo2"),
              FunctionDescriptor.of(
                  MemoryLayout.structLayout(
                      MemoryLayout.sequenceLayout(10, ValueLayout.JAVA_LONG))));

  private static final int MAPPED = 4;
  private static final int IN_USE = 7;

  private static final long PATIENCE = TimeUnit.SECONDS.toNanos(20);

  static Held now(Path folder) {
    collect();
    return new Held(
        Footprint.here(),
        // Those of stand-ins for libraries stay.
        OwnProcess.now(folder).mappings().stream().filter(m -> !m.endsWith(".so")).toList(),
        Thread.getAllStackTraces().keySet().stream()
            .map(Thread::getName)
            .filter(Held::isOurs)
            .sorted()
            .toList(),
        status("Vm(Lck|Pin):.*"),
        promisedBytes(),
        residentBytes(ProcessHandle.current().pid())
            - ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getCommitted(),
        ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed(),
        allocatedBytes());
  }

  /** What nobody uses goes back to the system, Java's and C's. */
  private static void collect() {
    System.gc();
    try {
      int gone = (int) TRIM.invokeExact(0L);
      assertThat(gone).isBetween(0, 1);
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
  }

  private static boolean isOurs(String thread) {
    return thread.startsWith("gpunvme")
        || thread.startsWith("vfio-user")
        || thread.startsWith("sim");
  }

  private static List<String> status(String pattern) {
    return lines(ProcessHandle.current().pid()).stream().filter(l -> l.matches(pattern)).toList();
  }

  private static List<String> lines(long pid) {
    try {
      return Files.readAllLines(Path.of("/proc", Long.toString(pid), "status"));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  static long residentBytes(long pid) {
    return lines(pid).stream()
        .filter(l -> l.startsWith("VmRSS:"))
        .mapToLong(l -> Long.parseLong(l.replaceAll("\\D", "")) << 10)
        .sum();
  }

  private static long allocatedBytes() {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment info = (MemorySegment) MALLINFO.invokeExact((SegmentAllocator) arena);
      return info.getAtIndex(ValueLayout.JAVA_LONG, MAPPED)
          + info.getAtIndex(ValueLayout.JAVA_LONG, IN_USE);
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
  }

  private static long promisedBytes() {
    try {
      Field promised = MemoryBudget.class.getDeclaredField("promised");
      promised.setAccessible(true);
      return promised.getLong(MemoryBudget.here());
    } catch (ReflectiveOperationException e) {
      throw new AssertionError(e);
    }
  }

  /** Fails unless the process holds now what it held then; threads that end have some time. */
  Held requireUnchanged(Path folder) throws InterruptedException {
    long end = System.nanoTime() + PATIENCE;
    Held now = now(folder);
    while (!now.isLike(this) && System.nanoTime() < end) {
      Thread.sleep(50);
      now = now(folder);
    }
    assertThat(now.descriptors).as("descriptors").isEqualTo(descriptors);
    assertThat(now.mappings).as("mappings").isEqualTo(mappings);
    assertThat(now.threads).as("threads").isEqualTo(threads);
    assertThat(now.locked).as("locked memory").isEqualTo(locked);
    assertThat(now.promised).as("promised memory").isZero();
    return now;
  }

  /** Fails if much more memory is held now than then. */
  void requireNoMore(Held now) {
    assertThat(now.allocated).as("allocated memory").isLessThan(allocated + ALLOWANCE);
    assertThat(now.heap).as("heap").isLessThan(heap + ALLOWANCE);
    assertThat(now.resident).as("resident memory").isLessThan(resident + RESIDENT_ALLOWANCE);
  }

  private boolean isLike(Held other) {
    return descriptors.equals(other.descriptors)
        && mappings.equals(other.mappings)
        && threads.equals(other.threads)
        && locked.equals(other.locked);
  }

  @Override
  public String toString() {
    return "%d MiB resident beside Java's heap, %d used in the heap, %d by malloc, %d descriptors, %d mappings, %d threads, %s"
        .formatted(
            resident >> 20,
            heap >> 20,
            allocated >> 20,
            descriptors.descriptorCount(),
            mappings.size(),
            threads.size(),
            String.join(" ", locked).replaceAll("\\s+", " "));
  }
}
