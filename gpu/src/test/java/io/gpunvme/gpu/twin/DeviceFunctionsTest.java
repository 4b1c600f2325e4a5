package io.gpunvme.gpu.twin;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.gpu.queue.DeviceLayout;
import io.gpunvme.gpu.queue.DeviceLayout.Buffer;
import io.gpunvme.gpu.queue.DeviceLayout.Queue;
import io.gpunvme.gpu.queue.DeviceStatus;
import io.gpunvme.gpu.queue.PrpWalker;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.List;
import java.util.Random;
import java.util.SplittableRandom;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Single functions of the device library against what the specification says, written down again.
 */
class DeviceFunctionsTest {
  private static final int SQE = 64;

  /** Where PRP lists lie on the bus. */
  private static final long LISTS = 1L << 52;

  private static TwinLibrary library;
  private static TwinLibrary.Function entries;

  private final Arena arena = Arena.ofAuto();
  private final MemorySegment fields = arena.allocate(ValueLayout.JAVA_LONG, 8);
  private SplittableRandom random;
  private String seedText;

  @BeforeAll
  static void compile() {
    library = TwinLibrary.load();
    entries =
        library.function(
            "twin_entries", void.class, long.class, long.class, long.class, long.class);
  }

  @BeforeEach
  void seed() {
    long seed = Long.getLong("gpunvme.seed", System.nanoTime());
    seedText = "seed " + seed;
    random = new SplittableRandom(seed);
  }

  @Test
  void theJobHasTheSameLayoutOnBothSides() {
    assertThat(library.function("twin_job_size", long.class).callLong()).isEqualTo(TwinJob.SIZE);
  }

  // ---- submission queue entries

  @ParameterizedTest
  @CsvSource({"0, 0", "1, 1", "2, 1", "5, 1", "8, 1"})
  void anEntryHasEveryFieldInItsPlaceAndZeroesElsewhere(int opcode, int hasBlocks) {
    TwinLibrary.Function write =
        library.function(
            "twin_write_sqe", void.class, long.class, int.class, long.class, int.class, int.class);
    int entries = 8;
    MemorySegment ring = arena.allocate((long) entries * SQE, SQE);
    MemorySegment queue = arena.allocate(Queue.SIZE, 128);
    DeviceLayout.setInt(queue, Queue.SQ_BITS, 3);
    DeviceLayout.setLong(queue, Queue.SQ, ring.address());
    for (int i = 0; i < 1000; i++) {
      int blocks = hasBlocks * random.nextInt(1, 65537);
      int flags = hasBlocks * (random.nextInt() & 0xFFFF0000);
      int cid = random.nextInt(0xFFFF);
      long[] f = {opcode, random.nextInt(), random.nextLong(), blocks, flags};
      long prp1 = random.nextLong();
      long prp2 = random.nextLong();
      command(f[0], f[1] & 0xFFFFFFFFL, f[2], f[3], f[4] & 0xFFFFFFFFL, prp1, prp2, i);
      int position = random.nextInt();
      ring.fill((byte) 0xA5);

      write.call(queue.address(), position, fields.address(), cid, i & 1);

      ByteBuffer expected = ByteBuffer.allocate(SQE).order(ByteOrder.LITTLE_ENDIAN);
      expected.putInt(0, opcode | cid << 16).putInt(4, (int) f[1]);
      expected.putLong(24, prp1).putLong(32, prp2).putLong(40, f[2]);
      expected.putInt(48, blocks == 0 ? 0 : (blocks - 1) | flags);
      int at = position & (entries - 1);
      for (int entry = 0; entry < entries; entry++) {
        byte[] bytes = ring.asSlice((long) entry * SQE, SQE).toArray(ValueLayout.JAVA_BYTE);
        byte[] untouched = new byte[SQE];
        Arrays.fill(untouched, (byte) 0xA5);
        assertThat(bytes)
            .as("%s, entry %d of position %d", seedText, entry, position)
            .isEqualTo(entry == at ? expected.array() : untouched);
      }
    }
  }

