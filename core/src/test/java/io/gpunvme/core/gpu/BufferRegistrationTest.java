package io.gpunvme.core.gpu;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.core.accel.CpuAccelerator;
import io.gpunvme.core.accel.DeviceBuffer;
import io.gpunvme.core.gpu.DeviceLayout.Buffer;
import io.gpunvme.nvme.DmaMappingException;
import io.gpunvme.nvme.memory.BusMapper;
import io.gpunvme.nvme.memory.BusRange;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.SplittableRandom;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class BufferRegistrationTest {
  private static final int PAGE = 4096;
  private static final String SOURCE =
      """
      #include "gpunvme/gpunvme.cuh"
      extern "C" void entries(const gpunvme::Buffer* b, unsigned long long offset, unsigned long long bytes,
                              unsigned long long* out) {
        gpunvme::prp::entries(*b, offset, bytes, out[0], out[1]);
      }
      """;

  @TempDir Path folder;

  private final CpuAccelerator cpu = CpuAccelerator.open();

  /** Every mapping, by the bus address of each of its pages. */
  private final Map<Long, MemorySegment> bus = new HashMap<>();

  @AfterEach
  void close() {
    cpu.close();
  }

  /** Gives every page an address of its own, none next to the one before. */
  private BusRange scatter(MemorySegment memory) {
    long[] granules = new long[(int) (memory.byteSize() / PAGE)];
    for (int i = 0; i < granules.length; i++) {
      granules[i] = (bus.size() * 3L + 5) * PAGE;
      bus.put(granules[i], memory.asSlice((long) i * PAGE, PAGE));
    }
    return BusRange.scattered(memory, granules, () -> {});
  }

  private BusRange inOnePiece(MemorySegment memory) {
    long base = (bus.size() * 3L + 5) * PAGE;
    for (long at = 0; at < memory.byteSize(); at += PAGE) {
      bus.put(base + at, memory.asSlice(at, PAGE));
    }
    return BusRange.contiguous(memory, base, () -> {});
  }

  @Test
  void theKernelFindsEveryPageOfAScatteredBuffer() throws Throwable {
    check(this::scatter);
  }

  @Test
  void theKernelFindsEveryPageOfAContiguousBuffer() throws Throwable {
    check(this::inOnePiece);
  }

  /** What the kernel's own code makes of the description is walked as a controller does. */
  private void check(BusMapper mapper) throws Throwable {
    MethodHandle entries = compile();
    SplittableRandom random = new SplittableRandom(11);
    long size = 700L * PAGE;
    try (DeviceBuffer buffer = cpu.allocate(size);
        BufferRegistration registration = BufferRegistration.create(mapper, PAGE, cpu, buffer);
        Arena arena = Arena.ofConfined()) {
      MemorySegment out = arena.allocate(16, 8);
      for (int i = 0; i < 2000; i++) {
        long offset = 4L * random.nextLong(size / 4 - 1);
        long most = Math.min(256L * PAGE, size - offset);
        long bytes = random.nextBoolean() ? random.nextLong(1, most + 1) : most;
        entries.invokeExact(registration.deviceAddress(), offset, bytes, out);
        walk(
            buffer.segment().asSlice(offset, bytes),
            DeviceLayout.getLong(out, 0),
            DeviceLayout.getLong(out, 8));
      }
    }
  }

  private void walk(MemorySegment expected, long prp1, long prp2) {
    long at = Math.min(expected.byteSize(), PAGE - (prp1 & (PAGE - 1)));
    assertSame(expected, 0, at, prp1);
    long rest = expected.byteSize() - at;
    if (rest == 0) {
      assertThat(prp2).isZero();
    } else if (rest <= PAGE) {
      assertSame(expected, at, rest, prp2);
    } else {
      for (long entry = prp2; at < expected.byteSize(); entry += Long.BYTES) {
        assertThat(entry & -PAGE).as("within one list page").isEqualTo(prp2 & -PAGE);
        MemorySegment list = bus.get(entry & -PAGE);
        long part = Math.min(PAGE, expected.byteSize() - at);
        assertSame(expected, at, part, DeviceLayout.getLong(list, entry & (PAGE - 1)));
        at += part;
      }
    }
  }

  private void assertSame(MemorySegment expected, long at, long bytes, long address) {
    MemorySegment page = bus.get(address & -PAGE);
    assertThat(page.asSlice(address & (PAGE - 1), bytes).address())
        .as("seed 11")
        .isEqualTo(expected.address() + at);
  }

  private MethodHandle compile() throws Exception {
    Path library = NativeCompiler.compile(folder, "prp.so", SOURCE, "-shared", "-fPIC");
    return Linker.nativeLinker()
        .downcallHandle(
            SymbolLookup.libraryLookup(library, Arena.global()).findOrThrow("entries"),
            FunctionDescriptor.ofVoid(
                ValueLayout.JAVA_LONG,
                ValueLayout.JAVA_LONG,
                ValueLayout.JAVA_LONG,
                ValueLayout.ADDRESS));
  }

  @Test
  void aSmallBufferNeedsNoLists() {
    try (DeviceBuffer buffer = cpu.allocate(2 * PAGE);
        BufferRegistration registration =
            BufferRegistration.create(this::inOnePiece, PAGE, cpu, buffer)) {
      assertThat(DeviceLayout.getLong(registration.struct(), Buffer.LISTS)).isZero();
      assertThat(DeviceLayout.getLong(registration.struct(), Buffer.PAGES)).isZero();
      assertThat(DeviceLayout.getLong(registration.struct(), Buffer.BYTES)).isEqualTo(2 * PAGE);
      assertThat(DeviceLayout.getLong(registration.struct(), Buffer.MEMORY))
          .isEqualTo(buffer.deviceAddress());
      assertThat(DeviceLayout.getInt(registration.struct(), Buffer.PAGE_SHIFT)).isEqualTo(12);
    }
  }

  @Test
  void piecesSmallerThanTheControllersPageAreRefused() {
    try (DeviceBuffer buffer = cpu.allocate(8 * PAGE)) {
      assertThatThrownBy(() -> BufferRegistration.create(this::scatter, 2 * PAGE, cpu, buffer))
          .isInstanceOf(DmaMappingException.class)
          .hasMessageContaining("8192");
    }
  }
}
