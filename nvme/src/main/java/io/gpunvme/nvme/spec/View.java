package io.gpunvme.nvme.spec;

import java.lang.foreign.MemorySegment;
import java.util.List;

/**
 * A structure at the start of a segment, which stays the caller's. Not thread-safe: fields are
 * plain memory. Setters throw {@link IllegalArgumentException} when a value does not fit its field.
 */
abstract class View implements Structure {
  final MemorySegment s;

  View(MemorySegment segment, int size) {
    if (segment.byteSize() < size) {
      throw new IllegalArgumentException(
          "%s needs %d bytes, the segment has %d"
              .formatted(getClass().getSimpleName(), size, segment.byteSize()));
    }
    s = segment.asSlice(0, size);
  }

  /** Returns the structure's bytes. */
  public final MemorySegment segment() {
    return s;
  }

  /** Returns the table of fields this view decodes, in the specification's order. */
  abstract List<Field> table();

  @Override
  public List<FieldValue> fields() {
    return table().stream().map(field -> field.decode(s)).toList();
  }

  final int int32(Field field) {
    return (int) field.number(s);
  }

  final long int64(Field field) {
    return field.number(s);
  }
}
