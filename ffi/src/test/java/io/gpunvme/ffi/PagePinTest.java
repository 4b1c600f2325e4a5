package io.gpunvme.ffi;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;

final class PagePinTest {
  private static final long BYTES = 16L * Posix.pageSize();

  /** What the kernel counts as pinned for this process, in KiB. */
  private static long pinned() throws IOException {
    Matcher m =
        Pattern.compile("(?m)^VmPin:\\s+(\\d+)")
            .matcher(Files.readString(Path.of("/proc/self/status")));
    return m.find() ? Long.parseLong(m.group(1)) : -1;
  }

  private static PagePin pin(MemorySegment memory) {
    try {
      return PagePin.pin(memory);
    } catch (PosixException e) {
      if (e.call().equals("io_uring_setup")) {
        Assumptions.abort("no io_uring here: " + e.getMessage());
      }
      throw e;
    }
  }

  @Test
  void pinsUntilClosed() throws IOException {
    try (SharedMemory memory = SharedMemory.allocate("pinned", BYTES)) {
      long before = pinned();
      PagePin pin = pin(memory.segment());
      assertThat(pinned()).isEqualTo(before + BYTES / 1024);
      pin.close();
      pin.close();
      assertThat(pinned()).isEqualTo(before);
    }
  }

  @Test
  void theSamePagesTwice() {
    try (SharedMemory memory = SharedMemory.allocate("pinned", BYTES);
        PagePin one = pin(memory.segment());
        PagePin two = pin(memory.segment())) {
      assertThat(one).isNotSameAs(two);
    }
  }

  @Test
  void saysWhatIsWrong() {
    PosixException e =
        catchThrowableOfType(
            PosixException.class,
            () -> pin(MemorySegment.ofAddress(Posix.pageSize()).reinterpret(Posix.pageSize())));
    assertThat(e.call()).isEqualTo("io_uring_register");
    assertThat(e.errno()).isEqualTo(Errno.EFAULT);
  }
}
