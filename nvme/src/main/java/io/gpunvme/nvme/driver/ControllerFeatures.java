package io.gpunvme.nvme.driver;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.nvme.memory.DmaBuffer;
import io.gpunvme.nvme.spec.AdminOpcode;
import io.gpunvme.nvme.spec.Features;
import java.lang.foreign.MemorySegment;

/** Get Features and Set Features (Base 2.0, 5.15 and 5.27). Safe for all threads. */
public final class ControllerFeatures {
  /** Most bytes of a feature's data structure. */
  public static final int MAX_DATA = 4096;

  private static final int SELECT_SHIFT = 8;

  private final AdminQueue admin;

  ControllerFeatures(AdminQueue admin) {
    this.admin = admin;
  }

  /**
   * A feature's value.
   *
   * @param dw0 dword 0 of the completion, decoded by {@link Features}
   * @param data the feature's data structure, empty when none was asked for
   */
  public record Value(int dw0, MemorySegment data) {}

  /** The current value of a feature that is about the whole controller. */
  public int get(int featureId) {
    return get(featureId, 0, Features.SEL_CURRENT, 0, 0).dw0();
  }

  /**
   * Reads a feature.
   *
   * @param featureId one of {@link io.gpunvme.nvme.spec.FeatureId}
   * @param nsid the namespace, 0 for features of the controller
   * @param select which value: {@link Features#SEL_CURRENT} and its siblings
   * @param cdw11 the feature's parameter, 0 for most
   * @param dataBytes size of the feature's data structure, a multiple of 4 up to 4096; 0: none
   */
  public Value get(int featureId, int nsid, int select, int cdw11, int dataBytes) {
    checkBytes(dataBytes);
    AdminCommand command =
        AdminCommand.of(AdminOpcode.GET_FEATURES)
            .nsid(nsid)
            .cdw10((featureId & 0xFF) | (select & 7) << SELECT_SHIFT)
            .cdw11(cdw11);
    if (dataBytes == 0) {
      return new Value(admin.execute(command), MemorySegment.ofArray(new long[0]));
    }
    MemorySegment data = MemorySegment.ofArray(new byte[dataBytes]);
    try (DmaBuffer buffer = admin.allocate(dataBytes)) {
      int dw0 = admin.execute(command.sqe(), buffer, dataBytes);
      MemorySegment.copy(buffer.memory(), 0, data, 0, dataBytes);
      return new Value(dw0, data);
    }
  }

  /** Sets a feature of the controller that fits into one dword, until the next reset. */
  public int set(int featureId, int cdw11) {
    return set(featureId, 0, false, cdw11);
  }

  /**
   * Sets a feature that fits into one dword.
   *
   * @param save whether the value survives resets and power cycles
   * @return dword 0 of the completion
   */
  public int set(int featureId, int nsid, boolean save, int cdw11) {
    return admin.execute(setCommand(featureId, nsid, save, cdw11));
  }

  /**
   * Sets a feature that has a data structure.
   *
   * @param data the structure, a multiple of 4 bytes up to 4096
   */
  public int set(int featureId, int nsid, boolean save, int cdw11, MemorySegment data) {
    checkBytes(data.byteSize());
    try (DmaBuffer buffer = admin.allocate(data.byteSize())) {
      buffer.memory().copyFrom(data);
      return admin.execute(setCommand(featureId, nsid, save, cdw11).sqe(), buffer, data.byteSize());
    }
  }

  private static AdminCommand setCommand(int featureId, int nsid, boolean save, int cdw11) {
    return AdminCommand.of(AdminOpcode.SET_FEATURES)
        .nsid(nsid)
        .cdw10((featureId & 0xFF) | (save ? Features.SV : 0))
        .cdw11(cdw11);
  }

  private static void checkBytes(long bytes) {
    if (bytes < 0 || bytes > MAX_DATA || bytes % Integer.BYTES != 0) {
      throw new InvalidRequestException(
          bytes + " bytes of feature data are not a multiple of 4 up to " + MAX_DATA);
    }
  }
}
