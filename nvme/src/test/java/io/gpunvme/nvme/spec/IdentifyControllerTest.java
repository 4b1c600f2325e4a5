package io.gpunvme.nvme.spec;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.nvme.spec.StructureContract.Row;
import java.lang.foreign.MemorySegment;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;

/** Base 2.0, 5.17.2.1: the Identify Controller data structure. */
class IdentifyControllerTest {
  private static final StructureContract CONTRACT =
      new StructureContract(4096, IdentifyController::new);

  private final byte[] page = new byte[4096];
  private final IdentifyController id = new IdentifyController(MemorySegment.ofArray(page));

  static Stream<Row> rows() {
    return Stream.of(
        new Row("VID", 0, 1),
        new Row("SSVID", 2, 3),
        new Row("SN", 4, 23),
        new Row("MN", 24, 63),
        new Row("FR", 64, 71),
        new Row("RAB", 72, 72),
        new Row("IEEE", 73, 75),
        new Row("CMIC", 76, 76),
        new Row("MDTS", 77, 77),
        new Row("CNTLID", 78, 79),
        new Row("VER", 80, 83),
        new Row("RTD3R", 84, 87),
        new Row("RTD3E", 88, 91),
        new Row("OAES", 92, 95),
        new Row("CTRATT", 96, 99),
        new Row("RRLS", 100, 101),
        new Row("CNTRLTYPE", 111, 111),
        new Row("FGUID", 112, 127),
        new Row("CRDT1", 128, 129),
        new Row("CRDT2", 130, 131),
        new Row("CRDT3", 132, 133),
        new Row("NVMSR", 253, 253),
        new Row("VWCI", 254, 254),
        new Row("MEC", 255, 255),
        new Row("OACS", 256, 257),
        new Row("ACL", 258, 258),
        new Row("AERL", 259, 259),
        new Row("FRMW", 260, 260),
        new Row("LPA", 261, 261),
        new Row("ELPE", 262, 262),
        new Row("NPSS", 263, 263),
        new Row("AVSCC", 264, 264),
        new Row("APSTA", 265, 265),
        new Row("WCTEMP", 266, 267),
        new Row("CCTEMP", 268, 269),
        new Row("MTFA", 270, 271),
        new Row("HMPRE", 272, 275),
        new Row("HMMIN", 276, 279),
        new Row("TNVMCAP", 280, 295),
        new Row("UNVMCAP", 296, 311),
        new Row("RPMBS", 312, 315),
        new Row("EDSTT", 316, 317),
        new Row("DSTO", 318, 318),
        new Row("FWUG", 319, 319),
        new Row("KAS", 320, 321),
        new Row("HCTMA", 322, 323),
        new Row("MNTMT", 324, 325),
        new Row("MXTMT", 326, 327),
        new Row("SANICAP", 328, 331),
        new Row("HMMINDS", 332, 335),
        new Row("HMMAXD", 336, 337),
        new Row("NSETIDMAX", 338, 339),
        new Row("ENDGIDMAX", 340, 341),
        new Row("ANATT", 342, 342),
        new Row("ANACAP", 343, 343),
        new Row("ANAGRPMAX", 344, 347),
        new Row("NANAGRPID", 348, 351),
        new Row("PELS", 352, 355),
        new Row("DOMAINID", 356, 357),
        new Row("MEGCAP", 368, 383),
        new Row("SQES", 512, 512),
        new Row("CQES", 513, 513),
        new Row("MAXCMD", 514, 515),
        new Row("NN", 516, 519),
        new Row("ONCS", 520, 521),
        new Row("FUSES", 522, 523),
        new Row("FNA", 524, 524),
        new Row("VWC", 525, 525),
        new Row("AWUN", 526, 527),
        new Row("AWUPF", 528, 529),
        new Row("ICSVSCC", 530, 530),
        new Row("NWPC", 531, 531),
        new Row("ACWU", 532, 533),
        new Row("OCFS", 534, 535),
        new Row("SGLS", 536, 539),
        new Row("MNAN", 540, 543),
        new Row("MAXDNA", 544, 559),
        new Row("MAXCNA", 560, 563),
        new Row("SUBNQN", 768, 1023));
  }

  @ParameterizedTest
  @MethodSource("rows")
  void everyFieldLiesWhereTheSpecificationPutsIt(Row row) {
    CONTRACT.checkRow(row);
  }

  @Test
  void listsTheFieldsInOrder() {
    CONTRACT.checkOrder(rows());
    assertThat(id.fields()).extracting(FieldValue::name).doesNotHaveDuplicates().hasSize(79);
  }

  @Test
  void needs4096Bytes() {
    CONTRACT.checkSize();
  }

