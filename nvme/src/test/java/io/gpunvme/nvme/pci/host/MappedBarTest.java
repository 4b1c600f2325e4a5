package io.gpunvme.nvme.pci.host;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.base.InvalidRequestException;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A file plays the device: its second page is the one of the MSI-X table, which is not mapped. */
class MappedBarTest {
  private static final int PAGE = 65536; // of any host
  private static final long SIZE = 3 * PAGE;

  @TempDir Path folder;
  private Path path;
  private DeviceFile file;
  private MappedBar bar;

  @BeforeEach
  void open() throws IOException {
    path = folder.resolve("device");
    Files.write(path, new byte[(int) (PAGE + SIZE)]);
    file = DeviceFile.open(path);
    List<MappedBar.Part> parts =
        List.of(
            new MappedBar.Part(0, file.map(PAGE, PAGE)),
            new MappedBar.Part(2 * PAGE, file.map(3 * PAGE, PAGE)));
    bar = new MappedBar("BAR 0 of test", SIZE, parts, file, PAGE);
  }

  @AfterEach
  void close() {
    bar.close();
    file.close();
  }

  private long inFile(long offset) throws IOException {
    return ByteBuffer.wrap(Files.readAllBytes(path))
        .order(ByteOrder.LITTLE_ENDIAN)
        .getLong((int) offset);
  }

  @Test
  void pagesThatAreGoneReadAllOnes() throws IOException {
    try (FileChannel cut = FileChannel.open(path, StandardOpenOption.WRITE)) {
      cut.truncate(0);
    }
    bar.write32(0x14, 1);
    assertThat(bar.read32(0x14)).isEqualTo(-1);
    assertThat(bar.read64(0x10)).isEqualTo(-1);
  }

  @Test
  void readsAndWritesMappedAndUnmappedRegisters() throws IOException {
    for (long at : new long[] {0x14, PAGE + 0x14, 2 * PAGE + 0x14}) {
      bar.write32(at, 0x89ABCDEF);
      assertThat(bar.read32(at)).isEqualTo(0x89ABCDEF);
      assertThat((int) inFile(PAGE + at)).isEqualTo(0x89ABCDEF);
      bar.write64(at + 4, 0xFEDC_BA98_7654_3210L);
      assertThat(bar.read64(at + 4)).isEqualTo(0xFEDC_BA98_7654_3210L);
      assertThat(inFile(PAGE + at + 4)).isEqualTo(0xFEDC_BA98_7654_3210L);
    }
  }

  @Test
  void memoryIsTheDeviceItself() {
    bar.memory(2 * PAGE, 64).set(ValueLayout.JAVA_INT_UNALIGNED, 8, 0x0D0C0B0A);

    assertThat(bar.read32(2 * PAGE + 8)).isEqualTo(0x0D0C0B0A);
    assertThat(bar.size()).isEqualTo(SIZE);
  }

  @Test
  void handsOutOnlyWhatIsMapped() {
    assertThat(bar.memory(0, PAGE).byteSize()).isEqualTo(PAGE);
    for (long[] range : new long[][] {{PAGE, 8}, {PAGE - 4, 8}, {2 * PAGE - 4, 8}, {SIZE, 1}}) {
      assertThatThrownBy(() -> bar.memory(range[0], range[1]))
          .isInstanceOf(InvalidRequestException.class)
          .hasMessageContaining("BAR 0 of test")
          .hasMessageContaining("0h to 10000h, 20000h to 30000h");
    }
  }

  @Test
  void refusesAccessesThatNoRegisterHas() {
    for (long offset : new long[] {-4, 2, SIZE, SIZE - 2}) {
      assertThatThrownBy(() -> bar.read32(offset)).isInstanceOf(InvalidRequestException.class);
      assertThatThrownBy(() -> bar.write32(offset, 0)).isInstanceOf(InvalidRequestException.class);
    }
    assertThatThrownBy(() -> bar.read64(4)).isInstanceOf(InvalidRequestException.class);
    assertThatThrownBy(() -> bar.write64(SIZE - 4, 0)).isInstanceOf(InvalidRequestException.class);
  }

  @Test
  void afterCloseReadsAreAllOnesAndWritesNothing() throws IOException {
    MemorySegment doorbells = bar.memory(0, 64);
    bar.close();
    bar.close();

    for (long at : new long[] {0, PAGE}) {
      bar.write32(at, 1);
      assertThat(bar.read32(at)).isEqualTo(-1);
      assertThat(bar.read64(at)).isEqualTo(-1L);
      assertThat(inFile(PAGE + at)).isZero();
    }
    assertThatIllegalStateException().isThrownBy(() -> doorbells.get(ValueLayout.JAVA_INT, 0));
  }

  @Test
  void silenceKeepsWhatWasHandedOut() {
    MemorySegment doorbells = bar.memory(0, 64);
    bar.silence();

    assertThat(bar.read32(0)).isEqualTo(-1);
    doorbells.set(ValueLayout.JAVA_INT, 0, 7);
    assertThat(doorbells.get(ValueLayout.JAVA_INT, 0)).isEqualTo(7);
  }

  @Test
  void aFileThatEndsIsADeviceThatIsGone() throws IOException {
    Files.write(path, new byte[PAGE + PAGE]);

    assertThat(bar.read32(PAGE)).isEqualTo(-1);
    FileConfigSpace config = new FileConfigSpace(file, SIZE + PAGE, 256);
    assertThat(config.read(4, 2)).isEqualTo(0xFFFF);
    assertThat(config.read(0, 1)).isEqualTo(0xFF);
  }

  @Test
  void configurationSpaceIsPartOfTheFile() throws IOException {
    FileConfigSpace config = new FileConfigSpace(file, 256, 256);
    config.write(4, 2, 0x12406);
    config.write(8, 4, 0x01080200);

    assertThat(config.read(4, 2)).isEqualTo(0x2406);
    assertThat(config.read(6, 2)).isZero();
    assertThat(inFile(256 + 8)).isEqualTo(0x01080200L);
    assertThat(config.read(11, 1)).isEqualTo(1);
    assertThat(config.size()).isEqualTo(256);
    for (int[] access : new int[][] {{256, 1}, {254, 4}, {1, 2}, {0, 3}, {-4, 4}}) {
      assertThatThrownBy(() -> config.read(access[0], access[1]))
          .isInstanceOf(InvalidRequestException.class);
    }
    file.close();
    assertThat(config.read(0, 4)).isEqualTo(-1);
    config.write(0, 4, 1);
    assertThatIllegalStateException().isThrownBy(() -> file.fd());
  }
}
