package io.gpunvme.gpu.device;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.nvme.NvmeException;
import io.gpunvme.nvme.driver.ControllerOptions;
import io.gpunvme.nvme.driver.Namespace;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class DeviceTest {
  @Test
  void opensAnEmbeddedController() {
    try (Device device = Device.open("sim:size=8MiB,lba=4096", ControllerOptions.defaults())) {
      Namespace namespace = device.controller().namespace(1);

      assertThat(device.address()).hasToString("sim:size=8MiB,lba=4096");
      assertThat(namespace.blockSize()).isEqualTo(4096);
      assertThat(namespace.bytes()).isEqualTo(8 << 20);
    }
  }

  @Test
  void refusesOptionsTheControllerDoesNotHave() {
    assertThatThrownBy(() -> Device.open("sim:sise=1", ControllerOptions.defaults()))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("sise");
  }

  @Test
  void refusesAControllerThatNobodyWouldRun() {
    assertThatThrownBy(() -> Device.open("sim:workers=0", ControllerOptions.defaults()))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("workers=0");
  }

  @Test
  void refusesFaultsThatAreNoRules() {
    DeviceAddress address = DeviceAddress.embedded();
    assertThatThrownBy(() -> Device.open(address, ControllerOptions.defaults(), "explode"))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("explode");
  }

  @Test
  void faultsAreInForceBeforeTheControllerIsEnabled() {
    ControllerOptions options =
        ControllerOptions.builder().adminTimeout(Duration.ofSeconds(1)).build();
    DeviceAddress address = DeviceAddress.parse("sim:to=1");
    assertThatThrownBy(() -> Device.open(address, options, "ready-stuck on enable"))
        .isInstanceOf(NvmeException.class)
        .isNotInstanceOf(InvalidRequestException.class);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "vfio:ffff:ff:1f.7               | no PCI function ffff:ff:1f.7",
        "kmod:ffff:ff:1f.7               | no PCI function ffff:ff:1f.7",
        "kmod:ffff:ff:1f.7,unsafe=true   | no option 'unsafe'; they have noiommu, numa",
        "sysfs:ffff:ff:1f.7,unsafe=true  | no PCI function ffff:ff:1f.7",
        "vfio:ffff:ff:1f.7,unsafe=true   | no option 'unsafe'; they have noiommu, iommufd, gpu-bar,"
            + " numa",
        "vfio:ffff:ff:1f.7,iommufd=maybe | auto, true or false",
        "vfio:ffff:ff:1f.7,noiommu=yes   | noiommu=yes: must be true or false",
        "sysfs:ffff:ff:1f.7,workers=2    | no option 'workers'; they have unsafe",
      })
  void refusesFunctionsThatCannotBeOpened(String address, String message) {
    assertThatThrownBy(() -> Device.open(address, ControllerOptions.defaults()))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining(message);
  }

  @ParameterizedTest
  @ValueSource(strings = {"vfio:0000:01:00.0", "vfio-user:/run/ssd.sock"})
  void controllersOfOthersHaveNoFaultsAtWill(String text) {
    DeviceAddress address = DeviceAddress.parse(text);
    assertThatThrownBy(() -> Device.open(address, ControllerOptions.defaults(), "gone"))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining(text + " is not an embedded controller of this process");
  }
}
