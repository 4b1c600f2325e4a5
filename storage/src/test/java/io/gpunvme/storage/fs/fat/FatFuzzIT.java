package io.gpunvme.storage.fs.fat;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.storage.fs.BytesReader;
import io.gpunvme.storage.fs.FileNode;
import io.gpunvme.storage.fs.FileSystem;
import io.gpunvme.storage.fs.FileSystemException;
import java.util.Arrays;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Right volumes with a few bytes changed: either a typed error, or data that lies on the device.
 * What is read is limited, so an endless loop ends the test.
 */
@Timeout(240)
class FatFuzzIT {
  private static final int CASES = 120_000;
  private final long seed = Long.getLong("gpunvme.seed", System.nanoTime());
  private static final int DEPTH = 6;
  private static final int MOST_NODES = 500;
  private static final int FOLDERS = 30;

  private long errors;
  private long files;
  private int nodes;

  private static FatImage image(int sector, int perCluster) {
    FatImage image = new FatImage(sector, perCluster, 150);
    int root = image.at(FatImage.ROOT);
    image.chain(FatImage.ROOT, 3, 140);
    root = image.entry(root, "VOLUME     ", 0x08, 0, 0);
    for (int i = 0; i < 5; i++) {
      String shortName = "FILE~%d  BIN".formatted(i);
      root = image.longName(root, "A file with a long name " + i + ".bin", shortName);
      int first = 10 + i * 4;
      image.chain(first, first + 1, first + 3);
      root = image.entry(root, shortName, 0x20, first, image.cluster * 2 + 100);
    }
    int above = FatImage.ROOT;
    int at = root;
    for (int i = 0; i < 4; i++) {
      image.entry(at, "FOLDER     ", 0x10, FOLDERS + i, 0);
      at = image.entry(image.at(FOLDERS + i), ".          ", 0x10, FOLDERS + i, 0);
      at = image.entry(at, "..         ", 0x10, i == 0 ? 0 : above, 0);
      at = image.entry(at, "SMALL   TXT", 0x20, 100 + i, 5);
      image.chain(FOLDERS + i);
      image.chain(100 + i);
      above = FOLDERS + i;
    }
    return image;
  }

  private void walk(FileSystem fs, FileNode folder, String path, int depth, long size) {
    for (FileNode.Entry entry : Trees.entries(folder)) {
      if (++nodes > MOST_NODES) {
        return;
      }
      String name = path + "/" + entry.name();
      try {
        FileNode node = fs.find(name, true);
        assertThat(node.details()).isNotEmpty();
        if (node.kind() == FileNode.Kind.FILE) {
          Trees.check(node, size);
          Trees.read(node);
          files++;
        } else if (depth < DEPTH) {
          walk(fs, node, name, depth + 1, size);
        }
      } catch (FileSystemException e) {
        errors++;
      }
    }
  }

  private void look(byte[] bytes) {
    BytesReader reader = new BytesReader(bytes);
    reader.limit(64L << 20);
    nodes = 0;
    try {
      FileSystem fs = Fat32.open(reader);
      walk(fs, fs.find("/", true), "", 0, bytes.length);
    } catch (FileSystemException e) {
      errors++;
    }
  }

  /** Where structures are; the content of files says nothing. */
  private static int place(SplittableRandom random, FatImage image) {
    return switch (random.nextInt(5)) {
      case 0 -> random.nextInt(96);
      case 1 -> image.tableAt(0) + random.nextInt(152 * 4);
      case 2 -> image.at(FatImage.ROOT) + random.nextInt(2 * image.cluster);
      case 3 -> image.at(FOLDERS) + random.nextInt(4 * image.cluster);
      default -> image.at(140) + random.nextInt(image.cluster);
    };
  }

  private static byte value(SplittableRandom random, byte old) {
    return switch (random.nextInt(4)) {
      case 0 -> (byte) (old ^ 1 << random.nextInt(8));
      case 1 -> (byte) (old + random.nextInt(-2, 3));
      case 2 -> new byte[] {0, -1, (byte) 0xE5, 0x0F, 0x10, 0x40, 0x7F}[random.nextInt(7)];
      default -> (byte) random.nextInt();
    };
  }

  @Test
  void changedVolumes() {
    System.out.println("FatFuzzIT: -Dgpunvme.seed=" + seed);
    FatImage[] images = {image(512, 1), image(512, 4), image(4096, 1)};
    byte[][] right = {
      images[0].bytes.clone(), images[1].bytes.clone(), images[2].bytes.clone(),
    };
    for (FatImage image : images) {
      errors = 0;
      files = 0;
      look(image.bytes);
      assertThat(errors).isZero();
      assertThat(files).isEqualTo(9);
    }
    for (int number = 0; number < CASES; number++) {
      SplittableRandom random = new SplittableRandom(seed + number * 0xD1342543DE82EF95L);
      int which = random.nextInt(8) == 0 ? 2 : random.nextInt(2);
      FatImage image = images[which];
      int changes = 1 + random.nextInt(8);
      int[] places = new int[changes];
      for (int i = 0; i < changes; i++) {
        places[i] = place(random, image);
        image.bytes[places[i]] = value(random, image.bytes[places[i]]);
      }
      boolean cut = random.nextInt(20) == 0;
      try {
        look(cut ? Arrays.copyOf(image.bytes, random.nextInt(image.bytes.length)) : image.bytes);
      } catch (RuntimeException | Error e) {
        throw new AssertionError("case " + number + " of seed " + seed, e);
      }
      for (int at : places) {
        image.bytes[at] = right[which][at];
      }
    }
    System.out.println(CASES + " volumes: " + errors + " typed errors, " + files + " files read");
    assertThat(errors).isPositive();
    assertThat(files).isPositive();
  }
}
