package io.gpunvme.gpu.bar;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.nvme.memory.PeerMemory;
import io.gpunvme.nvme.pci.HostPaths;
import io.gpunvme.nvme.pci.PciAddress;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class PeerBarTest {
  private static final PciAddress GPU = PciAddress.parse("0000:0a:00.0");
  private static final String RESOURCES =
      """
      0x00000000f0000000 0x00000000f0ffffff 0x0000000000040200
      0x0000003800000000 0x000000380003ffff 0x000000000014220c
      0x0000000000000000 0x0000000000000000 0x0000000000000000
      0x0000003900000000 0x0000003900007fff 0x000000000014220c
      """;

  @TempDir Path root;
  private Path folder;

  @BeforeEach
  void makeFunction() throws IOException {
    folder = Files.createDirectories(root.resolve("sys/bus/pci/devices/" + GPU));
    Files.writeString(folder.resolve("resource"), RESOURCES);
    command(0x406);
    try (RandomAccessFile bar = new RandomAccessFile(folder.resolve("resource1").toFile(), "rw")) {
      bar.setLength(0x40000);
      bar.seek(0x20000);
      bar.write(0x5A);
    }
  }

  private void command(int value) throws IOException {
    byte[] config = new byte[256];
    config[4] = (byte) value;
    config[5] = (byte) (value >> 8);
    Files.write(folder.resolve("config"), config);
  }

  private PeerBar open(int index) {
    HostPaths paths = new HostPaths(root.resolve("sys"), root.resolve("dev"), root.resolve("proc"));
    return PeerBar.open(paths, GPU, index);
  }

  private void assertRefused(int index, String... parts) {
    assertThatThrownBy(() -> open(index))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("BAR " + index + " of " + GPU)
        .hasMessageContainingAll(parts);
  }

  @Test
  void mapsABarWhole() {
    PeerBar bar = open(1);
    assertThat(bar.size()).isEqualTo(0x40000);
    assertThat(bar.name()).isEqualTo("BAR 1 of 0000:0a:00.0");
    assertThat(bar.address()).isEqualTo(GPU);
    PeerMemory part = bar.part(0x20000, 0x10000);
    assertThat(part.physical()).isEqualTo(0x38_0002_0000L);
    assertThat(part.size()).isEqualTo(0x10000);
    assertThat(part.memory().get(ValueLayout.JAVA_BYTE, 0)).isEqualTo((byte) 0x5A);
    bar.close();
    bar.close();
    assertThatThrownBy(() -> part.memory().get(ValueLayout.JAVA_BYTE, 0))
        .isInstanceOf(IllegalStateException.class);
  }

  @Test
  void registersAreNotReadAsMemory() {
    assertRefused(0, "registers", "BAR 1");
  }

  @Test
  void refusesWhatIsNoBar() {
    assertRefused(2, "lists them");
    assertRefused(5, "lists them");
    assertRefused(-1, "lists them");
    assertRefused(3, "pages of 64 KiB");
  }

  @Test
  void aFunctionWhoseMemoryIsOffIsRefused() throws IOException {
    command(0x400);
    assertRefused(1, "400h", "enable");
    command(0xFFFF);
    assertRefused(1, "FFFFh");
  }

  @Test
  void saysWhatIsMissing() throws IOException {
    Files.delete(folder.resolve("resource1"));
    assertRefused(1, "mapping", "ENOENT");
    Files.writeString(folder.resolve("resource"), "0x1 0x2\n");
    assertThatThrownBy(() -> open(1)).isInstanceOf(InvalidRequestException.class);
    Files.delete(folder.resolve("resource"));
    assertRefused(1, "cannot be read");
  }
}
