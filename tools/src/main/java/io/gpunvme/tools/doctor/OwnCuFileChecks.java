package io.gpunvme.tools.doctor;

import io.gpunvme.cuda.cufile.OwnCuFile;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/** gpunvme's own libcufile: whether programs for cuFile can run on gpunvme, and which they get. */
final class OwnCuFileChecks {
  private static final String SUBJECT = "libcufile";
  private static final String NAME = "libcufile.so.0";
  private static final Path BUILT = Path.of("capi", "target", "cufile");

  private OwnCuFileChecks() {}

  static List<Finding> of(CudaView cuda, FileView files) {
    Path folder = files.ownCuFile();
    if (folder == null) {
      return List.of();
    }
    List<Finding> found = new ArrayList<>();
    found.add(own(folder, cuda));
    Map<String, String> environment = files.cuFile().environment();
    Path root = files.cuFile().root();
    found.add(Finding.ok(SUBJECT, SUBJECT, forPrograms(environment, root)));
    String named = environment.getOrDefault("CUFILE_ENV_PATH_JSON", "");
    Path configuration = named.isEmpty() ? root.resolve("etc/cufile.json") : Path.of(named);
    if (Files.isRegularFile(configuration)) {
      found.add(Finding.ok("cufile-json", SUBJECT, obeyed(configuration)));
    }
    return found;
  }

  private static Finding own(Path folder, CudaView cuda) {
    Path file = folder.resolve(NAME);
    if (!OwnCuFile.is(file)) {
      boolean tree = folder.endsWith(BUILT);
      return Finding.note(
          "own-cufile-missing",
          SUBJECT,
          "gpunvme's own is not in " + folder,
          "programs for cuFile (torch.cuda.gds, KvikIO, fio) cannot run on gpunvme",
          tree
              ? folder.resolve("../../../scripts/capi").normalize() + " build"
              : "install gpunvme again");
    }
    String gpus =
        cuda.gpus().stream().map(CudaView.Gpu::name).distinct().collect(Collectors.joining(", "));
    return Finding.ok(
        "own-cufile",
        SUBJECT,
        "gpunvme's own is %s; gpunvme cufile -- PROGRAM starts a program with it, which reads into %s"
            .formatted(
                file,
                gpus.isEmpty()
                    ? "host memory only: there is no GPU"
                    : "memory of " + gpus + ", and of the host"));
  }

  private static String forPrograms(Map<String, String> environment, Path root) {
    return OwnCuFile.forPrograms(environment, root)
            .map(
                file ->
                    "programs find "
                        + file
                        + (OwnCuFile.is(file)
                            ? ", which is gpunvme's"
                            : ", which is not gpunvme's"))
            .orElse("programs find no libcufile.so.0 in the usual places")
        + ", unless they bring one";
  }

  private static String obeyed(Path configuration) {
    return configuration
        + ": gpunvme's own obeys level, dir, cufile_stats, max_io_threads,"
        + " max_request_parallelism, io_batchsize, allow_compat_mode, force_compat_mode,"
        + " allow_system_memory; the rest has no effect, and its log of level info names it";
  }
}
