package io.gpunvme.tools.doctor;

import io.gpunvme.storage.path.Verdict;
import io.gpunvme.storage.path.cufile.CuFileHost;
import io.gpunvme.storage.path.cufile.CuFilePath;
import io.gpunvme.tools.machine.Machine;
import io.gpunvme.tools.machine.SoftwareFacts;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;

/** The paths that read files: cuFile, pinned memory, mmap. */
final class FileChecks {
  private static final String CUFILE = "cufile";
  private static final String FILES = "files";

  private final List<Finding> found = new ArrayList<>();

  private FileChecks() {}

  static List<Finding> of(Machine machine, CudaView cuda, FileView files) {
    FileChecks checks = new FileChecks();
    checks.ring(files);
    if (Doctor.hasGpu(machine, cuda)) {
      checks.cufile(machine.software(), cuda, files.cuFile());
    }
    return checks.found;
  }

  private void ring(FileView files) {
    found.add(Finding.ok("file-paths", FILES, "the paths pinned and mmap can read files"));
    if (files.ringProblem().isEmpty()) {
      found.add(Finding.ok("io-uring", FILES, "this process may use io_uring"));
    } else {
      found.add(
          Finding.note(
              "io-uring-missing",
              FILES,
              files.ringProblem(),
              "the path pinned reads with threads, which take more processor time",
              files.ringFix()));
    }
  }

  private void cufile(SoftwareFacts software, CudaView cuda, CuFileHost host) {
    Verdict library = CuFilePath.judgeLibrary(host);
    if (!library.possible()) {
      found.add(
          Finding.note(
                  "cufile-missing",
                  CUFILE,
                  library.reason(),
                  "cuFile (GPUDirect Storage) cannot read files",
                  library.fix())
              .blocking(Set.of(Way.CUFILE)));
      return;
    }
    found.add(Finding.ok(CUFILE, CUFILE, library.reason()));
    cuda.gpus().forEach(gpu -> gpu(gpu, host));
    nvidiaFs(software);
    if (!software.udev()) {
      found.add(
          Finding.note(
              "udev-missing",
              CUFILE,
              "udev's database /run/udev/data is empty or cannot be read",
              "cuFile refuses files: it asks udev for the file system of a block device (error"
                  + " 5027)",
              "in a container, mount /run/udev read-only"));
    }
  }

  private void gpu(CudaView.Gpu gpu, CuFileHost host) {
    Verdict verdict = CuFilePath.judgeMachine(gpu.name(), gpu.capability(), host);
    if (!verdict.possible()) {
      found.add(
          Finding.note(
                  "cufile-gpu",
                  gpu.address(),
                  verdict.reason(),
                  "only the paths pinned and mmap read files into its memory",
                  verdict.fix())
              .blocking(Set.of(Way.CUFILE)));
    }
  }

  private void nvidiaFs(SoftwareFacts software) {
    if (software.nvidiaFs().isEmpty()) {
      found.add(
          Finding.note(
              "nvidia-fs-missing",
              CUFILE,
              "the kernel module nvidia-fs is not loaded",
              "cuFile copies through host memory (compatibility mode), unless it is set up for PCI"
                  + " P2PDMA; path auto leaves it out",
              "install nvidia-gds and modprobe nvidia-fs"));
    } else {
      found.add(Finding.ok("nvidia-fs", CUFILE, "nvidia-fs " + software.nvidiaFs()));
    }
  }
}
