package io.gpunvme.nvme.pci.host;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.gpunvme.ffi.Posix;
import io.gpunvme.ffi.SharedMemory;
import io.gpunvme.nvme.memory.HostMemory;
import io.gpunvme.nvme.pci.NumaHome;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;

/** With huge pages where this machine has some free, without them elsewhere: the same promises. */
class HugePagesTest {
  private static final long PAGE = Posix.pageSize();

  private static long free() throws IOException {
    Matcher m =
        Pattern.compile("HugePages_Free:\\s+(\\d+)")
            .matcher(Files.readString(Path.of("/proc/meminfo")));
    return m.find() ? Long.parseLong(m.group(1)) : 0;
  }

  @Test
  void memoryIsZeroedAlignedAndApart() {
    HugePages pages = new HugePages(NumaHome.NONE);
    List<HostMemory> all = new ArrayList<>();
    for (int round = 0; round < 3; round++) {
      for (long bytes : new long[] {1, PAGE, 3 * PAGE, 3L << 20}) {
        HostMemory memory = pages.allocate(bytes);
        MemorySegment s = memory.segment();
        assertThat(s.byteSize()).isEqualTo(Math.ceilDiv(bytes, PAGE) * PAGE);
        assertThat(s.address() % PAGE).isZero();
        assertThat(s.mismatch(MemorySegment.ofArray(new byte[(int) s.byteSize()]))).isEqualTo(-1);
        s.fill((byte) 0xFF);
        all.add(memory);
      }
      all.forEach(HostMemory::close);
      all.clear();
    }
  }

  @Test
  void useAfterCloseThrows() {
    HostMemory memory = new HugePages(NumaHome.NONE).allocate(PAGE);
    MemorySegment segment = memory.segment();
    memory.close();
    memory.close();

    assertThatIllegalStateException().isThrownBy(() -> segment.get(ValueLayout.JAVA_BYTE, 0));
  }

  @Test
  void piecesShareAPageAndGiveItBack() throws IOException {
    long before = free();
    if (before < 2) {
      Assumptions.abort("no free huge pages here (sysctl vm.nr_hugepages=8)");
    }
    HugePages pages = new HugePages(NumaHome.NONE);
    HostMemory a = pages.allocate(5 * PAGE);
    HostMemory b = pages.allocate(PAGE);
    assertThat(b.segment().address()).isEqualTo(a.segment().address() + 5 * PAGE);
    assertThat(a.segment().address() % SharedMemory.HUGE_PAGE).isZero();
    assertThat(free()).isEqualTo(before - 1);
    a.close();
    assertThat(free()).isEqualTo(before - 1);
    b.close();
    assertThat(free()).isEqualTo(before);
  }
}
