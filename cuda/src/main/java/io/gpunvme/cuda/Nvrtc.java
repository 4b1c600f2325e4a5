package io.gpunvme.cuda;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
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
   * @throws CudaNotFoundException if there is none; the message says what was looked for where
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
    List<Path> folders = new ArrayList<>();
    for (String variable : List.of("CUDA_HOME", "CUDA_PATH")) {
      String toolkit = environment.get(variable);
      if (toolkit != null && !toolkit.isEmpty()) {
        folders.add(Path.of(toolkit, "lib64"));
      }
    }
    folders.add(toolkits.resolve("cuda").resolve("lib64"));
    folders.addAll(versioned(toolkits));
    return new LibrarySearch(
        "NVRTC, the CUDA run-time compiler,",
        "GPUNVME_LIBNVRTC",
        NAMES,
        folders,
        "install it (package cuda-nvrtc-13-0 of NVIDIA's repository, or the CUDA toolkit)");
  }

  /**
   * NVRTC opens a second library by its bare name while it compiles. The dynamic loader finds it
   * outside of its own folders only if it is open already.
   */
  private static void openBuiltins(Path library) {
    Path folder = library.getParent();
    if (folder != null) {
      list(folder, "libnvrtc-builtins.so*").forEach(LibrarySearch::openFile);
    }
  }

  /** The folders of installed toolkits, the last name, mostly the newest version, first. */
  private static List<Path> versioned(Path toolkits) {
    return list(toolkits, "cuda-*").stream()
        .sorted(Comparator.reverseOrder())
        .map(toolkit -> toolkit.resolve("lib64"))
        .toList();
  }

  private static List<Path> list(Path folder, String pattern) {
    List<Path> found = new ArrayList<>();
    if (Files.isDirectory(folder)) {
      try (DirectoryStream<Path> files = Files.newDirectoryStream(folder, pattern)) {
        files.forEach(found::add);
      } catch (IOException e) {
        throw new UncheckedIOException("cannot list " + folder, e);
      }
    }
    return found;
  }

  /** The library, as it was opened. */
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
