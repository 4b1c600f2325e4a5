package io.gpunvme.models.format;

import io.gpunvme.base.Printable;
import io.gpunvme.models.format.FormatException.Kind;
import io.gpunvme.storage.fs.BlockReader;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;

/**
 * The index of a sharded safetensors model, {@code model.safetensors.index.json}: the file of each
 * tensor. Source: {@code save_torch_state_dict} of huggingface_hub and {@code
 * load_sharded_checkpoint} of transformers.
 *
 * @param file its name in messages
 * @param weightMap file names by tensors' names, in the index's order; each a plain name
 * @param metadata its other values ({@code total_size}), as text; empty for a value that is not
 *     text, a number or a truth value
 */
public record SafetensorsIndex(
    String file, Map<String, String> weightMap, Map<String, String> metadata) {
  /** The end of the names of such files. */
  public static final String SUFFIX = ".safetensors.index.json";

  /** Longest index in bytes; the format's limit for a header. */
  public static final int LONGEST = Safetensors.LONGEST_HEADER;

  private static final String WEIGHT_MAP = "weight_map";
  private static final String METADATA = "metadata";

  /** Copies the maps. */
  public SafetensorsIndex {
    weightMap = Collections.unmodifiableMap(new LinkedHashMap<>(weightMap));
    metadata = Collections.unmodifiableMap(new LinkedHashMap<>(metadata));
  }

  /**
   * Reads an index. {@link ModelFiles} checks that the files agree with it.
   *
   * @throws FormatException if it is not an index, or names a file outside its folder
   * @throws io.gpunvme.storage.path.StorageException if reading fails
   */
  public static SafetensorsIndex read(BlockReader reader) {
    String file = reader.name();
    if (reader.size() > LONGEST) {
      throw FormatException.of(
          Kind.UNSUPPORTED, file, "an index of more than " + LONGEST + " bytes");
    }
    HeapRoom.here(file).take(reader.size());
    Map<String, String> map = new LinkedHashMap<>();
    Map<String, String> metadata = new LinkedHashMap<>();
    boolean[] seen = {false};
    StrictJson json = new StrictJson(file, new ByteCursor(reader, 0, reader.size()).stream());
    json.document(
        () ->
            json.object(
                name -> {
                  switch (name) {
                    case WEIGHT_MAP -> {
                      seen[0] = true;
                      json.object(tensor -> map.put(tensor, shard(file, tensor, json.text())));
                    }
                    case METADATA -> json.object(key -> metadata.put(key, json.plain()));
                    default -> json.skip();
                  }
                }));
    if (!seen[0]) {
      throw FormatException.of(
          Kind.NOT_THIS_FORMAT, file, "not an index of safetensors: it has no weight_map");
    }
    return new SafetensorsIndex(file, map, metadata);
  }

  /** A plain name: nothing of an index makes us read outside its folder. */
  private static String shard(String file, String tensor, String name) {
    if (name.isEmpty()
        || name.equals(".")
        || name.equals("..")
        || name.chars().anyMatch(c -> c == '/' || c == '\\' || c == 0)) {
      throw FormatException.tensor(
          Kind.CORRUPT,
          file,
          tensor,
          "its file '%s' is not a plain name of a file next to the index"
              .formatted(Printable.quote(name)));
    }
    return name;
  }

  /** The files that it names, sorted. */
  public List<String> shards() {
    return List.copyOf(new TreeSet<>(weightMap.values()));
  }
}
