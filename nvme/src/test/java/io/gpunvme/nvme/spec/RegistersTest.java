package io.gpunvme.nvme.spec;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.reflect.Field;
import java.util.LinkedHashMap;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Base 2.0, 3.1.3: offsets and bits of the controller's registers. */
class RegistersTest {
  @ParameterizedTest
  @CsvSource({
    "CAP, 0x0",
    "VS, 0x8",
    "INTMS, 0xC",
    "INTMC, 0x10",
    "CC, 0x14",
    "CSTS, 0x1C",
    "NSSR, 0x20",
    "AQA, 0x24",
    "ASQ, 0x28",
    "ACQ, 0x30",
    "CMBLOC, 0x38",
    "CMBSZ, 0x3C",
    "BPINFO, 0x40",
    "BPRSEL, 0x44",
    "BPMBL, 0x48",
    "CMBMSC, 0x50",
    "CMBSTS, 0x58",
    "CMBEBS, 0x5C",
    "CMBSWTP, 0x60",
    "NSSD, 0x64",
    "CRTO, 0x68",
    "PMRCAP, 0xE00",
    "PMRCTL, 0xE04",
    "PMRSTS, 0xE08",
    "PMREBS, 0xE0C",
    "PMRSWTP, 0xE10",
    "PMRMSCL, 0xE14",
    "PMRMSCU, 0xE18",
    "DOORBELLS, 0x1000",
    "NSSR_MAGIC, 0x4E564D65"
  })
  void offsets(String name, String value) throws ReflectiveOperationException {
    assertThat(Registers.class.getField(name).getInt(null)).isEqualTo(Integer.decode(value));
  }

  @Test
  void everyOffsetIsInTheTableAbove() {
    assertThat(Registers.class.getFields()).extracting(Field::getName).hasSize(30);
  }

  @Test
  void doorbells() {
    long[] strides = {
      4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072
    };
    for (int dstrd = 0; dstrd <= 15; dstrd++) {
      long stride = strides[dstrd];
      for (int qid : new int[] {0, 1, 2, 63, 64, 1000, 65535}) {
        assertThat(Registers.sqTailDoorbell(qid, dstrd))
            .as("SQ %d, DSTRD %d", qid, dstrd)
            .isEqualTo(0x1000 + 2L * qid * stride);
        assertThat(Registers.cqHeadDoorbell(qid, dstrd))
            .as("CQ %d, DSTRD %d", qid, dstrd)
            .isEqualTo(0x1000 + (2L * qid + 1) * stride);
      }
    }
    assertThat(Registers.sqTailDoorbell(0, 0)).isEqualTo(0x1000);
    assertThat(Registers.cqHeadDoorbell(0, 0)).isEqualTo(0x1004);
    assertThat(Registers.sqTailDoorbell(1, 0)).isEqualTo(0x1008);
    assertThat(Registers.cqHeadDoorbell(1, 4)).isEqualTo(0x10C0);
    assertThat(Registers.cqHeadDoorbell(65535, 15)).isEqualTo(0x1000 + 131071L * 131072);
  }

  /** Register, field, highest and lowest bit, in the order of the specification from bit 0 up. */
  private static final String[] BITS = {
    "Cap MQES 15 0",
    "Cap CQR 16 16",
    "Cap AMS 18 17",
    "Cap TO 31 24",
    "Cap DSTRD 35 32",
    "Cap NSSRS 36 36",
    "Cap CSS 44 37",
    "Cap BPS 45 45",
    "Cap CPS 47 46",
    "Cap MPSMIN 51 48",
    "Cap MPSMAX 55 52",
    "Cap PMRS 56 56",
    "Cap CMBS 57 57",
    "Cap NSSS 58 58",
    "Cap CRMS 60 59",
    "Cc EN 0 0",
    "Cc CSS 6 4",
    "Cc MPS 10 7",
    "Cc AMS 13 11",
    "Cc SHN 15 14",
    "Cc IOSQES 19 16",
    "Cc IOCQES 23 20",
    "Cc CRIME 24 24",
    "Csts RDY 0 0",
    "Csts CFS 1 1",
    "Csts SHST 3 2",
    "Csts NSSRO 4 4",
    "Csts PP 5 5",
    "Csts ST 6 6",
    "Aqa ASQS 11 0",
    "Aqa ACQS 27 16",
    "Cmbloc BIR 2 0",
    "Cmbloc CQMMS 3 3",
    "Cmbloc CQPDS 4 4",
    "Cmbloc CDPMLS 5 5",
    "Cmbloc CDPCILS 6 6",
    "Cmbloc CDMMMS 7 7",
    "Cmbloc CQDA 8 8",
    "Cmbloc OFST 31 12",
    "Cmbsz SQS 0 0",
    "Cmbsz CQS 1 1",
    "Cmbsz LISTS 2 2",
    "Cmbsz RDS 3 3",
    "Cmbsz WDS 4 4",
    "Cmbsz SZU 11 8",
    "Cmbsz SZ 31 12",
    "Cmbmsc CRE 0 0",
    "Cmbmsc CMSE 1 1",
    "Cmbmsc CBA 63 12",
    "Cmbsts CBAI 0 0",
    "Crto CRWMT 15 0",
    "Crto CRIMT 31 16"
  };

