package io.gpunvme.storage.path.extents;

import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.storage.path.DataPath;
import io.gpunvme.storage.path.PathKind;
import io.gpunvme.storage.path.RequestShape;

/** Some bytes of a device, by way of a path of the device. */
abstract sealed class DevicePath implements DataPath permits ExtentPath, PartPath {
  final DataPath device;
  private final long size;

  /**
   * A part of a device.
   *
   * @param device stays the caller's
   */
  DevicePath(DataPath device, long size) {
    this.device = device;
    this.size = size;
  }

  @Override
  public final PathKind kind() {
    return device.kind();
  }

  @Override
  public final boolean plansReads() {
    return device.plansReads();
  }

  @Override
  public final long size() {
    return size;
  }

  @Override
  public final int alignment() {
    return device.alignment();
  }

  @Override
  public final double expected(RequestShape shape) {
    return device.expected(shape);
  }

  @Override
  public long gpuBytes() {
    return device.gpuBytes();
  }

  @Override
  public final void takeStaging() {
    device.takeStaging();
  }

  @Override
  public final void register(DeviceBuffer buffer) {
    device.register(buffer);
  }

  @Override
  public final void deregister(DeviceBuffer buffer) {
    device.deregister(buffer);
  }

  /** The device's path stays open. */
  @Override
  public void close() {}
}
