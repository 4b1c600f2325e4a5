package io.gpunvme.cuda.library;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/**
 * What a shared library (ELF, 64 bits) offers, read from its file: opening it would run its code.
 */
final class ElfNames {
  private static final int HEADER_BYTES = 64;
  private static final int SECTION_BYTES = 64;
  private static final int DYNAMIC_SYMBOLS = 11; // SHT_DYNSYM
  private static final long MOST_NAMES_BYTES = 16 << 20;
  private static final byte[] MAGIC = {0x7F, 'E', 'L', 'F', 2, 1}; // 64 bits, little-endian

  private ElfNames() {}

  /**
   * Whether a name is among those of the library's dynamic symbols.
   *
   * @return false, too, for a file that is no such library or cannot be read
   */
  static boolean has(Path file, String name) {
    try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ)) {
      ByteBuffer header = read(channel, 0, HEADER_BYTES);
      for (byte b : MAGIC) {
        if (header.get() != b) {
          return false;
        }
      }
      long sections = header.getLong(0x28);
      int count = Short.toUnsignedInt(header.getShort(0x3C));
      if (Short.toUnsignedInt(header.getShort(0x3A)) != SECTION_BYTES) {
        return false;
      }
      ByteBuffer table = read(channel, sections, count * SECTION_BYTES);
      for (int i = 0; i < count; i++) {
        int at = i * SECTION_BYTES;
        int names = table.getInt(at + 0x28);
        if (table.getInt(at + 4) == DYNAMIC_SYMBOLS && names >= 0 && names < count) {
          int to = names * SECTION_BYTES;
          return contains(channel, table.getLong(to + 0x18), table.getLong(to + 0x20), name);
        }
      }
      return false;
    } catch (IOException e) {
      return false; // The dynamic loader will say what it makes of the file.
    }
  }

  private static boolean contains(FileChannel channel, long offset, long bytes, String name)
      throws IOException {
    if (bytes < 0 || bytes > MOST_NAMES_BYTES) {
      return false;
    }
    // Each name ends with a zero, and the first is empty.
    String names = new String(read(channel, offset, (int) bytes).array(), ISO_8859_1);
    return names.contains("\0" + name + "\0");
  }

  private static ByteBuffer read(FileChannel channel, long offset, int bytes) throws IOException {
    if (offset < 0 || offset > channel.size() - bytes) {
      throw new IOException("the file is too short");
    }
    ByteBuffer buffer = ByteBuffer.allocate(bytes).order(ByteOrder.LITTLE_ENDIAN);
    while (buffer.hasRemaining()) {
      if (channel.read(buffer, offset + buffer.position()) < 0) {
        throw new IOException("the file became shorter");
      }
    }
    return buffer.flip();
  }
}
