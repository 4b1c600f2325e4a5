package io.gpunvme.tools.report;

import java.util.Map;

/** What the results of this project's benchmarks mean, by their ids. */
public final class Meanings {
  private static final String SKEWED =
      "elements of an array 16 times the cache, half of them of a sixteenth of its pages,";

  private static final String HOST_COPY = "ceiling.memcpy";

  private static final Map<String, String> EXACT =
      Map.ofEntries(
          Map.entry(
              "cpu.copy.4k",
              "one thread copying random 4 KiB blocks, nothing around it: the limit of the copying"
                  + " rows"),
          Map.entry(
              "queue.cpu.4k.inline",
              "the same blocks as Read commands; driver and strict controller on one thread"),
          Map.entry("queue.cpu.4k.thread", "the same, the controller on a thread of its own"),
          Map.entry(
              "queue.cpu.nocopy.inline",
              "as 4k.inline, but the controller checks and completes without moving data"),
          Map.entry("queue.cpu.nocopy.thread", "as 4k.thread, without moving data"),
          Map.entry(
              "start.jvm",
              "a Java virtual machine that does nothing: the floor of the start times"),
          Map.entry("start.help", "the built command, from start to exit"),
          Map.entry(
              "start.identify",
              "the same, bringing an embedded controller up and decoding what it says"),
          Map.entry(
              "start.python",
              "a Python program that imports gpunvme, reads 4 KiB of a file, and ends"),
          Map.entry(
              "queue.cpu.driver-alone",
              "submit, ring and poll in the driver, against a responder that only echoes CIDs"),
          Map.entry(
              "vfio-user.idle.no-client", "processor time of a served controller without a client"),
          Map.entry("vfio-user.idle.client", "the same with a client that does nothing"),
          Map.entry(
              "vfio-user.idle.first-read",
              "one read of 4 KiB after that, from the call to its return"));

  private Meanings() {}

  /** Part of a sentence; empty for ids that are not ours. */
  public static String of(String id) {
    if (id.startsWith("vfio-user.4k.")) {
      return served(id);
    }
    if (id.startsWith("small.")) {
      return small(id);
    }
    String exact = EXACT.get(id);
    return exact == null ? byParts(id) : exact;
  }

  private static String cache(String id) {
    String lanes = id.endsWith(".lanes1") ? ", one lane of each warp" : "";
    if (id.startsWith("cache.hits.")) {
      String counted = id.endsWith(".uncounted") ? "; acquires are not counted" : "";
      return (id.contains("pages")
              ? "pages that are in the cache, one for each warp each time"
              : id.contains("in-order")
                  ? "words of pages that are in the cache, neighbours for neighbouring lanes"
                  : "words of pages that are in the cache, another page for each lane")
          + counted;
    }
    return switch (id.replace(".lanes1", "")) {
          case "cache.misses" ->
              "random pages of an array 16 times the cache, by an element of each";
          case "cache.tier" -> SKEWED + " through a host tier 3 times the cache";
          case "cache.tier.off" -> SKEWED + " without a host tier";
          case "cache.writes" -> "pages of an array stored whole in the cache, and written by it";
          case "cache.raw.writes" -> "the same pages stored and written past the cache";
          default -> "random pages read past the cache, by shared queues";
        }
        + lanes;
  }

  private static String graph(String id) {
    String where =
        id.endsWith(".cpu")
            ? ", by one thread of the CPU with all of it in memory"
            : id.endsWith(".vram")
                ? ", all edges in GPU memory"
                : id.endsWith(".host")
                    ? ", all edges in pinned host memory"
                    : ", edges read from an embedded SSD through a cache of a quarter of them";
    return id.split("\\.")[1] + " on a Kronecker graph, edges that are visited" + where;
  }

  private static String gpus(String id) {
    String who =
        id.endsWith(".both")
            ? "both of two GPUs at the same time"
            : id.endsWith(".0") ? "the first of two GPUs alone" : "the second of two GPUs alone";
    return who + ", one storage for both, every byte checked";
  }

  private static String byParts(String id) {
    if (id.equals("ceiling.h2d")) {
      return "large copies from pinned host memory to the GPU: the limit of every stream";
    }
    if (id.startsWith("ceiling.copy.")) {
      return "random single blocks copied by as many threads as the SSD has, nothing else: the"
          + " limit of random reads";
    }
    if (id.equals("queue.qd1.round-trip")) {
      return "a word to a polling thread and another back: the limit of every latency";
    }
    if (id.startsWith("queue.qd1")) {
      return "one command at a time, from building it to its status, GPU clock";
    }
    if (id.equals("random.4k.served")) {
      return "random blocks of 4 KiB from an embedded SSD in another process, over vfio-user, each"
          + " checked on the GPU";
    }
    if (id.startsWith("random.")) {
      return "random single blocks from an embedded SSD in memory, each checked on the GPU";
    }
    if (id.startsWith("stream.")) {
      return "1 MiB reads from an embedded SSD in pinned memory, every byte checked on the GPU";
    }
    if (id.startsWith("tensors.")) {
      return tensors(id);
    }
    if (id.startsWith("short.")) {
      return shortReads(id);
    }
    if (id.startsWith("cache.")) {
      return cache(id);
    }
    if (id.startsWith("graph.")) {
      return graph(id);
    }
    if (id.startsWith("gpus.")) {
      return gpus(id);
    }
    if (id.equals("set.copy")) {
      return "plain copies from pinned memory to the GPU: the limit of the sets";
    }
    if (id.startsWith("set.")) {
      return "long reads of a set of embedded SSDs in memory, every byte compared";
    }
    if (id.startsWith("shards.")) {
      return "a model to two GPUs by load_sharded, memory and opening of its files included";
    }
    if (id.startsWith("dcp.")) {
      return "a sharded state by torch.distributed.checkpoint, all ranks together";
    }
    if (id.startsWith("weights.")) {
      return id.endsWith(".rank")
          ? "rank 1 of 4 of the same model: bytes read in times of those that it needs"
          : "a model of 9 GiB in 4 files striped over 4 embedded SSDs in pinned memory, by kernels"
              + " into its tensors, allocation included; the checksum of every tensor compared";
    }
    if (id.startsWith("layers.")) {
      return "64 layers of 64 MiB read while a kernel works with the layer before: time of both in"
          + " times of the longer of the two alone, every word checked on the GPU";
    }
    if (id.startsWith("paths.")) {
      return path(id);
    }
    if (id.startsWith("bindings.") || id.equals(HOST_COPY)) {
      return bindings(id);
    }
    if (id.startsWith("limit.disk.")) {
      return "plain reads past the page cache by threads, wanted nowhere: what the disk can do";
    }
    if (id.startsWith("limit.cache.")) {
      return "plain reads of cached pages by threads, wanted nowhere: what the page cache can do";
    }
    if (id.startsWith("queue.host.") || id.startsWith("queue.vram.")) {
      return queue(id);
    }
    return "";
  }

