package io.gpunvme.models;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.models.LoadRequest.Order;

/**
 * The options for writing a raw model. Immutable.
 *
 * @param name of the model, up to 255 bytes of UTF-8; shown to people
 * @param order of the tensors on the device: {@link Order#FILE} or {@link Order#LAYERS}
 * @param alignment of each tensor, a power of two from 512 bytes to 1 MiB
 * @param overwrite whether to overwrite a device that begins with a file system, a partition table
 *     or another raw model
 * @param verify whether to read everything back and compare before the model becomes valid
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

  /** In the files' order, aligned to 4096 bytes, without overwriting and without reading back. */
  public static RawWriteOptions named(String name) {
    return new RawWriteOptions(name, Order.FILE, ALIGNMENT, false, false);
  }

  /** In another order. */
  public RawWriteOptions order(Order other) {
    return new RawWriteOptions(name, other, alignment, overwrite, verify);
  }

  /** With another alignment. */
  public RawWriteOptions alignment(long bytes) {
    return new RawWriteOptions(name, order, bytes, overwrite, verify);
  }

  /** Overwriting existing content, or not. */
  public RawWriteOptions overwrite(boolean allowed) {
    return new RawWriteOptions(name, order, alignment, allowed, verify);
  }

  /** Reading back, or not. */
  public RawWriteOptions verify(boolean wanted) {
    return new RawWriteOptions(name, order, alignment, overwrite, wanted);
  }
}
