package io.gpunvme.storage.fs.ext4;

import io.gpunvme.storage.fs.FileExtent;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/**
 * Makes the extents of a file from parts in ascending order: neighbours become one, gaps read as
 * zeros, and what lies behind the end of the file is cut off.
 */
final class MapBuilder {
  private final long size;
  private final List<FileExtent> extents = new ArrayList<>();
  private long end;

  MapBuilder(long size) {
    this.size = size;
  }

  /**
   * Adds a part.
   *
   * @param fileOffset not before the end of the part before
   * @param deviceOffset or {@link FileExtent#ZEROS}
   */
  void add(long fileOffset, long length, long deviceOffset) {
    long gap = Math.min(fileOffset, size) - end;
    if (gap > 0) {
      append(gap, FileExtent.ZEROS);
    }
    long left = Math.min(length, size - fileOffset);
    if (left > 0) {
      append(left, deviceOffset);
    }
  }

  private void append(long length, long deviceOffset) {
    FileExtent before = extents.isEmpty() ? null : extents.getLast();
    if (before != null && continues(before, deviceOffset)) {
      extents.removeLast();
      extents.add(
          new FileExtent(before.fileOffset(), before.length() + length, before.deviceOffset()));
    } else {
      extents.add(new FileExtent(end, length, deviceOffset));
    }
    end += length;
  }

  private static boolean continues(FileExtent before, long deviceOffset) {
    return before.isZeros()
        ? deviceOffset == FileExtent.ZEROS
        : before.deviceOffset() + before.length() == deviceOffset;
  }

  /** All of them, from byte 0 to the file's size. */
  List<FileExtent> finish() {
    add(size, 0, FileExtent.ZEROS);
    return Collections.unmodifiableList(extents);
  }
}
