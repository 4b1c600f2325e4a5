package io.gpunvme.tools.bench;

import io.gpunvme.sim.SimulatedController;
import io.gpunvme.sim.serve.VfioUserServer;
import java.io.FileDescriptor;
import java.io.FileWriter;
import java.io.IOException;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;

/** A benchmark's SSD in a process of its own, behind a vfio-user socket. Its blocks are stamped. */
public final class BenchServer implements AutoCloseable {
  private static final String READY = "ready";
  private static final int PATIENCE_SECONDS = 10;

  private final Path folder;
  private final Process process;

  private BenchServer(Path folder, Process process) {
    this.folder = folder;
    this.process = process;
  }

  /**
   * Starts one; its controller has no latency of its own.
   *
   * @param bytes of its one namespace
   * @param workers threads of the controller
   * @throws BenchException if it does not come up
   */
  public static BenchServer start(long bytes, int blockSize, int workers) {
    try {
      Path folder = Files.createTempDirectory("gpunvme-bench-");
      Process process =
          new ProcessBuilder(
                  Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                  "-XX:+UseSerialGC",
                  "--enable-native-access=ALL-UNNAMED",
                  "-cp",
                  System.getProperty("java.class.path"),
                  BenchServer.class.getName(),
                  folder.resolve("ssd").toString(),
                  Long.toString(bytes),
                  Integer.toString(blockSize),
                  Integer.toString(workers))
              .redirectError(ProcessBuilder.Redirect.INHERIT)
              .start();
      BenchServer server = new BenchServer(folder, process);
      String line = process.inputReader(StandardCharsets.UTF_8).readLine();
      if (!READY.equals(line)) {
        server.close();
        throw new BenchException("the SSD's process said " + line);
      }
      return server;
    } catch (IOException e) {
      throw new BenchException("the SSD's process did not start: " + e.getMessage());
    }
  }

  /** The process's number. */
  public long pid() {
    return process.pid();
  }

  /** Where it listens. */
  public Path socket() {
    return folder.resolve("ssd");
  }

  /** The process: {@code SOCKET BYTES BLOCK-SIZE WORKERS}; until its standard input ends. */
  public static void main(String[] args) throws IOException {
    int blockSize = Integer.parseInt(args[2]);
    long bytes = Long.parseLong(args[1]);
    int workers = Integer.parseInt(args[3]);
    try (SimulatedController device =
        SimulatedController.create(
            BenchDevice.config(
                "GPUNVME0001", bytes, blockSize, workers, BenchDevice.MAX_TRANSFER))) {
      BlockPattern.stampBlocks(device.mediaMemory(1).orElseThrow(), blockSize);
      try (VfioUserServer served = VfioUserServer.start(device, Path.of(args[0]))) {
        try (Writer out = new FileWriter(FileDescriptor.out)) {
          out.write(READY + "\n");
        }
        while (System.in.read() >= 0) {
          // Nothing is said there.
        }
      }
    }
  }

  @Override
  public void close() {
    try {
      process.getOutputStream().close();
      if (!process.waitFor(PATIENCE_SECONDS, TimeUnit.SECONDS)) {
        process.destroyForcibly();
      }
      Files.deleteIfExists(socket());
      Files.deleteIfExists(folder);
    } catch (IOException e) {
      // A temporary folder; the process ends with its standard input.
    } catch (InterruptedException e) {
      process.destroyForcibly();
      Thread.currentThread().interrupt();
    }
  }
}
