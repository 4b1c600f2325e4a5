package io.gpunvme.sim.serve;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.ffi.Errno;
import io.gpunvme.ffi.Mapping;
import io.gpunvme.ffi.Posix;
import io.gpunvme.ffi.PosixException;
import io.gpunvme.nvme.spec.Registers;
import io.gpunvme.nvme.vfiouser.Command;
import io.gpunvme.nvme.vfiouser.Message;
import io.gpunvme.nvme.vfiouser.Protocol;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import org.assertj.core.api.Assertions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** DEVICE_GET_REGION_INFO and DEVICE_GET_REGION_IO_FDS. */
class VfioUserRegionInfoTest extends ServerRig {
  private static final int WHOLE = 64;

  private Message ask(int argsz, int index) {
    return client.call(Command.DEVICE_GET_REGION_INFO, RawClient.regionInfo(argsz, index));
  }

  @Test
  void theDoorbellsCanBeMapped() {
    try (Message answer = ask(4096, 0)) {
      ByteBuffer p = answer.payload();
      assertThat(p.remaining()).isEqualTo(WHOLE);
      assertThat(p.getInt(0)).isEqualTo(WHOLE);
      assertThat(p.getInt(4)).isEqualTo(0xF);
      assertThat(p.getInt(8)).isZero();
      assertThat(p.getInt(12)).isEqualTo(Protocol.REGION_INFO_BYTES);
      assertThat(p.getLong(16)).isEqualTo(controller.bar(0).size());
      assertThat(p.getShort(32)).isEqualTo((short) Protocol.SPARSE_MMAP);
      assertThat(p.getShort(34)).isEqualTo((short) 1);
      assertThat(p.getInt(36)).isZero();
      assertThat(p.getInt(40)).isEqualTo(1);
      assertThat(p.getLong(48)).isEqualTo(Registers.DOORBELLS);
      assertThat(p.getLong(56) % Posix.pageSize()).isZero();
      assertThat(p.getLong(48) + p.getLong(56)).isLessThanOrEqualTo(p.getLong(16));
      assertThat(answer.descriptors()).hasSize(1);
      long at = p.getLong(24) + p.getLong(48);
      try (Mapping page =
          Mapping.shared(answer.descriptors().getFirst(), at, p.getLong(56), READ_WRITE)) {
        page.segment().set(ValueLayout.JAVA_INT, 8, 5);
        assertThat(controller.bar(0).memory(Registers.DOORBELLS, 16).get(ValueLayout.JAVA_INT, 8))
            .isEqualTo(5);
      }
    }
  }

  @Test
  void itsSizeCannotBeChangedByTheClient() {
    try (Message answer = ask(4096, 0)) {
      int fd = answer.descriptors().getFirst();
      for (long size : new long[] {0, 1 << 20}) {
        Assertions.assertThatExceptionOfType(PosixException.class)
            .isThrownBy(() -> Posix.ftruncate(fd, size));
      }
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {32, 40, 63})
  void withTooLittleRoomItSaysHowMuchItTakes(int argsz) {
    try (Message answer = ask(argsz, 0)) {
      assertThat(answer.payload().remaining()).isEqualTo(32);
      assertThat(answer.payload().getInt(0)).isEqualTo(WHOLE);
      assertThat(answer.payload().getInt(4) & Protocol.REGION_CAPABILITIES).isNotZero();
      assertThat(answer.payload().getInt(12)).isEqualTo(Protocol.REGION_INFO_BYTES);
      assertThat(answer.descriptors()).isEmpty();
    }
    try (Message answer = ask(WHOLE, 0)) {
      assertThat(answer.payload().remaining()).isEqualTo(WHOLE);
    }
  }

  @ParameterizedTest
  @CsvSource({"1, 0", "2, 0", "3, 0", "5, 0", "6, 0", "7, 4096", "8, 0"})
  void otherRegionsCannotBeMapped(int index, long size) {
    try (Message answer = ask(32, index)) {
      ByteBuffer p = answer.payload();
      assertThat(p.remaining()).isEqualTo(32);
      assertThat(p.getInt(0)).isEqualTo(32);
      assertThat(p.getInt(4)).isEqualTo(size == 0 ? 0 : 3);
      assertThat(p.getInt(8)).isEqualTo(index);
      assertThat(p.getLong(16)).isEqualTo(size);
      assertThat(answer.descriptors()).isEmpty();
    }
  }

  @Test
  void theTableOfMsixIsBar4() {
    try (Message answer = ask(32, 4)) {
      assertThat(answer.payload().getLong(16)).isEqualTo(controller.bar(4).size());
      assertThat(answer.payload().getInt(4)).isEqualTo(3);
    }
  }

  @ParameterizedTest
  @CsvSource({"31, 0", "0, 0", "4096, 9", "4096, -1", "32, 2147483647"})
  void refusesWhatIsNot(int argsz, int index) {
    assertThat(client.errno(Command.DEVICE_GET_REGION_INFO, RawClient.regionInfo(argsz, index)))
        .isEqualTo(Errno.EINVAL);
  }

  @Test
  void refusesWhatIsTooShort() {
    assertThat(client.errno(Command.DEVICE_GET_REGION_INFO, RawClient.ints(4096, 0, 0, 0, 0)))
        .isEqualTo(Errno.EINVAL);
  }

  @Test
  void thereAreNoDescriptorsForRegisters() {
    try (Message answer =
        client.call(Command.DEVICE_GET_REGION_IO_FDS, RawClient.ints(4096, 0, 0, 0))) {
      assertThat(answer.error()).isZero();
      assertThat(answer.payload().remaining()).isEqualTo(16);
      assertThat(answer.payload().getInt(12)).isZero();
      assertThat(answer.descriptors()).isEmpty();
    }
    assertThat(client.errno(Command.DEVICE_GET_REGION_IO_FDS, RawClient.ints(15, 0, 0, 0)))
        .isEqualTo(Errno.EINVAL);
    assertThat(client.errno(Command.DEVICE_GET_REGION_IO_FDS, RawClient.ints(16, 0, 9, 0)))
        .isEqualTo(Errno.EINVAL);
  }
}
