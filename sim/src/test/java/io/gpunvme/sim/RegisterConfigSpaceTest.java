package io.gpunvme.sim;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.nvme.pci.ConfigSpace;
import io.gpunvme.nvme.spec.Registers;
import java.util.HashMap;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Configuration space as lspci would walk it. */
class RegisterConfigSpaceTest {
  private final RawHost host =
      RawHost.attach(SimConfig.builder().workers(0).cmbBytes(3 * 4096).vectors(300).build());
  private final ConfigSpace space = host.controller.config();

  @AfterEach
  void close() {
    host.close();
  }

  private Map<Integer, Integer> capabilities() {
    Map<Integer, Integer> found = new HashMap<>();
    for (int at = space.read(0x34, 1); at != 0; at = space.read(at + 1, 1)) {
      assertThat(found.put(space.read(at, 1), at)).isNull();
    }
    return found;
  }

  @Test
  void isAnNvmeController() {
    assertThat(space.size()).isEqualTo(256);
    assertThat(space.read(0x08, 4) >>> 8).isEqualTo(0x010802);
    assertThat(space.read(0x0E, 1)).isZero();
    assertThat(space.read(0x06, 2) & 1 << 4).isNotZero();
    assertThat(space.read(0x3D, 1)).isEqualTo(1);
    assertThat(space.read(0, 2)).isEqualTo(SimConfigSpace.VENDOR);
  }

  @Test
  void hasTheCapabilitiesDriversLookFor() {
    Map<Integer, Integer> found = capabilities();
    assertThat(found).containsOnlyKeys(0x01, 0x10, 0x11);
    int msix = found.get(0x11);
    assertThat(space.read(msix + 2, 2)).isEqualTo(299);
    assertThat(space.read(msix + 4, 4)).isEqualTo(4);
    assertThat(space.read(msix + 8, 4)).isEqualTo(8192 | 4);
    assertThat(space.read(found.get(0x10) + 4, 4) & 1 << 28).isNotZero();
  }

  @Test
  void barsTellTheirSize() {
    long[] sizes = {0x2000, 0x4000, 0x4000};
    for (int i = 0; i < 3; i++) {
      int at = 0x10 + 8 * i;
      assertThat(space.read(at, 4) & 0xF).isEqualTo(4);
      space.write(at, 4, -1);
      space.write(at + 4, 4, -1);
      long value = Integer.toUnsignedLong(space.read(at, 4)) | (long) space.read(at + 4, 4) << 32;
      assertThat(-(value & -16)).isEqualTo(sizes[i]);
      assertThat(host.controller.bar(2 * i).size()).isEqualTo(sizes[i]);
    }
  }

  @Test
  void readOnlyBitsStay() {
    for (int at : new int[] {0, 4, 8, 0x0C, 0x28, 0x2C, 0x30, 0x34, 0x50, 0x54, 0x58, 0x64, 0xFC}) {
      int before = space.read(at, 4);
      space.write(at, 4, ~before & ~(1 << 15 | 1 << 14) << 16);
      int changed = at == 4 ? 0x7FF : 0;
      assertThat(space.read(at, 4) & ~changed).isEqualTo(before & ~changed);
    }
  }

  @Test
  void bytesAndWordsAreWrittenAlone() {
    space.write(0x3C, 1, 0xAB);
    assertThat(space.read(0x3C, 2)).isEqualTo(0x01AB);
    space.write(ConfigSpace.COMMAND, 1, 0x06);
    space.write(ConfigSpace.COMMAND + 1, 1, 0x04);
    assertThat(space.read(ConfigSpace.COMMAND, 2)).isEqualTo(0x0406);
  }

  @Test
  void functionLevelResetByTheCapability() {
    host.bar.write32(Registers.AQA, 0x00010001);
    int control = capabilities().get(0x10) + 8;
    space.write(control, 2, 1 << 15);
    assertThat(host.bar.read32(Registers.AQA)).isZero();
    assertThat(space.read(control, 2) & 1 << 15).isZero();
    assertThat(space.read(ConfigSpace.COMMAND, 2)).isEqualTo(ConfigSpace.COMMAND_MEMORY);
    host.bar.write32(Registers.AQA, 0x00010001);
    space.write(control + 1, 1, 0x80);
    assertThat(host.bar.read32(Registers.AQA)).isZero();
  }

  @Test
  void wrongAccessesAreTheCallersMistake() {
    int[][] wrong = {{1, 2}, {2, 4}, {256, 1}, {-1, 1}, {0, 3}, {0, 8}, {254, 4}};
    for (int[] access : wrong) {
      assertThatThrownBy(() -> space.read(access[0], access[1]))
          .isInstanceOf(InvalidRequestException.class);
      assertThatThrownBy(() -> space.write(access[0], access[1], 0))
          .isInstanceOf(InvalidRequestException.class);
    }
  }
}
