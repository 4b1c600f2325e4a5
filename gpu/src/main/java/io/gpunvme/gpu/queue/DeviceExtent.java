package io.gpunvme.gpu.queue;

/**
 * A part of a file that lies in consecutive blocks of a {@link StripeSet}.
 *
 * @param offset its first byte in the file, a multiple of the block
 * @param bytes above 0; what is behind them in their last block is not the file's
 * @param block of the set, that begins with the first byte
 */
public record DeviceExtent(long offset, long bytes, long block) {
  /** The first byte of the file after it. */
  public long end() {
    return offset + bytes;
  }
}
