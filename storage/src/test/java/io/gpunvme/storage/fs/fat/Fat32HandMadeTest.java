package io.gpunvme.storage.fs.fat;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.storage.fs.FileExtent;
import io.gpunvme.storage.fs.FileNode;
import io.gpunvme.storage.fs.FileSystem;
import io.gpunvme.storage.fs.FileSystemException;
import io.gpunvme.storage.fs.FileSystemException.Kind;
import java.lang.foreign.MemorySegment;
import java.time.Instant;
import java.util.Arrays;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What no formatter makes: every rule of the format, and what breaks it. */
class Fat32HandMadeTest {
  private final FatImage image = new FatImage(512, 2, 200);
  private int root;

  @BeforeEach
  void begin() {
    root = image.at(FatImage.ROOT);
  }

  private void add(String name11, int attributes, int first, int size) {
    root = image.entry(root, name11, attributes, first, size);
  }

  private void file(int size, int... clusters) {
    for (int c : clusters) {
      image.fill(c);
    }
    image.chain(clusters);
    add("FILE    BIN", 0x20, clusters[0], size);
  }

  private static void fails(Kind kind, String what, Runnable action) {
    assertThatExceptionOfType(FileSystemException.class)
        .isThrownBy(action::run)
        .withMessageContaining(what)
        .satisfies(e -> assertThat(e.kind()).isEqualTo(kind));
  }

  // ---- files

  @ParameterizedTest
  @ValueSource(ints = {1, 1023, 1024, 1025, 4000, 4096})
  void aFileIsItsClustersInOrder(int size) {
    int[] all = {50, 51, 40, 7};
    int[] used = Arrays.copyOf(all, Math.ceilDiv(size, image.cluster));
    file(size, used);

    FileNode file = image.open().find("/file.bin", true);

    assertThat(file.kind()).isEqualTo(FileNode.Kind.FILE);
    assertThat(file.size()).isEqualTo(size);
    assertThat(Trees.read(file)).isEqualTo(image.content(size, used));
    Trees.check(file, image.bytes.length);
  }

  @Test
  void neighboursAreOneExtentAndParts() {
    file(4096 - 5, 50, 51, 40, 41);
    FileNode file = image.open().find("file.bin", true);

    assertThat(file.extents())
        .containsExactly(
            new FileExtent(0, 2048, image.at(50)), new FileExtent(2048, 2043, image.at(40)));
    byte[] part = new byte[100];
    file.read(2000, MemorySegment.ofArray(part));
    assertThat(part).isEqualTo(Arrays.copyOfRange(image.content(4096, 50, 51, 40, 41), 2000, 2100));
    file.read(4091, MemorySegment.ofArray(new byte[0]));
    assertThatExceptionOfType(InvalidRequestException.class)
        .isThrownBy(() -> file.read(4000, MemorySegment.ofArray(part)))
        .withMessageContaining("are not inside");
  }

  @Test
  void clustersBehindTheSizeAreAllocatedInAdvance() {
    file(100, 50, 51, 52);
    FileNode file = image.open().find("file.bin", true);

    assertThat(file.extents()).containsExactly(new FileExtent(0, 100, image.at(50)));
    assertThat(file.details()).containsEntry("clusters", "3");
  }

  @Test
  void anEmptyFileHasNoCluster() {
    add("FILE    BIN", 0x20, 0, 0);
    FileNode file = image.open().find("file.bin", true);

    assertThat(file.extents()).isEmpty();
    assertThat(file.id()).isZero();
    assertThat(Trees.read(file)).isEmpty();
  }

  @Test
  void theUpperBitsOfATableEntryMeanNothing() {
    file(2048, 50, 60);
    image.next(50, 0xA000_0000 | 60);

    assertThat(Trees.read(image.open().find("file.bin", true)))
        .isEqualTo(image.content(2048, 50, 60));
  }

  @ParameterizedTest
  @CsvSource({
    "0, the entry is free",
    "1, by cluster 1, which is outside 2..201",
    "202, by cluster 202, which is outside 2..201",
    "0x0FFFFFF6, by cluster 268435446",
    "0x0FFFFFF7, by a bad cluster",
    "50, comes back to cluster",
    "51, comes back to cluster",
    "0x0FFFFFF8, 'has 2 clusters, but its size needs 4'"
  })
  void brokenChains(String next, String what) {
    file(4096, 50, 51, 52, 53);
    image.next(51, Integer.decode(next));
    FileNode file = image.open().find("file.bin", true);

    fails(Kind.CORRUPT, what, file::extents);
    fails(Kind.CORRUPT, "memory, /file.bin", () -> Trees.read(file));
  }

  @Test
  void aFirstClusterThatIsNone() {
    add("FILE    BIN", 0x20, 1, 10);
    add("NOWHERE BIN", 0x20, 0, 10);
    FileSystem fs = image.open();

    fails(Kind.CORRUPT, "it begins with cluster 1", fs.find("file.bin", true)::extents);
    fails(Kind.CORRUPT, "it begins with none", fs.find("nowhere.bin", true)::extents);
  }

