package io.gpunvme.storage.path.direct;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.device.Device;
import io.gpunvme.gpu.device.DeviceAddress;
import io.gpunvme.gpu.transfer.BrokenInitiatorException;
import io.gpunvme.gpu.transfer.Direction;
import io.gpunvme.gpu.transfer.Initiator;
import io.gpunvme.gpu.transfer.InitiatorOptions;
import io.gpunvme.gpu.transfer.TransferListener;
import io.gpunvme.gpu.transfer.TransferPlan;
import io.gpunvme.gpu.transfer.TransferReport;
import io.gpunvme.nvme.driver.ControllerOptions;
import io.gpunvme.storage.GpuStorage;
import io.gpunvme.storage.StorageOptions;
import io.gpunvme.storage.path.PathCall;
import io.gpunvme.storage.path.PathCounters;
import io.gpunvme.storage.path.PathKind;
import io.gpunvme.storage.path.Range;
import io.gpunvme.storage.path.StorageException;
import io.gpunvme.storage.path.StorageException.Kind;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletionException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What an SSD's failures are to those who transfer, and that the next transfer works. */
@Timeout(300)
class DirectPathFailuresTest {
  private static final ControllerOptions WRITABLE =
      ControllerOptions.builder()
          .allowWrite(true)
          .ioTimeout(Duration.ofMillis(300))
          .retries(0)
          .build();

  private static Device open(String faults) {
    return Device.open(DeviceAddress.parse("sim:size=16MiB,lba=512"), WRITABLE, faults);
  }

  private static StorageOptions options() {
    return StorageOptions.defaults().withWrite(true);
  }

  /** The retries of an initiator are 8: a fault of more than 9 commands is not mended by them. */
  @ParameterizedTest
  @CsvSource({
    "status=media/unrecovered-read dnr on read count=1, read, IO",
    "status=media/write-fault dnr on write count=1, write, IO",
    "status=generic/capacity-exceeded dnr on write count=1, write, NO_SPACE",
    "status=0/20 dnr on write count=1, write, PERMISSION",
    "status=generic/lba-out-of-range dnr on read count=1, read, IO",
  })
  void aStatusIsAFailureOfItsKindAndNothingElseSuffers(String fault, String what, Kind kind) {
    try (Accelerator cpu = CpuAccelerator.open();
        Device device = open(fault);
        GpuStorage storage = GpuStorage.over(device.controller(), cpu, options());
        DeviceBuffer buffer = cpu.allocate(1 << 20)) {
      assertThatExceptionOfType(StorageException.class)
          .isThrownBy(
              () -> {
                if (what.equals("read")) {
                  storage.read(1 << 20, buffer, 0, 4096);
                } else {
                  storage.write(1 << 20, buffer, 0, 4096);
                }
              })
          .satisfies(
              e -> {
                assertThat(e.kind()).isEqualTo(kind);
                assertThat(e.offset()).isEqualTo(1 << 20);
                assertThat(e.length()).isPositive();
                assertThat(e.source()).isNotBlank();
              });
      assertThat(storage.write(3, buffer, 0, 5000).bytes()).isEqualTo(5000);
      assertThat(storage.read(3, buffer, 7, 5000).path()).isEqualTo(PathKind.DIRECT);
    }
  }

  @Test
  void aDeviceThatDisappearsIsGoneForAllTransfers() {
    try (Accelerator cpu = CpuAccelerator.open();
        Device device = open("gone on read nth=2");
        GpuStorage storage = GpuStorage.over(device.controller(), cpu, options());
        DeviceBuffer buffer = cpu.allocate(1 << 20)) {
      storage.read(0, buffer, 0, 512);
      for (int i = 0; i < 2; i++) {
        assertThatExceptionOfType(CompletionException.class)
            .isThrownBy(() -> storage.readAsync(0, buffer, 0, 512).join())
            .satisfies(
                e ->
                    assertThat(e.getCause())
                        .isInstanceOfSatisfying(
                            StorageException.class,
                            s -> assertThat(s.kind()).isEqualTo(Kind.GONE)));
      }
    }
  }

