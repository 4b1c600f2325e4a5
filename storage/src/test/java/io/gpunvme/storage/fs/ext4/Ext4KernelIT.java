package io.gpunvme.storage.fs.ext4;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.storage.fs.FileNode;
import io.gpunvme.storage.fs.FileSystem;
import io.gpunvme.storage.fs.FileSystemException;
import io.gpunvme.storage.fs.ImageReader;
import io.gpunvme.testing.Programs;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** File systems that the kernel of this machine filled, compared with what it shows of them. */
class Ext4KernelIT {
  private static final int NAMES = 100_000;

  @TempDir Path folder;
  private Path image;
  private Path mounted;

  @BeforeEach
  void prepare() throws IOException {
    E2fs.need("mke2fs", "debugfs");
    Programs.need("mount", "mount", "umount");
    image = folder.resolve("image");
    mounted = Files.createDirectory(folder.resolve("mounted"));
  }

  private void mount(String options) {
    try {
      Programs.run("mount", "-o", "loop," + options, image, mounted);
    } catch (AssertionError e) {
      Assumptions.abort("loop mounts are not possible here: " + e.getMessage());
    }
  }

  private void shell(String script) {
    Programs.run("bash", "-euc", "cd \"$1\"\n" + script, "bash", mounted);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "-t ext4 -b 4096",
        "-t ext4 -b 1024 -O inline_data -I 512",
        "-t ext4 -b 1024 -O bigalloc",
        "-t ext4 -b 2048 -O ^metadata_csum,uninit_bg -I 128",
        "-t ext3 -b 1024",
        "-t ext2 -b 1024",
      })
  void allThatTheKernelWroteIsRead(String options) throws IOException {
    E2fs.make(image, "128M", options, null);
    mount("rw");
    try {
      SourceTree.fill(mounted, 3000, options.contains("ext4") ? SourceTree.SPARSE_BYTES : 300_000);
      shell(
          """
          for i in $(seq 1 24); do # two files that grow in turns
            printf "%8000s" $i >> grow-a
            printf "%8000s" $i >> grow-b
            sync -d grow-a grow-b
          done
          for i in $(seq 0 3 170); do # holes in one, in no order
            fallocate -p -o $(( (i * 37 % 170) * 1024 )) -l 1024 grow-a 2>/dev/null || true
          done
          fallocate -l 300000 never-written 2>/dev/null || true
          fallocate -n -l 900000 few/a2 2>/dev/null || true
          printf x | dd of=never-written bs=1 seek=150000 conv=notrunc status=none
          printf short > longer; truncate -s 100000 longer
          printf short > shorter; truncate -s 2 shorter
          printf "%s\n" many/name-* | awk -F - '$2 % 3 == 0' | xargs rm
          mkdir gone; touch gone/x; rm -r gone
          chmod 4751 file-0; chmod 1777 many; chown 70000:80000 file-60
          touch -d 1950-01-02T03:04:05Z file-59; touch -d 2200-01-02T03:04:05Z link-file
          """);
      Programs.run("umount", mounted);
      mount("ro");
      try (ImageReader reader = ImageReader.open(image)) {
        FileSystem fs = Ext4.open(reader, Ext4Options.STRICT);
        assertThat(TreeCheck.compare(fs, mounted, true)).isGreaterThan(2000);
        assertThat(fs.find("many", true).details().get("flags")).contains("indexed");
        assertThat(fs.find("file-0", true).details()).containsEntry("mode", "-rwsr-x--x");
      }
    } finally {
      Programs.text(List.of(0, 1, 32), "umount", mounted);
    }
  }

  @Test
  void aHundredThousandFilesAreFound() throws IOException {
    E2fs.make(image, "256M", "-t ext4 -b 1024 -N 120000", null);
    Map<String, Long> theirs = new HashMap<>();
    mount("rw");
    try {
      Path many = Files.createDirectory(mounted.resolve("many"));
      for (int i = 0; i < NAMES; i++) {
        Path file = Files.createFile(many.resolve("Datei-%d-ü".formatted(i)));
        theirs.put(file.getFileName().toString(), (Long) Files.getAttribute(file, "unix:ino"));
      }
    } finally {
      Programs.text(List.of(0, 1, 32), "umount", mounted);
    }
    try (ImageReader reader = ImageReader.open(image)) {
      FileSystem fs = Ext4.open(reader, Ext4Options.STRICT);
      Map<String, Long> ours = new HashMap<>();
      fs.find("many", true).list(entry -> ours.put(entry.name(), entry.id()));
      assertThat(ours.equals(theirs)).as("the same names").isTrue();
      for (int i = 0; i < NAMES; i += 11) {
        String name = "Datei-%d-ü".formatted(i);
        assertThat(fs.find("many/" + name, true).id()).isEqualTo(theirs.get(name));
      }
    }
  }

  /** A copy taken while it is mounted has a journal to be replayed. */
  @Test
  void aJournalToBeReplayedIsRefusedUnlessToldToGoOn() throws IOException {
    E2fs.make(image, "32M", "-t ext4", null);
    Path copy = folder.resolve("copy");
    mount("rw");
    try {
      Files.writeString(mounted.resolve("file"), "text");
      Programs.run("sync", "-f", mounted);
      Files.copy(image, copy);
    } finally {
      Programs.text(List.of(0, 1, 32), "umount", mounted);
    }
    try (ImageReader reader = ImageReader.open(copy)) {
      assertThatThrownBy(() -> Ext4.open(reader, Ext4Options.STRICT))
          .isInstanceOfSatisfying(
              FileSystemException.class,
              e -> assertThat(e.kind()).isEqualTo(FileSystemException.Kind.JOURNAL))
          .hasMessageContaining("e2fsck")
          .hasMessageContaining("ount");
      FileSystem fs = Ext4.open(reader, new Ext4Options(true));
      assertThat(fs.find("/", true).kind()).isEqualTo(FileNode.Kind.FOLDER);
    }
    try (ImageReader reader = ImageReader.open(image)) {
      FileNode file = Ext4.open(reader, Ext4Options.STRICT).find("file", true);
      byte[] text = new byte[4];
      file.read(0, MemorySegment.ofArray(text));
      assertThat(text).asString().isEqualTo("text");
    }
  }
}
