package io.gpunvme.storage.injection;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.ForkJoinWorkerThread;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * What this process holds that would be left behind by somebody who does not clean up.
 *
 * @param descriptors what each is open on
 * @param mappings of a file, of rings, and of memory that our classes allocated; each with its
 *     length
 * @param bytes in those mappings
 * @param locked lines of {@code /proc/self/status}: how much memory is locked, and pinned
 * @param threads of Java
 */
public record OwnProcess(
    List<String> descriptors,
    List<String> mappings,
    long bytes,
    List<String> locked,
    Set<Thread> threads) {
  private static final long MILLISECONDS = TimeUnit.SECONDS.toMillis(10);

  /**
   * As it is now.
   *
   * @param file whose mappings count
   */
  public static OwnProcess now(Path file) {
    List<String> mappings =
        maps()
            .filter(
                line ->
                    line.contains(file.toString())
                        || line.contains("gpunvme")
                        || line.contains("[io_uring]"))
            .toList();
    List<String> named = mappings.stream().map(l -> length(l) + " " + l.split(" +", 6)[5]).toList();
    return new OwnProcess(
        openOn(),
        named.stream().sorted().toList(),
        mappings.stream().mapToLong(OwnProcess::length).sum(),
        lines("/proc/self/status").filter(line -> line.matches("Vm(Lck|Pin):.*")).toList(),
        Thread.getAllStackTraces().keySet().stream()
            .filter(thread -> !isCommon(thread))
            .collect(Collectors.toUnmodifiableSet()));
  }

  /** Of the pool that Java keeps for everybody: with many processors it has threads for a while. */
  private static boolean isCommon(Thread thread) {
    return thread instanceof ForkJoinWorkerThread worker
        && worker.getPool() == ForkJoinPool.commonPool();
  }

  /** The lines of {@code /proc/self/maps}. */
  public static Stream<String> maps() {
    return lines("/proc/self/maps");
  }

  private static Stream<String> lines(String file) {
    try {
      return Files.readAllLines(Path.of(file)).stream();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static long length(String mapping) {
    String[] range = mapping.substring(0, mapping.indexOf(' ')).split("-");
    return Long.parseUnsignedLong(range[1], 16) - Long.parseUnsignedLong(range[0], 16);
  }

  /** What the open descriptors are open on, without that of looking. */
  public static List<String> openOn() {
    try (Stream<Path> all = Files.list(Path.of("/proc/self/fd"))) {
      return all.map(OwnProcess::target)
          .filter(Objects::nonNull)
          .filter(name -> !name.matches("/proc/\\d+/fd"))
          .sorted()
          .toList();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static String target(Path descriptor) {
    try {
      return Files.readSymbolicLink(descriptor).toString();
    } catch (IOException e) {
      return null; // It was closed meanwhile.
    }
  }

  /** Fails unless the process holds now what it held then; ending threads may come to their end. */
  public void assertUnchanged(Path file) throws InterruptedException {
    for (Thread thread : now(file).threads) {
      if (!threads.contains(thread)) {
        thread.join(MILLISECONDS);
        assertThat(thread.isAlive()).as("%s", thread).isFalse();
      }
    }
    OwnProcess after = now(file);
    assertThat(more(after.descriptors, descriptors)).as("descriptors left open").isEmpty();
    assertThat(more(after.mappings, mappings)).as("mappings left").isEmpty();
    assertThat(after.descriptors).isEqualTo(descriptors);
    assertThat(after.mappings).isEqualTo(mappings);
    assertThat(after.bytes).isEqualTo(bytes);
    assertThat(after.locked).isEqualTo(locked);
  }

  /** What is in the one and not in the other, as often as it is. */
  private static List<String> more(List<String> after, List<String> before) {
    List<String> more = new ArrayList<>(after);
    before.forEach(more::remove);
    return more;
  }
}
