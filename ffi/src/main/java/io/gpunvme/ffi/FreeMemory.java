package io.gpunvme.ffi;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * How much memory this process may still have before the kernel ends somebody: the system promises
 * more than there is, and says nothing when it is used up.
 *
 * <p>The smallest of what the machine has and what each control group (version 1 or 2) that the
 * process is in allows. The page cache counts as free, but for a part that programs run from.
 * Figures that cannot be read limit nothing, unless they could be read before: a control group
 * without memory has none for the reading of its files either. Figures change all the time, so an
 * answer is an estimate. Safe for all threads.
 */
public final class FreeMemory {
  /** No limit is known. */
  public static final long UNKNOWN = Long.MAX_VALUE;

  private static final long KIB = 1024;

  /** Version 1 says that there is no limit by a number a little below 2^63. */
  private static final long OLD_UNLIMITED = 1L << 62;

  /** Of a group's page cache, what is not counted on: this, or half of it if that is less. */
  private static final long RUN_FROM = 32L << 20;

  private final Path proc;
  private final Path groups;

  /** Control groups that were seen to limit. */
  private final Set<Path> limiting = ConcurrentHashMap.newKeySet();

  /** What {@code self/cgroup} said last. */
  private volatile List<String> ownGroups = List.of();

  /**
   * Over files of that shape.
   *
   * @param proc as {@code /proc}
   * @param groups as {@code /sys/fs/cgroup}
   */
  public FreeMemory(Path proc, Path groups) {
    this.proc = proc;
    this.groups = groups;
  }

  /** Of this process. */
  public static FreeMemory here() {
    return new FreeMemory(Path.of("/proc"), Path.of("/sys/fs/cgroup"));
  }

  /** Bytes that may be taken now: available memory and free swap; {@link #UNKNOWN} if unknown. */
  public long available() {
    long memory = kilobytes("MemAvailable");
    long swap = kilobytes("SwapFree");
    long least = memory == UNKNOWN ? UNKNOWN : memory + known(swap);
    for (Path group : upwards(unified(), groups)) {
      least = Math.min(least, room(group, swap));
    }
    Path old = groups.resolve("memory");
    for (Path group : upwards(old(), old)) {
      least = Math.min(least, oldRoom(group));
    }
    return least;
  }

  /** Bytes that this process could have if nobody else had any; {@link #UNKNOWN} if unknown. */
  public long most() {
    long memory = kilobytes("MemTotal");
    long swap = kilobytes("SwapTotal");
    long least = memory == UNKNOWN ? UNKNOWN : memory + known(swap);
    for (Path group : upwards(unified(), groups)) {
      long max = number(group, "memory.max");
      long extra = Math.min(known(swap), number(group, "memory.swap.max"));
      least = Math.min(least, max == UNKNOWN ? UNKNOWN : max + extra);
    }
    Path old = groups.resolve("memory");
    for (Path group : upwards(old(), old)) {
      least = Math.min(least, number(group, "memory.limit_in_bytes"));
    }
    return least;
  }

  private static long known(long value) {
    return value == UNKNOWN ? 0 : value;
  }

  /** A group and all that it is in. */
  private static List<Path> upwards(Path group, Path top) {
    List<Path> all = new ArrayList<>();
    Path next = group;
    while (next != null && next.startsWith(top)) {
      all.add(next);
      next = next.getParent();
    }
    return all;
  }

  // ---- version 2

  private Path unified() {
    return group(groups, "0::");
  }

  private long room(Path group, long freeSwap) {
    String limit = SysFiles.text(group.resolve("memory.max"));
    if (limit.equals("max")) {
      limiting.remove(group);
      return UNKNOWN;
    }
    long max = parse(limit);
    long current = number(group, "memory.current");
    if (max == UNKNOWN || current == UNKNOWN) {
      return unread(group);
    }
    limiting.add(group);
    long swapMax = number(group, "memory.swap.max");
    long swapCurrent = known(number(group, "memory.swap.current"));
    long swap = Math.min(known(freeSwap), Math.max(0, swapMax - swapCurrent));
    return Math.max(0, max - current + cache(group, "inactive_file ", "active_file ")) + swap;
  }

  // ---- version 1

  private Path old() {
    for (String line : ownGroups()) {
      String[] fields = line.split(":", 3);
      if (fields.length == 3 && List.of(fields[1].split(",")).contains("memory")) {
        return below(groups.resolve("memory"), fields[2]);
      }
    }
    return groups.resolve("memory");
  }

  private long oldRoom(Path group) {
    long max = number(group, "memory.limit_in_bytes");
    long current = number(group, "memory.usage_in_bytes");
    if (max == UNKNOWN || current == UNKNOWN) {
      return unread(group);
    }
    if (max >= OLD_UNLIMITED) {
      limiting.remove(group);
      return UNKNOWN;
    }
    limiting.add(group);
    return Math.max(0, max - current + cache(group, "total_inactive_file ", "total_active_file "));
  }

  /** The room in a group whose figures cannot be read, or that has no limit. */
  private long unread(Path group) {
    return limiting.contains(group) ? 0 : UNKNOWN;
  }

  // ---- files

  private List<String> ownGroups() {
    List<String> now = SysFiles.lines(proc.resolve("self/cgroup"));
    if (now.isEmpty()) {
      return ownGroups;
    }
    ownGroups = now;
    return now;
  }

  private Path group(Path top, String prefix) {
    for (String line : ownGroups()) {
      if (line.startsWith(prefix)) {
        return below(top, line.substring(prefix.length()));
      }
    }
    return top;
  }

  /** A container sees its own group as the top, and may still be told the path outside. */
  private static Path below(Path top, String path) {
    Path group = top.resolve(path.replaceFirst("^/+", "")).normalize();
    return group.startsWith(top) && group.toFile().isDirectory() ? group : top;
  }

  /**
   * The page cache, which the kernel gives up first, but for what programs run from: a group that
   * is short of that has somebody ended. The kernel leaves out a part of MemAvailable, too.
   */
  private static long cache(Path group, String... names) {
    long bytes = 0;
    for (String line : SysFiles.lines(group.resolve("memory.stat"))) {
      for (String name : names) {
        if (line.startsWith(name)) {
          bytes += known(parse(line.substring(name.length())));
        }
      }
    }
    return bytes - Math.min(bytes / 2, RUN_FROM);
  }

  private static long number(Path group, String file) {
    return parse(SysFiles.text(group.resolve(file)));
  }

  private static long parse(String text) {
    try {
      return Long.parseLong(text.strip());
    } catch (NumberFormatException e) {
      return UNKNOWN; // "max", or no such file
    }
  }

  private long kilobytes(String name) {
    for (String line : SysFiles.lines(proc.resolve("meminfo"))) {
      if (line.startsWith(name + ":")) {
        long value = parse(line.substring(name.length() + 1).replace("kB", ""));
        return value == UNKNOWN ? UNKNOWN : value * KIB;
      }
    }
    return UNKNOWN;
  }
}
