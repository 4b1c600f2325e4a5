package io.gpunvme.tools.doctor;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.cuda.ComputeCapability;
import io.gpunvme.cuda.GpuDirect;
import io.gpunvme.cuda.WritesOrdering;
import io.gpunvme.storage.path.cufile.CuFileHost;
import io.gpunvme.testing.FakeMachine;
import io.gpunvme.testing.NativeCompiler;
import io.gpunvme.tools.machine.FakeMachines;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class DoctorTest {
  private static final CudaView NO_CUDA =
      new CudaView(false, "libcuda.so.1 is nowhere", "", List.of());

  @TempDir Path root;

  private static CudaView cuda(String capability, GpuDirect direct) {
    String[] numbers = capability.split("\\.", -1);
    ComputeCapability is =
        new ComputeCapability(Integer.parseInt(numbers[0]), Integer.parseInt(numbers[1]));
    return new CudaView(
        true, "", "13.0", List.of(new CudaView.Gpu("A GPU", "0000:13:00.0", is, direct)));
  }

  private static CudaView goodGpu() {
    return cuda("9.0", new GpuDirect(true, true, WritesOrdering.OWNER, true));
  }

  private static Diagnosis examine(FakeMachine machine, CudaView cuda) {
    return Doctor.examine(
        FakeMachines.read(machine), cuda, new FileView("", "", host(machine), null));
  }

  private static CuFileHost host(FakeMachine machine) {
    return new CuFileHost(machine.paths(), machine.root(), Map.of());
  }

  private static Finding finding(Diagnosis diagnosis, String id) {
    return diagnosis.findings().stream()
        .filter(f -> f.id().equals(id))
        .findFirst()
        .orElseThrow(() -> new AssertionError(id + " is not in " + diagnosis.findings()));
  }

  private static List<String> ids(Diagnosis diagnosis) {
    return diagnosis.findings().stream().map(Finding::id).toList();
  }

  private static List<String> obstacles(Diagnosis diagnosis, Way way) {
    return diagnosis.obstacles(way).stream().map(Finding::id).toList();
  }

  private static List<Way> open(Diagnosis diagnosis) {
    return Arrays.stream(Way.values()).filter(w -> diagnosis.obstacles(w).isEmpty()).toList();
  }

  // ---- whole machines

  @Test
  void aMachineWithNothingHasNoProblem() {
    Diagnosis diagnosis = examine(FakeMachine.laptopWithNothing(root), NO_CUDA);

    assertThat(diagnosis.count(Severity.PROBLEM)).isZero();
    assertThat(ids(diagnosis)).contains("no-ssd", "no-gpu", "iommu-off", "vfio-missing");
    assertThat(open(diagnosis)).containsExactly(Way.EMBEDDED_CPU);
    assertThat(obstacles(diagnosis, Way.VFIO_GPU_HOST))
        .containsExactly("iommu-off", "vfio-missing", "no-ssd", "no-gpu");
  }

  @Test
  void everyFindingButTheGoodOnesSaysWhatFollows() {
    for (FakeMachine machine :
        List.of(
            FakeMachine.laptopWithNothing(root.resolve("a")),
            FakeMachine.server(root.resolve("b")))) {
      for (Finding finding : examine(machine, NO_CUDA).findings()) {
        assertThat(finding.cause()).isNotEmpty();
        assertThat(finding.effect().isEmpty())
            .as(finding.id())
            .isEqualTo(finding.severity() == Severity.OK);
        if (finding.severity() == Severity.PROBLEM) {
          assertThat(finding.fix()).as(finding.id()).isNotEmpty();
        }
      }
    }
  }

  @Test
  void aServerWithOneSsdBoundIsOpenForIt() {
    FakeMachine server = FakeMachine.server(root);
    server.mount("259:0", "/dev/nvme0n1", "/", "ext4").driver("0000:15:00.0", "vfio-pci");

    Diagnosis diagnosis = examine(server, goodGpu());
    assertThat(open(diagnosis))
        .containsExactly(
            Way.EMBEDDED_CPU,
            Way.EMBEDDED_GPU_HOST,
            Way.EMBEDDED_GPU_VRAM_DATA,
            Way.EMBEDDED_GPU_VRAM,
            Way.VFIO_CPU,
            Way.VFIO_GPU_HOST,
            Way.PINNED,
            Way.MMAP);
    assertThat(finding(diagnosis, "ssd-in-use").cause()).contains("mounted at /");
    assertThat(finding(diagnosis, "ssd-vfio").subject()).isEqualTo("0000:15:00.0");
    assertThat(obstacles(diagnosis, Way.VFIO_GPU_VRAM)).containsExactly("gpu-bus-addresses");
    assertThat(obstacles(diagnosis, Way.SYSFS_CPU)).contains("ssd-translated", "ssd-in-use");
    assertThat(obstacles(diagnosis, Way.CUFILE)).containsExactly("cufile-missing");
  }

  @Test
  void anSsdThatTheKernelHasNeedsToBeBound() {
    Diagnosis diagnosis = examine(FakeMachine.server(root), goodGpu());

    assertThat(obstacles(diagnosis, Way.VFIO_CPU)).containsOnly("ssd-kernel-driver").hasSize(4);
    assertThat(finding(diagnosis, "ssd-kernel-driver").fix())
        .contains("gpunvme bind 0000:14:00.0", "gpunvme unbind 0000:14:00.0");
  }

  @Test
  void anSsdWithoutDriverAndIommuIsOpenForSysfs() {
    FakeMachine machine = new FakeMachine(root);
    machine.function("", "0000:00:04.0", FakeMachine.NVME, 0x1B36);

    Diagnosis diagnosis = examine(machine, NO_CUDA);
    assertThat(open(diagnosis)).containsExactly(Way.EMBEDDED_CPU, Way.SYSFS_CPU);
    assertThat(finding(diagnosis, "iommu-off").severity()).isEqualTo(Severity.PROBLEM);
    assertThat(finding(diagnosis, "iommu-off").fix()).contains("intel_iommu=on");
    assertThat(finding(diagnosis, "vfio-missing").fix()).contains("CONFIG_VFIO_PCI");

    machine.write(
        "lib/modules/6.1.0-18-amd64/modules.builtin", "kernel/drivers/vfio/pci/vfio-pci.ko\n");
    assertThat(finding(examine(machine, NO_CUDA), "vfio-missing").fix())
        .isEqualTo("modprobe vfio-pci");
  }

  @Test
  void vfioWithoutAnIommuIsSaidToBeUnprotected() {
    FakeMachine machine = new FakeMachine(root).ssd("", "0000:00:04.0", 0);
    machine.driver("0000:00:04.0", "vfio-pci");
    machine.write("sys/module/vfio/parameters/enable_unsafe_noiommu_mode", "Y\n");

    Diagnosis diagnosis = examine(machine, NO_CUDA);
    assertThat(finding(diagnosis, "iommu-off").effect()).contains("without protection");
    assertThat(open(diagnosis)).contains(Way.VFIO_CPU);
  }

  // ---- single things

  @Test
  void theKernelModuleIsMissed() {
    FakeMachine machine = FakeMachine.laptopWithNothing(root);
    Diagnosis without = examine(machine, NO_CUDA);
    Finding none = finding(without, "kernel-module-none");
    assertThat(none.severity()).isEqualTo(Severity.NOTE);
    assertThat(none.effect())
        .contains("kmod:", "bus addresses of GPU memory", "without an IOMMU", "RAM");
    assertThat(none.fix()).contains("scripts/kmod-load", "vfio:");
    assertThat(obstacles(without, Way.KMOD_CPU)).containsExactly("kernel-module-none", "no-ssd");

    Diagnosis with = examine(machine.folder("sys/module/gpunvme"), NO_CUDA);
    assertThat(ids(with)).contains("kernel-module").doesNotContain("kernel-module-none");
    assertThat(obstacles(with, Way.KMOD_CPU)).containsExactly("no-ssd");
  }

  @Test
  void anSsdOfTheKernelModuleReachesGpuMemory() throws IOException {
    FakeMachine server = FakeMachine.server(root).folder("sys/module/gpunvme");
    server.driver("0000:15:00.0", "gpunvme").write("dev/gpunvme/0000:15:00.0", "");

    Diagnosis diagnosis = examine(server, goodGpu());
    assertThat(open(diagnosis))
        .contains(Way.KMOD_CPU, Way.KMOD_GPU_HOST, Way.KMOD_GPU_VRAM_DATA, Way.KMOD_GPU_VRAM)
        .doesNotContain(Way.VFIO_CPU, Way.SYSFS_CPU);
    assertThat(finding(diagnosis, "ssd-kmod").cause()).contains("kmod:0000:15:00.0");

    CudaView noDmaBuf = cuda("9.0", new GpuDirect(true, false, WritesOrdering.OWNER, true));
    diagnosis = examine(server, noDmaBuf);
    assertThat(obstacles(diagnosis, Way.KMOD_GPU_VRAM)).containsExactly("gpu-no-dma-buf");
    assertThat(obstacles(diagnosis, Way.KMOD_GPU_HOST)).isEmpty();

    diagnosis = examine(server.denied("dev/gpunvme/0000:15:00.0"), goodGpu());
    assertThat(obstacles(diagnosis, Way.KMOD_CPU)).contains("ssd-node-denied");
    assertThat(finding(diagnosis, "ssd-node-denied").fix()).contains("-G gpunvme $USER");

    Files.delete(root.resolve("dev/gpunvme/0000:15:00.0"));
    diagnosis = examine(server, goodGpu());
    assertThat(obstacles(diagnosis, Way.KMOD_CPU)).contains("ssd-node-missing");
    assertThat(finding(diagnosis, "ssd-node-missing").fix()).contains("--device /dev/gpunvme");
  }

  @Test
  void lockdownTakesSysfsAway() {
    FakeMachine machine = new FakeMachine(root);
    machine.function("", "0000:00:04.0", FakeMachine.NVME, 0x1B36);
    machine.write("sys/kernel/security/lockdown", "none [integrity] confidentiality\n");

    assertThat(obstacles(examine(machine, NO_CUDA), Way.SYSFS_CPU)).containsExactly("lockdown");
    machine.write("sys/kernel/security/lockdown", "[none] integrity confidentiality\n");
    assertThat(open(examine(machine, NO_CUDA))).contains(Way.SYSFS_CPU);
  }

  @Test
  void aGroupWithOthersTakesVfioAway() {
    FakeMachine machine = new FakeMachine(root).ssd("", "0000:01:00.0", 0);
    machine.driver("0000:01:00.0", "vfio-pci");
    machine.function("", "0000:02:00.0", 0x020000, 0x8086).driver("0000:02:00.0", "igb");
    machine.group("3", "DMA", "0000:01:00.0", "0000:02:00.0");

    Diagnosis diagnosis = examine(machine, NO_CUDA);
    assertThat(obstacles(diagnosis, Way.VFIO_CPU)).containsExactly("ssd-group");
    assertThat(finding(diagnosis, "ssd-group").cause()).contains("0000:02:00.0 (driver igb)");
  }

  @Test
  void aUserWhoMayNotOpenTheNodeOfABoundSsd() {
    FakeMachine machine =
        new FakeMachine(root).ssd("", "0000:01:00.0", 0).group("12", "DMA", "0000:01:00.0");
    assertThat(ids(examine(machine, NO_CUDA)))
        .doesNotContain("ssd-node-denied", "ssd-node-missing");
    machine.driver("0000:01:00.0", "vfio-pci");
    assertThat(open(examine(machine, NO_CUDA))).contains(Way.VFIO_CPU);

    Diagnosis diagnosis = examine(machine.denied("dev/vfio/12"), NO_CUDA);
    assertThat(obstacles(diagnosis, Way.VFIO_CPU)).containsExactly("ssd-node-denied");
    Finding finding = finding(diagnosis, "ssd-node-denied");
    assertThat(finding.severity()).isEqualTo(Severity.PROBLEM);
    assertThat(finding.subject()).isEqualTo("0000:01:00.0");
    assertThat(finding.cause()).contains(" /dev/vfio/12 ");
    assertThat(finding.fix()).contains("sudo chown $USER /dev/vfio/12", "SUBSYSTEM==\"vfio\"");
  }

  @Test
  void aUserWhoMayNotOpenTheNodesOfIommufd() throws IOException {
    FakeMachine machine =
        new FakeMachine(root).ssd("", "0000:01:00.0", 0).group("12", "DMA", "0000:01:00.0");
    machine.driver("0000:01:00.0", "vfio-pci");
    machine.folder(FakeMachine.at("0000:01:00.0") + "/vfio-dev/vfio3");
    machine.write("dev/iommu", "").write("dev/vfio/devices/vfio3", "");
    machine.denied("dev/iommu").denied("dev/vfio/devices/vfio3");
    assertThat(open(examine(machine, NO_CUDA))).as("by its group").contains(Way.VFIO_CPU);

    Files.delete(root.resolve("dev/vfio/vfio"));
    Diagnosis diagnosis = examine(machine, NO_CUDA);
    assertThat(obstacles(diagnosis, Way.VFIO_CPU))
        .containsExactly("ssd-node-denied", "ssd-node-denied");
    assertThat(finding(diagnosis, "ssd-node-denied").fix()).contains("chmod a+rw /dev/iommu");
    assertThat(diagnosis.findings())
        .anyMatch(f -> f.fix().contains("chown $USER /dev/vfio/devices/vfio3"));
  }

  @Test
  void aContainerWithoutTheNodesOfABoundSsd() throws IOException {
    FakeMachine machine =
        new FakeMachine(root).ssd("", "0000:01:00.0", 0).group("12", "DMA", "0000:01:00.0");
    machine.driver("0000:01:00.0", "vfio-pci");
    Files.delete(root.resolve("dev/vfio/12"));

    Diagnosis diagnosis = examine(machine, NO_CUDA);
    assertThat(obstacles(diagnosis, Way.VFIO_CPU)).containsExactly("ssd-node-missing");
    assertThat(finding(diagnosis, "ssd-node-missing").cause()).contains("/dev/vfio/12");
  }

  @Test
  void limitsAreForUsers() {
    FakeMachine machine = new FakeMachine(root);
    assertThat(ids(examine(machine, NO_CUDA))).doesNotContain("memlock", "not-root");

    machine.write("proc/self/status", "Uid:\t1000\t1000\t1000\t1000\n");
    Diagnosis diagnosis = examine(machine, NO_CUDA);
    assertThat(ids(diagnosis)).contains("not-root");
    assertThat(finding(diagnosis, "memlock").cause()).contains("8192 KiB");
  }

  @Test
  void hugePages() {
    FakeMachine machine = new FakeMachine(root);
    assertThat(finding(examine(machine, NO_CUDA), "hugepages-none").fix()).isEmpty();
    machine.write("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "0\n");
    assertThat(finding(examine(machine, NO_CUDA), "hugepages-none").fix()).contains("echo 64");

    machine.write("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "8\n");
    assertThat(finding(examine(machine, NO_CUDA), "hugepages-2M").cause())
        .isEqualTo("8 huge pages of 2 MiB, 0 of them free");
    assertThat(ids(examine(machine, NO_CUDA))).doesNotContain("hugepages-none");
  }

  @Test
  void aSlowLinkOfAnSsd() {
    FakeMachine server = FakeMachine.server(root);
    server.speed("0000:14:00.0", "16.0", 2, "16.0", 4);

    Finding finding = finding(examine(server, goodGpu()), "ssd-link");
    assertThat(finding.subject()).isEqualTo("0000:14:00.0");
    assertThat(finding.effect()).isEqualTo("at most 3.9 of 7.9 GB/s");
  }

  @Test
  void aGpuWithoutDriver() {
    Diagnosis diagnosis = examine(FakeMachine.server(root), NO_CUDA);

    assertThat(diagnosis.count(Severity.PROBLEM)).isEqualTo(2);
    assertThat(obstacles(diagnosis, Way.EMBEDDED_GPU_HOST))
        .containsExactly("gpu-driver-missing", "cuda-missing");
    assertThat(obstacles(diagnosis, Way.EMBEDDED_CPU)).isEmpty();
  }

  @Test
  void aBrokenCuda() {
    CudaView broken = new CudaView(true, "CUDA_ERROR_UNKNOWN", "", List.of());

    assertThat(finding(examine(FakeMachine.server(root), broken), "cuda-broken").cause())
        .contains("CUDA_ERROR_UNKNOWN");
  }

  @Test
  void aGpuThatIsTooOld() {
    GpuDirect direct = new GpuDirect(true, true, WritesOrdering.OWNER, true);
    FakeMachine server = FakeMachine.server(root);

    assertThat(ids(examine(server, cuda("7.0", direct)))).contains("gpu-too-old");
    assertThat(ids(examine(server, cuda("6.1", direct)))).contains("gpu-too-old");
    assertThat(ids(examine(server, cuda("7.5", direct)))).doesNotContain("gpu-too-old");
    assertThat(ids(examine(server, cuda("8.0", direct)))).doesNotContain("gpu-too-old");
  }

  @Test
  void aConsumerGpu() {
    CudaView consumer = cuda("8.6", new GpuDirect(false, false, WritesOrdering.OWNER, false));
    FakeMachine server = FakeMachine.server(root);
    server.write(
        FakeMachine.at("0000:13:00.0") + "/resource",
        "0x00000000fa000000 0x00000000faffffff 0x0000000000040200\n"
            + "0x00000000e0000000 0x00000000efffffff 0x000000000014220c\n");

    Diagnosis diagnosis = examine(server, consumer);
    assertThat(obstacles(diagnosis, Way.VFIO_GPU_VRAM_DATA)).contains("gpu-no-peers");
    assertThat(obstacles(diagnosis, Way.VFIO_GPU_HOST)).doesNotContain("gpu-no-peers");
    assertThat(finding(diagnosis, "gpu-small-bar").cause()).contains("256 MiB");
  }

  @Test
  void writesWithoutOrder() {
    CudaView gpu = cuda("8.6", new GpuDirect(true, true, WritesOrdering.NONE, true));

    assertThat(obstacles(examine(FakeMachine.server(root), gpu), Way.VFIO_GPU_VRAM))
        .contains("gpu-writes-unordered");
  }

  @Test
  void kernelsThatTookTheLookUpAwayAreNamed() {
    FakeMachine server = FakeMachine.server(root);
    server.write(
        "proc/driver/nvidia/version",
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.82.07  Release Build");

    assertThat(finding(examine(server, goodGpu()), "io-memory").effect()).doesNotContain("#732");
    server.write("proc/sys/kernel/osrelease", "6.12.48+deb13-amd64\n");
    Finding finding = finding(examine(server, goodGpu()), "io-memory");
    assertThat(finding.cause()).contains("6.12.48", "580.82.07");
    assertThat(finding.effect()).contains("#732");
    assertThat(finding.fix()).contains("check-p2p");
  }

  @Test
  void pairsThatAreFarApart() {
    FakeMachine server = FakeMachine.server(root);
    assertThat(ids(examine(server, goodGpu())))
        .contains("common-switch")
        .doesNotContain("no-common-switch", "acs-redirect", "numa");

    server.accessControl("0000:12:01.0", 0x1D).numa("0000:14:00.0", 3);
    server.gpu("", "0000:00:09.0");
    Diagnosis diagnosis = examine(server, goodGpu());
    assertThat(finding(diagnosis, "acs-redirect").cause()).contains("0000:12:01.0");
    assertThat(finding(diagnosis, "no-common-switch").subject()).isEqualTo("0000:00:09.0");
  }

  @Test
  void anSsdOnANodeWithoutGpu() {
    FakeMachine server = FakeMachine.server(root).numa("0000:14:00.0", 3);

    assertThat(finding(examine(server, goodGpu()), "numa").cause()).contains("node 3");
  }

  @Test
  void cufile() {
    FakeMachine server = FakeMachine.server(root);
    assertThat(ids(examine(server, goodGpu()))).contains("cufile-missing");

    server.write("usr/lib64/libcufile.so.0", "");
    assertThat(ids(examine(server, goodGpu())))
        .contains("cufile", "nvidia-fs-missing", "udev-missing");

    server.write("run/udev/data/b259:0", "").folder("proc/driver/nvidia-fs");
    assertThat(ids(examine(server, goodGpu())))
        .contains("cufile", "nvidia-fs")
        .doesNotContain("nvidia-fs-missing", "udev-missing");
  }

  @Test
  void cufileIsNotForEveryGpu() {
    FakeMachine server = FakeMachine.server(root).write("usr/lib64/libcufile.so.0", "");
    assertThat(obstacles(examine(server, goodGpu()), Way.CUFILE)).isEmpty();

    GpuDirect direct = new GpuDirect(false, false, WritesOrdering.OWNER, false);
    ComputeCapability ada = new ComputeCapability(8, 9);
    CudaView.Gpu gpu = new CudaView.Gpu("NVIDIA GeForce RTX 4090", "0000:13:00.0", ada, direct);
    Diagnosis diagnosis = examine(server, new CudaView(true, "", "13.0", List.of(gpu)));
    assertThat(obstacles(diagnosis, Way.CUFILE)).contains("cufile-gpu");
    Finding finding = finding(diagnosis, "cufile-gpu");
    assertThat(finding.subject()).isEqualTo("0000:13:00.0");
    assertThat(finding.cause()).contains("does not support NVIDIA GeForce RTX 4090");
    assertThat(obstacles(diagnosis, Way.PINNED)).isEmpty();
  }

  @Test
  void cufileIsFoundWhereTheUserSays() {
    FakeMachine server = FakeMachine.server(root).write("opt/own.so", "");
    Path library = server.root().resolve("opt/own.so");
    CuFileHost host =
        new CuFileHost(
            server.paths(), server.root(), Map.of("GPUNVME_LIBCUFILE", library.toString()));
    Diagnosis diagnosis =
        Doctor.examine(FakeMachines.read(server), goodGpu(), new FileView("", "", host, null));
    assertThat(ids(diagnosis)).doesNotContain("cufile-missing");
    assertThat(finding(diagnosis, "cufile").cause()).isEqualTo("libcufile is " + library);
  }

  @Test
  void gpunvmesOwnLibcufile() throws IOException {
    FakeMachine server = FakeMachine.server(root);
    Path folder = root.resolve("own");
    assertThat(ids(examine(server, goodGpu()))).as("unknown").doesNotContain("own-cufile-missing");

    Finding missing =
        finding(examineOwn(server, goodGpu(), folder, Map.of()), "own-cufile-missing");
    assertThat(missing.severity()).isEqualTo(Severity.NOTE);
    assertThat(missing.cause()).contains(folder.toString());
    assertThat(missing.fix()).isEqualTo("install gpunvme again");
    Path built = root.resolve("tree/capi/target/cufile");
    assertThat(finding(examineOwn(server, goodGpu(), built, Map.of()), "own-cufile-missing").fix())
        .isEqualTo(root.resolve("tree") + "/scripts/capi build");

    Path own = Files.createDirectories(folder).resolve("libcufile.so.0");
    Files.copy(
        NativeCompiler.C.library(
            "own", "const char *gpunvme_cufile_version(void) { return \"0\"; }"),
        own);
    assertThat(finding(examineOwn(server, goodGpu(), folder, Map.of()), "own-cufile").cause())
        .contains(own.toString(), "gpunvme cufile", "memory of A GPU");
    assertThat(finding(examineOwn(server, NO_CUDA, folder, Map.of()), "own-cufile").cause())
        .contains("host memory only: there is no GPU");
  }

  @Test
  void theLibcufileThatProgramsGet() throws IOException {
    FakeMachine server = FakeMachine.server(root);
    Path own = Files.createDirectories(root.resolve("own")).resolve("libcufile.so.0");
    Files.copy(
        NativeCompiler.C.library(
            "own", "const char *gpunvme_cufile_version(void) { return \"0\"; }"),
        own);
    assertThat(programs(server, Map.of())).startsWith("programs find no libcufile.so.0");
    server.write("usr/lib64/libcufile.so.0", "");
    String another = server.root().resolve("usr/lib64/libcufile.so.0") + ", which is not gpunvme's";
    assertThat(programs(server, Map.of())).contains(another);
    assertThat(programs(server, Map.of("GPUNVME_LIBCUFILE", own.toString()))).contains(another);
    String ours = own + ", which is gpunvme's";
    assertThat(programs(server, Map.of("LD_LIBRARY_PATH", own.getParent().toString())))
        .contains(ours);
    assertThat(programs(server, Map.of("LD_PRELOAD", "/lib/x.so:" + own))).contains(ours);
  }

  @Test
  void whatOwnLibcufileObeysOfAConfiguration() throws IOException {
    FakeMachine server = FakeMachine.server(root);
    Path folder = root.resolve("none");
    assertThat(ids(examineOwn(server, NO_CUDA, folder, Map.of()))).doesNotContain("cufile-json");
    server.write("etc/cufile.json", "{}");
    String text = finding(examineOwn(server, NO_CUDA, folder, Map.of()), "cufile-json").cause();
    assertThat(text).startsWith(server.root().resolve("etc/cufile.json").toString());
    Path named = Files.writeString(root.resolve("my.json"), "{}");
    Map<String, String> environment = Map.of("CUFILE_ENV_PATH_JSON", named.toString());
    assertThat(finding(examineOwn(server, NO_CUDA, folder, environment), "cufile-json").cause())
        .startsWith(named.toString());
    // As the library has it.
    String source = Files.readString(Path.of("../capi/src/main/cufile/settings.c"));
    Matcher obeyed = Pattern.compile("\\{\"[a-z]+\\.([a-z_]+)\", .*, true},").matcher(source);
    List<String> names = new ArrayList<>();
    while (obeyed.find()) {
      names.add(obeyed.group(1));
    }
    assertThat(names).isNotEmpty();
    assertThat(text).contains(names);
    assertThat(text.replaceFirst("; .*", "").split(",")).hasSize(names.size());
  }

  private String programs(FakeMachine machine, Map<String, String> environment) {
    return finding(examineOwn(machine, NO_CUDA, root.resolve("none"), environment), "libcufile")
        .cause();
  }

  private static Diagnosis examineOwn(
      FakeMachine machine, CudaView cuda, Path folder, Map<String, String> environment) {
    CuFileHost host = new CuFileHost(machine.paths(), machine.root(), environment);
    return Doctor.examine(FakeMachines.read(machine), cuda, new FileView("", "", host, folder));
  }

  @Test
  void withoutIoUringThreadsRead() {
    FakeMachine server = FakeMachine.server(root);
    assertThat(ids(examine(server, NO_CUDA)))
        .contains("io-uring")
        .doesNotContain("io-uring-missing");

    FileView none = new FileView("no io_uring: forbidden", "allow it", host(server), null);
    Diagnosis diagnosis = Doctor.examine(FakeMachines.read(server), goodGpu(), none);
    Finding finding = finding(diagnosis, "io-uring-missing");
    assertThat(finding.severity()).isEqualTo(Severity.NOTE);
    assertThat(finding.cause()).isEqualTo("no io_uring: forbidden");
    assertThat(finding.effect()).contains("threads");
    assertThat(finding.fix()).isEqualTo("allow it");
    assertThat(obstacles(diagnosis, Way.PINNED)).isEmpty();
    assertThat(FileView.look(null).ringProblem()).doesNotContain("Exception");
  }
}
