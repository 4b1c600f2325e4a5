package io.gpunvme.gpu.queue;

import io.gpunvme.base.CloseAll;
import io.gpunvme.nvme.DmaMappingException;
import io.gpunvme.nvme.memory.DmaBuffer;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import org.jspecify.annotations.Nullable;

/**
 * The PRP lists of one buffer for one controller, built once for transfers of any length at any
 * place (Base 2.0, 4.1.1): two chains of list pages, as {@code namespace prp} of {@code io.cuh}
 * describes them and takes its pointers from them.
 *
 * <p>The two chains take 16 bytes for each page of the buffer. The lists are host memory, which
 * every controller reaches. Immutable apart from {@link #close}.
 */
final class PrpLists implements AutoCloseable {
  private static final int CHAINS = 2;
  private static final ValueLayout.OfLong LONG =
      ValueLayout.JAVA_LONG.withOrder(ByteOrder.LITTLE_ENDIAN);

  private final RegistrationMemory source;
  private final @Nullable DmaBuffer memory;
  private final long[] addresses;

  private PrpLists(RegistrationMemory source, @Nullable DmaBuffer memory, long[] addresses) {
    this.source = source;
    this.memory = memory;
    this.addresses = addresses;
  }

  /**
   * Builds the lists.
   *
   * @param source where the lists' memory comes from, and goes back to
   * @param pageSize of the controller (CC.MPS), bytes
   * @param pages bus address of each page of the buffer
   * @throws DmaMappingException if the controller cannot be given list pages of that size
   */
  static PrpLists build(RegistrationMemory source, int pageSize, long[] pages) {
    int count = count(pageSize, pages.length);
    if (count == 0) {
      return new PrpLists(source, null, new long[0]);
    }
    DmaBuffer memory = source.lists((long) count * pageSize);
    try {
      long[] addresses = addresses(memory, pageSize, count);
      for (int i = 0; i < count; i++) {
        MemorySegment list = memory.memory().asSlice((long) i * pageSize, pageSize);
        list.fill((byte) 0);
        fill(list, first(i, pageSize), pages);
        if (i + CHAINS < count) {
          DeviceLayout.setLong(list, pageSize - Long.BYTES, addresses[i + CHAINS]);
        }
      }
      return new PrpLists(source, memory, addresses);
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, () -> source.give(memory));
      throw e;
    }
  }

  /** Entries of a list page: one slot less than it has. */
  private static int perPage(int pageSize) {
    return pageSize / Long.BYTES - 1;
  }

  /** By how many entries the second chain is shifted. */
  private static int shift(int pageSize) {
    return pageSize / Long.BYTES / 2;
  }

  /** How many list pages there are: of both chains alike, but one where no list can be longer. */
  private static int count(int pageSize, int pages) {
    long entries = pages - 1L;
    if (entries < 2) {
      return 0;
    }
    return entries <= perPage(pageSize)
        ? 1
        : CHAINS * Math.toIntExact(Math.ceilDiv(entries + shift(pageSize), perPage(pageSize)));
  }

  /** The entry in the first slot of a list page; below 0 where the second chain begins. */
  private static long first(int list, int pageSize) {
    long inFirstChain = (long) (list / CHAINS) * perPage(pageSize);
    return list % CHAINS == 0 ? inFirstChain : inFirstChain - shift(pageSize);
  }

  /** Entry e is the bus address of page e + 1; what is not an entry stays 0. */
  private static void fill(MemorySegment list, long first, long[] pages) {
    int slots = perPage(Math.toIntExact(list.byteSize()));
    int skip = Math.toIntExact(Math.max(0, -first));
    long entries = pages.length - 1L;
    int count = Math.toIntExact(Math.min(slots, entries - first)) - skip;
    if (count > 0) {
      int from = Math.toIntExact(first + skip + 1);
      MemorySegment.copy(pages, from, list, LONG, (long) skip * Long.BYTES, count);
    }
  }

  private static long[] addresses(DmaBuffer memory, int pageSize, int count) {
    long[] addresses = new long[count];
    for (int i = 0; i < count; i++) {
      long offset = (long) i * pageSize;
      addresses[i] = memory.busAddress(offset);
      if (addresses[i] % pageSize != 0 || memory.range().contiguous(offset, pageSize) < pageSize) {
        throw new DmaMappingException(
            "a list page of %d bytes is not contiguous on the bus".formatted(pageSize));
      }
    }
    return addresses;
  }

  /** Bus address of each list page, those of the two chains by turns; none if none is needed. */
  long[] addresses() {
    return addresses.clone();
  }

  /** Frees the lists; no command in flight uses them. */
  @Override
  public void close() {
    DmaBuffer m = memory;
    if (m != null) {
      source.give(m);
    }
  }
}
