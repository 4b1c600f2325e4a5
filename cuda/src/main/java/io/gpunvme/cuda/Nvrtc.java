package io.gpunvme.cuda;

import io.gpunvme.cuda.library.LibrarySearch;
import io.gpunvme.cuda.library.NativeLibrary;
import io.gpunvme.cuda.library.Toolkits;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * NVIDIA's run-time compiler: CUDA C++ to PTX. Needs no GPU. Nothing is opened before {@link
 * #load}. Safe for all threads.
 */
public final class Nvrtc {
  private static final List<String> NAMES =
      List.of("libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12");

  private static @Nullable Nvrtc loaded;

  private final NvrtcCalls calls;
  private final String file;
  private final CudaVersion version;

  private Nvrtc(NativeLibrary library) {
    openBuiltins(Path.of(library.file()));
    calls = new NvrtcCalls(library);
    file = library.file();
    version = calls.version();
    library.describe("NVRTC " + version);
  }

  /**
   * Opens the library that {@code GPUNVME_LIBNVRTC} names, or else the system's; later calls return
   * the same.
   *
   * @throws CudaNotFoundException if there is none; the message says where it was looked for
   */
  public static synchronized Nvrtc load() {
    if (loaded == null) {
      Map<String, String> environment = System.getenv();
      loaded = new Nvrtc(search(environment, Path.of("/usr/local")).open(environment));
    }
    return loaded;
  }

  /** The library in this file, for tests with another one. */
  static Nvrtc load(Path file) {
    return new Nvrtc(
        LibrarySearch.openFile(file)
            .orElseThrow(() -> new CudaNotFoundException(file + " cannot be opened")));
  }

  /** {@code toolkits} is the folder that has {@code cuda}, {@code cuda-13.0} and so on. */
  static LibrarySearch search(Map<String, String> environment, Path toolkits) {
    return new LibrarySearch(
        "NVRTC, the CUDA run-time compiler,",
        "GPUNVME_LIBNVRTC",
        NAMES,
        Toolkits.libraries(environment, toolkits),
        "install it (package cuda-nvrtc-13-0 of NVIDIA's repository, or the CUDA toolkit)");
  }

  /**
   * NVRTC opens a second library by its bare name while it compiles. The dynamic loader finds it
   * outside of its own folders only if it is open already.
   */
  private static void openBuiltins(Path library) {
    Path folder = library.getParent();
    if (folder != null) {
      Toolkits.list(folder, "libnvrtc-builtins.so*").forEach(LibrarySearch::openFile);
    }
  }

  /** The name or path by which the library was opened. */
  public String library() {
    return file;
  }

  /** Its version: it compiles for architectures up to this version's newest. */
  public CudaVersion version() {
    return version;
  }

  /**
   * Compiles a program.
   *
   * @param options as for nvcc, for example {@code --gpu-architecture=compute_75}, {@code
   *     --std=c++17}
   * @throws CudaCompileException if the program has errors
   */
  public NvrtcProgram compile(NvrtcSource source, List<String> options) {
    long program = calls.create(source);
    try {
      int code = calls.compile(program, options);
      String log = calls.log(program);
      if (code != 0) {
        throw new CudaCompileException(
            "NVRTC "
                + version
                + " cannot compile "
                + source.name()
                + " with "
                + options
                + ": "
                + calls.errorText(code),
            log);
      }
      return new NvrtcProgram(calls.ptx(program), log);
    } finally {
      calls.destroy(program);
    }
  }
}
