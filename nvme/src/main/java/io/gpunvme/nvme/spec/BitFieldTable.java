package io.gpunvme.nvme.spec;

import java.util.ArrayList;
import java.util.List;

/** Collects the fields of a register while they are declared, so that each is written down once. */
final class BitFieldTable {
  private final List<BitField> fields = new ArrayList<>();

  BitField field(String name, int shift, int width, String meaning) {
    BitField field = new BitField(name, shift, width, meaning);
    fields.add(field);
    return field;
  }

  List<BitField> fields() {
    return List.copyOf(fields);
  }
}
