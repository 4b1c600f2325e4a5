package io.gpunvme.tools.demo;

import io.gpunvme.base.ByteRange;
import io.gpunvme.gpu.transfer.TransferReport;

/**
 * What was read twice.
 *
 * @param device the SSD's address
 * @param model what the SSD says it is
 * @param range of its namespace 1
 * @param blockSize bytes per logical block
 * @param maxTransferBytes longest transfer of one command
 * @param accelerator whose memory the bytes arrived in
 * @param acceleratorReason why it was this one
 * @param bufferBytes accelerator memory used; a longer range went through it in turns
 * @param get the reads into accelerator memory
 * @param byCpu the CPU's reads of the same range into host memory
 * @param arrivedSha256 SHA-256 of what arrived in accelerator memory, in hexadecimal
 * @param cpuSha256 SHA-256 of what the CPU read
 * @param differsAt where the first piece of 1 MiB begins that differs, bytes from the namespace's
 *     begin; -1 if none does
 */
public record RangeReport(
    String device,
    String model,
    ByteRange range,
    int blockSize,
    long maxTransferBytes,
    String accelerator,
    String acceleratorReason,
    long bufferBytes,
    TransferReport get,
    TransferReport byCpu,
    String arrivedSha256,
    String cpuSha256,
    long differsAt) {
  /** Whether both read the same. */
  public boolean verified() {
    return arrivedSha256.equals(cpuSha256);
  }
}
