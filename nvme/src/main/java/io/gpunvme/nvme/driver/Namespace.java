package io.gpunvme.nvme.driver;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.nvme.spec.IdentifyNamespace;
import java.util.HexFormat;
import org.jspecify.annotations.Nullable;

/**
 * A namespace as it was when it was identified: data, no behaviour. Immutable, safe for all
 * threads.
 *
 * <p>A namespace whose blocks cannot be read or written (metadata, an impossible format, another
 * command set) is listed all the same, with the reason.
 */
public final class Namespace {
  private final int nsid;
  private final IdentifyNamespace identify;
  private final @Nullable String uuid;
  private final @Nullable String reason;
  private final int blockShift;

  Namespace(int nsid, IdentifyNamespace identify, @Nullable String uuid, @Nullable String reason) {
    this.nsid = nsid;
    this.identify = identify;
    this.uuid = uuid;
    this.reason = reason;
    this.blockShift = reason == null ? identify.format().lbads() : 0;
  }

  /** Namespace identifier, unsigned, 1..FFFFFFFEh. */
  public int nsid() {
    return nsid;
  }

  /** Identify Namespace as the controller sent it, unchecked. */
  public IdentifyNamespace identify() {
    return identify;
  }

  /** Whether its blocks can be read and written. */
  public boolean usable() {
    return reason == null;
  }

  /** Why it is not {@link #usable}, or null. */
  public @Nullable String reason() {
    return reason;
  }

  /**
   * Bytes in a logical block: a power of two, 512..65536.
   *
   * @throws InvalidRequestException if the namespace is not usable
   */
  public int blockSize() {
    requireUsable();
    return 1 << blockShift;
  }

  int blockShift() {
    return blockShift;
  }

  /**
   * Logical blocks (NSZE).
   *
   * @throws InvalidRequestException if the namespace is not usable
   */
  public long blocks() {
    requireUsable();
    return identify.getLong(IdentifyNamespace.NSZE);
  }

  /**
   * Size in bytes; cannot overflow.
   *
   * @throws InvalidRequestException if the namespace is not usable
   */
  public long bytes() {
    return blocks() << blockShift;
  }

  /** NSATTR bit 0: the namespace is write protected at present. */
  public boolean writeProtected() {
    return (identify.getInt(IdentifyNamespace.NSATTR) & 1) != 0;
  }

  /** The best identifier there is: {@code uuid.…}, {@code nguid.…}, {@code eui.…}, or null. */
  public @Nullable String uniqueId() {
    if (uuid != null) {
      return "uuid." + uuid;
    }
    byte[] nguid = identify.getBytes(IdentifyNamespace.NGUID);
    for (byte b : nguid) {
      if (b != 0) {
        return "nguid." + HexFormat.of().formatHex(nguid);
      }
    }
    return identify.eui64() == 0 ? null : "eui.%016x".formatted(identify.eui64());
  }

  void requireUsable() {
    if (reason != null) {
      throw new InvalidRequestException("namespace " + nsid + " cannot be used: " + reason);
    }
  }

  /** Checks a range of blocks. */
  void requireRange(long slba, long blocks) {
    requireUsable();
    long size = identify.getLong(IdentifyNamespace.NSZE);
    if (slba < 0 || blocks <= 0 || slba > size || blocks > size - slba) {
      throw new InvalidRequestException(
          "blocks %s..%s are outside namespace %d, which has %d blocks"
              .formatted(
                  Long.toUnsignedString(slba),
                  Long.toUnsignedString(slba + blocks - 1),
                  nsid,
                  size));
    }
  }

  @Override
  public String toString() {
    return "namespace "
        + Integer.toUnsignedString(nsid)
        + (reason == null ? ": " + blocks() + " blocks of " + blockSize() : ": " + reason);
  }
}
