package io.gpunvme.cuda;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** The stand-in for the driver library ({@code src/test/c/fake_cuda.c}) and its controls. */
public final class FakeDriver {
  private final Path file;
  private final SymbolLookup symbols;

  private FakeDriver(Path file) {
    this.file = file;
    symbols = SymbolLookup.libraryLookup(file, Arena.global());
  }

  /** With nothing called yet; {@code options} are for the C compiler. */
  public static FakeDriver fresh(String... options) {
    FakeDriver fake = new FakeDriver(CCompiler.library("fake_cuda.c", options));
    fake.call("fake_reset", null);
    return fake;
  }

  /** A driver of this version, as in 12020. */
  public static FakeDriver ofVersion(int version) {
    return fresh("-DFAKE_VERSION=" + version);
  }

  public Cuda load() {
    return Cuda.load(file);
  }

  public CudaContext openContext() {
    return load().device(0).openPrimary();
  }

  /** Forgets everything. */
  public void reset() {
    call("fake_reset", null);
  }

  /** The {@code nth} call of a function from now on (counted from its first ever) fails. */
  public void fail(String name, int nth, int code) {
    try (Arena arena = Arena.ofConfined()) {
      call("fake_fail", null, arena.allocateFrom(name), nth, code);
    }
  }

  /** A C function is told of every block of device memory that is about to be freed. */
  public void onFree(MemorySegment function) {
    call("fake_on_free", null, function);
  }

  /**
   * What addresses are from now on.
   *
   * @param mapped where three mapped pieces begin, one behind the other
   * @param piece bytes of each; 0: there are none
   * @param otherContext whether allocations belong to another context
   */
  public void pretend(long mapped, long piece, boolean otherContext) {
    call("fake_pretend", null, mapped, piece, otherContext ? 1 : 0);
  }

  /** What streams say of their capture from now on: a CUstreamCaptureStatus. */
  public void capture(int status) {
    call("fake_capture", null, status);
  }

  /** Lets the calls of a function wait. */
  public void block(String name) {
    try (Arena arena = Arena.ofConfined()) {
      call("fake_block", null, arena.allocateFrom(name));
    }
  }

  public void unblock() {
    block("");
  }

  /** Returns once {@code count} calls wait. */
  public void awaitWaiting(int count) {
    call("fake_await_waiting", null, count);
  }

  public int calls(String name) {
    try (Arena arena = Arena.ofConfined()) {
      return (int) call("fake_calls", JAVA_INT, arena.allocateFrom(name));
    }
  }

  /** Arguments of the last call of a function. */
  public String last(String name) {
    try (Arena arena = Arena.ofConfined()) {
      return text((MemorySegment) call("fake_last", ADDRESS, arena.allocateFrom(name)));
    }
  }

  /** The functions that were called. */
  List<String> names() {
    List<String> names = new ArrayList<>();
    while (true) {
      MemorySegment name = (MemorySegment) call("fake_name", ADDRESS, names.size());
      if (name.address() == 0) {
        return names;
      }
      names.add(text(name));
    }
  }

  /** Everything was freed, and nothing was called without the context or with a dead handle. */
  public void assertClean(String when) {
    assertClean(when, 0);
  }

  /** The same, but for so many contexts, each a hold on the primary one and four streams. */
  public void assertClean(String when, int contexts) {
    assertThat(live()).as("objects left after %s", when).isEqualTo(5 * contexts);
    assertThat((int) call("fake_misuses", JAVA_INT)).as("misuses in %s", when).isZero();
  }

  /** How many objects the driver holds. */
  public int live() {
    return (int) call("fake_live", JAVA_INT);
  }

  private static String text(MemorySegment pointer) {
    return pointer.reinterpret(4096).getString(0);
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
