package io.gpunvme.sim.serve;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.ffi.Errno;
import io.gpunvme.nvme.vfiouser.Command;
import io.gpunvme.nvme.vfiouser.Message;
import io.gpunvme.nvme.vfiouser.Protocol;
import java.nio.ByteBuffer;
import java.util.Arrays;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Headers of all kinds, descriptors that nobody asked for, and messages in pieces. */
class VfioUserHeadersTest extends ServerRig {
  private static byte[] header(int id, int command, int size, int flags, int errno) {
    return Protocol.payload(16)
        .putShort((short) id)
        .putShort((short) command)
        .putInt(size)
        .putInt(flags)
        .putInt(errno)
        .array();
  }

  private void works() {
    assertThat(client.errno(Command.DEVICE_GET_INFO, RawClient.ints(16, 0, 0, 0))).isZero();
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1, 0x7FFF, 0x8000, 0xFFFF})
  void theIdIsEchoed(int id) {
    client.send(id, Command.DEVICE_GET_INFO, 0, RawClient.ints(16, 0, 0, 0));
    try (Message answer = client.next().orElseThrow()) {
      assertThat(answer.id()).isEqualTo(id);
      assertThat(answer.isReply()).isTrue();
      assertThat(answer.command()).isEqualTo(Command.DEVICE_GET_INFO);
      assertThat(answer.flags()).isEqualTo(1);
    }
  }

  @Test
  void anErrorIsABareHeader() {
    client.send(7, 99, 0, RawClient.ints(1, 2, 3));
    try (Message answer = client.next().orElseThrow()) {
      assertThat(answer.id()).isEqualTo(7);
      assertThat(answer.command()).isEqualTo(99);
      assertThat(answer.flags()).isEqualTo(0x21);
      assertThat(answer.error()).isEqualTo(Errno.EOPNOTSUPP);
      assertThat(answer.payload().remaining()).isZero();
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1, 11, 12, 14, 15, 16, 17, 18, 0xFFFF})
  void otherCommandsAreNotSupported(int command) {
    assertThat(client.errno(command, RawClient.ints(0, 0, 0, 0))).isEqualTo(Errno.EOPNOTSUPP);
    works();
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1, 15, 16 + (1 << 20) + 4097, Integer.MAX_VALUE, -1, Integer.MIN_VALUE})
  void aSizeThatCannotBeEndsTheConnection(int size) {
    client.sendRaw(header(1, Command.DEVICE_GET_INFO, size, 0, 0));
    assertThat(client.isEnded()).isTrue();
    works(nextClient());
  }

  private static void works(RawClient next) {
    assertThat(next.errno(Command.DEVICE_GET_INFO, RawClient.ints(16, 0, 0, 0))).isZero();
  }

  @Test
  void theLargestMessage() {
    byte[] data = new byte[(1 << 20) + 4096 - 16];
    assertThat(client.errno(Command.REGION_WRITE, RawClient.access(7, 0, data.length, data)))
        .isEqualTo(Errno.EINVAL);
    works();
  }

  @ParameterizedTest
  @ValueSource(ints = {2, 3, 15, 0xF2})
  void neitherCommandNorReplyEndsTheConnection(int flags) {
    client.sendRaw(header(1, Command.DEVICE_RESET, 16, flags, 0));
    assertThat(client.isEnded()).isTrue();
  }

  @ParameterizedTest
  @CsvSource({"1, 0", "33, 22", "1, 5"})
  void aReplyToNothingEndsTheConnection(int flags, int errno) {
    client.sendRaw(header(1, Command.DMA_READ, 16, flags, errno));
    assertThat(client.isEnded()).isTrue();
  }

  @Test
  void whoWantsNoReplyGetsNone() {
    client.send(1, Command.DEVICE_RESET, Protocol.NO_REPLY, Protocol.payload(0));
    client.send(2, 99, Protocol.NO_REPLY, Protocol.payload(0));
    client.send(3, Command.DMA_MAP, Protocol.NO_REPLY, Protocol.payload(0));
    works();
  }

  @Test
  void byteByByte() {
    byte[] message =
        ByteBuffer.allocate(32)
            .put(header(5, Command.DEVICE_GET_INFO, 32, 0, 0))
            .put(RawClient.ints(16, 0, 0, 0))
            .array();
    for (byte b : message) {
      client.sendRaw(new byte[] {b});
    }
    try (Message answer = client.next().orElseThrow()) {
      assertThat(answer.id()).isEqualTo(5);
      assertThat(answer.error()).isZero();
    }
  }

  @Test
  void manyAtOnce() {
    int count = 500;
    ByteBuffer all = ByteBuffer.allocate(count * 32);
    for (int i = 0; i < count; i++) {
      all.put(header(i, Command.DEVICE_GET_INFO, 32, 0, 0)).put(RawClient.ints(16, 0, 0, 0));
    }
    client.sendRaw(all.array());
    for (int i = 0; i < count; i++) {
      try (Message answer = client.next().orElseThrow()) {
        assertThat(answer.id()).isEqualTo(i);
      }
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 15, 16, 20, 31})
  void whoGoesInTheMiddleIsGone(int bytes) {
    byte[] message =
        ByteBuffer.allocate(32)
            .put(header(5, Command.DEVICE_GET_INFO, 32, 0, 0))
            .put(RawClient.ints(16, 0, 0, 0))
            .array();
    try (Pages pages = Pages.allocate(Pages.PAGE)) {
      client.sendRaw(Arrays.copyOf(message, bytes), pages.fd());
    }
    works(nextClient());
  }

  @ParameterizedTest
  @ValueSource(ints = {3, 4, 5, 6, 7, 9, 10, 13, 99})
  void descriptorsThatNobodyAskedForAreRefused(int command) {
    try (Pages pages = Pages.allocate(Pages.PAGE)) {
      assertThat(client.errno(command, RawClient.ints(16, 0, 0, 0), pages.fd(), pages.fd()))
          .isEqualTo(Errno.EINVAL);
    }
    works();
  }

  @Test
  void tooManyDescriptorsEndTheConnection() {
    try (Pages pages = Pages.allocate(Pages.PAGE)) {
      int[] sixteen = new int[16];
      Arrays.fill(sixteen, pages.fd());
      assertThat(client.errno(Command.DMA_MAP, Protocol.payload(0), sixteen))
          .isEqualTo(Errno.EINVAL);
      int[] more = new int[17];
      Arrays.fill(more, pages.fd());
      client.send(1, Command.DMA_MAP, 0, Protocol.payload(0), more);
      assertThat(client.isEnded()).isTrue();
      nextClient();
      int[] most = new int[253];
      Arrays.fill(most, pages.fd());
      client.send(1, Command.DMA_MAP, 0, Protocol.payload(0), most);
      assertThat(client.isEnded()).isTrue();
    }
  }

  @Test
  void aClientThatReadsNothingIsDroppedAndTheNextOneServed() {
    ByteBuffer config = RawClient.access(7, 0, 4096);
    long start = System.nanoTime();
    Thread sender =
        Thread.ofPlatform()
            .start(
                () -> {
                  try {
                    for (int i = 0; i < 5000; i++) {
                      client.send(
                          i, Command.REGION_READ, 0, config.duplicate().order(config.order()));
                    }
                  } catch (RuntimeException e) {
                    // The server has had enough.
                  }
                });
    try (RawClient next = RawClient.greeted(socket)) {
      works(next);
    }
    assertThat((System.nanoTime() - start) / 1_000_000_000.0).isLessThan(30);
    join(sender);
  }

  private static void join(Thread thread) {
    try {
      thread.join();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
