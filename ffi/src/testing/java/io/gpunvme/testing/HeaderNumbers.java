package io.gpunvme.testing;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.reflect.Field;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.junit.jupiter.api.Assumptions;

/**
 * Numbers of ours that must be those of a header: a program prints what the compiler takes them
 * for.
 */
public final class HeaderNumbers {
  private static final String ABSENT = "absent";

  private final NativeCompiler compiler;
  private final String includes;
  private final Map<String, Long> ours = new LinkedHashMap<>();

  /**
   * @param includes what the program begins with; it may use {@code stddef.h} and {@code stdio.h}
   */
  public HeaderNumbers(NativeCompiler compiler, String includes) {
    this.compiler = compiler;
    this.includes = includes;
  }

  /** What an expression of C should be. */
  public void value(String expression, long our) {
    Long before = ours.put(expression, our);
    assertThat(before).as("%s, said twice", expression).isNull();
  }

  /** How many bytes a type has. */
  public void size(String type, long our) {
    value("sizeof(" + type + ")", our);
  }

  /** Where a field is in a structure. */
  public void field(String type, String field, long our) {
    value("offsetof(" + type + ", " + field + ")", our);
  }

  /**
   * All {@code long} constants of a class: SIZE is how many bytes the structure has, and every
   * other the offset of the field whose name it has in upper case.
   *
   * @param names fields with another name than their constants, by the latter in lower case
   */
  public void structure(Class<?> layout, String type, Map<String, String> names) {
    try {
      for (Field constant : layout.getDeclaredFields()) {
        if (constant.getType() == long.class) {
          constant.setAccessible(true);
          String name = constant.getName().toLowerCase(Locale.ROOT);
          if (name.equals("size")) {
            size(type, constant.getLong(null));
          } else {
            field(type, names.getOrDefault(name, name), constant.getLong(null));
          }
        }
      }
    } catch (IllegalAccessException e) {
      throw new AssertionError(e);
    }
  }

  /** How many numbers there are. */
  public int count() {
    return ours.size();
  }

  /** Compiles and runs the program, and compares. */
  public void compare(String... options) {
    compareWhere("1", "", options);
  }

  /**
   * The same, but the test is skipped where the header is another than ours.
   *
   * @param condition of the preprocessor: the header has what is ours
   * @param otherwise why not, in words
   */
  public void compareWhere(String condition, String otherwise, String... options) {
    String printed = compiler.run(program(condition), options);
    if (printed.strip().equals(ABSENT)) {
      Assumptions.abort(otherwise);
    }
    List<Long> values = printed.lines().map(Long::valueOf).toList();
    assertThat(values).isNotEmpty().hasSameSizeAs(ours.entrySet());
    Map<String, Long> theirs = new LinkedHashMap<>();
    ours.keySet().forEach(expression -> theirs.put(expression, values.get(theirs.size())));
    assertThat(ours).containsExactlyEntriesOf(theirs);
  }

  private String program(String condition) {
    StringBuilder prints = new StringBuilder();
    for (String expression : ours.keySet()) {
      prints.append("  printf(\"%lld\\n\", (long long)(").append(expression).append("));\n");
    }
    return """
    #include <stddef.h>
    #include <stdio.h>
    %s
    int main(void) {
    #if %s
    %s
    #else
      puts("%s");
    #endif
      return 0;
    }
    """
        .formatted(includes, condition, prints, ABSENT);
  }
}
