package io.gpunvme.core.storage;

import io.gpunvme.core.accel.Accelerator;
import io.gpunvme.core.device.Device;
import io.gpunvme.core.device.DeviceAddress;
import io.gpunvme.core.path.DataPath;
import io.gpunvme.core.path.PathKind;
import io.gpunvme.core.path.Range;
import io.gpunvme.core.path.Verdict;
import io.gpunvme.core.path.direct.DirectPath;
import io.gpunvme.nvme.driver.ControllerOptions;
import java.util.List;

/** A namespace of a controller that this process drives. */
final class DeviceSource implements Source {
  private final Accelerator accelerator;
  private final StorageOptions options;
  private final Device device;

  DeviceSource(DeviceAddress address, Accelerator accelerator, StorageOptions options) {
    this.accelerator = accelerator;
    this.options = options;
    device =
        Device.open(
            address, ControllerOptions.builder().allowWrite(options.allowWrite()).build(), "");
    try {
      device.controller().namespace(options.nsid());
    } catch (RuntimeException e) {
      device.close();
      throw e;
    }
  }

  Device device() {
    return device;
  }

  @Override
  public String name() {
    return device.address().toString();
  }

  @Override
  public long size() {
    return device.controller().namespace(options.nsid()).bytes();
  }

  @Override
  public List<Verdict> verdicts() {
    String reason = "this is no file";
    return List.of(
        Verdict.yes(PathKind.DIRECT, "this process drives the controller"),
        Verdict.no(PathKind.CUFILE, reason, ""),
        Verdict.no(PathKind.PINNED, reason, ""),
        Verdict.no(PathKind.MMAP, reason, ""));
  }

  @Override
  public DataPath open(PathKind kind) {
    return DirectPath.open(device.controller(), options.nsid(), accelerator, options.initiator());
  }

  @Override
  public double resident(List<Range> ranges) {
    return 0;
  }

  @Override
  public void close() {
    device.close();
  }
}
