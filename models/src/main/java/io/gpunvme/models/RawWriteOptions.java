package io.gpunvme.models;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.models.LoadRequest.Order;

/**
 * How a raw model is written. Immutable.
 *
 * @param name of the model, up to 255 bytes of UTF-8; shown to people
 * @param order in which the tensors lie there: {@link Order#FILE} or {@link Order#LAYERS}
 * @param alignment of each tensor, a power of two from 512 bytes to 1 MiB
 * @param overwrite whether what the device begins with may be a file system, a partition table or
 *     another raw model
 * @param verify whether everything is read back and compared before it becomes valid
 */
public record RawWriteOptions(
    String name, Order order, long alignment, boolean overwrite, boolean verify) {
  private static final long ALIGNMENT = 4096;

  /** Checks. */
  public RawWriteOptions {
    if (order == Order.GIVEN) {
      throw new InvalidRequestException("a raw model needs the order FILE or LAYERS");
    }
  }

  /** In the files' order, aligned to 4096 bytes; nothing is overwritten, nothing read back. */
  public static RawWriteOptions named(String name) {
    return new RawWriteOptions(name, Order.FILE, ALIGNMENT, false, false);
  }

  /** In another order. */
  public RawWriteOptions order(Order other) {
    return new RawWriteOptions(name, other, alignment, overwrite, verify);
  }

  /** Aligned otherwise. */
  public RawWriteOptions alignment(long bytes) {
    return new RawWriteOptions(name, order, bytes, overwrite, verify);
  }

  /** Overwriting what is there, or not. */
  public RawWriteOptions overwrite(boolean allowed) {
    return new RawWriteOptions(name, order, alignment, allowed, verify);
  }

  /** Reading back, or not. */
  public RawWriteOptions verify(boolean wanted) {
    return new RawWriteOptions(name, order, alignment, overwrite, wanted);
  }
}
