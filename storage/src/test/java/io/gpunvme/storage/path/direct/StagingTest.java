package io.gpunvme.storage.path.direct;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.cuda.FakeDriver;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.accel.MemoryInUse;
import io.gpunvme.gpu.accel.PolicyAccelerator;
import io.gpunvme.gpu.queue.FakeGpu;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.gpu.transfer.InitiatorKind;
import io.gpunvme.gpu.transfer.InitiatorOptions;
import io.gpunvme.nvme.pci.NumaHome;
import io.gpunvme.storage.GpuStorage;
import io.gpunvme.storage.StorageAddress;
import io.gpunvme.storage.StorageOptions;
import io.gpunvme.storage.path.StorageException;
import io.gpunvme.storage.path.direct.StagingPool.Staged;
import io.gpunvme.testing.FakeMachine;
import io.gpunvme.testing.MemoryPolicies;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Memory for what cannot go straight to its buffer. */
@Timeout(120)
class StagingTest {
  private static final int ALL = 4;
  private static final long MUCH = 1L << 40;
  private static final int MORE_THAN_SHORT = 256 << 10;

  private final FakeDriver fake = FakeDriver.fresh();

  private int taken() {
    return fake.calls("cuMemHostAlloc") + fake.calls("cuStreamCreateWithPriority");
  }

  /** Later the driver may wait for streams that wait for what is staged. */
  @Test
  void onAGpuAllOfItIsTakenWithTheFirst() {
    try (GpuAccelerator gpu = GpuAccelerator.open(fake.load().device(0));
        StagingPool pool = StagingPool.forRounds(gpu, Placement.HOST, NumaHome.NONE, MUCH)) {
      List<Staged> some = new ArrayList<>(List.of(pool.take()));
      int first = taken();
      while (some.size() < ALL) {
        some.add(pool.take());
      }
      assertThat(some).doesNotHaveDuplicates();
      assertThat(taken()).isEqualTo(first);

      // What its copies have left unusable is replaced, and nothing else is.
      int waits = fake.calls("cuStreamSynchronize");
      fake.fail("cuStreamSynchronize", waits + 1, 700);
      some.forEach(pool::give);
      List<Staged> again = new ArrayList<>();
      while (again.size() < ALL) {
        again.add(pool.take());
      }
      assertThat(again).doesNotHaveDuplicates().doesNotContain(some.getFirst());
      assertThat(again).containsAll(some.subList(1, ALL));
      again.forEach(pool::give);
    }
    fake.assertClean("the pool and the accelerator were closed");
  }

  @Test
  void elsewhereItIsTakenAsItIsNeeded() {
    try (CpuAccelerator cpu = CpuAccelerator.open();
        StagingPool pool = StagingPool.forRounds(cpu, Placement.HOST, NumaHome.NONE, MUCH)) {
      Staged one = pool.take();
      MemoryInUse taken = cpu.memoryInUse();
      assertThat(taken.device() + taken.pinned()).isEqualTo(StagingPool.BYTES_ON_HOST);
      pool.give(one);
      assertThat(pool.take()).isSameAs(one);
      pool.give(one);
    }
  }

  @Test
  void elsewhereItIsOnTheSsdsNode(@TempDir Path folder) {
    MemoryPolicies.needNode0();
    NumaHome home = new FakeMachine(folder).home(0);
    try (PolicyAccelerator cpu = new PolicyAccelerator();
        StagingPool rounds = StagingPool.forRounds(cpu, Placement.HOST, home, 1);
        StagingPool pieces = StagingPool.forPieces(cpu, home)) {
      rounds.give(rounds.take());
      pieces.give(pieces.take());
      assertThat(cpu.placed()).containsExactly(true, true);
    }
  }

  /** Memory takes long to come by, so there is no more than is needed. */
  @ParameterizedTest
  @CsvSource({"16, 2097152", "1048577, 4194304", "16777216, 33554432", "33554433, 33554432"})
  void ofLittleThereIsLittle(long there, long expected) {
    try (CpuAccelerator cpu = CpuAccelerator.open();
        StagingPool pool = StagingPool.forRounds(cpu, Placement.HOST, NumaHome.NONE, there)) {
      Staged one = pool.take();
      assertThat(one.memory().size()).isEqualTo(expected);
      pool.give(one);
    }
  }

  private static StorageOptions byHostMemory() {
    return StorageOptions.defaults()
        .withWrite(true)
        .with(InitiatorOptions.defaults().with(InitiatorKind.CPU, Placement.HOST));
  }

  /** Several rounds or pieces: the one half is read into while the other is copied. */
  @ParameterizedTest
  @ValueSource(longs = {3 * StagingPool.BYTES_ON_HOST, 4 * StagingPool.BYTES_FOR_PIECES})
  void nothingIsOverwrittenThatIsStillToBeCopied(long length) {
    int bytes = (int) length;
    byte[] content = new byte[bytes];
    new SplittableRandom(Long.getLong("gpunvme.seed", System.nanoTime())).nextBytes(content);
    // Its copies move nothing before they are waited for.
    try (FakeGpu gpu = new FakeGpu();
        DeviceBuffer buffer = gpu.allocate(bytes);
        GpuStorage storage =
            GpuStorage.open(
                StorageAddress.parse("sim:size=96MiB,latency=0"), gpu, byHostMemory())) {
      buffer.copyFromHost(MemorySegment.ofArray(content), 0);
      storage.write(0, buffer, 0, bytes);
      byte[] seen = new byte[bytes];
      buffer.copyFromHost(MemorySegment.ofArray(seen), 0);
      storage.read(0, buffer, 0, bytes);
      buffer.copyToHost(0, MemorySegment.ofArray(seen));
      assertThat(seen).isEqualTo(content);
    }
  }

  @Test
  void copiesThatFailAtTheEndAreTold() {
    try (GpuAccelerator gpu = GpuAccelerator.open(fake.load().device(0));
        DeviceBuffer buffer = gpu.allocate(MORE_THAN_SHORT);
        GpuStorage storage =
            GpuStorage.open(StorageAddress.parse("sim:size=1MiB,latency=0"), gpu, byHostMemory())) {
      storage.read(0, buffer, 0, MORE_THAN_SHORT);
      fake.fail("cuStreamSynchronize", fake.calls("cuStreamSynchronize") + 1, 700);
      assertThatThrownBy(() -> storage.read(0, buffer, 0, MORE_THAN_SHORT))
          .isInstanceOf(StorageException.class)
          .hasMessageContaining("CUDA_ERROR_ILLEGAL_ADDRESS");
    }
  }
}