  private void command(long... values) {
    for (int i = 0; i < values.length; i++) {
      fields.setAtIndex(ValueLayout.JAVA_LONG, i, values[i]);
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 5, 8, 10, 12})
  void aSlotGoesThroughAllItsGenerationsAndNeverSaysNoCommand(int slotBits) {
    TwinLibrary.Function next = library.function("twin_next_cid", int.class, long.class, int.class);
    MemorySegment queue = arena.allocate(Queue.SIZE, 128);
    DeviceLayout.setInt(queue, Queue.SLOT_BITS, slotBits);
    int mask = (1 << slotBits) - 1;
    int generations = 1 << (16 - slotBits);
    for (int slot : new int[] {0, 1, mask / 2, mask - 1, mask}) {
      BitSet seen = new BitSet();
      int cid = slot;
      do {
        assertThat(cid & mask).isEqualTo(slot);
        assertThat(cid).isBetween(0, 0xFFFE);
        seen.set(cid);
        cid = next.callInt(queue.address(), cid);
      } while (!seen.get(cid));
      assertThat(seen.cardinality()).isEqualTo(slot == mask ? generations - 1 : generations);
    }
  }

  // ---- PRP entries

  /** A buffer of scattered or contiguous pages with its lists, and what lies where on the bus. */
  private final class Pages {
    final int shift;
    final int count;
    final long[] bus;
    final MemorySegment struct = arena.allocate(Buffer.SIZE, Buffer.SIZE);

    /**
     * By their number from {@link #LISTS} on. An array: each entry of each list is looked up many
     * times.
     */
    private final long[][] lists;

    Pages(int shift, int count, boolean scattered) {
      this.shift = shift;
      this.count = count;
      long size = 1L << shift;
      bus = new long[count];
      for (int i = 0; i < count; i++) {
        bus[i] = scattered ? random.nextLong(1, 1L << 40) * size : (77L + i) * size;
      }
      lists = new long[2 * (count / ((int) (size / Long.BYTES) - 1) + 2)][];
      MemorySegment addresses = chains(size);
      MemorySegment table = arena.allocateFrom(ValueLayout.JAVA_LONG, bus);
      DeviceLayout.setLong(struct, Buffer.BYTES, size * count);
      DeviceLayout.setLong(struct, Buffer.BUS, scattered ? 0 : bus[0]);
      DeviceLayout.setLong(struct, Buffer.PAGES, scattered ? table.address() : 0);
      DeviceLayout.setLong(struct, Buffer.LISTS, addresses.address());
      DeviceLayout.setInt(struct, Buffer.PAGE_SHIFT, shift);
    }

    /** The two chains of {@code namespace prp}; returns where their pages are, by turns. */
    private MemorySegment chains(long size) {
      int slots = (int) (size / Long.BYTES);
      MemorySegment addresses = arena.allocate(ValueLayout.JAVA_LONG, lists.length);
      for (int i = 0; i < lists.length; i++) {
        int page = i / 2 * (slots - 1) - i % 2 * slots / 2 + 1;
        long[] list = new long[slots];
        for (int slot = 0; slot < slots - 1; slot++, page++) {
          list[slot] = page > 0 && page < count ? bus[page] : 0;
        }
        list[slots - 1] = LISTS + (i + 2) * size;
        addresses.setAtIndex(ValueLayout.JAVA_LONG, i, LISTS + i * size);
        lists[i] = list;
      }
      return addresses;
    }

    long read(long address) {
      long page = address - LISTS >> shift;
      if (page < 0 || page >= lists.length) {
        throw new AssertionError("no list page at %Xh".formatted(address));
      }
      return lists[(int) page][(int) (address & (1L << shift) - 1) / Long.BYTES];
    }

    List<Long> expected(long offset, long bytes) {
      long size = 1L << shift;
      List<Long> places = new ArrayList<>();
      for (long at = offset; at < offset + bytes; at = (at >> shift) + 1 << shift) {
        places.add(bus[(int) (at >> shift)] + (at & size - 1));
      }
      return places;
    }
  }

