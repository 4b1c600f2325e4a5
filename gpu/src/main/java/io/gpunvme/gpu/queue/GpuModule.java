package io.gpunvme.gpu.queue;

import io.gpunvme.cuda.CudaFunction;
import io.gpunvme.cuda.CudaModule;
import io.gpunvme.cuda.Nvrtc;
import io.gpunvme.cuda.NvrtcProgram;
import io.gpunvme.cuda.NvrtcSource;
import io.gpunvme.gpu.accel.GpuAccelerator;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Device code loaded on a GPU: the library's own kernels, or a user's, compiled at run time against
 * the device library's headers. Safe for all threads.
 *
 * <p>Loading may wait for running kernels: load everything before you launch a kernel that waits
 * for others.
 */
public final class GpuModule implements AutoCloseable {
  /** The device library, in no particular order. */
  static final List<String> HEADERS =
      List.of(
          "array.cuh",
          "block.cuh",
          "cache.cuh",
          "directory.cuh",
          "exclusive.cuh",
          "file.cuh",
          "frames.cuh",
          "gpunvme.cuh",
          "io.cuh",
          "memory.cuh",
          "owned.cuh",
          "platform.cuh",
          "queue.cuh",
          "recovery.cuh",
          "server.cuh",
          "service.cuh",
          "set.cuh",
          "shared.cuh",
          "spec.cuh",
          "status.cuh",
          "tier.cuh");

  private final CudaModule module;
  private final Runnable closing;

  private GpuModule(CudaModule module, Runnable closing) {
    this.module = module;
    this.closing = closing;
  }

  /**
   * Loads PTX, or an image for this GPU.
   *
   * @throws io.gpunvme.cuda.CudaModuleException with the driver's compiler's log
   */
  public static GpuModule load(GpuAccelerator accelerator, byte[] ptxOrCubin) {
    CudaModule module =
        accelerator.betweenKernels(() -> accelerator.context().loadModule(ptxOrCubin));
    // Unloading waits for all kernels of the GPU.
    return new GpuModule(module, () -> accelerator.closeBetweenKernels(module::close));
  }

  /**
   * One of the library's own kernels, loaded once for all users, until the accelerator is closed.
   *
   * @param name as of its file, e.g. {@code transfer}
   */
  public static GpuModule resource(GpuAccelerator accelerator, String name) {
    return accelerator.shared(
        GpuModule.class,
        "module " + name,
        () ->
            new GpuModule(
                accelerator.context().loadModule(resource("ptx/" + name + ".ptx")), () -> {}));
  }

  /**
   * Compiles CUDA C++ and loads it. {@code #include "gpunvme/gpunvme.cuh"} finds the device library
   * of this version.
   *
   * @param name for messages, e.g. {@code gather.cu}
   * @param source the text
   * @param options of NVRTC; without {@code --gpu-architecture} it compiles for the oldest that the
   *     device library supports, which every newer GPU takes
   * @throws io.gpunvme.cuda.CudaNotFoundException if NVRTC is not on this machine
   * @throws io.gpunvme.cuda.CudaCompileException with the compiler's log
   */
  public static GpuModule compile(
      GpuAccelerator accelerator, String name, String source, String... options) {
    List<String> all = new ArrayList<>(List.of(options));
    if (all.stream().noneMatch(option -> option.startsWith("--gpu-architecture"))) {
      all.add("--gpu-architecture=compute_75");
    }
    all.add("--std=c++17");
    NvrtcProgram program = Nvrtc.load().compile(new NvrtcSource(name, source, headers()), all);
    return load(accelerator, program.ptx());
  }

  /**
   * The device library's text by the names under which {@code #include} asks for its files, for
   * those who compile without a GPU: by {@link Nvrtc}, or from a folder by nvcc.
   */
  public static Map<String, String> headers() {
    // They include each other by their bare names, which NVRTC may or may not take as relative to
    // the includer's folder: each is there by both names, and guarded, for #pragma once goes by
    // names.
    Map<String, String> headers = new LinkedHashMap<>();
    for (String header : HEADERS) {
      String text = new String(resource("include/gpunvme/" + header), StandardCharsets.UTF_8);
      String guard = "GPUNVME_HEADER_" + header.replaceAll("\\W", "_");
      String guarded = "#ifndef %s\n#define %s\n%s\n#endif\n".formatted(guard, guard, text);
      headers.put(header, guarded);
      headers.put("gpunvme/" + header, guarded);
    }
    return headers;
  }

  private static byte[] resource(String name) {
    try (InputStream stream = GpuModule.class.getResourceAsStream("/io/gpunvme/gpu/" + name)) {
      if (stream == null) {
        throw new IllegalStateException("this build has no " + name);
      }
      return stream.readAllBytes();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /**
   * A kernel.
   *
   * @param name as in the PTX: {@code extern "C"} or mangled
   * @throws io.gpunvme.cuda.CudaException if there is none of this name
   */
  public CudaFunction function(String name) {
    return module.function(name);
  }

  /** The module, for its global variables. */
  public CudaModule module() {
    return module;
  }

  /** Unloads it once no kernel runs, which may be later. Does nothing if it is shared. */
  @Override
  public void close() {
    closing.run();
  }
}
