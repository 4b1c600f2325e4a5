package io.gpunvme.models.tensor;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.cuda.CudaAttribute;
import io.gpunvme.cuda.CudaFunction;
import io.gpunvme.cuda.CudaStream;
import io.gpunvme.cuda.KernelArguments;
import io.gpunvme.cuda.LaunchShape;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.queue.GpuModule;
import io.gpunvme.models.format.ElementType;
import io.gpunvme.models.tensor.Quantized.Scales;
import java.lang.foreign.MemorySegment;
import java.util.EnumMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** {@link Dequantizer} on a CUDA GPU: {@code dequantize.cu}. */
final class CudaDequantizer implements Dequantizer {
  private static final int THREADS = 256;
  private static final int BLOCKS_PER_MULTIPROCESSOR = 8;

  /** Bytes that a thread stores at once. */
  private static final int UNIT = 16;

  private final GpuAccelerator accelerator;
  private final Map<ElementType, Map<ElementType, CudaFunction>> kernels =
      new EnumMap<>(ElementType.class);
  private final long mostBlocks;

  private CudaDequantizer(GpuAccelerator accelerator, GpuModule module) {
    this.accelerator = accelerator;
    // All of them now: loading one may wait for a kernel that runs.
    for (ElementType type : Quantized.TYPES) {
      Map<ElementType, CudaFunction> byTarget = new EnumMap<>(ElementType.class);
      for (ElementType target : Quantized.TARGETS) {
        byTarget.put(target, module.function(name(type, target)));
      }
      kernels.put(type, byTarget);
    }
    mostBlocks =
        (long) accelerator.context().device().attribute(CudaAttribute.MULTIPROCESSOR_COUNT)
            * BLOCKS_PER_MULTIPROCESSOR;
  }

  static String name(ElementType type, ElementType target) {
    return "gpunvme_dequantize_%s_%s".formatted(type, target).toLowerCase(Locale.ROOT);
  }

  /** See {@link Dequantizer#open}. */
  static CudaDequantizer load(GpuAccelerator accelerator) {
    GpuModule module = GpuModule.resource(accelerator, "dequantize");
    return accelerator.betweenKernels(() -> new CudaDequantizer(accelerator, module));
  }

  @Override
  public void dequantize(List<Quantized> tensors, @Nullable CudaStream stream) {
    if (stream == null) {
      throw new InvalidRequestException("kernels of " + accelerator.name() + " need a stream");
    }
    tensors.forEach(this::requireOwn);
    for (Quantized tensor : tensors) {
      if (tensor.elements() > 0) {
        launch(tensor, stream);
      }
    }
  }

  private void launch(Quantized tensor, CudaStream stream) {
    CudaFunction function =
        Objects.requireNonNull(
            kernels.getOrDefault(tensor.type(), Map.of()).get(tensor.targetType()));
    long units = Math.ceilDiv(tensor.targetType().bytes(tensor.elements()), UNIT);
    int blocks = Math.toIntExact(Math.min(Math.ceilDiv(units, THREADS), mostBlocks));
    stream.launch(
        function,
        LaunchShape.of(blocks, THREADS),
        new KernelArguments().addStruct(MemorySegment.ofArray(arguments(tensor))));
  }

  /** {@code Tensor} of the kernels. */
  private static long[] arguments(Quantized tensor) {
    long source = tensor.source().deviceAddress() + tensor.sourceOffset();
    long target = tensor.target().deviceAddress() + tensor.targetOffset();
    Scales scales = tensor.scales();
    return scales == null
        ? new long[] {source, target, tensor.elements(), 0, 0, 0, 0, 0}
        : new long[] {
          source,
          target,
          tensor.elements(),
          scales.buffer().deviceAddress() + scales.offset(),
          tensor.columns(),
          scales.blockRows(),
          scales.blockColumns(),
          tensor.scaleColumns()
        };
  }

  private void requireOwn(Quantized tensor) {
    OwnBuffers.require(accelerator, tensor.source());
    OwnBuffers.require(accelerator, tensor.target());
    if (tensor.scales() != null) {
      OwnBuffers.require(accelerator, tensor.scales().buffer());
    }
  }
}
