package io.gpunvme.storage.fs.ext4;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.storage.fs.FileExtent;
import io.gpunvme.storage.fs.FileNode;
import io.gpunvme.storage.fs.FileSystemException;
import java.lang.foreign.MemorySegment;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** An inode, as others see it. */
final class Ext4Node implements FileNode {
  private static final String TYPES = "?pc?d?b?-?l?s???"; // as ls shows them, by mode >> 12
  private static final String PERMISSIONS = "rwxrwxrwx";

  private final Ext4Volume volume;
  private final Inode inode;
  private volatile @Nullable List<FileExtent> extents;

  Ext4Node(Ext4Volume volume, Inode inode) {
    this.volume = volume;
    this.inode = inode;
  }

  @Override
  public Kind kind() {
    return inode.kind();
  }

  @Override
  public long id() {
    return inode.number;
  }

  @Override
  public long size() {
    return inode.size;
  }

  @Override
  public Instant modified() {
    return inode.modified();
  }

  @Override
  public Map<String, String> details() {
    Map<String, String> details = new LinkedHashMap<>();
    details.put("mode", mode(inode.mode()));
    details.put("links", Integer.toString(inode.links()));
    details.put("uid", Integer.toUnsignedString(inode.owner()));
    details.put("gid", Integer.toUnsignedString(inode.group()));
    details.put("flags", flags());
    details.put("generation", Long.toString(inode.generation()));
    details.put("blocks", Long.toString(inode.allocated() / 512));
    return details;
  }

  /** As {@code ls -l} shows it. */
  private static String mode(int mode) {
    StringBuilder text = new StringBuilder().append(TYPES.charAt(mode >> 12));
    for (int i = 0; i < PERMISSIONS.length(); i++) {
      text.append((mode & 0x100 >> i) != 0 ? PERMISSIONS.charAt(i) : '-');
    }
    special(text, 3, mode, 0x800, 's');
    special(text, 6, mode, 0x400, 's');
    special(text, 9, mode, 0x200, 't');
    return text.toString();
  }

  private static void special(StringBuilder text, int at, int mode, int bit, char letter) {
    if ((mode & bit) != 0) {
      boolean executable = text.charAt(at) == 'x';
      text.setCharAt(at, executable ? letter : Character.toUpperCase(letter));
    }
  }

  private String flags() {
    StringBuilder text = new StringBuilder("0x%x".formatted(inode.flags()));
    name(text, Inode.EXTENTS, "extents");
    name(text, Inode.INLINE, "inline");
    name(text, Inode.INDEXED, "indexed");
    name(text, Inode.HUGE_FILE, "huge");
    name(text, Inode.ENCRYPTED, "encrypted");
    name(text, Inode.VERITY, "verity");
    name(text, Inode.CASE_FOLDED, "casefold");
    return text.toString();
  }

  private void name(StringBuilder text, int bit, String name) {
    if (inode.flag(bit)) {
      text.append(' ').append(name);
    }
  }

  @Override
  public List<FileExtent> extents() {
    require(Kind.FILE);
    List<FileExtent> known = extents;
    if (known == null) {
      known = DataMap.of(volume, inode);
      extents = known; // two who race make the same
    }
    return known;
  }

  @Override
  public void list(Consumer<Entry> to) {
    require(Kind.FOLDER);
    new Ext4Folder(volume, inode)
        .forEach(
            entry -> {
              to.accept(new Entry(Names.text(entry.name()), kind(entry), entry.inode()));
              return true;
            });
  }

  private Kind kind(Dirent entry) {
    Kind kind = entry.kind();
    return kind != null ? kind : volume.inode(entry.inode(), inode.place()).kind();
  }

  @Override
  public FileNode child(Entry entry) {
    require(Kind.FOLDER);
    String place = "name '%s' in %s".formatted(entry.name(), inode.place());
    return new Ext4Node(volume, volume.inode(entry.id(), place));
  }

  @Override
  public String target() {
    require(Kind.LINK);
    return LinkTarget.read(volume, inode);
  }

  @Override
  public void read(long offset, MemorySegment target) {
    List<FileExtent> all = extents();
    long length = target.byteSize();
    if (offset < 0 || offset > inode.size || length > inode.size - offset) {
      throw new InvalidRequestException(
          "%d bytes at %d are not inside %s on %s, which has %d bytes"
              .formatted(length, offset, inode.place(), volume.reader.name(), inode.size));
    }
    int index = length == 0 ? 0 : indexOf(all, offset);
    for (long done = 0; done < length; index++) {
      FileExtent extent = all.get(index);
      long skip = offset + done - extent.fileOffset();
      long n = Math.min(extent.length() - skip, length - done);
      MemorySegment part = target.asSlice(done, n);
      if (extent.isZeros()) {
        part.fill((byte) 0);
      } else {
        volume.reader.read(extent.deviceOffset() + skip, part);
      }
      done += n;
    }
  }

  /** The extent that has a byte which is in the file. */
  private static int indexOf(List<FileExtent> extents, long offset) {
    int low = 0;
    int high = extents.size() - 1;
    while (low < high) {
      int middle = low + high >>> 1;
      if (extents.get(middle).end() > offset) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return low;
  }

  private void require(Kind kind) {
    if (inode.kind() != kind) {
      throw new FileSystemException(
          FileSystemException.Kind.WRONG_KIND,
          volume.reader.name() + ", " + inode.place(),
          "it is a %s, not a %s"
              .formatted(
                  inode.kind().name().toLowerCase(Locale.ROOT),
                  kind.name().toLowerCase(Locale.ROOT)));
    }
  }
}
