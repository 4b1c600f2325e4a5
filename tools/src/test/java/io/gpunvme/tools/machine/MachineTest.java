package io.gpunvme.tools.machine;

import static io.gpunvme.testing.FakeMachine.pci;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.nvme.pci.HostPaths;
import io.gpunvme.testing.FakeMachine;
import io.gpunvme.tools.machine.KernelFacts.HugePages;
import io.gpunvme.tools.machine.KernelFacts.SecureBoot;
import io.gpunvme.tools.machine.PciWay.Route;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class MachineTest {
  @TempDir Path root;

  // ---- functions

  @Test
  void aMachineWithNothingHasNothing() {
    Machine machine = FakeMachines.read(FakeMachine.laptopWithNothing(root));

    assertThat(machine.ssds()).isEmpty();
    assertThat(machine.gpus()).isEmpty();
    assertThat(machine.pairs()).isEmpty();
    assertThat(machine.functions()).singleElement().matches(MachineFunction::display);
    assertThat(machine.software().iommu()).isFalse();
  }

  @Test
  void aMachineWithoutAnyFileIsReadToo() {
    Machine machine =
        Machine.read(
            new HostPaths(root.resolve("a"), root.resolve("b"), root.resolve("c")),
            root.resolve("d"));

    assertThat(machine.functions()).isEmpty();
    assertThat(machine.kernel().release()).isEmpty();
    assertThat(machine.kernel().root()).isTrue();
    assertThat(machine.kernel().atLeast(0, 0)).isFalse();
  }

  @Test
  void theMachineOfTheTestIsRead() {
    Machine machine = Machine.read(HostPaths.host());

    assertThat(machine.kernel().release()).isEqualTo(System.getProperty("os.version"));
    assertThat(machine.kernel().userId()).isPresent();
  }

  @Test
  void aFunctionHasItsFields() {
    FakeMachine fake = FakeMachine.server(root);
    MachineFunction ssd = FakeMachines.read(fake).function(pci("0000:14:00.0"));

    assertThat(ssd.nvme()).isTrue();
    assertThat(ssd.driver()).isEqualTo("nvme");
    assertThat(ssd.driverOverride()).isEmpty();
    assertThat(ssd.model()).isEqualTo("Some SSD 1TB");
    assertThat(ssd.id()).isEqualTo("144d:a80c");
    assertThat(ssd.numaNode()).isZero();
    assertThat(ssd.bars()).containsExactly(new PciBar(0, 16384, true, false));
    assertThat(ssd.link()).isEqualTo(new PciLink(16, 4, 16, 4)).hasToString("16GT/s x4");
    assertThat(ssd.parents())
        .containsExactly(pci("0000:00:01.0"), pci("0000:11:00.0"), pci("0000:12:01.0"));
    assertThat(ssd.group()).isNotNull();
    assertThat(ssd.group().members()).containsExactly(ssd.address());
    assertThat(ssd.group().translated()).isTrue();
    assertThat(FakeMachines.read(fake).disks(ssd.address()))
        .singleElement()
        .satisfies(disk -> assertThat(disk.node()).isEqualTo("/dev/nvme0n1"))
        .satisfies(disk -> assertThat(disk.bytes()).isEqualTo(1L << 30));
  }

  @Test
  void aGpuHasTheWindowToItsMemory() {
    FakeMachine fake = FakeMachine.server(root);
    fake.write(
        "proc/driver/nvidia/gpus/0000:13:00.0/information", "Model: \t\t NVIDIA H100\nIRQ: 5\n");
    MachineFunction gpu = FakeMachines.read(fake).function(pci("0000:13:00.0"));

    assertThat(gpu.model()).isEqualTo("NVIDIA H100");

    assertThat(gpu.nvidiaGpu()).isTrue();
    assertThat(gpu.largestBar()).isEqualTo(32L << 30);
    assertThat(gpu.bars().getLast().prefetchable()).isTrue();
    assertThat(gpu.link()).hasToString("2.5GT/s x16 of 32GT/s x16");
  }

  @Test
  void aFunctionThatIsNotThereIsRefused() {
    Machine machine = FakeMachines.read(FakeMachine.server(root));

    assertThatThrownBy(() -> machine.function(pci("0000:77:00.0")))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("0000:77:00.0")
        .hasMessageContaining("gpunvme list");
  }

  @Test
  void whatIsNoFunctionIsPassedOver() throws IOException {
    FakeMachine fake = new FakeMachine(root);
    fake.folder("sys/bus/pci/devices/0000:03:00.0");
    fake.folder("sys/bus/pci/devices/nonsense");
    Files.createFile(root.resolve("sys/bus/pci/devices/0000:04:00.0"));

    assertThat(FakeMachines.read(fake).functions()).isEmpty();
  }

  @Test
  void linksThatSayNothingAreUnknown() {
    FakeMachine fake = new FakeMachine(root).ssd("", "0000:00:04.0", 0);
    fake.write(FakeMachine.at("0000:00:04.0") + "/current_link_speed", "Unknown\n");
    fake.write(FakeMachine.at("0000:00:04.0") + "/current_link_width", "255\n");

    MachineFunction ssd = FakeMachines.read(fake).function(pci("0000:00:04.0"));
    assertThat(ssd.link()).isEqualTo(PciLink.UNKNOWN).hasToString("-");
    assertThat(ssd.parents()).isEmpty();
  }

  @Test
  void sharedDisksAreNamedAfterTheirHead() {
    FakeMachine fake = new FakeMachine(root).ssd("", "0000:00:04.0", 3);
    fake.folder(FakeMachine.at("0000:00:04.0") + "/nvme/nvme3/nvme0c3n2");
    fake.folder(FakeMachine.at("0000:00:04.0") + "/nvme/nvme3/power");

    assertThat(FakeMachines.read(fake).diskNames(pci("0000:00:04.0")))
        .containsExactly("nvme0n2", "nvme3n1");
  }

  // ---- links

  @ParameterizedTest
  @CsvSource({
    "2.5,  1,  0.250",
    "5.0,  4,  2.000",
    "8.0,  4,  3.938",
    "16.0, 4,  7.877",
    "32.0, 16, 63.015",
    "64.0, 4, 30.250",
    "0,    4,  0"
  })
  void whatALinkCarries(double speed, int width, double expected) {
    assertThat(PciLink.gigabytesPerSecond(speed, width)).isCloseTo(expected, within(0.001));
  }

  @Test
  void anSsdBelowTheSwitchOfAGpuMeetsItThere() {
    Machine machine = FakeMachines.read(FakeMachine.server(root));

    PciWay near = pair(machine, "0000:13:00.0", "0000:14:00.0");
    assertThat(near.route()).isEqualTo(Route.SWITCH);
    assertThat(near.common()).isEqualTo(pci("0000:11:00.0"));
    assertThat(near.gigabytesPerSecond()).isCloseTo(7.877, within(0.001));
    assertThat(near.bottleneck()).isEqualTo(pci("0000:14:00.0"));
    assertThat(near.redirected()).isEmpty();

    PciWay far = pair(machine, "0000:13:00.0", "0000:24:00.0");
    assertThat(far.route()).isEqualTo(Route.NODES);
    assertThat(far.meeting()).isEmpty();
    assertThat(machine.pairs()).hasSize(8);
  }

  @Test
  void anIdleGpuIsNotTheBottleneck() {
    FakeMachine fake = FakeMachine.server(root);
    fake.speed("0000:14:00.0", "32.0", 16).speed("0000:12:01.0", "32.0", 16);

    assertThat(pair(FakeMachines.read(fake), "0000:13:00.0", "0000:14:00.0").gigabytesPerSecond())
        .isCloseTo(63.015, within(0.001));
  }

  @Test
  void aSlowLinkOnTheWayIsTheBottleneck() {
    FakeMachine fake = FakeMachine.server(root);
    // Between the switch and the root port of the second half.
    fake.speed("0000:21:00.0", "8.0", 4, "32.0", 16);

    PciWay far = pair(FakeMachines.read(fake), "0000:13:00.0", "0000:24:00.0");
    assertThat(far.gigabytesPerSecond()).isCloseTo(7.877, within(0.001));
    fake.speed("0000:21:00.0", "8.0", 1, "8.0", 16);
    assertThat(pair(FakeMachines.read(fake), "0000:13:00.0", "0000:24:00.0").bottleneck())
        .isEqualTo(pci("0000:21:00.0"));
  }

  @Test
  void aLinkThatSaysNothingLeavesThePairUnknown() {
    Machine machine =
        FakeMachines.read(new FakeMachine(root).ssd("", "0000:00:04.0", 0).gpu("", "0000:00:05.0"));

    PciWay pair = machine.pairs().getFirst().way();
    assertThat(pair.gigabytesPerSecond()).isZero();
    assertThat(pair.bottleneck()).isNull();
  }

  @Test
  void portsThatRedirectAreNamed() {
    FakeMachine fake = FakeMachine.server(root);
    fake.accessControl("0000:12:01.0", 0x1D);
    fake.accessControl("0000:12:02.0", 0x1);

    Machine machine = FakeMachines.read(fake);
    assertThat(pair(machine, "0000:13:00.0", "0000:14:00.0").redirected())
        .containsExactly(pci("0000:12:01.0"));
    assertThat(pair(machine, "0000:13:00.0", "0000:15:00.0").redirected()).isEmpty();
    assertThat(machine.function(pci("0000:11:00.0")).accessControl())
        .isEqualTo(AccessControl.UNKNOWN);
  }

  @Test
  void aLoopOfCapabilitiesEnds() {
    byte[] config = new byte[4096];
    config[0x100] = 1;
    config[0x103] = 0x10;

    assertThat(AccessControl.of(config)).isEqualTo(AccessControl.DIRECT);
  }

  private static PciWay pair(Machine machine, String gpu, String ssd) {
    return machine.pairs().stream()
        .filter(p -> p.gpu().address().equals(pci(gpu)) && p.ssd().address().equals(pci(ssd)))
        .map(GpuSsdPair::way)
        .findFirst()
        .orElseThrow();
  }

  // ---- the rest

  @Test
  void theKernelHasItsFacts() {
    FakeMachine fake = new FakeMachine(root);
    fake.write("proc/sys/kernel/osrelease", "6.17.0-5-generic\n");
    fake.write("sys/kernel/security/lockdown", "none [integrity] confidentiality\n");
    fake.write(
        "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c",
        "\u0006\0\0\0\u0001");
    fake.write("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "64\n");
    fake.write("sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "60\n");
    fake.write("proc/self/status", "Name:\tjava\nUid:\t1000\t1001\t1000\t1000\n");

    KernelFacts kernel = FakeMachines.read(fake).kernel();
    assertThat(kernel.atLeast(6, 12)).isTrue();
    assertThat(kernel.atLeast(6, 17)).isTrue();
    assertThat(kernel.atLeast(6, 18)).isFalse();
    assertThat(kernel.atLeast(7, 0)).isFalse();
    assertThat(kernel.lockdown()).isEqualTo("integrity");
    assertThat(kernel.secureBoot()).isEqualTo(SecureBoot.ON);
    assertThat(kernel.hugePages()).containsExactly(new HugePages(2 << 20, 64, 60));
    assertThat(kernel.memlockBytes()).hasValue(8388608);
    assertThat(kernel.userId()).hasValue(1001);
    assertThat(kernel.root()).isFalse();
  }

  @Test
  void noLimitIsNoNumber() {
    FakeMachine fake = new FakeMachine(root);
    fake.write("proc/self/limits", "Max locked memory         unlimited  unlimited  bytes\n");

    assertThat(FakeMachines.read(fake).kernel().memlockBytes()).isEmpty();
  }

  @Test
  void theSoftwareHasItsFacts() {
    FakeMachine fake = new FakeMachine(root);
    assertThat(FakeMachines.read(fake).software())
        .isEqualTo(
            new SoftwareFacts(
                "", false, "", "", false, false, false, false, false, false, false, false));

    fake.write(
        "proc/driver/nvidia/version",
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.82.07  Release Build"
            + "  (dvs-builder@U22)  Wed Aug 27\nGCC version:  gcc version 12.2.0\n");
    fake.write("sys/module/nvidia_fs/version", "2.26.6\n");
    fake.write("usr/local/cuda/lib64/libcufile.so.0", "");
    fake.write("run/udev/data/b259:0", "E:ID_FS_TYPE=ext4\n");
    fake.write(
        "lib/modules/6.1.0-18-amd64/modules.dep", "kernel/drivers/vfio/pci/vfio-pci.ko: x\n");
    fake.folder("sys/module/gpunvme").driver("vfio-pci");
    fake.write("dev/vfio/vfio", "").write("dev/iommu", "");
    fake.write("sys/module/vfio/parameters/enable_unsafe_noiommu_mode", "Y\n");
    fake.folder("sys/class/iommu/dmar0");
    assertThat(FakeMachines.read(fake).software())
        .isEqualTo(
            new SoftwareFacts(
                "580.82.07",
                true,
                "2.26.6",
                root.resolve("usr/local/cuda/lib64/libcufile.so.0").toString(),
                true,
                true,
                true,
                true,
                true,
                true,
                true,
                true));
  }

  @Test
  void theProprietaryDriverIsToldApart() {
    FakeMachine fake = new FakeMachine(root);
    fake.write(
        "proc/driver/nvidia/version",
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12 19:39:15 UTC 2024");

    assertThat(FakeMachines.read(fake).software().nvidiaDriver()).isEqualTo("535.183.01");
    assertThat(FakeMachines.read(fake).software().nvidiaOpen()).isFalse();
  }
}
