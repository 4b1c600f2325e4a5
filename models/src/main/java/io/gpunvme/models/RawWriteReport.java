package io.gpunvme.models;

import com.google.gson.JsonObject;
import java.util.UUID;

/**
 * How the writing of a raw model went.
 *
 * @param uuid of what was written
 * @param path by which it was written, in the storage's words, e.g. {@code direct}
 * @param mode how that worked
 * @param tensors how many
 * @param bytes of them
 * @param totalBytes that the model takes on the device
 * @param nanos wall-clock time of all of it
 * @param readNanos of which reading the model
 * @param writeNanos of which writing tensors
 * @param verifyNanos of which reading back
 * @param verified tensors that were read back and compared
 */
public record RawWriteReport(
    UUID uuid,
    String path,
    String mode,
    int tensors,
    long bytes,
    long totalBytes,
    long nanos,
    long readNanos,
    long writeNanos,
    long verifyNanos,
    int verified) {
  /** 10^9 bytes of tensors a second, reading and all included. */
  public double gigabytesPerSecond() {
    return nanos == 0 ? 0 : (double) bytes / nanos;
  }

  /** 10^9 bytes of tensors a second of writing. */
  public double writeGigabytesPerSecond() {
    return writeNanos == 0 ? 0 : (double) bytes / writeNanos;
  }

  /** All of it. */
  public JsonObject toJson() {
    JsonObject json = new JsonObject();
    json.addProperty("uuid", uuid.toString());
    json.addProperty("path", path);
    json.addProperty("mode", mode);
    json.addProperty("tensors", tensors);
    json.addProperty("bytes", bytes);
    json.addProperty("total_bytes", totalBytes);
    json.addProperty("seconds", nanos / 1e9);
    json.addProperty("read_seconds", readNanos / 1e9);
    json.addProperty("write_seconds", writeNanos / 1e9);
    json.addProperty("verify_seconds", verifyNanos / 1e9);
    json.addProperty("gigabytes_per_second", gigabytesPerSecond());
    json.addProperty("write_gigabytes_per_second", writeGigabytesPerSecond());
    json.addProperty("verified", verified);
    return json;
  }
}
