package io.gpunvme.storage.fs.fat;

import io.gpunvme.storage.fs.BlockReader;
import io.gpunvme.storage.fs.FileExtent;
import io.gpunvme.storage.fs.FileNode;
import io.gpunvme.storage.fs.FileSystem;
import io.gpunvme.storage.fs.FileSystemException;
import io.gpunvme.storage.fs.FileSystemException.Kind;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * A FAT32 volume. Names are found in any case, long or short. There are no links, so {@code follow}
 * makes no difference. Safe for all threads.
 */
public final class Fat32 implements FileSystem {
  /** Entries of folders that are kept, so that listing with details does not read them again. */
  private static final int KEPT_ENTRIES = 1 << 17;

  /** What an empty folder counts for. */
  private static final int FOLDER_ENTRIES = 16;

  private final BlockReader reader;
  private final BootSector boot;
  private final AllocationTable table;
  private final String label;

  // By first cluster, the least recently used first.
  private final Map<Integer, FatFolder> folders = new LinkedHashMap<>(16, 0.75f, true);
  private int kept;

  private Fat32(BlockReader reader, BootSector boot) {
    this.reader = reader;
    this.boot = boot;
    table = new AllocationTable(reader, boot);
    byte[] own = folder(boot.rootCluster(), at("/")).label();
    label = ShortName.label(own != null ? own : boot.label());
  }

  /**
   * Opens a volume.
   *
   * @param reader stays the caller's, and open
   * @throws FileSystemException if it is none, or one that cannot be read; the message names the
   *     field of the boot sector
   */
  public static Fat32 open(BlockReader reader) {
    return new Fat32(reader, BootSector.read(reader));
  }

  @Override
  public String type() {
    return FatKind.FAT32.label();
  }

  @Override
  public String label() {
    return label;
  }

  @Override
  public int blockSize() {
    return boot.clusterBytes();
  }

  @Override
  public FileNode find(String path, boolean follow) {
    Deque<FatNode> way = new ArrayDeque<>();
    way.push(FatNode.root(this));
    for (String name : path.split("/", -1)) {
      FatNode last = way.getFirst();
      switch (name) {
        case "" -> {}
        case "." -> last.requireFolder();
        case ".." -> {
          last.requireFolder();
          if (way.size() > 1) {
            way.pop();
          }
        }
        default -> way.push(last.child(name));
      }
    }
    return way.getFirst();
  }

  BlockReader reader() {
    return reader;
  }

  BootSector boot() {
    return boot;
  }

  AllocationTable table() {
    return table;
  }

  /** A path with the device that it is on, for messages. */
  String at(String path) {
    return reader.name() + ", " + path;
  }

  /** What is in a folder, read now or kept. */
  FatFolder folder(int firstCluster, String where) {
    synchronized (folders) {
      FatFolder there = folders.get(firstCluster);
      if (there != null) {
        return there;
      }
    }
    FatFolder folder = FatFolder.parse(bytes(firstCluster, where));
    synchronized (folders) {
      if (folders.putIfAbsent(firstCluster, folder) == null) {
        kept += weight(folder);
      }
      var eldest = folders.values().iterator();
      while (kept > KEPT_ENTRIES && folders.size() > 1) {
        kept -= weight(eldest.next());
        eldest.remove();
      }
    }
    return folder;
  }

  private static int weight(FatFolder folder) {
    return folder.entries().size() + FOLDER_ENTRIES;
  }

  private byte[] bytes(int firstCluster, String where) {
    long most = FatFolder.MOST_BYTES / boot.clusterBytes();
    AllocationTable.Chain chain =
        table.chain(firstCluster, FatFolder.MOST_BYTES, 1, most, where + " (folder)");
    byte[] bytes = new byte[(int) chain.clusters() * boot.clusterBytes()];
    MemorySegment target = MemorySegment.ofArray(bytes);
    for (FileExtent e : chain.extents()) {
      reader.read(e.deviceOffset(), target.asSlice(e.fileOffset(), e.length()));
    }
    return bytes;
  }

  static FileSystemException notFound(String where) {
    return new FileSystemException(Kind.NOT_FOUND, where, "there is no such file or folder");
  }
}
