package io.gpunvme.storage.fs.fat;

import io.gpunvme.storage.fs.FileExtent;
import io.gpunvme.storage.fs.FileNode;
import io.gpunvme.storage.fs.FileSystem;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/** Looks at everything in a file system. */
final class Trees {
  private Trees() {}

  static List<FileNode.Entry> entries(FileNode folder) {
    List<FileNode.Entry> entries = new ArrayList<>();
    folder.list(entries::add);
    return entries;
  }

  static List<String> names(FileSystem fs, String path) {
    return entries(fs.find(path, true)).stream().map(FileNode.Entry::name).toList();
  }

  static byte[] read(FileNode file) {
    byte[] all = new byte[(int) file.size()];
    file.read(0, MemorySegment.ofArray(all));
    return all;
  }

  /** Whether extents cover a file from start to end, and lie on the device. */
  static void check(FileNode file, long deviceBytes) {
    long at = 0;
    for (FileExtent e : file.extents()) {
      if (e.fileOffset() != at
          || e.length() <= 0
          || e.deviceOffset() < 0
          || e.length() > deviceBytes - e.deviceOffset()) {
        throw new AssertionError(e + " after byte " + at);
      }
      at = e.end();
    }
    if (at != file.size()) {
      throw new AssertionError("extents end at " + at + " of " + file.size());
    }
  }
}
