package io.gpunvme.storage.fs.fat;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.storage.fs.FileNode;
import io.gpunvme.storage.fs.FileSystem;
import io.gpunvme.storage.fs.ImageReader;
import io.gpunvme.testing.Images;
import io.gpunvme.testing.Programs;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Volumes made by mkfs.vfat and filled by mtools: the same files, byte for byte, as mtools and
 * 7-Zip read them.
 */
class MtoolsIT {
  /** mtools takes a volume for FAT32 from 65525 clusters on. */
  private static final int CLUSTERS = 70_000;

  @TempDir Path folder;
  private Path image;

  @BeforeEach
  void tools() {
    Programs.need("dosfstools", "mkfs.vfat");
    Programs.need("mtools", "mcopy", "mmd", "mdel", "mdir");
    image = folder.resolve("fat.img");
  }

  private void format(int sector, int perCluster, String... more) {
    List<Object> words = new ArrayList<>(List.of("mkfs.vfat", "-F", 32, "-S", sector));
    words.addAll(List.of("-s", perCluster, "-n", "MODELS"));
    words.addAll(List.of(more));
    words.addAll(List.of("-C", image, (long) CLUSTERS * sector * perCluster / 1024));
    Programs.run(words.toArray());
  }

  private void put(Path from, String to) {
    Programs.run("mcopy", "-m", "-i", image, from, "::" + to);
  }

  private byte[] get(String from) {
    return Programs.run("mcopy", "-i", image, "::" + from, "-");
  }

  private Path file(String name, int bytes) throws IOException {
    byte[] content = new byte[bytes];
    new Random(bytes).nextBytes(content);
    return Files.write(folder.resolve(name), content);
  }

