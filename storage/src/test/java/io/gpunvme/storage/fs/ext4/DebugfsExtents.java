package io.gpunvme.storage.fs.ext4;

import io.gpunvme.storage.fs.FileExtent;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Where files' bytes are as debugfs has it: block of the file to block of the device. */
final class DebugfsExtents {
  private static final Pattern BLOCKS =
      Pattern.compile("\\((\\d+)(?:-(\\d+))?(\\[u])?\\):(\\d+)(?:-(\\d+))?");

  private DebugfsExtents() {}

  /** Of each inode the written blocks that are before its size. */
  static Map<Long, Map<Long, Long>> of(Path image, Collection<Long> inodes) {
    List<String> requests = new ArrayList<>();
    for (long inode : inodes) {
      requests.add("stat <%d>".formatted(inode));
    }
    Map<Long, Map<Long, Long>> all = new HashMap<>();
    String answer = E2fs.debug(image, requests);
    for (String part : answer.split("(?m)^debugfs: ")) {
      Matcher number = Pattern.compile("^Inode: (\\d+)", Pattern.MULTILINE).matcher(part);
      if (number.find()) {
        all.put(Long.parseLong(number.group(1)), blocks(part));
      }
    }
    return all;
  }

  private static Map<Long, Long> blocks(String text) {
    Map<Long, Long> blocks = new TreeMap<>();
    Matcher m = BLOCKS.matcher(text);
    while (m.find()) {
      long first = Long.parseLong(m.group(1));
      long last = m.group(2) == null ? first : Long.parseLong(m.group(2));
      long device = Long.parseLong(m.group(4));
      for (long i = first; m.group(3) == null && i <= last; i++) {
        blocks.put(i, device + i - first);
      }
    }
    return blocks;
  }

  /** The same of ours. */
  static Map<Long, Long> of(List<FileExtent> extents, int blockSize) {
    Map<Long, Long> blocks = new TreeMap<>();
    for (FileExtent extent : extents) {
      for (long at = 0; !extent.isZeros() && at < extent.length(); at += blockSize) {
        blocks.put(
            (extent.fileOffset() + at) / blockSize, (extent.deviceOffset() + at) / blockSize);
      }
    }
    return blocks;
  }
}
