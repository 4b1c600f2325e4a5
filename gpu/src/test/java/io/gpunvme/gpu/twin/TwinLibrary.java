package io.gpunvme.gpu.twin;

import io.gpunvme.gpu.queue.NativeCompiler;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.file.Path;

/**
 * {@code src/test/twin/twin.cpp}: the device library, compiled for the CPU, and jobs that use it.
 */
final class TwinLibrary {
  private static final Path SOURCES = Path.of("../gpu/src/test/twin").toAbsolutePath();

  private final SymbolLookup symbols;

  private TwinLibrary(Path library) {
    symbols = SymbolLookup.libraryLookup(library, Arena.global());
  }

  /**
   * Compiles it into {@code folder}; the test is skipped without g++. {@code -Dgpunvme.twin=FILE}
   * names one that was compiled elsewhere.
   */
  static TwinLibrary compile(Path folder) throws IOException, InterruptedException {
    String given = System.getProperty("gpunvme.twin");
    if (given != null) {
      return new TwinLibrary(Path.of(given));
    }
    return new TwinLibrary(
        NativeCompiler.compile(
            folder,
            "twin.so",
            "#include \"twin.cpp\"\n",
            "-O2",
            "-fPIC",
            "-shared",
            "-I",
            SOURCES.toString()));
  }

  /** A function of the given signature: {@code int}, {@code long} and {@code void} only. */
  Function function(String name, Class<?> result, Class<?>... parameters) {
    MemoryLayout[] layouts = new MemoryLayout[parameters.length];
    for (int i = 0; i < parameters.length; i++) {
      layouts[i] = layout(parameters[i]);
    }
    FunctionDescriptor descriptor =
        result == void.class
            ? FunctionDescriptor.ofVoid(layouts)
            : FunctionDescriptor.of(layout(result), layouts);
    return new Function(
        Linker.nativeLinker().downcallHandle(symbols.findOrThrow(name), descriptor));
  }

  private static MemoryLayout layout(Class<?> type) {
    return type == int.class ? ValueLayout.JAVA_INT : ValueLayout.JAVA_LONG;
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
