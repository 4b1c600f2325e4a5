package io.gpunvme.storage.fs.ext4;

import io.gpunvme.testing.Programs;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.SplittableRandom;

/** A folder with what images are filled with: files of many sizes, holes, links, odd names. */
final class SourceTree {
  private static final int[] SIZES = {
    0, 1, 59, 60, 61, 100, 130, 160, 1023, 1024, 1025, 4095, 4096, 4097, 65536, 100_001, 3_000_000
  };

  /** Bytes of a file with holes, above 4 GiB. */
  static final long SPARSE_BYTES = (5L << 30) + 12_345;

  private SourceTree() {}

  /**
   * Fills a folder.
   *
   * @param names how many names the largest folder has
   * @param sparse bytes of the file with holes
   */
  static void fill(Path root, int names, long sparse) throws IOException {
    SplittableRandom random = new SplittableRandom(42);
    for (int size : SIZES) {
      Files.write(root.resolve("file-" + size), bytes(random, size));
    }
    Files.write(root.resolve("Größe – 数据 🚀"), bytes(random, 5000));
    Files.write(root.resolve("n".repeat(255)), bytes(random, 255));
    Files.write(root.resolve("back\\slash"), bytes(random, 10));
    Files.write(root.resolve("back\\x41"), bytes(random, 11));
    Path deep = root;
    for (int i = 0; i < 20; i++) {
      deep = Files.createDirectory(deep.resolve("deep" + i));
    }
    Files.write(deep.resolve("bottom"), bytes(random, 777));
    Path many = Files.createDirectory(root.resolve("many"));
    for (int i = 0; i < names; i++) {
      byte[] content = i % 50 == 0 ? bytes(random, i) : new byte[0];
      Files.write(many.resolve("name-%d-%s".formatted(i, "x".repeat(i % 40))), content);
    }
    Path few = Files.createDirectory(root.resolve("few"));
    for (int i = 0; i < 3; i++) {
      Files.write(few.resolve("a" + i), bytes(random, 10 * i));
    }
    Files.createDirectory(root.resolve("empty"));
    sparse(root.resolve("sparse"), random, sparse);
    sparse(root.resolve("sparse-small"), random, 300_000);
    links(root);
    // Not through Java: it writes names in the encoding of the locale only.
    Programs.run(
        "bash",
        "-c",
        "cd \"$1\" && printf q > $'bad\\xff\\xfename' && mkfifo pipe",
        "bash",
        root.toString());
  }

  private static void links(Path root) throws IOException {
    Files.createSymbolicLink(root.resolve("link-file"), Path.of("file-1024"));
    Files.createSymbolicLink(root.resolve("link-absolute"), Path.of("/few/../many"));
    Files.createSymbolicLink(root.resolve("few/link-up"), Path.of("../link-file"));
    Files.createSymbolicLink(root.resolve("link-loop"), Path.of("link-loop"));
    Files.createSymbolicLink(root.resolve("link-nowhere"), Path.of("nowhere"));
    for (int length : new int[] {59, 60, 61, 100, 160, 900}) {
      String name = length % 2 == 0 ? "file-0" : "file-60";
      String target = "./".repeat((length - name.length()) / 2) + name;
      Files.createSymbolicLink(root.resolve("link-" + length), Path.of(target));
    }
    for (int i = 0; i < 45; i++) {
      String target = i == 0 ? "file-61" : "chain-" + (i - 1);
      Files.createSymbolicLink(root.resolve("chain-" + i), Path.of(target));
    }
  }

  private static void sparse(Path file, SplittableRandom random, long size) throws IOException {
    try (FileChannel channel =
        FileChannel.open(
            file,
            StandardOpenOption.CREATE_NEW,
            StandardOpenOption.WRITE,
            StandardOpenOption.SPARSE)) {
      for (long at : new long[] {size / 7, size / 3, size / 3 + 70_000, size - 1}) {
        byte[] part = bytes(random, (int) Math.min(10_000, size - at));
        channel.write(ByteBuffer.wrap(part), at);
      }
    }
  }

  static byte[] bytes(SplittableRandom random, int size) {
    byte[] bytes = new byte[size];
    random.nextBytes(bytes);
    return bytes;
  }
}
