package io.gpunvme.tools.doctor;

import io.gpunvme.cuda.ComputeCapability;
import io.gpunvme.cuda.WritesOrdering;
import io.gpunvme.tools.machine.Machine;
import io.gpunvme.tools.machine.MachineFunction;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;

/** The GPUs, their driver, and what they let an SSD do. */
final class GpuChecks {
  private static final String DOCS = "docs/hardware-setup.md lists the choices";

  /** GPU memory behind a BAR of the old size is reached 256 MiB at a time. */
  private static final long SMALL_BAR = 256L << 20;

  private static final int MIB = 1 << 20;
  private static final int OLDEST_MAJOR = 7;
  private static final int OLDEST_MINOR = 5;

  /** Where Linux took away the calls with which the NVIDIA driver looks up I/O memory. */
  private static final int LOOKUP_GONE_MAJOR = 6;

  private static final int LOOKUP_GONE_MINOR = 12;

  private static final Set<Way> GPU_MEMORY_OF_SSD =
      Way.both(Way.of("vfio:", "kmod:", "sysfs:"), Way.toGpuMemory());

  /** Where bus addresses of GPU memory come from dma-bufs. */
  private static final Set<Way> GPU_MEMORY_BY_DMA_BUF =
      Way.both(Way.of("kmod:"), Way.toGpuMemory());

  private static final Set<Way> GPU_MEMORY_BY_NOTHING =
      Way.both(Way.of("vfio:", "sysfs:"), Way.toGpuMemory());

  private final Machine machine;
  private final CudaView cuda;
  private final List<Finding> found = new ArrayList<>();

  private GpuChecks(Machine machine, CudaView cuda) {
    this.machine = machine;
    this.cuda = cuda;
  }

  static List<Finding> of(Machine machine, CudaView cuda) {
    GpuChecks checks = new GpuChecks(machine, cuda);
    if (!Doctor.hasGpu(machine, cuda)) {
      checks.noGpu();
      return checks.found;
    }
    checks.driver();
    machine.gpus().forEach(checks::window);
    cuda.gpus().forEach(checks::gpu);
    checks.registration();
    checks.busAddresses();
    return checks.found;
  }

  /** Everything that needs a GPU to work at all. */
  private static Set<Way> needGpu() {
    Set<Way> ways = EnumSet.noneOf(Way.class);
    ways.addAll(Way.byGpu());
    ways.addAll(Way.toGpuMemory());
    return ways;
  }

  private void noGpu() {
    found.add(
        Finding.note(
                "no-gpu",
                "gpu",
                "no NVIDIA GPU on the PCI bus",
                "the CPU issues the commands, and accelerator memory is host memory",
                "")
            .blocking(needGpu()));
  }

  private void driver() {
    String version = machine.software().nvidiaDriver();
    if (version.isEmpty() && cuda.gpus().isEmpty()) {
      found.add(
          Finding.problem(
                  "gpu-driver-missing",
                  "gpu",
                  "there is a GPU, but NVIDIA's kernel driver is not loaded",
                  "CUDA cannot use it; the CPU issues the commands",
                  "install the distribution's nvidia-driver package, or modprobe nvidia")
              .blocking(needGpu()));
    } else if (!version.isEmpty()) {
      String kind = machine.software().nvidiaOpen() ? "open" : "proprietary";
      found.add(
          Finding.ok("gpu-driver", "gpu", "NVIDIA driver " + version + ", " + kind + " modules"));
    }
    if (!cuda.installed()) {
      found.add(
          Finding.problem(
                  "cuda-missing",
                  "cuda",
                  "the driver's CUDA library is missing",
                  "no kernel can be launched; the CPU issues the commands",
                  "install the driver's libcuda1 package; in a container, start it with --gpus all")
              .blocking(needGpu()));
    } else if (!cuda.problem().isEmpty() || cuda.gpus().isEmpty()) {
      String problem = cuda.problem().isEmpty() ? "it lists no GPU" : cuda.problem();
      found.add(
          Finding.problem(
                  "cuda-broken",
                  "cuda",
                  "CUDA does not work: " + problem,
                  "no kernel can be launched; the CPU issues the commands",
                  "look at nvidia-smi and dmesg; reboot after a driver update")
              .blocking(needGpu()));
    }
  }

