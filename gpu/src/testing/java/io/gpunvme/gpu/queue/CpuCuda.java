package io.gpunvme.gpu.queue;

import io.gpunvme.cuda.StandIn;
import io.gpunvme.testing.NativeCompiler;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;

/**
 * A library in the place of libcuda.so whose one GPU is the CPU: what is launched on it is the real
 * device code, compiled by g++. So commands and programs can have a GPU as initiator where there is
 * none: {@code GPUNVME_LIBCUDA} names the library. It addresses host memory only.
 */
public final class CpuCuda {
  private static final String WARP = "32";
  private static final String THREAD = "1";

  /** All of a block: they share out words, and whoever plays them all has them all. */
  private static final String BLOCK = "256";

  /** Of each file of kernels, those that can be launched, and how many threads one thread plays. */
  private static final Map<String, Map<String, String>> KERNELS = kernels();

  private static final String[] OPTIONS = {
    "-O1", "-Wno-missing-field-initializers", DeviceSources.INCLUDE
  };

  private static final Path TWIN = Path.of("../gpu/src/testing/c/twin.hpp").toAbsolutePath();

  private CpuCuda() {}

  private static Map<String, Map<String, String>> kernels() {
    Map<String, Map<String, String>> all = new LinkedHashMap<>();
    all.put("transfer", Map.of("gpunvme_transfer", WARP));
    all.put("arrival", Map.of("gpunvme_arrival", THREAD));
    all.put("gather", Map.of("gpunvme_gather", THREAD));
    all.put("cache", Map.of("gpunvme_cache_clean", WARP, "gpunvme_cache_flush", WARP));
    all.put("arrays", Map.of("gpunvme_bench_array_writes", THREAD));
    all.put("rows", rows());
    all.put("reads", Map.of("gpunvme_bench_layer", BLOCK));
    all.put("tensors", tensors());
    all.put("graph", graph());
    return all;
  }

  private static Map<String, String> graph() {
    Map<String, String> all = new TreeMap<>();
    for (String name :
        List.of(
            "source",
            "distances_next",
            "components_begin",
            "components_end",
            "ranks_begin",
            "ranks_end")) {
      all.put("gpunvme_graph_" + name, WARP);
    }
    for (String name :
        List.of(
            "levels_sweep",
            "levels_follow",
            "distances_sweep",
            "distances_follow",
            "components_sweep",
            "ranks_sweep")) {
      all.put("gpunvme_graph_" + name, WARP);
      all.put("gpunvme_graph_" + name + "_plain", WARP);
      all.put("gpunvme_graph_" + name + "_traced", WARP);
    }
    return all;
  }

  private static Map<String, String> rows() {
    Map<String, String> all = new TreeMap<>();
    List.of("gather", "fetch", "update")
        .forEach(name -> all.put("gpunvme_%s_rows".formatted(name), WARP));
    return all;
  }

  private static Map<String, String> tensors() {
    Map<String, String> all = new TreeMap<>();
    all.put("gpunvme_crc32c", BLOCK);
    for (int bytes = 1; bytes <= 16; bytes *= 2) {
      all.put("gpunvme_copy_rows_" + bytes, BLOCK);
    }
    return all;
  }

  private static String source(String file, Map<String, String> kernels) {
    return include("kernels/" + file + ".cu", kernels);
  }

  private static String include(String file, Map<String, String> kernels) {
    StringBuilder text =
        new StringBuilder(DeviceSources.CUDA_WORDS)
            .append("#include \"%s\"\n#include \"%s\"\n".formatted(file, TWIN));
    kernels.forEach((kernel, lanes) -> text.append("TWIN(%s, %s);\n".formatted(kernel, lanes)));
    return text.toString();
  }

  private static String[] standIn(int gpus, List<String> kernels) {
    return new String[] {
      "-DFAKE_DEVICES=" + gpus,
      "-DFAKE_IN_ORDER=1",
      "-DFAKE_MAPPED=0",
      "-DFAKE_FREE=(1ul<<30)",
      "-DFAKE_KERNELS=\"" + String.join(":", kernels) + "\""
    };
  }

  /** Compiles it, once for all; the test is skipped without compilers. */
  public static Path library() {
    return library(1);
  }

  /** The same with several GPUs, all of them the CPU. */
  public static Path library(int gpus) {
    return library(gpus, KERNELS, OPTIONS);
  }

  /**
   * The same with the kernels of one file only, of which each thread is one here. So they should
   * not be many.
   *
   * @param options of the compiler, besides
   */
  public static Path library(String file, Collection<String> kernels, String... options) {
    Map<String, String> threads = new TreeMap<>();
    kernels.forEach(kernel -> threads.put(kernel, THREAD));
    return library(
        1,
        Map.of(file, threads),
        Stream.concat(Arrays.stream(OPTIONS), Arrays.stream(options)).toArray(String[]::new));
  }

  private static Path library(int gpus, Map<String, Map<String, String>> files, String... options) {
    List<String> libraries = new ArrayList<>();
    files.forEach(
        (file, kernels) ->
            libraries.add(
                NativeCompiler.CPP
                    .library("kernels-" + file, source(file, kernels), options)
                    .toString()));
    return StandIn.compile("cuda", standIn(gpus, libraries));
  }

  /**
   * Compiles it for another machine, or for programs that are no tests of Java: into a folder, for
   * use at the place that the second argument names. If there are more, they are a file of kernels
   * and those of its kernels that can be launched, too.
   */
  public static void main(String[] arguments) throws IOException {
    Path folder = Path.of(arguments[0]);
    Map<String, String> sources = new LinkedHashMap<>();
    KERNELS.forEach((file, kernels) -> sources.put(file, source(file, kernels)));
    if (arguments.length > 2) {
      Map<String, String> more = new TreeMap<>();
      Arrays.stream(arguments).skip(3).forEach(kernel -> more.put(kernel, THREAD));
      sources.put("more", include(Path.of(arguments[2]).toAbsolutePath().toString(), more));
    }
    List<String> kernels = new ArrayList<>();
    for (Map.Entry<String, String> source : sources.entrySet()) {
      String name = source.getKey() + ".so";
      Path library =
          NativeCompiler.CPP.library("kernels-" + source.getKey(), source.getValue(), OPTIONS);
      Files.copy(library, folder.resolve(name));
      kernels.add(arguments[1] + "/" + name);
    }
    Files.copy(StandIn.compile("cuda", standIn(1, kernels)), folder.resolve("libcuda.so.1"));
  }
}
