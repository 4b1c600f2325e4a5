package io.gpunvme.tools.machine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.ffi.Posix;
import io.gpunvme.gpu.device.Device;
import io.gpunvme.gpu.device.DeviceAddress;
import io.gpunvme.gpu.device.Transport;
import io.gpunvme.nvme.driver.ControllerOptions;
import io.gpunvme.nvme.pci.HostPaths;
import io.gpunvme.nvme.pci.PciAddress;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** An SSD changes hands on a real kernel. Leaves it bound to vfio-pci, or to our module. */
@Tag("qemu")
@Timeout(300)
class RealBindingTest {
  private static final long DEADLINE = Duration.ofSeconds(30).toNanos();

  private final DriverBinding binding = new DriverBinding(HostPaths.host(), Path.of("/"));
  private DeviceAddress device = DeviceAddress.embedded();
  private PciAddress ssd = new PciAddress(0, 0, 0, 0);

  @BeforeEach
  void theKernelHasIt() throws IOException {
    String address = System.getProperty("gpunvme.device", "");
    assumeTrue(
        address.startsWith("vfio:") || address.startsWith("kmod:"),
        "no real controller: none is named by -Dgpunvme.device=vfio:ADDRESS or kmod:ADDRESS");
    device = DeviceAddress.parse(address);
    ssd = PciAddress.parse(device.place());
    Machine machine = read();
    binding.unbind(machine, binding.unbind(machine, ssd));
    assertThat(binding.currentDriver(ssd)).isEqualTo("nvme");
    awaitDisk();
  }

  private static Machine read() {
    return Machine.read(HostPaths.host());
  }

  /** The NVMe driver finds namespaces after it has the device. */
  private Path awaitDisk() {
    long start = System.nanoTime();
    while (System.nanoTime() - start < DEADLINE) {
      for (MachineDisk disk : read().disks(ssd)) {
        if (Files.exists(Path.of(disk.node()))) {
          return Path.of(disk.node());
        }
      }
      LockSupport.parkNanos(Duration.ofMillis(50).toNanos());
    }
    throw new AssertionError("no disk of " + ssd);
  }

  private boolean toModule() {
    return device.transport() == Transport.KMOD;
  }

  private String driver() {
    return toModule() ? MachineFunction.KMOD : MachineFunction.VFIO_PCI;
  }

  private void bind() throws IOException {
    Machine machine = read();
    binding.bind(
        machine, toModule() ? binding.bindToModule(machine, ssd) : binding.bind(machine, ssd));
  }

  @Test
  void itIsDrivenOnceItIsBoundAndNotGivenBackMeanwhile() throws IOException {
    bind();
    assertThat(binding.currentDriver(ssd)).isEqualTo(driver());
    assertThat(read().disks(ssd)).isEmpty();

    try (Device open = Device.open(device, ControllerOptions.defaults(), "")) {
      assertThat(open.controller().namespaces()).isNotEmpty();
      Machine machine = read();
      assertThatThrownBy(() -> binding.unbind(machine, binding.unbind(machine, ssd)))
          .isInstanceOf(InvalidRequestException.class)
          .hasMessageContaining("in use");
    }
    assertThat(binding.currentDriver(ssd)).isEqualTo(driver());
  }

  @Test
  void aDiskThatSomebodyHasAloneStaysWithTheKernel() throws IOException {
    Path disk = awaitDisk();
    int flags = Posix.O_RDONLY | Posix.O_EXCL | Posix.O_CLOEXEC;
    int claim = Posix.open(disk.toString(), flags, 0);
    try {
      assertThatThrownBy(this::bind)
          .isInstanceOf(InvalidRequestException.class)
          .hasMessageContaining(disk + " is claimed inside the kernel");
    } finally {
      Posix.close(claim);
    }
    assertThat(binding.currentDriver(ssd)).isEqualTo("nvme");
    bind();
    assertThat(binding.currentDriver(ssd)).isEqualTo(driver());
  }
}
