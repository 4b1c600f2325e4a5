package io.gpunvme.testing;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.nio.file.Path;
import java.util.Arrays;

/**
 * A shared library whose functions tests call. It stays loaded until the virtual machine ends,
 * because threads of a failed test may still be in it. Safe for all threads.
 */
public final class CLibrary {
  /** No text that a library returns is longer, bytes. */
  private static final long LONGEST_TEXT = 1 << 16;

  private final Path file;
  private final SymbolLookup symbols;

  /** Loads a library; where it is loaded already, its variables are shared. */
  public CLibrary(Path file) {
    this.file = file;
    symbols = SymbolLookup.libraryLookup(file, Arena.global());
  }

  public Path file() {
    return file;
  }

  /** Where a function or a variable is. */
  public MemorySegment address(String name) {
    return symbols.findOrThrow(name);
  }

  /** A function; its types are {@code int}, {@code long}, {@link MemorySegment} or {@code void}. */
  public MethodHandle function(String name, Class<?> result, Class<?>... parameters) {
    MemoryLayout[] layouts =
        Arrays.stream(parameters).map(CLibrary::layout).toArray(MemoryLayout[]::new);
    FunctionDescriptor type =
        result == void.class
            ? FunctionDescriptor.ofVoid(layouts)
            : FunctionDescriptor.of(layout(result), layouts);
    return Linker.nativeLinker().downcallHandle(address(name), type);
  }

  private static MemoryLayout layout(Class<?> type) {
    if (type == int.class) {
      return JAVA_INT;
    } else if (type == long.class) {
      return JAVA_LONG;
    } else if (type == MemorySegment.class) {
      return ADDRESS;
    }
    throw new IllegalArgumentException("no type of C for " + type);
  }

  /** Calls a function without a result; arguments as those of {@link #callInt}. */
  public void call(String name, Object... arguments) {
    call(name, void.class, arguments);
  }

  /**
   * Calls a function that returns an {@code int}.
   *
   * @param arguments {@link Integer}, {@link Long}, {@link MemorySegment}, or {@link String}, which
   *     C sees until the call returns
   */
  public int callInt(String name, Object... arguments) {
    return (int) call(name, int.class, arguments);
  }

  /** Calls a function that returns a text; empty if that is NULL. */
  public String callText(String name, Object... arguments) {
    MemorySegment text = (MemorySegment) call(name, MemorySegment.class, arguments);
    return text.address() == 0 ? "" : text.reinterpret(LONGEST_TEXT).getString(0);
  }

  private Object call(String name, Class<?> result, Object[] arguments) {
    try (Arena arena = Arena.ofConfined()) {
      Object[] values = new Object[arguments.length];
      Class<?>[] types = new Class<?>[arguments.length];
      for (int i = 0; i < types.length; i++) {
        values[i] = arguments[i] instanceof String text ? arena.allocateFrom(text) : arguments[i];
        types[i] =
            switch (values[i]) {
              case Integer _ -> int.class;
              case Long _ -> long.class;
              default -> MemorySegment.class;
            };
      }
      return function(name, result, types).invokeWithArguments(values);
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
  }
}
