package io.gpunvme.models.format;

import io.gpunvme.base.CloseAll;
import io.gpunvme.base.Printable;
import io.gpunvme.models.format.FormatException.Kind;
import io.gpunvme.storage.fs.BlockReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.IntStream;

/**
 * The files of a model, open, with their headers checked against each other: one safetensors or
 * GGUF file, the shards that an index names, or the parts of a split GGUF file. Closing it closes
 * them. Immutable, safe for all threads.
 */
public final class ModelFiles implements AutoCloseable {
  /**
   * A file.
   *
   * @param name in its folder
   * @param reader of its bytes
   */
  public record ModelFile(String name, BlockReader reader, ModelHeader header) {}

  /**
   * A tensor and the file that has it.
   *
   * @param file index in {@link #files}
   */
  public record Placed(int file, TensorInfo tensor) {}

  private static final String SAFETENSORS = ".safetensors";
  private static final String GGUF_SUFFIX = ".gguf";

  private final ModelFolder folder;
  private final List<ModelFile> files;
  private final Map<String, Placed> tensors;
  private final List<String> unnamed;

  private ModelFiles(
      ModelFolder folder,
      List<ModelFile> files,
      Map<String, Placed> tensors,
      List<String> unnamed) {
    this.folder = folder;
    this.files = List.copyOf(files);
    this.tensors = tensors;
    this.unnamed = List.copyOf(unnamed);
  }

  /**
   * Opens a model by any of its files, or by the folder that has one model.
   *
   * @throws FormatException if it cannot be used
   * @throws io.gpunvme.storage.path.StorageException if reading fails
   */
  public static ModelFiles open(Path path) {
    Path absolute = path.toAbsolutePath();
    if (Files.isDirectory(absolute)) {
      ModelFolder folder = new PathFolder(path);
      return open(folder, find(folder));
    }
    Path parent = path.getParent();
    Path name = path.getFileName();
    if (name == null) {
      throw FormatException.of(Kind.MISSING, path.toString(), "there is no such file");
    }
    return open(new PathFolder(parent == null ? Path.of("") : parent), name.toString());
  }

  /**
   * The file of a folder that stands for the model in it: the index, the only safetensors file, the
   * only GGUF file, or the first part of the only split GGUF file.
   *
   * @throws FormatException if there is none, or more than one model
   */
  public static String find(ModelFolder folder) {
    List<String> names = folder.files().stream().sorted().toList();
    List<String> found = names.stream().filter(n -> n.endsWith(SafetensorsIndex.SUFFIX)).toList();
    if (found.isEmpty()) {
      found =
          names.stream()
              .filter(ModelFiles::isModelName)
              .filter(n -> GgufSplit.names(n).getFirst().equals(n))
              .toList();
    }
    if (found.size() != 1) {
      throw FormatException.of(
          Kind.MISSING,
          folder.name(),
          found.isEmpty()
              ? "it has no *.safetensors, *%s or *.gguf".formatted(SafetensorsIndex.SUFFIX)
              : "it has several models; name one of: " + Printable.quote(String.join(", ", found)));
    }
    return found.getFirst();
  }

  /** Whether a name ends as those of safetensors and GGUF files do. */
  public static boolean isModelName(String name) {
    return name.endsWith(SAFETENSORS) || name.endsWith(GGUF_SUFFIX);
  }

