package io.gpunvme.storage.path.cufile;

import io.gpunvme.cuda.ComputeCapability;
import io.gpunvme.cuda.cufile.CuFile;
import io.gpunvme.cuda.cufile.OwnCuFile;
import io.gpunvme.storage.path.PathKind;
import io.gpunvme.storage.path.Verdict;
import io.gpunvme.storage.path.file.MountPoint;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import java.util.Set;

/**
 * Whether cuFile can work, from what files say: opening libcufile takes up to seconds, and what it
 * would answer is an error number.
 */
final class CuFileJudge {
  /** The oldest architecture that cuFile works with: Pascal. */
  private static final int OLDEST_MAJOR = 6;

  /** Names of products that NVIDIA does not support; what works on one of them is luck. */
  private static final Set<String> UNSUPPORTED = Set.of("GeForce", "TITAN");

  /** File systems with servers of their own; cuFile knows them and asks udev nothing. */
  private static final Set<String> REMOTE =
      Set.of("nfs", "nfs4", "lustre", "beegfs", "wekafs", "gpfs", "scatefs");

  /** Those on a block device that cuFile can read directly. */
  private static final Set<String> DIRECT = Set.of("ext4", "xfs");

  private static final String ANOTHER_PATH = "use path pinned";

  private final CuFileHost host;

  CuFileJudge(CuFileHost host) {
    this.host = host;
  }

  /** Whether NVIDIA's library is there. */
  Verdict library() {
    if (host.own().isPresent()) {
      return no(
          OwnCuFile.besideOwn(host.own().get()),
          "start it without gpunvme cufile, and without that file or its folder in LD_PRELOAD and"
              + " LD_LIBRARY_PATH");
    }
    Optional<Path> library = CuFile.find(host.environment(), host.root());
    return library
        .map(file -> Verdict.yes(PathKind.CUFILE, "libcufile is " + file))
        .orElseGet(
            () ->
                no(
                    OwnCuFile.find(host.environment(), host.root())
                        .map(own -> "the libcufile found is gpunvme's own at " + own)
                        .orElse("libcufile.so.0 is not in the usual places"),
                    "install NVIDIA's (package libcufile-13-0 of its repository), or set"
                        + " GPUNVME_LIBCUFILE to the file"));
  }

  /** The machine, whatever file. */
  Verdict machine(String gpu, ComputeCapability capability) {
    Verdict library = library();
    if (!library.possible()) {
      return library;
    }
    if (capability.major() < OLDEST_MAJOR) {
      return no(
          "cuFile does not support %s: its compute capability is %d.%d, and cuFile needs 6.0"
              .formatted(gpu, capability.major(), capability.minor()),
          ANOTHER_PATH);
    }
    if (UNSUPPORTED.stream().anyMatch(gpu::contains)) {
      return no(
          "cuFile does not support " + gpu + ": it is for data-centre and workstation GPUs",
          ANOTHER_PATH);
    }
    return library;
  }

  /** A file, too. */
  Verdict file(Path file, String gpu, ComputeCapability capability) {
    if (!Files.exists(file)) {
      return no("there is no file " + file, "");
    }
    if (!Files.isRegularFile(file)) {
      return no(file + " is not a regular file", "");
    }
    if (!host.readable().test(file)) {
      return no("this user may not read " + file, "chmod a+r '" + file + "', or run as its owner");
    }
    Verdict machine = machine(gpu, capability);
    Verdict verdict = machine.possible() ? fileSystem(file, machine) : machine;
    return verdict.possible() ? direct(verdict) : verdict;
  }

  /** Without its kernel module cuFile copies through host memory, as others do, and faster. */
  private Verdict direct(Verdict verdict) {
    if (Files.exists(host.paths().sys().resolve("module/nvidia_fs"))) {
      return verdict;
    }
    return Verdict.yesIfAsked(
        PathKind.CUFILE,
        verdict.reason() + "; nvidia-fs is not loaded, so cuFile copies through host memory",
        "install nvidia-gds and modprobe nvidia-fs");
  }

  private Verdict fileSystem(Path file, Verdict machine) {
    Optional<MountPoint> found = MountPoint.of(host.paths(), file);
    if (found.isEmpty()) {
      return Verdict.yes(PathKind.CUFILE, machine.reason() + "; the file system is unknown");
    }
    MountPoint mount = found.get();
    if (REMOTE.contains(mount.type())) {
      return Verdict.yes(PathKind.CUFILE, machine.reason() + "; " + mount.type());
    }
    if (mount.number().startsWith("0:")) {
      return no(
          "%s at %s has no block device of its own, and cuFile refuses such files"
              .formatted(mount.type(), mount.target()),
          "put the file on ext4 or XFS, or " + ANOTHER_PATH);
    }
    return udev(mount, machine);
  }

  /** cuFile asks udev's database what is on the block device; error 5027 without an answer. */
  private Verdict udev(MountPoint mount, Verdict machine) {
    String name = "/run/udev/data/b" + mount.number();
    Path entry = Path.of(host.root().toString(), name);
    String text;
    try {
      text = new String(Files.readAllBytes(entry), StandardCharsets.ISO_8859_1);
    } catch (IOException e) {
      text = "";
    }
    boolean known =
        text.lines().anyMatch(line -> line.startsWith("E:ID_FS_USAGE="))
            && text.lines().anyMatch(line -> line.startsWith("E:ID_FS_TYPE="));
    if (!known) {
      return no(
          "udev has no record of the file system on %s (%s): cuFile would refuse the file (5027)"
              .formatted(mount.source(), name),
          udevFix(mount, name));
    }
    String kind =
        DIRECT.contains(mount.type())
            ? mount.type()
            : mount.type() + ", which cuFile copies through host memory, or refuses";
    return Verdict.yes(PathKind.CUFILE, machine.reason() + "; " + kind);
  }

  private static String udevFix(MountPoint mount, String name) {
    return ("udevadm trigger --action=add --name-match=%s; in a container, mount /run/udev"
            + " read-only from the host; without udev: mkdir -p /run/udev/data && printf"
            + " 'E:ID_FS_USAGE=filesystem\\n"
            + "E:ID_FS_TYPE=%s\\n"
            + "' > %s")
        .formatted(mount.source(), mount.type(), name);
  }

  private static Verdict no(String reason, String fix) {
    return Verdict.no(PathKind.CUFILE, reason, fix);
  }
}
