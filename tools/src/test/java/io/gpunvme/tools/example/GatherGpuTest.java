package io.gpunvme.tools.example;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.base.ByteRange;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.accel.TestGpu;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.gpu.transfer.InitiatorKind;
import io.gpunvme.gpu.transfer.InitiatorOptions;
import io.gpunvme.nvme.driver.ControllerOptions;
import io.gpunvme.storage.BlockRun;
import io.gpunvme.tools.ssd.Ssds;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The kernel chooses what it reads, and comes to the CPU's result. */
@Tag("gpu")
@Timeout(100)
class GatherGpuTest {
  private static final String SSD = "sim:latency=0,size=8MiB";

  @ParameterizedTest
  @CsvSource({
    "HOST,GPU,false",
    "VRAM_DATA,GPU,false",
    "VRAM,GPU,false",
    "HOST,GPU,true",
    "VRAM_DATA,GPU,true",
    "VRAM_DATA,CPU,true"
  })
  void everyWalkEndsWhereTheCpuEnds(Placement placement, InitiatorKind who, boolean striped) {
    String address = striped ? "stripe:" + SSD + "," + SSD + ";unit=64KiB" : SSD;
    GatherOptions options = new GatherOptions(2048, 4096, 1000, 5, 3);
    try (GpuAccelerator gpu = TestGpu.open();
        Ssds ssds = Ssds.open(address, ControllerOptions.defaults().withWrite(true), "", 1)) {
      List<BlockRun> table = ssds.blocks(new ByteRange(0, 8 << 20));
      Gather.fill(options, table);
      GatherReport report =
          Gather.run(options, table, gpu, InitiatorOptions.defaults().with(who, placement));

      assertThat(report.reads()).isEqualTo(5000);
      assertThat(report.initiator()).isEqualTo(who.name());
      assertThat(report.placement()).isEqualTo(placement);
      assertThat(report.ssds()).isEqualTo(striped ? 2 : 1);
      assertThat(report.verified()).isTrue();
    }
  }
}
