package io.gpunvme.storage.fs;

import io.gpunvme.base.InvalidRequestException;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A file on a device, written {@code DEVICE[#N]:/PATH}: {@code vfio:0000:01:00.0:/models/a.gguf},
 * {@code sim:file=disk.img#1:/a}, {@code disk.img:/a}. Without a path it is the root folder.
 *
 * <p>The last {@code :/} ends the device, unless it follows a bare scheme, as in {@code
 * file:/disk.img}. A backslash makes a {@code :/} or {@code #} after it an ordinary part of the
 * name; two backslashes there stand for one.
 *
 * @param device the device that holds the file system, as {@code StorageAddress} reads it, or a
 *     file's name
 * @param partition its number, or 0 if none is given
 * @param path of the file, with a slash in front
 * @param explicit whether a path was given
 */
public record FileAddress(String device, int partition, String path, boolean explicit) {
  private static final String END = ":/";

  /** Schemes that a slash may follow, at the start of an address or of one inside another. */
  private static final Pattern SCHEME =
      Pattern.compile("(^|[:,;=])(file|vfio-user|kmod|stripe|replica)$");

  private static final Pattern PARTITION =
      Pattern.compile("(?<device>.*?)(?<escape>\\\\*)#(?<number>\\d{1,4})", Pattern.DOTALL);

  /**
   * Reads an address. Opening it shows whether there are such a device and file.
   *
   * @throws InvalidRequestException if it names no device, or partition 0
   */
  public static FileAddress parse(String text) {
    int end = end(text);
    String front = end < 0 ? text : text.substring(0, end - backslashes(text, end) / 2);
    String path = end < 0 ? "/" : unescape(text.substring(end + 1));
    int partition = 0;
    Matcher numbered = PARTITION.matcher(front);
    if (numbered.matches()) {
      String escape = numbered.group("escape");
      String kept = "\\".repeat(escape.length() / 2);
      if (escape.length() % 2 == 0) {
        partition = Integer.parseInt(numbered.group("number"));
        front = numbered.group("device") + kept;
        if (partition == 0) {
          throw new InvalidRequestException("'" + text + "': partitions are numbered from 1");
        }
      } else {
        front = numbered.group("device") + kept + "#" + numbered.group("number");
      }
    }
    if (front.isEmpty()) {
      throw new InvalidRequestException("'" + text + "' names no device: DEVICE[#N]:/PATH");
    }
    return new FileAddress(unescape(front), partition, path, end >= 0);
  }

  /** Where the device ends; -1 if there is no path. */
  private static int end(String text) {
    for (int at = text.lastIndexOf(END); at >= 0; at = text.lastIndexOf(END, at - 1)) {
      boolean escaped = backslashes(text, at) % 2 == 1;
      if (!escaped && !SCHEME.matcher(text.substring(0, at)).find()) {
        return at;
      }
    }
    return -1;
  }

  private static int backslashes(String text, int before) {
    int count = 0;
    while (count < before && text.charAt(before - 1 - count) == '\\') {
      count++;
    }
    return count;
  }

  /** Halves the backslashes before each {@code :/}. */
  private static String unescape(String text) {
    StringBuilder plain = new StringBuilder();
    int from = 0;
    for (int at = text.indexOf(END); at >= 0; at = text.indexOf(END, at + 1)) {
      int escape = backslashes(text, at);
      plain.append(text, from, at - (escape + 1) / 2).append(END, 0, 1);
      from = at + 1;
    }
    return plain.append(text, from, text.length()).toString();
  }

  /** The same device with another path. */
  public FileAddress with(String other) {
    return new FileAddress(device, partition, other, true);
  }

  /** The address as it is written, but for backslashes. */
  @Override
  public String toString() {
    return device + (partition == 0 ? "" : "#" + partition) + ":" + path;
  }
}
