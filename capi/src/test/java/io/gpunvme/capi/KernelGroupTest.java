package io.gpunvme.capi;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.queue.RunningKernel;
import io.gpunvme.nvme.NvmeTimeoutException;
import io.gpunvme.storage.path.StorageException;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What a caller is told when a kernel was stopped for several reasons: the first, or the SSD's. */
@Timeout(60)
class KernelGroupTest {
  private static final long FOREVER = -1;
  private static final long SOON = TimeUnit.MILLISECONDS.toNanos(30);

  private final CpuAccelerator accelerator = CpuAccelerator.open();

  @AfterEach
  void close() {
    accelerator.close();
  }

  /** Kernels that end some time after they were told to stop, for instance by an SSD's trouble. */
  private final class Group extends KernelGroup {
    private final boolean troubled;
    private final Duration lasting;

    /** If an SSD is in trouble it was so before anything else could end the kernels. */
    Group(boolean troubled, Duration lasting) {
      super(new Memory("cpu", accelerator, _ -> null), "the kernels of a test");
      this.troubled = troubled;
      this.lasting = lasting;
    }

    @Override
    Kernels storage() {
      throw new AssertionError("there is none");
    }

    @Override
    long address() {
      return 64;
    }

    @Override
    boolean awaitKernel(RunningKernel kernel, Duration limit) {
      boolean interrupted = false;
      while (!interrupted && !troubled) {
        if (kernel.isOver()) {
          return true;
        }
        interrupted = Thread.interrupted();
      }
      long end = System.nanoTime() + lasting.toNanos();
      while (System.nanoTime() - end < 0) {
        kernel.isOver();
        interrupted |= Thread.interrupted();
      }
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
      return false;
    }

    @Override
    boolean troubled() {
      return troubled;
    }

    @Override
    void tellToStop(boolean value) {}

    @Override
    void giveBack() {}
  }

  @Test
  void anSsdThatFailedIsToldThoughTheTimeIsUpMeanwhile() {
    Group group = new Group(true, Duration.ofMillis(100));
    assertThatExceptionOfType(StorageException.class)
        .isThrownBy(() -> group.await(() -> false, SOON, null))
        .satisfies(e -> assertThat(e.kind()).isEqualTo(StorageException.Kind.IO))
        .withMessageContaining("in trouble");
    assertThat(Thread.interrupted()).isFalse();
  }

  @Test
  void soItIsThoughTheCallerSaysYesMeanwhile() {
    Group group = new Group(true, Duration.ofMillis(100));
    assertThatExceptionOfType(StorageException.class)
        .isThrownBy(() -> group.await(() -> false, FOREVER, () -> true))
        .satisfies(e -> assertThat(e.kind()).isEqualTo(StorageException.Kind.IO));
    assertThat(Thread.interrupted()).isFalse();
  }

  @Test
  void theTimeThatWasUpIsToldThoughTheCallerSaysYesMeanwhile() {
    Group group = new Group(false, Duration.ofMillis(100));
    // Between two questions is more time than the limit, however busy the machine is.
    AtomicBoolean asked = new AtomicBoolean();
    BooleanSupplier afterTheLimit = () -> asked.getAndSet(true);
    assertThatExceptionOfType(NvmeTimeoutException.class)
        .isThrownBy(() -> group.await(() -> false, SOON / 2, afterTheLimit))
        .withMessageContaining("after 15 ms");
  }

  @Test
  void aCallerWhoSaidYesIsToldSoThoughTheTimeIsUpMeanwhile() {
    Group group = new Group(false, Duration.ofMillis(600));
    // So long that a busy machine asks before.
    long limit = TimeUnit.MILLISECONDS.toNanos(500);
    assertThatExceptionOfType(StorageException.class)
        .isThrownBy(() -> group.await(() -> false, limit, () -> true))
        .satisfies(e -> assertThat(e.kind()).isEqualTo(StorageException.Kind.CANCELLED));
    assertThat(Thread.interrupted()).isFalse();
  }

  @Test
  void aKernelThatEndsByItselfIsNoFailure() {
    Group group = new Group(false, Duration.ZERO);
    group.await(() -> true, 0, () -> true);
    assertThat(Thread.interrupted()).isFalse();
  }
}
