package io.gpunvme.storage.fs.ext4;

/**
 * Bytes of a file or folder that are in its inode: the first 60 where others have their block map,
 * the rest as the value of an extended attribute behind the inode's fields.
 *
 * @param firstBytes how many are in the first part
 * @param rest where the second part begins in the inode
 * @param restBytes how many are in it
 * @see <a href="https://docs.kernel.org/filesystems/ext4/inlinedata.html">Inline Data</a>
 */
record InlineData(int firstBytes, int rest, int restBytes) {
  private static final int MAGIC = 0xEA020000;
  private static final int ENTRY = 16;
  private static final int SYSTEM = 7;
  private static final byte[] DATA = {'d', 'a', 't', 'a'};

  /** Finds both parts. */
  static InlineData of(Ext4Volume volume, Inode inode) {
    Bytes raw = inode.raw;
    int start = inode.end();
    String place = inode.place() + ", extended attributes";
    if (start + 4 > raw.length() || raw.i32(start) != MAGIC) {
      throw volume.corrupt(place, "there are none, but its bytes must be in one");
    }
    int first = start + 4;
    int at = first;
    while (at + 4 <= raw.length() && raw.i32(at) != 0) {
      if (at + ENTRY > raw.length() || at + ENTRY + raw.u8(at) > raw.length()) {
        throw volume.corrupt(place, "the entry at byte %d is not inside the inode".formatted(at));
      }
      int nameLength = raw.u8(at);
      boolean named = nameLength == DATA.length && raw.equalTo(at + ENTRY, DATA);
      if (named && raw.u8(at + 1) == SYSTEM) {
        return value(volume, raw, first, at, place);
      }
      at += ENTRY + (nameLength + 3 & ~3);
    }
    throw volume.corrupt(place, "there is no system.data, but its bytes must be in it");
  }

  private static InlineData value(Ext4Volume volume, Bytes raw, int first, int at, String place) {
    if (raw.i32(at + 4) != 0) {
      throw volume.corrupt(place, "system.data is in another inode");
    }
    long bytes = raw.u32(at + 8);
    long start = bytes == 0 ? first : first + raw.u16(at + 2);
    if (bytes > raw.length() || start + bytes > raw.length()) {
      throw volume.corrupt(
          place, "system.data has %d bytes at byte %d of the inode".formatted(bytes, start));
    }
    return new InlineData(Inode.MAP_BYTES, (int) start, (int) bytes);
  }

  /** Adds both parts; what the size says beyond them is zeros. */
  void map(Inode inode, MapBuilder map) {
    map.add(0, firstBytes, inode.deviceOffset + Inode.MAP);
    if (restBytes > 0) {
      map.add(firstBytes, restBytes, inode.deviceOffset + rest);
    }
  }
}
