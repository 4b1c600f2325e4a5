package io.gpunvme.cuda.cufile;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.cuda.CCompiler;
import io.gpunvme.cuda.FakeDriver;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.nio.file.Path;
import java.util.List;

/** The stand-in for libcufile ({@code src/test/c/fake_cufile.c}) and its controls. */
final class FakeCuFile {
  private final Path file;
  private final SymbolLookup symbols;

  private FakeCuFile(Path file) {
    this.file = file;
    symbols = SymbolLookup.libraryLookup(file, Arena.global());
  }

  /** With nothing called yet; {@code options} are for the C compiler. */
  static FakeCuFile fresh(String... options) {
    FakeCuFile fake = new FakeCuFile(CCompiler.library("fake_cufile.c", options));
    fake.call("fake_cufile_reset", null);
    return fake;
  }

  /** A library of this version, as in 1150. */
  static FakeCuFile ofVersion(int version) {
    return fresh("-DFAKE_CUFILE_VERSION=" + version);
  }

  CuFile load() {
    return CuFile.load(file);
  }

  /** It notices memory that the driver frees too early. */
  FakeCuFile watching(FakeDriver driver) {
    driver.onFree(symbols.findOrThrow("fake_cufile_freed"));
    return this;
  }

  /** The {@code nth} call from now on fails, and those after it, {@code times} in all. */
  void fail(String name, int nth, int times, int code) {
    try (Arena arena = Arena.ofConfined()) {
      call("fake_cufile_fail", null, arena.allocateFrom(name), nth, times, code);
    }
  }

  /** The next call fails. */
  void fail(String name, int code) {
    fail(name, 1, 1, code);
  }

  /** No transfer moves more than this. */
  void shorten(long bytes) {
    call("fake_cufile_short", null, bytes);
  }

  /** The calls, with their arguments. */
  List<String> calls() {
    MemorySegment text = (MemorySegment) call("fake_cufile_order", ADDRESS);
    return text.reinterpret(1 << 16).getString(0).lines().map(String::strip).toList();
  }

  /** The functions called. */
  List<String> names() {
    return calls().stream().map(call -> call.split(" ")[0]).toList();
  }

  /** How many drivers, files, buffers, streams and batches are open. */
  int live() {
    return (int) call("fake_cufile_live", JAVA_INT);
  }

  /** Everything was given back, in a good order. */
  void assertClean() {
    assertThat(calls().stream().filter(c -> c.startsWith("MISUSE"))).isEmpty();
    assertThat((int) call("fake_cufile_misuses", JAVA_INT)).as("misuses").isZero();
    assertThat(live()).as("open drivers, files, buffers, streams and batches").isZero();
  }

  private Object call(String name, MemoryLayout result, Object... arguments) {
    MemoryLayout[] types = new MemoryLayout[arguments.length];
    for (int i = 0; i < types.length; i++) {
      types[i] =
          switch (arguments[i]) {
            case Integer _ -> JAVA_INT;
            case Long _ -> JAVA_LONG;
            default -> ADDRESS;
          };
    }
    FunctionDescriptor type =
        result == null ? FunctionDescriptor.ofVoid(types) : FunctionDescriptor.of(result, types);
    try {
      return Linker.nativeLinker()
          .downcallHandle(symbols.findOrThrow(name), type)
          .invokeWithArguments(arguments);
    } catch (Throwable t) {
      throw new AssertionError(t);
    }
  }
}
