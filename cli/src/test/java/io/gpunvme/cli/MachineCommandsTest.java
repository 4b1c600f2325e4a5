package io.gpunvme.cli;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import io.gpunvme.cuda.Cuda;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The commands about this machine, on a tree that looks like one with an SSD and a GPU. */
class MachineCommandsTest {
  private static final String SSD = "0000:01:00.0";
  private static final String GPU = "0000:02:00.0";

  @TempDir Path root;

  @BeforeEach
  void anSsdAndAGpu() throws IOException {
    function(SSD, "0x010802", "0x144d");
    function(GPU, "0x030200", "0x10de");
    link("sys/bus/pci/devices/" + SSD + "/driver", "sys/bus/pci/drivers/nvme");
    write("sys/bus/pci/devices/" + SSD + "/nvme/nvme0/model", "Some SSD 1TB");
    Files.createDirectories(root.resolve("sys/bus/pci/devices/" + SSD + "/nvme/nvme0/nvme0n1"));
    write("sys/block/nvme0n1/dev", "259:0");
    write("sys/block/nvme0n1/size", "2048");
    write("proc/sys/kernel/osrelease", "6.1.0");
    write("proc/self/status", "Uid:\t0\t0\t0\t0");
    Files.createDirectories(root.resolve("run/lock"));
  }

  private void function(String address, String classCode, String vendor) throws IOException {
    String folder = "sys/devices/pci0000:00/0000:00:01.0/" + address;
    write(folder + "/class", classCode);
    write(folder + "/vendor", vendor);
    write(folder + "/device", "0xa80c");
    write(folder + "/driver_override", "(null)");
    write(folder + "/current_link_speed", "16.0 GT/s PCIe");
    write(folder + "/current_link_width", "4");
    write(folder + "/max_link_speed", "16.0 GT/s PCIe");
    write(folder + "/max_link_width", "4");
    link("sys/bus/pci/devices/" + address, folder);
  }

  private void write(String file, String text) throws IOException {
    Path path = root.resolve(file);
    Files.createDirectories(path.getParent());
    Files.writeString(path, text + "\n");
  }

  private void link(String name, String target) throws IOException {
    Path path = root.resolve(name);
    Files.createDirectories(path.getParent());
    Files.createDirectories(root.resolve(target));
    Files.createSymbolicLink(path, root.resolve(target));
  }

  private void group() throws IOException {
    Files.createDirectories(root.resolve("sys/class/iommu/dmar0"));
    Files.createDirectories(root.resolve("sys/bus/pci/drivers/vfio-pci"));
    write("sys/kernel/iommu_groups/7/type", "DMA");
    link("sys/kernel/iommu_groups/7/devices/" + SSD, "sys/bus/pci/devices/" + SSD);
    link("sys/bus/pci/devices/" + SSD + "/iommu_group", "sys/kernel/iommu_groups/7");
  }

  private void mounted() throws IOException {
    write("proc/self/mountinfo", "22 1 259:0 / /data rw - ext4 /dev/nvme0n1 rw");
  }

  private Cli.Result run(Object... args) {
    return Cli.run(Stream.concat(Stream.of(args), Stream.of("--root", root)).toArray());
  }

  // ---- list

  @Test
  void listShowsFunctionsAndPairs() throws IOException {
    mounted();
    group();
    String out = run("list").succeeded().out();

    assertThat(out)
        .containsPattern(
            SSD
                + " +ssd +144d:a80c +nvme +7 +16GT/s x4 +- +Some SSD 1TB +/dev/nvme0n1 is mounted"
                + " at /data")
        .containsPattern(GPU + " +gpu +10de:a80c +none +- +16GT/s x4")
        .containsPattern(GPU + " +" + SSD + " +7.9 +" + GPU + " +the same root port 0000:00:01.0")
        .contains("sim:key=value", "vfio:DDDD:BB:DD.F", "sysfs:DDDD:BB:DD.F");
  }