  private void window(MachineFunction gpu) {
    long window = gpu.largestBar();
    if (window > 0 && window <= SMALL_BAR) {
      found.add(
          Finding.note(
              "gpu-small-bar",
              gpu.address().toString(),
              "its BAR shows only %d MiB of its memory at a time".formatted(window / MIB),
              "an SSD reaches no more than that in placements vram-data and vram; host is not"
                  + " affected",
              "turn on Above 4G Decoding and Resizable BAR in the firmware set-up"));
    }
  }

  private void gpu(CudaView.Gpu gpu) {
    ComputeCapability capability = gpu.capability();
    found.add(
        Finding.ok(
            "gpu",
            gpu.address(),
            "%s, compute capability %s, CUDA %s"
                .formatted(gpu.name(), capability, cuda.version())));
    boolean old =
        capability.major() < OLDEST_MAJOR
            || (capability.major() == OLDEST_MAJOR && capability.minor() < OLDEST_MINOR);
    if (old) {
      found.add(
          Finding.problem(
                  "gpu-too-old",
                  gpu.address(),
                  "compute capability %s is less than 7.5".formatted(capability),
                  "the device library does not run on it",
                  "use a Turing GPU or a newer one")
              .blocking(Way.byGpu()));
    }
    if (!gpu.direct().rdma() && !gpu.direct().dmaBuf()) {
      found.add(
          Finding.note(
                  "gpu-no-peers",
                  gpu.address(),
                  "its driver offers GPU memory to no other device (neither GPUDirect RDMA nor"
                      + " dma-buf)",
                  "an SSD cannot read or write its memory, so placements vram-data and vram do not"
                      + " work",
                  "use a data-centre or RTX PRO GPU, or patched open kernel modules; " + DOCS)
              .blocking(GPU_MEMORY_OF_SSD));
    } else if (!gpu.direct().dmaBuf()) {
      found.add(
          Finding.note(
                  "gpu-no-dma-buf",
                  gpu.address(),
                  "its driver does not export GPU memory as a dma-buf",
                  "the kernel module gpunvme cannot give an SSD the bus addresses of its memory",
                  "install the driver's open kernel modules on Linux 5.12 or newer; " + DOCS)
              .blocking(GPU_MEMORY_BY_DMA_BUF));
    } else if (gpu.direct().ordering() == WritesOrdering.NONE) {
      found.add(
          Finding.note(
                  "gpu-writes-unordered",
                  gpu.address(),
                  "GPU_DIRECT_RDMA_WRITES_ORDERING is NONE",
                  "a running kernel does not see data that an SSD wrote into GPU memory without a"
                      + " flush",
                  "")
              .blocking(GPU_MEMORY_OF_SSD));
    }
  }

  /** Whether a BAR can be registered is found by trying only: patched drivers look the same. */
  private void registration() {
    if (machine.software().nvidiaDriver().isEmpty()) {
      return;
    }
    String check = "gpunvme check-p2p DEVICE tries it";
    if (machine.kernel().atLeast(LOOKUP_GONE_MAJOR, LOOKUP_GONE_MINOR)) {
      found.add(
          Finding.note(
              "io-memory",
              "cuda",
              "Linux %s with NVIDIA driver %s: since 6.12 the kernel lacks the calls with which this driver looked up I/O memory"
                  .formatted(machine.kernel().release(), machine.software().nvidiaDriver()),
              "a GPU may be unable to ring an SSD's doorbell (NVIDIA/open-gpu-kernel-modules #732,"
                  + " #742)",
              check + "; if it fails, patched kernel modules or a kernel before 6.12"));
    } else {
      found.add(
          Finding.note(
              "io-memory",
              "cuda",
              "only a trial shows whether CUDA can register BAR0 of an SSD",
              "without it a GPU cannot ring an SSD's doorbell",
              check));
    }
  }

  private void busAddresses() {
    if (!machine.ssds().isEmpty()) {
      found.add(
          Finding.note(
                  "gpu-bus-addresses",
                  "gpu",
                  "only the kernel module gpunvme gives an SSD the bus addresses of GPU memory",
                  "placements vram-data and vram need kmod:…, or the embedded controller",
                  "gpunvme bind DDDD:BB:DD.F --kmod (docs/kernel-module.md)")
              .blocking(GPU_MEMORY_BY_NOTHING));
    }
  }
}
