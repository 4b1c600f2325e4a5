package io.gpunvme.cli;

import io.gpunvme.tools.ssd.BorrowedBlocks;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Stream;

/**
 * Temporary files and folders, deleted when their command is done with them or the process is told
 * to end, whichever comes first. Safe for all threads.
 */
final class Leftovers {
  private static final Set<Path> OPEN = ConcurrentHashMap.newKeySet();

  /** A folder may get another file while it is being emptied. */
  private static final int ATTEMPTS = 3;

  private Leftovers() {}

  /** Deletes all that there are; returns whether there were any. */
  static boolean deleteAll() {
    List<Path> all = List.copyOf(OPEN);
    all.forEach(Leftovers::delete);
    return all.stream().anyMatch(path -> !Files.exists(path));
  }

  /**
   * Takes charge of a file or folder that need not exist yet.
   *
   * @throws IllegalStateException if the process is ending: nobody would delete it later
   */
  static Path add(Path path) {
    OPEN.add(path);
    // Whoever ends the process says so before it deletes, so one of the two sees the other.
    if (Ending.begun()) {
      delete(path);
      throw new IllegalStateException("the process is told to end: " + path);
    }
    return path;
  }

  /** Gives up charge of it: it will not be deleted. */
  static void keep(Path path) {
    OPEN.remove(path);
  }

  /** Deletes it, unless somebody has given up charge of it. */
  static void deleteUnlessKept(Path path) {
    if (OPEN.contains(path)) {
      delete(path);
    }
  }

  /** Deletes it with everything in it, unless it has blocks that are not back on their SSD. */
  static void delete(Path path) {
    if (BorrowedBlocks.missing(path).isPresent()) {
      OPEN.remove(path);
      return;
    }
    for (int i = 0; i < ATTEMPTS && !deleted(path); i++) {
      Thread.onSpinWait();
    }
    OPEN.remove(path);
  }

  private static boolean deleted(Path path) {
    if (!Files.exists(path)) {
      return true;
    }
    try (Stream<Path> tree = Files.walk(path)) {
      for (Path entry : tree.sorted(Comparator.reverseOrder()).toList()) {
        Files.deleteIfExists(entry);
      }
      return true;
    } catch (IOException e) {
      return false;
    }
  }
}
