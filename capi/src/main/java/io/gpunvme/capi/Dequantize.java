package io.gpunvme.capi;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.cuda.CudaStream;
import io.gpunvme.models.format.ElementType;
import io.gpunvme.models.tensor.Dequantizer;
import io.gpunvme.models.tensor.Quantized;
import io.gpunvme.models.tensor.Quantized.Scales;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Quantised tensors that C names by addresses become floats. */
final class Dequantize implements AutoCloseable {
  private final Memory memory;
  private final List<Place> places = new ArrayList<>();

  private Dequantize(Memory memory) {
    this.memory = memory;
  }

  /**
   * One of {@code gpunvme_quantized}.
   *
   * @param scales 0: none
   */
  record Item(
      ElementType type,
      long source,
      ElementType targetType,
      long target,
      long rows,
      long columns,
      long scales,
      long blockRows,
      long blockColumns) {}

  /**
   * Starts it in a stream of the caller's on a GPU, and does it else.
   *
   * @param streamHandle 0 is the default stream of a GPU, and says nothing else
   */
  static void run(Memory memory, List<Item> items, long streamHandle) {
    Dequantizer dequantizer = memory.dequantizer();
    try (Dequantize places = new Dequantize(memory)) {
      List<Quantized> tensors = new ArrayList<>(items.size());
      for (Item item : items) {
        if (item.rows != 0 && item.columns != 0) {
          tensors.add(places.quantized(item));
        }
      }
      if (streamHandle == 0 && !memory.accelerator().gpu()) {
        dequantizer.dequantize(tensors, null);
        return;
      }
      try (CudaStream stream = memory.stream(streamHandle, "floats of quantised tensors")) {
        dequantizer.dequantize(tensors, stream);
      }
    }
  }

  private Quantized quantized(Item item) {
    long elements = elements(item);
    Place source = place(item.source, item.type.bytes(elements));
    Place target = place(item.target, item.targetType.bytes(elements));
    return new Quantized(
        item.type,
        source.buffer(),
        source.offset(item.source),
        item.targetType,
        target.buffer(),
        target.offset(item.target),
        item.rows,
        item.columns,
        scales(item));
  }

  private static long elements(Item item) {
    if (item.columns > Long.MAX_VALUE / item.rows) {
      throw new InvalidRequestException(
          "%d rows of %d columns are no matrix".formatted(item.rows, item.columns));
    }
    return item.rows * item.columns;
  }

  private @Nullable Scales scales(Item item) {
    if (item.scales == 0) {
      return null;
    }
    // Who has no blocks is told so by Scales.
    long count =
        Math.ceilDiv(item.rows, Math.max(1, item.blockRows))
            * Math.ceilDiv(item.columns, Math.max(1, item.blockColumns));
    Place place = place(item.scales, ElementType.F32.bytes(count));
    return new Scales(place.buffer(), place.offset(item.scales), item.blockRows, item.blockColumns);
  }

  private Place place(long address, long bytes) {
    Place place = memory.place(address, bytes);
    if (place == null) {
      throw new InvalidRequestException(
          "%Xh is not memory of the GPU, which the kernels work in".formatted(address));
    }
    places.add(place);
    return place;
  }

  /** What is under way needs the memory, which its owner keeps, and no more than that. */
  @Override
  public void close() {
    places.forEach(place -> place.release().run());
  }
}