  @Test
  void lowHalfOfTheCountersLeavesTheHighHalf() {
    BigInteger both = new BigInteger("0123456789abcdeffedcba9876543210", 16);
    long low = 0xfedcba9876543210L;
    id.set(IdentifyController.TNVMCAP, both)
        .set(IdentifyController.UNVMCAP, both)
        .set(IdentifyController.MEGCAP, both)
        .set(IdentifyController.MAXDNA, both);
    assertThat(
            new long[] {
              id.getLong(IdentifyController.TNVMCAP),
              id.getLong(IdentifyController.UNVMCAP),
              id.getLong(IdentifyController.MEGCAP),
              id.getLong(IdentifyController.MAXDNA)
            })
        .containsOnly(low);
    assertThat(id.set(IdentifyController.TNVMCAP, 5)).isSameAs(id);
    assertThat(id.set(IdentifyController.UNVMCAP, 6)).isSameAs(id);
    assertThat(id.set(IdentifyController.MEGCAP, 7)).isSameAs(id);
    assertThat(id.set(IdentifyController.MAXDNA, 8)).isSameAs(id);
    assertThat(id.getBig(IdentifyController.TNVMCAP))
        .isEqualTo(new BigInteger("0123456789abcdef0000000000000005", 16));
    assertThat(id.getBig(IdentifyController.UNVMCAP))
        .isEqualTo(new BigInteger("0123456789abcdef0000000000000006", 16));
    assertThat(id.getBig(IdentifyController.MEGCAP))
        .isEqualTo(new BigInteger("0123456789abcdef0000000000000007", 16));
    assertThat(id.getBig(IdentifyController.MAXDNA))
        .isEqualTo(new BigInteger("0123456789abcdef0000000000000008", 16));
  }

  @Test
  void countersReachFromZeroToTheirMaximum() {
    BigInteger max = BigInteger.TWO.pow(128).subtract(BigInteger.ONE);
    assertThat(id.set(IdentifyController.TNVMCAP, max).getBig(IdentifyController.TNVMCAP))
        .isEqualTo(max);
    assertThat(
            id.set(IdentifyController.TNVMCAP, BigInteger.ZERO).getBig(IdentifyController.TNVMCAP))
        .isEqualTo(BigInteger.ZERO);
  }

  @Test
  void textIsPaddedWithSpacesAndReadWithoutThem() {
    id.set(IdentifyController.SN, "S1")
        .set(IdentifyController.MN, "Model X")
        .set(IdentifyController.FR, "1.0");
    assertThat(ascii(4, 20)).isEqualTo("S1" + " ".repeat(18));
    assertThat(ascii(24, 40)).isEqualTo("Model X" + " ".repeat(33));
    assertThat(ascii(64, 8)).isEqualTo("1.0     ");
    assertThat(id.getText(IdentifyController.SN)).isEqualTo("S1");
    assertThat(id.getText(IdentifyController.MN)).isEqualTo("Model X");
    assertThat(id.getText(IdentifyController.FR)).isEqualTo("1.0");
  }

  @Test
  void qualifiedNameEndsWithZeroes() {
    id.set(IdentifyController.SUBNQN, "x".repeat(200))
        .set(IdentifyController.SUBNQN, "nqn.2014-08.org.nvmexpress:uuid:1");
    assertThat(ascii(768, 256)).isEqualTo("nqn.2014-08.org.nvmexpress:uuid:1" + "\0".repeat(223));
    page[768 + 34] = 'Z';
    assertThat(id.getText(IdentifyController.SUBNQN))
        .isEqualTo("nqn.2014-08.org.nvmexpress:uuid:1");
  }

