package io.gpunvme.bench;

import static java.lang.foreign.ValueLayout.JAVA_LONG_UNALIGNED;

import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.storage.path.Range;
import io.gpunvme.tools.bench.BlockPattern;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/** A file whose every 8 bytes tell where in the file they are, scrambled; and checks of copies. */
final class PatternFile {
  private static final int STEP = 8 << 20;

  private final Path path;
  private final long bytes;

  private PatternFile(Path path, long bytes) {
    this.path = path;
    this.bytes = bytes;
  }

  /** Writes the file, unless one of this length is there whose ends are right. */
  static PatternFile at(Path path, long bytes) throws IOException {
    PatternFile file = new PatternFile(path, bytes);
    if (!file.isThere()) {
      file.write();
    }
    return file;
  }

  Path path() {
    return path;
  }

  long bytes() {
    return bytes;
  }

  private static void fill(MemorySegment memory, long offset) {
    for (long i = 0; i < memory.byteSize(); i += Long.BYTES) {
      memory.set(JAVA_LONG_UNALIGNED, i, BlockPattern.hash((offset + i) / Long.BYTES));
    }
  }

  private boolean isThere() throws IOException {
    if (!Files.exists(path) || Files.size(path) != bytes) {
      return false;
    }
    ByteBuffer block = ByteBuffer.allocateDirect(4096);
    MemorySegment memory = MemorySegment.ofBuffer(block);
    try (FileChannel channel = FileChannel.open(path);
        Arena arena = Arena.ofConfined()) {
      MemorySegment right = arena.allocate(4096);
      for (long at = 0; at < bytes; at += Math.max(4096, bytes / 64 / 4096 * 4096)) {
        channel.read(block.clear(), at);
        fill(right, at);
        if (memory.mismatch(right) >= 0) {
          return false;
        }
      }
    }
    return true;
  }

  private void write() throws IOException {
    ByteBuffer block = ByteBuffer.allocateDirect(STEP);
    try (FileChannel channel =
        FileChannel.open(
            path,
            StandardOpenOption.CREATE,
            StandardOpenOption.WRITE,
            StandardOpenOption.TRUNCATE_EXISTING)) {
      for (long at = 0; at < bytes; at += STEP) {
        block.clear().limit((int) Math.min(STEP, bytes - at));
        fill(MemorySegment.ofBuffer(block), at);
        while (block.hasRemaining()) {
          channel.write(block);
        }
      }
      channel.force(true);
    }
  }

  /**
   * Checks that part of a range arrived.
   *
   * @param from first byte, from the start of the range; ranges and this are multiples of 8
   * @throws IllegalStateException if a byte is wrong
   */
  void require(Range range, long from, long length) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment copy = arena.allocate(Math.min(STEP, length));
      for (long done = 0; done < length; done += STEP) {
        MemorySegment part = copy.asSlice(0, Math.min(STEP, length - done));
        range.buffer().copyToHost(range.bufferOffset() + from + done, part);
        requireWords(part, range.offset() + from + done);
      }
    }
  }

  private static void requireWords(MemorySegment part, long offset) {
    for (long i = 0; i < part.byteSize(); i += Long.BYTES) {
      if (part.get(JAVA_LONG_UNALIGNED, i) != BlockPattern.hash((offset + i) / Long.BYTES)) {
        throw new IllegalStateException("wrong data at " + (offset + i));
      }
    }
  }

  /** Overwrites all of a buffer, so that old data is not taken for new. */
  static void wipe(DeviceBuffer buffer) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment zeroes = arena.allocate(STEP);
      for (long at = 0; at < buffer.size(); at += STEP) {
        buffer.copyFromHost(zeroes.asSlice(0, Math.min(STEP, buffer.size() - at)), at);
      }
    }
  }
}
