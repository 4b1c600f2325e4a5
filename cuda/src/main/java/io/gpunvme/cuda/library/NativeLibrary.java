package io.gpunvme.cuda.library;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.util.Optional;

/** An open shared library. Safe for all threads. */
public final class NativeLibrary {
  private final String file;
  private final SymbolLookup symbols;
  private volatile String description;

  /** The library that {@code symbols} looks into, opened by the name or path {@code file}. */
  public NativeLibrary(String file, SymbolLookup symbols) {
    this.file = file;
    this.symbols = symbols;
    this.description = file;
  }

  /** The name or path it was opened by. */
  public String file() {
    return file;
  }

  /** Adds the version to what errors say, once it is known. */
  public void describe(String version) {
    description = version + " (" + file + ")";
  }

  /** A symbol of it. */
  public Optional<MemorySegment> find(String name) {
    return symbols.find(name);
  }

  /** A function with these names in newer and older versions, the preferred one first. */
  public NativeFunction function(String... names) {
    return new NativeFunction(this, names);
  }

  @Override
  public String toString() {
    return description;
  }
}
