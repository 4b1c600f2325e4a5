package io.gpunvme.core.device;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class PciNvmeTest {
  @TempDir Path sysfs;

  private Path function(String address, String classCode) throws IOException {
    Path function = Files.createDirectory(sysfs.resolve(address));
    Files.writeString(function.resolve("class"), classCode + "\n");
    Files.writeString(function.resolve("vendor"), "0x144d\n");
    Files.writeString(function.resolve("device"), "0xa80c\n");
    return function;
  }

  @Test
  void listsOnlyNvmeFunctionsByAddress() throws IOException {
    function("0000:02:00.0", "0x010802");
    function("0000:00:1f.2", "0x010601");
    function("0000:01:00.0", "0x010803");

    assertThat(PciNvme.list(sysfs))
        .extracting(PciNvme::address)
        .containsExactly("0000:01:00.0", "0000:02:00.0");
  }

  @Test
  void saysWhichDriverAndBlockDevicesItHas() throws IOException {
    Path function = function("0000:01:00.0", "0x010802");
    Path driver = Files.createDirectories(sysfs.resolve("drivers/nvme"));
    Files.createSymbolicLink(function.resolve("driver"), driver);
    Path controller = Files.createDirectories(function.resolve("nvme/nvme3"));
    Files.writeString(controller.resolve("model"), "Some SSD 1TB   \n");
    Files.createDirectory(controller.resolve("nvme3n1"));
    Files.createDirectory(controller.resolve("nvme0c3n2"));
    Files.createDirectory(controller.resolve("power"));

    assertThat(PciNvme.list(sysfs))
        .containsExactly(
            new PciNvme(
                "0000:01:00.0",
                0x144D,
                0xA80C,
                "nvme",
                "Some SSD 1TB",
                List.of("nvme0n2", "nvme3n1")));
  }

  @Test
  void aFunctionWithoutDriverIsListedAllTheSame() throws IOException {
    function("0000:01:00.0", "0x010802");

    PciNvme found = PciNvme.list(sysfs).getFirst();
    assertThat(found.driver()).isEmpty();
    assertThat(found.model()).isEmpty();
    assertThat(found.blockDevices()).isEmpty();
  }

  @Test
  void unreadableEntriesAreNoFunctions() throws IOException {
    Files.createDirectory(sysfs.resolve("0000:03:00.0"));
    Files.writeString(sysfs.resolve("file"), "0x010802");

    assertThat(PciNvme.list(sysfs)).isEmpty();
  }

  @Test
  void aMachineWithoutPciHasNone() {
    assertThat(PciNvme.list(sysfs.resolve("missing"))).isEmpty();
  }
}
