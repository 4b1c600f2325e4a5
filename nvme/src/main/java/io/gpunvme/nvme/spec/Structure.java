package io.gpunvme.nvme.spec;

import java.util.List;

/** A register or data structure that can list itself field by field, for printing. */
public interface Structure {
  /**
   * Returns the fields in the order of the specification's table; a snapshot, reserved fields left
   * out.
   */
  List<FieldValue> fields();
}
