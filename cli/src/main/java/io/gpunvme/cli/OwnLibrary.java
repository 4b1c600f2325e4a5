package io.gpunvme.cli;

import java.nio.file.Path;
import org.jspecify.annotations.Nullable;

/** Where gpunvme's own libcufile is, or would be once it is built. */
final class OwnLibrary {
  /** Whatever starts Java says by this in which folder it is. */
  private static final String PROPERTY = "gpunvme.cufile";

  private OwnLibrary() {}

  /** Null: nobody said it. */
  static @Nullable Path folder() {
    String folder = System.getProperty(PROPERTY);
    return folder == null || folder.isEmpty() ? null : Path.of(folder).normalize();
  }
}
