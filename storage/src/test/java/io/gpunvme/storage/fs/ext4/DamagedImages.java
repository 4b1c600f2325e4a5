package io.gpunvme.storage.fs.ext4;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import io.gpunvme.storage.fs.BytesReader;
import io.gpunvme.storage.fs.FileSystemException;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.SplittableRandom;
import java.util.stream.IntStream;
import org.junit.jupiter.api.io.TempDir;

/**
 * Damaged images: whatever was changed, what comes out is a typed error or something that fits the
 * device, with few reads and little memory. Where metadata has checksums, what is not refused is
 * what was there before.
 */
abstract class DamagedImages {
  /** Of each image, other ones in each run. */
  private static final int CASES = 2_900;

  private static final long MOST_READS = 5_000;
  private static final long MOST_BYTES = 32 << 20;
  private static final long MOST_ALLOCATED = 64 << 20;

  private final ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
  private final long seed = Long.getLong("gpunvme.seed", System.nanoTime());

  @TempDir Path folder;

  /** Makes an image with these options of mke2fs, and damages it again and again. */
  void damageIsRefusedOrHarmless(String options) throws IOException {
    E2fs.need("mke2fs", "debugfs", "e2fsck");
    byte[] clean = SmallImages.make(folder, options);
    BytesReader image = new BytesReader(clean.clone());
    boolean checksums = options.contains("ext4") && !options.contains("^metadata_csum");
    BytesReader watched = new BytesReader(clean);
    watched.watch();
    Everything.Found whole = Everything.in(watched, false);
    assertThat(whole.nodes()).isGreaterThan(70);
    assertThat(whole.refusals()).isZero();
    int[] places = watched.places(); // where metadata is
    System.out.println(name() + ": -Dgpunvme.seed=" + seed + " for " + options);
    int refused = 0;
    int only = Integer.getInteger("gpunvme.case", -1);
    int[] cases = only >= 0 ? new int[] {only} : IntStream.range(0, CASES).toArray();
    Damage damage = new Damage(clean, image.bytes(), places);
    for (int i : cases) {
      damage.add(new SplittableRandom(seed + i * 0xD1342543DE82EF95L));
      refused += checkOne(image, whole, checksums, i) ? 1 : 0;
      damage.repair();
    }
    assertThat(Arrays.mismatch(image.bytes(), clean)).isEqualTo(-1);
    System.out.printf("%s: %d of %d were refused%n", name(), refused, cases.length);
    // Else the mutations miss, or everything is refused.
    assertThat(only >= 0 || refused > CASES / 20 && refused < CASES).isTrue();
  }

  private String name() {
    return getClass().getSimpleName();
  }

  private boolean checkOne(BytesReader image, Everything.Found whole, boolean checksums, int i) {
    String what = "case %d: -Dgpunvme.seed=%d -Dgpunvme.case=%d".formatted(i, seed, i);
    image.forget();
    long before = threads.getCurrentThreadAllocatedBytes();
    boolean refused = false;
    try {
      Everything.Found found = Everything.in(image, !checksums);
      refused = found.refusals() > 0;
      // Without the feature's own bit nobody can know that there were checksums.
      boolean known = (image.bytes()[1024 + 0x65] & Ext4Features.RO_METADATA_CSUM >> 8) != 0;
      if (checksums && known && !refused) {
        assertThat(found).as(what).isEqualTo(whole);
      }
    } catch (FileSystemException e) {
      refused = true;
    } catch (RuntimeException | StackOverflowError | OutOfMemoryError e) {
      throw new AssertionError(what, e);
    }
    assertThat(image.reads()).as(what).isLessThan(MOST_READS);
    assertThat(image.bytesRead()).as(what).isLessThan(MOST_BYTES);
    assertThat(threads.getCurrentThreadAllocatedBytes() - before)
        .as(what)
        .isLessThan(MOST_ALLOCATED);
    return refused;
  }

  /** Changes bytes of an image, and puts back those that it changed. */
  private static final class Damage {
    private static final int MOST = 4;

    private final byte[] clean;
    private final byte[] image;
    private final int[] places;
    private final int[] starts = new int[MOST];
    private final int[] lengths = new int[MOST];
    private int changes;

    Damage(byte[] clean, byte[] image, int[] places) {
      this.clean = clean;
      this.image = image;
      this.places = places;
    }

    void add(SplittableRandom random) {
      changes = 1 + random.nextInt(MOST);
      for (int i = 0; i < changes; i++) {
        starts[i] = places[random.nextInt(places.length)];
        lengths[i] = change(starts[i], random);
      }
    }

    void repair() {
      for (int i = 0; i < changes; i++) {
        System.arraycopy(clean, starts[i], image, starts[i], lengths[i]);
      }
    }

    /** Changes something there; returns how many bytes that can have been. */
    private int change(int at, SplittableRandom random) {
      switch (random.nextInt(6)) {
        case 0 -> image[at + random.nextInt(4)] ^= (byte) (1 << random.nextInt(8));
        case 1 -> image[at + random.nextInt(4)] = (byte) random.nextInt();
        case 2 -> put(at, 4, interesting(random));
        case 3 -> put(at + 2 * random.nextInt(2), 2, interesting(random));
        case 4 -> Arrays.fill(image, at, at + 4, (byte) -random.nextInt(2));
        default -> {
          int from = places[random.nextInt(places.length)];
          int length = Math.min(4 << random.nextInt(7), image.length - Math.max(from, at));
          System.arraycopy(image, from, image, at, length);
          return length;
        }
      }
      return 4;
    }

    private void put(int at, int bytes, int value) {
      for (int i = 0; i < bytes; i++) {
        image[at + i] = (byte) (value >>> 8 * i);
      }
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
