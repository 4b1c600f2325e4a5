package io.gpunvme.storage;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.queue.DeviceFile;
import io.gpunvme.gpu.queue.DeviceSet;
import io.gpunvme.gpu.queue.FakeGpu;
import io.gpunvme.gpu.queue.KernelStorage;
import io.gpunvme.gpu.queue.KernelStorageOptions;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.gpu.queue.StripeSet;
import io.gpunvme.gpu.transfer.InitiatorKind;
import io.gpunvme.gpu.transfer.InitiatorOptions;
import io.gpunvme.storage.path.StorageException;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** {@link GpuStorage#forKernels}: what kernels do with it is tested with {@link KernelStorage}. */
class ForKernelsTest {
  private static final KernelStorageOptions WANTED =
      KernelStorageOptions.in(Placement.HOST).with(2, 32);

  private final FakeGpu gpu = new FakeGpu();

  @TempDir Path folder;

  @AfterEach
  void close() {
    gpu.close();
  }

  private GpuStorage open(String address) {
    return GpuStorage.open(
        StorageAddress.parse(address),
        gpu,
        StorageOptions.defaults()
            .withWrite(true)
            .with(InitiatorOptions.defaults().with(InitiatorKind.CPU, null)));
  }

  @Test
  void kernelsHaveQueuesOfTheirOwnBesideTheStorages() {
    try (GpuStorage storage = open("sim:size=1MiB");
        DeviceBuffer buffer = gpu.allocate(4096)) {
      try (KernelStorage kernels = storage.forKernels(WANTED)) {
        assertThat(kernels.stats()).hasSize(1); // one SSD
        assertThat(kernels.deviceHandle()).isNotZero();
        assertThat(kernels.register(buffer)).isZero();
        buffer.copyFromHost(MemorySegment.ofArray(new byte[] {1, 2, 3}), 0);
        storage.write(4096, buffer, 0, 4096);
        buffer.copyFromHost(MemorySegment.ofArray(new byte[3]), 0);
        storage.read(4096, buffer, 0, 4096);
        byte[] back = new byte[3];
        buffer.copyToHost(0, MemorySegment.ofArray(back));
        assertThat(back).containsExactly(1, 2, 3);
        assertThat(kernels.errors().records()).isEmpty();
      }
      // The controller has the queues back: as many can be made again, more often than it has.
      for (int i = 0; i < 40; i++) {
        storage.forKernels(WANTED).close();
      }
    }
  }

  @Test
  void aStripeSetIsOneRangeOfBlocks() {
    String three = "stripe:sim:size=1MiB,sim:size=1028KiB,sim:size=2MiB,lba=4096;unit=16KiB";
    try (GpuStorage storage = open(three);
        KernelStorage kernels = storage.forKernels(WANTED);
        DeviceSet set = storage.setForKernels(kernels)) {
      assertThat(kernels.stats()).hasSize(3);
      assertThat(set.deviceAddress()).isNotZero();
      assertThat(set.set().unit()).isEqualTo(16 << 10);
      assertThat(set.set().bytes()).isEqualTo(storage.size()).isEqualTo(3 << 20);
      assertThat(set.set().members()).extracting(StripeSet.Member::slba).containsOnly(0L);
      assertThat(set.set().controllers())
          .containsExactlyElementsOf(
              storage.blocks(0, storage.size()).stream().map(BlockRun::controller).toList());
      DeviceFile all = storage.fileForKernels(kernels);
      assertThat(all.bytes()).isEqualTo(3 << 20);
    }
    try (GpuStorage one = open("sim:size=1MiB");
        KernelStorage kernels = one.forKernels(WANTED)) {
      assertThat(one.setForKernels(kernels).set().members()).hasSize(1);
    }
  }

  @Test
  void severalStoragesAreTheSsdsOfOne() {
    try (GpuStorage a = open("sim:size=1MiB");
        GpuStorage b = open("sim:size=2MiB");
        CpuAccelerator cpu = CpuAccelerator.open();
        GpuStorage other = GpuStorage.open("sim:size=1MiB", cpu)) {
      try (KernelStorage kernels = GpuStorage.forKernels(List.of(b, a), WANTED);
          DeviceFile file = a.fileForKernels(kernels)) {
        assertThat(kernels.stats()).hasSize(2);
        assertThat(file.bytes()).isEqualTo(1 << 20);
      }
      try (GpuStorage set = open("stripe:sim:size=1MiB,sim:size=1MiB;unit=16KiB");
          KernelStorage kernels = GpuStorage.forKernels(List.of(a, set), WANTED);
          DeviceFile file = set.fileForKernels(kernels)) {
        assertThat(kernels.stats()).hasSize(3);
        assertThat(file.bytes()).isEqualTo(2 << 20);
      }
      assertThatExceptionOfType(InvalidRequestException.class)
          .isThrownBy(() -> GpuStorage.forKernels(List.of(a, b, a), WANTED))
          .withMessageContaining("sim:size=1MiB is there twice");
      assertThatExceptionOfType(InvalidRequestException.class)
          .isThrownBy(() -> GpuStorage.forKernels(List.of(a, other), WANTED))
          .withMessageContaining("of one accelerator");
      assertThatExceptionOfType(InvalidRequestException.class)
          .isThrownBy(() -> GpuStorage.forKernels(List.of(), WANTED));
    }
  }

  @Test
  void kernelsSeeAsMuchOfABufferAsIsRegistered() {
    try (GpuStorage storage = open("sim:size=1MiB");
        KernelStorage kernels = storage.forKernels(WANTED);
        DeviceBuffer buffer = gpu.allocate(8192)) {
      assertThat(kernels.register(buffer, 5000)).isZero();
      assertThat(kernels.register(buffer, 8192)).isOne();
      for (long bytes : new long[] {0, -1, 8193}) {
        assertThatExceptionOfType(InvalidRequestException.class)
            .isThrownBy(() -> kernels.register(buffer, bytes))
            .withMessageContaining("of a buffer of 8192 bytes");
      }
    }
  }

  @Test
  void filesAndClosedStorageHaveNone() throws IOException {
    Path file = Files.write(folder.resolve("file"), new byte[8192]);
    try (GpuStorage storage = open(file.toString())) {
      assertThatThrownBy(() -> storage.forKernels(WANTED))
          .isInstanceOf(StorageException.class)
          .hasMessageContaining("a file of a mounted file system: the kernel drives its SSD");
    }
    GpuStorage closed = open("sim:size=1MiB");
    closed.close();
    assertThatThrownBy(() -> closed.forKernels(WANTED)).isInstanceOf(IllegalStateException.class);
  }
}
