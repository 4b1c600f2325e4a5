package io.gpunvme.models.format;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Comparator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.stream.IntStream;

/** A random model as either format, and what a reader must find in it. */
public final class RandomModel {
  private static final List<ElementType> SAFETENSORS =
      Arrays.stream(ElementType.values()).filter(ElementType::isSafetensors).toList();
  private static final List<ElementType> GGUF =
      Arrays.stream(ElementType.values()).filter(ElementType::isGguf).toList();
  private static final String[] PIECES = {
    "model", "layers", "weight", "bias", "0", "17", "é", "重み", "😀", "\"", "\\", " ", "\n", ""
  };

  public final byte[] file;
  final List<TensorInfo> tensors;

  private RandomModel(byte[] file, List<TensorInfo> tensors) {
    this.file = file;
    this.tensors = tensors;
  }

  private static Set<String> names(SplittableRandom random, int most) {
    Set<String> names = new LinkedHashSet<>();
    int count = random.nextInt(most + 1);
    for (int i = 0; i < count; i++) {
      StringBuilder name = new StringBuilder();
      for (int piece = random.nextInt(6); piece >= 0; piece--) {
        name.append(PIECES[random.nextInt(PIECES.length)]).append(piece == 0 ? "" : ".");
      }
      names.add(name.toString());
    }
    return names;
  }

  /** Whole blocks along the last dimension; sometimes none at all. */
  private static long[] shape(SplittableRandom random, ElementType type, int mostDimensions) {
    int rank = random.nextInt(type.blockElements() == 1 ? 0 : 1, mostDimensions + 1);
    long[] shape = IntStream.range(0, rank).mapToLong(i -> random.nextInt(1, 4)).toArray();
    if (rank > 0) {
      shape[rank - 1] *= type.blockElements();
      if (random.nextInt(6) == 0) {
        shape[random.nextInt(rank)] = 0;
      }
    }
    return shape;
  }

  private static String quoted(SplittableRandom random, String text) {
    StringBuilder json = new StringBuilder("\"");
    text.codePoints()
        .forEach(
            c -> {
              if (c < ' ' || c == '"' || c == '\\' || random.nextInt(8) == 0) {
                Character.toString(c)
                    .chars()
                    .forEach(half -> json.append("\\u%04x".formatted(half)));
              } else {
                json.appendCodePoint(c);
              }
            });
    return json.append('"').toString();
  }

  private static String space(SplittableRandom random) {
    return random.nextInt(8) == 0 ? " \t\r\n".substring(random.nextInt(4)) : "";
  }

  /** Tensors in any order, keys in any order, escapes and white space where they may be. */
  public static RandomModel safetensors(SplittableRandom random) {
    record Placed(String name, ElementType type, long[] shape, long begin, long end) {}
    List<Placed> placed = new ArrayList<>();
    long at = 0;
    for (String name : names(random, 12)) {
      ElementType type = SAFETENSORS.get(random.nextInt(SAFETENSORS.size()));
      long[] shape = shape(random, type, 5);
      long bytes = type.bytes(Arrays.stream(shape).reduce(1, (a, b) -> a * b));
      placed.add(new Placed(name, type, shape, at, at + bytes));
      at += bytes;
    }
    List<String> members = new ArrayList<>();
    for (Placed tensor : placed) {
      List<String> keys =
          new ArrayList<>(
              List.of(
                  "\"dtype\":%s\"%s\"".formatted(space(random), tensor.type),
                  "\"shape\":" + Arrays.toString(tensor.shape),
                  "\"data_offsets\":[%d%s,%d]".formatted(tensor.begin, space(random), tensor.end)));
      Collections.shuffle(keys, new Random(random.nextLong()));
      members.add(
          quoted(random, tensor.name) + space(random) + ":{" + String.join(",", keys) + "}");
    }
    if (random.nextBoolean()) {
      members.add("\"__metadata__\":{\"format\":" + quoted(random, "pt") + "}");
    }
    Collections.shuffle(members, new Random(random.nextLong()));
    String header = "{" + String.join("," + space(random), members) + space(random) + "}";
    byte[] file =
        SafetensorsBytes.file(
            header + " ".repeat(random.nextInt(3) * random.nextInt(20)), (int) at);
    long data = file.length - at;
    return new RandomModel(
        file,
        placed.stream()
            .map(t -> new TensorInfo(t.name, t.type, t.shape, data + t.begin, t.end - t.begin))
            .sorted(
                Comparator.comparingLong(TensorInfo::offset)
                    .thenComparingLong(TensorInfo::end)
                    .thenComparing(TensorInfo::name))
            .toList());
  }

  /** Metadata of every type, any alignment, the end padded or not. */
  public static RandomModel gguf(SplittableRandom random) {
    int alignment = 8 << random.nextInt(6);
    List<String> names = names(random, 12).stream().filter(n -> n.length() < 30).toList();
    List<String> keys = names(random, 6).stream().filter(k -> !k.isEmpty()).toList();
    boolean said = alignment != 32 || random.nextBoolean();
    GgufBytes out =
        GgufBytes.start(2 + random.nextInt(2), names.size(), keys.size() + (said ? 1 : 0));
    for (String key : keys) {
      int type = random.nextInt(13);
      value(random, out.key(key, type), type, 0);
    }
    if (said) {
      out.u32("general.alignment", alignment);
    }
    List<TensorInfo> relative = new ArrayList<>();
    long at = 0;
    for (String name : names) {
      ElementType type = GGUF.get(random.nextInt(GGUF.size()));
      long[] shape = shape(random, type, 4);
      long bytes = type.bytes(Arrays.stream(shape).reduce(1, (a, b) -> a * b));
      long[] reversed = new long[shape.length];
      for (int i = 0; i < shape.length; i++) {
        reversed[shape.length - 1 - i] = shape[i];
      }
      out.tensor(name, type.ggufId(), at, reversed);
      relative.add(new TensorInfo(name, type, shape, at, bytes));
      at += bytes;
      at = Math.ceilDiv(at, alignment) * alignment;
    }
    if (!names.isEmpty()) {
      out.pad(alignment);
    }
    long data = out.size();
    long end = relative.isEmpty() ? 0 : relative.getLast().end();
    out.zeros((int) (random.nextBoolean() ? at : end));
    return new RandomModel(
        out.bytes(),
        relative.stream()
            .map(t -> new TensorInfo(t.name(), t.type(), t.shape(), data + t.offset(), t.bytes()))
            .toList());
  }

  private static void value(SplittableRandom random, GgufBytes out, int type, int depth) {
    switch (type) {
      case GgufBytes.U8, GgufBytes.I8 -> out.u8(random.nextInt(256));
      case GgufBytes.BOOL -> out.u8(random.nextInt(2));
      case GgufBytes.U16, GgufBytes.I16 -> out.i16(random.nextInt());
      case GgufBytes.U32, GgufBytes.I32, GgufBytes.F32 -> out.i32(random.nextInt());
      case GgufBytes.STRING -> out.text(PIECES[random.nextInt(PIECES.length)]);
      case GgufBytes.ARRAY -> {
        int items = random.nextInt(depth < 3 ? 13 : 8);
        int count = random.nextInt(4);
        out.i32(items).i64(count);
        for (int i = 0; i < count; i++) {
          value(random, out, items, depth + 1);
        }
      }
      default -> out.i64(random.nextLong());
    }
  }
}