  @ParameterizedTest
  @CsvSource({
    "12, 2, true",
    "12, 3, true",
    "12, 257, true",
    "12, 258, true",
    "12, 512, true",
    "12, 513, false",
    "12, 1600, true",
    "12, 1600, false",
    "13, 2100, true",
    "14, 2600, false",
    "16, 8300, true"
  })
  void prpEntriesNameEveryPageInOrder(int shift, int count, boolean scattered) {
    Pages pages = new Pages(shift, count, scattered);
    long size = 1L << shift;
    int slots = (int) (size / Long.BYTES);
    int[] lengths = {
      1, 2, 3, 4, slots / 2, slots / 2 + 1, slots / 2 + 2, slots - 1, slots, slots + 1, slots + 2
    };
    int checked = 0;
    int begins = 0;
    // Every page (some of many) with every interesting length, offsets and lengths about the ends
    // of pages.
    for (int page = 0; page < count; page += random.nextInt(1, 2 + count / 2000 * 20)) {
      begins++;
      for (long within : new long[] {0, 4, size / 2, size - 4}) {
        for (int length : lengths) {
          checked += check(pages, page, within, length);
        }
        checked += check(pages, page, within, random.nextInt(count - page) + 1);
      }
    }
    assertThat(checked).isGreaterThan(begins * 8);
  }

  /** A transfer that touches {@code length} pages, and a little less; how many were inside. */
  private int check(Pages pages, int page, long within, int length) {
    long size = 1L << pages.shift;
    int checked = 0;
    for (long less : new long[] {0, 4, size - 4, random.nextLong(size / 4) * 4}) {
      long bytes = length * size - within - less;
      if (bytes > 0 && page + length <= pages.count) {
        check(pages, page * size + within, bytes);
        checked++;
      }
    }
    return checked;
  }

  private void check(Pages pages, long offset, long bytes) {
    MemorySegment prp = fields;
    entries.call(pages.struct.address(), offset, bytes, prp.address());
    List<Long> got =
        new PrpWalker(1L << pages.shift, pages::read)
            .walk(
                prp.getAtIndex(ValueLayout.JAVA_LONG, 0),
                prp.getAtIndex(ValueLayout.JAVA_LONG, 1),
                bytes);
    if (!got.equals(pages.expected(offset, bytes))) {
      assertThat(got)
          .as("%s, %d bytes at %d", seedText, bytes, offset)
          .isEqualTo(pages.expected(offset, bytes));
    }
  }

  @Test
  void commandsOutsideNamespaceOrBufferAreRefused() {
    TwinLibrary.Function describe =
        library.function(
            "twin_describe",
            int.class,
            long.class,
            int.class,
            long.class,
            int.class,
            long.class,
            long.class,
            long.class);
    MemorySegment ns = TwinDevice.namespace(arena, 1000, 16, 1, 0);
    Pages pages = new Pages(12, 4, true);
    long ok = 0;
    long no = DeviceStatus.ARGUMENT;
    long[][] cases = {
      // slba, blocks, offset, status
      {0, 1, 0, ok},
      {0, 16, 0, ok},
      {999, 1, 0, ok},
      {984, 16, 0, ok},
      {0, 1, 15872, ok},
      {0, 1, 15868, ok},
      {0, 16, 8192, ok},
      {0, 1, 4, ok},
      {0, 0, 0, no},
      {0, 17, 0, no},
      {1000, 1, 0, no},
      {985, 16, 0, no},
      {-1, 1, 0, no},
      {0, 1, 15876, no},
      {0, 1, 16384, no},
      {0, 16, 8196, no},
      {0, 1, 2, no},
      {0, 1, 1, no},
      {0, 1, -4, no},
      {0, 1, Long.MIN_VALUE, no},
      {Long.MAX_VALUE, 2, 0, no},
      {0, -1, 0, no},
    };
    for (long[] c : cases) {
      int status =
          describe.callInt(
              ns.address(), 2, c[0], (int) c[1], pages.struct.address(), c[2], fields.address());
      assertThat(status).as("LBA %d, %d blocks, offset %d", c[0], c[1], c[2]).isEqualTo((int) c[3]);
      if (status == 0) {
        assertThat(fields.toArray(ValueLayout.JAVA_LONG))
            .startsWith(2, 1, c[0], c[1], 0, pages.bus[(int) (c[2] / 4096)] + c[2] % 4096);
      }
    }
  }

  // ---- bits

  @Test
  void completionFieldsComeFromTheirBits() {
    TwinLibrary.Function cqe =
        library.function("twin_cqe", void.class, int.class, int.class, long.class);
    for (int i = 0; i < 1000; i++) {
      int sqid = random.nextInt(0x10000);
      int cid = random.nextInt(0x10000);
      int phase = random.nextInt(2);
      int status = random.nextInt(0x8000);
      cqe.call(
          sqid << 16 | random.nextInt(0x10000), status << 17 | phase << 16 | cid, fields.address());
      int[] got = fields.asSlice(0, 16).toArray(ValueLayout.JAVA_INT);
      assertThat(got).as(seedText).containsExactly(sqid, cid, phase, status);
    }
  }

