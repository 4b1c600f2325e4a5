package io.gpunvme.models.format;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;

/** A value of a file's metadata. {@code toString} is its text for users. */
public sealed interface MetaValue {
  /** The type. */
  ValueType type();

  /** Text. What was not UTF-8 in a GGUF file has become U+FFFD. */
  record Text(String value) implements MetaValue {
    @Override
    public ValueType type() {
      return ValueType.STRING;
    }

    @Override
    public String toString() {
      return value;
    }
  }

  /**
   * A whole number.
   *
   * @param value for {@link ValueType#U64} the bits of an unsigned one
   */
  record Whole(ValueType type, long value) implements MetaValue {
    /** Whether it is above {@link Long#MAX_VALUE}. */
    public boolean isHuge() {
      return type == ValueType.U64 && value < 0;
    }

    @Override
    public String toString() {
      return type == ValueType.U64 ? Long.toUnsignedString(value) : Long.toString(value);
    }
  }

  /** A floating-point number; a single one as a double. */
  record Real(ValueType type, double value) implements MetaValue {
    @Override
    public String toString() {
      return type == ValueType.F32 ? Float.toString((float) value) : Double.toString(value);
    }
  }

  /** True or false. */
  record Flag(boolean value) implements MetaValue {
    @Override
    public ValueType type() {
      return ValueType.BOOL;
    }

    @Override
    public String toString() {
      return Boolean.toString(value);
    }
  }

  /**
   * Values of one type, which are read from the file only on request: a tokenizer has hundreds of
   * thousands of them. The file must still be open then.
   */
  non-sealed interface Items extends MetaValue {
    /** The type of each. */
    ValueType elementType();

    /** How many. */
    long count();

    /**
     * Reads them in order.
     *
     * @throws FormatException if they are not valid
     * @throws io.gpunvme.storage.path.StorageException if reading fails
     */
    default void forEach(Consumer<MetaValue> to) {
      forFirst(count(), to);
    }

    /** Reads the first ones in order, {@code most} or all. */
    void forFirst(long most, Consumer<MetaValue> to);

    /** The first ones, {@code most} or all. */
    default List<MetaValue> first(int most) {
      List<MetaValue> items = new ArrayList<>();
      forFirst(most, items::add);
      return items;
    }

    @Override
    default ValueType type() {
      return ValueType.ARRAY;
    }
  }
}
