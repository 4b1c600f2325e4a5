package io.gpunvme.storage.fs;

import java.lang.foreign.MemorySegment;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;

/** A file system in a partition: its files' places count from the start of the whole device. */
record ShiftedFileSystem(FileSystem inside, long firstByte) implements FileSystem {
  @Override
  public String type() {
    return inside.type();
  }

  @Override
  public String label() {
    return inside.label();
  }

  @Override
  public int blockSize() {
    return inside.blockSize();
  }

  @Override
  public FileNode find(String path, boolean follow) {
    return new Node(inside.find(path, follow), firstByte);
  }

  private record Node(FileNode inside, long firstByte) implements FileNode {
    @Override
    public Kind kind() {
      return inside.kind();
    }

    @Override
    public long id() {
      return inside.id();
    }

    @Override
    public long size() {
      return inside.size();
    }

    @Override
    public Instant modified() {
      return inside.modified();
    }

    @Override
    public Map<String, String> details() {
      return inside.details();
    }

    @Override
    public List<FileExtent> extents() {
      return inside.extents().stream().map(this::shifted).toList();
    }

    private FileExtent shifted(FileExtent e) {
      return e.isZeros()
          ? e
          : new FileExtent(e.fileOffset(), e.length(), e.deviceOffset() + firstByte);
    }

    @Override
    public void list(Consumer<Entry> to) {
      inside.list(to);
    }

    @Override
    public FileNode child(Entry entry) {
      return new Node(inside.child(entry), firstByte);
    }

    @Override
    public String target() {
      return inside.target();
    }

    @Override
    public void read(long offset, MemorySegment target) {
      inside.read(offset, target);
    }
  }
}
