package io.gpunvme.tools.bench;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;

/**
 * Processor time of this process, in user and system mode, from proc(5); to a hundredth of a
 * second.
 */
final class ProcessorTime {
  private static final Path SELF = Path.of("/proc/self");

  /** USER_HZ, which is 100 on every architecture that we run on. */
  private static final double TICKS_PER_SECOND = 100;

  /** The fields behind the name, counted from state: utime and stime (proc(5)). */
  private static final int UTIME = 11;

  private static final int STIME = 12;

  private ProcessorTime() {}

  /** Seconds of all threads, those that have ended included. */
  static double all() {
    return seconds(SELF.resolve("stat"));
  }

  /**
   * Seconds of the threads that are alive and whose names start so; the kernel knows 15 letters.
   */
  static double threads(String prefix) {
    try (Stream<Path> tasks = Files.list(SELF.resolve("task"))) {
      List<Path> own = tasks.filter(t -> text(t.resolve("comm")).startsWith(prefix)).toList();
      return own.stream().mapToDouble(t -> seconds(t.resolve("stat"))).sum();
    } catch (IOException e) {
      return 0;
    }
  }

  private static double seconds(Path stat) {
    String text = text(stat);
    // The name is in brackets and may hold anything.
    int name = text.lastIndexOf(')');
    if (name < 0) {
      return 0;
    }
    String[] fields = text.substring(name + 1).trim().split(" ");
    return (Long.parseLong(fields[UTIME]) + Long.parseLong(fields[STIME])) / TICKS_PER_SECOND;
  }

  /** A thread that has ended meanwhile has none. */
  private static String text(Path file) {
    try {
      return Files.readString(file, StandardCharsets.ISO_8859_1);
    } catch (IOException e) {
      return "";
    }
  }
}
