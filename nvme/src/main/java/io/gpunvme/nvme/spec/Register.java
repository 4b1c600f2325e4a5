package io.gpunvme.nvme.spec;

import java.util.List;

/**
 * The value of a register. Each of its fields is a constant of its class; the methods here read and
 * replace any of them.
 *
 * @param <T> the register itself
 */
public sealed interface Register<T extends Register<T>> extends Structure
    permits Aqa, Cap, Cc, Cmbloc, Cmbmsc, Cmbsts, Cmbsz, Crto, Csts, Nssr, Vs {
  /** Returns the register's bits; those above its size do not matter. */
  long bits();

  /** Returns a register with other bits. */
  T withBits(long bits);

  /** Returns the fields in the order in which they are listed. */
  List<BitField> layout();

  /** The value of a field of at most 32 bits. */
  default int get(BitField field) {
    return (int) field.get(bits());
  }

  /** The value of any field. */
  default long getLong(BitField field) {
    return field.get(bits());
  }

  /** Whether any bit of the field is set. */
  default boolean isSet(BitField field) {
    return field.isSet(bits());
  }

  /**
   * Returns a copy with one field replaced.
   *
   * @throws IllegalArgumentException if {@code value} does not fit the field
   */
  default T with(BitField field, long value) {
    return withBits(field.with(bits(), value));
  }

  /** {@link #with(BitField, long)} for a field of one bit. */
  default T with(BitField field, boolean value) {
    return with(field, value ? 1 : 0);
  }

  @Override
  default List<FieldValue> fields() {
    return layout().stream().map(field -> FieldValue.of(field, bits())).toList();
  }
}
