package io.gpunvme.storage.soak;

import io.gpunvme.nvme.driver.ServedController;
import java.io.IOException;
import java.nio.file.Path;

/** A process that serves a member's file; it may be paused, and killed and started again. */
final class Server implements AutoCloseable {
  private final Path socket;
  private final String config;
  private ServedController process;
  private volatile boolean disturbed;

  Server(Path socket, String config) throws IOException {
    this.socket = socket;
    this.config = config;
    process = ServedController.apart(socket, config);
  }

  Path socket() {
    return socket;
  }

  long pid() {
    return process.pid();
  }

  /** Whether somebody has paused or killed it, and it is not back yet. */
  boolean isDisturbed() {
    return disturbed;
  }

  void disturbed(boolean now) {
    disturbed = now;
  }

  void pause(long millis) throws IOException, InterruptedException {
    process.signal("STOP");
    try {
      Thread.sleep(millis);
    } finally {
      process.signal("CONT");
    }
  }

  void kill(long millis) throws IOException, InterruptedException {
    process.kill();
    try {
      Thread.sleep(millis);
    } finally {
      process.close();
      process = ServedController.apart(socket, config);
    }
  }

  @Override
  public void close() {
    process.close();
  }
}
