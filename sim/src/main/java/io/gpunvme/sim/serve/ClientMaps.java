package io.gpunvme.sim.serve;

import io.gpunvme.base.CloseAll;
import io.gpunvme.ffi.Errno;
import io.gpunvme.ffi.Mapping;
import io.gpunvme.ffi.Posix;
import io.gpunvme.ffi.PosixException;
import io.gpunvme.nvme.DmaMappingException;
import io.gpunvme.nvme.vfiouser.Exchange;
import io.gpunvme.nvme.vfiouser.Message;
import io.gpunvme.nvme.vfiouser.Protocol;
import io.gpunvme.nvme.vfiouser.RefusedException;
import io.gpunvme.sim.DmaAccess;
import io.gpunvme.sim.SimulatedController;
import io.gpunvme.sim.serve.ServerSession.Answer;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.util.Map;
import java.util.TreeMap;

/** The memory that the client lets the controller reach. One thread. */
final class ClientMaps implements AutoCloseable {
  /** Ranges at a time. */
  static final int MOST = 4096;

  private static final long PAGE = 4096;
  private static final int NO_DESCRIPTOR = -1;

  private final SimulatedController controller;
  private final Exchange exchange;
  private final TreeMap<Long, Range> ranges = new TreeMap<>();

  /** A mapped range; {@code undo} waits until nothing touches it, {@code free} gives it back. */
  private record Range(long size, Runnable undo, Runnable free) {
    void end() {
      undo.run();
      free.run();
    }
  }

  ClientMaps(SimulatedController controller, Exchange exchange) {
    this.controller = controller;
    this.exchange = exchange;
  }

  private static RefusedException refused(Message message, int errno) {
    return new RefusedException(message.command(), errno);
  }

  /**
   * Maps a range.
   *
   * @param maxTransfer of data in one message to the client
   */
  Answer map(Message message, long maxTransfer) {
    ByteBuffer asked = message.payload();
    boolean whole =
        asked.remaining() == Protocol.DMA_MAP_BYTES
            && Integer.toUnsignedLong(asked.getInt(0)) >= Protocol.DMA_MAP_BYTES
            && message.descriptors().size() <= 1;
    if (!whole) {
      throw refused(message, Errno.EINVAL);
    }
    long offset = asked.getLong(8);
    long address = asked.getLong(16);
    long size = asked.getLong(24);
    DmaAccess access = access(message, asked.getInt(4));
    boolean sound = address >= 0 && size > 0 && offset >= 0 && address <= Long.MAX_VALUE - size;
    if (!sound || ((address | size | offset) & (PAGE - 1)) != 0) {
      throw refused(message, Errno.EINVAL);
    }
    if (overlaps(address, size)) {
      throw refused(message, Errno.EEXIST);
    }
    if (ranges.size() >= MOST) {
      throw refused(message, Errno.ENOSPC);
    }
    int fd = message.descriptors().isEmpty() ? NO_DESCRIPTOR : message.descriptors().getFirst();
    try {
      ranges.put(
          address,
          fd == NO_DESCRIPTOR
              ? byMessages(address, size, access, maxTransfer)
              : byDescriptor(fd, offset, address, size, access));
    } catch (DmaMappingException e) {
      throw refused(message, Errno.EINVAL);
    } catch (PosixException e) {
      throw refused(message, e.errno());
    }
    return Answer.of(Protocol.payload(0));
  }

  private static DmaAccess access(Message message, int flags) {
    return switch (flags) {
      case Protocol.DMA_READABLE -> DmaAccess.READ;
      case Protocol.DMA_WRITABLE -> DmaAccess.WRITE;
      case Protocol.DMA_READABLE | Protocol.DMA_WRITABLE -> DmaAccess.READ_WRITE;
      default -> throw refused(message, Errno.EINVAL);
    };
  }

  private boolean overlaps(long address, long size) {
    var below = ranges.lowerEntry(address + size);
    return below != null && below.getKey() + below.getValue().size > address;
  }

  private Range byDescriptor(int fd, long offset, long address, long size, DmaAccess access) {
    // Pages past the file's end cannot be touched.
    long there = Posix.size(fd);
    if (offset > there || size > there - offset) {
      throw new PosixException("mmap", "fd " + fd, Errno.EINVAL);
    }
    int read = access == DmaAccess.WRITE ? 0 : Posix.PROT_READ;
    int write = access == DmaAccess.READ ? 0 : Posix.PROT_WRITE;
    // Huge pages are mapped whole, whatever part of them the client gives.
    long unit = Posix.mappingUnit(fd);
    long from = offset & -unit;
    long end = offset + size + unit - 1 & -unit;
    Mapping mapping = Mapping.shared(fd, from, end - from, read | write);
    try {
      MemorySegment given = mapping.segment().asSlice(offset - from, size);
      Runnable undo = controller.mapAt(address, given, access);
      return new Range(size, undo, mapping::close);
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, mapping::close);
      throw e;
    }
  }

  private Range byMessages(long address, long size, DmaAccess access, long maxTransfer) {
    MessageMemory memory = new MessageMemory(exchange, address, size, maxTransfer);
    return new Range(size, controller.mapAt(address, memory, access), () -> {});
  }

  Answer unmap(Message message) {
    ByteBuffer asked = message.payload();
    boolean whole =
        asked.remaining() == Protocol.DMA_UNMAP_BYTES
            && Integer.toUnsignedLong(asked.getInt(0)) >= Protocol.DMA_UNMAP_BYTES;
    if (!whole) {
      throw refused(message, Errno.EINVAL);
    }
    int flags = asked.getInt(4);
    long address = asked.getLong(8);
    long size = asked.getLong(16);
    switch (flags) {
      case 0 -> unmap(message, address, size);
      case Protocol.DMA_UNMAP_ALL -> {
        if ((address | size) != 0) {
          throw refused(message, Errno.EINVAL);
        }
        close();
      }
      case Protocol.DMA_UNMAP_DIRTY -> throw refused(message, Errno.EOPNOTSUPP);
      default -> throw refused(message, Errno.EINVAL);
    }
    return Answer.of(
        Protocol.payload(Protocol.DMA_UNMAP_BYTES)
            .putInt(Protocol.DMA_UNMAP_BYTES)
            .putInt(flags)
            .putLong(address)
            .putLong(size)
            .flip());
  }

  /** Waits for the commands under way; later ones fail. */
  private void unmap(Message message, long address, long size) {
    Range range = ranges.get(address);
    if (range == null || range.size != size) {
      throw refused(message, Errno.ENOENT);
    }
    ranges.remove(address);
    range.end();
  }

  /** Unmaps everything. */
  @Override
  public void close() {
    Map<Long, Range> all = new TreeMap<>(ranges);
    ranges.clear();
    all.values().forEach(Range::end);
  }
}
