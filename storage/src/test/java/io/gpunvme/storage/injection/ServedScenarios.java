package io.gpunvme.storage.injection;

import static io.gpunvme.storage.injection.Attempt.twice;
import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.ffi.UnixListener;
import io.gpunvme.ffi.UnixSocket;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.nvme.vfiouser.Connection;
import io.gpunvme.sim.SimConfig;
import io.gpunvme.sim.SimulatedController;
import io.gpunvme.sim.serve.VfioUserServer;
import io.gpunvme.storage.GpuStorage;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;

/** What people do with a controller that a server has; the server is not the host, either. */
public final class ServedScenarios {
  private static final int SIZE = 256 << 10;
  private static final long SOME_MILLIS = 20;
  private static final Duration PATIENCE = Duration.ofSeconds(5);

  private ServedScenarios() {}

  /** {@code read}, or one of the short ones: {@code drain}, {@code listen}. */
  public static Scenario of(String name) {
    return switch (name) {
      case "read" -> ServedScenarios::read;
      case "drain" -> _ -> drain();
      case "listen" -> ServedScenarios::listen;
      default -> throw new IllegalArgumentException(name);
    };
  }

  private static void read(Path folder) throws Exception {
    byte[] content = new byte[SIZE];
    new Random(1).nextBytes(content);
    Path file = Files.write(folder.resolve("ssd"), content);
    Path socket = folder.resolve("socket");
    SimConfig config = SimConfig.parse("workers=1,file=" + file);
    try (SimulatedController ssd = SimulatedController.create(config);
        VfioUserServer server = VfioUserServer.start(ssd, socket);
        Accelerator cpu = CpuAccelerator.open()) {
      assertThat(server).isNotNull();
      String address = "vfio-user:" + socket;
      if (!reads(address, cpu, content)) {
        // The server is free again, and so is everything else: one that was given up is given up.
        assertThat(reads(address, cpu, content)).as("the second time").isTrue();
      }
    }
  }

  private static boolean reads(String address, Accelerator cpu, byte[] content) {
    List<GpuStorage> storage = new ArrayList<>();
    List<DeviceBuffer> buffer = new ArrayList<>();
    try {
      return Attempt.succeeds(
          "reads",
          () -> {
            storage.add(GpuStorage.open(address, cpu));
            buffer.add(cpu.allocate(SIZE));
            storage.getFirst().read(0, buffer.getFirst(), 0, SIZE);
            requireEqual(buffer.getFirst(), content);
          });
    } finally {
      storage.forEach(s -> twice("the storage closes", s::close));
      buffer.forEach(b -> twice("the buffer closes", b::close));
    }
  }

  private static void requireEqual(DeviceBuffer buffer, byte[] content) {
    byte[] seen = new byte[SIZE];
    Injector.look(() -> buffer.copyToHost(0, MemorySegment.ofArray(seen)));
    assertThat(seen).isEqualTo(content);
  }

  /** Whatever the host refuses: that the peer has ended is said when it has, and not before. */
  private static void drain() throws InterruptedException {
    List<UnixSocket> pair = new ArrayList<>();
    List<Connection> ours = new ArrayList<>();
    twice("a pair", () -> pair.addAll(UnixSocket.pair()));
    twice("a connection", () -> ours.add(new Connection(pair.getFirst(), 4096, 0)));
    Connection connection = ours.getFirst();
    Thread drains = Thread.ofPlatform().start(connection::drain);
    drains.join(SOME_MILLIS);
    boolean early = !drains.isAlive();
    Injector.look(pair.getLast()::shutdown);
    drains.join();
    twice("the connection closes", connection::close);
    twice("the peer closes", pair.getLast()::close);
    assertThat(early).as("it ends although the peer has not").isFalse();
  }

  /** Who is there when others connect. Each step is the first that its thread does. */
  private static void listen(Path folder) throws Exception {
    Path socket = folder.resolve("socket");
    List<UnixListener> listening = new ArrayList<>();
    List<UnixSocket> clients = new ArrayList<>();
    inThread(() -> twice("listens", () -> listening.add(UnixListener.at(socket))));
    UnixListener listener = listening.getFirst();
    Thread accepts = Thread.ofPlatform().start(() -> acceptAll(listener));
    inThread(() -> twice("connects", () -> clients.add(UnixSocket.connect(socket, PATIENCE))));
    inThread(() -> twice("the client closes", clients.getFirst()::close));
    inThread(() -> twice("closes", listener::close));
    accepts.join();
    assertThat(socket).doesNotExist();
  }

  private static void acceptAll(UnixListener listener) {
    List<UnixSocket> peer = new ArrayList<>();
    boolean more = true;
    while (more) {
      twice("accepts", () -> listener.accept().ifPresent(peer::add));
      more = !peer.isEmpty();
      peer.forEach(p -> twice("the peer closes", p::close));
      peer.clear();
    }
  }

  private static void inThread(Runnable action) throws Exception {
    CompletableFuture.runAsync(action, Thread.ofPlatform()::start).get();
  }
}
