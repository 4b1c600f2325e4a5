package io.gpunvme.nvme.pci.kmod;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.ffi.Posix;
import io.gpunvme.nvme.pci.ConfigSpace;
import io.gpunvme.nvme.pci.host.DeviceFile;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The Command register of somebody who may not write it. */
class KmodConfigSpaceTest {
  private static final int ON = ConfigSpace.COMMAND_MEMORY | ConfigSpace.COMMAND_BUS_MASTER;

  @TempDir Path folder;
  private final AtomicInteger stopped = new AtomicInteger();

  private KmodConfigSpace readOnly() throws Exception {
    byte[] bytes = new byte[64];
    bytes[ConfigSpace.COMMAND] = ON;
    Path file = Files.write(folder.resolve("config"), bytes);
    DeviceFile opened = DeviceFile.open(file, Posix.O_RDONLY);
    return new KmodConfigSpace(opened, bytes.length, false, stopped::incrementAndGet);
  }

  @Test
  void whatIsOnStaysOn() throws Exception {
    try (KmodConfigSpace config = readOnly()) {
      config.write(ConfigSpace.COMMAND, 2, ON | ConfigSpace.COMMAND_INTX_DISABLE);
      assertThat(config.read(ConfigSpace.COMMAND, 2)).isEqualTo(ON);
      assertThat(stopped).hasValue(0);
    }
  }

  @Test
  void withoutBusMasteringTheFunctionIsReset() throws Exception {
    try (KmodConfigSpace config = readOnly()) {
      config.write(ConfigSpace.COMMAND, 2, ConfigSpace.COMMAND_MEMORY);
      assertThat(stopped).hasValue(1);
    }
  }

  @Test
  void otherRegistersAreForRoot() throws Exception {
    try (KmodConfigSpace config = readOnly()) {
      assertThatThrownBy(() -> config.write(0x10, 4, 0))
          .isInstanceOf(InvalidRequestException.class)
          .hasMessageContaining("needs root");
      assertThat(config.size()).isEqualTo(64);
    }
  }
}