  @Test
  void everyBitBelongsToItsField() throws ReflectiveOperationException {
    Map<String, StringBuilder> listed = new LinkedHashMap<>();
    for (String row : BITS) {
      String[] column = row.split(" ");
      int high = Integer.parseInt(column[2]);
      int low = Integer.parseInt(column[3]);
      listed.computeIfAbsent(column[0], r -> new StringBuilder()).append(column[1]).append(' ');
      for (int bit = low; bit <= high; bit++) {
        checkBit(RegisterRecord.of(column[0]), column[1], bit, low, high);
      }
    }
    for (Map.Entry<String, StringBuilder> register : listed.entrySet()) {
      assertThat(RegisterRecord.of(register.getKey()).names())
          .isEqualTo(register.getValue().toString());
    }
  }

  private static void checkBit(RegisterRecord register, String field, int bit, int low, int high)
      throws ReflectiveOperationException {
    long mask = (1L << (high - low + 1)) - 1;
    String what = "%s.%s bit %d".formatted(register, field, bit);
    assertThat(register.get(1L << bit, field)).as(what).isEqualTo(1L << (bit - low));
    assertThat(register.get(~(1L << bit), field)).as(what).isEqualTo(mask & ~(1L << (bit - low)));
    assertThat(register.listed(1L << bit, field)).as(what).isEqualTo(1L << (bit - low));
    assertThat(register.with(0, field, 1L << (bit - low)))
        .as(what)
        .isEqualTo(register.cut(1L << bit));
    assertThat(register.with(-1, field, mask & ~(1L << (bit - low))))
        .as(what)
        .isEqualTo(register.cut(~(1L << bit)));
    if (high == low) {
      assertThat(register.with(0, field, true)).as(what).isEqualTo(register.cut(1L << bit));
      assertThat(register.with(-1, field, false)).as(what).isEqualTo(register.cut(~(1L << bit)));
    }
  }