  @Test
  void hostileTextCannotReachTheTerminal() {
    byte[] hostile = "A\u001b[2J\u0007\u007f~ \t\n".getBytes(StandardCharsets.ISO_8859_1);
    System.arraycopy(hostile, 0, page, 24, hostile.length);
    page[24 + hostile.length] = (byte) 0x9B;
    page[24 + hostile.length + 1] = ' ';
    assertThat(id.getText(IdentifyController.MN)).isEqualTo("A?[2J??~ ???");
    assertThatThrownBy(() -> id.set(IdentifyController.SN, "a\u001bb"))
        .isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> id.set(IdentifyController.SN, "a\u007fb"))
        .isInstanceOf(IllegalArgumentException.class);
    assertThat(id.set(IdentifyController.SN, " !~").getText(IdentifyController.SN)).isEqualTo("!~");
  }

  @Test
  void flagsAreShownInHexadecimalAndNumbersInDecimal() {
    id.set(IdentifyController.OACS, 0x17)
        .set(IdentifyController.MDTS, 5)
        .set(IdentifyController.SGLS, 1)
        .set(IdentifyController.IEEE, 0xABCDEF)
        .set(IdentifyController.TNVMCAP, BigInteger.TWO.pow(127))
        .set(IdentifyController.SN, "S");
    assertThat(text("OACS")).isEqualTo("0x0017");
    assertThat(text("MDTS")).isEqualTo("5");
    assertThat(text("SGLS")).isEqualTo("0x00000001");
    assertThat(text("IEEE")).isEqualTo("0xabcdef");
    assertThat(text("TNVMCAP")).isEqualTo("170141183460469231731687303715884105728");
    assertThat(text("SN")).isEqualTo("S");
    assertThat(text("FGUID")).isEqualTo("0".repeat(32));
    assertThat(id.fields().getFirst().meaning()).isEqualTo("PCI Vendor ID");
  }

  @ParameterizedTest
  @CsvSource({"0, 2048", "1, 2080", "17, 2592", "31, 3040"})
  void powerStateDescriptorsStartAtByte2048(int index, int offset) {
    id.psd(index).set(PowerStateDescriptor.MP, 0x1234).set(PowerStateDescriptor.APWS, 0xC1);
    byte[] expected = new byte[4096];
    expected[offset] = 0x34;
    expected[offset + 1] = 0x12;
    expected[offset + 22] = (byte) 0xC1;
    assertThat(page).containsExactly(expected);
    assertThat(id.psd(index).segment().byteSize()).isEqualTo(32);
  }

  @Test
  void thereAre32PowerStates() {
    assertThatThrownBy(() -> id.psd(32)).isInstanceOf(IndexOutOfBoundsException.class);
    assertThatThrownBy(() -> id.psd(-1)).isInstanceOf(IndexOutOfBoundsException.class);
  }

  @Test
  void capabilityBits() {
    assertThat(
            new int[] {
              IdentifyController.OACS_SECURITY,
              IdentifyController.OACS_FORMAT,
              IdentifyController.OACS_FIRMWARE,
              IdentifyController.OACS_NS_MANAGEMENT,
              IdentifyController.OACS_SELF_TEST,
              IdentifyController.OACS_DIRECTIVES,
              IdentifyController.OACS_NVME_MI,
              IdentifyController.OACS_VIRTUALIZATION,
              IdentifyController.OACS_DOORBELL_BUFFER,
              IdentifyController.OACS_GET_LBA_STATUS,
              IdentifyController.OACS_LOCKDOWN
            })
        .containsExactly(0x1, 0x2, 0x4, 0x8, 0x10, 0x20, 0x40, 0x80, 0x100, 0x200, 0x400);
    assertThat(
            new int[] {
              IdentifyController.ONCS_COMPARE,
              IdentifyController.ONCS_WRITE_UNCORRECTABLE,
              IdentifyController.ONCS_DATASET_MANAGEMENT,
              IdentifyController.ONCS_WRITE_ZEROES,
              IdentifyController.ONCS_SAVE_SELECT,
              IdentifyController.ONCS_RESERVATIONS,
              IdentifyController.ONCS_TIMESTAMP,
              IdentifyController.ONCS_VERIFY,
              IdentifyController.ONCS_COPY
            })
        .containsExactly(0x1, 0x2, 0x4, 0x8, 0x10, 0x20, 0x40, 0x80, 0x100);
    assertThat(
            new int[] {
              IdentifyController.LPA_SMART_PER_NAMESPACE,
              IdentifyController.LPA_COMMANDS_EFFECTS,
              IdentifyController.LPA_EXTENDED_DATA,
              IdentifyController.LPA_TELEMETRY,
              IdentifyController.LPA_PERSISTENT_EVENT,
              IdentifyController.LPA_SUPPORTED_LOG_PAGES
            })
        .containsExactly(0x1, 0x2, 0x4, 0x8, 0x10, 0x20);
    assertThat(
            new int[] {
              IdentifyController.SGLS_SUPPORTED,
              IdentifyController.SGLS_DWORD_ALIGNED,
              IdentifyController.SGLS_KEYED,
              IdentifyController.SGLS_BIT_BUCKET,
              IdentifyController.SGLS_METADATA_BYTE_ALIGNED,
              IdentifyController.SGLS_OVERSIZED,
              IdentifyController.SGLS_METADATA_SGL,
              IdentifyController.SGLS_ADDRESS_OFFSET,
              IdentifyController.SGLS_TRANSPORT
            })
        .containsExactly(1, 2, 4, 0x10000, 0x20000, 0x40000, 0x80000, 0x100000, 0x200000);
    assertThat(IdentifyController.OAES_NAMESPACE_ATTRIBUTES).isEqualTo(0x100);
    assertThat(IdentifyController.OAES_FIRMWARE_ACTIVATION).isEqualTo(0x200);
    assertThat(IdentifyController.CTRATT_HOST_ID_128).isEqualTo(1);
    assertThat(IdentifyController.FUSES_COMPARE_WRITE).isEqualTo(1);
    assertThat(IdentifyController.VWC_PRESENT).isEqualTo(1);
    assertThat(IdentifyController.VWC_FLUSH_ALL).isEqualTo(6);
    assertThat(IdentifyController.POWER_STATES).isEqualTo(32);
    assertThat(IdentifyController.SIZE).isEqualTo(4096);
  }

  private String ascii(int offset, int length) {
    return new String(page, offset, length, StandardCharsets.ISO_8859_1);
  }

  private String text(String field) {
    return id.fields().stream()
        .filter(f -> f.name().equals(field))
        .findFirst()
        .orElseThrow()
        .text();
  }
}
