package io.gpunvme.gpu.watch;

import io.gpunvme.base.Reason;
import io.gpunvme.ffi.Errno;
import io.gpunvme.ffi.PosixException;
import io.gpunvme.ffi.UnixListener;
import java.io.IOException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The folder in which the processes of a user have their sockets, by process number. It is the
 * user's own and nobody else may look into it: whoever could put a socket there could tell lies. It
 * is there while a socket is in it.
 *
 * @param path where it is, or would be
 */
record RunFolder(Path path) {
  private static final String UID = "unix:uid";
  private static final String MODE = "unix:mode";
  private static final int S_IFMT = 0xF000;
  private static final int S_IFDIR = 0x4000;
  private static final int OTHERS = 077;
  private static final int ATTEMPTS = 20;

  /**
   * The folders of this process's user, the one to be preferred first. Programs that were started
   * without the session's environment use the second.
   */
  static List<RunFolder> all() {
    return all(System.getenv(), Path.of("/tmp"));
  }

  static List<RunFolder> all(Map<String, String> environment, Path common) {
    List<RunFolder> all = new ArrayList<>();
    String session = environment.getOrDefault("XDG_RUNTIME_DIR", "");
    if (session.startsWith("/") && refusal(Path.of(session)) == null) {
      all.add(new RunFolder(Path.of(session, "gpunvme")));
    }
    all.add(new RunFolder(common.resolve("gpunvme-" + user())));
    return all;
  }

  /** The number of this process's user. */
  private static int user() {
    try {
      return (int) Files.getAttribute(Path.of("/proc/self"), UID);
    } catch (IOException e) {
      // A process that may not look at itself has no folder: nobody has this number.
      return -1;
    }
  }

  /**
   * Makes it where it is missing.
   *
   * @throws IOException if it cannot be made, or must not be used; the message says why
   */
  void make() throws IOException {
    try {
      Files.createDirectory(
          path, PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
    } catch (FileAlreadyExistsException e) {
      // Whose it is follows.
    }
    String refusal = refusal();
    if (refusal != null) {
      throw new IOException(refusal);
    }
  }

  /**
   * Listens at the socket of a process, in the folder, which is made where it is missing.
   *
   * @throws IOException if the folder cannot be made, or must not be used; the message says why
   * @throws io.gpunvme.ffi.PosixException if nobody can listen there
   */
  UnixListener listen(long pid) throws IOException {
    for (int left = ATTEMPTS; ; left--) {
      try {
        make();
        return UnixListener.at(socket(pid));
      } catch (IOException | PosixException e) {
        // Whoever had the last socket may have removed the folder just now.
        boolean missing = !(e instanceof PosixException p) || p.errno() == Errno.ENOENT;
        if (left == 0 || !missing) {
          throw e;
        }
      }
    }
  }

  /** Removes it unless there is something in it. */
  void removeIfEmpty() {
    try {
      Files.deleteIfExists(path);
    } catch (IOException e) {
      // Others use it, and the last of them removes it.
    }
  }

  boolean exists() {
    return Files.exists(path, LinkOption.NOFOLLOW_LINKS);
  }

  /** Why it must not be used although it exists; null if it may be. */
  @Nullable String refusal() {
    return refusal(path);
  }

  private static @Nullable String refusal(Path folder) {
    try {
      int mode = (int) Files.getAttribute(folder, MODE, LinkOption.NOFOLLOW_LINKS);
      int owner = (int) Files.getAttribute(folder, UID, LinkOption.NOFOLLOW_LINKS);
      if ((mode & S_IFMT) != S_IFDIR) {
        return folder + " is no folder; remove it";
      }
      if (owner != user()) {
        return folder + " belongs to another user, " + Integer.toUnsignedString(owner);
      }
      return (mode & OTHERS) == 0 ? null : folder + " is open to others; chmod 700 it";
    } catch (IOException e) {
      return folder + ": " + Reason.of(e);
    }
  }

  /** Where the socket of a process is. */
  Path socket(long pid) {
    return path.resolve(Long.toString(pid));
  }
}
