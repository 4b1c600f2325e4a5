package io.gpunvme.tools.demo;

import io.gpunvme.gpu.transfer.TransferReport;
import org.jspecify.annotations.Nullable;

/**
 * What was read twice.
 *
 * @param device the SSDs' address
 * @param model what they say they are
 * @param ssds how many
 * @param offset the first byte at the address
 * @param bytes how many were read; of a replica all copies
 * @param blockSize bytes per logical block
 * @param maxTransferBytes longest transfer of one command
 * @param accelerator whose memory the bytes arrived in
 * @param acceleratorReason why it was this one
 * @param bufferBytes accelerator memory used; a longer range went through it in turns
 * @param get the reads into accelerator memory
 * @param byCpu the CPU's reads of the same range into host memory
 * @param arrivedSha256 SHA-256 of what arrived in accelerator memory, in hexadecimal
 * @param cpuSha256 SHA-256 of what the CPU read
 * @param difference where the first piece of 1 MiB begins that differs; null if none does
 */
public record RangeReport(
    String device,
    String model,
    int ssds,
    long offset,
    long bytes,
    int blockSize,
    long maxTransferBytes,
    String accelerator,
    String acceleratorReason,
    long bufferBytes,
    TransferReport get,
    TransferReport byCpu,
    String arrivedSha256,
    String cpuSha256,
    @Nullable Difference difference) {
  /**
   * A place where something else arrived than the CPU read.
   *
   * @param ssd by its name
   * @param lba the block
   */
  public record Difference(String ssd, long lba) {}

  /** Whether both read the same. */
  public boolean verified() {
    return arrivedSha256.equals(cpuSha256);
  }
}
