package io.gpunvme.storage.path.cufile;

import io.gpunvme.cuda.cufile.OwnCuFile;
import io.gpunvme.nvme.pci.HostPaths;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Optional;
import java.util.function.Predicate;

/**
 * Where to look for what cuFile needs. Tests put a tree of their own in its place.
 *
 * @param paths the kernel's
 * @param root what {@code run} and {@code usr} lie in
 * @param environment of the process
 * @param readable whether this user may read a file; root may read all
 * @param own gpunvme's own libcufile, if this process has loaded it
 */
public record CuFileHost(
    HostPaths paths,
    Path root,
    Map<String, String> environment,
    Predicate<Path> readable,
    Optional<String> own) {
  /** Copies the map. */
  public CuFileHost {
    environment = Map.copyOf(environment);
  }

  /** The files' own permissions count, and this process has no libcufile of ours. */
  public CuFileHost(HostPaths paths, Path root, Map<String, String> environment) {
    this(paths, root, environment, Files::isReadable, Optional.empty());
  }

  /** The machine this process runs on. */
  public static CuFileHost here() {
    return new CuFileHost(
        HostPaths.host(), Path.of("/"), System.getenv(), Files::isReadable, OwnCuFile.inProcess());
  }
}
