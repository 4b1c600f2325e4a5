package io.gpunvme.storage;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.transfer.Direction;
import io.gpunvme.storage.path.DataPath;
import io.gpunvme.storage.path.PathCall;
import io.gpunvme.storage.path.PathKind;
import io.gpunvme.storage.path.Range;
import io.gpunvme.storage.path.RequestShape;
import io.gpunvme.storage.path.StorageException;
import io.gpunvme.storage.path.StorageException.Kind;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Consumer;

/** A file's path that keeps what it is asked for, and fails where it is told to. */
final class SpyPath implements DataPath {
  private final byte[] content;
  private final int alignment;
  private final List<List<Range>> transfers = new ArrayList<>();
  private final Set<DeviceBuffer> registered = new HashSet<>();
  private Consumer<List<Range>> before = _ -> {};
  private boolean registers = true;
  private Kind failure = Kind.IO;
  private long bad = -1;

  SpyPath(byte[] content, int alignment) {
    this.content = content;
    this.alignment = alignment;
  }

  /** Whoever reads this byte fails. */
  void failAt(long offset, Kind kind) {
    bad = offset;
    failure = kind;
  }

  /** Is told of each transfer before it begins. */
  void before(Consumer<List<Range>> listener) {
    before = listener;
  }

  /** From now on no buffer can be registered. */
  void refuseBuffers() {
    registers = false;
  }

  List<List<Range>> transfers() {
    return transfers;
  }

  int ios() {
    return transfers.stream().mapToInt(List::size).sum();
  }

  /** The buffers that are registered now. */
  Set<DeviceBuffer> registered() {
    return registered;
  }

  @Override
  public PathKind kind() {
    return PathKind.PINNED;
  }

  @Override
  public String mode() {
    return "spy";
  }

  @Override
  public long size() {
    return content.length;
  }

  @Override
  public int alignment() {
    return alignment;
  }

  @Override
  public double expected(RequestShape shape) {
    return 1;
  }

  @Override
  public void transfer(Direction direction, List<Range> ranges, PathCall call) {
    before.accept(ranges);
    transfers.add(List.copyOf(ranges));
    for (Range r : ranges) {
      assertThat(r.offset() + r.length()).isLessThanOrEqualTo(content.length);
      if (bad >= r.offset() && bad < r.offset() + r.length()) {
        throw new StorageException(failure, call.source(), bad, 1, "a bad byte", null);
      }
      MemorySegment bytes = MemorySegment.ofArray(content).asSlice(r.offset(), r.length());
      r.buffer().copyFromHost(bytes, r.bufferOffset());
    }
  }

  @Override
  public void register(DeviceBuffer buffer) {
    if (!registers) {
      throw new StorageException(Kind.ACCELERATOR_MEMORY, "data", -1, -1, "no more of them", null);
    }
    registered.add(buffer);
  }

  @Override
  public void deregister(DeviceBuffer buffer) {
    registered.remove(buffer);
  }

  @Override
  public void close() {}
}
