package io.gpunvme.nvme.driver;

import io.gpunvme.nvme.memory.DmaBuffer;
import io.gpunvme.nvme.pci.vfiouser.VfioUserFunction;
import io.gpunvme.nvme.pci.vfiouser.VfioUserOptions;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicLong;

/** A client that reads and writes 4 KiB on several queues; its main is one that can be killed. */
public final class VfioUserLoad implements AutoCloseable {
  static final int QUEUES = 3;
  static final Duration TIMEOUT = Duration.ofSeconds(1);

  private static final int BYTES = 4096;
  private static final String READY = "ready";

  private final VfioUserFunction function;
  private final NvmeController controller;
  private final AtomicLong done = new AtomicLong();

  private VfioUserLoad(VfioUserFunction function, NvmeController controller) {
    this.function = function;
    this.controller = controller;
  }

  /** Brings the controller up. */
  static VfioUserLoad open(Path socket, boolean messages) {
    VfioUserOptions transport =
        VfioUserOptions.defaults().withTimeout(Duration.ofSeconds(5)).withMessages(messages);
    VfioUserFunction function = VfioUserFunction.open(socket, transport);
    ControllerOptions options =
        ControllerOptions.builder()
            .allowWrite(true)
            .queuePairs(QUEUES)
            .ioTimeout(TIMEOUT)
            .adminTimeout(TIMEOUT)
            .recoveryTimeout(TIMEOUT)
            .shutdownTimeout(TIMEOUT)
            .retries(0)
            .build();
    return new VfioUserLoad(function, NvmeController.open(function, options));
  }

  /** How many commands have succeeded. */
  long done() {
    return done.get();
  }

  /** Writes blocks of marks and reads them back, over and over, until something throws. */
  void run(long seed) {
    SplittableRandom random = new SplittableRandom(seed);
    try (DmaBuffer buffer = DmaBuffer.allocate(function, 2 * BYTES);
        BlockDevice device = BlockDevice.open(controller, controller.namespace(1), 8)) {
      int blocks = BYTES / device.namespace().blockSize();
      long room = device.namespace().blocks() / blocks / QUEUES;
      long first = Math.floorMod(seed, QUEUES) * room;
      while (true) {
        trip(device, buffer, (first + random.nextLong(room)) * blocks, blocks, random.nextLong());
      }
    }
  }

  /** A write and a read of one place. */
  void once() {
    try (DmaBuffer buffer = DmaBuffer.allocate(function, 2 * BYTES);
        BlockDevice device = BlockDevice.open(controller, controller.namespace(1), 8)) {
      trip(device, buffer, 0, BYTES / device.namespace().blockSize(), 0x1234_5678L);
    }
  }

  private void trip(BlockDevice device, DmaBuffer buffer, long slba, int blocks, long mark) {
    MemorySegment memory = buffer.memory();
    for (int i = 0; i < BYTES / Long.BYTES; i++) {
      memory.setAtIndex(ValueLayout.JAVA_LONG, i, mark + i);
    }
    device.write(slba, blocks, buffer.range(), 0);
    device.read(slba, blocks, buffer.range(), BYTES);
    if (memory.asSlice(0, BYTES).mismatch(memory.asSlice(BYTES, BYTES)) >= 0) {
      throw new AssertionError("what is read is not what was written at " + slba);
    }
    done.addAndGet(2);
  }

  @Override
  public void close() {
    controller.close();
  }

  /** Starts {@link #main} in a process of its own. */
  static Process start(Path socket, boolean messages) throws IOException {
    return new ProcessBuilder(
            Path.of(System.getProperty("java.home"), "bin", "java").toString(),
            "-XX:+UseSerialGC",
            "-Xmx128m",
            "-XX:TieredStopAtLevel=1",
            "--enable-native-access=ALL-UNNAMED",
            "-cp",
            System.getProperty("java.class.path"),
            VfioUserLoad.class.getName(),
            socket.toString(),
            Boolean.toString(messages))
        .redirectError(ProcessBuilder.Redirect.DISCARD)
        .start();
  }

  /** Waits until it works; whether it does. */
  static boolean awaitReady(Process process) throws IOException {
    return READY.equals(process.inputReader(StandardCharsets.UTF_8).readLine());
  }

  /** Loads the controller at a socket until it is killed. */
  public static void main(String[] args) {
    VfioUserLoad load = open(Path.of(args[0]), Boolean.parseBoolean(args[1]));
    load.once();
    for (int i = 1; i < QUEUES; i++) {
      long seed = i;
      Thread.ofPlatform().start(() -> load.run(seed));
    }
    System.out.println(READY);
    load.run(0);
  }
}
