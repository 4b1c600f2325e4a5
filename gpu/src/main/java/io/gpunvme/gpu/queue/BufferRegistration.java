package io.gpunvme.gpu.queue;

import io.gpunvme.base.CloseAll;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.queue.DeviceLayout.Buffer;
import io.gpunvme.nvme.DmaMappingException;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.nvme.memory.BusMapper;
import io.gpunvme.nvme.memory.BusRange;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;

/**
 * A buffer described for kernels and one controller: {@code struct Buffer} with the bus addresses
 * of its pages and prebuilt PRP lists, from which kernels name the data of transfers of any length.
 * Immutable apart from {@link #close}.
 */
public final class BufferRegistration implements AutoCloseable {
  private final MemorySegment struct;
  private final PrpLists lists;
  private final DeviceBuffer description;
  private final RegistrationMemory source;

  private BufferRegistration(
      MemorySegment struct, PrpLists lists, DeviceBuffer description, RegistrationMemory source) {
    this.source = source;
    this.struct = struct;
    this.lists = lists;
    this.description = description;
  }

  /**
   * Maps a buffer for the controller and describes it.
   *
   * @param buffer stays the caller's
   * @throws DmaMappingException if the controller cannot reach the memory, or the memory is
   *     scattered in pieces smaller than the controller's pages
   */
  public static BufferRegistration create(
      NvmeController controller, Accelerator accelerator, DeviceBuffer buffer) {
    return create(
        controller.function(),
        controller.pageSize(),
        buffer,
        new RegistrationMemory(controller.function(), accelerator, 0));
  }

  static BufferRegistration create(
      BusMapper controller, int pageSize, DeviceBuffer buffer, RegistrationMemory source) {
    BusRange range = buffer.mapFor(controller);
    long[] pages = pages(range, pageSize);
    PrpLists lists = PrpLists.build(source, pageSize, pages);
    DeviceBuffer description = null;
    try {
      long[] addresses = lists.addresses();
      boolean contiguous = range.contiguous(0, range.size()) == range.size();
      long[] scattered = contiguous ? new long[0] : pages;
      MemorySegment struct = Arena.ofAuto().allocate(Buffer.SIZE, Long.BYTES);
      description =
          source.description(
              Buffer.SIZE + ((long) scattered.length + addresses.length) * Long.BYTES);
      long at = description.deviceAddress() + Buffer.SIZE;
      DeviceLayout.setLong(struct, Buffer.BYTES, buffer.size());
      DeviceLayout.setLong(struct, Buffer.BUS, contiguous ? pages[0] : 0);
      DeviceLayout.setLong(struct, Buffer.PAGES, contiguous ? 0 : at);
      at += (long) scattered.length * Long.BYTES;
      DeviceLayout.setLong(struct, Buffer.LISTS, addresses.length == 0 ? 0 : at);
      DeviceLayout.setLong(struct, Buffer.MEMORY, buffer.deviceAddress());
      DeviceLayout.setInt(struct, Buffer.PAGE_SHIFT, Integer.numberOfTrailingZeros(pageSize));
      fill(description, struct, scattered, addresses);
      return new BufferRegistration(struct, lists, description, source);
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, lists::close);
      if (description != null) {
        source.give(description);
      }
      throw e;
    }
  }

  private static long[] pages(BusRange range, int pageSize) {
    long[] pages = new long[Math.toIntExact(Math.ceilDiv(range.size(), pageSize))];
    long base = range.busAddress(0);
    if (base % pageSize == 0 && range.contiguous(0, range.size()) == range.size()) {
      // A large buffer has hundreds of thousands.
      Arrays.setAll(pages, i -> base + (long) i * pageSize);
      return pages;
    }
    for (int i = 0; i < pages.length; i++) {
      long offset = (long) i * pageSize;
      long bytes = Math.min(pageSize, range.size() - offset);
      pages[i] = range.busAddress(offset);
      if (pages[i] % pageSize != 0 || range.contiguous(offset, bytes) < bytes) {
        throw new DmaMappingException(
            "the buffer is scattered in pieces smaller than the controller's page of %d bytes"
                .formatted(pageSize));
      }
    }
    return pages;
  }

  /** Structure, page addresses and list addresses, one after the other. */
  private static void fill(
      DeviceBuffer description, MemorySegment struct, long[] pages, long[] listAddresses) {
    try (Arena arena = Arena.ofConfined()) {
      long longs = ((long) pages.length + listAddresses.length) * Long.BYTES;
      MemorySegment all = arena.allocate(Buffer.SIZE + longs, Long.BYTES);
      all.copyFrom(struct);
      long at = Buffer.SIZE;
      for (long page : pages) {
        DeviceLayout.setLong(all, at, page);
        at += Long.BYTES;
      }
      for (long list : listAddresses) {
        DeviceLayout.setLong(all, at, list);
        at += Long.BYTES;
      }
      description.copyFromHost(all, 0);
    }
  }

  /** Where the accelerator finds {@code struct Buffer}. */
  public long deviceAddress() {
    return description.deviceAddress();
  }

  /** The structure itself, for arrays of them. */
  MemorySegment struct() {
    return struct;
  }

  /** Frees the description; no command in flight uses it. The buffer stays as it is. */
  @Override
  public void close() {
    source.give(description);
    lists.close();
  }
}
