package io.gpunvme.storage.fs.fat;

import io.gpunvme.testing.Programs;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;

/** 7-Zip, a reader of FAT32 that is neither ours nor mtools. */
final class SevenZip {
  private static final String ENTRIES = "----------\n";

  private SevenZip() {}

  /** All files of a volume with their bytes. */
  static Map<String, byte[]> files(Path image) {
    Programs.need("7zip", "7zz");
    String list =
        new String(Programs.run("7zz", "l", "-slt", "-tFAT", image), StandardCharsets.UTF_8);
    // Its files one behind the other, in the order of the list.
    byte[] all = Programs.run("7zz", "x", "-so", "-tFAT", image);
    Map<String, byte[]> files = new HashMap<>();
    int at = 0;
    for (String entry : list.substring(list.indexOf(ENTRIES) + ENTRIES.length()).split("\n\n")) {
      Map<String, String> facts = new HashMap<>();
      for (String line : entry.split("\n")) {
        int equals = line.indexOf(" = ");
        if (equals > 0) {
          facts.put(line.substring(0, equals), line.substring(equals + 3));
        }
      }
      if (facts.containsKey("Path") && "-".equals(facts.get("Folder"))) {
        int size = Integer.parseInt(facts.get("Size"));
        files.put("/" + facts.get("Path"), Arrays.copyOfRange(all, at, at + size));
        at += size;
      }
    }
    if (at != all.length) {
      throw new AssertionError("7zz wrote %d bytes, its list has %d".formatted(all.length, at));
    }
    return files;
  }
}
