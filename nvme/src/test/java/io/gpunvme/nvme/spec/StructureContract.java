package io.gpunvme.nvme.spec;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.MemorySegment;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import java.util.function.Function;
import java.util.stream.Stream;

/**
 * Compares a view with a table of the specification: every field is written through its setter into
 * pages full of noise, where exactly its bytes must change, and read back from raw bytes.
 */
final class StructureContract {
  private static final int[] NOISE = {0x00, 0xFF, 0xA5};
  private static final int[] PATTERN_STARTS = {0x11, 0x81};

  /**
   * A row of the specification's table.
   *
   * @param accessor name of getter and setter
   * @param first first byte
   * @param last last byte
   */
  record Row(String name, String accessor, int first, int last) {
    static Row of(String name, int first, int last) {
      return new Row(name, name.toLowerCase(Locale.ROOT), first, last);
    }

    int length() {
      return last - first + 1;
    }

    @Override
    public String toString() {
      return name;
    }
  }

  private final int size;
  private final Function<MemorySegment, ? extends View> view;

  StructureContract(int size, Function<MemorySegment, ? extends View> view) {
    this.size = size;
    this.view = view;
  }

  void checkSize() {
    assertThatThrownBy(() -> view.apply(MemorySegment.ofArray(new byte[size - 1])))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining(size + " bytes")
        .hasMessageContaining(Integer.toString(size - 1));
    byte[] larger = new byte[size + 8];
    MemorySegment segment = view.apply(MemorySegment.ofArray(larger)).segment();
    assertThat(segment.byteSize()).isEqualTo(size);
    segment.fill((byte) 1);
    assertThat(larger).endsWith(new byte[] {1, 0, 0, 0, 0, 0, 0, 0, 0});
  }

  void checkOrder(Stream<Row> rows) {
    List<String> listed =
        view.apply(MemorySegment.ofArray(new byte[size])).table().stream()
            .map(f -> "%s %d:%d".formatted(f.name(), f.offset(), f.offset() + f.length() - 1))
            .toList();
    assertThat(listed)
        .containsExactlyElementsOf(
            rows.map(r -> "%s %d:%d".formatted(r.name(), r.first(), r.last())).toList());
  }

  void checkRow(Row row) {
    for (int noise : NOISE) {
      for (int start : PATTERN_STARTS) {
        byte[] raw = pattern(row, start);
        checkSetter(row, noise, raw);
        checkGetter(row, noise, raw);
      }
    }
    checkLimits(row);
  }

  private byte[] pattern(Row row, int start) {
    byte[] raw = new byte[row.length()];
    boolean text = type(row) == String.class;
    for (int i = 0; i < raw.length; i++) {
      raw[i] = (byte) (text ? 'A' + (i + start) % 50 : start + 3 * i);
    }
    return raw;
  }

  private void checkSetter(Row row, int noise, byte[] raw) {
    byte[] page = noise(noise);
    View target = view.apply(MemorySegment.ofArray(page));
    Object returned = invoke(setter(row), target, decode(row, raw));
    assertThat(returned).as("%s returns its view", row).isSameAs(target);
    byte[] expected = noise(noise);
    System.arraycopy(raw, 0, expected, row.first(), raw.length);
    assertThat(HexFormat.of().formatHex(page))
        .as("page after writing %s", row)
        .isEqualTo(HexFormat.of().formatHex(expected));
  }

  private void checkGetter(Row row, int noise, byte[] raw) {
    byte[] page = noise(noise);
    System.arraycopy(raw, 0, page, row.first(), raw.length);
    View target = view.apply(MemorySegment.ofArray(page));
    assertThat(invoke(getter(row), target)).as("%s read", row).isEqualTo(decode(row, raw));
    assertThat(listed(target, row)).as("%s listed", row).isEqualTo(listedValue(row, raw));
  }

  private Object listed(View target, Row row) {
    return target.fields().stream()
        .filter(f -> f.name().equals(row.name()))
        .findFirst()
        .orElseThrow()
        .value();
  }

  private Object listedValue(Row row, byte[] raw) {
    if (type(row) == byte[].class) {
      return HexFormat.of().formatHex(raw);
    }
    if (type(row) == String.class) {
      return decode(row, raw);
    }
    BigInteger number = littleEndian(raw);
    return number.bitLength() < 64 ? (Object) number.longValueExact() : number;
  }

  private void checkLimits(Row row) {
    for (Object value : unfit(row)) {
      byte[] page = noise(0xA5);
      View target = view.apply(MemorySegment.ofArray(page));
      assertThatThrownBy(() -> invoke(setter(row), target, value))
          .as("%s = %s", row, value)
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("%d bytes", row.length());
      assertThat(page).as("%s = %s", row, value).containsExactly(noise(0xA5));
    }
  }

  private List<Object> unfit(Row row) {
    Class<?> type = type(row);
    int bits = row.length() * 8;
    if (type == int.class && bits < 32) {
      return List.of(1 << bits, -1);
    }
    if (type == long.class && bits < 64) {
      return List.of(1L << bits, -1L);
    }
    if (type == BigInteger.class) {
      return List.of(BigInteger.ONE.shiftLeft(bits), BigInteger.ONE.negate());
    }
    if (type == String.class) {
      return List.of("x".repeat(row.length() + 1));
    }
    if (type == byte[].class) {
      return List.of(new byte[row.length() - 1], new byte[row.length() + 1]);
    }
    return List.of();
  }

  private Object decode(Row row, byte[] raw) {
    Class<?> type = type(row);
    if (type == int.class) {
      return littleEndian(raw).intValue();
    }
    if (type == long.class) {
      return littleEndian(raw).longValue();
    }
    if (type == BigInteger.class) {
      return littleEndian(raw);
    }
    return type == String.class ? new String(raw, StandardCharsets.US_ASCII) : raw;
  }

  private static BigInteger littleEndian(byte[] raw) {
    byte[] big = new byte[raw.length];
    for (int i = 0; i < raw.length; i++) {
      big[raw.length - 1 - i] = raw[i];
    }
    return new BigInteger(1, big);
  }

  private byte[] noise(int value) {
    byte[] page = new byte[size];
    Arrays.fill(page, (byte) value);
    return page;
  }

  private Class<?> type(Row row) {
    return getter(row).getReturnType();
  }

  private Method getter(Row row) {
    return method(row.accessor());
  }

  private Method setter(Row row) {
    return method(row.accessor(), type(row));
  }

  private Method method(String name, Class<?>... parameters) {
    Class<?> type = view.apply(MemorySegment.ofArray(new byte[size])).getClass();
    try {
      return type.getMethod(name, parameters);
    } catch (NoSuchMethodException e) {
      throw new AssertionError(e);
    }
  }

  private static Object invoke(Method method, Object target, Object... arguments) {
    try {
      return method.invoke(target, arguments);
    } catch (InvocationTargetException e) {
      if (e.getCause() instanceof RuntimeException cause) {
        throw cause;
      }
      throw new AssertionError(e);
    } catch (IllegalAccessException e) {
      throw new AssertionError(e);
    }
  }
}