  @Test
  void listAsJson() throws IOException {
    group();
    JsonObject json = run("list", "--json").succeeded().json();

    JsonObject ssd = json.getAsJsonArray("pci").get(0).getAsJsonObject();
    assertThat(ssd.get("address").getAsString()).isEqualTo(SSD);
    assertThat(ssd.get("driver").getAsString()).isEqualTo("nvme");
    assertThat(ssd.get("driver_override").isJsonNull()).isTrue();
    assertThat(ssd.getAsJsonObject("iommu_group").get("type").getAsString()).isEqualTo("DMA");
    assertThat(ssd.getAsJsonObject("link").get("gb_per_s").getAsDouble()).isBetween(7.8, 7.9);
    assertThat(ssd.get("bytes").getAsLong()).isEqualTo(1 << 20);
    assertThat(ssd.getAsJsonArray("uses")).isEmpty();
    JsonObject pair = json.getAsJsonArray("pairs").get(0).getAsJsonObject();
    assertThat(pair.get("meet").getAsString()).isEqualTo("root_port");
    assertThat(pair.get("common_port").getAsString()).isEqualTo("0000:00:01.0");
    assertThat(json.getAsJsonArray("kinds").get(0).getAsString()).isEqualTo("sim");
  }

  @Test
  void listSaysSoWhereThereIsNothing() {
    root = root.resolve("empty");

    assertThat(run("list").succeeded().out())
        .startsWith("No NVMe function on the PCI bus.")
        .contains("No NVIDIA GPU on the PCI bus.", "sim:key=value");
  }

  @Test
  void listWorksOnThisMachine() {
    assertThat(Cli.run("list", "--json").succeeded().json().has("pci")).isTrue();
  }

  // ---- topology

  @Test
  void topologyShowsTreePairsAndChoices() throws IOException {
    group();
    String out = run("topology", "--no-cuda").succeeded().out();

    assertThat(out)
        .startsWith("host: 1 GPU, 1 SSD\n└─ NUMA node not known\n   └─ host bridge 0000:00\n")
        .contains("├─ SSD " + SSD + ": 16GT/s x4, 7.9 GB/s; Some SSD 1TB; nvme0n1; driver nvme\n")
        .containsPattern(
            GPU + " +" + SSD + " +7.9 +7.9 +7.9 +- +- +- +the same root port 0000:00:01.0\n")
        .contains("  direct: from the SSD into GPU memory")
        .containsPattern(SSD + " +" + GPU + " +- +- +- +the same root port 0000:00:01.0; the")
        .doesNotContain("GPUNVME_GPU_NUMA", "Stripe sets");
  }

  @Test
  void whereThereAreNodesTopologyNamesTheOptions() throws IOException {
    write("sys/devices/system/node/node0/cpulist", "0-3");
    write("sys/devices/system/node/node1/cpulist", "4-7");
    assertThat(run("topology", "--no-cuda").succeeded().out())
        .contains("numa=N or numa=off", "GPUNVME_GPU_NUMA=N");
  }

  @Test
  void topologySaysWhatIsInTheWayOfAPlacement() throws IOException {
    mounted();

    assertThat(run("topology").succeeded().out())
        .containsPattern("7.9 +no +no +no +the same root port")
        .contains("  no host, vram-data, vram: /dev/nvme0n1 is mounted at /data\n");
  }

  @Test
  void topologyAsJson() {
    JsonObject json =
        run("topology", "--json", "--no-cuda", "--request", "64KiB,8MiB").succeeded().json();

    assertThat(json.keySet())
        .containsExactly(
            "nodes", "pci", "tree", "pairs", "shared_links", "nvlink", "gpu_pairs", "choices");
    JsonObject pair = json.getAsJsonArray("pairs").get(0).getAsJsonObject();
    assertThat(pair.get("meet").getAsString()).isEqualTo("root_port");
    assertThat(pair.getAsJsonObject("direct").get("gb_per_s").getAsDouble()).isBetween(7.8, 7.9);
    assertThat(json.getAsJsonObject("nvlink").get("problem").getAsString()).isEqualTo("not asked");
    JsonObject bridge =
        json.getAsJsonObject("tree")
            .getAsJsonArray("below")
            .get(0)
            .getAsJsonObject()
            .getAsJsonArray("below")
            .get(0)
            .getAsJsonObject();
    assertThat(bridge.get("kind").getAsString()).isEqualTo("bridge");
    assertThat(bridge.get("name").getAsString()).isEqualTo("0000:00");
    JsonObject choice =
        json.getAsJsonObject("choices").getAsJsonArray("ssds").get(0).getAsJsonObject();
    assertThat(choice.get("gpu").getAsString()).isEqualTo(GPU);
    assertThat(choice.get("queues_node").isJsonNull()).isTrue();
  }