  @Test
  void aTransferThatIsCancelledWhileTheSsdIsSilentEnds() {
    try (Accelerator cpu = CpuAccelerator.open();
        Device device =
            Device.open(
                DeviceAddress.parse("sim:size=16MiB,lba=512"),
                ControllerOptions.builder().ioTimeout(Duration.ofSeconds(20)).build(),
                "delay=200ms on read");
        GpuStorage storage = GpuStorage.over(device.controller(), cpu, StorageOptions.defaults());
        DeviceBuffer buffer = cpu.allocate(16 << 20)) {
      var future = storage.readAsync(0, buffer, 0, 16 << 20);
      assertThat(future.cancel(true)).isTrue();
      assertThatExceptionOfType(CompletionException.class)
          .isThrownBy(future::join)
          .satisfies(
              e ->
                  assertThat(e.getCause())
                      .isInstanceOfSatisfying(
                          StorageException.class,
                          s -> assertThat(s.kind()).isEqualTo(Kind.CANCELLED)));
    }
  }

  /** Breaks after a few transfers, as one does whose kernel failed. */
  private static final class Fragile implements Initiator {
    private final Initiator real;
    private final AtomicInteger left = new AtomicInteger(20);
    private volatile boolean closed;

    Fragile(Initiator real) {
      this.real = real;
    }

    @Override
    public TransferReport run(
        TransferPlan plan, List<DeviceBuffer> buffers, TransferListener listener) {
      int turn = left.getAndDecrement();
      if (turn == 0) {
        throw new IllegalStateException("illegal address");
      }
      if (turn < 0) {
        throw new BrokenInitiatorException(new IllegalStateException("illegal address"));
      }
      return real.run(plan, buffers, listener);
    }

    @Override
    public String name() {
      return real.name();
    }

    @Override
    public int queuePairs() {
      return real.queuePairs();
    }

    @Override
    public int depth() {
      return real.depth();
    }

    @Override
    public long maxTransferBytes() {
      return real.maxTransferBytes();
    }

    @Override
    public void close() {
      assertThat(closed).isFalse();
      closed = true;
      real.close();
    }
  }

  /** Of many threads only those fail whose transfers broke something; the others get new queues. */
  @Test
  void whoMeetsABrokenInitiatorIsCarriedOutByTheNextOne() throws Exception {
    List<Fragile> opened = Collections.synchronizedList(new ArrayList<>());
    AtomicInteger failures = new AtomicInteger();
    AtomicInteger done = new AtomicInteger();
    InitiatorOptions options = InitiatorOptions.defaults();
    try (Accelerator cpu = CpuAccelerator.open();
        Device device = open("");
        DirectPath path =
            DirectPath.open(
                device.controller(),
                1,
                cpu,
                options,
                () -> {
                  opened.add(new Fragile(options.open(device.controller(), cpu)));
                  return opened.getLast();
                },
                new ReentrantReadWriteLock(true))) {
      List<Thread> threads = new ArrayList<>();
      for (int t = 0; t < 4; t++) {
        threads.add(
            Thread.ofPlatform()
                .start(
                    () -> {
                      try (DeviceBuffer buffer = cpu.allocate(4096)) {
                        for (int i = 0; i < 50; i++) {
                          try {
                            PathCall call = new PathCall("disk", new PathCounters());
                            if (i % 2 == 0) {
                              path.transfer(
                                  Direction.READ, List.of(new Range(0, buffer, 0, 4096)), call);
                            } else {
                              path.transfer(Direction.READ, 0, buffer, 0, 4096, call);
                            }
                            done.incrementAndGet();
                          } catch (IllegalStateException e) {
                            assertThat(e).hasMessageContaining("illegal address");
                            failures.incrementAndGet();
                          }
                        }
                      }
                    }));
      }
      for (Thread thread : threads) {
        thread.join();
      }
    }
    assertThat(done.get() + failures.get()).isEqualTo(200);
    assertThat(failures.get()).isBetween(1, opened.size());
    assertThat(opened).hasSizeGreaterThan(5).allMatch(one -> one.closed);
  }
}
