package io.gpunvme.nvme.spec;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Base 2.0, 5.17.2.2, 5.17.2.3 and 5.16.1.5: lists of namespaces and of their identifiers. */
class NamespaceListsTest {
  private final byte[] page = new byte[4096];
  private final MemorySegment s = MemorySegment.ofArray(page);

  @Test
  void activeListEndsAtTheFirstZero() {
    ActiveNamespaceList list = new ActiveNamespaceList(s);
    assertThat(list.count()).isZero();
    list.nsid(0, 1);
    list.nsid(1, 0x84838281);
    list.nsid(3, 9);
    assertThat(Arrays.copyOf(page, 16))
        .containsExactly(1, 0, 0, 0, 0x81, 0x82, 0x83, 0x84, 0, 0, 0, 0, 9, 0, 0, 0);
    assertThat(list.count()).isEqualTo(2);
    assertThat(list.stream()).containsExactly(1, 0x84838281);
    assertThat(list.nsid(3)).isEqualTo(9);
    assertThat(list.segment().byteSize()).isEqualTo(4096);
  }

  @Test
  void fullListHas1024Entries() {
    ActiveNamespaceList list = new ActiveNamespaceList(s);
    for (int i = 0; i < 1024; i++) {
      list.nsid(i, i + 1);
    }
    assertThat(list.count()).isEqualTo(1024);
    assertThat(list.stream().sum()).isEqualTo(1024 * 1025 / 2);
    assertThat(page[4092]).isEqualTo((byte) 0x00);
    assertThat(page[4093]).isEqualTo((byte) 0x04);
    assertThatThrownBy(() -> list.nsid(1024)).isInstanceOf(IndexOutOfBoundsException.class);
    assertThatThrownBy(() -> list.nsid(-1, 1)).isInstanceOf(IndexOutOfBoundsException.class);
    assertThat(ActiveNamespaceList.ENTRIES).isEqualTo(1024);
    assertThat(ChangedNamespaceList.SIZE).isEqualTo(4096);
  }

  @Test
  void changedListMayOverflow() {
    ChangedNamespaceList list = new ChangedNamespaceList(s);
    assertThat(list.overflowed()).isFalse();
    list.nsid(0, 5);
    assertThat(list.overflowed()).isFalse();
    list.nsid(0, 0xFFFFFFFF);
    assertThat(list.overflowed()).isTrue();
    assertThat(ChangedNamespaceList.OVERFLOW).isEqualTo(-1);
  }

  @Test
  void pagesMustBeWhole() {
    MemorySegment small = MemorySegment.ofArray(new byte[4095]);
    assertThatThrownBy(() -> new ActiveNamespaceList(small)).hasMessageContaining("4096");
    assertThatThrownBy(() -> new ChangedNamespaceList(small)).hasMessageContaining("4096");
    assertThatThrownBy(() -> new NamespaceDescriptors(small)).hasMessageContaining("4096");
    MemorySegment large = MemorySegment.ofArray(new byte[5000]);
    assertThat(new ActiveNamespaceList(large).segment().byteSize()).isEqualTo(4096);
    assertThat(new NamespaceDescriptors(large).segment().byteSize()).isEqualTo(4096);
  }

  @Test
  void descriptorsFollowEachOther() {
    page[1] = 0;
    page[2] = 0x55;
    page[3] = 0x66;
    NamespaceDescriptors list = new NamespaceDescriptors(s);
    byte[] eui64 = {1, 2, 3, 4, 5, 6, 7, 8};
    byte[] uuid = new byte[16];
    Arrays.fill(uuid, (byte) 0x99);
    assertThat(list.append(NamespaceDescriptors.EUI64, eui64)).isSameAs(list);
    list.append(NamespaceDescriptors.UUID, uuid).append(NamespaceDescriptors.CSI, new byte[] {2});
    byte[] expected = new byte[4096];
    expected[0] = 1;
    expected[1] = 8;
    System.arraycopy(eui64, 0, expected, 4, 8);
    expected[12] = 3;
    expected[13] = 16;
    System.arraycopy(uuid, 0, expected, 16, 16);
    expected[32] = 4;
    expected[33] = 1;
    expected[36] = 2;
    assertThat(page).containsExactly(expected);
    assertThat(list.list())
        .extracting(NamespaceDescriptors.Descriptor::type)
        .containsExactly(1, 3, 4);
    assertThat(list.list().get(1).id().toArray(ValueLayout.JAVA_BYTE)).containsExactly(uuid);
    MemorySegment csi = list.find(NamespaceDescriptors.CSI);
    assertThat(csi).isNotNull();
    assertThat(csi.toArray(ValueLayout.JAVA_BYTE)).containsExactly(2);
    assertThat(list.find(NamespaceDescriptors.NGUID)).isNull();
    assertThat(
            List.of(
                NamespaceDescriptors.EUI64,
                NamespaceDescriptors.NGUID,
                NamespaceDescriptors.UUID,
                NamespaceDescriptors.CSI))
        .containsExactly(1, 2, 3, 4);
  }

  @Test
  void firstOfTwoDescriptorsOfAKindIsFound() {
    NamespaceDescriptors list = new NamespaceDescriptors(s);
    list.append(7, new byte[] {1}).append(7, new byte[] {2});
    MemorySegment found = list.find(7);
    assertThat(found).isNotNull();
    assertThat(found.toArray(ValueLayout.JAVA_BYTE)).containsExactly(1);
  }

  @Test
  void descriptorReachingPastThePageEndsTheList() {
    NamespaceDescriptors list = new NamespaceDescriptors(s);
    Arrays.fill(page, (byte) 0xFF);
    assertThat(list.list()).hasSize(15).allMatch(d -> d.id().byteSize() == 255);
    assertThat(list.list()).allMatch(d -> d.type() == 255);
    fillTo(4084, list);
    page[4084 + 1] = 8;
    assertThat(list.list()).hasSize(17);
    page[4084 + 1] = 9;
    assertThat(list.list()).hasSize(16);
  }

  @Test
  void headerAtTheVeryEndIsNoDescriptor() {
    NamespaceDescriptors list = new NamespaceDescriptors(s);
    for (int end : new int[] {4091, 4092, 4095, 4096}) {
      fillTo(end, list);
      if (end < 4095) {
        page[end + 1] = 1;
      }
      assertThat(list.list()).as("end %d", end).hasSize(end == 4091 ? 17 : 16);
    }
  }

  @Test
  void appendRefusesWhatDoesNotFit() {
    NamespaceDescriptors list = new NamespaceDescriptors(s);
    assertThatThrownBy(() -> list.append(1, new byte[0]))
        .isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> list.append(1, new byte[256]))
        .isInstanceOf(IllegalArgumentException.class);
    list.append(1, new byte[255]);
    fillTo(4084, list);
    assertThatThrownBy(() -> list.append(1, new byte[9]))
        .isInstanceOf(IllegalArgumentException.class);
    assertThat(list.append(1, new byte[8]).list()).hasSize(17);
    assertThatThrownBy(() -> list.append(1, new byte[1]))
        .isInstanceOf(IllegalArgumentException.class);
  }

  /** Sixteen descriptors whose last one ends at {@code end}. */
  private void fillTo(int end, NamespaceDescriptors list) {
    Arrays.fill(page, (byte) 0);
    int left = end;
    for (int i = 0; i < 15; i++) {
      list.append(1, new byte[253]);
      left -= 257;
    }
    list.append(1, new byte[left - 4]);
  }
}
