package io.gpunvme.models;

import io.gpunvme.models.format.ModelFolder;
import io.gpunvme.storage.Volume;
import io.gpunvme.storage.fs.BlockReader;
import io.gpunvme.storage.fs.FileNode;
import io.gpunvme.storage.fs.FileSystemException;
import io.gpunvme.storage.fs.FileSystemException.Kind;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * A folder in a file system that we read ourselves.
 *
 * @param path of the folder, with a slash in front
 */
record VolumeFolder(Volume volume, String path) implements ModelFolder {
  @Override
  public String name() {
    return path;
  }

  @Override
  public List<String> files() {
    List<String> names = new ArrayList<>();
    volume
        .find(path)
        .list(
            e -> {
              if (e.kind() == FileNode.Kind.FILE || e.kind() == FileNode.Kind.LINK) {
                names.add(e.name());
              }
            });
    return names;
  }

  /** The path of a file in it. */
  String child(String name) {
    return path.endsWith("/") ? path + name : path + "/" + name;
  }

  @Override
  public Optional<BlockReader> open(String name) {
    try {
      FileNode node = volume.find(child(name));
      return node.kind() == FileNode.Kind.FILE
          ? Optional.of(new NodeReader(child(name), node))
          : Optional.empty();
    } catch (FileSystemException e) {
      if (e.kind() == Kind.NOT_FOUND) {
        return Optional.empty();
      }
      throw e;
    }
  }

  private record NodeReader(String name, FileNode node) implements BlockReader {
    @Override
    public long size() {
      return node.size();
    }

    @Override
    public void read(long offset, MemorySegment target) {
      node.read(offset, target);
    }
  }
}
