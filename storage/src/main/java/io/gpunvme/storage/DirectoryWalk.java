package io.gpunvme.storage;

import io.gpunvme.gpu.queue.DirectoryFiles;
import io.gpunvme.storage.fs.FileNode;
import io.gpunvme.storage.fs.FileSystem;
import io.gpunvme.storage.fs.FileSystemException;
import io.gpunvme.storage.fs.FileSystemOptions;
import io.gpunvme.storage.fs.FileSystems;
import io.gpunvme.storage.path.StorageException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.Deque;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Consumer;

/** The files below a directory in the file system on a device, as kernels are told of them. */
final class DirectoryWalk {
  private static final int SECTOR = 512;
  private static final int LARGE_SECTOR = 4096;

  private final String name;
  private final FileSystem fileSystem;
  private final String directory;
  private final SsdExtents places;
  private final DirectoryFiles files;
  private final Consumer<StorageException> leftOut;
  private final Deque<Folder> ahead = new ArrayDeque<>();

  /** What is ahead or behind: a folder that is in itself has no end. */
  private final Set<Long> seen = new HashSet<>();

  /**
   * A folder.
   *
   * @param path with a slash at its end, from the directory on; the directory's own is empty
   */
  private record Folder(String path, FileNode node) {}

  private DirectoryWalk(
      GpuStorage device,
      FileSystem fileSystem,
      String directory,
      Consumer<StorageException> leftOut) {
    name = device.address() + ":";
    this.fileSystem = fileSystem;
    this.directory = directory.endsWith("/") ? directory : directory + "/";
    this.leftOut = leftOut;
    places = new SsdExtents(device);
    files = new DirectoryFiles(places.set());
  }

  /**
   * Finds the files. The device stays open meanwhile.
   *
   * @param leftOut is told of each that kernels cannot be told of
   * @throws FileSystemException if there is no file system, or it has no such directory, or is
   *     damaged
   * @throws StorageException if the device is on no SSD of ours
   */
  static DirectoryFiles of(
      GpuStorage device, String directory, Consumer<StorageException> leftOut) {
    int sector = device.blockSize() == LARGE_SECTOR ? LARGE_SECTOR : SECTOR;
    try (StorageReader reader = new StorageReader(device)) {
      FileSystem fileSystem =
          FileSystems.open(reader, new FileSystemOptions(0, sector, false)).fileSystem();
      DirectoryWalk walk = new DirectoryWalk(device, fileSystem, directory, leftOut);
      walk.run();
      return walk.files;
    }
  }

  private void run() {
    enter(new Folder("", fileSystem.find(directory, true)));
    while (!ahead.isEmpty()) {
      Folder folder = ahead.pop();
      for (FileNode.Entry entry : list(folder)) {
        unlessUnreadable(folder.path + entry.name(), () -> add(folder, entry));
      }
    }
  }

  private void enter(Folder folder) {
    if (!seen.add(folder.node.id())) {
      throw new FileSystemException(
          FileSystemException.Kind.CORRUPT,
          where(folder.path),
          "this folder has more than one name; a check of the file system repairs it");
    }
    ahead.push(folder);
  }

  private List<FileNode.Entry> list(Folder folder) {
    List<FileNode.Entry> entries = new ArrayList<>();
    if (folder.path.isEmpty()) {
      folder.node.list(entries::add);
    } else {
      unlessUnreadable(folder.path, () -> folder.node.list(entries::add));
    }
    // What is looked up for each name is in the order of these numbers on the device.
    entries.sort(Comparator.comparingLong(FileNode.Entry::id));
    return entries;
  }

  private void add(Folder folder, FileNode.Entry entry) {
    String path = folder.path + entry.name();
    FileNode node = folder.node.child(entry);
    switch (node.kind()) {
      case FILE -> add(path, node);
      case FOLDER -> enter(new Folder(path + "/", node));
      case LINK -> {
        FileNode target = fileSystem.find(directory + path, true);
        if (target.kind() != FileNode.Kind.FILE) {
          throw Source.unsupported(
              where(path), "a symbolic link to something that is not a file is not followed");
        }
        add(path, target);
      }
      case OTHER ->
          throw Source.unsupported(where(path), "it is a device, socket or pipe, not a file");
    }
  }

  private void add(String path, FileNode node) {
    files.add(path, node.size(), places.of(where(path), node.extents()));
  }

  private String where(String path) {
    return name + directory + path;
  }

  /** What is legal and cannot be read is left out; what is damaged ends it all. */
  private void unlessUnreadable(String path, Runnable action) {
    try {
      action.run();
    } catch (FileSystemException e) {
      switch (e.kind()) {
        case UNSUPPORTED, NOT_FOUND, LINKS, WRONG_KIND ->
            leftOut.accept(
                new StorageException(
                    StorageException.Kind.UNSUPPORTED,
                    where(path),
                    -1,
                    -1,
                    String.valueOf(e.getMessage()),
                    e));
        default -> throw e;
      }
    } catch (StorageException e) {
      if (e.kind() != StorageException.Kind.UNSUPPORTED) {
        throw e;
      }
      leftOut.accept(e);
    }
  }
}
