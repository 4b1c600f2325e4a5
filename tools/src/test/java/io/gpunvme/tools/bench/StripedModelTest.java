package io.gpunvme.tools.bench;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.models.LoadRequest;
import io.gpunvme.models.LoadedTensor;
import io.gpunvme.models.LoadedWeights;
import io.gpunvme.models.ShardRules;
import io.gpunvme.models.Weights;
import io.gpunvme.models.tensor.TensorKernels;
import io.gpunvme.storage.GpuStorage;
import io.gpunvme.storage.SetShape;
import io.gpunvme.storage.StorageOptions;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** The model of the benchmark, small, loaded by the CPU in the GPU's place. */
class StripedModelTest {
  private static final StripedModel.Size SIZE = new StripedModel.Size(3, 2, 1024, 2752);
  private static final int SSDS = 4;

  private final CpuAccelerator accelerator = CpuAccelerator.open();
  private final List<BenchDevice> devices = new ArrayList<>();
  private final StripedModel model;

  StripedModelTest() {
    for (int i = 0; i < SSDS; i++) {
      devices.add(
          new BenchDevice(
              "SSD" + i, StripedModel.bytesPerDevice(SIZE, SSDS), 4096, 1, StripedModel.UNIT));
    }
    model = StripedModel.write(SIZE, devices);
  }

  @AfterEach
  void close() {
    devices.forEach(BenchDevice::close);
    accelerator.close();
  }

  private GpuStorage set() {
    return GpuStorage.over(
        devices.stream().map(BenchDevice::controller).toList(),
        SetShape.striped(StripedModel.UNIT),
        accelerator,
        StorageOptions.defaults());
  }

  @Test
  void loadsEveryTensorFromAllSsds() {
    Map<String, Integer> wanted = model.checksums();
    try (GpuStorage set = set();
        Weights weights = Weights.over(set, "model", model.files());
        TensorKernels kernels = TensorKernels.open(accelerator);
        LoadedWeights loaded = weights.load(LoadRequest.all())) {
      assertThat(weights.files()).hasSize(SIZE.files());
      assertThat(weights.tensors()).hasSize(SIZE.files() * SIZE.layers() * 9);
      for (LoadedTensor t : loaded.tensors()) {
        assertThat(kernels.crc32c(t.buffer(), t.offset(), t.bytes()))
            .as(t.name())
            .isEqualTo(wanted.get(t.name()));
      }
      // Tensors of equal shape are not equal: a mix-up would be seen.
      assertThat(new HashSet<>(wanted.values())).hasSameSizeAs(wanted.keySet());
      assertThat(devices).allSatisfy(d -> assertThat(d.readBytes()).isPositive());
      assertThat(set.members()).hasSize(SSDS);
    }
  }

  @Test
  void rankReadsItsShareOnly() {
    try (GpuStorage set = set();
        Weights weights = Weights.over(set, "model", model.files())) {
      long before = devices.stream().mapToLong(BenchDevice::readBytes).sum();
      LoadRequest request = LoadRequest.all().rank(1, 4, ShardRules.rows());
      try (LoadedWeights loaded = weights.load(request)) {
        long read = devices.stream().mapToLong(BenchDevice::readBytes).sum() - before;
        long bytes = loaded.report().bytes();
        assertThat(bytes).isLessThan(weights.bytes() / 3);
        // Two blocks at the ends of each tensor's rows.
        assertThat(read).isBetween(bytes, bytes + 2L * 4096 * loaded.tensors().size());
      }
    }
  }
}
