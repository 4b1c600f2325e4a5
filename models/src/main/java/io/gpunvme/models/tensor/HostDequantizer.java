package io.gpunvme.models.tensor;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.cuda.CudaStream;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.models.format.ElementType;
import io.gpunvme.models.tensor.Quantized.Scales;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/** {@link Dequantizer} on the CPU. */
final class HostDequantizer implements Dequantizer {
  /** Elements that one thread takes at once; whole blocks of every type. */
  private static final long PART = 1 << 20;

  /** The same of a copy: what caches of a core hold. */
  private static final int BATCH = 1 << 14;

  @Override
  public void dequantize(List<Quantized> tensors, @Nullable CudaStream stream) {
    if (stream != null) {
      throw new InvalidRequestException("there are no streams without a GPU");
    }
    List<Part> parts = new ArrayList<>();
    for (Quantized tensor : tensors) {
      for (long done = 0; done < tensor.elements(); done += PART) {
        parts.add(new Part(tensor, done, Math.min(PART, tensor.elements() - done)));
      }
    }
    Stream<Part> all = parts.size() > 1 ? parts.parallelStream() : parts.stream();
    all.forEach(Part::run);
  }

  /** What one thread has to do. */
  private record Part(Quantized tensor, long first, long elements) {
    void run() {
      int most = (int) Math.min(BATCH, elements);
      byte[] stored = new byte[(int) tensor.type().bytes(most)];
      float[] floats = new float[most];
      Blocks blocks = Blocks.of(tensor.type());
      Scales scales = tensor.scales();
      ScaleWindow window = scales == null ? null : new ScaleWindow(tensor, scales);
      Rounding rounding = new Rounding(tensor, most);
      for (long done = 0; done < elements; done += BATCH) {
        int count = (int) Math.min(BATCH, elements - done);
        MemorySegment bytes = MemorySegment.ofArray(stored).asSlice(0, tensor.type().bytes(count));
        long from = tensor.sourceOffset() + tensor.type().bytes(first + done);
        tensor.source().copyToHost(from, bytes);
        blocks.read(stored, count / tensor.type().blockElements(), floats);
        if (window != null) {
          window.multiply(floats, count, first + done);
        }
        rounding.write(floats, count, first + done);
      }
    }
  }

  /** The scales of a matrix, some of them at hand. For one thread. */
  private static final class ScaleWindow {
    private static final int SIZE = 4096;

    private final Quantized tensor;
    private final Scales scales;
    private final long count;
    private final float[] window;
    private long start = -1;

    ScaleWindow(Quantized tensor, Scales scales) {
      this.tensor = tensor;
      this.scales = scales;
      count = Math.ceilDiv(tensor.rows(), scales.blockRows()) * tensor.scaleColumns();
      window = new float[(int) Math.min(SIZE, count)];
    }

    void multiply(float[] floats, int n, long first) {
      long row = first / tensor.columns();
      long column = first % tensor.columns();
      int i = 0;
      while (i < n) {
        long block = column / scales.blockColumns();
        long blockEnd = Math.min((block + 1) * scales.blockColumns(), tensor.columns());
        int end = i + (int) Math.min(n - i, blockEnd - column);
        float scale = at(row / scales.blockRows() * tensor.scaleColumns() + block);
        for (; i < end; i++) {
          floats[i] *= scale;
        }
        column = blockEnd;
        if (column == tensor.columns()) {
          column = 0;
          row++;
        }
      }
    }

    private float at(long index) {
      long wanted = index / SIZE * SIZE;
      if (wanted != start) {
        long length = Math.min(window.length, count - wanted);
        scales
            .buffer()
            .copyToHost(
                scales.offset() + wanted * Float.BYTES,
                MemorySegment.ofArray(window).asSlice(0, length * Float.BYTES));
        start = wanted;
      }
      return window[(int) (index - wanted)];
    }
  }

  /** Writes floats as the target's type. For one thread. */
  private static final class Rounding {
    private final ElementType type;
    private final DeviceBuffer target;
    private final long offset;
    private final short[] shorts;
    private final int[] words;

    Rounding(Quantized tensor, int most) {
      type = tensor.targetType();
      target = tensor.target();
      offset = tensor.targetOffset();
      shorts = new short[type == ElementType.F32 ? 0 : most];
      words = new int[type == ElementType.BF16 ? most : 0];
    }

    void write(float[] floats, int count, long first) {
      MemorySegment values =
          switch (type) {
            case F32 -> MemorySegment.ofArray(floats);
            case F16 -> halves(floats, count);
            case BF16 -> bfloats(floats, count);
            default -> throw new IllegalStateException("a target of type " + type);
          };
      target.copyFromHost(values.asSlice(0, type.bytes(count)), offset + type.bytes(first));
    }

    private MemorySegment halves(float[] floats, int count) {
      for (int i = 0; i < count; i++) {
        shorts[i] = Float.floatToFloat16(floats[i]);
      }
      return MemorySegment.ofArray(shorts);
    }

    /**
     * In steps that the virtual machine does for many at once, which it does not for all of them.
     */
    private MemorySegment bfloats(float[] floats, int count) {
      MemorySegment.copy(
          MemorySegment.ofArray(floats),
          0,
          MemorySegment.ofArray(words),
          0,
          (long) count * Float.BYTES);
      for (int i = 0; i < count; i++) {
        int bits = words[i];
        // All ones for what is not a number, of which the sum below would make something else.
        int nan = 0x7F800000 - (bits & Integer.MAX_VALUE) >> 31;
        int rounded = bits + 0x7FFF + (bits >>> Short.SIZE & 1);
        words[i] = (rounded & ~nan | 0x7FC00000 & nan) >> Short.SIZE;
      }
      for (int i = 0; i < count; i++) {
        shorts[i] = (short) words[i];
      }
      return MemorySegment.ofArray(shorts);
    }
  }
}
