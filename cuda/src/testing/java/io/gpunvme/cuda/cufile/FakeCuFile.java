package io.gpunvme.cuda.cufile;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.cuda.FakeDriver;
import io.gpunvme.cuda.StandIn;
import io.gpunvme.testing.CLibrary;
import java.nio.file.Path;
import java.util.List;

/** The stand-in for libcufile ({@code fake_cufile.c}) and its controls. */
public final class FakeCuFile {
  private final CLibrary library;

  private FakeCuFile(Path file) {
    library = new CLibrary(file);
  }

  /** With nothing called yet; {@code options} are for the C compiler. */
  public static FakeCuFile fresh(String... options) {
    FakeCuFile fake = new FakeCuFile(StandIn.compile("cufile", options));
    fake.library.call("fake_cufile_reset");
    return fake;
  }

  /** A library of this version, as in 1150. */
  public static FakeCuFile ofVersion(int version) {
    return fresh("-DFAKE_CUFILE_VERSION=" + version);
  }

  public CuFile load() {
    return CuFile.load(library.file());
  }

  /** It notices memory that the driver frees too early. */
  public FakeCuFile watching(FakeDriver driver) {
    driver.onFree(library.address("fake_cufile_freed"));
    return this;
  }

  /** The {@code nth} call from now on fails, and those after it, {@code times} in all. */
  public void fail(String name, int nth, int times, int code) {
    library.call("fake_cufile_fail", name, nth, times, code);
  }

  /** The next call fails. */
  void fail(String name, int code) {
    fail(name, 1, 1, code);
  }

  /** No transfer moves more than this. */
  public void shorten(long bytes) {
    library.call("fake_cufile_short", bytes);
  }

  /** The calls, with their arguments. */
  public List<String> calls() {
    return library.callText("fake_cufile_order").lines().map(String::strip).toList();
  }

  /** The functions called. */
  public List<String> names() {
    return calls().stream().map(call -> call.split(" ")[0]).toList();
  }

  /** How many drivers, files, buffers, streams and batches are open. */
  public int live() {
    return library.callInt("fake_cufile_live");
  }

  /** Everything was given back, in a good order. */
  public void assertClean() {
    assertThat(calls().stream().filter(c -> c.startsWith("MISUSE"))).isEmpty();
    assertThat(library.callInt("fake_cufile_misuses")).as("misuses").isZero();
    assertThat(live()).as("open drivers, files, buffers, streams and batches").isZero();
  }
}
