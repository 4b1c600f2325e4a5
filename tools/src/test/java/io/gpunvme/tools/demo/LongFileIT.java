package io.gpunvme.tools.demo;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.gpu.device.DeviceAddress;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A file longer than the accelerator memory that the demo uses. */
class LongFileIT {
  @TempDir Path folder;

  @Test
  void goesThroughTheBufferInTurns() throws IOException {
    Path file = folder.resolve("long");
    long bytes = (1L << 30) + 5000;
    try (FileChannel out =
        FileChannel.open(file, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE)) {
      // Sparse, with something to find on both sides of the seam.
      out.write(ByteBuffer.wrap("start".getBytes()), 0);
      out.write(ByteBuffer.wrap("seam".getBytes()), (1L << 30) - 2);
      out.write(ByteBuffer.wrap("end".getBytes()), bytes - 3);
    }
    List<DemoPhase> phases = new ArrayList<>();
    DemoReport report =
        Demo.run(
            DemoOptions.in(folder)
                .withFile(file)
                .withDevice(DeviceAddress.parse("sim:latency=0"), ""),
            new DemoListener() {
              @Override
              public void phase(DemoPhase phase, long expected) {
                phases.add(phase);
              }

              @Override
              public void moved(long moved) {}
            });

    assertThat(report.verified()).isTrue();
    assertThat(report.bufferBytes()).isEqualTo(1L << 30);
    assertThat(report.get().bytes()).isEqualTo((1L << 30) + 5120);
    assertThat(report.get().commands()).isEqualTo(2049);
    assertThat(phases)
        .containsExactly(
            DemoPhase.PUT, DemoPhase.GET, DemoPhase.CHECK, DemoPhase.GET, DemoPhase.CHECK);
  }
}
