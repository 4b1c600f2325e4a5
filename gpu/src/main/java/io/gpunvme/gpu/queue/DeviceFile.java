package io.gpunvme.gpu.queue;

import io.gpunvme.base.CloseAll;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.queue.DeviceLayout.Extent;
import io.gpunvme.gpu.queue.DeviceLayout.File;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/**
 * A file that kernels read by its bytes, with {@code read_file}: {@link #deviceAddress} is the
 * {@code const gpunvme::DeviceFile*} that you pass to them. Where its bytes are is looked up once,
 * when it is made: nobody may change the file meanwhile. Safe for all threads.
 */
public final class DeviceFile extends DeviceTable {
  private final long bytes;

  private DeviceFile(KernelStorage storage, DeviceBuffer memory, long bytes) {
    super(storage, memory);
    this.bytes = bytes;
  }

  /**
   * Describes a file for kernels.
   *
   * @throws InvalidRequestException if the extents are not as {@link KernelStorage#file} wants them
   */
  static DeviceFile create(
      KernelStorage storage,
      Accelerator accelerator,
      StripeSet set,
      long bytes,
      List<DeviceExtent> extents) {
    List<DeviceExtent> table = table(set, bytes, extents);
    long extentsAt = File.SIZE + DeviceSet.memberBytes(set);
    DeviceBuffer memory = accelerator.allocate(extentsAt + table.size() * Extent.SIZE);
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment all = arena.allocate(memory.size(), Long.BYTES);
      DeviceLayout.setLong(all, File.BYTES, bytes);
      DeviceLayout.setLong(all, File.EXTENTS, memory.deviceAddress() + extentsAt);
      DeviceLayout.setInt(all, File.EXTENT_COUNT, table.size());
      DeviceSet.describe(
          storage,
          set,
          all.asSlice(File.SET),
          File.SIZE - File.SET,
          memory.deviceAddress() + File.SIZE);
      for (int i = 0; i < table.size(); i++) {
        long at = extentsAt + i * Extent.SIZE;
        DeviceLayout.setLong(all, at + Extent.OFFSET, table.get(i).offset());
        DeviceLayout.setLong(all, at + Extent.BLOCK, table.get(i).block());
      }
      memory.copyFromHost(all, 0);
      return new DeviceFile(storage, memory, bytes);
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, memory::close);
      throw e;
    }
  }

  /** The file from its first byte to its last; holes are extents, and what follows is one. */
  private static List<DeviceExtent> table(StripeSet set, long bytes, List<DeviceExtent> extents) {
    if (bytes < 0) {
      throw new InvalidRequestException("a file of %d bytes".formatted(bytes));
    }
    List<DeviceExtent> table = new ArrayList<>();
    long end = 0;
    for (DeviceExtent one : extents) {
      check(set, bytes, end, one);
      if (one.offset() > end) {
        table.add(new DeviceExtent(end, one.offset() - end, Extent.HOLE));
      }
      if (table.isEmpty() || !follows(set.blockSize(), table.getLast(), one)) {
        table.add(one);
      } else {
        DeviceExtent before = table.removeLast();
        table.add(new DeviceExtent(before.offset(), before.bytes() + one.bytes(), before.block()));
      }
      end = one.end();
    }
    if (end < bytes || table.isEmpty()) {
      table.add(new DeviceExtent(end, bytes - end, Extent.HOLE));
    }
    return table;
  }

  private static void check(StripeSet set, long bytes, long end, DeviceExtent one) {
    int block = set.blockSize();
    boolean there =
        one.block() >= 0
            && one.block() < set.blocks()
            && one.bytes() > 0
            && Math.ceilDiv(one.bytes(), block) <= set.blocks() - one.block();
    boolean inFile =
        one.offset() >= end && one.offset() < bytes && one.bytes() <= bytes - one.offset();
    if (!there || !inFile || one.offset() % block != 0) {
      throw new InvalidRequestException(
          "%s of a file of %d bytes is not behind the extent before it, inside the file and at a"
                  .formatted(one, bytes)
              + " block of %d bytes of %d".formatted(block, set.blocks()));
    }
  }

  private static boolean follows(int block, DeviceExtent before, DeviceExtent one) {
    return before.block() != Extent.HOLE
        && before.end() == one.offset()
        && before.bytes() % block == 0
        && before.block() + before.bytes() / block == one.block();
  }

  /** Bytes in the file. */
  public long bytes() {
    return bytes;
  }

  @Override
  String noun() {
    return "file";
  }
}
