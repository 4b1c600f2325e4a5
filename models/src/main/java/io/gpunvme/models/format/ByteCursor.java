package io.gpunvme.models.format;

import io.gpunvme.models.format.FormatException.Kind;
import io.gpunvme.storage.fs.BlockReader;
import java.io.InputStream;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;

/**
 * Reads part of a file from front to back, little endian, through a window of bounded size.
 * Whatever goes past the end is a {@link FormatException}. Used by one thread.
 */
final class ByteCursor {
  private static final int WINDOW = 64 << 10;

  private static final ValueLayout.OfShort SHORT =
      ValueLayout.JAVA_SHORT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
  private static final ValueLayout.OfInt INT =
      ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
  private static final ValueLayout.OfLong LONG =
      ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

  private final BlockReader reader;
  private final long end;
  private final byte[] window;
  private final MemorySegment memory;
  // The window holds [windowAt, windowAt + held) of the file.
  private long windowAt;
  private int held;
  private long position;

  /** Over {@code [start, end)}, which must lie in the file. */
  ByteCursor(BlockReader reader, long start, long end) {
    this.reader = reader;
    this.end = end;
    this.position = start;
    this.windowAt = start;
    this.window = new byte[(int) Math.min(WINDOW, end - start)];
    this.memory = MemorySegment.ofArray(window);
  }

  long position() {
    return position;
  }

  long remaining() {
    return end - position;
  }

  String file() {
    return reader.name();
  }

  int u8(String what) {
    return window[need(1, what)] & 0xFF;
  }

  int u16(String what) {
    return memory.get(SHORT, need(2, what)) & 0xFFFF;
  }

  long u32(String what) {
    return memory.get(INT, need(4, what)) & 0xFFFF_FFFFL;
  }

  /** Signed; negative if an unsigned value is too large. */
  long i64(String what) {
    return memory.get(LONG, need(8, what));
  }

  /** Reads bytes; the caller has checked that so many are a sensible number. */
  byte[] bytes(int count, String what) {
    checkRemaining(count, what);
    byte[] bytes = new byte[count];
    int fromWindow = (int) Math.min(count, Math.max(0, windowAt + held - position));
    if (fromWindow > 0) {
      System.arraycopy(window, (int) (position - windowAt), bytes, 0, fromWindow);
    }
    if (count - fromWindow > window.length) {
      reader.read(position + fromWindow, MemorySegment.ofArray(bytes).asSlice(fromWindow));
      position += count;
    } else {
      position += fromWindow;
      int rest = count - fromWindow;
      if (rest > 0) {
        System.arraycopy(window, need(rest, what), bytes, fromWindow, rest);
      }
    }
    return bytes;
  }

  /** Goes on without reading. */
  void skip(long count, String what) {
    checkRemaining(count, what);
    position += count;
  }

  /** The bytes from here to the end as a stream, which moves this. */
  InputStream stream() {
    return new InputStream() {
      @Override
      public int read() {
        return remaining() == 0 ? -1 : u8("a byte");
      }

      @Override
      public int read(byte[] to, int offset, int length) {
        if (length == 0) {
          return 0;
        }
        if (remaining() == 0) {
          return -1;
        }
        int count = (int) Math.min(Math.min(length, window.length), remaining());
        System.arraycopy(window, need(count, "bytes"), to, offset, count);
        return count;
      }
    };
  }

  /** Makes {@code count} bytes available, moves behind them, and returns where in the window. */
  private int need(int count, String what) {
    checkRemaining(count, what);
    if (position < windowAt || position + count > windowAt + held) {
      int fill = (int) Math.min(window.length, end - position);
      reader.read(position, memory.asSlice(0, fill));
      windowAt = position;
      held = fill;
    }
    int at = (int) (position - windowAt);
    position += count;
    return at;
  }

  private void checkRemaining(long count, String what) {
    if (count < 0 || count > remaining()) {
      throw FormatException.at(
          Kind.TRUNCATED,
          reader.name(),
          position,
          "%s of %s bytes goes past the end, byte %d; copy or download the file again"
              .formatted(what, Long.toUnsignedString(count), end));
    }
  }
}
