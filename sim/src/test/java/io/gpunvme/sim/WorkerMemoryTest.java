package io.gpunvme.sim;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.MemorySegment;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The memory of a worker's own ends with its controller. */
class WorkerMemoryTest {
  private static RawHost host(int workers) {
    return RawHost.start(SimConfig.builder().workers(workers).build());
  }

  private static MemorySegment scratch(Worker worker) {
    worker.lock();
    try {
      return worker.scratch(1);
    } finally {
      worker.unlock();
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1, 3})
  void isFreedByTheControllersClose(int workers) {
    RawHost host = host(workers);
    Worker worker = host.controller.workerFor(0);
    MemorySegment scratch = scratch(worker);
    host.controller.close();
    assertThat(worker.memory().scope().isAlive()).isFalse();
    assertThat(scratch.scope().isAlive()).as("where commands work").isFalse();
    host.controller.close();
    assertThat(host.controller.poll()).as("of late").isZero();
    host.close();
  }

  /** A pass that the close is a part of still has its memory; it frees that at its end. */
  @Test
  void staysForThePassThatItIsClosedIn() {
    RawHost host = host(0);
    Worker worker = host.controller.workerFor(0);
    MemorySegment scratch = scratch(worker);
    worker.lock();
    try {
      host.controller.close();
      assertThat(scratch.scope().isAlive()).isTrue();
    } finally {
      worker.unlock();
    }
    worker.pass();
    assertThat(scratch.scope().isAlive()).isFalse();
    host.close();
  }
}
