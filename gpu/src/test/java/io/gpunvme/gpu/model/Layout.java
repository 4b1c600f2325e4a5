package io.gpunvme.gpu.model;

import java.util.ArrayList;
import java.util.List;
import java.util.StringJoiner;

/** Packs the numbers of a state into as few words as they need; no field crosses a word. */
final class Layout {
  private static final String[] NO_NAMES = {};

  private final List<Field> fields = new ArrayList<>();
  private int word;
  private int bit;

  /** A number from 0 to {@code max}. */
  Field field(String name, int max) {
    return field(name, max, NO_NAMES);
  }

  /** One of the constants, by its ordinal number. */
  Field field(String name, Enum<?>[] constants) {
    String[] names = new String[constants.length];
    for (int i = 0; i < names.length; i++) {
      names[i] = constants[i].name();
    }
    return field(name, names.length - 1, names);
  }

  Field[] fields(String name, int count, int max) {
    Field[] made = new Field[count];
    for (int i = 0; i < count; i++) {
      made[i] = field(name + "[" + i + "]", max);
    }
    return made;
  }

  Field[] fields(String name, int count, Enum<?>[] constants) {
    Field[] made = new Field[count];
    for (int i = 0; i < count; i++) {
      made[i] = field(name + "[" + i + "]", constants);
    }
    return made;
  }

  int words() {
    return word + 1;
  }

  /** The fields that differ, as {@code name old>new}. */
  String difference(long[] from, long[] to) {
    StringJoiner text = new StringJoiner(", ");
    for (Field f : fields) {
      if (f.get(from) != f.get(to)) {
        text.add(f.name() + " " + f.show(from) + ">" + f.show(to));
      }
    }
    return text.toString();
  }

  private Field field(String name, int max, String[] names) {
    int bits = Math.max(1, 32 - Integer.numberOfLeadingZeros(max));
    if (bit + bits > 64) {
      word++;
      bit = 0;
    }
    Field made = new Field(name, word, bit, bits, max, names);
    bit += bits;
    fields.add(made);
    return made;
  }
}
