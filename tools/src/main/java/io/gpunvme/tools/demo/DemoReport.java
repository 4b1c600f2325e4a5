package io.gpunvme.tools.demo;

import io.gpunvme.base.ByteRange;
import io.gpunvme.gpu.transfer.TransferReport;
import java.nio.file.Path;
import java.util.OptionalLong;
import org.jspecify.annotations.Nullable;

/**
 * What the demo did.
 *
 * @param file the file that was moved
 * @param sample whether the demo made it
 * @param bytes its size
 * @param device the SSD's address, or that of several
 * @param range of somebody's SSDs that was used and put back; null if the SSD was the demo's own
 * @param image the file behind the SSD, or null if there is none
 * @param pinned whether the SSD's medium is memory that was pinned for the GPU's copy engines
 * @param model what the SSDs say they are
 * @param ssds how many there are
 * @param blockSize bytes per logical block
 * @param maxTransferBytes longest transfer of one command
 * @param accelerator whose memory the bytes arrived in
 * @param acceleratorReason why it was this one
 * @param bufferBytes accelerator memory used; a longer file went through it in turns
 * @param put the writes; its time does not include reading the file
 * @param putByCpu how many of the writes came from the CPU, by the SSDs' count, if all are ours
 * @param flushNanos how long the Flush commands took
 * @param get the reads
 * @param getByCpu how many of the reads came from the CPU, by the SSDs' count, if all are ours
 * @param sourceSha256 SHA-256 of the file, in hexadecimal
 * @param arrivedSha256 SHA-256 of what arrived
 * @param nanos how long everything took
 */
public record DemoReport(
    Path file,
    boolean sample,
    long bytes,
    String device,
    @Nullable ByteRange range,
    @Nullable Path image,
    boolean pinned,
    String model,
    int ssds,
    int blockSize,
    long maxTransferBytes,
    String accelerator,
    String acceleratorReason,
    long bufferBytes,
    TransferReport put,
    OptionalLong putByCpu,
    long flushNanos,
    TransferReport get,
    OptionalLong getByCpu,
    String sourceSha256,
    String arrivedSha256,
    long nanos) {
  /** Whether what arrived is what was sent. */
  public boolean verified() {
    return sourceSha256.equals(arrivedSha256);
  }
}