  /**
   * Opens a model by any of its files.
   *
   * @param name in the folder: a safetensors file, an index, a GGUF file or a part of one
   * @throws FormatException if it cannot be used
   * @throws io.gpunvme.storage.path.StorageException if reading fails
   */
  public static ModelFiles open(ModelFolder folder, String name) {
    List<ModelFile> files = new ArrayList<>();
    try {
      if (name.endsWith(SafetensorsIndex.SUFFIX)) {
        SafetensorsIndex index;
        try (BlockReader reader = reader(folder, name, "")) {
          index = SafetensorsIndex.read(reader);
        }
        for (String shard : index.shards()) {
          files.add(file(folder, shard, ", which " + index.file() + " names"));
        }
        return indexed(folder, index, files);
      }
      for (String part : GgufSplit.names(name)) {
        files.add(file(folder, part, part.equals(name) ? "" : ", which belongs to " + name));
      }
      if (files.getFirst().header.format().startsWith(Gguf.FORMAT)) {
        GgufSplit.check(files.stream().map(ModelFile::header).toList());
      }
      return whole(folder, files);
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, () -> close(files));
      throw e;
    }
  }

  /**
   * Reads the header of a file, whichever format it has.
   *
   * @param reader must stay open while arrays of the metadata are read
   * @throws FormatException if it is not a file of weights
   * @throws io.gpunvme.storage.path.StorageException if reading fails
   */
  public static ModelHeader readHeader(BlockReader reader) {
    boolean gguf =
        reader.size() >= Integer.BYTES
            && new ByteCursor(reader, 0, Integer.BYTES).u32("the magic") == Gguf.MAGIC;
    return gguf ? Gguf.read(reader) : Safetensors.read(reader);
  }

  private static ModelFile file(ModelFolder folder, String name, String why) {
    BlockReader reader = reader(folder, name, why);
    return CloseAll.orClose(() -> new ModelFile(name, reader, readHeader(reader)), reader::close);
  }

  private static BlockReader reader(ModelFolder folder, String name, String why) {
    return folder
        .open(name)
        .orElseThrow(
            () ->
                FormatException.of(
                    Kind.MISSING,
                    folder.name(),
                    "there is no file '%s'%s".formatted(Printable.quote(name), why)));
  }

  /** Every tensor counts, so no name may be in two files. */
  private static ModelFiles whole(ModelFolder folder, List<ModelFile> files) {
    Map<String, Placed> all = new LinkedHashMap<>();
    for (int i = 0; i < files.size(); i++) {
      for (TensorInfo tensor : files.get(i).header.tensors()) {
        Placed before = all.putIfAbsent(tensor.name(), new Placed(i, tensor));
        if (before != null) {
          throw FormatException.tensor(
              Kind.CORRUPT,
              files.get(i).header.file(),
              tensor.name(),
              "it is in " + files.get(before.file).name + " too");
        }
      }
    }
    return new ModelFiles(folder, files, all, List.of());
  }

  /** What the index names counts; each must be where it says. */
  private static ModelFiles indexed(
      ModelFolder folder, SafetensorsIndex index, List<ModelFile> files) {
    Map<String, Integer> numbers = new HashMap<>();
    IntStream.range(0, files.size()).forEach(i -> numbers.put(files.get(i).name, i));
    Map<String, Placed> named = new LinkedHashMap<>();
    List<String> unnamed = new ArrayList<>();
    for (int i = 0; i < files.size(); i++) {
      for (TensorInfo tensor : files.get(i).header.tensors()) {
        Integer wanted = numbers.get(index.weightMap().get(tensor.name()));
        if (wanted != null && wanted == i) {
          named.put(tensor.name(), new Placed(i, tensor));
        } else {
          unnamed.add(files.get(i).name + ": " + tensor.name());
        }
      }
    }
    index
        .weightMap()
        .forEach(
            (tensor, shard) -> {
              if (!named.containsKey(tensor)) {
                throw FormatException.tensor(
                    Kind.MISSING,
                    index.file(),
                    tensor,
                    "it is not in '%s'; do index and files belong to one model?"
                        .formatted(Printable.quote(shard)));
              }
            });
    return new ModelFiles(folder, files, named, unnamed);
  }

  /** The files, in order of their names. */
  public List<ModelFile> files() {
    return files;
  }

  /** The model's tensors by name, file after file in the order of their offsets. */
  public Map<String, Placed> tensors() {
    return Collections.unmodifiableMap(tensors);
  }

  /**
   * Tensors in the files that the index does not name, or names in another file, as {@code FILE:
   * TENSOR}. They do not belong to the model.
   */
  public List<String> unnamed() {
    return unnamed;
  }

  /**
   * Opens another file of the folder.
   *
   * @param name plain, without slashes
   * @return empty if there is none; the caller closes it
   * @throws io.gpunvme.storage.path.StorageException if that fails
   */
  public Optional<BlockReader> beside(String name) {
    return folder.open(name);
  }

  @Override
  public void close() {
    close(files);
  }

  private static void close(List<ModelFile> files) {
    CloseAll.each(files, file -> file.reader.close());
  }
}
