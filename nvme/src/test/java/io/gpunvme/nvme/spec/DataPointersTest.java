package io.gpunvme.nvme.spec;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Base 2.0, 4.1 and 5.27.1.10, NVM 1.0, 3.2.3: PRP entries, SGL descriptors, and ranges. */
class DataPointersTest {
  /** Deliberately odd: what the other side wrote may lie anywhere. */
  private static final int OFFSET = 3;

  private final byte[] bytes = new byte[24];
  private final MemorySegment s = MemorySegment.ofArray(bytes);

  DataPointersTest() {
    Arrays.fill(bytes, (byte) 0xA5);
  }

  private String written() {
    return HexFormat.of().formatHex(bytes);
  }

  @Test
  void prpEntryIsEightBytes() {
    Prp.put(s, OFFSET, 0x8877_6655_4433_2211L);
    assertThat(written()).isEqualTo("a5a5a5" + "1122334455667788" + "a5".repeat(13));
    assertThat(Prp.get(s, OFFSET)).isEqualTo(0x8877_6655_4433_2211L);
    assertThat(Prp.ENTRY).isEqualTo(8);
    assertThat(Prp.DATA_ALIGNMENT).isEqualTo(4);
  }

  @Test
  void prpOffsetIsThePartBelowThePage() {
    assertThat(Prp.offset(0x8877_6655_4433_2ABCL, 4096)).isEqualTo(0xABC);
    assertThat(Prp.offset(0x8877_6655_4433_2ABCL, 8192)).isEqualTo(0xABC);
    assertThat(Prp.offset(0x8877_6655_4433_3ABCL, 8192)).isEqualTo(0x1ABC);
    assertThat(Prp.offset(0xFFFF_FFFF_FFFF_F000L, 4096)).isZero();
  }

  @Test
  void sglDescriptor() {
    SglDescriptor.put(s, OFFSET, SglDescriptor.LAST_SEGMENT, 0x8877_6655_4433_2211L, 0x8C8B8A89);
    assertThat(written())
        .isEqualTo("a5a5a5" + "1122334455667788" + "898a8b8c" + "000000" + "30" + "a5".repeat(5));
    assertThat(SglDescriptor.address(s, OFFSET)).isEqualTo(0x8877_6655_4433_2211L);
    assertThat(SglDescriptor.length(s, OFFSET)).isEqualTo(0x8C8B8A89L);
    assertThat(SglDescriptor.type(s, OFFSET)).isEqualTo(3);
    assertThat(SglDescriptor.subtype(s, OFFSET)).isZero();
    assertThat(SglDescriptor.reservedClear(s, OFFSET)).isTrue();
    assertThat(SglDescriptor.SIZE).isEqualTo(16);
  }

  @Test
  void sglTypeAndSubtypeShareTheLastByte() {
    bytes[OFFSET + 15] = (byte) 0xF1;
    assertThat(SglDescriptor.type(s, OFFSET)).isEqualTo(15);
    assertThat(SglDescriptor.subtype(s, OFFSET)).isEqualTo(1);
    bytes[OFFSET + 15] = 0x1F;
    assertThat(SglDescriptor.type(s, OFFSET)).isEqualTo(1);
    assertThat(SglDescriptor.subtype(s, OFFSET)).isEqualTo(15);
  }

  @Test
  void sglReservedBytesAreThreeOnes() {
    SglDescriptor.put(s, OFFSET, 15, -1, -1);
    assertThat(SglDescriptor.reservedClear(s, OFFSET)).isTrue();
    for (int i = 12; i <= 14; i++) {
      for (int bit : new int[] {0x01, 0x80}) {
        bytes[OFFSET + i] = (byte) bit;
        assertThat(SglDescriptor.reservedClear(s, OFFSET)).as("byte %d", i).isFalse();
      }
      bytes[OFFSET + i] = 0;
    }
  }

  @Test
  void sglTypes() {
    assertThat(
            List.of(
                SglDescriptor.DATA_BLOCK,
                SglDescriptor.BIT_BUCKET,
                SglDescriptor.SEGMENT,
                SglDescriptor.LAST_SEGMENT,
                SglDescriptor.KEYED_DATA_BLOCK,
                SglDescriptor.TRANSPORT_DATA_BLOCK))
        .containsExactly(0, 1, 2, 3, 4, 5);
    assertThat(SglDescriptor.SUBTYPE_ADDRESS).isZero();
    assertThat(List.of(SglDescriptor.ADDRESS, SglDescriptor.LENGTH, SglDescriptor.IDENTIFIER))
        .containsExactly(0, 8, 15);
  }

  @Test
  void secondHalfOfADescriptorFitsTheCommand() {
    assertThat(SglDescriptor.dptr2(0, 0x8000_0001)).isEqualTo(0x8000_0001L);
    assertThat(SglDescriptor.dptr2(2, 16)).isEqualTo(0x2000_0000_0000_0010L);
    assertThat(SglDescriptor.dptr2(15, 0)).isEqualTo(0xF000_0000_0000_0000L);
  }

  @Test
  void datasetManagementRange() {
    DsmRange.put(s, OFFSET, 0x84838281, 0x88878685, 0x908F_8E8D_8C8B_8A89L);
    assertThat(written())
        .isEqualTo("a5a5a5" + "81828384" + "85868788" + "898a8b8c8d8e8f90" + "a5".repeat(5));
    assertThat(DsmRange.attributes(s, OFFSET)).isEqualTo(0x84838281);
    assertThat(DsmRange.blocks(s, OFFSET)).isEqualTo(0x88878685L);
    assertThat(DsmRange.slba(s, OFFSET)).isEqualTo(0x908F_8E8D_8C8B_8A89L);
    assertThat(List.of(DsmRange.SIZE, DsmRange.MAX_RANGES)).containsExactly(16, 256);
    assertThat(List.of(DsmRange.ATTRIBUTES, DsmRange.LENGTH, DsmRange.SLBA))
        .containsExactly(0, 4, 8);
    assertThat(List.of(DsmRange.IDR, DsmRange.IDW, DsmRange.AD)).containsExactly(1, 2, 4);
  }

  @Test
  void hostMemoryBufferEntry() {
    HostMemoryBufferEntry.put(s, OFFSET, 0x8877_6655_4433_2211L, 0x8C8B8A89);
    assertThat(written())
        .isEqualTo("a5a5a5" + "1122334455667788" + "898a8b8c" + "00000000" + "a5".repeat(5));
    assertThat(HostMemoryBufferEntry.badd(s, OFFSET)).isEqualTo(0x8877_6655_4433_2211L);
    assertThat(HostMemoryBufferEntry.bsize(s, OFFSET)).isEqualTo(0x8C8B8A89L);
    assertThat(
            List.of(
                HostMemoryBufferEntry.SIZE,
                HostMemoryBufferEntry.BADD,
                HostMemoryBufferEntry.BSIZE))
        .containsExactly(16, 0, 8);
  }
}