  @Test
  void valuesThatDoNotFitAreRefused() {
    assertThatThrownBy(() -> new Cap(0).with(Cap.MQES, 0x10000))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("MQES has 16 bits: 65536 does not fit");
    assertThatThrownBy(() -> new Cap(0).with(Cap.DSTRD, -1))
        .isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> new Cc(0).with(Cc.MPS, 16)).hasMessageContaining("MPS has 4 bits");
    assertThatThrownBy(() -> Aqa.of(4096, 0)).hasMessageContaining("ASQS");
    assertThatThrownBy(() -> Aqa.of(0, 4096)).hasMessageContaining("ACQS");
    assertThatThrownBy(() -> Vs.of(1, 256, 0)).hasMessageContaining("MNR");
  }

  @Test
  void capConstants() {
    assertThat(Cap.CSS_NVM).isEqualTo(1);
    assertThat(Cap.CSS_IO_COMMAND_SETS).isEqualTo(0x40);
    assertThat(Cap.CSS_ADMIN_ONLY).isEqualTo(0x80);
    assertThat(Cap.CRMS_WITH_MEDIA).isEqualTo(1);
    assertThat(Cap.CRMS_INDEPENDENT_OF_MEDIA).isEqualTo(2);
  }

  @Test
  void ccConstants() {
    assertThat(Cc.CSS_NVM).isZero();
    assertThat(Cc.CSS_ALL).isEqualTo(6);
    assertThat(Cc.CSS_ADMIN_ONLY).isEqualTo(7);
    assertThat(Cc.AMS_ROUND_ROBIN).isZero();
    assertThat(Cc.SHN_NONE).isZero();
    assertThat(Cc.SHN_NORMAL).isEqualTo(1);
    assertThat(Cc.SHN_ABRUPT).isEqualTo(2);
    assertThat(new Cc(0).with(Cc.EN, true).with(Cc.IOSQES, 6).with(Cc.IOCQES, 4).value())
        .isEqualTo(0x00460001);
  }

  @Test
  void cstsConstants() {
    assertThat(Csts.RDY.mask()).isEqualTo(1);
    assertThat(Csts.CFS.mask()).isEqualTo(2);
    assertThat(Csts.NSSRO.mask()).isEqualTo(0x10);
    assertThat(Csts.PP.mask()).isEqualTo(0x20);
    assertThat(Csts.ST.mask()).isEqualTo(0x40);
    assertThat(Csts.GONE).isEqualTo(-1);
    assertThat(Csts.SHST_NORMAL).isZero();
    assertThat(Csts.SHST_OCCURRING).isEqualTo(1);
    assertThat(Csts.SHST_COMPLETE).isEqualTo(2);
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1, 0x7FFFFFFF, 0xFFFFFFFE})
  void onlyAllOnesMeansGone(int value) {
    assertThat(new Csts(value).gone()).isFalse();
    assertThat(new Csts(-1).gone()).isTrue();
  }

  @Test
  void aqaHoldsBothSizes() {
    assertThat(Aqa.of(0x123, 0xFFF).value()).isEqualTo(0x0FFF_0123);
    assertThat(Aqa.of(0xFFF, 1).value()).isEqualTo(0x0001_0FFF);
  }

  @Test
  void versions() {
    assertThat(Vs.V1_2.value()).isEqualTo(0x00010200);
    assertThat(Vs.V1_3.value()).isEqualTo(0x00010300);
    assertThat(Vs.V1_4.value()).isEqualTo(0x00010400);
    assertThat(Vs.V2_0.value()).isEqualTo(0x00020000);
    Vs vs = new Vs(0x8182_8384);
    assertThat(vs.get(Vs.MJR)).isEqualTo(0x8182);
    assertThat(vs.get(Vs.MNR)).isEqualTo(0x83);
    assertThat(vs.get(Vs.TER)).isEqualTo(0x84);
    assertThat(Vs.of(0x8182, 0x83, 0x84)).isEqualTo(vs);
    assertThat(Vs.V1_4).hasToString("1.4.0");
    assertThat(Vs.of(1, 2, 3)).hasToString("1.2.3");
    assertThat(Vs.V1_4.isAtLeast(Vs.V1_4)).isTrue();
    assertThat(Vs.V1_4.isAtLeast(Vs.V2_0)).isFalse();
    assertThat(vs.isAtLeast(Vs.V2_0)).isTrue();
    assertThat(vs.fields()).extracting(FieldValue::name).containsExactly("MJR", "MNR", "TER");
    assertThat(vs.fields()).extracting(FieldValue::value).containsExactly(0x8182L, 0x83L, 0x84L);
    assertThat(vs.fields()).extracting(FieldValue::text).containsExactly("33154", "131", "132");
    assertThat(vs.fields().getFirst().meaning()).isEqualTo("Major Version Number");
  }

  @ParameterizedTest
  @CsvSource({
    "0x00001000, 4096",
    "0x00002100, 131072",
    "0xFFFFF000, 4294963200",
    "0x00001600, 68719476736",
  })
  void cmbSizeInBytes(String value, long bytes) {
    Cmbsz cmbsz = new Cmbsz(Long.decode(value).intValue());
    assertThat(cmbsz.bytes()).isEqualTo(bytes);
    assertThat(new Cmbsz(0x100).unit()).isEqualTo(65536);
    assertThat(new Cmbsz(0).unit()).isEqualTo(4096);
    assertThat(new Cmbsz(0x600).unit()).isEqualTo(1L << 36);
    assertThat(new Cmbsz(0x600).bytes()).isZero();
  }

  @Test
  void subsystemResetNeedsTheMagicNumber() {
    assertThat(new Nssr(0x4E564D65).requestsReset()).isTrue();
    assertThat(new Nssr(0x4E564D64).requestsReset()).isFalse();
    assertThat(new Nssr(0).requestsReset()).isFalse();
    assertThat(new Nssr(0x8E564D65).get(Nssr.NSSRC)).isEqualTo(0x8E564D65);
    assertThat(new Nssr(0x8E564D65).fields())
        .containsExactly(
            new FieldValue("NSSRC", 0x8E56_4D65L, "2388020581", "NVM Subsystem Reset Control"));
  }
}
