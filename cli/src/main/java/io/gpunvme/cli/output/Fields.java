package io.gpunvme.cli.output;

import io.gpunvme.nvme.spec.FieldValue;
import io.gpunvme.nvme.spec.Structure;
import java.io.PrintStream;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** The fields of the specification's registers and structures, as a table or for JSON. */
public final class Fields {
  private static final int INDENT = 2;

  private Fields() {}

  /** Prints a heading and a line a field: name, value, meaning. */
  public static void print(PrintStream out, String heading, Structure structure) {
    print(out, heading, structure.fields());
  }

  /** As above, from decoded fields. */
  public static void print(PrintStream out, String heading, List<FieldValue> fields) {
    out.println(heading);
    Table table = new Table(INDENT);
    for (FieldValue field : fields) {
      table.row(field.name(), field.text(), field.meaning());
    }
    table.print(out);
  }

  /** Each field by name, with its value, its value as text, and its meaning. */
  public static Map<String, Object> json(Structure structure) {
    return json(structure.fields());
  }

  /** As above, from decoded fields. */
  public static Map<String, Object> json(List<FieldValue> fields) {
    Map<String, Object> all = new LinkedHashMap<>();
    for (FieldValue field : fields) {
      Map<String, Object> one = new LinkedHashMap<>();
      one.put("value", field.value());
      one.put("text", field.text());
      one.put("meaning", field.meaning());
      all.put(field.name(), one);
    }
    return all;
  }
}
