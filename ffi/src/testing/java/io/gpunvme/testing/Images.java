package io.gpunvme.testing;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;

/** Images of file systems with files in them, made by other people's programs. */
public final class Images {
  /** Number of the partition that {@link #partition} makes. */
  public static final int PARTITION = 2;

  private static final int SECTOR = 512;
  private static final int FIRST = 2048;

  /** Of these, half go away again: what is written afterwards is in pieces. */
  private static final int SMALL_FILES = 400;

  private static final byte[] SMALL = new byte[700];

  static {
    Arrays.fill(SMALL, (byte) 1); // zeros would take no space
  }

  private Images() {}

  /** An ext4 file system with all that is in a folder. */
  public static Path ext4(Path image, String size, Path folder) {
    Programs.need("e2fsprogs", "mke2fs");
    Programs.run("mke2fs", "-q", "-F", "-t", "ext4", "-b", 1024, "-d", folder, image, size);
    return image;
  }

  /** A FAT32 file system of so many KiB with all that is in a folder; it knows no links. */
  public static Path fat32(Path image, int kibibytes, Path folder) throws IOException {
    Programs.need("dosfstools", "mkfs.vfat");
    Programs.need("mtools", "mcopy");
    Programs.run("mkfs.vfat", "-F", 32, "-s", 1, "-C", image, kibibytes);
    List<Object> copy = new ArrayList<>(List.of("mcopy", "-s", "-i", image));
    try (Stream<Path> all = Files.list(folder)) {
      all.sorted().forEach(copy::add);
    }
    copy.add("::/");
    if (copy.size() > 5) {
      Programs.run(copy.toArray());
    }
    return image;
  }

  /** An ext4 file system with {@code /big}, a third of a MB, which is in very many pieces. */
  public static Path fragmentedExt4(Path image, byte[] big) throws IOException {
    Programs.need("e2fsprogs", "mke2fs", "debugfs");
    Path folder = Files.createTempDirectory("small");
    Path content = Files.write(Files.createTempFile("big", null), big);
    Path script = Files.createTempFile("requests", null);
    List<String> requests = new ArrayList<>();
    for (int i = 0; i < 2 * SMALL_FILES; i++) {
      Files.write(folder.resolve("small" + i), SMALL);
      if (i % 2 == 0) {
        requests.add("rm /small" + i);
      }
    }
    requests.add("write %s big".formatted(content));
    Files.write(script, requests, StandardCharsets.UTF_8);
    String options = "-q -F -t ext4 -b 1024 -O ^has_journal -N 900 -m 0 -d";
    List<Object> make = new ArrayList<>(List.of("mke2fs"));
    make.addAll(List.of(options.split(" ")));
    // Hardly more than the small files need: nothing else is free.
    make.addAll(List.of(folder, image, "1152K"));
    Programs.run(make.toArray());
    Programs.run("debugfs", "-w", "-f", script, image);
    delete(folder);
    Files.delete(content);
    Files.delete(script);
    return image;
  }

  /** A FAT32 file system with {@code /big}, which is in very many pieces. */
  public static Path fragmentedFat32(Path image, int kibibytes, byte[] big) throws IOException {
    Programs.need("mtools", "mdel");
    Path folder = Files.createTempDirectory("small");
    List<Object> half = new ArrayList<>(List.of("mdel", "-i", image));
    for (int i = 0; i < SMALL_FILES; i++) {
      Files.write(folder.resolve("s%03d.bin".formatted(i)), SMALL);
      if (i % 2 == 0) {
        half.add("::/s%03d.bin".formatted(i));
      }
    }
    fat32(image, kibibytes, folder);
    Programs.run(half.toArray());
    forgetFreeClusters(image);
    Path content = Files.write(folder.resolve("big"), big);
    Programs.run("mcopy", "-i", image, content, "::/big");
    delete(folder);
    return image;
  }

  /** mtools goes on where the volume's last file was put, unless told that nothing is known. */
  public static void forgetFreeClusters(Path image) throws IOException {
    try (RandomAccessFile file = new RandomAccessFile(image.toFile(), "rw")) {
      file.seek(SECTOR + 492); // FSI_Nxt_Free of FSInfo
      file.writeInt(-1);
    }
  }

  /** A disk whose MBR has the image as its partition {@link #PARTITION}. */
  public static Path partition(Path disk, Path image) throws IOException {
    byte[] bytes = Files.readAllBytes(image);
    try (RandomAccessFile file = new RandomAccessFile(disk.toFile(), "rw")) {
      ByteBuffer mbr = ByteBuffer.allocate(SECTOR).order(ByteOrder.LITTLE_ENDIAN);
      int entry = 446 + 16 * (PARTITION - 1);
      mbr.put(entry + 4, (byte) 0x83);
      mbr.putInt(entry + 8, FIRST);
      mbr.putInt(entry + 12, bytes.length / SECTOR);
      mbr.putShort(510, (short) 0xAA55);
      file.write(mbr.array());
      file.seek((long) FIRST * SECTOR);
      file.write(bytes);
      file.setLength(((long) FIRST * SECTOR + bytes.length + (2 << 20)) & -4096);
    }
    return disk;
  }

  /** An image cut into pieces of {@code unit} bytes, dealt out to members in turns. */
  public static List<Path> stripe(Path image, int unit, Path... members) throws IOException {
    byte[] bytes = Files.readAllBytes(image);
    int rows = Math.ceilDiv(bytes.length, unit * members.length);
    for (int m = 0; m < members.length; m++) {
      byte[] own = new byte[rows * unit];
      for (int row = 0; row < rows; row++) {
        int from = (row * members.length + m) * unit;
        int n = Math.clamp(bytes.length - from, 0, unit);
        System.arraycopy(bytes, Math.min(from, bytes.length), own, row * unit, n);
      }
      Files.write(members[m], own);
    }
    return Arrays.asList(members);
  }

  private static void delete(Path folder) throws IOException {
    try (Stream<Path> all = Files.list(folder)) {
      for (Path file : all.toList()) {
        Files.delete(file);
      }
    }
    Files.delete(folder);
  }
}
