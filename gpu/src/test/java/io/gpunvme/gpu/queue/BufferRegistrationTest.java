package io.gpunvme.gpu.queue;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.queue.DeviceLayout.Buffer;
import io.gpunvme.nvme.DmaMappingException;
import io.gpunvme.nvme.memory.BusMapper;
import io.gpunvme.nvme.memory.BusRange;
import io.gpunvme.testing.CLibrary;
import io.gpunvme.testing.NativeCompiler;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.TreeMap;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

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

  private final long seed = Long.getLong("gpunvme.seed", System.nanoTime());
  private final SplittableRandom random = new SplittableRandom(seed);
  private final CpuAccelerator cpu = CpuAccelerator.open();
  private final Arena arena = Arena.ofAuto();
  private final MemorySegment out = arena.allocate(16, 8);
  private final MethodHandle entries =
      new CLibrary(NativeCompiler.CPP.library("prp", SOURCE, DeviceSources.INCLUDE))
          .function("entries", void.class, long.class, long.class, long.class, MemorySegment.class);

  @AfterEach
  void close() {
    cpu.close();
  }

  /** A bus on which every mapped page of the controller lies anywhere, or all in one run. */
  private final class Bus implements BusMapper {
    private final int pageSize;
    private final boolean scattered;
    private final TreeMap<Long, MemorySegment> pages = new TreeMap<>();

    Bus(int pageSize, boolean scattered) {
      this.pageSize = pageSize;
      this.scattered = scattered;
    }

    @Override
    public BusRange map(MemorySegment memory) {
      int count = Math.toIntExact(Math.ceilDiv(memory.byteSize(), pageSize));
      long[] granules = new long[count * (pageSize / BusRange.GRANULE)];
      long next = (pages.isEmpty() ? 3 : pages.lastKey() / pageSize + 3) * pageSize;
      for (int i = 0; i < count; i++) {
        long address = scattered ? anywhere() : next + (long) i * pageSize;
        long from = (long) i * pageSize;
        pages.put(address, memory.asSlice(from, Math.min(pageSize, memory.byteSize() - from)));
        for (int g = 0; g < pageSize / BusRange.GRANULE; g++) {
          granules[i * (pageSize / BusRange.GRANULE) + g] = address + (long) g * BusRange.GRANULE;
        }
      }
      return scattered
          ? BusRange.scattered(memory, granules, () -> {})
          : BusRange.contiguous(memory, next, () -> {});
    }

    private long anywhere() {
      long address = random.nextLong(1, 1L << 40) * pageSize;
      return pages.containsKey(address) ? anywhere() : address;
    }

    long read(long address) {
      MemorySegment page = pages.get(address & -pageSize);
      if (page == null) {
        throw new AssertionError("no memory at %Xh".formatted(address));
      }
      return DeviceLayout.getLong(page, address & (pageSize - 1));
    }
  }

  /** A buffer of which only the addresses are ever used: large ones cost no memory. */
  private final class Unbacked extends DeviceBuffer {
    private final MemorySegment memory;

    Unbacked(long size) {
      memory = MemorySegment.ofAddress(1L << 44).reinterpret(size);
    }

    @Override
    public long size() {
      return memory.byteSize();
    }

    @Override
    public boolean isHost() {
      return true;
    }

    @Override
    public MemorySegment segment() {
      return memory;
    }

    @Override
    public long deviceAddress() {
      return memory.address();
    }

    @Override
    protected BusRange map(BusMapper controller) {
      return controller.map(memory);
    }

    @Override
    protected void free() {}

    @Override
    public void copyToHost(long offset, MemorySegment target) {
      throw new AssertionError("only addresses are used");
    }

    @Override
    public void copyFromHost(MemorySegment source, long offset) {
      throw new AssertionError("only addresses are used");
    }
  }

  /** One registered buffer; what the kernel's own code makes of it is walked by a controller. */
  private final class Registered implements AutoCloseable {
    final int pageSize;
    final DeviceBuffer buffer;
    final BusRange range;
    final BufferRegistration registration;
    final PrpWalker walker;
    int inOneListPage;
    int overSeveral;

    Registered(int pageSize, boolean scattered, long size) {
      Bus bus = new Bus(pageSize, scattered);
      this.pageSize = pageSize;
      buffer = new Unbacked(size);
      range = buffer.mapFor(bus);
      registration =
          BufferRegistration.create(bus, pageSize, buffer, new RegistrationMemory(bus, cpu, 0));
      walker = new PrpWalker(pageSize, bus::read);
    }

    void check(long offset, long bytes) throws Throwable {
      entries.invokeExact(registration.deviceAddress(), offset, bytes, out);
      List<Long> expected = new ArrayList<>();
      for (long at = offset; at < offset + bytes; at = (at / pageSize + 1) * pageSize) {
        expected.add(range.busAddress(at));
      }
      List<Long> got;
      try {
        got = walker.walk(DeviceLayout.getLong(out, 0), DeviceLayout.getLong(out, 8), bytes);
      } catch (AssertionError e) {
        throw new AssertionError(what(offset, bytes), e);
      }
      if (!got.equals(expected)) {
        assertThat(got).as(what(offset, bytes)).isEqualTo(expected);
      }
      if (expected.size() <= pageSize / 16 + 1 && walker.pointers() != 0) {
        throw new AssertionError("a short list is in two list pages: " + what(offset, bytes));
      }
      if (walker.pointers() == 0) {
        inOneListPage++;
      } else {
        overSeveral++;
      }
    }

    private String what(long offset, long bytes) {
      return "seed %d: %d bytes at %d of %d, pages of %d"
          .formatted(seed, bytes, offset, buffer.size(), pageSize);
    }

    @Override
    public void close() {
      registration.close();
      buffer.close();
    }
  }

  @ParameterizedTest
  @CsvSource({
    "12, true",
    "12, false",
    "13, true",
    "14, false",
    "15, true",
    "16, true",
    "16, false"
  })
  void theControllerFindsEveryPageOfEveryTransfer(int shift, boolean scattered) throws Throwable {
    int pageSize = 1 << shift;
    int perPage = pageSize / 8 - 1;
    // About the sizes at which lists, a second list page and a third come in.
    long[] sizes = {
      1, 2, 3, perPage, perPage + 1, perPage + 2, 2L * perPage + 1, random.nextLong(1, 6L * perPage)
    };
    int overSeveral = 0;
    for (long pages : sizes) {
      long size = pages * pageSize;
      try (Registered registered = new Registered(pageSize, scattered, size)) {
        registered.check(0, size);
        for (int i = 0; i < 300; i++) {
          long offset = 4 * random.nextLong(size / 4);
          long most = size - offset;
          registered.check(offset, random.nextInt(4) == 0 ? most : random.nextLong(1, most + 1));
        }
        overSeveral += registered.overSeveral;
      }
    }
    assertThat(overSeveral).as("seed %d: walks from one list page to another", seed).isPositive();
  }

  /** Every first page with every last page, so that lists begin and end in every slot. */
  @ParameterizedTest
  @CsvSource({"12, 1800", "13, 2200"})
  void listsBeginAndEndInEverySlot(int shift, int pages) throws Throwable {
    int pageSize = 1 << shift;
    int slots = pageSize / 8;
    try (Registered registered = new Registered(pageSize, false, (long) pages * pageSize)) {
      for (int first = 0; first < slots; first++) {
        for (int entries : new int[] {2, slots / 2, slots / 2 + 1, slots - 1, slots, slots + 1}) {
          registered.check((long) first * pageSize, (entries + 1L) * pageSize);
        }
        // Each length once from here on, over all rounds of the loop.
        for (int entries = first + 2; first + entries < pages; entries += slots) {
          registered.check((long) first * pageSize, (entries + 1L) * pageSize);
        }
      }
      assertThat(registered.overSeveral).isGreaterThan(slots);
      assertThat(registered.inOneListPage).isGreaterThan(slots);
    }
  }

  @Test
  void aSmallBufferNeedsNoLists() {
    Bus bus = new Bus(PAGE, false);
    try (DeviceBuffer buffer = cpu.allocate(2 * PAGE);
        BufferRegistration registration =
            BufferRegistration.create(bus, PAGE, buffer, new RegistrationMemory(bus, cpu, 0))) {
      assertThat(DeviceLayout.getLong(registration.struct(), Buffer.LISTS)).isZero();
      assertThat(DeviceLayout.getLong(registration.struct(), Buffer.PAGES)).isZero();
      assertThat(DeviceLayout.getLong(registration.struct(), Buffer.BYTES)).isEqualTo(2 * PAGE);
      assertThat(DeviceLayout.getLong(registration.struct(), Buffer.MEMORY))
          .isEqualTo(buffer.deviceAddress());
      assertThat(DeviceLayout.getInt(registration.struct(), Buffer.PAGE_SHIFT)).isEqualTo(12);
    }
  }

  /** One list page for up to 2 MiB, beyond that 16 bytes a page and what rounding takes. */
  @ParameterizedTest
  @CsvSource({"2, 0", "3, 1", "512, 1", "513, 4", "767, 4", "768, 6", "262144, 1028"})
  void listsTakeLittleMemory(int pages, int listPages) {
    try (DeviceBuffer buffer = new Unbacked((long) pages * PAGE)) {
      Bus bus = new Bus(PAGE, false);
      long[] addresses = new long[pages];
      BusRange range = buffer.mapFor(bus);
      for (int i = 0; i < pages; i++) {
        addresses[i] = range.busAddress((long) i * PAGE);
      }
      try (PrpLists lists = PrpLists.build(new RegistrationMemory(bus, cpu, 0), PAGE, addresses)) {
        assertThat(lists.addresses()).hasSize(listPages);
      }
    }
  }

  @Test
  void piecesSmallerThanTheControllersPageAreRefused() {
    Bus bus = new Bus(PAGE, true);
    try (DeviceBuffer buffer = cpu.allocate(8 * PAGE)) {
      assertThatThrownBy(
              () ->
                  BufferRegistration.create(
                      bus, 2 * PAGE, buffer, new RegistrationMemory(bus, cpu, 0)))
          .isInstanceOf(DmaMappingException.class)
          .hasMessageContaining("8192");
    }
  }
}
