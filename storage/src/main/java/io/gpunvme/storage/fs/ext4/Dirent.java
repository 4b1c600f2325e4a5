package io.gpunvme.storage.fs.ext4;

import io.gpunvme.storage.fs.FileNode.Kind;
import org.jspecify.annotations.Nullable;

/**
 * A name in a folder.
 *
 * @param inode its number
 * @param type as the folder has it; 0: it does not say
 * @see <a
 *     href="https://docs.kernel.org/filesystems/ext4/directory.html#linear-classic-directories">
 *     Linear (Classic) Directories</a>
 */
@SuppressWarnings("ArrayRecordComponent") // never compared
record Dirent(long inode, int type, byte[] name) {
  private static final int FIXED = 8;
  private static final int SHORTEST = 12;

  /** Who is told of names. */
  @FunctionalInterface
  interface Visitor {
    /** Returns whether to go on. */
    boolean visit(Dirent entry);
  }

  /** What it is, if the folder says so. */
  @Nullable Kind kind() {
    return switch (type) {
      case 1 -> Kind.FILE;
      case 2 -> Kind.FOLDER;
      case 3, 4, 5, 6 -> Kind.OTHER;
      case 7 -> Kind.LINK;
      default -> null;
    };
  }

  /**
   * Tells of all names in a block but {@code .} and {@code ..}.
   *
   * @param place the block, for messages
   * @return whether to go on
   */
  static boolean scan(Ext4Volume volume, Bytes block, String place, Visitor visitor) {
    boolean typed = volume.superBlock.features.incompat(Ext4Features.FILETYPE);
    int length;
    for (int at = 0; at < block.length(); at += length) {
      length = checkedLength(volume, block, at, place);
      long inode = block.u32(at);
      if (inode == 0) {
        continue;
      }
      byte[] name = block.copy(at + FIXED, block.u8(at + 6));
      checkName(volume, name, at, place);
      if (inode > volume.superBlock.inodes) {
        throw volume.corrupt(
            place,
            "the entry at byte %d names inode %d, which does not exist".formatted(at, inode));
      }
      boolean dots = name[0] == '.' && (name.length == 1 || name.length == 2 && name[1] == '.');
      if (!dots && !visitor.visit(new Dirent(inode, typed ? block.u8(at + 7) : 0, name))) {
        return false;
      }
    }
    return true;
  }

  /** Bytes from an entry to the next; both are in the block. */
  private static int checkedLength(Ext4Volume volume, Bytes block, int at, String place) {
    int left = block.length() - at;
    if (left < SHORTEST) {
      throw volume.corrupt(place, "no entry can be in the %d bytes at %d".formatted(left, at));
    }
    int length = length(block, at);
    if (length < SHORTEST
        || length % 4 != 0
        || length > left
        || FIXED + block.u8(at + 6) > length) {
      throw volume.corrupt(
          place,
          "the entry at byte %d has %d bytes and a name of %d"
              .formatted(at, length, block.u8(at + 6)));
    }
    return length;
  }

  /** Blocks of 64 KiB have entries longer than 16 bits can say. */
  static int length(Bytes block, int at) {
    int length = block.u16(at + 4);
    if (length == 0 || length == 0xFFFF) {
      return 1 << 16;
    }
    return length & ~3 | (length & 3) << 16;
  }

  private static void checkName(Ext4Volume volume, byte[] name, int at, String place) {
    boolean good = name.length > 0;
    for (byte b : name) {
      good &= b != 0 && b != '/';
    }
    if (!good) {
      throw volume.corrupt(place, "the name at byte %d is '%s'".formatted(at, Names.text(name)));
    }
  }
}
