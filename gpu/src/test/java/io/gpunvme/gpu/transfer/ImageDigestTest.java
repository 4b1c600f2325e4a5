package io.gpunvme.gpu.transfer;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The embedded controller on a file, seen from both sides. */
class ImageDigestTest {
  private static final int MIB = 1 << 20;
  private static final int BYTES = 5 * MIB;

  @TempDir Path folder;

  private Path digestAndImage(long bad) throws IOException {
    byte[] contents = new byte[BYTES];
    new SplittableRandom(7).nextBytes(contents);
    Path image = Files.write(folder.resolve("image"), contents);
    String[] read = {"read", "sim:file=" + image, folder.toString(), Long.toString(bad)};
    ImageDigest.main(read);
    return image;
  }

  private String difference(Path image) throws IOException {
    return ImageDigest.parse(Files.readAllLines(folder.resolve("digest.1"))).difference(image);
  }

  private static void flip(Path image, long at) throws IOException {
    try (FileChannel channel =
        FileChannel.open(image, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
      ByteBuffer one = ByteBuffer.allocate(1);
      channel.read(one, at);
      one.put(0, (byte) (one.get(0) ^ 0x10));
      channel.write(one.flip(), at);
    }
  }

  @Test
  void aByteThatChangesIsNoticedAndItsMibNamed() throws IOException {
    Path image = digestAndImage(-1);
    assertThat(difference(image)).isEmpty();
    for (long at : List.of(0L, 3L * MIB - 1, 3L * MIB, BYTES - 1L)) {
      flip(image, at);
      assertThat(difference(image)).startsWith("MiB " + at / MIB + " ").contains("1 of 5 MiB");
      flip(image, at);
    }
    flip(image, 2 * MIB);
    flip(image, 4 * MIB);
    assertThat(difference(image)).startsWith("MiB 2 (byte 2097152)").contains("2 of 5 MiB");
  }

  @Test
  void nothingOfABlockThatCannotBeReadCounts() throws IOException {
    long bad = 3L * MIB / 512 + 1;
    Path image = digestAndImage(bad);
    flip(image, bad * 512);
    flip(image, bad * 512 + 511);
    assertThat(difference(image)).isEmpty();
    flip(image, bad * 512 - 1);
    assertThat(difference(image)).startsWith("MiB 3 ");
    flip(image, bad * 512 - 1);
    flip(image, bad * 512 + 512);
    assertThat(difference(image)).startsWith("MiB 3 ");
  }

  @Test
  void aFileOfAnotherLengthIsNoticed() throws IOException {
    Path image = digestAndImage(-1);
    Files.write(image, new byte[1], StandardOpenOption.APPEND);
    assertThat(difference(image)).contains("has 5242881 bytes, the guest read 5242880");
  }
}
