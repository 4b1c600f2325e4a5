package io.gpunvme.gpu.twin;

import io.gpunvme.gpu.queue.DeviceSources;
import io.gpunvme.testing.CLibrary;
import io.gpunvme.testing.NativeCompiler;
import java.lang.invoke.MethodHandle;
import java.nio.file.Path;

/**
 * {@code src/test/twin/twin.cpp}: the device library, compiled for the CPU, and jobs that use it.
 */
final class TwinLibrary {
  private static final Path SOURCES = Path.of("../gpu/src/test/twin").toAbsolutePath();

  private final CLibrary library;

  private TwinLibrary(Path file) {
    library = new CLibrary(file);
  }

  /**
   * Compiles it, once for all; the test is skipped without g++. {@code -Dgpunvme.twin=FILE} names
   * one that was compiled elsewhere.
   */
  static TwinLibrary load() {
    String given = System.getProperty("gpunvme.twin");
    return new TwinLibrary(
        given != null
            ? Path.of(given)
            : NativeCompiler.CPP.library(
                "twin", "#include \"twin.cpp\"\n", "-O2", "-I" + SOURCES, DeviceSources.INCLUDE));
  }

  /** A function of the given signature: {@code int}, {@code long} and {@code void} only. */
  Function function(String name, Class<?> result, Class<?>... parameters) {
    return new Function(library.function(name, result, parameters));
  }

  /** A C function. Safe for all threads. */
  record Function(MethodHandle handle) {
    Object call(Object... arguments) {
      try {
        return handle.invokeWithArguments(arguments);
      } catch (Throwable e) {
        throw new AssertionError(e);
      }
    }

    int callInt(Object... arguments) {
      return (int) call(arguments);
    }

    long callLong(Object... arguments) {
      return (long) call(arguments);
    }
  }
}
