package io.gpunvme.nvme.pci.host;

import io.gpunvme.nvme.pci.HostPaths;
import java.io.IOException;
import java.nio.file.Files;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** How much memory this process may pin, and what to say when that was too little. */
public final class LockedMemoryLimit {
  private static final Pattern LINE =
      Pattern.compile("(?m)^Max locked memory\\s+(\\d+|unlimited)\\b");

  private LockedMemoryLimit() {}

  /** RLIMIT_MEMLOCK in words: {@code 8388608 bytes}, {@code unlimited}, or {@code unknown}. */
  public static String describe(HostPaths paths) {
    try {
      Matcher m = LINE.matcher(Files.readString(paths.proc().resolve("self/limits")));
      if (m.find()) {
        return m.group(1).equals("unlimited") ? m.group(1) : m.group(1) + " bytes";
      }
    } catch (IOException e) {
      // Not fatal: this is only for a message.
    }
    return "unknown";
  }

  /** What to do about it. */
  public static String advice(HostPaths paths) {
    return "the limit of locked memory (RLIMIT_MEMLOCK) is "
        + describe(paths)
        + "; raise it with `ulimit -l unlimited` as root, in /etc/security/limits.conf (memlock),"
        + " or with LimitMEMLOCK=infinity of a systemd unit";
  }
}
