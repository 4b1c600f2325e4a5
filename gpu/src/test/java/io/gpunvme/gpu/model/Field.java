package io.gpunvme.gpu.model;

/** One small number in a state; made by {@link Layout}. */
final class Field {
  private final String name;
  private final int word;
  private final int shift;
  private final int max;
  private final long mask;
  private final String[] names;

  Field(String name, int word, int shift, int bits, int max, String[] names) {
    this.name = name;
    this.word = word;
    this.shift = shift;
    this.max = max;
    this.mask = (1L << bits) - 1;
    this.names = names;
  }

  int get(long[] state) {
    return (int) (state[word] >>> shift & mask);
  }

  void set(long[] state, int value) {
    if (value < 0 || value > max) {
      throw new IllegalStateException("the model gives " + name + " the value " + value);
    }
    state[word] = state[word] & ~(mask << shift) | (long) value << shift;
  }

  void add(long[] state, int change) {
    set(state, get(state) + change);
  }

  /** Adds to a number that wraps: all values of the field's range follow each other in a ring. */
  void advance(long[] state, int change) {
    set(state, Math.floorMod(get(state) + change, max + 1));
  }

  String name() {
    return name;
  }

  String show(long[] state) {
    int value = get(state);
    return names.length == 0 ? Integer.toString(value) : names[value];
  }
}
