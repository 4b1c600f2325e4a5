package io.gpunvme.core.fs.ext4;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import io.gpunvme.core.fs.FileSystemException;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.SplittableRandom;
import java.util.stream.IntStream;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Damaged images: whatever was changed, what comes out is a typed error or something that fits the
 * device, with few reads and little memory. Where metadata has checksums, what is not refused is
 * what was there before.
 */
class Ext4FuzzIT {
  private static final int CASES = 17_000; // of each image: 119 000
  private static final long MOST_READS = 5_000;
  private static final long MOST_BYTES = 32 << 20;
  private static final long MOST_ALLOCATED = 64 << 20;

  private final ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
  private final long seed = Long.getLong("gpunvme.seed", 20_261_122);

  @TempDir Path folder;

  @ParameterizedTest
  @ValueSource(
      strings = {
        "-t ext4 -b 1024 -N 128 -I 256 -O ^has_journal,^resize_inode",
        "-t ext4 -b 1024 -N 128 -I 256 -O ^has_journal,^resize_inode,inline_data,large_dir",
        "-t ext4 -b 1024 -N 128 -I 256 -O ^has_journal,^metadata_csum,^resize_inode",
        "-t ext4 -b 1024 -N 128 -I 256 -O ^has_journal,^metadata_csum,^resize_inode,inline_data",
        "-t ext4 -b 1024 -N 128 -I 128 -O ^has_journal,^resize_inode,^metadata_csum,^uninit_bg,"
            + "bigalloc,^64bit -C 2048",
        "-t ext4 -b 1024 -g 256 -N 128 -I 128 -O ^has_journal,^metadata_csum,uninit_bg,meta_bg,"
            + "^resize_inode,^filetype",
        "-t ext2 -b 1024 -N 128 -I 128",
      })
  void damageIsRefusedOrHarmless(String options) throws IOException {
    Tools.require("mke2fs", "debugfs", "e2fsck");
    MemoryImage image = SmallImages.make(folder, options);
    boolean checksums = options.contains("ext4") && !options.contains("^metadata_csum");
    Everything.Found whole = Everything.in(image, false);
    assertThat(whole.nodes()).isGreaterThan(70);
    assertThat(whole.refusals()).isZero();
    int[] places = image.places(); // where metadata is
    System.out.println("Ext4FuzzIT: -Dgpunvme.seed=" + seed + " for " + options);
    int refused = 0;
    int only = Integer.getInteger("gpunvme.case", -1);
    int[] cases = only >= 0 ? new int[] {only} : IntStream.range(0, CASES).toArray();
    byte[] clean = image.bytes.clone();
    for (int i : cases) {
      SplittableRandom random = new SplittableRandom(seed + i * 0xD1342543DE82EF95L);
      mutate(image.bytes, places, random);
      refused += checkOne(image, whole, checksums, i) ? 1 : 0;
      System.arraycopy(clean, 0, image.bytes, 0, clean.length);
    }
    System.out.println("Ext4FuzzIT: %d of %d were refused".formatted(refused, cases.length));
    // Else the mutations miss, or everything is refused.
    assertThat(only >= 0 || refused > CASES / 20 && refused < CASES).isTrue();
  }

  private boolean checkOne(MemoryImage image, Everything.Found whole, boolean checksums, int i) {
    String what = "case %d: -Dgpunvme.seed=%d -Dgpunvme.case=%d".formatted(i, seed, i);
    image.forget();
    long before = threads.getCurrentThreadAllocatedBytes();
    boolean refused = false;
    try {
      Everything.Found found = Everything.in(image, !checksums);
      refused = found.refusals() > 0;
      // Without the feature's own bit nobody can know that there were checksums.
      boolean known = (image.bytes[1024 + 0x65] & Features.RO_METADATA_CSUM >> 8) != 0;
      if (checksums && known && !refused) {
        assertThat(found).as(what).isEqualTo(whole);
      }
    } catch (FileSystemException e) {
      refused = true;
    } catch (RuntimeException | StackOverflowError | OutOfMemoryError e) {
      throw new AssertionError(what, e);
    }
    assertThat(image.reads).as(what).isLessThan(MOST_READS);
    assertThat(image.bytesRead).as(what).isLessThan(MOST_BYTES);
    assertThat(threads.getCurrentThreadAllocatedBytes() - before)
        .as(what)
        .isLessThan(MOST_ALLOCATED);
    return refused;
  }

  private static void mutate(byte[] image, int[] places, SplittableRandom random) {
    int changes = 1 + random.nextInt(4);
    for (int i = 0; i < changes; i++) {
      int at = places[random.nextInt(places.length)];
      switch (random.nextInt(6)) {
        case 0 -> image[at + random.nextInt(4)] ^= (byte) (1 << random.nextInt(8));
        case 1 -> image[at + random.nextInt(4)] = (byte) random.nextInt();
        case 2 -> put(image, at, 4, interesting(random));
        case 3 -> put(image, at + 2 * random.nextInt(2), 2, interesting(random));
        case 4 -> Arrays.fill(image, at, at + 4, (byte) -random.nextInt(2));
        default -> {
          int from = places[random.nextInt(places.length)];
          int length = 4 << random.nextInt(7);
          int most = image.length - Math.max(from, at);
          System.arraycopy(image, from, image, at, Math.min(length, most));
        }
      }
    }
  }

  private static void put(byte[] image, int at, int bytes, int value) {
    for (int i = 0; i < bytes; i++) {
      image[at + i] = (byte) (value >>> 8 * i);
    }
  }

  private static int interesting(SplittableRandom random) {
    return switch (random.nextInt(6)) {
      case 0 -> random.nextInt(64);
      case 1 -> random.nextInt(1024);
      case 2 -> -random.nextInt(64);
      case 3 -> 1 << random.nextInt(32);
      case 4 -> (1 << random.nextInt(32)) - 1;
      default -> random.nextInt();
    };
  }
}
