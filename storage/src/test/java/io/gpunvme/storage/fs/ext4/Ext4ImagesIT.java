package io.gpunvme.storage.fs.ext4;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.storage.fs.FileNode;
import io.gpunvme.storage.fs.FileSystem;
import io.gpunvme.storage.fs.FileSystemException;
import io.gpunvme.storage.fs.ImageReader;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** File systems made by mke2fs with many sets of features, compared with what they were made of. */
class Ext4ImagesIT {
  @TempDir static Path folder;
  private static Path source;

  @BeforeAll
  static void fill() throws IOException {
    E2fs.need("mke2fs", "debugfs", "e2fsck");
    source = Files.createDirectory(folder.resolve("source"));
    SourceTree.fill(source, 1500, SourceTree.SPARSE_BYTES);
  }

  // Size, sparse file above 4 GiB or not, index made by e2fsck -D or not, options.
  @ParameterizedTest(name = "{0}: {4}")
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          ext4 | 64M | large | linear | -t ext4 -b 4096
          ext4 | 64M | large | indexed | -t ext4 -b 4096
          ext4 | 64M | large | indexed | -t ext4 -b 1024
          ext4 | 64M | large | indexed | -t ext4 -b 2048 -I 512
          ext4 | 512M | large | indexed | -t ext4 -b 65536
          ext4 | 64M | large | indexed | -t ext4 -b 1024 -O ^has_journal
          ext4 | 64M | small | indexed | -t ext4 -b 1024 -O ^extent,^64bit
          ext4 | 64M | large | indexed | -t ext4 -b 4096 -O ^64bit
          ext4 | 64M | large | indexed | -t ext4 -b 4096 -O ^metadata_csum
          ext4 | 64M | large | indexed | -t ext4 -b 1024 -O ^flex_bg
          ext4 | 64M | large | linear | -t ext4 -b 4096 -O inline_data
          ext4 | 64M | large | indexed | -t ext4 -b 1024 -O inline_data -I 1024
          ext4 | 64M | large | indexed | -t ext4 -b 4096 -I 128
          ext4 | 64M | large | indexed | -t ext4 -b 4096 -O bigalloc -C 16384
          ext4 | 64M | large | indexed | -t ext4 -b 1024 -O bigalloc -C 4096
          ext4 | 64M | large | indexed | -t ext4 -b 1024 -O meta_bg,^resize_inode -g 1024
          ext4 | 64M | large | indexed | -t ext4 -b 4096 -O meta_bg,^resize_inode -g 256 -N 20480
          ext4 | 64M | large | indexed | -t ext4 -b 4096 -O metadata_csum_seed
          ext4 | 64M | large | indexed | -t ext4 -b 1024 -O uninit_bg,^metadata_csum
          ext4 | 64M | large | indexed | -t ext4 -b 1024 -O uninit_bg,^metadata_csum,^64bit
          ext4 | 64M | large | indexed | -t ext4 -b 1024 -O large_dir
          ext4 | 64M | large | indexed | -t ext4 -b 4096 -O sparse_super2
          ext4 | 64M | large | linear | -t ext4 -b 1024 -O ^filetype
          ext4 | 64M | large | linear | -t ext4 -b 1024 -O ^dir_index
          ext4 | 64M | large | indexed | -t ext4 -b 1024 -O quota,project,mmp,ea_inode,encrypt
          ext2 | 64M | small | linear | -t ext2 -b 1024
          ext2 | 64M | large | indexed | -t ext2 -b 4096
          ext2 | 64M | small | linear | -t ext2 -b 1024 -r 0
          ext3 | 64M | small | indexed | -t ext3 -b 1024
          ext3 | 64M | large | linear | -t ext3 -b 4096
          """)
  void allThatWentInComesOut(String type, String size, String sparse, String index, String options)
      throws IOException {
    Path image = folder.resolve("image");
    Files.deleteIfExists(image);
    prepareSparse(sparse.equals("large"));
    E2fs.make(image, size, "-L label-of-it " + options, source);
    if (index.equals("indexed")) {
      E2fs.check(image);
    }
    try (ImageReader reader = ImageReader.open(image)) {
      FileSystem fs = Ext4.open(reader, Ext4Options.STRICT);

      assertThat(fs.type()).isEqualTo(type);
      assertThat(fs.label()).isEqualTo(options.contains("-r 0") ? "" : "label-of-it");
      int files = TreeCheck.compare(fs, source, true);
      assertThat(files).isGreaterThan(1500);
      compareExtents(image, fs);
      links(fs);
      flags(fs, index.equals("indexed"), options.contains("inline_data"));
    }
  }

  /** The large one does not fit into a block map of small blocks. */
  private static void prepareSparse(boolean large) throws IOException {
    Path file = source.resolve("sparse");
    Path aside = folder.resolve("sparse-aside");
    if (large && Files.exists(aside)) {
      Files.move(aside, file);
    } else if (!large && Files.exists(file)) {
      Files.move(file, aside);
    }
  }

  private static void compareExtents(Path image, FileSystem fs) {
    Map<Long, FileNode> nodes = new TreeMap<>();
    for (String path : TreeCheck.files(fs)) {
      FileNode node = fs.find(path, true);
      if (!node.details().get("flags").contains("inline")) {
        nodes.put(node.id(), node);
      }
    }
    Map<Long, Map<Long, Long>> theirs = DebugfsExtents.of(image, nodes.keySet());
    for (FileNode node : nodes.values()) {
      assertThat(DebugfsExtents.of(node.extents(), fs.blockSize()))
          .as("inode %d", node.id())
          .isEqualTo(theirs.get(node.id()));
    }
  }

  private static void links(FileSystem fs) {
    assertThat(fs.find("few/link-up", true).id()).isEqualTo(fs.find("file-1024", true).id());
    assertThat(fs.find("link-absolute/name-7-xxxxxxx", true).id())
        .isEqualTo(fs.find("//many/./../many/name-7-xxxxxxx", true).id());
    assertThat(fs.find("link-900", true).id()).isEqualTo(fs.find("/file-0", true).id());
    assertThat(fs.find("chain-39", true).id()).isEqualTo(fs.find("/file-61", true).id());
    for (String loop : List.of("chain-40", "link-loop", "link-loop/x")) {
      kind(fs, loop, FileSystemException.Kind.LINKS);
    }
    for (String none : List.of("link-nowhere", "nowhere", "many/name-1500", "few/a3", "few/a")) {
      kind(fs, none, FileSystemException.Kind.NOT_FOUND);
    }
    kind(fs, "file-60/x", FileSystemException.Kind.WRONG_KIND);
    kind(fs, "file-60/", FileSystemException.Kind.WRONG_KIND);
  }

  private static void kind(FileSystem fs, String path, FileSystemException.Kind kind) {
    assertThatThrownBy(() -> fs.find(path, true))
        .as(path)
        .isInstanceOfSatisfying(
            FileSystemException.class, e -> assertThat(e.kind()).isEqualTo(kind));
  }

  /** That what is to be tested is there. */
  private static void flags(FileSystem fs, boolean index, boolean inline) {
    boolean big = fs.blockSize() > 1 << 15; // all names are in one block
    assertThat(fs.find("many", true).details().get("flags").contains("indexed"))
        .isEqualTo(index && !big);
    assertThat(fs.find("file-59", true).details().get("flags").contains("inline"))
        .isEqualTo(inline);
    assertThat(fs.find("few", true).details().get("flags").contains("inline")).isEqualTo(inline);
  }
}
