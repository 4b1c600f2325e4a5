package io.gpunvme.nvme;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * What a process holds that it has to give back: descriptors, mapped memory files, threads that
 * serve sockets. For tests: the same before and after.
 *
 * @param descriptors open ones by what they are, without the numbers of sockets and pipes, with the
 *     paths of sockets
 * @param sharedMappings mapped memory files by name
 * @param threads those of vfio-user
 */
public record Footprint(
    Map<String, Integer> descriptors, Map<String, Integer> sharedMappings, long threads) {
  private static final long PATIENCE_NANOS = 20_000_000_000L;

  /** Of this process. */
  public static Footprint here() {
    long threads =
        Thread.getAllStackTraces().keySet().stream()
            .filter(t -> t.getName().startsWith("vfio-user"))
            .count();
    return new Footprint(descriptors(ownPid()), mappings(ownPid()), threads);
  }

  /** Of another process of this user; its threads are not counted. */
  public static Footprint of(long pid) {
    return new Footprint(descriptors(pid), mappings(pid), 0);
  }

  private static long ownPid() {
    return ProcessHandle.current().pid();
  }

  /** Waits until this process holds what it did. */
  public void awaitHere(String what) {
    await(what, ownPid());
  }

  /** Waits until another process holds what it did. */
  public void await(String what, long pid) {
    long end = System.nanoTime() + PATIENCE_NANOS;
    Footprint now = pid == ownPid() ? here() : of(pid);
    while (!now.equals(this)) {
      if (System.nanoTime() > end) {
        throw new AssertionError(what + ": held before\n" + this + "\nand now\n" + now);
      }
      pause();
      now = pid == ownPid() ? here() : of(pid);
    }
  }

  private static void pause() {
    try {
      Thread.sleep(5);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new AssertionError(e);
    }
  }

  private static Map<String, Integer> descriptors(long pid) {
    Map<String, Integer> all = new TreeMap<>();
    try (Stream<Path> fds = Files.list(Path.of("/proc", Long.toString(pid), "fd"))) {
      Map<String, String> sockets = sockets(pid);
      for (Path fd : fds.toList()) {
        String target = target(fd, sockets);
        if (!isOfVirtualMachine(target)) {
          all.merge(target, 1, Integer::sum);
        }
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return all;
  }

  /**
   * The folder that is being read, jars, which class loading opens whenever it likes, and the
   * socket that stays once a tool has attached, for example {@code jstack}.
   */
  private static boolean isOfVirtualMachine(String target) {
    return target.isEmpty()
        || target.startsWith("/proc/")
        || target.endsWith(".jar")
        || target.contains("/.java_pid");
  }

  private static String target(Path fd, Map<String, String> sockets) {
    try {
      String target = Files.readSymbolicLink(fd).toString();
      String path = sockets.get(target);
      return target.replaceAll("\\[\\d+\\]", "") + (path == null ? "" : path);
    } catch (IOException e) {
      return "";
    }
  }

  /** The paths of UNIX sockets, of those that listen and those that were accepted there. */
  private static Map<String, String> sockets(long pid) throws IOException {
    // Num RefCount Protocol Flags Type St Inode Path; abstract names may be any bytes.
    Path file = Path.of("/proc", Long.toString(pid), "net", "unix");
    try (Stream<String> lines = Files.lines(file, StandardCharsets.ISO_8859_1)) {
      return lines
          .map(l -> l.trim().split("\\s+", 8))
          .filter(words -> words.length == 8)
          .collect(Collectors.toMap(w -> "socket:[" + w[6] + "]", w -> w[7], (a, b) -> a));
    }
  }

  private static Map<String, Integer> mappings(long pid) {
    try (Stream<String> lines = Files.lines(Path.of("/proc", Long.toString(pid), "maps"))) {
      return lines
          .filter(l -> l.contains("/memfd:"))
          .map(l -> l.substring(l.indexOf("/memfd:")))
          .collect(Collectors.toMap(l -> l, l -> 1, Integer::sum, TreeMap::new));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** How many descriptors. */
  public int descriptorCount() {
    return descriptors.values().stream().mapToInt(Integer::intValue).sum();
  }

  /** How many mappings of memory files. */
  public int mappingCount() {
    return sharedMappings.values().stream().mapToInt(Integer::intValue).sum();
  }
}
