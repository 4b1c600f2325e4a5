package io.gpunvme.bench;

import com.google.gson.JsonObject;
import io.gpunvme.nvme.driver.BlockDevice;
import io.gpunvme.nvme.driver.ControllerOptions;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.nvme.memory.DmaBuffer;
import io.gpunvme.nvme.pci.vfiouser.VfioUserFunction;
import io.gpunvme.nvme.pci.vfiouser.VfioUserOptions;
import io.gpunvme.tools.bench.BenchServer;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;

/** What a served controller costs while nothing happens, and how soon it notices the first read. */
final class IdleServer {
  private static final int SAMPLES = 7;
  private static final int IDLE_MILLIS = 10_000;
  private static final long IMAGE = 16L << 20;
  private static final int READS = 2000;

  private IdleServer() {}

  /** Takes about two minutes, mostly of sleep. */
  static List<JsonObject> measure() throws IOException {
    double[] alone = new double[SAMPLES];
    double[] connected = new double[SAMPLES];
    double[] first = new double[SAMPLES];
    try (BenchServer server = BenchServer.start(IMAGE, Blocks.SIZE, 1)) {
      for (int i = 0; i < SAMPLES; i++) {
        alone[i] = percentOfIdle(server, () -> {});
      }
      VfioUserFunction function =
          VfioUserFunction.open(server.socket(), VfioUserOptions.defaults());
      try (NvmeController controller = NvmeController.open(function, ControllerOptions.defaults());
          DmaBuffer buffer = DmaBuffer.allocate(function, Blocks.SIZE);
          BlockDevice device = BlockDevice.open(controller, controller.namespace(1), 1)) {
        for (int i = 0; i < READS; i++) {
          device.read(i, 1, buffer.range(), 0);
        }
        for (int i = 0; i < SAMPLES; i++) {
          int sample = i;
          connected[i] =
              percentOfIdle(
                  server,
                  () -> {
                    long start = System.nanoTime();
                    device.read(sample, 1, buffer.range(), 0);
                    first[sample] = (System.nanoTime() - start) / 1000.0;
                  });
        }
      }
    }
    return List.of(
        result("vfio-user.idle.no-client", "% of a core", alone),
        result("vfio-user.idle.client", "% of a core", connected),
        result("vfio-user.idle.first-read", "us", first));
  }

  /**
   * @param then at once afterwards: what this does itself (files, and the compiler of code that
   *     runs for the first time) would keep a processor busy
   */
  private static double percentOfIdle(BenchServer server, Runnable then) throws IOException {
    long before = cpuNanos(server.pid());
    long start = System.nanoTime();
    try {
      Thread.sleep(IDLE_MILLIS);
    } catch (InterruptedException e) {
      throw new IllegalStateException("interrupted", e);
    }
    then.run();
    return 100.0 * (cpuNanos(server.pid()) - before) / (System.nanoTime() - start);
  }

  /** What the scheduler gave the threads of a process. */
  private static long cpuNanos(long pid) throws IOException {
    try (Stream<Path> tasks = Files.list(Path.of("/proc/" + pid + "/task"))) {
      long sum = 0;
      for (Path task : tasks.toList()) {
        sum += Long.parseLong(Files.readString(task.resolve("schedstat")).split(" ")[0]);
      }
      return sum;
    }
  }

  private static JsonObject result(String id, String unit, double[] samples) {
    Arrays.sort(samples);
    JsonObject json = new JsonObject();
    json.addProperty("id", id);
    json.addProperty("unit", unit);
    json.addProperty("median", BenchMain.round(samples[SAMPLES / 2]));
    json.addProperty("min", BenchMain.round(samples[0]));
    json.addProperty("max", BenchMain.round(samples[SAMPLES - 1]));
    json.addProperty("samples", SAMPLES);
    JsonObject conditions = new JsonObject();
    conditions.addProperty("idle_ms", IDLE_MILLIS);
    conditions.addProperty("controller_threads", 1);
    json.add("conditions", conditions);
    json.addProperty("verified", true);
    return json;
  }
}
