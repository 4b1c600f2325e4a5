package io.gpunvme.cuda;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

final class CudaStreamTest {
  private final FakeDriver fake = FakeDriver.fresh();
  private final CudaContext context = fake.openContext();
  private final CudaStream stream = context.stream();
  private final Arena arena = Arena.ofConfined();

  @AfterEach
  void close() {
    context.close();
    arena.close();
    fake.assertClean("the test");
  }

  private String handle() {
    return "0x" + Long.toHexString(stream.handle());
  }

  private static byte[] bytes(MemorySegment memory) {
    return memory.toArray(JAVA_BYTE);
  }

  @Test
  void copiesRunInTheStream() {
    DeviceMemory memory = context.allocate(8);
    MemorySegment host = arena.allocateFrom(JAVA_BYTE, (byte) 1, (byte) 2, (byte) 3, (byte) 4);
    MemorySegment back = arena.allocate(4);
    stream.copyToDeviceAsync(memory.address(), host);
    stream.copyOnDeviceAsync(memory.address() + 4, memory.address(), 2);
    stream.fillAsync(memory.address() + 6, (byte) -1, 2);
    stream.copyToHostAsync(back, memory.address() + 4);
    stream.synchronize();
    assertThat(bytes(back)).containsExactly(1, 2, -1, -1);
    for (String call :
        new String[] {
          "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoDAsync_v2", "cuMemsetD8Async", "cuMemcpyDtoHAsync_v2"
        }) {
      assertThat(fake.last(call)).endsWith(" " + handle());
    }
    assertThat(fake.last("cuStreamSynchronize")).isEqualTo(handle());
    assertThatIllegalArgumentException()
        .isThrownBy(() -> stream.copyToHostAsync(back.asReadOnly(), memory.address()));
  }

  @Test
  void aBatchCopiesEverything() {
    copyBatch(fake, stream);
    assertThat(fake.calls("cuMemcpyBatchAsync_v2")).isEqualTo(1);
    assertThat(fake.last("cuMemcpyBatchAsync_v2"))
        .isEqualTo("2 copies, order 1, flags 1, groups 1 from 0, " + handle());
  }

  @Test
  void driversOfCuda12HaveAnotherBatch() {
    FakeDriver old = FakeDriver.ofVersion(12080);
    try (CudaContext oldContext = old.openContext();
        CudaStream oldStream = oldContext.stream()) {
      assertThat(oldContext.hasBatchCopies()).isTrue();
      copyBatch(old, oldStream);
      assertThat(old.calls("cuMemcpyBatchAsync")).isEqualTo(1);
      CopyBatch batch = new CopyBatch(1);
      batch.add(1, 2, 3);
      old.fail("cuMemcpyBatchAsync", 2, CudaException.INVALID_VALUE);
      assertThatThrownBy(() -> oldStream.copyBatchAsync(batch))
          .isInstanceOf(CudaException.class)
          .hasMessageContaining("1 copies, failing at number 7");
    }
    old.assertClean("batches");
  }

  private void copyBatch(FakeDriver driver, CudaStream target) {
    MemorySegment memory = arena.allocate(64);
    memory.set(JAVA_LONG, 0, 11);
    memory.set(JAVA_LONG, 8, 22);
    CopyBatch batch = new CopyBatch(2);
    target.copyBatchAsync(batch);
    batch.add(memory.address() + 32, memory.address(), 8);
    batch.clear();
    batch.add(memory.address() + 16, memory.address() + 8, 8);
    batch.add(memory.address() + 24, memory.address(), 8);
    assertThat(batch.size()).isEqualTo(2).isEqualTo(batch.capacity());
    target.copyBatchAsync(batch);
    assertThat(memory.get(JAVA_LONG, 16)).isEqualTo(22);
    assertThat(memory.get(JAVA_LONG, 24)).isEqualTo(11);
    assertThat(memory.get(JAVA_LONG, 32)).isZero();
    assertThatIllegalStateException().isThrownBy(() -> batch.add(1, 2, 3));
    assertThatIllegalArgumentException().isThrownBy(() -> batch.add(1, 2, 0));
    assertThatIllegalArgumentException().isThrownBy(() -> new CopyBatch(0));
  }

  @Test
  void notReadyIsNoError() {
    CudaEvent event = context.event();
    stream.record(event);
    fake.fail("cuStreamQuery", 1, CudaException.NOT_READY);
    assertThat(stream.isIdle()).isFalse();
    assertThat(stream.isIdle()).isTrue();
    fake.fail("cuEventQuery", 1, CudaException.NOT_READY);
    assertThat(event.isDone()).isFalse();
    assertThat(event.isDone()).isTrue();
    fake.fail("cuEventQuery", 3, CudaException.ILLEGAL_ADDRESS);
    assertThatThrownBy(event::isDone)
        .isInstanceOfSatisfying(CudaException.class, e -> assertThat(e.contextLost()).isTrue())
        .hasMessageStartingWith("cuEventQuery 0x")
        .hasMessageEndingWith("the GPU context is lost: end this process");
  }

  @Test
  void capturingIsTold() {
    assertThat(stream.isCapturing()).isFalse();
    assertThat(fake.last("cuStreamIsCapturing")).isEqualTo(handle());
    for (int status : new int[] {1, 2}) {
      fake.capture(status);
      assertThat(stream.isCapturing()).as("CUstreamCaptureStatus %d", status).isTrue();
    }
    fake.capture(0);
    fake.fail("cuStreamIsCapturing", 4, CudaException.INVALID_VALUE);
    assertThatThrownBy(stream::isCapturing).isInstanceOf(CudaException.class);
  }

  @Test
  void streamsOfOthersAreUsedAndNotDestroyed() {
    try (CudaStream ours = context.foreignStream(stream.handle())) {
      assertThat(ours.handle()).isEqualTo(stream.handle());
      ours.synchronize();
    }
    assertThat(fake.calls("cuStreamDestroy_v2")).isZero();
    try (CudaStream legacy = context.foreignStream(0)) {
      assertThat(legacy.handle()).isZero();
    }
    stream.synchronize();
  }

  @Test
  void eventsTieStreamsTogether() {
    CudaEvent plain = context.event();
    assertThat(fake.last("cuEventCreate")).as("CU_EVENT_DISABLE_TIMING").isEqualTo("2");
    CudaEvent timing = context.timingEvent();
    assertThat(fake.last("cuEventCreate")).as("CU_EVENT_DEFAULT").isEqualTo("0");
    stream.record(plain);
    String event = "0x" + Long.toHexString(plain.handle());
    assertThat(fake.last("cuEventRecord")).isEqualTo(event + " " + handle());
    stream.await(plain);
    assertThat(fake.last("cuStreamWaitEvent")).isEqualTo(handle() + " " + event + " 0");
    stream.awaitValue(0x1000, 7);
    assertThat(fake.last("cuStreamWaitValue32_v2")).isEqualTo(handle() + " 1000 7 0");
    plain.synchronize();
    assertThat(fake.last("cuEventSynchronize")).isEqualTo(event);
    assertThat(plain.millisecondsSince(timing)).isEqualTo(1.5f);
    assertThat(fake.last("cuEventElapsedTime_v2"))
        .isEqualTo("0x" + Long.toHexString(timing.handle()) + " " + event);
  }
}
