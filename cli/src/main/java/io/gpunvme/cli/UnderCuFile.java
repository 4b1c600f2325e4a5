package io.gpunvme.cli;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * What a file becomes for a program under {@code gpunvme cufile}. The library decides it by itself
 * when the program registers the file: {@code capi/src/main/cufile/places.c}.
 *
 * @param kind in one word
 * @param address the storage that takes the file's place; null: none does
 * @param text the same for people
 */
record UnderCuFile(Kind kind, @Nullable String address, String text) {
  private static final String VARIABLE = "GPUNVME_CUFILE_MAP";
  private static final String PREFIX = "gpunvme:";
  private static final int MOST_BYTES = 4096; // PATH_MAX
  private static final String WRITABLE = ":rw";

  enum Kind {
    /** Read and written by the library itself, through the kernel. */
    FILE,
    /** On an SSD of ours, by the map. */
    MAPPED,
    /** Its content is an address. */
    ADDRESS
  }

  /** What the file becomes where the map is that of {@code environment}. */
  static UnderCuFile of(Path file, Map<String, String> environment) throws IOException {
    Path real = file.toRealPath();
    // Of the folders that it is below, the longest counts.
    Path longest = Path.of("");
    String device = "";
    String rest = environment.getOrDefault(VARIABLE, "");
    while (!rest.isEmpty()) {
      // Addresses have commas, too: an entry ends where the next folder begins.
      int comma = rest.indexOf(",/");
      String entry = comma < 0 ? rest : rest.substring(0, comma);
      int equals = entry.indexOf('=');
      if (!entry.startsWith("/") || equals < 0) {
        if (longest.isAbsolute()) {
          break;
        }
        return plain("; " + VARIABLE + " has no /FOLDER=ADDRESS where it says '" + rest + "'");
      }
      Path folder = real(Path.of(entry.substring(0, equals)));
      if (real.startsWith(folder)
          && !real.equals(folder)
          && folder.toString().length() > longest.toString().length()) {
        longest = folder;
        device = entry.substring(equals + 1);
      }
      rest = comma < 0 ? "" : rest.substring(comma + 1);
    }
    return longest.isAbsolute() ? mapped(device, "/" + longest.relativize(real)) : named(file);
  }

  /** Without symbolic links, as the kernel tells the paths of open files. */
  private static Path real(Path folder) {
    try {
      return folder.toRealPath();
    } catch (IOException e) {
      return folder; // it is not there
    }
  }

  private static UnderCuFile mapped(String device, String path) {
    boolean writable = device.endsWith(WRITABLE);
    String address =
        (writable ? device.substring(0, device.length() - WRITABLE.length()) : device) + ":" + path;
    return new UnderCuFile(
        Kind.MAPPED,
        address,
        "mapped to %s by %s, for %s"
            .formatted(address, VARIABLE, writable ? "reading and writing" : "reading"));
  }

  private static UnderCuFile named(Path file) throws IOException {
    long bytes = Files.isRegularFile(file) ? Files.size(file) : 0;
    if (bytes > PREFIX.length() && bytes < MOST_BYTES) {
      String text = new String(Files.readAllBytes(file), ISO_8859_1).replaceFirst("[\r\n]+$", "");
      // In one line; others are files that happen to begin so.
      if (text.matches(PREFIX + "[^\\s\0][^\r\n\0]*")) {
        String address = text.substring(PREFIX.length());
        return new UnderCuFile(
            Kind.ADDRESS, address, "its content is an address, so it becomes " + address);
      }
    }
    return plain("");
  }

  private static UnderCuFile plain(String more) {
    return new UnderCuFile(
        Kind.FILE, null, "an ordinary file, through the kernel and pinned memory" + more);
  }
}
