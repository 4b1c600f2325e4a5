package io.gpunvme.cuda.library;

import io.gpunvme.cuda.CudaFunctionMissingException;
import java.lang.foreign.MemorySegment;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** A C function of a library, looked up at its first call. Safe for all threads. */
public final class NativeFunction {
  private final NativeLibrary library;
  private final String[] symbols;
  private volatile @Nullable MemorySegment address;

  NativeFunction(NativeLibrary library, String... symbols) {
    this.library = library;
    this.symbols = symbols;
  }

  /** Its name in the manual: the symbol without the version at its end. */
  public String name() {
    return symbols[0].replaceFirst("_v[0-9]+$", "");
  }

  /** Whether this version of the library has it. */
  public boolean isPresent() {
    return address != null || find().isPresent();
  }

  /**
   * Its address, the first argument of a handle of {@link Downcall}.
   *
   * @throws CudaFunctionMissingException if this version of the library has not got it
   */
  public MemorySegment address() {
    MemorySegment known = address;
    if (known == null) {
      known =
          find().orElseThrow(() -> new CudaFunctionMissingException(name(), library.toString()));
      address = known;
    }
    return known;
  }

  private Optional<MemorySegment> find() {
    for (String symbol : symbols) {
      Optional<MemorySegment> found = library.find(symbol);
      if (found.isPresent()) {
        return found;
      }
    }
    return Optional.empty();
  }
}
