package io.gpunvme.models;

import com.google.gson.JsonObject;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.base.Reason;
import io.gpunvme.models.format.FormatException;
import io.gpunvme.models.format.StrictJson;
import io.gpunvme.storage.path.StorageException;
import io.gpunvme.storage.path.StorageException.Kind;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collections;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.TreeMap;
import java.util.regex.Pattern;

/**
 * Checksums of a model's tensors: CRC-32C (RFC 3720, appendix B.4) of each one's bytes, in a JSON
 * file next to the model. They detect accidental changes, not intended ones. Immutable.
 */
public final class Manifest {
  private static final String ALGORITHM = "crc32c";
  private static final String TENSORS = "tensors";
  private static final String BYTES = "bytes";
  private static final long LONGEST_FILE = 1L << 30;
  private static final Pattern CHECKSUM = Pattern.compile("[0-9a-fA-F]{8}");

  /**
   * The size and checksum of a tensor.
   *
   * @param crc32c as {@link java.util.zip.CRC32C} computes it
   */
  public record Entry(long bytes, int crc32c) {}

  private final Map<String, Entry> entries;

  /** A manifest with these entries. */
  public Manifest(Map<String, Entry> entries) {
    this.entries = Collections.unmodifiableMap(new TreeMap<>(entries));
  }

  /** The entries by the tensors' names. */
  public Map<String, Entry> entries() {
    return entries;
  }

  /**
   * Reads a file.
   *
   * @throws StorageException if it cannot be read
   * @throws InvalidRequestException if it is not a manifest
   */
  public static Manifest read(Path file) {
    try (InputStream in = Files.newInputStream(file)) {
      if (Files.size(file) > LONGEST_FILE) {
        throw new InvalidRequestException(
            file + " is not a manifest of gpunvme: it is longer than 1 GiB");
      }
      return new Reading(new StrictJson(file.toString(), in)).manifest();
    } catch (FormatException e) {
      String what = String.valueOf(e.getMessage()).replace(file + ": corrupt: ", "");
      throw new InvalidRequestException(file + " is not a manifest of gpunvme: " + what);
    } catch (UncheckedIOException e) {
      throw unreadable(file, String.valueOf(e.getMessage()), e);
    } catch (IOException e) {
      throw unreadable(file, Reason.of(e), e);
    }
  }

  private static StorageException unreadable(Path file, String why, Exception cause) {
    return new StorageException(
        Kind.GONE, file.toString(), -1, -1, "cannot be read: " + why, cause);
  }

  /** What has been read of a file. */
  private static final class Reading {
    private final StrictJson json;
    private final Map<String, Entry> entries = new TreeMap<>();
    private String algorithm = "";
    private boolean hasTensors;
    private OptionalLong bytes = OptionalLong.empty();
    private OptionalInt crc32c = OptionalInt.empty();

    Reading(StrictJson json) {
      this.json = json;
    }

    Manifest manifest() {
      json.document(() -> json.object(this::member));
      if (!algorithm.equals(ALGORITHM)) {
        throw json.corrupt("its \"algorithm\" is not " + ALGORITHM);
      }
      if (!hasTensors) {
        throw json.corrupt("\"" + TENSORS + "\" is missing");
      }
      return new Manifest(entries);
    }

    private void member(String name) throws IOException {
      switch (name) {
        case "algorithm" -> algorithm = json.text();
        case TENSORS -> {
          hasTensors = true;
          json.object(this::tensor);
        }
        default -> json.skip();
      }
    }

    private void tensor(String name) throws IOException {
      bytes = OptionalLong.empty();
      crc32c = OptionalInt.empty();
      json.object(this::field);
      if (bytes.isEmpty() || crc32c.isEmpty()) {
        throw json.corrupt("a tensor needs \"%s\" and \"%s\"".formatted(BYTES, ALGORITHM));
      }
      entries.put(name, new Entry(bytes.getAsLong(), crc32c.getAsInt()));
    }

    private void field(String name) throws IOException {
      switch (name) {
        case BYTES -> bytes = OptionalLong.of(json.whole());
        case ALGORITHM -> crc32c = OptionalInt.of(checksum());
        default -> json.skip();
      }
    }

    private int checksum() throws IOException {
      String digits = json.text();
      if (!CHECKSUM.matcher(digits).matches()) {
        throw json.corrupt("a CRC-32C of eight hexadecimal digits is expected");
      }
      return HexFormat.fromHexDigits(digits);
    }
  }

  /** The JSON of a manifest's file. */
  public JsonObject toJson() {
    JsonObject json = new JsonObject();
    json.addProperty("gpunvme_manifest", 1);
    json.addProperty("algorithm", ALGORITHM);
    JsonObject tensors = new JsonObject();
    entries.forEach(
        (name, e) -> {
          JsonObject one = new JsonObject();
          one.addProperty(BYTES, e.bytes());
          one.addProperty(ALGORITHM, HexFormat.of().toHexDigits(e.crc32c()));
          tensors.add(name, one);
        });
    json.add(TENSORS, tensors);
    return json;
  }

  /**
   * Checks that all of these can be verified.
   *
   * @throws InvalidRequestException if one is not in it, has another length, or is a part only
   */
  void requireAll(List<Part> parts) {
    for (Part p : parts) {
      Entry entry = entries.get(p.name());
      if (p.slice() != null) {
        throw new InvalidRequestException(
            "tensor '%s' is loaded in part (%s), but the manifest has checksums of whole tensors only"
                .formatted(p.name(), p.slice()));
      }
      if (entry == null || entry.bytes() != p.bytes()) {
        throw new InvalidRequestException(
            entry == null
                ? "the manifest has no tensor '" + p.name() + "'"
                : "tensor '%s' has %d bytes, but %d in the manifest: is it the manifest of another model?"
                    .formatted(p.name(), p.bytes(), entry.bytes()));
      }
    }
  }

  /**
   * Compares.
   *
   * @throws StorageException if the checksum is another one
   */
  void require(Part part, int crc32c, String source) {
    Entry entry = entries.get(part.name());
    if (entry == null || entry.crc32c() != crc32c) {
      throw new StorageException(
          Kind.IO,
          source,
          part.offset(),
          part.bytes(),
          "tensor '%s' has CRC-32C %08x, but %s in the manifest"
              .formatted(
                  part.name(), crc32c, entry == null ? "none" : "%08x".formatted(entry.crc32c())),
          null);
    }
  }
}
