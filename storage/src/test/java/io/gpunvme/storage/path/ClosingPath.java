package io.gpunvme.storage.path;

import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.transfer.Direction;
import java.util.List;

/** A path that closes what it was opened on. */
public record ClosingPath(DataPath path, Runnable closing) implements DataPath {
  @Override
  public PathKind kind() {
    return path.kind();
  }

  @Override
  public String mode() {
    return path.mode();
  }

  @Override
  public long size() {
    return path.size();
  }

  @Override
  public int alignment() {
    return path.alignment();
  }

  @Override
  public double expected(RequestShape shape) {
    return path.expected(shape);
  }

  @Override
  public void transfer(Direction direction, List<Range> ranges, PathCall call) {
    path.transfer(direction, ranges, call);
  }

  @Override
  public void register(DeviceBuffer buffer) {
    path.register(buffer);
  }

  @Override
  public void deregister(DeviceBuffer buffer) {
    path.deregister(buffer);
  }

  @Override
  public void close() {
    path.close();
    closing.run();
  }
}
