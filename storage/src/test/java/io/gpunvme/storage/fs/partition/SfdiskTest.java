package io.gpunvme.storage.fs.partition;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.storage.fs.ImageReader;
import io.gpunvme.testing.Programs;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Tables made by sfdisk: the same parts. */
class SfdiskTest {
  private static final int SECTOR = 512;

  @TempDir Path folder;
  private Path image;

  @BeforeEach
  void prepare() throws IOException {
    Programs.need("fdisk", "sfdisk");
    image = folder.resolve("disk.img");
    try (RandomAccessFile file = new RandomAccessFile(image.toFile(), "rw")) {
      file.setLength(64 << 20);
    }
  }

  /** Makes a table; returns its partitions as sfdisk prints them: number, start, size. */
  private List<long[]> make(String script) {
    Programs.run(script.getBytes(StandardCharsets.UTF_8), "sfdisk", image);
    String dump = new String(Programs.run("sfdisk", "--dump", image), StandardCharsets.UTF_8);
    Matcher line =
        Pattern.compile("(?m)disk\\.img(\\d+) : start= *(\\d+), size= *(\\d+), type=(.*)$")
            .matcher(dump);
    List<long[]> all = new ArrayList<>();
    while (line.find()) {
      boolean extended = line.group(4).equals("5") || line.group(4).equals("f");
      if (!extended) {
        all.add(
            new long[] {
              Long.parseLong(line.group(1)),
              Long.parseLong(line.group(2)) * SECTOR,
              Long.parseLong(line.group(3)) * SECTOR
            });
      }
    }
    return all;
  }

  private PartitionTable read() {
    try (ImageReader reader = ImageReader.open(image)) {
      return Partitions.find(reader, SECTOR).orElseThrow();
    }
  }

  private static List<long[]> parts(PartitionTable table) {
    return table.partitions().stream()
        .map(p -> new long[] {p.number(), p.firstByte(), p.bytes()})
        .toList();
  }

  @Test
  void gpt() {
    List<long[]> theirs =
        make(
            """
            label: gpt
            size=8MiB, type=uefi, name="EFI"
            size=16MiB, type=linux, name="Modelle äöü"
            type=swap
            """);
    PartitionTable table = read();

    assertThat(table.notes()).isEmpty();
    assertThat(parts(table)).hasSize(3).containsExactlyElementsOf(theirs);
    assertThat(table.partitions())
        .extracting(Partition::type, Partition::name)
        .containsExactly(
            org.assertj.core.groups.Tuple.tuple("EFI system", "EFI"),
            org.assertj.core.groups.Tuple.tuple("Linux files", "Modelle äöü"),
            org.assertj.core.groups.Tuple.tuple("Linux swap", ""));
  }

  @Test
  void mbrWithLogicalPartitions() {
    List<long[]> theirs =
        make(
            """
            label: dos
            1 : size=8MiB, type=c
            2 : size=40MiB, type=5
            5 : size=8MiB, type=83
            6 : size=8MiB, type=82
            7 : size=8MiB, type=83
            """);
    PartitionTable table = read();

    assertThat(table.kind()).isEqualTo(PartitionTable.Kind.MBR);
    assertThat(parts(table)).hasSizeGreaterThanOrEqualTo(4).containsExactlyElementsOf(theirs);
  }
}
