package io.gpunvme.gpu.device;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.device.GpuBusAddresses.Way;
import io.gpunvme.nvme.driver.ControllerOptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class GpuBusAddressesTest {
  @ParameterizedTest
  @CsvSource({
    "sim:, COPIES",
    "vfio:0000:01:00.0, NONE",
    "kmod:0000:01:00.0, DMA_BUF",
    "'vfio:0000:01:00.0,gpu-bar=0000:0a:00.0', STATIC_BAR",
    "'sysfs:0000:01:00.0,unsafe=true,gpu-bar=0000:0a:00.0/2', STATIC_BAR",
  })
  void saysWhyItIsNoneOfTheOthers(String address, Way way) {
    GpuBusAddresses found = GpuBusAddresses.of(DeviceAddress.parse(address));
    assertThat(found.way()).isEqualTo(way);
    for (Way other : Way.values()) {
      assertThat(found.reasons().containsKey(other))
          .as("%s", other)
          .isEqualTo(other != way && other != Way.NONE);
    }
    assertThat(found.toString()).contains(way.text()).contains(found.reasons().values());
  }

  @Test
  void withoutOneItSaysHowTheAddressWouldNameIt() {
    assertThat(GpuBusAddresses.of(DeviceAddress.parse("vfio:0000:01:00.0")).reasons())
        .extractingByKey(Way.STATIC_BAR)
        .asString()
        .contains("vfio:0000:01:00.0,gpu-bar=");
  }

  @ParameterizedTest
  @CsvSource({
    "'vfio:ff:1f.7,gpu-bar=0000:0a:00.0/7', 0 to 5",
    "'vfio:ff:1f.7,gpu-bar=0000:0a:00.0/', 0 to 5",
    "'vfio:ff:1f.7,gpu-bar=gpu0', 'is not a PCI address'",
    "'vfio:ff:1f.7,gpu-bar=fe:1f.7', 'no PCI function 0000:fe:1f.7'",
    "'sysfs:ff:1f.7,gpu-bar=fe:1f.7/1', 'no PCI function 0000:fe:1f.7'",
    "'sim:gpu-bar=fe:1f.7', gpu-bar",
    "'kmod:ff:1f.7,gpu-bar=fe:1f.7', gpu-bar",
  })
  void refusesWhatNamesNoBar(String address, String why) {
    assertThatThrownBy(() -> Device.open(address, ControllerOptions.defaults()))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining(why);
  }
}
