package io.gpunvme.tools.bench;

import io.gpunvme.base.Reason;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.storage.path.StorageException;
import io.gpunvme.storage.path.StorageException.Kind;
import io.gpunvme.storage.path.file.SourceFile;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.function.LongConsumer;
import java.util.stream.IntStream;

/** The file that all paths read: every word is the hash of its position. */
final class PathFile implements AutoCloseable {
  static final int BLOCK = 4096;

  private static final ValueLayout.OfLong LONG =
      ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
  private static final long PIECE = 16 << 20;
  private static final int MEBIBYTE_SHIFT = 20;
  private static final int BLOCK_WORDS = BLOCK / Long.BYTES;

  private final Path path;
  private final SourceFile file;

  /**
   * Makes the file; removed by {@link #close}.
   *
   * @param written told of the bytes of each piece
   */
  PathFile(Path folder, long bytes, LongConsumer written) throws IOException {
    path = Files.createTempFile(folder, "gpunvme-bench-", ".bin");
    try {
      fill(bytes, written);
      file = SourceFile.open(path.toString(), false);
    } catch (IOException | RuntimeException e) {
      Files.deleteIfExists(path);
      throw e;
    }
  }

  /**
   * Before anything is taken for the file.
   *
   * @throws StorageException if the folder has no room for it
   */
  static void requireRoom(Path folder, long bytes) {
    long free = folder.toFile().getUsableSpace();
    if (free < bytes) {
      throw new StorageException(
          Kind.NO_SPACE,
          folder.toString(),
          -1,
          -1,
          "a file of %d MiB does not fit: %d MiB are free. Make it smaller, or choose another folder"
              .formatted(bytes >> MEBIBYTE_SHIFT, free >> MEBIBYTE_SHIFT),
          null);
    }
  }

  private void fill(long bytes, LongConsumer written) throws IOException {
    try (FileChannel channel = FileChannel.open(path, StandardOpenOption.WRITE);
        Arena arena = Arena.ofShared()) {
      MemorySegment piece = arena.allocate(PIECE, BLOCK);
      for (long at = 0; at < bytes; at += PIECE) {
        long first = at / Long.BYTES;
        IntStream.range(0, (int) (PIECE / BLOCK))
            .parallel()
            .forEach(
                block -> {
                  for (long w = (long) block * BLOCK_WORDS; w < (block + 1L) * BLOCK_WORDS; w++) {
                    piece.set(LONG, w * Long.BYTES, BlockPattern.hash(first + w));
                  }
                });
        ByteBuffer bytesOfPiece = piece.asByteBuffer();
        while (bytesOfPiece.hasRemaining()) {
          channel.write(bytesOfPiece, at + bytesOfPiece.position());
        }
        written.accept(PIECE);
      }
      channel.force(true);
    }
  }

  Path path() {
    return path;
  }

  SourceFile source() {
    return file;
  }

  /** Share of it that the page cache holds. */
  double resident() {
    return file.residencyKnown() ? file.residency(0, file.size()) : 0;
  }

  /** Takes it out of the page cache. */
  void cool() {
    file.dropCache();
  }

  /** Brings it into the page cache. */
  void warm() {
    try (FileChannel channel = FileChannel.open(path, StandardOpenOption.READ);
        Arena arena = Arena.ofConfined()) {
      MemorySegment piece = arena.allocate(PIECE);
      for (long at = 0; at < file.size(); at += PIECE) {
        channel.read(piece.asByteBuffer(), at);
      }
    } catch (IOException e) {
      throw new BenchException("warming " + path + ": " + Reason.of(e));
    }
  }

  /**
   * Checks blocks that were read.
   *
   * @param scratch pinned memory as long as all blocks, where the buffer is not the host's
   * @param offsets where in the file each of them is; they are one behind the other in the buffer
   * @throws BenchException if a byte is not that of the file
   */
  static void check(String id, DeviceBuffer buffer, DeviceBuffer scratch, long[] offsets) {
    DeviceBuffer host = buffer.isHost() ? buffer : scratch;
    if (!buffer.isHost()) {
      buffer.copyToHost(0, scratch.segment().asSlice(0, (long) offsets.length * BLOCK));
    }
    MemorySegment seen = host.segment();
    long wrong =
        IntStream.range(0, offsets.length)
            .parallel()
            .filter(i -> !isBlock(seen, (long) i * BLOCK, offsets[i]))
            .count();
    if (wrong != 0) {
      throw new BenchException(
          "%s: %d of %d blocks differ from the file".formatted(id, wrong, offsets.length));
    }
  }

  /** Whether the first and the last word of a piece are those of the file at an offset. */
  static boolean isAt(MemorySegment piece, long offset) {
    long last = piece.byteSize() - Long.BYTES;
    return piece.get(LONG, 0) == BlockPattern.hash(offset / Long.BYTES)
        && piece.get(LONG, last) == BlockPattern.hash((offset + last) / Long.BYTES);
  }

  private static boolean isBlock(MemorySegment memory, long at, long offset) {
    long first = offset / Long.BYTES;
    for (int w = 0; w < BLOCK_WORDS; w++) {
      if (memory.get(LONG, at + (long) w * Long.BYTES) != BlockPattern.hash(first + w)) {
        return false;
      }
    }
    return true;
  }

  @Override
  public void close() {
    file.close();
    try {
      Files.deleteIfExists(path);
    } catch (IOException e) {
      throw new BenchException("removing " + path + ": " + Reason.of(e));
    }
  }
}
