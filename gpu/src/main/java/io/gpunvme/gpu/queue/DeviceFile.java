package io.gpunvme.gpu.queue;

import io.gpunvme.base.CloseAll;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.queue.DeviceLayout.Extent;
import io.gpunvme.gpu.queue.DeviceLayout.File;
import io.gpunvme.nvme.driver.Namespace;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/**
 * A file that kernels read by its bytes, with {@code read_file}: {@link #deviceAddress} is the
 * {@code const gpunvme::DeviceFile*} that you pass to them. Where its bytes are is looked up once,
 * when it is made: nobody may change the file meanwhile. Safe for all threads.
 */
public final class DeviceFile implements AutoCloseable {
  private final KernelStorage storage;
  private final DeviceBuffer memory;
  private final long bytes;
  private volatile boolean closed;

  private DeviceFile(KernelStorage storage, DeviceBuffer memory, long bytes) {
    this.storage = storage;
    this.memory = memory;
    this.bytes = bytes;
  }

  /**
   * Describes a file for kernels.
   *
   * @param ssd the namespace's number at the storage
   * @throws InvalidRequestException if the extents are not as {@link KernelStorage#file} wants them
   */
  static DeviceFile create(
      KernelStorage storage,
      Accelerator accelerator,
      int ssd,
      Namespace namespace,
      long bytes,
      List<DeviceExtent> extents) {
    List<DeviceExtent> table = table(namespace, bytes, extents);
    DeviceBuffer memory = accelerator.allocate(File.SIZE + table.size() * Extent.SIZE);
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment all = arena.allocate(memory.size(), Long.BYTES);
      DeviceLayout.setLong(all, File.BYTES, bytes);
      DeviceLayout.setLong(all, File.EXTENTS, memory.deviceAddress() + File.SIZE);
      DeviceLayout.setInt(all, File.EXTENT_COUNT, table.size());
      DeviceLayout.setInt(all, File.SSD, ssd);
      for (int i = 0; i < table.size(); i++) {
        long at = File.SIZE + i * Extent.SIZE;
        DeviceLayout.setLong(all, at + Extent.OFFSET, table.get(i).offset());
        DeviceLayout.setLong(all, at + Extent.SLBA, table.get(i).slba());
      }
      memory.copyFromHost(all, 0);
      return new DeviceFile(storage, memory, bytes);
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, memory::close);
      throw e;
    }
  }

  /** The file from its first byte to its last; holes are extents, and what follows is one. */
  private static List<DeviceExtent> table(
      Namespace namespace, long bytes, List<DeviceExtent> extents) {
    if (bytes < 0) {
      throw new InvalidRequestException("a file of %d bytes".formatted(bytes));
    }
    List<DeviceExtent> table = new ArrayList<>();
    long end = 0;
    for (DeviceExtent one : extents) {
      check(namespace, bytes, end, one);
      if (one.offset() > end) {
        table.add(new DeviceExtent(end, one.offset() - end, Extent.HOLE));
      }
      if (table.isEmpty() || !follows(namespace.blockSize(), table.getLast(), one)) {
        table.add(one);
      } else {
        DeviceExtent before = table.removeLast();
        table.add(new DeviceExtent(before.offset(), before.bytes() + one.bytes(), before.slba()));
      }
      end = one.end();
    }
    if (end < bytes || table.isEmpty()) {
      table.add(new DeviceExtent(end, bytes - end, Extent.HOLE));
    }
    return table;
  }

  private static void check(Namespace namespace, long bytes, long end, DeviceExtent one) {
    int block = namespace.blockSize();
    boolean there =
        one.slba() >= 0
            && one.slba() < namespace.blocks()
            && one.bytes() > 0
            && Math.ceilDiv(one.bytes(), block) <= namespace.blocks() - one.slba();
    boolean inFile =
        one.offset() >= end && one.offset() < bytes && one.bytes() <= bytes - one.offset();
    if (!there || !inFile || one.offset() % block != 0) {
      throw new InvalidRequestException(
          "%s of a file of %d bytes is not behind the extent before it, inside the file and at a"
                  .formatted(one, bytes)
              + " block of %d bytes of %d".formatted(block, namespace.blocks()));
    }
  }

  private static boolean follows(int block, DeviceExtent before, DeviceExtent one) {
    return before.slba() != Extent.HOLE
        && before.end() == one.offset()
        && before.bytes() % block == 0
        && before.slba() + before.bytes() / block == one.slba();
  }

  /** Bytes in the file. */
  public long bytes() {
    return bytes;
  }

  /** The device address of {@code struct DeviceFile}, for kernels. */
  public long deviceAddress() {
    storage.requireOpen();
    if (closed) {
      throw new IllegalStateException("this file is closed");
    }
    return memory.deviceAddress();
  }

  void free() {
    memory.close();
  }

  /** No kernel uses the file any more. Closing the storage closes it, too. */
  @Override
  public void close() {
    closed = true;
    storage.close(this);
  }
}
