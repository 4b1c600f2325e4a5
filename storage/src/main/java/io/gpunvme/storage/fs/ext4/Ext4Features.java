package io.gpunvme.storage.fs.ext4;

import io.gpunvme.storage.fs.FileSystemException;
import io.gpunvme.storage.fs.FileSystemException.Kind;

/**
 * Feature bits of the superblock. Of the incompatible ones only those that are read here are let
 * through; unknown compatible ones, and unknown ones that only forbid writing, change nothing.
 *
 * @see <a href="https://docs.kernel.org/filesystems/ext4/globals.html#super-block">Super Block</a>
 */
final class Ext4Features {
  static final int COMPAT_HAS_JOURNAL = 0x4;
  static final int COMPAT_DIR_INDEX = 0x20;
  static final int COMPAT_SPARSE_SUPER2 = 0x200;

  static final int RO_SPARSE_SUPER = 0x1;
  static final int RO_LARGE_FILE = 0x2;
  static final int RO_BTREE_DIR = 0x4;
  static final int RO_HUGE_FILE = 0x8;
  static final int RO_GDT_CSUM = 0x10;
  static final int RO_BIGALLOC = 0x200;
  static final int RO_METADATA_CSUM = 0x400;

  static final int FILETYPE = 0x2;
  static final int RECOVER = 0x4;
  static final int META_BG = 0x10;
  static final int EXTENTS = 0x40;
  static final int BITS_64 = 0x80;
  static final int MMP = 0x100;
  static final int FLEX_BG = 0x200;
  static final int EA_INODE = 0x400;
  static final int CSUM_SEED = 0x2000;
  static final int LARGEDIR = 0x4000;
  static final int INLINE_DATA = 0x8000;

  /** Some files are encrypted, or some folders fold case; the others are read. */
  static final int ENCRYPT = 0x10000;

  static final int CASEFOLD = 0x20000;

  private static final int READ =
      FILETYPE
          | RECOVER
          | META_BG
          | EXTENTS
          | BITS_64
          | MMP
          | FLEX_BG
          | EA_INODE
          | CSUM_SEED
          | LARGEDIR
          | INLINE_DATA
          | ENCRYPT
          | CASEFOLD;

  private static final int EXT3_INCOMPAT = FILETYPE | RECOVER | META_BG;
  private static final int EXT3_RO = RO_SPARSE_SUPER | RO_LARGE_FILE | RO_BTREE_DIR;

  final int compat;
  final int incompat;
  final int readOnly;

  Ext4Features(int compat, int incompat, int readOnly) {
    this.compat = compat;
    this.incompat = incompat;
    this.readOnly = readOnly;
  }

  boolean compat(int bit) {
    return (compat & bit) != 0;
  }

  boolean incompat(int bit) {
    return (incompat & bit) != 0;
  }

  boolean readOnly(int bit) {
    return (readOnly & bit) != 0;
  }

  /** As {@code blkid} tells them apart. */
  String type() {
    if ((incompat & ~EXT3_INCOMPAT) != 0 || (readOnly & ~EXT3_RO) != 0) {
      return "ext4";
    }
    return compat(COMPAT_HAS_JOURNAL) ? "ext3" : "ext2";
  }

  /** Throws if there is one that is not read, or a journal to be replayed. */
  void check(String device, Ext4Options options) {
    int unknown = incompat & ~READ;
    if (unknown != 0) {
      int bit = Integer.lowestOneBit(unknown);
      throw new FileSystemException(
          Kind.UNSUPPORTED,
          device,
          "gpunvme does not support its incompatible feature 0x%x%s; mount it to read it"
              .formatted(bit, name(bit)));
    }
    if (incompat(RECOVER) && !options.withUnreplayedJournal()) {
      throw new FileSystemException(
          Kind.JOURNAL,
          device,
          "the journal has changes that are not in the file system yet (needs_recovery): it was not"
              + " unmounted. Mount and unmount it, or run e2fsck on it; or read it without them"
              + " (--journal ignore on the command line), and the last writes may be missing");
    }
  }

  private static String name(int bit) {
    return switch (bit) {
      case 0x1 -> " (compression)";
      case 0x8 -> " (journal_dev: it is the journal of another file system)";
      case 0x1000 -> " (dirdata)";
      default -> "";
    };
  }
}
