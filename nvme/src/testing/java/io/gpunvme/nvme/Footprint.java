package io.gpunvme.nvme;

import java.io.IOException;
import java.io.UncheckedIOException;
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
 * @param descriptors open ones by what they are, without the numbers of sockets and pipes
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
      for (Path fd : fds.toList()) {
        String target = target(fd);
        // The folder that is being read, and jars, which class loading opens whenever it likes.
        if (!target.isEmpty() && !target.startsWith("/proc/") && !target.endsWith(".jar")) {
          all.merge(target, 1, Integer::sum);
        }
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return all;
  }

  private static String target(Path fd) {
    try {
      return Files.readSymbolicLink(fd).toString().replaceAll("\\[\\d+\\]", "");
    } catch (IOException e) {
      return "";
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
