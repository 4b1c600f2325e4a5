package io.gpunvme.bench;

import io.gpunvme.nvme.driver.Backoff;
import io.gpunvme.nvme.driver.CompletionSink;
import io.gpunvme.nvme.driver.ControllerOptions;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.nvme.driver.QueuePair;
import io.gpunvme.nvme.memory.DmaBuffer;
import io.gpunvme.nvme.pci.PciFunction;
import io.gpunvme.nvme.pci.vfiouser.VfioUserFunction;
import io.gpunvme.nvme.pci.vfiouser.VfioUserOptions;
import io.gpunvme.nvme.sim.NamespaceConfig;
import io.gpunvme.nvme.sim.SimConfig;
import io.gpunvme.nvme.sim.SimulatedController;
import io.gpunvme.nvme.sim.serve.VfioUserServer;
import io.gpunvme.nvme.spec.IoOpcode;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;

/**
 * Random reads of 4 KiB by one queue pair from a namespace in memory: of a controller in this
 * process, or of one in another process behind a vfio-user socket. Each is checked.
 */
public final class ServedRig implements AutoCloseable, CompletionSink {
  /** Bytes of the namespace. */
  static final long IMAGE = 64L << 20;

  private static final String READY = "ready";
  private static final int PLACE_BITS = 8;

  private final Blocks blocks = new Blocks(IMAGE);
  private final Backoff backoff = new Backoff();
  private final int depth;
  private final int batch;
  private final @Nullable Process server;
  private final @Nullable Path folder;
  private final NvmeController controller;
  private final QueuePair queue;
  private final DmaBuffer target;
  private long rung;
  private long done;
  private long wrong;

  /**
   * Brings a controller up and fills its namespace.
   *
   * @param apart whether the controller is in a process of its own
   * @param depth commands in flight, at most 256
   */
  ServedRig(boolean apart, int depth) throws IOException {
    this.depth = depth;
    this.batch = Math.max(1, depth / 4);
    PciFunction function;
    if (apart) {
      folder = Files.createTempDirectory("gpunvme-bench-");
      Path socket = folder.resolve("ssd");
      server = serve(socket);
      function = VfioUserFunction.open(socket, VfioUserOptions.defaults());
    } else {
      folder = null;
      server = null;
      function = SimulatedController.create(config());
    }
    controller =
        NvmeController.open(function, ControllerOptions.builder().allowWrite(true).build());
    // One slot more than commands in flight: the sink submits before its own slot is free.
    queue = controller.createQueuePair(depth + 1);
    target = DmaBuffer.allocate(function, (long) depth * Blocks.SIZE);
    fill();
  }

  private static SimConfig config() {
    return SimConfig.builder()
        .noNamespaces()
        .namespace(NamespaceConfig.ram(IMAGE, Blocks.SIZE))
        .latencyNanos(0)
        .workers(1)
        .build();
  }

  private static Process serve(Path socket) throws IOException {
    Process process =
        new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-XX:+UseSerialGC",
                "--enable-native-access=ALL-UNNAMED",
                "-cp",
                System.getProperty("java.class.path"),
                ServedRig.class.getName(),
                socket.toString())
            .redirectError(ProcessBuilder.Redirect.INHERIT)
            .start();
    String line = process.inputReader(StandardCharsets.UTF_8).readLine();
    if (!READY.equals(line)) {
      process.destroyForcibly();
      throw new IOException("the server said " + line);
    }
    return process;
  }

  /** The other process: serves until its standard input ends. */
  public static void main(String[] args) throws IOException {
    try (SimulatedController controller = SimulatedController.create(config());
        VfioUserServer served = VfioUserServer.start(controller, Path.of(args[0]))) {
      System.out.println(READY);
      while (System.in.read() >= 0) {
        // Nothing is said there.
      }
    }
  }

  private void fill() {
    long[] failed = new long[1];
    for (long block = 0; block < blocks.count(); block++) {
      Blocks.stamp(target.memory(), 0, block);
      submit(IoOpcode.WRITE, block, 0);
      queue.ring();
      while (queue.poll((q, slot, status) -> failed[0] |= status) == 0) {
        Thread.onSpinWait();
      }
    }
    wrong = failed[0];
    target.memory().fill((byte) 0);
  }

  /** Puts the first reads in flight. */
  void start() {
    for (int place = 0; place < depth; place++) {
      submit(IoOpcode.READ, blocks.next(), place);
    }
    queue.ring();
    rung = queue.submitted();
  }

  /** Completions so far. */
  long done() {
    return done;
  }

  /** Takes what is complete, submits as many again, rings for a batch. */
  void turn() {
    if (queue.poll(this) > 0) {
      if (queue.submitted() - rung >= batch) {
        queue.ring();
        rung = queue.submitted();
      }
      backoff.reset();
    } else {
      backoff.pause();
    }
  }

  @Override
  public void completed(QueuePair from, int slot, int status) {
    long userData = from.userData(slot);
    int place = (int) userData & (1 << PLACE_BITS) - 1;
    long at = (long) place * Blocks.SIZE;
    if (status != 0 || !Blocks.is(target.memory(), at, userData >>> PLACE_BITS)) {
      wrong++;
    }
    done++;
    submit(IoOpcode.READ, blocks.next(), place);
  }

  private void submit(int opcode, long block, int place) {
    long at = (long) place * Blocks.SIZE;
    long userData = block << PLACE_BITS | place;
    queue.submitIo(opcode, 1, block, 1, 0, target.range(), at, Blocks.SIZE, userData);
  }

  /** Ends everything; fails if a command failed or brought the wrong block. */
  @Override
  public void close() throws IOException {
    long lost = queue.stale() + queue.unknown() + queue.malformed();
    target.close();
    controller.close();
    if (server != null) {
      server.getOutputStream().close();
      server.onExit().join();
    }
    if (folder != null) {
      Files.delete(folder);
    }
    if (wrong != 0 || lost != 0) {
      throw new IllegalStateException(
          wrong + " commands failed or brought the wrong block, " + lost + " stray completions");
    }
  }
}
