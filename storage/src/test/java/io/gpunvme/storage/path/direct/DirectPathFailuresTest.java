package io.gpunvme.storage.path.direct;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.device.Device;
import io.gpunvme.gpu.device.DeviceAddress;
import io.gpunvme.nvme.driver.ControllerOptions;
import io.gpunvme.storage.GpuStorage;
import io.gpunvme.storage.StorageOptions;
import io.gpunvme.storage.path.PathKind;
import io.gpunvme.storage.path.StorageException;
import io.gpunvme.storage.path.StorageException.Kind;
import java.time.Duration;
import java.util.concurrent.CompletionException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What an SSD's failures are to those who transfer, and that the next transfer works. */
@Timeout(300)
class DirectPathFailuresTest {
  private static final ControllerOptions WRITABLE =
      ControllerOptions.builder()
          .allowWrite(true)
          .ioTimeout(Duration.ofMillis(300))
          .retries(0)
          .build();

  private static Device open(String faults) {
    return Device.open(DeviceAddress.parse("sim:size=16MiB,lba=512"), WRITABLE, faults);
  }

  private static StorageOptions options() {
    return StorageOptions.defaults().withWrite(true);
  }

  /** The retries of an initiator are 8: a fault of more than 9 commands is not mended by them. */
  @ParameterizedTest
  @CsvSource({
    "status=media/unrecovered-read dnr on read count=1, read, IO",
    "status=media/write-fault dnr on write count=1, write, IO",
    "status=generic/capacity-exceeded dnr on write count=1, write, NO_SPACE",
    "status=0/20 dnr on write count=1, write, PERMISSION",
    "status=generic/lba-out-of-range dnr on read count=1, read, IO",
  })
  void aStatusIsAFailureOfItsKindAndNothingElseSuffers(String fault, String what, Kind kind) {
    try (Accelerator cpu = CpuAccelerator.open();
        Device device = open(fault);
        GpuStorage storage = GpuStorage.over(device.controller(), cpu, options());
        DeviceBuffer buffer = cpu.allocate(1 << 20)) {
      assertThatExceptionOfType(StorageException.class)
          .isThrownBy(
              () -> {
                if (what.equals("read")) {
                  storage.read(1 << 20, buffer, 0, 4096);
                } else {
                  storage.write(1 << 20, buffer, 0, 4096);
                }
              })
          .satisfies(
              e -> {
                assertThat(e.kind()).isEqualTo(kind);
                assertThat(e.offset()).isEqualTo(1 << 20);
                assertThat(e.length()).isPositive();
                assertThat(e.source()).isNotBlank();
              });
      assertThat(storage.write(3, buffer, 0, 5000).bytes()).isEqualTo(5000);
      assertThat(storage.read(3, buffer, 7, 5000).path()).isEqualTo(PathKind.DIRECT);
    }
  }

  @Test
  void aDeviceThatDisappearsIsGoneForAllTransfers() {
    try (Accelerator cpu = CpuAccelerator.open();
        Device device = open("gone on read nth=2");
        GpuStorage storage = GpuStorage.over(device.controller(), cpu, options());
        DeviceBuffer buffer = cpu.allocate(1 << 20)) {
      storage.read(0, buffer, 0, 512);
      for (int i = 0; i < 2; i++) {
        assertThatExceptionOfType(CompletionException.class)
            .isThrownBy(() -> storage.readAsync(0, buffer, 0, 512).join())
            .satisfies(
                e ->
                    assertThat(e.getCause())
                        .isInstanceOfSatisfying(
                            StorageException.class,
                            s -> assertThat(s.kind()).isEqualTo(Kind.GONE)));
      }
    }
  }

  @Test
  void aTransferThatIsCancelledWhileTheSsdIsSilentEnds() {
    try (Accelerator cpu = CpuAccelerator.open();
        Device device =
            Device.open(
                DeviceAddress.parse("sim:size=16MiB,lba=512"),
                ControllerOptions.builder().ioTimeout(Duration.ofSeconds(20)).build(),
                "delay=200ms on read");
        GpuStorage storage = GpuStorage.over(device.controller(), cpu, StorageOptions.defaults());
        DeviceBuffer buffer = cpu.allocate(16 << 20)) {
      var future = storage.readAsync(0, buffer, 0, 16 << 20);
      assertThat(future.cancel(true)).isTrue();
      assertThatExceptionOfType(CompletionException.class)
          .isThrownBy(future::join)
          .satisfies(
              e ->
                  assertThat(e.getCause())
                      .isInstanceOfSatisfying(
                          StorageException.class,
                          s -> assertThat(s.kind()).isEqualTo(Kind.CANCELLED)));
    }
  }
}
