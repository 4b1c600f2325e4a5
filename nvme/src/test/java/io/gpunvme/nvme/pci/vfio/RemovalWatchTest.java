package io.gpunvme.nvme.pci.vfio;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.gpunvme.ffi.EventFd;
import io.gpunvme.nvme.pci.host.DeviceFile;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class RemovalWatchTest {
  @TempDir Path folder;

  @Test
  void tellsOnce() throws InterruptedException {
    EventFd event = EventFd.create();
    CountDownLatch told = new CountDownLatch(1);
    try (RemovalWatch watch = RemovalWatch.start(event, "test", told::countDown)) {
      event.signal();
      assertThat(told.await(60, TimeUnit.SECONDS)).isTrue();
      watch.close();
    }
    assertThatIllegalStateException().isThrownBy(event::fd);
  }

  @Test
  void closingIsNoRemoval() {
    EventFd event = EventFd.create();
    AtomicInteger told = new AtomicInteger();
    RemovalWatch.start(event, "test", told::incrementAndGet).close();

    assertThat(told).hasValue(0);
    assertThatIllegalStateException().isThrownBy(event::fd);
  }

  @Test
  void aKernelThatDoesNotTellIsNoFailure() throws IOException {
    Path file = Files.createFile(folder.resolve("device"));
    try (DeviceFile device = DeviceFile.open(file)) {
      assertThat(RemovalWatch.start(device, "test", () -> {})).isNull();
    }
  }
}
