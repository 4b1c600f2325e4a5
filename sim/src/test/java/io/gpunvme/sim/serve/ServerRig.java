package io.gpunvme.sim.serve;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.nvme.Footprint;
import io.gpunvme.sim.NamespaceConfig;
import io.gpunvme.sim.SimConfig;
import io.gpunvme.sim.SimConfigBuilder;
import io.gpunvme.sim.SimulatedController;
import java.nio.file.Path;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.io.TempDir;

/** A server and a client of raw messages for each test; afterwards nothing may be left of them. */
abstract class ServerRig {
  static final int BLOCK = 512;
  static final long MEDIA_BYTES = 1 << 20;
  static final int READ_WRITE = 3;

  @TempDir static Path folder;

  private Footprint before;
  Path socket;
  SimulatedController controller;
  VfioUserServer server;
  RawClient client;

  /** What the controller is made of. */
  SimConfigBuilder config() {
    return SimConfig.builder()
        .namespace(NamespaceConfig.ram(MEDIA_BYTES, BLOCK))
        .latencyNanos(0)
        .ioQueues(4);
  }

  @BeforeEach
  void serve() {
    before = Footprint.here();
    socket = folder.resolve("ssd");
    controller = SimulatedController.create(config().build());
    server = VfioUserServer.start(controller, socket);
    client = RawClient.greeted(socket);
  }

  /** Ends the client; the next one is greeted when the server has taken everything back. */
  RawClient nextClient() {
    client.close();
    client = RawClient.greeted(socket);
    return client;
  }

  @AfterEach
  void nothingIsLeft() {
    client.close();
    server.close();
    controller.close();
    assertThat(controller.internalError()).isNull();
    assertThat(socket).doesNotExist();
    before.awaitHere("the server");
  }
}
