package io.gpunvme.nvme.driver;

import io.gpunvme.ffi.Errno;
import io.gpunvme.ffi.PosixException;
import io.gpunvme.nvme.pci.vfiouser.VfioUserFunction;
import io.gpunvme.nvme.pci.vfiouser.VfioUserOptions;
import io.gpunvme.sim.SimConfig;
import io.gpunvme.sim.SimulatedController;
import io.gpunvme.sim.serve.VfioUserServer;
import java.io.BufferedReader;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * An embedded controller behind a socket: in this process, or in one of its own, which is this
 * class's main.
 */
public final class ServedController implements AutoCloseable {
  private static final String READY = "ready";

  private final Path socket;
  private final @Nullable SimulatedController controller;
  private final @Nullable VfioUserServer server;
  private final @Nullable Process process;

  private ServedController(
      Path socket,
      @Nullable SimulatedController controller,
      @Nullable VfioUserServer server,
      @Nullable Process process) {
    this.socket = socket;
    this.controller = controller;
    this.server = server;
    this.process = process;
  }

  /** In this process. */
  static ServedController here(Path socket, SimConfig config) {
    SimulatedController controller = SimulatedController.create(config);
    return new ServedController(socket, controller, VfioUserServer.start(controller, socket), null);
  }

  /** In a process of its own, which ends with this one. */
  public static ServedController apart(Path socket, String config) throws IOException {
    Process process =
        new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-XX:+UseSerialGC",
                "-Xmx256m",
                "-XX:TieredStopAtLevel=1",
                "--enable-native-access=ALL-UNNAMED",
                "-cp",
                System.getProperty("java.class.path"),
                ServedController.class.getName(),
                socket.toString(),
                config)
            .redirectError(ProcessBuilder.Redirect.INHERIT)
            .start();
    BufferedReader out = process.inputReader(StandardCharsets.UTF_8);
    String line = out.readLine();
    if (!READY.equals(line)) {
      process.destroyForcibly();
      throw new IOException("the server said " + line);
    }
    return new ServedController(socket, null, null, process);
  }

  /** Serves until its standard input ends. */
  public static void main(String[] args) throws IOException {
    // Classes come from folders here, and cannot be loaded when no file may be opened.
    Objects.requireNonNull(new PosixException("open", "a class", Errno.EMFILE).getMessage());
    try (SimulatedController controller = SimulatedController.create(SimConfig.parse(args[1]));
        VfioUserServer server = VfioUserServer.start(controller, Path.of(args[0]))) {
      System.out.println(READY);
      while (System.in.read() >= 0) {
        // Nothing is said there.
      }
    }
  }

  VfioUserFunction connect(VfioUserOptions options) {
    return VfioUserFunction.open(socket, options);
  }

  /** The one in this process. */
  SimulatedController controller() {
    if (controller == null) {
      throw new IllegalStateException("it is in another process");
    }
    return controller;
  }

  /** The number of its process. */
  public long pid() {
    return process == null ? ProcessHandle.current().pid() : process.pid();
  }

  /**
   * Sends its process a signal.
   *
   * @param name without SIG
   */
  public void signal(String name) throws IOException, InterruptedException {
    int code = new ProcessBuilder("kill", "-" + name, Long.toString(pid())).start().waitFor();
    if (code != 0) {
      throw new IOException("kill -" + name + " ended with " + code);
    }
  }

  /** kill -9. */
  public void kill() {
    if (process != null) {
      process.destroyForcibly().onExit().join();
    }
  }

  @Override
  public void close() {
    if (server != null && controller != null) {
      server.close();
      controller.close();
    }
    if (process != null) {
      try {
        process.getOutputStream().close();
        if (!process.waitFor(10, TimeUnit.SECONDS)) {
          process.destroyForcibly();
          throw new AssertionError("the server does not end");
        }
      } catch (IOException e) {
        // It has ended.
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      }
    }
  }
}
