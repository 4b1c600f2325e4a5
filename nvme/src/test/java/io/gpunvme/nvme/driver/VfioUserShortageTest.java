package io.gpunvme.nvme.driver;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.nvme.pci.vfiouser.VfioUserOptions;
import java.io.IOException;
import java.nio.file.Path;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A server that may open no descriptors for a while serves again when it may. */
class VfioUserShortageTest {
  private static final int USUAL = 1024;

  @TempDir Path sockets;

  private static void mayHave(long pid, int descriptors) throws IOException, InterruptedException {
    Process process =
        new ProcessBuilder("prlimit", "--pid", Long.toString(pid), "--nofile=" + descriptors + ":")
            .inheritIO()
            .start();
    assertThat(process.waitFor()).as("prlimit").isZero();
  }

  private static NvmeController open(ServedController served) {
    return NvmeController.open(
        served.connect(VfioUserOptions.defaults()), ControllerOptions.defaults());
  }

  @Test
  void servesAgainWhenThereAreDescriptors() throws Exception {
    try (ServedController served =
        ServedController.apart(sockets.resolve("ssd"), "size=1MiB,lba=512,workers=1")) {
      mayHave(served.pid(), USUAL);
      // The server's classes come from folders: it must have loaded what sleep and the end of a
      // client need.
      try (NvmeController warm = open(served)) {
        Thread.sleep(300);
        warm.identify(1, 0);
      }
      NvmeController first = open(served);
      // Neither the next connection nor new doorbells can be had.
      mayHave(served.pid(), 3);
      first.close();
      FutureTask<NvmeController> next = new FutureTask<>(() -> open(served));
      Thread.ofPlatform().daemon().start(next);
      assertThatThrownBy(() -> next.get(500, TimeUnit.MILLISECONDS))
          .isInstanceOf(TimeoutException.class);
      mayHave(served.pid(), USUAL);
      try (NvmeController second = next.get(20, TimeUnit.SECONDS)) {
        assertThat(second.namespaces()).hasSize(1);
      }
    }
  }
}
