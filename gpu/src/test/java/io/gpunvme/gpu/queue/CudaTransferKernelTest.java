package io.gpunvme.gpu.queue;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.cuda.FakeDriver;
import io.gpunvme.gpu.accel.GpuAccelerator;
import java.lang.foreign.MemorySegment;
import java.lang.reflect.Field;
import java.util.ArrayList;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** On the stand-in for the CUDA driver, whose kernels have other parameters: no launch succeeds. */
class CudaTransferKernelTest {
  private static final int STREAMS = 2;

  private final GpuAccelerator gpu = GpuAccelerator.open(FakeDriver.fresh().load().device(0));
  private final CudaTransferKernel kernel = CudaTransferKernel.load(gpu);

  @AfterEach
  void close() {
    kernel.close();
    gpu.close();
  }

  private void requireLaunchFails() {
    assertThatThrownBy(() -> kernel.start(MemorySegment.ofArray(new long[1]), 12, 1))
        .hasMessageContaining("the launch has arguments");
  }

  @Test
  void aStreamWhoseLaunchFailedIsUsedAgain() {
    for (int i = 0; i <= STREAMS; i++) {
      requireLaunchFails();
    }
  }

  /** Who frees memory of the GPU would not wait for what runs on it. */
  @Test
  void aStreamWhoseKernelCouldNotBeToldOverIsNotUsedAgain() throws ReflectiveOperationException {
    // Nothing but an Error of the virtual machine stops it from being told.
    Object pauses = field(gpu.getClass(), "pauses").get(gpu);
    field(pauses.getClass(), "asked").set(pauses, new NeverShorter());
    for (int i = 0; i < STREAMS; i++) {
      requireLaunchFails();
    }
    assertThatThrownBy(() -> kernel.start(MemorySegment.ofArray(new long[1]), 12, 1))
        .hasMessageContaining("run already");
  }

  private static Field field(Class<?> of, String name) throws ReflectiveOperationException {
    Field field = of.getDeclaredField(name);
    field.setAccessible(true);
    return field;
  }

  private static final class NeverShorter extends ArrayList<Object> {
    @Override
    public boolean remove(Object one) {
      throw new StackOverflowError("made up");
    }
  }
}
