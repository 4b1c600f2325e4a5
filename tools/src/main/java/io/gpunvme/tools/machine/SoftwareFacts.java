package io.gpunvme.tools.machine;

import io.gpunvme.ffi.SysFiles;
import io.gpunvme.nvme.pci.HostPaths;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Drivers and libraries that matter here.
 *
 * @param nvidiaDriver version of the kernel driver, empty without it
 * @param nvidiaOpen whether it is the one with open sources
 * @param nvidiaFs version of GPUDirect Storage's kernel module; {@code loaded} if it does not say;
 *     empty without it
 * @param cufile the cuFile library's file, empty if there is none in the usual places
 * @param udev whether udev's database is there
 * @param gpunvmeModule whether this project's kernel module is loaded
 * @param vfioPci whether the driver vfio-pci is loaded
 * @param vfioModule whether the running kernel's modules have vfio-pci, or it is built in
 * @param vfioContainer whether {@code /dev/vfio/vfio} is there
 * @param iommufd whether {@code /dev/iommu} is there
 * @param noIommu whether VFIO takes functions without an IOMMU
 * @param iommu whether the kernel drives an IOMMU
 */
public record SoftwareFacts(
    String nvidiaDriver,
    boolean nvidiaOpen,
    String nvidiaFs,
    String cufile,
    boolean udev,
    boolean gpunvmeModule,
    boolean vfioPci,
    boolean vfioModule,
    boolean vfioContainer,
    boolean iommufd,
    boolean noIommu,
    boolean iommu) {
  /** {@code NVRM version: NVIDIA UNIX Open Kernel Module for x86_64 580.82.07 Release Build …}. */
  private static final Pattern NVIDIA =
      Pattern.compile("NVRM version:.*?\\s(?<version>\\d+\\.\\d+(\\.\\d+)*)\\s.*");

  private static final Pattern NVIDIA_FS = Pattern.compile("(?<version>\\d+(\\.\\d+)+)");

  private static final String CUFILE = "libcufile.so.0";

  /** Where CUDA's packages and Debian's put libraries. */
  private static final List<String> FOLDERS =
      List.of(
          "usr/local/cuda/lib64",
          "usr/local/cuda/targets/x86_64-linux/lib",
          "usr/local/cuda/targets/sbsa-linux/lib",
          "usr/lib/x86_64-linux-gnu",
          "usr/lib/aarch64-linux-gnu",
          "usr/lib64",
          "usr/local/lib");

  static SoftwareFacts read(HostPaths paths, Path root) {
    Path sys = paths.sys();
    String driver = SysFiles.text(paths.proc().resolve("driver/nvidia/version"));
    String first = driver.lines().findFirst().orElse("");
    Matcher version = NVIDIA.matcher(first);
    return new SoftwareFacts(
        version.matches() ? version.group("version") : "",
        first.contains("Open Kernel Module"),
        nvidiaFs(paths),
        cufile(root),
        !SysFiles.children(udevDatabase(root)).isEmpty(),
        Files.exists(sys.resolve("module/gpunvme")),
        Files.exists(sys.resolve("bus/pci/drivers").resolve(MachineFunction.VFIO_PCI)),
        vfioModule(paths, root),
        Files.exists(paths.dev().resolve("vfio/vfio")),
        Files.exists(paths.dev().resolve("iommu")),
        SysFiles.text(sys.resolve("module/vfio/parameters/enable_unsafe_noiommu_mode")).equals("Y"),
        !SysFiles.children(sys.resolve("class/iommu")).isEmpty());
  }

  private static boolean vfioModule(HostPaths paths, Path root) {
    String release = SysFiles.text(paths.proc().resolve("sys/kernel/osrelease"));
    Path modules = root.resolve("lib/modules").resolve(release);
    return List.of("modules.dep", "modules.builtin").stream()
        .flatMap(list -> SysFiles.lines(modules.resolve(list)).stream())
        .anyMatch(line -> line.contains("/vfio-pci.ko"));
  }

  static Path udevDatabase(Path root) {
    return root.resolve("run/udev/data");
  }

  private static String nvidiaFs(HostPaths paths) {
    String module = SysFiles.text(paths.sys().resolve("module/nvidia_fs/version"));
    if (!module.isEmpty()) {
      return module;
    }
    Path folder = paths.proc().resolve("driver/nvidia-fs");
    Matcher version = NVIDIA_FS.matcher(SysFiles.text(folder.resolve("version")));
    if (version.find()) {
      return version.group("version");
    }
    return Files.exists(folder) ? "loaded" : "";
  }

  private static String cufile(Path root) {
    Optional<Path> file =
        FOLDERS.stream()
            .map(folder -> root.resolve(folder).resolve(CUFILE))
            .filter(Files::exists)
            .findFirst();
    return file.map(Path::toString).orElse("");
  }
}
