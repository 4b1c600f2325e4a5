package io.gpunvme.storage.path.cufile;

import io.gpunvme.cuda.FakeDriver;
import io.gpunvme.cuda.StandIn;
import io.gpunvme.cuda.cufile.CuFile;
import io.gpunvme.cuda.cufile.FakeCuFile;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.nvme.pci.NumaHome;
import java.nio.file.Path;
import java.util.List;

/**
 * The stand-ins for libcuda and libcufile of the module {@code cuda}, together: a GPU whose memory
 * is host memory, and cuFile that reads with {@code pread}. Compiled with gcc; tests skip with a
 * reason where there is none.
 */
public final class FakeGpuDirect {
  /** The last one made: making it has reset the stand-in for libcuda, which all share. */
  private static volatile FakeGpuDirect last;

  private final FakeDriver driver;
  private final FakeCuFile cuFile;
  private final CuFile library;
  private final GpuAccelerator accelerator;

  private FakeGpuDirect(FakeCuFile fake) {
    driver = FakeDriver.fresh();
    cuFile = fake.watching(driver);
    last = this;
    library = cuFile.load();
    accelerator = GpuAccelerator.open(driver.load().device(0));
  }

  /** With nothing open. */
  public static FakeGpuDirect fresh() {
    return new FakeGpuDirect(FakeCuFile.fresh());
  }

  /** With cuFile of this version, as in 1130. */
  static FakeGpuDirect ofVersion(int version) {
    return new FakeGpuDirect(FakeCuFile.ofVersion(version));
  }

  /** What stands in for libcuda. */
  public static Path cudaLibrary() {
    return StandIn.compile("cuda");
  }

  /** What stands in for libcufile; its name says so. */
  public static Path cuFileLibrary() {
    return StandIn.compile("cufile");
  }

  /** The GPU; the test's to close. */
  public GpuAccelerator accelerator() {
    return accelerator;
  }

  CuFilePath open(Path file, boolean writable, CuFileOptions options) {
    return open(file, writable, accelerator, options);
  }

  CuFilePath open(Path file, boolean writable, GpuAccelerator gpu, CuFileOptions options) {
    return CuFilePath.open(library, file.toString(), writable, gpu, options, NumaHome.NONE);
  }

  /** The {@code nth} call from now on fails, and those after it, {@code times} in all. */
  void fail(String name, int nth, int times, int code) {
    cuFile.fail(name, nth, times, code);
  }

  /** The next call of a function of CUDA fails. */
  public void failCuda(String name, int code) {
    failCuda(name, 1, code);
  }

  /** The {@code nth} call of a function of CUDA from now on fails. */
  public void failCuda(String name, int nth, int code) {
    driver.fail(name, driver.calls(name) + nth, code);
  }

  /** Calls of a function of CUDA wait from now on; of none, if the name is empty. */
  public void blockCuda(String name) {
    driver.block(name);
  }

  /** Returns once {@code count} calls wait. */
  public void awaitBlockedCuda(int count) {
    driver.awaitWaiting(count);
  }

  /** How often a function of CUDA was called. */
  public int callsCuda(String name) {
    return driver.calls(name);
  }

  /** What CUDA's streams say of their capture from now on: a CUstreamCaptureStatus. */
  public void captureCuda(int status) {
    driver.capture(status);
  }

  /** No transfer moves more than this. */
  void shorten(long bytes) {
    cuFile.shorten(bytes);
  }

  /** The calls of cuFile. */
  List<String> calls() {
    return cuFile.calls();
  }

  long count(String name) {
    return cuFile.names().stream().filter(name::equals).count();
  }

  /** How many drivers, files, buffers, streams and batches cuFile has open. */
  int live() {
    return cuFile.live();
  }

  /** How many contexts, pieces of memory, streams, events and modules CUDA has given out. */
  public int liveCuda() {
    return driver.live();
  }

  /**
   * Everything of both was given back, in a good order; but cuFile's hold on the primary context
   * stays, with four streams.
   */
  public void assertClean() {
    cuFile.assertClean();
    driver.assertClean("the test", last.count("cuFileDriverOpen") > 0 ? 1 : 0);
  }
}
