package io.gpunvme.storage.path.pinned;

import io.gpunvme.ffi.IoUring;
import java.lang.foreign.MemorySegment;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;

/** Real I/O whose results are changed on the way. */
final class FaultyIo implements LaneIo {
  /** Changes a result. */
  interface Fault {
    /**
     * @param number of the I/O in the order of ending, over all lanes, from 0
     * @param offset it was for
     * @param asked bytes
     * @param result the true one
     */
    int change(int number, long offset, long asked, int result);
  }

  private record Asked(long offset, long bytes) {}

  private final LaneIo io;
  private final Fault fault;
  private final AtomicInteger numbers;
  private final AtomicInteger most;
  private final Map<Long, Asked> asked = new HashMap<>();

  FaultyIo(LaneIo io, AtomicInteger numbers, Fault fault) {
    this(io, numbers, fault, new AtomicInteger());
  }

  /**
   * Without a fault.
   *
   * @param most receives the most that were in flight at a time
   */
  FaultyIo(LaneIo io, AtomicInteger numbers, AtomicInteger most) {
    this(io, numbers, (number, offset, bytes, result) -> result, most);
  }

  private FaultyIo(LaneIo io, AtomicInteger numbers, Fault fault, AtomicInteger most) {
    this.most = most;
    this.io = io;
    this.numbers = numbers;
    this.fault = fault;
  }

  @Override
  public String name() {
    return io.name();
  }

  @Override
  public int depth() {
    return io.depth();
  }

  @Override
  public void start(boolean write, int fd, MemorySegment memory, long offset, long token) {
    asked.put(token, new Asked(offset, memory.byteSize()));
    most.accumulateAndGet(asked.size(), Math::max);
    io.start(write, fd, memory, offset, token);
  }

  @Override
  public void await(IoUring.Completions to) {
    io.await(
        (token, result) -> {
          Asked of = asked.remove(token);
          to.completed(
              token, fault.change(numbers.getAndIncrement(), of.offset(), of.bytes(), result));
        });
  }

  @Override
  public void settle() {
    io.settle();
    asked.clear();
  }

  @Override
  public void close() {
    if (!asked.isEmpty()) {
      throw new AssertionError("closed with I/O in flight");
    }
    io.close();
  }
}
