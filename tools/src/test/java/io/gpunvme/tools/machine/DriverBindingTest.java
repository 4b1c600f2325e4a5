package io.gpunvme.tools.machine;

import static io.gpunvme.testing.FakeMachine.pci;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.nvme.pci.host.FunctionLock;
import io.gpunvme.testing.FakeMachine;
import io.gpunvme.tools.machine.DriverBinding.Plan;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** On a kernel of our own: files whose writes do what the kernel's do. */
class DriverBindingTest {
  private static final String SSD = "0000:01:00.0";

  @TempDir Path root;
  private FakeMachine fake;
  private final List<KernelWrite> writes = new ArrayList<>();

  /** Writes after this many fail. */
  private int patience = Integer.MAX_VALUE;

  /** What probing without an override ends with. */
  private String ownDriver = "nvme";

  private String vfioDriver = "vfio-pci";

  @BeforeEach
  void aFreeSsd() {
    fake = new FakeMachine(root).ssd("", SSD, 0).driver("vfio-pci").group("7", "DMA", SSD);
  }

  private DriverBinding binding() {
    return new DriverBinding(fake.paths(), root, this::kernel);
  }

  private void kernel(KernelWrite write) throws IOException {
    if (writes.size() >= patience) {
      throw new IOException("Device or resource busy");
    }
    writes.add(write);
    String file = root.relativize(write.file()).toString();
    if (file.endsWith("driver_override")) {
      fake.write(file, write.text().isEmpty() ? "(null)\n" : write.text() + "\n");
    } else if (file.endsWith("/unbind")) {
      String bound = binding().currentDriver(pci(write.text()));
      assertThat(file).isEqualTo("sys/bus/pci/drivers/" + bound + "/unbind");
      fake.unbind(write.text());
    } else {
      assertThat(file).isEqualTo("sys/bus/pci/drivers_probe");
      probe(write.text());
    }
  }

  private void probe(String address) throws IOException {
    if (!binding().currentDriver(pci(address)).isEmpty()) {
      return;
    }
    String override =
        Files.readString(root.resolve(FakeMachine.at(address) + "/driver_override")).strip();
    String driver =
        switch (override) {
          case "(null)" -> ownDriver;
          case "vfio-pci" -> vfioDriver;
          case "gpunvme" -> "gpunvme";
          default -> "";
        };
    if (!driver.isEmpty()) {
      fake.driver(address, driver);
    }
  }

  private void bind() throws IOException {
    Machine machine = FakeMachines.read(fake);
    binding().bind(machine, binding().bind(machine, pci(SSD)));
  }

  private void unbind() throws IOException {
    Machine machine = FakeMachines.read(fake);
    binding().unbind(machine, binding().unbind(machine, pci(SSD)));
  }

  private String driver() {
    return binding().currentDriver(pci(SSD));
  }

  private String override() {
    return FakeMachines.read(fake).function(pci(SSD)).driverOverride();
  }

  // ---- there and back

  @Test
  void bindTakesItFromTheKernelsDriver() throws IOException {
    bind();

    assertThat(driver()).isEqualTo("vfio-pci");
    assertThat(writes)
        .extracting(w -> root.relativize(w.file()) + " " + w.text())
        .containsExactly(
            "sys/bus/pci/devices/0000:01:00.0/driver_override vfio-pci",
            "sys/bus/pci/drivers/nvme/unbind 0000:01:00.0",
            "sys/bus/pci/drivers_probe 0000:01:00.0");
    assertThat(binding().remembered(pci(SSD))).isEqualTo("nvme");
  }

  @Test
  void unbindGivesItBack() throws IOException {
    bind();
    unbind();

    assertThat(driver()).isEqualTo("nvme");
    assertThat(override()).isEmpty();
    assertThat(root.resolve("run/gpunvme/0000:01:00.0.driver")).doesNotExist();
  }

  @Test
  void bothAreDoneOnce() throws IOException {
    bind();
    int before = writes.size();
    bind();
    assertThat(writes).hasSize(before);
    assertThat(binding().remembered(pci(SSD))).isEqualTo("nvme");

    unbind();
    before = writes.size();
    unbind();
    assertThat(writes).hasSize(before);
  }

