package io.gpunvme.nvme.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.base.DmaBuf;
import io.gpunvme.ffi.Posix;
import io.gpunvme.nvme.DmaMappingException;
import org.junit.jupiter.api.Test;

class DmaBufTest {
  @Test
  void ownsItsDescriptor() {
    int fd = Posix.open("/dev/null", Posix.O_RDONLY, 0);
    DmaBuf exported = new DmaBuf(fd, 4096, 8192);
    assertThat(exported.fd()).isEqualTo(fd);
    assertThat(exported.offset()).isEqualTo(4096);
    assertThat(exported.size()).isEqualTo(8192);
    exported.close();
    exported.close();
    assertThatIllegalStateException().isThrownBy(exported::fd);
    assertThatThrownBy(() -> Posix.close(fd)).hasMessageContaining("EBADF");
  }

  @Test
  void isOfWholePages() {
    for (long[] bad :
        new long[][] {{-1, 0, 4096}, {3, -4096, 4096}, {3, 1, 4096}, {3, 0, 0}, {3, 0, 100}}) {
      assertThatIllegalArgumentException()
          .isThrownBy(() -> new DmaBuf((int) bad[0], bad[1], bad[2]));
    }
  }

  @Test
  void notAllMemoryHasOne() {
    RemoteMemory memory =
        new RemoteMemory() {
          @Override
          public String name() {
            return "the memory of a test";
          }

          @Override
          public long size() {
            return 8192;
          }

          @Override
          public RemotePort openPort(RemotePort.Use use) {
            throw new AssertionError("nothing is copied");
          }
        };
    assertThatThrownBy(memory::exportDmaBuf)
        .isInstanceOf(DmaMappingException.class)
        .hasMessageContaining(memory.name());
  }
}