  @Test
  void topologyIsDrawnIntoAFileOrOnStandardOutput() throws IOException {
    Path file = root.resolve("machine.svg");
    run("topology", "--no-cuda", "--svg", file, "--json").succeeded().json();
    String drawn = Files.readString(file);

    assertThat(drawn).startsWith("<svg xmlns=").contains("GPU " + GPU, "SSD " + SSD);
    assertThat(run("topology", "--no-cuda", "--svg", "-").succeeded().out()).isEqualTo(drawn);
  }

  @Test
  void topologyRefusesWhatItCannotDo() {
    run("topology", "--svg", "-", "--json").refused("name a file");
    run("topology", "--request", "0").refused("at least one byte");
    run("topology", "--request", "many").failed(ExitCode.USAGE, "'many' is not a size");
    run("topology", "--no-cuda", "--svg", root.resolve("nowhere/a.svg"))
        .failed(ExitCode.USAGE, "nowhere/a.svg");
  }

  @Test
  void topologySaysSoWhereThereIsNothing() {
    root = root.resolve("empty");

    assertThat(run("topology", "--no-cuda").succeeded().out()).isEqualTo("host: no GPU, no SSD\n");
  }

  @Test
  void topologyWorksOnThisMachine() {
    assertThat(Cli.run("topology", "--json").succeeded().json().has("tree")).isTrue();
  }

  // ---- doctor

  @Test
  void doctorSaysCauseEffectAndFix() {
    String out = run("doctor", "--no-cuda").succeeded().out();

    assertThat(out)
        .startsWith("Works here: sim: (CPU)")
        .containsPattern("\nNext: .+\n\n")
        .contains("problem  iommu: no IOMMU", "         effect: VFIO gives no device")
        .contains("         fix:    gpunvme bind " + SSD)
        .containsPattern("sim: +direct +cpu +host +nothing")
        .containsPattern("vfio: +direct +cpu +host +iommu, vfio");
  }

  @Test
  void doctorAsJson() {
    JsonObject json = run("doctor", "--no-cuda", "--json").succeeded().json();

    assertThat(json.get("problems").getAsInt()).isPositive();
    assertThat(json.getAsJsonArray("findings"))
        .map(JsonElement::getAsJsonObject)
        .anyMatch(
            f ->
                f.get("id").getAsString().equals("ssd-kernel-driver")
                    && f.get("fix").getAsString().contains("gpunvme bind " + SSD));
    JsonObject first = json.getAsJsonArray("ways").get(0).getAsJsonObject();
    assertThat(first.get("storage").getAsString()).isEqualTo("sim:");
    assertThat(first.get("open").getAsBoolean()).isTrue();
  }

  private String now() {
    String out = run("doctor", "--no-cuda").succeeded().out();
    return out.substring(out.indexOf("What you can do now:"));
  }

  @Test
  void doctorEndsInWhatCanBeDone() throws IOException {
    assertThat(now())
        .containsPattern("\\n  gpunvme demo +a file")
        .containsPattern("\\n  gpunvme try " + SSD + " --no-driver +what this SSD does")
        .doesNotContain("sudo", "bench queue");
    group();
    assertThat(now())
        .containsPattern("\\n  gpunvme try " + SSD + " +what this SSD does")
        .containsPattern("\\n  gpunvme explain /\\S+/lib/modules +which path");
    write("proc/self/status", "Uid:\t1000\t1000\t1000\t1000");
    assertThat(now()).contains("\n  sudo gpunvme try " + SSD);
    mounted();
    assertThat(now()).doesNotContain("try");
    JsonObject json = run("doctor", "--no-cuda", "--json").succeeded().json();
    assertThat(json.getAsJsonArray("now").get(0).getAsJsonObject().get("command").getAsString())
        .isEqualTo("gpunvme demo");
  }

