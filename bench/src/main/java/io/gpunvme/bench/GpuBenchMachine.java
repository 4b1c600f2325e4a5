package io.gpunvme.bench;

import com.google.gson.JsonObject;
import io.gpunvme.core.accel.GpuAccelerator;
import io.gpunvme.cuda.Cuda;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;

/**
 * What GPU results were measured on.
 *
 * @param gpu the product's name
 * @param driver the newest CUDA that the driver supports, and the driver's own version if it tells
 */
record GpuBenchMachine(
    String gpu, String driver, String cpu, int cores, String kernel, String java) {
  private static final Path DRIVER_VERSION = Path.of("/sys/module/nvidia/version");
  private static final Path CPUINFO = Path.of("/proc/cpuinfo");

  /** This machine with this GPU. */
  static GpuBenchMachine read(GpuAccelerator accelerator) throws IOException {
    String cuda = "CUDA " + Cuda.load().driverVersion();
    String own = Files.exists(DRIVER_VERSION) ? Files.readString(DRIVER_VERSION).strip() : "";
    return new GpuBenchMachine(
        accelerator.name(),
        own.isEmpty() ? cuda : own + " (" + cuda + ")",
        processor(),
        Runtime.getRuntime().availableProcessors(),
        System.getProperty("os.version").replaceFirst("-.*", ""),
        Runtime.version().toString());
  }

  private static String processor() throws IOException {
    return Files.readAllLines(CPUINFO).stream()
        .filter(line -> line.startsWith("model name"))
        .map(line -> line.substring(line.indexOf(':') + 1).strip())
        .findFirst()
        .orElse(System.getProperty("os.arch"));
  }

  /** A folder's name: {@code nvidia-h200-16-cores}. */
  String id() {
    return gpu.toLowerCase(Locale.ROOT).replaceAll("[^a-z0-9]+", "-") + "-" + cores + "-cores";
  }

  JsonObject toJson() {
    JsonObject json = new JsonObject();
    json.addProperty("gpu", gpu);
    json.addProperty("driver", driver);
    json.addProperty("cpu", cpu);
    json.addProperty("cores", cores);
    json.addProperty("kernel", kernel);
    json.addProperty("java", java);
    return json;
  }
}