  @Test
  void aPlanChangesNothing() {
    Plan plan = binding().bind(FakeMachines.read(fake), pci(SSD));

    assertThat(plan.writes()).hasSize(3);
    assertThat(plan.writes().getFirst())
        .hasToString(
            "echo vfio-pci > " + root.resolve("sys/bus/pci/devices/0000:01:00.0/driver_override"));
    assertThat(writes).isEmpty();
    assertThat(root.resolve("run/gpunvme")).doesNotExist();
  }

  @Test
  void releaseLeavesItWithoutADriver() throws IOException {
    fake.group("7", "identity", SSD);
    Machine machine = FakeMachines.read(fake);
    binding().bind(machine, binding().release(machine, pci(SSD)));
    assertThat(driver()).isEmpty();
    probe(SSD);
    assertThat(driver()).as("after somebody else's probe").isEmpty();

    unbind();
    assertThat(driver()).isEqualTo("nvme");
  }

  /** As if the process had been ended between two writes. */
  @ParameterizedTest
  @ValueSource(ints = {0, 1, 2})
  void unbindRepairsWhatWasInterrupted(int done) throws IOException {
    Plan plan = binding().bind(FakeMachines.read(fake), pci(SSD));
    fake.write("run/gpunvme/" + SSD + ".driver", "nvme\n");
    for (KernelWrite write : plan.writes().subList(0, done)) {
      kernel(write);
    }

    unbind();
    assertThat(driver()).isEqualTo("nvme");
    assertThat(override()).isEmpty();
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1, 2})
  void anInterruptedUnbindIsRepeated(int done) throws IOException {
    bind();
    for (KernelWrite write :
        binding().unbind(FakeMachines.read(fake), pci(SSD)).writes().subList(0, done)) {
      kernel(write);
    }

    unbind();
    assertThat(driver()).isEqualTo("nvme");
  }

  // ---- to the kernel module

  private void bindToModule() throws IOException {
    Machine machine = FakeMachines.read(fake);
    binding().bind(machine, binding().bindToModule(machine, pci(SSD)));
  }

  @Test
  void theModuleHasItAndGivesItBack() throws IOException {
    fake.folder("sys/module/gpunvme").driver("gpunvme");
    bindToModule();
    assertThat(driver()).isEqualTo("gpunvme");
    assertThat(override()).isEqualTo("gpunvme");
    int before = writes.size();
    bindToModule();
    assertThat(writes).hasSize(before);

    bind();
    assertThat(driver()).as("from the module to vfio-pci").isEqualTo("vfio-pci");
    bindToModule();
    assertThat(binding().remembered(pci(SSD))).isEqualTo("nvme");
    fake.opener(77, "java", "/dev/gpunvme/" + SSD);
    assertThatThrownBy(this::unbind)
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("process 77 (java)");
    Files.delete(root.resolve("proc/77/fd/7"));
    unbind();
    assertThat(driver()).isEqualTo("nvme");
    assertThat(override()).isEmpty();
  }

  @Test
  void theModuleNeedsNoIommu() {
    fake = new FakeMachine(root.resolve("plain")).ssd("", SSD, 0);
    assertThatThrownBy(() -> binding().bindToModule(FakeMachines.read(fake), pci(SSD)))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContainingAll("not loaded", "scripts/kmod-load");
    fake.folder("sys/module/gpunvme");
    assertThat(binding().bindToModule(FakeMachines.read(fake), pci(SSD)).writes()).hasSize(3);
    fake.mount("259:0", "/dev/nvme0n1", "/data", "ext4");
    assertThatThrownBy(() -> binding().bindToModule(FakeMachines.read(fake), pci(SSD)))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("mounted at /data");
  }

  // ---- what the kernel does not do

  @Test
  void aWriteThatFailsIsTakenBack() {
    patience = 1;

    assertThatThrownBy(this::bind)
        .isInstanceOf(DriverBindingException.class)
        .hasMessageContaining("nvme/unbind")
        .hasMessageContaining("Device or resource busy");
    assertThat(driver()).isEqualTo("nvme");
  }

  @Test
  void aDriverThatDoesNotTakeItIsSaid() throws IOException {
    vfioDriver = "";

    assertThatThrownBy(this::bind)
        .isInstanceOf(DriverBindingException.class)
        .hasMessageContaining("has no driver now, not vfio-pci")
        .hasMessageContaining("dmesg");
    assertThat(driver()).isEqualTo("nvme");
    assertThat(override()).isEmpty();
  }

  @Test
  void anOwnDriverThatIsGoneIsSaid() throws IOException {
    bind();
    ownDriver = "";

    assertThatThrownBy(this::unbind)
        .isInstanceOf(DriverBindingException.class)
        .hasMessageContaining("modprobe nvme");
    ownDriver = "nvme";
    unbind();
    assertThat(driver()).isEqualTo("nvme");
  }

  @Test
  void anSsdThatAnotherGpunvmeHasIsLeftAlone() {
    try (FunctionLock lock = FunctionLock.take(fake.paths(), pci(SSD))) {
      assertThatThrownBy(this::bind)
          .isInstanceOf(InvalidRequestException.class)
          .hasMessageContaining(lock.path().toString());
    }
    assertThat(writes).isEmpty();
  }

  @Test
  void onlyRootMay() {
    fake.write("proc/self/status", "Uid:\t1000\t1000\t1000\t1000\n");

    assertThatThrownBy(this::bind)
        .isInstanceOf(DriverBindingException.class)
        .hasMessageContaining("root")
        .hasMessageContaining("--dry-run");
    assertThat(writes).isEmpty();
  }

  // ---- what is refused

  private void refused(String... parts) {
    assertThatThrownBy(() -> binding().bind(FakeMachines.read(fake), pci(SSD)))
        .isInstanceOf(InvalidRequestException.class)
        .satisfies(e -> assertThat(e.getMessage()).contains(parts));
  }

  @Test
  void aDiskInUse() {
    fake.mount("259:0", "/dev/nvme0n1", "/data", "ext4");

    refused("/dev/nvme0n1 is mounted at /data");
    assertThatThrownBy(() -> binding().release(FakeMachines.read(fake), pci(SSD)))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("mounted at /data");
  }

  @Test
  void aGroupWithOthers() {
    fake.function("", "0000:02:00.0", 0x020000, 0x8086).driver("0000:02:00.0", "igb");
    fake.function("", "0000:00:1c.0", FakeMachine.BRIDGE, 0x8086)
        .driver("0000:00:1c.0", "pcieport");
    fake.group("7", "DMA", SSD, "0000:02:00.0", "0000:00:1c.0");

    refused("IOMMU group 7", "0000:02:00.0 (driver igb)");
    assertThat(
            DriverBinding.othersInGroup(
                FakeMachines.read(fake), FakeMachines.read(fake).function(pci(SSD))))
        .containsExactly("0000:02:00.0 (driver igb)");

    fake.unbind("0000:02:00.0");
    assertThat(binding().bind(FakeMachines.read(fake), pci(SSD)).writes()).hasSize(3);
  }

  @Test
  void anIommuInTheWayOfSysfs() {
    assertThatThrownBy(() -> binding().release(FakeMachines.read(fake), pci(SSD)))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("vfio:" + SSD);
  }

  @Test
  void noIommu() {
    fake = new FakeMachine(root.resolve("plain")).ssd("", SSD, 0).driver("vfio-pci");

    refused("no IOMMU group", "intel_iommu=on", "--no-driver");
    assertThat(binding().release(FakeMachines.read(fake), pci(SSD)).writes()).hasSize(2);

    fake.write("sys/module/vfio/parameters/enable_unsafe_noiommu_mode", "Y\n");
    assertThat(binding().bind(FakeMachines.read(fake), pci(SSD)).writes()).hasSize(3);
  }

  @Test
  void noVfio() throws IOException {
    Files.delete(root.resolve("sys/bus/pci/drivers/vfio-pci"));

    refused("modprobe vfio-pci");
  }

  @Test
  void whatIsNoSsd() {
    fake.gpu("", "0000:05:00.0");

    assertThatThrownBy(() -> binding().bind(FakeMachines.read(fake), pci("0000:05:00.0")))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("not an NVMe controller");
    assertThatThrownBy(() -> binding().unbind(FakeMachines.read(fake), pci("0000:05:00.0")))
        .isInstanceOf(InvalidRequestException.class);
  }

  @Test
  void anSsdThatIsBeingDrivenIsNotGivenBack() throws IOException {
    bind();
    fake.opener(77, "java", "/dev/vfio/7");

    assertThatThrownBy(this::unbind)
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("process 77 (java)");
    assertThat(driver()).isEqualTo("vfio-pci");
  }
}
