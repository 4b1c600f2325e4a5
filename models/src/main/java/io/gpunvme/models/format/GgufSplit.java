package io.gpunvme.models.format;

import io.gpunvme.models.format.FormatException.Kind;
import java.util.List;
import java.util.OptionalLong;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.IntStream;

/**
 * A GGUF model split into several files, {@code name-00001-of-00009.gguf} and so on, each a GGUF
 * file with tensors of its own. Source: {@code gguf-split} and {@code llama-model-loader.cpp} of
 * llama.cpp.
 */
final class GgufSplit {
  private static final Pattern NAME =
      Pattern.compile("(.*)-(\\d{5})-of-(\\d{5})\\.gguf", Pattern.DOTALL);

  /** Counts from 0. */
  private static final String NUMBER = "split.no";

  private static final String COUNT = "split.count";
  private static final String TENSORS = "split.tensors.count";

  private GgufSplit() {}

  /**
   * Names of all files of the model that one belongs to, in order; only this one if it has no such
   * name.
   */
  static List<String> names(String name) {
    Matcher matcher = NAME.matcher(name);
    if (!matcher.matches()) {
      return List.of(name);
    }
    int number = Integer.parseInt(matcher.group(2));
    int count = Integer.parseInt(matcher.group(3));
    if (number < 1 || number > count) {
      throw FormatException.of(
          Kind.CORRUPT, name, "its name says part %d of %d".formatted(number, count));
    }
    return IntStream.rangeClosed(1, count)
        .mapToObj(
            "%s-%%05d-of-%05d.gguf".formatted(matcher.group(1).replace("%", "%%"), count)
                ::formatted)
        .toList();
  }

  /**
   * Checks that files are the parts of one model.
   *
   * @throws FormatException if they are not
   */
  static void check(List<ModelHeader> parts) {
    if (parts.size() == 1) {
      checkWhole(parts.getFirst());
      return;
    }
    for (int i = 0; i < parts.size(); i++) {
      expect(parts.get(i), NUMBER, i);
      expect(parts.get(i), COUNT, parts.size());
    }
    long tensors = parts.stream().mapToLong(part -> part.tensors().size()).sum();
    expect(parts.getFirst(), TENSORS, tensors);
  }

  /** A part that lost its name, or is alone on purpose. */
  private static void checkWhole(ModelHeader part) {
    OptionalLong count = part.whole(COUNT);
    if (count.isPresent() && count.getAsLong() > 1) {
      throw FormatException.of(
          Kind.MISSING,
          part.file(),
          "it is part %d of %d; rename all parts to NAME-00001-of-%05d.gguf and so on, in one folder"
              .formatted(part.whole(NUMBER).orElse(0) + 1, count.getAsLong(), count.getAsLong()));
    }
  }

  private static void expect(ModelHeader part, String key, long wanted) {
    OptionalLong value = part.whole(key);
    if (value.isEmpty() || value.getAsLong() != wanted) {
      throw FormatException.of(
          Kind.CORRUPT,
          part.file(),
          "%s is %s, but the other files make it %d; are these parts of one model?"
              .formatted(
                  key, value.isPresent() ? Long.toString(value.getAsLong()) : "missing", wanted));
    }
  }
}
