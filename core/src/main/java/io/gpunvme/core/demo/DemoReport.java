package io.gpunvme.core.demo;

import io.gpunvme.core.transfer.TransferReport;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;

/**
 * What the demo did.
 *
 * @param file the file that was moved
 * @param sample whether the demo made it
 * @param bytes its size
 * @param device the SSD's address
 * @param image the file behind the SSD, or null if there is none
 * @param model what the SSD says it is
 * @param blockSize bytes per logical block
 * @param maxTransferBytes longest transfer of one command
 * @param accelerator whose memory the bytes arrived in
 * @param bufferBytes accelerator memory used; a longer file went through it in turns
 * @param put the writes; its time does not include reading the file
 * @param flushNanos how long the Flush command took
 * @param get the reads
 * @param sourceSha256 SHA-256 of the file, in hexadecimal
 * @param arrivedSha256 SHA-256 of what arrived
 * @param nanos how long everything took
 */
public record DemoReport(
    Path file,
    boolean sample,
    long bytes,
    String device,
    @Nullable Path image,
    String model,
    int blockSize,
    long maxTransferBytes,
    String accelerator,
    long bufferBytes,
    TransferReport put,
    long flushNanos,
    TransferReport get,
    String sourceSha256,
    String arrivedSha256,
    long nanos) {
  /** Whether what arrived is what was sent. */
  public boolean verified() {
    return sourceSha256.equals(arrivedSha256);
  }
}
