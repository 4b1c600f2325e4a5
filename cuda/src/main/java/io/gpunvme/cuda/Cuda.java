package io.gpunvme.cuda;

import io.gpunvme.cuda.library.LibrarySearch;
import io.gpunvme.cuda.library.NativeLibrary;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * The CUDA driver library, the entry point of this package. Nothing is opened before {@link #load}.
 * Safe for all threads.
 */
public final class Cuda {
  private static final LibrarySearch SEARCH =
      new LibrarySearch(
          "the NVIDIA driver's CUDA library",
          "GPUNVME_LIBCUDA",
          List.of("libcuda.so.1", "libcuda.so"),
          List.of(
              Path.of("/usr/lib/x86_64-linux-gnu"),
              Path.of("/usr/lib/aarch64-linux-gnu"),
              Path.of("/usr/lib64"),
              Path.of("/usr/local/nvidia/lib64"),
              Path.of("/usr/lib/wsl/lib")),
          "install the NVIDIA driver (in a container, start it with access to the GPU)");

  private static @Nullable Cuda loaded;

  private final DriverApi api;
  private final String file;
  private final CudaVersion version;

  private Cuda(NativeLibrary library) {
    api = DriverApi.of(new Driver(library));
    file = library.file();
    version = api.devices().version();
    library.describe("the NVIDIA driver for CUDA " + version);
    api.devices().init();
  }

  /**
   * Opens the driver library that {@code GPUNVME_LIBCUDA} names, or else the system's; later calls
   * return the same.
   *
   * @throws CudaNotFoundException if there is none; the message says where it was looked for
   * @throws CudaException if it cannot work, for example without a GPU
   */
  public static synchronized Cuda load() {
    if (loaded == null) {
      loaded = new Cuda(SEARCH.open(System.getenv()));
    }
    return loaded;
  }

  /** The library in this file, for tests with another one. */
  static Cuda load(Path file) {
    return new Cuda(
        LibrarySearch.openFile(file)
            .orElseThrow(() -> new CudaNotFoundException(file + " cannot be opened")));
  }

  /** Whether {@link #load} works and finds at least one GPU. */
  public static boolean isAvailable() {
    try {
      return load().deviceCount() > 0;
    } catch (CudaNotFoundException | CudaException e) {
      return false;
    }
  }

  /** The name or path by which the library was opened. */
  public String library() {
    return file;
  }

  /** The newest version of CUDA that the driver supports. */
  public CudaVersion driverVersion() {
    return version;
  }

  /** Remembers the context of this thread until the returned object is closed. */
  public CallersContext keepCallersContext() {
    return new CallersContext(api.contexts());
  }

  /** The number of GPUs for this process. */
  public int deviceCount() {
    return api.devices().count();
  }

  /** All GPUs for this process, in the order of their ordinals. */
  public List<CudaDevice> devices() {
    return IntStream.range(0, deviceCount()).mapToObj(this::device).toList();
  }

  /**
   * A GPU.
   *
   * @param ordinal from 0 to {@link #deviceCount} - 1
   */
  public CudaDevice device(int ordinal) {
    return new CudaDevice(api, ordinal);
  }
}
