package io.gpunvme.tools.ssd;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.gpu.device.Device;
import io.gpunvme.nvme.driver.ControllerOptions;
import io.gpunvme.storage.BlockRun;
import java.util.List;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;

/** Places of equal length in runs of blocks. */
class PlacesTest {
  @Test
  void theyBeginAtMultiplesOfTheirLengthAndStayInside() {
    try (Device device = Device.open("sim:size=1MiB", ControllerOptions.defaults())) {
      List<BlockRun> runs =
          List.of(
              run(device, 3, 30), // 8, 16, 24
              run(device, 65, 9), // none: 72 to 79 is one block too long
              run(device, 128, 8),
              run(device, 1000, 1), // none
              run(device, 200, 17)); // 200, 208
      Places places = new Places(runs, 8);
      assertThat(LongStream.range(0, places.count()).map(places::slba))
          .containsExactly(8L, 16L, 24L, 128L, 200L, 208L);
      assertThat(new Places(runs, 1).count()).isEqualTo(30 + 9 + 8 + 1 + 17);
      assertThat(new Places(runs, 64).count()).isZero();
      assertThat(new Places(List.of(), 8).count()).isZero();
    }
  }

  private static BlockRun run(Device device, long slba, long blocks) {
    return new BlockRun(device.controller(), device.controller().namespace(1), slba, blocks);
  }
}