  @Test
  void aSizeThatTheVolumeDoesNotHave() {
    add("FILE    BIN", 0x20, 50, -1);
    image.chain(50);

    fails(Kind.CORRUPT, "4294967295 bytes", image.open().find("file.bin", true)::extents);
  }

  @Test
  void longLoopsAreFoundToo() {
    int[] chain = new int[150];
    Arrays.setAll(chain, i -> 10 + i);
    file(150 * image.cluster, chain);
    image.next(159, 100);

    fails(Kind.CORRUPT, "comes back", image.open().find("file.bin", true)::extents);
  }

  // ---- folders

  private FileSystem withFolder(int cluster) {
    add("SUB        ", 0x10, cluster, 0);
    return image.open();
  }

  @Test
  void foldersAndTheWayBack() {
    image.chain(30);
    int at = image.entry(image.at(30), ".          ", 0x10, 30, 0);
    at = image.entry(at, "..         ", 0x10, 0, 0);
    image.entry(at, "DEEP    TXT", 0x20, 0, 0);
    FileSystem fs = withFolder(30);

    assertThat(Trees.names(fs, "/sub")).containsExactly("DEEP.TXT");
    assertThat(fs.find("sub/../Sub/./deep.txt", true).kind()).isEqualTo(FileNode.Kind.FILE);
    assertThat(fs.find("/../..", true).id()).isEqualTo(FatImage.ROOT);
    assertThat(fs.find("sub/", true).id()).isEqualTo(30);
    fails(Kind.NOT_FOUND, "/sub/other", () -> fs.find("sub/other", true));
    fails(Kind.WRONG_KIND, "not a folder", () -> fs.find("sub/deep.txt/x", true));
    fails(Kind.WRONG_KIND, "not a folder", () -> fs.find("sub/deep.txt/..", true));
    fails(Kind.WRONG_KIND, "not a folder", () -> Trees.entries(fs.find("sub/deep.txt", true)));
    fails(Kind.WRONG_KIND, "not a file", fs.find("sub", true)::extents);
    fails(Kind.WRONG_KIND, "no links", fs.find("sub", true)::target);
  }

  @Test
  void aFolderWithoutAClusterOrInALoop() {
    fails(
        Kind.CORRUPT,
        "(folder): corrupt: it begins with none",
        () -> Trees.names(withFolder(0), "sub"));
    image.chain(30, 31);
    image.next(31, 30);
    root = image.at(FatImage.ROOT);
    fails(Kind.CORRUPT, "comes back", () -> Trees.names(withFolder(30), "sub"));
  }

  @Test
  void aFolderIsAtMost2MiB() {
    FatImage large = new FatImage(4096, 128, 10);
    large.chain(2, 3, 4, 5, 6);

    fails(Kind.CORRUPT, "more than the 4 clusters", large::open);
  }

  @Test
  void aFolderEndsAtTheFirstFreeEntryAndGoesOnInItsNextCluster() {
    image.chain(FatImage.ROOT, 77);
    for (int i = 0; i < image.cluster / 32; i++) {
      add("FILE%04d   ".formatted(i), 0x20, 0, 0);
    }
    image.b.put(image.at(FatImage.ROOT) + 64, (byte) 0xE5);
    int at = image.entry(image.at(77), "LAST       ", 0x20, 0, 0);
    image.entry(at + 32, "BEHIND     ", 0x20, 0, 0);

    assertThat(Trees.names(image.open(), "/"))
        .hasSize(image.cluster / 32)
        .startsWith("FILE0000", "FILE0001", "FILE0003")
        .endsWith("LAST");
  }

  // ---- names

  private String firstName() {
    return Trees.names(image.open(), "/").getFirst();
  }

  @ParameterizedTest
  @CsvSource({
    "'README  TXT', 0,    README.TXT",
    "'README  TXT', 0x18, readme.txt",
    "'README  TXT', 8,    readme.TXT",
    "'README  TXT', 0x10, README.txt",
    "'A          ', 0,    A",
    "'A B     C D', 0,    A B.C D",
  })
  void shortNames(String name11, String caseBits, String shown) {
    add(name11, 0x20, 0, 0);
    image.b.put(root - 32 + 12, Integer.decode(caseBits).byteValue());

    assertThat(firstName()).isEqualTo(shown);
  }

  @Test
  void shortNamesInCodePage437() {
    add("\u0005\u0081\u0084\u00E1    TXT", 0x20, 0, 0);
    assertThat(firstName()).isEqualTo("σüäß.TXT");
    assertThat(image.open().find("ΣÜÄß.txt", true).kind()).isEqualTo(FileNode.Kind.FILE);
  }

  @Test
  void charactersThatNoNameHas() {
    add("A/B\u0001    \u007FXT", 0x20, 0, 0);
    assertThat(firstName()).isEqualTo("A\uFFFDB\uFFFD.\uFFFDXT");
    assertThat(image.open().find(firstName(), true).size()).isZero();
  }

