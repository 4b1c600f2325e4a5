package io.gpunvme.storage.path.pinned;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import io.gpunvme.gpu.transfer.Direction;
import io.gpunvme.storage.path.RequestShape;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

class RatesTest {
  private static final long BYTES = 100_000_000;
  private static final long MILLI = 1_000_000;

  /** What is expected of 4 threads before anything was measured, 10^9 bytes a second. */
  private static final double FIRST = 16;

  private final AtomicLong now = new AtomicLong(7);
  private final Rates rates = new Rates("device " + UUID.randomUUID(), 4, now::get);

  private double expected() {
    return rates.expected(new RequestShape(Direction.READ, 1, BYTES, 1));
  }

  private void pass(long nanos) {
    now.addAndGet(nanos);
  }

  private void measure(Rates.Transfer transfer) {
    transfer.measured(true, BYTES, 1);
    transfer.close();
  }

  @Test
  void aTransferAloneHasTheRateForItself() {
    Rates.Transfer one = rates.begin();
    pass(5 * MILLI);
    measure(one); // 20 GB/s
    assertThat(expected()).isEqualTo(FIRST + (20 - FIRST) / 2, within(0.001));
  }

  @Test
  void transfersBesideEachOtherShareTheRate() {
    // Two at a time, each begins half way through another: the device moves 20 GB/s all the time.
    Rates.Transfer last = rates.begin();
    pass(5 * MILLI);
    for (int i = 0; i < 200; i++) {
      Rates.Transfer next = rates.begin();
      pass(5 * MILLI);
      measure(last);
      last = next;
    }
    last.close();
    assertThat(expected()).isEqualTo(20, within(0.1));
  }

  @Test
  void whoEndsAloneWasNotAloneForAllItsTime() {
    // Both move 20 GB/s together; the second ends alone at the same time as the first.
    for (int i = 0; i < 200; i++) {
      Rates.Transfer one = rates.begin();
      Rates.Transfer other = rates.begin();
      pass(10 * MILLI);
      one.close();
      measure(other);
    }
    assertThat(expected()).isEqualTo(20, within(0.1));
  }

  @Test
  void whatIsSlowerCountsLessThanWhatIsFaster() {
    RequestShape cold = new RequestShape(Direction.READ, 10, 1L << 30, 0);
    assertThat(rates.expected(cold)).isEqualTo(3.5);
    Rates.Transfer slow = rates.begin();
    pass(50 * MILLI);
    slow.measured(false, BYTES, 1); // 2 GB/s
    slow.close();
    assertThat(rates.expected(cold)).isEqualTo(3.35, within(1e-9));
    Rates.Transfer fast = rates.begin();
    pass(25 * MILLI);
    fast.measured(false, BYTES, 1); // 4 GB/s
    fast.close();
    assertThat(rates.expected(cold)).isEqualTo(3.675, within(1e-9));
  }

  @Test
  void whatIsOldCountsNoMore() {
    Rates.Transfer one = rates.begin();
    pass(5 * MILLI);
    measure(one);
    pass(5_000 * MILLI);
    assertThat(expected()).isEqualTo(FIRST, within(0.001));
  }

  @Test
  void shortTransfersSayNothing() {
    Rates.Transfer one = rates.begin();
    pass(MILLI);
    one.measured(true, 1 << 20, 1);
    one.close();
    assertThat(expected()).isEqualTo(FIRST, within(0.001));
  }
}
