package io.gpunvme.storage.path.cufile;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.cuda.CudaStandIn;
import io.gpunvme.cuda.cufile.CuFile;
import io.gpunvme.cuda.cufile.CuFileStandIn;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.queue.NativeCompiler;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The stand-ins for libcuda and libcufile of the module {@code cuda}, together: a GPU whose memory
 * is host memory, and cuFile that reads with {@code pread}. Compiled with gcc; tests skip with a
 * reason where there is none.
 */
public final class FakeGpuDirect {
  private static final Path SOURCES = Path.of("../cuda/src/test/c").toAbsolutePath();
  private static final Map<String, Path> LIBRARIES = new ConcurrentHashMap<>();

  /** The last one made: making it has reset the stand-in for libcuda, which all share. */
  private static volatile FakeGpuDirect last;

  private final Path cuda = cudaLibrary();
  private final CuFile library;
  private final SymbolLookup cudaSymbols = SymbolLookup.libraryLookup(cuda, Arena.global());
  private final SymbolLookup cuFileSymbols;
  private final GpuAccelerator accelerator;

  private FakeGpuDirect(Path cuFile) {
    cuFileSymbols = SymbolLookup.libraryLookup(cuFile, Arena.global());
    call(cudaSymbols, "fake_reset", null);
    call(cuFileSymbols, "fake_cufile_reset", null);
    call(cudaSymbols, "fake_on_free", null, cuFileSymbols.findOrThrow("fake_cufile_freed"));
    last = this;
    library = CuFileStandIn.load(cuFile);
    accelerator = GpuAccelerator.open(CudaStandIn.device(cuda));
  }

  /** With nothing open. */
  public static FakeGpuDirect fresh() {
    return new FakeGpuDirect(cuFileLibrary());
  }

  /** With cuFile of this version, as in 1130. */
  static FakeGpuDirect ofVersion(int version) {
    return new FakeGpuDirect(library("fake_cufile.c", "-DFAKE_CUFILE_VERSION=" + version));
  }

  /** What stands in for libcuda. */
  public static Path cudaLibrary() {
    return library("fake_cuda.c");
  }

  /** What stands in for libcufile; its name says so. */
  public static Path cuFileLibrary() {
    return library("fake_cufile.c");
  }

  private static Path library(String source, String... options) {
    return LIBRARIES.computeIfAbsent(
        source + List.of(options),
        _ -> {
          try {
            // As fake_cufile.c becomes libcufile.
            String name = source.replace("fake_", "lib").replace(".c", "-");
            Path file = Files.createTempFile("gpunvme-" + name, ".so");
            file.toFile().deleteOnExit();
            List<String> command =
                new ArrayList<>(List.of("gcc", "-O1", "-Wall", "-shared", "-fPIC", "-pthread"));
            command.addAll(List.of(options));
            command.addAll(List.of("-o", file.toString(), SOURCES.resolve(source).toString()));
            NativeCompiler.run(command);
            return file;
          } catch (IOException | InterruptedException e) {
            throw new AssertionError(e);
          }
        });
  }

  /** The GPU; the test's to close. */
  public GpuAccelerator accelerator() {
    return accelerator;
  }

  CuFilePath open(Path file, boolean writable, CuFileOptions options) {
    return open(file, writable, accelerator, options);
  }

  CuFilePath open(Path file, boolean writable, GpuAccelerator gpu, CuFileOptions options) {
    return CuFilePath.open(library, file.toString(), writable, gpu, options);
  }

  /** The {@code nth} call from now on fails, and those after it, {@code times} in all. */
  void fail(String name, int nth, int times, int code) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment text = arena.allocateFrom(name);
      call(cuFileSymbols, "fake_cufile_fail", null, text, nth, times, code);
    }
  }

  /** The next call of a function of CUDA fails. */
  public void failCuda(String name, int code) {
    failCuda(name, 1, code);
  }

  /** The {@code nth} call of a function of CUDA from now on fails. */
  public void failCuda(String name, int nth, int code) {
    int at = callsCuda(name) + nth;
    try (Arena arena = Arena.ofConfined()) {
      call(cudaSymbols, "fake_fail", null, arena.allocateFrom(name), at, code);
    }
  }

  /** Calls of a function of CUDA wait from now on; of none, if the name is empty. */
  public void blockCuda(String name) {
    try (Arena arena = Arena.ofConfined()) {
      call(cudaSymbols, "fake_block", null, arena.allocateFrom(name));
    }
  }

  /** Returns once {@code count} calls wait. */
  public void awaitBlockedCuda(int count) {
    call(cudaSymbols, "fake_await_waiting", null, count);
  }

  /** How often a function of CUDA was called. */
  public int callsCuda(String name) {
    try (Arena arena = Arena.ofConfined()) {
      return (int) call(cudaSymbols, "fake_calls", JAVA_INT, arena.allocateFrom(name));
    }
  }

  /** What CUDA's streams say of their capture from now on: a CUstreamCaptureStatus. */
  public void captureCuda(int status) {
    call(cudaSymbols, "fake_capture", null, status);
  }

  /** No transfer moves more than this. */
  void shorten(long bytes) {
    call(cuFileSymbols, "fake_cufile_short", null, bytes);
  }

  /** The calls of cuFile. */
  List<String> calls() {
    MemorySegment text = (MemorySegment) call(cuFileSymbols, "fake_cufile_order", ADDRESS);
    return text.reinterpret(1 << 16).getString(0).lines().map(String::strip).toList();
  }

  long count(String name) {
    return calls().stream().filter(c -> c.split(" ")[0].equals(name)).count();
  }

  /** How many drivers, files, buffers, streams and batches cuFile has open. */
  int live() {
    return (int) call(cuFileSymbols, "fake_cufile_live", JAVA_INT);
  }

  /** How many contexts, pieces of memory, streams, events and modules CUDA has given out. */
  public int liveCuda() {
    return (int) call(cudaSymbols, "fake_live", JAVA_INT);
  }

  /**
   * Everything of both was given back, in a good order; but cuFile's hold on the primary context
   * stays, with four streams.
   */
  public void assertClean() {
    assertThat(calls().stream().filter(c -> c.startsWith("MISUSE"))).isEmpty();
    assertThat((int) call(cuFileSymbols, "fake_cufile_misuses", JAVA_INT)).isZero();
    assertThat(live()).as("what cuFile has open").isZero();
    assertThat(liveCuda())
        .as("what CUDA has")
        .isEqualTo(last.count("cuFileDriverOpen") > 0 ? 5 : 0);
    assertThat((int) call(cudaSymbols, "fake_misuses", JAVA_INT)).as("misuses of CUDA").isZero();
  }

  private static Object call(
      SymbolLookup symbols, String name, MemoryLayout result, Object... arguments) {
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