  private void longName(String name) {
    root = image.longName(root, name, "SHORT~1 TXT");
    add("SHORT~1 TXT", 0x20, 0, 0);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "a",
        "thirteen char",
        "fourteen chars",
        "Ein längerer Name, über mehrere Teile.safetensors",
        "日本語の名前 😀 emoji.gguf",
        " leading and.many.dots"
      })
  void longNames(String name) {
    longName(name);
    FileSystem fs = image.open();

    assertThat(Trees.names(fs, "/")).containsExactly(name);
    for (String other :
        new String[] {name, "short~1.txt", name.toUpperCase(java.util.Locale.ROOT)}) {
      assertThat(fs.find(other, true).details()).containsEntry("short name", "SHORT~1.TXT");
    }
    assertThat(fs.find(name + "..", true).kind()).isEqualTo(FileNode.Kind.FILE);
  }

  @Test
  void theLongestName() {
    longName("x".repeat(255));
    assertThat(firstName()).hasSize(255);
  }

  @ParameterizedTest
  @ValueSource(strings = {"a/b", "half \uD83D of a pair", "bell \u0007", ".", ".."})
  void longNamesThatCannotBeUsed(String name) {
    longName(name);
    assertThat(firstName()).isEqualTo("SHORT~1.TXT");
  }

  @ParameterizedTest
  @CsvSource({"13, 1", "0, 0x41", "0, 0x43", "32, 0x02", "45, 1", "0, 0x80", "0, 0x7F"})
  void partsThatDoNotBelongTogether(int at, String value) {
    longName("a name of two parts.x");
    assertThat(firstName()).isEqualTo("a name of two parts.x");
    image.b.put(image.at(FatImage.ROOT) + at, Integer.decode(value).byteValue());

    assertThat(firstName()).isEqualTo("SHORT~1.TXT");
  }

  @Test
  void aDeletedEntryBetweenTakesTheLongNameAway() {
    root = image.longName(root, "orphan", "SHORT~1 TXT");
    add("\u00E5HORT~1 TXT", 0x20, 0, 0);
    add("SHORT~1 TXT", 0x20, 0, 0);
    assertThat(firstName()).isEqualTo("SHORT~1.TXT");
  }

  @Test
  void exactCaseComesFirst() {
    root = image.longName(root, "name", "NAME~1     ");
    add("NAME~1     ", 0x20, 0, 0);
    root = image.longName(root, "NAME", "NAME~2     ");
    add("NAME~2     ", 0x20, 0, 0);
    FileSystem fs = image.open();

    assertThat(fs.find("NAME", true).details()).containsEntry("short name", "NAME~2");
    assertThat(fs.find("Name", true).details()).containsEntry("short name", "NAME~1");
  }

  // ---- times, attributes, label

  @Test
  void timesAndAttributes() {
    add("FILE    BIN", 0x21, 0, 0);
    int at = root - 32;
    image.b.put(at + 13, (byte) 150);
    image.b.putShort(at + 14, (short) (13 << 11 | 59 << 5 | 29));
    image.b.putShort(at + 16, (short) (46 << 9 | 2 << 5 | 28));
    image.b.putShort(at + 18, (short) (46 << 9 | 3 << 5 | 1));
    image.b.putShort(at + 22, (short) (1 << 11));
    image.b.putShort(at + 24, (short) (127 << 9 | 12 << 5 | 31));
    FileNode file = image.open().find("file.bin", true);

    assertThat(file.modified()).isEqualTo(Instant.parse("2107-12-31T01:00:00Z"));
    assertThat(file.details())
        .containsEntry("created", "2026-02-28T13:59:59.500Z")
        .containsEntry("accessed", "2026-03-01T00:00:00Z")
        .containsEntry("attributes", "r----a");
  }

  @Test
  void datesThatAreNone() {
    add("FILE    BIN", 0x20, 0, 0);
    int at = root - 32;
    image.b.putShort(at + 22, (short) -1);
    image.b.putShort(at + 24, (short) -1);
    image.b.putShort(at + 16, (short) (15 << 5));
    FileNode file = image.open().find("file.bin", true);

    assertThat(file.modified()).isEqualTo(Instant.parse("2108-01-01T08:04:02Z"));
    assertThat(file.details()).containsEntry("created", "1980-12-01T00:00:00Z");
    assertThat(image.open().find("/", true).modified()).isEqualTo(Instant.EPOCH);
  }

  @Test
  void theRootsLabelComesFirst() {
    assertThat(image.open().label()).isEqualTo("BOOT LABEL");
    add("ROOT LABEL ", 0x08, 0, 0);
    assertThat(image.open().label()).isEqualTo("ROOT LABEL");
    image.text(root - 32, "NO NAME    ");
    assertThat(image.open().label()).isEmpty();
    assertThat(Trees.names(image.open(), "/")).isEmpty();
  }

  @Test
  void detailsOfTheVolume() {
    assertThat(image.open().find("/", true).details())
        .containsEntry("serial", "1234-ABCD")
        .containsEntry("state", "clean")
        .containsEntry("clusters", "200");
    image.next(1, 0x07FFFFFF);
    assertThat(image.open().find("/", true).details()).containsEntry("state", "not unmounted");
    image.next(1, 0x03FFFFFF);
    assertThat(image.open().find("/", true).details()).containsEntry("state", "had I/O errors");
  }
}
