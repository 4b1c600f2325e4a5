package io.gpunvme.nvme.spec;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class FieldTablesTest {
  @Test
  void fieldsAreListedAsTheyWereDeclared() {
    FieldTable table = new FieldTable();
    Field number = table.number("VID", 0, 2, "vendor");
    Field flags = table.flags("CMIC", 76, 1, "sharing");
    Field text = table.text("SN", 4, 20, "serial number");
    Field padded = table.zeroPaddedText("SUBNQN", 768, 256, "name");
    Field bytes = table.bytes("EUI64", 120, 8, "identifier");
    assertThat(table.fields()).containsExactly(number, flags, text, padded, bytes);
    assertThat(table.fields())
        .extracting(Field::name)
        .containsExactly("VID", "CMIC", "SN", "SUBNQN", "EUI64");
  }

  @Test
  void bitFieldsAreListedAsTheyWereDeclared() {
    BitFieldTable table = new BitFieldTable();
    BitField enable = table.field("EN", 0, 1, "enable");
    BitField size = table.field("MPS", 7, 4, "page size");
    assertThat(table.fields()).containsExactly(enable, size);
    assertThat(enable.with(0, true)).isEqualTo(1);
    assertThat(size.mask()).isEqualTo(0x780);
  }

  @Test
  void registersThatNobodyWritesAreMadeOfBits() {
    assertThat(new Vs(0).withBits(0x2_0001)).isEqualTo(new Vs(0x2_0001));
    assertThat(new Nssr(0).withBits(Registers.NSSR_MAGIC).requestsReset()).isTrue();
  }
}
