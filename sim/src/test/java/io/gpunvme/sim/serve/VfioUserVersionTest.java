package io.gpunvme.sim.serve;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import io.gpunvme.ffi.Errno;
import io.gpunvme.nvme.vfiouser.Capabilities;
import io.gpunvme.nvme.vfiouser.Command;
import io.gpunvme.nvme.vfiouser.Message;
import io.gpunvme.nvme.vfiouser.Protocol;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.assertj.core.api.Assertions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** VERSION, and who is served when. */
class VfioUserVersionTest extends ServerRig {
  @Override
  @BeforeEach
  void serve() {
    super.serve();
    client.close();
    client = RawClient.connect(socket);
  }

  private static ByteBuffer version(int major, int minor, String text) {
    byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
    return Protocol.payload(4 + bytes.length)
        .putShort((short) major)
        .putShort((short) minor)
        .put(bytes)
        .flip();
  }

  @Test
  void agrees() {
    try (Message answer = client.call(Command.VERSION, version(0, 1, ""))) {
      ByteBuffer payload = answer.payload();
      assertThat(answer.error()).isZero();
      assertThat(payload.getShort(0)).isZero();
      assertThat(payload.getShort(2)).isEqualTo((short) 1);
      byte[] text = new byte[payload.remaining() - 4];
      payload.get(4, text);
      assertThat(text[text.length - 1]).isZero();
      JsonObject all =
          JsonParser.parseString(new String(text, 0, text.length - 1, StandardCharsets.UTF_8))
              .getAsJsonObject()
              .getAsJsonObject("capabilities");
      assertThat(all.get("max_msg_fds").getAsInt()).isEqualTo(16);
      assertThat(all.get("max_data_xfer_size").getAsLong()).isEqualTo(1 << 20);
      assertThat(all.get("pgsizes").getAsInt()).isEqualTo(4096);
      assertThat(all.get("max_dma_maps").getAsInt()).isEqualTo(4096);
    }
  }

  @ParameterizedTest
  @CsvSource({"0, 0", "1, 1", "2, 1", "65535, 1"})
  void takesTheLowerMinorVersion(int asked, int agreed) {
    try (Message answer = client.call(Command.VERSION, version(0, asked, ""))) {
      assertThat(Capabilities.parse(answer.payload()).minor()).isEqualTo(agreed);
    }
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "{}\0",
        "{\"capabilities\":{}}\0",
        "{\"capabilities\":{\"unknown\":[1,{}],\"max_msg_fds\":8}}\0",
        "{\"capabilities\":{\"max_msg_fds\":null}}\0",
        "{\"capabilities\":7}\0"
      })
  void readsWhatItKnows(String text) {
    assertThat(client.errno(Command.VERSION, version(0, 1, text))).isZero();
    assertThat(client.errno(Command.DEVICE_GET_INFO, RawClient.ints(16, 0, 0, 0))).isZero();
  }

  @Test
  void anotherMajorVersionIsRefusedAndEndsTheConnection() {
    assertThat(client.errno(Command.VERSION, version(1, 0, ""))).isEqualTo(Errno.EINVAL);
    assertThat(client.isEnded()).isTrue();
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "{\"capabilities\":{}}",
        "\0",
        "nonsense{\0",
        "[]\0",
        "{\"capabilities\":{\"max_msg_fds\":0}}\0",
        "{\"capabilities\":{\"max_msg_fds\":-1}}\0",
        "{\"capabilities\":{\"max_msg_fds\":1e99}}\0",
        "{\"capabilities\":{\"max_data_xfer_size\":4095}}\0",
        "{\"capabilities\":{\"max_data_xfer_size\":\"4096\"}}\0",
        "{\"capabilities\":{\"max_data_xfer_size\":99999999999999999999}}\0"
      })
  void nonsenseEndsTheConnection(String text) {
    client.send(1, Command.VERSION, 0, version(0, 1, text));
    assertThat(client.isEnded()).isTrue();
  }

  @Test
  void deepNonsenseEndsTheConnection() {
    client.send(1, Command.VERSION, 0, version(0, 1, "[".repeat(500_000) + "\0"));
    assertThat(client.isEnded()).isTrue();
  }

  @Test
  void tooShortEndsTheConnection() {
    client.send(1, Command.VERSION, 0, Protocol.payload(3));
    assertThat(client.isEnded()).isTrue();
  }

  @ParameterizedTest
  @ValueSource(ints = {2, 4, 5, 9, 10, 13, 99})
  void whateverElseIsFirstEndsTheConnection(int command) {
    client.send(1, command, 0, RawClient.ints(16, 0, 0, 0));
    assertThat(client.isEnded()).isTrue();
  }

  @Test
  void aVersionWithDescriptorsEndsTheConnection() {
    try (Pages pages = Pages.allocate(Pages.PAGE)) {
      client.send(1, Command.VERSION, 0, version(0, 1, ""), pages.fd());
      assertThat(client.isEnded()).isTrue();
    }
  }

  @Test
  void aSecondVersionIsRefused() {
    assertThat(client.errno(Command.VERSION, version(0, 1, ""))).isZero();
    assertThat(client.errno(Command.VERSION, version(0, 1, ""))).isEqualTo(Errno.EOPNOTSUPP);
  }

  @Test
  void aSecondClientWaitsAndIsServedThen() throws Exception {
    client.call(Command.VERSION, version(0, 1, "")).close();
    CompletableFuture<RawClient> second =
        CompletableFuture.supplyAsync(() -> RawClient.greeted(socket));
    Assertions.assertThatThrownBy(() -> second.get(200, TimeUnit.MILLISECONDS))
        .isInstanceOf(TimeoutException.class);
    assertThat(client.errno(Command.DEVICE_GET_INFO, RawClient.ints(16, 0, 0, 0))).isZero();
    client.close();
    client = second.get(20, TimeUnit.SECONDS);
    assertThat(client.errno(Command.DEVICE_GET_INFO, RawClient.ints(16, 0, 0, 0))).isZero();
    assertThat(server.clients()).isEqualTo(3);
  }
}
