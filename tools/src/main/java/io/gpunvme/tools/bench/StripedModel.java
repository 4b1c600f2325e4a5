package io.gpunvme.tools.bench;

import com.google.gson.JsonObject;
import io.gpunvme.base.Align;
import io.gpunvme.models.format.ElementType;
import io.gpunvme.models.format.SafetensorsIndex;
import io.gpunvme.models.format.SafetensorsWriter;
import io.gpunvme.models.format.SafetensorsWriter.Layout;
import io.gpunvme.models.format.TensorInfo;
import io.gpunvme.storage.fs.FileExtent;
import io.gpunvme.storage.plan.Stripes;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.LongStream;
import java.util.zip.CRC32C;

/**
 * Files of a model like LLaMA on SSDs in memory that have turns of {@value #UNIT} bytes: as the
 * reference writes them, so that tensors begin where they happen to, and in extents as long as
 * ext4's longest, the files' in turn. Immutable.
 */
final class StripedModel {
  /** Bytes on an SSD before the next one's turn. */
  static final long UNIT = 4 << 20;

  /** 32768 blocks of 4 KiB, the most that an extent of ext4 has. */
  private static final long EXTENT = 128L << 20;

  private static final long CHUNK = 1 << 20;
  private static final ValueLayout.OfLong LONG =
      ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

  /** Above the words of a medium: those of two media differ. */
  private static final int MEDIUM_SHIFT = 48;

  /**
   * How large it is.
   *
   * @param files shards
   * @param layers in each of them
   * @param hidden elements of a hidden state
   * @param inner elements within a feed-forward network
   */
  record Size(int files, int layers, int hidden, int inner) {}

  private static final String INDEX = "model" + SafetensorsIndex.SUFFIX;

  private final List<Layout> layouts;
  private final byte[] index;
  private final List<MemorySegment> media;
  private final Stripes stripes;
  private final Map<String, List<FileExtent>> files = new LinkedHashMap<>();

  private StripedModel(List<Layout> layouts, List<MemorySegment> media) {
    this.layouts = layouts;
    index = index(layouts);
    this.media = List.copyOf(media);
    stripes = new Stripes(media.size(), UNIT);
  }

  /** Bytes that each of some SSDs must have at least. */
  static long bytesPerDevice(Size size, int devices) {
    List<Layout> layouts = layouts(size);
    long all = Align.up(index(layouts).length, UNIT);
    all += layouts.stream().mapToLong(l -> Align.up(l.fileBytes(), UNIT)).sum();
    return Align.up(Math.ceilDiv(all, devices), UNIT);
  }

  /** Puts one on SSDs: every word of them becomes another one. */
  static StripedModel write(Size size, List<BenchDevice> devices) {
    StripedModel model =
        new StripedModel(layouts(size), devices.stream().map(BenchDevice::medium).toList());
    for (int m = 0; m < model.media.size(); m++) {
      fill(model.media.get(m), (long) m << MEDIUM_SHIFT);
    }
    model.place();
    for (int f = 0; f < model.layouts.size(); f++) {
      model.writeHead(name(f), model.layouts.get(f).head());
    }
    model.writeHead(INDEX, model.index);
    return model;
  }

  private static List<Layout> layouts(Size size) {
    List<Layout> all = new ArrayList<>();
    for (int f = 0; f < size.files; f++) {
      SafetensorsWriter file = new SafetensorsWriter().metadata("format", "pt");
      for (int layer = 0; layer < size.layers; layer++) {
        String name = "model.layers.%d.".formatted(f * size.layers + layer);
        for (String square : List.of("q_proj", "k_proj", "v_proj", "o_proj")) {
          file.tensor(
              name + "self_attn." + square + ".weight", ElementType.BF16, size.hidden, size.hidden);
        }
        for (String wide : List.of("gate_proj", "up_proj")) {
          file.tensor(name + "mlp." + wide + ".weight", ElementType.BF16, size.inner, size.hidden);
        }
        file.tensor(name + "mlp.down_proj.weight", ElementType.BF16, size.hidden, size.inner);
        file.tensor(name + "input_layernorm.weight", ElementType.BF16, size.hidden);
        file.tensor(name + "post_attention_layernorm.weight", ElementType.BF16, size.hidden);
      }
      all.add(file.layout(SafetensorsWriter.WORD));
    }
    return all;
  }

