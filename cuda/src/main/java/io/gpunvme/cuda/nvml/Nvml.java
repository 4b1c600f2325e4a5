package io.gpunvme.cuda.nvml;

import io.gpunvme.cuda.CudaNotFoundException;
import io.gpunvme.cuda.library.LibrarySearch;
import io.gpunvme.cuda.library.NativeLibrary;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** NVIDIA's management library. It comes with the driver. Safe for all threads. */
public final class Nvml {
  private static final List<String> NAMES = List.of("libnvidia-ml.so.1");

  private static final LibrarySearch SEARCH =
      new LibrarySearch(
          "NVML, NVIDIA's management library,",
          "GPUNVME_LIBNVML",
          NAMES,
          List.of(),
          "it comes with NVIDIA's driver (Debian: package libnvidia-ml1)");

  private final NvmlCalls calls;

  private Nvml(NativeLibrary library) {
    calls = new NvmlCalls(library);
  }

  /**
   * Opens the library that {@code GPUNVME_LIBNVML} names, or else the system's.
   *
   * @throws CudaNotFoundException if there is none; the message says where it was looked for
   */
  public static Nvml load() {
    return load(System.getenv());
  }

  static Nvml load(Map<String, String> environment) {
    return new Nvml(SEARCH.open(environment));
  }

  /** The library in this file, for tests with another one. */
  static Nvml load(Path file) {
    return load(Map.of("GPUNVME_LIBNVML", file.toString()));
  }

  /**
   * The active NVLinks of all GPUs that this process may see; none on GPUs without NVLink.
   *
   * @throws NvmlException if NVML fails: without a driver, or where it may not be asked
   * @throws io.gpunvme.cuda.CudaFunctionMissingException if the library is too old
   */
  public List<NvLink> links() {
    calls.open();
    try {
      List<NvLink> links = new ArrayList<>();
      for (int i = 0; i < calls.count(); i++) {
        long device = calls.device(i);
        String address = calls.address(device);
        for (int link = 0; link < NvmlCalls.MOST_LINKS; link++) {
          if (calls.active(device, link)) {
            links.add(
                new NvLink(
                    address,
                    link,
                    calls.version(device, link),
                    NvLink.End.of(calls.remoteType(device, link)),
                    calls.remoteAddress(device, link)));
          }
        }
      }
      return links;
    } finally {
      calls.close();
    }
  }
}
