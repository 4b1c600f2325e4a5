package io.gpunvme.storage.fs.ext4;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;

/** Images of less than a MiB in which each structure is met. */
final class SmallImages {
  private SmallImages() {}

  /**
   * Makes one.
   *
   * @param options of mke2fs, with blocks of 1 KiB
   */
  static byte[] make(Path folder, String options) throws IOException {
    Path source = Files.createDirectory(folder.resolve("small"));
    SplittableRandom random = new SplittableRandom(7);
    for (int size : new int[] {0, 50, 100, 1500, 30_000}) {
      Files.write(source.resolve("f" + size), SourceTree.bytes(random, size));
    }
    Files.createSymbolicLink(source.resolve("fast"), Path.of("few/a1"));
    Files.createSymbolicLink(source.resolve("slow"), Path.of("./".repeat(40) + "f50"));
    Files.createDirectories(source.resolve("d/e/f"));
    Path few = Files.createDirectory(source.resolve("few"));
    Files.write(few.resolve("a1"), SourceTree.bytes(random, 300));
    Path many = Files.createDirectory(source.resolve("many"));
    for (int i = 0; i < 60; i++) {
      Files.write(many.resolve("name-%02d-%s".formatted(i, "y".repeat(40))), new byte[0]);
    }
    Files.write(source.resolve("holes"), SourceTree.bytes(random, 200_000));
    Path image = folder.resolve("small.img");
    E2fs.make(image, "1M", options, source);
    List<String> requests = new ArrayList<>();
    for (int i = 0; i < 200; i += 2) {
      requests.add("punch /holes %d %d".formatted(i, i)); // two levels of extents
    }
    if (options.contains("ext4")) {
      requests.add("fallocate /f1500 1 20"); // unwritten, partly behind the end
    }
    E2fs.debug(image, requests);
    E2fs.check(image);
    return Files.readAllBytes(image);
  }
}
