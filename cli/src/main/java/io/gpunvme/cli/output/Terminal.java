package io.gpunvme.cli.output;

import io.gpunvme.ffi.Posix;
import io.gpunvme.ffi.PosixException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** Facts about the terminal. */
public final class Terminal {
  private static final long TIOCGWINSZ = 0x5413;
  private static final int WINSIZE_BYTES = 8;
  private static final int WINSIZE_COLUMNS = 2;
  private static final int USUAL_COLUMNS = 80;
  private static final int STANDARD_OUTPUT = 1;
  private static final int STANDARD_ERROR = 2;

  private Terminal() {}

  /** Width of the terminal behind standard error; 0 if standard error is not a terminal. */
  public static int errorColumns() {
    return columns(STANDARD_ERROR);
  }

  /** Width of the terminal behind standard output; 0 if standard output is not a terminal. */
  public static int outputColumns() {
    return columns(STANDARD_OUTPUT);
  }

  private static int columns(int descriptor) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment size = arena.allocate(WINSIZE_BYTES);
      Posix.ioctl(descriptor, TIOCGWINSZ, size);
      int columns = Short.toUnsignedInt(size.get(ValueLayout.JAVA_SHORT, WINSIZE_COLUMNS));
      return columns == 0 ? USUAL_COLUMNS : columns;
    } catch (PosixException e) {
      return 0;
    }
  }
}
