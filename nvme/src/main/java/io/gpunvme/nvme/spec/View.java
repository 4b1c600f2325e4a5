package io.gpunvme.nvme.spec;

import java.lang.foreign.MemorySegment;
import java.math.BigInteger;
import java.util.List;

/**
 * A structure at the start of a segment, which stays the caller's. Each of its fields is a constant
 * of its class; the methods here read and write any of them. Not thread-safe: fields are plain
 * memory.
 *
 * <p>Getters throw {@link IllegalArgumentException} for a field of another kind, setters also for a
 * value that does not fit.
 *
 * @param <T> the structure itself, which setters return
 */
public abstract sealed class View<T extends View<T>> implements Structure
    permits IdentifyController,
        IdentifyNamespace,
        SmartLog,
        ErrorLogEntry,
        PowerStateDescriptor,
        FirmwareSlotLog {
  final MemorySegment s;
  private final FieldTable table;

  View(MemorySegment segment, int size, FieldTable table) {
    this.s = Wire.first(segment, size, getClass().getSimpleName());
    this.table = table;
  }

  /** Returns the structure's bytes. */
  public final MemorySegment segment() {
    return s;
  }

  /** Returns the fields in the order of their declaration. */
  final List<Field> table() {
    return table.fields();
  }

  @Override
  public List<FieldValue> fields() {
    return table().stream().map(field -> FieldValue.of(field, s)).toList();
  }

  /** The number in a field of at most 4 bytes; with 4 bytes the top bit is the sign. */
  public final int getInt(Field field) {
    return (int) field.number(s, Integer.BYTES);
  }

  /**
   * The number in a field, its low 64 bits if it is longer; with 8 bytes the top bit is the sign.
   */
  public final long getLong(Field field) {
    return field.number(s, Integer.MAX_VALUE);
  }

  /** The unsigned number in a field of any length. */
  public final BigInteger getBig(Field field) {
    return field.big(s);
  }

  /**
   * The text up to the first zero byte without the padding. What is not printable ASCII reads as
   * {@code ?}: a device must not reach the user's terminal with control codes.
   */
  public final String getText(Field field) {
    return field.text(s);
  }

  /** A copy of the field's bytes. */
  public final byte[] getBytes(Field field) {
    return field.bytes(s);
  }

  /** Writes an unsigned number of 32 bits; bytes above the eighth stay as they are. */
  public final T set(Field field, int value) {
    return set(field, Integer.toUnsignedLong(value));
  }

  /** Writes an unsigned number of 64 bits; bytes above the eighth stay as they are. */
  public final T set(Field field, long value) {
    field.number(s, value);
    return self();
  }

  /** Writes an unsigned number. */
  public final T set(Field field, BigInteger value) {
    field.big(s, value);
    return self();
  }

  /** Writes printable ASCII, padded as the specification says. */
  public final T set(Field field, String value) {
    field.text(s, value);
    return self();
  }

  /** Writes as many bytes as the field has. */
  public final T set(Field field, byte[] value) {
    field.bytes(s, value);
    return self();
  }

  @SuppressWarnings("unchecked") // each subclass names itself
  private T self() {
    return (T) this;
  }
}
