package io.gpunvme.tools.machine;

import io.gpunvme.ffi.SysFiles;
import io.gpunvme.nvme.pci.HostPaths;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The running kernel.
 *
 * @param release {@code 6.1.0-18-amd64}; empty if it is not told
 * @param commandLine what the boot loader gave it
 * @param lockdown {@code none}, {@code integrity} or {@code confidentiality}; empty if it has none
 * @param secureBoot whether the firmware checked what it started
 * @param hugePages pools of huge pages, by size
 * @param memlockBytes memory that this process may lock (soft limit of RLIMIT_MEMLOCK); empty: no
 *     limit
 * @param userId the effective user of this process, empty if it is not told
 */
public record KernelFacts(
    String release,
    String commandLine,
    String lockdown,
    SecureBoot secureBoot,
    List<HugePages> hugePages,
    OptionalLong memlockBytes,
    OptionalInt userId) {
  /** Copies the list. */
  public KernelFacts {
    hugePages = List.copyOf(hugePages);
  }

  /** What the firmware says about Secure Boot. */
  public enum SecureBoot {
    /** No UEFI variables: booted the old way, a virtual machine, or a container. */
    UNKNOWN,
    OFF,
    ON
  }

  /**
   * Huge pages of one size.
   *
   * @param bytes of a page
   * @param total set aside
   * @param free of those
   */
  public record HugePages(long bytes, long total, long free) {}

  private static final String SECURE_BOOT =
      "firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c";

  /** Four bytes of attributes come before the value. */
  private static final int EFI_ATTRIBUTES = 4;

  private static final Pattern RELEASE = Pattern.compile("(?<major>\\d+)\\.(?<minor>\\d+).*");
  private static final Pattern CHOSEN = Pattern.compile("\\[(?<word>\\w+)]");
  private static final Pattern POOL = Pattern.compile("hugepages-(?<kib>\\d+)kB");
  private static final Pattern MEMLOCK =
      Pattern.compile("Max locked memory +(?<soft>\\w+) .*", Pattern.CASE_INSENSITIVE);
  private static final Pattern UID = Pattern.compile("Uid:\\s+\\d+\\s+(?<effective>\\d+).*");
  private static final int KIB = 1024;

  static KernelFacts read(HostPaths paths) {
    Path sys = paths.sys();
    Path proc = paths.proc();
    Matcher lockdown = CHOSEN.matcher(SysFiles.text(sys.resolve("kernel/security/lockdown")));
    return new KernelFacts(
        SysFiles.text(proc.resolve("sys/kernel/osrelease")),
        SysFiles.text(proc.resolve("cmdline")),
        lockdown.find() ? lockdown.group("word") : "",
        secureBoot(SysFiles.bytes(sys.resolve(SECURE_BOOT))),
        hugePages(sys.resolve("kernel/mm/hugepages")),
        memlock(SysFiles.lines(proc.resolve("self/limits"))),
        userId(SysFiles.lines(proc.resolve("self/status"))));
  }

  private static SecureBoot secureBoot(byte[] variable) {
    if (variable.length <= EFI_ATTRIBUTES) {
      return SecureBoot.UNKNOWN;
    }
    return variable[EFI_ATTRIBUTES] == 1 ? SecureBoot.ON : SecureBoot.OFF;
  }

  private static List<HugePages> hugePages(Path folder) {
    List<HugePages> pools = new ArrayList<>();
    for (Path pool : SysFiles.children(folder)) {
      Matcher matcher = POOL.matcher(SysFiles.name(pool));
      if (matcher.matches()) {
        pools.add(
            new HugePages(
                Long.parseLong(matcher.group("kib")) * KIB,
                SysFiles.number(pool.resolve("nr_hugepages"), 0),
                SysFiles.number(pool.resolve("free_hugepages"), 0)));
      }
    }
    return pools;
  }

  private static OptionalLong memlock(List<String> limits) {
    for (String line : limits) {
      Matcher matcher = MEMLOCK.matcher(line);
      if (matcher.matches() && !matcher.group("soft").equals("unlimited")) {
        return OptionalLong.of(Long.parseUnsignedLong(matcher.group("soft")));
      }
    }
    return OptionalLong.empty();
  }

  private static OptionalInt userId(List<String> status) {
    for (String line : status) {
      Matcher matcher = UID.matcher(line);
      if (matcher.matches()) {
        return OptionalInt.of(Integer.parseUnsignedInt(matcher.group("effective")));
      }
    }
    return OptionalInt.empty();
  }

  /** Whether the release is at least this; false if it is not told. */
  public boolean atLeast(int major, int minor) {
    Matcher matcher = RELEASE.matcher(release);
    if (!matcher.matches()) {
      return false;
    }
    int own = Integer.parseInt(matcher.group("major"));
    return own > major || (own == major && Integer.parseInt(matcher.group("minor")) >= minor);
  }

  /** Whether this process has root's rights; true if it is not told, to let the kernel decide. */
  public boolean root() {
    return userId.orElse(0) == 0;
  }
}
