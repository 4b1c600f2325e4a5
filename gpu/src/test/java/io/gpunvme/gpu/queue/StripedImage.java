package io.gpunvme.gpu.queue;

import io.gpunvme.gpu.device.Device;
import io.gpunvme.nvme.driver.Namespace;
import io.gpunvme.sim.SimulatedController;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;

/** Random bytes on a set of embedded SSDs. The layout is written here a second time. */
record StripedImage(StripeSet set, List<MemorySegment> parts, byte[] bytes) {
  /**
   * Fills the SSDs.
   *
   * @param unit bytes
   * @param units of each member; the part of member m begins with block 5 m
   */
  static StripedImage of(SplittableRandom random, List<Device> devices, int unit, int units) {
    List<StripeSet.Member> members = new ArrayList<>();
    List<MemorySegment> parts = new ArrayList<>();
    for (int m = 0; m < devices.size(); m++) {
      Namespace namespace = devices.get(m).controller().namespace(1);
      long slba = 5L * m;
      members.add(new StripeSet.Member(devices.get(m).controller(), namespace, slba));
      parts.add(medium(devices.get(m)).asSlice(slba * namespace.blockSize(), (long) unit * units));
    }
    byte[] bytes = new byte[unit * units * devices.size()];
    random.nextBytes(bytes);
    StripedImage image = new StripedImage(new StripeSet(members, unit, bytes.length), parts, bytes);
    image.each(
        (part, partOffset, offset) ->
            MemorySegment.copy(
                bytes, offset, part, ValueLayout.JAVA_BYTE, partOffset, (int) image.set().unit()));
    return image;
  }

  static MemorySegment medium(Device device) {
    return ((SimulatedController) device.controller().function()).mediaMemory(1).orElseThrow();
  }

  /** What the SSDs have now. */
  byte[] read() {
    byte[] now = new byte[bytes.length];
    each(
        (part, partOffset, offset) ->
            MemorySegment.copy(
                part, ValueLayout.JAVA_BYTE, partOffset, now, offset, (int) set.unit()));
    return now;
  }

  private interface Unit {
    void at(MemorySegment part, long partOffset, int offset);
  }

  private void each(Unit action) {
    int at = 0;
    for (long row = 0; at < bytes.length; row++) {
      for (MemorySegment part : parts) {
        action.at(part, row * set.unit(), at);
        at += (int) set.unit();
      }
    }
  }
}
