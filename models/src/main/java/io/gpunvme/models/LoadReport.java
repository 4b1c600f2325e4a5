package io.gpunvme.models;

import com.google.gson.JsonObject;
import io.gpunvme.storage.path.MemberStats;
import java.util.List;

/**
 * The report of a load.
 *
 * @param path the path of the bytes, as the storage names it, e.g. {@code direct}
 * @param mode how the path worked
 * @param tensors how many
 * @param bytes of them
 * @param readBytes bytes moved for it, including unneeded ones
 * @param nanos wall-clock time, including verification
 * @param allocateNanos the part for allocating the tensors' memory
 * @param verifyNanos the part for verification
 * @param retries reads that were repeated
 * @param tensorBytes memory of the accelerator that the tensors take
 * @param ringBytes memory of the accelerator that was used during the load
 * @param verified tensors whose checksum was compared
 * @param members the counts of each member of a set of SSDs or files; empty if it is not a set
 */
public record LoadReport(
    String path,
    String mode,
    int tensors,
    long bytes,
    long readBytes,
    long nanos,
    long allocateNanos,
    long verifyNanos,
    long retries,
    long tensorBytes,
    long ringBytes,
    int verified,
    List<MemberStats> members) {
  /** Copies. */
  public LoadReport {
    members = List.copyOf(members);
  }

  /** 10^9 bytes of tensors a second. */
  public double gigabytesPerSecond() {
    return nanos == 0 ? 0 : (double) bytes / nanos;
  }

  /** The report as one JSON object. */
  public JsonObject toJson() {
    JsonObject json = new JsonObject();
    json.addProperty("path", path);
    json.addProperty("mode", mode);
    json.addProperty("tensors", tensors);
    json.addProperty("bytes", bytes);
    json.addProperty("read_bytes", readBytes);
    json.addProperty("seconds", nanos / 1e9);
    json.addProperty("allocate_seconds", allocateNanos / 1e9);
    json.addProperty("verify_seconds", verifyNanos / 1e9);
    json.addProperty("gigabytes_per_second", gigabytesPerSecond());
    json.addProperty("retries", retries);
    json.addProperty("tensor_bytes", tensorBytes);
    json.addProperty("ring_bytes", ringBytes);
    json.addProperty("verified", verified);
    MemberStats.addTo(json, members);
    return json;
  }
}