  /** As the reference calls it: what tensor is in which file. */
  private static byte[] index(List<Layout> layouts) {
    JsonObject map = new JsonObject();
    for (int f = 0; f < layouts.size(); f++) {
      for (TensorInfo t : layouts.get(f).tensors()) {
        map.addProperty(t.name(), name(f));
      }
    }
    JsonObject all = new JsonObject();
    all.add("metadata", new JsonObject());
    all.add("weight_map", map);
    return all.toString().getBytes(StandardCharsets.UTF_8);
  }

  private static String name(int file) {
    return "part-%05d.safetensors".formatted(file + 1);
  }

  private static void fill(MemorySegment medium, long first) {
    LongStream.range(0, Math.ceilDiv(medium.byteSize(), CHUNK))
        .parallel()
        .forEach(
            chunk -> {
              long end = Math.min(medium.byteSize(), (chunk + 1) * CHUNK);
              for (long at = chunk * CHUNK; at < end; at += Long.BYTES) {
                medium.set(LONG, at, BlockPattern.hash(first + at / Long.BYTES));
              }
            });
  }

  /** The first extent of every file, then the second of every file, and so on. */
  private void place() {
    for (int f = 0; f < layouts.size(); f++) {
      files.put(name(f), new ArrayList<>());
    }
    long at = Align.up(index.length, UNIT);
    extents(INDEX).add(new FileExtent(0, index.length, 0));
    boolean more = true;
    for (long begin = 0; more; begin += EXTENT) {
      more = false;
      for (int f = 0; f < layouts.size(); f++) {
        long n = Math.min(EXTENT, layouts.get(f).fileBytes() - begin);
        if (n > 0) {
          extents(name(f)).add(new FileExtent(begin, n, at));
          at += Align.up(n, UNIT);
          more = true;
        }
      }
    }
  }

  private List<FileExtent> extents(String file) {
    return files.computeIfAbsent(file, _ -> new ArrayList<>());
  }

  /** Where the files are in the set. */
  Map<String, List<FileExtent>> files() {
    return files;
  }

  private void writeHead(String file, byte[] head) {
    MemorySegment source = MemorySegment.ofArray(head);
    long[] done = new long[1];
    pieces(
        file,
        0,
        head.length,
        piece -> {
          piece.copyFrom(source.asSlice(done[0], piece.byteSize()));
          done[0] += piece.byteSize();
        });
  }

  /** What a piece of a file is done with, one after the other. */
  private interface Piece {
    void accept(MemorySegment bytes);
  }

  private void pieces(String file, long offset, long bytes, Piece piece) {
    for (FileExtent e : extents(file)) {
      long from = Math.max(offset, e.fileOffset());
      long end = Math.min(offset + bytes, e.end());
      while (from < end) {
        long at = e.deviceOffset() + (from - e.fileOffset());
        long n = Math.min(end - from, UNIT - at % UNIT);
        piece.accept(media.get(stripes.member(at)).asSlice(stripes.memberOffset(at), n));
        from += n;
      }
    }
  }

  /** CRC-32C of each tensor, by the CPU, past everything that is measured. */
  Map<String, Integer> checksums() {
    Map<String, Integer> all = new ConcurrentHashMap<>();
    for (int f = 0; f < layouts.size(); f++) {
      String file = name(f);
      layouts.get(f).tensors().parallelStream().forEach(t -> all.put(t.name(), checksum(file, t)));
    }
    return all;
  }

  private int checksum(String file, TensorInfo tensor) {
    CRC32C sum = new CRC32C();
    pieces(file, tensor.offset(), tensor.bytes(), piece -> sum.update(piece.asByteBuffer()));
    return (int) sum.getValue();
  }
}
