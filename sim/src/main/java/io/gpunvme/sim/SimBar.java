package io.gpunvme.sim;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.nvme.pci.Bar;
import java.lang.foreign.MemorySegment;
import java.util.function.BooleanSupplier;

/**
 * A BAR of the controller. While the device is gone, closed, or its memory space disabled, reads
 * are all ones and writes do nothing. Stores to what is mapped as memory go there all the same;
 * nobody looks at them then.
 */
final class SimBar implements Bar {
  private static final int GONE = -1;

  private final BooleanSupplier silent;
  private final BarTarget target;

  SimBar(BooleanSupplier silent, BarTarget target) {
    this.silent = silent;
    this.target = target;
  }

  @Override
  public long size() {
    return target.size();
  }

  @Override
  public int read32(long offset) {
    check(offset, Integer.BYTES);
    return silent.getAsBoolean() ? GONE : target.read(offset);
  }

  @Override
  public void write32(long offset, int value) {
    check(offset, Integer.BYTES);
    if (!silent.getAsBoolean()) {
      target.write(offset, value);
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

  @Override
  public MemorySegment memory(long offset, long bytes) {
    return slice(target.mapped(), offset, bytes);
  }

  @Override
  public MemorySegment peerMemory(long offset, long bytes) {
    return slice(target.mappedForPeer(), offset, bytes);
  }

  private MemorySegment slice(MemorySegment mapped, long offset, long bytes) {
    long at = offset - target.mappedAt();
    if (at < 0 || bytes < 0 || at > mapped.byteSize() - bytes) {
      throw new InvalidRequestException(
          "%d bytes at offset %Xh of a BAR of which %d bytes from %Xh on are mapped as memory"
              .formatted(bytes, offset, mapped.byteSize(), target.mappedAt()));
    }
    return mapped.asSlice(at, bytes);
  }

  private void check(long offset, int bytes) {
    if (offset < 0 || offset > target.size() - bytes || offset % bytes != 0) {
      throw new InvalidRequestException(
          "access of %d bytes at offset %Xh of a BAR of %Xh bytes"
              .formatted(bytes, offset, target.size()));
    }
  }
}
