package io.gpunvme.nvme.spec;

import java.util.ArrayList;
import java.util.List;

/**
 * Collects the fields of a structure while they are declared, so that each is written down once.
 */
final class FieldTable {
  private final List<Field> fields = new ArrayList<>();

  Field number(String name, int offset, int length, String meaning) {
    return add(new Field(name, offset, length, Field.Kind.NUMBER, meaning));
  }

  Field flags(String name, int offset, int length, String meaning) {
    return add(new Field(name, offset, length, Field.Kind.FLAGS, meaning));
  }

  Field text(String name, int offset, int length, String meaning) {
    return add(new Field(name, offset, length, Field.Kind.TEXT, meaning));
  }

  Field zeroPaddedText(String name, int offset, int length, String meaning) {
    return add(new Field(name, offset, length, Field.Kind.ZERO_PADDED_TEXT, meaning));
  }

  Field bytes(String name, int offset, int length, String meaning) {
    return add(new Field(name, offset, length, Field.Kind.BYTES, meaning));
  }

  private Field add(Field field) {
    fields.add(field);
    return field;
  }

  List<Field> fields() {
    return List.copyOf(fields);
  }
}
