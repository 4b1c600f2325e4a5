package io.gpunvme.gpu.queue;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.base.Printable;
import io.gpunvme.gpu.queue.DeviceLayout.Extent;
import io.gpunvme.gpu.queue.DeviceLayout.File;
import io.gpunvme.gpu.queue.DeviceLayout.PathSlot;
import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Files of one {@link StripeSet}, collected for {@link KernelStorage#directory}. Not safe for
 * several threads.
 */
public final class DirectoryFiles {
  /** Most files. */
  public static final int MOST_FILES = 1 << 24;

  /** Most bytes of a path in UTF-8. */
  public static final int MOST_PATH_BYTES = 4096;

  /** Most bytes of memory of the GPU for all that kernels are told. */
  public static final long MOST_BYTES = 1L << 32;

  private final StripeSet set;
  private final int mostFiles;
  private final long mostBytes;
  private final List<One> files = new ArrayList<>();
  private long bytes;

  /**
   * One file.
   *
   * @param path UTF-8
   * @param extents all of it, holes included
   */
  record One(byte[] path, long bytes, List<DeviceExtent> extents) {}

  /**
   * None yet.
   *
   * @param set that all of them are on
   */
  public DirectoryFiles(StripeSet set) {
    this(set, MOST_FILES, MOST_BYTES);
  }

  /** With limits of its own. */
  DirectoryFiles(StripeSet set, int mostFiles, long mostBytes) {
    this.set = set;
    this.mostFiles = mostFiles;
    this.mostBytes = mostBytes;
  }

  /**
   * Adds a file.
   *
   * @param path names with a slash between two, without one in front; no name is empty, {@code .}
   *     or {@code ..}, and none has the character 0
   * @param size of the file in bytes
   * @param extents as for {@link KernelStorage#file}
   * @throws InvalidRequestException if the path or an extent is not as described, or there are too
   *     many files, or too many bytes
   */
  public void add(String path, long size, List<DeviceExtent> extents) {
    byte[] encoded = encode(path);
    List<DeviceExtent> table =
        List.copyOf(DeviceFile.table("'" + Printable.of(path) + "'", set, size, extents));
    if (files.size() == mostFiles) {
      throw new InvalidRequestException(
          "more than %d files; make a directory each of parts of them".formatted(mostFiles));
    }
    // There are 2 to 4 slots for each file.
    bytes +=
        File.SIZE + encoded.length + Integer.BYTES + 4 * PathSlot.SIZE + table.size() * Extent.SIZE;
    if (bytes > mostBytes) {
      throw new InvalidRequestException(
          "%d files take more than %d bytes of memory of the GPU; make a directory each of parts of them"
              .formatted(files.size() + 1, mostBytes));
    }
    files.add(new One(encoded, size, table));
  }

  private static byte[] encode(String path) {
    for (String name : path.split("/", -1)) {
      if (name.isEmpty() || name.equals(".") || name.equals("..") || name.indexOf(0) >= 0) {
        throw new InvalidRequestException(
            "'%s' is no path of a file: it has a name that is empty, . or .., or has a character 0"
                .formatted(Printable.of(path)));
      }
    }
    ByteBuffer encoded;
    try {
      encoded = StandardCharsets.UTF_8.newEncoder().encode(CharBuffer.wrap(path));
    } catch (CharacterCodingException e) {
      throw new InvalidRequestException(
          "'%s' cannot be written in UTF-8".formatted(Printable.of(path)));
    }
    if (encoded.remaining() > MOST_PATH_BYTES) {
      throw new InvalidRequestException(
          "the path '%s' has %d bytes, more than %d"
              .formatted(Printable.quote(path), encoded.remaining(), MOST_PATH_BYTES));
    }
    byte[] bytes = new byte[encoded.remaining()];
    encoded.get(bytes);
    return bytes;
  }

  /** How many were added. */
  public int count() {
    return files.size();
  }

  StripeSet set() {
    return set;
  }

  /**
   * All of them in the order of their paths, compared as unsigned bytes.
   *
   * @throws InvalidRequestException if two have the same path
   */
  List<One> sorted() {
    List<One> sorted = new ArrayList<>(files);
    sorted.sort((a, b) -> Arrays.compareUnsigned(a.path(), b.path()));
    for (int i = 1; i < sorted.size(); i++) {
      if (Arrays.equals(sorted.get(i - 1).path(), sorted.get(i).path())) {
        String path = new String(sorted.get(i).path(), StandardCharsets.UTF_8);
        throw new InvalidRequestException("'%s' is there twice".formatted(Printable.of(path)));
      }
    }
    return sorted;
  }
}
