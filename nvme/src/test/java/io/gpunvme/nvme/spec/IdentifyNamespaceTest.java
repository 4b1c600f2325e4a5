package io.gpunvme.nvme.spec;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.nvme.spec.StructureContract.Row;
import java.lang.foreign.MemorySegment;
import java.math.BigInteger;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;

/** NVM 1.0, 4.1.5.1: the Identify Namespace data structure. */
class IdentifyNamespaceTest {
  private static final StructureContract CONTRACT =
      new StructureContract(4096, IdentifyNamespace::new);

  private final byte[] page = new byte[4096];
  private final IdentifyNamespace id = new IdentifyNamespace(MemorySegment.ofArray(page));

  static Stream<Row> rows() {
    return Stream.of(
        new Row("NSZE", 0, 7),
        new Row("NCAP", 8, 15),
        new Row("NUSE", 16, 23),
        new Row("NSFEAT", 24, 24),
        new Row("NLBAF", 25, 25),
        new Row("FLBAS", 26, 26),
        new Row("MC", 27, 27),
        new Row("DPC", 28, 28),
        new Row("DPS", 29, 29),
        new Row("NMIC", 30, 30),
        new Row("RESCAP", 31, 31),
        new Row("FPI", 32, 32),
        new Row("DLFEAT", 33, 33),
        new Row("NAWUN", 34, 35),
        new Row("NAWUPF", 36, 37),
        new Row("NACWU", 38, 39),
        new Row("NABSN", 40, 41),
        new Row("NABO", 42, 43),
        new Row("NABSPF", 44, 45),
        new Row("NOIOB", 46, 47),
        new Row("NVMCAP", 48, 63),
        new Row("NPWG", 64, 65),
        new Row("NPWA", 66, 67),
        new Row("NPDG", 68, 69),
        new Row("NPDA", 70, 71),
        new Row("NOWS", 72, 73),
        new Row("MSSRL", 74, 75),
        new Row("MCL", 76, 79),
        new Row("MSRC", 80, 80),
        new Row("NULBAF", 82, 82),
        new Row("ANAGRPID", 92, 95),
        new Row("NSATTR", 99, 99),
        new Row("NVMSETID", 100, 101),
        new Row("ENDGID", 102, 103),
        new Row("NGUID", 104, 119),
        new Row("EUI64", 120, 127));
  }

  static Stream<Row> littleEndianRows() {
    return rows().filter(row -> !row.name().equals("EUI64"));
  }

  @ParameterizedTest
  @MethodSource("littleEndianRows")
  void everyFieldLiesWhereTheSpecificationPutsIt(Row row) {
    CONTRACT.checkRow(row);
  }

  @Test
  void eui64IsBigEndian() {
    Arrays.fill(page, (byte) 0xA5);
    assertThat(id.eui64(0x81_02_03_04_05_06_07_98L)).isSameAs(id);
    byte[] expected = new byte[4096];
    Arrays.fill(expected, (byte) 0xA5);
    System.arraycopy(new byte[] {-127, 2, 3, 4, 5, 6, 7, -104}, 0, expected, 120, 8);
    assertThat(page).containsExactly(expected);
    assertThat(id.eui64()).isEqualTo(0x81_02_03_04_05_06_07_98L);
    assertThat(value("EUI64")).isEqualTo("8102030405060798");
  }

  @Test
  void listsTheFieldsInOrderThenTheFormats() {
    CONTRACT.checkOrder(rows());
    id.set(IdentifyNamespace.NLBAF, 1).set(IdentifyNamespace.FLBAS, 1);
    id.lbaf(0, new LbaFormat(0, 9, 2)).lbaf(1, new LbaFormat(8, 12, 0));
    List<FieldValue> fields = id.fields();
    assertThat(fields).hasSize(38);
    assertThat(fields.get(35).name()).isEqualTo("EUI64");
    assertThat(fields.get(36))
        .isEqualTo(
            new FieldValue("LBAF0", "MS 0 LBADS 9 RP 2", "MS 0 LBADS 9 RP 2", "LBA Format 0"));
    assertThat(fields.get(37).name()).isEqualTo("LBAF1");
    assertThat(fields.get(37).text()).isEqualTo("MS 8 LBADS 12 RP 0 (in use)");
  }

  @Test
  void impossibleFormatCountsListNoMoreThanThereAre() {
    id.set(IdentifyNamespace.NLBAF, 255)
        .set(IdentifyNamespace.NULBAF, 255)
        .set(IdentifyNamespace.FLBAS, 0xFF);
    assertThat(id.fields()).hasSize(36 + 64);
    assertThat(id.formatIndex()).isEqualTo(63);
    assertThat(id.format()).isEqualTo(new LbaFormat(0, 0, 0));
  }

