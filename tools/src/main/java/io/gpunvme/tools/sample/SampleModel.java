package io.gpunvme.tools.sample;

import com.google.gson.stream.JsonWriter;
import io.gpunvme.base.InvalidRequestException;
import java.io.IOException;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.function.LongConsumer;

/**
 * A safetensors file of an exact size that looks like a small transformer: tensors of twelve
 * element types, a scalar and an empty one among them, ordered by decreasing alignment and name.
 *
 * <p>Size and seed decide every byte. All floating-point values are finite. Immutable, safe for all
 * threads.
 */
public final class SampleModel {
  /** Smallest size of the file. */
  public static final long MIN_BYTES = 64 << 10;

  /** Largest size of the file. */
  public static final long MAX_BYTES = 1L << 44;

  /** Data starts on a page, by spaces behind the header. */
  private static final int PAGE = 4096;

  private static final int CHUNK = 1 << 20;
  private static final int MIN_WIDTH = 16;
  private static final int MAX_WIDTH = 8192;

  /** Layers of the widest model that still fits decide its width. */
  private static final int WANTED_LAYERS = 8;

  private static final int VOCABULARY = 512;
  private static final long GOLDEN_GAMMA = 0x9E37_79B9_7F4A_7C15L;

  private final long seed;
  private final List<SampleTensor> tensors;
  private final byte[] header;
  private final long dataBytes;

  private SampleModel(long seed, List<SampleTensor> tensors, byte[] header, long dataBytes) {
    this.seed = seed;
    this.tensors = tensors;
    this.header = header;
    this.dataBytes = dataBytes;
  }

  /**
   * Lays out a model; nothing is written yet.
   *
   * @param bytes size of the file, {@link #MIN_BYTES}..{@link #MAX_BYTES}
   * @param seed decides the contents
   */
  public static SampleModel of(long bytes, long seed) {
    if (bytes < MIN_BYTES || bytes > MAX_BYTES) {
      throw new InvalidRequestException(
          "a sample of " + bytes + " bytes is outside " + MIN_BYTES + ".." + MAX_BYTES);
    }
    List<SampleTensor> fixed = tensors(bytes);
    long used = fixed.stream().mapToLong(SampleTensor::bytes).sum();
    // The rest tensor's size depends on the header's and the other way round; a header only grows.
    int reserved = PAGE - Long.BYTES;
    while (true) {
      long dataBytes = bytes - Long.BYTES - reserved;
      List<SampleTensor> all = new ArrayList<>(fixed);
      all.add(tensor("vocabulary.bytes", DType.U8, dataBytes - used));
      List<SampleTensor> placed = place(all);
      byte[] header = header(placed, seed);
      if (header.length <= reserved) {
        return new SampleModel(seed, placed, padded(header, reserved), dataBytes);
      }
      reserved = Math.ceilDiv(header.length + Long.BYTES, PAGE) * PAGE - Long.BYTES;
    }
  }

  /** How many tensors are in it. */
  public int tensorCount() {
    return tensors.size();
  }

  /** Size of the file. */
  public long bytes() {
    return Long.BYTES + header.length + dataBytes;
  }

  /**
   * Writes the file.
   *
   * @param file must not exist
   * @param progress told how many more bytes are written
   */
  public void write(Path file, LongConsumer progress) throws IOException {
    FileChannel channel =
        FileChannel.open(file, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE);
    try (FileChannel out = channel) {
      writeTo(out, progress);
    } catch (IOException | RuntimeException e) {
      Files.deleteIfExists(file);
      throw e;
    }
  }

  private void writeTo(FileChannel out, LongConsumer progress) throws IOException {
    ByteBuffer chunk = ByteBuffer.allocateDirect(CHUNK).order(ByteOrder.LITTLE_ENDIAN);
    ByteBuffer start = ByteBuffer.allocate(Long.BYTES + header.length);
    start.order(ByteOrder.LITTLE_ENDIAN).putLong(header.length).put(header).flip();
    drain(start, out, progress);
    for (SampleTensor tensor : tensors) {
      for (long at = tensor.begin(); at < tensor.end(); ) {
        int bytes = (int) Math.min(CHUNK, tensor.end() - at);
        fill(chunk.clear(), tensor.dtype(), at, bytes);
        drain(chunk.flip().limit(bytes), out, progress);
        at += bytes;
      }
    }
  }

  /** Whole words, the last one perhaps beyond {@code bytes}; every tensor starts on a word. */
  private void fill(ByteBuffer chunk, DType dtype, long at, int bytes) {
    long state = seed + at / Long.BYTES * GOLDEN_GAMMA;
    for (int i = 0; i < bytes; i += Long.BYTES) {
      state += GOLDEN_GAMMA;
      chunk.putLong(dtype.elements(mix(state)));
    }
  }

