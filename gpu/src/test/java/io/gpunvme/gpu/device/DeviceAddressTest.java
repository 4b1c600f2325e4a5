package io.gpunvme.gpu.device;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.base.InvalidRequestException;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class DeviceAddressTest {
  @Test
  void readsKindAndOptions() {
    DeviceAddress address = DeviceAddress.parse("sim:size=1GiB,lba=4096");

    assertThat(address.transport()).isEqualTo(Transport.SIM);
    assertThat(address.option("size")).isEqualTo("1GiB");
    assertThat(address.has("lba")).isTrue();
    assertThat(address.has("file")).isFalse();
    assertThat(address.option("file")).isNull();
    assertThat(address).hasToString("sim:size=1GiB,lba=4096");
  }

  @ParameterizedTest
  @CsvSource({
    "vfio:0000:01:00.0, vfio, 0000:01:00.0, vfio:0000:01:00.0",
    "sysfs:0000:3B:00.1, sysfs, 0000:3b:00.1, sysfs:0000:3b:00.1",
    "kmod:0000:3b:00.1, kmod, 0000:3b:00.1, kmod:0000:3b:00.1",
    "vfio:01:00.0, vfio, 0000:01:00.0, vfio:0000:01:00.0",
  })
  void namesPciFunctions(String text, String kind, String function, String whole) {
    DeviceAddress address = DeviceAddress.parse(text);

    assertThat(address.transport()).hasToString(kind);
    assertThat(address.place()).isEqualTo(function);
    assertThat(address).hasToString(whole);
    assertThat(address.isEmbedded()).isFalse();
    assertThat(DeviceAddress.parse("sim").place()).isEmpty();
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "vfio:0000:01:00.0           | vfio:01:00.0,iommufd=true      | true",
        "vfio:0000:01:00.0           | kmod:0000:01:00.0              | false",
        "vfio:0000:01:00.0           | vfio:0000:02:00.0              | false",
        "vfio:01:00.0,noiommu=true   | vfio:01:00.0                   | false",
        "sim:                        | sim:size=1GiB,lba=4096         | true",
        "sim:lba=4096                | sim:size=1GiB,lba=4096         | true",
        "sim:lba=512                 | sim:size=1GiB,lba=4096         | false",
        "vfio-user:/run/ssd.sock     | vfio-user:/run/ssd.sock,timeout=5s | true",
      })
  void anAddressNamesThoseThatSayMore(String text, String other, boolean names) {
    assertThat(DeviceAddress.parse(text).names(DeviceAddress.parse(other))).isEqualTo(names);
  }

  @Test
  void otherProcessesCanUseAbsoluteAddresses() {
    Path here = Path.of("").toAbsolutePath();
    assertThat(DeviceAddress.parse("vfio-user:a/../ssd,timeout=1s").absolute())
        .hasToString("vfio-user:" + here + "/ssd,timeout=1s");
    assertThat(DeviceAddress.parse("sim:file=a.img,ns2.file=/b.img,serial=./x").absolute())
        .hasToString("sim:file=" + here + "/a.img,ns2.file=/b.img,serial=./x");
    assertThat(DeviceAddress.servedAt(Path.of("a,b"))).hasToString("vfio-user:" + here + "/a\\,b");
  }

  @Test
  void functionsHaveOptionsToo() {
    DeviceAddress address = DeviceAddress.parse("vfio:0000:01:00.0,iommufd=auto");

    assertThat(address.option("iommufd")).isEqualTo("auto");
    assertThat(address.with("noiommu", "true"))
        .hasToString("vfio:0000:01:00.0,iommufd=auto,noiommu=true");
    assertThat(address.without("iommufd")).hasToString("vfio:0000:01:00.0");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '"',
      value = {
        "vfio-user:/run/ssd.sock         | /run/ssd.sock   | vfio-user:/run/ssd.sock",
        "vfio-user:ssd                   | ssd             | vfio-user:ssd",
        "vfio-user:/a\\,b/c\\\\d            | /a,b/c\\d        | vfio-user:/a\\,b/c\\\\d",
        "vfio-user:/run/a=b:c            | /run/a=b:c      | vfio-user:/run/a=b:c",
        "vfio-user:/s,timeout=5s,messages=true | /s | vfio-user:/s,timeout=5s,messages=true",
        "vfio-user:/a\\,b,timeout=1ms     | /a,b            | vfio-user:/a\\,b,timeout=1ms"
      })
  void namesSockets(String text, String socket, String whole) {
    DeviceAddress address = DeviceAddress.parse(text);

    assertThat(address.transport()).isEqualTo(Transport.VFIO_USER);
    assertThat(address.place()).isEqualTo(socket);
    assertThat(address).hasToString(whole);
    assertThat(address.isEmbedded()).isFalse();
    DeviceAddress again = DeviceAddress.parse(address.toString());
    assertThat(again.place()).isEqualTo(socket);
    assertThat(again.optionText()).isEqualTo(address.optionText());
    assertThat(again.with("timeout", "2s").place()).isEqualTo(socket);
  }

  @ParameterizedTest
  @ValueSource(strings = {"sim", "sim:", "sim: "})
  void needsNoOptions(String text) {
    assertThat(DeviceAddress.parse(text)).hasToString("sim:");
  }

  @Test
  void aBackslashTakesACommaLiterallyBothWays() {
    DeviceAddress address = DeviceAddress.parse("sim:file=/a\\,b\\\\c=d,size=1");

    assertThat(address.option("file")).isEqualTo("/a,b\\c=d");
    assertThat(DeviceAddress.parse(address.toString()).option("file")).isEqualTo("/a,b\\c=d");
    assertThat(DeviceAddress.parse(address.toString()).option("size")).isEqualTo("1");
  }

  @Test
  void withReplacesAndLeavesTheOriginalAlone() {
    DeviceAddress address = DeviceAddress.parse("sim:size=1,lba=512");

    assertThat(address.with("size", "2").with("seed", "3"))
        .hasToString("sim:size=2,lba=512,seed=3");
    assertThat(address.without("size").without("seed")).hasToString("sim:lba=512");
    assertThat(address).hasToString("sim:size=1,lba=512");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '"',
      value = {
        "nvme:0000:01:00.0 | no device 'nvme:0000:01:00.0'",
        "vfio:             | '' is not a PCI address",
        "vfio:01:20.0      | '01:20.0' is not a PCI address",
        "kmod:nvme0        | 'nvme0' is not a PCI address",
        "sysfs:nvme0       | 'nvme0' is not a PCI address",
        "vfio:0000:01:00.0,noiommu | 'noiommu' is not key=value",
        "0000:02:00.0      | (vfio:0000:02:00.0, kmod:",
        "/dev/nvme0n1      | no device '/dev/nvme0n1'",
        "SIM:size=1        | no device 'SIM:size=1'",
        "vfio-user         | has no socket: vfio-user:/path/to/socket",
        "vfio-user:        | has no socket",
        "vfio-user:,timeout=5s | has no socket",
        "vfio-user:/s,timeout  | 'timeout' is not key=value",
        "vfio-user:/s,timeout=1s,timeout=2s | timeout= is given twice",
        "sim:size=1,size=2 | size= is given twice",
        "sim:size          | 'size' is not key=value",
        "sim:=1            | '=1' is not key=value",
        "sim:,,            | '' is not key=value",
        "sim:size=1,       | '' is not key=value"
      })
  void refusesWhatMakesNoSense(String text, String message) {
    assertThatThrownBy(() -> DeviceAddress.parse(text))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining(message);
  }

  @Test
  void anUnknownKindIsToldWhatThereIs() {
    assertThatThrownBy(() -> DeviceAddress.parse("nvme:nvme0"))
        .hasMessageContainingAll("sim:key=value", "vfio:", "kmod:", "sysfs:", "vfio-user:SOCKET");
  }
}