  @Test
  void needs4096Bytes() {
    CONTRACT.checkSize();
  }

  @Test
  void lowHalfOfTheCapacityLeavesTheHighHalf() {
    id.set(IdentifyNamespace.NVMCAP, new BigInteger("0123456789abcdeffedcba9876543210", 16));
    assertThat(id.getLong(IdentifyNamespace.NVMCAP)).isEqualTo(0xfedcba9876543210L);
    assertThat(id.set(IdentifyNamespace.NVMCAP, 7)).isSameAs(id);
    assertThat(id.getBig(IdentifyNamespace.NVMCAP))
        .isEqualTo(new BigInteger("0123456789abcdef0000000000000007", 16));
  }

  @ParameterizedTest
  @CsvSource({"0, 128", "1, 132", "15, 188", "16, 192", "63, 380"})
  void lbaFormatsStartAtByte128(int index, int offset) {
    LbaFormat format = new LbaFormat(0x8142, 12, 2);
    assertThat(id.lbaf(index, format)).isSameAs(id);
    byte[] expected = new byte[4096];
    System.arraycopy(new byte[] {0x42, (byte) 0x81, 12, 2}, 0, expected, offset, 4);
    assertThat(page).containsExactly(expected);
    assertThat(id.lbaf(index)).isEqualTo(format);
  }

  @Test
  void thereAre64Formats() {
    assertThatThrownBy(() -> id.lbaf(64)).isInstanceOf(IndexOutOfBoundsException.class);
    assertThatThrownBy(() -> id.lbaf(-1)).isInstanceOf(IndexOutOfBoundsException.class);
    assertThat(IdentifyNamespace.LBA_FORMATS).isEqualTo(64);
    assertThat(IdentifyNamespace.SIZE).isEqualTo(4096);
  }

  @Test
  void reservedBitsOfAFormatAreIgnored() {
    assertThat(LbaFormat.of(0xFF_FF_FF_FF)).isEqualTo(new LbaFormat(0xFFFF, 0xFF, 3));
    assertThat(LbaFormat.of(0xFC_00_00_00)).isEqualTo(new LbaFormat(0, 0, 0));
    assertThat(new LbaFormat(0xFFFF, 0xFF, 3).dword()).isEqualTo(0x03_FF_FF_FF);
    assertThatThrownBy(() -> new LbaFormat(0x10000, 9, 0).dword()).hasMessageContaining("MS");
    assertThatThrownBy(() -> new LbaFormat(0, 256, 0).dword()).hasMessageContaining("LBADS");
    assertThatThrownBy(() -> new LbaFormat(0, 9, 4).dword()).hasMessageContaining("RP");
  }

  @ParameterizedTest
  @CsvSource({
    "0, 0, 0x00, 0",
    "15, 0, 0x0F, 15",
    "15, 0, 0x10, 0",
    "15, 0, 0x6F, 15",
    "16, 0, 0x20, 16",
    "15, 1, 0x20, 16",
    "14, 1, 0x20, 0",
    "63, 0, 0x40, 32",
    "63, 0, 0x7F, 63",
    "63, 0, 0x9F, 15",
  })
  void formatInUse(int nlbaf, int nulbaf, String flbas, int index) {
    id.set(IdentifyNamespace.NLBAF, nlbaf)
        .set(IdentifyNamespace.NULBAF, nulbaf)
        .set(IdentifyNamespace.FLBAS, Integer.decode(flbas));
    id.lbaf(index, new LbaFormat(1, 12, 3));
    assertThat(id.formatIndex()).isEqualTo(index);
    assertThat(id.format()).isEqualTo(new LbaFormat(1, 12, 3));
  }

  @Test
  void featureBits() {
    assertThat(IdentifyNamespace.NSFEAT_THIN).isEqualTo(1);
    assertThat(IdentifyNamespace.NSFEAT_ATOMIC).isEqualTo(2);
    assertThat(IdentifyNamespace.NSFEAT_DULBE).isEqualTo(4);
    assertThat(IdentifyNamespace.NSFEAT_OPTIMAL_IO).isEqualTo(16);
    assertThat(IdentifyNamespace.FLBAS_METADATA_EXTENDED).isEqualTo(16);
  }

  private Object value(String field) {
    return id.fields().stream()
        .filter(f -> f.name().equals(field))
        .findFirst()
        .orElseThrow()
        .value();
  }
}
