package io.gpunvme.storage;

import io.gpunvme.base.CloseAll;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.BufferCopies;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.storage.path.StorageException;

/**
 * Memory that one read at a time has its I/Os go to, in two halves: while what is in one is copied
 * to where it belongs, the other is read into. Of one thread at a time.
 */
final class StagingHalves implements AutoCloseable {
  private final Registrar registrar;
  private final long bytes;
  private final Half[] halves = new Half[2];

  /**
   * @param copies from {@code memory}, of no other
   */
  record Half(DeviceBuffer memory, BufferCopies copies) {}

  /**
   * Allocates.
   *
   * @param bytes of each half
   * @throws io.gpunvme.cuda.CudaException if the accelerator has no room; nothing is left then
   */
  StagingHalves(Accelerator accelerator, Registrar registrar, long bytes) {
    this.registrar = registrar;
    this.bytes = bytes;
    halves[0] = open(accelerator, bytes);
    try {
      halves[1] = open(accelerator, bytes);
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, () -> close(halves[0]));
      throw e;
    }
  }

  private Half open(Accelerator accelerator, long bytes) {
    DeviceBuffer memory = accelerator.allocate(bytes);
    try {
      register(memory);
      return new Half(memory, accelerator.copies());
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, () -> free(memory));
      throw e;
    }
  }

  /** Reads into memory that a path cannot register are slower, no more. */
  private void register(DeviceBuffer memory) {
    try {
      registrar.register(memory);
    } catch (StorageException e) {
      registrar.deregister(memory);
    }
  }

  /** Of each half at least. */
  long bytes() {
    return bytes;
  }

  /** The half of a round; those of two rounds that follow each other differ. */
  Half half(int round) {
    return halves[round & 1];
  }

  /**
   * Returns when no copy is under way in either half.
   *
   * @throws RuntimeException the first failure, after both have ended
   */
  void await() {
    try {
      halves[0].copies.await();
    } finally {
      halves[1].copies.await();
    }
  }

  /** Waits for the copies, deregisters the memory and frees it, whatever of that fails. */
  @Override
  public void close() {
    try {
      close(halves[0]);
    } finally {
      close(halves[1]);
    }
  }

  private void close(Half half) {
    try {
      half.copies.close();
    } finally {
      free(half.memory);
    }
  }

  private void free(DeviceBuffer memory) {
    try {
      registrar.deregister(memory);
    } finally {
      memory.close();
    }
  }
}
