package io.gpunvme.tools.bench;

import com.google.gson.JsonObject;
import io.gpunvme.cuda.Cuda;
import io.gpunvme.gpu.accel.Accelerator;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;

/**
 * What results were measured on.
 *
 * @param gpu the product's name; {@code none} where the CPU stands in
 * @param driver the newest CUDA that the driver supports, and the driver's own version if it tells
 * @param cpu the product's name
 * @param cores that this process may use
 * @param kernel version
 * @param java version
 */
public record BenchMachine(
    String gpu, String driver, String cpu, int cores, String kernel, String java) {
  private static final String NONE = "none";
  private static final Path DRIVER_VERSION = Path.of("/sys/module/nvidia/version");
  private static final Path CPUINFO = Path.of("/proc/cpuinfo");

  /** This machine with this accelerator; which of several GPUs it is does not matter. */
  public static BenchMachine read(Accelerator accelerator) throws IOException {
    return accelerator.gpu() ? with(product(accelerator), driverText()) : withoutGpu();
  }

  private static String product(Accelerator gpu) {
    return gpu.cuda().map(cuda -> cuda.context().device().name()).orElseGet(gpu::name);
  }

  /** This machine without its GPUs. */
  public static BenchMachine withoutGpu() throws IOException {
    return with(NONE, NONE);
  }

  private static BenchMachine with(String gpu, String driver) throws IOException {
    return new BenchMachine(
        gpu,
        driver,
        processor(),
        Runtime.getRuntime().availableProcessors(),
        System.getProperty("os.version").replaceFirst("-.*", ""),
        Runtime.version().toString());
  }

  private static String driverText() throws IOException {
    String cuda = "CUDA " + Cuda.load().driverVersion();
    String own = Files.exists(DRIVER_VERSION) ? Files.readString(DRIVER_VERSION).strip() : "";
    return own.isEmpty() ? cuda : own + " (" + cuda + ")";
  }

  private static String processor() throws IOException {
    return Files.readAllLines(CPUINFO).stream()
        .filter(line -> line.startsWith("model name"))
        .map(line -> line.substring(line.indexOf(':') + 1).strip())
        .findFirst()
        .orElse(System.getProperty("os.arch"));
  }

  /** A folder's name: {@code nvidia-h200-16-cores}, {@code cpu-2-cores}. */
  public String id() {
    String what = gpu.equals(NONE) ? "cpu" : gpu.toLowerCase(Locale.ROOT);
    return what.replaceAll("[^a-z0-9]+", "-") + "-" + cores + "-cores";
  }

  /** As result files have it. */
  public JsonObject toJson() {
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
