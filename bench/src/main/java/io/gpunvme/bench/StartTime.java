package io.gpunvme.bench;

import com.google.gson.JsonObject;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;

/** How long the built command takes from start to exit, as a user's shell sees it. */
final class StartTime {
  private static final int WARMUPS = 2;
  private static final int SAMPLES = 15;

  private StartTime() {}

  /** Times {@code ./gpunvme} with each of two short commands, and a JVM that does nothing. */
  static List<JsonObject> measure() throws IOException {
    String java = Path.of(System.getProperty("java.home"), "bin", "java").toString();
    return List.of(
        result("start.jvm", List.of(java, "-XX:TieredStopAtLevel=1", "--version")),
        result("start.help", List.of("./gpunvme", "--help")),
        result("start.identify", List.of("./gpunvme", "identify", "sim:size=64MiB")));
  }

  private static JsonObject result(String id, List<String> command) throws IOException {
    for (int i = 0; i < WARMUPS; i++) {
      millis(command);
    }
    double[] samples = new double[SAMPLES];
    for (int i = 0; i < SAMPLES; i++) {
      samples[i] = millis(command);
    }
    Arrays.sort(samples);
    JsonObject json = new JsonObject();
    json.addProperty("id", id);
    json.addProperty("unit", "ms");
    json.addProperty("median", samples[SAMPLES / 2]);
    json.addProperty("min", samples[0]);
    json.addProperty("max", samples[SAMPLES - 1]);
    json.addProperty("samples", SAMPLES);
    JsonObject conditions = new JsonObject();
    conditions.addProperty(
        "command",
        Path.of(command.getFirst()).getFileName()
            + " "
            + String.join(" ", command.subList(1, command.size())));
    json.add("conditions", conditions);
    json.addProperty("verified", true);
    return json;
  }

  private static double millis(List<String> command) throws IOException {
    long start = System.nanoTime();
    Process process =
        new ProcessBuilder(command)
            .redirectOutput(ProcessBuilder.Redirect.DISCARD)
            .redirectError(ProcessBuilder.Redirect.INHERIT)
            .start();
    try {
      if (process.waitFor() != 0) {
        throw new IllegalStateException(command + " ended with " + process.exitValue());
      }
    } catch (InterruptedException e) {
      process.destroy();
      throw new IllegalStateException("interrupted", e);
    }
    return Math.round((System.nanoTime() - start) / 1e5) / 10.0;
  }
}
