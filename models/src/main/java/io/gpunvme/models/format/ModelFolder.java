package io.gpunvme.models.format;

import io.gpunvme.storage.fs.BlockReader;
import java.util.List;
import java.util.Optional;

/**
 * A folder with the files of a model, in a mounted file system or in one that this process reads.
 */
public interface ModelFolder {
  /** Its name in messages. */
  String name();

  /** Names of the files in it, in any order. */
  List<String> files();

  /**
   * Opens a file in it.
   *
   * @param name plain, without slashes
   * @return empty if there is none; the caller closes it
   */
  Optional<BlockReader> open(String name);
}