  private static long mix(long state) {
    long z = (state ^ state >>> 30) * 0xBF58_476D_1CE4_E5B9L;
    z = (z ^ z >>> 27) * 0x94D0_49BB_1331_11EBL;
    return z ^ z >>> 31;
  }

  private static void drain(ByteBuffer bytes, FileChannel out, LongConsumer progress)
      throws IOException {
    while (bytes.hasRemaining()) {
      progress.accept(out.write(bytes));
    }
  }

  // ---- layout

  /** Every tensor but the one that takes the rest; each a multiple of eight bytes. */
  private static List<SampleTensor> tensors(long bytes) {
    long width = MIN_WIDTH;
    while (width < MAX_WIDTH && modelBytes(2 * width, WANTED_LAYERS) <= bytes / 8 * 7) {
      width *= 2;
    }
    long perLayer = modelBytes(width, 1) - modelBytes(width, 0);
    long layers = Math.max(1, (bytes / 8 * 7 - modelBytes(width, 0)) / perLayer);
    List<SampleTensor> all = new ArrayList<>(shared(width));
    for (long layer = 0; layer < layers; layer++) {
      all.addAll(layer("layers." + layer, width));
    }
    return all;
  }

  private static long modelBytes(long width, long layers) {
    long shared = shared(width).stream().mapToLong(SampleTensor::bytes).sum();
    return shared + layers * layer("", width).stream().mapToLong(SampleTensor::bytes).sum();
  }

  private static List<SampleTensor> shared(long width) {
    return List.of(
        tensor("embedding.weight", DType.F32, VOCABULARY, width),
        tensor("position.scale", DType.F64, width),
        tensor("position.ids", DType.I64, VOCABULARY),
        tensor("hash.seeds", DType.U64, 16),
        tensor("vocabulary.offsets", DType.I32, VOCABULARY),
        tensor("steps", DType.I64),
        tensor("adapter.weight", DType.F16, 0, width));
  }

  private static List<SampleTensor> layer(String prefix, long width) {
    return List.of(
        tensor(prefix + ".attention.qkv.weight", DType.BF16, 3 * width, width),
        tensor(prefix + ".attention.output.weight", DType.F16, width, width),
        tensor(prefix + ".attention.mask", DType.BOOL, width),
        tensor(prefix + ".mlp.up.weight", DType.F8_E4M3, 2 * width, width),
        tensor(prefix + ".mlp.gate.weight", DType.F8_E5M2, 2 * width, width),
        tensor(prefix + ".mlp.down.weight", DType.I8, width, 2 * width),
        tensor(prefix + ".mlp.down.scale", DType.F32, width),
        tensor(prefix + ".norm.weight", DType.F32, width));
  }

  private static SampleTensor tensor(String name, DType dtype, long... shape) {
    return new SampleTensor(name, dtype, Arrays.stream(shape).boxed().toList(), 0);
  }

  /** In file order: the one of arbitrary size last, the others by alignment and name. */
  private static List<SampleTensor> place(List<SampleTensor> all) {
    List<SampleTensor> sorted = new ArrayList<>(all);
    sorted.sort(
        Comparator.comparingInt((SampleTensor t) -> -t.dtype().bytes())
            .thenComparing(t -> t.dtype() == DType.U8)
            .thenComparing(SampleTensor::name));
    long offset = 0;
    for (int i = 0; i < sorted.size(); i++) {
      sorted.set(i, sorted.get(i).at(offset));
      offset = sorted.get(i).end();
    }
    return List.copyOf(sorted);
  }

  private static byte[] header(List<SampleTensor> tensors, long seed) {
    StringWriter text = new StringWriter();
    try (JsonWriter json = new JsonWriter(text)) {
      json.beginObject();
      json.name("__metadata__").beginObject();
      json.name("format").value("pt");
      json.name("source").value("gpunvme sample model");
      json.name("seed").value(Long.toString(seed));
      json.endObject();
      for (SampleTensor tensor : tensors) {
        json.name(tensor.name()).beginObject();
        json.name("dtype").value(tensor.dtype().name());
        json.name("shape").beginArray();
        for (long dimension : tensor.shape()) {
          json.value(dimension);
        }
        json.endArray();
        json.name("data_offsets").beginArray().value(tensor.begin()).value(tensor.end()).endArray();
        json.endObject();
      }
      json.endObject();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return text.toString().getBytes(StandardCharsets.UTF_8);
  }

  private static byte[] padded(byte[] header, int length) {
    byte[] all = Arrays.copyOf(header, length);
    Arrays.fill(all, header.length, length, (byte) ' ');
    return all;
  }
}
