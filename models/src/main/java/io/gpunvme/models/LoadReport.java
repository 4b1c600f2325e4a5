package io.gpunvme.models;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import io.gpunvme.storage.path.MemberStats;
import java.util.List;

/**
 * How a load went.
 *
 * @param path by which the bytes came, in the storage's words, e.g. {@code direct}
 * @param mode how it worked
 * @param tensors how many
 * @param bytes of them
 * @param readBytes that were moved for it, those included that nobody wanted
 * @param nanos wall-clock time, verification included
 * @param allocateNanos of which taking the tensors' memory
 * @param verifyNanos of which verification
 * @param retries reads that were tried again
 * @param tensorBytes memory of the accelerator that the tensors take
 * @param ringBytes memory of the accelerator that was used meanwhile
 * @param verified tensors whose checksum was compared
 * @param members of a set of SSDs or files, what each did; empty if it is none
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

  /** All of it. */
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
    JsonArray list = new JsonArray();
    for (MemberStats m : members) {
      JsonObject one = new JsonObject();
      one.addProperty("name", m.name());
      one.addProperty("bytes", m.bytes());
      one.addProperty("gigabytes_per_second", m.gigabytesPerSecond());
      one.addProperty("failure", m.failure().isEmpty() ? null : m.failure());
      list.add(one);
    }
    json.add("members", list);
    return json;
  }
}
