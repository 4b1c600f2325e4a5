package io.gpunvme.capi;

import io.gpunvme.capi.Exports.Export;
import java.lang.foreign.Arena;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.util.HashMap;
import java.util.Map;

/** The functions of the table, called as C calls them. */
final class Table implements AutoCloseable {
  private final Arena arena = Arena.ofShared();
  private final Map<String, MethodHandle> functions = new HashMap<>();
  private final MemorySegment failure = arena.allocate(2048, 8);
  private final MemorySegment table;

  Table() {
    table = arena.allocate(ValueLayout.ADDRESS, Exports.TABLE.size() + 1L);
    Exports.fill(table.address(), Exports.VERSION);
    put(0, new Export("make", ValueLayout.JAVA_LONG));
    for (int i = 0; i < Exports.TABLE.size(); i++) {
      Export export = Exports.TABLE.get(i);
      if (call("make", i + 1L) != 0) {
        throw new AssertionError(error());
      }
      put(i + 1, export);
    }
  }

  private void put(int place, Export export) {
    MemorySegment address = table.getAtIndex(ValueLayout.ADDRESS, place);
    functions.put(export.name(), Linker.nativeLinker().downcallHandle(address, export.type()));
  }

  /** The address of a function; 0 if none was made. */
  long address(int place) {
    return table.getAtIndex(ValueLayout.ADDRESS, place).address();
  }

  Arena arena() {
    return arena;
  }

  /** Calls a function; arguments without the failure. */
  int call(String name, Object... arguments) {
    Object[] all = new Object[arguments.length + 1];
    System.arraycopy(arguments, 0, all, 0, arguments.length);
    all[arguments.length] = failure;
    failure.fill((byte) 0);
    try {
      return (int) functions.get(name).invokeWithArguments(all);
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
  }

  /** What the last call failed with. */
  String error() {
    return failure.getString(8);
  }

  int errno() {
    return failure.get(ValueLayout.JAVA_INT, 0);
  }

  /** Calls a function whose last argument is where a number goes; returns that. */
  long make(String name, Object... arguments) {
    MemorySegment out = arena.allocate(8, 8);
    Object[] all = new Object[arguments.length + 1];
    System.arraycopy(arguments, 0, all, 0, arguments.length);
    all[arguments.length] = out;
    int code = call(name, all);
    if (code != 0) {
      throw new AssertionError(name + ": " + code + " " + error());
    }
    return out.get(ValueLayout.JAVA_LONG, 0);
  }

  MemorySegment text(String text) {
    return arena.allocateFrom(text);
  }

  /** An array of {@code gpunvme_range}: offset, address, bytes, and so on. */
  MemorySegment ranges(long... numbers) {
    return arena.allocateFrom(ValueLayout.JAVA_LONG, numbers);
  }

  @Override
  public void close() {
    arena.close();
  }
}
