package io.gpunvme.gpu.queue;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.device.Device;
import io.gpunvme.gpu.queue.DeviceLayout.Extent;
import io.gpunvme.nvme.driver.ControllerOptions;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** {@link KernelStorage#file}; what kernels read by it: {@link KernelStorageContract}. */
class DeviceFileTest {
  private static final int BLOCK = 512;
  private static final int BLOCKS = 2048;

  private final FakeGpu gpu = new FakeGpu();
  private final Device device = Device.open("sim:size=1MiB", ControllerOptions.defaults());
  private final KernelStorage storage =
      KernelStorage.open(device, gpu, KernelStorageOptions.in(Placement.HOST).with(1, 32));

  private final StripeSet set = StripeSet.of(device.controller(), 1);

  @AfterEach
  void close() {
    storage.close();
    device.close();
    gpu.close();
  }

  /** {@code offset+bytes@slba} in blocks, but the bytes in bytes. */
  private static List<DeviceExtent> extents(String text) {
    List<DeviceExtent> all = new ArrayList<>();
    for (String one : text.isEmpty() ? new String[0] : text.split(" ")) {
      String[] parts = one.split("[+@]");
      long slba = parts[2].equals("hole") ? Extent.HOLE : Long.parseLong(parts[2]);
      all.add(
          new DeviceExtent(
              (long) (Double.parseDouble(parts[0]) * BLOCK), Long.parseLong(parts[1]), slba));
    }
    return all;
  }

  private DeviceFile file(long bytes, String extents) {
    return storage.file(set, bytes, extents(extents));
  }

  @ParameterizedTest
  @CsvSource({
    // What follows is one extent, what is nowhere is a hole, and the first is at 0.
    "5000, 0+2048@7 4+2952@11,             0+5000@7",
    "5000, 0+2048@7 4+2952@12,             0+2048@7 4+2952@12",
    "5000, 0+2000@7 4+2952@11,             0+2000@7 3.90625+48@hole 4+2952@11",
    "5000, 2+512@9,                        0+1024@hole 2+512@9 3+3464@hole",
    "5000, '',                             0+5000@hole",
    "0,    '',                             0+0@hole",
    "512,  0+512@2047,                     0+512@2047",
  })
  void kernelsSeeAllOfIt(long bytes, String told, String seen) {
    try (DeviceFile file = file(bytes, told)) {
      assertThat(file.bytes()).isEqualTo(bytes);
      assertThat(DeviceFileTables.read(file)).isEqualTo(extents(seen));
    }
  }

  @ParameterizedTest
  @CsvSource({
    "-1,   ''",
    "5000, 0+512@-1",
    "5000, 0+512@2048",
    "5000, 0+1024@2047",
    "5000, 0+0@0",
    "5000, 0+-1@0",
    "5000, 0+5001@0",
    "5000, 0.5+512@0",
    "5000, 0+1024@0 1+512@9",
    "5000, 2+512@0 0+512@9",
    "5000, 10+512@0",
    "9223372036854775807, 0+9223372036854775807@1",
  })
  void whatIsNotInTheFileAndTheSetIsRefused(long bytes, String told) {
    assertThatThrownBy(() -> file(bytes, told)).isInstanceOf(InvalidRequestException.class);
  }

  @Test
  void theStorageHasTheSetAndClosesTheFile() {
    List<DeviceExtent> all = List.of(new DeviceExtent(0, (long) BLOCK * BLOCKS, 0));
    try (Device other = Device.open("sim:size=1MiB", ControllerOptions.defaults())) {
      assertThatThrownBy(
              () -> storage.file(StripeSet.of(other.controller(), 1), (long) BLOCK * BLOCKS, all))
          .isInstanceOf(InvalidRequestException.class)
          .hasMessageContaining("is none of this storage");
    }
    DeviceFile closed = storage.file(set, (long) BLOCK * BLOCKS, all);
    closed.close();
    closed.close();
    assertThatThrownBy(closed::deviceAddress).isInstanceOf(IllegalStateException.class);
    DeviceFile open = storage.file(set, (long) BLOCK * BLOCKS, all);
    storage.close();
    assertThatThrownBy(open::deviceAddress).isInstanceOf(IllegalStateException.class);
    open.close();
    assertThatThrownBy(() -> storage.file(set, 0, List.of()))
        .isInstanceOf(IllegalStateException.class);
  }
}