  @Test
  void doctorWorksOnThisMachine() {
    Cli.Result result = Cli.run("doctor").succeeded();

    assertThat(result.out()).contains("Ways to move data:").doesNotContain("Exception");
  }

  @Test
  void doctorWorksWithoutAnything() {
    root = root.resolve("empty");

    assertThat(run("doctor", "--no-cuda", "--json").succeeded().json().get("problems").getAsInt())
        .isZero();
  }

  // ---- bind, unbind

  @Test
  void bindSaysWhatItWouldWrite() throws IOException {
    group();
    Path sys = root.resolve("sys/bus/pci");

    assertThat(run("bind", SSD, "--dry-run").succeeded().out().lines())
        .containsExactly(
            "echo vfio-pci > " + sys.resolve("devices/" + SSD + "/driver_override"),
            "echo " + SSD + " > " + sys.resolve("drivers/nvme/unbind"),
            "echo " + SSD + " > " + sys.resolve("drivers_probe"));
    JsonObject json = run("bind", "01:00.0", "--dry-run", "--json").succeeded().json();
    assertThat(json.get("address").getAsString()).isEqualTo(SSD);
    assertThat(json.get("dry_run").getAsBoolean()).isTrue();
    assertThat(json.getAsJsonArray("writes")).hasSize(3);
    assertThat(Files.readString(root.resolve("sys/bus/pci/devices/" + SSD + "/driver_override")))
        .isEqualTo("(null)\n");
  }

  @Test
  void bindRefusesADiskInUse() throws IOException {
    group();
    mounted();

    run("bind", SSD).refused("/dev/nvme0n1 is mounted at /data");
    run("bind", SSD, "--no-driver").refused("/dev/nvme0n1 is mounted at /data");
  }

  @Test
  void bindRefusesWhatVfioCannotHave() throws IOException {
    run("bind", SSD).refused("modprobe vfio-pci");
    Files.createDirectories(root.resolve("sys/bus/pci/drivers/vfio-pci"));
    run("bind", SSD).refused("no IOMMU group");
    run("bind", GPU).refused("not an NVMe controller");
  }

  @Test
  void onlyRootBinds() throws IOException {
    group();
    write("proc/self/status", "Uid:\t1000\t1000\t1000\t1000");

    run("bind", SSD).failed(ExitCode.FAILURE, "only root may change drivers");
    run("bind", SSD, "--dry-run").succeeded();
  }

  /** This tree has no kernel behind it: the driver stays what it was. */
  @Test
  void aKernelThatDoesNotDoItIsAFailure() throws IOException {
    group();
    write("sys/bus/pci/drivers/nvme/unbind", "");
    write("sys/bus/pci/drivers_probe", "");

    run("bind", SSD).failed(ExitCode.FAILURE, "has driver nvme now, not vfio-pci");
    assertThat(run("unbind", SSD).code()).isZero();
  }

  @Test
  void unbindHasNothingToDoWhereNothingWasBound() {
    assertThat(run("unbind", SSD).succeeded().out())
        .isEqualToIgnoringNewLines(SSD + " has driver nvme: nothing to do");
  }

  // ---- try

  private static List<String> outcomes(JsonObject json) {
    List<String> all = new ArrayList<>();
    for (JsonElement step : json.getAsJsonArray("steps")) {
      JsonObject one = step.getAsJsonObject();
      all.add(one.get("step").getAsString() + " " + one.get("outcome").getAsString());
    }
    return all;
  }

