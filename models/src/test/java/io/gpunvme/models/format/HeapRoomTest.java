package io.gpunvme.models.format;

import static io.gpunvme.models.format.GgufBytes.STRING;
import static io.gpunvme.models.format.GgufBytes.start;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.gpunvme.storage.fs.BytesReader;
import org.junit.jupiter.api.Test;

/** Headers and heaps. */
class HeapRoomTest {
  private static final long MIB = 1 << 20;

  private static HeapRoom heap(long mebibytes) {
    return new HeapRoom("m", mebibytes * MIB);
  }

  @Test
  void aHeaderIsRefusedBeforeTheHeapIsFull() {
    assertThatCode(() -> heap(128).take(32 * MIB)).doesNotThrowAnyException();
    assertThatExceptionOfType(FormatException.class)
        .isThrownBy(() -> heap(128).take(46 * MIB))
        .withMessageContaining("heap of 128 MiB")
        .withMessageContaining("-Xmx185m");
  }

  @Test
  void whatIsTakenInPartsCountsTogether() {
    HeapRoom room = heap(128);
    room.take(30 * MIB);
    assertThatExceptionOfType(FormatException.class).isThrownBy(() -> room.take(3 * MIB));
  }

  @Test
  void theLongestHeaderFitsIntoAnUsualHeap() {
    assertThatCode(() -> heap(1024).take(Safetensors.LONGEST_HEADER)).doesNotThrowAnyException();
  }

  private static void refused(BytesReader gguf, int mebibytes, long mostRead) {
    assertThatExceptionOfType(FormatException.class)
        .isThrownBy(() -> Gguf.read(gguf, heap(mebibytes)))
        .withMessageContaining("heap of %d MiB", mebibytes);
    assertThat(gguf.bytesRead()).isLessThan(mostRead);
  }

  @Test
  void tensorsAndKeysOfGgufAreCountedBeforeTheyAreRead() {
    refused(new BytesReader(start(1 << 17, 0).bytes(), 1L << 40), 16, 1 << 17);
    refused(new BytesReader(start(0, 1 << 16).bytes(), 1L << 40), 4, 1 << 17);
    assertThat(Gguf.read(start(1000, 0).tensors(1000).reader(), heap(16)).tensors()).hasSize(1000);
  }

  @Test
  void textOfGgufIsRefusedBeforeItIsRead() {
    byte[] head = start(0, 1).key("a", STRING).i64(5 << 20).bytes();
    refused(new BytesReader(head, 1L << 40), 16, 1 << 17);
  }

  @Test
  void namesOfGgufCountToo() {
    GgufBytes keys = start(0, 100);
    for (int i = 0; i < 100; i++) {
      keys.key("k".repeat(65_000) + i, STRING).i64(0);
    }
    refused(keys.reader(), 16, 5 << 20);
  }
}
