package io.gpunvme.nvme.pci.host;

import io.gpunvme.base.CloseAll;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.ffi.Mapping;
import io.gpunvme.nvme.pci.Bar;
import io.gpunvme.nvme.pci.Mmio;
import io.gpunvme.nvme.pci.RegisterAccess;
import java.lang.foreign.MemorySegment;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A BAR of a device that is not in this process. Where it can be mapped, a register access is one
 * load or store of 4 bytes; elsewhere (the page of an MSI-X table, a device behind a socket) it is
 * a call. 8 bytes are two accesses, low half first, because not every controller takes a wider one.
 *
 * <p>After {@link #close}, and where pages are gone (SIGBUS), reads return all ones and writes do
 * nothing. Safe for all threads.
 */
public final class MappedBar implements Bar, AutoCloseable {
  /** A mapped part, from {@code offset} of the BAR on. */
  public record Part(long offset, Mapping mapping) {
    private @Nullable MemorySegment slice(long at, long bytes) {
      long from = at - offset;
      MemorySegment all = mapping.segment();
      return from >= 0 && bytes >= 0 && from <= all.byteSize() - bytes
          ? all.asSlice(from, bytes)
          : null;
    }
  }

  private final String name;
  private final long size;
  private final List<Part> parts;
  private final @Nullable RegisterAccess others;
  private final long start;
  private volatile boolean closed;

  /**
   * @param name for messages, {@code BAR 0 of vfio:0000:01:00.0}
   * @param size bytes
   * @param parts what is mapped, owned by this object from now on
   * @param others how the rest is read and written, null if it cannot be
   * @param start where there the BAR begins
   */
  public MappedBar(
      String name, long size, List<Part> parts, @Nullable RegisterAccess others, long start) {
    this.name = name;
    this.size = size;
    this.parts = List.copyOf(parts);
    this.others = others;
    this.start = start;
  }

  @Override
  public long size() {
    return size;
  }

  @Override
  public int read32(long offset) {
    MemorySegment register = register(offset);
    if (closed) {
      return -1;
    }
    if (register == null) {
      return others == null ? -1 : others.read(start + offset, Integer.BYTES);
    }
    try {
      int value = Mmio.load32(register, 0);
      Mapping.meetFaults();
      return value;
    } catch (IllegalStateException e) {
      return -1; // closed just now
    } catch (InternalError e) {
      return -1; // the device's side has taken the page away
    }
  }

  @Override
  public void write32(long offset, int value) {
    MemorySegment register = register(offset);
    if (closed) {
      return;
    }
    if (register == null) {
      if (others != null) {
        others.write(start + offset, Integer.BYTES, value);
      }
      return;
    }
    try {
      Mmio.store32(register, 0, value);
      Mapping.meetFaults();
    } catch (IllegalStateException | InternalError e) {
      // Closed just now, or the page is gone: the write comes too late.
    }
  }

  @Override
  public long read64(long offset) {
    check(offset, Long.BYTES);
    long low = Integer.toUnsignedLong(read32(offset));
    return low | (long) read32(offset + Integer.BYTES) << Integer.SIZE;
  }

  @Override
  public void write64(long offset, long value) {
    check(offset, Long.BYTES);
    write32(offset, (int) value);
    write32(offset + Integer.BYTES, (int) (value >>> Integer.SIZE));
  }

  private @Nullable MemorySegment register(long offset) {
    check(offset, Integer.BYTES);
    return find(offset, Integer.BYTES);
  }

  private @Nullable MemorySegment find(long offset, long bytes) {
    for (Part p : parts) {
      MemorySegment found = p.slice(offset, bytes);
      if (found != null) {
        return found;
      }
    }
    return null;
  }

  private void check(long offset, int bytes) {
    if (offset < 0 || offset > size - bytes || offset % bytes != 0) {
      throw new InvalidRequestException(
          "access of %d bytes at offset %Xh of %s, which has %Xh bytes"
              .formatted(bytes, offset, name, size));
    }
  }

  @Override
  public MemorySegment memory(long offset, long bytes) {
    MemorySegment found = find(offset, bytes);
    if (found == null) {
      StringBuilder mapped = new StringBuilder();
      for (Part p : parts) {
        long end = p.offset + p.mapping.segment().byteSize();
        mapped.append(mapped.isEmpty() ? "" : ", ").append("%Xh to %Xh".formatted(p.offset, end));
      }
      throw new InvalidRequestException(
          "%d bytes at offset %Xh of %s are not mapped as memory; mapped is %s"
              .formatted(bytes, offset, name, mapped.isEmpty() ? "nothing" : mapped));
    }
    return found;
  }

  /** From now on registers are as after {@link #close}, but what was handed out stays mapped. */
  public void silence() {
    closed = true;
  }

  /** Unmaps. Memory handed out may not be used any more. Idempotent. */
  @Override
  public void close() {
    closed = true;
    CloseAll.each(parts, p -> p.mapping.close());
  }
}
