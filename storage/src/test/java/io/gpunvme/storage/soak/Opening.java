package io.gpunvme.storage.soak;

import io.gpunvme.gpu.device.Device;
import io.gpunvme.storage.GpuStorage;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/** A storage from its opening to its closing. */
final class Opening {
  private final List<Device> devices = new ArrayList<>();
  private final Tally tally;
  private final long injections;
  private final Set<Server> disturbed = ConcurrentHashMap.newKeySet();
  private GpuStorage storage;
  private volatile boolean closing;
  private volatile boolean inUse;

  /** What opens it, given this. */
  interface Opener {
    GpuStorage open(Opening opening);
  }

  Opening(Tally tally) {
    this.tally = tally;
    injections = tally.of(Disturbances.SWITCHED);
  }

  void open(Opener opener) {
    try {
      storage = opener.open(this);
    } catch (RuntimeException | Error e) {
      closeDevices();
      throw e;
    }
  }

  Device add(Device device) {
    devices.add(device);
    return device;
  }

  GpuStorage storage() {
    return storage;
  }

  void disturbed(Server server) {
    disturbed.add(server);
  }

  /** A transfer has succeeded: all members were there when their queues were created. */
  void used() {
    inUse = true;
  }

  /** Whether nothing but one member can have failed since it was opened and first used. */
  boolean isWholeButForOne() {
    return inUse
        && !closing
        && disturbed.size() <= 1
        && injections == tally.of(Disturbances.SWITCHED)
        && injections % 2 == 0;
  }

  boolean isDisturbed() {
    return !disturbed.isEmpty();
  }

  /** While whoever likes uses it. */
  void close() {
    closing = true;
    Actor.untilItSucceeds("close", tally, storage::close);
    closeDevices();
  }

  private void closeDevices() {
    for (Device device : devices) {
      Actor.untilItSucceeds("close device", tally, device::close);
    }
  }
}