  @Test
  void theServiceWordKeepsTwoPositions() {
    TwinLibrary.Function word =
        library.function("twin_service_word", long.class, int.class, int.class, int.class);
    TwinLibrary.Function rung = library.function("twin_service_rung", int.class, long.class);
    TwinLibrary.Function head = library.function("twin_service_head", int.class, long.class);
    for (int i = 0; i < 1000; i++) {
      int r = random.nextInt();
      int h = random.nextInt();
      int wide = random.nextInt(2);
      long w = word.callLong(r, h, wide);
      assertThat(w & 7).as("neither held nor pending").isEqualTo(wide * 4L);
      for (long bits = 0; bits < 4; bits++) {
        assertThat(rung.callInt(w | bits)).isEqualTo(r & 0x1FFFFFFF);
        assertThat(head.callInt(w | bits)).isEqualTo(h);
      }
    }
  }

  /**
   * The service word has 29 bits of a position, the tickets have 32: each is crossed at each of its
   * wraps. A command that is alone is found at the first look at every position.
   */
  @Test
  void aHolderLooksNoOftenerWhenPositionsHaveWrapped() {
    TwinLibrary.Function looks = library.function("twin_looks", long.class, int.class, int.class);
    for (long wrap = 0; wrap <= 1L << 32; wrap += 1L << 29) {
      assertThat(looks.callLong((int) (wrap - 8), 24)).as("from %X - 8", wrap).isEqualTo(24);
    }
  }

  /** Nothing comes back before the timeout of 20 s, and each slot has been waited for already. */
  @Test
  void whenEverySlotIsQuarantinedCallersAreToldAtOnce() {
    TwinLibrary.Function lost = library.function("twin_all_lost", long.class, long.class);
    MemorySegment statuses = arena.allocate(ValueLayout.JAVA_INT, 2);
    assertThat(lost.callLong(statuses.address())).isLessThan(5_000_000_000L);
    assertThat(statuses.toArray(ValueLayout.JAVA_INT))
        .as("then a late completion gives a slot back")
        .containsExactly(DeviceStatus.BUSY, 0);
  }

  /** Both queues have a slot of that number. */
  @Test
  void aTokenIsGoodForItsOwnQueueOnly() {
    TwinLibrary.Function wait = library.function("twin_wait_elsewhere", int.class, long.class);
    MemorySegment statuses = arena.allocate(ValueLayout.JAVA_INT, 2);
    assertThat(wait.callInt(statuses.address())).as("still valid where it was moved").isOne();
    assertThat(statuses.toArray(ValueLayout.JAVA_INT))
        .containsExactly(DeviceStatus.ARGUMENT, DeviceStatus.ARGUMENT);
  }

  /** Three commands, numbered from 0, on a queue whose waits end after 20 ms. */
  @Test
  void tokensTell() {
    TwinLibrary.Function tokens = library.function("twin_tokens", void.class, long.class);
    MemorySegment said = arena.allocate(ValueLayout.JAVA_INT, 21);
    tokens.call(said.address());
    assertThat(said.asSlice(0, 20 * Integer.BYTES).toArray(ValueLayout.JAVA_INT))
        .containsExactly(
            DeviceStatus.ARGUMENT, // wait_any of no valid token
            DeviceStatus.PENDING, // test of 0
            DeviceStatus.TIMEOUT, // quiet, with all in flight
            1, // poll: nobody else serves
            0, // wait_any of all: 1 is over
            1, // which
            DeviceStatus.ARGUMENT, // wait_any of 1, which was taken
            0x281, // test of 2, which has failed
            DeviceStatus.ARGUMENT, // wait for 0, whose token is parked
            DeviceStatus.ARGUMENT, // test of the adopted token at another queue
            0, // wait for it
            DeviceStatus.ARGUMENT, // wait for what was adopted before
            0, // quiet, with nothing in flight
            DeviceStatus.STOPPED, // test when the host says stop
            0, // its token is not valid any more
            DeviceStatus.ARGUMENT, // wait_any with another queue's token among them
            DeviceStatus.TIMEOUT, // wait_any of two that nobody answers
            0, // the first is given up
            0, // its token is not valid any more
            1); // the other one's is
    assertThat(said.getAtIndex(ValueLayout.JAVA_INT, 20)).as("quarantined").isEqualTo(2);
  }

