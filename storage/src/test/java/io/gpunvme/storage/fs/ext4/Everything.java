package io.gpunvme.storage.fs.ext4;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.storage.fs.BlockReader;
import io.gpunvme.storage.fs.FileExtent;
import io.gpunvme.storage.fs.FileNode;
import io.gpunvme.storage.fs.FileNode.Entry;
import io.gpunvme.storage.fs.FileSystem;
import io.gpunvme.storage.fs.FileSystemException;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.zip.CRC32;

/** Opens an image and looks at all there is in it, within bounds, as if nothing were wrong. */
final class Everything {
  private static final int PART = 2048;
  private static final int MOST_PARTS = 64;

  private final BlockReader reader;
  private final boolean data;
  private final CRC32 digest = new CRC32();
  private final Set<Long> seen = new HashSet<>();
  private final byte[] part = new byte[PART];
  private int refusals;

  private Everything(BlockReader reader, boolean data) {
    this.reader = reader;
    this.data = data;
  }

  /**
   * What is in it.
   *
   * @param digest of all names, kinds, sizes, times and extents
   * @param nodes how many files, folders and links there are
   * @param refusals how many were refused with a typed error
   */
  record Found(long digest, int nodes, int refusals) {}

  /**
   * Looks at all.
   *
   * @param data whether bytes of files and targets of links are read too; they are not in the
   *     digest
   * @throws FileSystemException if it cannot be opened
   */
  static Found in(BlockReader reader, boolean data) {
    FileSystem fs = Ext4.open(reader, Ext4Options.STRICT);
    Everything all = new Everything(reader, data);
    all.text(fs.type() + fs.label() + fs.blockSize());
    all.node(fs, "");
    return new Found(all.digest.getValue(), all.seen.size(), all.refusals);
  }

  private void node(FileSystem fs, String path) {
    try {
      FileNode node = fs.find(path, false);
      Instant modified = node.modified();
      text(path + node.kind() + node.size() + node.details());
      text(modified.getEpochSecond() + "." + modified.getNano());
      if (!seen.add(node.id())) {
        return;
      }
      switch (node.kind()) {
        case FILE -> file(node);
        case FOLDER -> {
          List<Entry> entries = new ArrayList<>();
          node.list(entries::add);
          for (Entry entry : entries) {
            node(fs, path + "/" + entry.name());
          }
        }
        case LINK -> link(fs, node, path);
        case OTHER -> {}
      }
    } catch (FileSystemException e) {
      assertThat(e.getMessage()).contains(reader.name());
      refusals++;
    }
  }

  private void link(FileSystem fs, FileNode node, String path) {
    if (data) {
      assertThat(node.target()).isNotEmpty();
      fs.find(path, true);
    }
  }

  private void file(FileNode node) {
    long at = 0;
    int parts = 0;
    for (FileExtent extent : node.extents()) {
      assertThat(extent.fileOffset()).isEqualTo(at);
      assertThat(extent.length()).isPositive();
      if (!extent.isZeros()) {
        assertThat(extent.deviceOffset()).isPositive();
        assertThat(extent.length()).isLessThanOrEqualTo(reader.size() - extent.deviceOffset());
      }
      text(extent.toString());
      at = extent.end();
      if (data && ++parts < MOST_PARTS) {
        long n = Math.min(PART, node.size() - extent.fileOffset());
        node.read(extent.fileOffset(), MemorySegment.ofArray(part).asSlice(0, n));
      }
    }
    assertThat(at).isEqualTo(node.size());
  }

  private void text(String text) {
    digest.update(text.getBytes(StandardCharsets.UTF_8));
  }
}
