package io.gpunvme.core.doctor;

import io.gpunvme.core.machine.Machine;
import io.gpunvme.core.machine.SoftwareFacts;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;

/** The paths that read files: cuFile, pinned memory, mmap. */
final class FileChecks {
  private static final String CUFILE = "cufile";

  private FileChecks() {}

  static List<Finding> of(Machine machine, CudaView cuda) {
    List<Finding> found = new ArrayList<>();
    found.add(
        Finding.note(
                "file-paths",
                "files",
                "this version reads files through none of cuFile, pinned memory and mmap",
                "data moves by NVMe commands only (path direct)",
                "")
            .blocking(Set.of(Way.CUFILE, Way.PINNED, Way.MMAP)));
    if (Doctor.hasGpu(machine, cuda)) {
      cufile(machine.software(), found);
    }
    return found;
  }

  private static void cufile(SoftwareFacts software, List<Finding> found) {
    if (software.cufile().isEmpty()) {
      found.add(
          Finding.note(
                  "cufile-missing",
                  CUFILE,
                  "libcufile.so.0 is in none of the usual places",
                  "no program can use GPUDirect Storage here",
                  "install CUDA's libcufile package")
              .blocking(Set.of(Way.CUFILE)));
      return;
    }
    found.add(Finding.ok(CUFILE, CUFILE, software.cufile()));
    if (software.nvidiaFs().isEmpty()) {
      found.add(
          Finding.note(
              "nvidia-fs-missing",
              CUFILE,
              "the kernel module nvidia-fs is not loaded",
              "cuFile copies through host memory (compatibility mode), unless it is set up for PCI"
                  + " P2PDMA",
              "install nvidia-gds and modprobe nvidia-fs"));
    } else {
      found.add(Finding.ok("nvidia-fs", CUFILE, "nvidia-fs " + software.nvidiaFs()));
    }
    if (!software.udev()) {
      found.add(
          Finding.note(
              "udev-missing",
              CUFILE,
              "udev's database /run/udev/data is empty or cannot be read",
              "cuFile refuses files: it asks udev for the file system of a block device (error"
                  + " 5027)",
              "in a container mount /run/udev read-only"));
    }
  }
}
