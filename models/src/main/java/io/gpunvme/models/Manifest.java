package io.gpunvme.models;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParseException;
import com.google.gson.JsonParser;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.storage.path.StorageException;
import io.gpunvme.storage.path.StorageException.Kind;
import java.io.IOException;
import java.nio.charset.CharacterCodingException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collections;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * Checksums of a model's tensors: CRC-32C (RFC 3720, appendix B.4) of each one's bytes, in a JSON
 * file next to the model. They detect accidental changes, not intended ones. Immutable.
 */
public final class Manifest {
  private static final String ALGORITHM = "crc32c";
  private static final String TENSORS = "tensors";
  private static final String BYTES = "bytes";
  private static final long LONGEST_FILE = 1L << 30;

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
    try {
      if (Files.size(file) > LONGEST_FILE) {
        throw bad(file, "it is longer than 1 GiB");
      }
      JsonObject json = JsonParser.parseString(Files.readString(file)).getAsJsonObject();
      if (!json.get("algorithm").getAsString().equals(ALGORITHM)) {
        throw bad(file, "algorithm " + json.get("algorithm") + " is not " + ALGORITHM);
      }
      Map<String, Entry> entries = new TreeMap<>();
      for (Map.Entry<String, JsonElement> e : json.getAsJsonObject(TENSORS).entrySet()) {
        JsonObject one = e.getValue().getAsJsonObject();
        int crc = HexFormat.fromHexDigits(one.get(ALGORITHM).getAsString());
        entries.put(e.getKey(), new Entry(one.get(BYTES).getAsLong(), crc));
      }
      return new Manifest(entries);
    } catch (CharacterCodingException e) {
      throw bad(file, "it is not UTF-8 text");
    } catch (IOException e) {
      throw new StorageException(Kind.GONE, file.toString(), -1, -1, "cannot be read: " + e, e);
    } catch (JsonParseException
        | IllegalStateException
        | NullPointerException
        | IllegalArgumentException
        | ClassCastException e) {
      throw bad(file, String.valueOf(e.getMessage()));
    }
  }

  private static InvalidRequestException bad(Path file, String why) {
    return new InvalidRequestException(file + " is not a manifest of gpunvme: " + why);
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
