package io.gpunvme.storage.injection;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.cuda.FakeDriver;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.accel.GpuAccelerator;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.function.IntSupplier;
import java.util.function.Supplier;

/** The accelerator of scenarios, and what is in its memory. */
public final class ScenarioMemory {
  private static final Path SHARED_MEMORY = Path.of("/memfd:gpunvme");

  private final Supplier<Accelerator> opened;

  /** How many things are held by what is open. */
  private final IntSupplier held;

  private final Runnable check;

  private ScenarioMemory(Supplier<Accelerator> opened, IntSupplier held, Runnable check) {
    this.opened = opened;
    this.held = held;
    this.check = check;
  }

  /** What is done with an accelerator. */
  public interface Use {
    /** Does it. */
    void of(Accelerator accelerator) throws Exception;
  }

  /**
   * Of an accelerator.
   *
   * @param name {@code cpu} or {@code gpu}: the stand-ins for an accelerator and for the CUDA
   *     driver
   */
  public static ScenarioMemory of(String name) {
    if (name.equals("cpu")) {
      return new ScenarioMemory(
          CpuAccelerator::open, () -> OwnProcess.now(SHARED_MEMORY).mappings().size(), () -> {});
    }
    FakeDriver driver = FakeDriver.fresh("-DFAKE_FREE=(1ul<<30)", "-DFAKE_IN_ORDER=1");
    return new ScenarioMemory(
        () -> GpuAccelerator.open(driver.load().device(0)),
        driver::liveButModules,
        () -> {
          driver.assertClean("everything was closed");
          driver.reset();
        });
  }

  /** Opens it, and closes it. */
  public void with(Use use) throws Exception {
    List<Accelerator> accelerator = new ArrayList<>();
    Attempt.twice("opens the accelerator", () -> accelerator.add(opened.get()));
    try {
      int before = held();
      use.of(accelerator.getFirst());
      // Closing it would free what others have left; what it keeps itself is nobody's.
      Injector.look(() -> accelerator.getFirst().cuda().ifPresent(GpuAccelerator::freeKept));
      assertThat(held()).as("held while the accelerator is open").isEqualTo(before);
    } finally {
      Attempt.succeeds("the accelerator closes", accelerator.getFirst()::close);
      Injector.look(check);
    }
  }

  private int held() {
    int[] count = new int[1];
    Injector.look(() -> count[0] = held.getAsInt());
    return count[0];
  }

  /** The same bytes for the same seed. */
  public static byte[] random(int seed, int length) {
    byte[] bytes = new byte[length];
    new Random(seed).nextBytes(bytes);
    return bytes;
  }

  /** What is in a buffer. */
  public static byte[] seen(DeviceBuffer buffer, long offset, int length) {
    byte[] all = new byte[length];
    if (length > 0) {
      Injector.look(() -> buffer.copyToHost(offset, MemorySegment.ofArray(all)));
    }
    return all;
  }

  /** Has a buffer begin with these bytes. */
  public static void fill(DeviceBuffer buffer, byte[] bytes) {
    Injector.look(() -> buffer.copyFromHost(MemorySegment.ofArray(bytes), 0));
  }

  /** Fails unless {@code length} bytes of both are the same. */
  public static void requireEqual(byte[] a, int at, byte[] b, int from, int length) {
    assertThat(Arrays.mismatch(a, at, at + length, b, from, from + length)).isEqualTo(-1);
  }

  /** Fails unless each byte is as it was or as read. */
  public static void requireOldOrRead(byte[] now, byte[] before, byte[] read, int shift) {
    for (int i = 0; i < now.length; i++) {
      int from = i + shift;
      boolean isRead = from >= 0 && from < read.length && now[i] == read[from];
      if (now[i] != before[i] && !isRead) {
        throw new AssertionError("byte " + i + " is neither as it was nor as read");
      }
    }
  }
}
