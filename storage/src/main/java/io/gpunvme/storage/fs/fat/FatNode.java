package io.gpunvme.storage.fs.fat;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.storage.fs.FileExtent;
import io.gpunvme.storage.fs.FileNode;
import io.gpunvme.storage.fs.FileSystemException;
import java.lang.foreign.MemorySegment;
import java.time.Instant;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** A file or folder; the root folder is the one without an entry. */
final class FatNode implements FileNode {
  private final Fat32 fs;
  private final @Nullable FolderEntry entry;
  private final String path;

  /** Of a file, once it was asked for. */
  private volatile AllocationTable.@Nullable Chain chain;

  private FatNode(Fat32 fs, @Nullable FolderEntry entry, String path) {
    this.fs = fs;
    this.entry = entry;
    this.path = path;
  }

  static FatNode root(Fat32 fs) {
    return new FatNode(fs, null, "/");
  }

  /** The file or folder of a name in this folder. */
  FatNode child(String name) {
    FolderEntry found = folder().find(name);
    String childPath = (entry == null ? path : path + "/") + name;
    if (found == null) {
      throw Fat32.notFound(fs.at(childPath));
    }
    return new FatNode(fs, found, childPath);
  }

  @Override
  public Kind kind() {
    FolderEntry e = entry;
    return e == null || e.isFolder() ? Kind.FOLDER : Kind.FILE;
  }

  /** First cluster; 0 for an empty file. */
  @Override
  public long id() {
    FolderEntry e = entry;
    return e == null ? fs.boot().rootCluster() : e.firstCluster();
  }

  /** Of a folder 0: its entry has no size. */
  @Override
  public long size() {
    FolderEntry e = entry;
    return e == null ? 0 : e.size();
  }

  /** {@link Instant#EPOCH} if the entry has no date. */
  @Override
  public Instant modified() {
    FolderEntry e = entry;
    return e == null ? Instant.EPOCH : e.modified();
  }

  @Override
  public Map<String, String> details() {
    SequencedMap<String, String> details = new LinkedHashMap<>();
    FolderEntry e = entry;
    if (e == null) {
      details.put(
          "serial",
          "%04X-%04X".formatted(fs.boot().serial() >>> Short.SIZE, fs.boot().serial() & 0xFFFF));
      details.put("state", fs.table().state());
      details.put("sector bytes", Integer.toString(fs.boot().sectorBytes()));
      details.put("clusters", Integer.toString(fs.boot().clusters()));
      return Collections.unmodifiableSequencedMap(details);
    }
    details.put("attributes", e.attributeText());
    details.put("short name", e.shortName());
    Instant created = e.created();
    if (created != null) {
      details.put("created", created.toString());
    }
    Instant accessed = e.accessed();
    if (accessed != null) {
      details.put("accessed", accessed.toString());
    }
    details.put("first cluster", Integer.toString(e.firstCluster()));
    if (!e.isFolder()) {
      // More than the size needs if some were allocated in advance.
      details.put("clusters", Long.toString(chain().clusters()));
    }
    return Collections.unmodifiableSequencedMap(details);
  }

  private AllocationTable.Chain chain() {
    AllocationTable.Chain there = chain;
    if (there == null) {
      there = readChain();
      chain = there;
    }
    return there;
  }

  private AllocationTable.Chain readChain() {
    int first = (int) id();
    if (first == 0 && size() == 0) {
      return new AllocationTable.Chain(List.of(), 0);
    }
    long needed = Math.ceilDiv(size(), fs.boot().clusterBytes());
    int all = fs.boot().clusters();
    if (needed > all) {
      throw new FileSystemException(
          FileSystemException.Kind.CORRUPT,
          fs.at(path),
          "its size of %d bytes is more than the volume has".formatted(size()));
    }
    return fs.table().chain(first, size(), needed, all, fs.at(path));
  }

  @Override
  public List<FileExtent> extents() {
    requireFile();
    return Collections.unmodifiableList(chain().extents());
  }

  private void requireFile() {
    if (kind() != Kind.FILE) {
      throw new FileSystemException(
          FileSystemException.Kind.WRONG_KIND, fs.at(path), "this is a folder, not a file");
    }
  }

  void requireFolder() {
    if (kind() != Kind.FOLDER) {
      throw new FileSystemException(
          FileSystemException.Kind.WRONG_KIND, fs.at(path), "this is a file, not a folder");
    }
  }

  private FatFolder folder() {
    requireFolder();
    return fs.folder((int) id(), fs.at(path));
  }

  @Override
  public void list(Consumer<Entry> to) {
    for (FolderEntry e : folder().entries()) {
      to.accept(new Entry(e.name(), e.isFolder() ? Kind.FOLDER : Kind.FILE, e.firstCluster()));
    }
  }

  @Override
  public FileNode child(Entry named) {
    return child(named.name());
  }

  @Override
  public String target() {
    throw new FileSystemException(
        FileSystemException.Kind.WRONG_KIND, fs.at(path), "FAT32 has no links");
  }

  @Override
  public void read(long offset, MemorySegment target) {
    List<FileExtent> extents = extents();
    long length = target.byteSize();
    if (offset < 0 || length > size() - offset) {
      throw new InvalidRequestException(
          "%d bytes at %d are not inside %s, which has %d bytes"
              .formatted(length, offset, fs.at(path), size()));
    }
    int at = length == 0 ? 0 : indexOf(extents, offset);
    for (long done = 0; done < length; at++) {
      FileExtent e = extents.get(at);
      long within = offset + done - e.fileOffset();
      long n = Math.min(e.length() - within, length - done);
      fs.reader().read(e.deviceOffset() + within, target.asSlice(done, n));
      done += n;
    }
  }

  /** The extent that has a byte of the file; extents have no gaps. */
  private static int indexOf(List<FileExtent> extents, long offset) {
    int low = 0;
    int high = extents.size() - 1;
    while (low < high) {
      int middle = (low + high + 1) >>> 1;
      if (extents.get(middle).fileOffset() <= offset) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    return low;
  }
}
