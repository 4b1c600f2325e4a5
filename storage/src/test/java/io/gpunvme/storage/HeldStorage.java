package io.gpunvme.storage;

import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.transfer.Direction;
import io.gpunvme.storage.path.DataPath;
import io.gpunvme.storage.path.PathCall;
import io.gpunvme.storage.path.PathKind;
import io.gpunvme.storage.path.Range;
import io.gpunvme.storage.path.RequestShape;
import io.gpunvme.storage.path.Verdict;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.function.Consumer;

/**
 * A storage whose reads are held up as long as somebody likes, whatever is cancelled, and which
 * carries out several at once.
 *
 * @param content of it
 * @param before is told of each read before its bytes are moved
 */
public record HeldStorage(byte[] content, Consumer<Range> before) implements DataPath, Source {
  /** Opens it. */
  public static GpuStorage open(byte[] content, Accelerator accelerator, Consumer<Range> before) {
    return new GpuStorage(
        StorageAddress.of("held"),
        accelerator,
        StorageOptions.defaults(),
        new HeldStorage(content, before));
  }

  @Override
  public String name() {
    return "held";
  }

  @Override
  public long size() {
    return content.length;
  }

  @Override
  public int blockSize() {
    return 512;
  }

  @Override
  public List<Verdict> verdicts() {
    return List.of(Verdict.yes(kind(), "of a test"));
  }

  @Override
  public DataPath open(PathKind kind) {
    return this;
  }

  @Override
  public Source on(Accelerator other) {
    return this;
  }

  @Override
  public double resident(List<Range> ranges) {
    return 0;
  }

  @Override
  public PathKind kind() {
    return PathKind.PINNED;
  }

  @Override
  public String mode() {
    return "held";
  }

  @Override
  public int alignment() {
    return 512;
  }

  @Override
  public double expected(RequestShape shape) {
    return 1;
  }

  @Override
  public void transfer(Direction direction, List<Range> ranges, PathCall call) {
    for (Range r : ranges) {
      before.accept(r);
      MemorySegment bytes = MemorySegment.ofArray(content).asSlice(r.offset(), r.length());
      r.buffer().copyFromHost(bytes, r.bufferOffset());
    }
  }

  @Override
  public void flush() {}

  @Override
  public void close() {}
}