  private static String shortReads(String id) {
    return switch (id) {
      case "short.4k.copy" -> "one CUDA copy of 4 KiB from pinned memory, waited for";
      case "short.4k.gpu" ->
          "one GpuStorage.read of 4 KiB to GPU memory at a time, each by a kernel; median";
      case "short.4k.gpu.beside" -> "the same while a long read of the same storage goes on";
      case "short.4k.gpu.threads.24" -> "the same by 24 threads with one read each";
      default -> "";
    };
  }

  private static String bindings(String id) {
    return switch (id) {
      case HOST_COPY -> "one thread copying host memory: the limit of reads without a GPU";
      case "bindings.call.java" ->
          "asking whether a finished request is over, by the Java API: from a number to the request"
              + " and its state";
      case "bindings.call.c" -> "gpunvme_poll of a finished request, from C";
      case "bindings.call.python" ->
          "Request.poll() of a finished request, which it remembers; by ctypes: gpunvme_poll";
      case "bindings.read.java" ->
          "one read of all of an embedded SSD, every byte compared; Java, C and Python in turn";
      case "bindings.read.c" -> "the same by gpunvme_read";
      case "bindings.read.python" -> "the same by gpunvme.torch.read_into_tensor";
      default -> "";
    };
  }

  private static String tensors(String id) {
    if (id.endsWith(".copy")) {
      return "a plain copy in GPU memory: the limit of copies of rows";
    }
    return id.endsWith(".crc32c")
        ? "the CRC-32C of GPU memory, put together on the host, beside a plain copy of as much"
        : "every other row of a matrix in GPU memory packed together, every byte checked";
  }

  private static String path(String id) {
    if (id.endsWith(".ram")) {
      return "reads by kernels from an embedded SSD in pinned memory, beside cuFile's best";
    }
    String what = id.contains(".rand") ? "random blocks of 4 KiB" : "a file from start to end";
    String state = id.contains(".warm") ? "cached" : "not cached";
    return what + ", " + state + ", every byte compared";
  }

  private static String queue(String id) {
    String where = id.startsWith("queue.vram.") ? "GPU memory" : "host memory";
    if (id.endsWith(".billion")) {
      return "a billion commands, each CID, number and field checked; queues in " + where;
    }
    String who =
        id.contains(".shared.")
            ? "queues that all warps share"
            : id.contains(".served.")
                ? "queues that all warps share and others serve"
                : id.contains(".block.") ? "a block of four warps per queue" : "a warp per queue";
    String how =
        id.contains(".lanes")
            ? ", some lanes of each warp calling"
            : id.endsWith(".two-places")
                ? ", lanes calling from two places"
                : id.endsWith(".own-times") ? ", lanes calling at times of their own" : "";
    return who + " in " + where + how + "; the responder moves no data";
  }

  private static String served(String id) {
    String what =
        switch (id.split("\\.")[2]) {
          case "copy" -> "one thread copying random 4 KiB blocks, nothing around it";
          case "here" -> "random 4 KiB Read commands, the controller on a thread of this process";
          default -> "the same, the controller in another process, over vfio-user";
        };
    return what + (id.contains(".qd1.") ? ", one at a time" : ", 32 at a time");
  }

  private static String small(String id) {
    String[] parts = id.split("\\.");
    switch (parts[1]) {
      case "threads" -> {
        return "GpuStorage.reads of 4 KiB of one embedded SSD by so many threads";
      }
      case "beside" -> {
        return "one GpuStorage.read of an embedded SSD, 4 KiB, while it is in a long read";
      }
      default -> {}
    }
    String what =
        switch (parts[1]) {
          case "engine" -> "submit, ring and poll of one read on a queue pair";
          case "filechannel" -> "one FileChannel.read of a warm file";
          case "sim" -> "one GpuStorage.read of an embedded SSD";
          default -> "one GpuStorage.read of a warm file, path " + parts[1];
        };
    String from =
        switch (parts.length < 4 ? "" : parts[3]) {
          case "c" -> ", from C";
          case "python" -> ", from Python's main thread";
          case "python-worker" -> ", from another thread of Python";
          default -> "";
        };
    return what
        + ", "
        + (parts[2].equals("512") ? "512 bytes" : parts[2].replace("k", " KiB"))
        + from;
  }
}
