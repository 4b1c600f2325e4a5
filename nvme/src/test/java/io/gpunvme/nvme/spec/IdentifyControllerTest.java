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
        Row.of("VID", 0, 1),
        Row.of("SSVID", 2, 3),
        Row.of("SN", 4, 23),
        Row.of("MN", 24, 63),
        Row.of("FR", 64, 71),
        Row.of("RAB", 72, 72),
        Row.of("IEEE", 73, 75),
        Row.of("CMIC", 76, 76),
        Row.of("MDTS", 77, 77),
        Row.of("CNTLID", 78, 79),
        Row.of("VER", 80, 83),
        Row.of("RTD3R", 84, 87),
        Row.of("RTD3E", 88, 91),
        Row.of("OAES", 92, 95),
        Row.of("CTRATT", 96, 99),
        Row.of("RRLS", 100, 101),
        Row.of("CNTRLTYPE", 111, 111),
        Row.of("FGUID", 112, 127),
        Row.of("CRDT1", 128, 129),
        Row.of("CRDT2", 130, 131),
        Row.of("CRDT3", 132, 133),
        Row.of("NVMSR", 253, 253),
        Row.of("VWCI", 254, 254),
        Row.of("MEC", 255, 255),
        Row.of("OACS", 256, 257),
        Row.of("ACL", 258, 258),
        Row.of("AERL", 259, 259),
        Row.of("FRMW", 260, 260),
        Row.of("LPA", 261, 261),
        Row.of("ELPE", 262, 262),
        Row.of("NPSS", 263, 263),
        Row.of("AVSCC", 264, 264),
        Row.of("APSTA", 265, 265),
        Row.of("WCTEMP", 266, 267),
        Row.of("CCTEMP", 268, 269),
        Row.of("MTFA", 270, 271),
        Row.of("HMPRE", 272, 275),
        Row.of("HMMIN", 276, 279),
        Row.of("TNVMCAP", 280, 295),
        Row.of("UNVMCAP", 296, 311),
        Row.of("RPMBS", 312, 315),
        Row.of("EDSTT", 316, 317),
        Row.of("DSTO", 318, 318),
        Row.of("FWUG", 319, 319),
        Row.of("KAS", 320, 321),
        Row.of("HCTMA", 322, 323),
        Row.of("MNTMT", 324, 325),
        Row.of("MXTMT", 326, 327),
        Row.of("SANICAP", 328, 331),
        Row.of("HMMINDS", 332, 335),
        Row.of("HMMAXD", 336, 337),
        Row.of("NSETIDMAX", 338, 339),
        Row.of("ENDGIDMAX", 340, 341),
        Row.of("ANATT", 342, 342),
        Row.of("ANACAP", 343, 343),
        Row.of("ANAGRPMAX", 344, 347),
        Row.of("NANAGRPID", 348, 351),
        Row.of("PELS", 352, 355),
        Row.of("DOMAINID", 356, 357),
        Row.of("MEGCAP", 368, 383),
        Row.of("SQES", 512, 512),
        Row.of("CQES", 513, 513),
        Row.of("MAXCMD", 514, 515),
        Row.of("NN", 516, 519),
        Row.of("ONCS", 520, 521),
        Row.of("FUSES", 522, 523),
        Row.of("FNA", 524, 524),
        Row.of("VWC", 525, 525),
        Row.of("AWUN", 526, 527),
        Row.of("AWUPF", 528, 529),
        Row.of("ICSVSCC", 530, 530),
        Row.of("NWPC", 531, 531),
        Row.of("ACWU", 532, 533),
        Row.of("OCFS", 534, 535),
        Row.of("SGLS", 536, 539),
        Row.of("MNAN", 540, 543),
        Row.of("MAXDNA", 544, 559),
        Row.of("MAXCNA", 560, 563),
        Row.of("SUBNQN", 768, 1023));
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
    id.tnvmcap(both).unvmcap(both).megcap(both).maxdna(both);
    assertThat(new long[] {id.tnvmcapLow(), id.unvmcapLow(), id.megcapLow(), id.maxdnaLow()})
        .containsOnly(low);
    assertThat(id.tnvmcapLow(5)).isSameAs(id);
    assertThat(id.unvmcapLow(6)).isSameAs(id);
    assertThat(id.megcapLow(7)).isSameAs(id);
    assertThat(id.maxdnaLow(8)).isSameAs(id);
    assertThat(id.tnvmcap()).isEqualTo(new BigInteger("0123456789abcdef0000000000000005", 16));
    assertThat(id.unvmcap()).isEqualTo(new BigInteger("0123456789abcdef0000000000000006", 16));
    assertThat(id.megcap()).isEqualTo(new BigInteger("0123456789abcdef0000000000000007", 16));
    assertThat(id.maxdna()).isEqualTo(new BigInteger("0123456789abcdef0000000000000008", 16));
  }

  @Test
  void countersReachFromZeroToTheirMaximum() {
    BigInteger max = BigInteger.TWO.pow(128).subtract(BigInteger.ONE);
    assertThat(id.tnvmcap(max).tnvmcap()).isEqualTo(max);
    assertThat(id.tnvmcap(BigInteger.ZERO).tnvmcap()).isEqualTo(BigInteger.ZERO);
  }

  @Test
  void textIsPaddedWithSpacesAndReadWithoutThem() {
    id.sn("S1").mn("Model X").fr("1.0");
    assertThat(ascii(4, 20)).isEqualTo("S1" + " ".repeat(18));
    assertThat(ascii(24, 40)).isEqualTo("Model X" + " ".repeat(33));
    assertThat(ascii(64, 8)).isEqualTo("1.0     ");
    assertThat(id.sn()).isEqualTo("S1");
    assertThat(id.mn()).isEqualTo("Model X");
    assertThat(id.fr()).isEqualTo("1.0");
  }

  @Test
  void qualifiedNameEndsWithZeroes() {
    id.subnqn("x".repeat(200)).subnqn("nqn.2014-08.org.nvmexpress:uuid:1");
    assertThat(ascii(768, 256)).isEqualTo("nqn.2014-08.org.nvmexpress:uuid:1" + "\0".repeat(223));
    page[768 + 34] = 'Z';
    assertThat(id.subnqn()).isEqualTo("nqn.2014-08.org.nvmexpress:uuid:1");
  }

  @Test
  void hostileTextCannotReachTheTerminal() {
    byte[] hostile = "A\u001b[2J\u0007\u007f~ \t\n".getBytes(StandardCharsets.ISO_8859_1);
    System.arraycopy(hostile, 0, page, 24, hostile.length);
    page[24 + hostile.length] = (byte) 0x9B;
    page[24 + hostile.length + 1] = ' ';
    assertThat(id.mn()).isEqualTo("A?[2J??~ ???");
    assertThatThrownBy(() -> id.sn("a\u001bb")).isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> id.sn("a\u007fb")).isInstanceOf(IllegalArgumentException.class);
    assertThat(id.sn(" !~").sn()).isEqualTo("!~");
  }

  @Test
  void flagsAreShownInHexadecimalAndNumbersInDecimal() {
    id.oacs(0x17).mdts(5).sgls(1).ieee(0xABCDEF).tnvmcap(BigInteger.TWO.pow(127)).sn("S");
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
    id.psd(index).mp(0x1234).apws(0xC1);
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
