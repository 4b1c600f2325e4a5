package io.gpunvme.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.testing.CLibrary;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** The stand-in for the driver library ({@code fake_cuda.c}) and its controls. */
public final class FakeDriver {
  private final CLibrary library;

  private FakeDriver(Path file) {
    library = new CLibrary(file);
  }

  /** With nothing called yet; {@code options} are for the C compiler. */
  public static FakeDriver fresh(String... options) {
    FakeDriver fake = new FakeDriver(StandIn.compile("cuda", options));
    fake.reset();
    return fake;
  }

  /** A driver of this version, as in 12020. */
  public static FakeDriver ofVersion(int version) {
    return fresh("-DFAKE_VERSION=" + version);
  }

  public Cuda load() {
    return load(library.file());
  }

  /** A driver of a file that {@link StandIn} compiled, in whatever process. */
  public static Cuda load(Path file) {
    return Cuda.load(file);
  }

  public CudaContext openContext() {
    return load().device(0).openPrimary();
  }

  /** Forgets everything. */
  public void reset() {
    library.call("fake_reset");
  }

  /** The {@code nth} call of a function, counted from its first ever, fails. */
  public void fail(String name, int nth, int code) {
    library.call("fake_fail", name, nth, code);
  }

  /** A C function is told of every block of device memory that is about to be freed. */
  public void onFree(MemorySegment function) {
    library.call("fake_on_free", function);
  }

  /**
   * What addresses are from now on.
   *
   * @param mapped where three mapped pieces begin, one behind the other
   * @param piece bytes of each; 0: there are none
   * @param otherContext whether allocations belong to another context
   */
  public void pretend(long mapped, long piece, boolean otherContext) {
    library.call("fake_pretend", mapped, piece, otherContext ? 1 : 0);
  }

  /** What streams say of their capture from now on: a CUstreamCaptureStatus. */
  public void capture(int status) {
    library.call("fake_capture", status);
  }

  /** Lets the calls of a function wait. */
  public void block(String name) {
    library.call("fake_block", name);
  }

  public void unblock() {
    block("");
  }

  /** Returns once {@code count} calls wait. */
  public void awaitWaiting(int count) {
    library.call("fake_await_waiting", count);
  }

  public int calls(String name) {
    return library.callInt("fake_calls", name);
  }

  /** Calls of a function by threads that had a memory policy. */
  public int placed(String name) {
    return library.callInt("fake_placed", name);
  }

  /** Arguments of the last call of a function. */
  public String last(String name) {
    return library.callText("fake_last", name);
  }

  /** The functions that were called. */
  List<String> names() {
    List<String> names = new ArrayList<>();
    while (true) {
      String name = library.callText("fake_name", names.size());
      if (name.isEmpty()) {
        return names;
      }
      names.add(name);
    }
  }

  /** Everything was freed, and nothing was called without the context or with a dead handle. */
  public void assertClean(String when) {
    assertClean(when, 0);
  }

  /** The same, but for so many contexts, each a hold on the primary one and four streams. */
  public void assertClean(String when, int contexts) {
    assertThat(live()).as("objects left after %s", when).isEqualTo(5 * contexts);
    assertThat(library.callInt("fake_misuses")).as("misuses in %s", when).isZero();
  }

  /** How many contexts, pieces of memory, streams, events and modules the driver holds. */
  public int live() {
    return library.callInt("fake_live");
  }

  /** The same without modules, which are loaded once and stay. */
  public int liveButModules() {
    return library.callInt("fake_live_but_modules");
  }
}
