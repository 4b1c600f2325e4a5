package io.gpunvme.ffi;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/**
 * Small files of sysfs and procfs. What cannot be read reads as empty: a picture of a machine has
 * gaps where its reader lacks rights or the kernel lacks a feature, and is useful all the same.
 */
public final class SysFiles {
  private SysFiles() {}

  /** The text without blanks at its ends; empty if it cannot be read. */
  public static String text(Path file) {
    try {
      // Any byte is a character: the kernel shows names of devices that are not UTF-8.
      return new String(Files.readAllBytes(file), StandardCharsets.ISO_8859_1).strip();
    } catch (IOException e) {
      return "";
    }
  }

  /** Its lines, none if it cannot be read. */
  public static List<String> lines(Path file) {
    return text(file).lines().toList();
  }

  /** The bytes; none if it cannot be read. */
  public static byte[] bytes(Path file) {
    try {
      return Files.readAllBytes(file);
    } catch (IOException e) {
      return new byte[0];
    }
  }

  /** A number, decimal or {@code 0x…}; {@code missing} if it cannot be read or is none. */
  public static long number(Path file, long missing) {
    try {
      return Long.decode(text(file));
    } catch (NumberFormatException e) {
      return missing;
    }
  }

  /** The last name of what a symbolic link points to; empty if it is none. */
  public static String linkName(Path link) {
    try {
      return name(Files.readSymbolicLink(link));
    } catch (IOException e) {
      return "";
    }
  }

  /** What is in a folder, by name; nothing if it is none. */
  public static List<Path> children(Path folder) {
    List<Path> found = new ArrayList<>();
    try (DirectoryStream<Path> children = Files.newDirectoryStream(folder)) {
      children.forEach(found::add);
    } catch (IOException e) {
      return List.of();
    }
    found.sort(Comparator.naturalOrder());
    return found;
  }

  /** The names in a folder, sorted; none if it is none. */
  public static List<String> names(Path folder) {
    return children(folder).stream().map(SysFiles::name).toList();
  }

  /** The last name of a path; empty for a root. */
  public static String name(Path path) {
    Path last = path.getFileName();
    return last == null ? "" : last.toString();
  }

  /** The path with its symbolic links followed; itself if that cannot be done. */
  public static Path real(Path path) {
    try {
      return path.toRealPath();
    } catch (IOException e) {
      return path;
    }
  }
}
