package io.gpunvme.storage.fs.ext4;

import io.gpunvme.testing.Programs;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** The programs of e2fsprogs, which make and change ext4. */
final class E2fs {
  private E2fs() {}

  /** Skips the test where one of them is missing. */
  static void need(String... programs) {
    Programs.need("e2fsprogs", programs);
  }

  /** Makes a file system with the options, which are apart by spaces, and what a folder has. */
  static void make(Path image, String size, String options, Path folder) {
    List<Object> command = new ArrayList<>(List.of("mke2fs", "-q", "-F"));
    command.addAll(List.of(options.trim().split(" +")));
    if (folder != null) {
      command.addAll(List.of("-d", folder));
    }
    command.addAll(List.of(image, size));
    Programs.run(command.toArray());
  }

  /** Puts right what is wrong, and packs folders and extents. */
  static void check(Path image) {
    Programs.text(List.of(0, 1), "e2fsck", "-fyD", image);
  }

  /** What debugfs answers to requests, changing the image where they do. */
  static String debug(Path image, List<String> requests) {
    try {
      Path script = Files.createTempFile("requests", null);
      try {
        Files.write(script, requests, StandardCharsets.ISO_8859_1);
        return Programs.text(List.of(0), "debugfs", "-w", "-f", script, image);
      } finally {
        Files.delete(script);
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  static String debug(Path image, String... requests) {
    return debug(image, List.of(requests));
  }
}