  @Test
  void tryWalksThroughADeviceThatIsOpenToAll() {
    JsonObject json =
        Cli.run("try", "sim:size=64MiB,latency=0", "--initiator", "cpu", "--json")
            .succeeded()
            .json();
    assertThat(json.get("succeeded").getAsBoolean()).isTrue();
    assertThat(outcomes(json))
        .containsExactly("identify done", "check-p2p skipped", "demo done", "bench done");
    JsonObject bench = json.getAsJsonArray("steps").get(3).getAsJsonObject();
    assertThat(bench.get("initiator").getAsString()).isEqualTo("CPU");
    assertThat(bench.get("commands_per_s").getAsDouble()).isPositive();
    assertThat(Cli.run("try", "sim:size=8MiB,latency=0", "--initiator", "cpu").succeeded().out())
        .containsPattern(
            "done +identify +sim:size=8MiB,latency=0 is gpunvme embedded controller: 8MiB")
        .containsPattern("skipped +check-p2p +the CPU is to be the initiator")
        .containsPattern("done +demo +the CPU read 8MiB into CPU stand-in")
        .containsPattern("done +bench +random 4KiB: \\S+ .*commands/s, median latency");
  }

  @Test
  void tryStopsAtTheFirstFailure() {
    Cli.Result result = Cli.run("try", "vfio-user:" + root.resolve("nobody"), "--json");
    assertThat(result.code()).isEqualTo(ExitCode.FAILURE);
    assertThat(outcomes(result.json())).containsExactly("identify failed");
    assertThat(result.err()).startsWith("gpunvme try: identify: ");
    if (!Cuda.isAvailable()) {
      JsonObject json = Cli.run("try", "sim:", "--initiator", "gpu", "--json").json();
      assertThat(outcomes(json)).containsExactly("identify done", "check-p2p failed");
    }
  }

  @Test
  void tryLeavesAloneWhatIsInUseOrNoSsd() throws IOException {
    group();
    Cli.Result gpu = run("try", GPU, "--yes");
    assertThat(gpu.code()).isEqualTo(ExitCode.FAILURE);
    assertThat(gpu.out()).contains("is no NVMe controller");
    mounted();
    Cli.Result mounted = run("try", SSD, "--yes");
    assertThat(mounted.code()).isEqualTo(ExitCode.FAILURE);
    assertThat(mounted.out())
        .containsPattern("failed +look +it is in use: /dev/nvme0n1 is mounted at /data")
        .doesNotContain("bind");
  }

  @Test
  void tryAsksBeforeItBinds() throws IOException {
    assertThat(run("try", SSD, "--yes").out())
        .containsPattern("failed +bind +.*modprobe vfio-pci")
        .doesNotContain("unbind");
    group();
    run("try", SSD).refused("add --yes");
    run("try", SSD, "--json").refused("add --yes");
  }

  /** This tree has no kernel behind it: the driver stays what it was. */
  @Test
  void tryGivesBackWhatItCouldNotBind() throws IOException {
    group();
    write("sys/bus/pci/drivers/nvme/unbind", "");
    write("sys/bus/pci/drivers_probe", "");

    Cli.Result result = run("try", SSD, "--yes", "--json");
    assertThat(result.code()).isEqualTo(ExitCode.FAILURE);
    assertThat(outcomes(result.json())).containsExactly("look done", "bind failed", "unbind done");
  }

  // ---- check-p2p

  @Test
  void checkP2pNeedsAGpu() {
    Assumptions.assumeFalse(Cuda.isAvailable(), "this machine has a GPU");

    Cli.run("check-p2p", "sim:").failed(ExitCode.FAILURE, "NVIDIA driver");
    assertThat(Cli.run("check-p2p", "sim:", "--json").json().get("exit_code").getAsInt()).isOne();
  }

  @Test
  void checkP2pDrivesAnEmbeddedController() {
    Assumptions.assumeTrue(Cuda.isAvailable(), "no GPU on this machine");

    JsonObject json = Cli.run("check-p2p", "sim:", "--read", "--json").succeeded().json();
    assertThat(json.get("result").getAsString()).isEqualTo("gpu-drives-ssd");
  }
}
