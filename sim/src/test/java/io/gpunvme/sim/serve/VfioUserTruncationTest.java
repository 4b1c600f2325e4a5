package io.gpunvme.sim.serve;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.nvme.spec.Csts;
import io.gpunvme.nvme.spec.IoOpcode;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * A client takes its memory away after it has given it: touching it is SIGBUS in the server. It
 * harms nobody but that client.
 */
class VfioUserTruncationTest extends ServerRig {
  private static final long AT = 0x20_0000;

  /** Often enough for the compilers to have had their turn. */
  private static final int ROUNDS = 15;

  private static final int WARM = 100;

  @ParameterizedTest
  @ValueSource(ints = {IoOpcode.READ, IoOpcode.WRITE, IoOpcode.COMPARE})
  void dataThatIsGoneEndsTheController(int opcode) {
    for (int round = 0; round < ROUNDS; round++) {
      try (Pages pages = Pages.allocate(8 * Pages.PAGE);
          RawNvme nvme = RawNvme.start(nextClient())) {
        client.map(pages, AT, READ_WRITE);
        for (int i = 0; i < (round == 0 ? 20 * WARM : WARM); i++) {
          nvme.page(opcode, 0, AT + i % 8 * Pages.PAGE);
        }
        pages.cut(0);
        nvme.io(opcode, 0, 16, AT, AT + Pages.PAGE);
        fatal(nvme);
      }
    }
    honest();
  }

  /** Of what is one piece to the controller, the first half is still there. */
  @ParameterizedTest
  @ValueSource(ints = {IoOpcode.READ, IoOpcode.WRITE, IoOpcode.COMPARE})
  void halfOfTheDataIsGone(int opcode) {
    for (int round = 0; round < ROUNDS; round++) {
      try (Pages pages = Pages.allocate(2 * Pages.PAGE);
          RawNvme nvme = RawNvme.startWithLargePages(nextClient())) {
        client.map(pages, AT, READ_WRITE);
        for (int i = 0; i < (round == 0 ? 20 * WARM : WARM); i++) {
          nvme.await(RawNvme.IO, nvme.io(opcode, 0, 16, AT, 0));
        }
        pages.cut(Pages.PAGE);
        nvme.io(opcode, 0, 16, AT, 0);
        fatal(nvme);
      }
    }
    honest();
  }

  @Test
  void anAsynchronousCutUnderLoad() throws Exception {
    for (int round = 0; round < ROUNDS; round++) {
      try (Pages pages = Pages.allocate(64 * Pages.PAGE);
          RawNvme nvme = RawNvme.start(nextClient())) {
        client.map(pages, AT, READ_WRITE);
        Thread cutter = Thread.ofPlatform().start(() -> pages.cut(0));
        for (int i = 0; i < RawNvme.ENTRIES - 1; i++) {
          nvme.io(i % 2 == 0 ? IoOpcode.READ : IoOpcode.WRITE, 0, 8, AT + i * Pages.PAGE, 0);
        }
        cutter.join();
        // One that comes certainly too late.
        Thread.sleep(1);
        nvme.csts();
      }
    }
    honest();
  }

  @Test
  void queuesThatAreGone() {
    for (int round = 0; round < ROUNDS; round++) {
      try (RawNvme nvme = RawNvme.start(nextClient())) {
        for (int i = 0; i < WARM; i++) {
          nvme.await(RawNvme.IO, nvme.submit(RawNvme.IO, IoOpcode.FLUSH, 1, 0, 0, 0, 0, 0));
        }
        // First the I/O completion queue alone, then all of them.
        nvme.queues.cut(round % 2 == 0 ? 3 * RawNvme.QUEUE : 0);
        nvme.doorbells().set(ValueLayout.JAVA_INT, 8, round % 16);
        nvme.doorbells().set(ValueLayout.JAVA_INT, 0, 9);
      }
    }
    honest();
  }

  private void fatal(RawNvme nvme) {
    long end = System.nanoTime() + 10_000_000_000L;
    while (!nvme.csts().isSet(Csts.CFS)) {
      assertThat(System.nanoTime()).as("waiting for CSTS.CFS").isLessThan(end);
    }
    assertThat(controller.fatalReason()).contains("memory of the host is gone");
  }

  private void honest() {
    try (RawNvme nvme = RawNvme.start(nextClient())) {
      for (int i = 0; i < 20; i++) {
        nvme.roundTrip(i * 8, i);
      }
    }
    assertThat(controller.internalError()).isNull();
  }
}