  @Test
  void callersThatDoNotServeDependOnOneThatDoes() {
    TwinLibrary.Function unserved = library.function("twin_unserved", int.class, long.class);
    MemorySegment statuses = arena.allocate(ValueLayout.JAVA_INT, 5);
    assertThat(unserved.callInt(statuses.address()))
        .as("doorbell once somebody serves")
        .isEqualTo(2);
    assertThat(statuses.toArray(ValueLayout.JAVA_INT))
        .containsExactly(DeviceStatus.TIMEOUT, 0, 0, DeviceStatus.PENDING, 0);
  }

  @Test
  void theNthBitIsFound() {
    TwinLibrary.Function nth = library.function("twin_nth", int.class, int.class, int.class);
    for (int i = 0; i < 200; i++) {
      int bits = i == 0 ? -1 : i < 33 ? 1 << (i - 1) : random.nextInt() & ~random.nextInt();
      int n = 0;
      for (int bit = 0; bit < 32; bit++) {
        if ((bits >>> bit & 1) != 0) {
          assertThat(nth.callInt(bits, n++)).as("%s, %Xh", seedText, bits).isEqualTo(bit);
        }
      }
    }
  }

  /** Its age goes round after 65536; another thread may have counted in a later one. */
  @ParameterizedTest
  @CsvSource({
    "160, 2, 160, 0",
    "160, 3, 160, 1",
    "160, 5, 176, 0",
    "160, 6, 176, 1",
    "160, 12, 192, 1",
    "160, 15, 224, 0",
    "160, 3, 144, 1",
    "160, 3, 0, 1",
    "1048576, 3, 1048560, 1",
    "1048560, 6, 1048576, 1",
    "1048560, 3, 1048576, 0",
    "160, 15, 523776, 0",
    "160, 15, 1048000, 0",
  })
  void aTierKeepsWhatWasMissedOften(long clock, int times, long then, int kept) {
    TwinLibrary.Function keeps =
        library.function("twin_tier_keeps", int.class, long.class, int.class, long.class);
    assertThat(keeps.callInt(clock, times, then)).isEqualTo(kept);
  }

  /** Three quarters of a cache are all there, since every set gets as many; not of a small one. */
  @ParameterizedTest
  @CsvSource({
    "1, 0, 12",
    "7, 5, 22",
    "512, 77, 16",
    "777, 1000, 16",
    "1024, 123456, 16",
    "65536, 9876543210, 16"
  })
  void pagesInARowAreSharedOutEvenly(int sets, long first, int most) {
    TwinLibrary.Function setOf = library.function("twin_set_of", int.class, long.class, int.class);
    int[] pages = new int[sets];
    for (long page = first; page < first + 12L * sets; page++) {
      pages[setOf.callInt(page, sets)]++;
    }
    assertThat(Arrays.stream(pages).max().orElseThrow()).isBetween(12, most);
  }

  /**
   * Warps that each want 32 pages in a row meet in a set by chance only. Where most pairs that meet
   * in one set met in nearly all, 17 of 128 warps took the frames of 32 sets from each other, and
   * none had all of its own: until the timeout they and everybody else stood still (H200).
   */
  @Test
  void warpsMeetInFewSets() {
    TwinLibrary.Function setOf = library.function("twin_set_of", int.class, long.class, int.class);
    Random random = new Random(5);
    int sets = 1024;
    int warps = 300;
    BitSet[] wanted = new BitSet[warps];
    for (int w = 0; w < warps; w++) {
      long first = 32L * (w + random.nextInt(64) * warps);
      wanted[w] = new BitSet(sets);
      for (long page = first; page < first + 32; page++) {
        wanted[w].set(setOf.callInt(page, sets));
      }
    }
    int meetings = 0;
    for (int a = 0; a < warps; a++) {
      for (int b = 0; b < a; b++) {
        BitSet both = (BitSet) wanted[a].clone();
        both.and(wanted[b]);
        meetings += both.cardinality() >= 8 ? 1 : 0;
      }
    }
    // One pair in 100000 if sets were drawn by lot, one in 20 with a hash that spreads rows evenly.
    assertThat(meetings).isLessThan(warps * warps / 2 / 300);
  }
}