  static String sha256(byte[] bytes) {
    try {
      return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(bytes));
    } catch (NoSuchAlgorithmException e) {
      throw new AssertionError(e);
    }
  }

  /** All files below a folder, with their paths. */
  private static void collect(FileSystem fs, String path, List<String> files) {
    for (FileNode.Entry e : Trees.entries(fs.find(path, true))) {
      if (e.kind() == FileNode.Kind.FOLDER) {
        collect(fs, path + "/" + e.name(), files);
      } else {
        files.add(path + "/" + e.name());
      }
    }
  }

  /** Everything on the volume is what mtools says it is. */
  private void compare(int expectedFiles) {
    try (ImageReader reader = ImageReader.open(image)) {
      FileSystem fs = Fat32.open(reader);
      List<String> files = new ArrayList<>();
      collect(fs, "", files);
      assertThat(files).hasSize(expectedFiles);
      String listed =
          new String(Programs.run("mdir", "-/", "-b", "-i", image, "::"), StandardCharsets.UTF_8);
      Set<String> theirs = new HashSet<>();
      for (String line : listed.split("\n")) {
        if (!line.endsWith("/")) {
          theirs.add(line.substring("::".length()));
        }
      }
      assertThat(new HashSet<>(files)).isEqualTo(theirs);
      for (String file : files) {
        FileNode node = fs.find(file, true);
        Trees.check(node, reader.size());
        assertThat(sha256(Trees.read(node))).as(file).isEqualTo(sha256(get(file)));
      }
    }
  }

  @ParameterizedTest
  @CsvSource({"512, 1", "512, 8", "1024, 2", "2048, 1", "4096, 1", "4096, 4"})
  void filesOfManySizes(int sector, int perCluster) throws IOException {
    format(sector, perCluster);
    int cluster = sector * perCluster;
    int[] sizes = {0, 1, 300, cluster - 1, cluster, cluster + 1, 10 * cluster, 300_001};
    Programs.run("mmd", "-i", image, "::/models");
    for (int size : sizes) {
      put(file("f" + size, size), "/models/size " + size + ".bin");
    }
    compare(sizes.length);
  }

  /** A third reader: odd sizes, long names, folders in folders, files in pieces. */
  @Test
  void sevenZipReadsTheSame() throws IOException {
    Programs.need("7zip", "7zz");
    Path source = Files.createDirectory(folder.resolve("source"));
    Random random = new Random(4);
    Path deep = source;
    for (int i = 0; i < 40; i++) {
      if (i % 10 == 0) {
        deep = Files.createDirectory(deep.resolve("A folder with a long name " + i));
      }
      byte[] content = new byte[random.nextInt(1 + random.nextInt(100_000))];
      random.nextBytes(content);
      Files.write(deep.resolve("Model %05d of 40.Safetensors".formatted(i)), content);
    }
    byte[] big = new byte[333_333];
    random.nextBytes(big);
    for (Path volume :
        List.of(
            Images.fat32(folder.resolve("tree.img"), 72_000, source),
            Images.fragmentedFat32(folder.resolve("pieces.img"), 72_000, big))) {
      Map<String, byte[]> theirs = SevenZip.files(volume);
      assertThat(theirs).hasSize(volume.endsWith("tree.img") ? 40 : 201);
      try (ImageReader reader = ImageReader.open(volume)) {
        FileSystem fs = Fat32.open(reader);
        List<String> files = new ArrayList<>();
        collect(fs, "", files);
        assertThat(new HashSet<>(files)).isEqualTo(theirs.keySet());
        for (String file : files) {
          byte[] ours = Trees.read(fs.find(file, true));
          assertThat(Arrays.mismatch(ours, theirs.get(file))).as(file).isEqualTo(-1);
        }
      }
    }
  }

  @Test
  void fragmentedFiles() throws IOException {
    byte[] content = new byte[333_333];
    new Random(333_333).nextBytes(content);
    Images.fragmentedFat32(image, CLUSTERS / 2, content);

    compare(201);
    try (ImageReader reader = ImageReader.open(image)) {
      assertThat(Fat32.open(reader).find("big", true).extents()).hasSizeBetween(150, 201);
    }
  }

  @Test
  void deepFoldersAndLongNames() throws IOException {
    format(512, 1);
    String path = "";
    Path content = file("deep", 5000);
    for (int depth = 1; depth <= 15; depth++) {
      path += "/Ordner mit langem Namen %d äöü ελληνικά 日本語".formatted(depth);
      Programs.run("mmd", "-i", image, "::" + path);
      put(content, path + "/Model-%05d-of-00015.Safetensors".formatted(depth));
    }
    put(content, "/" + "n".repeat(200) + ".bin");
    put(content, "/lower.txt");
    put(content, "/UPPER.TXT");
    put(content, "/Mixed.Txt");
    put(content, "/archive.tar.gz");
    compare(20);
  }

  @Test
  void aFolderOfHundreds() throws IOException {
    format(512, 1);
    Path many = Files.createDirectory(folder.resolve("many"));
    // Short names that begin alike take mtools minutes.
    for (int i = 0; i < 800; i++) {
      Files.writeString(many.resolve("%04d is the number of a file.txt".formatted(i)), "" + i);
    }
    Programs.run("mcopy", "-s", "-i", image, many, "::/");
    try (ImageReader reader = ImageReader.open(image)) {
      FileSystem fs = Fat32.open(reader);
      assertThat(Trees.names(fs, "/many")).hasSize(800);
      for (int i = 0; i < 800; i += 7) {
        FileNode node = fs.find("many/%04d IS the Number of a FILE.TXT".formatted(i), true);
        assertThat(new String(Trees.read(node), StandardCharsets.UTF_8)).isEqualTo("" + i);
      }
    }
  }

  @Test
  void timesAsMdirShowsThem() throws IOException {
    format(512, 1);
    put(file("x", 10), "/x.bin");
    try (ImageReader reader = ImageReader.open(image)) {
      assertThat(Fat32.open(reader).label()).isEqualTo("MODELS");
    }
    String shown = new String(Programs.run("mdir", "-i", image, "::"), StandardCharsets.UTF_8);
    Matcher date = Pattern.compile("(\\d{4}-\\d\\d-\\d\\d) +(\\d\\d?:\\d\\d)").matcher(shown);
    assertThat(date.find()).as(shown).isTrue();
    try (ImageReader reader = ImageReader.open(image)) {
      LocalDateTime ours =
          Fat32.open(reader)
              .find("x.bin", true)
              .modified()
              .atZone(ZoneOffset.UTC)
              .toLocalDateTime();
      assertThat("%tF".formatted(ours)).isEqualTo(date.group(1));
      assertThat("%tk:%<tM".formatted(ours)).isEqualTo(date.group(2));
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {12, 16})
  void olderFormatsAreRefused(int bits) throws IOException {
    Programs.run("mkfs.vfat", "-F", bits, "-C", image, bits == 12 ? 1440 : 20_000);
    try (ImageReader reader = ImageReader.open(image)) {
      assertThat(FatKind.of(reader).name()).isEqualTo("FAT" + bits);
    }
  }

  @Test
  void theLargestFileThereCanBe() throws IOException {
    format(4096, 16);
    Path hole = folder.resolve("hole");
    try (var file = new java.io.RandomAccessFile(hole.toFile(), "rw")) {
      file.setLength((1L << 30) + 12_345);
    }
    put(hole, "/hole.bin");
    try (ImageReader reader = ImageReader.open(image)) {
      FileNode node = Fat32.open(reader).find("hole.bin", true);
      assertThat(node.size()).isEqualTo((1L << 30) + 12_345);
      Trees.check(node, reader.size());
      node.read(node.size() - 5, MemorySegment.ofArray(new byte[5]));
    }
  }
}
