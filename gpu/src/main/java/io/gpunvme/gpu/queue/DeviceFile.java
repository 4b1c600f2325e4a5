package io.gpunvme.gpu.queue;

import io.gpunvme.base.CloseAll;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.queue.DeviceLayout.Extent;
import io.gpunvme.gpu.queue.DeviceLayout.File;
import io.gpunvme.gpu.queue.DeviceLayout.Set;
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
  private final StripeSet set;
  private final long bytes;
  private final List<DeviceExtent> extents;

  private DeviceFile(
      KernelStorage storage,
      DeviceBuffer memory,
      StripeSet set,
      long bytes,
      List<DeviceExtent> extents) {
    super(storage, memory);
    this.set = set;
    this.bytes = bytes;
    this.extents = extents;
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
    List<DeviceExtent> table = table("a file", set, bytes, extents);
    long setAt = Set.SIZE; // where it is aligned
    long membersAt = setAt + Set.SIZE;
    long extentsAt = membersAt + DeviceSet.memberBytes(set);
    DeviceBuffer memory = accelerator.allocate(extentsAt + table.size() * Extent.SIZE);
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment all = arena.allocate(memory.size(), Long.BYTES);
      long address = memory.deviceAddress();
      describe(all, 0, bytes, table.size(), address + extentsAt, address + setAt);
      DeviceSet.describe(storage, set, all.asSlice(setAt), Set.SIZE, address + membersAt);
      describe(all, extentsAt, table);
      memory.copyFromHost(all, 0);
      return new DeviceFile(storage, memory, set, bytes, extents);
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, memory::close);
      throw e;
    }
  }

  /**
   * Writes {@code struct DeviceFile}.
   *
   * @param at where it is
   * @param extents address of so many
   * @param set address
   */
  static void describe(
      MemorySegment all, long at, long bytes, int extentCount, long extents, long set) {
    DeviceLayout.setLong(all, at + File.BYTES, bytes);
    DeviceLayout.setLong(all, at + File.EXTENTS, extents);
    DeviceLayout.setLong(all, at + File.SET, set);
    DeviceLayout.setInt(all, at + File.EXTENT_COUNT, extentCount);
  }

  /** Writes a file's extents, each {@code struct FileExtent}; returns where they end. */
  static long describe(MemorySegment all, long at, List<DeviceExtent> extents) {
    for (DeviceExtent one : extents) {
      DeviceLayout.setLong(all, at + Extent.OFFSET, one.offset());
      DeviceLayout.setLong(all, at + Extent.BLOCK, one.block());
      at += Extent.SIZE;
    }
    return at;
  }

  /**
   * The file from its first byte to its last; holes are extents, and what follows is one.
   *
   * @param name of the file, in messages
   */
  static List<DeviceExtent> table(
      String name, StripeSet set, long bytes, List<DeviceExtent> extents) {
    if (bytes < 0) {
      throw new InvalidRequestException("%s of %d bytes".formatted(name, bytes));
    }
    List<DeviceExtent> table = new ArrayList<>();
    long end = 0;
    for (DeviceExtent one : extents) {
      check(name, set, bytes, end, one);
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

  private static void check(String name, StripeSet set, long bytes, long end, DeviceExtent one) {
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
          "%s of %s of %d bytes is not behind the extent before it, inside the file and at a"
                  .formatted(one, name, bytes)
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

  /** What it is on. */
  StripeSet set() {
    return set;
  }

  /** Where its bytes are, without what reads as zeroes. */
  List<DeviceExtent> extents() {
    return extents;
  }

  @Override
  String noun() {
    return "file";
  }
}
