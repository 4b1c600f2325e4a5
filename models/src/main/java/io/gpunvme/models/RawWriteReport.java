package io.gpunvme.models;

import com.google.gson.JsonObject;
import java.util.UUID;

/**
 * The report of writing a raw model.
 *
 * @param uuid of the written model
 * @param path the path of the writes, as the storage names it, e.g. {@code direct}
 * @param mode how the path worked
 * @param tensors how many
 * @param bytes of them
 * @param totalBytes that the model takes on the device
 * @param nanos wall-clock time in all
 * @param readNanos the part for reading the model
 * @param writeNanos the part for writing tensors
 * @param verifyNanos the part for reading back
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
  /** 10^9 bytes of tensors a second, over the whole time. */
  public double gigabytesPerSecond() {
    return nanos == 0 ? 0 : (double) bytes / nanos;
  }

  /** 10^9 bytes of tensors a second of writing. */
  public double writeGigabytesPerSecond() {
    return writeNanos == 0 ? 0 : (double) bytes / writeNanos;
  }

  /** The report as one JSON object. */
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
