package io.gpunvme.nvme.spec;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.MemorySegment;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.function.Function;
import java.util.stream.Stream;

/**
 * Compares a view with a table of the specification: every field is written into pages full of
 * noise, where exactly its bytes must change, and read back from raw bytes. A field is found by the
 * constant of its name; one of a numbered row, for example {@code FRS3}, in the list of constants.
 */
final class StructureContract {
  private static final int[] NOISE = {0x00, 0xFF, 0xA5};
  private static final int[] PATTERN_STARTS = {0x11, 0x81};

  /**
   * A row of the specification's table.
   *
   * @param name the specification's abbreviation
   * @param first first byte
   * @param last last byte
   */
  record Row(String name, int first, int last) {
    int length() {
      return last - first + 1;
    }

    @Override
    public String toString() {
      return name;
    }
  }

  /** One way to write and to read a field: as {@code int}, as text and so on. */
  private record Access(
      Function<View<?>, Object> get,
      Function<Object, Function<View<?>, View<?>>> set,
      Function<byte[], Object> decode,
      List<Object> unfit) {}

  private final int size;
  private final Function<MemorySegment, ? extends View<?>> view;

  StructureContract(int size, Function<MemorySegment, ? extends View<?>> view) {
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
    Field field = field(row.name());
    for (Access access : accesses(field, row)) {
      for (int noise : NOISE) {
        for (int start : PATTERN_STARTS) {
          byte[] raw = pattern(row, field.isText(), start);
          checkSetter(row, access, noise, raw);
          checkGetter(row, access, noise, raw);
        }
      }
      checkLimits(row, access);
    }
    checkListing(field, row);
    checkOtherKinds(field);
  }

  private Field field(String name) {
    Class<?> type = view.apply(MemorySegment.ofArray(new byte[size])).getClass();
    try {
      for (java.lang.reflect.Field constant : type.getFields()) {
        if (constant.getType() == Field.class && constant.getName().equals(name)) {
          return (Field) constant.get(null);
        }
        if (constant.getType() == List.class && name.startsWith(constant.getName())) {
          String number = name.substring(constant.getName().length()).replace("_", "");
          return (Field) ((List<?>) constant.get(null)).get(Integer.parseInt(number) - 1);
        }
      }
    } catch (IllegalAccessException e) {
      throw new AssertionError(e);
    }
    throw new AssertionError("no constant " + name);
  }

  private static List<Access> accesses(Field field, Row row) {
    int bits = 8 * row.length();
    if (field.isText()) {
      return List.of(
          new Access(
              v -> v.getText(field),
              value -> v -> v.set(field, (String) value),
              raw -> new String(raw, StandardCharsets.US_ASCII),
              List.of("x".repeat(row.length() + 1))));
    }
    if (!field.isNumber()) {
      return List.of(
          new Access(
              v -> v.getBytes(field),
              value -> v -> v.set(field, (byte[]) value),
              raw -> raw,
              List.of(new byte[row.length() - 1], new byte[row.length() + 1])));
    }
    List<Access> all = new ArrayList<>();
    if (bits <= 32) {
      all.add(
          new Access(
              v -> v.getInt(field),
              value -> v -> v.set(field, (int) value),
              raw -> littleEndian(raw).intValue(),
              bits < 32 ? List.of(1 << bits, -1) : List.of()));
    }
    if (bits <= 64) {
      all.add(
          new Access(
              v -> v.getLong(field),
              value -> v -> v.set(field, (long) value),
              raw -> littleEndian(raw).longValue(),
              bits < 64 ? List.of(1L << bits, -1L) : List.of()));
    }
    all.add(
        new Access(
            v -> v.getBig(field),
            value -> v -> v.set(field, (BigInteger) value),
            StructureContract::littleEndian,
            List.of(BigInteger.ONE.shiftLeft(bits), BigInteger.ONE.negate())));
    return all;
  }

  private static byte[] pattern(Row row, boolean text, int start) {
    byte[] raw = new byte[row.length()];
    for (int i = 0; i < raw.length; i++) {
      raw[i] = (byte) (text ? 'A' + (i + start) % 50 : start + 3 * i);
    }
    return raw;
  }

  private void checkSetter(Row row, Access access, int noise, byte[] raw) {
    byte[] page = noise(noise);
    View<?> target = view.apply(MemorySegment.ofArray(page));
    View<?> returned = access.set().apply(access.decode().apply(raw)).apply(target);
    assertThat(returned).as("%s returns its view", row).isSameAs(target);
    byte[] expected = noise(noise);
    System.arraycopy(raw, 0, expected, row.first(), raw.length);
    assertThat(HexFormat.of().formatHex(page))
        .as("page after writing %s", row)
        .isEqualTo(HexFormat.of().formatHex(expected));
  }

  private void checkGetter(Row row, Access access, int noise, byte[] raw) {
    byte[] page = noise(noise);
    System.arraycopy(raw, 0, page, row.first(), raw.length);
    View<?> target = view.apply(MemorySegment.ofArray(page));
    assertThat(access.get().apply(target)).as("%s read", row).isEqualTo(access.decode().apply(raw));
  }

  private void checkLimits(Row row, Access access) {
    for (Object value : access.unfit()) {
      byte[] page = noise(0xA5);
      View<?> target = view.apply(MemorySegment.ofArray(page));
      assertThatThrownBy(() -> access.set().apply(value).apply(target))
          .as("%s = %s", row, value)
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("%d bytes", row.length());
      assertThat(page).as("%s = %s", row, value).containsExactly(noise(0xA5));
    }
  }

  private void checkListing(Field field, Row row) {
    for (int start : PATTERN_STARTS) {
      byte[] raw = pattern(row, field.isText(), start);
      byte[] page = noise(0xFF);
      System.arraycopy(raw, 0, page, row.first(), raw.length);
      Object listed =
          view.apply(MemorySegment.ofArray(page)).fields().stream()
              .filter(f -> f.name().equals(row.name()))
              .findFirst()
              .orElseThrow()
              .value();
      assertThat(listed).as("%s listed", row).isEqualTo(listedValue(field, raw));
    }
  }

  private static Object listedValue(Field field, byte[] raw) {
    if (field.isText()) {
      return new String(raw, StandardCharsets.US_ASCII);
    }
    if (!field.isNumber()) {
      return HexFormat.of().formatHex(raw);
    }
    BigInteger number = littleEndian(raw);
    return number.bitLength() < 64 ? (Object) number.longValueExact() : number;
  }

  /** A field of one kind is not read or written as another. */
  private void checkOtherKinds(Field field) {
    byte[] page = noise(0xA5);
    View<?> target = view.apply(MemorySegment.ofArray(page));
    List<Runnable> wrong = new ArrayList<>();
    if (!field.isText()) {
      wrong.add(() -> target.getText(field));
      wrong.add(() -> target.set(field, "x"));
    }
    if (!field.isNumber()) {
      wrong.add(() -> target.getLong(field));
      wrong.add(() -> target.getBig(field));
      wrong.add(() -> target.set(field, 1));
      wrong.add(() -> target.set(field, BigInteger.ONE));
    }
    if (field.length() > Integer.BYTES) {
      wrong.add(() -> target.getInt(field));
    }
    for (Runnable access : wrong) {
      assertThatThrownBy(access::run)
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining(field.name());
    }
    assertThat(page).containsExactly(noise(0xA5));
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
}
